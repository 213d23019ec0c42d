"""The demo stage: a deployment that has only the sandbox, filled with something of everything, and put back every day."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient

from chalicelib import wiring
from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.catalogue import Coin, default_networks
from chalicelib.domain.demo import EVERY_MS, LEASE_MS, OPERATOR, SHOP
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import tenant_id
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.settings import Settings
from chalicelib.usecases.merchants.access import source_number
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.workers import demo
from infra.bootstrap import demo_is_published, demo_keys, make_key, prepare
from infra.deploy import create_stack
from infra.local.aws import LocalAws, Snapshot
from tests.deploy.declared import CHALICE
from tests.deploy.rights import Recorder, allowed
from tests.support.stack import Client

pytestmark = pytest.mark.filterwarnings("ignore:.*not supported by moto's CloudFormation")
WAITED: list[float] = []
CALLS: set[tuple[str, str]] = set()


def use(patch: pytest.MonkeyPatch) -> wiring.Services:
    """A process of the stage demo."""
    patch.setenv("STAGE", "demo")
    patch.setenv("WEBHOOKS_ALLOW_PRIVATE", "false")  # as nothing else is allowed there
    wiring.forget()
    return wiring.services()


@pytest.fixture(scope="module")
def filled(running_aws: LocalAws) -> Iterator[tuple[LocalAws, Snapshot, dict[str, str]]]:
    """A demo deployment after its first reset."""
    with running_aws.active(), pytest.MonkeyPatch.context() as patch:
        running_aws.reset_data()
        create_stack("demo")
        wired = use(patch)
        prepare(wired, boto3.client("kms"))
        keys = demo_keys(wired)
        recorder = Recorder()
        send = BaseClient._make_api_call

        def noted(self: Any, operation: str, sent: dict[str, Any]) -> Any:
            recorder.note(self.meta.service_model.service_name, operation, sent)
            return send(self, operation, sent)

        with pytest.MonkeyPatch.context() as listening:
            listening.setattr(BaseClient, "_make_api_call", noted)
            assert demo.run(WAITED.append)
        CALLS.update((action, arn) for _, action, arn in recorder.calls)
        taken = running_aws.snapshot()
        patch.undo()
        wiring.forget()
        yield running_aws, taken, keys
        for stack in ("gateway-demo", "gateway-demo-keys"):  # a worker that comes back to this module makes both again
            boto3.client("cloudformation").delete_stack(StackName=stack)


@pytest.fixture
def deployed(filled: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[wiring.Services, Client, dict[str, str]]]:
    running, taken, keys = filled
    from app import app

    with running.active():
        running.restore(taken)
        yield use(monkeypatch), Client(app, "demo"), keys
        monkeypatch.undo()
        wiring.forget()


def states(wired: wiring.Services, kind: Any) -> set[str]:
    return {record.status for record in wired.store.every(kind)}


def test_keys_are_made_again_where_a_cut_left_fewer(deployed, monkeypatch):
    """`prepare` shows them once: of those that were made before the cut nobody saw any."""
    wired, _, _ = deployed
    assert demo_is_published(wired)
    every = wired.api_keys.every
    monkeypatch.setattr(wired.api_keys, "every", lambda tenant: list(every(tenant))[:1])
    assert not demo_is_published(wired)


def test_there_is_something_of_every_kind(deployed):
    wired, client, keys = deployed
    assert WAITED == [demo.NOTICE_SECONDS]
    invoices = {i.status for i in wired.store.every(Invoice)}
    assert invoices == {"pending", "partial", "confirming", "completed", "expired", "cancelled"}
    assert any(i.late for i in wired.store.every(Invoice))
    assert states(wired, Deposit) >= {"pending", "confirmed", "orphaned"}
    assert any(d.flags for d in wired.store.every(Deposit))
    for withdrawal in wired.store.every(Withdrawal):
        wired.payouts.pay(withdrawal.tenant, withdrawal.id)  # what the payout function does
    for network in ("ethereum", "litecoin"):
        demo.poll.poll(network)
    assert states(wired, Withdrawal) == {"pending", "confirming", "confirmed", "failed", "cancelled"}
    assert {w.pending_reason for w in wired.store.every(Withdrawal) if w.status == "pending"} == {"approval"}
    assert audit(wired.store) == []
    assert wired.sandbox_time.look() == 0
    listed = client.call("GET", "/v1/transactions?limit=100", keys["client_test"]).json["data"]
    assert {t["status"] for t in listed} >= {"pending", "confirmed", "orphaned"}
    shown = client.call("GET", "/v1/invoices/getAll", keys["client_test"]).json["data"]
    assert "30" in {invoice.get("overpaid") for invoice in shown}


def test_the_function_may_do_what_it_does_and_touches_no_other_stage(deployed):
    policy = json.loads((CHALICE / "policy-demo_reset-demo.json").read_text())
    assert CALLS
    assert sorted(call for call in CALLS if not allowed(policy, *call)) == []
    assert [file.name for file in CHALICE.glob("policy-demo_reset-*.json")] == ["policy-demo_reset-demo.json"]
    assert all("gateway-demo" in arn for statement in policy["Statement"] for arn in statement["Resource"])
    assert {action.split(":")[0] for statement in policy["Statement"] for action in statement["Action"]} == {
        "logs",
        "dynamodb",
        "sqs",
    }


def test_nothing_of_it_is_live(deployed):
    wired, client, keys = deployed
    assert wired.store.catalogue("live").networks == {}
    assert Settings(stage="demo").keys == ("data", "webhooks", "hot-test")
    assert client.call("GET", "/v1/networks", "sk_live_" + "a" * 16).status == 401
    with pytest.raises(ValueError, match="no live keys"):
        make_key(wired, SHOP, "live", "client", ("full",), "live")
    live = default_networks("live")[1]
    for make in (wired.reader, wired.payer):
        with pytest.raises(LookupError, match="simulated networks only"):
            make(live)
    assert all(network["isTestnet"] for network in client.call("GET", "/v1/networks", keys["client_test"]).json)
    published = [key for who in (SHOP, OPERATOR) for key in wired.api_keys.every(tenant_id(who, "test"))]
    assert len(published) == 3
    assert not any("keys:write" in key.permissions for key in published)
    answer = client.call("GET", "/v1/networks", keys["client_test"])
    assert answer.headers["x-ratelimit-limit"] == "60"


def test_the_clock_is_moved_by_a_week_at_most(deployed):
    _, client, keys = deployed
    moved = client.call("POST", "/v1/sandbox/clock", keys["client_test"], json={"advance": 7 * 86_400})
    assert moved.status == 201
    assert client.call("POST", "/v1/sandbox/clock", keys["client_test"], json={"advance": 1}).status == 400


def test_a_day_later_everything_is_put_back_and_keys_go_on_working(deployed):
    wired, client, keys = deployed
    before = {i.external_id for i in wired.store.every(Invoice)}
    ethereum = wired.catalogue("test").networks["ethereum"]
    client.call("PUT", "/v1/networks", keys["admin_test"], json={"network": "bsc", "status": "inactive", "name": "Mine"})
    wired.store.commit([Save(Coin(ethereum.id, "mine", "MINE", "Mine", 6, demo.PAYEE))])
    made = client.call("POST", "/v1/invoices", keys["client_test"], json={"currency": "eth", "amount": 1})
    assert made.status == 201
    assert not demo.run(WAITED.append)
    wired.clock.shift_ms = EVERY_MS + 1
    pool = wired.store.index_pool("test:evm")
    assert demo.run(lambda _: None)
    # Addresses go on behind those of yesterday, as far as they might have.
    assert replace(wired.store.index_pool("test:evm"), count=0) == replace(pool, count=0)
    assert wired.store.index_pool("test:evm").count >= pool.count
    assert wired.ceilings.recorded("test", "evm") == pool.ceiling
    assert {i.external_id for i in wired.store.every(Invoice)} == before
    networks = {n["network"]: n for n in client.call("GET", "/v1/networks", keys["client_test"]).json}
    assert (networks["bsc"]["status"], networks["bsc"]["name"]) == ("active", "BNB Smart Chain")
    assert wired.catalogue("test").coin("ethereum", "mine") is None
    assert client.call("GET", f"/v1/invoices?id={made.json['id']}", keys["client_test"]).status == 400
    assert audit(wired.store) == []


@pytest.mark.parametrize("where", [pytest.param("wipe_demo", marks=pytest.mark.sweep), "fill"])
def test_a_reset_that_dies_is_done_again(deployed, monkeypatch, where):
    wired, client, keys = deployed
    wired.clock.shift_ms = EVERY_MS + 1

    class Died(BaseException):
        pass

    def dies(*_: Any) -> None:
        raise Died

    with monkeypatch.context() as patch:
        if where == "wipe_demo":
            patch.setattr(wired, "wipe_demo", dies)
        else:
            patch.setattr(demo._Filling, "confirmed", dies)
        with pytest.raises(Died):
            demo.run(lambda _: None)
    wired = use(monkeypatch)
    wired.clock.shift_ms = EVERY_MS + 1
    # Requests get sane answers meanwhile: reads go on, nothing is changed; nobody else begins the same at once.
    assert client.call("GET", "/v1/invoices/getAll", keys["client_test"]).status == 200
    refused = client.call("POST", "/v1/invoices", keys["client_test"], json={"currency": "eth", "amount": 1})
    assert (refused.status, refused.json["code"]) == (400, "VALIDATION_ERROR")
    assert "being reset" in refused.json["error"]
    assert not demo.run(lambda _: None)
    wired.clock.shift_ms += LEASE_MS
    assert demo.run(lambda _: None)
    assert len(list(wired.store.every(Invoice))) == 9
    assert audit(wired.store) == []
    made = client.call("POST", "/v1/invoices", keys["client_test"], json={"currency": "eth", "amount": 1})
    assert made.status == 201


def test_two_resets_at_once_are_one(deployed):
    wired, _, _ = deployed
    wired.clock.shift_ms = EVERY_MS + 1
    assert wired.demo_resets.begin()
    assert not wired.demo_resets.begin()
    assert not demo.run(lambda _: None)


def test_what_visitors_counted_up_is_not_counted_after_a_reset(deployed):
    wired, client, keys = deployed

    def register(n: int) -> int:
        body = {"url": f"https://shop.example/{n}", "events": ["*"]}
        return client.call("POST", "/v1/webhooks", keys["client_test"], json=body).status

    assert [register(n) for n in range(21)] == [201] * 20 + [400]
    wired.clock.shift_ms = EVERY_MS + 1
    assert demo.run(lambda _: None)
    assert client.call("GET", "/v1/webhooks", keys["client_test"]).json["data"] == []
    wired.clock.shift_ms += 61_000
    assert [register(n) for n in range(21)] == [201] * 20 + [400]


def test_a_key_that_was_imported_before_a_reset_is_imported_again(deployed):
    wired, client, keys = deployed
    body = {"network": "ethereum", "type": "collector", "privateKey": "0" * 63 + "1"}

    def register() -> Any:
        return client.call("POST", "/v1/addresses/service-wallets", keys["admin_test"], json=body)

    first = register()
    assert first.status == 201
    wired.clock.shift_ms = EVERY_MS + 1
    assert demo.run(lambda _: None)
    again = register()
    assert (again.status, again.json) == (201, first.json)
    assert register().status == 400, "there is one now"
    wallet = wired.store.get(Wallet, network="test:ethereum", role="collector")
    digest = bytes(range(32))
    assert wired.signer.sign(wallet, digest).r > 0


def test_one_visitor_uses_no_key_up_for_the_others(deployed):
    wired, client, keys = deployed

    def look(source: str) -> Any:
        return client.call("GET", "/v1/networks", keys["client_test"], source_ip=source)

    now = wired.clock.now_ms()
    other = next(f"203.0.113.{n}" for n in range(256) if source_number(f"203.0.113.{n}", now) != source_number("198.51.100.9", now))
    wired.clock.now_ms = lambda: now
    assert [look("198.51.100.9").status for _ in range(61)] == [200] * 60 + [429]
    answer = look(other)
    assert (answer.status, answer.headers["x-ratelimit-remaining"]) == (200, "59")
    del wired.clock.now_ms
