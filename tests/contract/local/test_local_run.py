"""`make run` as a process: what it prints works, several run side by side, and it ends calmly."""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.running import Running, free_port

KEYS = {"admin_live", "client_live", "admin_test", "client_test", "other_merchant_test", "read_only_test"}
Start = Callable[..., Running]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    running: list[Running] = []

    def starter(port: int | None = None, **environment: str) -> Running:
        running.append(Running(tmp_path, port or free_port(), **environment))
        return running[-1]

    yield starter
    for each in running:
        each.kill()


def status(port: int, path: str, key: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path, headers={"X-Api-Key": key})
    code = connection.getresponse().status
    connection.close()
    return code


def test_two_run_side_by_side_and_end_calmly(start: Start, tmp_path: Path) -> None:
    first = start()
    one = first.wait_until_up()
    second = start()
    two = second.wait_until_up()
    latest = tmp_path / "runtime.json"
    for running, content in ((first, one), (second, two)):
        assert content["base_url"] == f"http://127.0.0.1:{running.port}/api"
        assert content["pid"] == running.process.pid
        assert set(content["keys"]) == KEYS
        assert content["nodes"] == {}
        assert running.own.stat().st_mode & 0o777 == 0o600
        assert status(running.port, "/api/v1/balances", content["keys"]["client_test"]) == 200
    assert json.loads(latest.read_text()) == two
    assert latest.stat().st_mode & 0o777 == 0o600

    code, errors = first.end(signal.SIGINT)
    assert (code, errors) == (0, "")
    assert not first.own.exists()
    assert json.loads(latest.read_text()) == two
    code, errors = second.end(signal.SIGTERM)
    assert (code, errors) == (0, "")
    assert list(tmp_path.iterdir()) == []


def test_what_it_prints_takes_a_newcomer_through_the_job(start: Start) -> None:
    running = start(SANDBOX_BLOCK_SECONDS="0.05")
    content = running.wait_until_up()
    lines = running.printed()
    assert any(content["base_url"] in line for line in lines)
    for name, key in content["keys"].items():
        assert any(name in line and key in line for line in lines)
    commands = [line.strip() for line in lines if "curl" in line]
    assert len(commands) == 3

    def bash(script: str) -> list[str]:
        shell = shutil.which("bash")
        assert shell is not None
        return subprocess.run([shell, "-c", script], capture_output=True, text=True, timeout=30, check=True).stdout.splitlines()

    address, paid = bash("; ".join(commands[:2]))
    assert json.loads(paid)["data"]["address"] == address
    deadline = time.monotonic() + 30
    while True:
        invoice, balances = (json.loads(line) for line in bash(commands[2]))
        if invoice["status"] == "completed":
            break
        assert time.monotonic() < deadline, invoice
        time.sleep(0.3)
    assert (invoice["address"], invoice["received"]) == (address, "0.05")
    assert [(b["coin"], b["available"]) for b in balances["data"]] == [("eth", "0.05")]
    assert running.end() == (0, "")


def test_a_taken_port_is_one_line(start: Start) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        output, errors = start(port).process.communicate(timeout=20)
    assert output == ""
    assert errors == f"Port {port} is taken. Stop what uses it, or take another: make run PORT={port + 1}\n"


def test_a_clock_that_is_none_is_one_line(start: Start) -> None:
    output, errors = start(CLOCK="slow").process.communicate(timeout=20)
    assert (output, errors) == ("", "CLOCK is 'slow'; it has to be local or deployed\n")


@pytest.mark.parametrize("port", ["eighty", "70000", "-1"])
def test_a_port_that_is_none_is_one_line(start: Start, port: str) -> None:
    running = start(PORT=port)
    output, errors = running.process.communicate(timeout=20)
    assert (running.process.returncode, output, errors.count("\n")) == (1, "", 1)


def test_a_stop_inside_an_import_is_no_fault_and_says_nothing() -> None:
    """Python can not raise in the callbacks of imports, and prints what was raised there."""
    program = """
import sys
from infra.local import run
sys.unraisablehook = run._on_lost
class Dying:
    def __init__(self, error): self.error = error
    def __del__(self): raise self.error
Dying(run._Stop())
print("then", file=sys.stderr)
Dying(ValueError("a fault"))
"""
    said = subprocess.run(
        [sys.executable, "-c", program], cwd=Path(__file__).parents[3], capture_output=True, text=True, check=True
    ).stderr
    assert said.startswith("then\n") and "ValueError: a fault" in said


@pytest.mark.parametrize("delay", [0.4, 1.0])
def test_an_interrupted_start_is_calm_too(start: Start, delay: float) -> None:
    running = start()
    time.sleep(delay)
    code, errors = running.end()
    assert (code, errors) == (0, "")
