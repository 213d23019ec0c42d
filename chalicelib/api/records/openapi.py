"""Answers of the specification's own endpoint."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from chalicelib.api.records.base import Record


class Specification(Record):
    """An OpenAPI 3.1 document: https://spec.openapis.org/oas/v3.1.0"""

    openapi: str = Field(description="The version of OpenAPI.", pattern=r"^3\.1\.[0-9]+$", examples=["3.1.0"])
    info: dict[str, Any] = Field(description="Title, version, words.", examples=[{}])
    servers: list[dict[str, Any]] = Field(description="Where it is served.", examples=[[]])
    tags: list[dict[str, Any]] = Field(description="Groups of endpoints.", examples=[[]])
    paths: dict[str, Any] = Field(description="The endpoints.", examples=[{}])
    webhooks: dict[str, Any] = Field(description="What endpoints of merchants are sent.", examples=[{}])
    components: dict[str, Any] = Field(description="Schemas, errors, headers.", examples=[{}])
