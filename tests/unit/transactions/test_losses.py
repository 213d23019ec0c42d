"""What proves that a transaction of ours is lost, and what proves nothing (money rule 13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.catalogue.catalogue import Network, default_networks
from chalicelib.domain.chain import Header
from chalicelib.domain.transactions.sightings import (
    Lifetime,
    Ours,
    Seen,
    Sighting,
    by_inputs,
    by_lifetime,
    by_nonce,
    input_subject,
    nonce_subject,
    txid_subject,
)
from chalicelib.usecases.transactions.finality import Scanned
from chalicelib.usecases.transactions.losses import Losses

TIP = 70_000
HOT, FIRST, SECOND, RIVAL = "0x" + "aa" * 20, "01" * 32, "02" * 32, "0f" * 32


def hash_of(number: int, branch: str = "a") -> str:
    return f"{number:016x}" + f"{number * 7919 % 2**64:016x}" + branch * 32


class Reader:
    """One node: its blocks are three seconds apart."""

    def __init__(self) -> None:
        self.branch: dict[int, str] = {}
        self.late = 0

    def block_hash(self, number: int) -> str | None:
        return hash_of(number, self.branch.get(number, "a"))

    def headers(self, first: int, last: int) -> list[Header]:
        return [Header(n, hash_of(n), hash_of(n - 1), (n - self.late) * 3_000) for n in range(first, last + 1)]


class Notes:
    """The store, as far as it knows sightings."""

    def __init__(self) -> None:
        self.kept: dict[str, Sighting] = {}

    def note(self, subject: str, *seen: Seen) -> None:
        for each in seen:
            self.kept[subject] = self.kept.get(subject, Sighting(network("ethereum").id, subject)).noting(each)

    def get_many(self, wanted: Sequence[tuple[type[Any], Mapping[str, str]]]) -> list[Any]:
        return [self.kept.get(key["subject"]) for _, key in wanted]


def network(slug: str) -> Network:
    return next(n for n in default_networks("live") if n.slug == slug)


DEPTH = network("ethereum").reorg_depth
DEEP = TIP - DEPTH


class World:
    def __init__(self, slug: str) -> None:
        self.network, self.reader, self.notes = network(slug), Reader(), Notes()
        recent = {str(n): hash_of(n) for n in range(TIP - self.network.reorg_depth, TIP + 1)}
        self.scanned = Scanned(TIP, TIP, recent, noted_from=0)

    def losses(self) -> Losses:
        return Losses(self.network, self.reader, self.notes)  # type: ignore[arg-type]

    def lost(self, ours: Ours) -> bool:
        return self.losses().lost(ours, self.scanned)


@pytest.fixture
def evm() -> World:
    return World("ethereum")


@pytest.fixture
def tron() -> World:
    return World("tron")


NONCE = by_nonce((SECOND, FIRST), HOT, 7)
KEY = nonce_subject(HOT, 7)


def test_absence_proves_nothing(evm: World) -> None:
    assert not evm.lost(NONCE)
    assert not evm.lost(by_inputs((FIRST,), ("aa:0", "bb:1")))
    assert evm.losses().mined(NONCE, evm.scanned) is None


def test_lost_is_a_nonce_that_another_transaction_had_deep_enough(evm: World) -> None:
    evm.notes.note(KEY, Seen(RIVAL, DEEP + 1, hash_of(DEEP + 1)))
    assert not evm.lost(NONCE)
    evm.notes.note(KEY, Seen(RIVAL, DEEP, hash_of(DEEP)))
    assert evm.lost(NONCE)
    assert not evm.lost(by_nonce((FIRST,), HOT, 8))
    assert not evm.lost(by_nonce((RIVAL, FIRST), HOT, 7)), "any of its attempts has paid"


@pytest.mark.parametrize("number", [DEEP, DEEP - 500])
def test_a_sighting_counts_while_its_block_is_in_the_chain(evm: World, number: int) -> None:
    evm.notes.note(KEY, Seen(RIVAL, number, hash_of(number, "b")))
    assert not evm.lost(NONCE)
    if number < DEEP:
        evm.reader.branch[number] = "b"
        assert evm.lost(NONCE)
        evm.notes.note(KEY, Seen(FIRST, number - 1, hash_of(number - 1)))
    assert not evm.lost(NONCE)


def test_one_of_its_own_in_a_block_is_never_lost(evm: World) -> None:
    evm.notes.note(KEY, Seen(RIVAL, DEEP, hash_of(DEEP)), Seen(FIRST, TIP, hash_of(TIP)))
    assert not evm.lost(NONCE)
    assert evm.losses().mined(NONCE, evm.scanned) == Seen(FIRST, TIP, hash_of(TIP))
    # What is noted above the cursor is not passed yet, and what fell out is in no block.
    evm.notes.kept.clear()
    evm.notes.note(KEY, Seen(FIRST, TIP + 1, hash_of(TIP + 1)), Seen(SECOND, TIP, hash_of(TIP, "b")))
    assert evm.losses().mined(NONCE, evm.scanned) is None


def test_a_halted_network_and_one_that_follows_a_reorganisation_wait(evm: World) -> None:
    evm.notes.note(KEY, Seen(RIVAL, DEEP, hash_of(DEEP)))
    assert not evm.losses().lost(NONCE, replace(evm.scanned, unsure=True))


def test_lost_is_an_input_that_another_transaction_spent(evm: World) -> None:
    ours = by_inputs((FIRST, SECOND), ("aa:0", "bb:1"))
    evm.notes.note(input_subject("cc:2"), Seen(RIVAL, DEEP, hash_of(DEEP)))
    assert not evm.lost(ours)
    evm.notes.note(input_subject("bb:1"), Seen(RIVAL, DEEP, hash_of(DEEP)))
    assert evm.lost(ours)
    evm.notes.note(input_subject("aa:0"), Seen(SECOND, DEEP, hash_of(DEEP)))
    assert not evm.lost(ours)


def expiring(*ends: int, first: int = 68_000) -> Ours:
    """Each refers to `first`, and ends with the time of these blocks."""
    lifetime = Lifetime(first % 65536, hash_of(first)[16:32], 0)
    return by_lifetime(("03" * 32, "04" * 32)[: len(ends)], [replace(lifetime, ends=end * 3_000) for end in ends])


def test_what_expires_is_lost_when_all_blocks_that_could_have_it_were_passed(tron: World) -> None:
    deep = TIP - tron.network.reorg_depth
    assert not tron.lost(expiring(deep)), "the block behind its end may have it"
    assert tron.lost(expiring(deep - 1))
    assert not tron.lost(expiring(deep - 1, deep))
    assert tron.lost(expiring(deep - 2, deep - 1))
    tron.reader.late = 2
    assert not tron.lost(expiring(deep - 1)), "the time of the deep block counts"


def test_what_expires_and_was_met_is_not_lost(tron: World) -> None:
    ours = expiring(68_100, 68_200)
    tron.notes.note(txid_subject("03" * 32), Seen("03" * 32, 68_050, hash_of(68_050, "b")))
    assert tron.lost(ours), "its block fell out"
    tron.notes.note(txid_subject("03" * 32), Seen("03" * 32, 68_060, hash_of(68_060)))
    assert not tron.lost(ours)
    assert tron.losses().mined(ours, tron.scanned) == Seen("03" * 32, 68_060, hash_of(68_060))


def test_what_was_not_noted_is_no_proof(tron: World) -> None:
    ours = expiring(68_200)
    for noted_from, lost, gap in ((None, False, 68_000), (68_001, False, 68_000), (68_000, True, None), (0, True, None)):
        scanned = replace(tron.scanned, noted_from=noted_from)
        assert (tron.losses().lost(ours, scanned), tron.losses().gap(ours, scanned)) == (lost, gap)


def test_the_block_that_it_refers_to_is_found_by_its_hash(tron: World) -> None:
    """The number's last 16 bits come again every 65,536 blocks."""
    ours = expiring(3_200, first=3_000)
    scanned = replace(tron.scanned, noted_from=3_001)
    assert (TIP > 3_000 + 65_536, tron.losses().gap(ours, scanned)) == (True, 3_000)
    assert not tron.losses().lost(ours, scanned)
    assert tron.lost(ours)


def test_where_the_block_that_it_refers_to_fell_out_the_one_in_its_place_counts(tron: World) -> None:
    """No block of the chain can have it then. Without this it would wait for ever, and its wallet's balance with it."""
    fallen = by_lifetime(("03" * 32,), [Lifetime(68_000 % 65536, "0" * 16, 68_200 * 3_000)])
    for noted_from, lost, gap in ((68_001, False, 68_000), (68_000, True, None)):
        scanned = replace(tron.scanned, noted_from=noted_from)
        assert (tron.losses().lost(fallen, scanned), tron.losses().gap(fallen, scanned)) == (lost, gap)
    long_ago = by_lifetime(("03" * 32,), [Lifetime(3_000, "0" * 16, 3_200 * 3_000)])
    scanned = replace(tron.scanned, noted_from=3_001)
    assert not tron.losses().lost(long_ago, scanned) and tron.losses().gap(long_ago, scanned) == 3_000, "not 65,536 blocks later"
    assert tron.lost(long_ago)
    not_yet = by_lifetime(("03" * 32,), [Lifetime(68_000 % 65536, "0" * 16, TIP * 3_000)])
    assert not tron.lost(not_yet)
    before_all = by_lifetime(("03" * 32,), [Lifetime(3_000, "0" * 16, 0)])
    assert not tron.lost(before_all) and tron.losses().gap(before_all, tron.scanned) is None


def test_bytes_that_nobody_knows_never_end(tron: World) -> None:
    known = expiring(68_200).lifetimes
    assert not tron.lost(by_lifetime(("03" * 32, "04" * 32), [*known, None]))


def test_a_sighting_is_noted_once_for_each_block() -> None:
    fresh = Sighting(network("ethereum").id, KEY)
    once = fresh.noting(Seen(FIRST, 5, hash_of(5)))
    assert (fresh.version, once.version, once.noting(Seen(FIRST, 5, hash_of(5)))) == (0, 1, once)
    again = once.noting(Seen(FIRST, 6, hash_of(6, "b")))
    assert [seen.number for seen in again.seen] == [5, 6]
