"""A program that tells the balances of many addresses: creation code of a contract, which a node runs for a call that changes
nothing.

It copies the words behind itself into memory, puts the balance in the place of each address, and returns them. Nothing has to be
deployed for it. For a token it asks the contract, `balanceOf` of one address after the other, and reverts where one of the answers
is none. The EVM and Tron's machine run the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from chalicelib.chains.abi import BALANCE_SELECTOR
from chalicelib.chains.answers import Garbled

FEW = 3
"""So many are asked for one by one."""

_PROGRAM = bytes.fromhex(
    "6024" "38" "03"  # PUSH1 size of this program, CODESIZE, SUB: bytes of words
    "80" "6024" "6000" "39"  # DUP1, PUSH1 where they begin, PUSH1 0, CODECOPY
    "6000"  # PUSH1 0: the place in memory
    "5b" "81" "81" "10" "15" "601f" "57"  # JUMPDEST at 12, until DUP2 DUP2 LT ISZERO: PUSH1 end, JUMPI
    "80" "51" "31" "81" "52"  # DUP1, MLOAD, BALANCE, DUP2, MSTORE
    "6020" "01" "600c" "56"  # PUSH1 32, ADD, PUSH1 12, JUMP
    "5b" "50" "6000" "f3"  # JUMPDEST at 31, POP, PUSH1 0, RETURN
)  # fmt: skip
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


def native_program(addresses: Sequence[bytes]) -> bytes:
    """For the network's own coin. Addresses have 20 bytes."""
    return _PROGRAM + _words(addresses)


def token_program(contract: bytes, addresses: Sequence[bytes]) -> bytes:
    """For the units of a token. EIP-150 lets each call have all gas but a 64th: the node's limit bounds them."""
    return _BEFORE_TOKEN + contract + _BEHIND_TOKEN + _words(addresses)


def told(returned: bytes, count: int) -> list[int]:
    """The balance of each of `count` addresses. Raises Garbled."""
    if len(returned) != 32 * count:
        raise Garbled("the node does not tell so many balances as it was asked for")
    return [int.from_bytes(returned[at : at + 32]) for at in range(0, len(returned), 32)]


def _words(addresses: Sequence[bytes]) -> bytes:
    return b"".join(address.rjust(32, b"\0") for address in addresses)
