"""The base of all records: the strict model, and the common field types."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema


class Record(BaseModel):
    """Names as written here. A field that is not declared is an error: nothing is answered that is not documented.

    A field that may be absent has a default of None in its declaration; one that may be null says so in its type and is required.
    """

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """A default of None means that the field is left out, and not that it is null: the schema does not say it."""
        schema = handler(core_schema)
        for field in handler.resolve_ref_schema(schema).get("properties", {}).values():
            if field.get("default", ...) is None:
                del field["default"]
        return schema


class CamelRecord(Record):
    """Names that are camelCase outside and snake_case here."""

    model_config = ConfigDict(alias_generator=to_camel)


HASH = "0x5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060"
"""A transaction's, for examples."""
Money = Annotated[
    str,
    Field(
        pattern=r"^-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?$",
        description="An amount in coin units: plain decimal, no exponent, no needless zeros.",
        examples=["0.5"],
    ),
]
Time = Annotated[
    str,
    Field(
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$",
        description="ISO 8601, UTC, with milliseconds.",
        examples=["2026-05-01T12:00:00.000Z"],
        json_schema_extra={"format": "date-time"},
    ),
]
Usd = Annotated[float, Field(description="US dollars, rounded to cents.", examples=[0.5])]
Metadata = Annotated[dict[str, Any], Field(description="Whatever the merchant stored with it.", examples=[{"order": "A-17"}])]


class FiatValue(Record):
    """What a payment was worth when it was made. It stays what it was, and no sum counts it."""

    amount: Annotated[
        str,
        Field(
            pattern=r"^(0|[1-9][0-9]*)(\.[0-9]{1,3})?$",
            description="With the digits that the currency has (ISO 4217).",
            examples=["155.00"],
        ),
    ]
    currency: Annotated[str, Field(description="ISO 4217.", examples=["USD"])]
    source: Annotated[str, Field(description="Who said what the coin was worth.", examples=["kraken"])]


class Message(Record):
    """What was done, in words."""

    message: Annotated[
        str, Field(description="For people: its wording may change.", examples=["Coin usdt on ethereum was updated"])
    ]


class Meta(Record):
    """What every answer in an envelope says of itself."""

    timestamp: Time
    request_id: Annotated[
        str, Field(description="The same as the header X-Request-Id.", examples=["3f0c3f3e-8a52-4a0e-9d0c-1f6a4d4b8f5e"])
    ]


class Pagination(Record):
    """Where in the list this page is. Behind a `cursor` nothing is counted: `page`, `total` and `pages` are null there. With
    `total_capped` nobody knows how many pages there are: `pages` is null, and `next_cursor` goes on."""

    page: Annotated[int | None, Field(description="From 1.", examples=[1])]
    limit: Annotated[int, Field(description="Entries of a page.", examples=[20])]
    total: Annotated[int | None, Field(description="Exact up to 10,000.", examples=[57])]
    total_capped: Annotated[bool, Field(description="`total` is what was counted; there may be more.")] = None  # type: ignore[assignment]
    pages: Annotated[int | None, Field(description="How many pages `total` makes.", examples=[3])]
    has_next: Annotated[bool, Field(description="There is something behind this page.", examples=[True])]
    has_prev: Annotated[bool, Field(description="There is something before this page.", examples=[False])]
    next_cursor: Annotated[
        str | None,
        Field(description="Send it as `cursor` to go on: any length, at the same cost per page.", examples=["eyJhIjoiMSJ9"]),
    ]
    covers_from: Annotated[
        str,
        Field(
            description="Where payments are archived: the day (UTC) from which on this list has everything. What was settled"
            " before is read by its id, externalId, address or hash. It is in no list and no `total`; sums and balances have it.",
            examples=["2025-10-19"],
        ),
    ] = None  # type: ignore[assignment]


class ListMeta(Meta):
    """What an answer that is a page of a list says of itself."""

    pagination: Pagination
