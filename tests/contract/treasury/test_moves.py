"""Moves between our own places, on a simulated network: signed by whoever has the key, booked by receipt, credited to nobody."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.chains.sandbox.payer import SandboxPayer
from chalicelib.domain.chain import FeeQuote
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.transactions.outgoing import Attempt
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.withdrawals.withdrawals import NonceCounter
from chalicelib.store.dynamo import DynamoStore
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.scanning.matching import from_others
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.usecases.treasury.moves.signing import MOST_REFUSALS
from chalicelib.wiring import services
from infra.local.queues import consumers
from tests.support.shop import ETHER, Kms, Shop, bent_node, open_shop
from tests.support.stack import Stack
from tests.support.treasury import (
    altered,
    booked,
    cold,
    move_of,
    paid_address,
    plan,
    register,
    same,
)

USDT = 10**6
THIEF = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"  # EIP-55's own example
USDC = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"
IDLE = 65
"""Seconds after which the poll asks again for a move that stands still."""
STUCK = 365
REORG_DEPTH = 64


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as found:
        yield found


@pytest.fixture
def kms(monkeypatch: pytest.MonkeyPatch) -> Kms:
    return Kms(monkeypatch)


def settle(shop: Shop) -> None:
    shop.turn()
    shop.mine()
    shop.turn()


def later(shop: Shop, seconds: int = IDLE) -> None:
    shop.wait(seconds)
    shop.turn()


def native_sweep(shop: Shop, amount: str = "1", **more: Any) -> str:
    return plan(shop, "sweep", "eth", paid_address(shop, amount, "eth"), shop.hot().address, amount, bare=True, **more)


def test_a_token_is_swept_after_its_top_up_and_goes_on_from_the_collector(shop: Shop) -> None:
    collector, hot, far = register(shop, "collector"), shop.hot().address, cold(shop)
    address = paid_address(shop, "5", "usdt")
    before = len(list(services().store.every(Deposit)))
    topup = plan(shop, "topup", "eth", hot, address.address, "0.01")
    settle(shop)
    assert move_of(shop, topup).state == "settled"
    assert same(shop, address.address, "eth") == ETHER // 100
    sweep = plan(shop, "sweep", "usdt", address, collector, "5")
    settle(shop)
    swept = move_of(shop, sweep)
    assert (swept.state, swept.arrived, swept.mined) == ("settled", 5 * USDT, swept.txid)
    assert same(shop, collector, "usdt") == 5 * USDT and booked(shop, address.address, "usdt") == 0
    assert same(shop, address.address, "eth") == ETHER // 100 - swept.fee > 0
    plan(shop, "topup", "eth", hot, collector, "0.01")
    settle(shop)
    out = plan(shop, "distribution", "usdt", collector, hot, "2"), plan(shop, "cold", "usdt", collector, far, "3")
    settle(shop)
    assert [move_of(shop, each).state for each in out] == ["settled", "settled"]
    assert same(shop, far, "usdt") == 3 * USDT and same(shop, collector, "usdt") == 0
    same(shop, hot, "usdt"), same(shop, hot, "eth")
    assert shop.available("usdt") == "5"
    assert len(list(services().store.every(Deposit))) == before


def test_withdrawals_and_moves_of_one_wallet_share_its_nonces(shop: Shop) -> None:
    shop.credit("2")
    far = cold(shop)
    paid = [shop.withdraw("0.25")]
    moves = [plan(shop, "cold", "eth", shop.hot().address, far, "1")]
    paid.append(shop.withdraw("0.5"))
    shop.turn()
    moves.append(plan(shop, "cold", "eth", shop.hot().address, far, "2"))
    settle(shop)
    assert {shop.withdrawal(each)["status"] for each in paid} == {"confirmed"}
    nonces = [shop.order(each).nonce for each in paid] + [move_of(shop, each).nonce for each in moves]
    assert sorted(nonce for nonce in nonces if nonce is not None) == [0, 1, 2, 3]
    same(shop, shop.hot().address, "eth")


def test_the_admin_sees_moves_among_transactions_and_no_merchant_does(shop: Shop) -> None:
    sweep = native_sweep(shop)
    topup = plan(shop, "topup", "eth", shop.hot().address, move_of(shop, sweep).source, "0.001")
    settle(shop)
    name = f"txm_{sweep.removeprefix('mov_')}"
    swept = move_of(shop, sweep)
    assert (swept.state, swept.amount + swept.fee) == ("settled", ETHER)
    assert same(shop, swept.source, "eth") == ETHER // 1000
    same(shop, shop.hot().address, "eth")

    def get(path: str, key: str = "admin_test", **query: str) -> Any:
        return shop.stack.call("GET", path, shop.stack.keys[key], query=query)

    (shown,) = get("/v1/transactions", type="collection").json["data"]
    assert (shown["id"], shown["hash"], shown["status"], shown["amount"]) == (name, swept.txid, "confirmed", "0.99958")
    assert (shown["from"], shown["to"], shown["fee"]) == (swept.source, swept.recipient, "0.00042")
    (raised,) = get("/v1/transactions", type="topup", status="confirmed", network="ethereum").json["data"]
    assert (raised["to"], raised["id"]) == (swept.source, f"txm_{topup.removeprefix('mov_')}")
    for path in (f"/v1/transactions/{name}", f"/v1/transactions/{swept.txid}"):
        assert get(path).json["data"] == shown
        assert get(path, "client_test").status == get(path, "client_live").status == 404
    listed = get(f"/v1/transactions/address/{shop.hot().address}", hash=str(swept.txid)).json["data"]
    assert listed == [shown]
    assert get(f"/v1/transactions/address/{shop.hot().address}", "client_test").status == 404
    assert {one["type"] for one in get("/v1/transactions", "client_test").json["data"]} == {"deposit"}
    assert get("/v1/transactions", id=name).json["data"] == [shown]
    assert get("/v1/transactions", "client_test", id=name).json["data"] == []
    assert get("/v1/transactions/txm_unknown").status == 404


def test_what_falls_out_of_the_chain_is_in_flight_again_and_is_sent_again(shop: Shop) -> None:
    sweep = native_sweep(shop)
    settle(shop)
    swept, hot = move_of(shop, sweep), shop.hot().address
    had = booked(shop, hot, "eth")
    shop.chain().reorganise(REORG_DEPTH // 4, remine=False)
    before = swept.block_hash
    shop.turn()
    undone = move_of(shop, sweep)
    assert (undone.state, undone.round, undone.mined, undone.arrived) == ("signed", 1, None, None)
    assert booked(shop, hot, "eth") < had
    shop.mine()
    shop.turn()
    again = move_of(shop, sweep)
    assert (again.state, again.txid, again.round) == ("settled", swept.txid, 1)
    assert again.block_hash != before
    shop.pay(swept.source, "1")  # the payment that was swept fell out, too
    shop.mine()
    shop.turn()


def test_what_fails_on_the_chain_stays_where_it_was(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    address = paid_address(shop, "1", "eth")
    sweep = plan(shop, "sweep", "eth", address, shop.hot().address, "0.5")
    shop.chain().plan(sweep, "fail")
    settle(shop)
    failed = move_of(shop, sweep)
    assert (failed.state, failed.arrived) == ("failed", 0)
    assert same(shop, address.address, "eth") == ETHER - failed.fee
    assert f"ALARM test:ethereum: move {sweep} failed on the chain" in caplog.text


def test_what_no_block_takes_is_replaced_with_the_same_nonce(shop: Shop) -> None:
    address = paid_address(shop, "1", "eth")
    sweep = plan(shop, "sweep", "eth", address, shop.hot().address, "0.5")
    shop.chain().plan(sweep, "stick")
    shop.turn()
    first = move_of(shop, sweep)
    later(shop, STUCK)
    second = move_of(shop, sweep)
    assert (second.nonce, second.renew, [a.txid for a in second.earlier]) == (first.nonce, False, [first.txid])
    assert second.fee > first.fee
    shop.chain().settle(str(second.txid), "confirm")
    shop.turn()
    settled = move_of(shop, sweep)
    assert (settled.state, settled.mined, settled.hash) == ("settled", second.txid, second.txid)
    same(shop, address.address, "eth")


def test_what_cannot_be_paid_for_waits_and_nothing_is_allotted(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    address = paid_address(shop, "5", "usdt")
    sweep = plan(shop, "sweep", "usdt", address, shop.hot().address, "5")
    shop.turn()
    later(shop)
    waits = move_of(shop, sweep)
    assert (waits.state, waits.tried, waits.nonce) == ("planned", 0, None) and waits.reason
    assert caplog.text.count(f"ALARM test:ethereum: move {sweep} waits") == 1
    shop.pay(address.address, "0.01", "eth")
    shop.mine()
    later(shop)
    settle(shop)
    assert move_of(shop, sweep).state == "settled"


def test_what_is_in_the_chain_and_not_in_the_ledger_is_not_spent(shop: Shop) -> None:
    address = paid_address(shop, "1", "eth")
    shop.pay(address.address, "1")
    sweep = plan(shop, "sweep", "eth", address, shop.hot().address, "1.5")
    shop.stack.drain(only=("relay", "collect"))
    assert (move_of(shop, sweep).state, shop.paid(address.address)) == ("planned", 2 * ETHER)
    shop.mine()
    shop.turn()
    later(shop)
    settle(shop)
    assert move_of(shop, sweep).state == "settled"
    assert same(shop, address.address, "eth") == ETHER // 2 - move_of(shop, sweep).fee


def test_what_is_refused_is_tried_some_times_and_dropped(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    address = paid_address(shop, "0.0001", "eth")
    sweep = plan(shop, "sweep", "eth", address, shop.hot().address, "0.0001", bare=True)
    shop.turn()
    # The fee is more than what is there.
    for tried in range(1, MOST_REFUSALS):
        assert (move_of(shop, sweep).state, move_of(shop, sweep).tried) == ("planned", tried)
        services().deposit_moves.advance(shop.realm_network().id, sweep)
    dropped = move_of(shop, sweep)
    assert (dropped.state, dropped.nonce, dropped.tried) == ("dropped", None, MOST_REFUSALS)
    assert f"ALARM test:ethereum: move {sweep} is dropped" in caplog.text
    assert same(shop, address.address, "eth") == ETHER // 10_000


def test_a_recipient_that_is_no_wallet_by_now_drops_what_was_only_planned(shop: Shop) -> None:
    address = paid_address(shop, "1", "eth")
    kinds = (
        ("sweep", address, THIEF), ("cold", shop.hot().address, THIEF), ("distribution", shop.hot().address, address.address),
        ("topup", shop.hot().address, THIEF), ("drain", shop.hot().address, THIEF),
    )  # fmt: skip
    made = [plan(shop, kind, "eth", source, to, "0.01") for kind, source, to in kinds]  # type: ignore[arg-type]
    made.append(plan(shop, "topup", "eth", shop.hot().address, address.address, "0.5"))  # more than any fee
    shop.turn()
    assert {(move_of(shop, each).state, move_of(shop, each).nonce) for each in made} == {("dropped", None)}


def bytes_with(**fields: Any) -> Callable[[Move], Move]:
    """The move with other bytes to sign, well-formed all the same."""

    def change(move: Move) -> Move:
        doc = {**json.loads(bytes.fromhex(move.unsigned or "")), **fields}
        return replace(move, unsigned=json.dumps(doc, sort_keys=True, separators=(",", ":")).encode().hex())

    return change


def row_with(**fields: Any) -> Callable[[Move], Move]:
    return lambda move: replace(move, **fields)


def both_with(**fields: Any) -> Callable[[Move], Move]:
    stored = {name: value.lower() if isinstance(value, str) else value for name, value in fields.items()}
    return lambda move: replace(bytes_with(**stored)(move), **fields)


ALTERED: dict[str, tuple[Callable[[Move], Move], str]] = {
    "bytes-recipient": (bytes_with(recipient=THIEF.lower()), "anew"),
    "bytes-amount": (bytes_with(amount=1), "anew"),
    "bytes-contract": (bytes_with(contract=USDC.lower()), "anew"),
    "bytes-chain": (bytes_with(chain_id=1), "anew"),
    "bytes-network": (bytes_with(network="test:bsc"), "anew"),
    "bytes-nonce": (bytes_with(nonce=7), "left"),
    "bytes-sender": (bytes_with(sender=THIEF.lower()), "left"),
    "bytes-no-payment": (row_with(unsigned="00"), "anew"),
    "row-recipient": (row_with(recipient=THIEF), "dropped"),
    "row-amount": (row_with(amount=1), "anew"),
    "row-contract": (row_with(contract=USDC), "dropped"),
    "row-asset": (row_with(asset="test:ethereum:usdc"), "dropped"),
    "row-nonce": (row_with(nonce=7), "left"),
    "row-source": (row_with(source=THIEF), "left"),
    "both-recipient": (both_with(recipient=THIEF), "dropped"),
    "both-source": (lambda move: replace(bytes_with(sender=THIEF.lower())(move), source=THIEF), "left"),
    "both-contract": (both_with(contract=USDC), "dropped"),
    "no-bytes": (lambda move: replace(move, unsigned="", recipient=THIEF), "dropped"),
}
"""What is altered, and what becomes of the move: its bytes are built anew, it is dropped, or it is left for somebody to look at."""
OF_SWEEPS: dict[str, tuple[Callable[[Move], Move], str]] = {
    "row-kind": (row_with(kind="cold"), "left"),
    "another-key": (row_with(path="m/44'/60'/1'/0/9999"), "left"),
    "a-key-of-the-wallets": (row_with(path=None), "left"),
    "a-filler": (row_with(kind="filler"), "dropped"),
}
OF_TOPUPS: dict[str, tuple[Callable[[Move], Move], str]] = {
    "row-kind": (row_with(kind="cold"), "dropped"),
    "a-deposit-key": (row_with(path="m/44'/60'/1'/0/0"), "left"),
    "the-whole-wallet": (both_with(amount=ETHER), "anew"),
    "a-dear-filler": (lambda move: both_with(recipient=move.source)(replace(move, kind="filler")), "dropped"),
}


@pytest.mark.parametrize("kind", ["sweep", "topup"])
def test_an_altered_move_is_not_signed(kind: str, shop: Shop, kms: Kms, caplog: pytest.LogCaptureFixture) -> None:
    address = paid_address(shop, "1", "eth")
    kms.away = True
    if kind == "sweep":
        name = plan(shop, "sweep", "eth", address, shop.hot().address, "0.5")
    else:
        name = plan(shop, "topup", "eth", shop.hot().address, address.address, "0.01")
    shop.turn()
    built = move_of(shop, name)
    assert (built.state, built.nonce, built.raw) == ("built", 0, None)
    admin = shop.stack.keys["admin_test"]
    assert shop.stack.call("GET", f"/v1/transactions/txm_{name.removeprefix('mov_')}", admin).status == 404
    assert shop.stack.call("GET", "/v1/transactions", admin, query={"to": built.recipient}).json["data"] == []
    kms.away = False
    kms.calls.clear()
    start = shop.stack.snapshot()
    signing = services().deposit_moves if kind == "sweep" else services().wallet_moves
    for what, (change, expected) in (ALTERED | (OF_SWEEPS if kind == "sweep" else OF_TOPUPS)).items():
        services().store.commit([Save(replace(change(built), version=built.version + 1))])
        caplog.clear()
        with pytest.raises((OrderMismatch, LookupError)):
            signing.advance(built.network, name)
        stored = move_of(shop, name)
        assert (stored.raw, stored.txid, kms.calls["Sign"]) == (None, None, 0), what
        became = "dropped" if stored.state == "dropped" else "left" if stored.unsigned else "anew"
        assert became == expected, what
        counter = services().store.get(NonceCounter, network=built.network, wallet=built.source)
        assert counter is not None and counter.next == (0 if expected == "dropped" else 1), what
        assert "ALARM" in caplog.text or what in ("a-key-of-the-wallets", "a-deposit-key"), what
        shop.stack.restore(start)
    services().store.commit([Save(replace(bytes_with(amount=1)(built), version=built.version + 1))])
    for _ in range(2):
        later(shop)
    assert (move_of(shop, name).amount, move_of(shop, name).nonce) == (built.amount, 0)
    shop.mine()
    shop.turn()
    assert move_of(shop, name).state == "settled"
    assert shop.paid(THIEF) == 0


@pytest.mark.parametrize("why", ["fees fell", "no place of ours"])
def test_what_may_not_be_signed_any_more_holds_no_payment_up(why: str, shop: Shop, kms: Kms) -> None:
    """A top-up was built, payments behind it have the next nonces, and by now it may not be signed as it is."""
    shop.credit("2")
    address = paid_address(shop, "5", "usdt")
    kms.away = True
    topup = plan(shop, "topup", "eth", shop.hot().address, address.address, "0.01")
    shop.turn()
    paid = shop.withdraw("0.25")
    shop.turn(failures="count")
    built = move_of(shop, topup)
    assert (built.state, built.nonce, shop.order(paid).nonce, shop.order(paid).raw) == ("built", 0, 1, None)
    if why == "fees fell":
        quote = services().store.get(FeeQuote, network=built.network)
        assert quote is not None
        cheap = {coin: fee // 1000 for coin, fee in quote.fees.items()}
        services().store.commit([Save(replace(quote, fees=cheap, at=quote.at + 3_600_000, version=quote.version + 1))])
    else:
        altered(shop, topup, recipient=THIEF)
    kms.away = False
    for _ in range(3):
        shop.wait(IDLE)
        shop.turn("housekeeping", failures="count")
    shop.mine()
    shop.turn()
    done = move_of(shop, topup)
    assert shop.withdrawal(paid)["status"] == "confirmed"
    if why == "fees fell":
        assert (done.state, done.nonce) == ("settled", 0)
        assert 0 < same(shop, address.address, "eth") == done.amount < built.amount
    else:
        (filler,) = (move for move in services().store.every(Move) if move.kind == "filler")
        assert (done.state, done.nonce, done.raw) == ("dropped", None, None)
        assert (filler.state, filler.nonce, filler.source, filler.recipient) == ("settled", 0, built.source, built.source)
        assert shop.paid(THIEF) == shop.paid(address.address) == 0
    same(shop, shop.hot().address, "eth")


def test_a_stuck_move_of_everything_gets_room_for_its_replacement(shop: Shop) -> None:
    sweep = native_sweep(shop)
    shop.chain().plan(sweep, "stick")
    shop.turn()
    first = move_of(shop, sweep)
    floor = {"coin": "eth", "network": "ethereum", "hotFloor": "100000000"}  # what is signed may have it go below
    assert shop.stack.call("PUT", "/v1/coins", shop.stack.keys["admin_test"], json=floor).status == 200
    later(shop, STUCK)
    settle(shop)
    later(shop)
    second = move_of(shop, sweep)
    (topup,) = (move for move in services().store.every(Move) if move.kind == "topup")
    assert (topup.owner, topup.recipient, topup.state) == (sweep, first.source, "settled")
    assert (second.nonce, second.amount, [a.txid for a in second.earlier]) == (first.nonce, first.amount, [first.txid])
    assert first.fee < second.fee <= first.fee + topup.amount
    shop.chain().settle(str(second.txid), "confirm")
    shop.turn()
    assert move_of(shop, sweep).state == "settled"
    assert same(shop, first.source, "eth") == first.fee + topup.amount - second.fee


def test_an_altered_move_is_not_replaced(
    shop: Shop, kms: Kms, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither with other bytes than were signed, nor more often or at a higher fee than what was signed first allows."""
    address = paid_address(shop, "1", "eth")
    name = plan(shop, "topup", "eth", shop.hot().address, address.address, "0.01")
    shop.chain().plan(name, "stick")
    shop.turn()
    move, real = move_of(shop, name), SandboxPayer.renew
    assert move.state == "signed" and move.raw is not None and move.txid is not None
    first, start, signed = Attempt(move.raw, move.txid, move.fee, 1), shop.stack.snapshot(), kms.calls["Sign"]

    def dear(payer: SandboxPayer, unsigned: str, *rest: Any) -> str:
        for _ in range(25):
            unsigned = real(payer, unsigned, *rest)
        return unsigned

    bounds: dict[str, Move] = {
        "fee": replace(move, fee=move.fee * 100),
        "no fee": replace(move, fee=0),
        "fee of the first": replace(move, earlier=(replace(first, fee=move.fee * 100),)),
        "nobody's": replace(move, earlier=(replace(first, raw="00"),)),
        "often": replace(move, earlier=(first,) * 5),
        "signed-nothing": replace(move, raw="00"),
        "signed-id": replace(move, txid="0x" + "77" * 32),
    }
    wrong = bounds | {what: change(move) for what, (change, _) in (ALTERED | OF_TOPUPS).items()}
    for what, record in wrong.items():
        services().store.commit([Save(replace(record, renew=True, version=move.version + 1))])
        caplog.clear()
        with monkeypatch.context() as patch:
            patch.setattr(SandboxPayer, "renew", dear if "fee" in what else real)
            with contextlib.suppress(OrderMismatch, LookupError):
                services().wallet_moves.advance(move.network, name)
        assert (len(move_of(shop, name).earlier), kms.calls["Sign"]) == (len(record.earlier), signed), what
        assert "ALARM" in caplog.text or what == "a-deposit-key", what
        shop.stack.restore(start)
    services().store.commit([Save(replace(move, renew=True, version=move.version + 1))])
    services().wallet_moves.advance(move.network, name)
    assert len(move_of(shop, name).earlier) == 1


@pytest.mark.parametrize("moment", ["before", "allotting", "signing", "sending"])
def test_nothing_is_signed_or_sent_during_a_restore(shop: Shop, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """A restore that begins while a worker is at it: what the chain has of the wallet is not known any more."""
    address = paid_address(shop, "1", "eth")
    name = plan(shop, "topup", "eth", shop.hot().address, address.address, "0.01")
    network, real, switches = shop.realm_network().id, DynamoStore.commit, services().switches
    sent: list[str] = []
    at = {"allotting": "built", "signing": "signed", "sending": "signed"}.get(moment)
    if moment == "before":
        switches.begin_restore("test")

    def commit(store: DynamoStore, changes: Any) -> None:
        mine = any(isinstance(record := getattr(c, "record", None), Move) and record.state == at for c in changes)
        if mine and moment in ("allotting", "signing"):
            switches.begin_restore("test")
        real(store, changes)
        if mine and moment == "sending":
            switches.begin_restore("test")

    with monkeypatch.context() as patch:
        patch.setattr(DynamoStore, "commit", commit)
        patch.setattr(SandboxPayer, "broadcast", lambda _, raw: sent.append(raw))
        for _ in range(2):
            with contextlib.suppress(Unavailable):
                services().wallet_moves.advance(network, name)
    states = {"before": "planned", "allotting": "planned", "signing": "built", "sending": "signed"}
    assert (move_of(shop, name).state, sent) == (states[moment], [])
    switches.end_restore("test")
    for _ in range(2):
        later(shop)
    shop.mine()
    shop.turn()
    assert move_of(shop, name).state == "settled"


def test_each_function_leaves_the_others_moves_alone_and_twice_is_once(shop: Shop) -> None:
    address = paid_address(shop, "1", "eth")
    sweep = plan(shop, "sweep", "eth", address, shop.hot().address, "0.5")
    topup = plan(shop, "topup", "eth", shop.hot().address, address.address, "0.01")
    network = shop.realm_network().id
    for signing, name in ((services().wallet_moves, sweep), (services().deposit_moves, topup)):
        with pytest.raises(LookupError):
            signing.advance(network, name)
        assert move_of(shop, name).state == "planned"
    for _ in range(2):
        services().deposit_moves.advance(network, sweep)
    signed = move_of(shop, sweep)
    settle(shop)
    services().deposit_moves.advance(network, sweep)
    assert {move_of(shop, each).state for each in (sweep, topup)} == {"settled"}
    assert move_of(shop, sweep).txid == signed.txid
    counter = services().store.get(NonceCounter, network=network, wallet=signed.source)
    assert counter is not None and counter.next == 1
    assert len(services().store.open_work("moved", network)) == 2
    shop.mine(REORG_DEPTH)
    shop.turn()
    assert services().store.open_work("moved", network) == []


def test_a_lost_command_is_given_again(shop: Shop) -> None:
    sweep = native_sweep(shop)
    shop.stack.drain(only=("relay",))
    (collect,) = (consumer for consumer in consumers(shop.stack.app) if consumer.name == "collect")
    collect.queue()._messages.clear()
    shop.turn()
    assert move_of(shop, sweep).state == "planned"
    later(shop)
    shop.mine()
    shop.turn()
    assert move_of(shop, sweep).state == "settled"


def test_a_fee_on_transfer_books_what_arrived(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    address = paid_address(shop, "5", "usdt")
    shop.pay(address.address, "0.01", "eth")
    shop.mine()
    shop.turn()
    sweep = plan(shop, "sweep", "usdt", address, shop.hot().address, "5")
    before = booked(shop, shop.hot().address, "usdt")
    node = bent_node(shop, monkeypatch)
    node.bend(receipt=lambda real, _txid: real if real is None or not real.moved else replace(real, amounts=(4 * USDT,)))
    settle(shop)
    assert (move_of(shop, sweep).arrived, booked(shop, shop.hot().address, "usdt") - before) == (4 * USDT, 4 * USDT)
    assert booked(shop, address.address, "usdt") == 0


def test_nothing_is_read_where_nothing_matched(shop: Shop) -> None:
    assert from_others(None, shop.realm_network(), [], {}) == []  # type: ignore[arg-type]
