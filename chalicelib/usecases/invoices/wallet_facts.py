"""What a wallet in the payer's browser has to know of the payment that a checkout page asks for."""

from __future__ import annotations

from typing import Any

from chalicelib.domain.catalogue.explorers import transaction_url
from chalicelib.domain.catalogue.public_chains import wallet_chain
from chalicelib.usecases.invoices.checkout import Checkout

_SOME_ID = "0" * 64
_TRON_MAIN = "0x2b6653dc"
"""The last four bytes of Tron's first block, by which its wallets name the main chain (TIP-474)."""


def wallet_facts(found: Checkout, on_main: bool) -> dict[str, Any] | None:
    """The facts for the page's script: family and coin, the network's public data, where transactions are looked at. None on
    networks whose wallets are opened by the payment URI alone, and on a simulated Tron, whose transactions are anybody's.

    `on_main`: a live Tron is on its main chain here, so that a wallet on another one is told.
    """
    network = found.network
    if network.family == "utxo" or (network.family == "tron" and network.simulated):
        return None
    explorer = transaction_url(network, _SOME_ID)
    return {
        "family": network.family,
        "decimals": found.coin.decimals,
        "native": network.symbol,
        "simulated": network.simulated,
        "chain": wallet_chain(network) if network.family == "evm" else None,
        "tronChain": _TRON_MAIN if network.family == "tron" and on_main else None,
        "explorer": None if explorer is None else explorer.removesuffix(_SOME_ID),
    }
