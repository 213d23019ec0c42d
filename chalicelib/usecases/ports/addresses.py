"""The spelling of addresses. `chains/addresses.py` fits it."""

from __future__ import annotations

from typing import Protocol


class AddressRules(Protocol):
    """The spelling of a network's addresses. Pure: no node is asked. A slug stands for the main chain, a NetworkId for its own."""

    def normalize(self, network: str, text: str) -> str:
        """The public spelling (EIP-55, bech32 lower case). Raises ValueError with the reason."""
        ...

    def storage_form(self, network: str, address: str) -> str:
        """One spelling for comparing and for keys."""
        ...
