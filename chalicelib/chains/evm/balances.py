"""Balances of hundreds of addresses in one request: a contract's creation code that the node runs by `eth_call`.

It copies the words behind itself into memory, puts the balance in the place of each address, and returns them. Nothing has to be
deployed for it. EIP-3860 limits such a program to 49,152 bytes, EIP-170 what it returns to 24,576; each BALANCE costs 2,600 gas
(EIP-2929), each byte returned 200: 3 million for 500 addresses, where nodes allow 50 million. For a token it asks the contract,
`balanceOf` of one address after the other, and reverts where one of the answers is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chalicelib.chains.abi import BALANCE_SELECTOR, address_bytes
from chalicelib.chains.answers import Garbled
from chalicelib.chains.evm.quantities import data

FEW = 3
"""So many are asked for one by one."""
MOST_TOGETHER = 500

_PROGRAM = bytes.fromhex(
    "6024" "38" "03"  # PUSH1 size of this program, CODESIZE, SUB: bytes of words
    "80" "6024" "6000" "39"  # DUP1, PUSH1 where they begin, PUSH1 0, CODECOPY
    "6000"  # PUSH1 0: the place in memory
    "5b" "81" "81" "10" "15" "601f" "57"  # JUMPDEST at 12, until DUP2 DUP2 LT ISZERO: PUSH1 end, JUMPI
    "80" "51" "31" "81" "52"  # DUP1, MLOAD, BALANCE, DUP2, MSTORE
    "6020" "01" "600c" "56"  # PUSH1 32, ADD, PUSH1 12, JUMP
    "5b" "50" "6000" "f3"  # JUMPDEST at 31, POP, PUSH1 0, RETURN
)  # fmt: skip


def many_balances(addresses: Sequence[str]) -> str:
    """The data of the call, for up to MOST_TOGETHER addresses."""
    words = b"".join(bytes.fromhex(address[2:]).rjust(32, b"\0") for address in addresses)
    return "0x" + (_PROGRAM + words).hex()


_BEFORE_TOKEN = bytes.fromhex(
    "605a" "38" "03"  # PUSH1 size of this program, CODESIZE, SUB: bytes of words
    "80" "605a" "6000" "39"  # DUP1, PUSH1 where they begin, PUSH1 0, CODECOPY
    f"63{BALANCE_SELECTOR.hex()}" "60e0" "1b" "81" "52"  # PUSH4, PUSH1 224, SHL, DUP2, MSTORE: the call lies behind the words
    "6000"  # PUSH1 0: the place in memory
    "5b" "81" "81" "10" "15" "6055" "57"  # JUMPDEST at 22, until DUP2 DUP2 LT ISZERO: PUSH1 end, JUMPI
    "80" "51" "82" "6004" "01" "52"  # DUP1, MLOAD, DUP3, PUSH1 4, ADD, MSTORE: whose balance
    "6020" "81" "6024" "84" "73"  # PUSH1 32, DUP2: the answer comes in its place; PUSH1 36, DUP5: the call; PUSH20 token
)  # fmt: skip
_BEHIND_TOKEN = bytes.fromhex(
    "5a" "fa"  # GAS, STATICCALL
    "3d" "601f" "10" "16" "604e" "57"  # RETURNDATASIZE, PUSH1 31, LT, AND, PUSH1 on, JUMPI
    "6000" "80" "fd"  # PUSH1 0, DUP1, REVERT
    "5b" "6020" "01" "6016" "56"  # JUMPDEST at 78, PUSH1 32, ADD, PUSH1 22, JUMP
    "5b" "50" "6000" "f3"  # JUMPDEST at 85, POP, PUSH1 0, RETURN
)  # fmt: skip


def many_token_balances(contract: str, addresses: Sequence[str]) -> str:
    """The same for the units of a token. EIP-150 lets each call have all gas but a 64th: the node's limit bounds them."""
    words = b"".join(address_bytes(address).rjust(32, b"\0") for address in addresses)
    return "0x" + (_BEFORE_TOKEN + address_bytes(contract) + _BEHIND_TOKEN + words).hex()


def told_balances(answer: Any, count: int) -> list[int]:
    """Wei of each. Raises Garbled."""
    told = data(answer, "balances")
    if len(told) != 32 * count:
        raise Garbled("the node does not tell so many balances as it was asked for")
    return [int.from_bytes(told[at : at + 32]) for at in range(0, len(told), 32)]
