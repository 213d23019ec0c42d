"""Groups of payments: what is a transaction, what stops it, and what goes on side by side."""

from __future__ import annotations

import json
from collections.abc import Iterator
from threading import Barrier, current_thread
from typing import Any

import pytest

from chalicelib.domain.addresses.addresses import Watched
from chalicelib.domain.chain import Cursor, Transfer
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ledger import Balance, JournalEntry
from chalicelib.domain.webhooks.endpoints import EventRecord
from chalicelib.usecases.deposits.groups import MOST, Member, grouped
from chalicelib.usecases.ports.changes import MOST_ITEMS, Conflict
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.scanning.block_lists import drop_list
from chalicelib.wiring import services
from tests.contract.deposits import group_runs
from tests.contract.deposits.group_runs import INVOICES, PAYMENTS, Run, opened_shop
from tests.support.shop import Shop, bent_node, with_also
from tests.support.stack import Stack


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    yield from opened_shop(stack)


PLAIN = [*((n, 20, False) for n in range(3)), (INVOICES, 1, False), (INVOICES, 20, False), (0, 3, True)]


def test_payments_of_a_chosen_coin_are_a_group_like_others(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sums of an invoice whose payer chose are no stored numbers with a bound."""

    def chosen(amount: str, slug: str) -> dict[str, Any]:
        offer = {"coin": slug, "network": "ethereum"}
        made = shop.post("/v1/invoices", {"fiatAmount": amount, "fiatCurrency": "USD", "accept": [offer]}).json
        address = shop.stack.call("POST", f"/v1/pay/{made['id']}/choice", json=offer).json["address"]
        return {**made, "address": address}

    monkeypatch.setattr(shop, "invoice", chosen)
    run = Run(shop, "usdt", PLAIN, True)
    run.detect(range(3))
    assert {run.store.get(Deposit, id=member.id).status for member in run.members[:3]} == {"pending"}  # type: ignore[union-attr]


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
    ours = sorted(member.id for member in run.members)
    posted = [entry.ref.get("deposit") for entry in store.every(JournalEntry)]
    assert sorted(key for key in posted if key in ours) == ours, "each has an entry of its own"
    monkeypatch.undo()
    shop.turn()
    told = [json.loads(event.body)["data"] for event in store.every(EventRecord) if event.name == "balance.updated"]
    assert {one["pending"] for one in told} <= {"0", "3", "20", "23"} and len(told) == 2


def test_a_whole_group_fits_into_a_transaction(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each payment for an invoice of its own, which it completes; and with all the conditions that a native coin rests on."""
    monkeypatch.setattr(group_runs, "INVOICES", MOST)
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
