"""What the scan must stand on every family's own node, written once: a reorganisation deeper than is followed, a range that is
looked at again, a backlog that is shared out. Whatever the chain's history is read as, each payment is credited once. A check has
each of the three on one family, `make sweep` on all.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ledger import Balance, JournalEntry
from chalicelib.domain.scanning.ranges import ScanRange
from chalicelib.domain.webhooks.endpoints import EventRecord
from chalicelib.usecases.ports.failures import Halted
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.scanning import backlog
from chalicelib.usecases.scanning import reorganisations as forks
from chalicelib.wiring import services
from infra.local.aws import LocalAws
from tests.nodes.grounds import Ground, ground_of
from tests.nodes.merchants import Merchant, open_shop

pytestmark = pytest.mark.nodes

BATCH = 5
SIZE = backlog.BATCHES * BATCH
FAMILIES = ("ethereum", "bitcoin", "litecoin", "tron")


def on(*checked: str) -> pytest.MarkDecorator:
    """On these in a check, on all in the sweep."""
    params = [pytest.param(slug, marks=[pytest.mark.sweep] * (slug not in checked)) for slug in FAMILIES]
    return pytest.mark.parametrize("ground", params, indirect=True)


@pytest.fixture(scope="module")
def ground(request: pytest.FixtureRequest) -> Iterator[Ground]:
    """One node for all tests of a family, with more blocks than a reorganisation takes."""
    made = ground_of(request.param)
    try:
        made.mine(made.network.reorg_depth + 20)
        yield made
    finally:
        made.stop()


@pytest.fixture
def merchant(ground: Ground, aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> Iterator[Merchant]:
    made = open_shop(aws, ground, monkeypatch)
    yield made
    assert audit(services().store) == []


def told(object_id: str) -> list[str]:
    found = [event for event in services().store.every(EventRecord) if event.object_id == object_id]
    return [event.name.split(".")[1] for event in sorted(found, key=lambda event: event.sequence)]


def refuse(merchant: Merchant) -> None:
    """A poll that fails because crediting has stopped."""
    with pytest.raises(ExceptionGroup) as failed:
        merchant.run()
    assert failed.group_contains(Halted)


# The sweep: test_deep_reorganisations.py has an EVM network and test_first_sight.py has Litecoin, and they stay.
@on("tron")
def test_deeper_than_is_followed(merchant: Merchant, caplog: pytest.LogCaptureFixture) -> None:
    """Crediting stops, loudly, until the operator takes it up again. Then what fell out goes; what came back is credited once."""
    ground, depth = merchant.ground, merchant.network.reorg_depth
    ground.mine(depth)
    made = merchant.bill(20)
    ground.pay(made["address"], merchant.units(20))
    ground.mine()
    merchant.confirm()
    assert merchant.invoice(made) == ("completed", merchant.shown(20))
    ground.reorganise(depth + 2)
    refuse(merchant)
    assert f"ALARM {merchant.network.id}: the chain changed deeper" in caplog.text
    halted = merchant.cursor()
    assert halted.halted is not None

    # Also once the payment is there again and deep enough, nothing moves.
    ground.pay_again(made["address"], merchant.units(20))
    ground.mine(merchant.network.confirmations)
    refuse(merchant)
    assert merchant.available() == merchant.shown(20)
    assert len(merchant.deposits(made["address"])) == 1

    services().scanner(merchant.network).resume()
    merchant.run()
    merchant.run()
    after = merchant.cursor()
    assert (after.halted, after.epoch > halted.epoch) == (None, True)
    assert merchant.invoice(made) == ("completed", merchant.shown(20))
    assert merchant.available() == merchant.shown(20)
    (credited,) = (d for d in merchant.deposits(made["address"]) if d.status == "confirmed")
    if merchant.network.family == "utxo":
        assert told(credited.id) == ["detected", "confirmed", "orphaned", "detected", "confirmed"]
    else:  # the payer has sent another transaction
        (gone,) = (d for d in merchant.deposits(made["address"]) if d is not credited and d.id != credited.id)
        assert (told(gone.id), told(credited.id)) == (["detected", "confirmed", "orphaned"], ["detected", "confirmed"])


# The sweep: every family's blocks take this same way, and Litecoin stays.
@on("litecoin")
def test_looked_at_again(merchant: Merchant, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator has a range scanned again, and sees how far that is. What was credited, and what waits, stays as it is."""
    monkeypatch.setattr(forks, "BATCH_BLOCKS", BATCH)
    ground = merchant.ground
    credited, waiting = merchant.bill(20), merchant.bill(30)
    first = merchant.cursor().number - SIZE
    for bill, tenths in ((credited, 20), (waiting, 30)):
        ground.pay(bill["address"], merchant.units(tenths))
        ground.mine()
        merchant.confirm() if bill is credited else merchant.run()
    last = merchant.cursor().number

    def books() -> tuple[list[str], ...]:
        return tuple(sorted(map(repr, services().store.every(kind))) for kind in (Deposit, EventRecord, JournalEntry, Balance))

    before = books()
    path = f"/v1/networks/{merchant.slug}/rescan"
    order = merchant.operator("POST", path, 201, json={"fromBlock": first, "toBlock": last})
    assert (order["status"], order["scannedTo"]) == ("pending", None)
    turns = iter([True, True, False])
    services().rescanner(merchant.network).work(lambda: next(turns))
    shown = merchant.operator("GET", f"{path}/{order['id']}", 200)
    assert (shown["status"], shown["scannedTo"]) == ("running", first + 2 * BATCH - 1)
    merchant.run()
    shown = merchant.operator("GET", f"{path}/{order['id']}", 200)
    assert (shown["status"], shown["scannedTo"]) == ("completed", last)
    assert books() == before
    merchant.confirm()
    assert (merchant.invoice(waiting)[0], merchant.available()) == ("completed", merchant.shown(50))


# The sweep: every family's blocks take this same way, and Ethereum stays.
@on("ethereum")
def test_a_backlog_with_a_payment_at_each_border(merchant: Merchant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that nobody read are shared out. Payments lie in the first and the last one of a read, of a range, of what is
    shared out, and right behind each."""
    monkeypatch.setattr(forks, "BATCH_BLOCKS", BATCH)
    ground, depth = merchant.ground, merchant.network.reorg_depth
    merchant.run()
    start, ranges = merchant.cursor().number, backlog.FAR + 2
    shared = ranges * SIZE
    made = merchant.bill(200)
    borders = (1, BATCH, BATCH + 1, SIZE, SIZE + 1, 2 * SIZE, shared, shared + 1, shared + depth // 2)
    for border in borders:
        ground.pay_in(start + border, made["address"], merchant.units(11))
    ground.mine(start + shared + depth - ground.height())

    merchant.stack.drain(only=(f"poll_{merchant.slug}",), rounds=1)
    out = sorted(services().store.every(ScanRange), key=lambda each: each.first)
    assert [(each.first, each.last) for each in out] == [(start + 1 + n * SIZE, start + (n + 1) * SIZE) for n in range(ranges)]
    assert merchant.cursor().number == start
    merchant.run("scan_range")
    assert {d.block_number for d in merchant.deposits(made["address"])} == {start + border for border in borders}
    merchant.confirm()
    assert merchant.available() == merchant.shown(11 * len(borders))
    cursor = merchant.cursor()
    assert (cursor.number, cursor.ranges_to, list(services().store.every(ScanRange))) == (ground.height(), None, [])
    assert sorted(map(int, cursor.recent)) == list(range(cursor.number - depth, cursor.number + 1))
    assert services().reader(merchant.network).block_hash(cursor.number) == cursor.hash
