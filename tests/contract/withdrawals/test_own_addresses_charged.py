"""A payment to an address of this service, whosever it is, is charged whole: its fee and what collecting costs (money rule 14)."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from chalicelib.domain.catalogue.rates import STALE_MS, Rates
from chalicelib.domain.chain import FeeQuote
from chalicelib.domain.ids import NetworkId
from chalicelib.domain.money import format_units
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.ports.changes import Save
from chalicelib.wiring import forget
from infra.local.aws import LocalAws
from tests.support.edge import PREPARED, Edge

PAYEE = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
FEE, TOKEN_FEE, NETWORK = 10**15, 3 * 10**15, NetworkId("test:ethereum")
QUOTE = {"eth": FEE, "usdt": TOKEN_FEE}
COLLECTING = {"eth": 2 * FEE, "usdt": 5 * 10**15}
ETH_USD = 3000


@pytest.fixture(params=["hot", "merchant"])
def edge(aws: LocalAws, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Edge]:
    monkeypatch.setenv("WITHDRAWAL_FEE_PAYER", request.param)
    made = PREPARED.edge(aws)
    forget()
    made.credit("ethereum", "eth", 10**18)
    made.credit("ethereum", "usdt", 1000 * 10**6)
    yield made
    assert made.violations() == []
    monkeypatch.undo()
    forget()


@pytest.fixture
def payer(request: pytest.FixtureRequest, edge: Edge) -> str:
    return "merchant" if edge.services.settings.merchant_pays_fees else "hot"


def quoted(edge: Edge, fees: dict[str, int] = QUOTE, collecting: dict[str, int] = COLLECTING) -> None:
    known = edge.services.store.get(FeeQuote, network=NETWORK)
    version = 1 if known is None else known.version + 1
    edge.services.store.commit([Save(FeeQuote(NETWORK, fees, edge.services.realm_clock.now_ms(), collecting, version))])


def deposit_address(edge: Edge, key: str = "client", **asked: Any) -> str:
    made = edge.call("POST", "/v1/addresses", key=key, json={"network": "ethereum", "type": "user", **asked})
    assert made.status == 201, made.body
    return str(made.json["address"])


def ask(edge: Edge, to: str, amount: str = "100", coin: str = "usdt", path: str = "/v1/withdrawals", **more: Any) -> Any:
    named = "address" if path.endswith("withdraws") else "to_address"
    return edge.call("POST", path, json={"network": "ethereum", "coin": coin, "amount": amount, named: to, **more})


def available(edge: Edge, coin: str) -> Decimal:
    (found,) = (b for b in edge.call("GET", "/balances").json["data"] if (b["network"], b["coin"]) == ("ethereum", coin))
    return Decimal(found["available"])


def charged(edge: Edge, made: Any) -> str | None:
    record = made.json.get("data", made.json)
    found = record.get("fee_charged")
    return None if found is None else str(found)


@pytest.mark.parametrize("whose", ["client", "other"])
@pytest.mark.parametrize("path", ["/v1/withdrawals", "/v1/withdraws"])
def test_the_fee_and_the_collecting_are_reserved(edge: Edge, whose: str, path: str) -> None:
    quoted(edge)
    address = deposit_address(edge, whose)
    for spelled in (address, address.lower(), "0x" + address[2:].upper()):
        before = available(edge, "usdt")
        made = ask(edge, spelled, path=path)
        assert made.status == 201, made.body
        assert charged(edge, made) == str(8 * ETH_USD // 1000)  # 0.003 + 0.005 ETH
        assert before - available(edge, "usdt") == 100 + 24
    native = ask(edge, address, "0.1", "eth", path=path)
    assert charged(edge, native) == "0.003"
    stored = list(edge.services.store.every(Withdrawal))
    assert {(w.charge, w.charge_fixed) for w in stored} == {(24 * 10**6, 15 * 10**6), (3 * FEE, 2 * FEE)}
    for withdrawal in stored:
        assert edge.call("DELETE", f"/v1/withdrawals/{withdrawal.id}").status == 200
    assert (available(edge, "usdt"), available(edge, "eth")) == (1000, 1)


def test_others_are_charged_as_ever(edge: Edge, payer: str) -> None:
    quoted(edge)
    assert charged(edge, ask(edge, PAYEE)) == (None if payer == "hot" else "9")


def test_the_priority_counts_for_the_payment_and_not_for_the_collecting(edge: Edge) -> None:
    quoted(edge)
    assert charged(edge, ask(edge, deposit_address(edge), priority="urgent")) == "33"  # 2 x 0.003 + 0.005 ETH


def test_an_address_of_another_network_of_its_family_is_ours_as_well(edge: Edge) -> None:
    quoted(edge)
    address = edge.call("POST", "/v1/addresses", json={"network": "polygon", "mode": "single", "coin": "matic"}).json["address"]
    made = ask(edge, address)
    # Where it is not watched nobody could collect it, and whether that is refused is another rule's business.
    assert made.status == 400 or charged(edge, made) == "24"


def test_what_is_archived_is_still_ours(edge: Edge) -> None:
    quoted(edge)
    address = deposit_address(edge)
    assert edge.call("DELETE", f"/v1/addresses/{address}").status == 200
    assert charged(edge, ask(edge, address)) == "24"


@pytest.mark.parametrize(
    "fees, collecting",
    [({}, {}), (QUOTE, {}), (QUOTE, {"eth": FEE}), ({"eth": FEE}, COLLECTING)],
    ids=["no quote", "collecting unknown", "of another coin", "payment unknown"],
)
def test_without_an_estimate_nothing_is_reserved(edge: Edge, fees: dict[str, int], collecting: dict[str, int]) -> None:
    if fees or collecting:
        quoted(edge, fees, collecting)
    refused = ask(edge, deposit_address(edge))
    assert (refused.status, refused.json["error"]["code"]) == (400, "VALIDATION_ERROR"), refused.body
    assert (available(edge, "usdt"), list(edge.services.store.every(Withdrawal))) == (1000, [])


def test_an_old_estimate_is_none(edge: Edge) -> None:
    address = deposit_address(edge)
    quoted(edge)
    edge.services.clock.shift_ms += STALE_MS + 1000
    assert ask(edge, address).json["error"]["code"] == "VALIDATION_ERROR"
    quoted(edge)
    assert ask(edge, address).status == 201


def test_without_a_rate_tokens_are_refused_and_native_coins_are_not(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    quoted(edge)
    address = deposit_address(edge)
    monkeypatch.setattr(edge.services.withdrawals, "_rates_of", lambda realm: Rates())
    refused = ask(edge, address)
    assert refused.json["error"]["code"] == "VALIDATION_ERROR"
    assert "rate" in refused.json["error"]["details"]["reason"]
    assert charged(edge, ask(edge, address, "0.1", "eth")) == "0.003"


def test_a_balance_that_has_the_amount_alone_is_not_enough(edge: Edge) -> None:
    quoted(edge)
    address = deposit_address(edge)
    refused = ask(edge, address, "980")
    assert refused.json["error"]["code"] == "INSUFFICIENT_BALANCE"
    wanted = {"requested": "1004", "fee_charged": "24", "available": "1000", "coin": "usdt"}
    assert refused.json["error"]["details"] == wanted, "the caller asked for 980, and is told what the rest is"
    assert ask(edge, address, "976").status == 201
    assert available(edge, "usdt") == 0


def test_a_batch_charges_each_output_by_itself(edge: Edge, payer: str) -> None:
    quoted(edge)
    ours = deposit_address(edge, "other")
    outputs = [{"to_address": to, "amount": "10"} for to in (PAYEE, ours, PAYEE, ours)]
    sent = {"batch_withdrawal": {"network": "ethereum", "coin": "usdt", "outputs": outputs}}
    made = edge.call("POST", "/v1/withdrawals", json=sent, headers={"Idempotency-Key": "batch"})
    assert made.status == 201, made.body
    plain = None if payer == "hot" else "9"
    assert [w.get("fee_charged") for w in made.json["data"]["withdrawals"]] == [plain, "24", plain, "24"]
    reserved = 40 + 2 * 24 + (0 if plain is None else 18)
    assert available(edge, "usdt") == 1000 - reserved
    again = edge.call("POST", "/v1/withdrawals", json=sent, headers={"Idempotency-Key": "batch"})
    assert (again.body, available(edge, "usdt")) == (made.body, 1000 - reserved)
    stored = sorted(edge.services.store.every(Withdrawal), key=lambda w: w.id)
    shown = [None if not w.charge else format_units(w.charge, 6) for w in stored]
    assert (shown, [w.charge_fixed for w in stored]) == ([plain, "24", plain, "24"], [0, 15 * 10**6] * 2)
    assert [w.charge_rate is not None for w in stored] == [bool(w.charge) for w in stored]
    for withdrawal in stored:
        assert edge.call("DELETE", f"/v1/withdrawals/{withdrawal.id}").status == 200
    assert available(edge, "usdt") == 1000


def test_one_output_that_can_not_be_charged_refuses_the_batch(edge: Edge) -> None:
    quoted(edge, collecting={})
    outputs = [{"to_address": to, "amount": "10"} for to in (PAYEE, deposit_address(edge))]
    refused = edge.call(
        "POST", "/v1/withdrawals", json={"batch_withdrawal": {"network": "ethereum", "coin": "usdt", "outputs": outputs}}
    )
    assert (refused.json["error"]["code"], available(edge, "usdt")) == ("VALIDATION_ERROR", 1000)


def test_wallets_of_the_service_are_refused_as_ever(edge: Edge) -> None:
    quoted(edge)
    made = edge.call(
        "POST", "/v1/addresses/service-wallets", key="admin", json={"network": "ethereum", "type": "cold", "address": PAYEE}
    )
    assert made.status == 201, made.body
    refused = ask(edge, PAYEE)
    assert refused.json["error"]["details"]["reason"] == "is a wallet of the service itself"


def test_it_costs_no_more_calls(edge: Edge) -> None:
    quoted(edge)
    address = deposit_address(edge)
    edge.call("POST", "/v1/withdrawals", json={"network": "ethereum", "coin": "eth", "amount": "0.01", "to_address": address})
    counted = edge.calls()
    assert ask(edge, address).status == 201
    assert len(counted.made) <= 4, counted.made
