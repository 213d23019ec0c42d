"""Request models: the base of all, and those that several routes share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema

from chalicelib.api.coins_by_name import amount_problem, chosen_coin
from chalicelib.api.problems import shown
from chalicelib.domain.catalogue.catalogue import Catalogue
from chalicelib.domain.errors import FieldProblem, InvalidParameter

if TYPE_CHECKING:
    from chalicelib.api.context import Ctx


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
    def problems_of(cls, ctx: Ctx, sent: Mapping[str, Any], wrong: frozenset[str]) -> list[FieldProblem]:
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

    `for_body`: it is the query of a route with a body, and has slugs of that which may stand in either. What is there is put
    into the body, and the handler is given that alone.
    """

    model_config = ConfigDict(strict=False)
    for_body: ClassVar[bool] = False


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
        words = amount_problem(coin, amount)
        return [] if words is None else [FieldProblem("amount", shown("amount", amount), (words,))]


class ChangeSignature(Request):
    """A signer's signature under a change that the merchant's signers guard."""

    signer_id: Annotated[str, Field(min_length=1, max_length=64, description="Whose it is.", examples=["alice"])]
    signature: Annotated[
        str, Field(min_length=1, max_length=200, description="Ed25519, 64 bytes in hex or base64.", examples=["00" * 64])
    ]
