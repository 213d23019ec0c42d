"""The pages' words in the reader's language, and numbers and times in the reader's form.

Each language is a file of `messages/`: keys and plain text with {placeholders}, or one text for each plural category of Unicode's
CLDR. Values are put in as text and never read as placeholders; the caller escapes the whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from pathlib import Path

MESSAGES = Path(__file__).parent / "messages"
LANGUAGES = ("en", "de", "fr", "es", "pt", "ru", "tr", "ar", "zh", "ja")
"""Those that a browser can choose from; the first one is for all others."""
_RIGHT_TO_LEFT = ("ar",)
_GROUPED_LATE = ("es", "pt")
"""Where numbers of four digits are written without a mark between them (CLDR, minimumGroupingDigits)."""
_MOST_READ = 1_000
"""Characters of an Accept-Language header that are read."""
_WISH = re.compile(r"\s*(?P<tag>[A-Za-z]{2,8})(?:-[A-Za-z0-9-]*)?\s*(?:;\s*q=(?P<weight>[01](?:\.[0-9]{1,3})?)\s*)?", re.ASCII)
_PLACE = re.compile(r"\{([A-Za-z]+)\}")
_PLAIN = re.compile(r"(-?)([0-9]+)(\.[0-9]+)?", re.ASCII)
_MOMENT = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2})[0-9:.]*Z", re.ASCII)
_DIRECTIONS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that turn the direction of the text around them: a value must not reorder the sentence that it stands in."""
Text = str | Mapping[str, str]


def _of_one(count: int) -> str:
    return "one" if count == 1 else "other"


def _of_none_or_one(count: int) -> str:
    return "one" if count in (0, 1) else "other"


def _russian(count: int) -> str:
    last, two = count % 10, count % 100
    if last == 1 and two != 11:
        return "one"
    return "few" if 2 <= last <= 4 and not 12 <= two <= 14 else "many"


def _arabic(count: int) -> str:
    if count <= 2:
        return ("zero", "one", "two")[count]
    two = count % 100
    return "few" if 3 <= two <= 10 else "many" if two >= 11 else "other"


def _alike(count: int) -> str:
    return "other"


PLURALS: Mapping[str, tuple[Callable[[int], str], frozenset[str]]] = {
    "fr": (_of_none_or_one, frozenset({"one", "other"})),
    "pt": (_of_none_or_one, frozenset({"one", "other"})),
    "ru": (_russian, frozenset({"one", "few", "many"})),
    "ar": (_arabic, frozenset({"zero", "one", "two", "few", "many", "other"})),
    "zh": (_alike, frozenset({"other"})),
    "ja": (_alike, frozenset({"other"})),
}
"""How whole numbers choose their form, and the forms there are. Languages that are not here have one, and other.
https://www.unicode.org/cldr/charts/latest/supplemental/language_plural_rules.html"""
_USUAL = (_of_one, frozenset({"one", "other"}))


@dataclass(frozen=True, slots=True)
class Words:
    """One language: its messages by key."""

    lang: str
    messages: Mapping[str, Text]

    @property
    def direction(self) -> str:
        return "rtl" if self.lang in _RIGHT_TO_LEFT else "ltr"

    def say(self, key: str, **values: str) -> str:
        """A message as text, with `values` in its places. Raises LookupError for an unknown key, and for one with plural forms."""
        return self._filled(self.raw(key), values)

    def html(self, key: str, **values: str) -> str:
        """The same, escaped."""
        return escape(self.say(key, **values))

    def count(self, key: str, count: int, **values: str) -> str:
        """A message in the form for `count`, which is its {count}, as text. Raises LookupError for one without plural forms."""
        forms = self.messages[key]
        if isinstance(forms, str):
            raise LookupError(f"{key} has no plural forms")
        form = forms[PLURALS.get(self.lang, _USUAL)[0](count)]
        return self._filled(form, {**values, "count": self.number(str(count))})

    def _filled(self, message: str, values: Mapping[str, str]) -> str:
        return _PLACE.sub(lambda found: self._value(values[found[1]]), message)

    def _value(self, text: str) -> str:
        bare = _DIRECTIONS.sub("", text)
        # Amounts, names and addresses are written from left to right, whatever stands around them.
        return f"\u2068{bare}\u2069" if self.direction == "rtl" else bare

    def number(self, text: str) -> str:
        """A plain decimal in the reader's form; any other text as it is."""
        found = _PLAIN.fullmatch(text)
        if found is None:
            return text
        group = self.raw("format.group")
        least = 5 if self.lang in _GROUPED_LATE else 4
        whole = found[2] if len(found[2]) < least else re.sub(r"(?<=[0-9])(?=(?:[0-9]{3})+$)", group, found[2])
        return found[1] + whole + (found[3] or "").replace(".", self.raw("format.decimal"))

    def moment(self, at: str, form: str = "moment") -> str:
        """``2026-05-01T12:00:00.000Z`` in the reader's form, in UTC; with the form `clock` the time of day alone."""
        found = _MOMENT.fullmatch(at)
        if found is None:
            return at
        names = ("year", "month", "day", "hour", "minute")
        values = dict(zip(names, found.groups(), strict=True))
        return _PLACE.sub(lambda place: values[place[1]], self.raw(f"format.{form}"))

    def raw(self, key: str) -> str:
        """A message with its placeholders as they are. Raises LookupError for an unknown key, and for one with plural forms."""
        message = self.messages[key]
        if not isinstance(message, str):
            raise LookupError(f"{key} has plural forms")
        return message

    def below(self, prefix: str) -> dict[str, str]:
        """All messages whose keys begin with `prefix` and a dot, by the rest of the key: for a script."""
        return {key.removeprefix(f"{prefix}."): self.raw(key) for key in self.messages if key.startswith(f"{prefix}.")}


@lru_cache(maxsize=len(LANGUAGES))
def words(lang: str) -> Words:
    """The words of one of `LANGUAGES`, read once per process."""
    return Words(lang, json.loads((MESSAGES / f"{lang}.json").read_text("utf-8")))


def preferred(accept_language: str) -> Words:
    """The words that a browser's Accept-Language header asks for (RFC 9110, 12.5.4): the heaviest wish that there is, the first of
    equal ones. English where nothing else fits. A region is of no account; what is not of the header's form is skipped."""
    best, weight = LANGUAGES[0], 0.0
    for wish in accept_language[:_MOST_READ].split(","):
        found = _WISH.fullmatch(wish)
        if found is None:
            continue
        tag, own = found["tag"].lower(), float(found["weight"] or 1)
        if tag in LANGUAGES and own > weight:
            best, weight = tag, own
    return words(best)
