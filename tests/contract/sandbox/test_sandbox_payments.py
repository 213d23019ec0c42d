"""Payments on a simulated network: signatures, nonces, funds, failures, and outcomes that developers ask for."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.chains.sandbox.payload import SignedPayment
from chalicelib.domain.catalogue.catalogue import NETWORK_ORDER
from chalicelib.usecases.ports.accounts import Payment
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.ports.signing import Signature, Signed
from chalicelib.usecases.sandbox.sandbox import Decided
from tests.support.sandbox import NETWORKS, USDT, Lab, Wallet, lab_of

FEE = 21_000 * 20 * 10**9
TOKEN_FEE = 65_000 * 20 * 10**9
ETHER = 10**18
SHOP = "0x" + "cd" * 20


@pytest.fixture
def lab() -> Iterator[Lab]:
    with lab_of("ethereum") as made:
        yield made


@pytest.fixture
def hot(lab: Lab) -> Wallet:
    wallet = lab.wallet(7)
    lab.chain.deposit(wallet.address, None, ETHER)
    lab.chain.deposit(wallet.address, USDT, 1_000)
    return wallet


def sent(lab: Lab, hot: Wallet, amount: int, nonce: int, contract: str | None = None, **more: Any) -> Signed:
    signed = lab.signed(hot, SHOP, amount, nonce, contract, **more)
    lab.payer.broadcast(signed.raw)
    return signed


@pytest.mark.parametrize("slug", NETWORK_ORDER)
def test_a_payment_of_every_network_arrives_and_costs_its_fee(slug: str) -> None:
    with lab_of(slug) as lab:
        hot, shop = lab.wallet(1), lab.wallet(2).address
        lab.chain.deposit(hot.address, None, ETHER)
        fee = lab.payer.estimate(Payment(hot.address, shop, None, 100, 0)).fee
        signed = lab.signed(hot, shop, 100, 0)
        lab.payer.broadcast(signed.raw)
        receipt = lab.reader.receipt(signed.txid)
        assert receipt is not None
        assert (receipt.success, receipt.fee) == (True, fee)
        assert (lab.reader.balance(shop), lab.reader.balance(hot.address)) == (100, ETHER - 100 - fee)
        block = lab.all_blocks()[receipt.block_number]
        (transfer,) = lab.reader.proven(block, block.transfers)
        assert (transfer.txid, transfer.recipient, transfer.amount) == (signed.txid, lab.chain.form(shop), 100)
        assert lab.payer.next_nonce(hot.address) == 1
        explained = lab.payer.explain(SignedPayment.decode(signed.raw).unsigned)
        assert (explained.chain_id, explained.nonce, explained.amount) == (NETWORKS[slug].chain_id, 0, 100)
        assert (explained.recipient, explained.contract) == (lab.chain.form(shop), None)


def test_a_token_payment_moves_the_token_and_burns_the_native_coin(lab: Lab, hot: Wallet) -> None:
    signed = sent(lab, hot, 400, 0, USDT)
    assert (lab.reader.balance(SHOP, USDT), lab.reader.balance(hot.address, USDT)) == (400, 600)
    assert lab.reader.balance(hot.address) == ETHER - TOKEN_FEE
    receipt = lab.reader.receipt(signed.txid)
    assert receipt is not None
    assert receipt.fee == TOKEN_FEE


def test_another_key_can_not_pay_from_a_wallet(lab: Lab, hot: Wallet) -> None:
    thief = lab.wallet(8)
    unsigned = lab.payer.prepare(Payment(hot.address, SHOP, None, 1, 0))
    stolen = thief.sign(lab.payer.digest(unsigned))
    with pytest.raises(ValueError, match="not signed by the key of its sender"):
        lab.payer.assemble(unsigned, stolen)
    with pytest.raises(Refused, match="invalid transaction"):
        lab.payer.broadcast(SignedPayment(unsigned, stolen).encode())
    assert lab.reader.balance(SHOP) == 0


def test_bytes_of_another_network_or_with_a_changed_amount_are_refused(lab: Lab, hot: Wallet) -> None:
    signed = lab.signed(hot, SHOP, 5, 0)
    good = SignedPayment.decode(signed.raw)
    more = bytes.fromhex(good.unsigned).replace(b'"amount":5,', b'"amount":6,').hex()
    assert more != good.unsigned
    elsewhere = bytes.fromhex(good.unsigned).replace(b"test:ethereum", b"test:bsc").hex()
    for unsigned in (more, elsewhere):
        with pytest.raises(Refused):
            lab.payer.broadcast(replace(good, unsigned=unsigned).encode())
    with pytest.raises(Refused):
        lab.payer.broadcast("00")
    with pytest.raises(ValueError):
        lab.payer.assemble(good.unsigned, Signature(1, 0, 0))


def test_broadcasting_again_is_safe(lab: Lab, hot: Wallet) -> None:
    signed = sent(lab, hot, 5, 0)
    tip = lab.reader.tip()
    lab.payer.broadcast(signed.raw)
    assert (lab.reader.tip(), lab.reader.balance(SHOP)) == (tip, 5)


def test_a_used_nonce_is_too_low_for_another_payment(lab: Lab, hot: Wallet) -> None:
    sent(lab, hot, 5, 0)
    with pytest.raises(Refused, match="nonce too low"):
        sent(lab, hot, 6, 0)
    assert lab.reader.balance(SHOP) == 5


def test_a_nonce_gap_waits_until_it_is_filled(lab: Lab, hot: Wallet) -> None:
    third, second = sent(lab, hot, 300, 2), sent(lab, hot, 20, 1)
    lab.chain.mine(3)
    assert (lab.reader.receipt(second.txid), lab.reader.receipt(third.txid)) == (None, None)
    assert lab.payer.next_nonce(hot.address) == 0
    sent(lab, hot, 1, 0)
    numbers = [receipt.block_number for s in (second, third) if (receipt := lab.reader.receipt(s.txid)) is not None]
    assert len(numbers) == 2
    assert numbers == sorted(numbers)
    assert (lab.reader.balance(SHOP), lab.payer.next_nonce(hot.address)) == (321, 3)


def test_a_filled_gap_is_also_mined_when_the_first_miner_died(lab: Lab, hot: Wallet) -> None:
    second = sent(lab, hot, 20, 1)

    def die() -> None:
        raise KeyboardInterrupt

    first = lab.signed(hot, SHOP, 1, 0)
    lab.client.after_write = die
    with pytest.raises(KeyboardInterrupt):
        lab.payer.broadcast(first.raw)
    assert lab.reader.receipt(second.txid) is None
    tip = lab.reader.tip()
    assert lab.chain.mine(2) == tip + 2
    assert lab.reader.receipt(second.txid) is not None


def test_a_replacement_needs_a_tenth_more_fee_and_takes_the_nonce(lab: Lab, hot: Wallet) -> None:
    old = lab.signed(hot, SHOP, 5, 0)
    lab.chain.settle(old.txid, "stick")
    lab.payer.broadcast(old.raw)
    assert lab.reader.receipt(old.txid) is None
    with pytest.raises(Refused, match="underpriced"):
        sent(lab, hot, 6, 0)
    new = sent(lab, hot, 6, 0, priority="high")
    assert lab.reader.receipt(new.txid) is not None
    with pytest.raises(Refused, match="nonce too low"):
        lab.payer.broadcast(old.raw)
    with pytest.raises(Refused, match="nonce too low"):
        lab.chain.settle(old.txid, "confirm")
    assert lab.reader.balance(SHOP) == 6


@pytest.mark.parametrize(
    ("amount", "contract", "words"),
    [(ETHER, None, "insufficient funds"), (ETHER - FEE + 1, None, "insufficient funds"), (1_001, USDT, "exceeds balance")],
)
def test_more_than_there_is_is_refused(lab: Lab, hot: Wallet, amount: int, contract: str | None, words: str) -> None:
    payment = Payment(hot.address, SHOP, contract, amount, 0)
    for ask in (lab.payer.estimate, lab.payer.prepare):
        with pytest.raises(Refused, match=words):
            ask(payment)


def test_funds_that_went_elsewhere_before_the_broadcast_are_missed(lab: Lab, hot: Wallet) -> None:
    late = lab.signed(hot, SHOP, ETHER - 2 * FEE, 1)
    sent(lab, hot, ETHER // 2, 0)
    with pytest.raises(Refused, match="insufficient funds"):
        lab.payer.broadcast(late.raw)
    assert lab.reader.balance(SHOP) == ETHER // 2


def test_a_failed_payment_is_in_a_block_moves_nothing_and_costs_its_fee(lab: Lab, hot: Wallet) -> None:
    for nonce, contract in enumerate((None, USDT)):
        signed = lab.signed(hot, SHOP, 5, nonce, contract)
        assert lab.chain.settle(signed.txid, "fail") == "planned"
        lab.payer.broadcast(signed.raw)
        receipt = lab.reader.receipt(signed.txid)
        assert receipt is not None
        assert not receipt.success
        assert lab.reader.tip() - receipt.block_number + 1 == lab.network.confirmations
        block = lab.all_blocks()[receipt.block_number]
        # As on a real chain: the value is written in a failed transaction, a failed token transfer has no log.
        assert [t.amount for t in block.transfers] == ([5] if contract is None else [])
        assert lab.reader.proven(block, block.transfers) == []
    assert (lab.reader.balance(SHOP), lab.reader.balance(SHOP, USDT)) == (0, 0)
    assert lab.reader.balance(hot.address) == ETHER - FEE - TOKEN_FEE
    assert lab.payer.next_nonce(hot.address) == 2


def test_a_stuck_payment_stays_out_until_told_otherwise(lab: Lab, hot: Wallet) -> None:
    first = sent(lab, hot, 1, 0)
    second = sent(lab, hot, 20, 1)
    other = lab.chain.deposit(SHOP, None, 4_000)
    assert lab.chain.settle(first.txid, "stick") == "stuck"
    lab.chain.mine(5)
    lab.payer.broadcast(first.raw)
    lab.payer.broadcast(second.raw)
    # The second can not go before the first; what others did keeps its place.
    assert (lab.reader.receipt(first.txid), lab.reader.receipt(second.txid)) == (None, None)
    assert lab.reader.balance(SHOP) == 4_000
    kept = lab.reader.receipt(other.txid)
    assert kept is not None
    assert kept.block_number == other.number
    assert lab.chain.settle(second.txid, "confirm") == "waiting"
    assert lab.chain.settle(first.txid, "confirm") == "succeeded"
    assert lab.chain.settle(second.txid, "confirm") == "succeeded"
    assert lab.reader.balance(SHOP) == 4_021


def test_an_outcome_changes_while_it_is_not_final_and_never_after(lab: Lab, hot: Wallet) -> None:
    signed = sent(lab, hot, 5, 0)
    receipt = lab.reader.receipt(signed.txid)
    assert receipt is not None
    assert receipt.success
    assert lab.chain.settle(signed.txid, "fail") == "failed"
    assert lab.chain.settle(signed.txid, "fail") == "failed"
    assert lab.reader.balance(SHOP) == 0
    tip = lab.reader.tip()
    for late in ("confirm", "stick"):
        with pytest.raises(Decided, match="final"):
            lab.chain.settle(signed.txid, late)  # type: ignore[arg-type]
    assert lab.reader.tip() == tip


def test_a_failure_that_is_not_final_can_become_a_success(lab: Lab, hot: Wallet) -> None:
    signed = lab.signed(hot, SHOP, 5, 0)
    lab.chain.settle(signed.txid, "fail")
    lab.payer.broadcast(signed.raw)
    lab.chain.reorganise(lab.network.confirmations, remine=False)
    lab.payer.broadcast(signed.raw)
    receipt = lab.reader.receipt(signed.txid)
    assert receipt is not None
    assert not receipt.success
    assert lab.chain.settle(signed.txid, "confirm") == "succeeded"
    assert lab.reader.balance(SHOP) == 5


def test_a_payment_that_a_reorganisation_dropped_comes_back_by_broadcasting_the_same_bytes(lab: Lab, hot: Wallet) -> None:
    signed = sent(lab, hot, 5, 0)
    lab.chain.reorganise(1, remine=False)
    assert lab.reader.receipt(signed.txid) is None
    assert lab.payer.next_nonce(hot.address) == 0
    lab.chain.mine(4)
    assert lab.reader.receipt(signed.txid) is None
    lab.payer.broadcast(signed.raw)
    assert lab.reader.receipt(signed.txid) is not None
    assert lab.reader.balance(SHOP) == 5


def test_a_planned_outcome_is_for_the_payment_with_its_reference_and_for_no_other(lab: Lab, hot: Wallet) -> None:
    lab.chain.plan("wd_1", "fail")
    lab.chain.plan("wd_2", "stick")
    lab.chain.deposit(SHOP, None, 5)
    others = [sent(lab, hot, 5, 0), sent(lab, hot, 5, 1, reference="wd_3"), sent(lab, hot, 5, 2, USDT)]
    assert all((receipt := lab.reader.receipt(s.txid)) is not None and receipt.success for s in others)
    failed, stuck = sent(lab, hot, 5, 3, reference="wd_1"), sent(lab, hot, 5, 4, reference="wd_2")
    receipt = lab.reader.receipt(failed.txid)
    assert receipt is not None
    assert not receipt.success
    assert lab.reader.receipt(stuck.txid) is None
    assert lab.chain.settle(stuck.txid, "confirm") == "succeeded"
    free = sent(lab, hot, 5, 5, reference="wd_1")
    receipt = lab.reader.receipt(free.txid)
    assert receipt is not None
    assert receipt.success


def test_a_plan_is_forgotten_on_request_and_after_a_day(lab: Lab, hot: Wallet) -> None:
    lab.chain.plan("wd_1", "fail")
    lab.chain.forget("wd_1")
    lab.chain.plan("wd_2", "fail")
    lab.clock.pass_seconds(24 * 3600 + 1)
    for nonce, reference in enumerate(("wd_1", "wd_2")):
        receipt = lab.reader.receipt(sent(lab, hot, 5, nonce, reference=reference).txid)
        assert receipt is not None
        assert receipt.success


def test_a_plan_made_while_the_payment_is_being_mined_is_not_missed(lab: Lab, hot: Wallet) -> None:
    signed = lab.signed(hot, SHOP, 5, 0, reference="wd_1")
    lab.client.before_write = lambda: lab.chain.plan("wd_1", "stick")
    lab.payer.broadcast(signed.raw)
    assert lab.reader.receipt(signed.txid) is None


def test_the_same_payment_broadcast_from_two_places_at_once_is_mined_once(lab: Lab, hot: Wallet) -> None:
    signed = lab.signed(hot, SHOP, 5, 0)
    lab.client.before_write = lambda: lab.payer.broadcast(signed.raw)
    lab.payer.broadcast(signed.raw)
    assert (lab.reader.balance(SHOP), lab.reader.balance(hot.address)) == (5, ETHER - 5 - FEE)
    assert lab.payer.next_nonce(hot.address) == 1


def test_many_writers_at_once_lose_nothing(lab: Lab, hot: Wallet) -> None:
    payments = [lab.signed(hot, SHOP, 1, nonce) for nonce in range(6)]
    tip = lab.reader.tip()

    def deposit(_: int) -> None:
        lab.chain.deposit(SHOP, None, 1_000)

    with ThreadPoolExecutor(6) as pool:
        jobs = [pool.submit(deposit, n) for n in range(18)]
        jobs += [pool.submit(lab.payer.broadcast, signed.raw) for signed in reversed(payments)]
        for job in jobs:
            job.result()
    assert lab.reader.balance(SHOP) == 18_006
    assert lab.payer.next_nonce(hot.address) == 6
    assert lab.reader.tip() == tip + 24
    txids = [t.txid for b in lab.all_blocks() for t in b.transfers]
    assert len(txids) == len(set(txids)) == 26
