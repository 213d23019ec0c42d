"""Whom a run asks about: what has a reason, and the others in turn. What it does not reach comes first in the next one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.catalogue.catalogue import Network, default_networks
from chalicelib.domain.chain import Cursor, Receipt
from chalicelib.domain.transactions.rounds import FIRST_MS, ROUND_MS, SLACK_MS, AskingRound, covered
from chalicelib.domain.transactions.sightings import Ours, Seen, Sighting, by_nonce, nonce_subject
from chalicelib.domain.work import Work, time_order
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.transactions.chain_cache import Answers
from chalicelib.usecases.transactions.finality import Scanned
from chalicelib.usecases.transactions.notes import Notes
from chalicelib.usecases.transactions.round_robin import Asking
from chalicelib.usecases.transactions.sorting import Out, Sorted
from tests.support.memory_store import MemoryStore

NETWORK: Network = next(network for network in default_networks("test") if network.slug == "ethereum")
NOW = 1_000_000_000
HEIGHT = 100
RECENT = {str(number): f"hash {number}" for number in range(HEIGHT - 70, HEIGHT + 1)}
SCANNED = Scanned(HEIGHT, HEIGHT, RECENT, noted_from=1, noted_at=0)
WALLET = "0x" + "aa" * 20


def work(number: int) -> Work:
    return Work("sent", NETWORK.id, time_order(number), f"p{number}")


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def now_ms(self) -> int:
        return self.now


class Line:
    """Open work, and runs that have time for so many looks each."""

    def __init__(self) -> None:
        self.store, self.clock = MemoryStore(), Clock()

    def run(self, due: list[Work], quiet: list[Work], looks: int = 10_000) -> list[Work]:
        looked: list[Work] = []
        store: Any = self.store
        Asking(NETWORK, store, self.clock, "sent").take(due, quiet, lambda: len(looked) < looks, looked.append)
        return looked


def test_a_run_that_is_cut_short_is_continued_by_the_next() -> None:
    line, due = Line(), [work(n) for n in range(10)]
    assert line.run(due, [], 4) == due[:4]
    assert line.run(due, [], 4) == due[4:8]
    assert line.run(due, [], 4) == [*due[8:], *due[:2]], "and from the beginning again"
    assert line.run(due, []) == [*due[2:], *due[:2]]
    assert line.run(due, [], 3) == due[:3], "the oldest first, once all had their turn"


def test_a_merchant_of_whom_hundreds_are_due_holds_up_no_other() -> None:
    line = Line()
    hog = [replace(work(number), id=f"mch_hog:test|wd_{number}") for number in range(300)]
    other = replace(work(200), id="mch_other:test|wd_1")
    due = sorted([*hog, other], key=lambda each: each.order)
    for _ in range(3):
        assert other in line.run(due, [], 4)
    # And it takes nothing from those that are not settled by a look: all of them have their turn.
    seen: set[Work] = set()
    for _ in range(320):
        seen |= set(line.run(due, [], 2))
    assert seen == {*due}


def test_a_round_looks_at_each_once_and_the_next_begins_after_its_time() -> None:
    line, quiet = Line(), [work(n) for n in range(10)]
    assert line.run([], quiet, 6) == quiet[:6]
    assert line.run([], quiet, 6) == quiet[6:]
    assert line.run([], quiet) == []
    line.clock.now += ROUND_MS - 1
    assert line.run([], quiet) == []
    line.clock.now += 1
    assert line.run([], quiet) == quiet
    line.clock.now -= 2 * ROUND_MS
    assert line.run([], quiet) == quiet, "a clock that was set back stops nobody"


def test_due_and_quiet_take_turns() -> None:
    line, due, quiet = Line(), [work(n) for n in range(4)], [work(n) for n in range(4, 10)]
    assert line.run(due, quiet, 5) == [due[0], quiet[0], due[1], quiet[1], due[2]]
    assert line.run(due, quiet, 4) == [due[3], quiet[2], due[0], quiet[3]]


@given(
    st.lists(st.tuples(st.sets(st.integers(0, 12)), st.integers(1, 5)), min_size=1, max_size=30),
    st.integers(0, 2 * ROUND_MS),
)
def test_nothing_starves_whatever_is_due_and_however_short_the_runs_are(runs: list[tuple[set[int], int]], apart: int) -> None:
    """What stays open is looked at within as many looks as there are others, however the others change places."""
    line, waited = Line(), Counter[int]()
    for due, looks in runs:
        quiet = set(range(13)) - due
        looked = line.run([work(n) for n in sorted(due)], [work(n) for n in sorted(quiet)], looks)
        assert len(looked) == len(set(looked)), "each once a run"
        for n in range(13):
            waited[n] = 0 if work(n) in looked or n not in due else waited[n] + len(looked)
        assert max(waited.values(), default=0) <= 4 * 13
        line.clock.now += apart


def test_who_dies_in_a_run_loses_few_places() -> None:
    line, due = Line(), [work(n) for n in range(120)]
    looked: list[Work] = []

    def look(each: Work) -> None:
        looked.append(each)
        if len(looked) == 110:
            raise SystemExit

    store: Any = line.store
    with pytest.raises(SystemExit):
        Asking(NETWORK, store, line.clock, "sent").take(due, [], lambda: True, look)
    assert line.run(due, [], 20) == due[100:], "on from the last place that was stored"


def test_nothing_is_stored_where_nothing_was_cut_short_and_no_round_began() -> None:
    line = Line()
    line.run([work(1)], [])
    line.run([], [])
    assert line.store.get(AskingRound, network=NETWORK.id, kind="sent") is None and line.store.commits == 0


def sort(store: MemoryStore, *outs: Out, scanned: Scanned = SCANNED) -> Sorted:
    found, any_store = Sorted(), store
    found.add(list(outs), Notes(NETWORK, any_store, scanned), NOW)  # type: ignore[arg-type]
    return found


def out(number: int, **more: Any) -> Out:
    return replace(Out(work(number), ours(number), NOW - 10 * FIRST_MS, NOW - 2 * FIRST_MS), **more)


def ours(number: int) -> Ours:
    return by_nonce([f"tx {number}"], WALLET, number)


def note(store: MemoryStore, number: int, height: int, txid: str | None = None, block: str | None = None) -> None:
    seen = Seen(txid or f"tx {number}", height, block or f"hash {height}")
    store.commit([Save(Sighting(NETWORK.id, nonce_subject(WALLET, number)).noting(seen))])


def test_what_was_noted_is_due_once_it_is_deep_and_asked_about_no_earlier() -> None:
    store, deep = MemoryStore(), HEIGHT - NETWORK.confirmations + 1
    note(store, 1, deep)
    note(store, 2, deep + 1)
    note(store, 3, deep, block="another branch")
    note(store, 4, HEIGHT - 90)  # below what is remembered
    note(store, 5, HEIGHT + 1)  # another poll is further
    found = sort(store, *(out(n) for n in range(1, 7)))
    assert found.by_place() == ([work(1), work(4)], [work(3), work(5), work(6)])
    assert found.shallow == {work(2): Seen("tx 2", deep + 1, f"hash {deep + 1}")} and not found.ripens
    assert sort(store, out(2), scanned=replace(SCANNED, tip=HEIGHT + 1)).ripens


@pytest.mark.parametrize(
    "why",
    [
        {"asks": True},
        {"undone": True},
        {"overdue": True},
        {"signed_at": NOW - FIRST_MS + 1},
        {"created_at": SLACK_MS - 1},
    ],
    ids=str,
)
def test_each_reason_is_enough(why: dict[str, Any]) -> None:
    assert sort(MemoryStore(), out(1)).by_place() == ([], [work(1)])
    assert sort(MemoryStore(), out(1, **why)).by_place() == ([work(1)], [])


def test_a_rival_is_a_reason_once_no_reorganisation_reaches_it() -> None:
    store, deep = MemoryStore(), HEIGHT - NETWORK.reorg_depth
    note(store, 1, deep, txid="a rival")
    note(store, 2, deep + 1, txid="a rival")
    assert sort(store, out(1), out(2)).by_place() == ([work(1)], [work(2)])


def test_of_what_has_waited_too_long_only_the_first_of_a_wallet_is_due() -> None:
    late = [out(n, overdue=True, line=(WALLET, 50 - n)) for n in range(5)]
    another = out(9, overdue=True, line=("0x" + "bb" * 20, 7))
    assert sort(MemoryStore(), *late, another).by_place() == ([work(4), work(9)], [work(n) for n in range(4)])
    store = MemoryStore()
    note(store, 4, HEIGHT)
    assert sort(store, *late).by_place() == ([work(3)], [work(0), work(1), work(2)]), "once that is in a block, the next one"


def test_blocks_without_notes_are_behind_a_time() -> None:
    assert not covered(NOW, None) and not covered(NOW + SLACK_MS - 1, NOW) and covered(NOW + SLACK_MS, NOW)
    at = Cursor(NETWORK.id, 7, "hash", 0, 7, NOW)
    noted = at.noted(7)
    assert (noted.noted_from, noted.noted_at) == (7, NOW)
    later = replace(noted, updated_at=NOW + 1).noted(5)
    assert (later.noted_from, later.noted_at) == (5, NOW), "older blocks that are noted make nothing younger"
    before = replace(at, noted_from=3)  # stored by a version that did not know the time
    assert (before.noted(7).noted_from, before.noted(7).noted_at) == (3, NOW)


class Node:
    def __init__(self, hashes: Callable[[int], str | None]) -> None:
        self.hashes, self.asked = hashes, list[Any]()

    def block_hash(self, number: int) -> str | None:
        self.asked.append(number)
        return self.hashes(number)

    def receipt(self, txid: str) -> Receipt:
        self.asked.append(txid)
        return Receipt(txid, True, 90, "hash 90", None)


def test_one_question_tells_that_all_remembered_blocks_stand() -> None:
    node: Any = Node(lambda number: f"hash {number}")
    answers = Answers(node)
    assert [answers.hash_at(n, SCANNED) for n in range(40, 100)] == [f"hash {n}" for n in range(40, 100)]
    assert node.asked == [HEIGHT]
    assert answers.hash_at(12, SCANNED) == "hash 12" and answers.hash_at(12, SCANNED) == "hash 12"
    assert node.asked == [HEIGHT, 12], "deeper than remembered: as the node says, once"
    for _ in range(100):
        receipt = answers.receipt("tx")
        assert receipt is not None and answers.in_chain(receipt, SCANNED)
    assert node.asked == [HEIGHT, 12, "tx"]


@pytest.mark.parametrize("fork", [-1, 30, 31, 64, 98, 99])
@pytest.mark.parametrize("tip", [HEIGHT, 97])
def test_after_a_fork_it_is_what_the_node_says(fork: int, tip: int) -> None:
    """The new branch may be shorter, for a moment."""

    def hashes(number: int) -> str | None:
        return None if number > tip else f"hash {number}" if number <= fork else f"other {number}"

    node: Any = Node(hashes)
    answers = Answers(node)
    scanned = replace(SCANNED, height=min(HEIGHT, tip))
    assert [answers.hash_at(n, scanned) for n in range(30, HEIGHT + 1)] == [hashes(n) for n in range(30, HEIGHT + 1)]
    assert max(Counter(node.asked).values()) == 1
    few = Node(hashes)
    Answers(few).hash_at(40, scanned)  # type: ignore[arg-type]
    assert len(few.asked) <= 9, "the fork is found by halves"


def test_a_node_that_does_not_answer_is_asked_again() -> None:
    tries = count()

    def hashes(number: int) -> str | None:
        if next(tries) == 0:
            raise TimeoutError
        return f"hash {number}"

    node: Any = Node(hashes)
    answers = Answers(node)
    with pytest.raises(TimeoutError):
        answers.hash_at(50, SCANNED)
    assert answers.hash_at(50, SCANNED) == "hash 50"
