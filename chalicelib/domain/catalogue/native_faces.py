"""Token contracts that mirror a network's native coin: addresses that look like EIP-20 tokens, with the native coin's balances.

Such a contract, registered as a token, would make one payment two: the native transfer, and the Transfer log beside it. So none
may be registered: not the known ones, and none whose `balanceOf` follows the native balance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_ETHER_LOGS = "0xfffffffffffffffffffffffffffffffffffffffe"
"""EIP-7708: every transfer of ether logs a Transfer under this address. Chains that follow Ethereum follow it there, too."""

_KNOWN: Mapping[str, Mapping[str, str]] = {
    "ethereum": {_ETHER_LOGS: "EIP-7708"},
    "bsc": {_ETHER_LOGS: "EIP-7708"},
    # The genesis contract MRC20 (github.com/0xPolygon/pos-contracts, contracts/child/MRC20.sol): MATIC, now POL, on Polygon.
    "polygon": {"0x0000000000000000000000000000000000001010": "Polygon's MRC20", _ETHER_LOGS: "EIP-7708"},
    "arbitrum": {_ETHER_LOGS: "EIP-7708"},
    "fantom": {_ETHER_LOGS: "EIP-7708"},
}
"""By network, in storage form, with where it is said. The system contracts of bsc (0x…1000 to 0x…3000), Arbitrum's precompiles
(0x64 to 0xff) and Fantom's (0xfc00face…, 0xd100ec00…) have no face of EIP-20."""

ENOUGH = 2
"""So many addresses have to say the same."""


def known_face(slug: str, contract: str) -> str | None:
    """The source that says `contract` (storage form) is this network's native coin; None for other contracts."""
    return _KNOWN.get(slug, {}).get(contract)


def same_amount(native: int, token: int, native_decimals: int, token_decimals: int) -> bool:
    """Whether units of the native coin and of a token are one amount: unit for unit, or rounded to the token's decimals."""
    return token in (native, native * 10**token_decimals // 10**native_decimals)


def follows_native(told: Sequence[tuple[int, int]], native_decimals: int, token_decimals: int) -> bool | None:
    """Whether a token's balances equal the native ones, by those of several addresses, (native, token), at one block; None where
    that can not be told.

    Nothing of either says nothing: 0 is 0. One address may hold the same of both by chance, and many may hold the same gift of
    both; so ENOUGH different amounts have to be alike, and most of all. A token of its own differs everywhere but by chance.
    """
    telling = [(native, token) for native, token in told if native * 10**token_decimals >= 10**native_decimals]
    alike = [native for native, token in telling if same_amount(native, token, native_decimals, token_decimals)]
    differ = len(telling) - len(alike)
    if len(set(alike)) >= ENOUGH and len(alike) > differ:
        return True
    return False if len(set(alike)) < ENOUGH <= differ else None
