"""Recipients that burn gas when they are paid: contracts, and accounts with delegated code (EIP-7702). On anvil.

Nobody makes us burn more gas than three times what a plain payment takes, and no fee that is worth more than the payment.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from chalicelib import wiring
from chalicelib.chains.evm.transactions import decode_payload
from chalicelib.chains.rpc import JsonRpc
from chalicelib.domain.money import format_units, parse_units
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.wiring import services
from infra.local.aws import LocalAws
from infra.local.nodes import mine
from tests.nodes import shops
from tests.nodes.grounds import EvmGround
from tests.nodes.merchants import Merchant, open_shop
from tests.support.shop import Kms

pytestmark = pytest.mark.nodes

NETWORKS = ("arbitrum", "ethereum") if os.environ.get("SWEEP") == "full" else ("arbitrum",)
"""What is on ethereum runs in the sweep alone."""
PLAIN = 21_000
_PER_ROUND = 26
"""JUMPDEST 1, PUSH1 3, SWAP1 3, SUB 3, DUP1 3, PUSH1 3, JUMPI 10."""


def burner(gas: int) -> str:
    """Code that counts down and stops: PUSH3 n, JUMPDEST, PUSH1 1, SWAP1, SUB, DUP1, PUSH1 4, JUMPI, STOP. It takes every call."""
    return f"0x62{gas // _PER_ROUND:06x}5b6001900380600457" + "00"


class Kept(NamedTuple):
    """A merchant with a whole coin, to go back to."""

    merchant: Merchant
    state: shops.Kept

    @contextmanager
    def back(self) -> Iterator[Merchant]:
        """The merchant as it was made; the books are whole at the end."""
        with self.merchant.stack.aws.active():
            assert self.state.back()
            yield self.merchant
            assert audit(services().store) == []


@pytest.fixture(scope="module")
def kept(running_aws: LocalAws) -> Iterator[dict[str, Kept]]:
    """By network."""
    with ExitStack() as stopping, pytest.MonkeyPatch.context() as patch:
        found = {}
        for slug in NETWORKS:
            ground = EvmGround(slug)
            stopping.callback(ground.stop)
            with running_aws.active():
                made = open_shop(running_aws, ground, patch)
                bill = made.bill(10)
                ground.pay(bill["address"], made.units(10))
                made.confirm()
                assert made.available() == "1"
                found[slug] = Kept(made, shops.Kept(made.stack, ground.node.rpc))
        yield found


@pytest.fixture(params=["arbitrum", pytest.param("ethereum", marks=pytest.mark.sweep)])
def merchant(kept: dict[str, Kept], request: pytest.FixtureRequest) -> Iterator[Merchant]:
    """A merchant with a whole coin; the hot wallet pays the fees."""
    with kept[request.param].back() as made:
        yield made


@pytest.fixture
def paying(kept: dict[str, Kept], monkeypatch: pytest.MonkeyPatch) -> Iterator[Merchant]:
    """The same on arbitrum, where the merchant pays the fees."""
    monkeypatch.setenv("WITHDRAWAL_FEE_PAYER", "merchant")
    with kept["arbitrum"].back() as made:
        yield made
    wiring.forget()


def put_code(merchant: Merchant, code: str) -> str:
    """A new address that has `code`."""
    address = "0x" + secrets.token_hex(20)
    merchant.ground.node.rpc.call("anvil_setCode", [address, code])  # type: ignore[attr-defined]
    return address


def delegated(merchant: Merchant, code: str) -> str:
    """An account that has set its code to `code` (EIP-7702: 0xef0100, then the address of who has the code)."""
    return put_code(merchant, "0xef0100" + put_code(merchant, code)[2:])


def least(merchant: Merchant) -> str:
    """The least amount that is taken: as much as the quoted fee."""
    quoted = merchant.call("GET", "/v1/withdrawals/fees", 200, query={"network": merchant.slug, "coin": merchant.coin})
    return str(next(e["fee"] for e in quoted["data"]["estimates"] if e["priority"] == "normal"))


def withdraw(merchant: Merchant, address: str, amount: str) -> str:
    body = {"network": merchant.slug, "coin": merchant.coin, "address": address, "amount": amount}
    return str(merchant.call("POST", "/v1/withdraws", 201, json=body)["id"])


def hot(merchant: Merchant) -> int:
    from chalicelib.domain.addresses.addresses import Wallet

    wallet = services().store.get(Wallet, network=merchant.network.id, role="hot")
    assert wallet is not None
    return merchant.ground.received(wallet.address)


def burns(merchant: Merchant) -> int:
    """Gas that went through before: under what nothing pays for, on either network."""
    return 1_200_000 if merchant.slug == "arbitrum" else 85_000


@pytest.mark.parametrize("kind", ["contract", pytest.param("delegated code", marks=pytest.mark.sweep)])
def test_who_burns_gas_is_not_paid_at_our_expense(merchant: Merchant, kind: str) -> None:
    before = hot(merchant)
    make = put_code if kind == "contract" else delegated
    taken = withdraw(merchant, make(merchant, burner(burns(merchant))), least(merchant))
    merchant.run()
    merchant.confirm()
    shown = merchant.withdrawal(taken)
    assert (shown["status"], shown.get("transaction_hash")) == ("failed", None)
    assert "three times" in shown["failure_reason"] and "gas" in shown["failure_reason"]
    assert (merchant.available(), hot(merchant)) == ("1", before)


def test_an_operators_word_does_not_change_that(merchant: Merchant) -> None:
    taken = withdraw(merchant, put_code(merchant, burner(burns(merchant))), "0.01")
    merchant.run()
    assert merchant.withdrawal(taken)["status"] == "failed"
    merchant.operator("PUT", "/v1/withdrawals/request/accept", 404, json={"id": taken})


@pytest.mark.parametrize("kind", [pytest.param("contract", marks=pytest.mark.sweep), "delegated code"])
def test_a_wallet_that_is_a_contract_is_paid(merchant: Merchant, kind: str) -> None:
    """What wallets do when they are paid (an event, a proxy's call) takes less than the plain payment itself."""
    make = put_code if kind == "contract" else delegated
    address = make(merchant, burner(9_000))
    taken = withdraw(merchant, address, "0.25")
    merchant.run()
    merchant.confirm()
    assert merchant.withdrawal(taken)["status"] == "confirmed"
    assert merchant.ground.received(address) == merchant.units(10) // 4


@pytest.mark.parametrize("kind", [pytest.param("contract", marks=pytest.mark.sweep), "delegated code"])
def test_who_turns_to_burn_after_the_estimate_burns_no_more_than_the_bound(merchant: Merchant, kind: str) -> None:
    """Cheap when it is estimated, burning when it is executed: the gas limit that was signed ends it."""
    rpc = merchant.ground.node.rpc  # type: ignore[attr-defined]
    code = put_code(merchant, burner(30_000))
    address = code if kind == "contract" else put_code(merchant, "0xef0100" + code[2:])
    rpc.call("evm_setAutomine", [False])
    before = hot(merchant)
    taken = withdraw(merchant, address, "0.01")
    merchant.run()
    shown = merchant.withdrawal(taken)
    assert shown["status"] == "confirming"
    signed = rpc.call("eth_getTransactionByHash", [shown["transaction_hash"]])
    assert PLAIN < int(signed["gas"], 16) <= 3 * PLAIN
    rpc.call("anvil_setCode", [code, burner(10_000_000)])
    mine(rpc)
    rpc.call("evm_setAutomine", [True])
    merchant.confirm()
    shown = merchant.withdrawal(taken)
    assert shown["status"] == "failed"
    receipt = rpc.call("eth_getTransactionReceipt", [shown["transaction_hash"]])
    assert int(receipt["gasUsed"], 16) <= 3 * PLAIN
    burnt = int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
    assert (merchant.available(), before - hot(merchant)) == ("1", burnt)
    assert burnt < merchant.units(10) // 100


def test_bytes_with_more_gas_are_not_signed_and_their_nonce_is_used_all_the_same(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Altered after they were stored, and by then the recipient burns: others are built with the same nonce, within the bound."""
    rpc, kms = merchant.ground.node.rpc, Kms(monkeypatch)  # type: ignore[attr-defined]
    address = put_code(merchant, burner(30_000))
    kms.away = True
    taken = withdraw(merchant, address, "0.01")
    merchant.run()
    (order,) = services().store.every(PaymentOrder)
    more = replace(decode_payload(bytes.fromhex(order.unsigned.removeprefix("0x"))), gas=100_000)
    services().store.commit([Save(replace(order, unsigned="0x" + more.payload().hex(), version=order.version + 1))])
    rpc.call("anvil_setCode", [address, burner(10_000_000)])
    kms.away = False
    kms.calls.clear()
    with in_realm("live"), pytest.raises(OrderMismatch, match="gas"):
        services().payouts.pay(order.tenant, taken)
    assert kms.calls["Sign"] == 0
    with in_realm("live"):
        services().payouts.pay(order.tenant, taken)
    behind = withdraw(merchant, merchant.ground.out, "0.25")
    merchant.run()
    merchant.confirm()
    receipt = rpc.call("eth_getTransactionReceipt", [merchant.withdrawal(taken)["transaction_hash"]])
    assert int(receipt["gasUsed"], 16) <= 3 * PLAIN
    assert [merchant.withdrawal(w)["status"] for w in (taken, behind)] == ["failed", "confirmed"]


def test_what_is_plain_is_measured_with_the_parent_chains_data(kept: dict[str, Kept], monkeypatch: pytest.MonkeyPatch) -> None:
    """Arbitrum's estimates have gas for that in them, of every payment: here 300,000."""
    real_call, real_batch = JsonRpc.call, JsonRpc.batch

    def more(method: str, told: Any) -> Any:
        return hex(int(told, 16) + 300_000) if method == "eth_estimateGas" else told

    def call(rpc: JsonRpc, method: str, parameters: Any = ()) -> Any:
        return more(method, real_call(rpc, method, parameters))

    def batch(rpc: JsonRpc, requests: Any) -> list[Any]:
        return [more(method, told) for (method, _), told in zip(requests, real_batch(rpc, requests), strict=True)]

    with kept["arbitrum"].back() as merchant:
        with monkeypatch.context() as patch:
            patch.setattr(JsonRpc, "call", call)
            patch.setattr(JsonRpc, "batch", batch)
            paid = withdraw(merchant, put_code(merchant, burner(9_000)), "0.1")
            refused = withdraw(merchant, put_code(merchant, burner(700_000)), "0.1")
            merchant.run()
        merchant.confirm()
        assert [merchant.withdrawal(w)["status"] for w in (paid, refused)] == ["confirmed", "failed"]


def test_where_the_merchant_pays_the_excess_is_reserved(paying: Merchant) -> None:
    address = put_code(paying, burner(400_000))
    taken = withdraw(paying, address, "0.01")
    plain = paying.withdrawal(taken)["fee_charged"]
    paying.run()
    shown = paying.withdrawal(taken)
    assert shown["status"] == "confirming"
    reserved = parse_units(shown["fee_charged"], 18)
    assert reserved > 10 * parse_units(plain, 18)
    before = hot(paying)
    paying.confirm()
    shown = paying.withdrawal(taken)
    assert shown["status"] == "confirmed" and shown["fee_charged"] == shown["fee"]
    assert parse_units(shown["fee"], 18) < reserved
    rest = paying.units(10) - paying.units(10) // 100 - parse_units(shown["fee"], 18)
    assert paying.available() == format_units(rest, 18)
    assert before == hot(paying)


def test_where_the_merchant_can_not_pay_the_excess_it_waits_and_fails_after_a_day(paying: Merchant) -> None:
    plain = least(paying)
    rest = paying.units(10) - 2 * round(float(plain) * 10**18)
    address = put_code(paying, burner(400_000))
    taken = withdraw(paying, address, format_units(rest, 18))
    paying.run()
    shown = paying.withdrawal(taken)
    assert (shown["status"], shown["pending_reason"]) == ("pending", "fees")
    services().clock.shift_ms += 24 * 3_600_000
    paying.stack.drain(only=("housekeeping",), rounds=1)
    paying.run()
    shown = paying.withdrawal(taken)
    assert (shown["status"], paying.available()) == ("failed", "1")
