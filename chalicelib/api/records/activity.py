"""The record of who changed what."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from chalicelib.api.records.base import Record, Time


class Activity(Record):
    """One request that changed something."""

    id: str = Field(description="Names the record.", examples=["act_01jd2w3x4y5z6a7b8c9d0e1f2g"])
    created_at: Time = Field(description="When the request came, in real time, also in the sandbox.")
    key_id: str = Field(description="The key that asked.", examples=["key_01jd2w3x4y5z6a7b8c9d0e1f2g"])
    key_name: str = Field(description="The key's name at that time.", examples=["Webshop"])
    key_prefix: str = Field(description="How the key began.", examples=["sk_test_4Xq9"])
    type: Literal["production", "test"] = Field(description="The environment of the key.", examples=["test"])
    method: Literal["POST", "PUT", "DELETE"] = Field(description="The request's method.", examples=["DELETE"])
    route: str = Field(
        description="The request's path, without its version and with names for its parts.", examples=["/invoices/{id}"]
    )
    object_id: str | None = Field(
        default=None,
        description="What the request was about: the object that its path or body names, else the one that it made.",
        examples=["inv_01jc9w3zj8q2m4k6n8r0t2v4x6"],
    )
    made_id: str | None = Field(
        default=None,
        description="What it made of that or for that: a refund of an invoice, the successor of a key.",
        examples=["ref_01jc9w3zj8q2m4k6n8r0t2v4x6"],
    )
    request_id: str = Field(description="X-Request-Id of the answer.", examples=["c6af9ac6-7b61-11e6-9a41-93e8deadbeef"])
    outcome: Literal["done", "noted"] = Field(
        description="`done`: stored in one transaction with the change. `noted`: stored right after a change to a simulated chain.",
        examples=["done"],
    )
