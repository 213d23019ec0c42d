"""Reads of one simulated network from the table: the current view, transactions, accounts, stored blocks, the mempool.

Reads only. Rows of a branch that is no longer in the chain are left out here, once for every caller.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from chalicelib.chains.addresses import Rules
from chalicelib.chains.sandbox.branch import Head, Stretch, View, block_hash
from chalicelib.chains.sandbox.ledger import Account, Tx, TxState
from chalicelib.chains.sandbox.table import Item, Key, Put, SandboxTable
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.usecases.base.address_forms import form_of
from chalicelib.usecases.ports.clock import Clock

DONE_MS = 24 * 3_600_000
"""As long as an Idempotency-Key counts, by the machine's clock as well."""


def height_key(number: int) -> str:
    return f"{number:012d}"


@dataclass(frozen=True, slots=True)
class Mined:
    """A stored block: the end of a stretch, and its transaction with its success, if it has one."""

    number: int
    salt: str
    stretch: Stretch
    tx: Tx | None
    success: bool

    def to_doc(self) -> dict[str, Any]:
        doc: dict[str, Any] = {"stretch": self.stretch.to_doc()}
        if self.tx is not None:
            doc.update(tx=self.tx.to_doc(), success=self.success)
        return doc


Ahead = Callable[[], int]
"""How far the sandbox's clock is in front of the machines', in milliseconds; never less than before."""


def not_ahead() -> int:
    return 0


class Reads:
    """One network of the test realm. Raises ValueError for any other: no live network can be simulated.

    `clock` is the machine's; the network's own time is `ahead()` in front of it.
    """

    def __init__(self, network: Network, table: SandboxTable, clock: Clock, ahead: Ahead = not_ahead) -> None:
        if network.realm != "test" or not network.simulated:
            raise ValueError(f"{network.id} is not a simulated network of the test realm")
        self.network, self.table, self.clock, self._ahead = network, table, clock, ahead
        self.head_key: Key = (f"head#{network.id}", "-")

    def form(self, address: str) -> str:
        """An address or contract as it is stored and compared."""
        return form_of(Rules(), self.network, address)

    def tx_key(self, txid: str) -> Key:
        return f"tx#{self.network.id}#{txid}", "-"

    def account_key(self, address: str) -> Key:
        return f"acct#{self.network.id}#{address}", "-"

    def block_key(self, number: int, salt: str) -> Key:
        return f"blk#{self.network.id}", f"{height_key(number)}#{salt}"

    def pool_key(self, sender: str, nonce: int) -> Key:
        return f"pool#{self.network.id}", f"{sender}#{nonce:015d}"

    def done_key(self, token: str) -> Key:
        return f"done#{self.network.id}", hashlib.sha256(token.encode()).hexdigest()

    def done(self, token: str | None) -> Any:
        """The result of the change that was asked for under `token` in the last day; None where it was not made."""
        item = None if token is None else self.table.get(self.done_key(token))
        return None if item is None or (item.expires or 0) <= self.clock.now_ms() else item.doc

    def doing(self, token: str, outcome: Any) -> Put:
        """What keeps `outcome` under `token`, for the write that makes the change."""
        return Put(self.done_key(token), outcome, self.clock.now_ms() + DONE_MS)

    def fork_key(self, start: int) -> Key:
        return f"fork#{self.network.id}", height_key(start)

    def view(self) -> View:
        """The chain now."""
        return self._view(self.table.get(self.head_key))

    def _view(self, item: Item | None) -> View:
        head = Head() if item is None else Head.from_doc(item.version, item.doc)
        # A machine that has not heard of the last jump yet takes the head's word for it: the network's time never goes back.
        ahead = self._ahead() if head.version == 0 else max(self._ahead(), head.ahead)
        return View(head, self.clock.now_ms() + ahead, ahead=ahead)

    def reaching(self, view: View, lowest: int) -> View:
        """`view` with the salts of blocks down to `lowest`. Costs a query only where these have been archived."""
        if lowest >= view.known_from:
            return view
        older = []
        for item in self.table.query(
            f"fork#{self.network.id}", height_key(0), height_key(view.head.forks[0][0] - 1), newest_first=True, page=50
        ):
            start = int(item.key[1])
            older.append((start, item.doc))
            if start <= lowest:
                break
        return View(view.head, view.now, tuple(reversed(older)), view.ahead)

    def tx(self, txid: str) -> TxState | None:
        item = self.table.get(self.tx_key(txid))
        return None if item is None else TxState.from_doc(item.doc)

    def account(self, address: str) -> Account:
        item = self.table.get(self.account_key(address))
        return Account({}) if item is None else Account.from_doc(item.doc)

    def tx_now(self, txid: str) -> tuple[View, TxState | None]:
        """A transaction and the chain of the same moment."""
        head, item = self.table.get_together([self.head_key, self.tx_key(txid)])
        state = None if item is None else TxState.from_doc(item.doc)
        return self.reaching(self._view(head), state.lowest() if state else 0), state

    def value_now(self, address: str, key: str) -> int:
        """An account's balance of a coin, or the number of its transactions (`NONCE`)."""
        head, item = self.table.get_together([self.head_key, self.account_key(address)])
        account = Account({}) if item is None else Account.from_doc(item.doc)
        return account.value(self.reaching(self._view(head), account.lowest()), key)

    def accounts_now(self, addresses: Sequence[str]) -> list[tuple[View, Account | None]]:
        """Up to a hundred accounts, None for one that there never was, each with the chain as far down as it needs. Two reads.

        The chain is read after them, so that it has every block that they know of.
        """
        items = self.table.get_many([self.account_key(address) for address in addresses])
        view = self.view()
        accounts = [None if item is None else Account.from_doc(item.doc) for item in items]
        return [(view if each is None else self.reaching(view, each.lowest()), each) for each in accounts]

    def stored(self, view: View, first: int, last: int) -> list[Mined]:
        """The stored blocks of the chain from `first` on, until one at or behind `last`: they time all of that range.

        One query; a second one where the range ends inside a stretch. `view` must reach down to `first`.
        """
        partition = f"blk#{self.network.id}"
        found = [
            mined
            for mined in map(_mined, self.table.query(partition, height_key(first), f"{height_key(last)}~"))
            if view.holds(mined.number, mined.salt)
        ]
        if last <= view.head.height and (not found or found[-1].number < last):
            behind = self.table.query(partition, height_key(last + 1), f"{height_key(view.head.height)}~", page=4)
            closing = next((m for m in map(_mined, behind) if view.holds(m.number, m.salt)), None)
            if closing is not None:
                found.append(closing)
        return found

    def block(self, view: View, number: int) -> Mined | None:
        """The stored block of that number, None when it is an empty one in a stretch. `view` must reach down to it."""
        item = self.table.get(self.block_key(number, view.salt_at(number)))
        return None if item is None else _mined(item)

    def time_of(self, view: View, number: int) -> int:
        """When block `number` was mined, in milliseconds since 1970."""
        if number == 0 or number > view.head.height:
            return view.grown_time(number)
        return self.stored(self.reaching(view, number), number, number)[0].stretch.time_of(number)

    def hash_at(self, view: View, number: int, txid: str | None) -> str:
        """The hash of block `number`, which holds `txid` (None: is empty)."""
        return block_hash(self.network.id, self.network.family, view.salt_at(number), number, txid)

    def pooled(self, sender: str, nonce: int) -> str | None:
        """The id of the transaction that waits in the mempool with this nonce."""
        item = self.table.get(self.pool_key(sender, nonce))
        return None if item is None else item.doc

    def pool(self, sender: str | None = None) -> Iterator[str]:
        """Ids of the transactions in the mempool, of one sender or of all, a sender's in order of their nonces."""
        prefix = "" if sender is None else f"{sender}#"
        for item in self.table.query(f"pool#{self.network.id}", prefix or " ", f"{prefix}~"):
            yield item.doc


def _mined(item: Item) -> Mined:
    height, salt = item.key[1].split("#")
    doc = item.doc
    tx = Tx.from_doc(doc["tx"]) if "tx" in doc else None
    return Mined(int(height), salt, Stretch.from_doc(int(height), doc["stretch"]), tx, doc.get("success", False))
