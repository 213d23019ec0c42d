"""Links into the networks' public block explorers."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from chalicelib.domain.catalogue.catalogue import Network

_TXID = re.compile(r"(0x)?[0-9a-fA-F]{64}", re.ASCII)


def transaction_url(network: Network, txid: str) -> str | None:
    """The explorer's page of a transaction; None on simulated networks, without an explorer, and for a text that is no hash.

    Checked as it is read: an operator sets the explorer's address, and a record of another time may hold anything.
    """
    base = network.explorer_url or ""
    if network.simulated or not _TXID.fullmatch(txid):
        return None
    try:
        parts = urlsplit(base)
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        return None
    # Tronscan shows its pages by fragment. https://github.com/tronscan/tronscan-frontend
    inside = "/#/transaction/" if network.family == "tron" else "/tx/"
    return f"{base.rstrip('/')}{inside}{txid}"
