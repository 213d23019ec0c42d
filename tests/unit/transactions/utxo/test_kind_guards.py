"""What each kind of UTXO transaction says of its own record before a signature, a replacement and a send: guard by guard."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.addresses.addresses import Address, RetiredWallet, Wallet
from chalicelib.domain.catalogue.rates import Rate, Rates
from chalicelib.domain.deposits.deposits import BELOW_MINIMUM, Deposit
from chalicelib.domain.deposits.deposits import HELD as HELD_BACK
from chalicelib.domain.ids import AssetId, NetworkId, TenantId
from chalicelib.domain.kill_switch import PaymentSwitch
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.transactions.utxo_attempts import Contents
from chalicelib.domain.treasury.consolidation_fees import ConsolidationFees
from chalicelib.domain.treasury.consolidations import CoinMove, ConsolidationQueue, MovedCoin
from chalicelib.domain.treasury.hot_utxos import HeldCoins
from chalicelib.domain.withdrawals.approvals import Approval
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Withdrawal
from chalicelib.usecases.base.kill_switch import PaymentsStopped
from chalicelib.usecases.payouts.bundle_booking import SentBundle
from chalicelib.usecases.payouts.bundle_parts import BundleParts
from chalicelib.usecases.payouts.bundle_replacing import ReplacedBundle
from chalicelib.usecases.payouts.bundle_settlement import BundleSettlement
from chalicelib.usecases.payouts.bundle_signing import SignedBundle
from chalicelib.usecases.payouts.checks import PayoutChecks
from chalicelib.usecases.ports.changes import Absent, Save, Still
from chalicelib.usecases.transactions.utxo.kinds import Grounds
from chalicelib.usecases.treasury.consolidation.budget import ConsolidationBudget
from chalicelib.usecases.treasury.consolidation.following import CoinMoveFollowing
from chalicelib.usecases.treasury.consolidation.guards import FeeShare, ReplacedMove, SentMove, SignedMove
from chalicelib.usecases.withdrawals.steps import order_of
from tests.support.shelf import Shelf
from tests.support.utxo_engine import COINS, LTC, MOVE, NETWORK, OTHERS, PAID, attempt, built, in_flight, replacing

TENANT = TenantId("mch_x:live")
HOT, COLD = (Wallet(NETWORK.id, role, address, "kms", "key", "", 5) for role, address in (("hot", "hot"), ("cold", "payee")))
HELD = HeldCoins(NETWORK.id, "hot", tuple(replace(coin, reserved_by="record") for coin in COINS))
WITHDRAWAL = Withdrawal("wd", TENANT, NETWORK.id, LTC, PAID, "payee", LTC, 1, 1, status="processing")
ORDER = PaymentOrder(
    order_of(TENANT, "wd"), NETWORK.id, "hot", -1, "wd", TENANT, LTC, None, "payee", PAID, "", 1, bundle="record"
)  # fmt: skip
SENT = [replace(WITHDRAWAL, status="confirming"), replace(ORDER, state="signed")]
ANY: Any = None
STOPPED = PaymentSwitch("live", stopped=True, stopped_at=5)
RESTORED = PaymentSwitch("live", stopped=True, put_back=5)


class Rules:
    def normalize(self, network: str, text: str) -> str:
        return text


class Node:
    """A payer that no rule but `FeeShare` asks."""

    def fee_rate(self, priority: str) -> int:
        return 5_000

    def unspent(self, outpoints: list[str]) -> list[None]:
        return [None for _ in outpoints]


def signed_bundle(*records: object) -> SignedBundle:
    store: Any = Shelf(*records)
    rules: Any = Rules()
    checks = PayoutChecks(store, rules, ANY, ANY, ANY)
    return SignedBundle(BundleParts(store, rules, ANY, ANY, ANY, checks, ANY, ANY), NETWORK, HOT)


def share(percent: int, usd: int = 500) -> FeeShare:
    node: Any = Node()
    store: Any = Shelf()
    rates = Rates([Rate("ltc", "USD", "100", 1, "test")])
    return FeeShare(lambda _: node, RenewalRules(), percent, ConsolidationBudget(store, lambda _: rates, usd))


def signed_move(*records: object, percent: int = 0) -> SignedMove:
    store: Any = Shelf(*records)
    return SignedMove(store, ANY, ANY, share(percent), NETWORK)


def bundle_grounds(record: Bundle, *records: object) -> Grounds:
    return signed_bundle(*records).grounds(record)


def move_grounds(record: CoinMove, *records: object, percent: int = 0) -> Grounds:
    return signed_move(*records, percent=percent).grounds(record)


# The switches


@pytest.mark.parametrize(
    ("switch", "pays", "moves"),
    [(None, True, True), (replace(STOPPED, stopped=False), True, True), (STOPPED, False, True), (RESTORED, False, False)],
    ids=["never touched", "not stopped", "stopped", "restored"],
)
def test_what_pays_others_rests_on_the_kill_switch_and_what_stays_ours_on_the_tables(
    switch: PaymentSwitch | None, pays: bool, moves: bool
) -> None:
    told = [] if switch is None else [switch]
    condition = Absent(PaymentSwitch, {"realm": "live"}) if switch is None else Still(switch)
    old = replace(COLD, created_at=4)
    for record, others in ((built, [WITHDRAWAL, ORDER]), (replacing, SENT)):
        bundled, moved = [*others, HELD, *told], [HELD, old, *told]
        for goes, grounds, given, kind in ((pays, bundle_grounds, bundled, "bundle"), (moves, move_grounds, moved, "move")):
            if goes:
                found = grounds(record(kind), *given)
                assert condition in found.conditions and not found.unlike
            else:
                with pytest.raises(PaymentsStopped):
                    grounds(record(kind), *given)
    store: Any = Shelf(*told)
    sent = SentBundle(BundleParts(store, ANY, ANY, ANY, ANY, ANY, ANY, ANY), NETWORK), SentMove(store, ANY, ANY, NETWORK)
    assert [each.halted() for each in sent] == [not pays, not moves]
    for followed, goes in ((BundleSettlement, pays), (CoinMoveFollowing, moves)):
        kind: Any = object.__new__(followed)
        kind._store, kind._network = store, NETWORK
        assert kind.halted() is not goes


def test_nothing_new_moves_to_a_wallet_that_was_registered_while_payments_are_stopped() -> None:
    with pytest.raises(PaymentsStopped, match="registered after"):
        move_grounds(built("move"), HELD, COLD, STOPPED)
    assert not move_grounds(replacing("move"), HELD, COLD, STOPPED).unlike, "what is signed already may be replaced"


# Bundles


@pytest.mark.parametrize(
    ("withdrawal", "order", "named"),
    [
        ({}, {"bundle": "another"}, "bundle"),
        ({}, {"withdrawal_id": "another"}, "withdrawal"),
        ({}, {"tenant": TenantId("mch_y:live")}, "merchant"),
        ({}, {"asset": AssetId("live:litecoin:usdt")}, "coin"),
        ({"asset": AssetId("live:litecoin:usdt")}, {"asset": AssetId("live:litecoin:usdt")}, "coin"),
        ({}, {"network": NetworkId("live:bitcoin")}, "network"),
        ({}, {"recipient": "thief"}, "recipient"),
        ({"to_address": "another"}, {}, "recipient"),
        ({"to_address": "thief"}, {"recipient": "thief"}, "recipient"),
        ({}, {"amount": PAID + 1}, "amount"),
        ({"amount": PAID - 1}, {}, "amount"),
        ({"amount": PAID + 1}, {"amount": PAID + 1}, "amount"),
        ({"approval": Approval(("multisig",), required=1)}, {}, "approval"),
    ],
)
def test_a_member_that_is_not_what_was_approved_leaves(withdrawal: dict[str, Any], order: dict[str, Any], named: str) -> None:
    found = bundle_grounds(built("bundle"), replace(WITHDRAWAL, **withdrawal), replace(ORDER, **order), HELD)
    assert (found.unlike, found.leaving) == ([f"wd: {named}"], ["wd"])
    again = bundle_grounds(replacing("bundle"), replace(SENT[0], **withdrawal), replace(SENT[1], **order), HELD)
    assert (again.unlike, again.leaving) == ([f"wd: {named}"], []), "nobody leaves what was signed"


@pytest.mark.parametrize(
    ("bundle", "withdrawal", "order", "named"),
    [
        ({}, {"status": "pending"}, {}, "wd: status"),
        ({}, {"status": "broadcasting"}, {}, "wd: status"),
        ({}, {}, {"state": "signed"}, "wd: status"),
        ({"wallet": "another"}, {}, {}, "wallet"),
        ({"wallet": "another"}, {"amount": PAID + 1}, {}, "wallet, wd: amount"),
        ({}, {"amount": PAID + 1, "status": "pending"}, {}, "wd: amount, wd: status"),
        ({"network": NetworkId("live:bitcoin")}, {}, {}, "network"),
        ({"payouts": (*built("bundle").payouts, *built("bundle").payouts)}, {}, {}, "each of its payments once"),
    ],
)
def test_nobody_leaves_where_something_may_be_signed_or_the_bundle_itself_differs(
    bundle: dict[str, Any], withdrawal: dict[str, Any], order: dict[str, Any], named: str
) -> None:
    records = (replace(WITHDRAWAL, **withdrawal), replace(ORDER, **order), HELD)
    found = bundle_grounds(replace(built("bundle"), **bundle), *records)
    assert (", ".join(found.unlike), found.leaving) == (named, [])


@pytest.mark.parametrize(
    ("status", "state"), [("processing", "signed"), ("confirmed", "signed"), ("failed", "signed"), ("confirming", "built")]
)
def test_a_replacement_pays_only_members_whose_payment_is_out(status: Any, state: Any) -> None:
    found = bundle_grounds(replacing("bundle"), replace(WITHDRAWAL, status=status), replace(ORDER, state=state), HELD)
    assert found.unlike == ["wd: status"]


@pytest.mark.parametrize(
    "held",
    [
        replace(HELD, coins=COINS),
        replace(HELD, coins=HELD.coins[:1]),
        replace(HELD, coins=(HELD.coins[0], replace(HELD.coins[1], reserved_by="another"))),
        replace(HELD, coins=(HELD.coins[0], replace(HELD.coins[1], amount=1))),
    ],
    ids=["free", "gone", "another's", "another amount"],
)
def test_a_bundle_spends_only_coins_that_are_reserved_for_it(held: HeldCoins) -> None:
    kind = signed_bundle(WITHDRAWAL, ORDER, held)
    assert not kind.grounds(built("bundle")).unlike
    assert kind.coins(built("bundle")) != list(COINS)
    lost = "the reservation of what was signed"
    assert bundle_grounds(replacing("bundle"), *SENT, held).unlike == [lost]
    building: Any = type("Building", (), {"spendable": lambda *_: []})()
    store: Any = Shelf(held)
    assert ReplacedBundle(store, building, NETWORK, HOT).means(in_flight("bundle")).unlike == (lost,)


def test_a_bundle_s_replacement_takes_its_coins_with_it() -> None:
    building: Any = type("Building", (), {"spendable": lambda *_: [], "denied": lambda *_: ["wd"]})()
    store: Any = Shelf(replace(HELD, coins=(*HELD.coins, *OTHERS)))
    kind = ReplacedBundle(store, building, NETWORK, HOT)
    assert kind.means(in_flight("bundle")).unlike == ()
    assert not kind.affordable(in_flight("bundle"), 2_000)
    (saved,) = kind.taken(replacing("bundle", coins=(COINS[0], OTHERS[0])))
    names = {coin.outpoint for coin in saved.record.coins if coin.reserved_by == "record"}
    assert names == {coin.outpoint for coin in (*COINS, OTHERS[0])}
    taken = replace(OTHERS[0], reserved_by="another")
    other: Any = Shelf(replace(HELD, coins=(*HELD.coins, taken)))
    with pytest.raises(ValueError, match="can not be reserved"):
        ReplacedBundle(other, building, NETWORK, HOT).taken(replacing("bundle", coins=(COINS[0], taken)))


# Moves


@pytest.mark.parametrize(
    ("move", "named"),
    [
        ({"network": NetworkId("live:bitcoin")}, "network"),
        ({"asset": AssetId("live:bitcoin:btc")}, "coin"),
        ({"booked": 1}, "what is in flight"),
        ({"recipient": "thief"}, "recipient"),
        ({"wallet": "another", "recipient": "payee"}, COINS[0].outpoint),
    ],
)
def test_a_move_is_what_was_planned(move: dict[str, Any], named: str) -> None:
    assert named in move_grounds(replace(built("move"), **move), HELD, COLD).unlike


def test_a_move_goes_to_the_wallet_of_today_and_what_is_signed_to_one_that_was_replaced() -> None:
    retired = RetiredWallet.of(COLD, 9)
    today = replace(COLD, address="today's")
    assert move_grounds(built("move"), HELD, today, retired).unlike == ["recipient"]
    assert move_grounds(replacing("move"), HELD, today, retired).unlike == []
    assert move_grounds(replacing("move"), HELD, today).unlike == ["recipient"]
    assert move_grounds(replacing("move"), HELD, today, replace(retired, role="hot")).unlike == ["recipient"]
    assert Still(COLD) in move_grounds(built("move"), HELD, COLD).conditions
    for record in (built("move"), replacing("move")):
        home = replace(record, recipient="hot", kind="drain")
        assert "recipient" in move_grounds(home, HELD, HOT).unlike, "to where it comes from"


@pytest.mark.parametrize(
    ("held", "coin", "begun"),
    [
        ({"reserved_by": None}, {}, True),
        ({"reserved_by": "another"}, {}, True),
        ({"amount": 1}, {}, True),
        ({"gone": True}, {}, False),
        ({}, {"address": "another"}, True),
        ({}, {"path": "m/1"}, True),
    ],
    ids=["free", "another's", "another amount", "gone", "another address", "a path"],
)
def test_a_move_spends_only_coins_that_are_reserved_for_it(held: dict[str, Any], coin: dict[str, Any], begun: bool) -> None:
    held_coins = replace(HELD, coins=(replace(HELD.coins[0], **held), HELD.coins[1]))
    for record, differs in ((built("move"), True), (replacing("move"), begun)):
        altered = replace(record, inputs=(replace(record.inputs[0], **coin), record.inputs[1]))
        assert move_grounds(altered, held_coins, COLD).unlike == ([COINS[0].outpoint] if differs else [])


PLACE = Address("adr", TENANT, NETWORK.id, "place", "single", ("litecoin",), "m/7", 1)
DEPOSIT = Deposit(
    "tx",
    NETWORK.id,
    LTC,
    TENANT,
    "a" * 64,
    "out:0",
    "payer",
    "place",
    50_000,
    7,
    "hash",
    1,
    1,
    status="confirmed",
    address_id="adr",
)
GATHERED = CoinMove(
    "record", NETWORK.id, "consolidation", LTC, None, "hot",
    (MovedCoin(DEPOSIT.txid + ":0", 50_000, 7, "place", "tx", "m/7"),), 50_000, "record", 1, 1,
)  # fmt: skip
QUEUE = ConsolidationQueue(NETWORK.id, move="record")


@pytest.mark.parametrize(
    ("deposit", "place", "coin", "begun"),
    [
        ({"status": "pending"}, {}, {}, False),
        ({"flags": (HELD_BACK,)}, {}, {}, False),
        ({"flags": (BELOW_MINIMUM,)}, {}, {}, False),
        ({"txid": "b" * 64}, {}, {}, True),
        ({"amount": 49_999}, {}, {}, True),
        ({"address": "another"}, {}, {}, True),
        ({"network": NetworkId("live:bitcoin")}, {}, {}, True),
        ({"asset": AssetId("live:litecoin:usdt")}, {}, {}, True),
        ({}, {"path": "m/8"}, {}, True),
        ({}, {"id": "another"}, {}, True),
        ({}, {}, {"deposit": "another"}, True),
    ],
    ids=["pending", "held", "small", "outpoint", "amount", "address", "network", "asset", "path", "no owner", "no deposit"],
)
def test_a_consolidation_spends_only_deposits_that_arrived(
    deposit: dict[str, Any], place: dict[str, Any], coin: dict[str, Any], begun: bool
) -> None:
    made = replace(GATHERED, inputs=(replace(GATHERED.inputs[0], **coin),))
    attempts = [replace(made, newest=made.attempt_of(contents(made, fee))) for fee in (1_000, 2_000)]
    first, second = attempts[0], replace(attempts[1], state="signed", earlier=(attempts[0].newest,))
    records = (replace(DEPOSIT, **deposit), replace(PLACE, **place), QUEUE, HOT)
    assert move_grounds(first, *records).unlike == [made.inputs[0].outpoint]
    assert move_grounds(second, *records).unlike == ([made.inputs[0].outpoint] if begun else [])
    assert move_grounds(first, DEPOSIT, PLACE, QUEUE, HOT).unlike == ([made.inputs[0].outpoint] if coin else [])


def contents(move: CoinMove, fee: int) -> Any:
    return Contents("bytes", tuple(coin.held for coin in move.inputs), ((move.recipient, move.total - fee),), fee, 20)


def test_a_consolidation_spends_only_what_its_network_s_queue_holds_for_it() -> None:
    made = replace(GATHERED, newest=GATHERED.attempt_of(contents(GATHERED, 1_000)))
    for queue in (replace(QUEUE, move="another"), replace(QUEUE, move=None)):
        assert move_grounds(made, DEPOSIT, PLACE, queue, HOT).unlike == ["the reservation"]
    assert move_grounds(made, DEPOSIT, PLACE, replace(QUEUE, move=None, asked=("record",)), HOT).unlike == []


class Clock:
    def now_ms(self) -> int:
        return 5


def replaced(share: FeeShare) -> ReplacedMove:
    return ReplacedMove(NETWORK, share, Clock())


def test_a_replacement_of_a_consolidation_is_counted_and_no_other() -> None:
    gathered = replace(in_flight("move"), kind="consolidation", wallet=None)
    assert not replaced(share(0, usd=0)).affordable(gathered, gathered.latest.fee + 1)
    assert replaced(share(0, usd=0)).affordable(in_flight("move"), gathered.latest.fee + 1)
    dearer = replace(gathered.latest, fee=gathered.latest.fee + 7)
    again = replace(gathered, newest=dearer, earlier=(gathered.latest,))
    (counted,) = replaced(share(0)).taken(again)
    assert isinstance(counted, Save) and counted.record == ConsolidationFees(NETWORK.id, 0, 7, 1)  # a unit is a millionth
    assert replaced(share(0)).taken(replace(again, kind="drain", wallet="hot")) == []


def test_a_move_s_fee_is_bounded_by_its_share_whenever_it_is_signed() -> None:
    for record, dear in (
        (built("move", 1_000), []),
        (built("move", 1_001), ["fee's share"]),
        (replacing("move", 1_001), ["fee's share"]),
    ):
        assert move_grounds(record, HELD, COLD, percent=1).dear == dear
    cheap_a_byte = replace(built("move"), newest=attempt(MOVE, "first", 1_001, vsize=25))
    assert move_grounds(cheap_a_byte, HELD, COLD, percent=1).dear == ["fee's share"], "only a drain may cost more than its share"
    assert replaced(share(1)).affordable(in_flight("move"), 1_000)
    assert not replaced(share(1)).affordable(in_flight("move"), 1_001)


def test_a_wallet_is_drained_at_ten_times_the_low_fee_at_most_and_replaced_within_its_share() -> None:
    drain, low = replace(MOVE, kind="drain"), 10 * 5_000 * 20 // 1000
    for fee, begun, dear in ((low, False, []), (low + 1, False, ["fee's share"]), (low, True, ["fee's share"])):
        newest = attempt(MOVE, "first", fee)
        record = replace(drain, newest=newest, state="signed" if begun else "built", earlier=(newest,) if begun else ())
        # It has as much as this fee: its share is half of that.
        poor = replace(record, inputs=tuple(replace(coin, amount=500) for coin in record.inputs))
        held = replace(HELD, coins=tuple(replace(coin, amount=500) for coin in HELD.coins))
        assert move_grounds(poor, held, replace(COLD, role="hot"), percent=50).dear == dear
