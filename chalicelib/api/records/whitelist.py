"""Trusted addresses."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from chalicelib.api.records.base import Money, Record, Time


class WhitelistAddress(Record):
    """An address that the merchant trusts."""

    id: Annotated[str, Field(examples=["wla_3k9x7m2p5q8r1t4v6w0y3z5a7b"])]
    address: Annotated[str, Field(description="In its public spelling.", examples=["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"])]
    network: Annotated[str, Field(examples=["ethereum"])]
    label: Annotated[str, Field(examples=["Payroll"])]
    daily_limit: Annotated[Money | None, Field(description="Of each coin, in 24 hours; null: no limit.")]
    monthly_limit: Annotated[Money | None, Field(description="Of each coin, in 30 days; null: no limit.")]
    created_at: Time
    updated_at: Time
