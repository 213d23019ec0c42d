"""Coins between our own places on networks of coins, through whatever happens. The chain is `tests.support.fake_coins`; store and
polls are the real ones.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.addresses.addresses import RetiredWallet, Wallet, Watched
from chalicelib.domain.deposits.deposits import HELD, Deposit
from chalicelib.domain.ids import asset_id, network_id
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.reconciliation import ComparisonReport
from chalicelib.domain.treasury import hot_utxos as coins_held
from chalicelib.domain.treasury.collections import Collection
from chalicelib.domain.treasury.consolidations import CoinAttempt, CoinMove, ConsolidationQueue, MovedCoin
from chalicelib.store.dynamo import DynamoStore
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.ports.changes import Open, Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.reconciliation import utxo as reconciliation_coins
from chalicelib.usecases.reconciliation.cold_adjusting import NotBooked
from chalicelib.usecases.reconciliation.sweeps import swept_since
from chalicelib.usecases.transactions import replacement_bounds
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.usecases.transactions.utxo import replacing
from chalicelib.usecases.transactions.utxo.signing import UtxoSigning
from chalicelib.usecases.treasury.consolidation import following
from chalicelib.usecases.treasury.consolidation import planning as coin_move_planning
from chalicelib.usecases.wallets.sweep_candidates import open_hint
from chalicelib.wiring import services
from tests.contract.treasury.coin_treasury import LTC, TOTAL, Treasury
from tests.support.bundles import COIN, CONFIRMATIONS, NETWORK, OUT, REORG, Shop, cut, die, hang
from tests.support.fake_coins import FakeCoins

COLD = "ltc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qmu8tk5"


def listed(treasury: Treasury, move: CoinMove) -> None:
    """For keys of the level admin, and for nobody else."""
    admin = treasury.stack.keys["admin_live"]
    (shown,) = treasury.stack.call("GET", "/v1/transactions", admin, query={"type": "collection"}).json["data"]
    assert (shown["hash"], shown["to"], shown["from"], shown["status"]) == (move.mined, treasury.hot, None, "confirmed")
    assert (shown["amount"], shown["fee"]) == ("4.50000036", f"0.{move.fee:08d}")
    for name in (shown["id"], shown["hash"]):
        assert treasury.stack.call("GET", f"/v1/transactions/{name}", admin).json["data"] == shown
        assert treasury.stack.call("GET", f"/v1/transactions/{name}", treasury.key).status == 404
    assert treasury.stack.call("GET", "/v1/transactions", treasury.key, query={"type": "collection"}).json["data"] == []


def test_a_coin_whose_consolidation_may_still_die_is_not_archived(treasury: Treasury) -> None:
    """What is signed has left the balance. It comes back where somebody else spends an input: that one alone is missing then."""
    invoices = [each for each in services().store.every(Invoice) if each.amount == COIN]
    for invoice in invoices:
        services().invoices.override(invoice.tenant, invoice.id, "paid", "key_1")
        services().store.commit([Save(ended(invoice))])
    move = treasury.plan()
    assert move.state == "signed"
    later = services().clock.now_ms() + 10 * 86_400_000
    assert {services().archiving.archive(each.tenant, each.id, later) for each in invoices} == {"waits"}
    treasury.chain.steal(move.inputs[4].outpoint)
    for _ in range(3):
        treasury.run()
        treasury.chain.mine(REORG // 2)
    for _ in range(3):
        treasury.run()
    assert treasury.moves()[0].state == "dead"
    assert len(treasury.suspected()) == 1


def test_a_deposit_is_archived_when_its_coin_is_collected(treasury: Treasury) -> None:
    """Until then it is found in the lists, as an input of ours and by who compares the ledger with the chain."""
    invoices = [each for each in services().store.every(Invoice) if each.amount == COIN]
    assert len(invoices) == 9

    def archived() -> set[str]:
        later = services().clock.now_ms() + 10 * 86_400_000  # the blocks here have times of their own
        return {services().archiving.archive(invoice.tenant, invoice.id, later) for invoice in invoices}

    for invoice in invoices:
        services().invoices.override(invoice.tenant, invoice.id, "paid", "key_1")
        services().store.commit([Save(ended(invoice))])
    assert archived() == {"waits"}
    treasury.plan()
    treasury.confirm()
    treasury.deepen()
    assert archived() == {"archived"}
    treasury.whole()
    treasury.deepen()
    treasury.whole()


def ended(invoice: Invoice) -> Invoice:
    """The same, whose time is over."""
    now = services().store.get(Invoice, tenant=invoice.tenant, id=invoice.id)
    assert now is not None
    return replace(now, expires_at=now.created_at, version=now.version + 1)


def swept(treasury: Treasury, since: int) -> int:
    """Units that a run which began then finds to have come to service wallets meanwhile."""
    wired, network = services(), services().catalogue("live").networks["litecoin"]
    context = NetworkContext(network, treasury.chain, wired.store, wired.rules, wired.clock)
    return swept_since(context, [LTC], since)[LTC]


def test_many_deposits_become_one_coin(treasury: Treasury, caplog: pytest.LogCaptureFixture) -> None:
    before = len(list(services().store.every(Deposit)))
    had, available = treasury.booked(treasury.hot), treasury.available()
    move = treasury.plan()
    assert (move.state, move.booked, len(move.inputs), len(treasury.chain.pool)) == ("signed", 9, 9, 1)
    treasury.whole()
    treasury.confirm()
    (move,) = treasury.moves()
    assert move.state == "settled" and move.newest is not None
    assert treasury.booked(treasury.hot) == had + TOTAL - move.newest.fee == treasury.chain.balance_of(treasury.hot)
    assert [treasury.booked(coin.address) for coin in move.inputs] == [0] * 9
    assert len(list(services().store.every(Deposit))) == before, "nobody is credited"
    assert treasury.available() == available, "the fee is the operator's"
    assert move.confirmed_at is not None
    assert [swept(treasury, move.confirmed_at + late) for late in (0, 1)] == [TOTAL - move.newest.fee, 0]
    assert f"{move.mined}:0" in {coin.outpoint for coin in treasury.held().free}
    listed(treasury, move)
    assert treasury.hints() == 9, "until no reorganisation reaches it"
    treasury.whole()
    treasury.deepen()
    assert treasury.hints() == 0 and not [w for w in services().store.every_work() if w.kind in ("coinmove", "coinmoved")]
    treasury.whole()
    treasury.settle_for(collectThreshold="0")
    open_hint(services().store, NETWORK, move.inputs[0].deposit or "")
    assert treasury.plan() == treasury.moves()[0] and treasury.hints() == 0, "a hint that comes late is no theft"
    assert "not by us" not in caplog.text


def step(shop: Shop) -> None:
    assert isinstance(shop, Treasury)
    shop.step()


@pytest.mark.parametrize("how", ["dies", "hangs", "rival"])
def test_whatever_happens_at_a_commit_the_coins_move_once(anew: Callable[[], Treasury], how: str) -> None:
    """Planned, signed, booked: between any two writes, by whoever comes next. A check lets every second one be the last."""
    each = 1 if os.environ.get("SWEEP") == "full" else 2
    for at in range(1, 10, {"dies": each, "hangs": 4, "rival": 4}[how]):
        treasury = anew()
        treasury.later(6)
        what = {"dies": die, "hangs": hang, "rival": treasury.step}[how]
        fired = cut(treasury, at, what, step, after=how == "hangs")
        treasury.step()
        treasury.confirm()
        (move,) = treasury.moves()
        assert move.state == "settled" and move.newest is not None and move.earlier == (), at
        assert set(treasury.chain.sent) == {move.mined}
        assert sum(treasury.booked(coin.address) for coin in move.inputs) == 0
        assert treasury.booked(treasury.hot) == treasury.chain.balance_of(treasury.hot)
        treasury.whole()
        if not fired:
            assert at > 4
            return
    raise AssertionError("it does not end")


def test_a_poll_that_is_overtaken_between_two_reads_raises_no_alarm(
    treasury: Treasury, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One poll has read the move, and what was stored of it not yet: meanwhile another one settles it."""
    treasury.plan()
    treasury.chain.mine(CONFIRMATIONS)
    looks, compare = [], following.at_odds

    def overtaken(store: Any, move: CoinMove) -> str:
        looks.append(move.version)
        if len(looks) == 1:
            Treasury.run(treasury)
        named: str = compare(store, move)
        return named

    monkeypatch.setattr(following, "at_odds", overtaken)
    treasury.run()
    treasury.run()
    assert len(looks) > 1
    (move,) = treasury.moves()
    assert move.state == "settled"
    assert treasury.booked(treasury.hot) == treasury.chain.balance_of(treasury.hot)
    assert "differs from what was stored" not in caplog.text and "ALARM" not in caplog.text
    treasury.whole()


def test_a_settled_consolidation_that_falls_out_is_settled_once_more(anew: Callable[[], Treasury]) -> None:
    for at in (0, 1):
        treasury = anew()
        treasury.plan()
        treasury.confirm()
        had = treasury.booked(treasury.hot)
        treasury.chain.drop(CONFIRMATIONS)
        assert cut(treasury, at, die, Treasury.run) == bool(at)
        treasury.run()
        (move,) = treasury.moves()
        assert (move.state, move.round) == ("signed", 1) and treasury.booked(treasury.hot) == had - TOTAL + move.newest.fee
        assert f"{move.txid}:0" not in {coin.outpoint for coin in treasury.held().coins}
        treasury.whole()
        treasury.confirm()
        assert treasury.moves()[0].state == "settled" and treasury.booked(treasury.hot) == had
        treasury.whole()


def test_what_spends_a_consolidated_coin_follows_it(treasury: Treasury) -> None:
    """A withdrawal is paid of what was consolidated, and both fall out of the chain."""
    treasury.plan()
    treasury.confirm()
    ids = [treasury.withdraw("17"), treasury.withdraw("4", 1)]
    treasury.run()
    treasury.confirm()
    assert [treasury.status(i) for i in ids] == ["confirmed"] * 2
    treasury.chain.drop(2 * CONFIRMATIONS)
    treasury.run()
    treasury.run()
    assert [treasury.status(i) for i in ids] == ["confirming"] * 2 and treasury.moves()[0].state == "signed"
    treasury.whole()
    treasury.confirm()
    treasury.run()
    assert [treasury.status(i) for i in ids] == ["confirmed"] * 2 and treasury.moves()[0].state == "settled"
    treasury.whole()


def test_a_stuck_consolidation_is_replaced_and_whichever_is_mined_counts(anew: Callable[[], Treasury]) -> None:
    for at in (1, 2):
        treasury = anew()
        first = treasury.plan()
        old = next(iter(treasury.chain.pool.values()))
        treasury.chain.mine(2, take=False)
        treasury.chain.rate = 9_000
        treasury.later(30 * 24 * 60)
        assert cut(treasury, at, die, Treasury.run) == bool(at)
        treasury.run()
        treasury.run()
        (move,) = treasury.moves()
        assert len(move.earlier) == 1 and move.newest.fee > move.earlier[0].fee and move.outpoints == first.outpoints
        assert list(treasury.chain.pool) == [move.newest.txid]
        treasury.whole()
        if at % 2:  # a miner who never heard of the replacement
            treasury.chain.pool = {old.txid: old}
        treasury.confirm()
        (move,) = treasury.moves()
        assert move.mined == move.txids[at % 2]
        assert treasury.booked(treasury.hot) == treasury.chain.balance_of(treasury.hot)
        treasury.whole()


def test_two_mined_attempts_are_an_alarm(
    treasury: Treasury, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By a node's word, that is: both spend the same coins."""
    move = treasury.plan()
    services().store.commit([Save(replace(move, renew=True, version=move.version + 1))])
    treasury.sign()
    (move,) = treasury.moves()
    newest, first = move.txids
    treasury.chain.mine(CONFIRMATIONS)
    real = FakeCoins.receipt
    monkeypatch.setattr(FakeCoins, "receipt", lambda chain, txid: real(chain, newest if txid == first else txid))
    treasury.run()
    assert f"ALARM {NETWORK}: {newest} and {first} are both in the chain for {move.id}" in caplog.text


def test_somebody_else_has_the_seed(treasury: Treasury, caplog: pytest.LogCaptureFixture) -> None:
    """What was spent by others stays where the ledger has it, with an alarm; the rest is moved by the next transaction."""
    move = treasury.plan()
    stolen = move.inputs[4]
    treasury.chain.steal(stolen.outpoint)
    treasury.run()
    assert treasury.moves()[0].doubtful_since is not None
    treasury.chain.mine(REORG // 2)
    treasury.run()
    treasury.chain.mine(REORG // 2)
    for _ in range(3):
        treasury.run()
    assert treasury.moves()[0].state == "dead" and "ALARM" in caplog.text and "only the seed can sign for" in caplog.text
    assert treasury.booked(stolen.address) == stolen.amount
    treasury.whole()
    second = treasury.plan()
    assert second.id != move.id and set(second.outpoints) == set(move.outpoints) - {stolen.outpoint}
    assert "is spent, and not by us" in caplog.text and treasury.hints() == 8
    treasury.confirm()
    assert treasury.moves()[-1].state == "settled"
    assert treasury.booked(treasury.hot) == treasury.chain.balance_of(treasury.hot)
    treasury.whole()


def test_one_that_is_mined_after_it_was_given_up_is_noticed(treasury: Treasury, caplog: pytest.LogCaptureFixture) -> None:
    """Every node was wrong for 64 blocks. The places that it emptied are told by the reconciliation."""
    move = treasury.plan()
    ours = next(iter(treasury.chain.pool.values()))
    treasury.chain.steal(move.inputs[4].outpoint)
    theft = treasury.chain.blocks[-1]
    treasury.run()
    for _ in range(2):
        treasury.chain.mine(REORG // 2)
        treasury.run()
    treasury.run()
    assert treasury.moves()[0].state == "dead"
    theft.transactions.clear()
    treasury.chain.pool = {ours.txid: ours}
    treasury.confirm()
    treasury.run()
    assert caplog.text.count("was given up at height") == 1 and f"{TOTAL} units that the ledger has again are spent" in caplog.text
    assert len(treasury.suspected()) >= 9 and not [w for w in services().store.every_work() if w.kind == "coinmoved"]
    treasury.whole()


def test_an_operator_gives_a_consolidation_up(treasury: Treasury, caplog: pytest.LogCaptureFixture) -> None:
    """Its coins are where they were, and what is there still is moved by the next one; nobody is said to have the seed."""
    move = treasury.plan()
    stolen = move.inputs[4]
    treasury.chain.steal(stolen.outpoint)
    treasury.run()
    with in_realm("live"):
        services().giving_up(services().catalogue("live").networks["litecoin"]).give_up(move.id, "an operator", "nobody relays it")
    for _ in range(3):
        treasury.run()
    assert (treasury.moves()[0].state, treasury.moves()[0].reason) == ("dead", "the operator gave it up: it was in no block")
    assert "only the seed" not in caplog.text and "is given up, as an operator decided" in caplog.text
    assert sum(treasury.booked(coin.address) for coin in move.inputs) == sum(coin.amount for coin in move.inputs)
    treasury.whole()
    second = treasury.plan()
    assert second.id != move.id and set(second.outpoints) == set(move.outpoints) - {stolen.outpoint}
    treasury.confirm()
    assert treasury.moves()[-1].state == "settled"
    assert treasury.booked(treasury.hot) == treasury.chain.balance_of(treasury.hot)
    treasury.whole()


def test_a_deposit_that_is_double_spent_does_not_end_its_move(treasury: Treasury) -> None:
    """The deposit itself falls out of the chain after it was consolidated. No block has what spends it instead: it may come back,
    and an operator decides (money rule 13)."""
    move = treasury.plan()
    lost = move.inputs[0]
    treasury.chain.drop(CONFIRMATIONS, lose=[lost.outpoint.split(":")[0]])
    treasury.run()
    treasury.chain.mine(REORG + 1)
    treasury.run()
    treasury.run()
    treasury.run()
    assert treasury.moves()[0].state == "signed" and treasury.moves()[0].doubtful_since is not None
    treasury.confirm()
    assert treasury.booked(treasury.hot) == treasury.chain.balance_of(treasury.hot)
    treasury.whole()


def collections(treasury: Treasury, **query: str) -> list[dict[str, Any]]:
    answer = treasury.stack.call("GET", "/v1/collections", treasury.stack.keys["admin_live"], query=query)
    return list(answer.json["data"])


def waits_for(treasury: Treasury) -> str:
    treasury.later(6)
    treasury.run()
    assert treasury.moves() == [] and treasury.chain.pool == {}
    found = services().store.get(ConsolidationQueue, network=NETWORK)
    assert found is not None and (found.waiting, found.coins) == (TOTAL, 9)
    (shown,) = collections(treasury, status="waiting")
    assert (shown["detail"], shown["amount"], shown["address"]) == (found.why, "4.50000036", treasury.hot)
    treasury.whole()
    return f"{shown['reason']}: {found.why}"


def test_what_is_worth_too_little_waits_and_says_so(treasury: Treasury) -> None:
    treasury.settle_for(collectThreshold="4.6")
    assert waits_for(treasury) == f"threshold: collectThreshold: {TOTAL} of 460000000 units wait"
    treasury.settle_for(collectThreshold="1", useUsdLimits=True)
    assert (why := waits_for(treasury)).startswith("no_rate: ") and "no fresh rate" in why
    treasury.settle_for(useUsdLimits=False)
    treasury.chain.rate = 50_000_000
    assert (why := waits_for(treasury)).startswith("fee_share: ") and "are more than 5 per cent of" in why
    treasury.chain.rate = 1_000
    (shown,) = collections(treasury)
    asked = treasury.stack.call(
        "PUT", f"/v1/collections/{shown['id']}", treasury.stack.keys["admin_live"], json={"action": "retry"}
    )
    assert asked.status == 200
    treasury.run()
    (move,) = treasury.moves()
    assert move.state == "signed", "at once"
    treasury.whole()
    treasury.confirm()
    (shown,) = collections(treasury)
    assert (shown["status"], shown["hash"], shown["sweeps"]) == ("swept", treasury.moves()[0].mined, [move.id])
    treasury.whole()


def test_more_coins_than_one_transaction_takes_go_with_the_next(treasury: Treasury, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coin_move_planning, "MOST_INPUTS", 5)
    first = treasury.plan()
    assert len(first.inputs) == 5 and treasury.plan().id == first.id, "one at a time"
    treasury.confirm()
    second = treasury.plan()
    assert len(second.inputs) == 4 and not set(first.outpoints) & set(second.outpoints)
    treasury.confirm()
    assert treasury.booked(treasury.hot) == treasury.chain.balance_of(treasury.hot)
    treasury.whole()


def test_what_came_from_the_grey_list_stays_with_an_alarm(treasury: Treasury, caplog: pytest.LogCaptureFixture) -> None:
    held = next(d for d in services().store.every(Deposit) if d.amount == COIN // 2 + 3)
    services().store.commit([Save(replace(held, flags=(HELD,), version=held.version + 1))])
    move = treasury.plan()
    assert len(move.inputs) == 8 and held.id not in {coin.deposit for coin in move.inputs}
    assert caplog.text.count("is not collected before it is released") == 1 and treasury.hints() == 8
    treasury.plan()
    assert caplog.text.count("is not collected before it is released") == 1


def bytes_of(inputs: Any, outputs: Any) -> str:
    return json.dumps({"in": list(inputs), "out": list(outputs)}).encode().hex()


ALTERED: dict[str, Callable[[CoinMove, dict[str, Any]], CoinMove]] = {
    "another address": lambda m, w: other(m, bytes_of(w["in"], [(OUT[0], w["out"][0][1])])),
    "another amount": lambda m, w: other(m, bytes_of(w["in"], [(m.recipient, w["out"][0][1] - 1)])),
    "two outputs": lambda m, w: other(m, bytes_of(w["in"], [(m.recipient, w["out"][0][1] - 1_000), (OUT[0], 1_000)])),
    "a coin more": lambda m, w: other(m, bytes_of([*w["in"], ("ab" * 32 + ":0", 5)], w["out"])),
    "a coin less": lambda m, w: other(m, bytes_of(w["in"][1:], w["out"])),
    "a coin of somebody else": lambda m, w: replace(
        other(m, bytes_of([("ab" * 32 + ":0", w["in"][0][1]), *w["in"][1:]], w["out"])),
        inputs=tuple(replace(c, outpoint="ab" * 32 + ":0") if c.outpoint == w["in"][0][0] else c for c in m.inputs),
    ),
    "another key": lambda m, w: replace(m, inputs=tuple(replace(c, path="m/84'/2'/0'/0/0") for c in m.inputs)),
    "another wallet, everywhere": lambda m, w: replace(
        other(m, bytes_of(w["in"], [(OUT[0], w["out"][0][1])])), recipient=OUT[0]
    ),
    "a fee without bounds": lambda m, w: replace(
        m, newest=replace(m.newest, unsigned=bytes_of(w["in"], [(m.recipient, 1_000)]), amount=1_000, fee=m.total - 1_000)
    ),
    "another coin": lambda m, w: replace(m, asset=asset_id(network_id("live", "bitcoin"), "btc")),
    "a kind that is signed elsewhere": lambda m, w: replace(m, kind="cold"),
}  # fmt: skip


BYTES = {"another address", "another amount", "two outputs", "a coin more", "a coin less", "a fee without bounds"}


def other(move: CoinMove, unsigned: str) -> CoinMove:
    assert move.newest is not None
    return replace(move, newest=replace(move.newest, unsigned=unsigned))


def test_nothing_is_signed_that_was_not_planned(anew: Callable[[], Treasury]) -> None:
    treasury = anew()
    planned = treasury.plan_only()
    assert planned.state == "built" and planned.newest is not None
    written = json.loads(bytes.fromhex(planned.newest.unsigned))
    for name, alter in ALTERED.items():
        version = treasury.moves()[0].version + 1
        services().store.commit([Save(replace(alter(planned, written), version=version))])
        with pytest.raises(OrderMismatch), in_realm("live"):
            services().deposit_coin_moves.advance(NETWORK, planned.id)
        thrown_away = treasury.moves()[0].state == "waiting"
        assert thrown_away is (name in BYTES) and treasury.chain.sent == [], name
    altered = replace(ALTERED["another address"](planned, written), version=treasury.moves()[0].version + 1)
    services().store.commit([Save(altered)])
    with pytest.raises(OrderMismatch), in_realm("live"):
        services().deposit_coin_moves.advance(NETWORK, planned.id)
    treasury.whole()
    assert treasury.plan().outpoints == planned.outpoints, "what only the bytes were altered of is built anew"
    assert [move.state for move in treasury.moves()] == ["dropped", "signed"]
    assert {tx.outputs[0].address for tx in treasury.chain.pool.values()} == {treasury.hot}
    treasury.whole()


def test_nothing_goes_to_a_wallet_that_was_registered_after_payments_were_stopped(treasury: Treasury) -> None:
    store, switches = services().store, services().switches
    assert treasury.plan_only().state == "built"
    stopped = switches.throw("live", True, None, "a test")
    hot = store.get(Wallet, network=NETWORK, role="hot")
    assert hot is not None and stopped.stopped_at is not None
    store.commit([Save(replace(hot, created_at=stopped.stopped_at, version=hot.version + 1))])
    treasury.sign()
    assert (treasury.moves()[-1].state, treasury.chain.sent) == ("built", [])
    switches.throw("live", False, None, "a test")
    treasury.sign()
    assert treasury.moves()[-1].state == "signed"


@pytest.mark.parametrize("moment", ["before", "signing", "sending"])
def test_nothing_is_signed_or_sent_during_a_restore(treasury: Treasury, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """A restore that begins while a worker is at it. What is signed is neither sent again nor taken for lost meanwhile."""
    assert treasury.plan_only().state == "built"
    real, switches = DynamoStore.commit, services().switches
    if moment == "before":
        switches.begin_restore("live")

    def commit(store: DynamoStore, changes: Any) -> None:
        mine = any(isinstance(r := getattr(c, "record", None), CoinMove) and (r.state, r.booked) == ("signed", 0) for c in changes)
        if mine and moment == "signing":
            switches.begin_restore("live")
        real(store, changes)
        if mine and moment == "sending":
            switches.begin_restore("live")

    with monkeypatch.context() as patch:
        patch.setattr(DynamoStore, "commit", commit)
        treasury.sign()
        treasury.sign()
    assert treasury.moves()[-1].state == ("signed" if moment == "sending" else "built")
    network = services().catalogue("live").networks["litecoin"]
    treasury.chain.steal(treasury.moves()[-1].outpoints[0])
    treasury.chain.mine(REORG)
    with in_realm("live"):
        services().coin_moves(network).follow(lambda: True)
    assert treasury.chain.sent == [] and treasury.moves()[-1].doubtful_since is None
    switches.end_restore("live")
    treasury.whole()


def store_away(treasury: Treasury, **settings: str) -> None:
    """A cold wallet is registered, and settings say what stays."""
    cold = Wallet(NETWORK, "cold", COLD, "none", "", "", 1)
    services().store.commit([Save(cold), Save(Watched("live", "litecoin", COLD, "cold", ("litecoin",)))])
    treasury.settle_for(**settings)


def test_what_is_above_the_ceiling_goes_to_the_cold_wallet(treasury: Treasury) -> None:
    """Never what an open withdrawal needs, and nothing while payments gather."""
    store_away(treasury, collectThreshold="100", hotCeiling="6", collectServiceToColdThreshold="1")
    assert treasury.booked(treasury.hot) == 17 * COIN
    asked = treasury.withdraw("9")
    treasury.look_cold()
    assert treasury.moves() == [], "the largest coin is needed for the withdrawal"
    treasury.run()
    treasury.later(6)
    treasury.run()
    (move,) = treasury.moves()
    assert (move.kind, move.state, move.recipient, treasury.status(asked)) == ("cold", "signed", COLD, "confirming")
    assert move.amount == 17 * COIN - 9 * COIN - 6 * COIN and move.newest is not None
    treasury.whole()
    treasury.confirm()
    (move,) = treasury.moves()
    assert treasury.status(asked) == "confirmed" and move.state == "settled"
    assert treasury.chain.balance_of(COLD) == treasury.booked(COLD) == move.amount
    assert not [d for d in services().store.every(Deposit) if d.address == COLD], "it is no deposit"
    assert swept(treasury, 0) == 0, "what leaves a service wallet was in its sum"
    assert treasury.booked(treasury.hot) == treasury.chain.balance_of(treasury.hot)
    treasury.whole()


def test_of_what_left_the_cold_wallet_no_more_is_booked_than_is_missing(
    treasury: Treasury, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_away(treasury)
    paid = treasury.chain.pay(COLD, 3 * COIN)
    treasury.chain.pay(COLD, COIN)
    treasury.confirm()
    assert treasury.booked(COLD) == 4 * COIN
    treasury.chain.steal(f"{paid}:0")
    txid = treasury.chain.blocks[-1].transactions[0].txid
    coin = services().catalogue("live").coins["litecoin", "ltc"]
    network = services().catalogue("live").networks["litecoin"]

    def book(amount: int) -> Any:
        return services().cold_adjusting(network).book(coin, amount, txid, "paid the auditors")

    with pytest.raises(NotBooked, match="deep"):
        book(3 * COIN)
    treasury.chain.mine(REORG)
    treasury.run()
    with pytest.raises(NotBooked, match="only 3 ltc less"):
        book(4 * COIN)
    with monkeypatch.context() as patch:
        patch.setattr(type(treasury.chain), "receipt", lambda self, txid: (_ for _ in ()).throw(Unavailable("no index")))
        done = book(3 * COIN)
    assert "in the chain for good" in str(done.word) and done.left == treasury.booked(COLD) == COIN
    assert book(3 * COIN).again
    treasury.whole()


def test_a_share_of_everything_stays_hot(treasury: Treasury) -> None:
    store_away(treasury, collectThreshold="100", collectPercentageHot="40")
    treasury.look_cold()
    (move,) = treasury.moves()
    assert move.amount == 17 * COIN - 17 * COIN * 40 // 100
    treasury.sign()
    treasury.confirm()
    assert treasury.booked(COLD) == move.amount and treasury.booked(treasury.hot) == 17 * COIN * 40 // 100 - move.newest.fee
    treasury.chain.drop(CONFIRMATIONS)
    treasury.run()
    assert treasury.moves()[0].state == "signed" and treasury.booked(COLD) == 0
    treasury.whole()
    treasury.confirm()
    assert treasury.booked(COLD) == move.amount and len(treasury.moves()) == 1
    treasury.whole()


def rotate(treasury: Treasury) -> Wallet:
    """The hot wallet is replaced; the old one."""
    old = services().store.get(Wallet, network=NETWORK, role="hot")
    assert old is not None
    retired, fresh = RetiredWallet.of(old, 1), replace(old, address=OUT[0], version=old.version + 1)
    watched = Watched("live", "litecoin", fresh.address, "hot", ("litecoin",))
    services().store.commit([Save(retired), Save(fresh), Save(watched), Open(retired.drain)])
    return old


def test_the_floor_of_a_wallet_of_coins_is_watched_too(treasury: Treasury, caplog: pytest.LogCaptureFixture) -> None:
    def alarms() -> int:
        return caplog.text.count("less than its floor")

    assert treasury.booked(treasury.hot) == 17 * COIN
    store_away(treasury, hotCeiling="12", hotFloor="11")
    treasury.look_cold()
    treasury.sign()
    assert treasury.booked(treasury.hot) < 11 * COIN  # until the change is back
    treasury.run()
    assert alarms() == 0
    treasury.confirm()
    treasury.deepen()
    assert treasury.booked(treasury.hot) > 11 * COIN and alarms() == 0
    treasury.settle_for(hotFloor="12")
    treasury.run(), treasury.run()
    assert alarms() == 1


def test_a_replaced_wallet_is_drained_of_its_coins(treasury: Treasury) -> None:
    """A consolidation that was under way still goes to the old wallet; what is not signed is planned anew."""
    store = services().store
    first = treasury.plan()
    old = rotate(treasury)
    treasury.run()
    (drain,) = [move for move in treasury.moves() if move.kind == "drain"]
    assert (drain.wallet, drain.recipient, len(drain.inputs), drain.total) == (old.address, OUT[0], 3, 17 * COIN)
    treasury.whole()
    treasury.confirm()
    treasury.run()
    assert treasury.moves()[0].id == first.id and treasury.moves()[0].state == "settled"
    treasury.confirm()
    treasury.run()
    assert {move.state for move in treasury.moves()} == {"settled"} and len(treasury.moves()) == 3
    assert treasury.booked(old.address) == 0 == treasury.chain.balance_of(old.address)
    assert treasury.booked(OUT[0]) == treasury.chain.balance_of(OUT[0]) > 21 * COIN
    assert sum(coin.amount for coin in treasury.held().free) == treasury.booked(OUT[0])
    treasury.whole()
    treasury.run()
    assert not [work for work in store.every_work() if work.kind == "drain"]


def decide(treasury: Treasury, action: str) -> Any:
    admin = treasury.stack.keys["admin_live"]
    listed = treasury.stack.call("GET", "/v1/collections", admin, query={"status": "waits_for_approval"})
    (waits,) = listed.json["data"]
    assert (waits["amount"], waits["address"]) == ("4.50000036", treasury.hot)
    assert waits["detail"] == "9 coins of 9 addresses, in one transaction"
    path = f"/v1/collections/{waits['id']}"
    answer = treasury.stack.call("PUT", path, admin, json={"action": action})
    assert answer.status == 200, answer.body
    return answer.json


def test_a_large_consolidation_waits_for_an_operator(anew: Callable[[], Treasury]) -> None:
    treasury = anew()
    treasury.settle_for(approveThreshold="4.5")
    move = treasury.plan()
    assert (move.state, move.newest, treasury.chain.sent) == ("waiting", None, [])
    treasury.plan()
    assert len(treasury.moves()) == 1
    treasury.whole()
    treasury.receive(2 * COIN)
    small = treasury.plan()
    assert [m.state for m in treasury.moves()] == ["waiting", "signed"] and not set(small.outpoints) & set(move.outpoints)
    treasury.whole()
    decide(treasury, "approve")
    treasury.run()
    assert [m.state for m in treasury.moves()] == ["signed", "signed"], "beside what is under way"
    treasury.whole()
    treasury.confirm()
    (collection,) = services().store.every(Collection)
    move = treasury.moves()[0]
    assert (collection.state, collection.txid, move.state) == ("swept", move.mined, "settled")
    treasury.whole()


def test_what_an_operator_refuses_is_left_alone_for_a_day(treasury: Treasury) -> None:
    """It alone: what came since moves, and another one above the threshold is asked about."""
    treasury.settle_for(approveThreshold="4.5")
    refused = treasury.plan()
    decide(treasury, "reject")
    treasury.receive(5 * COIN)
    second = treasury.plan()
    assert [move.state for move in treasury.moves()] == ["waiting", "waiting"] and len(second.inputs) == 1
    treasury.receive(2 * COIN)
    third = treasury.plan()
    assert third.state == "signed" and len(third.inputs) == 1
    treasury.whole()
    treasury.confirm()
    treasury.later(24 * 60)
    treasury.plan()
    states = {move.id: move.state for move in treasury.moves()}
    again = treasury.moves()[-1]
    assert (states[refused.id], states[second.id], states[third.id]) == ("dropped", "waiting", "settled")
    assert again.state == "waiting" and again.outpoints == refused.outpoints and len(treasury.chain.sent) == 1
    treasury.whole()


def test_an_altered_record_of_what_is_signed_replaces_nothing(treasury: Treasury) -> None:
    """Whom a replacement pays, with which coins, is what was signed first: not what a record says of it."""
    move = treasury.plan()
    newest = move.newest
    assert move.state == "signed" and newest is not None
    written = json.loads(bytes.fromhex(newest.unsigned))
    amount, sent = newest.amount - newest.fee, list(treasury.chain.sent)
    replaced = (replace(newest, unsigned=""),)
    made = CoinAttempt(bytes_of(written["in"], [(OUT[0], amount)]), amount, 0, move.total - amount, newest.vsize)
    home = replace(made, unsigned=bytes_of(written["in"], [(move.recipient, amount)]))

    def costing(fee: int) -> CoinAttempt:
        rest = move.total - fee
        return replace(home, unsigned=bytes_of(written["in"], [(move.recipient, rest)]), amount=rest, fee=fee)

    fewer = replace(move, inputs=move.inputs[1:])
    fewer_bytes = bytes_of(written["in"][1:], [(move.recipient, fewer.total - home.fee)])
    free = treasury.held().free
    coins = tuple(MovedCoin(c.outpoint, c.amount, c.height, treasury.hot) for c in free)
    total = sum(c.amount for c in coins)
    bare = CoinAttempt(bytes_of([(c.outpoint, c.amount) for c in coins], [(OUT[0], total - 9_000)]), total - 9_000, 0, 9_000, 400)
    bare = replace(bare, vsize=treasury.chain.explain(bare.unsigned).vsize)
    never = replace(bare, unsigned="", fee=5_000, raw="00", txid="11" * 32, signed_at=1)
    invented = replace(move, kind="drain", wallet=treasury.hot, recipient=OUT[0], inputs=coins, amount=total, newest=bare)
    forged = {
        "recipient": replace(move, recipient=OUT[0], newest=made, earlier=replaced),
        "recipient to be built": replace(move, recipient=OUT[0], renew=True),
        "id": replace(move, newest=home, earlier=(replace(replaced[0], txid="11" * 32),)),
        "nothing signed": replace(move, newest=home, earlier=(replace(replaced[0], raw="00"),)),
        "fee of what was signed": replace(move, newest=home, earlier=(replace(replaced[0], fee=newest.fee * 2),)),
        "dear": replace(move, newest=costing(10 * newest.fee + 1), earlier=replaced),
        "no more than the first": replace(move, newest=costing(newest.fee), earlier=replaced),
        "often": replace(move, newest=home, earlier=replaced * 6),
        "inputs": replace(fewer, newest=replace(home, unsigned=fewer_bytes, amount=fewer.total - home.fee), earlier=replaced),
        "nothing replaced": replace(move, newest=home, earlier=()),
        "built again": replace(move, state="built", newest=made, earlier=()),
        "built again, in place of what was signed": replace(move, state="built", newest=made, earlier=replaced),
        "signed again": replace(move, state="built", newest=replace(home, raw=newest.raw, txid=newest.txid)),
        "invented": replace(invented, earlier=(never,), booked=len(coins)),
        "invented to be built": replace(invented, newest=replace(never, unsigned=bare.unsigned), booked=len(coins), renew=True),
    }
    for number, (name, record) in enumerate(forged.items(), 1):
        altered = replace(record, version=move.version + number)
        services().store.commit([Save(altered)])
        wired = services().deposit_coin_moves if record.wallet is None else services().wallet_coin_moves
        with in_realm("live"), pytest.raises(OrderMismatch, match=r"differs|pay somebody|spend other"):
            wired.advance(NETWORK, move.id)
        assert treasury.chain.sent == sent and treasury.moves() == [altered], f"{name}: what is signed is not planned anew"
    services().store.commit([Save(replace(move, renew=True, version=move.version + len(forged) + 1))])
    treasury.sign()
    assert len(treasury.moves()[0].earlier) == 1, "as it was it is replaced"
    treasury.chain.mine(1)
    assert treasury.chain.balance_of(OUT[0]) == 0


@pytest.mark.parametrize("altered", [{"unsigned": "00"}, {"fee": 1}, {"amount": 1}])
def test_an_altered_replacement_is_taken_away_and_built_anew(treasury: Treasury, altered: dict[str, Any]) -> None:
    """Between its building and its signature: what it replaces is proved once more, and another one is made of that."""
    move = treasury.plan()
    services().store.commit([Save(replace(move, renew=True, version=move.version + 1))])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(UtxoSigning, "sign", lambda *_: hang())
        treasury.sign()
    (built,) = treasury.moves()
    assert built.latest.raw is None and len(built.earlier) == 1
    services().store.commit([Save(replace(built, newest=replace(built.latest, **altered), version=built.version + 1))])
    with in_realm("live"), pytest.raises(OrderMismatch):
        services().deposit_coin_moves.advance(NETWORK, move.id)
    (back,) = treasury.moves()
    assert (back.newest, back.earlier, back.renew) == (move.newest, (), True)
    treasury.sign()
    (again,) = treasury.moves()
    assert again.latest.raw is not None and again.latest.unsigned == built.latest.unsigned and len(again.earlier) == 1
    treasury.confirm()
    assert treasury.moves()[0].state == "settled"
    treasury.whole()


def test_the_first_signature_costs_no_more_than_may_be_planned(treasury: Treasury) -> None:
    move = treasury.plan_only()
    assert move.newest is not None
    fee = move.total // 5
    written = json.loads(bytes.fromhex(move.newest.unsigned))
    dear = bytes_of(written["in"], [(move.recipient, move.total - fee)])
    made = replace(move.newest, unsigned=dear, amount=move.total - fee, fee=fee)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replacement_bounds, "MOST_RATE", 10**12)
        services().store.commit([Save(replace(move, newest=made, version=move.version + 1))])
        with in_realm("live"), pytest.raises(OrderMismatch, match="share"):
            services().deposit_coin_moves.advance(NETWORK, move.id)


def test_a_replacement_costs_no_more_of_its_coins_than_may_be_planned(treasury: Treasury) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for module in (replacing, replacement_bounds):
            patch.setattr(module, "MOST_RATE", 10**12)
        treasury.chain.rate = TOTAL * 1_000 // 20_000
        move = treasury.plan()
        assert move.newest is not None and move.state == "signed"
        written = json.loads(bytes.fromhex(move.newest.unsigned))
        fee = move.total // 5
        assert move.newest.fee < fee < 10 * move.newest.fee
        dear = bytes_of(written["in"], [(move.recipient, move.total - fee)])
        made = CoinAttempt(dear, move.total - fee, 0, fee, move.newest.vsize)
        forged = replace(move, newest=made, earlier=(replace(move.newest, unsigned=""),), version=move.version + 1)
        services().store.commit([Save(forged)])
        with in_realm("live"), pytest.raises(OrderMismatch, match="share"):
            services().deposit_coin_moves.advance(NETWORK, move.id)


@pytest.mark.parametrize(("kind", "cuts"), [("cold", (1, 2, 3, 5)), ("drain", (2, 4))])
def test_cold_moves_and_drains_move_once_whatever_dies(anew: Callable[[], Treasury], kind: str, cuts: tuple[int, ...]) -> None:
    """Planned, signed, booked, settled: whoever comes next goes on, and nothing ever shows as missing."""
    for at in cuts:
        treasury = anew()
        treasury.settle_for(collectThreshold="100")
        old = treasury.hot
        if kind == "cold":
            store_away(treasury, hotCeiling="6")
        else:
            rotate(treasury)

        def act(shop: Shop) -> None:
            assert isinstance(shop, Treasury)
            shop.look_cold() if kind == "cold" else shop.drain_old()
            shop.sign()
            shop.chain.mine(CONFIRMATIONS)
            Shop.run(shop)

        assert cut(treasury, at, die, act), at
        treasury.later(6)
        treasury.run()
        treasury.confirm()
        (move,) = treasury.moves()
        assert (move.kind, move.state, set(treasury.chain.sent)) == (kind, "settled", {move.mined}), at
        assert treasury.booked(move.recipient) == treasury.chain.balance_of(move.recipient) > 0
        assert treasury.booked(old) == treasury.chain.balance_of(old) and treasury.suspected() == []
        treasury.whole()


def test_a_cold_move_leaves_room_for_its_replacements_which_are_bounded(
    treasury: Treasury, caplog: pytest.LogCaptureFixture
) -> None:
    """Of 17 coins 9.99999 are too much: the change of the largest coin would be less than any replacement costs."""
    store_away(treasury, collectThreshold="100", hotCeiling="7.00001")
    treasury.look_cold()
    treasury.sign()
    (move,) = treasury.moves()
    assert move.newest is not None and (move.kind, len(move.inputs)) == ("cold", 1)
    first = move.newest.fee
    assert move.newest.change >= 10 * first
    treasury.chain.mine(2, take=False)
    for number in range(1, 8):
        treasury.chain.rate = 2_000 + 1_500 * number
        treasury.later(40 * 24 * 60)
        treasury.run()
        treasury.run()
    (move,) = treasury.moves()
    assert len(move.earlier) == 5 and move.newest is not None and first < move.newest.fee <= 10 * first
    assert len({made.amount for made in move.signed}) == 1, "the change pays for it"
    assert "can not be replaced" not in caplog.text and "was replaced 5 times" in caplog.text
    treasury.whole()
    treasury.confirm()
    assert treasury.moves()[0].state == "settled" and treasury.suspected() == []


def compared(treasury: Treasury) -> ComparisonReport:
    """One whole run of the reconciliation."""
    run = services().reconciliation_run(services().catalogue("live").networks["litecoin"])
    services().reconciliations.order("live", None)
    assert run.begin()
    while (step := run.step()) != "idle":
        if step == "waits":
            treasury.later(2)
            treasury.chain.mine()
            treasury.run()
    found = services().store.get(ComparisonReport, network=NETWORK)
    assert found is not None
    return found


def test_an_address_with_too_many_coins_keeps_no_other_from_being_compared(
    treasury: Treasury, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciliation_coins, "_PAGE", 1)
    monkeypatch.setattr(reconciliation_coins, "MOST_COINS", 1)
    deposits = sorted((d for d in services().store.every(Deposit) if d.tenant is not None), key=lambda d: -d.amount)
    crowded, other = deposits[0].address, deposits[1]
    for _ in range(3):
        treasury.chain.pay(crowded, 700)
    treasury.confirm()
    treasury.chain.steal(f"{other.txid}:{other.position.removeprefix('out:')}")
    treasury.run()
    found = compared(treasury)
    assert found.complete and not found.clean
    assert [(s.address, s.why) for s in found.skipped] == [(crowded, "it has more than 1 deposits")]
    assert [d.address for d in found.differences] == [other.address]


def test_coins_that_a_wallet_has_no_room_for_are_compared_all_the_same(treasury: Treasury, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody can send small ones to a hot wallet."""
    monkeypatch.setattr(coins_held, "MOST_COINS", 3)
    for n in range(5):
        treasury.chain.pay(treasury.hot, 6_000 + n)
    treasury.confirm()
    assert len(treasury.held().coins) == 3
    assert [d for d in compared(treasury).differences if d.role == "hot"] == []
