"""What the specification's own endpoint answers."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from chalicelib.api.records.base import Record


class Specification(Record):
    """An OpenAPI 3.1 document: https://spec.openapis.org/oas/v3.1.0"""

    openapi: str = Field(pattern=r"^3\.1\.[0-9]+$", examples=["3.1.0"])
    info: dict[str, Any]
    servers: list[dict[str, Any]]
    tags: list[dict[str, Any]]
    paths: dict[str, Any]
    webhooks: dict[str, Any]
    components: dict[str, Any]
