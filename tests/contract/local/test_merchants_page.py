"""docs/merchants.md: its commands in their order, and its programs, each run as it stands against the whole service."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from chalicelib.wiring import services
from infra.local import queues
from infra.local.keeper import free_port
from infra.local.pump import Pump
from infra.local.server import Server
from tests.support.documented_receivers import LANGUAGES, Documented, program_of
from tests.support.stack import Stack

pytestmark = pytest.mark.nodes

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = DOCS / "merchants.md"
PROGRAMS = {"python": "shop.py", "js": "shop.mjs", "php": "shop.php"}
PERIODS = {"poll_ethereum": 0.1, "poll_bsc": 0.1}
"""Seconds; the other schedules never fire: nothing of theirs is on the page."""
NEVER = 1e9
SECONDS = 120
"""For a page or a program, on a machine that has a lot to do."""
MARK = "-- done --"


@pytest.fixture
def port(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Where the service answers, with its clocks and queues at work."""
    port = free_port()
    monkeypatch.setenv("PUBLIC_URL", f"http://127.0.0.1:{port}/api")
    server = Server(stack.app, port)
    pump = Pump(stack.app, {each.name: PERIODS.get(each.name, NEVER) for each in queues.schedules(stack.app)})
    with ExitStack() as running:
        running.callback(server.stop)
        server.start()
        running.callback(pump.stop)
        pump.start()
        yield port


class Shell:
    """One bash, in which the blocks of a page run one after the other."""

    def __init__(self, folder: Path, key: str) -> None:
        bash = shutil.which("bash")
        assert bash is not None
        self._process = subprocess.Popen(
            [bash],
            cwd=folder,
            env={**os.environ, "KEY": key},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._limit = threading.Timer(SECONDS, self._process.kill)
        self._limit.start()

    def run(self, block: str) -> str:
        """What it prints."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{block}\necho; echo '{MARK}'\n")
        self._process.stdin.flush()
        printed = ""
        for line in self._process.stdout:
            if line.strip() == MARK:
                return printed
            printed += line
        raise AssertionError(f"no end within {SECONDS} seconds:\n{block}\n{printed}")

    def close(self) -> None:
        self._limit.cancel()
        self._process.kill()
        self._process.communicate()


def blocks(page: Path) -> list[tuple[str, list[str]]]:
    """The commands of a page in their order, each block with the answers that are shown below it."""
    found: list[tuple[str, list[str]]] = []
    for language, content in re.findall(r"^```(sh|json)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
        if language == "sh":
            found.append((content, []))
        else:
            found[-1][1].append(content)
    return found


def answers(printed: str) -> list[Any]:
    """The JSON objects among what was printed."""
    found, at, decoder = [], 0, json.JSONDecoder()
    while (start := printed.find("{", at)) >= 0:
        try:
            answer, at = decoder.raw_decode(printed, start)
            found.append(answer)
        except ValueError:
            at = start + 1
    return found


def holds(shown: Any, answer: Any) -> bool:
    """Whether `answer` has what is `shown` of it; `…` stands for any text."""
    if isinstance(shown, dict):
        return isinstance(answer, dict) and all(name in answer and holds(value, answer[name]) for name, value in shown.items())
    if isinstance(shown, list):
        return isinstance(answer, list) and len(shown) == len(answer) and all(map(holds, shown, answer))
    if isinstance(shown, str) and "…" in shown:
        return isinstance(answer, str) and re.fullmatch(re.escape(shown).replace("…", ".+"), answer, re.DOTALL) is not None
    return bool(shown == answer)


class Reader:
    """A newcomer who does what the page says, and compares what comes with what it shows."""

    def __init__(self, stack: Stack, port: int, folder: Path, running: ExitStack) -> None:
        self.stack, self.port, self.hook, self.folder, self.running = stack, port, free_port(), folder, running
        self.receiver: Documented | None = None
        self.shell = Shell(folder, stack.keys["client_test"])
        running.callback(self.shell.close)

    def follow(self, commands: str, shown: list[str]) -> None:
        """Run one block. What it answers last is compared; a refusal comes where the page shows one, and nowhere else."""
        here = commands.replace("127.0.0.1:8000", f"127.0.0.1:{self.port}").replace("127.0.0.1:9000", f"127.0.0.1:{self.hook}")
        printed = self.shell.run(here)
        found = answers(printed)
        refused = any("error" in answer for answer in found)
        assert refused == any('"error"' in each for each in shown), f"{commands}\n{printed}"
        assert all(holds(json.loads(each), found[-1]) for each in shown), f"{commands}\n{printed}"
        if "grep -i" in commands:
            assert printed.strip().lower() == "idempotency-replayed: true"
        if "/webhooks" in commands and "secret" in found[-1]["data"]:
            secret = found[-1]["data"]["secret"]
            self.receiver = self.running.enter_context(Documented("python", secret, self.folder / "receiver", self.hook))
        if "/redeliver" in commands:
            self.until_delivered(found[-1]["data"])

    def completions(self) -> int:
        assert self.receiver is not None
        return sum(line.startswith("invoice.completed ") for line in self.receiver.handled())

    def until_delivered(self, delivery: dict[str, Any]) -> None:
        path = f"/v1/webhooks/{delivery['webhookId']}/deliveries"

        def delivered() -> bool:
            (found,) = self.stack.call("GET", path, self.stack.keys["client_test"], query={"id": delivery["id"]}).json["data"]
            return bool(found["status"] == "delivered")

        until(delivered, "the receiver takes the event again")
        assert self.completions() == 1, "an event that comes again is handled once"


def all_recorded() -> bool:
    """Whether nothing of what was sent waits for its record: then it is listed."""
    return not [work for work in services().store.every_work() if work.kind == "delivery"]


def until(holding: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 30
    while not holding():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def test_the_commands_take_a_shop_through_its_day(stack: Stack, port: int, tmp_path: Path) -> None:
    with ExitStack() as running:
        reader = Reader(stack, port, tmp_path, running)
        for commands, shown in blocks(PAGE):
            if "/redeliver" in commands:
                until(lambda: reader.completions() == 1, "the receiver prints invoice.completed")
                until(all_recorded, "what it took is recorded")
            reader.follow(commands, shown)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_program_takes_a_shop_through_its_day(language: str, stack: Stack, port: int, tmp_path: Path) -> None:
    program, environment = program_of(language)
    name, hook = PROGRAMS[language], free_port()
    assert f"shop/{name}" in PAGE.read_text(encoding="utf-8")
    variables = {"KEY": stack.keys["client_test"], "API": f"http://127.0.0.1:{port}/api/v1", "PORT": str(hook)}
    process = subprocess.Popen(
        [program, str(DOCS / "shop" / name)],
        cwd=tmp_path,
        env={**os.environ, **environment, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    limit = threading.Timer(SECONDS, process.kill)
    limit.start()
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        forged = forge(hook, first.partition(" ")[0])
        rest, errors = process.communicate()
    finally:
        limit.cancel()
        process.kill()
    lines = (first + rest).splitlines()
    assert (process.returncode, errors) == (0, ""), lines
    assert forged == 401
    said = [re.sub(r"http\S+", "<page>", re.sub(r"^\S+-(\d) ", r"\1 ", line)) for line in lines]
    too_much = "amount is more than can be refunded: of what is credited for this invoice, 49.9 USD is not refunded yet"
    assert sorted(said) == sorted(
        [
            "1 ordered: <page>", "1 shipped", f"1 refused: {too_much}", "1 gives back 9.9 usdt", "1 paid back",
            "2 ordered: <page>", "2 shipped", "2 gives back 5 usdt", "2 paid back",
            "3 ordered: <page>", "3 gives back 30 usdc", "3 paid back",
            "4 ordered: <page>", "4 gives back 10 usdt", "4 paid back",
        ]
    )  # fmt: skip
    assert stack.call("GET", "/v1/webhooks", stack.keys["client_test"]).json["data"] == [], "it takes its webhook away"


def forge(port: int, number: str) -> int:
    """What the receiver at `port` answers to an event that nobody signed with its secret."""
    body = json.dumps({"event": "invoice.completed", "data": {"metadata": {"order": number}}, "id": "evt_forged"})
    headers = {"webhook-id": "evt_forged", "webhook-timestamp": str(int(time.time())), "webhook-signature": f"v1,{'A' * 43}="}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("POST", "/hook", body, {"Content-Type": "application/json", **headers})
    status = connection.getresponse().status
    connection.close()
    return status
