"""Secrets of webhook endpoints, sealed so that a reader of the table learns nothing. `delivery/secrets.py` fits these."""

from __future__ import annotations

from typing import Protocol

from chalicelib.domain.ids import TenantId


class NotOurs(ValueError):
    """The stored text was not sealed for this endpoint, or was altered. Trying again is no use."""


class Sealer(Protocol):
    def seal(self, tenant: TenantId, endpoint_id: str, secret: str) -> str:
        """`secret` (256 characters at most) as text that opens for this endpoint alone. Raises Unavailable."""
        ...


class Opener(Protocol):
    def open(self, tenant: TenantId, endpoint_id: str, sealed: str) -> str:
        """The secret that was sealed for this endpoint. Raises NotOurs, Unavailable."""
        ...
