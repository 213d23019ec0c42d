"""Steps of paths that are taken beside the main ones: ticks, the archive, refunds, batches, redeliveries."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from chalicelib.domain.archive.payments import DAY_MS, SAID_MS
from chalicelib.domain.times import iso
from chalicelib.wiring import services
from chalicelib.workers import tick
from tests.bench.walk import SETTLED, Walk

Group = tuple[Callable[[Walk], None], dict[str, str]]
"""Paths that are walked on a stack of their own, and what the environment sets for it."""
AFTER_DAYS = 400
BATCH = 4
EVENTS = 6
"""Of an invoice from its making to its completion, with the balance's."""


def completed(walk: Walk) -> Any:
    """An invoice that is paid and credited; what that costs is not noted."""
    body = {"currency": walk.coin, "network": walk.network, "amount": walk.amount(), "description": "a thing"}
    invoice = walk.ask("POST", "/invoices", body)
    walk.pay(invoice["address"], walk.coin, walk.amount())
    walk.mine(walk.confirmations)
    walk.idle()
    return invoice


def ticks(walk: Walk) -> None:
    """A network is busy: a payer asks, and ticks look at it between two polls."""
    invoice = walk.invoice(" on a network that ticks")
    asking = lambda: walk.stack.call("GET", f"/pay/{invoice['id']}/status")  # noqa: E731
    walk.step("a payer makes a network busy", asking)
    walk.poll("nothing is new, on a busy network")
    ticked(walk, "nothing is new")
    walk.mine(1)
    ticked(walk, "an empty block")
    walk.pay(invoice["address"], "eth", "0.05")
    ticked(walk, "a payment is detected")
    walk.poll("a payment waits for its confirmations, on a busy network")
    walk.mine(walk.confirmations)
    ticked(walk, "a payment is confirmed")
    walk.idle()
    walk.wait(7_200)


def ticked(walk: Walk, name: str) -> None:
    """A tick that comes in time, a while after the last one."""
    walk.wait(4)
    about = {"version": 1, "realm": "test", "network": walk.network, "at": services().clock.now_ms()}
    walk.step(f"tick: {name}", lambda: tick.handle(json.dumps(about)))


def archived(walk: Walk) -> None:
    """A payment leaves the tables; beside it a round that finds nothing, of as many merchants."""
    completed(walk)
    walk.wait((AFTER_DAYS + 2) * DAY_MS / 1_000)
    walk.mine(1)
    walk.idle()
    for what in ("one old payment", "nothing old"):
        walk.step(f"archive: a round begins, {what}", lambda: walk.fire("archive"))
        walk.wait(SAID_MS / 1_000)
        walk.step(f"archive: a round, {what}", lambda: walk.fire("archive"))
        walk.wait(2 * DAY_MS / 1_000)


def refunded(walk: Walk) -> None:
    """A refund from the request to its payment, by claim link."""
    invoice = completed(walk)
    asked = {"mode": "same"}
    link = walk.step("ask for a refund", lambda: walk.ask("POST", f"/invoices/{invoice['id']}/refunds", asked))
    walk.told("a refund is asked for")
    page = "/v1/claim/" + link["claimUrl"].rpartition("/")[2]

    def claim(method: str, body: Any = None) -> Any:
        answer = walk.stack.call(method, page, json=body)
        if answer.status != 200:
            raise AssertionError(answer.body)
        return answer.json

    walk.step("a payee opens a claim link", lambda: claim("GET"))
    seen = walk.step("a payee names an address", lambda: claim("POST", {"address": walk.payee}))
    walk.step("a payee claims a refund", lambda: claim("POST", {"address": walk.payee, "confirm": seen["confirm"]}))
    walk.told("a refund is claimed")
    walk.step("payout: a refund", lambda: walk.fire("payout"))
    walk.told("a refund is sent")
    walk.poll("a refund is in no block")
    walk.mine(walk.confirmations)
    walk.poll("a refund is settled")
    walk.told("a refund is settled")
    walk.mine(SETTLED)
    walk.poll("a settled refund is final")
    refund = walk.step("read a refund", lambda: walk.ask("GET", f"/refunds/{link['id']}"))
    assert refund["status"] == "completed", refund
    walk.idle()


def batch(walk: Walk) -> None:
    completed(walk)
    outputs = [{"to_address": walk.payee, "amount": "0.001"}] * BATCH
    body = {"batch_withdrawal": {"network": walk.network, "coin": walk.coin, "outputs": outputs}}
    walk.step(f"create a batch of {BATCH} withdrawals", lambda: walk.ask("POST", "/withdrawals", body))
    walk.told(f"{BATCH} withdrawals are created")
    walk.step(f"payout: {BATCH} of a batch", lambda: walk.fire("payout"))
    walk.told(f"{BATCH} withdrawals are sent")
    walk.mine(walk.confirmations)
    walk.poll(f"{BATCH} withdrawals are settled")
    walk.told(f"{BATCH} withdrawals are settled")
    walk.mine(SETTLED)
    walk.poll(f"{BATCH} settled withdrawals are final")
    walk.idle()


def redelivered(walk: Walk) -> None:
    """The events of a period are sent again."""
    hook = walk.ask("POST", "/webhooks", {"url": walk.hook, "events": ["*"]})["data"]["id"]
    began = services().clock.now_ms()
    completed(walk)
    walk.idle()
    body = {"from": iso(began), "to": iso(services().clock.now_ms()), "which": "all"}
    job = walk.step("ask for a redelivery", lambda: walk.ask("POST", f"/webhooks/{hook}/redeliver", body))["data"]
    walk.step(f"relay: a redelivery of {EVENTS} events", lambda: walk.fire("relay"))
    walk.step(f"deliver: a redelivery of {EVENTS} events", lambda: walk.fire("deliver"))
    done = walk.ask("GET", f"/webhooks/redeliveries/{job['id']}")["data"]
    assert (done["status"], done["made"]) == ("done", EVENTS), done
    walk.ask("DELETE", f"/webhooks/{hook}")
    services().store.forget_listeners()
    walk.wait(7_200)
    walk.idle()


def asked(walk: Walk) -> None:
    """What a merchant asks for beside invoices and single withdrawals."""
    refunded(walk)
    batch(walk)
    redelivered(walk)


FURTHER: tuple[Group, ...] = (
    (ticks, {"TICKS": "on"}),
    (archived, {"ARCHIVE_AFTER_DAYS": str(AFTER_DAYS)}),
    (asked, {}),
)
