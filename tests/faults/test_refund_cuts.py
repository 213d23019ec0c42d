"""A refund, a claim and an expiry, with each call failing or killing the function, before or after its effect: everybody is paid
once, and what nobody claimed is the merchant's again.

The first and the last write of each path kill the function after them; with `SWEEP=full` every call fails in every way.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.domain.refunds.refunds import PayoutLink, Refund
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from tests.support.cuts import WAYS, Cutter, Died, How, When, install
from tests.support.shop import CONFIRMATIONS, ETHER, PAYEE
from tests.support.stack import Response, Stack
from tests.support.world import NETWORK, World

FULL = os.environ.get("SWEEP") == "full"
READS = ("Get", "Query", "BatchGet", "TransactGet")
OTHER = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"
LIFE = 600
SAMPLE = 2


@pytest.fixture
def cutter(monkeypatch: pytest.MonkeyPatch) -> Cutter:
    made = Cutter()
    install(made, monkeypatch)
    return made


def be_paid(world: World) -> None:
    made = world.request("POST", "/v1/invoices", {"currency": "eth", "amount": "2", "network": NETWORK}, "invoice")
    world.memo["invoice"] = made.json["id"]
    world.pay_in(made.json["address"], "eth", 2 * ETHER)
    world.mine(CONFIRMATIONS)
    world.run()
    world.run()
    assert world.invoice()["status"] == "completed"


def link(world: World, amount: str, token: str) -> str:
    """The path of a new link's page."""
    body = {"network": NETWORK, "coin": "eth", "amount": amount, "expiresIn": LIFE}
    made = world.request("POST", "/v1/payout-links", body, token)
    assert made.status == 201, made.body
    return "/v1/claim/" + str(made.json["claimUrl"]).rpartition("/")[2]


def refund(world: World) -> None:
    """To an address."""
    body = {"mode": "same", "amount": "0.25", "address": PAYEE}
    made = world.request("POST", f"/v1/invoices/{world.memo['invoice']}/refunds", body, "refund")
    assert made.status == 201, made.body
    world.run()


def refund_by_link(world: World) -> None:
    """Made, looked at, confirmed: the payee clicks again until there is an answer."""
    body = {"mode": "same", "amount": "0.25"}
    made = world.request("POST", f"/v1/invoices/{world.memo['invoice']}/refunds", body, "refund")
    assert made.status == 201, made.body
    path = "/v1/claim/" + str(made.json["claimUrl"]).rpartition("/")[2]
    claim(world, path, PAYEE)
    world.run()


def claim(world: World, path: str, address: str) -> None:
    word = asked(world, path, address=address).json["confirm"]
    done = asked(world, path, address=address, confirm=word)
    assert done.status == 200 or "pays once" in done.json["error"]["message"], done.body


def asked(world: World, path: str, **body: Any) -> Response:
    for _ in range(3):
        try:
            with world.cutter.arm():
                answer = world.stack.call("POST", path, json=body)
        except Died:
            world.reborn()
            continue
        if answer.status != 500:
            return answer
    raise AssertionError(f"the claim was not answered: {answer.body!r}")


def expire(world: World) -> None:
    """One link is claimed, another never."""
    claim(world, link(world, "0.25", "one"), PAYEE)
    link(world, "0.5", "two")
    world.shift += (LIFE + 1) * 1000
    services().clock.shift_ms = world.shift
    world.run()


def cancel(world: World) -> None:
    """Claimed, and taken back before it is paid; another is claimed."""
    path = link(world, "0.5", "one")
    found = services().store.every(PayoutLink)
    name = next(iter(found)).id
    claim(world, path, OTHER)
    for _ in range(3):
        try:
            with world.cutter.arm():
                answer = world.stack.call("DELETE", f"/v1/payout-links/{name}", world.key)
        except Died:
            world.reborn()
            continue
        if answer.status != 500:
            break
    assert answer.json["status"] == "cancelled", answer.body
    claim(world, link(world, "0.25", "two"), PAYEE)
    world.run()


def finish(world: World) -> None:
    """In the end a quarter ether is paid, once, and the rest is the merchant's."""
    for _ in range(6):
        world.later()
        world.run()
        world.mine(CONFIRMATIONS)
        world.run()
        world.stack.drain(only=("housekeeping",), failures="count", rounds=1)
        world.run()
    store = services().store
    assert services().reader(services().catalogue("test").networks[NETWORK]).balance(PAYEE) == ETHER // 4
    assert services().reader(services().catalogue("test").networks[NETWORK]).balance(OTHER) == 0
    assert world.available("eth") == "1.75"
    paid = [w for w in store.every(Withdrawal) if w.status == "confirmed"]
    assert [w.amount for w in paid] == [ETHER // 4]
    assert not [work for work in store.every_work() if work.kind == "refund"]
    assert {r.status for r in (*store.every(Refund), *store.every(PayoutLink))} <= {"claimed", "expired", "cancelled"}
    assert audit(store) == []


PATHS: dict[str, Callable[[World], None]] = {"refund": refund, "link": refund_by_link, "expire": expire, "cancel": cancel}


def cuts(trace: list[str]) -> list[tuple[int, How, When]]:
    """What is cut: by number of the call from 1, and how."""
    writes = [n for n, name in enumerate(trace, 1) if not name.startswith(READS)]
    if not FULL:
        return [(n, "death", "after") for n in sorted({writes[(len(writes) - 1) * n // (SAMPLE - 1)] for n in range(SAMPLE)})]
    reads = [n for n in range(1, len(trace) + 1) if n not in writes]
    return [*((n, how, when) for n in writes for how, when in WAYS), *((n, "error", "before") for n in reads)]


@pytest.mark.parametrize("path", PATHS)
def test_whatever_is_cut_is_paid_once(
    stack: Stack, cutter: Cutter, record_property: Callable[[str, object], None], path: str
) -> None:
    world = World(stack, cutter)
    be_paid(world)
    start, memo, shift = stack.snapshot(), dict(world.memo), world.shift
    cutter.set(0, "death", "after")
    PATHS[path](world)
    wanted = cuts(cutter.trace)
    trace = list(cutter.trace)
    finish(world)
    assert len(wanted) >= SAMPLE
    for at, how, when in wanted:
        stack.restore(start)
        broken = World(stack, cutter, shift=shift).again(memo)
        cutter.set(at, how, when)
        try:
            PATHS[path](broken)
            assert cutter.fired
            cutter.set(0, "death", "after")
            finish(broken)
        except AssertionError as error:
            raise AssertionError(f"{how} {when} call {at} ({trace[at - 1]}): {error}") from error
    record_property("cut_points", len(wanted))
