"""A key that is revoked while its own request is under way."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from tests.support.edge import Edge
from tests.support.stack import Response

Way = Literal["make", "rotate", "change"]
WAYS: tuple[Way, ...] = ("make", "rotate", "change")
MOMENTS = ("after it was let in", "while it commits")


def revoke_meanwhile(edge: Edge, monkeypatch: pytest.MonkeyPatch, moment: str, tenant: str, key_id: str) -> None:
    """Have the key revoked at that moment (one of `MOMENTS`) of the next request, once."""
    services = edge.services
    is_let_in = moment == MOMENTS[0]
    kind, name = (type(services.gate), "admit") if is_let_in else (type(services.store), "commit")
    real, revoked = getattr(kind, name), []

    def race(self: Any, *args: Any, **kwargs: Any) -> Any:
        answer = real(self, *args, **kwargs) if is_let_in else None
        if not revoked:
            revoked.append(None)
            services.api_keys.revoke(tenant, key_id)
        return answer if is_let_in else real(self, *args, **kwargs)

    monkeypatch.setattr(kind, name, race)


def asked(edge: Edge, way: Way, key: str, target: str, **terms: Any) -> Response:
    """The answer to a request about keys: another one with all rights and these `terms`, or a wider or newer `target`."""
    if way == "change":
        return edge.call("PUT", f"/api-keys/{target}", key=key, json={"restrictions": {"rate_limit": None}})
    if way == "rotate":
        return edge.call("POST", f"/api-keys/{target}/rotate", key=key, json={"overlap": 60})
    return edge.call("POST", "/api-keys", key=key, json={"name": "n", "permissions": ["full"], **terms})
