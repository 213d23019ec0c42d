"""What every record is made of: the strict base, and the field types that appear everywhere."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class Record(BaseModel):
    """Names as written here. A field that is not declared is an error: nothing is answered that is not documented.

    A field that may be absent has a default of None in its declaration; one that may be null says so in its type and is required.
    """

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)


class CamelRecord(Record):
    """Names that are camelCase outside and snake_case here."""

    model_config = ConfigDict(alias_generator=to_camel)


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
Usd = Annotated[float, Field(description="US dollars, rounded to cents.", examples=[12.34])]
Metadata = Annotated[dict[str, Any], Field(description="Whatever the merchant stored with it.", examples=[{"order": "A-17"}])]


class Message(Record):
    """What was done, in words."""

    message: str
