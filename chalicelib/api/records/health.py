"""Answers of `health` and `auth/test`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from chalicelib.api.records.base import Record, Time


class Health(Record):
    """The service answers, and so does its store."""

    status: Literal["ok"] = Field(description="It is up.")
    timestamp: Annotated[Time, Field(description="The service's clock.")]


class Unwell(Record):
    """The store does not answer."""

    status: Literal["error"] = Field(description="The service answers, and can do nothing.")


class Limits(Record):
    """The window with the least left, as the headers show it."""

    remaining: int = Field(description="Requests that are left until `reset_at`.", examples=[99])
    reset_at: Annotated[Time, Field(description="When the window starts anew.", examples=["2026-05-01T12:01:00.000Z"])]


class AuthTest(Record):
    """The key that was sent."""

    authenticated: Literal[True] = Field(description="The key is valid.")
    key_id: str = Field(description="Names the key; it is no secret.", examples=["key_01jd2w3x4y5z6a7b8c9d0e1f2g"])
    name: str = Field(description="What the merchant calls it.", examples=["Webshop"])
    type: Literal["production", "test"] = Field(description="`test`: of the sandbox.", examples=["test"])
    level: Literal["client", "admin"] = Field(description="Only `admin` keys may do what is the operator's.", examples=["client"])
    permissions: list[str] = Field(
        description="What it may do: `<resource>:<action>`.", examples=[["addresses:read", "addresses:create"]]
    )
    rate_limits: Limits
