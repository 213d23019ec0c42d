"""The stores that earlier releases left: this version reads all of them, finds the books whole, and goes on with what is open."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.reconciliation.audit import READ, audit
from chalicelib.wiring import services
from infra.local.aws import LocalAws
from tests.support.kept_stores import BITCOIN_PAYEE, FOLDER, kept, load
from tests.support.receiver import Receiver
from tests.support.shop import ETHER, PAYEE, Shop
from tests.support.world import SWEEPERS

ROOT = Path(__file__).parents[2]
HAS = {"Balance", "Deposit", "EventRecord", "Invoice", "PaymentOrder", "PayoutLink", "Refund", "Withdrawal"}
"""Kinds of records that each kept store has."""
DUE_SECONDS = 3600
"""By then every delivery that failed once is due again."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


def test_each_release_has_one() -> None:
    releases = re.findall(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert releases
    assert {path.name for path in kept()} >= {f"{release}{form}.json.gz" for release in releases for form in ("", "-small")}
    assert all(path.stat().st_size < 150_000 for path in FOLDER.iterdir())


def name_of(path: Path) -> str:
    return path.name.removesuffix(".json.gz")


def checked(path: Path) -> tuple[Any, ...]:
    """In each check the newest release's with prod's defaults; all in the sweep."""
    return () if path == [each for each in kept() if "-small" not in each.name][-1] else (pytest.mark.sweep,)


def run(shop: Shop, seconds: int = 60) -> None:
    for _ in range(2):
        shop.wait(seconds)
        shop.stack.drain(only=(*SWEEPERS, "poll_bitcoin"), failures="count", hurry=True, rounds=3)


@pytest.mark.slow
@pytest.mark.parametrize("path", [pytest.param(p, id=name_of(p), marks=checked(p)) for p in kept()])
def test_it_goes_on(path: Path, aws: LocalAws, receiver: Receiver) -> None:
    stack, ids = load(aws, path)
    shop, coins = Shop(stack), Shop(stack, network="bitcoin")
    store = services().store
    assert audit(store) == []
    assert {kind.__name__ for kind in READ if list(store.every(kind))} >= HAS
    assert {name: shop.get("/v1/invoices", id=ids[name])["status"] for name in ("paid", "partial", "late", "untouched")} == {
        "paid": "confirming", "partial": "partial", "late": "pending", "untouched": "pending",
    }  # fmt: skip
    (endpoint,) = shop.get("/v1/webhooks")["data"]
    changed = stack.call("PUT", f"/v1/webhooks/{endpoint['id']}", shop.key, json={"url": receiver.url()})
    assert changed.status == 200, changed.body
    events = shop.get("/v1/events", limit="100")["data"]
    before = {event["id"] for event in events if not event["event"].startswith("webhook.")}  # those of itself are not sent to it

    shop.pay(shop.shown({"id": ids["partial"]})["address"], "1.5")
    shop.pay(shop.shown({"id": ids["late"]})["address"], "2")
    shop.pay(shop.get("/v1/invoices", id=ids["choice"])["address"], "60", "usdt")
    run(shop)
    for one in (shop, coins):
        one.mine()
    run(shop)
    for one in (shop, coins):
        one.mine()
    run(shop)
    statuses = {name: shop.get("/v1/invoices", id=ids[name])["status"] for name in ("paid", "partial", "late", "choice")}
    assert statuses == dict.fromkeys(("paid", "partial", "late", "choice"), "completed")
    assert {w.id: w.status for w in store.every(Withdrawal)} == dict.fromkeys((w.id for w in store.every(Withdrawal)), "confirmed")
    assert shop.paid() == ETHER * 4 // 10  # 0.1 before it was left; 0.25 and 0.05 behind that
    assert (shop.paid(coin="usdt"), coins.paid(BITCOIN_PAYEE, "btc")) == (12_500_000, 10_000_000)
    assert shop.get(f"/v1/payout-links/{ids['link']}")["status"] == "awaiting_claim"
    seen = stack.call("POST", ids["claim"], json={"address": PAYEE})
    claimed = stack.call("POST", ids["claim"], json={"address": PAYEE, "confirm": seen.json["confirm"]})
    assert claimed.status == 200, claimed.body
    run(shop, DUE_SECONDS)
    shop.mine()
    run(shop)
    assert shop.get("/v1/invoices", id=ids["untouched"])["status"] == "expired"
    assert shop.get(f"/v1/payout-links/{ids['link']}")["status"] == "completed"
    assert audit(services().store) == []
    assert {json.loads(request.body)["id"] for request in receiver.received} >= before
