"""An event, as webhooks are told it and as lists show it."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from chalicelib.api.records.base import Record, Time


class Event(Record):
    id: str = Field(examples=["evt_01jd2w3x4y5z6a7b8c9d0e1f2g"])
    event: str = Field(examples=["invoice.completed"])
    data: dict[str, Any] = Field(description="The public record as it was at that moment.", examples=[{"id": "inv_01jd2w3x4y"}])
    timestamp: Time
    sequence: int = Field(ge=1, description="Counts the events of one object.", examples=[3])
