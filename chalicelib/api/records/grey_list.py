"""Answers about the grey list."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from chalicelib.api.records.addresses import Slug, Text
from chalicelib.api.records.base import CamelRecord, Time


class Entry(CamelRecord):
    """An address that is on the grey list."""

    address: Text
    network: Slug
    reason: Annotated[str, Field(description="Why it is there.", examples=["reported as stolen"])] = None  # type: ignore[assignment]
    created_at: Time


class Removed(CamelRecord):
    """An address that is not on the grey list any more."""

    address: Text
    network: Slug
    message: Annotated[str, Field(description="For people: its wording may change.", examples=["removed from the grey list"])]
