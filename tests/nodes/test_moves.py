"""Moves between our own places on anvil: a token is swept after its top-up, ether to the last unit, and what contracts send to an
address that has been swept is still found and credited.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from chalicelib.domain.addresses import Address
from chalicelib.domain.chain import FeeQuote
from chalicelib.domain.deposits import Deposit
from chalicelib.domain.ids import NetworkId
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.moves import Move
from chalicelib.usecases.audit import audit
from chalicelib.usecases.balance_bookings import BalanceBooker
from chalicelib.usecases.changes import Save
from chalicelib.usecases.payouts import OrderMismatch
from chalicelib.wiring import services
from infra.local.nodes import mine
from infra.local.tokens import call_data, deploy
from tests.nodes.conftest import send, send_native, send_token
from tests.nodes.test_main_job import CONFIRMATIONS, ETHER, HANDLERS, Shop, hot_wallet
from tests.nodes.test_main_job import shop as shop  # noqa: PLC0414 - the fixture, under its own name
from tests.support.treasury import address_of, plan_units

pytestmark = pytest.mark.nodes

ARBITRUM = NetworkId("live:arbitrum")
APPROVE = "095ea7b3"


def run(shop: Shop) -> None:
    assert shop.stack.drain(only=(*HANDLERS, "collect")).settled


def settle(shop: Shop) -> None:
    run(shop)
    mine(shop.node.rpc, CONFIRMATIONS)
    run(shop)


def move_of(name: str) -> Move:
    found = services().store.get(Move, network=ARBITRUM, id=name)
    assert found is not None
    return found


def booked(address: str, coin: str) -> int:
    asset = services().catalogue("live").coins["arbitrum", coin].asset
    found = services().store.get(WalletBalance, network=ARBITRUM, address=address.lower(), asset=asset)
    return 0 if found is None else found.units


def agree(shop: Shop, address: str) -> tuple[int, int]:
    """Ether and tokens at an address: the ledger and the chain say the same."""
    found = shop.on_chain(address)
    assert (booked(address, "eth"), booked(address, "usdt")) == found
    return found


def paid(shop: Shop) -> Address:
    made = shop.post("/v1/addresses", network="arbitrum", coin="usdt", type="user")
    text = made.get("data", made)["address"]
    send_token(shop.node.rpc, shop.usdt, text, 5_000_000)
    shop.confirm()
    return address_of(text)


def test_what_comes_is_swept_and_what_comes_later_is_credited(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    coins, hot = services().catalogue("live").coins, hot_wallet()
    eth, usdt = coins["arbitrum", "eth"], coins["arbitrum", "usdt"]
    address = paid(shop)
    quote = services().store.get(FeeQuote, network=ARBITRUM)
    assert quote is not None
    gas = 3 * quote.fees["usdt"]
    topup = plan_units(eth, "topup", hot, address.address, gas)
    settle(shop)
    assert (move_of(topup).state, agree(shop, address.address)) == ("settled", (gas, 5_000_000))
    sweep = plan_units(usdt, "sweep", address, hot, 5_000_000)
    settle(shop)
    swept = move_of(sweep)
    assert (swept.state, swept.arrived) == ("settled", 5_000_000)
    assert agree(shop, address.address) == (gas - swept.fee, 0)
    send_native(shop.node.rpc, address.address, ETHER)
    shop.confirm()
    bare = plan_units(eth, "sweep", address, hot, 2 * ETHER, bare=True)
    settle(shop)
    gone = move_of(bare)
    left = agree(shop, address.address)
    assert (gone.state, gone.amount + gone.fee + left[0]) == ("settled", ETHER + gas - swept.fee)
    agree(shop, hot)
    # What a contract sends is found by comparing balances, before, while and after coins are swept.
    booker = replace_tracing(shop)
    relay = deploy(shop.node.rpc, "Relay")
    send(shop.node.rpc, relay, call_data("forward(address)", address.address), value=2 * ETHER, gas=200_000)
    again = plan_units(eth, "topup", hot, address.address, gas)
    run(shop)
    assert booker.check([address.address.lower()]) == 0
    settle(shop)
    assert move_of(again).state == "settled"
    settle(shop)  # the poll has booked it on its way round
    assert agree(shop, address.address)[0] == 2 * ETHER + gas + left[0]
    assert booker.check([address.address.lower()]) == 0
    assert len([d for d in services().store.every(Deposit) if d.address == address.address]) == 3
    assert "has sent something" not in caplog.text
    assert audit(services().store) == []


def replace_tracing(shop: Shop) -> BalanceBooker:
    """The network's node traces no more; what compares balances then."""
    answer = shop.stack.call("PUT", "/v1/networks", shop.stack.keys["admin_live"], json={"network": "arbitrum", "tracing": "off"})
    assert answer.status == 200, answer.body
    services().store.catalogue("live", fresh=True)
    return services().balance_booker(services().catalogue("live").networks["arbitrum"])


def test_an_approval_in_the_place_of_a_sweep_is_not_signed(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    usdt = services().catalogue("live").coins["arbitrum", "usdt"]
    address = paid(shop)
    send_native(shop.node.rpc, address.address, ETHER)
    shop.confirm()
    sweep = plan_units(usdt, "sweep", address, hot_wallet(), 5_000_000)
    settle(shop)
    swept = move_of(sweep)
    before = replace(
        swept, state="built", raw=None, txid=None, mined=None, block_hash=None, block_number=None,
        unsigned=(swept.unsigned or "").replace("a9059cbb", APPROVE), version=swept.version + 1,
    )  # fmt: skip
    assert before.unsigned != swept.unsigned
    services().store.commit([Save(before)])
    with pytest.raises(OrderMismatch):
        services().deposit_moves.advance(ARBITRUM, sweep)
    assert move_of(sweep) == before and "is no plain transfer" in caplog.text
