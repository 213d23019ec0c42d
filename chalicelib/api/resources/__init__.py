"""One module per resource: what its requests look like, and the use case that each is handed to."""

from __future__ import annotations

from importlib import import_module

_MODULES = (
    "addresses", "api_keys", "balances", "checkout", "coins", "event", "events", "grey_list", "health", "invoices", "merchant",
    "networks", "openapi", "sandbox", "transactions", "wallets", "webhooks", "whitelist", "withdrawal_requests", "withdrawals",
    "withdraws",
)  # fmt: skip


def load() -> None:
    """Import every module here, which puts its endpoints in the route table."""
    for name in _MODULES:
        import_module(f"{__name__}.{name}")
