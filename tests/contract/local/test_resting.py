"""The local stack rests where nobody asks and nothing goes on by itself, and is awake before a request is answered."""

from __future__ import annotations

import os
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chalice.app import Chalice, Rate

from chalicelib.domain.work import Work
from chalicelib.usecases.ports.changes import Close, Open
from chalicelib.wiring import services
from infra.local import pump as pump_module
from infra.local.aws import LocalAws
from infra.local.pace import GIVEN_UP_AFTER, PATIENT, REST_AFTER, REST_SECONDS, Pace, open_kinds
from infra.local.pump import Pump
from infra.local.server import Server
from tests.support.asking import ask
from tests.support.running import Running, free_port
from tests.support.stack import Stack

MOST_OF_A_CORE = 0.05


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_it_rests_after_a_while_without_requests() -> None:
    clock = Time()
    pace = Pace(set, clock)
    for since, rests in ((0.0, False), (REST_AFTER - 1, False), (REST_AFTER, True), (3_600.0, True)):
        clock.now = since
        assert pace.rests() is rests
    pace.asked()
    assert not pace.rests()
    clock.now += REST_AFTER
    assert pace.rests()


@pytest.mark.parametrize(
    ("kind", "waits"), [("deposit", False), ("sent", False), ("outbox", False), *((kind, True) for kind in sorted(PATIENT))]
)
def test_open_work_keeps_it_awake_unless_it_waits_for_a_time_or_a_person(kind: str, waits: bool) -> None:
    clock = Time()
    pace = Pace(lambda: {"expiry", kind}, clock)
    clock.now = REST_AFTER + 1
    assert pace.rests() is waits
    clock.now = GIVEN_UP_AFTER
    assert pace.rests(), "what is stuck keeps nobody awake for good"


def test_open_work_is_read_off_the_store(stack: Stack) -> None:
    table = stack.aws.settings.table("work")
    before = open_kinds(table)
    work = Work("rescan", "test:ethereum", "1", "one")
    services().store.commit([Open(work)])
    assert open_kinds(table) == before | {"rescan"}
    services().store.commit([Close(work)])
    assert open_kinds(table) == before


def test_schedules_wait_while_it_rests_and_a_request_wakes_them(aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pump_module, "REST_SECONDS", 60.0)
    monkeypatch.setattr(pump_module, "QUIET_SECONDS", 0.05)
    fired: list[float] = []
    app = Chalice("shop", configure_logs=False)

    @app.schedule(Rate(1, unit=Rate.MINUTES))
    def poll_bitcoin(event: Any) -> None:
        fired.append(time.monotonic())

    @app.route("/health")
    def health() -> dict[str, str]:
        return {}

    clock = Time()
    pace = Pace(set, clock)
    clock.now = REST_AFTER
    server = Server(app, 0, on_request=pace.asked)
    pump = Pump(app, {"poll_bitcoin": 0.05}, pace)
    server.start()
    pump.start()
    try:
        time.sleep(0.6)
        assert len(fired) == 1, "once at the start, and then not before a minute is over"
        urllib.request.urlopen(f"http://127.0.0.1:{server.port}/api/health", timeout=10).read()
        asked = time.monotonic()
        while len(fired) < 2:
            assert time.monotonic() < asked + 20, "it did not wake"
            time.sleep(0.01)
    finally:
        pump.stop()
        server.stop()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    stack = Running(tmp_path, free_port(), SANDBOX_BLOCK_SECONDS="1")  # tests have a chain without a clock else
    try:
        yield stack
    finally:
        stack.kill()


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.sweep
@pytest.mark.slow
def test_a_stack_that_nobody_asks_takes_little_of_a_core_and_wakes_at_once(running: Running) -> None:
    """By the CPU that the process got in a minute: a busy machine makes it no dearer. A payment afterwards takes its twelve blocks,
    one a second, and not the rest's twenty seconds besides."""
    told = running.wait_until_up()
    time.sleep(REST_AFTER + 5)
    before, began = cpu_seconds(running.process.pid), time.monotonic()
    time.sleep(60)
    share = (cpu_seconds(running.process.pid) - before) / (time.monotonic() - began)
    assert 0 < share <= MOST_OF_A_CORE, f"{share:.3f} of a core"

    invoice = ask(told, "POST", "/invoices", {"currency": "eth", "amount": 0.05})
    payment = {"address": invoice["address"], "network": "ethereum", "coin": "eth", "amount": 0.05}
    ask(told, "POST", "/sandbox/deposits", payment)
    paid, seen = time.monotonic(), 0.0
    while (status := ask(told, "GET", f"/invoices?id={invoice['id']}")["status"]) != "completed":
        if status == "confirming":
            seen = seen or time.monotonic()
        assert time.monotonic() < paid + 60, status
        time.sleep(0.2 if not seen else 1.0)  # a test key may ask a hundred times a minute
    assert 0 < seen - paid < REST_SECONDS / 2, "it was seen by a poll that did not wait for the rest to pass"
