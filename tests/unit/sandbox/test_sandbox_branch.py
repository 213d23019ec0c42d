"""The simulated chain's blocks and forks, without any storage: what must hold whatever is mined and dropped."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.chains.sandbox.branch import GENESIS_MS, MAX_DEPTH, Fork, Head, Stretch, View, block_hash
from chalicelib.domain.ids import network_id

NETWORK = network_id("test", "ethereum")
STEP = 2_000


@dataclass
class Model:
    """A chain whose stretches and archived forks are kept, as the table would."""

    head: Head = field(default_factory=Head)
    now: int = GENESIS_MS
    archive: list[Fork] = field(default_factory=list)
    salts: int = 0

    def view(self) -> View:
        return View(self.head, self.now, tuple(self.archive))

    def names(self) -> list[str]:
        view = self.view()
        return [block_hash(NETWORK, "evm", view.salt_at(n), n, None) for n in range(view.tip + 1)]

    def mine(self, count: int) -> Stretch:
        after, stretch = self.view().extended(count, STEP)
        self.head = after.head
        return stretch

    def fork(self, depth: int) -> int:
        view = self.view()
        first = view.tip - depth + 1
        self.salts += 1
        after, _, archived = view.forked(first, f"salt{self.salts}", STEP)
        self.archive += archived
        self.head = after.head
        return first


steps = st.lists(
    st.one_of(
        st.tuples(st.just("mine"), st.integers(1, 40)),
        st.tuples(st.just("fork"), st.integers(1, 60)),
        st.tuples(st.just("wait"), st.integers(0, 40_000)),
    ),
    max_size=25,
)


@given(steps)
def test_a_fork_changes_exactly_the_blocks_from_its_first_on(todo: list[tuple[str, int]]) -> None:
    chain = Model()
    for what, how_much in todo:
        before = chain.names()
        if what == "wait":
            chain.now += how_much
            assert chain.names()[: len(before)] == before
        elif what == "mine":
            chain.mine(how_much)
            assert chain.names()[: len(before)] == before
            assert len(chain.names()) == len(before) + how_much
        elif how_much < len(before):
            first = chain.fork(how_much)
            after = chain.names()
            assert len(after) == len(before) + 1
            assert after[:first] == before[:first]
            assert not set(after[first:]) & set(before)


@given(steps)
def test_the_tip_never_goes_down_and_names_are_never_used_twice(todo: list[tuple[str, int]]) -> None:
    chain = Model()
    tip = 0
    for what, how_much in todo:
        if what == "wait":
            chain.now += how_much
        elif what == "mine":
            chain.mine(how_much)
        elif how_much <= chain.view().tip:
            chain.fork(how_much)
        assert chain.view().tip >= tip
        tip = chain.view().tip
        assert len(set(chain.names())) == tip + 1


def test_many_forks_stay_few_in_the_head_and_old_blocks_keep_their_names() -> None:
    chain = Model()
    for _ in range(2 * MAX_DEPTH):
        chain.mine(1)
        chain.fork(1)
    assert len(chain.head.forks) <= MAX_DEPTH + 2
    assert chain.archive
    names = chain.names()
    without = View(chain.head, chain.now)
    assert [block_hash(NETWORK, "evm", without.salt_at(n), n, None) for n in range(without.known_from, without.tip + 1)] == names[
        without.known_from :
    ]
    with pytest.raises(LookupError):
        without.salt_at(without.known_from - 1)


def test_the_clock_mines_one_block_per_step_from_the_last_mined_one() -> None:
    chain = Model()
    chain.mine(3)
    assert chain.view().tip == 3
    chain.now += STEP - 1
    assert chain.view().tip == 3
    chain.now += 1
    assert chain.view().tip == 4
    chain.now += 10 * STEP
    assert chain.view().tip == 14
    assert chain.view().grown_time(14) == chain.now


def test_a_clock_that_is_behind_neither_drops_blocks_nor_turns_time_back() -> None:
    chain = Model()
    chain.now += 60_000
    chain.mine(5)
    tip, time = chain.view().tip, chain.head.time
    chain.now -= 30_000
    assert chain.view().tip == tip
    stretch = chain.mine(1)
    assert (stretch.height, stretch.time) == (tip + 1, time)


def test_a_cut_stretch_says_the_same_of_the_blocks_it_still_covers() -> None:
    stretch = Stretch(height=20, after=5, after_ms=1_000, step=10, auto_last=12, time=5_000)
    for height in range(6, 21):
        cut = stretch.cut(height)
        assert [cut.time_of(n) for n in range(6, height + 1)] == [stretch.time_of(n) for n in range(6, height + 1)]
        assert Stretch.from_doc(height, cut.to_doc()) == cut


@pytest.mark.parametrize(("family", "start", "length"), [("evm", "0x", 66), ("utxo", "00000000", 64), ("tron", f"{77:016x}", 64)])
def test_hashes_look_like_those_of_their_family(family: str, start: str, length: int) -> None:
    name = block_hash(NETWORK, family, "salt", 77, None)  # type: ignore[arg-type]
    assert name.startswith(start)
    assert len(name) == length
    int(name, 16)


def test_a_hash_depends_on_network_branch_number_and_transaction() -> None:
    base = (NETWORK, "evm", "a", 7, "0x1")
    changed = [
        (network_id("test", "bsc"), "evm", "a", 7, "0x1"), (NETWORK, "evm", "b", 7, "0x1"), (NETWORK, "evm", "a", 8, "0x1"),
        (NETWORK, "evm", "a", 7, "0x2"), (NETWORK, "evm", "a", 7, None),
    ]  # fmt: skip
    assert len({block_hash(*facts) for facts in [base, *changed]}) == 6  # type: ignore[arg-type]


def test_a_head_comes_back_from_the_table_as_it_was() -> None:
    head = Head(9, 120, 1_760_000_000_000, 500, ((0, ""), (40, "abc")))
    assert Head.from_doc(9, head.to_doc()) == head
