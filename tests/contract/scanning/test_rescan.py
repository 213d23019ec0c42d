"""Looking again at blocks that were scanned before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.chain import BlockDeposits, Cursor
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.scanning.rescans import MOST_BLOCKS, Rescan, rescan_work
from chalicelib.usecases.base.retries import Failures
from chalicelib.usecases.ports.changes import Close, Delete, Open, Save
from chalicelib.usecases.scanning import reorganisations as forks
from chalicelib.usecases.scanning import rescans as rescan
from chalicelib.wiring import services
from tests.support.shop import CONFIRMATIONS, Shop, bent_node, open_shop

LATE_TOKEN = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"  # EIP-55's own example


@pytest.fixture
def shop(stack) -> Iterator[Shop]:
    with open_shop(stack) as found:
        yield found


def order(shop: Shop, first: Any, last: Any, network: str = "ethereum", key: str = "admin_test", **headers: str) -> Any:
    body = {"fromBlock": first, "toBlock": last}
    return shop.stack.call("POST", f"/v1/networks/{network}/rescan", shop.stack.keys[key], json=body, headers=headers)


def shown(shop: Shop, rescan_id: str, network: str = "ethereum") -> Any:
    return shop.stack.call("GET", f"/v1/networks/{network}/rescan/{rescan_id}", shop.stack.keys["admin_test"])


def pay_unknown_token(shop: Shop, address: str, units: int) -> int:
    """A payment of a token that is no coin of ours yet; the block."""
    return shop.chain().deposit(address, LATE_TOKEN, units).number


def create_coin(shop: Shop) -> None:
    services().store.commit([Save(Coin(shop.realm_network().id, "late", "LATE", "Late Token", 6, LATE_TOKEN))])
    services().store.forget_catalogue()


def cursor(shop: Shop) -> Cursor:
    found = services().store.get(Cursor, network=shop.realm_network().id)
    assert found is not None
    return found


def test_a_coin_that_is_created_later_finds_what_was_paid_before(shop):
    invoice = shop.invoice()
    paid_in = pay_unknown_token(shop, invoice["address"], 5_000_000)
    shop.mine(120)
    shop.turn()
    create_coin(shop)
    shop.turn()
    assert shop.available("late") == "0"
    asked = order(shop, 0, cursor(shop).number)
    assert asked.status == 201
    assert asked.json == {
        "id": asked.json["id"], "status": "pending", "fromBlock": 0, "toBlock": cursor(shop).number, "scannedTo": None,
        "createdAt": asked.json["createdAt"],
    }  # fmt: skip
    assert shown(shop, asked.json["id"]).json == asked.json
    shop.turn()
    done = shown(shop, asked.json["id"]).json
    assert (done["status"], done["scannedTo"]) == ("completed", done["toBlock"])
    assert shop.available("late") == "5"
    (deposit,) = [d for d in services().store.every(Deposit) if d.asset.endswith(":late")]
    assert (deposit.block_number, deposit.status) == (paid_in, "confirmed")
    assert not [w for w in services().store.every_work() if w.kind == "rescan"]


def test_what_was_credited_once_is_never_credited_again(shop):
    invoice = shop.invoice("1")
    shop.pay(invoice["address"], "1")
    shop.mine()
    shop.turn()
    pending = shop.invoice("2")
    shop.pay(pending["address"], "2")
    shop.turn()
    before = (shop.available(), shop.balance()["pending"], shop.told(invoice["id"]), shop.told(pending["id"]))
    for _ in range(2):
        assert order(shop, 0, cursor(shop).number).status == 201
    shop.turn()
    assert (shop.available(), shop.balance()["pending"], shop.told(invoice["id"]), shop.told(pending["id"])) == before
    assert {r.status for r in services().store.every(Rescan)} == {"completed"}


def test_what_the_rescan_finds_falls_out_with_its_block(shop):
    invoice = shop.invoice()
    pay_unknown_token(shop, invoice["address"], 5_000_000)
    shop.turn()
    create_coin(shop)
    order(shop, 0, cursor(shop).number)
    shop.turn()
    assert shop.balance("late")["pending"] == "5"
    (deposit,) = [d for d in services().store.every(Deposit) if d.asset.endswith(":late")]
    listed = services().store.get(BlockDeposits, network=deposit.network, hash=deposit.block_hash)
    assert listed is not None and deposit.id in listed.deposits
    shop.reorg(1)
    shop.turn()
    assert shop.balance("late") == {"available": "0", "frozen": "0", "pending": "0"}


def test_beside_a_reorganisation_the_rescan_waits_for_the_scan(shop, monkeypatch):
    """The chain changes while the rescan looks: nothing of the old branch is recorded under the new one."""
    invoice = shop.invoice()
    pay_unknown_token(shop, invoice["address"], 5_000_000)
    shop.mine(3)
    shop.turn()
    create_coin(shop)
    asked = order(shop, cursor(shop).number - 5, cursor(shop).number).json
    wired = services()
    rescanner = wired.rescanner(shop.realm_network())
    real = rescanner._recorder.record

    def fork_first(blocks: Any, epoch: int, *limits: Any, **more: Any) -> Any:
        monkeypatch.setattr(rescanner._recorder, "record", real)
        shop.reorg(4)
        wired.scanner(shop.realm_network()).poll(lambda: True)
        return real(blocks, epoch, *limits, **more)

    monkeypatch.setattr(rescanner._recorder, "record", fork_first)
    rescanner.work(lambda: True)
    assert not [d for d in services().store.every(Deposit) if d.asset.endswith(":late")]
    shop.turn()
    assert shown(shop, asked["id"]).json["status"] == "completed"
    assert shop.balance("late")["pending"] == "0"


def test_a_node_that_has_other_blocks_than_were_scanned_is_not_believed(shop, monkeypatch):
    shop.mine(3)
    shop.turn()
    asked = order(shop, cursor(shop).number - 2, cursor(shop).number).json
    shop.chain().reorganise(2, False)
    rescanner = services().rescanner(shop.realm_network())
    for _ in range(2):
        with pytest.raises(Failures, match="rescans"):
            rescanner.work(lambda: True)
    assert shown(shop, asked["id"]).json["status"] == "pending"
    node = bent_node(shop, monkeypatch)
    node.bend(blocks=lambda real, *_: real[:-1] if len(real) > 1 else real)
    lying = services().rescanner(shop.realm_network())
    with pytest.raises(Failures, match="rescans"):
        lying.work(lambda: True)
    node.mend()
    shop.turn()
    assert shown(shop, asked["id"]).json["status"] == "completed"


def test_it_goes_on_where_it_stopped(shop, monkeypatch):
    monkeypatch.setattr(forks, "BATCH_BLOCKS", 4)
    shop.mine(30)
    shop.turn()
    asked = order(shop, 2, 20).json
    seconds = iter((True, True, False))
    services().rescanner(shop.realm_network()).work(lambda: next(seconds))
    half = shown(shop, asked["id"]).json
    assert (half["status"], half["scannedTo"]) == ("running", 9)
    shop.turn()
    assert shown(shop, asked["id"]).json["scannedTo"] == 20


@pytest.mark.parametrize("record", ["there", "lost"])
def test_those_that_can_never_go_on_hold_up_no_later_one(shop, monkeypatch, record):
    """As many as one poll looks at, of blocks that the node has no longer; then one that can be done."""
    shop.mine(30)
    shop.turn()
    node = bent_node(shop, monkeypatch)
    node.bend(blocks=lambda real, first, *_: [] if first < 10 else real)
    rescans = rescan.Rescans(services().store, services().clock)
    stuck = [rescans.order(shop.realm_network(), 1, 2).id for _ in range(rescan.OPEN_AT_ONCE)]
    if record == "lost":
        for id_ in stuck:
            services().store.commit([Delete(Rescan, {"network": shop.realm_network().id, "id": id_})])
    shop.wait(1)
    with pytest.raises(BusinessRule, match="20 rescans of ethereum are not finished yet"):
        rescans.order(shop.realm_network(), 12, 14)
    # What the service itself has looked at again (gaps in the notes, what was left over) is ordered all the same.
    ours = Rescan("rsc_late", shop.realm_network().id, 12, 14, 12, services().clock.now_ms())
    services().store.commit([Save(ours), Open(rescan_work(ours))])
    late = ours.id
    for _ in range(2):
        shop.wait(60)
        with pytest.raises(Failures):
            services().rescanner(shop.realm_network()).work(lambda: True)
    assert shown(shop, late).json["status"] == "completed"
    assert len(services().store.open_work("rescan", shop.realm_network().id)) == rescan.OPEN_AT_ONCE
    if record == "there":
        node.mend()
        shop.wait(60)
        shop.turn()
        assert {shown(shop, id_).json["status"] for id_ in stuck} == {"completed"}
    for work in services().store.open_work("rescan", shop.realm_network().id):
        services().store.commit([Close(work)])


def test_a_long_one_takes_turns_with_those_behind_it(shop, monkeypatch):
    monkeypatch.setattr(forks, "BATCH_BLOCKS", 4)
    shop.mine(40)
    shop.turn()
    long = order(shop, 2, 30).json["id"]
    shop.wait(1)
    short = order(shop, 2, 4).json["id"]
    for _ in range(2):
        shop.wait(60)
        seconds = iter((True, False, False))  # one part, then the time is over
        services().rescanner(shop.realm_network()).work(lambda seconds=seconds: next(seconds))
    assert (shown(shop, long).json["scannedTo"], shown(shop, short).json["status"]) == (5, "completed")
    shop.turn()
    assert shown(shop, long).json["status"] == "completed"


def test_what_can_not_be_scanned_again(shop):
    tip = cursor(shop).number
    for first, last, field in ((5, 4, "toBlock"), (0, tip + 1, "toBlock"), (0, MOST_BLOCKS, "toBlock")):
        refused = order(shop, first, last)
        assert (refused.status, refused.json["error"]["code"]) == (400, "VALIDATION_ERROR")
        assert refused.json["error"]["details"]["field"] == field
    wrong = order(shop, -1, "7")
    assert {p["field"] for p in wrong.json["error"]["details"]} == {"fromBlock", "toBlock"}
    assert order(shop, 0, 1, network="nowhere").json["error"]["code"] == "INVALID_PARAMETER"
    assert order(shop, 0, 0, key="admin_live").json["error"]["details"]["field"] == "network"
    assert order(shop, 0, 0, key="client_test").status == 403
    for _ in range(rescan.OPEN_AT_ONCE):
        assert order(shop, 0, 0).status == 201
    assert order(shop, 0, 0).json["error"]["code"] == "VALIDATION_ERROR"
    assert shown(shop, "rsc_nobodys").status == 404
    assert order(shop, 0, 0, network="bsc").status == 201
    shop.turn()


def test_asking_twice_with_one_key_asks_once(shop):
    first = order(shop, 0, 0, **{"Idempotency-Key": "r"})
    second = order(shop, 0, 0, **{"Idempotency-Key": "r"})
    assert (first.status, second.body) == (201, first.body)
    assert len(list(services().store.every(Rescan))) == 1
    assert shown(shop, first.json["id"], "bsc").status == 404
    shop.turn()


def test_confirmations_count_from_the_block_itself(shop):
    invoice = shop.invoice()
    pay_unknown_token(shop, invoice["address"], 1)
    shop.mine(CONFIRMATIONS - 2)
    shop.turn()
    create_coin(shop)
    order(shop, 0, cursor(shop).number)
    shop.turn()
    assert shop.available("late") == "0"
    shop.mine(1)
    shop.turn()
    assert shop.available("late") == "0.000001"


def test_a_rescan_of_blocks_that_are_read_two_at_a_time(shop, monkeypatch):
    """A reader gives no more at once than it can hold: the rescan goes on behind that, in the same poll."""
    invoice = shop.invoice()
    pay_unknown_token(shop, invoice["address"], 5_000_000)
    shop.mine(7)
    pay_unknown_token(shop, invoice["address"], 6_000_000)
    shop.mine(CONFIRMATIONS)
    shop.turn()
    create_coin(shop)
    asked = order(shop, 0, cursor(shop).number).json["id"]
    bent_node(shop, monkeypatch).bend(blocks=lambda real, *_: real[:2])
    shop.turn()
    assert shown(shop, asked).json["status"] == "completed"
    assert shop.available("late") == "11"
