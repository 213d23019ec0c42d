"""Steps of payers and merchants that are rarer: prices in fiat, payment links, deadlines, approvals, failed deliveries. Nobody
listens but where it is said, and so the relay has nothing to tell."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from chalicelib.domain.webhooks.deliveries import Delivery
from chalicelib.wiring import services
from tests.bench.further_steps import completed
from tests.bench.walk import Walk
from tests.support.receiver import Receiver, answer
from tests.support.signing import ALICE, BOB, enabled

THRESHOLD = "0.01"
"""From here on a withdrawal needs two signatures."""
VISITOR = "203.0.113.7"


def said(walk: Walk, method: str, path: str, body: Any = None) -> Any:
    """What a stranger is answered."""
    found = walk.stack.call(method, path, json=body, source_ip=VISITOR)
    if found.status not in (200, 201):
        raise AssertionError(found.body)
    return found.json


def addressed(walk: Walk) -> None:
    body = {"network": walk.network, "mode": "common"}
    walk.step("create an address", lambda: walk.ask("POST", "/addresses", body))
    walk.step("list addresses", lambda: walk.ask("GET", "/addresses?limit=20"))


def chosen(walk: Walk) -> None:
    """An invoice in fiat, from its making to the payment in the second coin that its payer chose."""
    accept = [{"coin": coin, "network": walk.network} for coin in ("eth", "usdt")]
    body = {"fiatAmount": "30", "fiatCurrency": "USD", "accept": accept}
    invoice = walk.step("create an invoice in fiat", lambda: walk.ask("POST", "/invoices", body))
    page = f"/pay/{invoice['id']}"
    walk.step("open the pay page, before a choice", lambda: said(walk, "GET", page))
    choice = {"network": walk.network}
    choose = lambda coin: said(walk, "POST", f"/v1{page}/choice", {**choice, "coin": coin})  # noqa: E731
    walk.step("a payer chooses a coin", lambda: choose("usdt"))
    found = walk.step("a payer chooses another coin", lambda: choose("eth"))
    walk.step("a payer chooses the same coin again", lambda: choose("eth"))
    walk.step("open the pay page, after a choice", lambda: said(walk, "GET", page))
    walk.step("a payer asks for a chosen invoice's state", lambda: said(walk, "GET", f"{page}/status"))
    walk.pay(found["address"], "eth", found["amount"])
    walk.poll("a payment of a choice is detected")
    walk.mine(walk.confirmations)
    walk.poll("a payment of a choice is confirmed")
    assert walk.ask("GET", f"/invoices?id={invoice['id']}")["status"] == "completed"
    walk.idle()


def linked(walk: Walk) -> None:
    terms = {"name": "Two pairs of shoes", "currency": walk.coin, "network": walk.network, "amount": walk.amount()}
    link = walk.step("create a payment link", lambda: walk.ask("POST", "/payment-links", terms))["id"]
    walk.step("read the page of a payment link", lambda: said(walk, "GET", f"/link/{link}"))
    walk.step("open a payment link", lambda: said(walk, "POST", f"/v1/link/{link}"))
    walk.idle()


def deadlines(walk: Walk) -> None:
    """An invoice gets more time, and is cancelled then."""
    path = f"/invoices/{walk.invoice(' that is extended')['id']}"
    walk.wait(600)
    walk.step("extend an invoice", lambda: walk.ask("POST", f"{path}/extend", {"expiresIn": 7_200}))
    gone = walk.step("cancel an invoice", lambda: walk.ask("DELETE", path))
    assert gone["status"] == "cancelled", gone
    walk.poll("a cancelled invoice is watched on")
    walk.idle()


def approved(walk: Walk) -> None:
    """Withdrawals that two of three have to sign: accepted, rejected, cancelled."""
    settings = "/v1/merchant/settings"
    key = walk.stack.keys[walk.merchant]
    completed(walk)
    if not (walk.ask("GET", "/merchant/settings")["data"].get("multisig_config") or {}).get("enabled"):
        enabled(lambda body: walk.stack.call("PUT", settings, key, body), THRESHOLD)

    def asked(name: str) -> str:
        body = {"network": walk.network, "coin": walk.coin, "to_address": walk.payee, "amount": THRESHOLD}
        made = walk.step(f"create a withdrawal that {name}", lambda: walk.ask("POST", "/withdrawals", body))
        return str(made["data"]["id"])

    def signed(what: str, withdrawal: str, signer: Any) -> Any:
        text = walk.ask("GET", f"/withdrawals/{withdrawal}")["data"]["approval"]["signing_text"]
        body = {"id": withdrawal, "signer_id": signer.name, "signature": signer.sign(text)}
        return lambda: walk.ask("PUT", f"/withdrawals/request/{what}", body)

    paid = asked("two have to sign")
    walk.step("accept a withdrawal, the first of two", signed("accept", paid, ALICE))
    walk.step("accept a withdrawal, the last of two", signed("accept", paid, BOB))
    walk.told("a withdrawal is accepted")
    walk.idle()
    refused = asked("is rejected")
    walk.idle()
    walk.step("reject a withdrawal", signed("reject", refused, ALICE))
    taken_back = asked("is cancelled")
    walk.idle()
    walk.step("cancel a withdrawal", lambda: walk.ask("DELETE", f"/withdrawals/{taken_back}"))
    states = [walk.ask("GET", f"/withdrawals/{each}")["data"]["status"] for each in (refused, taken_back)]
    assert states == ["failed", "cancelled"], states
    walk.mine(walk.confirmations)
    walk.idle()


def retried(walk: Walk) -> None:
    """An event that its receiver refuses, and takes the next time; and what a merchant reads then."""
    attempts = services().leases._deliveries
    with Receiver([answer(503), answer(200)]) as receiver, patch.object(attempts, "_jitter", lambda: 0.5):
        hook = walk.ask("POST", "/webhooks", {"url": receiver.url(), "events": ["invoice.created"]})["data"]["id"]
        invoice = walk.ask("POST", "/invoices", {"currency": walk.coin, "network": walk.network, "amount": walk.amount()})
        walk.fire("relay")
        walk.step("deliver: a receiver refuses", lambda: walk.fire("deliver"))
        walk.step("housekeeping: a delivery waits for its retry", lambda: walk.fire("housekeeping"))
        (waiting,) = [one for one in services().store.every(Delivery) if one.endpoint_id == hook]
        walk.wait((waiting.due_at - services().clock.now_ms()) / 1_000 + 60)
        walk.step("housekeeping: a retry is due", lambda: walk.fire("housekeeping"))
        walk.step("deliver: a retry is taken", lambda: walk.fire("deliver", "deliver_slow"))
        assert len(receiver.received) == 2, receiver.received
        walk.step("read an endpoint's deliveries", lambda: walk.ask("GET", f"/webhooks/{hook}/deliveries"))
        walk.ask("DELETE", f"/webhooks/{hook}")
    services().store.forget_listeners()
    events = walk.step("list an invoice's events", lambda: walk.ask("GET", f"/events?objectId={invoice['id']}"))
    walk.step("read an event", lambda: walk.ask("GET", f"/events/{events['data'][0]['id']}"))
    walk.wait(7_200)
    walk.idle()


def keys(walk: Walk) -> None:
    found = walk.step("list the keys", lambda: walk.ask("GET", "/api-keys"))
    walk.step("read a key", lambda: walk.ask("GET", f"/api-keys/{found['data'][0]['key_id']}"))
    walk.step("a key asks what it may", lambda: walk.ask("GET", "/auth/test"))
