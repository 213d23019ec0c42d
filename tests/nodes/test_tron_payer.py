"""Payments on Tron, against the strict node: what it takes, what it refuses, what it forgets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.chains.providers import Health, Heard
from chalicelib.chains.tron.http import TronHttp
from chalicelib.chains.tron.payer import TronPayer
from chalicelib.chains.tron.reader import MAINNET
from chalicelib.chains.tron.sending import AFTERWARDS_MS, LIFE_MS
from chalicelib.chains.tron.transactions import decode
from chalicelib.usecases.ports.failures import InsufficientFunds, Refused, Unavailable
from tests.support.tron_chain import TRX, USDT, TronChain, TronKey, stranger

pytestmark = pytest.mark.nodes

ACCOUNT = 1_100_000
"""Sun that a transfer to a new address burns: 1 TRX for the account, 0.1 for its bytes."""


def lying(tron: TronChain, path: str, change: Callable[[Any], Any]) -> TronPayer:
    return TronPayer(tron.network, tron.lying(path, change), None)


def test_trx_to_a_new_address_makes_its_account(tron: TronChain):
    key, to = tron.funded(), stranger()
    payment = tron.payment(key, to, 5 * TRX)
    assert tron.payer.estimate(payment).fee == ACCOUNT
    receipt = tron.pay(key, to, 5 * TRX)
    assert (receipt.success, receipt.fee) == (True, ACCOUNT)
    assert (tron.reader.balance(to), tron.reader.balance(key.address)) == (5 * TRX, 95 * TRX - ACCOUNT)
    # The second time there is an account, and free bytes pay.
    assert tron.payer.estimate(payment).fee == 0
    assert tron.pay(key, to, 5 * TRX).fee == 0


def test_bytes_are_burnt_when_the_free_ones_are_used_up(tron: TronChain):
    key, to = tron.funded(), tron.funded().address
    fees = []
    for n in range(4):
        estimated = tron.payer.estimate(tron.payment(key, to, TRX, nonce=n)).fee
        receipt = tron.pay(key, to, TRX, nonce=n)
        assert receipt.fee <= estimated <= receipt.fee + 5_000
        fees.append(receipt.fee)
    assert fees[0] == 0 and fees[-1] > 200_000


def test_usdt_that_returns_false_is_paid(tron: TronChain):
    key, to = tron.funded(usdt=50), stranger()
    estimated = tron.payer.estimate(tron.payment(key, to, 20 * TRX, USDT)).fee
    receipt = tron.pay(key, to, 20 * TRX, USDT)
    assert (receipt.success, receipt.moved) == (True, ((USDT, key.address, to),))
    assert tron.reader.balance(to, USDT) == 20 * TRX
    # A fifth more energy than it took.
    assert receipt.fee < estimated <= receipt.fee * 1.25


def test_a_quote_without_a_recipient_is_that_of_a_new_one(tron: TronChain):
    """Which is what settlement asks for: accounts and first tokens cost more, and must not be a surprise."""
    key = tron.funded(usdt=5)
    assert tron.payer.estimate(tron.payment(key, key.address, 1)).fee == ACCOUNT
    holder = tron.funded(usdt=1).address
    quoted = tron.payer.estimate(tron.payment(key, key.address, 1, USDT)).fee
    assert quoted == tron.payer.estimate(tron.payment(key, stranger(), 1, USDT)).fee
    assert quoted > 1.5 * tron.payer.estimate(tron.payment(key, holder, 1, USDT)).fee


def test_what_the_bytes_say(tron: TronChain):
    key, to = tron.funded(usdt=5), stranger()
    payer = tron.payer
    native = payer.explain(payer.prepare(tron.payment(key, to, 5 * TRX, nonce=7)))
    assert (native.chain_id, native.nonce, native.recipient, native.contract, native.amount, native.sender, native.fee) == (
        None, None, to, None, 5 * TRX, key.address, ACCOUNT,
    )  # fmt: skip
    unsigned = payer.prepare(tron.payment(key, to, 3 * TRX, USDT))
    token = payer.explain(unsigned)
    assert (token.recipient, token.contract, token.amount, token.sender) == (to, USDT, 3 * TRX, key.address)
    assert token.fee > decode(bytes.fromhex(unsigned)).fee_limit > 10 * TRX
    head = tron.node.call("wallet/getnowblock")["block_header"]["raw_data"]["timestamp"]
    assert decode(bytes.fromhex(unsigned)).reference.expiration == head + LIFE_MS


def test_collecting_is_quoted_for_an_address_that_has_nothing(tron: TronChain):
    """Deposit addresses have no energy, and no free bytes left: what the hot wallet has staked lowers nothing there."""
    key = tron.funded(trx=3_000_000, usdt=5)
    unsigned = tron.staking.prepare(key.address, 2_900_000 * TRX, "ENERGY", 0)
    tron.staking.broadcast(tron.staking.assemble(unsigned, key.sign(tron.staking.digest(unsigned))).raw)
    tron.node.mine()
    quoted = tron.payer.estimate(tron.payment(key, key.address, 1, USDT))
    assert quoted.fee < ACCOUNT
    # As a deposit address would be charged: what its transfer to one that has the token took.
    poor, holder = tron.funded(trx=200, usdt=5), tron.funded(usdt=1).address
    burnt = tron.pay(poor, holder, TRX, USDT).fee
    assert burnt <= quoted.sweep <= burnt * 1.3
    native = tron.payer.estimate(tron.payment(key, key.address, 1))
    assert 200_000 < native.sweep < ACCOUNT


def test_staked_energy_pays_first(tron: TronChain):
    """The fee limit still covers all of it: the chain asks for that even where nothing is burnt."""
    key, to = tron.funded(trx=3_000_000, usdt=10), tron.funded(usdt=1).address
    before = tron.payer.estimate(tron.payment(key, to, TRX, USDT)).fee
    staking = tron.staking
    unsigned = staking.prepare(key.address, 2_900_000 * TRX, "ENERGY", 0)
    staking.broadcast(staking.assemble(unsigned, key.sign(staking.digest(unsigned))).raw)
    tron.node.mine()
    after = tron.payer.estimate(tron.payment(key, to, TRX, USDT)).fee
    assert after < before / 2
    receipt = tron.pay(key, to, TRX, USDT)
    assert receipt.success
    assert receipt.fee <= after


def test_too_little_of_anything(tron: TronChain):
    key, to = tron.funded(trx=10, usdt=1), stranger()
    for payment in (
        tron.payment(key, to, 10 * TRX),
        tron.payment(key, to, 9 * TRX),
        tron.payment(TronKey(), to, 1),
        tron.payment(key, to, 2 * TRX, USDT),
        tron.payment(TronKey(), to, 1, USDT),
    ):
        with pytest.raises(InsufficientFunds):
            tron.payer.estimate(payment)
        with pytest.raises(InsufficientFunds):
            tron.payer.prepare(payment)
    poor = tron.funded(trx=1, usdt=5)
    with pytest.raises(InsufficientFunds, match="sun of"):
        tron.payer.prepare(tron.payment(poor, to, TRX, USDT))


def test_what_would_fail_on_the_chain(tron: TronChain):
    key, to = tron.funded(usdt=5), stranger()
    tron.node.call("dev/blacklist", contract=USDT, address=key.address)
    hungry = tron.node.token(symbol="HUN", energy=[500_000, 500_000])
    tron.node.faucet(key.address, 5, hungry)
    for payment in (
        tron.payment(key, to, TRX, USDT),
        tron.payment(key, to, TRX, stranger()),
        tron.payment(key, to, TRX, hungry),
        tron.payment(key, USDT, TRX),
        tron.payment(key, key.address, TRX),
    ):
        with pytest.raises(Refused) as refused:
            tron.payer.prepare(payment)
        assert not isinstance(refused.value, InsufficientFunds)


def test_energy_that_runs_out_fails_on_the_chain(tron: TronChain):
    """The price rises between the signature and the block, so that the fee limit no longer buys enough."""
    key, to = tron.funded(usdt=5), stranger()
    _, signed = tron.signed(key, tron.payment(key, to, TRX, USDT))
    parameters = tron.node.call("wallet/getchainparameters")["chainParameter"]
    price = next(entry["value"] for entry in parameters if entry["key"] == "getEnergyFee")
    tron.node.call("dev/parameter", key="getEnergyFee", value=4 * price)
    try:
        tron.payer.broadcast(signed.raw)
        tron.node.mine()
    finally:
        tron.node.call("dev/parameter", key="getEnergyFee", value=price)
    receipt = tron.reader.receipt(signed.txid)
    assert receipt is not None
    assert (receipt.success, receipt.moved) == (False, ())
    assert receipt.fee > 0
    assert (tron.reader.balance(to, USDT), tron.reader.balance(key.address, USDT)) == (0, 5 * TRX)


def test_prices_that_nobody_pays(tron: TronChain):
    key, to = tron.funded(usdt=5), stranger()

    def dear(name: str) -> Callable[[Any], Any]:
        return lambda answer: {
            "chainParameter": [{**e, "value": e["value"] * 1_000} if e["key"] == name else e for e in answer["chainParameter"]]
        }

    in_usdt, in_trx = tron.payment(key, to, 1, USDT), tron.payment(key, to, 1)
    for name in ("getEnergyFee", "getTransactionFee", "getCreateNewAccountFeeInSystemContract"):
        payer = lying(tron, "wallet/getchainparameters", dear(name))
        with pytest.raises(Unavailable):
            payer.prepare(in_usdt)
    for garbage in ({}, [], {"chainParameter": None}, {"chainParameter": []}):
        payer = lying(tron, "wallet/getchainparameters", lambda _, garbage=garbage: garbage)
        with pytest.raises(Unavailable):
            payer.prepare(in_trx)
    words = b"this node does not support constant".hex()
    answer = {"result": {"code": "CONTRACT_VALIDATE_ERROR", "message": words}}
    payer = lying(tron, "wallet/triggerconstantcontract", lambda _: answer)
    with pytest.raises(Unavailable, match="does not run calls"):
        payer.prepare(in_usdt)


def test_equal_payments_of_one_second_are_two(tron: TronChain):
    key, to = tron.funded(), tron.funded(trx=1).address
    made = [tron.signed(key, tron.payment(key, to, TRX, nonce=n))[1] for n in (0, 1, 2)]
    assert len({signed.txid for signed in made}) == 3
    for signed in made:
        tron.payer.broadcast(signed.raw)
    tron.node.mine()
    assert tron.reader.balance(to) == 4 * TRX


def test_broadcasting_again_changes_nothing(tron: TronChain):
    key, to = tron.funded(), stranger()
    _, signed = tron.signed(key, tron.payment(key, to, TRX))
    for _ in range(3):
        tron.payer.broadcast(signed.raw)
    tron.node.mine()
    tron.payer.broadcast(signed.raw)
    tron.solidify()
    tron.payer.broadcast(signed.raw)
    assert tron.reader.balance(to) == TRX


def test_a_busy_node_is_asked_again_later(tron: TronChain):
    key, to = tron.funded(), stranger()
    _, signed = tron.signed(key, tron.payment(key, to, TRX))
    tron.node.call("dev/busy", count=1)
    with pytest.raises(Unavailable, match="SERVER_BUSY"):
        tron.payer.broadcast(signed.raw)
    tron.payer.broadcast(signed.raw)
    with pytest.raises(Unavailable, match="another transaction"):
        lying(tron, "wallet/broadcasttransaction", lambda a: {**a, "txid": "0" * 64}).broadcast(signed.raw)


def test_the_node_refuses_what_can_not_be_taken(tron: TronChain):
    key, to = tron.funded(trx=10), tron.funded().address
    _, first = tron.signed(key, tron.payment(key, to, 6 * TRX, nonce=0))
    _, second = tron.signed(key, tron.payment(key, to, 6 * TRX, nonce=1))
    tron.payer.broadcast(first.raw)
    tron.node.mine()
    with pytest.raises(InsufficientFunds, match="not sufficient"):
        tron.payer.broadcast(second.raw)
    spoiled = second.raw[:-2] + ("00" if second.raw[-2:] == "01" else "01")
    with pytest.raises(Refused, match="SIGERROR"):
        tron.payer.broadcast(spoiled)


def test_an_expired_payment_is_rebuilt_once_it_can_never_be_mined(tron: TronChain):
    key, to, payer = tron.funded(), tron.funded(trx=1).address, tron.payer
    unsigned, signed = tron.signed(key, tron.payment(key, to, TRX, nonce=5))
    tron.node.call("dev/drop", count=1)
    payer.broadcast(signed.raw)
    tron.node.mine()
    assert tron.reader.receipt(signed.txid) is None
    assert not payer.renewable(unsigned, signed.txid)
    tron.node.call("dev/time", shift_seconds=(LIFE_MS + AFTERWARDS_MS) // 1000 + 10)
    tron.node.mine()
    # Expired at the head: but the solid block is older still.
    with pytest.raises(Refused, match="EXPIRATION"):
        payer.broadcast(signed.raw)
    assert not payer.renewable(unsigned, signed.txid)
    tron.solidify()
    assert payer.renewable(unsigned, signed.txid)
    again = payer.renew(unsigned, "normal", key.address)
    with pytest.raises(ValueError, match="another wallet"):
        payer.renew(unsigned, "normal", to)
    old, new = decode(bytes.fromhex(unsigned)), decode(bytes.fromhex(again))
    assert (new.owner, new.recipient, new.amount, new.contract) == (old.owner, old.recipient, old.amount, old.contract)
    assert new.reference.timestamp % 1000 == old.reference.timestamp % 1000 == 5
    assert new.txid != old.txid
    payer.broadcast(payer.assemble(again, key.sign(payer.digest(again))).raw)
    tron.node.mine()
    assert tron.reader.balance(to) == 2 * TRX


def test_every_node_must_say_that_a_payment_is_dead(tron: TronChain):
    """No nonce keeps a second payment out of the chain: one node that does not know the first is no proof."""
    key = tron.funded()
    unsigned, signed = tron.signed(key, tron.payment(key, stranger(), TRX))
    tron.payer.broadcast(signed.raw)
    tron.node.call("dev/time", shift_seconds=(LIFE_MS + AFTERWARDS_MS) // 1000 + 10)
    tron.node.mine()
    tron.solidify()

    class Ignorant:
        def call(self, method: str, params: Any = ()) -> Any:
            return {} if "bytxid" in method or "byid" in method else tron.http.call(method, params)

        def batch(self, requests: Any) -> list[Any]:
            return [self.call(*request) for request in requests]

    ignorant, network = Ignorant(), tron.network
    assert TronPayer(network, ignorant, None).renewable(unsigned, signed.txid)
    assert not TronPayer(network, ignorant, None, [ignorant, tron.http]).renewable(unsigned, signed.txid)
    silent = TronHttp("http://127.0.0.1:9")
    with pytest.raises(Unavailable):
        TronPayer(network, ignorant, None, [ignorant, silent]).renewable(unsigned, signed.txid)
    # Silencing one node for long enough to lose its vote leaves the liar: the caller says whether so much is at stake.
    voteless = Health(2)
    heard = Heard(silent, voteless)
    with pytest.raises(Unavailable):
        heard.call("wallet/getnodeinfo")
    voteless.has_vote = False
    assert heard.voteless
    with pytest.raises(Unavailable):
        TronPayer(network, ignorant, None, [ignorant, heard]).renewable(unsigned, signed.txid)
    assert TronPayer(network, ignorant, None, [ignorant, heard]).renewable(unsigned, signed.txid, every_node=False)
    assert not TronPayer(network, ignorant, None, [tron.http, heard]).renewable(unsigned, signed.txid, every_node=False)
    with pytest.raises(Unavailable):  # nobody is left
        TronPayer(network, ignorant, None, [heard]).renewable(unsigned, signed.txid, every_node=False)
    voteless.has_vote = True
    with pytest.raises(Unavailable):
        TronPayer(network, ignorant, None, [ignorant, heard]).renewable(unsigned, signed.txid, every_node=False)
    with pytest.raises(Unavailable, match="another chain"):
        TronPayer(network, ignorant, MAINNET).renewable(unsigned, signed.txid)


def test_what_is_in_a_block_is_never_renewable(tron: TronChain):
    key, to, payer = tron.funded(), stranger(), tron.payer
    unsigned, signed = tron.signed(key, tron.payment(key, to, TRX))
    payer.broadcast(signed.raw)
    tron.node.mine()
    tron.node.call("dev/time", shift_seconds=(LIFE_MS + AFTERWARDS_MS) // 1000 + 10)
    tron.solidify()
    tron.node.mine()
    assert not payer.renewable(unsigned, signed.txid)
    # Refused as expired, and yet in the chain: done.
    payer.broadcast(signed.raw)
    # A machine behind the same name that is not as far.
    for path in ("walletsolidity/gettransactioninfobyid", "wallet/gettransactioninfobyid", "walletsolidity/gettransactionbyid"):
        assert not lying(tron, path, lambda _: {}).renewable(unsigned, signed.txid)
    with pytest.raises(Unavailable):
        lying(tron, "walletsolidity/getblock", lambda _: {}).renewable(unsigned, signed.txid)
