"""JSON numbers that keep their text: exact to the last digit on the way in and on the way out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JsonNumber:
    """A number as it stands in a JSON text, digit for digit: `1.50` stays `1.50`, `1e3` can be told from `1000`."""

    text: str
