"""Withdrawals that are judged right before their payment begins: what waits for the operator, what does not, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.addresses.addresses import payees_place
from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.screening.risk import Payees, PaymentHistory, mark_of
from chalicelib.domain.screening.rules import RiskRules
from chalicelib.domain.withdrawals.whitelist import WhitelistEntry, entry_id
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.store.dynamo import DynamoStore
from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.wiring import services
from tests.support.shop import CONFIRMATIONS, PAYEE, Shop, open_shop
from tests.support.stack import Stack

OTHER = "0x52908400098527886E0F7030069857D2E4169EE7"
TWIN = ("0x5290" + "a" * 32 + "9ee7").replace("a", "1")
DAY = 24 * 3600


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack, ("20", "eth")) as opened:
        yield opened


def admin(shop: Shop, method: str, path: str, body: Any = None) -> Any:
    answer = shop.stack.call(method, path, shop.stack.keys["admin_test"], json=body)
    assert answer.status == 200, answer.body
    return answer.json["data"]


def decide(shop: Shop, what: str, withdrawal: str) -> Any:
    return admin(shop, "PUT", f"/v1/withdrawals/request/{what}", {"id": withdrawal})


def paid(shop: Shop, *withdrawals: str) -> None:
    shop.turn()
    shop.mine(CONFIRMATIONS)
    shop.turn()
    assert {shop.withdrawal(w)["status"] for w in withdrawals} == {"confirmed"}


def findings(record: Any) -> list[str]:
    return [finding["name"] for finding in record["risk"]["findings"]]


def with_habit(shop: Shop, units: int = 10**15, times: int = 6) -> PaymentHistory:
    """The merchant has paid so much for some days."""
    coin, now = shop.coin("eth"), services().realm_clock.now_ms()
    history = PaymentHistory(shop.record(shop.withdraw("0.001")).tenant, coin.asset)
    for n in range(times, 0, -1):
        history = history.with_payment(now - n * DAY * 1000 - DAY * 1000, units, True)
    history = replace(history, version=1)
    services().store.commit([Save(history)])
    return history


def alike(shop: Shop, address: str) -> Payees | None:
    tenant = next(w.tenant for w in services().store.every(Withdrawal))
    return services().store.get(Payees, tenant=tenant, network=payees_place(shop.realm_network()), mark=mark_of(address))


def test_an_unusual_amount_to_a_new_address_waits_for_the_operator(shop: Shop) -> None:
    with_habit(shop)
    withdrawal, ordinary = shop.withdraw("2"), shop.withdraw("0.001", address=OTHER)
    shop.turn()
    shown = shop.withdrawal(withdrawal)
    assert (shown["status"], shown["pending_reason"], shown["approval"]["reasons"]) == ("pending", "risk", ["risk"])
    assert set(findings(shown)) >= {"new_address", "unusual_amount"}
    assert shown["risk"]["score"] == sum(finding["weight"] for finding in shown["risk"]["findings"]) >= 60
    assert shop.withdrawal(ordinary)["status"] == "confirming"  # it holds up nobody
    for key in ("admin_test", "client_test"):
        listed = shop.stack.call("GET", "/v1/withdrawals/requests", shop.stack.keys[key]).json["data"]
        assert [w["id"] for w in listed] == [withdrawal]
    refused = shop.stack.call("PUT", "/v1/withdrawals/request/accept", shop.key, json={"id": withdrawal})
    assert refused.status == 400
    accepted = decide(shop, "accept", withdrawal)
    assert (accepted.get("pending_reason"), accepted["approval"]["operator_accepted"]) == (None, True)
    assert decide(shop, "accept", withdrawal)["approval"] == accepted["approval"]
    paid(shop, withdrawal)
    assert shop.record(withdrawal).approval is not None


def test_what_comes_up_after_the_operators_word_is_asked_again(shop: Shop) -> None:
    with_habit(shop)
    withdrawal = shop.withdraw("2", address=OTHER)
    shop.turn()
    with_word = decide(shop, "accept", withdrawal)
    assert shop.post("/v1/whitelist/addresses", {"network": "ethereum", "address": TWIN, "label": "cold"}).status == 201
    shop.turn()
    shown = shop.withdrawal(withdrawal)
    assert (shown["pending_reason"], "look_alike" in findings(shown)) == ("risk", True)
    assert with_word["approval"]["given"] and not shown["approval"]["given"]
    grey = {"network": "ethereum", "address": OTHER}
    listed = shop.stack.call("POST", "/v1/addresses/grey-list", shop.stack.keys["admin_test"], json=grey)
    assert listed.status == 201
    assert decide(shop, "accept", withdrawal)["approval"]["reasons"] == ["risk", "grey_list"]
    paid(shop, withdrawal)


def test_a_rejected_or_cancelled_one_gives_its_money_back(shop: Shop) -> None:
    with_habit(shop)
    rejected, cancelled = shop.withdraw("2"), shop.withdraw("3")
    shop.turn()
    assert {shop.withdrawal(w)["pending_reason"] for w in (rejected, cancelled)} == {"risk"}
    assert decide(shop, "reject", rejected)["failure_reason"] == "rejected"
    assert shop.stack.call("DELETE", f"/v1/withdrawals/{cancelled}", shop.key).json["data"]["status"] == "cancelled"
    shop.turn()
    assert shop.balance()["available"] == "19.999"


def test_an_address_that_looks_like_one_that_was_paid_or_trusted(shop: Shop) -> None:
    first = shop.withdraw("0.001", address=OTHER)
    paid(shop, first)
    poisoned = shop.withdraw("0.001", address=TWIN)
    trusted = {"network": "ethereum", "address": "0x5aAe" + "1" * 32 + "BeAed"[1:], "label": "cold"}
    assert shop.post("/v1/whitelist/addresses", {**trusted, "address": trusted["address"].lower()}).status == 201
    imitated = shop.withdraw("0.001", address=PAYEE)
    again = shop.withdraw("0.001", address=OTHER)
    shop.turn()
    for withdrawal in (poisoned, imitated):
        shown = shop.withdrawal(withdrawal)
        assert (shown["pending_reason"], findings(shown)) == ("risk", ["look_alike"])
    assert shop.withdrawal(again)["status"] == "confirming"
    known = alike(shop, OTHER)
    assert known is not None and [(p.address, p.count) for p in known.known] == [(OTHER, 2)]  # what waits was not paid


def test_one_that_looks_like_an_address_of_another_evm_network(shop: Shop) -> None:
    paid(shop, shop.withdraw("0.001", address=OTHER))
    polygon = Shop(shop.stack, network="polygon")
    polygon.turn()
    coin = services().catalogue("test").native("polygon").slug
    polygon.pay(polygon.invoice("5", coin)["address"], "5", coin)
    polygon.mine(polygon.realm_network().confirmations + 1)
    polygon.turn()
    poisoned = polygon.withdraw("1", coin, TWIN)
    polygon.turn()
    assert findings(polygon.withdrawal(poisoned)) == ["look_alike"]


def test_what_was_noted_for_one_evm_network_alone_still_counts(shop: Shop) -> None:
    poisoned = shop.withdraw("0.001", address=TWIN)
    tenant, network = shop.record(poisoned).tenant, shop.realm_network().id
    before = Payees(tenant, network, mark_of(OTHER)).with_payment(OTHER, 1, "wd_1")
    assert before is not None
    services().store.commit([Save(before)])
    shop.turn()
    assert findings(shop.withdrawal(poisoned)) == ["look_alike"]


def test_what_was_trusted_before_anybody_noted_it_is_a_reference_too(shop: Shop) -> None:
    poisoned = shop.withdraw("0.001", address=TWIN)
    tenant, network = shop.record(poisoned).tenant, shop.realm_network().id
    entry = WhitelistEntry(entry_id(tenant, network, OTHER), tenant, network, OTHER, "cold", 0, 0)
    services().store.commit([Save(entry)])
    assert alike(shop, OTHER) is None
    shop.turn()
    assert findings(shop.withdrawal(poisoned)) == ["look_alike"]
    decide(shop, "accept", poisoned)
    shop.turn()
    known = alike(shop, OTHER)
    assert known is not None and {p.address.lower(): p.count for p in known.known} == {OTHER.lower(): 0, TWIN.lower(): 1}


def test_a_stolen_key_that_drains_in_small_withdrawals_is_stopped(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services().risk, "_rules", RiskRules(per_hour=4))
    made = [shop.withdraw("0.001", address=f"0x{n:02x}" + f"{n:02x}" * 19) for n in range(0x11, 0x19)]
    shop.turn()
    waiting = [w for w in made if shop.withdrawal(w)["status"] == "pending"]
    assert len(waiting) == 4 and {tuple(findings(shop.withdrawal(w))) for w in waiting} == {("velocity",)}
    for withdrawal in waiting:
        decide(shop, "accept", withdrawal)
    paid(shop, *made)


def test_counted_once_whoever_dies_and_whoever_is_second(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    withdrawal = shop.withdraw("0.001")
    tenant, asset = shop.record(withdrawal).tenant, shop.coin("eth").asset
    real, rivals = DynamoStore.commit, []

    def commit(store: DynamoStore, changes: Any) -> None:
        begins = any(isinstance(c, Save) and isinstance(c.record, PaymentHistory) for c in changes)
        if begins and not rivals:
            rivals.append(changes)
            history = next(c.record for c in changes if isinstance(c.record, PaymentHistory))
            real(store, [Save(replace(history, count=41))])  # another payment begins at the same time
        real(store, changes)
        if begins and len(rivals) < 3:
            rivals.append(changes)
            raise Conflict(None)  # it was stored, and nobody heard of it

    monkeypatch.setattr(DynamoStore, "commit", commit)
    shop.turn()
    found = services().store.get(PaymentHistory, tenant=tenant, asset=asset)
    assert found is not None and (found.count, found.version) == (42, 2)
    known = alike(shop, PAYEE)
    assert known is not None and [(p.count, p.latest) for p in known.known] == [(1, (withdrawal,))]


def test_repeated_failures_at_one_address_ask_the_operator(shop: Shop) -> None:
    failing = []
    for _ in range(3):
        failing.append(shop.withdraw("0.001"))
        assert shop.post(f"/v1/sandbox/withdrawals/{failing[-1]}", {"outcome": "fail"}).status == 200
        shop.turn()
        shop.mine(CONFIRMATIONS)
        shop.turn()
        assert shop.withdrawal(failing[-1])["status"] == "failed"
    again, elsewhere = shop.withdraw("0.001"), shop.withdraw("0.001", address=OTHER)
    shop.turn()
    shown = shop.withdrawal(again)
    assert (shown["pending_reason"], findings(shown)) == ("risk", ["repeated_failures"])
    assert shop.withdrawal(elsewhere)["status"] == "confirming"
    assert shop.stack.call("DELETE", f"/v1/withdrawals/{again}", shop.key).status == 200
    shop.wait(DAY)
    tomorrow = shop.withdraw("0.001")
    paid(shop, tomorrow)


def test_contracts_and_our_own_addresses(shop: Shop) -> None:
    made = shop.post("/v1/sandbox/tokens", {"network": "ethereum", "symbol": "XYZ", "name": "Xyz", "decimals": 6})
    to_contract = shop.withdraw("0.001", address=made.json["data"]["contractAddress"])
    own = shop.withdraw("0.001", address=shop.invoice("1")["address"])
    other = Shop(shop.stack, "other_merchant_test")
    foreign = shop.withdraw("0.001", address=other.invoice("1")["address"])
    shop.turn()
    assert findings(shop.withdrawal(to_contract)) == ["contract"]
    assert findings(shop.withdrawal(own)) == ["own_address"]
    record = shop.record(own)
    history = services().store.get(PaymentHistory, tenant=record.tenant, asset=record.asset)
    # What comes back, to whomever, makes no habit: it is counted as haste alone.
    assert history is not None and (history.count, len(history.latest), sum(many for _, many in history.fresh)) == (1, 1, 3)
    assert [many for _, many, _ in history.days] == [1]
    assert "risk" not in shop.withdrawal(foreign)  # whose it is, is nobody else's business
    assert {shop.withdrawal(w)["status"] for w in (to_contract, own, foreign)} == {"confirming"}


def test_wallets_of_the_service_and_tokens_contracts_are_no_destination(shop: Shop) -> None:
    usdt: Coin = shop.coin("usdt")
    assert usdt.contract is not None
    polygon = Shop(shop.stack, network="polygon").hot().address  # of another network, and ours all the same
    for address in (shop.hot().address, shop.hot().address.lower(), polygon, usdt.contract):
        refused = shop.ask("0.5", address=address)
        assert (refused.status, refused.json["error"]["code"]) == (400, "VALIDATION_ERROR"), refused.body
    batch = {"network": "ethereum", "coin": "eth", "outputs": [{"to_address": a, "amount": "1"} for a in (PAYEE, usdt.contract)]}
    refused = shop.post("/v1/withdrawals", {"batch_withdrawal": batch})
    assert refused.json["error"]["details"]["field"] == "batch_withdrawal.outputs.1.to_address"
