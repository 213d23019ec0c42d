"""What requests look like: the base of all models, fields that several share, and what is wrong in the interface's words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError, core_schema

from chalicelib.api.numbers import JsonNumber
from chalicelib.domain.catalogue import NETWORK_ORDER, Catalogue, Coin, Network
from chalicelib.domain.errors import FieldProblem, InvalidParameter
from chalicelib.domain.ids import network_id, network_parts
from chalicelib.domain.money import NotAnAmount, parse_units

if TYPE_CHECKING:
    from chalicelib.api.context import Ctx

MAX_METADATA = 8 * 1024
"""Bytes of JSON."""
MAX_PROBLEMS = 100
"""Fields that an error names: a few bytes of nonsense must not be answered with a flood."""
_SHOWN = 100
NOT_SHOWN = "(not shown)"
_SECRET_FIELDS = frozenset({"secret", "privateKey", "private_key", "rpcUrl", "rpcUrls", "wsUrl"})


class Request(BaseModel):
    """A body with field names as written here. `cross` looks at fields together.

    Where a body changes something, `selecting` are the names that say what is changed: a body without any other changes nothing
    and is refused. None: it is no such body.
    """

    model_config = ConfigDict(strict=True, extra="forbid", defer_build=True, frozen=True)
    selecting: ClassVar[frozenset[str] | None] = None

    @classmethod
    def cross(cls, sent: Mapping[str, Any], wrong: frozenset[str], catalogue: Catalogue) -> list[FieldProblem]:
        """Problems of fields that are right one by one. `sent` are the raw values, `wrong` the names with problems already."""
        return []

    @classmethod
    def judged(cls, ctx: Ctx, sent: Mapping[str, Any], wrong: frozenset[str]) -> list[FieldProblem]:
        """Problems that take more than the catalogue to see, such as the spelling of addresses; nothing is looked up for them.

        Only of fields that are not in `wrong`: whoever corrects everything that is told is not told of another one.
        """
        return []

    @classmethod
    def known_names(cls) -> list[str]:
        """The names that a body may have."""
        return sorted(field.alias or own for own, field in cls.model_fields.items())

    @classmethod
    def changes_nothing(cls, sent: Mapping[str, Any]) -> list[FieldProblem]:
        """The problem of a body that should change something and names nothing to change."""
        if cls.selecting is None or not sent.keys() <= cls.selecting:
            return []
        known = ", ".join(name for name in cls.known_names() if name not in cls.selecting)
        return [FieldProblem("body", None, (f"must name something to change: {known}",))]

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Says of a body that changes something that it is not empty."""
        schema = handler(core_schema)
        if cls.selecting is not None:
            body = handler.resolve_ref_schema(schema)
            body["minProperties"] = 1 + len(cls.selecting.intersection(body.get("required", ())))
        return schema

    @classmethod
    def unknown(cls, name: str) -> str:
        """The constraint that a field nobody knows breaks."""
        return f"is not known; known are: {', '.join(cls.known_names()) or 'none'}"


class CamelRequest(Request):
    """A body whose names are camelCase outside and snake_case here."""

    model_config = ConfigDict(alias_generator=to_camel)


class Query(Request):
    """A query string: everything comes as text, so numbers are read from it.

    `for_body`: it is the query of a route with a body, and names fields of that which may stand in either. What is there is put
    into the body, and the handler is given that alone.
    """

    model_config = ConfigDict(strict=False)
    for_body: ClassVar[bool] = False


def _problem(text: str) -> PydanticCustomError:
    # The text goes in as a value: pydantic's templates give braces a meaning.
    return PydanticCustomError("constraint", "{text}", {"text": text})


def _network(value: Any, info: ValidationInfo) -> Any:
    catalogue = cast(Catalogue | None, info.context)
    if isinstance(value, str) and catalogue is not None and catalogue.network(value) is None:
        raise _problem(f"must be one of: {', '.join(catalogue.networks)}")
    return value


def _coin(value: Any, info: ValidationInfo) -> Any:
    catalogue = cast(Catalogue | None, info.context)
    if isinstance(value, str) and catalogue is not None and value not in catalogue.slugs():
        raise _problem(f"must be one of: {', '.join(catalogue.slugs())}")
    return value


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


def _metadata(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    plain = _plain(value)
    if len(json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode()) > MAX_METADATA:
        raise _problem(f"must be at most {MAX_METADATA} bytes of JSON")
    return plain


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


NETWORK_SCHEMA: dict[str, Any] = {"type": "string", "enum": list(NETWORK_ORDER), "description": "The network's slug."}
COIN_SCHEMA: dict[str, Any] = {
    "type": "string",
    "pattern": "^[a-z0-9][a-z0-9._-]{0,31}$",
    "description": "The coin's slug: its symbol in lower case. `GET /v1/coins` lists them.",
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
    BeforeValidator(_metadata),
    Field(description=f"Any JSON object of at most {MAX_METADATA} bytes; answered as it was sent.", examples=[{"order": "A-17"}]),
]


class MoneyRequest(Request):
    """A request about an amount of a coin: the coin must be on the network, and the amount fit its decimals."""

    coin_field: ClassVar[str] = "coin"

    @classmethod
    def cross(cls, sent: Mapping[str, Any], wrong: frozenset[str], catalogue: Catalogue) -> list[FieldProblem]:
        slug, network, amount = sent.get(cls.coin_field), sent.get("network"), sent.get("amount")
        if cls.coin_field in wrong or "network" in wrong or not isinstance(slug, str):
            return []
        try:
            coin = chosen_coin(catalogue, cls.coin_field, slug, network)
        except InvalidParameter as error:
            return list(error.problems)
        if amount is None or "amount" in wrong:
            return []
        try:
            parse_units(amount_text(amount), coin.decimals)
        except NotAnAmount as reason:
            return [FieldProblem("amount", shown("amount", amount), (f"{reason} ({coin.symbol} on {coin_network(coin)})",))]
        return []


def misspelled(
    ctx: Ctx, sent: Mapping[str, Any], wrong: frozenset[str], name: str = "address", words: str = "{reason}"
) -> list[FieldProblem]:
    """The problem of a text that is no address of the network that was sent; `words` with its `{reason}`."""
    text, network = sent.get(name), sent.get("network")
    if wrong & {name, "network"} or not isinstance(text, str) or not isinstance(network, str):
        return []
    try:
        ctx.services.rules.normalize(network_id(ctx.realm, network), text)
    except ValueError as reason:
        return [FieldProblem(name, shown(name, text), (words.format(reason=reason, network=network),))]
    return []


def coin_network(coin: Coin) -> str:
    return network_parts(coin.network)[1]


def chosen_coin(catalogue: Catalogue, field: str, slug: str, network: str | None) -> Coin:
    """The coin on `network`; without one, on its first active network, or its first at all (decisions §3).

    Raises InvalidParameter saying which coins or networks are known.
    """
    if network is not None:
        coin = catalogue.coin(network, slug)
        if coin is None:
            known = ", ".join(c.slug for c in catalogue.coins_of(network))
            raise InvalidParameter.one(field, slug[:_SHOWN], f"must be one of: {known} (on {network})")
        return coin
    coin = catalogue.first_active(slug)
    if coin is None:
        networks = catalogue.coin_networks(slug)
        if not networks:
            raise InvalidParameter.one(field, slug[:_SHOWN], f"must be one of: {', '.join(catalogue.slugs())}")
        return catalogue.coins[networks[0], slug]
    return coin


def known_network(catalogue: Catalogue, slug: str) -> Network:
    """Raises InvalidParameter saying which networks are known."""
    network = catalogue.network(slug)
    if network is None:
        raise InvalidParameter.one("network", slug[:_SHOWN], f"must be one of: {', '.join(catalogue.networks)}")
    return network


def validated(model: type[Any], sent: Mapping[str, Any], catalogue: Catalogue | None) -> tuple[Any, list[FieldProblem]]:
    """`sent` as `model` (a Request), or None and everything that is wrong with it, one entry per field."""
    problems: list[FieldProblem] = []
    result = None
    try:
        result = model.model_validate(sent, context=catalogue)
    except ValidationError as error:
        problems = _collected(error, model)
    problems += model.changes_nothing(sent)
    if catalogue is not None:
        wrong = frozenset(problem.field.split(".")[0] for problem in problems)
        problems += model.cross(sent, wrong, catalogue)
    return result, problems


def _collected(error: ValidationError, model: type[BaseModel]) -> list[FieldProblem]:
    fields: dict[str, tuple[Any, list[str]]] = {}
    for line in error.errors(include_url=False):
        name = ".".join(str(part) for part in line["loc"])[:200] or "request"
        _, constraints = fields.setdefault(name, (None if line["type"] == "missing" else line["input"], []))
        if line["type"] == "extra_forbidden":
            # Nobody knows what it is: it may be a secret under a mistyped name.
            fields[name] = (NOT_SHOWN, constraints)
        constraint = _in_words(line, model)
        if constraint not in constraints:
            constraints.append(constraint)
    found = [FieldProblem(name, shown(name, value), tuple(constraints)) for name, (value, constraints) in fields.items()]
    if len(found) <= MAX_PROBLEMS:
        return found
    return [*found[:MAX_PROBLEMS], FieldProblem("request", None, (f"has {len(found) - MAX_PROBLEMS} more fields that are wrong",))]


_WORDS = {
    "missing": "is required",
    "string_type": "must be a string",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "must be a smaller number",
    "dict_type": "must be an object",
    "list_type": "must be a list",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "constraint": "{text}",
}


def _in_words(line: ErrorDetails, model: type[Any]) -> str:
    kind, values = line["type"], line.get("ctx", {})
    if kind == "extra_forbidden":
        return "is not known here" if len(line["loc"]) > 1 else str(model.unknown(str(line["loc"][0])))
    if kind == "literal_error":
        return "must be one of: " + str(values["expected"]).replace("'", "").replace(" or ", ", ")
    return _WORDS.get(kind, line["msg"]).format(**values) if kind in _WORDS else line["msg"]


_SECRET_WORDS = ("secret", "private", "mnemonic", "seed", "wif", "password")


def shown(name: str, value: Any) -> Any:
    """A sent value as an error may repeat it: secrets not at all, whatever their name is mistyped as, long ones shortened."""
    first = name.partition(".")[0].partition("[")[0]
    if value is not None and (first in _SECRET_FIELDS or any(word in first.lower() for word in _SECRET_WORDS)):
        return NOT_SHOWN
    if isinstance(value, JsonNumber):
        return value if len(value.text) <= _SHOWN else value.text[:_SHOWN] + "…"
    if isinstance(value, str):
        return value if len(value) <= _SHOWN else value[:_SHOWN] + "…"
    if isinstance(value, (dict, list)):
        text = json.dumps(value, default=lambda number: number.text, ensure_ascii=False)
        return value if len(text) <= 2 * _SHOWN else text[: 2 * _SHOWN] + "…"
    return value


class ChangeSignature(Request):
    """A signer's signature under a change that the merchant's signers guard."""

    signer_id: Annotated[str, Field(min_length=1, max_length=64, description="Whose it is.", examples=["alice"])]
    signature: Annotated[
        str, Field(min_length=1, max_length=200, description="Ed25519, 64 bytes in hex or base64.", examples=["00" * 64])
    ]
