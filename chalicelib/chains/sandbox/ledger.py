"""Transactions of a simulated chain and the accounts they change. Pure.

An account keeps what is settled for good, and every younger change with the block that made it. What counts is decided
against the chain as it is now, so that a reorganisation changes balances and nonces without touching any account.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from chalicelib.chains.sandbox.branch import MAX_DEPTH, View
from chalicelib.domain.catalogue.catalogue import Family
from chalicelib.domain.chain import Transfer

NATIVE = ""
"""Key of the native coin among an account's amounts; a token's key is its contract."""
NONCE = "#nonce"
STAKED = "#staked"


@dataclass(frozen=True, slots=True)
class Tx:
    """One payment, addresses and contract in storage form, amounts in units. `nonce` None: from outside, out of nothing.

    `stakes`: no payment; the sender's native coins are locked, without a nonce and without a fee. `reference`: whose payment it
    is, where it says so.
    """

    txid: str
    sender: str
    recipient: str
    contract: str | None
    amount: int
    fee: int
    nonce: int | None
    stakes: bool = False
    reference: str | None = None

    @property
    def coin(self) -> str:
        return NATIVE if self.contract is None else self.contract

    def deltas(self, success: bool) -> dict[str, dict[str, int]]:
        """The changes of its mining, by address. A failed one moves nothing but its fee, which is burnt."""
        changes: dict[str, dict[str, int]] = {}

        def add(address: str, key: str, units: int) -> None:
            account = changes.setdefault(address, {})
            account[key] = account.get(key, 0) + units

        if self.stakes:
            add(self.sender, NATIVE, -self.amount)
            add(self.sender, STAKED, self.amount)
            return changes
        if self.nonce is not None:
            add(self.sender, NONCE, 1)
            add(self.sender, NATIVE, -self.fee)
            if success:
                add(self.sender, self.coin, -self.amount)
        if success:
            add(self.recipient, self.coin, self.amount)
        return changes

    def needs(self) -> dict[str, int]:
        """The sender's required balance, by coin."""
        if self.stakes:
            return {NATIVE: self.amount}
        if self.nonce is None:
            return {}
        needed = {NATIVE: self.fee}
        needed[self.coin] = needed.get(self.coin, 0) + self.amount
        return needed

    def to_doc(self) -> list[Any]:
        doc = [self.txid, self.sender, self.recipient, self.contract, self.amount, self.fee, self.nonce]
        if self.reference is not None:
            return [*doc, self.stakes, self.reference]
        return [*doc, True] if self.stakes else doc

    @classmethod
    def from_doc(cls, doc: list[Any]) -> Tx:
        return cls(*doc)


@dataclass(frozen=True, slots=True)
class Place:
    """A block that a transaction was mined in, and whether it succeeded there."""

    number: int
    salt: str
    success: bool


@dataclass(frozen=True, slots=True)
class TxState:
    """A transaction and where it was mined; at most one of the places is in the chain.

    `stuck` keeps it out of blocks; `fails` says what becomes of it when it is mined next.
    """

    tx: Tx
    places: tuple[Place, ...] = ()
    stuck: bool = False
    fails: bool = False

    def place(self, view: View) -> Place | None:
        """Its place in the chain; None while it is in no block."""
        return next((p for p in reversed(self.places) if view.holds(p.number, p.salt)), None)

    def lowest(self) -> int:
        return min((p.number for p in self.places), default=0)

    def placed(self, place: Place, view: View) -> TxState:
        """Mined in `place` too; of the earlier places the one is kept that is in the chain of `view`."""
        current = self.place(view)
        return replace(self, places=(place,) if current is None else (current, place))

    def to_doc(self) -> dict[str, Any]:
        places = [[p.number, p.salt, p.success] for p in self.places]
        return {"tx": self.tx.to_doc(), "places": places, "stuck": self.stuck, "fails": self.fails}

    @classmethod
    def from_doc(cls, doc: dict[str, Any]) -> TxState:
        return cls(Tx.from_doc(doc["tx"]), tuple(Place(*p) for p in doc["places"]), doc["stuck"], doc["fails"])


@dataclass(frozen=True, slots=True)
class Account:
    """`settled` holds sums by coin (and the nonce); `recent` the changes that a reorganisation can still undo."""

    settled: Mapping[str, int]
    recent: tuple[tuple[int, str, dict[str, int]], ...] = ()

    def value(self, view: View, key: str) -> int:
        """Units of a coin, or the number of transactions sent (`NONCE`), in the chain as `view` sees it."""
        return self.settled.get(key, 0) + sum(d.get(key, 0) for number, salt, d in self.recent if view.holds(number, salt))

    def lowest(self) -> int:
        return min((number for number, _, _ in self.recent), default=0)

    def with_change(self, number: int, salt: str, deltas: dict[str, int]) -> Account:
        return replace(self, recent=(*self.recent, (number, salt, deltas)))

    def tidied(self, view: View) -> Account:
        """The same amounts with a shorter list: what no reorganisation can undo is added up, what fell out is dropped."""
        settled = dict(self.settled)
        recent = []
        for number, salt, deltas in self.recent:
            if not view.holds(number, salt):
                continue
            if number > view.tip - MAX_DEPTH:
                recent.append((number, salt, deltas))
                continue
            for key, units in deltas.items():
                settled[key] = settled.get(key, 0) + units
        return Account(settled, tuple(recent))

    def to_doc(self) -> dict[str, Any]:
        return {"settled": dict(self.settled), "recent": [list(change) for change in self.recent]}

    @classmethod
    def from_doc(cls, doc: dict[str, Any]) -> Account:
        return cls(doc["settled"], tuple((number, salt, deltas) for number, salt, deltas in doc["recent"]))


def transfers(family: Family, tx: Tx, success: bool, contracts: Collection[str]) -> list[Transfer]:
    """The movements that a block shows of `tx`.

    As on the real chains, the value of a failed EVM or Tron transaction is still written in it and moves nothing, while a
    failed token transfer has no log, and an output that is not paid is not there.
    """
    if tx.amount <= 0 or tx.stakes:
        return []
    if tx.contract is not None:
        position = "log:0"
        seen = success and tx.contract in contracts
    else:
        position = "out:0" if family == "utxo" else "native"
        seen = success or family != "utxo"
    return [Transfer(tx.txid, position, tx.contract, tx.sender, tx.recipient, tx.amount)] if seen else []
