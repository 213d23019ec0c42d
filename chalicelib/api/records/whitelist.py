"""Trusted addresses."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from chalicelib.api.records.base import Money, Record, Time


class WhitelistAddress(Record):
    """An address that the merchant trusts."""

    id: Annotated[str, Field(description="Names the entry.", examples=["wla_3k9x7m2p5q8r1t4v6w0y3z5a7b"])]
    address: Annotated[str, Field(description="In its public spelling.", examples=["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"])]
    network: Annotated[str, Field(description="The network's slug.", examples=["ethereum"])]
    label: Annotated[str, Field(description="What the merchant calls it.", examples=["Payroll"])]
    daily_limit: Annotated[Money | None, Field(description="Of each coin, in 24 hours; null: no limit.", examples=["1000"])]
    monthly_limit: Annotated[Money | None, Field(description="Of each coin, in 30 days; null: no limit.", examples=["20000"])]
    created_at: Time
    updated_at: Time
