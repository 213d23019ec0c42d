"""Seconds from a block, or from a mempool, to the received webhook, on this machine: `make run NODES=1 CLOCK=deployed`.

Run as a script: ``python tests/bench/bench_measured.py`` (about four minutes). Exit code 1 where p95 is over `BUDGET_S`, the goals
that bench_seconds.py simulates, or where a payment is not told of in `LONGEST_S`.

anvil mines a block for each payment; litecoind keeps payments in its mempool. All of the service, moto and eight nodes share one
machine, and what AWS adds on the way is not in it.
"""

from __future__ import annotations

import http.client
import json
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from chalicelib.chains.rpc import JsonRpc  # noqa: E402
from infra.local.nodes import send_native  # noqa: E402
from tests.support.receiver import Receiver  # noqa: E402
from tests.support.running import Running, free_port  # noqa: E402

PAYMENTS = 40
GAP_S = 1.5
LONGEST_S = 90.0
BUDGET_S = {"ethereum": 5.0, "litecoin": 8.0}
"""p95."""


class Stack:
    """A running local stack, called as a live merchant."""

    def __init__(self, running: Running) -> None:
        told = running.wait_until_up()
        self.port, self.key, self.nodes = running.port, told["keys"]["client_live"], told["nodes"]

    def call(self, method: str, path: str, body: Any = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {"X-Api-Key": self.key, "Content-Type": "application/json", "Accept": "application/json"}
        connection.request(method, f"/api{path}", None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        content = json.loads(answer.read())
        connection.close()
        if answer.status not in (200, 201):
            raise SystemExit(f"{method} {path}: {content}")
        return content


class Heard:
    """When each transaction was told of first, by its id."""

    def __init__(self, receiver: Receiver) -> None:
        self.at: dict[str, float] = {}
        self._receiver, self._ended = receiver, threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        seen = 0
        while not self._ended.wait(0.005):
            for each in self._receiver.received[seen:]:
                seen += 1
                found = json.loads(each.body)["data"]
                self.at.setdefault(str(found.get("txid") or found.get("hash")), time.monotonic())

    def end(self) -> None:
        self._ended.set()
        self._thread.join()


def main() -> int:
    """Prints the table. The stack, its nodes and the receiver end with it."""
    with tempfile.TemporaryDirectory() as folder, Receiver() as receiver:
        running = Running(Path(folder), free_port(), NODES="1", CLOCK="deployed")
        try:
            stack = Stack(running)
            stack.call("POST", "/v1/webhooks", {"url": f"http://127.0.0.1:{receiver.port}/", "events": ["transaction.detected"]})
            heard = Heard(receiver)
            print(
                "\nMeasured, NODES=1 CLOCK=deployed:\n\n|network|payments|heard|p50 s|p95 s|longest s|\n|---|---|---|---|---|---|"
            )
            ethereum, litecoin = (JsonRpc(stack.nodes[slug]) for slug in ("ethereum", "litecoin"))
            kept = [
                _network(stack, heard, "ethereum", "eth", lambda address: send_native(ethereum, address, 10**16)),
                _network(stack, heard, "litecoin", "ltc", lambda address: str(litecoin.call("sendtoaddress", [address, "0.01"]))),
            ]
            heard.end()
        finally:
            running.process.send_signal(signal.SIGINT)
            running.process.communicate(timeout=60)
    print(f"budgets of p95 in s, {BUDGET_S}: {'kept' if all(kept) else 'BROKEN'}")
    return 0 if all(kept) else 1


def _network(stack: Stack, heard: Heard, slug: str, coin: str, pay: Callable[[str], str]) -> bool:
    """Payers look at their pages, and pay some time later. Whether all were told of, within the budget."""
    luck, sent = random.Random(17), {}
    for _ in range(PAYMENTS):
        invoice = stack.call("POST", "/v1/invoices", {"currency": coin, "amount": "0.01", "network": slug})
        stack.call("GET", f"/pay/{invoice['id']}/status")
        time.sleep(luck.uniform(0, 2 * GAP_S))
        begun = time.monotonic()
        sent[pay(invoice["address"])] = begun
    until = time.monotonic() + LONGEST_S
    while not sent.keys() <= heard.at.keys() and time.monotonic() < until:
        time.sleep(0.05)
    took = sorted(heard.at[txid] - at for txid, at in sent.items() if txid in heard.at)
    if not took:
        raise SystemExit(f"{slug}: no payment was told of in {LONGEST_S:.0f} s")
    p50, p95 = took[len(took) // 2], took[min(len(took) - 1, len(took) * 95 // 100)]
    print(f"|{slug}|{len(sent)}|{len(took)}|{p50:.2f}|{p95:.2f}|{took[-1]:.2f}|", flush=True)
    return len(took) == len(sent) and p95 <= BUDGET_S[slug]


if __name__ == "__main__":
    sys.exit(main())
