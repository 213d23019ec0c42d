"""Public data of EVM networks, for a payer's wallet that does not know the network yet (EIP-3085)."""

from __future__ import annotations

from typing import Any

from chalicelib.domain.catalogue.catalogue import Network, native_name, published_chain_id

_PUBLIC: dict[str, tuple[str, str | None]] = {
    "bsc": ("https://bsc-dataseed.bnbchain.org", None),
    "polygon": ("https://polygon-rpc.com", "POL"),
    "arbitrum": ("https://arb1.arbitrum.io/rpc", None),
    "fantom": ("https://rpcapi.fantom.network", None),
}
"""A node that the network's own documentation names for everybody, and the symbol that wallets know its coin by, where it is
another than ours. Every wallet knows Ethereum itself. Never a node of this deployment: its URL may hold a provider's secret.
docs.bnbchain.org, "JSON-RPC endpoint"; docs.polygon.technology, "RPC endpoints"; docs.arbitrum.io, "Chain info";
docs.fantom.foundation, "API endpoints"."""


def wallet_chain(network: Network) -> dict[str, Any] | None:
    """The parameter of wallet_addEthereumChain; None where the network is no main network with public data."""
    known = _PUBLIC.get(network.slug)
    if known is None or network.simulated or network.chain_id is None or network.chain_id != published_chain_id(network.slug):
        return None
    node, symbol = known
    explorer = network.explorer_url or ""
    return {
        "chainId": hex(network.chain_id),
        "chainName": network.name,
        "nativeCurrency": {"name": native_name(network), "symbol": symbol or network.symbol, "decimals": network.decimals},
        "rpcUrls": [node],
    } | ({"blockExplorerUrls": [explorer]} if explorer.startswith("https://") else {})
