"""Answers about merchants, for the operator."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from chalicelib.api.records.base import Record, Time

Standing = Annotated[
    Literal["active", "suspending", "suspended", "resuming"],
    Field(
        description="`suspended`: its API keys are refused, and its withdrawals wait. `suspending` and `resuming`: the request was "
        "cut short before every key said so; send it again.",
        examples=["active"],
    ),
]


class ListedMerchant(Record):
    """A merchant, as the list shows it."""

    id: Annotated[str, Field(description="Names the merchant.", examples=["mch_01jd2w3x4y5z6a7b8c9d0e1f2g"])]
    name: Annotated[str, Field(description="What the operator calls it.", examples=["Acme Shoes"])]
    status: Annotated[
        Literal["active", "suspended"],
        Field(description="In the environment of the key that asks.", examples=["active"]),
    ]
    created_at: Time


class Environment(Record):
    """A merchant in one environment."""

    type: Annotated[Literal["production", "test"], Field(description="`test`: its sandbox.", examples=["production"])]
    status: Standing
    since: Annotated[Time | None, Field(description="Since when it is so; null where it never was suspended.")]
    reason: Annotated[str | None, Field(description="Why it is suspended.", examples=["documents are missing"])]
    changed_by: Annotated[
        str | None, Field(description="The key that suspended or resumed it.", examples=["key_01kab7n3q2w8z5r6t4y1v9c0x3"])
    ]
    has_keys: Annotated[bool, Field(description="Whether it has, or had, an API key here: then its own keys make others.")]


class MerchantDetails(Record):
    """A merchant with its environments: a production key is shown both, a test key its sandbox."""

    id: Annotated[str, Field(description="Names the merchant.", examples=["mch_01jd2w3x4y5z6a7b8c9d0e1f2g"])]
    name: Annotated[str, Field(description="What the operator calls it.", examples=["Acme Shoes"])]
    created_at: Time
    environments: Annotated[list[Environment], Field(description="One for each environment that the asking key reaches.")]
