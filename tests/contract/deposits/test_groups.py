"""Payments recorded and credited in groups end as the same payments do one by one, whatever comes in between."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from threading import Barrier, current_thread
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from chalicelib.domain.addresses.addresses import Watched
from chalicelib.domain.chain import Block, Cursor, Transfer
from chalicelib.domain.deposits.deposits import Deposit, deposit_id
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.ledger import Balance, JournalEntry, WalletBalance
from chalicelib.domain.webhooks.endpoints import EventRecord
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.deposits.first_sight import Scanned
from chalicelib.usecases.deposits.groups import MOST, Member, grouped
from chalicelib.usecases.ports.changes import MOST_ITEMS, Conflict, Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.scanning.block_lists import drop_list, list_deposits
from chalicelib.wiring import services
from tests.support.shop import Shop, bent_node, open_shop, with_also
from tests.support.stack import Stack

PAYMENTS, INVOICES = 6, 3
EXAMPLES = 40 if os.environ.get("SWEEP") == "full" else 3
GREY = "0x" + "ba" * 20
numbers = count(1)

Act = tuple[str, list[int], tuple[str, int] | None]
"""Detect or credit these payments as a group; and what happens to one of them right before its commit."""
KINDS = st.sampled_from(("detect", "confirm", "orphan", "touch"))
ACTS = st.lists(
    st.tuples(
        st.sampled_from(("detect", "confirm")),
        st.lists(st.integers(0, PAYMENTS - 1), min_size=2, unique=True),
        st.none() | st.tuples(KINDS, st.integers(0, PAYMENTS - 1)),
    ),
    max_size=4,
)
PAID = st.lists(st.tuples(st.integers(0, INVOICES), st.integers(1, 30), st.booleans()), min_size=PAYMENTS, max_size=PAYMENTS)


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
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
                self.store.commit([Save(replace(found, version=found.version + 1))])
        else:
            (self.detect if kind == "detect" else self.confirm)([n])

    @property
    def tenant(self) -> str:
        return str(self.members[0].owner.tenant)

    def act(self, patch: pytest.MonkeyPatch, kind: str, chosen: Sequence[int], rival: tuple[str, int] | None) -> None:
        step = self.detect if kind == "detect" else self.confirm
        left: list[Callable[[], object]] = [] if rival is None else [lambda: self.one(*rival)]
        if self.together:
            before_next_commit(patch, left)
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


def before_next_commit(patch: pytest.MonkeyPatch, left: list[Callable[[], object]]) -> None:
    store = services().store
    commit = store.commit

    def between(changes: Any) -> None:
        act_on(left)
        commit(changes)

    patch.setattr(store, "commit", between)


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(paid=PAID, acts=ACTS)
# Another worker's turn comes in an act that commits nothing, since all of it was known.
@example(paid=[(0, 1, False)] * PAYMENTS, acts=[("detect", [*range(PAYMENTS)], None), ("detect", [0, 1], ("orphan", 0))])
def test_groups_end_as_single_payments_do(shop: Shop, paid: list[tuple[int, int, bool]], acts: list[Act]) -> None:
    shop.wait(60)  # a key may ask so often in a minute
    groups, singles = Run(shop, "usdt", paid, True), Run(shop, "usdc", paid, False)
    had = {slug: shop.balance(slug) for slug in ("usdt", "usdc")}
    assert had["usdt"] == had["usdc"], "what earlier examples left is the same for both"
    for kind, chosen, rival in acts:
        for run in (groups, singles):
            with pytest.MonkeyPatch.context() as patch:
                run.act(patch, kind, chosen, rival)
    assert groups.end() == singles.end()
    assert audit(services().store) == []


PLAIN = [(n, 20, False) for n in range(INVOICES)] + [(INVOICES, 1, False), (INVOICES, 20, False), (0, 3, True)]


def test_payments_of_a_chosen_coin_are_a_group_like_others(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sums of an invoice whose payer chose are no stored numbers with a bound."""

    def chosen(amount: str, slug: str) -> dict[str, Any]:
        offer = {"coin": slug, "network": "ethereum"}
        made = shop.post("/v1/invoices", {"fiatAmount": amount, "fiatCurrency": "USD", "accept": [offer]}).json
        address = shop.stack.call("POST", f"/v1/pay/{made['id']}/choice", json=offer).json["address"]
        return {**made, "address": address}

    monkeypatch.setattr(shop, "invoice", chosen)
    run = Run(shop, "usdt", PLAIN, True)
    run.detect(range(INVOICES))
    assert {run.store.get(Deposit, id=member.id).status for member in run.members[:INVOICES]} == {"pending"}  # type: ignore[union-attr]


def test_a_group_is_one_transaction(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five plain payments; the sixth is from the grey list, and the second of its invoice: both of that invoice go alone."""
    run = Run(shop, "usdt", PLAIN, True)
    commits: list[int] = []
    store = services().store
    commit = store.commit

    def counted(changes: Any) -> None:
        commits.append(len(changes))
        commit(changes)

    monkeypatch.setattr(store, "commit", counted)
    run.detect(range(PAYMENTS))
    assert len(commits) == 3
    commits.clear()
    run.confirm(range(PAYMENTS))
    assert len(commits) == 3
    balance = store.get(Balance, tenant=run.tenant, asset=run.coin.asset)
    assert balance is not None and balance.emitted == 2, "one for the group, one for the payment that went alone and is not held"
    assert len(list(store.every(JournalEntry))) >= PAYMENTS
    monkeypatch.undo()
    shop.turn()
    told = [json.loads(event.body)["data"] for event in store.every(EventRecord) if event.name == "balance.updated"]
    assert {one["pending"] for one in told} <= {"0", "3", "20", "23"} and len(told) == 2


def test_a_whole_group_fits_into_a_transaction(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each payment for an invoice of its own, which it completes; and with all the conditions that a native coin rests on."""
    monkeypatch.setattr(f"{__name__}.INVOICES", MOST)
    run = Run(shop, "usdt", [(n, 20, False) for n in range(MOST)], True)
    sent: list[Any] = []
    store, commit = services().store, services().store.commit
    monkeypatch.setattr(store, "commit", lambda changes: [sent.append(changes), commit(changes)])
    run.detect(range(MOST))
    run.confirm(range(MOST))
    monkeypatch.undo()
    assert [len(changes) for changes in sent] == [4 * MOST + 3, 6 * MOST + 4]
    assert 5 * MOST + 4 + MOST < MOST_ITEMS, "an `Absent` more for each native payment"
    assert shop.available("usdt") == str(20 * MOST)


def test_dying_before_and_behind_the_commit_of_a_group(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(shop, "usdt", PLAIN, True)
    store = services().store
    commit = store.commit
    for step in (run.detect, run.confirm):
        for behind in (False, True):

            def dies(changes: Any, behind: bool = behind) -> None:
                if behind:
                    commit(changes)
                raise Unavailable("dead")

            monkeypatch.setattr(store, "commit", dies)
            with pytest.raises(Unavailable):
                step(range(PAYMENTS))
            monkeypatch.undo()
        step(range(PAYMENTS))
        step(range(PAYMENTS))
    assert audit(store) == []
    assert run.end()["balance"] == (81 * 10**6, 3 * 10**6, 0, "0")


def test_a_reorganisation_stops_a_group(shop: Shop) -> None:
    run = Run(shop, "usdt", PLAIN, True)
    run.detect(range(PAYMENTS))
    drop_list(services().store, run.network.id, run.block.hash, run.epoch, run.epoch + 1)
    with pytest.raises(Conflict):
        run.confirm(range(PAYMENTS))
    assert services().store.get(Balance, tenant=run.tenant, asset=run.coin.asset) is None
    for n in range(PAYMENTS):
        run.one("orphan", n)
    with pytest.raises(Conflict):
        run.detect(range(PAYMENTS))
    assert shop.balance("usdt")["pending"] == "0"


def test_groups_keep_the_turns_of_addresses() -> None:
    def member(tenant: str, address: str, n: int, contract: str | None = None) -> Member:
        watched = Watched("test", "evm", address, "user", ("ethereum",), tenant, "addr", None)  # type: ignore[arg-type]
        return Member(Transfer(f"{n}", "native", contract, "s", address, 1), f"{n}", watched)

    crowd = [member("a", "crowded", n) for n in range(3)]
    others = [member("a", f"other{n}", 10 + n) for n in range(MOST)]
    stranger, token = member("b", "theirs", 50), member("a", "other0", 51, "0xc")
    groups = grouped([crowd[0], *others, stranger, token, *crowd[1:]])
    assert groups == [[crowd[0], *others[: MOST - 1]], others[MOST - 1 :], [stranger], [token], [crowd[1]], [crowd[2]]]
    parts = {each.id: n % 2 for n, each in enumerate(others)}
    assert grouped(others, parts) == [others[::2], others[1::2]]


def _two_coins(shop: Shop, patch: pytest.MonkeyPatch) -> None:
    """A block with a payment in each of two coins: the sandbox mines one in a block, and the node tells of a second."""
    address, other = shop.invoice("20", "usdt")["address"], shop.invoice("20", "usdc")["address"]
    shop.pay(address, "20", "usdt")
    contract, node = shop.coin("usdc").contract, bent_node(shop, patch)
    assert contract is not None
    (block,) = node._real.blocks(node._real.tip(), node._real.tip(), {})
    also = Transfer("0x" + "aa" * 32, "log:7", contract.lower(), "0x" + "0c" * 20, other.lower(), 20 * 10**6)
    with_also(node, [also], block.hash)


def _poll(shop: Shop, failures: str = "raise") -> None:
    shop.stack.drain(only=(f"poll_{shop.network}",), rounds=1, failures=failures)  # type: ignore[arg-type]


def _meeting(patch: pytest.MonkeyPatch, kind: type[Any]) -> list[str]:
    """Let each commit with a record of `kind` wait for another one, which never comes where they follow each other."""
    store, barrier, names = services().store, Barrier(2, timeout=20), list[str]()
    commit = store.commit

    def meets(changes: Any) -> None:
        if any(isinstance(getattr(change, "record", None), kind) for change in changes):
            barrier.wait()
            names.append(current_thread().name)
        commit(changes)

    patch.setattr(store, "commit", meets)
    return names


def test_coins_are_recorded_and_credited_side_by_side(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    _two_coins(shop, monkeypatch)
    with monkeypatch.context() as patch:
        seen = _meeting(patch, Deposit)
        _poll(shop)
    assert len(set(seen)) == 2 and shop.balance("usdt")["pending"] == shop.balance("usdc")["pending"] == "20"
    shop.mine()
    with monkeypatch.context() as patch:
        credited = _meeting(patch, Balance)
        _poll(shop)
    assert len(set(credited)) == 2 and shop.available("usdt") == shop.available("usdc") == "20"


def test_one_that_fails_leaves_the_block_to_the_next_poll(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the other thread has stored is met again."""
    _two_coins(shop, monkeypatch)
    store, asset = services().store, shop.coin("usdt").asset
    stood, commit = store.get(Cursor, network=shop.realm_network().id), store.commit

    def fails(changes: Any) -> None:
        if any(getattr(getattr(change, "record", None), "asset", None) == asset for change in changes):
            raise Unavailable("throttled")
        commit(changes)

    with monkeypatch.context() as patch:
        patch.setattr(store, "commit", fails)
        _poll(shop, "count")
    after = store.get(Cursor, network=shop.realm_network().id)
    assert stood is not None and after is not None and after.number == stood.number
    assert shop.balance("usdt")["pending"] == "0"
    _poll(shop)
    shop.mine()
    _poll(shop)
    assert shop.available("usdt") == shop.available("usdc") == "20"
    assert len([d for d in store.every(Deposit) if d.tenant is not None]) == 2
