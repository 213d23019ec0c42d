"""The record of an API key, as published, and what became of it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from chalicelib.api.records.base import Record, Time


class Restrictions(Record):
    ip_whitelist: list[str] = Field(
        description="Addresses and CIDR ranges that the key may be used from. Empty: any.", examples=[["203.0.113.0/24"]]
    )
    rate_limit: int = Field(description="Requests per minute that hold for this key.", examples=[1000])
    daily_limit: int = Field(description="Requests per day that hold for this key.", examples=[100000])


class ApiKey(Record):
    """A key, without the key itself."""

    key_id: str = Field(examples=["key_01jd2w3x4y5z6a7b8c9d0e1f2g"])
    name: str = Field(examples=["Webshop"])
    key_prefix: str = Field(description="How the key begins.", examples=["sk_test_4Xq9"])
    type: Literal["production", "test"] = Field(examples=["test"])
    level: Literal["client", "admin"] = Field(examples=["client"])
    status: Literal["active", "expired", "revoked"] = Field(examples=["active"])
    permissions: list[str] = Field(examples=[["addresses:read", "addresses:create"]])
    restrictions: Restrictions
    created_at: Time
    created_by: str | None = Field(
        default=None,
        description="The key that made it, or rotated the one before it; not there where the operator did.",
        examples=["key_01jd2w3x4y5z6a7b8c9d0e1f2e"],
    )
    expires_at: Annotated[Time | None, Field(description="null: never.")]
    revoked_at: Time | None = None
    replaced_by: str | None = Field(
        default=None, description="The key that a rotation put in its place.", examples=["key_01jd2w3x4y5z6a7b8c9d0e1f2h"]
    )
    last_used_at: Time | None = Field(default=None, description="To the minute; in the list only.")


class NewApiKey(ApiKey):
    """A key with the key itself, shown this once."""

    key: str = Field(pattern=r"^sk_(live|test)_[A-Za-z0-9]{16}$", examples=["sk_test_4Xq9aB3dE5fG7hJ1"])
