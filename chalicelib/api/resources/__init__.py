"""One module per resource: its request models, and the use case behind each route.

They are imported when the first request for them comes: a cold function pays for the one resource that it was started for.
"""

from __future__ import annotations

from importlib import import_module

PARTS: dict[str, tuple[str, ...]] = {
    "": ("portal",),
    "activity": ("activity",),
    "addresses": ("addresses", "grey_list", "transactions", "wallets"),
    "api-keys": ("api_keys",),
    "auth": ("own_key",),
    "balances": ("balances",),
    "claim": ("refunds.claims",),
    "coins": ("coins",),
    "collections": ("collections",),
    "console": ("portal",),
    "events": ("events",),
    "health": ("health",),
    "invoices": ("invoices.invoice_settings", "invoices.invoices", "invoices.invoice_by_path", "refunds.refunds"),
    "link": ("payment_links.page",),
    "merchant": ("merchant",),
    "merchants": ("merchants",),
    "moves": ("moves",),
    "networks": ("networks", "rescans", "scan_progress", "stakes"),
    "openapi": ("openapi",),
    "pay": ("pay.checkout", "pay.transactions"),
    "payment-links": ("payment_links.links",),
    "payout-links": ("refunds.payout_links",),
    "portal": ("portal",),
    "reconciliation": ("reconciliation",),
    "refunds": ("refunds.refunds",),
    "sandbox": ("sandbox",),
    "stray-payments": ("stray_payments",),
    "transactions": ("grey_list", "transactions"),
    "webhooks": ("deliveries", "redeliveries", "webhooks"),
    "whitelist": ("whitelist",),
    "withdrawals": ("withdrawals.kill_switch", "withdrawals.withdrawal_requests", "withdrawals.withdrawals"),
    "withdraws": ("withdrawals.withdraws",),
}
"""The first part of a path, and the modules that have its endpoints."""


def load(part: str | None = None) -> None:
    """Import the modules of a first part of paths, or all of them, which puts their endpoints in the route table."""
    parts = PARTS if part is None else (part,)
    for name in sorted({module for known in parts for module in PARTS.get(known, ())}):
        import_module(f"{__name__}.{name}")
