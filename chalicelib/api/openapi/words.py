"""Prose of the document: the conventions of the interface, and its groups of endpoints."""

from __future__ import annotations

TITLE = "Gateway"
VERSION = "0.1.0"
"""The project's; a test compares it with pyproject.toml."""

DESCRIPTION = """\
Makes deposit addresses and invoices, sees payments on eight networks, credits them after their confirmations, pays withdrawals,
and tells you by signed webhooks.

**Paths.** Every endpoint answers with and without the version: `/v1/invoices` and `/invoices` are the same. This document lists
the first form.

**Keys.** Send the key in the header `X-Api-Key`, or as `Authorization: Bearer`. A key is `sk_live_` or `sk_test_` and 16
characters. Test keys live in a sandbox: the same interface, simulated networks, nothing real moves; the endpoints under
*Sandbox* make payments, blocks and reorganisations there. What a key may do are its permissions (`<resource>:<action>`) and its
level; each endpoint says which it needs.

**Money.** Amounts are decimal strings in coin units, without exponent (`"0.5"`). In requests a JSON number will do as well and is
exact to the last digit. USD values are JSON numbers, rounded to cents. Dates are ISO 8601 in UTC with milliseconds.

**Errors.** Only 400, 401, 403, 404, 429 and 500 occur. Three body shapes are published: a flat one (coins, invoices), an object
(addresses, networks, `/withdraws`, refunds, links, public pages) and an envelope (everything else); each endpoint shows its own.
`INVALID_PARAMETER` names all wrong fields at once; unknown fields are wrong. `VALIDATION_ERROR` means: well-formed, but a rule says
no. What belongs to another merchant answers exactly as what never was.

**Lists.** `page` and `limit` (20, at most 100), `sort`, `order`, and filters written `field[op]=value` with the operators `eq`,
`ne`, `gt`, `gte`, `lt`, `lte`, `in` (comma list), `like`. `page * limit` reaches 10,000; a `cursor` walks any length.

**Rate limits.** Three windows (minute, hour, day) by kind of key: test 100, 1,000, 10,000; production 1,000, 10,000, 100,000;
enterprise 5,000, 50,000, 500,000. Beside them, per minute: webhook endpoints 100, admin endpoints 500; for test keys, per hour:
address creation 100, withdrawals 50. The `X-RateLimit` headers show the window with the least left; a 429 has `Retry-After`. A list
request that has to look through more than 1,000 entries (a filter that is not looked up, a sort) counts as 7 requests, from 4,001
entries on as 31. A merchant can have as many addresses made in a day (UTC) as the operator lets, by default 500,000, those of
invoices too; more are `VALIDATION_ERROR`.
Requests without a valid key, public pages included, count by where they come from (an IPv4 address, the first 64 bits of an IPv6
address): after 600 in a minute they are answered 429. A valid key is not counted where one is needed.

**Idempotency.** Send an `Idempotency-Key` with every POST that creates. The same key and body within 24 hours answers the stored
body with `Idempotency-Replayed: true` and does nothing more, also when both arrive at once. The same key with another body is
`VALIDATION_ERROR`.

**Webhooks.** Each delivery carries `x-gateway-signature: sha256=<hex>`, the HMAC-SHA256 of the body's exact bytes with the
endpoint's secret, and the headers of Standard Webhooks (`webhook-id`, `webhook-timestamp`, `webhook-signature`). Any 2xx within ten
seconds is success; anything else is tried again, nine times in all. The payloads are under *Webhooks* at the end.
"""

_TAGS: dict[str, tuple[str, str]] = {
    "health": ("Service", "Whether the service answers, and this document."),
    "openapi": ("Service", ""),
    "auth": ("Keys", "What a key is and may do; making, rotating and revoking keys; which key changed what."),
    "api-keys": ("Keys", ""),
    "merchants": ("Operator", "Merchants, and what of the service's own treasury is under way."),
    "moves": ("Operator", ""),
    "activity": ("Keys", ""),
    "merchant": ("Merchant", "The caller's own merchant and its settings."),
    "addresses": ("Addresses", "Deposit addresses, service wallets and the grey list."),
    "coins": ("Coins", "Coins and tokens, with their thresholds and limits."),
    "networks": ("Networks", "Networks and how far each is scanned."),
    "invoices": ("Invoices", "Requests for payment, each with an address of its own."),
    "pay": ("Invoices", ""),
    "payment-links": ("Payment links", "Public pages, each of which opens an invoice for every visitor who wants to pay."),
    "link": ("Payment links", ""),
    "refunds": ("Refunds", "Money of an invoice that goes back; payout links; the page where either is claimed."),
    "payout-links": ("Refunds", ""),
    "claim": ("Refunds", ""),
    "withdrawals": ("Withdrawals", "Paying out, in both published forms; approvals and the whitelist."),
    "withdraws": ("Withdrawals", ""),
    "whitelist": ("Withdrawals", ""),
    "balances": ("Balances", "What the merchant has of each coin."),
    "transactions": ("Transactions", "What happened on the chains."),
    "events": ("Events", "What the merchant was told."),
    "webhooks": ("Webhooks", "Endpoints of the merchant that are told of events."),
    "collections": ("Collections", "What is on deposit addresses and goes to the service's own wallets; for admin keys."),
    "reconciliation": ("Reconciliation", "The ledger against the chains; for admin keys."),
    "stray-payments": ("Stray payments", "Payments on the wrong network; for admin keys."),
    "sandbox": ("Sandbox", "Moves the simulated networks; for test keys."),
}


def tag_of(path: str) -> str:
    """The group of an endpoint, by the first part of its path."""
    first = path.strip("/").split("/")[0]
    return _TAGS[first][0] if first in _TAGS else first.replace("-", " ").capitalize()


def tags(used: set[str]) -> list[dict[str, str]]:
    """The groups that are used, in the order of the table."""
    described = {name: words for name, words in reversed(_TAGS.values()) if words}
    order = list(dict.fromkeys(name for name, _ in _TAGS.values()))
    known = [{"name": name, "description": described[name]} for name in order if name in used]
    return known + [{"name": name} for name in sorted(used - set(order))]
