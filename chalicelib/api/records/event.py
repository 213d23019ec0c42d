"""An event, as in webhooks and in lists."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from chalicelib.api.records.base import Record, Time


class Event(Record):
    """What happened, once. Its deliveries to endpoints are others' records."""

    id: str = Field(
        description="The same event has the same id, however often it is sent.", examples=["evt_01jd2w3x4y5z6a7b8c9d0e1f2g"]
    )
    event: str = Field(description="The event's name.", examples=["invoice.completed"])
    data: dict[str, Any] = Field(description="The public record as it was at that moment.", examples=[{"id": "inv_01jd2w3x4y"}])
    timestamp: Annotated[Time, Field(description="When it happened.")]
    sequence: int = Field(ge=1, description="Counts the events of one object.", examples=[3])
