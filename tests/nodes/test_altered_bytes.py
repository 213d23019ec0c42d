"""The bytes that a signer gets, altered one by one, in the real encoding of EVM networks: nothing is signed. Records altered beside
them: tests/contract/payouts/test_unhappy_orders.py; Tron's bytes: test_tron_staking.py; bundles' and moves': tests/contract.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from chalicelib.chains.evm.payer import EvmPayer
from chalicelib.chains.evm.transactions import Unsigned, decode_payload
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder
from chalicelib.encoding.keccak import keccak256
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.payouts.attempts import PayoutAttempts
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.transactions.errors import OrderMismatch, ReadersDiffer
from chalicelib.wiring import services
from tests.nodes.sending import send_native, send_token
from tests.nodes.shops import OUT, Shop
from tests.support.shop import Kms

pytestmark = pytest.mark.nodes

ETHER = 10**18
THIEF = bytes.fromhex("5e" * 20)
WORD = bytes(12) + THIEF
MUCH = (2**256 - 1).to_bytes(32)


def selector(name: str) -> bytes:
    return keccak256(name.encode())[:4]


TOKEN: dict[str, Callable[[Unsigned], Unsigned]] = {
    "recipient": lambda tx: replace(tx, data=tx.data[:4] + WORD + tx.data[36:]),
    "amount": lambda tx: replace(tx, data=tx.data[:36] + (12_500_001).to_bytes(32)),
    "token contract": lambda tx: replace(tx, to=THIEF),
    "chain": lambda tx: replace(tx, chain_id=1),
    "nonce": lambda tx: replace(tx, nonce=tx.nonce + 1),
    "ether beside it": lambda tx: replace(tx, value=1),
    "an approval": lambda tx: replace(tx, data=selector("approve(address,uint256)") + WORD + MUCH),
    "a larger allowance": lambda tx: replace(tx, data=selector("increaseAllowance(address,uint256)") + WORD + MUCH),
    "out of another's pocket": lambda tx: replace(tx, data=selector("transferFrom(address,address,uint256)") + WORD + tx.data[4:]),
    "another's code": lambda tx: replace(tx, data=selector("delegatecall(address,bytes)") + WORD + MUCH),
    "a permit": lambda tx: replace(
        tx, data=selector("permit(address,address,uint256,uint256,uint8,bytes32,bytes32)") + tx.data[4:]
    ),
    "more calldata": lambda tx: replace(tx, data=tx.data + bytes(32)),
    "no calldata": lambda tx: replace(tx, data=b""),
    "dirty address": lambda tx: replace(tx, data=tx.data[:4] + b"\x01" + tx.data[5:]),
    "gas": lambda tx: replace(tx, gas=30_000_000),
    "more gas than three plain payments": lambda tx: replace(tx, gas=300_000),
    "fee": lambda tx: replace(tx, max_fee=10**15),
}
NATIVE: dict[str, Callable[[Unsigned], Unsigned]] = {
    "recipient": lambda tx: replace(tx, to=THIEF),
    "amount": lambda tx: replace(tx, value=tx.value + 1),
    "chain": lambda tx: replace(tx, chain_id=137),
    "calldata": lambda tx: replace(tx, data=selector("transfer(address,uint256)") + WORD + MUCH),
    "more gas than three plain payments": lambda tx: replace(tx, gas=63_001),
    "creates a contract": lambda tx: replace(tx, to=b"", data=b"\x60\x00"),
}


@pytest.fixture
def rich(shop: Shop) -> Iterator[Shop]:
    ether = shop.post("/v1/invoices", currency="eth", amount="1", network="arbitrum")
    token = shop.post("/v1/invoices", currency="usdt", amount="30", network="arbitrum")
    send_native(shop.node.rpc, ether["address"], ETHER)
    send_token(shop.node.rpc, shop.usdt, token["address"], 30_000_000)
    shop.confirm()
    yield shop


def waiting(rich: Shop, kms: Kms) -> dict[str, dict[str, Callable[[Unsigned], Unsigned]]]:
    """Withdrawals whose orders wait for their signature, with the alterations of each."""
    kms.away = True
    cases = (("usdt", "12.5", TOKEN), ("eth", "0.25", NATIVE))
    made = {
        rich.post("/v1/withdraws", network="arbitrum", coin=coin, address=OUT, amount=amount)["id"]: alterations
        for coin, amount, alterations in cases
    }
    rich.run()
    kms.away = False
    kms.calls.clear()
    return made


def order_of(withdrawal: str) -> PaymentOrder:
    (order,) = (o for o in services().store.every(PaymentOrder) if o.withdrawal_id == withdrawal)
    return order


def test_no_altered_bytes_are_signed_on_an_evm_network(rich: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    kms = Kms(monkeypatch)
    made = waiting(rich, kms)
    for withdrawal, alterations in made.items():
        order = order_of(withdrawal)
        right = decode_payload(bytes.fromhex(order.unsigned.removeprefix("0x")))
        version = order.version
        for name, alter in alterations.items():
            unsigned = "0x" + alter(right).payload().hex()
            assert unsigned != order.unsigned, name
            services().store.commit([Save(replace(order, unsigned=unsigned, version=(version := version + 1)))])
            with in_realm("live"), pytest.raises(OrderMismatch):
                services().payouts.pay(order.tenant, withdrawal)
            stored = services().store.get(PaymentOrder, id=order.id)
            assert stored is not None and stored.raw is None and kms.calls["Sign"] == 0, name
            version = stored.version
        services().store.commit([Save(replace(order, version=version + 1))])
    before = rich.on_chain(OUT)
    for withdrawal in made:
        with in_realm("live"):
            services().payouts.pay(order_of(withdrawal).tenant, withdrawal)
    rich.confirm()
    assert rich.on_chain(OUT) == (before[0] + ETHER // 4, before[1] + 12_500_000)
    assert rich.available() == {"eth": "0.75", "usdt": "17.5"}


def test_the_second_reader_alone_lets_no_altered_bytes_be_signed(rich: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own check is turned off, and what it would have allowed as a fee is the right one."""
    kms = Kms(monkeypatch)
    made = waiting(rich, kms)
    monkeypatch.setattr(EvmPayer, "digest", lambda _, unsigned: keccak256(bytes.fromhex(unsigned[2:])))
    for withdrawal, alterations in made.items():
        order = order_of(withdrawal)
        right = decode_payload(bytes.fromhex(order.unsigned[2:]))
        allowed = replace(right.explain(), fee=right.gas * right.max_fee)
        monkeypatch.setattr(PayoutAttempts, "_approve", lambda *_, allowed=allowed: allowed)
        version = order.version
        for name, alter in alterations.items():
            altered = replace(order, unsigned="0x" + alter(right).payload().hex(), version=(version := version + 1))
            services().store.commit([Save(altered)])
            with in_realm("live"), pytest.raises(ReadersDiffer):
                services().payouts.pay(order.tenant, withdrawal)
            assert (order_of(withdrawal), kms.calls["Sign"]) == (altered, 0), name
        services().store.commit([Save(replace(order, version=version + 1))])
        with in_realm("live"):
            services().payouts.pay(order.tenant, withdrawal)
        assert (order_of(withdrawal).state, kms.calls["Sign"]) == ("signed", 1)
        kms.calls.clear()
