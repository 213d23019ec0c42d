"""Several hot wallets on one network, each in a slot: who pays what, what is asked where, and that nothing is paid by two."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

import pytest
from eth_account import Account

from chalicelib.chains.sandbox.ledger import Tx
from chalicelib.domain.addresses.addresses import RetiredWallet, Wallet
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.ids import network_parts
from chalicelib.domain.treasury.consolidation_fees import ConsolidationFees
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder
from chalicelib.domain.work import OutboxRow
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.base.current_wallets import hot_wallets
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.wallets.signers import signing_wallet
from chalicelib.wiring import services
from infra import cli
from tests.support.collected_deposits import moves
from tests.support.reconciling import THIEF, suspected
from tests.support.shop import ETHER, THIRST, Shop, open_shop
from tests.support.slots import add_slot, asked_of_both, fund, larger_than_each
from tests.support.stack import Stack
from tests.support.treasury import booked


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack, ("3", "eth"), ("100", "usdt")) as opened:
        yield opened


def slots(shop: Shop) -> dict[str, int]:
    return {wallet.address: wallet.slot for wallet in hot_wallets(services().store, shop.realm_network().id)}


def ended(shop: Shop, *ids: str) -> list[tuple[str, str]]:
    """Status and paying address."""
    shop.turn()
    shop.mine()
    shop.turn()
    found = [shop.withdrawal(id) for id in ids]
    return [(each["status"], each["from_address"]) for each in found]


def used_before(shop: Shop, key: str, times: int) -> str:
    """The address of a key from where so many transactions went."""
    address, chain = Account.from_key(key).address, shop.chain()
    for nonce in range(times):
        chain.submit(Tx(f"0x{nonce:064x}", chain.form(address), THIEF, None, 0, 0, nonce))
    shop.mine(1)
    assert chain.nonce(chain.form(address)) == times
    return str(address)


def test_payouts_are_spread_over_the_slots_and_each_has_its_own_nonces(shop: Shop) -> None:
    """Those of a wallet that was used before begin where the chain says, by its address and not by the network's first."""
    key = "0x" + "5e" * 32
    first, second, chain = shop.hot().address, used_before(shop, key, 3), shop.chain()
    begun = chain.nonce(chain.form(first))
    assert add_slot(shop, 1, private_key=key) == second
    fund(shop, second, "2", "eth")
    asked = asked_of_both(lambda: shop.withdraw("0.1"), 8)
    done = ended(shop, *asked)
    assert {status for status, _ in done} == {"confirmed"}
    assert {address for _, address in done} == {first, second}
    orders = [shop.order(id) for id in asked]
    for wallet, lowest in ((first, begun), (second, 3)):
        nonces = sorted(order.nonce for order in orders if order.wallet == wallet)
        assert nonces == list(range(lowest, lowest + len(nonces)))
    assert [shop.record(order.withdrawal_id).slot for order in orders] == [slots(shop)[order.wallet] for order in orders]
    assert shop.paid() == len(asked) * ETHER // 10
    assert suspected(shop) == []


def test_the_messages_of_each_slot_have_a_group_of_their_own(shop: Shop) -> None:
    add_slot(shop, 1)
    asked = asked_of_both(lambda: shop.withdraw("0.1"), 8)
    shop.stack.drain(only=("relay",), hurry=True)
    network = shop.realm_network().id
    groups = Counter(message.group_id for message in shop.messages("payout"))
    assert set(groups) == {network, f"{network}#1"} and sum(groups.values()) == len(asked)


@pytest.mark.sweep
def test_a_slot_without_money_leaves_the_payout_to_another(shop: Shop) -> None:
    add_slot(shop, 1)
    asked = asked_of_both(lambda: shop.withdraw("0.1"), 6)
    assert ended(shop, *asked) == [("confirmed", shop.hot().address)] * len(asked)


def test_a_token_is_paid_by_the_slot_that_has_coins_for_its_fee(shop: Shop) -> None:
    second = add_slot(shop, 1)
    fund(shop, second, "50", "usdt")
    asked = asked_of_both(lambda: shop.withdraw("5", "usdt"), 6)
    assert ended(shop, *asked) == [("confirmed", shop.hot().address)] * len(asked)


@pytest.mark.sweep
def test_the_floor_is_kept_by_all_together(shop: Shop) -> None:
    """Each keeps its half, whichever of them pays."""
    second = add_slot(shop, 1)
    fund(shop, second, "2", "eth")
    services().wallets.reads.forget(shop.realm_network(), "hot")
    sent = {"network": "ethereum", "coin": "eth", "hotFloor": "3.8"}
    answer = shop.stack.call("PUT", "/v1/coins", shop.stack.keys["admin_test"], json=sent)
    assert answer.status == 200, answer.body
    first, group = shop.hot().address, f"{shop.realm_network().id}#1"
    before = {wallet: booked(shop, wallet, "eth") for wallet in (first, second)}
    asked: list[str] = []
    for_second: Counter[str] = Counter()
    while for_second[group] < 2:
        asked.append(shop.withdraw("0.09"))
        shop.stack.drain(only=("relay",), hurry=True)
        for_second = Counter(message.group_id for message in shop.messages("payout"))
    done = ended(shop, *asked)
    assert Counter(done) == {("confirmed", second): 1, ("confirmed", first): len(asked) - 1}, "it has 0.1 above its half"
    for wallet, units in before.items():
        paid = [record for record in map(shop.record, asked) if record.from_address == wallet]
        assert booked(shop, wallet, "eth") == units - sum(record.amount + record.fee for record in paid)
    assert booked(shop, second, "eth") >= 19 * ETHER // 10


def test_what_was_begun_in_a_slot_stays_there_when_its_wallet_is_replaced(shop: Shop) -> None:
    words = ["--stage", "local", "rotate", "ethereum", "--realm", "test", "--type", "hot", "--slot", "1"]
    assert cli.main(words) != 0, "there is none that could be replaced"
    assert cli.main([*words, "--add"]) == 0
    services().store.catalogue("test", fresh=True)
    second = next(address for address, slot in slots(shop).items() if slot == 1)
    fund(shop, second, "2", "eth")
    asked = asked_of_both(lambda: shop.withdraw("0.1"), 6)
    shop.turn()
    assert cli.main(words) == 0
    (retired,) = services().store.every(RetiredWallet)
    new = next(address for address, slot in slots(shop).items() if slot == 1)
    assert (retired.address, retired.slot) == (second, 1)
    for _ in range(4):
        shop.mine()
        shop.turn()
    assert {shop.withdrawal(id)["status"] for id in asked} == {"confirmed"}
    assert {shop.withdrawal(id)["from_address"] for id in asked} == {shop.hot().address, second}
    assert booked(shop, second, "eth") < ETHER // 100 < booked(shop, new, "eth")
    assert services().store.get(RetiredWallet, network=retired.network, address=second).drained_at is not None
    assert suspected(shop) == []


def test_an_order_that_names_another_slot_is_signed_by_nobody(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    """A thief who may write orders, and has no key, gains no second payment by it."""
    second = add_slot(shop, 1)
    fund(shop, second, "2", "eth")
    asked = shop.withdraw("0.1")
    shop.stack.drain(only=("relay",), hurry=True)
    network, record = shop.realm_network(), shop.record(asked)
    with in_realm("test"):
        payouts = services().payouts
        begun = payouts._beginning.begin(network, record, 0)
        assert begun is not None and begun.from_address == shop.hot().address
        order = payouts._orders.built(network, shop.hot(), begun, None)
        assert order is not None
        services().store.commit([Save(replace(order, wallet=second, version=order.version + 1))])
        with caplog.at_level(logging.ERROR), pytest.raises(Exception, match="another wallet"):
            payouts.pay(record.tenant, record.id, 1)
    assert "differs from what was approved in wallet" in caplog.text
    assert shop.order(asked).raw is None
    services().store.commit([Save(replace(shop.order(asked), wallet=order.wallet, version=order.version + 2))])
    shop.nudge()
    assert ended(shop, asked) == [("confirmed", shop.hot().address)]


def test_of_two_slots_workers_at_one_payout_one_begins_it(shop: Shop) -> None:
    second = add_slot(shop, 1)
    fund(shop, second, "2", "eth")
    asked = shop.withdraw("0.1")
    shop.stack.drain(only=("relay",), hurry=True)
    record = shop.record(asked)
    with in_realm("test"):
        payouts = services().payouts
        real = payouts._store.commit
        met: list[str] = []

        def commit(changes: object) -> None:
            if not met:
                met.append("the other slot's worker is first")
                payouts.pay(record.tenant, record.id, 1)
            real(changes)

        payouts._store.commit = commit  # type: ignore[method-assign]
        try:
            assert payouts.pay(record.tenant, record.id, 0) == "done"
        finally:
            payouts._store.commit = real  # type: ignore[method-assign]
    assert met
    assert [(order.wallet, order.nonce) for order in services().store.every(PaymentOrder)] == [(second, 0)]
    assert ended(shop, asked) == [("confirmed", second)]
    assert shop.paid() == ETHER // 10


def test_payouts_of_one_wallet_are_begun_in_its_own_group_alone(shop: Shop) -> None:
    """Two workers that begin with the same wallet at once would both count on the same coins."""
    add_slot(shop, 1)
    asked = shop.withdraw("0.1")
    shop.stack.drain(only=("relay",), hurry=True)
    record, network = shop.record(asked), shop.realm_network().id
    with in_realm("test"):
        assert services().payouts.pay(record.tenant, asked, 1) == "waiting"
    (row,) = services().store.every(OutboxRow)
    assert [(command.group, command.body["slot"]) for command in row.commands] == [(network, "0")]
    assert (shop.record(asked).status, shop.record(asked).pending_reason) == ("pending", None)
    with in_realm("test"):
        assert services().payouts.pay(record.tenant, asked, 1, handed=True) == "waiting"
    assert shop.record(asked).pending_reason == "liquidity", "it is handed over once"
    shop.nudge(THIRST)
    assert ended(shop, asked) == [("confirmed", shop.hot().address)]


def test_an_older_version_finds_no_key_for_what_a_slot_has_begun(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads slot 0 of each role, by its key, and signs with no other wallet than the one that the withdrawal names."""
    second = add_slot(shop, 1)
    store, network = services().store, shop.realm_network().id
    older = [store.get(Wallet, network=network, role=role) for role in ("hot", "collector", "cold")]
    assert second not in {wallet.address for wallet in older if wallet is not None}
    found = signing_wallet(store, network, second)
    assert found is not None and (found.address, found.slot) == (second, 1)


def test_reads_show_slot_0_with_the_sums_and_each_slot_by_itself(shop: Shop) -> None:
    second = add_slot(shop, 1)
    fund(shop, second, "2", "eth")
    shop.wait(61)
    shop.turn()
    shown = shop.get("/v1/addresses/hot-wallet/ethereum")
    assert shown["address"] == shop.hot().address
    assert [(each["slot"], each["address"]) for each in shown["wallets"]] == [(0, shop.hot().address), (1, second)]

    def ether(balances: list[dict[str, str]]) -> tuple[float, float]:
        (found,) = [each for each in balances if each["coin"] == "eth"]
        return float(found["balance"]), float(found["onChainBalance"])

    each = [ether(wallet["balances"]) for wallet in shown["wallets"]]
    assert each[1] == (2.0, 2.0)
    assert ether(shown["balances"]) == (each[0][0] + 2, each[0][1] + 2)
    listed = shop.stack.call("GET", "/v1/addresses/service-wallets", shop.stack.keys["admin_test"]).json
    (hot,) = [each for each in listed if (each["network"], each["walletType"]) == ("ethereum", "hot")]
    assert (
        hot["wallets"] == shop.stack.call("GET", "/v1/addresses/hot-wallet/ethereum", shop.stack.keys["admin_test"]).json["wallets"]
    )


@pytest.mark.parametrize(("role", "network", "slot", "why"), [
    ("hot", "tron", 1, "for hot wallets of EVM networks"),
    ("hot", "bitcoin", 1, "for hot wallets of EVM networks"),
    ("collector", "ethereum", 1, "for hot wallets of EVM networks"),
    ("hot", "ethereum", 10, "for hot wallets of EVM networks"),
    ("hot", "ethereum", -1, "for hot wallets of EVM networks"),
])  # fmt: skip
def test_there_are_slots_where_they_help(shop: Shop, role: str, network: str, slot: int, why: str) -> None:
    wired = services()
    with pytest.raises(BusinessRule, match=why):
        wired.wallets.registering(None, wired.catalogue("test").networks[network], role, by="a test", slot=slot)  # type: ignore[arg-type]


def test_slots_are_filled_in_turn(shop: Shop) -> None:
    """Messages about payouts are spread over all up to the highest."""
    with pytest.raises(BusinessRule, match="no hot wallet in slot 1 yet"):
        add_slot(shop, 2)
    add_slot(shop, 1)
    assert add_slot(shop, 2) in slots(shop)


def test_one_key_is_in_one_slot(shop: Shop) -> None:
    key, wired = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80", services()
    network = shop.realm_network()
    add_slot(shop, 1, private_key=key)
    with in_realm("test"), pytest.raises(BusinessRule, match="is the hot wallet already"):
        wired.wallets.registering(None, network, "hot", by="a test", slot=2, private_key=key).run()
    with in_realm("test"), pytest.raises(BusinessRule, match="already"):
        wired.wallets.registering(None, network, "hot", by="a test", slot=1).run()
    stored = wired.store.get(Network, id=network.id)
    assert (stored.payout_slots, network_parts(stored.id)[1]) == (2, "ethereum")


def test_a_payout_larger_than_every_slot_waits_for_a_move_between_them(shop: Shop) -> None:
    asked, first, second = larger_than_each(shop)
    shop.turn()
    assert (shop.withdrawal(asked)["status"], shop.record(asked).pending_reason) == ("pending", "liquidity")
    (move,) = moves("distribution")
    assert (move.source, move.recipient, move.seat) == (second, first, "1")
    for _ in range(3):
        shop.mine()
        shop.nudge(THIRST)
    assert ended(shop, asked) == [("confirmed", first)]
    assert len(moves("distribution")) == 1 and shop.paid() == 2 * ETHER
    assert suspected(shop) == []


def test_a_payout_that_is_paid_has_nothing_more_moved_and_keeps_no_larger_one_waiting(shop: Shop) -> None:
    """Within the ten minutes in which its shortage counts, where the wallets together have its amount again."""
    shop.credit("3", "eth")
    asked, _, _ = larger_than_each(shop, third="1.9")
    shop.turn()
    for _ in range(3):
        shop.mine()
        shop.nudge(THIRST)
    assert ended(shop, asked)[0][0] == "confirmed"
    for _ in range(3):
        shop.turn()
        shop.mine()
    assert len(moves("distribution")) == 1
    larger = shop.withdraw("2.1")
    shop.turn()
    assert len(moves("distribution")) > 1
    for _ in range(3):
        shop.mine()
        shop.nudge(THIRST)
    assert ended(shop, larger)[0][0] == "confirmed"
    assert suspected(shop) == []


def test_a_payout_that_no_wallets_can_fill_keeps_no_other_waiting(shop: Shop) -> None:
    """It is covered by money in cold storage. Housekeeping takes both up, the larger one last, before the poll plans moves."""
    shop.credit("40", "eth")
    for _ in range(3):
        shop.turn()
        shop.mine()
    asked, first, _ = larger_than_each(shop)
    large = shop.withdraw("30")
    for _ in range(5):
        shop.stack.drain(only=("relay", "payout"), hurry=True)
        shop.stack.drain(only=("poll_ethereum",), rounds=1)
        shop.mine()
        shop.wait(THIRST)
        shop.stack.drain(only=("housekeeping",), rounds=1)
    assert ended(shop, asked) == [("confirmed", first)]
    assert (shop.withdrawal(large)["status"], shop.record(large).pending_reason) == ("pending", "liquidity")


def test_withdrawals_that_lack_a_fee_and_are_cancelled_do_not_spend_it_without_bound(shop: Shop) -> None:
    """A merchant asks for what the fullest wallet has, which lacks the fee, and cancels once a move is planned: again and again."""
    asked, first, second = larger_than_each(shop)
    assert shop.stack.call("DELETE", f"/v1/withdrawals/{asked}", shop.key).status == 200
    shop.turn()
    known, had = {move.id for move in moves("distribution")}, booked(shop, first, "eth") + booked(shop, second, "eth")
    reasons = []
    for _ in range(6):
        asked = shop.withdraw(format(Decimal(max(booked(shop, first, "eth"), booked(shop, second, "eth"))) / ETHER, "f"))
        shop.turn()
        reasons.append(shop.record(asked).pending_reason)
        assert shop.stack.call("DELETE", f"/v1/withdrawals/{asked}", shop.key).status == 200
        shop.mine()
        shop.turn()
    ordered = [move for move in moves("distribution") if move.id not in known]
    assert len(ordered) <= 4 and reasons == ["liquidity"] * 6
    lost = had - booked(shop, first, "eth") - booked(shop, second, "eth")
    assert 0 <= 20 * lost <= sum(move.amount for move in ordered)
    counted = services().store.get(ConsolidationFees, network=shop.realm_network().id)
    assert bool(ordered) == (counted is not None and counted.micros > 0)


def test_an_older_version_that_stores_the_network_is_mended_by_the_poll(shop: Shop) -> None:
    """It drops the number of slots, and messages go to slot 0 alone meanwhile."""
    add_slot(shop, 1)
    network = services().store.get(Network, id=shop.realm_network().id)
    assert network is not None and network.payout_slots == 2
    services().store.commit([Save(replace(network, payout_slots=1, version=network.version + 1))])
    services().store.catalogue("test", fresh=True)
    shop.wait(61)
    shop.turn()
    mended = services().store.get(Network, id=network.id)
    assert mended is not None and mended.payout_slots == 2
