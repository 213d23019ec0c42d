"""A backlog is cut into ranges that many scan at once; the cursor passes them in order, and each payment is credited once.

The chain is a simulated one whose payments are where the test puts them: at the borders of ranges and of reads. Time stands
still but where a test moves it, so that what nobody gets on with is what a test let be lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.chains.sandbox.payer import SandboxPayer
from chalicelib.domain.chain import Block, Cursor, Sent, Transfer
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.scanning.ranges import ScanRange
from chalicelib.domain.transactions.sightings import Sighting, nonce_subject
from chalicelib.usecases.ports.changes import Conflict
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.scanning import backlog as module
from chalicelib.wiring import services
from chalicelib.workers import poll, scan_range
from tests.support.cuts import Died
from tests.support.met import RIVAL
from tests.support.shop import ETHER, Node, Shop, bent_node
from tests.support.stack import Stack

BATCH = 5
SIZE = module.BATCHES * BATCH
MANY, BLOCKS = 3_000, 290
OUT = 6


class Behind:
    """A shop whose poll stood still for some time."""

    def __init__(self, shop: Shop, node: Node) -> None:
        self.shop, self.node = shop, node
        self.start = self.cursor().number
        self.places: dict[int, Transfer] = {}
        node.bend(
            blocks=self._blocks,
            proven=lambda real, block, asked: [*real, *(t for t in asked if t == self.places.get(block.number))],
        )

    def _blocks(self, real: list[Block], *_: Any) -> list[Block]:
        return [replace(b, transfers=[*b.transfers, self.places[b.number]]) if b.number in self.places else b for b in real]

    def pay(self, address: str, *numbers: int) -> None:
        """One ether in each of these blocks, counted from where the poll stood."""
        for number in numbers:
            self.places[self.start + number] = Transfer(f"0x{number:064x}", "native", None, "", address.lower(), ETHER)

    def cursor(self) -> Cursor:
        found = services().store.get(Cursor, network=self.shop.realm_network().id)
        assert found is not None
        return found

    def ranges(self) -> list[ScanRange]:
        return sorted(services().store.every(ScanRange), key=lambda each: each.first)

    def fall(self, blocks: int = BLOCKS) -> None:
        self.shop.mine(blocks)

    def poll(self) -> None:
        """One poll, by the clock of the schedule."""
        self.shop.stack.drain(only=("poll_ethereum",), rounds=1)

    def messages(self) -> list[str]:
        return [json.loads(m.body)["range"] for m in self.shop.messages("scan_range")]

    def catch_up(self, *, order: Any = "normal") -> None:
        """Polls and messages, until nothing changes any more."""
        self.shop.stack.drain(only=("poll_ethereum", "scan_range", "relay"), order=order, rounds=60)

    def work(self, name: str) -> None:
        scan_range.handle(json.dumps({"network": self.shop.realm_network().id, "range": name}))

    def check(self, paid: int) -> None:
        assert self.shop.available() == str(paid)
        assert {d.status for d in services().store.every(Deposit) if d.tenant is not None} == {"confirmed"}
        cursor = self.cursor()
        assert (cursor.number, cursor.ranges_to, self.ranges()) == (self.node._real.tip(), None, [])
        # It remembers as many blocks as a scan block by block does, each as the chain has it.
        depth = self.shop.realm_network().reorg_depth
        assert sorted(map(int, cursor.recent)) == list(range(cursor.number - depth, cursor.number + 1))
        assert all(self.node._real.block_hash(int(number)) == hash_ for number, hash_ in cursor.recent.items())
        assert cursor.block_time == self.node._real.blocks(cursor.number, cursor.number, {})[0].time
        assert [w for w in services().store.every_work() if w.kind == "range"] == []


@pytest.fixture
def behind(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Iterator[Behind]:
    monkeypatch.setattr("chalicelib.usecases.scanning.reorganisations.BATCH_BLOCKS", BATCH)
    monkeypatch.setattr(module, "MOST_OUT", OUT)
    shop = Shop(stack)
    shop.open()
    monkeypatch.setattr(services().wiring.scanning, "range_queue", lambda _: services().queues)
    yield Behind(shop, bent_node(shop, monkeypatch))
    assert audit(services().store) == []


def test_a_payment_at_every_border(behind: Behind, monkeypatch: pytest.MonkeyPatch) -> None:
    """3,000 blocks: the first and the last of a read, of a range, of what is cut at once, and behind the ranges."""
    monkeypatch.setattr("chalicelib.usecases.scanning.reorganisations.BATCH_BLOCKS", 50)
    most = 50 * module.BATCHES * module.CUT_AT_ONCE
    borders = (1, 50, 51, 200, 201, 400, 401, most, most + 1, 2_800, 2_801, MANY - 64, MANY - 63, MANY - 12)
    behind.fall(MANY)
    behind.pay(behind.shop.invoice("1")["address"], *borders)
    behind.catch_up()
    behind.check(len(borders))


@pytest.mark.parametrize("order", ["reversed", "twice"])
def test_messages_in_any_order_and_twice(behind: Behind, order: Any) -> None:
    borders = (1, SIZE, SIZE + 1, 3 * SIZE, BLOCKS - 20)
    behind.fall()
    behind.pay(behind.shop.invoice("1")["address"], *borders)
    behind.catch_up(order=order)
    behind.check(len(borders))


def test_the_cursor_passes_only_what_is_complete(behind: Behind) -> None:
    """Ranges in the middle are done first; nothing of them is credited, and the cursor stands before the first one."""
    behind.fall()
    behind.pay(behind.shop.invoice("1")["address"], 1, SIZE + 1, 2 * SIZE + 1)
    behind.poll()
    out = behind.ranges()
    assert len(out) == OUT
    assert (out[0].first, out[-1].last) == (behind.start + 1, behind.start + OUT * SIZE)
    assert behind.messages() == [each.name for each in out]
    behind.work(out[2].name)
    behind.work(out[1].name)
    behind.poll()
    assert (behind.cursor().number, behind.shop.balance()) == (behind.start, {"available": "0", "frozen": "0", "pending": "2"})
    behind.work(out[0].name)
    behind.poll()
    assert behind.cursor().number == behind.start + 3 * SIZE
    assert behind.shop.available() == "3"
    assert len(behind.ranges()) == OUT


def test_lost_messages_are_the_polls(behind: Behind, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody gets a message: a poll scans what stood still for a minute, the oldest first, as long as it has time."""

    def lost(*_: Any) -> None:
        raise Unavailable("the queue scans did not answer")

    monkeypatch.setattr(services().queues, "scan", lost)
    borders = (1, SIZE, SIZE + 1, 3 * SIZE)
    behind.fall()
    behind.pay(behind.shop.invoice("1")["address"], *borders)
    behind.poll()
    assert behind.cursor().number == behind.start
    behind.shop.wait(module.IDLE_MS // 1000)
    behind.poll()
    assert behind.cursor().number >= behind.start + OUT * SIZE
    assert behind.shop.available() == str(len(borders))


@pytest.mark.parametrize("when", ["recorded", "noted"])
def test_whoever_dies_in_a_range_is_followed_by_another(behind: Behind, when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the deposits are stored and before that is noted; or after some parts of the range."""
    behind.fall()
    behind.pay(behind.shop.invoice("1")["address"], 1, 2, BATCH, BATCH + 1)
    behind.poll()
    first = behind.ranges()[0]
    commit = services().store.commit

    def die(changes: Any) -> None:
        if any(isinstance(getattr(change, "record", None), ScanRange) for change in changes):
            if when == "noted":
                commit(changes)
            raise Died("in a range")
        commit(changes)

    monkeypatch.setattr(services().store, "commit", die)
    with pytest.raises(Died):
        behind.work(first.name)
    monkeypatch.setattr(services().store, "commit", commit)
    assert behind.ranges()[0].next_block == first.first + (BATCH if when == "noted" else 0)
    behind.work(first.name)
    behind.work(first.name)
    behind.poll()
    assert behind.shop.available() == "4"


def test_two_at_once_at_one_range(behind: Behind, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have read it; one notes the part, the other stops there."""
    behind.fall()
    behind.pay(behind.shop.invoice("1")["address"], 1)
    behind.poll()
    first = behind.ranges()[0]
    wired = services()
    slow = wired.scanner(behind.shop.realm_network()).backlog
    record = slow._recorder.record

    def overtaken(blocks: Any, epoch: int, *limits: Any) -> Any:
        monkeypatch.setattr(slow._recorder, "record", record)
        behind.work(first.name)
        return record(blocks, epoch, *limits)

    monkeypatch.setattr(slow._recorder, "record", overtaken)
    with pytest.raises(Conflict):
        slow.work(first.name, lambda: True)
    behind.poll()
    assert behind.shop.available() == "1"


def test_another_poll_passes_a_range_between_two_reads(behind: Behind, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its obligation was read, and its record is gone: somebody else was first, and this poll has nothing to do."""
    behind.fall()
    behind.pay(behind.shop.invoice("1")["address"], 1, SIZE, SIZE + 1)
    behind.poll()
    for name in behind.messages():
        behind.work(name)
    store = services().store
    real, raced = store.open_work, []

    def overtaken(kind: Any, *args: Any, **more: Any) -> Any:
        found = real(kind, *args, **more)
        if kind == "range" and found and not raced:
            raced.append(found)
            poll.run("ethereum")
        return found

    monkeypatch.setattr(store, "open_work", overtaken)
    poll.run("ethereum")
    assert raced
    behind.catch_up()
    behind.check(3)


def test_time_over_within_a_range_asks_for_the_rest(behind: Behind, monkeypatch: pytest.MonkeyPatch) -> None:
    behind.fall()
    behind.poll()
    first = behind.ranges()[0]
    monkeypatch.setattr(scan_range, "SECONDS", 0.0)
    before = len(behind.messages())
    behind.work(first.name)
    assert behind.messages()[before:] == [first.name]


def test_a_reorganisation_voids_what_was_cut(behind: Behind) -> None:
    """The block that the cursor stands on falls out: whatever was scanned ahead of it is scanned again on the new branch."""
    behind.fall()
    behind.pay(behind.shop.invoice("1")["address"], 1, SIZE + 1)
    behind.poll()
    out = behind.ranges()
    for each in out[:2]:
        behind.work(each.name)
    behind.poll()
    stood = behind.cursor()
    assert (stood.number, behind.shop.available()) == (behind.start + 2 * SIZE, "2")
    behind.work(out[3].name)
    # The second payment's block is another one on the new branch, and does not have it.
    behind.shop.chain().reorganise(BLOCKS - SIZE, False)
    del behind.places[behind.start + SIZE + 1]
    behind.poll()
    after = behind.cursor()
    assert (after.epoch, after.number) == (stood.epoch + 1, behind.start + SIZE)
    assert {each.epoch for each in behind.ranges()} == {after.epoch}
    assert behind.shop.available() == "1"
    behind.work(out[0].name)  # a message of before: there is no such range
    behind.catch_up()
    assert (behind.shop.available(), behind.ranges()) == ("1", [])


def test_a_range_of_another_chain_is_not_passed(behind: Behind) -> None:
    """A node that stood on a branch of its own while it was asked for the range: what it said does not link up."""
    behind.fall()
    behind.pay(behind.shop.invoice("1")["address"], 1)
    behind.poll()
    first = behind.ranges()[0]
    honest = behind.node._bent["blocks"]
    forged: dict[str, str] = {}

    def another(real: list[Block], *_: Any) -> list[Block]:
        for block in real:
            forged.setdefault(block.hash, f"0x{block.number:064x}")
        return [Block(b.number, forged[b.hash], forged.get(b.parent_hash, f"0x{b.number - 1:064x}"), b.time, []) for b in real]

    behind.node.bend(blocks=another)
    behind.work(first.name)
    behind.node.bend(blocks=honest)
    assert behind.ranges()[0].done
    behind.poll()
    assert behind.cursor().number == behind.start
    behind.catch_up()
    assert behind.shop.available() == "1"


def sighted(behind: Behind, wallet: str, nonce: int) -> list[str]:
    """The transactions that were noted with a nonce of a wallet of ours."""
    network = behind.shop.realm_network()
    subject = nonce_subject(services().rules.storage_form(network.slug, wallet), nonce)
    found = services().store.get(Sighting, network=network.id, subject=subject)
    return [] if found is None else [seen.txid for seen in found.seen]


def test_ranges_note_our_own_transactions_ahead_of_the_cursor(behind: Behind) -> None:
    behind.shop.credit("1")
    paid = behind.shop.withdraw("0.25")
    behind.shop.stack.drain(only=("relay", "payout"))
    order = behind.shop.order(paid)
    behind.fall()
    behind.poll()
    mined_in = services().reader(behind.shop.realm_network()).receipt(str(order.txid)).block_number
    (holder,) = [each for each in behind.ranges() if each.first <= mined_in <= each.last]
    assert behind.cursor().number < mined_in and sighted(behind, order.wallet, order.nonce) == []
    for _ in range(2):
        behind.work(holder.name)
        assert sighted(behind, order.wallet, order.nonce) == [order.txid], "once, whoever scans it"
    assert behind.cursor().number < mined_in
    behind.catch_up()
    assert behind.shop.withdrawal(paid)["status"] == "confirmed"


def test_what_a_range_meets_on_a_nonce_of_ours_settles_the_payment_that_lost_it(
    behind: Behind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No block takes the payment, and a block of the backlog has another transaction with its nonce, which the node counts: its
    money is given back."""
    behind.shop.credit("1")
    lost = behind.shop.withdraw("0.25")
    behind.shop.post(f"/v1/sandbox/withdrawals/{lost}", {"outcome": "stick"})
    behind.shop.stack.drain(only=("relay", "payout"))
    order = behind.shop.order(lost)
    behind.fall()
    wallet = services().rules.storage_form(behind.shop.network, order.wallet)
    rival = Sent((RIVAL,), (wallet,), (order.nonce,))
    met_in = behind.cursor().number + 2 * SIZE
    behind.node.bend(blocks=lambda real, *_: [replace(b, sent=rival) if b.number == met_in else b for b in real])
    behind.poll()
    assert any(each.first <= met_in <= each.last for each in behind.ranges())
    assert (behind.shop.withdrawal(lost)["status"], behind.shop.available()) == ("confirming", "0.75")
    behind.catch_up()
    assert sighted(behind, order.wallet, order.nonce) == [RIVAL]
    monkeypatch.setattr(SandboxPayer, "told_nonces", lambda *_: (order.nonce + 1,))
    behind.shop.turn()
    assert (behind.shop.withdrawal(lost)["status"], behind.shop.available()) == ("failed", "1")


def test_without_a_queue_the_poll_goes_on_by_itself(behind: Behind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services().wiring.scanning, "range_queue", lambda _: None)
    behind.fall()
    behind.pay(behind.shop.invoice("1")["address"], 1, BLOCKS - 20)
    behind.catch_up()
    behind.check(2)


def test_blocks_that_are_read_two_at_a_time(behind: Behind) -> None:
    """A reader gives no more at once than it can hold: ranges and polls go on behind that."""
    behind.node.bend(blocks=lambda real, *asked: behind._blocks(real)[:2])
    borders = (1, 2, 3, SIZE, SIZE + 1, 3 * SIZE, BLOCKS - 20)
    behind.fall()
    behind.pay(behind.shop.invoice("1")["address"], *borders)
    behind.catch_up()
    behind.check(len(borders))
