"""The record of an API key, as published, and answers about its changes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from chalicelib.api.records.base import Record, Time


class Restrictions(Record):
    """What the key is limited to."""

    ip_whitelist: list[str] = Field(
        description="Addresses and CIDR ranges that the key may be used from. Empty: any.", examples=[["203.0.113.0/24"]]
    )
    rate_limit: int = Field(description="Requests per minute that hold for this key.", examples=[1000])
    daily_limit: int = Field(description="Requests per day that hold for this key.", examples=[100000])


class ApiKey(Record):
    """A key, without the key itself."""

    key_id: str = Field(description="Names the key; it is no secret.", examples=["key_01jd2w3x4y5z6a7b8c9d0e1f2g"])
    name: str = Field(description="What the merchant calls it.", examples=["Webshop"])
    key_prefix: str = Field(description="How the key begins.", examples=["sk_test_4Xq9"])
    type: Literal["production", "test"] = Field(description="`test`: of the sandbox.", examples=["test"])
    level: Literal["client", "admin"] = Field(description="Only `admin` keys may do what is the operator's.", examples=["client"])
    status: Literal["active", "expired", "revoked", "suspended"] = Field(
        description="Only an active key is let in. `suspended`: the operator has suspended its merchant.", examples=["active"]
    )
    permissions: list[str] = Field(
        description="What it may do: `<resource>:<action>`.", examples=[["addresses:read", "addresses:create"]]
    )
    restrictions: Restrictions
    created_at: Time
    created_by: str | None = Field(
        default=None,
        description="The key that made it, or rotated the one before it; not there where the operator did.",
        examples=["key_01jd2w3x4y5z6a7b8c9d0e1f2e"],
    )
    expires_at: Annotated[Time | None, Field(description="null: never.", examples=["2027-01-31T12:00:00.000Z"])]
    revoked_at: Time | None = Field(default=None, description="When it was revoked, or ends because it was replaced.")
    replaced_by: str | None = Field(
        default=None, description="The key that a rotation put in its place.", examples=["key_01jd2w3x4y5z6a7b8c9d0e1f2h"]
    )
    last_used_at: Time | None = Field(default=None, description="To the minute; in the list only.")


class NewApiKey(ApiKey):
    """A key with the key itself, shown this once."""

    key: str = Field(
        description="Send it in the header X-Api-Key.",
        pattern=r"^sk_(live|test)_[A-Za-z0-9]{16}$",
        examples=["sk_test_4Xq9aB3dE5fG7hJ1"],
    )
