"""Withdrawals as they are asked for: both forms, batches, fees, lists; and a batch whose function dies anywhere."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

from chalicelib import wiring
from chalicelib.api.context import Ctx
from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.rates import no_rates
from chalicelib.domain.chain import FeeQuote
from chalicelib.domain.ids import NetworkId
from chalicelib.domain.ledger import Book, JournalEntry, WalletBalance, totals
from chalicelib.domain.money import format_units, parse_units
from chalicelib.domain.withdrawals.batches import MOST_OUTPUTS
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.domain.work import Work
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from tests.support.cuts import WAYS, Cutter, Died, How, When, install
from tests.support.edge import PREPARED, Edge
from tests.support.shop import ETHER, Shop, open_shop
from tests.support.signing import ALICE, BOB, enabled
from tests.support.stack import Stack
from tests.support.world import World

PAYEE = "0x52908400098527886E0F7030069857D2E4169EE7"  # these are EIP-55's own examples
OTHER = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
DAY_MS = 24 * 3600 * 1000


@pytest.fixture
def edge(aws) -> Iterator[Edge]:
    made = PREPARED.edge(aws)
    made.credit("ethereum", "eth", 10 * ETHER)
    yield made
    assert made.violations() == []


def body(*outputs: tuple[str, Any], **more: Any) -> dict[str, Any]:
    listed = [{"to_address": to, "amount": amount} for to, amount in outputs]
    return {"batch_withdrawal": {"network": "ethereum", "coin": "eth", "outputs": listed, **more}}


def post(edge: Edge, sent: Any, key: str | None = None) -> Any:
    return edge.call("POST", "/v1/withdrawals", json=sent, headers={} if key is None else {"Idempotency-Key": key})


def works(edge: Edge) -> Counter[str]:
    return Counter(work.kind for work in edge.services.store.every_work() if work.kind != "outbox")


def test_a_batch_is_as_many_withdrawals(edge: Edge) -> None:
    outputs = [(PAYEE, "0.5"), (OTHER.lower(), 1), (PAYEE, "0.000000000000000001"), (OTHER, "2"), (OTHER, "1")]
    made = post(edge, body(*outputs, priority="urgent"), "b-1")
    assert made.status == 201
    batch, members = made.json["data"]["batch_id"], made.json["data"]["withdrawals"]
    assert [(w["to_address"], w["amount"]) for w in members] == [
        (PAYEE, "0.5"), (OTHER, "1"), (PAYEE, "0.000000000000000001"), (OTHER, "2"), (OTHER, "1"),
    ]  # fmt: skip
    assert {(w["batch_id"], w["status"], w["priority"]) for w in members} == {(batch, "pending", "urgent")}
    assert all(w.pop("estimated_confirmation_time") for w in members)
    for w in members:
        assert edge.call("GET", f"/withdrawals/{w['id']}").json["data"] == w
        assert edge.call("GET", f"/withdrawals/{w['id']}", key="other").status == 404
    assert edge.call("GET", "/withdrawals?order=asc").json["data"] == members
    (balance,) = edge.call("GET", "/balances").json["data"]
    assert (balance["available"], balance["frozen"]) == ("5.499999999999999999", "4.500000000000000001")
    assert works(edge) == {"payout": 5}
    again = post(edge, body(*outputs, priority="urgent"), "b-1")
    assert (again.body, again.headers["idempotency-replayed"]) == (made.body, "true")
    assert works(edge) == {"payout": 5}
    assert edge.call("DELETE", f"/withdrawals/{members[3]['id']}").status == 200
    assert edge.call("GET", "/balances").json["data"][0]["frozen"] == "2.500000000000000001"


def test_a_batch_is_accepted_whole_or_not_at_all(edge: Edge) -> None:
    poor = post(edge, body((PAYEE, "9"), (OTHER, "1.5")))
    assert (poor.status, poor.json["error"]["code"]) == (400, "INSUFFICIENT_BALANCE")
    assert poor.json["error"]["details"] == {"requested": "10.5", "available": "10", "coin": "eth"}
    wrong = post(edge, body((PAYEE, "1"), (OTHER[:-1], "1"), (PAYEE, "1"), ("x", "1")))
    assert (wrong.status, wrong.json["error"]["code"]) == (400, "INVALID_ADDRESS")
    named = ["batch_withdrawal.outputs.1.to_address", "batch_withdrawal.outputs.3.to_address"]
    assert wrong.json["error"]["details"] == {"address": OTHER[:-1], "network": "ethereum", "fields": named}
    assert works(edge) == {}
    assert edge.call("GET", "/balances").json["data"][0]["frozen"] == "0"


@pytest.mark.parametrize(
    ("sent", "fields"),
    [
        (body(), {"batch_withdrawal.outputs"}),
        (body(*[(PAYEE, "0.01")] * (MOST_OUTPUTS + 1)), {"batch_withdrawal.outputs"}),
        (
            body((PAYEE, "1"), (PAYEE, "0"), (PAYEE, "1e3"), (PAYEE, "0.0000000000000000001"), (PAYEE, -1)),
            {f"batch_withdrawal.outputs.{n}.amount" for n in (1, 2, 3, 4)},
        ),
        (body((PAYEE, "1"), coin="btc"), {"batch_withdrawal.coin"}),
        (body((PAYEE, "1"), network="mars", priority="soon"), {"batch_withdrawal.network", "batch_withdrawal.priority"}),
        ({**body((PAYEE, "1")), "network": "ethereum", "metadata": {}}, {"network", "metadata"}),
        ({"batch_withdrawal": {"outputs": [5, {"x": 1}]}}, {
            "batch_withdrawal.network", "batch_withdrawal.coin", "batch_withdrawal.outputs.0",
            "batch_withdrawal.outputs.1.to_address", "batch_withdrawal.outputs.1.amount", "batch_withdrawal.outputs.1.x",
        }),
        ({"batch_withdrawal": []}, {"batch_withdrawal"}),
        ({"batch_withdrawal": None}, {"network", "coin", "amount", "to_address"}),
    ],
)  # fmt: skip
def test_everything_that_is_wrong_with_a_batch_is_named(edge: Edge, sent: Any, fields: set[str]) -> None:
    answer = post(edge, sent)
    assert (answer.status, answer.json["error"]["code"]) == (400, "INVALID_PARAMETER")
    assert {problem["field"] for problem in answer.json["error"]["details"]} == fields


def test_a_full_batch(edge: Edge) -> None:
    made = post(edge, body(*[(PAYEE, "0.01"), (OTHER, "0.02")] * 50))
    assert made.status == 201
    ids = [w["id"] for w in made.json["data"]["withdrawals"]]
    assert ids == sorted(set(ids))
    assert works(edge) == {"payout": 100}
    assert edge.call("GET", "/withdrawals?limit=1").json["meta"]["pagination"]["total"] == 100


def test_in_the_minute_of_a_live_key_a_batch_counts_as_its_outputs(edge: Edge) -> None:
    sent = body(*[(PAYEE, "0.01")] * 100)
    edge.services.clock.shift_ms += 60_000 - edge.services.clock.now_ms() % 60_000  # all of it in one minute
    assert edge.call("GET", "/balances", key="live").headers["x-ratelimit-remaining"] == "999"
    for number in range(1, 10):
        answer = edge.call("POST", "/v1/withdrawals", json=sent, key="live")
        assert (answer.status, answer.json["error"]["code"]) == (400, "VALIDATION_ERROR"), "the network has no node"
        assert answer.headers["x-ratelimit-remaining"] == str(999 - 100 * number)
    refused = edge.call("POST", "/v1/withdrawals", json=sent, key="live")
    assert (refused.status, refused.json["error"]["code"]) == (429, "RATE_LIMIT_EXCEEDED")
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert (refused.headers["x-ratelimit-limit"], refused.headers["x-ratelimit-remaining"]) == ("1000", "99")
    # The refused one is not counted, and what fits goes on.
    assert edge.call("GET", "/balances", key="live").headers["x-ratelimit-remaining"] == "98"


def test_for_a_test_key_a_batch_is_one_request(edge: Edge) -> None:
    for left in (49, 48):
        made = post(edge, body(*[(PAYEE, "0.01")] * 100))
        assert (made.status, made.headers["x-ratelimit-remaining"]) == (201, str(left))


def test_a_batch_that_is_answered_again_counts_as_one(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    weighed: list[int] = []
    monkeypatch.setattr(Ctx, "weigh", lambda ctx, weight: weighed.append(weight))
    for _ in range(2):
        assert post(edge, body((PAYEE, "0.5"), (OTHER, "1")), "b-2").status == 201
    assert weighed == [2]


def test_each_output_needs_its_own_approval(edge: Edge) -> None:
    enabled(lambda sent: edge.call("PUT", "/merchant/settings", json=sent), "1", 1)
    made = post(edge, body((PAYEE, "0.9"), (PAYEE, "1"), (OTHER, "2"), (OTHER, "0.05"))).json["data"]["withdrawals"]
    assert [w.get("pending_reason") for w in made] == [None, "approval", "approval", None]
    assert works(edge) == {"payout": 2, "approval": 2}


def hidden(edge: Edge, monkeypatch: pytest.MonkeyPatch, sent: Any) -> list[str]:
    """Ids of a batch whose withdrawals nobody has made yet."""
    with monkeypatch.context() as patch:
        patch.setattr(edge.services.batch_maker, "expand", lambda batch: None)
        made = post(edge, sent)
    assert made.status == 201
    assert works(edge) == {"batch": 1}
    return [w["id"] for w in made.json["data"]["withdrawals"]]


def test_what_is_not_made_yet_is_there_all_the_same(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    enabled(lambda sent: edge.call("PUT", "/merchant/settings", json=sent), "2", 1)
    ids = hidden(edge, monkeypatch, body((PAYEE, "0.5"), (OTHER, "2"), (PAYEE, "0.5"), (OTHER, "0.5")))
    assert edge.violations() == []
    for withdrawal in ids:
        assert edge.call("GET", f"/withdrawals/{withdrawal}").json["data"]["status"] == "pending"
        assert edge.call("GET", f"/withdrawals/{withdrawal}", key="other").status == 404
    for neighbour in (ids[0][:-2] + "00", ids[0][:-2] + "05"):
        assert edge.call("GET", f"/withdrawals/{neighbour}").status == 404
    text = edge.call("GET", f"/withdrawals/{ids[1]}").json["data"]["approval"]["signing_text"]
    accepted = edge.call(
        "PUT", "/withdrawals/request/accept", json={"id": ids[1], "signer_id": "alice", "signature": ALICE.sign(text)}
    )
    assert accepted.status == 200
    assert works(edge) == {"payout": 4}


def test_what_is_not_made_yet_can_be_cancelled(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = hidden(edge, monkeypatch, body((PAYEE, "1"), (OTHER, "2")))
    assert edge.call("DELETE", f"/withdrawals/{ids[1]}").json["data"]["status"] == "cancelled"
    assert works(edge) == {"payout": 1}


def test_the_clock_makes_what_was_left_behind(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = hidden(edge, monkeypatch, body(*[(PAYEE, "0.1")] * 7))
    expansion, network = edge.services.batch_maker, NetworkId("test:ethereum")
    assert expansion.sweep(network) == 0
    edge.services.clock.shift_ms += 20_000
    assert (expansion.sweep(network), expansion.sweep(network)) == (1, 0)
    assert works(edge) == {"payout": 7}
    assert [w["id"] for w in edge.call("GET", "/withdrawals?order=asc").json["data"]] == ids


def test_the_source_must_be_the_hot_wallet(edge: Edge) -> None:
    store = edge.services.store
    store.commit([Save(Wallet(NetworkId("test:ethereum"), "hot", OTHER, "kms", "k", "", 0))])
    asked = {"network": "ethereum", "coin": "eth", "amount": "1", "to_address": PAYEE}
    for source in (OTHER, OTHER.lower()):
        assert post(edge, {**asked, "from_address_id": source}).status == 201
    for source in (PAYEE, "addr_1"):
        (problem,) = post(edge, {**asked, "from_address_id": source}).json["error"]["details"]
        assert (problem["field"], problem["value"]) == ("from_address_id", source)


def test_fees(edge: Edge) -> None:
    path = "/v1/withdrawals/fees?network=ethereum&coin=usdt"
    unknown = edge.call("GET", path).json["data"]
    assert [(e["fee"], e["feeUSD"]) for e in unknown["estimates"]] == [(None, None)] * 4
    edge.services.store.commit([Save(FeeQuote(NetworkId("test:ethereum"), {"eth": 21, "usdt": 10**15}, 0))])
    found = edge.call("GET", path).json["data"]
    assert (found["network"], found["coin"], found["fee_coin"]) == ("ethereum", "usdt", "eth")
    rate = edge.services.rates("test").get("eth")
    assert rate is not None
    assert found["estimates"] == [
        {
            "priority": name, "multiplier": multiplier, "fee": fee, "confirmation_time": f"{minutes} minutes",
            "feeUSD": pytest.approx(float(rate.decimal) * float(fee), abs=0.006),
        }
        for name, multiplier, fee, minutes in (
            ("low", 0.8, "0.0008", "30-60"), ("normal", 1.0, "0.001", "10-30"),
            ("high", 1.5, "0.0015", "5-15"), ("urgent", 2.0, "0.002", "1-10"),
        )
    ]  # fmt: skip
    asked = {"network": "ethereum", "coin": "eth", "amount": "1", "to_address": PAYEE, "priority": "high"}
    assert post(edge, asked).json["data"]["fee"] == "0.000000000000000032"  # 31.5 wei: the fraction counts as one
    assert edge.call("GET", "/withdrawals/fees?coin=trx").json["data"]["network"] == "tron"
    missing = edge.call("GET", "/withdrawals/fees?network=mars")
    assert {p["field"] for p in missing.json["error"]["details"]} == {"network", "coin"}


def test_lists_by_day(edge: Edge) -> None:
    clock = edge.services.clock
    ids = []
    for _ in range(3):
        made = post(edge, {"network": "ethereum", "coin": "eth", "amount": "0.1", "to_address": PAYEE}).json["data"]
        ids.append((made["id"], made["created_at"]))
        clock.shift_ms += DAY_MS

    def found(**query: str) -> list[int]:
        listed = edge.call("GET", "/withdrawals", query={"order": "asc", **query})
        assert listed.status == 200, listed.body
        return [[name for name, _ in ids].index(w["id"]) for w in listed.json["data"]]

    second = ids[1][1]
    assert found(from_date=second) == [1, 2]
    assert found(to_date=second) == [0, 1]
    assert found(from_date=second, to_date=second) == found(from_date=second[:10], to_date=second[:10]) == [1]
    assert found(to_date=second[:10]) == [0, 1]
    assert found(from_date=second.replace("Z", "+00:00"), status="pending", coin="eth") == [1, 2]
    for wrong in ("yesterday", "2026-13-01", "1", "2026-05-01T25:00"):
        (problem,) = edge.call("GET", "/withdrawals", query={"from_date": wrong}).json["error"]["details"]
        assert problem["field"] == "from_date"


# Through the whole service.


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack, ("3", "eth")) as opened:
        yield opened


def test_approved_ones_are_paid_and_others_never(shop: Shop) -> None:
    def put(path: str, sent: Any) -> Any:
        answer = shop.stack.call("PUT", path, shop.key, json=sent)
        assert answer.status == 200, answer.body
        return answer.json["data"]

    enabled(lambda sent: shop.stack.call("PUT", "/v1/merchant/settings", shop.key, json=sent), "0.5")
    made = shop.post("/v1/withdrawals", body((PAYEE, "0.25"), (PAYEE, "0.5"), (OTHER, "1")))
    small, agreed, waiting = (w["id"] for w in made.json["data"]["withdrawals"])
    shop.turn()
    for _ in range(2):
        shop.nudge(200)
    # Whoever asks for it, and whatever it says it waits for.
    record = shop.record(waiting)
    assert services().payouts.pay(record.tenant, waiting) == "waiting"
    assert [shop.withdrawal(w)["status"] for w in (small, agreed, waiting)] == ["confirming", "pending", "pending"]
    text = shop.withdrawal(agreed)["approval"]["signing_text"]
    for signer in (ALICE, BOB):
        assert shop.paid(PAYEE) == ETHER // 4
        put("/v1/withdrawals/request/accept", {"id": agreed, "signer_id": signer.name, "signature": signer.sign(text)})
        shop.turn()
    shop.mine()
    shop.turn()
    assert [shop.withdrawal(w)["status"] for w in (small, agreed, waiting)] == ["confirmed", "confirmed", "pending"]
    assert (shop.paid(PAYEE), shop.paid(OTHER)) == (3 * ETHER // 4, 0)
    assert shop.told(agreed) == {"withdrawal.created": 1, "withdrawal.status_changed": 4, "withdrawal.completed": 1}


def test_a_failure_that_burnt_the_operators_fee_counts_towards_the_limits_all_day(shop: Shop) -> None:
    """Or failing payments could be had for nothing, as many as one likes."""
    entry = {"network": "ethereum", "address": PAYEE, "daily_limit": "1"}
    assert shop.post("/v1/whitelist/addresses", entry).status == 201
    failed = shop.withdraw("1", address=PAYEE)
    shop.post(f"/v1/sandbox/withdrawals/{failed}", {"outcome": "fail"})
    shop.turn()
    shop.mine()
    shop.turn()
    assert shop.withdrawal(failed)["status"] == "failed"
    assert shop.ask("1", address=PAYEE).json["error"]["code"] == "DAILY_LIMIT_EXCEEDED"
    shop.mine(shop.realm_network().reorg_depth)
    shop.turn()
    shop.turn()
    assert services().store.open_work("settled", shop.realm_network().id) == []  # no reorganisation reaches it any more
    assert shop.ask("1", address=PAYEE).json["error"]["code"] == "DAILY_LIMIT_EXCEEDED"
    shop.wait(86_400)
    assert shop.ask("1", address=PAYEE).status == 201


def test_nobody_burns_more_of_the_fee_than_is_paid_out(shop: Shop) -> None:
    """The operator pays the fee: an amount that is worth less than it is refused, by the quote and the rates of now."""
    fee = shop.get("/v1/withdrawals/fees", network="ethereum", coin="eth")["data"]["estimates"]
    dust = [(PAYEE, "1"), *[(OTHER, "0.000000000000000001")] * 20]
    least = next(e["fee"] for e in fee if e["priority"] == "urgent")
    refused = shop.post("/v1/withdrawals", body(*dust, priority="urgent"))
    details = refused.json["error"]["details"]
    assert (refused.status, refused.json["error"]["code"]) == (400, "VALIDATION_ERROR")
    assert details["field"] == "batch_withdrawal.outputs.1.amount"
    assert details["reason"] == f"must be at least {least} ETH: the network fee is worth as much"
    assert shop.get("/v1/withdrawals")["data"] == []
    one = {"network": "ethereum", "coin": "eth", "to_address": PAYEE, "priority": "urgent"}
    assert shop.post("/v1/withdrawals", {**one, "amount": least}).status == 201
    # Of a token as much as the fee is worth: 1 USDT is 1 USD here, 1 ETH 3,000.
    shop.credit("100", "usdt")
    fee = shop.get("/v1/withdrawals/fees", network="ethereum", coin="usdt")["data"]["estimates"]
    worth = Decimal(next(e["fee"] for e in fee if e["priority"] == "normal")) * 3000
    token = {"network": "ethereum", "coin": "usdt", "to_address": PAYEE}
    reason = shop.post("/v1/withdrawals", {**token, "amount": "0.01"}).json["error"]["details"]["reason"]
    assert reason == f"must be at least {worth.normalize()} USDT: the network fee is worth as much"
    assert shop.post("/v1/withdrawals", {**token, "amount": str(worth)}).status == 201
    # A coin whose worth nobody knows is not compared.
    services().withdrawals._rates_of = no_rates
    assert shop.post("/v1/withdrawals", {**token, "amount": "0.01"}).status == 201


@pytest.mark.parametrize("outcome", ["confirm", "fail"])
def test_the_merchant_may_pay_the_fee(stack: Stack, monkeypatch: pytest.MonkeyPatch, outcome: str) -> None:
    """The estimate at creation is the price: reserved with the amount, then the operator's; given back where nothing was burnt."""
    monkeypatch.setenv("WITHDRAWAL_FEE_PAYER", "merchant")
    wiring.forget()
    with open_shop(stack, ("1", "eth"), ("100", "usdt")) as shop:
        estimates = {
            coin: shop.get("/v1/withdrawals/fees", network="ethereum", coin=coin)["data"]["estimates"][2]
            for coin in ("eth", "usdt")
        }
        sent = {"network": "ethereum", "coin": "eth", "amount": "0.5", "to_address": PAYEE, "priority": "high"}
        made = shop.post("/v1/withdrawals", sent).json["data"]
        assert made["fee_charged"] == made["fee"] == estimates["eth"]["fee"]
        assert shop.balance()["frozen"] == format_units(parse_units("0.5", 18) + parse_units(made["fee"], 18), 18)
        available = shop.available()
        refused = shop.post("/v1/withdrawals", {**sent, "amount": available})
        assert refused.json["error"]["details"]["available"] == available
        outputs = {**body((PAYEE, "10"), (OTHER, "20"), coin="usdt", priority="high")}
        tokens = shop.post("/v1/withdrawals", outputs).json["data"]["withdrawals"]
        charged = [parse_units(w["fee_charged"], 6) for w in tokens]
        # 1 USDT is 1 USD here: the fee's value in USD, to the cent below.
        assert [round(units / 10**6, 2) for units in charged] == [pytest.approx(estimates["usdt"]["feeUSD"], abs=0.011)] * 2
        assert shop.balance("usdt")["frozen"] == format_units(30 * 10**6 + sum(charged), 6)
        cancelled = shop.stack.call("DELETE", f"/v1/withdrawals/{tokens[1]['id']}", shop.key)
        assert cancelled.status == 200
        for w in (made, tokens[0]):
            shop.post(f"/v1/sandbox/withdrawals/{w['id']}", {"outcome": outcome})
        shop.turn()
        shop.mine()
        shop.turn()
        after = {coin: (shop.balance(coin)["available"], shop.balance(coin)["frozen"]) for coin in ("eth", "usdt")}
        if outcome == "fail":
            # What the chain burnt stays paid for.
            kept = format_units(10**18 - parse_units(made["fee_charged"], 18), 18)
            assert after == {"eth": (kept, "0"), "usdt": (format_units(100 * 10**6 - charged[0], 6), "0")}
            assert audit(services().store) == []
        else:
            assert after == {"eth": (available, "0"), "usdt": (format_units(90 * 10**6 - charged[0], 6), "0")}
        owed = totals(services().store.every(JournalEntry))
        earned = owed.get((Book.WHOSE, "operator:test", shop.coin("usdt").asset), 0)
        stocked = services().store.get(
            WalletBalance, network=shop.realm_network().id, address=shop.hot().address.lower(), asset=shop.coin("usdt").asset
        )
        assert stocked is not None
        if outcome == "confirm":
            assert earned - stocked.units == charged[0] + 10 * 10**6
    wiring.forget()


@pytest.fixture
def cutter(monkeypatch: pytest.MonkeyPatch) -> Cutter:
    made = Cutter()
    install(made, monkeypatch)
    return made


IN_A_CHECK = (("error", "before"), ("death", "after"))


# The sweep: a death before a write leaves what an error there leaves, and so does one after it; those stay.
@pytest.mark.parametrize(
    ("how", "when"), [pytest.param(*way, id="-".join(way), marks=[pytest.mark.sweep] * (way not in IN_A_CHECK)) for way in WAYS]
)
def test_a_batch_may_die_at_every_write(
    how: How, when: When, stack: Stack, cutter: Cutter, record_property: Callable[[str, object], None]
) -> None:
    """Whatever is cut while a batch of four is asked for and made, the books are whole there and then, and in the end each of
    its withdrawals is there once."""
    world = World(stack, cutter)
    with open_shop(stack) as opened:
        opened.credit("3")
    world.settle()
    start, sent = stack.snapshot(), body((PAYEE, "0.1"), (OTHER, "0.2"), (PAYEE, "0.3"), (OTHER, "0.4"))
    cutter.set(0, how, when)
    ask(world, sent)
    trace = list(cutter.trace)
    points = [n for n, name in enumerate(trace, 1) if name == "TransactWriteItems"]
    if os.environ.get("SWEEP") != "full":
        points = [*points[::2], points[-1]]  # a check has time for every second one
    assert trace.count("TransactWriteItems") == 3
    for at in points:
        stack.restore(start)
        world = World(stack, cutter)
        cutter.set(at, how, when)
        members = ask(world, sent)
        assert cutter.fired, f"call {at} never came"
        world.stack.drain(only=("housekeeping",), rounds=1)
        world.later()
        world.stack.drain(only=("housekeeping",), rounds=1)
        assert audit(services().store) == [], trace[at - 1]
        stored = sorted(w.id for w in services().store.every(Withdrawal))
        assert stored == [w["id"] for w in members], f"cut {how} {when} call {at} ({trace[at - 1]})"
        assert Counter(work.kind for work in open_works()) == {"payout": 4}
    record_property("cut_points", len(points))


def open_works() -> list[Work]:
    return [work for work in services().store.every_work() if work.kind in ("batch", "payout", "approval")]


def ask(world: World, sent: Any) -> list[Any]:
    """Ask for the batch until there is an answer, with an audit after every failure."""
    for _ in range(3):
        try:
            with world.cutter.arm():
                answer = world.stack.call("POST", "/v1/withdrawals", world.key, json=sent, headers={"Idempotency-Key": "batch"})
        except Died:
            world.reborn()
            assert audit(services().store) == []
            continue
        if answer.status != 500:
            assert answer.status == 201, answer.body
            return list(answer.json["data"]["withdrawals"])
        assert audit(services().store) == []
    raise AssertionError("the batch was not answered")
