"""app.py as the platform sees it: what importing it costs, and paths that API Gateway takes."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest

from chalicelib.settings import TABLES, Settings
from tests.deploy.conftest import ROOT, run_python
from tests.deploy.declared import consumers

HEAVY = (
    "web3", "tronpy", "google.protobuf", "bitcoinlib", "eth_account", "eth_keyfile", "py_ecc", "sqlalchemy", "boto3", "aiohttp",
)  # fmt: skip

_FIRST_REQUEST = f"""
import json, sys
import app
from chalicelib import wiring
wired = wiring.services()
wired.store, wired.gate, wired.queues, wired.invoices, wired.withdrawals, wired.webhooks, wired.addresses
print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))
"""

_LATER = (
    "pydantic", "chalicelib.domain.addresses.addresses", "chalicelib.domain.chain", "chalicelib.domain.deposits",
    "chalicelib.domain.invoices", "chalicelib.domain.ledger", "chalicelib.domain.reconciliation", "chalicelib.domain.recovery",
    "chalicelib.domain.refunds", "chalicelib.domain.screening.risk", "chalicelib.domain.treasury",
    "chalicelib.domain.withdrawals", "chalicelib.store.queues",
)  # fmt: skip
"""What a start of the API, poll, payout and deliver does not need: `tests/bench/bench_cold_start.py` has their times."""

_START = f"""
import gc, json, os, sys
from importlib import import_module
os.environ["_HANDLER"], *modules = sys.argv[1:]
import app
for module in modules:
    import_module(module)
from chalicelib import wiring
wired = wiring.services()
wired.store, wired.gate
loaded = [name for name in ("chalicelib.api.edge", *{_LATER!r}) if name in sys.modules]
print(json.dumps([loaded, gc.get_threshold()[0]]))
"""


def test_the_api_loads_no_chain_library() -> None:
    """Neither on import nor when it builds what requests need."""
    assert json.loads(run_python(ROOT, "-c", _FIRST_REQUEST)) == []


@pytest.mark.parametrize(
    ("started", "loaded"),
    [
        (("app.app",), ["chalicelib.api.edge"]),
        (("app.payout", *(f"chalicelib.workers.{worker}" for worker in ("payout", "poll", "deliver"))), []),
    ],
)
def test_a_start_loads_what_it_needs_and_looks_for_little_garbage(started: tuple[str, ...], loaded: list[str]) -> None:
    """The edge of requests is loaded at once where requests come, and nowhere else."""
    assert json.loads(run_python(ROOT, "-c", _START, *started)) == [loaded, 100_000]


def test_app_imports_its_workers_only_when_called() -> None:
    tree = ast.parse((ROOT / "app.py").read_text())
    at_once = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
    at_once |= {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
    assert "chalicelib.api" in at_once
    assert at_once <= {"__future__", "gc", "typing", "chalice", "chalice.app", "chalicelib.api", "chalicelib.settings"}


def path_nodes(paths: list[str]) -> set[str]:
    """API Gateway's resources: one for every part of every path, and the root. Parameters' names count as their own."""
    nodes = {"/"}
    for path in paths:
        parts = path.strip("/").split("/")
        nodes |= {"/" + "/".join(parts[: n + 1]) for n in range(len(parts))}
    return nodes


def test_path_nodes_are_counted() -> None:
    assert path_nodes(["/a/b/{c}", "/a/d"]) == {"/", "/a", "/a/b", "/a/b/{c}", "/a/d"}


def test_paths_fit_api_gateway() -> None:
    """At most 300 resources, and one parameter name among siblings (decisions §1)."""
    from app import app

    nodes = path_nodes(list(app.routes))
    assert len(nodes) < 300
    parameters: dict[str, set[str]] = {}
    for node in nodes:
        parent, _, part = node.rpartition("/")
        if part.startswith("{"):
            parameters.setdefault(parent, set()).add(part)
    assert {parent: names for parent, names in parameters.items() if len(names) > 1} == {}


def test_consumers_hand_over_each_message_and_let_failures_through(monkeypatch: Any) -> None:
    from chalice.test import Client

    import app

    for consumer in consumers("local"):
        worker = "deliver" if consumer == "deliver_slow" else consumer
        seen: list[str] = []

        def handle(body: str, seen: list[str] = seen) -> None:
            seen.append(body)
            if body == "bad":
                raise LookupError("it failed")

        monkeypatch.setattr(f"chalicelib.workers.{worker}.handle", handle)
        with Client(app.app) as client:
            client.lambda_.invoke(consumer, client.events.generate_sqs_event(['{"id": "1"}']))
            assert seen == ['{"id": "1"}']
            try:
                client.lambda_.invoke(consumer, client.events.generate_sqs_event(["bad"]))
            except LookupError:
                continue
            raise AssertionError(f"{consumer} swallowed a failure: SQS would delete the message")


def test_lambda_gets_the_answer_of_a_batch(monkeypatch: Any) -> None:
    """What Lambda calls is the handler that app.py names: Chalice passes through what it returns. Who takes several messages
    answers, and who takes one does not.
    """
    from chalice.app import SQSEventConfig

    import app

    def handle(body: str) -> None:
        if body.startswith("bad"):
            raise LookupError("it failed")

    bodies = ["good", "bad 1", "good", "bad 2"]
    arn = "arn:aws:sqs:eu-central-1:123456789012:a"
    records = [{"messageId": f"m{n}", "receiptHandle": "r", "body": b, "eventSourceARN": arn} for n, b in enumerate(bodies)]
    answering = set()
    for source in app.app.event_sources:
        if isinstance(source, SQSEventConfig):
            worker = "deliver" if source.name == "deliver_slow" else source.name
            monkeypatch.setattr(f"chalicelib.workers.{worker}.handle", handle)
            assert source.batch_size in (1, 10)
            if source.batch_size == 10:
                answering.add(source.name)
                found = getattr(app, source.name)({"Records": records}, None)
                assert found == {"batchItemFailures": [{"itemIdentifier": "m1"}, {"itemIdentifier": "m3"}]}
    assert answering == {"relay", "deliver", "deliver_slow"}


def test_what_queues_may_take_leaves_the_api_its_part() -> None:
    from chalice.app import SQSEventConfig

    import app

    bounds = {s.name: s.maximum_concurrency for s in app.app.event_sources if isinstance(s, SQSEventConfig)}
    assert bounds == {
        "relay": 100,
        "deliver": 100,
        "deliver_slow": 20,
        "scan_range": 4,
        "compare": 16,
        "tick": 20,
        "record": 8,
        "payout": 20,
        "collect": 8,
    }


def test_every_network_has_its_clock(monkeypatch: Any) -> None:
    from chalice.test import Client

    import app
    from chalicelib.domain.catalogue.catalogue import NETWORK_ORDER

    polled: list[str] = []
    kept: list[bool] = []
    monkeypatch.setattr("chalicelib.workers.poll.run", polled.append)
    monkeypatch.setattr("chalicelib.workers.housekeeping.run", lambda: kept.append(True))
    with Client(app.app) as client:
        for network in NETWORK_ORDER:
            client.lambda_.invoke(f"poll_{network}", client.events.generate_cw_event("aws.events", "Scheduled Event", {}, []))
        client.lambda_.invoke("housekeeping", client.events.generate_cw_event("aws.events", "Scheduled Event", {}, []))
    assert polled == list(NETWORK_ORDER)
    assert kept == [True]


def test_table_names_carry_the_stage() -> None:
    assert {Settings(stage="demo").table(t) for t in TABLES}.isdisjoint({Settings(stage="prod").table(t) for t in TABLES})


def test_only_the_demo_has_a_reset() -> None:
    """On every other stage there is no such function, so nothing could start it."""
    names = (
        "import os, json, sys; os.environ['STAGE'] = sys.argv[1]; import app; "
        "print(json.dumps([source.name for source in app.app.event_sources]))"
    )
    found = {stage: "demo_reset" in json.loads(run_python(ROOT, "-c", names, stage)) for stage in ("local", "demo", "prod")}
    assert found == {"local": False, "demo": True, "prod": False}
