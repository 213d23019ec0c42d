"""A simulated network on DynamoDB: deposits, mining, reorganisations, many writers at once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from chalicelib.chains.sandbox.branch import GENESIS_MS, MAX_DEPTH
from chalicelib.chains.sandbox.chain import SandboxChain
from chalicelib.chains.sandbox.reader import SandboxReader
from chalicelib.domain.catalogue.catalogue import NETWORK_ORDER, default_networks
from chalicelib.domain.chain import Transfer
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.sandbox.sandbox import TooDeep
from tests.support.sandbox import START_MS, USDT, Lab, lab_of

SOMEBODY = "0x" + "ab" * 20
CHECKSUMMED = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
"""Of EIP-55's examples."""


@pytest.fixture
def lab() -> Iterator[Lab]:
    with lab_of("ethereum") as made:
        yield made


def test_only_simulated_networks_of_the_test_realm_can_be_built(lab: Lab) -> None:
    for network in default_networks("live"):
        with pytest.raises(ValueError, match="not a simulated network"):
            SandboxChain(network, lab.table, lab.clock)
        with pytest.raises(ValueError, match="not a simulated network"):
            SandboxReader(network, lab.table, lab.clock)


def test_a_chain_that_nobody_wrote_to_has_block_0_and_reading_writes_nothing(lab: Lab) -> None:
    before = lab.all_blocks()
    assert [(b.number, b.time, b.transfers) for b in before] == [(0, GENESIS_MS, [])]
    assert lab.reader.block_hash(0) == before[0].hash
    assert lab.reader.block_hash(1) is None
    assert lab.reader.balance(SOMEBODY) == 0
    assert lab.reader.receipt("0x" + "0" * 64) is None
    assert set(lab.client.calls) <= {"get_item", "query", "transact_get_items"}
    lab.chain.mine(1)
    assert lab.all_blocks()[0] == before[0]


def test_what_is_mined_or_reorganised_under_a_token_is_so_once(lab: Lab) -> None:
    assert lab.chain.mine(5, "a") == 5
    lab.chain.mine(2)
    assert lab.chain.mine(5, "a") == 5
    paid = lab.chain.deposit(SOMEBODY, None, 7)
    first = lab.chain.reorganise(2, False, "a-reorg")
    assert (first.first, first.tip, first.dropped) == (7, 9, (paid.txid,))
    tip_hash = lab.reader.block_hash(9)
    assert lab.chain.reorganise(2, False, "a-reorg") == first
    assert (lab.chain.tip(), lab.reader.block_hash(9)) == (9, tip_hash)
    lab.clock.pass_seconds(24 * 3600)
    assert lab.chain.mine(5, "a") == 14, "a day later it is another request"


@pytest.mark.parametrize("act", ["mine", "reorganise"])
def test_of_two_at_once_under_a_token_one_does_it(lab: Lab, act: str) -> None:
    lab.chain.mine(4)

    def ask() -> object:
        return lab.chain.mine(3, "t") if act == "mine" else lab.chain.reorganise(3, True, "t")

    twin: list[object] = []
    lab.client.before_write = lambda: twin.append(ask())
    assert ask() == twin[0]
    assert lab.chain.tip() == (7 if act == "mine" else 5)


@pytest.mark.parametrize("act", ["mine", "reorganise"])
def test_a_write_that_took_effect_and_was_not_heard_of_is_not_done_again(lab: Lab, act: str) -> None:
    lab.chain.mine(4)

    def ask() -> object:
        return lab.chain.mine(3, "t") if act == "mine" else lab.chain.reorganise(1, True, "t")

    def lost() -> None:
        raise EndpointConnectionError(endpoint_url="http://x")

    lab.client.after_write = lost
    with pytest.raises(Unavailable):
        ask()
    ask()
    assert lab.chain.tip() == (7 if act == "mine" else 5)


def test_a_deposit_is_in_the_chain_once_and_proven(lab: Lab) -> None:
    mined = lab.chain.deposit(CHECKSUMMED, None, 7)
    token = lab.chain.deposit(CHECKSUMMED, USDT.upper().replace("0X", "0x"), 9, sender=SOMEBODY)
    blocks = lab.all_blocks()
    native, moved = (block.transfers for block in blocks[1:])
    assert native == [Transfer(mined.txid, "native", None, mined.sender, CHECKSUMMED.lower(), 7)]
    assert moved == [Transfer(token.txid, "log:0", USDT, SOMEBODY, CHECKSUMMED.lower(), 9)]
    assert (mined.number, mined.hash, mined.time) == (1, blocks[1].hash, blocks[1].time)
    assert lab.reader.proven(blocks[1], native) == native
    assert lab.reader.proven(blocks[2], moved) == moved
    assert lab.reader.proven(blocks[1], [*moved, native[0]._replace(amount=8)]) == []
    assert lab.reader.blocks(2, 2, ())[0].transfers == []
    assert (lab.reader.balance(CHECKSUMMED), lab.reader.balance(CHECKSUMMED.lower(), USDT)) == (7, 9)
    receipt = lab.reader.receipt(mined.txid)
    assert receipt is not None
    assert (receipt.success, receipt.block_number, receipt.block_hash) == (True, 1, blocks[1].hash)


@pytest.mark.parametrize("slug", NETWORK_ORDER)
def test_every_network_looks_like_its_family(slug: str) -> None:
    with lab_of(slug) as lab:
        address = lab.wallet(1).address
        mined = lab.chain.deposit(address, None, 5)
        (transfer,) = lab.all_blocks()[1].transfers
        assert transfer.position == {"evm": "native", "utxo": "out:0", "tron": "native"}[lab.network.family]
        assert transfer.recipient == (address.lower() if lab.network.family == "evm" else address)
        assert mined.txid.startswith("0x") == (lab.network.family == "evm")
        assert lab.reader.balance(address) == 5


def test_networks_share_a_table_and_nothing_else(lab: Lab) -> None:
    other_network = next(n for n in default_networks("test") if n.slug == "bsc")
    other = SandboxChain(other_network, lab.table, lab.clock)
    lab.chain.deposit(SOMEBODY, None, 7)
    assert (other.tip(), other.balance(SOMEBODY)) == (0, 0)
    assert SandboxReader(other_network, lab.table, lab.clock).block_hash(0) != lab.reader.block_hash(0)


def test_200_empty_blocks_cost_two_reads_at_the_tip_and_three_far_below(lab: Lab) -> None:
    lab.chain.mine(10_000)
    lab.chain.deposit(SOMEBODY, None, 1)
    for first, most in ((9_802, 2), (4_000, 3)):
        lab.client.calls.clear()
        assert len(lab.reader.blocks(first, first + 199, ())) == 200
        assert len(lab.client.calls) <= most
    lab.client.calls.clear()
    lab.reader.tip()
    assert len(lab.client.calls) == 1


def test_blocks_are_the_same_however_they_are_asked_for(lab: Lab) -> None:
    for _ in range(3):
        lab.chain.deposit(SOMEBODY, None, 1)
        lab.clock.pass_seconds(7)
        lab.chain.mine(4)
    whole = lab.all_blocks()
    for first in range(len(whole)):
        for last in (first, first + 1, len(whole) + 5):
            assert lab.reader.blocks(first, last, lab.contracts) == whole[first : last + 1]
        assert lab.reader.block_hash(first) == whole[first].hash
    assert lab.reader.blocks(len(whole), len(whole) + 9, ()) == []


def test_blocks_that_the_clock_mines_have_their_own_times() -> None:
    with lab_of("ethereum", block_seconds=2) as lab:
        lab.chain.open()
        lab.clock.pass_seconds(11)
        assert [b.time - START_MS for b in lab.all_blocks()[1:]] == [2_000, 4_000, 6_000, 8_000, 10_000]
        seen = lab.all_blocks()
        lab.chain.deposit(SOMEBODY, None, 1)
        lab.chain.mine(2)
        lab.clock.pass_seconds(4)
        after = lab.all_blocks()
        assert after[: len(seen)] == seen
        assert [b.time - START_MS for b in after[len(seen) :]] == [11_000, 11_000, 11_000, 13_000, 15_000]


def test_a_new_pace_keeps_what_there_is_and_never_turns_back() -> None:
    with lab_of("ethereum", block_seconds=2) as lab:
        lab.chain.open()
        lab.clock.pass_seconds(10)
        seen = lab.all_blocks()
        still = lab.with_pace(0)
        assert still.reader.tip() == 5
        still.chain.open()
        still.clock.pass_seconds(100)
        assert still.reader.tip() == 6
        assert still.all_blocks()[:6] == seen
        version = len(still.client.calls)
        still.chain.open()
        assert "transact_write_items" not in still.client.calls[version:]


def test_a_reorganisation_drops_transactions_for_good(lab: Lab) -> None:
    kept = lab.chain.deposit(SOMEBODY, None, 100)
    lab.chain.mine(2)
    gone = lab.chain.deposit(SOMEBODY, None, 7)
    lab.chain.mine(1)
    before = lab.all_blocks()
    done = lab.chain.reorganise(2, remine=False)
    after = lab.all_blocks()
    assert (done.first, done.tip, done.dropped, done.remined) == (gone.number, 6, (gone.txid,), ())
    assert after[: gone.number] == before[: gone.number]
    assert not {b.hash for b in after[gone.number :]} & {b.hash for b in before}
    assert lab.reader.receipt(gone.txid) is None
    assert lab.reader.receipt(kept.txid) is not None
    assert lab.reader.balance(SOMEBODY) == 100
    assert lab.reader.proven(before[gone.number], before[gone.number].transfers) == []
    lab.chain.mine(20)
    assert lab.reader.receipt(gone.txid) is None


def test_remine_puts_transactions_into_the_new_blocks(lab: Lab) -> None:
    mined = [lab.chain.deposit(SOMEBODY, coin, units) for coin, units in ((None, 5), (USDT, 6), (None, 7))]
    before = lab.all_blocks()
    done = lab.chain.reorganise(2, remine=True)
    after = lab.all_blocks()
    assert done.remined == (mined[1].txid, mined[2].txid)
    assert [b.transfers for b in after[:4]] == [b.transfers for b in before]
    assert [a.hash == b.hash for a, b in zip(after, before, strict=False)] == [True, True, False, False]
    assert (lab.reader.balance(SOMEBODY), lab.reader.balance(SOMEBODY, USDT)) == (12, 6)
    assert lab.reader.proven(after[2], after[2].transfers) == after[2].transfers


def test_a_reorganisation_in_the_middle_of_a_stretch_keeps_the_times_before_it() -> None:
    with lab_of("ethereum", block_seconds=2) as lab:
        lab.chain.open()
        lab.clock.pass_seconds(20)
        lab.chain.mine(5)
        lab.clock.pass_seconds(6)
        before = lab.all_blocks()
        for depth in (2, 5, 11):
            first = lab.chain.reorganise(depth, remine=False).first
            assert lab.all_blocks()[:first] == before[:first]
        times = [b.time for b in lab.all_blocks()]
        assert times == sorted(times)
        assert times[-1] <= lab.clock.now_ms()


def test_a_reorganisation_deeper_than_the_chain_is_refused_with_what_is_possible(lab: Lab) -> None:
    with pytest.raises(TooDeep) as none:
        lab.chain.reorganise(1, remine=False)
    assert none.value.most == 0
    lab.chain.mine(3)
    with pytest.raises(TooDeep) as few:
        lab.chain.reorganise(4, remine=False)
    assert few.value.most == 3
    assert lab.chain.reorganise(3, remine=False).first == 1
    lab.chain.mine(2_000)
    with pytest.raises(TooDeep) as many:
        lab.chain.reorganise(MAX_DEPTH + 1, remine=False)
    assert many.value.most == MAX_DEPTH


def test_many_reorganisations_stay_readable_from_the_first_block_on(lab: Lab) -> None:
    early = lab.chain.deposit(SOMEBODY, None, 3)
    first = lab.all_blocks()[:2]
    for _ in range(4):
        lab.chain.mine(1)
        lab.chain.reorganise(1, remine=False)
    lab.chain.mine(2 * MAX_DEPTH)
    for _ in range(3):
        lab.chain.reorganise(1, remine=False)
    assert lab.chain.reads.view().known_from > 1  # the oldest forks are in the archive now
    blocks = lab.all_blocks()
    assert blocks[:2] == first
    assert all(b.parent_hash == a.hash for a, b in pairwise(blocks))
    receipt = lab.reader.receipt(early.txid)
    assert receipt is not None
    assert receipt.block_hash == blocks[1].hash
    assert lab.reader.balance(SOMEBODY) == 3
    assert [lab.reader.block_hash(n) for n in range(12)] == [b.hash for b in blocks[:12]]


def test_an_account_stays_small_and_right_over_many_payments(lab: Lab) -> None:
    for _ in range(3):
        lab.chain.deposit(SOMEBODY, None, 1)
        lab.chain.mine(MAX_DEPTH)
    lab.chain.deposit(SOMEBODY, None, 1)
    assert lab.reader.balance(SOMEBODY) == 4
    assert len(lab.chain.reads.account(SOMEBODY).recent) <= 2


def test_two_deposits_at_once_are_both_there_in_blocks_of_their_own(lab: Lab) -> None:
    landed = []
    lab.client.before_write = lambda: landed.append(lab.chain.deposit(SOMEBODY, None, 2))
    landed.append(lab.chain.deposit(SOMEBODY, None, 1))
    assert [d.number for d in landed] == [1, 2]
    assert [t.amount for b in lab.all_blocks() for t in b.transfers] == [2, 1]
    assert lab.reader.balance(SOMEBODY) == 3


@pytest.mark.parametrize("remine", [True, False])
def test_a_deposit_while_a_reorganisation_is_made_is_neither_lost_nor_doubled(lab: Lab, remine: bool) -> None:
    first = lab.chain.deposit(SOMEBODY, None, 10)
    lab.client.before_write = lambda: lab.chain.deposit(SOMEBODY, None, 1)
    done = lab.chain.reorganise(1, remine=remine)
    # The deposit came first, so it was the last block: the reorganisation decided again and replaced that one.
    assert done.first == 2
    assert lab.reader.balance(SOMEBODY) == (11 if remine else 10)
    assert lab.reader.receipt(first.txid) is not None


def test_a_reorganisation_that_dies_before_its_last_write_changes_nothing(lab: Lab) -> None:
    mined = [lab.chain.deposit(SOMEBODY, None, units) for units in (10, 5, 3)]
    before = lab.all_blocks()

    def die() -> None:
        raise KeyboardInterrupt

    for _ in range(3):
        lab.client.after_write = die  # the new branch is written, and the head does not name it
        with pytest.raises(KeyboardInterrupt):
            lab.chain.reorganise(3, remine=True)
        assert lab.all_blocks() == before
        assert lab.reader.balance(SOMEBODY) == 18
        receipts = [lab.reader.receipt(d.txid) for d in mined]
        assert [(r.block_number, r.block_hash) for r in receipts if r is not None] == [(d.number, d.hash) for d in mined]
    lab.chain.deposit(SOMEBODY, None, 100)
    assert lab.reader.balance(SOMEBODY) == 118
    assert lab.chain.reorganise(4, remine=True).remined[:3] == tuple(d.txid for d in mined)
    assert lab.reader.balance(SOMEBODY) == 118


def test_a_reorganisation_between_reading_and_writing_a_deposit_does_not_bury_it(lab: Lab) -> None:
    lab.chain.mine(3)
    lab.client.before_write = lambda: lab.chain.reorganise(2, remine=False)  # type: ignore[func-returns-value]
    mined = lab.chain.deposit(SOMEBODY, None, 4)
    receipt = lab.reader.receipt(mined.txid)
    assert receipt is not None
    assert receipt.block_hash == lab.all_blocks()[mined.number].hash
    assert lab.reader.balance(SOMEBODY) == 4


def test_a_deposit_whose_answer_was_lost_is_not_made_twice_by_its_token(lab: Lab) -> None:
    def lose() -> None:
        raise EndpointConnectionError(endpoint_url="lost")

    lab.client.after_write = lose
    with pytest.raises(Unavailable):
        lab.chain.deposit(SOMEBODY, None, 5, token="funding")
    again = lab.chain.deposit(SOMEBODY, None, 5, token="funding")
    assert lab.chain.deposit(SOMEBODY, None, 5, token="funding") == again
    assert lab.reader.balance(SOMEBODY) == 5
    assert lab.chain.tip() == 1


def test_a_write_that_took_effect_and_is_repeated_by_the_client_is_seen_as_done(lab: Lab) -> None:
    def conflict() -> None:
        reasons = [{"Code": "ConditionalCheckFailed"}]
        error = {"Error": {"Code": "TransactionCanceledException", "Message": "x"}, "CancellationReasons": reasons}
        raise ClientError(error, "TransactWriteItems")  # type: ignore[arg-type]

    lab.client.after_write = conflict
    mined = lab.chain.deposit(SOMEBODY, None, 5)
    assert (mined.number, lab.chain.tip(), lab.reader.balance(SOMEBODY)) == (1, 1, 5)


def test_a_table_that_is_not_there_is_unavailable(lab: Lab) -> None:
    nowhere = Lab(lab.network, lab.client, "no-such-table")
    for ask in (nowhere.reader.tip, lambda: nowhere.reader.balance(SOMEBODY), lambda: nowhere.chain.mine(1)):
        with pytest.raises(Unavailable):
            ask()
