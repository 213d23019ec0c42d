"""Withdrawals from coins: several in one transaction, through whatever happens. The chain is `tests.support.fake_coins`; store,
queues, schedules and HTTP are the real ones.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.addresses.addresses import RetiredWallet, Wallet
from chalicelib.domain.catalogue.rates import Rate, Rates
from chalicelib.domain.chain import FeeQuote
from chalicelib.domain.ids import network_id
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.screening.rules import RiskRules
from chalicelib.domain.treasury.consolidations import CoinMove
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.withdrawals.fee_budget import MICROS, FeesBorne
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Withdrawal
from chalicelib.store.dynamo import DynamoStore
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.payouts import bundle_gathering
from chalicelib.usecases.payouts.bundle_parts import BundleParts
from chalicelib.usecases.payouts.bundle_payouts import BundlePayouts
from chalicelib.usecases.payouts.checks import PayoutChecks
from chalicelib.usecases.payouts.fees import PayoutFees
from chalicelib.usecases.payouts.rebuild import made_anew
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.usecases.transactions.give_up import NotGivenUp
from chalicelib.usecases.transactions.utxo.engine import UtxoEngine
from chalicelib.usecases.transactions.utxo.signing import UtxoSigning
from chalicelib.usecases.withdrawals.fee_budget import set_budget
from chalicelib.wiring import Services, services
from chalicelib.wiring.custody import CustodyWiring
from chalicelib.wiring.payouts import PayoutWiring
from tests.support.bundles import COIN, CONFIRMATIONS, NETWORK, OUT, REORG, Shop, cut, die, hang
from tests.support.fake_coins import DigestSigner, Tx

FULL = os.environ.get("SWEEP") == "full"


@pytest.fixture
def shop(begin: Callable[[], Shop]) -> Shop:
    return begin()


def test_several_withdrawals_are_one_transaction(shop: Shop) -> None:
    ids = [shop.withdraw("1", 0), shop.withdraw("2.5", 1), shop.withdraw("0.25", 2)]
    shop.drain()
    (bundle,) = shop.bundles()
    assert bundle.state == "signed" and len(bundle.payouts) == 3 and len(shop.chain.pool) == 1
    assert {shop.status(i) for i in ids} == {"confirming"}
    shop.whole()
    shop.chain.mine(CONFIRMATIONS)
    shop.drain()
    assert {shop.status(i) for i in ids} == {"confirmed"}
    assert [shop.paid(n) for n in range(3)] == [COIN, 250_000_000, 25_000_000]
    (bundle,) = shop.bundles()
    assert bundle.state == "settled" and bundle.newest is not None
    fees = [w.fee for w in services().store.every(Withdrawal)]
    assert sum(fees) == bundle.newest.fee and max(fees) - min(fees) <= 1
    assert sum(coin.amount for coin in shop.held().free) == shop.chain.balance_of(shop.hot)
    assert shop.available() == "26.25"
    shop.whole()
    shop.confirm(REORG)
    shop.run()  # depth counts in what the poll before has scanned
    assert not [work for work in services().store.every_work() if work.kind == "bundle"]
    shop.whole()


def test_the_floor_of_the_hot_wallet_stays_whatever_joins(shop: Shop) -> None:
    body = {"coin": "ltc", "network": "litecoin", "hotFloor": "10"}  # of 17
    assert shop.stack.call("PUT", "/v1/coins", shop.stack.keys["admin_live"], json=body).status == 200
    ids = [shop.withdraw("4.5", 0), shop.withdraw("3", 1), shop.withdraw("2", 2)]
    shop.run()
    (bundle,) = shop.bundles()
    waiting = [w for w in services().store.every(Withdrawal) if w.pending_reason == "liquidity"]
    assert [w.id for w in waiting] == [ids[1]] and {p.withdrawal for p in bundle.payouts} == {ids[0], ids[2]}
    shop.chain.pay(shop.hot, 3 * COIN)
    shop.confirm()
    shop.run()
    shop.confirm()
    assert [shop.status(i) for i in ids] == ["confirmed"] * 3
    left = services().store.get(WalletBalance, network=NETWORK, address=shop.hot, asset=waiting[0].asset)
    assert left is not None and left.units >= 10 * COIN
    shop.whole()


def test_merchants_take_turns_in_a_bundle(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bundle has a bounded number of payments: one merchant's many leave room for another's few."""
    monkeypatch.setattr(bundle_gathering, "MOST_PAYOUTS", 4)
    other = Shop(shop.stack, shop.chain)
    other.key = shop.stack.keys["admin_live"]
    made = other.post("/v1/invoices", currency="ltc", amount="2", network="litecoin")
    shop.chain.pay(made["address"], 2 * COIN)
    shop.confirm()
    many = [shop.withdraw("0.1", 0) for _ in range(9)]
    few = [other.withdraw("0.2", 1), other.withdraw("0.2", 2)]
    shop.drain()
    first = shop.bundles()[0]
    assert {payout.withdrawal for payout in first.payouts} == {*many[:2], *few}
    assert {shop.status(i) for i in many} | {other.status(i) for i in few} == {"confirming"}
    shop.whole()


def test_change_is_no_deposit(shop: Shop) -> None:
    from chalicelib.domain.deposits.deposits import Deposit

    before = len(list(services().store.every(Deposit)))
    shop.withdraw("1", run=True)
    shop.confirm()
    assert len(list(services().store.every(Deposit))) == before


def commits(most: int, step: int) -> range:
    """The commits that are cut, by their numbers: `make sweep` cuts every `step`th, a check has time for a third of those."""
    return range(1, most, step if FULL else 3 * step)


def pay_first(shop: Shop) -> None:
    first = min(services().store.every(Withdrawal), key=lambda w: w.id)
    services().payouts.pay(first.tenant, first.id)


@pytest.mark.parametrize("how", ["dies", "hangs", "rival"])
def test_whatever_happens_at_a_commit_each_is_paid_once(begin: Callable[[], Shop], how: str) -> None:
    """Whoever comes next goes on from what is stored; nothing is paid twice, and nothing is left behind."""
    for at in commits(40, {"dies": 1, "hangs": 4, "rival": 3}[how]):
        shop = begin()
        ids = [shop.withdraw("1", 0), shop.withdraw("2", 1)]
        what = {"dies": die, "hangs": hang, "rival": lambda shop=shop: pay_first(shop)}[how]
        fired = cut(shop, at, what, pay_first, after=how == "hangs")
        shop.run()
        shop.confirm()
        assert [shop.status(i) for i in ids] == ["confirmed", "confirmed"], at
        assert (shop.paid(0), shop.paid(1)) == (COIN, 2 * COIN)
        shop.whole()
        if not fired:
            assert at > 8
            return
    raise AssertionError("it does not end")


def test_dying_while_it_is_settled(begin: Callable[[], Shop]) -> None:
    for at in commits(20, 1):
        shop = begin()
        withdrawal = shop.withdraw("1", run=True)
        shop.chain.mine(CONFIRMATIONS)
        fired = cut(shop, at, die, Shop.run)
        shop.run()
        assert shop.status(withdrawal) == "confirmed" and shop.bundles()[0].state == "settled"
        shop.whole()
        if not fired:
            assert at > 2
            return


def test_what_is_signed_is_sent_again_and_never_anew(shop: Shop) -> None:
    withdrawal = shop.withdraw("1", run=True)
    shop.chain.forget()
    shop.run()
    (bundle,) = shop.bundles()
    assert list(shop.chain.pool) == [bundle.txids[0]] and bundle.earlier == ()
    shop.confirm()
    assert shop.status(withdrawal) == "confirmed"


def test_a_bundle_waits_for_no_later_withdrawal_and_its_coins_for_no_other(shop: Shop) -> None:
    """Coins that are reserved are not spent again; change only when it is final."""
    first = shop.withdraw("9", run=True)
    second = shop.withdraw("4", run=True)
    third = shop.withdraw("3", run=True)
    assert [shop.status(w) for w in (first, second, third)] == ["confirming", "confirming", "pending"]
    one, two = shop.bundles()
    assert not set(one.coins) & set(two.coins)
    shop.confirm()
    shop.later(3)
    shop.run()
    assert [shop.status(w) for w in (first, second, third)] == ["confirmed", "confirmed", "confirming"]
    shop.confirm()
    assert shop.status(third) == "confirmed"
    shop.whole()


def test_too_much_waits_and_small_ones_pass_it(shop: Shop) -> None:
    large = shop.withdraw("18", 0)
    small = shop.withdraw("1", 1)
    dust = shop.withdraw("0.00000290", 2)
    shop.run()
    assert shop.status(large) == "pending" and shop.status(small) == "confirming" and shop.status(dust) == "failed"
    shop.whole()
    shop.chain.pay(shop.hot, 3 * COIN)
    shop.confirm()
    shop.later(3)
    shop.run()
    assert shop.status(large) == "confirming"
    shop.confirm()
    assert shop.status(large) == "confirmed" and shop.available() == "11"
    shop.whole()


def gathered(shop: Shop, large: str = "16.9978", small: str = "0.002") -> list[str]:
    """Two withdrawals that the coins suffice for at the rate of now, gathered by somebody who died before the seal."""
    ids = [shop.withdraw(large, 0), shop.withdraw(small, 1)]
    assert cut(shop, 3, die, pay_first)
    (bundle,) = shop.bundles()
    assert bundle.state == "gathering" and [payout.withdrawal for payout in bundle.payouts] == ids
    return ids


@pytest.mark.parametrize("how", ["dies", "hangs", "rival"])
def test_what_a_risen_rate_leaves_too_little_for_holds_up_nobody(begin: Callable[[], Shop], how: str) -> None:
    """It leaves the bundle, waits, and is paid once coins come; whatever happens at a commit, neither is paid twice."""
    for at in commits(20, {"dies": 1, "hangs": 3, "rival": 2}[how]):
        shop = begin()
        large, small = gathered(shop)
        shop.chain.rate = 1_000_000
        what = {"dies": die, "hangs": hang, "rival": lambda shop=shop: pay_first(shop)}[how]
        fired = cut(shop, at, what, pay_first, after=how == "hangs")
        shop.run()
        assert (shop.status(large), shop.status(small)) == ("processing", "confirming"), at
        assert [payout.withdrawal for bundle in shop.bundles() for payout in bundle.payouts] == [small]
        shop.whole()
        shop.confirm()
        shop.chain.pay(shop.hot, 3 * COIN)
        shop.confirm()
        moved = shop.status(large)
        shop.later(3)
        fired |= cut(shop, at, what, pay_first, after=how == "hangs")
        shop.run()
        assert moved in ("processing", "confirming") and shop.status(large) == "confirming", at
        shop.confirm()
        assert (shop.status(large), shop.status(small)) == ("confirmed", "confirmed")
        assert (shop.paid(0), shop.paid(1)) == (1_699_780_000, 200_000)
        assert [payout.withdrawal for bundle in shop.bundles() for payout in bundle.payouts] == [small, large]
        shop.whole()
        if not fired:
            assert at > 3
            return
    raise AssertionError("it does not end")


def test_a_bundle_that_nothing_is_left_of_takes_in_what_comes(shop: Shop) -> None:
    """The queues and schedules find what left it, too."""
    large, other = gathered(shop, "10", "6.999")
    for coin in shop.held().free:
        shop.chain.steal(coin.outpoint)
    shop.run()
    (bundle,) = shop.bundles()
    assert (bundle.state, bundle.payouts, bundle.priority) == ("gathering", (), "low")
    assert shop.status(large) == shop.status(other) == "processing" and shop.chain.pool == {}
    shop.whole()
    late = shop.withdraw("0.5", 2)
    for units in (7 * COIN, COIN):
        shop.chain.pay(shop.hot, units)
    shop.confirm()
    shop.later(3)
    shop.run()
    assert [shop.status(i) for i in (large, other, late)] == ["processing", "confirming", "confirming"]
    (first, *_) = shop.bundles()
    assert first.id == bundle.id and first.payouts and first.priority == "normal"
    shop.chain.pay(shop.hot, 11 * COIN)
    shop.chain.mine(CONFIRMATIONS)
    shop.later(3)
    shop.drain()
    assert shop.status(large) == "confirming"
    shop.confirm()
    assert [shop.status(i) for i in (large, other, late)] == ["confirmed"] * 3
    assert [shop.paid(n) for n in range(3)] == [10 * COIN, 699_900_000, COIN // 2]
    shop.whole()


def test_more_than_one_transaction_takes_are_several(begin: Callable[[], Shop], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where whoever filled a bundle died before it was built."""
    monkeypatch.setattr(bundle_gathering, "MOST_PAYOUTS", 2)
    for at in (0, 3, 4):
        shop = begin()
        ids = [shop.withdraw("1"), shop.withdraw("1", 1), shop.withdraw("1", 2)]
        assert cut(shop, at, die, pay_first) == bool(at)
        last = services().store.get(Withdrawal, tenant=next(iter(services().store.every(Withdrawal))).tenant, id=ids[2])
        assert last is not None
        services().payouts.pay(last.tenant, last.id)
        assert sorted(len(bundle.payouts) for bundle in shop.bundles()) == [1, 2]
        shop.run()
        shop.confirm()
        assert [shop.status(i) for i in ids] == ["confirmed"] * 3
        shop.whole()


def test_a_rival_that_only_waits_concludes_nothing(shop: Shop) -> None:
    """Somebody spends the same coin, and no block takes it: ours may still be mined."""
    withdrawal = shop.withdraw("1", run=True)
    (bundle,) = shop.bundles()
    (coin,) = bundle.coins
    shop.chain.forget()
    shop.chain.pool = {"rival": Tx("rival", (coin,), ())}  # all of it is its fee
    shop.chain.mine(REORG + 1, take=False)
    shop.run()
    assert shop.bundles()[0].doubtful_since is None and shop.status(withdrawal) == "confirming"
    shop.chain.forget()
    shop.run()
    shop.confirm()
    assert shop.status(withdrawal) == "confirmed"
    shop.whole()


def test_a_coin_that_others_spent_fails_the_payment_and_is_not_offered_again(shop: Shop) -> None:
    withdrawal = shop.withdraw("9", run=True)
    (bundle,) = shop.bundles()
    (coin,) = bundle.coins
    shop.chain.steal(coin)
    shop.run()
    assert shop.bundles()[0].doubtful_since == shop.chain.tip(), "the last block that was scanned"
    shop.chain.mine(REORG)
    shop.run()
    shop.run()
    assert shop.status(withdrawal) == "failed" and shop.available() == "30"
    again = shop.withdraw("4", run=True)
    assert shop.status(again) == "confirming" and coin not in shop.bundles()[1].coins
    shop.whole()


def test_a_settled_bundle_that_falls_out_is_settled_once_more(begin: Callable[[], Shop]) -> None:
    for at in (0, 1, 2, 4) if FULL else (0, 2):
        shop = begin()
        withdrawal = shop.withdraw("1", run=True)
        shop.confirm()
        shop.chain.drop(CONFIRMATIONS)
        assert cut(shop, at, die, Shop.run) == bool(at)
        shop.run()
        assert shop.status(withdrawal) == "confirming" and shop.bundles()[0].round == 1
        assert [coin.amount for coin in shop.held().free] == [5 * COIN, 2 * COIN]
        shop.whole()
        shop.confirm()
        assert shop.status(withdrawal) == "confirmed" and shop.paid() == COIN
        assert sum(coin.amount for coin in shop.held().free) == shop.chain.balance_of(shop.hot)
        shop.whole()


def test_what_spends_change_that_falls_out_follows_it(shop: Shop) -> None:
    """Of two bundles of which one spends the other's change both fall out, and both are settled again."""
    first = shop.withdraw("9", run=True)
    shop.chain.mine(CONFIRMATIONS)
    shop.run()
    shop.withdraw("6.9", run=True)  # the two other coins
    third = shop.withdraw("0.5", run=True)  # the change
    shop.chain.mine(CONFIRMATIONS)
    shop.run()
    assert shop.status(third) == "confirmed"
    shop.chain.drop(2 * CONFIRMATIONS)
    shop.run()
    shop.run()
    shop.whole()
    assert {bundle.state for bundle in shop.bundles()} == {"signed"}
    assert shop.status(first) == shop.status(third) == "confirming"
    shop.confirm()
    shop.run()
    shop.whole()
    assert {bundle.state for bundle in shop.bundles()} == {"settled"}
    assert sum(coin.amount for coin in shop.held().free) == shop.chain.balance_of(shop.hot)


def test_a_stuck_bundle_is_replaced_and_whichever_is_mined_has_paid(begin: Callable[[], Shop]) -> None:
    for at in (0, 1, 3, 4, 5) if FULL else (0, 1, 4):
        shop = begin()
        ids = [shop.withdraw("1", 0), shop.withdraw("2", 1)]
        shop.run()
        old = next(iter(shop.chain.pool.values()))
        shop.chain.mine(2, take=False)
        shop.chain.rate = 9_000
        shop.later(180)
        assert cut(shop, at, die, Shop.run) == bool(at)
        shop.run()
        shop.run()
        (bundle,) = shop.bundles()
        assert len(bundle.earlier) == 1 and bundle.newest is not None and bundle.newest.fee > bundle.earlier[0].fee
        assert list(shop.chain.pool) == [bundle.txids[0]]
        assert bundle.newest.change is not None
        shop.whole()
        if at % 2:  # a miner who never heard of the replacement
            shop.chain.pool = {old.txid: old}
        shop.confirm()
        assert [shop.status(i) for i in ids] == ["confirmed", "confirmed"]
        (bundle,) = shop.bundles()
        assert bundle.mined == bundle.txids[at % 2]
        assert {w.txid for w in services().store.every(Withdrawal)} == {bundle.mined}
        assert sum(w.fee for w in services().store.every(Withdrawal)) == bundle.attempt(bundle.mined).fee
        assert (shop.paid(0), shop.paid(1)) == (COIN, 2 * COIN)
        assert sum(coin.amount for coin in shop.held().free) == shop.chain.balance_of(shop.hot)
        shop.whole()


def test_a_replacement_may_go_below_the_floor(shop: Shop) -> None:
    shop.withdraw("4", run=True)
    body = {"coin": "ltc", "network": "litecoin", "hotFloor": "17"}  # all that there was
    assert shop.stack.call("PUT", "/v1/coins", shop.stack.keys["admin_live"], json=body).status == 200
    shop.chain.mine(2, take=False)
    shop.chain.rate = 9_000
    shop.later(180)
    shop.run()
    shop.run()
    (bundle,) = shop.bundles()
    assert len(bundle.earlier) == 1 and bundle.newest is not None and bundle.newest.txid in shop.chain.pool


def test_replacements_are_bounded(shop: Shop) -> None:
    shop.withdraw("1", run=True)
    shop.chain.rate = 100_000
    for _ in range(8):
        shop.chain.mine(1, take=False)
        shop.later(2_000)
        shop.run()
    (bundle,) = shop.bundles()
    assert bundle.newest is not None
    first = bundle.earlier[0].fee if bundle.earlier else bundle.newest.fee
    assert len(bundle.earlier) <= 5 and bundle.newest.fee <= 10 * first
    shop.confirm()
    shop.whole()


def test_a_coin_that_the_chain_took_back_fails_nothing(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    """A deposit to the hot wallet was spent, and is double-spent in a reorganisation. That it is gone is no proof that it stays so,
    however long (money rule 13): nothing spends it. An operator decides."""
    ids = [shop.withdraw("9", 0), shop.withdraw("0.5", 1)]
    shop.run()
    (bundle,) = shop.bundles()
    (coin,) = bundle.coins
    shop.chain.drop(CONFIRMATIONS, lose=[coin.split(":")[0]])
    shop.chain.mine()
    shop.run()
    shop.whole()
    assert shop.chain.pool == {} and [c.gone for c in shop.held().reserved(bundle.id)] == [True]
    for _ in range(3):
        shop.chain.mine(REORG)
        shop.run()
    assert shop.bundles()[0].doubtful_since is not None and "spends a coin that is spent or gone" in caplog.text
    assert [shop.status(i) for i in ids] == ["confirming", "confirming"]
    shop.whole()


def test_a_coin_that_others_spent_fails_all_that_spent_it(begin: Callable[[], Shop]) -> None:
    for at in (0, 1, 2):
        shop = begin()
        ids = [shop.withdraw("9", 0), shop.withdraw("0.5", 1)]
        shop.run()
        (bundle,) = shop.bundles()
        (coin,) = bundle.coins
        shop.chain.steal(coin)
        shop.run()
        assert shop.bundles()[0].doubtful_since is not None
        shop.chain.mine(REORG - 1)
        shop.run()
        assert shop.status(ids[0]) == "confirming"
        shop.chain.mine(1)
        assert cut(shop, at, die, Shop.run, stolen=True) == bool(at)
        shop.run()
        assert [shop.status(i) for i in ids] == ["failed", "failed"]
        assert shop.available() == "30" and not shop.held().reserved(bundle.id)
        assert not [work for work in services().store.every_work() if work.kind == "sent"]
        shop.whole()
    shop.confirm(REORG + 1)
    shop.run()
    assert not [work for work in services().store.every_work() if work.kind == "bundle"], "watched for as long again"
    shop.whole()


def test_one_wrong_answer_fails_nothing(shop: Shop) -> None:
    """A node that has lost a block says that a coin is unknown; until it is back, nothing is concluded."""
    withdrawal = shop.withdraw("9", run=True)
    known = copy.deepcopy(shop.chain.blocks)
    shop.chain.forget()
    (bundle,) = shop.bundles()
    (coin,) = bundle.coins
    spender = coin.split(":")[0]
    for block in shop.chain.blocks:
        block.transactions = [tx for tx in block.transactions if tx.txid != spender]
    shop.run()
    assert shop.bundles()[0].doubtful_since is not None
    shop.chain.blocks = known
    shop.run()
    assert shop.bundles()[0].doubtful_since is None
    shop.confirm()
    assert shop.status(withdrawal) == "confirmed"
    shop.whole()


def test_bytes_that_pay_another_are_not_signed(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    withdrawal = shop.withdraw("1")
    with monkeypatch.context() as patch:
        signed = DigestSigner()
        patch.setattr(CustodyWiring, "signer", signed)
        patch.setattr(PayoutWiring, "bundle_payouts", property(lambda _: _dishonest(services())))
        shop.reborn()
        with pytest.raises(OrderMismatch):
            pay_first(shop)
        assert signed.signed == [] and shop.status(withdrawal) == "processing"


class _Dishonest:
    """Plans payments to another address, and explains them as they are."""

    def __init__(self, payer: Any) -> None:
        self._payer = payer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._payer, name)

    def plan(self, wallet: str, coins: Any, outputs: Any, rate: int) -> Any:
        return self._payer.plan(wallet, coins, [replace(outputs[0], address=OUT[1]), *outputs[1:]], rate)


def _dishonest(wired: Services) -> BundlePayouts:
    def payer(network: Any) -> Any:
        return _Dishonest(wired.coin_payer(network))

    store, rules, clock, rates = wired.store, wired.rules, wired.realm_clock, wired.rates
    checks = PayoutChecks(store, rules, clock, wired.risk, rates)
    parts = BundleParts(store, rules, clock, wired.signer, payer, checks, PayoutFees(store, rates), wired.fee_budgets)
    second = wired.wiring.chains.second_readers.coins
    return BundlePayouts(parts, UtxoEngine(store, rules, clock, payer, wired.reader, wired.renewals, second))


@pytest.mark.parametrize("moment", ["first", "signing", "sending"])
def test_the_kill_switch_stops_bundles(shop: Shop, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    ids = [shop.withdraw("1", 0), shop.withdraw("2", 1)]

    def throw(stop: bool) -> None:
        services().switches.throw("live", stop, None, "key_1")

    def signs(changes: Any) -> bool:
        return any(isinstance(getattr(c, "record", None), Bundle) and c.record.state == "signed" for c in changes)

    if moment == "first":
        throw(True)
    with monkeypatch.context() as patch:
        real = DynamoStore.commit

        def commit(store: DynamoStore, changes: Any) -> None:
            if moment == "signing" and signs(changes):
                throw(True)
            real(store, changes)
            if moment == "sending" and signs(changes):
                throw(True)

        patch.setattr(DynamoStore, "commit", commit)
        shop.run()
    shop.later(10)
    shop.run()
    assert not shop.chain.pool
    waits = {"first": "pending", "signing": "processing", "sending": "broadcasting"}[moment]
    assert {shop.status(i) for i in ids} == {waits}
    assert [bundle.state for bundle in shop.bundles()] == {"first": [], "signing": ["built"], "sending": ["signed"]}[moment]
    throw(False)
    shop.run()
    shop.confirm()
    assert ({shop.status(i) for i in ids}, shop.paid(0), shop.paid(1)) == ({"confirmed"}, COIN, 2 * COIN)
    shop.whole()


def built(shop: Shop, patch: pytest.MonkeyPatch) -> Bundle:
    """A bundle of two payments that waits for its signature."""
    shop.withdraw("1", 0)
    shop.withdraw("2", 1)

    def away(*_: Any) -> Any:
        raise Unavailable("no signer")

    with patch.context() as gone:
        gone.setattr(DigestSigner, "sign", away)
        shop.run()
    (bundle,) = shop.bundles()
    assert bundle.state == "built" and bundle.newest is not None and len(bundle.payouts) == 2
    return bundle


def bytes_with(bundle: Bundle, change: Callable[[dict[str, Any]], object]) -> Bundle:
    assert bundle.newest is not None
    written = json.loads(bytes.fromhex(bundle.newest.unsigned))
    change(written)
    return replace(bundle, newest=replace(bundle.newest, unsigned=json.dumps(written).encode().hex()))


def paying(bundle: Bundle, **change: Any) -> Bundle:
    return replace(bundle, payouts=(replace(bundle.payouts[0], **change), *bundle.payouts[1:]))


def built_with(bundle: Bundle, **change: Any) -> Bundle:
    assert bundle.newest is not None
    return replace(bundle, newest=replace(bundle.newest, **change))


BYTES: dict[str, Callable[[Bundle], Bundle]] = {
    "recipient": lambda b: bytes_with(b, lambda tx: tx["out"][0].__setitem__(0, OUT[2])),
    "amount": lambda b: bytes_with(b, lambda tx: tx["out"][0].__setitem__(1, COIN + 1)),
    "change": lambda b: bytes_with(b, lambda tx: tx["out"][-1].__setitem__(0, OUT[2])),
    "another output": lambda b: bytes_with(b, lambda tx: tx["out"].append([OUT[2], 1000])),
    "a payment left out": lambda b: bytes_with(b, lambda tx: tx["out"].pop(0)),
    "inputs": lambda b: bytes_with(b, lambda tx: tx["in"].append(["ff" * 32 + ":0", COIN])),
    "fee": lambda b: bytes_with(b, lambda tx: tx["out"][-1].__setitem__(1, 1000)),
    "told change": lambda b: built_with(b, change=None),
    "told fee": lambda b: built_with(b, fee=1),
    "told inputs": lambda b: built_with(b, inputs=()),
}
RECORDS: dict[str, Callable[[Bundle], Bundle]] = {
    "recipient": lambda b: paying(b, recipient=OUT[2]),
    "amount": lambda b: paying(b, amount=2 * COIN),
    "both": lambda b: paying(BYTES["amount"](b), amount=COIN + 1),
    "merchant": lambda b: paying(b, tenant="mch_another:live"),
    "network": lambda b: replace(b, network=network_id("live", "bitcoin")),
    "twice": lambda b: replace(b, payouts=(b.payouts[0], *b.payouts)),
    "twice, and its bytes": lambda b: replace(
        bytes_with(b, lambda tx: (tx["out"].insert(0, tx["out"][0]), tx["out"][-1].__setitem__(1, tx["out"][-1][1] - COIN))),
        payouts=(b.payouts[0], *b.payouts),
    ),
}


LEAVES = {"recipient", "amount", "both"}
"""Where one of its payments alone is not what was approved, that one leaves and waits for an operator."""


def test_no_altered_bundle_is_signed(shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Bytes are built anew, and other coins may be chosen; what differs from the withdrawals waits for an operator."""
    bundle = built(shop, monkeypatch)
    held, signed = shop.held(), services().signer
    assert isinstance(signed, DigestSigner)
    before, version = len(signed.signed), bundle.version
    for name, alter in (*BYTES.items(), *RECORDS.items()):
        thrown_away = BYTES.get(name) is alter or name in LEAVES
        wrong = replace(alter(bundle), version=version + 1)
        services().store.commit([Save(wrong)])
        caplog.clear()
        with in_realm("live"), pytest.raises((OrderMismatch, LookupError)) as refused:
            pay_first(shop)
        (found,) = shop.bundles()
        assert (len(signed.signed), shop.chain.pool) == (before, {}), name
        assert isinstance(refused.value, LookupError) or "ALARM" in caplog.text, name
        assert (found.state, found.newest) == (("gathering", None) if thrown_away else ("built", wrong.newest)), name
        version = found.version
        assert (shop.held().reserved(bundle.id) == []) is thrown_away, name
        assert len(found.payouts) == len(wrong.payouts) - (RECORDS.get(name) is alter and name in LEAVES), name
        if thrown_away:
            stored = shop.held()
            services().store.commit([Save(replace(held, version=stored.version + 1))])
            services().store.commit([Save(replace(bundle, version=(version := version + 1)))])
    services().store.commit([Save(replace(BYTES["recipient"](bundle), version=version + 1))])
    with in_realm("live"), pytest.raises(OrderMismatch):
        pay_first(shop)
    shop.run()
    shop.confirm()
    assert {shop.status(p.withdrawal) for p in bundle.payouts} == {"confirmed"}
    assert [shop.paid(n) for n in range(3)] == [COIN, 2 * COIN, 0]
    shop.whole()


def test_what_is_suspicious_keeps_no_others_of_its_bundle_waiting(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three that join at once, each is judged with those before it counted."""
    monkeypatch.setattr(services().risk, "_rules", RiskRules(per_hour=2))
    ids = [shop.withdraw("1", n) for n in range(3)]
    shop.run()
    assert [shop.status(i) for i in ids] == ["confirming", "confirming", "pending"]
    (bundle,) = shop.bundles()
    assert len(bundle.payouts) == 2
    record = shop.stack.call("GET", f"/v1/withdrawals/{ids[2]}", shop.key).json["data"]
    assert record["pending_reason"] == "risk" and "velocity" in [f["name"] for f in record["risk"]["findings"]]
    admin = shop.stack.keys["admin_live"]
    assert shop.stack.call("PUT", "/v1/withdrawals/request/accept", admin, json={"id": ids[2]}).status == 200
    shop.run()
    shop.confirm()
    assert {shop.status(i) for i in ids} == {"confirmed"}
    shop.whole()


def test_above_its_merchants_fee_budget_one_joins_no_bundle(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it would cost alone is what it may join by; it bears its share. Who dies between counting and joining counts once."""
    rates = Rates([Rate("ltc", "USD", "80", 0, "old")])
    monkeypatch.setattr(services().fee_budgets, "_rates_of", lambda realm: rates)
    first = shop.withdraw("1", 0)
    owner = next(w.tenant for w in services().store.every(Withdrawal) if w.id == first)
    shop.run()
    shop.later(1)
    quote = services().store.get(FeeQuote, network=NETWORK)
    borne = services().store.get(FeesBorne, tenant=owner, network=NETWORK)
    assert quote is not None and borne is not None and borne.micros > 0
    alone = -(-quote.fees["ltc"] * 80 // 100)
    # Room for one by itself, and not for two shares of one transaction: of two at once, the second waits.
    services().store.commit([Save(replace(borne, micros=MICROS - alone, version=borne.version + 1))])
    set_budget(services().store, owner, 1, 0, "a test")
    real, died = DynamoStore.commit, []

    def commit(store: DynamoStore, changes: Any) -> None:
        real(store, changes)
        if not died and any(isinstance(c, Save) and isinstance(c.record, FeesBorne) for c in changes):
            died.append(changes)
            raise Unavailable("died between the two")

    monkeypatch.setattr(DynamoStore, "commit", commit)
    ids = [shop.withdraw("1", n) for n in (1, 2)]
    shop.run()
    shop.run()
    assert died and sorted(shop.status(i) for i in ids) == ["confirming", "pending"]
    waits = next(i for i in ids if shop.status(i) == "pending")
    record = shop.stack.call("GET", f"/v1/withdrawals/{waits}", shop.key).json["data"]
    assert record["pending_reason"] == "fees"
    admin = shop.stack.keys["admin_live"]
    assert shop.stack.call("PUT", "/v1/withdrawals/request/accept", admin, json={"id": waits}).status == 200
    shop.confirm()
    shop.confirm()
    shop.confirm()
    assert {shop.status(i) for i in (first, *ids)} == {"confirmed"}
    records = list(services().store.every(Withdrawal))
    assert [w.borne and w.borne.micros for w in records] == [-(-w.fee * 80 // 100) for w in records]
    shop.whole()


def test_a_transaction_of_several_payments_is_finished_with_the_old_key(shop: Shop) -> None:
    """Signed and stuck while the wallet is replaced: its replacement is signed by the old key, later ones are paid by the new."""
    first = shop.withdraw("1", 0, run=True)
    old = services().store.get(Wallet, network=NETWORK, role="hot")
    assert old is not None
    with in_realm("live"):
        network = services().catalogue("live").networks["litecoin"]
        new = services().wallets.registering(None, network, "hot", by="a test", replace="must").run().wallet
    later = shop.withdraw("2", 1, run=True)
    assert (shop.status(first), shop.status(later)) == ("confirming", "pending")
    shop.chain.mine(2, take=False)
    shop.chain.rate = 9_000
    shop.later(180)
    shop.run()
    shop.run()
    (bundle,) = shop.bundles()
    assert (bundle.wallet, len(bundle.earlier)) == (old.address, 1)
    for _ in range(4):
        shop.confirm()
        for move in services().store.every(CoinMove):
            with in_realm("live"):
                services().wallet_coin_moves.advance(NETWORK, move.id)
    assert (shop.status(first), shop.status(later)) == ("confirmed", "confirmed")
    assert (shop.paid(0), shop.paid(1)) == (COIN, 2 * COIN)
    assert [b.wallet for b in shop.bundles()] == [old.address, new.address]
    done = services().store.get(RetiredWallet, network=NETWORK, address=old.address)
    assert done is not None and done.drained_at is not None
    shop.whole()


def test_an_altered_bundle_is_not_replaced_with_other_coins(shop: Shop) -> None:
    """What a replacement has to spend is what was signed first: not what a record says of it."""
    w = shop.withdraw("4", 0)
    shop.run()
    (bundle,) = shop.bundles()
    newest, sent, held = bundle.newest, list(shop.chain.sent), shop.held()
    assert bundle.state == "signed" and newest is not None
    other = next(c for c in held.free if c.amount > 4 * COIN + 10_000)
    change = other.amount - 4 * COIN - newest.fee
    written = {"in": [(other.outpoint, other.amount)], "out": [(OUT[0], 4 * COIN), (shop.hot, change)]}
    bare = replace(newest, unsigned=json.dumps(written).encode().hex(), inputs=(other,), change_amount=change, raw=None, txid=None)
    signed = replace(bare, raw=newest.raw, txid=newest.txid, signed_at=1)
    forged = [
        replace(bundle, renew=True, newest=signed),
        replace(bundle, renew=True, newest=replace(newest, txid="77" * 32)),
        replace(bundle, newest=bare, earlier=(replace(signed, unsigned=""),)),
        replace(bundle, newest=bare, earlier=(replace(newest, unsigned=""),)),
        replace(bundle, newest=replace(newest, raw=None, txid=None), earlier=(replace(newest, unsigned="", raw="00"),)),
        replace(bundle, state="built", newest=bare),
        replace(bundle, state="built", newest=replace(bare, unsigned=""), earlier=(replace(newest, unsigned=""),)),
    ]
    record = next(iter(services().store.every(Withdrawal)))
    for number, altered in enumerate(forged, 1):
        stored = replace(altered, version=bundle.version + number)
        services().store.commit([Save(stored)])
        with in_realm("live"), pytest.raises(OrderMismatch):
            services().payouts.pay(record.tenant, record.id)
        assert shop.chain.sent == sent and shop.held() == held and shop.bundles() == [stored], number
    services().store.commit([Save(replace(bundle, version=bundle.version + len(forged) + 1))])
    shop.confirm()
    assert (shop.status(w), shop.paid(0)) == ("confirmed", 4 * COIN)


def test_the_fee_of_a_replacement_is_bounded_where_it_is_signed(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Built within its bounds, and altered before its signature: what the first attempt cost by its own bytes is the measure."""
    w = shop.withdraw("4", 0, run=True)
    shop.chain.mine(2, take=False)
    shop.chain.rate = 9_000
    shop.later(180)
    with monkeypatch.context() as gone:
        gone.setattr(DigestSigner, "sign", lambda *_: hang())
        shop.run()
        shop.run()
    (bundle,) = shop.bundles()
    newest, sent = bundle.newest, list(shop.chain.sent)
    assert newest is not None and newest.raw is None and len(bundle.earlier) == 1
    first = bundle.earlier[0]

    def costing(fee: int) -> Bundle:
        assert newest is not None
        more = fee - newest.fee
        changed = bytes_with(bundle, lambda tx: tx["out"][-1].__setitem__(1, newest.change_amount - more))
        return built_with(changed, fee=fee, change_amount=newest.change_amount - more)

    altered = {
        "dear": costing(10 * first.fee + 1),
        "dear, and the first one's fee": replace(costing(20 * first.fee), earlier=(replace(first, fee=2 * first.fee),)),
        "no more than the first": costing(first.fee),
        "often": replace(bundle, earlier=(first,) * 6),
    }
    record, version = next(iter(services().store.every(Withdrawal))), bundle.version
    for name, wrong in altered.items():
        services().store.commit([Save(replace(wrong, version=version + 1))])
        caplog.clear()
        with in_realm("live"), pytest.raises(OrderMismatch):
            services().payouts.pay(record.tenant, record.id)
        assert shop.chain.sent == sent and "ALARM" in caplog.text, name
        version = shop.bundles()[0].version  # altered bytes alone are taken away
    services().store.commit([Save(replace(costing(10 * first.fee), version=version + 1))])
    shop.run()
    assert len(shop.chain.sent) > len(sent)
    shop.confirm()
    assert (shop.status(w), shop.paid(0)) == ("confirmed", 4 * COIN)
    shop.whole()


def test_one_altered_order_holds_up_nobody_else_of_its_bundle(shop: Shop) -> None:
    ids = [shop.withdraw("1", 0), shop.withdraw("2", 1), shop.withdraw("0.5", 2)]
    with pytest.MonkeyPatch.context() as patch:  # whoever builds dies before it signs
        patch.setattr(UtxoSigning, "sign", lambda *_: hang())
        shop.run()
    (bundle,) = shop.bundles()
    assert bundle.state == "built" and len(bundle.payouts) == 3
    store = services().store
    bad = next(order for order in store.every(PaymentOrder) if order.withdrawal_id == ids[0])
    record = next(w for w in store.every(Withdrawal) if w.id == ids[0])
    store.commit([Save(replace(bad, amount=bad.amount + 1, version=bad.version + 1))])
    with pytest.raises(LookupError, match="pays"):
        made_anew(store, services().catalogue("live"), record)
    with in_realm("live"), pytest.raises(OrderMismatch):
        services().payouts.pay(record.tenant, record.id)
    shop.later(1)
    shop.run()
    shop.confirm()
    assert [shop.status(w) for w in ids] == ["processing", "confirmed", "confirmed"]
    assert len(shop.bundles()[0].payouts) == 2
    made_anew(store, services().catalogue("live"), record)
    shop.later(1)
    shop.run()
    shop.confirm()
    assert ([shop.status(w) for w in ids], shop.paid(0)) == (["confirmed"] * 3, COIN)
    assert audit(store) == []


def test_an_operator_gives_a_bundle_up_with_all_its_payments(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    """One of its coins is gone: it need not be waited until that is proved. It is watched as a dead one is."""
    ids = [shop.withdraw("1", 0), shop.withdraw("2.5", 1)]
    shop.run()
    (bundle,) = shop.bundles()
    ours = next(iter(shop.chain.pool.values()))
    giving = services().giving_up(services().catalogue("live").networks["litecoin"])
    with in_realm("live"):
        with pytest.raises(NotGivenUp, match=f"is paid by {bundle.id}"):
            giving.give_up(ids[0], "an operator", "why")
        with pytest.raises(NotGivenUp, match=r"every coin that .* spends is unspent"):
            giving.give_up(bundle.id, "an operator", "why")
        coin = bundle.signed[-1].inputs[0]
        shop.chain.steal(coin.outpoint)
        theft = shop.chain.blocks[-1]
        shop.run()
        giving.give_up(bundle.id, "an operator", "it will never be mined")
        with pytest.raises(NotGivenUp, match="was given up before, by an operator"):
            giving.give_up(bundle.id, "another", "why")
    shop.run()
    shop.run()
    assert shop.bundles()[0].state == "dead"
    assert ([shop.status(i) for i in ids], shop.available()) == (["failed"] * 2, "30")
    assert not shop.held().reserved(bundle.id) and len(shop.held().free) == 3
    assert {w.failure for w in services().store.every(Withdrawal)} == {"the operator gave it up: it was in no block"}
    assert f"ALARM live:litecoin: {bundle.id} is given up, as an operator decided: it will never be mined" in caplog.text
    shop.whole()
    theft.transactions.clear()
    shop.chain.pool = {ours.txid: ours}
    shop.confirm()
    shop.run()
    assert caplog.text.count(f"{bundle.id} was given up at height") == 1
    assert not [work for work in services().store.every_work() if work.kind in ("bundle", "givenup")]
