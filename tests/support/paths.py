"""The main paths of money that the fault sweeps go, step by step: each step says what has to be there behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from chalicelib.domain.ids import NetworkId
from chalicelib.wiring import services
from tests.support.world import NETWORK, OUT, World

ETHER = 10**18
CONFIRMATIONS = 12
Step = Callable[[World], None]


def ask_for_money(world: World) -> None:
    """An invoice over 30 USDT."""
    made = world.request("POST", "/v1/invoices", {"currency": "usdt", "amount": "30", "network": NETWORK}, "make-invoice")
    assert made.status == 201, made.body
    world.memo["invoice"], world.memo["address"] = made.json["id"], made.json["address"]
    world.run()
    assert len(world.get("/v1/invoices/getAll")["data"]) == 1


def pay_a_part(world: World) -> None:
    """A third of it, and ether that nobody asked for."""
    world.pay_in(world.memo["address"], "usdt", 10_000_000)
    world.pay_in(world.memo["address"], "eth", ETHER)
    world.run()
    assert world.invoice()["status"] == "partial"


def pay_the_rest(world: World) -> None:
    world.pay_in(world.memo["address"], "usdt", 20_000_000)
    world.run()
    assert world.invoice()["status"] == "confirming"
    assert world.available("usdt") == "0"


def confirm_payments(world: World) -> None:
    world.mine(CONFIRMATIONS)
    world.run()
    world.run()
    assert (world.invoice()["status"], world.invoice()["received"]) == ("completed", "30")
    assert (world.available("usdt"), world.available("eth")) == ("30", "1")


def take_out(world: World) -> None:
    """A quarter ether and 12.5 USDT, as far as the broadcast."""
    for coin, amount, token in (("eth", "0.25", "one"), ("usdt", "12.5", "two")):
        body = {"network": NETWORK, "coin": coin, "address": OUT, "amount": amount}
        made = world.request("POST", "/v1/withdraws", body, token)
        assert made.status == 201, made.body
    world.run()
    world.sweep()
    world.settle_payouts()
    assert (world.available("eth"), world.available("usdt")) == ("0.75", "17.5")
    assert paid_out() == {"eth": ETHER // 4, "usdt": 12_500_000}


def confirm_payouts(world: World) -> None:
    world.mine(CONFIRMATIONS)
    world.run()
    world.settle()
    shown = world.get("/v1/withdrawals")["data"]
    assert Counter(w["status"] for w in shown) == {"confirmed": 2}
    assert (world.available("eth"), world.available("usdt")) == ("0.75", "17.5")
    assert paid_out() == {"eth": ETHER // 4, "usdt": 12_500_000}


def paid_out() -> dict[str, int]:
    """What the chain itself says that the recipient has."""
    network = services().catalogue("test").networks[NETWORK]
    reader = services().reader(network)
    usdt = services().catalogue("test").coins[NETWORK, "usdt"]
    return {"eth": reader.balance(OUT), "usdt": reader.balance(OUT, usdt.contract)}


def be_paid(world: World) -> None:
    """An invoice over 2 ETH, paid and credited."""
    made = world.request("POST", "/v1/invoices", {"currency": "eth", "amount": "2", "network": NETWORK}, "make-invoice")
    world.memo["invoice"], world.memo["address"] = made.json["id"], made.json["address"]
    world.pay_in(made.json["address"], "eth", 2 * ETHER)
    world.mine(CONFIRMATIONS)
    world.run()
    world.run()
    assert world.invoice()["status"] == "completed"


def lose_the_block(world: World) -> None:
    services().sandbox.reorg(NetworkId(f"test:{NETWORK}"), CONFIRMATIONS + 1)
    world.run()
    world.run()
    assert (world.invoice()["status"], world.invoice()["received"], world.available("eth")) == ("pending", "0", "0")


def choose_a_coin(world: World) -> None:
    """An invoice over 60 US dollars that can be paid in two coins; the payer chooses one after the other."""
    accept = [{"coin": coin, "network": NETWORK} for coin in ("eth", "usdt")]
    made = world.request("POST", "/v1/invoices", {"fiatAmount": "60", "fiatCurrency": "USD", "accept": accept}, "make-invoice")
    assert made.status == 201, made.body
    world.memo["invoice"] = made.json["id"]
    world.run()
    for coin, missing in (("eth", "0.02"), ("usdt", "60")):
        choice = world.request("POST", f"/v1/pay/{made.json['id']}/choice", {"coin": coin, "network": NETWORK}, coin)
        assert (choice.status, choice.json["missing"]) == (200, missing), choice.body
        assert world.memo.setdefault("address", choice.json["address"]) == choice.json["address"]


def pay_in_two_coins(world: World) -> None:
    """Half of it in each."""
    world.pay_in(world.memo["address"], "eth", ETHER // 100)
    world.pay_in(world.memo["address"], "usdt", 30_000_000)
    world.run()
    assert world.invoice()["status"] == "confirming"


def confirm_both(world: World) -> None:
    world.mine(CONFIRMATIONS)
    world.run()
    world.run()
    assert (world.invoice()["status"], world.invoice()["paidPercent"]) == ("completed", "100")
    assert (world.available("usdt"), world.available("eth")) == ("30", "0.01")


def be_paid_again(world: World) -> None:
    world.pay_in(world.memo["address"], "eth", 2 * ETHER)
    world.mine(CONFIRMATIONS)
    world.run()
    world.run()
    assert (world.invoice()["status"], world.available("eth")) == ("completed", "2")


def nothing(world: World) -> None:
    """A path that begins with the merchant's first request."""


def funded(world: World) -> None:
    made = world.request("POST", "/v1/invoices", {"currency": "usdt", "amount": "30", "network": NETWORK}, "fund")
    world.pay_in(made.json["address"], "usdt", 30_000_000)
    world.pay_in(made.json["address"], "eth", ETHER)
    world.mine(CONFIRMATIONS)
    world.run()


PATHS: dict[str, tuple[Step, ...]] = {
    "deposit": (ask_for_money, pay_a_part, pay_the_rest, confirm_payments),
    "withdrawal": (take_out, confirm_payouts),
    "reorganisation": (lose_the_block, be_paid_again),
    "choices": (choose_a_coin, pay_in_two_coins, confirm_both),
}
BEFORE: dict[str, Step] = {
    "deposit": nothing,
    "withdrawal": funded,
    "reorganisation": be_paid,
    "choices": nothing,
}
