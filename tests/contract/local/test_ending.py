"""How `make run` ends: nodes all at once, no thread is waited for, nobody asks the real AWS, and a second Ctrl-C is the last."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, cast

import pytest

from infra.local.devnets import Devnet, Devnets
from infra.local.keeper import alive
from tests.contract.local.shells import DEAF, Shell
from tests.support.running import ROOT, free_port

PATIENT = (
    "trap 'touch $0/$1; while [ $(ls $0 | wc -l) -lt $2 ]; do sleep 0.05; done; touch $0.$1; exit' TERM;"
    " touch $0.$1.up; while :; do sleep 0.05; done"
)
"""Ends once as many others were asked to end as its third argument says."""


def until(true: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_all_nodes_are_asked_to_end_before_any_is_waited_for(tmp_path: Path) -> None:
    asked, count = tmp_path / "asked", 4
    asked.mkdir()
    nodes = Devnets()
    for number in range(count):
        nodes._nodes[str(number)] = cast(Devnet, Shell(PATIENT, str(asked), str(number), str(count)))
    until(lambda: len(list(tmp_path.glob("asked.*.up"))) == count)
    nodes.stop()
    ended = sorted(path.name for path in tmp_path.glob("asked.?"))
    assert ended == [f"asked.{number}" for number in range(count)]


def test_a_node_that_does_not_listen_is_killed_by_its_keeper(tmp_path: Path) -> None:
    """Also where nobody is there any more who could do it."""
    node = Shell(DEAF, str(tmp_path / "up"))
    until((tmp_path / "up").exists)
    assert node._keeper.stdin is not None
    node._keeper.stdin.close()
    node._keeper.wait(timeout=20)
    assert not alive(node.pid)


class Run(Protocol):
    def __call__(self, script: str, **environment: str) -> subprocess.Popen[str]: ...


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Runs a script as `python -m infra.local.run` is run; it has replaced the stack by something smaller."""
    begun: list[subprocess.Popen[str]] = []

    def start(script: str, **environment: str) -> subprocess.Popen[str]:
        variables = {**os.environ, "RUNTIME_FOLDER": str(tmp_path / "runtime"), **environment}
        command = [sys.executable, "-c", script, str(tmp_path / "node-")]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, cwd=ROOT, env=variables, stdout=pipe, stderr=pipe, text=True)
        begun.append(process)
        return process

    yield start
    for process in begun:
        process.kill()
        process.communicate()


BUSY = """
import sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from infra.local import run

def stack(stack, began):
    ThreadPoolExecutor(1).submit(time.sleep, 600)
    time.sleep(0.1)
    print("up", flush=True)
    run._stopped.wait()
    return 0

run._run = stack
run.program()
"""


def test_a_thread_of_a_handler_is_not_waited_for(run: Run) -> None:
    process = run(BUSY)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (0, "")


ASKING = """
import os, socket
from chalicelib.domain.addresses.addresses import Wallet
from infra.local import devnets, run

real = socket.getaddrinfo

def asked(host, *rest, **more):
    if "amazonaws" in str(host):
        print("asked", host, flush=True)
        raise OSError("nobody is asked")
    return real(host, *rest, **more)

class Nodes:
    def start(self): pass
    def infos(self): return None
    def urls(self): return {}
    def fund_hot_wallets(self): pass
    def stop(self):
        # As a handler would that is still at work.
        from chalicelib.wiring import services
        print("found", services().store.get(Wallet, network="test:ethereum", role="hot").role, flush=True)

socket.getaddrinfo = asked
devnets.Devnets = Nodes
run.program()
"""


def test_what_is_still_at_work_does_not_ask_the_real_aws(run: Run) -> None:
    process = run(ASKING, PORT=str(free_port()), NODES="1")
    assert process.stdout is not None
    while "getByExternalId" not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    told, errors = process.communicate(timeout=60)
    assert told.split("\n")[-2:] == ["found hot", ""]
    assert (process.returncode, errors) == (0, "")


STUCK = """
import sys, threading
from infra.local import run, runtime
from tests.contract.local.shells import DEAF, Shell

def stack(stack, began):
    nodes = [Shell(DEAF, sys.argv[1] + name) for name in "ab"]
    stack.callback(threading.Event().wait)
    stack.callback(print, "stopping", flush=True)
    runtime.publish(1, "", {}, {})
    print(*(node.pid for node in nodes), flush=True)
    run._stopped.wait()

run._run = stack
run.program()
"""


def test_a_second_ctrl_c_ends_it_at_once_and_its_nodes(run: Run, tmp_path: Path) -> None:
    process = run(STUCK, PORT="1")
    assert process.stdout is not None
    until(lambda: all((tmp_path / f"node-{name}").exists() for name in "ab"))
    nodes = [int(pid) for pid in process.stdout.readline().split()]
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "stopping\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (128 + signal.SIGINT, "")
    assert list((tmp_path / "runtime").iterdir()) == []
    until(lambda: not any(alive(pid) for pid in nodes))


def test_it_ends_in_any_case_and_its_nodes(run: Run, tmp_path: Path) -> None:
    """One Ctrl-C, and something that is waited for never ends."""
    process = run(STUCK.replace("run._run = stack", "run._run, run._LONGEST = stack, 1.0"), PORT="1")
    assert process.stdout is not None
    until(lambda: all((tmp_path / f"node-{name}").exists() for name in "ab"))
    nodes = [int(pid) for pid in process.stdout.readline().split()]
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (0, "")
    assert list((tmp_path / "runtime").iterdir()) == []
    until(lambda: not any(alive(pid) for pid in nodes))
