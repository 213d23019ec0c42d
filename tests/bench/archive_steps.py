"""Steps with payments of the archive: they are read by name, one gets another payment, and one is refunded. Each step finds nothing
of the archive remembered, as in a process that begins."""

from __future__ import annotations

from typing import Any

from chalicelib.domain.archive.payments import DAY_MS, SAID_MS
from chalicelib.domain.ids import TenantId
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.wiring import services
from tests.bench.further_steps import AFTER_DAYS, Group
from tests.bench.merchant_requests import step
from tests.bench.walk import Walk


def stowed(walk: Walk, name: str) -> Any:
    """A completed invoice that is archived."""
    body = {"currency": walk.coin, "network": walk.network, "amount": walk.amount(), "externalId": f"{name}-{int(walk.counts)}"}
    made = walk.ask("POST", "/invoices", body)
    walk.pay(made["address"], walk.coin, walk.amount())
    walk.mine(walk.confirmations)
    walk.idle()
    walk.wait((AFTER_DAYS + 3) * DAY_MS / 1_000)
    walk.mine(1)
    walk.idle()
    for _ in range(2):
        walk.fire("archive")
        walk.wait(SAID_MS / 1_000)
    assert not whole(made["id"]), made
    return made


def whole(invoice: str) -> bool:
    """Whether its record is in the tables."""
    (tenant,) = {each.tenant for each in services().store.every(Invoice)}
    (found,) = services().store.whole([(Invoice, {"tenant": TenantId(tenant), "id": invoice})])
    return found


def forgotten() -> None:
    """What this process remembers of the archive."""
    services().store._archived()._known.clear()


def unremembered(walk: Walk, name: str, path: str) -> Any:
    forgotten()
    return step(walk, name, "GET", path)


def fetched(walk: Walk) -> None:
    made = stowed(walk, "read")
    name, address = made["externalId"], made["address"]
    unremembered(walk, "read an archived invoice", f"/invoices?id={made['id']}")
    unremembered(walk, "read an archived invoice by its path", f"/invoices/{made['id']}")
    unremembered(walk, "read an archived invoice by the shop's name", f"/invoices/getByExternalId?externalId={name}")
    unremembered(walk, "read an archived invoice's address", f"/addresses/{address}")
    (found,) = unremembered(walk, "list an archived invoice's payments by its address", f"/transactions/address/{address}")
    unremembered(walk, "read an archived payment by its id", f"/transactions/{found['id']}")
    unremembered(walk, "read an archived payment by its hash", f"/transactions/{found['hash']}")


def late(walk: Walk) -> None:
    made = stowed(walk, "late")
    walk.pay(made["address"], walk.coin, walk.amount())
    forgotten()
    walk.poll("a late payment to an archived invoice is detected")
    assert whole(made["id"])
    walk.mine(walk.confirmations)
    walk.poll("a late payment to an archived invoice is confirmed")
    assert len(walk.ask("GET", f"/transactions/address/{made['address']}")["data"]) == 2
    walk.idle()


def refunded_late(walk: Walk) -> None:
    made = stowed(walk, "refund")
    path = f"/invoices/{made['id']}/refunds"
    unremembered(walk, "list an archived invoice's refunds", path)
    body = {"mode": "same", "address": walk.payee}
    forgotten()
    asked = step(walk, "refund an archived invoice", "POST", path, body)
    assert not whole(made["id"]), "it is read in the archive, and stays there"
    walk.idle()
    walk.mine(walk.confirmations)
    walk.idle()
    assert walk.ask("GET", f"/refunds/{asked['id']}")["status"] == "completed"


def shelved(walk: Walk) -> None:
    for group in (fetched, late, refunded_late):
        group(walk)


SHELVED: tuple[Group, ...] = ((shelved, {"ARCHIVE_AFTER_DAYS": str(AFTER_DAYS)}),)
