"""A block with payments of one merchant in one coin, done in groups or one by one, with another worker in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import pytest

from chalicelib.domain.addresses.addresses import Watched
from chalicelib.domain.chain import Block, Cursor, Transfer
from chalicelib.domain.deposits.deposits import Deposit, deposit_id
from chalicelib.domain.ids import TenantId
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.ledger import Balance, WalletBalance
from chalicelib.domain.versions import next_version
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.deposits.first_sight import Scanned
from chalicelib.usecases.deposits.groups import Member
from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.usecases.scanning.block_lists import list_deposits
from chalicelib.wiring import services
from tests.support.shop import Shop, open_shop
from tests.support.stack import Stack

PAYMENTS = INVOICES = 6
GREY = "0x" + "ba" * 20
numbers = count(1)

Act = tuple[str, list[int], tuple[str, int] | None]
"""Detect or credit these payments as a group; and what happens to one of them right before its commit."""
Tried = tuple[int, bool]
"""Deposits of a transaction, and whether it was stored."""


def opened_shop(stack: Stack) -> Iterator[Shop]:
    """A shop, and a sender on the grey list."""
    with open_shop(stack) as opened:
        grey = {"address": GREY, "network": "ethereum"}
        assert stack.call("POST", "/v1/addresses/grey-list", stack.keys["admin_test"], json=grey).status in (200, 201)
        opened.mine(1)
        opened.turn()
        yield opened


class Run:
    """A block with payments in one coin, and what is done to them. `together`: in groups, else one by one."""

    def __init__(self, shop: Shop, slug: str, paid: Sequence[tuple[int, int, bool]], together: bool) -> None:
        self.shop, self.together, self.store = shop, together, services().store
        self.tried = list[Tried]()
        self.network, self.coin = shop.realm_network(), shop.coin(slug)
        self.deposits = services().deposits("test")
        found = self.store.get(Cursor, network=self.network.id)
        assert found is not None
        self.epoch = found.epoch
        self.invoices = [shop.invoice("20", slug) for _ in range(INVOICES)]
        plain = shop.post("/v1/addresses", {"network": "ethereum"}).json["address"]
        addresses = [*(invoice["address"] for invoice in self.invoices), plain]
        number = next(numbers)
        time = services().clock.now_ms()
        self.block = Block(found.number + 1, f"0x{number:064x}", "0x" + "00" * 32, time)
        self.members = [self._member(addresses[at], n, amount, grey) for n, (at, amount, grey) in enumerate(paid)]
        ids = [member.id for member in self.members]
        with in_realm("test"):
            self.parts = list_deposits(self.store, self.network.id, self.block, ids, self.epoch)

    def _member(self, address: str, n: int, amount: int, grey: bool) -> Member:
        watched = self.store.get(Watched, realm="test", family="evm", address=address.lower())
        assert watched is not None and self.coin.contract is not None
        txid = f"0x{next(numbers):064x}"
        sender = GREY if grey else "0x" + "0c" * 20
        units = amount * 10**self.coin.decimals
        transfer = Transfer(txid, f"log:{n}", self.coin.contract.lower(), sender, address.lower(), units)
        return Member(transfer, deposit_id(self.network.id, txid, f"log:{n}"), watched)

    def seen(self) -> Scanned:
        return Scanned(self.block, self.epoch, None, self.block.number + 20, 0)

    def detect(self, chosen: Sequence[int]) -> None:
        left: Sequence[Member] = [self.members[n] for n in chosen]
        with in_realm("test"):
            if self.together and len(left) > 1:
                left = self.deposits.detect_together(self.network, self.coin, self.seen(), left)
            for transfer, id_, owner in left:
                self.deposits.detect(self.network, self.coin, self.seen(), transfer, owner, id_)

    def confirm(self, chosen: Sequence[int]) -> None:
        left: Sequence[str] = [self.members[n].id for n in chosen]
        at = self.block.hash, self.block.number + 20, self.epoch
        with in_realm("test"):
            if self.together and len(left) > 1:
                left = self.deposits.confirm_together(self.network, left, *at)
            for key in left:
                self.deposits.confirm(self.network, key, *at)

    def one(self, kind: str, n: int) -> None:
        """What another worker does to one payment."""
        if kind == "orphan":
            with in_realm("test"):
                self.deposits.orphan(self.network, self.members[n].id, self.block.hash, None)
        elif kind == "touch":
            invoice = self.members[n].owner.invoice_id
            found = None if invoice is None else self.store.get(Invoice, tenant=self.tenant, id=invoice)
            if found is not None:
                self.store.commit([Save(next_version(found))])
        elif kind == "balance":
            balance = self.store.get(Balance, tenant=self.tenant, asset=self.coin.asset)
            self.store.commit([Save(next_version(balance or Balance(TenantId(self.tenant), self.coin.asset)))])
        else:
            (self.detect if kind == "detect" else self.confirm)([n])

    @property
    def tenant(self) -> str:
        return str(self.members[0].owner.tenant)

    def act(self, patch: pytest.MonkeyPatch, kind: str, chosen: Sequence[int], rival: tuple[str, int] | None) -> None:
        step = self.detect if kind == "detect" else self.confirm
        left: list[Callable[[], object]] = [] if rival is None else [lambda: self.one(*rival)]
        if self.together:
            before_next_commit(patch, left, self.tried)
        else:
            act_on(left)
        step(chosen)
        patch.undo()
        act_on(left)  # where all was known already, nothing was committed

    def end(self) -> dict[str, Any]:
        """All is seen and credited at last; what stands then, without names and numbers of versions."""
        everyone = list(range(PAYMENTS))
        self.detect(everyone)
        self.confirm(everyone)
        keys = [(Deposit, {"id": member.id}) for member in self.members]
        deposits: list[Deposit] = self.store.get_many(keys)
        invoices = [self.store.get(Invoice, tenant=self.tenant, id=made["id"]) for made in self.invoices]
        balance = self.store.get(Balance, tenant=self.tenant, asset=self.coin.asset)
        places = {member.transfer.recipient for member in self.members}
        wallets = [self.store.get(WalletBalance, network=self.network.id, address=p, asset=self.coin.asset) for p in sorted(places)]
        assert balance is not None
        return {
            "deposits": [(d.status, d.flags, d.amount, d.late, d.round) for d in deposits],
            "invoices": [(i.status, i.confirmed, i.unconfirmed, i.doubtful, len(i.payments)) for i in invoices if i],
            "balance": (balance.available, balance.held, balance.frozen, self.shop.balance(self.coin.slug)["pending"]),
            "wallets": sorted((w.units, w.pending, w.held) for w in wallets if w),
        }


def act_on(left: list[Callable[[], object]]) -> None:
    """Do what is left to do, once."""
    if left:
        left.pop()()


def before_next_commit(patch: pytest.MonkeyPatch, left: list[Callable[[], object]], tried: list[Tried]) -> None:
    """Let another worker's turn come before the next commit, and tell what was `tried` from there on."""
    store = services().store
    commit = store.commit

    def between(changes: Any) -> None:
        act_on(left)
        members = sum(isinstance(change, Save) and type(change.record) is Deposit for change in changes)
        try:
            commit(changes)
        except Conflict:
            tried.append((members, False))
            raise
        tried.append((members, True))

    patch.setattr(store, "commit", between)
