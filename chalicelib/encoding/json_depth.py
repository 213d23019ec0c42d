"""The nesting depth of a JSON text, found before a parser reads it.

Python's json goes down a level of the C stack per bracket. Its guard is the recursion limit, which a library may raise (py_ecc
does when eth-account is imported): then deep input ends the process instead of raising RecursionError.
"""

from __future__ import annotations

import re

_BRACKETS_AND_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)
"""A string without an end is one, too, up to the end of the text: else each escaped quote in it would begin a search of its own."""


def deeper_than(text: str, most: int) -> bool:
    """Whether objects and lists lie inside each other more than `most` deep. Of a text that is no JSON it may say either."""
    if text.count("{") + text.count("[") <= most:
        return False
    depth = 0
    for match in _BRACKETS_AND_STRINGS.finditer(text):
        first = match.group()[0]
        if first in "[{":
            depth += 1
            if depth > most:
                return True
        elif first in "]}":
            depth -= 1
    return False
