"""Whatever developers do to a simulated network, in any order: it stays a chain, and no coin appears or vanishes."""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import ExitStack
from itertools import pairwise

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.sandbox.sandbox import Decided
from tests.support.sandbox import USDT, lab_of

WALLETS = (1, 2, 3)
amounts = st.integers(1, 10**16)
coins = st.sampled_from([None, USDT])


class Chain(RuleBasedStateMachine):
    """Drives one network and recomputes every balance from the blocks alone."""

    def __init__(self) -> None:
        super().__init__()
        self.ending = ExitStack()
        self.tip = 0
        self.hashes: list[str] = []
        self.sent: list[str] = []

    @initialize(slug=st.sampled_from(["ethereum", "litecoin"]), block_seconds=st.sampled_from([0, 5]))
    def start(self, slug: str, block_seconds: int) -> None:
        self.lab = self.ending.enter_context(lab_of(slug, block_seconds))
        self.lab.chain.open()
        self.wallets = [self.lab.wallet(n) for n in WALLETS]
        for wallet in self.wallets[:2]:
            for coin in (None, USDT):
                self.lab.chain.deposit(wallet.address, coin, 10**17)
        self.lab.chain.mine(1)
        self.hashes = [b.hash for b in self.lab.all_blocks()]

    def teardown(self) -> None:
        self.ending.close()

    @rule(to=st.integers(0, 2), amount=amounts, coin=coins)
    def deposit(self, to: int, amount: int, coin: str | None) -> None:
        self.lab.chain.deposit(self.wallets[to].address, coin, amount)

    @rule(sender=st.integers(0, 2), to=st.integers(0, 2), amount=amounts, coin=coins, ahead=st.integers(0, 1))
    def pay(self, sender: int, to: int, amount: int, coin: str | None, ahead: int) -> None:
        wallet = self.wallets[sender]
        try:
            nonce = self.lab.payer.next_nonce(wallet.address) + ahead
            signed = self.lab.signed(wallet, self.wallets[to].address, amount, nonce, coin)
            self.lab.payer.broadcast(signed.raw)
        except Refused:
            return
        self.sent.append(signed.txid)

    @rule(count=st.integers(1, 12))
    def mine(self, count: int) -> None:
        before = self.lab.reader.tip()
        assert self.lab.chain.mine(count) == before + count

    @rule(seconds=st.integers(0, 23))
    def wait(self, seconds: int) -> None:
        self.lab.clock.pass_seconds(seconds)

    @precondition(lambda self: self.lab.reader.tip() > 0)
    @rule(depth=st.integers(1, 15), remine=st.booleans())
    def reorganise(self, depth: int, remine: bool) -> None:
        before = self.lab.all_blocks()
        depth = min(depth, len(before) - 1)
        done = self.lab.chain.reorganise(depth, remine)
        after = self.lab.all_blocks()
        assert done.first == len(before) - depth
        assert after[: done.first] == before[: done.first]
        assert not {b.hash for b in after[done.first :]} & {b.hash for b in before}
        if remine:
            assert not done.dropped
            assert [b.transfers for b in after[: len(before)]] == [b.transfers for b in before]
        self.hashes = [b.hash for b in after]

    @precondition(lambda self: self.sent)
    @rule(data=st.data(), outcome=st.sampled_from(["confirm", "fail", "stick"]))
    def settle(self, data: st.DataObject, outcome: str) -> None:
        txid = data.draw(st.sampled_from(self.sent))
        try:
            state = self.lab.chain.settle(txid, outcome)  # type: ignore[arg-type]
        except (Refused, Decided):
            state = None
        receipt = self.lab.reader.receipt(txid)
        if state in ("stuck", "waiting"):
            assert receipt is None
        if state in ("succeeded", "failed"):
            assert receipt is not None
            assert receipt.success == (state == "succeeded")
            assert self.lab.reader.tip() - receipt.block_number + 1 >= self.lab.network.confirmations
        self.hashes = [b.hash for b in self.lab.all_blocks()]

    @invariant()
    def stays_a_chain(self) -> None:
        if not hasattr(self, "lab"):
            return
        blocks = self.lab.all_blocks()
        assert [b.number for b in blocks] == list(range(len(blocks)))
        assert all(b.parent_hash == a.hash for a, b in pairwise(blocks))
        assert all(b.time >= a.time for a, b in pairwise(blocks))
        assert blocks[-1].time <= self.lab.clock.now_ms()
        assert len({b.hash for b in blocks}) == len(blocks)
        assert [b.hash for b in blocks][: len(self.hashes)] == self.hashes
        assert len(blocks) - 1 >= self.tip
        self.tip, self.hashes = len(blocks) - 1, [b.hash for b in blocks]

    @invariant()
    def money_is_what_the_blocks_say(self) -> None:
        if not hasattr(self, "lab"):
            return
        lab = self.lab
        form = lab.chain.form
        ours = {form(w.address) for w in self.wallets}
        sums: dict[tuple[str, str | None], int] = defaultdict(int)
        sent: dict[str, int] = defaultdict(int)
        seen = set()
        for block in lab.all_blocks():
            for transfer in lab.reader.proven(block, block.transfers):
                sums[transfer.recipient, transfer.contract] += transfer.amount
                if transfer.txid in self.sent:
                    sums[transfer.sender, transfer.contract] -= transfer.amount
                seen.add(transfer.txid)
        for txid in set(self.sent):
            receipt = lab.reader.receipt(txid)
            if receipt is None:
                assert txid not in seen
                continue
            assert (txid in seen) == receipt.success
            state = lab.chain.reads.tx(txid)
            assert state is not None
            sums[state.tx.sender, None] -= receipt.fee
            sent[state.tx.sender] += 1
        for address in ours:
            for coin in (None, USDT):
                assert lab.reader.balance(address, coin) == sums[address, coin] >= 0
            assert lab.payer.next_nonce(address) == sent[address]


TestChain = Chain.TestCase
TestChain.settings = settings(
    max_examples=15 if os.environ.get("SWEEP") == "full" else 2,
    stateful_step_count=18,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
