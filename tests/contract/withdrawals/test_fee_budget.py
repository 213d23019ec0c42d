"""What the operator bears of a merchant's network fees in a day is bounded (money rule 14): above it withdrawals wait."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any, cast

import pytest

from chalicelib.domain.addresses.addresses import Watched, family_key
from chalicelib.domain.catalogue.rates import Rate, Rates
from chalicelib.domain.chain import FeeQuote
from chalicelib.domain.ledger import Book, JournalEntry, operator, totals
from chalicelib.domain.money import format_units
from chalicelib.domain.withdrawals.fee_budget import MICROS, FeesBorne
from chalicelib.domain.withdrawals.payout_line import RETRY_MS
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.domain.work import Command
from chalicelib.store.dynamo import DynamoStore
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.usecases.withdrawals import retry_idle as payout_sweep
from chalicelib.usecases.withdrawals.fee_budget import FeeBudgets, corrected, set_budget
from chalicelib.usecases.withdrawals.retry_idle import IdleRetries
from chalicelib.wiring import services
from tests.support.shop import CONFIRMATIONS, PAYEE, Shop, open_shop
from tests.support.stack import Stack

DAY = 24 * 3600
EACH = Decimal("1.26")
"""What a payment of ether costs on the simulated network, in USD: 21,000 gas at 20 gwei, at 3,000 USD."""


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack, ("20", "eth")) as opened:
        yield opened


def budget(shop: Shop, usd: int | None) -> None:
    set_budget(services().store, tenant_of(shop), usd, 0, "a test")


def tenant_of(shop: Shop) -> Any:
    """Of the merchant whose key it is."""
    name = shop.get("/v1/merchant")["data"]["id"]
    return f"{name}:test"


def counted(shop: Shop) -> int:
    """Millionths of a US dollar, today or on the last day that was counted."""
    found = services().store.get(FeesBorne, tenant=tenant_of(shop), network=shop.realm_network().id)
    return 0 if found is None else found.micros


def lost(shop: Shop) -> Decimal:
    """What the ledger says that the operator has lost, in USD."""
    found, rates = totals(services().store.every(JournalEntry)), services().rates("test")
    worth = Decimal(0)
    for (book, account, asset), units in found.items():
        if (book, account) != (Book.WHOSE, operator("test")):
            continue
        slug = asset.rsplit(":", 1)[1]
        rate = rates.get(slug)
        assert rate is not None
        amount = Decimal(format_units(abs(units), shop.coin(slug).decimals)) * rate.decimal
        worth += amount if units < 0 else -amount
    return worth


def settled(shop: Shop) -> None:
    shop.turn()
    shop.mine(CONFIRMATIONS)
    shop.turn()


def states(shop: Shop, *withdrawals: str) -> list[str]:
    return [f"{w['status']} {w.get('pending_reason', '')}".strip() for w in map(shop.withdrawal, withdrawals)]


def decide(shop: Shop, withdrawal: str, what: str = "accept") -> Any:
    answer = shop.stack.call("PUT", f"/v1/withdrawals/request/{what}", shop.stack.keys["admin_test"], json={"id": withdrawal})
    assert answer.status == 200, answer.body
    return answer.json["data"]


def test_the_same_request_ten_times_burns_no_more_than_the_budget(shop: Shop) -> None:
    budget(shop, 5)
    before = lost(shop)
    made = [shop.withdraw("0.001") for _ in range(10)]
    settled(shop)
    assert states(shop, *made) == ["confirmed"] * 3 + ["pending fees"] * 7
    assert lost(shop) - before == 3 * EACH <= 5
    shop.nudge(200)
    assert states(shop, *made[3:]) == ["pending fees"] * 7
    # By themselves on the next UTC day.
    shop.wait(DAY)
    shop.nudge(200)
    settled(shop)
    assert states(shop, *made) == ["confirmed"] * 6 + ["pending fees"] * 4
    # By the operator's word at any time; what it has accepted counts, too.
    assert decide(shop, made[9]).get("pending_reason") is None
    settled(shop)
    assert states(shop, *made) == ["confirmed"] * 6 + ["pending fees"] * 3 + ["confirmed"]
    assert lost(shop) - before == 7 * EACH
    assert counted(shop) == 4 * EACH * MICROS
    assert decide(shop, made[8], "reject")["status"] == "failed"
    assert shop.stack.call("DELETE", f"/v1/withdrawals/{made[7]}", shop.key).json["data"]["status"] == "cancelled"
    # Or by more room.
    budget(shop, None)
    shop.nudge(200)
    settled(shop)
    assert states(shop, made[6]) == ["confirmed"]


def test_two_merchants_who_pay_each_other_burn_no_more_than_their_budgets(shop: Shop) -> None:
    """What goes to each other's deposit addresses is charged whole and waits for no budget; all else is bounded for each."""
    friend = Shop(shop.stack, "other_merchant_test")
    friend.credit("5")
    before, made, between = lost(shop), [], []
    for each, other in ((shop, friend), (friend, shop)):
        budget(each, 5)
        made += [each.withdraw("0.001") for _ in range(5)]
        between.append(each.withdraw("0.001", address=other.invoice()["address"]))
    settled(shop)
    settled(shop)
    assert sorted(states(shop, *made[:5], between[0])) == ["confirmed"] * 4 + ["pending fees"] * 2
    assert sorted(states(friend, *made[5:], between[1])) == ["confirmed"] * 4 + ["pending fees"] * 2
    assert states(shop, between[0]) + states(friend, between[1]) == ["confirmed"] * 2
    # The operator has what collecting will cost, and has borne three payments for each of them.
    assert lost(shop) - before == 6 * EACH - 2 * EACH <= 10


def test_what_the_merchant_pays_counts_nothing(shop: Shop) -> None:
    budget(shop, 0)
    own, plain = shop.withdraw("0.001", address=shop.invoice()["address"]), shop.withdraw("0.001")
    settled(shop)
    assert states(shop, own, plain) == ["confirmed", "pending fees"]
    assert counted(shop) == 0


def test_a_failure_on_the_chain_counts_what_it_burnt(shop: Shop) -> None:
    budget(shop, 2)
    failed = shop.withdraw("0.001")
    assert shop.post(f"/v1/sandbox/withdrawals/{failed}", {"outcome": "fail"}).status == 200
    settled(shop)
    second = shop.withdraw("0.001")
    shop.turn()
    assert states(shop, failed, second) == ["failed", "pending fees"]
    assert counted(shop) == EACH * MICROS


def test_what_can_never_be_mined_counts_no_more(shop: Shop) -> None:
    withdrawal = shop.withdraw("0.001")
    shop.turn()
    record = shop.record(withdrawal)
    assert record.borne is not None and counted(shop) == record.borne.micros == EACH * MICROS
    wired = services()
    gone = corrected(wired.store, wired.rates, record, None, wired.realm_clock.now_ms())
    (change,) = gone.changes
    assert isinstance(change, Save) and change.record.micros == 0
    assert corrected(wired.store, wired.rates, record, record.fee, wired.realm_clock.now_ms()).changes == ()


def test_a_replacement_counts_what_it_costs_more(shop: Shop) -> None:
    withdrawal = shop.withdraw("0.25")
    assert shop.post(f"/v1/sandbox/withdrawals/{withdrawal}", {"outcome": "stick"}).status == 200
    shop.turn()
    assert counted(shop) == EACH * MICROS
    budget(shop, 1)
    shop.wait(365)
    shop.turn()
    record = shop.record(withdrawal)
    assert record.borne is not None and record.fee > 21_000 * 20 * 10**9
    assert counted(shop) == record.borne.micros == record.fee * 3000 // 10**12
    assert shop.post(f"/v1/sandbox/withdrawals/{withdrawal}", {"outcome": "confirm"}).status == 200
    settled(shop)
    settled(shop)
    done = shop.record(withdrawal)
    assert (done.status, counted(shop)) == ("confirmed", done.fee * 3000 // 10**12)


def test_counted_once_whoever_dies_and_of_two_at_once_the_second_waits(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    budget(shop, 2)
    withdrawal = shop.withdraw("0.001")
    real, begun = DynamoStore.commit, []

    def commit(store: DynamoStore, changes: Any) -> None:
        found = [c.record for c in changes if isinstance(c, Save) and isinstance(c.record, FeesBorne)]
        real(store, changes)
        if found and len(begun) < 1:
            begun.append(found[0])
            raise Conflict(None)  # it was stored, and nobody heard of it

    monkeypatch.setattr(DynamoStore, "commit", commit)
    shop.turn()
    assert (states(shop, withdrawal), counted(shop)) == (["confirming"], EACH * MICROS)
    monkeypatch.setattr(DynamoStore, "commit", real)
    shop.wait(DAY)
    later = shop.withdraw("0.001")
    rivals: list[Any] = []

    def rival(store: DynamoStore, changes: Any) -> None:
        found = [c.record for c in changes if isinstance(c, Save) and isinstance(c.record, FeesBorne)]
        if found and not rivals:
            rivals.append(found[0])
            real(store, [Save(found[0])])  # another payment of the merchant begins at the same time
        real(store, changes)

    monkeypatch.setattr(DynamoStore, "commit", rival)
    shop.turn()
    assert (states(shop, later), counted(shop)) == (["pending fees"], EACH * MICROS)


def test_an_address_that_is_ours_only_since_counts_with_its_collecting(shop: Shop) -> None:
    """Made ours after the withdrawal was asked for: nothing was reserved for it, so all of it is the operator's."""
    withdrawal, network = shop.withdraw("0.001"), shop.realm_network()
    place = services().rules.storage_form(network.slug, PAYEE)
    friend = Shop(shop.stack, "other_merchant_test")
    ours = Watched("test", family_key(network), place, "user", (network.slug,), tenant_of(friend))
    services().store.commit([Save(ours)])
    budget(shop, 2)
    shop.turn()
    assert states(shop, withdrawal) == ["pending fees"]  # 1.26 for the payment, as much for collecting
    budget(shop, 3)
    shop.nudge(200)
    assert (states(shop, withdrawal), counted(shop)) == (["confirming"], 2 * EACH * MICROS)
    settled(shop)
    assert (states(shop, withdrawal), counted(shop)) == (["confirmed"], 2 * EACH * MICROS)


def test_without_a_quote_of_the_collecting_such_a_one_waits(shop: Shop) -> None:
    record, network = shop.record(shop.withdraw("0.001")), shop.realm_network()
    wired, quote = services(), services().store.get(FeeQuote, network=network.id)
    assert quote is not None
    wired.store.commit([Save(replace(quote, collecting={}, version=quote.version + 1))])
    assert wired.fee_budgets.start(network, record, record.fee, own=True).over


def test_the_last_known_rate_counts_and_without_any_nothing_does(shop: Shop) -> None:
    record, network, wired = shop.record(shop.withdraw("0.001")), shop.realm_network(), services()
    stale = wired.rates("test").get("eth")
    assert stale is not None
    old = Rates([replace(stale, at=0)])
    for rates, over in ((old, True), (Rates(), False)):
        found = FeeBudgets(wired.store, wired.realm_clock, lambda realm, r=rates: r, 1)  # type: ignore[misc]
        with in_realm("test"):
            assert found.start(network, record, 21_000 * 20 * 10**9, own=False).over is over


def test_each_network_has_a_budget_of_its_own(shop: Shop) -> None:
    budget(shop, 1)
    waits = shop.withdraw("0.001")
    shop.turn()
    polygon = Shop(shop.stack, network="polygon")
    polygon.turn()
    polygon.pay(polygon.invoice("5", "matic")["address"], "5", "matic")
    polygon.mine(polygon.realm_network().confirmations)
    polygon.turn()
    goes = polygon.withdraw("1", "matic")
    polygon.turn()
    assert (states(shop, waits), states(polygon, goes)) == (["pending fees"], ["confirming"])


def test_what_was_stored_before_there_was_a_budget_is_read(shop: Shop) -> None:
    record = shop.record(shop.withdraw("0.001"))
    assert isinstance(record, Withdrawal) and (record.borne, record.uncharged) == (None, 0)


@pytest.mark.parametrize("outcome", ["fail", "confirm"])
def test_a_tokens_settlement_is_corrected_in_transactions_of_ten(shop: Shop, monkeypatch: pytest.MonkeyPatch, outcome: str) -> None:
    """A failure moves two coins of the wallet, and its transaction has no room for the budget besides."""
    shop.credit("50", "usdt")
    dearer = Rates([Rate("eth", "USD", "4000", 0, "an hour ago")])
    monkeypatch.setattr(services().fee_budgets, "_rates_of", lambda realm: dearer)
    withdrawal = shop.withdraw("25", "usdt")
    assert shop.post(f"/v1/sandbox/withdrawals/{withdrawal}", {"outcome": outcome}).status == 200
    settled(shop)
    assert states(shop, withdrawal) == ["failed" if outcome == "fail" else "confirmed"]
    done = shop.record(withdrawal)
    assert done.borne is not None and done.borne.micros == counted(shop) == 65_000 * 20 * 3000 // 1000
    assert shop.available("usdt") == ("50" if outcome == "fail" else "25")


def test_one_merchant_whose_budget_is_used_up_keeps_no_other_from_being_asked_for(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    friend = Shop(shop.stack, "other_merchant_test")
    friend.credit("5")
    waits = {}
    for each, many in ((shop, 3), (friend, 1)):
        budget(each, 0)
        waits[tenant_of(each)] = [each.withdraw("0.001") for _ in range(many)]
        shop.turn()
        shop.wait(30)
    asked: list[Command] = []

    class Queue:
        def send(self, command: Command) -> None:
            asked.append(command)

    shop.wait(RETRY_MS // 1000)
    monkeypatch.setattr(payout_sweep, "ASKED_AT_ONCE", 2)
    wired, network = services(), shop.realm_network()
    assert IdleRetries(wired.store, cast(Any, Queue()), wired.clock_of("test")).sweep(network.id) == 2
    assert {command.body["id"] for command in asked} == {ids[0] for ids in waits.values()}
