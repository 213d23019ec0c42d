"""TRC-20 tokens, and a contract that passes TRX on: built in, without a virtual machine, behind the same call data.

Each token's `returns` and `symbol_bytes32` are the ways in which tokens on the real network differ from the standard.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from chalicelib.encoding.keccak import keccak256
from infra.local.tron.state import Account, State

TRANSFER_EVENT = keccak256(b"Transfer(address,address,uint256)")
APPROVAL_EVENT = keccak256(b"Approval(address,address,uint256)")
VIEW_ENERGY, REVERT_ENERGY, APPROVE_ENERGY, PASS_ENERGY = 935, 8_624, 22_700, 12_000
"""What calls use: balanceOf and a refused transfer as java-tron's documents show them, the others of the same order."""


@dataclass(frozen=True, slots=True)
class Token:
    """A contract. `energy`: a transfer to a holder, and to an address that holds none of it yet.

    `returns` is what `transfer` answers when it succeeded. `fee_basis_points` go from each transfer to the token's owner.
    """

    address: bytes
    owner: bytes
    symbol: str
    name: str
    decimals: int
    supply: int = 0
    returns: Literal["true", "false", "nothing"] = "true"
    symbol_bytes32: bool = False
    fee_basis_points: int = 0
    energy: tuple[int, int] = (64_285, 130_285)


@dataclass(frozen=True, slots=True)
class Passer:
    """A contract whose pay(address) hands the TRX that came with the call to that address."""

    address: bytes
    owner: bytes
    name: str = "Passer"


@dataclass(frozen=True, slots=True)
class Log:
    """An event. `address` without 41, as Tron's virtual machine writes it."""

    address: bytes
    topics: tuple[bytes, ...]
    data: bytes


@dataclass(frozen=True, slots=True)
class Internal:
    """TRX that a contract sent."""

    sender: bytes
    recipient: bytes
    amount: int


@dataclass(frozen=True, slots=True)
class Called:
    """What a call did. With `reverted`, nothing."""

    energy: int
    returned: bytes = b""
    logs: tuple[Log, ...] = ()
    internal: tuple[Internal, ...] = field(default=())
    reverted: bool = False


def selector(signature: str) -> bytes:
    """The first four bytes of call data. Source: Solidity's ABI specification."""
    return keccak256(signature.encode())[:4]


VIEWS = ("symbol()", "name()", "decimals()", "totalSupply()", "balanceOf(address)", "allowance(address,address)")
CALLS = ("transfer(address,uint256)", "transferFrom(address,address,uint256)", "approve(address,uint256)")
NAMES = {selector(signature): signature for signature in (*VIEWS, *CALLS, "pay(address)")}


def is_view(data: bytes) -> bool:
    return NAMES.get(data[:4]) in VIEWS


def word(value: int) -> bytes:
    return value.to_bytes(32)


def text(value: str) -> bytes:
    """ABI of one string."""
    raw = value.encode()
    return word(32) + word(len(raw)) + raw.ljust(-(-len(raw) // 32) * 32, b"\0")


def revert(reason: str = "") -> Called:
    """A call that the contract refused, with Error(string) where it says why."""
    return Called(REVERT_ENERGY, selector("Error(string)") + text(reason) if reason else b"", reverted=True)


def balance(state: State, token: bytes, holder: bytes) -> int:
    """Smallest units. `holder` with or without 41."""
    amount: int = state.get(("token", token, holder[-20:]), 0)
    return amount


def credit(state: State, token: bytes, holder: bytes, units: int) -> None:
    state.put(("token", token, holder[-20:]), balance(state, token, holder) + units)


def call(state: State, contract: Token | Passer, caller: bytes, data: bytes, value: int) -> Called:
    """Run a call by `caller` with `value` sun that are the contract's already."""
    signature = NAMES.get(data[:4], "")
    arguments = [data[4 + 32 * index : 36 + 32 * index] for index in range(signature.count(",") + 1)]
    if not signature.endswith("()") and any(len(argument) != 32 for argument in arguments):
        return revert()
    if isinstance(contract, Passer):
        return _pass_on(state, contract, arguments[0][-20:], value) if signature == "pay(address)" else revert()
    if value or not signature or signature == "pay(address)":
        return revert()
    return _run(state, contract, caller[-20:], signature, arguments)


def _run(state: State, contract: Token, me: bytes, signature: str, arguments: list[bytes]) -> Called:
    match signature:
        case "transfer(address,uint256)":
            return _transfer(state, contract, me, arguments[0][-20:], int.from_bytes(arguments[1]))
        case "transferFrom(address,address,uint256)":
            return _transfer_from(state, contract, me, arguments)
        case "approve(address,uint256)":
            spender = arguments[0][-20:]
            state.put(("allowance", contract.address, me, spender), int.from_bytes(arguments[1]))
            log = Log(contract.address[-20:], (APPROVAL_EVENT, me.rjust(32, b"\0"), spender.rjust(32, b"\0")), arguments[1])
            return Called(APPROVE_ENERGY, word(1), (log,))
        case _:
            return Called(VIEW_ENERGY, _view(state, contract, signature, arguments))


def _view(state: State, token: Token, signature: str, arguments: list[bytes]) -> bytes:
    match signature:
        case "symbol()":
            return token.symbol.encode().ljust(32, b"\0") if token.symbol_bytes32 else text(token.symbol)
        case "name()":
            return token.name.encode().ljust(32, b"\0") if token.symbol_bytes32 else text(token.name)
        case "decimals()":
            return word(token.decimals)
        case "totalSupply()":
            return word(token.supply)
        case "balanceOf(address)":
            return word(balance(state, token.address, arguments[0]))
        case _:
            return word(state.get(("allowance", token.address, arguments[0][-20:], arguments[1][-20:]), 0))


def _transfer(state: State, token: Token, sender: bytes, recipient: bytes, units: int) -> Called:
    # As Tether's contract: the sender's blacklisting counts, not the recipient's.
    if state.get(("blacklist", token.address, sender)) or units > balance(state, token.address, sender) or not any(recipient):
        return revert()
    fresh = not balance(state, token.address, recipient)
    fee = units * token.fee_basis_points // 10_000
    logs = []
    for to, part in ((recipient, units - fee), (token.owner[-20:], fee)):
        if part or to == recipient:
            credit(state, token.address, sender, -part)
            credit(state, token.address, to, part)
            topics = (TRANSFER_EVENT, sender.rjust(32, b"\0"), to.rjust(32, b"\0"))
            logs.append(Log(token.address[-20:], topics, word(part)))
    returned = {"true": word(1), "false": word(0), "nothing": b""}[token.returns]
    return Called(token.energy[1 if fresh else 0], returned, tuple(logs))


def _transfer_from(state: State, token: Token, spender: bytes, arguments: list[bytes]) -> Called:
    sender, units = arguments[0][-20:], int.from_bytes(arguments[2])
    key = ("allowance", token.address, sender, spender)
    left: int = state.get(key, 0)
    if units > left:
        return revert()
    state.put(key, left - units)
    return _transfer(state, token, sender, arguments[1][-20:], units)


def _pass_on(state: State, contract: Passer, recipient: bytes, value: int) -> Called:
    own, to = state.account(contract.address), b"\x41" + recipient
    if own is None or not value:
        return revert("nothing to pass on")
    state.put_account(replace(own, balance=own.balance - value))
    other = state.account(to) or Account(to)
    state.put_account(replace(other, balance=other.balance + value))
    return Called(PASS_ENERGY, b"", internal=(Internal(contract.address, to, value),))
