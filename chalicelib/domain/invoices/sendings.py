"""How many signed transactions of payers are handed to a network: a stranger has no node asked without end."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

MOST_SENT = 10
"""Transactions in an hour, for each caller on each invoice."""
HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class PayerSendings:
    """The count of one caller on one invoice in one hour since 1970. `ttl`, in seconds since 1970, removes it when the hour is long
    over. Counted up by itself, never saved."""

    invoice: str
    caller: str
    hour: str
    sent: int = 0
    ttl: int = 0


@dataclass(frozen=True, slots=True)
class PayerSent:
    """A payer's transaction that was handed to the network, or was about to be, so often: `sent`. `ttl` as above."""

    invoice: str
    txid: str
    sent: int = 0
    ttl: int = 0


def caller_of(invoice: str, source: str) -> str:
    """The name that a caller is counted under: nobody reads addresses in it, and on two invoices it is two names."""
    return hashlib.sha256(f"{invoice} {source}".encode()).hexdigest()[:32]
