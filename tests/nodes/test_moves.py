"""Moves between our own places on anvil: a token is swept after its top-up, ether to the last unit, and what contracts send to an
address that has been swept is still found and credited.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

import pytest

from chalicelib.domain.addresses.addresses import Address
from chalicelib.domain.chain import FeeQuote
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import NetworkId
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.withdrawals.withdrawals import NonceCounter
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.scanning.internal_transfers import InternalTransfers
from chalicelib.usecases.transactions.accounts.signing import AccountSigning
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.wiring import services
from infra.cli import main
from infra.local.nodes import mine
from infra.local.tokens import call_data, deploy
from tests.nodes.renewing import STUCK_MS, block_at
from tests.nodes.sending import send, send_native, send_token
from tests.nodes.shops import CONFIRMATIONS, ETHER, HANDLERS, OUT, Shop, hot_wallet
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
    # Everything is sent, and then fees rise: room for a higher one comes from the hot wallet.
    shop.node.rpc.call("evm_setAutomine", [False])
    block_at(shop, 10)
    bare = plan_units(eth, "sweep", address, hot, 2 * ETHER, bare=True)
    run(shop)
    first = move_of(bare)
    block_at(shop, 60)
    services().clock.shift_ms += STUCK_MS
    for _ in range(2):
        run(shop)
        for _ in range(CONFIRMATIONS):
            block_at(shop, 60)
    run(shop)
    shop.node.rpc.call("evm_setAutomine", [True])
    gone, room = move_of(bare), next(m for m in services().store.every(Move) if m.owner == bare)
    left = agree(shop, address.address)
    assert (gone.state, gone.nonce, gone.amount, len(gone.earlier)) == ("settled", first.nonce, first.amount, 1)
    assert gone.mined == gone.txid and gone.fee > first.fee
    assert gone.amount + gone.fee + left[0] == ETHER + gas - swept.fee + room.amount
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
    assert booker.go_round(lambda: True) == 1, "the round over all addresses finds it"
    settle(shop)
    assert agree(shop, address.address)[0] == 2 * ETHER + gas + left[0]
    assert booker.check([address.address.lower()]) == 0
    assert len([d for d in services().store.every(Deposit) if d.address == address.address]) == 3
    assert "has sent something" not in caplog.text
    assert audit(services().store) == []


def test_a_top_up_that_is_mined_after_it_was_given_up_is_no_deposit(shop: Shop) -> None:
    """Its money is back at the hot wallet, so the ledger lacks it at the address: balances are compared at the very block at which
    the poll meets it again."""
    replace_tracing(shop)
    eth, hot, rpc = services().catalogue("live").coins["arbitrum", "eth"], hot_wallet(), shop.node.rpc
    address = address_of(shop.post("/v1/invoices", network="arbitrum", currency="eth", amount="1")["address"])
    settle(shop)
    quote = services().store.get(FeeQuote, network=ARBITRUM)
    assert quote is not None
    gas = 3 * quote.fees["usdt"]
    rpc.call("evm_setAutomine", [False])
    topup = plan_units(eth, "topup", hot, address.address, gas)
    run(shop)
    sent = move_of(topup)
    assert sent.state == "signed" and sent.raw is not None
    rpc.call("anvil_dropAllTransactions")
    assert main(["--stage", "local", "give-up", topup, "--reason", "no block takes it", "--realm", "live"]) == 0
    mine(rpc)
    run(shop)
    assert move_of(topup).state == "failed" and booked(address.address, "eth") == 0
    rpc.call("eth_sendRawTransaction", [sent.raw])
    mine(rpc, CONFIRMATIONS)
    run(shop)
    assert shop.on_chain(address.address)[0] == gas
    settle(shop)
    rpc.call("evm_setAutomine", [True])
    assert move_of(topup).state == "settled" and agree(shop, address.address) == (gas, 0)
    assert [deposit for deposit in services().store.every(Deposit) if deposit.address == address.address] == []
    assert shop.available().get("eth", "0") == "0"
    assert audit(services().store) == []


def replace_tracing(shop: Shop) -> InternalTransfers:
    """The network's node traces no more; what compares balances then."""
    answer = shop.stack.call("PUT", "/v1/networks", shop.stack.keys["admin_live"], json={"network": "arbitrum", "tracing": "off"})
    assert answer.status == 200, answer.body
    services().store.catalogue("live", fresh=True)
    return services().balance_booker(services().catalogue("live").networks["arbitrum"])


def test_an_approval_in_the_place_of_a_sweep_is_not_signed(
    shop: Shop, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    usdt = services().catalogue("live").coins["arbitrum", "usdt"]
    address = paid(shop)
    send_native(shop.node.rpc, address.address, ETHER)
    shop.confirm()
    sweep = plan_units(usdt, "sweep", address, hot_wallet(), 5_000_000)
    with monkeypatch.context() as without, pytest.raises(Unavailable):
        without.setattr(AccountSigning, "_signed", no_key)
        services().deposit_moves.advance(ARBITRUM, sweep)
    swept = move_of(sweep)
    assert swept.state == "built"
    before = replace(swept, unsigned=(swept.unsigned or "").replace("a9059cbb", APPROVE), version=swept.version + 1)
    assert before.unsigned != swept.unsigned
    services().store.commit([Save(before)])
    with pytest.raises(OrderMismatch):
        services().deposit_moves.advance(ARBITRUM, sweep)
    left = move_of(sweep)
    assert (left.state, left.raw, left.nonce, left.unsigned) == ("built", None, before.nonce, "")
    assert "is no plain transfer" in caplog.text
    nothing_waits_behind_a_move_that_goes_nowhere(shop)


def no_key(*_: object) -> NoReturn:
    raise Unavailable("the key does not answer")


def nothing_waits_behind_a_move_that_goes_nowhere(shop: Shop) -> None:
    """A move out of the hot wallet has a nonce, a payment the next; its recipient is no place of ours: a filler uses the nonce."""
    coins, hot, store = services().catalogue("live").coins, hot_wallet(), services().store
    store.commit([Save(NonceCounter(ARBITRUM, hot, 1))])
    paid = shop.post("/v1/withdraws", network="arbitrum", coin="usdt", address=OUT, amount="2")
    shop.run()
    name = plan_units(coins["arbitrum", "eth"], "cold", hot, OUT, ETHER)
    planned = move_of(name)
    built = replace(planned, state="built", nonce=0, unsigned="", version=planned.version + 1)
    store.commit([Save(built)])
    before = shop.on_chain(OUT)
    with pytest.raises(OrderMismatch, match="destination"):
        services().wallet_moves.advance(ARBITRUM, name)
    settle(shop)
    (filler,) = (move for move in store.every(Move) if move.kind == "filler")
    assert (move_of(name).state, filler.state, filler.nonce) == ("dropped", "settled", 0)
    assert shop.get(f"/v1/withdrawals/{paid['id']}")["data"]["status"] == "confirmed"
    assert shop.on_chain(OUT) == (before[0], before[1] + 2_000_000)
    agree(shop, hot)
