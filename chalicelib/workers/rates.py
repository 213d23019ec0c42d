"""Exchange rates of the live realm, once a minute. Asks nobody where no provider is set, as in the local stack."""

from __future__ import annotations

from chalicelib.wiring import services


def run() -> None:
    """Refresh the rates. Raises Unavailable when no provider answers; the stored rates then grow stale by themselves."""
    wired = services()
    if wired.rate_providers:
        wired.rate_keeper.refresh(wired.store.catalogue("live").slugs())
