"""Parsing of a body into one JSON object, or an INVALID_PARAMETER that names the fault. Knows nothing of fields."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from email.message import Message
from typing import Any, NoReturn
from urllib.parse import parse_qsl

from chalicelib.api.numbers import JsonNumber
from chalicelib.domain.errors import FieldProblem, InvalidParameter
from chalicelib.encoding.json_depth import deeper_than

MAX_BYTES = 256 * 1024
FORM = "application/x-www-form-urlencoded"
MAX_PROBLEMS = 100
"""Fields that an error names: a few bytes of nonsense must not be answered with a flood."""
MAX_DEPTH = 32
"""Objects and lists inside each other."""
_SHORT_INTEGER = 40  # characters; longer ones keep their text: Python's own conversion stops at 4300 digits with an error
_BAD_CHARACTER = re.compile("[\x00\ud800-\udfff]")
NO_BAD_CHARACTER = "must have no NUL character and no half of a surrogate pair"


def parse(raw: bytes, content_type: str | None) -> dict[str, Any]:
    """The object in a request's body; no body is an empty object. Raises InvalidParameter.

    Numbers with a fraction or an exponent, and very long ones, come as JsonNumber. NaN, infinities, a name twice in one
    object (RFC 8259 section 4 leaves open which one counts), NUL and lone surrogates are refused.
    """
    if not raw:
        return {}
    if len(raw) > MAX_BYTES:
        _refuse(f"must be at most {MAX_BYTES // 1024} KiB")
    _check_type(content_type)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        _refuse("must be UTF-8")
    if deeper_than(text, MAX_DEPTH):
        _refuse(f"must be at most {MAX_DEPTH} levels deep")
    try:
        value = json.loads(text, parse_float=JsonNumber, parse_int=_integer, parse_constant=_constant, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        _refuse(f"must be valid JSON: {error.msg} at line {error.lineno}, column {error.colno}")
    if not isinstance(value, dict):
        _refuse("must be a JSON object")
    if text.count("{") + text.count("[") > MAX_DEPTH or "\\u" in text:
        _check_inside(value)
    return value


def is_form(content_type: str | None) -> bool:
    """Whether a browser's form was sent."""
    header = Message()
    header["content-type"] = content_type or ""
    return content_type is not None and header.get_content_type() == FORM


def parse_form(raw: bytes) -> dict[str, Any]:
    """The fields of a form, all text; empty ones are left out, as a form can not. Raises InvalidParameter."""
    if len(raw) > MAX_BYTES:
        _refuse(f"must be at most {MAX_BYTES // 1024} KiB")
    try:
        pairs = parse_qsl(raw.decode("ascii"), strict_parsing=False, errors="strict", max_num_fields=MAX_PROBLEMS)
    except ValueError:  # UnicodeDecodeError is one
        _refuse("must be a form in UTF-8")
    if any(has_bad_character(text) for pair in pairs for text in pair):
        _refuse(NO_BAD_CHARACTER)
    return _object(list(pairs))


def none_known(sent: Mapping[str, Any]) -> list[FieldProblem]:
    """Problems of a body's fields where a route has no fields; an error never repeats their values."""
    problems = [FieldProblem(name[:100], None, ("is not known: this takes no body",)) for name in sorted(sent)[:MAX_PROBLEMS]]
    if len(sent) > MAX_PROBLEMS:
        problems.append(FieldProblem("request", None, (f"has {len(sent) - MAX_PROBLEMS} more fields that are wrong",)))
    return problems


def has_bad_character(text: str) -> bool:
    """Whether `sent` contains a character that no name and no text of ours has, at any depth."""
    return _BAD_CHARACTER.search(text) is not None


def _refuse(constraint: str) -> NoReturn:
    raise InvalidParameter.one("body", None, constraint) from None


def _check_type(content_type: str | None) -> None:
    header = Message()
    header["content-type"] = content_type or ""
    try:
        kind, charset = header.get_content_type(), header.get_param("charset")
    except (TypeError, ValueError):  # parameters in parts (RFC 2231) whose numbers are none
        kind, charset = "", None
    if content_type is None or kind != "application/json":
        _refuse("the content type must be application/json")
    if charset is not None and str(charset).lower() not in ("utf-8", "utf8"):
        _refuse("the character set must be utf-8")


def _integer(text: str) -> int | JsonNumber:
    return int(text) if len(text) <= _SHORT_INTEGER else JsonNumber(text)


def _constant(name: str) -> NoReturn:
    _refuse(f"must be valid JSON: {name} is none")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        once = iter(result)  # in the order of their first places
        twice = next(name for name, _ in pairs if name != next(once, None))
        raise InvalidParameter.one(twice[:100], None, "must be there only once")
    return result


def _check_inside(value: dict[str, Any]) -> None:
    """Depth and characters, level by level: no recursion that deep input could exhaust."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        following: list[Any] = []
        for item in level:
            if isinstance(item, str):
                if has_bad_character(item):
                    _refuse(NO_BAD_CHARACTER)
            elif isinstance(item, dict):
                following += [*item.keys(), *item.values()]
            elif isinstance(item, list):
                following += item
        if not following:
            return
        level = following
    _refuse(f"must be at most {MAX_DEPTH} levels deep")
