"""The ledger against simulated chains: what was moved behind the service's back is found, and what the service does never shows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.chains.sandbox.ledger import Tx
from chalicelib.domain import reconciliation
from chalicelib.domain.ids import AssetId, NetworkId, TenantId
from chalicelib.domain.ledger import Balance, WalletBalance
from chalicelib.domain.merchants.merchants import Merchant
from chalicelib.domain.reconciliation import SECOND_LOOK_MS, Comparison, ComparisonReport
from chalicelib.domain.treasury.moves import Move
from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.reconciliation import reports as reconciliations
from chalicelib.usecases.reconciliation.run import ReconciliationRun
from chalicelib.wiring import services
from chalicelib.workers import reconciliation as worker
from infra.cli import main
from infra.commands import books
from tests.support.reconciling import THIEF, USDT, compared, run_of, sums, suspected
from tests.support.shop import ETHER, Shop, decide, open_shop
from tests.support.slots import add_slot, fund
from tests.support.stack import Stack


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as made:
        yield made


def steal(shop: Shop, address: str, units: int, coin: str = "eth", to: str = THIEF) -> None:
    """Whoever has the key moves coins, and the service knows nothing of it."""
    chain, contract = shop.chain(), shop.coin(coin).contract
    source, nonce = chain.form(address), chain.nonce(address)
    contract = None if contract is None else chain.form(contract)
    chain.submit(Tx(f"0x{random.Random(f'{source}{nonce}').randbytes(32).hex()}", source, to, contract, units, 0, nonce))


def test_all_is_where_the_ledger_says(shop: Shop) -> None:
    shop.credit("1.5")
    shop.credit("20", "usdt")
    found = compared(shop)
    assert found.clean and found.complete and found.differences == ()
    eth, usdt = sums(found, "eth"), sums(found, "usdt")
    assert eth.owed == eth.owed_before == 15 * ETHER // 10 and usdt.owed == 20 * USDT
    assert eth.held == eth.expected == eth.ledger >= eth.owed and eth.operator == eth.ledger - eth.owed
    assert run_of(shop).step() == "idle"


def test_coins_moved_behind_the_back_are_listed_and_told(
    shop: Shop, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them, in parts, whoever dies when it is to be told."""
    monkeypatch.setattr(reconciliation, "MOST_LISTED", 1)
    monkeypatch.setattr(reconciliation, "PART", 2)
    addresses = [shop.invoice("2")["address"] for _ in range(6)]
    for address in addresses:
        shop.pay(address, "2")
    shop.mine()
    shop.turn()
    for address in addresses:
        steal(shop, address, ETHER)
    store, commit = services().store, services().store.commit

    def dies(changes: Any) -> None:
        if any(isinstance(change, Save) and isinstance(change.record, ComparisonReport) for change in changes):
            monkeypatch.setattr(store, "commit", commit)
            raise Unavailable("died before it was stored")
        commit(changes)

    monkeypatch.setattr(store, "commit", dies)
    with pytest.raises(Unavailable):
        compared(shop)
    assert caplog.text.count("ALARM test:ethereum: reconciliation found 6 places") == 1
    found = compared(shop)
    assert caplog.text.count("ALARM test:ethereum: reconciliation found 6 places") == 2
    (difference,) = found.differences
    assert (found.found, found.parts, found.clean) == (6, 3, False)
    assert (difference.address in {a.lower() for a in addresses}, difference.role) == (True, "user")
    assert (difference.expected, difference.held) == (2 * ETHER, ETHER)

    def part(number: int) -> Any:
        query = {"network": "ethereum", "part": str(number)}
        return shop.stack.call("GET", "/v1/reconciliation", shop.stack.keys["admin_test"], query=query).json["differences"]

    parts = [part(number) for number in range(1, 6)]
    assert [len(each) for each in parts] == [1, 2, 2, 1, 0]
    assert {each["address"] for listed in parts for each in listed} == set(addresses)
    again = compared(shop)
    listed = reconciliations.parts_of(services().store, again, range(2, 5))
    assert {d.first_seen for d in (*again.differences, *(d for p in listed for d in p.differences))} == {difference.first_seen}
    assert reconciliations.parts_of(services().store, found, range(2, 5)) != [], "the one before has its own"


def test_one_token_that_does_not_answer_hides_no_other_coin(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shop.credit("1")
    shop.credit("20", "usdt")
    reader = services().reader(shop.realm_network())
    balance, contract = reader.balance, shop.coin("usdt").contract
    broken = None if contract is None else shop.chain().form(contract)

    def answers(address: str, contract: str | None = None) -> int:
        if contract == broken:
            raise Unavailable("execution reverted")
        return balance(address, contract)

    monkeypatch.setattr(reader, "balance", answers)
    steal(shop, next(w.address for w in services().store.every(WalletBalance) if w.units == ETHER), ETHER)
    found = compared(shop)
    assert (found.complete, found.clean, found.found, found.trouble) == (True, False, 1, None)
    assert found.unread == len(found.skipped) > 0 and {s.asset for s in found.skipped} == {shop.coin("usdt").asset}
    assert (sums(found, "usdt").solvent, sums(found, "usdt").places, sums(found, "eth").solvent) == (None, 0, True)
    assert "could not compare" in caplog.text and "execution reverted" in caplog.text
    shown = shop.stack.call("GET", "/v1/reconciliation", shop.stack.keys["admin_test"], query={"network": "ethereum"}).json
    assert shown["networks"][0]["notCompared"] == found.unread and shown["solvent"] is None
    assert shown["networks"][0]["skipped"][0]["why"] == "execution reverted"


def test_what_is_stolen_makes_a_coin_insolvent(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    shop.credit("20", "usdt")
    steal(shop, shop.hot().address, shop.chain().balance(shop.hot().address, shop.coin("usdt").contract), "usdt")
    found = compared(shop)
    assert found.found == 1 and not found.insolvent, "what merchants have lies on deposit addresses"
    (lying,) = (w for w in services().store.every(WalletBalance) if w.asset.endswith("m:usdt") and w.units == 20 * USDT)
    steal(shop, lying.address, 20 * USDT, "usdt")
    (coin,) = compared(shop).insolvent
    assert (coin.asset, coin.assets, coin.liabilities) == ("test:ethereum:usdt", 0, 20 * USDT)
    assert "20000000 units of test:ethereum:usdt are owed, and 0 are there" in caplog.text


def test_what_is_stolen_from_a_further_slot_is_told(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    """By its wallet: what the first slot has makes up for nothing."""
    second = add_slot(shop, 1)
    fund(shop, second, "2", "eth")
    assert compared(shop).clean
    steal(shop, second, ETHER)
    found = compared(shop)
    (difference,) = found.differences
    assert (difference.address, difference.role, difference.expected, difference.held) == (
        shop.chain().form(second), "hot", 2 * ETHER, ETHER,
    )  # fmt: skip
    assert "reconciliation found 1 places that differ" in caplog.text


def test_one_merchants_debt_hides_no_other_ones_money(shop: Shop) -> None:
    shop.credit("1")
    known = {balance.tenant for balance in services().store.every(Balance)}
    tenants = [TenantId(f"{merchant.id}:test") for merchant in services().store.every(Merchant)]
    owing = Balance(next(t for t in tenants if t not in known), shop.coin("eth").asset, available=-3 * ETHER, version=1)
    services().store.commit([Save(owing)])
    eth = sums(compared(shop), "eth")
    services().store.commit([Save(replace(owing, available=0, version=2))])
    assert (eth.owed, eth.overdrawn, eth.operator) == (ETHER, 3 * ETHER, eth.ledger + 2 * ETHER)


def test_what_is_on_its_way_shows_as_no_difference(shop: Shop) -> None:
    shop.credit("5")
    shop.credit("50", "usdt")
    shop.pay(shop.invoice("1")["address"], "1")
    assert suspected(shop) == [], "in a block that nobody has scanned"
    shop.turn()
    assert suspected(shop) == [], "seen, and not credited"
    for coin in ("eth", "usdt"):
        for outcome in {"eth": ("fail",), "usdt": ("stick",)}[coin]:
            withdrawal = shop.withdraw({"eth": "1", "usdt": "5"}[coin], coin)
            decide(shop, withdrawal, outcome)
            shop.turn()
            assert suspected(shop) == [], (coin, outcome)
            if outcome == "stick":
                shop.wait(365)
                shop.turn()
                assert shop.order(withdrawal).earlier
                assert suspected(shop) == [], "replaced"
                decide(shop, withdrawal, "confirm")
                assert suspected(shop) == [], "mined deep, and not settled"
                shop.turn()
    shop.mine()
    shop.turn()
    assert compared(shop).clean


def test_collections_show_at_no_step(shop: Shop) -> None:
    """A token's way from a deposit address to the hot wallet, with coins for its fee sent there before."""
    shop.credit("5000", "usdt")
    asked = {"coin": "usdt", "network": "ethereum", "collectThreshold": "0"}
    answer = shop.stack.call("PUT", "/v1/coins", shop.stack.keys["admin_test"], json=asked)
    assert answer.status == 200, answer.body
    services().store.forget_catalogue()
    assert suspected(shop) == [], "and what lies there is to be collected"
    kinds: set[str] = set()
    for _ in range(12):
        done = shop.stack.drain(only=("poll_ethereum", "relay", "payout", "collect"), hurry=True, rounds=1)
        kinds |= {move.kind for move in services().store.every(Move)}
        assert suspected(shop) == [], (done, kinds)
        shop.mine(5)
        shop.wait(60)
        assert suspected(shop) == [], "and mined"
        if kinds >= {"topup", "sweep"} and not services().store.open_work("move", shop.realm_network().id):
            break
    else:
        raise AssertionError(kinds)
    shop.mine()
    shop.turn("collect")
    found = compared(shop)
    assert found.clean and sums(found, "usdt").owed == 5000 * USDT


def test_a_reorganisation_is_waited_for(shop: Shop) -> None:
    shop.credit("5")
    withdrawal = shop.withdraw("1")
    shop.turn()
    shop.mine()
    shop.turn()
    assert shop.withdrawal(withdrawal)["status"] == "confirmed"
    shop.reorg(14)
    services().reconciliations.order("test", None)
    run = run_of(shop)
    assert run.begin()
    assert [run.step() for _ in range(3)][1:] == ["waits", "waits"], "the chain is not on the branch that was scanned"
    state = services().store.get(Comparison, network=shop.realm_network().id)
    assert state is not None and "branch" in str(state.trouble)
    shop.turn()
    shop.mine()
    shop.turn()
    assert compared(shop).clean, "the same run goes on"


def test_staked_coins_are_a_place_of_their_own(shop: Shop) -> None:
    shop.network = "tron"
    shop.turn()
    admin = shop.stack.keys["admin_test"]
    asked = {"amount": "1000", "resource": "ENERGY"}
    assert shop.stack.call("POST", "/v1/networks/tron/stake", admin, json=asked).status == 201
    shop.stack.drain(only=("poll_tron",), rounds=1)
    assert suspected(shop) == [], "locked by the chain, and not booked"
    shop.mine(20)
    shop.turn()
    found = compared(shop)
    assert found.clean and found.complete
    shop.chain().stake("elsewhere", shop.hot().address, 7)
    told = {(d.role, d.staked, d.held - d.expected) for d in compared(shop).differences}
    assert told == {("hot", False, -7), ("hot", True, 7)}


def test_dying_anywhere_loses_nothing_and_two_at_once_count_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.credit("1")
    wanted = compared(shop)
    services().reconciliations.order("test", None)
    store, commit = services().store, services().store.commit
    steps, dies = 0, 0

    def dying(changes: Any) -> None:
        nonlocal dies
        dies += 1
        if dies % 2:
            raise Unavailable("died before it was stored")
        commit(changes)

    def small() -> ReconciliationRun:
        made = run_of(shop)
        made._walk._page = 20
        return made

    while not small().begin():
        pass
    monkeypatch.setattr(store, "commit", dying)
    while (state := store.get(Comparison, network=shop.realm_network().id)) is not None and state.open:
        steps += 1
        first, second = small(), small()
        for run in (first, second):
            try:
                run.step()
            except Unavailable:
                continue
        assert steps < 200
    monkeypatch.undo()
    found = store.get(ComparisonReport, network=shop.realm_network().id)
    assert found is not None and steps > 5
    assert (found.sums, found.looked, found.clean) == (wanted.sums, wanted.looked, True)


def test_of_two_at_the_same_step_one_counts(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    services().reconciliations.order("test", None)
    run = run_of(shop)
    assert run.begin()
    store = services().store
    commit = store.commit
    raced: list[str] = []

    def late(changes: Any) -> None:
        if not raced:
            raced.append("x")
            assert run_of(shop).step() == "on"
        commit(changes)

    monkeypatch.setattr(store, "commit", late)
    assert run.step() == "waits"
    monkeypatch.undo()
    with pytest.raises(Conflict):
        state = store.get(Comparison, network=shop.realm_network().id)
        store.commit([Save(state)])
    assert compared(shop).clean


def test_a_network_that_does_not_answer_is_not_called_equal(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shop.credit("1")
    reader = services().reader(shop.realm_network())

    def away(*_: Any) -> Any:
        raise Unavailable("no node answers")

    monkeypatch.setattr(reader, "balance", away)
    services().reconciliations.order("test", None)
    run = run_of(shop)
    assert run.begin()
    while run.step(10_000) != "idle":
        shop.wait(11)
    found = services().store.get(ComparisonReport, network=shop.realm_network().id)
    assert (
        found is not None and not found.complete and not found.clean and found.trouble == "no node answers" and not found.insolvent
    )
    assert "ALARM test:ethereum: reconciliation could not compare everything: no node answers" in caplog.text
    monkeypatch.undo()
    shop.wait(1)
    assert compared(shop).clean


def test_a_network_out_of_service_is_compared_and_an_old_report_proves_nothing(
    shop: Shop, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    invoice = shop.invoice("2")
    shop.pay(invoice["address"], "2")
    shop.mine()
    shop.turn()
    assert compared(shop).clean
    admin = shop.stack.keys["admin_test"]
    put = shop.stack.call("PUT", "/v1/networks", admin, json={"network": "ethereum", "status": "inactive"})
    assert put.status == 200, put.body

    def shown() -> Any:
        return shop.stack.call("GET", "/v1/reconciliation", admin, query={"network": "ethereum"}).json

    assert shown()["solvent"] is True
    shop.wait(2 * 24 * 3600 + 1)
    assert shown()["solvent"] is None and shown()["networks"][0]["solvent"] is None
    worker.run()
    assert "ALARM test:ethereum: reconciliation was finished 2 days ago" in caplog.text
    steal(shop, invoice["address"], 2 * ETHER)
    shop.mine(20)
    for _ in range(3):
        shop.stack.drain(only=("reconciliation", "compare"), rounds=1)
        shop.wait(SECOND_LOOK_MS // 1000)
        shop.mine(1)
    told = shown()
    assert (told["solvent"], [each["difference"] for each in told["differences"]]) == (True, ["-2"])  # the operator's own cover it
    assert told["networks"][0]["worst"] == told["differences"]
    assert f"In all: -{2 * ETHER} of test:ethereum:eth" in caplog.text


def test_what_is_gone_is_told_however_much_else_differs() -> None:
    """Anybody can make differences of one unit: they push no theft out of what is told."""
    eth, usdt = (AssetId(f"test:ethereum:{coin}") for coin in ("eth", "usdt"))

    def seen(address: str, change: int, asset: AssetId = eth, role: Any = "user") -> Any:
        return reconciliation.Seen(reconciliation.Place(address, role, asset), ETHER, 0, ETHER, ETHER + change, 0, 7)

    looks = [seen(f"0x{n:x}", 1) for n in range(300)]
    looks += [
        seen("0xfa1", -5),
        seen("0xfa2", -ETHER),
        seen("0xfa3", -2, role="hot"),
        seen("0xfa4", -9, usdt),
        seen("0xfa5", -8, usdt),
    ]
    state = Comparison(NetworkId("test:ethereum"), "rec", 0, 0, phase="walk")
    for block in (7, 8):
        state = state.seeing([replace(look, block=block) for look in looks], block * SECOND_LOOK_MS, {})
    assert [(each.address, each.held - each.expected) for each in state.worst] == [("0xfa3", -2), ("0xfa4", -9)]


def test_operators_see_it_over_http_and_at_the_command_line(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    def asked(method: str, path: str = "/v1/reconciliation", key: str = "admin_test", **more: Any) -> Any:
        return shop.stack.call(method, path, shop.stack.keys[key], **more)

    assert asked("GET", key="client_test").status == 403
    empty = asked("GET").json
    assert (empty["solvent"], empty["networks"], empty["running"]) == (None, [], [])
    shop.credit("1.5")
    ordered = [asked("POST", headers={"Idempotency-Key": "once"}) for _ in range(2)]
    assert {answer.status for answer in ordered} == {201} and ordered[0].json == ordered[1].json
    shop.stack.drain(only=("reconciliation", "compare"), rounds=1)
    seen = asked("GET").json
    assert (seen["solvent"], seen["differences"], seen["running"], len(seen["networks"])) == (True, [], [], 8)
    assert seen["orderedAt"] == ordered[0].json["orderedAt"]
    (one,) = asked("GET", "/v1/reconciliation?network=ethereum").json["networks"]
    (eth,) = (coin for coin in one["coins"] if coin["coin"] == "eth")
    assert (eth["liabilities"], eth["difference"], eth["solvent"], eth["ledger"]) == ("1.5", "0", True, eth["chain"])
    assert main(["--stage", "local", "reconcile", "--realm", "test", "--network", "ethereum"]) == 0
    assert '"solvent": true' in capsys.readouterr().out
    assert not run_of(shop).begin()
    shop.wait(86_401)
    assert run_of(shop).begin(), "every day"
    assert asked("GET").json["running"][0]["phase"] == "before"


def test_the_command_says_what_it_waits_for(
    shop: Shop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.credit("1.5")
    steal(shop, shop.hot().address, ETHER)
    pauses: list[float] = []

    def goes_on(seconds: float) -> None:
        pauses.append(seconds)
        shop.mine(20)
        shop.wait(600)
        shop.turn()

    monkeypatch.setattr(books.time, "sleep", goes_on)
    assert main(["--stage", "local", "reconcile", "--realm", "test", "--network", "ethereum"]) == 1
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("test:ethereum: it waits for blocks")]
    assert pauses and len(told) == -(-len(pauses) // books.PAUSES_TOLD)


def test_nothing_that_the_service_does_ever_shows(shop: Shop) -> None:
    """Deposits, payments and reorganisations in any order, compared after each."""
    chance = random.Random(7)
    shop.credit("9")
    shop.credit("90", "usdt")
    open_: list[str] = []

    def pays() -> None:
        coin = chance.choice(("eth", "usdt"))
        open_.append(shop.withdraw({"eth": "0.5", "usdt": "5"}[coin], coin))
        if chance.random() < 0.6:
            decide(shop, open_[-1], chance.choice(("stick", "fail", "confirm")))

    def decides() -> None:
        if open_ and shop.withdrawal(open_[-1])["status"] in ("broadcasting", "confirming"):
            withdrawal = open_.pop()
            shop.post(f"/v1/sandbox/withdrawals/{withdrawal}", {"outcome": chance.choice(("confirm", "fail", "stick"))})

    def receives() -> None:
        coin = chance.choice(("eth", "usdt"))
        shop.pay(shop.invoice("1", coin)["address"], "1", coin)

    def forks() -> None:
        shop.reorg(chance.randint(1, 4), chance.random() < 0.5)
        shop.turn()

    events = (pays, pays, decides, receives, forks, lambda: shop.mine(chance.randint(1, 13)), shop.turn, lambda: shop.wait(200))
    for number in range(10):
        event = chance.choice(events)
        event()
        assert suspected(shop) == [], (number, event)
    for withdrawal in open_:
        shop.post(f"/v1/sandbox/withdrawals/{withdrawal}", {"outcome": "confirm"})
    shop.mine()
    shop.turn()
    assert compared(shop).clean
