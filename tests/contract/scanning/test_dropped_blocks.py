"""A block that falls out, and comes back: what scans and credits of before may still do to its payments.

The chain is `tests.support.fake_coins`; its branches are kept, so that a block comes back under its hash. Parts of lists are small.
One payment is recorded in the transaction that begins its block's list, several to one address behind their list.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import pytest

from chalicelib.domain.addresses.addresses import Watched
from chalicelib.domain.chain import Block, BlockDeposits, Cursor, DepositBlock, Transfer
from chalicelib.domain.deposits.deposits import Deposit, deposit_id
from chalicelib.domain.versions import next_version
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.deposits.deposits import Scanned
from chalicelib.usecases.ports.changes import AtEpoch, AtPart, Conflict, Dropped, Save
from chalicelib.usecases.ports.failures import Halted
from chalicelib.usecases.scanning import block_lists
from chalicelib.usecases.scanning.block_lists import drop_list, list_deposits
from chalicelib.wiring import services
from tests.support.bundles import COIN, CONFIRMATIONS, NETWORK, REORG, Shop, cut, die
from tests.support.fake_coins import Mined

PAYMENTS = 3
SMALL = 2


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_lists, "MOST", SMALL)


@pytest.fixture
def shop(begin: Callable[[], Shop]) -> Shop:
    return begin()


class Branch:
    """A block with payments, and the scan that read it."""

    def __init__(self, shop: Shop, payments: int) -> None:
        self.shop, self.chain = shop, shop.chain
        self.payments, self.parts = payments, -(-payments // SMALL)
        self.address = shop.post("/v1/invoices", currency="ltc", amount="9", network="litecoin")["address"]
        for _ in range(payments):
            self.chain.pay(self.address, COIN)
        self.chain.mine()
        self.height = self.chain.tip()
        (self.block,) = self.read()
        self.kept: list[Mined] = []

    def read(self) -> list[Block]:
        return list(self.chain.blocks_(self.height, self.height))

    def poll(self) -> Cursor:
        with in_realm("live"):
            return scanner().poll(lambda: True)

    def fall(self) -> None:
        """Another branch takes its place, without the payments."""
        self.kept = self.chain.blocks[self.height :]
        self.chain.drop(len(self.kept))
        self.chain.forget()

    def come_back(self, more: int = 2) -> None:
        del self.chain.blocks[self.height :]
        self.chain.blocks += self.kept
        self.chain.mine(more)

    def sleeper(self, epoch: int) -> None:
        """A scan that read the block at `epoch` goes on."""
        with in_realm("live"):
            scanner().recorder.record([self.block], epoch, tip=self.height)

    def detect(self, transfer: Transfer, scanned: Scanned) -> None:
        """The same scan, once it has listed the block."""
        watched = services().store.get(Watched, realm="live", family="litecoin", address=transfer.recipient)
        assert watched is not None
        with in_realm("live"):
            coin = services().catalogue("live").coin("litecoin", "ltc")
            services().deposits("live").detect(network(), coin, scanned, transfer, watched)

    def creditor(self, epoch: int) -> None:
        """A poll that had asked for its block at `epoch` goes on."""
        with in_realm("live"):
            for deposit in self.deposits():
                services().deposits("live").confirm(network(), deposit.id, self.block.hash, self.height + 9, epoch)

    def deposits(self) -> list[Deposit]:
        return [deposit for deposit in services().store.every(Deposit) if deposit.address == self.address]

    def stand(self) -> set[tuple[str, str | None]]:
        """Status and block."""
        return {(deposit.status, deposit.block_hash) for deposit in self.deposits()}

    def epoch(self) -> int:
        found = services().store.get(Cursor, network=NETWORK)
        assert found is not None
        return found.epoch


@pytest.fixture(params=[PAYMENTS, 1], ids=["several", "one"])
def branch(shop: Shop, request: pytest.FixtureRequest) -> Branch:
    return Branch(shop, request.param)


def network() -> Any:
    return services().catalogue("live").networks["litecoin"]


def scanner() -> Any:
    return services().scanner(network())


def part(block_hash: str, number: int = 0) -> BlockDeposits | None:
    return services().store.get(BlockDeposits, network=NETWORK, hash=block_hash, part=str(number))


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "without a list"])
def test_a_scan_that_slept_through_a_reorganisation(branch: Branch, listed: bool) -> None:
    """Also one of a block in which nothing was ours by then: a coin that was added, an address that was given out later."""
    if not listed:
        passed_without(branch)
    else:
        branch.poll()
    before, seen = branch.epoch(), len(branch.deposits())
    assert seen == (branch.payments if listed else 0)
    branch.fall()
    branch.poll()
    assert branch.epoch() == before + 1
    stored = branch.deposits()
    with pytest.raises(Conflict):
        branch.sleeper(before)
    with contextlib.suppress(Conflict):
        branch.creditor(before)
    assert branch.deposits() == stored
    assert branch.stand() == ({("orphaned", branch.block.hash)} if listed else set())
    dropped = [found.dropped for number in range(branch.parts) if (found := part(branch.block.hash, number))]
    assert dropped == ([True] * branch.parts if listed else [])
    branch.shop.whole()


def test_a_block_comes_back(branch: Branch) -> None:
    """It is taken up by the scan that finds it, and scans, credits and rewinds of before do nothing to it any more."""
    branch.poll()
    first = branch.epoch()
    branch.fall()
    branch.poll()
    branch.come_back()
    branch.poll()
    assert branch.epoch() == first + 2
    assert branch.stand() == {("pending", branch.block.hash)}
    stored = branch.deposits()
    for epoch in first, first + 1:
        with pytest.raises(Conflict):
            branch.sleeper(epoch)
        with pytest.raises(Conflict) as late:
            branch.creditor(epoch)
        assert isinstance(late.value.change, AtPart)
    drop_list(services().store, NETWORK, branch.block.hash, first, first + 1)  # a rewind that slept
    for deposit in stored:
        with pytest.raises(Conflict) as late:
            services().deposits("live").orphan(network(), deposit.id, branch.block.hash, 1, dropped=True)
        assert isinstance(late.value.change, Dropped)
    assert branch.deposits() == stored
    branch.chain.mine(CONFIRMATIONS)
    branch.poll()
    assert branch.stand() == {("confirmed", branch.block.hash)}
    branch.shop.whole()


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "not listed"])
def test_a_branch_that_no_scan_passed_does_not_take_back_a_payment(branch: Branch, listed: bool) -> None:
    """A scan that read the block which lost sleeps, before or after it has listed it, while another follows the reorganisation and
    stores the payments of the block that won, without passing it yet."""
    branch.chain.blocks[-1].transactions, payments = [], branch.chain.blocks[-1].transactions
    branch.poll()
    branch.chain.mine()
    branch.chain.blocks[-1].transactions = payments
    branch.height += 1
    (branch.block,) = branch.read()
    before = branch.epoch()
    ids = [deposit_id(NETWORK, t.txid, t.position) for t in branch.block.transfers]
    places = list_deposits(services().store, NETWORK, branch.block, ids, before) if listed else None
    branch.chain.drop(2)
    branch.poll()
    branch.chain.mine()
    (won,) = branch.chain.blocks_(branch.chain.tip(), branch.chain.tip())
    with in_realm("live"):
        scanner().recorder.record([won], branch.epoch(), tip=won.number)
    stored = branch.deposits()
    assert branch.stand() == {("pending", won.hash)}
    with pytest.raises(Conflict):
        branch.sleeper(before)
    if places is not None:
        with pytest.raises(Conflict) as late:
            branch.detect(branch.block.transfers[0], Scanned(branch.block, before, part=places[ids[0]]))
        assert isinstance(late.value.change, AtPart)
    assert branch.deposits() == stored
    branch.chain.mine(CONFIRMATIONS)
    branch.poll()
    assert branch.stand() == {("confirmed", won.hash)}
    branch.shop.whole()


def test_what_a_scan_left_of_a_block_that_nobody_passed_falls_out(branch: Branch) -> None:
    branch.sleeper(branch.epoch())
    branch.fall()
    branch.chain.mine(CONFIRMATIONS)
    branch.poll()
    assert branch.stand() == {("orphaned", branch.block.hash)}
    # The scan that left it goes on with its next payment: no reorganisation was followed, so its epoch is not over.
    with pytest.raises(Conflict) as late:
        branch.detect(branch.block.transfers[0], Scanned(branch.block, branch.epoch(), part=0))
    assert isinstance(late.value.change, AtPart)
    branch.shop.whole()


def interleaved(begin: Callable[[], Shop], payments: int, depth: int, between: Callable[[Branch, int], Any]) -> int:
    """Another worker acts before each commit of the poll that follows a reorganisation, or the poll dies there; then all goes on.
    The number of commits."""
    commits = 0
    while True:
        branch = Branch(begin(), payments)
        branch.poll()
        branch.chain.mine(depth)
        branch.poll()
        before = branch.epoch()
        branch.fall()
        fired = cut(branch.shop, commits + 1, lambda b=branch, e=before: between(b, e), lambda _, b=branch: _goes_on(b))  # type: ignore[misc]
        for _ in range(3):
            branch.poll()
        assert {status for status, _ in branch.stand()} == {"orphaned"}, commits
        assert branch.shop.available() == "30", commits
        branch.shop.whole()
        if not fired:
            return commits
        commits += 1


def _goes_on(branch: Branch) -> None:
    with contextlib.suppress(Conflict):
        branch.poll()


def _both(branch: Branch, epoch: int) -> None:
    for act in (branch.sleeper, branch.creditor):
        with contextlib.suppress(Conflict):
            act(epoch)


def _another(branch: Branch, epoch: int) -> None:
    with contextlib.suppress(Conflict, Halted):
        branch.poll()


def _dies(branch: Branch, epoch: int) -> None:
    die()


REWINDS = list(product((_both, _another, _dies), (True, False), (PAYMENTS, 1)))
IN_A_CHECK = [(_both, True, PAYMENTS), (_another, False, 1), (_dies, False, PAYMENTS)]


# The sweep: the rewinds that stay have each rival once, pending and credited payments, and lists of one part and of several.
@pytest.mark.parametrize(
    ("between", "credited", "payments"),
    [pytest.param(*rewind, marks=[pytest.mark.sweep] * (rewind not in IN_A_CHECK)) for rewind in REWINDS],
)
def test_a_rewind_at_each_of_its_commits(begin: Callable[[], Shop], between: Any, credited: bool, payments: int) -> None:
    """The note, the parts, each payment, the cursor: a sleeping scan and credit, a second poll, a death before each of them."""
    least = 1 + -(-payments // SMALL) + payments + 1
    assert interleaved(begin, payments, CONFIRMATIONS if credited else 1, between) >= least


def test_payments_and_lists_of_an_older_version(branch: Branch) -> None:
    """They have neither parts nor epochs: the cursor's epoch counts for them, and a reorganisation drops their lists like ours."""
    store = services().store
    branch.poll()
    everything = [found for number in range(branch.parts) if (found := part(branch.block.hash, number))]
    ids = tuple(key for each in everything for key in each.deposits)
    store.commit([Save(replace(next_version(everything[0]), deposits=ids, epoch=0, parts=None))])
    for deposit in branch.deposits():
        store.commit([Save(replace(next_version(deposit), part=None))])
    before = branch.epoch()
    branch.fall()
    branch.poll()
    assert branch.stand() == {("orphaned", branch.block.hash)}
    with pytest.raises(Conflict):
        branch.sleeper(before)
    branch.come_back()
    branch.poll()
    for deposit in branch.deposits():
        store.commit([Save(replace(next_version(deposit), part=None))])
    with pytest.raises(Conflict) as late:
        branch.creditor(before)
    assert isinstance(late.value.change, AtEpoch)
    branch.chain.mine(CONFIRMATIONS)
    branch.poll()
    assert branch.stand() == {("confirmed", branch.block.hash)}
    branch.shop.whole()


def test_a_reorganisation_that_an_older_version_followed(branch: Branch) -> None:
    """It knows the first part of a list alone, and drops none. The next poll of ours finds the rest by the rows of blocks."""
    store = services().store
    branch.poll()
    branch.chain.mine(CONFIRMATIONS)
    branch.poll()
    assert branch.stand() == {("confirmed", branch.block.hash)}
    branch.fall()
    cursor, first = store.get(Cursor, network=NETWORK), part(branch.block.hash)
    assert cursor is not None
    assert first is not None
    for key in first.deposits:
        services().deposits("live").orphan(network(), key, branch.block.hash, cursor.tip)
    recent = {number: branch.chain.blocks[int(number)].hash for number in cursor.recent}
    store.commit(
        [Save(replace(next_version(cursor), recent=recent, hash=recent[str(cursor.number)], epoch=cursor.epoch + 1, drops=False))]
    )
    assert {status for status, _ in branch.stand()} == ({"confirmed", "orphaned"} if branch.parts > 1 else {"orphaned"})
    branch.poll()
    assert branch.stand() == {("orphaned", branch.block.hash)}
    with pytest.raises(Conflict):
        branch.creditor(cursor.epoch)
        branch.sleeper(cursor.epoch)
    assert store.get(Cursor, network=NETWORK).drops  # type: ignore[union-attr]
    branch.shop.whole()


def follows(branch: Branch) -> None:
    """Another poll finds that the block fell out."""
    branch.fall()
    branch.poll()


def passed_without(branch: Branch) -> None:
    """A poll passes the block when nothing in it is ours yet."""
    payments, branch.chain.blocks[-1].transactions = branch.chain.blocks[-1].transactions, []
    branch.poll()
    branch.chain.blocks[-1].transactions = payments


def lists(branch: Branch) -> None:
    """A version that lists before it records has listed the block, and died."""
    ids = [deposit_id(NETWORK, t.txid, t.position) for t in branch.block.transfers]
    list_deposits(services().store, NETWORK, branch.block, ids, branch.epoch())


def records(branch: Branch) -> None:
    branch.sleeper(branch.epoch())


def pays_more(branch: Branch) -> None:
    """Another scan knows of one payment more in the block: a coin that was added, an address that was given out meanwhile."""
    list_deposits(services().store, NETWORK, branch.block, [deposit_id(NETWORK, "ab" * 32, "0")], branch.epoch())


RIVALS = list(product((follows, lists, records, pays_more, die), (False, True)))


# The sweep: who acts behind a commit acts before the next one, which stays, as does who follows a reorganisation behind one.
@pytest.mark.parametrize(
    ("rival", "after"),
    [
        pytest.param(
            rival,
            after,
            id=f"{rival.__name__}-{'after' if after else 'before'}",
            marks=[pytest.mark.sweep] * (after and rival is not follows),
        )
        for rival, after in RIVALS
    ],
)
def test_a_payment_and_its_list_at_each_commit(begin: Callable[[], Shop], rival: Any, after: bool) -> None:
    """Another worker acts before or behind each commit of the scan that records a block with one payment, or the scan dies there.
    What it recorded is on the list; what came behind a reorganisation is recorded by nobody."""
    commits = 0
    while True:
        branch = Branch(begin(), 1)
        if rival is follows:
            passed_without(branch)
        epoch = branch.epoch()
        act = rival if rival is die else partial(rival, branch)
        fired = cut(branch.shop, commits + 1, act, lambda _, b=branch, e=epoch: _records(b, e), after)  # type: ignore[misc]
        listed = [key for found in [part(branch.block.hash)] if found for key in found.deposits]
        assert {deposit.id for deposit in branch.deposits()} <= set(listed), commits
        if rival is follows and fired:
            assert branch.epoch() == epoch + 1
            with pytest.raises(Conflict):
                branch.sleeper(epoch)
        branch.poll()
        branch.chain.mine(CONFIRMATIONS)
        branch.poll()
        if rival is follows and fired:
            assert branch.stand() <= {("orphaned", branch.block.hash)}, commits
        else:
            assert branch.stand() == {("confirmed", branch.block.hash)}, commits
        branch.shop.whole()
        if not fired:
            assert commits >= 2
            return
        commits += 1


def _records(branch: Branch, epoch: int) -> None:
    with contextlib.suppress(Conflict):
        branch.sleeper(epoch)


def test_one_transaction_records_a_payment_and_begins_its_list(branch: Branch, monkeypatch: pytest.MonkeyPatch) -> None:
    store, commits = services().store, list[list[Any]]()
    commit = store.commit
    monkeypatch.setattr(store, "commit", lambda changes: (commits.append(list(changes)), commit(changes)))
    branch.sleeper(branch.epoch())
    both = [
        changes
        for changes in commits
        if {type(change.record) for change in changes if isinstance(change, Save)} >= {BlockDeposits, Deposit}
    ]
    assert len(both) == (1 if branch.payments == 1 else 0)
    assert not any(isinstance(change, AtPart) for changes in both for change in changes)
    first = part(branch.block.hash)
    assert first is not None
    assert (first.parts, first.epoch, len(first.deposits)) == (branch.parts, branch.epoch(), min(branch.payments, SMALL))
    assert store.get(DepositBlock, network=NETWORK, number=str(branch.height), hash=branch.block.hash) is not None
    assert {deposit.part for deposit in branch.deposits()} == set(range(branch.parts))


def test_a_halt_stops_credits_that_are_under_way(branch: Branch) -> None:
    branch.poll()
    before = branch.epoch()
    branch.chain.mine(CONFIRMATIONS)
    branch.chain.drop(REORG + CONFIRMATIONS + 1)
    with pytest.raises(Halted):
        branch.poll()
    stored = branch.deposits()
    with pytest.raises(Conflict):
        branch.creditor(before)
    assert branch.deposits() == stored
    assert services().store.get(DepositBlock, network=NETWORK, number=str(branch.height), hash=branch.block.hash) is not None
