"""Balances of hundreds of addresses in one request: a program (`chains/balance_program`) that the node runs by `eth_call`.

EIP-3860 limits it to 49,152 bytes, EIP-170 what it returns to 24,576; each BALANCE costs 2,600 gas (EIP-2929), each byte returned
200: 3 million for 500 addresses, where nodes allow 50 million.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chalicelib.chains.abi import address_bytes
from chalicelib.chains.balance_program import native_program, token_program, told
from chalicelib.chains.evm.quantities import data

MOST_TOGETHER = 500


def many_balances(addresses: Sequence[str]) -> str:
    """The data of the call, for up to MOST_TOGETHER addresses."""
    return "0x" + native_program([bytes.fromhex(address[2:]) for address in addresses]).hex()


def many_token_balances(contract: str, addresses: Sequence[str]) -> str:
    """The same for the units of a token."""
    return "0x" + token_program(address_bytes(contract), [address_bytes(address) for address in addresses]).hex()


def told_balances(answer: Any, count: int) -> list[int]:
    """Wei of each. Raises Garbled."""
    return told(data(answer, "balances"), count)
