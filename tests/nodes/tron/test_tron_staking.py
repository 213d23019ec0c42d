"""Live Tron through the whole stack: paid in TRX and USDT, paid out, TRX staked. KMS signs; the strict node takes or refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.chains.tron.reader import TronReader
from chalicelib.chains.tron.staking import TronStaking
from chalicelib.chains.tron.transactions import decode
from chalicelib.domain import ledger
from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.chain import Receipt
from chalicelib.domain.ids import AssetId
from chalicelib.domain.money import Amount
from chalicelib.domain.transactions.given_up import GivenUp
from chalicelib.domain.transactions.outgoing import Attempt
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.treasury.stakes import Stake, stake_work
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.ports.changes import Open, Post, Save
from chalicelib.usecases.ports.signing import Signature
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.wiring import services
from tests.nodes.tron_shops import CONFIRMATIONS, TRON, Shop
from tests.support.shop import Kms
from tests.support.treasury import address_of, plan_units
from tests.support.tron_chain import TRX, USDT, stranger

pytestmark = pytest.mark.nodes


def test_paid_in_trx_and_usdt_and_paid_out(shop: Shop):
    made = [
        shop.call("POST", "/v1/invoices", json={"currency": coin, "amount": amount, "network": "tron"})
        for coin, amount in (("trx", "75"), ("usdt", "120.5"))
    ]
    shop.node.faucet(made[0]["address"], 75)
    shop.node.faucet(made[1]["address"], "120.5", "USDT")
    shop.run()
    shop.confirm()
    for invoice in made:
        assert shop.call("GET", "/v1/invoices", query={"id": invoice["id"]})["status"] == "completed"
    to = stranger()
    sent = [
        shop.call("POST", "/v1/withdraws", json={"network": "tron", "coin": coin, "address": to, "amount": amount})
        for coin, amount in (("trx", "25"), ("usdt", "20.5"))
    ]
    shop.run()
    shop.confirm()
    for withdrawal in sent:
        assert shop.call("GET", f"/v1/withdrawals/{withdrawal['id']}")["data"]["status"] == "confirmed"
    assert (shop.on_chain(to), shop.on_chain(to, USDT)) == (25 * TRX, 20_500_000)
    assert shop.booked("usdt") == shop.on_chain(shop.hot(), USDT) == 979_500_000
    assert shop.booked() < 99_975 * TRX


def test_usdt_is_swept_after_its_top_up_and_built_anew_after_its_end(shop: Shop):
    coins = services().catalogue("live").coins
    trx, usdt = coins["tron", "trx"], coins["tron", "usdt"]
    made = shop.call("POST", "/v1/invoices", json={"currency": "usdt", "amount": "5", "network": "tron"})
    shop.node.faucet(made["address"], "5", "USDT")
    shop.confirm()
    address = address_of(made["address"])
    topup = plan_units(trx, "topup", shop.hot(), address.address, 40 * TRX)
    shop.run("collect")
    shop.confirm()
    assert shop.on_chain(address.address) == 40 * TRX
    shop.node.call("dev/drop", count=1)
    sweep = plan_units(usdt, "sweep", address, shop.hot(), 5_000_000)
    assert shop.stack.drain(only=("relay", "collect")).settled
    first = services().store.get(Move, network=TRON, id=sweep)
    shop.expire()
    shop.run("collect")
    shop.confirm()
    moves = {name: services().store.get(Move, network=TRON, id=name) for name in (topup, sweep)}
    assert first is not None and [m.state for m in moves.values() if m is not None] == ["settled", "settled"]
    swept = moves[sweep]
    assert swept is not None and [attempt.txid for attempt in swept.earlier] == [first.txid]
    assert (shop.on_chain(address.address, USDT), shop.on_chain(address.address)) == (0, 40 * TRX - swept.fee)
    assert shop.booked("usdt") == shop.on_chain(shop.hot(), USDT)
    # On the same day the TRX go as well, and their bytes have to be paid for: the sweep has used up the free ones.
    left = shop.on_chain(address.address)
    bare = plan_units(trx, "sweep", address, shop.hot(), left, bare=True)
    shop.run("collect")
    shop.confirm()
    gone = services().store.get(Move, network=TRON, id=bare)
    assert gone is not None and (gone.state, gone.reason, gone.amount) == ("settled", None, left - gone.fee)
    assert gone.fee > 0 and shop.on_chain(address.address) == 0


# The sweep: test_absent_receipts.py drops a payment on Tron and pays it once, at the very block that proves it, and stays.
@pytest.mark.sweep
def test_a_withdrawal_that_the_node_forgot_is_rebuilt_after_its_end_and_paid_once(shop: Shop):
    shop.paid(75)
    to = stranger()
    shop.node.call("dev/drop", count=1)
    sent = shop.withdraw(to, 25)
    # Only what was dropped: the poll would send it again.
    assert shop.stack.drain(only=("relay", "payout")).settled
    first = shop.order(sent)
    assert first.txid is not None
    shop.expire()
    shop.run("housekeeping")
    renewed = shop.order(sent)
    assert renewed.id == first.id and renewed.txid != first.txid
    assert [attempt.txid for attempt in renewed.earlier] == [first.txid]
    shop.confirm()
    assert shop.on_chain(to) == 25 * TRX
    shown = shop.call("GET", f"/v1/withdrawals/{sent}")["data"]
    assert (shown["status"], shown["transaction_hash"]) == ("confirmed", renewed.txid)


def test_stakes_for_both_resources(shop: Shop):
    before, frozen, slow = shop.booked(), shop.frozen("ENERGY"), shop.frozen("BANDWIDTH")
    energy, bandwidth = shop.stake("1000.5"), shop.stake("200", "BANDWIDTH")
    assert energy | {"transactionId": ""} == {"transactionId": "", "amount": "1000.5", "resource": "ENERGY", "status": "pending"}
    shop.run()
    shop.node.mine()
    shop.run()
    assert [entry["status"] for entry in shop.stakes()[:2]] == ["pending", "pending"]
    shop.confirm()
    done = {entry["transactionId"] for entry in shop.stakes() if entry["status"] == "confirmed"}
    assert {energy["transactionId"], bandwidth["transactionId"]} <= done
    listed = shop.call("GET", "/v1/transactions", shop.admin, query={"type": "stake", "status": "confirmed"})["data"]
    assert {one["hash"] for one in listed} == done and all(one["from"] == shop.hot() for one in listed)
    assert (shop.frozen("ENERGY") - frozen, shop.frozen("BANDWIDTH") - slow) == (1_000_500_000, 200 * TRX)
    assert before - 1_200_500_000 - TRX < shop.booked() <= before - 1_200_500_000


def test_equal_stakes_are_two(shop: Shop):
    frozen = shop.frozen("ENERGY")
    first, second = shop.stake("10"), shop.stake("10")
    assert first["transactionId"] != second["transactionId"]
    shop.run()
    shop.confirm()
    assert shop.frozen("ENERGY") - frozen == 20 * TRX


def test_a_stake_that_the_node_forgot_is_made_anew_once(shop: Shop):
    frozen = shop.frozen("ENERGY")
    shop.node.call("dev/drop", count=1)
    first = shop.stake("50")
    assert shop.stack.drain(only=("relay", "payout")).settled
    shop.expire()
    shop.run()
    shown = shop.stakes()[0]
    assert shown["status"] == "pending" and shown["transactionId"] != first["transactionId"]
    shop.confirm()
    assert (shop.stakes()[0]["status"], shop.frozen("ENERGY") - frozen) == ("confirmed", 50 * TRX)


# The sweep: the test above makes a forgotten stake anew, and the one that the node takes again stays.
@pytest.mark.parametrize("forgotten", [False, pytest.param(True, marks=pytest.mark.sweep)])
def test_a_final_stake_that_falls_out_of_the_chain_is_undone_and_made_once_again(shop: Shop, forgotten: bool):
    """By the same bytes where the node takes them; by others once those can never be mined any more."""
    frozen, held = shop.frozen("ENERGY"), shop.booked()
    first = shop.stake("70")
    shop.run()
    shop.confirm()
    assert shop.stakes()[0] == first | {"status": "confirmed"}
    if forgotten:
        shop.node.call("dev/drop", count=100)
    shop.node.reorg(CONFIRMATIONS + 5)
    shop.run()
    assert shop.stakes()[0] == first | {"status": "pending"}
    assert shop.booked() == held
    if forgotten:
        shop.node.call("dev/drop", count=0)
        shop.expire()
        shop.run()
    shop.confirm()
    again = shop.stakes()[0]
    assert again["status"] == "confirmed" and (again["transactionId"] != first["transactionId"]) == forgotten
    assert shop.frozen("ENERGY") - frozen == 70 * TRX


def test_a_stake_whose_coins_are_gone_fails_only_when_it_can_never_be_mined(shop: Shop):
    """Something else used up the wallet between the order and the block."""
    frozen, held = shop.frozen("ENERGY"), shop.booked()
    wallet = services().store.get(Wallet, network=TRON, role="hot")
    node = services().staking_node(services().catalogue("live").networks["tron"])
    assert wallet is not None
    behind = held - 1_000 * TRX
    other = node.prepare(shop.hot(), behind, "BANDWIDTH", 7)
    staked = shop.stake("4000")
    signed = node.assemble(other, services().signer.sign(wallet, node.digest(other)))
    node.broadcast(signed.raw)
    shop.run()
    shop.confirm()
    assert shop.stakes()[0] == staked
    shop.expire()
    shop.run()
    assert shop.stakes()[0] == staked | {"status": "failed"}
    watched = {found.kind for work in services().store.open_work("givenup", TRON) if (found := given_up(work.id)) is not None}
    assert watched == {"stake"}, "it is watched on"
    assert shop.frozen("ENERGY") == frozen
    adjust(shop, behind, held - behind - shop.on_chain(shop.hot()))
    shop.node.faucet(shop.hot(), 10_000)
    shop.confirm()


def given_up(id: str) -> GivenUp | None:
    return services().store.get(GivenUp, id=id)


def adjust(shop: Shop, units: int, burnt: int) -> None:
    """Book the stake that the test made behind the service's back."""
    asset = services().catalogue("live").native("tron").asset
    entry = ledger.staked(
        "behind", 0, services().clock.now_ms(), "live", TRON, shop.hot(), Amount(asset, units), Amount(asset, burnt)
    )
    services().store.commit([Post(entry)])


def test_nothing_but_the_ordered_stake_is_signed(shop: Shop, caplog: pytest.LogCaptureFixture):
    frozen, made = shop.frozen("ENERGY"), shop.stake("10")
    stake = shop.staked(made)
    assert stake.unsigned is not None
    network = services().catalogue("live").networks["tron"]
    node = services().staking_node(network)
    real = decode(bytes.fromhex(stake.unsigned))
    signed: list[bytes] = []

    class Refusing:
        def sign(self, wallet: Wallet, digest: bytes) -> Signature:
            signed.append(digest)
            raise AssertionError("signed")

    services().stake_signing._signer = Refusing()  # type: ignore[assignment]
    version, thief = stake.version, replace(real, owner=stranger())
    wrong = [
        replace(real, amount=11 * TRX), replace(real, resource="BANDWIDTH"), thief,
        replace(real, kind="TransferContract", recipient=stranger(), resource=None),
    ]  # fmt: skip
    altered = [
        *(replace(stake, unsigned=each.encode().hex(), hash=each.txid) for each in wrong),
        replace(stake, unsigned=thief.encode().hex(), hash=thief.txid, wallet=thief.owner),
        replace(stake, wallet=thief.owner), replace(stake, amount=9 * TRX), replace(stake, hash="77" * 32),
        replace(stake, unsigned="00"), replace(stake, unsigned=None),
    ]  # fmt: skip
    for number, record in enumerate(altered):
        services().store.commit([Save(replace(record, version=(version := version + 1)))])
        caplog.clear()
        with in_realm("live"), pytest.raises(OrderMismatch, match=stake.id):
            services().stake_signing.sign(TRON, stake.id)
        dropped = services().store.get(Stake, network=TRON, id=stake.id)
        assert dropped is not None and (dropped.status, dropped.raw, signed) == ("failed", None, []), number
        assert caplog.text.count("ALARM") == 1 and services().store.open_work("stake", TRON) == [], number
        version = dropped.version
        services().store.commit([Save(replace(stake, version=(version := version + 1))), Open(stake_work(stake))])
    assert node.explain(stake.unsigned).txid == stake.hash
    services().stake_signing._signer = services().signer
    shop.run()
    shop.confirm()
    assert shop.frozen("ENERGY") - frozen == 10 * TRX


def test_two_mined_stakes_are_an_alarm(shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    """By a node's word, that is: one is signed once the other has expired."""
    shop.node.call("dev/drop", count=1)
    first = shop.stake("5")["transactionId"]
    assert shop.stack.drain(only=("relay", "payout")).settled
    shop.expire()
    shop.run()
    second = shop.stakes()[0]["transactionId"]
    shop.node.mine()
    real = TronReader.receipt
    with monkeypatch.context() as patch:
        patch.setattr(TronReader, "receipt", lambda reader, txid: real(reader, second if txid == first else txid))
        shop.run()
    assert first != second and f"{second} and {first} are both in the chain" in caplog.text
    shop.confirm()


def test_a_stake_that_a_node_has_in_another_block_is_waited_for(shop: Shop, monkeypatch: pytest.MonkeyPatch):
    """It may be mined: it is neither sent again nor replaced before the nodes agree about the block, as with payments."""
    made, sent = shop.stake("5"), list[str]()
    assert shop.stack.drain(only=("relay", "payout")).settled
    shop.node.mine()
    real = TronReader.receipt

    def elsewhere(reader: TronReader, txid: str) -> Receipt | None:
        found = real(reader, txid)
        return None if found is None else replace(found, block_hash="77" * 32)

    with monkeypatch.context() as patch:
        patch.setattr(TronReader, "receipt", elsewhere)
        patch.setattr(TronStaking, "broadcast", lambda _, raw: sent.append(raw))
        # The block may not be scanned yet: receipts alone say so.
        patch.setattr("chalicelib.usecases.transactions.losses.Losses.met", lambda *_: False)
        with in_realm("live"):
            services().wiring.stakes.stake_following(services().catalogue("live").networks["tron"]).work(lambda: True)
    assert sent == []
    shop.confirm()
    assert shop.stakes()[0]["transactionId"] == made["transactionId"]


def test_an_altered_stake_is_not_replaced(shop: Shop, caplog: pytest.LogCaptureFixture):
    """What replaces a stake rests on what was signed, not on what its record says of it; and it is replaced 24 times at most."""
    frozen = shop.frozen("ENERGY")
    shop.node.call("dev/drop", count=1)
    made = shop.stake("10")
    assert shop.stack.drain(only=("relay", "payout")).settled
    shop.expire()
    stake = shop.staked(made)
    assert stake.unsigned is not None and stake.raw is not None
    more = replace(decode(bytes.fromhex(stake.unsigned)), amount=11 * TRX)
    forged = replace(stake, unsigned=more.encode().hex(), hash=more.txid)
    altered = {
        "amount": replace(stake, amount=11 * TRX),
        "resource": replace(stake, resource="BANDWIDTH"),
        "wallet": replace(stake, wallet=stranger()),
        "coin": replace(stake, asset=AssetId(f"{stake.asset}-like")),
        "nothing signed": replace(stake, raw="00"),
        "id": replace(stake, hash="77" * 32),
        "bytes": forged,
        "bytes and amount": replace(forged, amount=11 * TRX),
        "no bytes": replace(stake, unsigned=None),
    }
    signer, signed = services().signer, list[bytes]()

    class Counting:
        def sign(self, wallet: Wallet, digest: bytes) -> Signature:
            signed.append(digest)
            return signer.sign(wallet, digest)

    services().stake_signing._signer = Counting()  # type: ignore[assignment]
    version = stake.version
    for name, record in altered.items():
        services().store.commit([Save(replace(record, renew=True, version=(version := version + 1)))])
        caplog.clear()
        with in_realm("live"), pytest.raises(OrderMismatch, match=stake.id):
            services().stake_signing.sign(TRON, stake.id)
        assert signed == [] and "ALARM" in caplog.text and "differs from what was signed" in caplog.text, name
    often = tuple(Attempt(stake.raw, stake.txid, 0, n) for n in range(24))
    services().store.commit([Save(replace(stake, renew=True, earlier=often, version=(version := version + 1)))])
    with in_realm("live"):
        services().stake_signing.sign(TRON, stake.id)
    assert signed == [] and "was replaced 24 times" in caplog.text
    services().store.commit([Save(replace(stake, version=version + 1))])
    shop.run()
    assert len(signed) == 1
    services().stake_signing._signer = signer
    shop.confirm()
    assert shop.frozen("ENERGY") - frozen == 10 * TRX


# The sweep: a resource is compared as an amount is, and the amount stays.
@pytest.mark.parametrize(
    ("altered", "named"),
    [
        ({"amount": 50 * TRX}, "amount"),
        pytest.param({"resource": "BANDWIDTH"}, "resource", marks=pytest.mark.sweep),
        ({"raw": "00"}, "signed bytes"),
        ({"raw": None, "amount": 50 * TRX}, "amount"),
    ],
)
def test_a_stake_is_not_booked_by_an_altered_record(shop: Shop, altered: Any, named: str, caplog: pytest.LogCaptureFixture):
    store, before = services().store, shop.booked()
    made = shop.stake("10")
    shop.run()
    stake = shop.staked(made)
    assert stake.raw is not None
    store.commit([Save(replace(stake, **altered, version=stake.version + 1))])
    shop.confirm()
    now = store.get(Stake, network=TRON, id=stake.id)
    assert now is not None and (now.status, shop.booked()) == ("pending", before)
    assert f"stake {stake.id} differs from what was signed in {named}" in caplog.text
    store.commit([Save(replace(stake, version=now.version + 1))])
    shop.confirm()
    done = store.get(Stake, network=TRON, id=stake.id)
    assert done is not None and (done.status, shop.booked()) == ("confirmed", before - 10 * TRX - done.fee)


def test_nothing_but_the_approved_payment_is_signed(shop: Shop, monkeypatch: pytest.MonkeyPatch):
    shop.paid(25, "usdt")
    kms, payee = Kms(monkeypatch), stranger()
    order = shop.unsigned(kms, payee, 10, "usdt")
    withdrawal, real, version = order.withdrawal_id, decode(bytes.fromhex(order.unsigned)), order.version
    transfer = "a9059cbb"
    assert order.unsigned.count(transfer) == 1
    altered = [
        replace(real, owner=stranger()), replace(real, contract=stranger()), replace(real, recipient=stranger()),
        replace(real, amount=11 * TRX), replace(real, fee_limit=10**12), replace(real, kind="TransferContract", contract=None),
    ]  # fmt: skip
    calls = {"approve": "095ea7b3", "transferFrom": "23b872dd", "increaseAllowance": "39509351", "anything": "00000000"}
    for unsigned in (
        *(wrong.encode().hex() for wrong in altered), *(order.unsigned.replace(transfer, call) for call in calls.values()),
        order.unsigned + "00", order.unsigned[:-2],
    ):  # fmt: skip
        assert unsigned != order.unsigned
        services().store.commit([Save(replace(order, unsigned=unsigned, version=version + 1))])
        with in_realm("live"), pytest.raises(OrderMismatch):
            services().payouts.pay(order.tenant, withdrawal)
        stored = services().store.get(PaymentOrder, id=order.id)
        assert stored is not None and (stored.raw, kms.calls["Sign"]) == (None, 0)
        version = stored.version
    services().store.commit([Save(replace(order, unsigned="", version=version + 1))])
    with in_realm("live"):
        services().payouts.pay(order.tenant, withdrawal)
    shop.confirm()
    assert shop.on_chain(payee, USDT) == 10 * TRX


def test_a_payment_that_the_token_refuses_has_failed(shop: Shop):
    """Frozen by the issuer between the signature and the block, at a node that was busy first: by the receipt it has failed."""
    shop.paid(25, "usdt")
    before, to = shop.call("GET", "/v1/balances")["data"], stranger()
    shop.node.call("dev/busy", count=1)
    withdrawal = shop.withdraw(to, 10, "usdt")
    shop.stack.drain(only=("relay", "payout"), failures="count", rounds=1)
    assert shop.call("GET", f"/v1/withdrawals/{withdrawal}")["data"]["status"] == "broadcasting"
    shop.node.call("dev/blacklist", contract=USDT, address=shop.hot())
    shop.run("housekeeping")
    shop.confirm()
    shop.node.call("dev/blacklist", contract=USDT, address=shop.hot(), on=False)
    shown = shop.call("GET", f"/v1/withdrawals/{withdrawal}")["data"]
    assert (shown["status"], shop.on_chain(to, USDT)) == ("failed", 0)
    assert shop.call("GET", "/v1/balances")["data"] == before
    assert shop.booked("usdt") == shop.on_chain(shop.hot(), USDT)


def test_what_can_not_be_staked_live(shop: Shop):
    too_much = shop.stack.call("POST", "/v1/networks/tron/stake", shop.admin, json={"amount": "500100", "resource": "ENERGY"})
    assert (too_much.status, too_much.json["error"]["code"]) == (400, "INSUFFICIENT_BALANCE")
    shop.call("PUT", "/v1/networks", shop.admin, json={"network": "tron", "rpcUrl": "http://127.0.0.1:9"})
    silent = shop.stack.call("POST", "/v1/networks/tron/stake", shop.admin, json={"amount": "5", "resource": "ENERGY"})
    assert (silent.status, silent.json["error"]["code"]) == (400, "VALIDATION_ERROR")
    assert "does not answer" in silent.json["error"]["message"]
    shop.call("PUT", "/v1/networks", shop.admin, json={"network": "tron", "rpcUrl": shop.node.url})


def test_tokens_are_registered_from_their_contracts(shop: Shop):
    contract = shop.node.token(symbol="NEW", name="New Token", decimals=9)
    body = {"network": "tron", "contractAddress": contract}
    shown = shop.call("PUT", "/v1/coins/precreate-token", shop.admin, json=body)
    assert (shown["symbol"], shown["name"], shown["decimals"]) == ("NEW", "New Token", 9)
    nothing = shop.stack.call("PUT", "/v1/coins/precreate-token", shop.admin, json=body | {"contractAddress": stranger()})
    assert nothing.status == 400
    assert b"VALIDATION_ERROR" in nothing.body and b"no contract" in nothing.body
