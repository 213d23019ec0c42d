"""Steps of the paths that every payment and withdrawal takes (steps.py)."""

from __future__ import annotations

from typing import Any

from chalicelib.wiring import services
from tests.bench.walk import SETTLED, Walk


def paid(walk: Walk, name: str = "", delivered: bool = False) -> Any:
    """An invoice from the request to its last event, and to the hour when it would have expired."""
    invoice = walk.invoice(name)
    walk.pay(invoice["address"], "eth", "0.05")
    walk.poll(f"a payment is detected{name}")
    walk.told(f"a payment is detected{name}", delivered=delivered)
    walk.mine(walk.confirmations)
    walk.poll(f"a payment is confirmed{name}")
    walk.told(f"a payment is confirmed{name}", delivered=delivered)
    walk.wait(3_700)
    walk.poll(f"a paid invoice's hour is over{name}")
    walk.idle()
    found = walk.ask("GET", f"/invoices?id={invoice['id']}")
    if found["status"] != "completed":
        raise AssertionError(found)
    return invoice


def read(walk: Walk, invoice: Any) -> None:
    for name, path in {
        "read an invoice": f"/invoices?id={invoice['id']}",
        "list invoices": "/invoices/getAll?limit=20",
        "list transactions": "/transactions?limit=20",
        "read the balances": "/balances",
    }.items():
        walk.step(name, lambda path=path: walk.ask("GET", path))
    walk.step("a payer asks for an invoice's state", lambda: walk.stack.call("GET", f"/pay/{invoice['id']}/status"))


def unpaid(walk: Walk) -> None:
    walk.invoice(" that nobody pays")
    walk.wait(3_700)
    walk.poll("an invoice expires")
    walk.told("an invoice expires")


def withdrawn(walk: Walk) -> None:
    """A withdrawal from the request until no reorganisation can undo it."""
    body = {"network": walk.network, "coin": walk.coin, "address": walk.payee, "amount": walk.amount("0.2")}
    walk.step("create a withdrawal", lambda: walk.ask("POST", "/withdraws", body))
    walk.told("a withdrawal is created")
    walk.step("payout: build, sign and send", lambda: walk.fire("payout"))
    walk.told("a withdrawal is sent")
    walk.poll("a withdrawal is in no block")
    walk.mine(walk.confirmations)
    walk.poll("a withdrawal is settled")
    walk.told("a withdrawal is settled")
    walk.mine(SETTLED)
    walk.poll("a settled withdrawal is final")


def collected(walk: Walk) -> None:
    """A token from its payment to the hot wallet, with the native coin for its fee."""
    body = {"coin": "usdt", "network": "ethereum", "collectThreshold": "0"}
    walk.step("set a coin's threshold", lambda: walk.ask("PUT", "/coins", body, "admin_test"))
    invoice = walk.invoice(" in a token", "usdt", "500")
    walk.pay(invoice["address"], "usdt", "500")
    walk.mine(walk.confirmations)
    walk.poll("a token is credited")
    walk.told("a token is credited")
    for state in ("the fee", "the sweep"):
        walk.poll(f"{state} is planned")
        walk.told(f"{state} is planned")
        walk.step(f"collect: build, sign and send {state}", lambda: walk.fire("payout", "collect"))
        walk.mine(walk.confirmations + 1)
        walk.wait(61)
    walk.poll("the sweep is settled")
    walk.told("the sweep is settled")
    walk.idle()


def walked(walk: Walk) -> None:
    """All paths, in an order in which none finds what another left open."""
    walk.poll("nothing is new")
    walk.mine(1)
    walk.poll("an empty block")
    invoice = paid(walk)
    read(walk, invoice)
    unpaid(walk)
    withdrawn(walk)
    collected(walk)
    walk.idle()
    hook = walk.step("register an endpoint", lambda: walk.ask("POST", "/webhooks", {"url": walk.hook, "events": ["*"]}))
    paid(walk, ", with an endpoint", delivered=True)
    walk.ask("DELETE", f"/webhooks/{hook['data']['id']}")
    services().store.forget_listeners()
    walk.idle()
