"""What `health` and `auth/test` answer."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from chalicelib.api.records.base import Record, Time


class Health(Record):
    status: Literal["ok"]
    timestamp: Time


class Limits(Record):
    """The window with the least left, as the headers show it."""

    remaining: int = Field(description="Requests that are left until `reset_at`.", examples=[99])
    reset_at: Time


class AuthTest(Record):
    """The key that was sent."""

    authenticated: Literal[True]
    key_id: str = Field(examples=["key_01jd2w3x4y5z6a7b8c9d0e1f2g"])
    name: str = Field(examples=["Webshop"])
    type: Literal["production", "test"]
    level: Literal["client", "admin"]
    permissions: list[str] = Field(examples=[["addresses:read", "addresses:create"]])
    rate_limits: Limits
