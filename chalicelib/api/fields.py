"""Fields that several requests share: their allowed values and their JSON schema."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo, WithJsonSchema
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from chalicelib.api.numbers import JsonNumber
from chalicelib.domain.catalogue.catalogue import NETWORK_ORDER, Catalogue
from chalicelib.domain.money import NotAnAmount, parse_units

MAX_METADATA = 8 * 1024
"""Bytes of JSON."""


def _problem(text: str) -> PydanticCustomError:
    # The text goes in as a value: pydantic's templates give braces a meaning.
    return PydanticCustomError("constraint", "{text}", {"text": text})


def slug(name: Any) -> Any:
    """The slug of a coin or network that a request names: names are understood in any case. What is no name stays as it is.

    ASCII alone: the lower case of other letters may be one of ours.
    """
    return name.lower() if isinstance(name, str) and name.isascii() else name


def _network(value: Any, info: ValidationInfo) -> Any:
    catalogue, named = cast(Catalogue | None, info.context), slug(value)
    if isinstance(named, str) and catalogue is not None and catalogue.network(named) is None:
        raise _problem(f"must be one of: {', '.join(catalogue.networks)}")
    return named


def _coin(value: Any, info: ValidationInfo) -> Any:
    catalogue, named = cast(Catalogue | None, info.context), slug(value)
    if isinstance(named, str) and catalogue is not None and named not in catalogue.slugs():
        raise _problem(f"must be one of: {', '.join(catalogue.slugs())}")
    return named


def amount_text(value: Any) -> str:
    """The text of an amount that was sent as a string or a number. Raises PydanticCustomError where it is one of no coin."""
    if isinstance(value, bool) or not isinstance(value, (str, int, JsonNumber)):
        raise _problem("must be a decimal, as a string or a number")
    text = value.text if isinstance(value, JsonNumber) else str(value)
    try:
        parse_units(text, len(text.partition(".")[2]))
    except NotAnAmount as reason:
        raise _problem(str(reason)) from None
    return text


def positive_amount(value: Any) -> str:
    """The same, and more than zero."""
    text = amount_text(value)
    if not text.strip("0."):
        raise _problem("must be more than zero")
    return text


@dataclass(frozen=True, slots=True)
class _Matching:
    """Text that must match `pattern` whole: checked here, and said in the JSON schema."""

    pattern: str
    words: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        compiled, words = re.compile(self.pattern, re.ASCII), self.words

        def check(value: Any) -> Any:
            if isinstance(value, str) and not compiled.fullmatch(value):
                raise _problem(words)
            return value

        return core_schema.no_info_before_validator_function(check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "pattern": f"^(?:{self.pattern})$"}


def matching(pattern: str, words: str) -> _Matching:
    """Text must match `pattern` whole; `words` is the constraint as the caller reads it."""
    return _Matching(pattern, words)


@dataclass(frozen=True, slots=True)
class _NotNull:
    """For a field that may be left out and whose null is refused (by `cross`): its JSON schema does not offer null."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        made = dict(handler(schema))
        kinds = [kind for kind in made.pop("anyOf", []) if kind != {"type": "null"}]
        return {**made, **kinds[0]} if len(kinds) == 1 else {**made, "anyOf": kinds}


NOT_NULL = _NotNull()


def json_up_to(most: int) -> BeforeValidator:
    """A JSON object of the merchant's own must have at most `most` bytes, compact and in UTF-8."""

    def check(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        plain = _plain(value)
        if len(json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode()) > most:
            raise _problem(f"must be at most {most} bytes of JSON")
        return plain

    return BeforeValidator(check)


def _plain(value: Any) -> Any:
    """Numbers as Python has them: what is kept for the merchant and is no money."""
    if isinstance(value, JsonNumber):
        number = float(value.text)
        if number in (float("inf"), float("-inf")):
            raise _problem("has a number that is too large")
        return number
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def amount_schema(*, positive: bool) -> WithJsonSchema:
    """An amount as the interface takes it: a string or a number, both exact (decisions §2)."""
    text = r"^(0|[1-9][0-9]*)(\.[0-9]+)?$"
    words = "n coin units, as a string or a number; both are exact to the last digit, and a number must have no exponent"
    return WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": rf"^(?!0+(\.0+)?$){text[1:]}" if positive else text, "maxLength": 200},
                {"type": "number", "exclusiveMinimum": 0} if positive else {"type": "number", "minimum": 0},
            ],
            "description": f"{'More than zero, i' if positive else 'I'}{words}. At most 38 significant digits.",
            "examples": ["0.05"],
        }
    )


NETWORK_SCHEMA: dict[str, Any] = {
    "type": "string",
    "enum": list(NETWORK_ORDER),
    "description": "The network's slug, in any case.",
}
COIN_SCHEMA: dict[str, Any] = {
    "type": "string",
    "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$",
    "description": "The coin's slug, in any case: its symbol. `GET /v1/coins` lists them.",
    "examples": ["eth"],
}
NetworkSlug = Annotated[str, BeforeValidator(_network), WithJsonSchema({**NETWORK_SCHEMA, "examples": ["ethereum"]})]
CoinSlug = Annotated[str, BeforeValidator(_coin), WithJsonSchema(COIN_SCHEMA)]
PositiveAmount = Annotated[str, BeforeValidator(positive_amount), amount_schema(positive=True)]
Amount = Annotated[str, BeforeValidator(amount_text), amount_schema(positive=False)]
"""Of any coin; zero too."""
AddressText = Annotated[
    str,
    Field(
        min_length=1,
        max_length=128,
        description="An address of the network.",
        examples=["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"],
    ),
]
Label = Annotated[str, Field(max_length=200, description="What the merchant calls it.", examples=["Till 3"])]
Metadata = Annotated[
    dict[str, Any],
    json_up_to(MAX_METADATA),
    Field(description=f"Any JSON object of at most {MAX_METADATA} bytes; answered as it was sent.", examples=[{"order": "A-17"}]),
]
