"""A crowded block is shared out: whatever becomes of the messages, each payment is recorded and credited once, and none is left.

The chain is `tests.support.fake_coins`; bounds are small, so that eight payments are a crowd.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from threading import Event
from typing import Any

import pytest

from chalicelib.domain.chain import Cursor
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import AssetId, TenantId
from chalicelib.domain.kill_switch import PaymentSwitch
from chalicelib.domain.ledger import Balance, JournalEntry
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.deposits import groups
from chalicelib.usecases.deposits.groups import DepositGroups
from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.scanning import block_lists, confirming, recording, sharing
from chalicelib.usecases.scanning.sharing import Share
from chalicelib.wiring import services
from chalicelib.workers import record
from tests.support.bundles import COIN, CONFIRMATIONS, NETWORK, Shop

CROWD = 8


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "FROM", 4)
    monkeypatch.setattr(sharing, "SHARE", 2)
    monkeypatch.setattr(groups, "MOST", 2)
    monkeypatch.setattr(confirming, "MOST_TOGETHER", 2)
    monkeypatch.setattr(recording, "_FEW", 1)
    monkeypatch.setattr(confirming, "CONFIRM_AT_ONCE", 3)


class Crowd:
    """A shop that eight pay in one block, and the messages of its polls."""

    def __init__(self, shop: Shop, patch: pytest.MonkeyPatch) -> None:
        self.shop, self.sent = shop, list[dict[str, str]]()
        made = [shop.post("/v1/invoices", currency="ltc", amount="1", network="litecoin") for _ in range(CROWD)]
        self.addresses = [invoice["address"] for invoice in made]
        for address in self.addresses:
            shop.chain.pay(address, COIN)
        shop.chain.mine()
        self.before = float(shop.available())
        self.on_message: Callable[[dict[str, str]], None] = lambda _: None
        patch.setattr(services().queues, "record", self._asked)

    def _asked(self, share: dict[str, str]) -> None:
        self.sent.append(share)
        self.on_message(share)

    def poll(self) -> Cursor:
        with in_realm("live"):
            return services().scanner(services().catalogue("live").networks["litecoin"]).poll(lambda: True)

    def deposits(self) -> list[Deposit]:
        return [deposit for deposit in services().store.every(Deposit) if deposit.address in self.addresses]

    def recorded(self) -> bool:
        found = self.deposits()
        return len(found) == CROWD and {deposit.status for deposit in found} == {"pending"}

    def credited(self) -> bool:
        posted = [entry.ref["deposit"] for entry in services().store.every(JournalEntry) if entry.kind == "deposit_credited"]
        ours = sorted(deposit.id for deposit in self.deposits())
        return sorted(id_ for id_ in posted if id_ in ours) == ours

    def confirm(self) -> None:
        """All is deep enough, and polled."""
        self.shop.chain.mine(CONFIRMATIONS)
        self.poll()
        assert self.credited() and float(self.shop.available()) == pytest.approx(self.before + CROWD)


def handle(share: dict[str, str]) -> None:
    record.handle(json.dumps(share))


@pytest.fixture
def crowd(begin: Callable[[], Shop], monkeypatch: pytest.MonkeyPatch) -> Crowd:
    return Crowd(begin(), monkeypatch)


def test_every_message_is_lost(crowd: Crowd) -> None:
    assert crowd.poll().number == crowd.shop.chain.tip() and crowd.recorded()
    assert [len(share["txids"].split(",")) for share in crowd.sent] == [2, 2, 2], "the poll begins with the first share"
    crowd.sent.clear()
    crowd.confirm()
    assert [len(share["deposits"].split(",")) for share in crowd.sent] == [CROWD], "a merchant's coin is one function's"
    crowd.shop.whole()


def test_every_message_is_handled_at_once(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    """The poll then finds all but its own share in the store."""
    crowd.on_message = handle
    asked: list[int] = []
    real = services().deposits("live").__class__.detect_together

    def counted(self: Any, *args: Any, **named: Any) -> Any:
        asked.append(len(args[-1]))
        return real(self, *args, **named)

    monkeypatch.setattr(services().deposits("live").__class__, "detect_together", counted)
    crowd.poll()
    assert crowd.recorded() and asked == [2, 2, 2, 2], "three by the messages, and the first by the poll"
    crowd.confirm()
    crowd.shop.whole()


def reads_of(patch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each deposit is read from here on."""
    store, reads = services().store, Counter[str]()
    get_many = store.get_many

    def counted(keys: Any) -> Any:
        reads.update(key["id"] for kind, key in keys if kind is Deposit)
        return get_many(keys)

    patch.setattr(store, "get_many", counted)
    return reads


def test_deposits_are_read_once_where_nobody_else_was_asked(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before they are proven. Those that others were asked for are read again: by now they may be stored."""
    with monkeypatch.context() as patch:
        reads = reads_of(patch)
        crowd.poll()
    assert sorted(reads.values()) == [1] * 2 + [2] * 6 and crowd.recorded()
    for deposit in crowd.deposits():
        crowd.shop.chain.pay(deposit.address, COIN)
    crowd.shop.chain.mine()
    with monkeypatch.context() as patch:
        patch.setattr(sharing, "FROM", 100)
        reads = reads_of(patch)
        crowd.poll()
    assert sorted(reads.values()) == [1] * CROWD


def test_another_worker_records_what_was_just_read_as_new(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit's condition refuses the poll's group, and nothing is recorded twice."""
    store, refused = services().store, list[int]()
    commit = store.commit
    cursor = store.get(Cursor, network=NETWORK)
    assert cursor is not None

    def met(changes: Any) -> None:
        saved = [change.record for change in changes if isinstance(change, Save) and type(change.record) is Deposit]
        if saved and not refused:
            refused.append(len(saved))
            handle(Share(NETWORK, *saved[0].block, cursor.epoch, tuple(deposit.txid for deposit in saved)).body())
            assert len(crowd.deposits()) == 2
            with pytest.raises(Conflict):
                commit(changes)
        commit(changes)

    with monkeypatch.context() as patch:
        patch.setattr(store, "commit", met)
        crowd.poll()
    assert refused == [2] and crowd.recorded()
    crowd.confirm()
    crowd.shop.whole()


def test_groups_of_a_crowd_are_whole(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    """Obligations are in the order of their ids, those of one part of the block's list far apart."""
    monkeypatch.setattr(block_lists, "MOST", 2)
    crowd.poll()
    sizes: list[int] = []
    real = DepositGroups.confirm

    def counted(self: DepositGroups, network: Any, keys: Any, *rest: Any) -> Any:
        sizes.append(len(keys))
        return real(self, network, keys, *rest)

    monkeypatch.setattr(DepositGroups, "confirm", counted)
    monkeypatch.setattr(confirming, "CONFIRM_AT_ONCE", 6)
    crowd.confirm()
    assert sizes == [2, 2, 2, 2]


def test_a_group_is_prepared_while_the_one_before_it_is_committed(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits wait here for that; and somebody else credits one of each group that was prepared, before it is committed."""
    crowd.poll()
    store, network = services().store, services().catalogue("live").networks["litecoin"]
    commit, prepare, begun = store.commit, DepositGroups.prepare, Event()
    spoilt: list[str] = []

    def prepared(self: DepositGroups, net: Any, keys: Any, *at: Any, ahead: bool = True) -> Any:
        found = prepare(self, net, keys, *at, ahead=ahead)
        if ahead:
            spoilt.append(keys[0])
            services().deposits("live").confirm(network, keys[0], *at)
            begun.set()
        return found

    def waits(changes: Any) -> None:
        together = sum(isinstance(change, Save) and type(change.record) is Deposit for change in changes) > 1
        assert not together or begun.wait(timeout=10)
        commit(changes)

    monkeypatch.setattr(DepositGroups, "prepare", prepared)
    monkeypatch.setattr(store, "commit", waits)
    monkeypatch.setattr(confirming, "CONFIRM_AT_ONCE", 8)
    crowd.confirm()
    assert len(spoilt) == 3, "all groups but the first"
    crowd.shop.whole()


def test_a_poll_leaves_a_lane_to_whom_it_meets_there(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function credits all of it between the poll's reads and its commit: the poll does not try again, nor one by one."""
    crowd.poll()
    crowd.sent.clear()
    store, tried = services().store, list[int]()
    commit = store.commit

    def met(changes: Any) -> None:
        if any(isinstance(change, Save) and type(change.record) is Balance for change in changes):
            tried.append(len(changes))
            if len(tried) == 1:
                handle(crowd.sent[0])
        commit(changes)

    monkeypatch.setattr(store, "commit", met)
    crowd.confirm()
    assert len(tried) == 5, "once by the poll, and four groups by the function"
    crowd.shop.whole()


def test_a_function_leaves_a_lane_after_some_tries(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody is always first at the balance: what is left is the next poll's."""
    crowd.poll()
    crowd.shop.chain.mine(CONFIRMATIONS)
    monkeypatch.setattr(confirming.Confirming, "confirm", lambda *_: None)
    crowd.poll()
    with pytest.MonkeyPatch.context() as patch:
        tried: list[object] = []
        patch.setattr(DepositGroups, "_confirmed", lambda *_: tried.append(_))
        handle(Share(NETWORK, deposits=tuple(deposit.id for deposit in crowd.deposits())).body())
        assert len(tried) == 3 and crowd.recorded()
    monkeypatch.undo()
    crowd.poll()
    assert crowd.credited()
    crowd.shop.whole()


def test_lanes_are_not_cut() -> None:
    def deposit(n: int, tenant: str | None, asset: str, part: int) -> Deposit:
        where = ("t", f"{n}", "s", "r", 1, 7, "0xb", 0, 0, "pending")
        return Deposit(f"d{n}", NETWORK, AssetId(asset), None if tenant is None else TenantId(tenant), *where, part=part)  # type: ignore[arg-type]

    crowd = [deposit(n, "a", "x", n % 2) for n in range(5)]
    other, operator = deposit(5, "a", "y", 0), [deposit(6, None, "x", 0), deposit(7, None, "x", 0)]
    lanes = sharing.lanes_of([*crowd, other, *operator])
    assert [[each.id for each in lane] for lane in lanes] == [["d5"], ["d6"], ["d7"], ["d0", "d2", "d4", "d1", "d3"]]
    assert list(sharing.whole_lanes(lanes)) == [["d5", "d6"], ["d7"], ["d0", "d2", "d4", "d1", "d3"]]


def test_messages_come_late_and_twice(crowd: Crowd) -> None:
    crowd.poll()
    early = list(crowd.sent)
    for share in early:
        handle(share)
    assert crowd.recorded()
    crowd.confirm()
    for share in crowd.sent:
        handle(share)
        handle(share)
    assert crowd.credited()
    crowd.shop.whole()


def test_a_message_of_a_block_that_fell_out(crowd: Crowd) -> None:
    """Its payments are on another branch by then, or on none."""
    crowd.poll()
    crowd.shop.chain.drop(1)
    crowd.shop.chain.forget()
    crowd.shop.chain.mine(2)
    crowd.poll()
    assert {deposit.status for deposit in crowd.deposits()} == {"orphaned"}
    for share in crowd.sent:
        handle(share)
    handle(Share(NETWORK, deposits=tuple(deposit.id for deposit in crowd.deposits())).body())
    assert {deposit.status for deposit in crowd.deposits()} == {"orphaned"} and not crowd.credited()
    crowd.shop.whole()


def test_a_message_waits_for_a_restore_and_for_a_network_that_is_off(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    crowd.poll()
    crowd.shop.chain.mine(CONFIRMATIONS)
    with monkeypatch.context() as patch:
        patch.setattr(confirming.Confirming, "confirm", lambda *_: None)
        crowd.poll()
    share = Share(NETWORK, deposits=tuple(deposit.id for deposit in crowd.deposits())).body()
    services().store.commit([Save(PaymentSwitch("live", put_back=1, version=1))])
    handle(share)
    assert crowd.recorded(), "nothing is credited during a restore"
    services().store.commit([Save(PaymentSwitch("live", version=2))])
    for status, credited in (("inactive", False), ("active", True)):
        asked = {"network": "litecoin", "status": status}
        assert crowd.shop.stack.call("PUT", "/v1/networks", crowd.shop.stack.keys["admin_live"], json=asked).status == 200
        handle(share)
        assert crowd.recorded() != credited
    assert crowd.credited()
    crowd.shop.whole()


def test_deposits_that_are_not_deep_enough_are_not_credited_by_a_message(crowd: Crowd) -> None:
    crowd.poll()
    handle(Share(NETWORK, deposits=tuple(deposit.id for deposit in crowd.deposits())).body())
    assert crowd.recorded()


def test_the_queue_is_away(crowd: Crowd) -> None:
    def down(_: dict[str, str]) -> None:
        raise Unavailable("no queue")

    crowd.on_message = down
    crowd.poll()
    assert crowd.recorded()
    crowd.confirm()
    crowd.shop.whole()


def test_other_versions_are_dropped_and_what_nobody_can_read_is_not(crowd: Crowd) -> None:
    record.handle(json.dumps({"version": "2", "network": NETWORK, "what": "else"}))
    block = {"version": "1", "network": NETWORK, "number": "1", "hash": "a", "epoch": "1"}
    for body in ({"network": NETWORK}, {**block, "number": "x"}, {**block, "txids": "a,b", "positions": "out:1"}):
        with pytest.raises(ValueError):
            record.handle(json.dumps(body))
    assert crowd.deposits() == []


def test_a_share_is_read_as_it_was_written() -> None:
    block = (NETWORK, 7, "0xa", 3)
    for share in (Share(*block, ("t1", "t1"), positions=("log:1", "log:2")), Share(NETWORK, deposits=("d1",), at=9)):
        assert Share.read(NETWORK, share.body()) == share
    whole = {key: value for key, value in Share(*block, ("t1",), positions=("log:1",)).body().items() if key != "positions"}
    assert Share.read(NETWORK, whole) == Share(*block, ("t1",)), "a version that knew no positions"


def test_a_message_is_far_below_what_a_queue_takes() -> None:
    longest = Share(
        NETWORK, 10**9, "0x" + "a" * 64, 10**6, ("0x" + "a" * 64,) * 60, positions=("trace:0x" + "a" * 40 + ":99999",) * 60
    )
    lane = Share(NETWORK, deposits=("tx_" + "a" * 26,) * (100 + confirming.MOST_ASKED), at=2**42)
    assert all(len(json.dumps(share.body())) < 64_000 for share in (longest, lane))
