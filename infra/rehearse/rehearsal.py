"""The rehearsal: its steps, in order, each with the seconds that it took; at the first that fails, what it said.

Only what is committed is deployed. AWS is a process of this machine (`cloud.py`), with nothing in it at the beginning and nothing
left of it at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from infra.lambda_platform import RUNNING
from infra.local.aws import ENVIRONMENT, REGION
from infra.rehearse import operator
from infra.rehearse.checks import EXPECTED, code_of, demand, demand_called, demand_same, demand_well, seen
from infra.rehearse.money import Failed, Merchant
from infra.rehearse.operator import Operator
from infra.rehearse.shop import ADDRESS, NAME, Shop

ROOT = Path(__file__).resolve().parents[2]
_CHANGED = "chalicelib/api/openapi/words.py"
_TAIL = 4000  # characters


@dataclass
class Rehearsal:
    """What is there by now."""

    folder: Path
    fresh: bool = False
    steps: list[tuple[str, float, bool]] = field(default_factory=list)

    def run(self, stack: ExitStack) -> None:
        """All of it. Raises Failed at the first thing that is not as it has to be; `stack` ends what was started."""
        with self.step("clone and environment"):
            first, python, wheels = self._prepare()
        with self.step("AWS stand-in"):
            shop = Shop(self.folder)
            shop.start()
            stack.callback(shop.stop)
            port = self._start_aws(stack, shop)
        owner = Operator(first, python, port, wheels)
        with self.step("deploy"):
            url = self._deploy(owner)
        with self.step("merchant and key"):
            merchant = Merchant(port, url, self._key(owner))
            before, code = merchant.version(), code_of(owner.command("deploy", "--check"))
            merchant.register(shop)
        with self.step("payment in, told by a signed webhook"):
            merchant.sell(shop, "rehearsal-1")
        with self.step("payout"):
            merchant.take_out(shop)
        books = merchant.books()
        other = Operator(self.folder / "second", python, port, wheels)
        with self.step("upgrade from another checkout"):
            self._upgrade(owner, other, merchant)
            demand_same(books, merchant.books())
            newer = code_of(other.command("deploy", "--check"))
            demand(newer != code, "functions run the code of before")
        with self.step("payment in, by the new version"):
            merchant.sell(shop, "rehearsal-2")
            demand_called(port, newer)
        books = merchant.books()
        with self.step("rollback"):
            owner.command("rollback", "--yes")
            demand(merchant.version() == before, f"the API tells of version {merchant.version()} after the rollback")
            demand_same(books, merchant.books())
        with self.step("payout, by the version before"):
            calls = seen(port)
            merchant.take_out(shop)
            demand_called(port, code, calls)
        books = merchant.books()
        with self.step("take down"):
            self._take_down(owner, merchant)
        with self.step("deploy again"):
            merchant.url = operator.url_of(owner.command("deploy", "--yes"))
            demand_same(books, merchant.books())
        with self.step("payment in, after all that"):
            merchant.sell(shop, "rehearsal-3")
        with self.step("books and functions"):
            owner.command("audit")
            demand_well(seen(port))

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """One step, noted with its time."""
        print(f"\n{name}", flush=True)
        began = time.monotonic()
        try:
            yield
        except BaseException:
            self.steps.append((name, time.monotonic() - began, False))
            raise
        self.steps.append((name, time.monotonic() - began, True))

    def _prepare(self) -> tuple[Path, str, Path | None]:
        clone = self.folder / "first"
        commit = operator.clone(ROOT, clone)
        print(f"  commit {commit[:12]}")
        if left := operator.uncommitted(ROOT):
            print(f"  NOT rehearsed, since no commit has it: {', '.join(line[3:] for line in left[:10])}")
        wheels = operator.wheels_of(clone, ROOT / ".local" / "wheels")
        print(f"  libraries: {'those that tests have kept in .local/wheels' if wheels else 'as pip finds them'}")
        if not self.fresh and operator.same_pins(clone, ROOT):
            print("  environment: the one that runs this; the clone pins the same versions (FRESH=1 makes a new one)")
            self._for_this_python(clone)
            return clone, sys.executable, wheels
        return clone, operator.make_environment(clone, self.folder / "venv"), wheels

    def _for_this_python(self, clone: Path) -> None:
        """Have functions run on the Python that deploys them here, as an operator would who has no other."""
        file = clone / ".chalice" / "config.json"
        settings = json.loads(file.read_text())
        if settings.get("lambda_runtime") != RUNNING:
            print(f"  functions run on {RUNNING}, which this is, in place of {settings.get('lambda_runtime')}")
            file.write_text(json.dumps(settings | {"lambda_runtime": RUNNING}, indent=2))
            operator.git(clone, "commit", "--quiet", "--all", "--message", f"Run functions on {RUNNING}")

    def _start_aws(self, stack: ExitStack, shop: Shop) -> int:
        world = self.folder / "world"
        world.mkdir()
        said = stack.enter_context((self.folder / "aws.log").open("wb"))
        process = subprocess.Popen(
            [sys.executable, "-m", "infra.rehearse.cloud", str(world)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            start_new_session=True,  # Ctrl-C is for the rehearsal, which ends this in order
        )
        stack.callback(_end, process)
        told, answers = process.stdin, process.stdout
        if told is None or answers is None:
            raise Failed("the AWS stand-in has no pipes")
        print(json.dumps({"names": {NAME: [ADDRESS, shop.port]}, "trusted": str(shop.certificate)}), file=told, flush=True)
        line = answers.readline()
        demand(line != "", "the AWS stand-in does not start")
        port = int(json.loads(line)["port"])
        print(f"  http://127.0.0.1:{port}")
        return port

    def _deploy(self, owner: Operator) -> str:
        said = owner.command("deploy", "--alarm-topic", _topic(owner.port), "--yes")
        return operator.url_of(said)

    def _key(self, owner: Operator) -> str:
        owner.command("network", "ethereum", "--status", "inactive")  # a live one has to have a node
        merchant = json.loads(owner.command("merchant", "Rehearsal"))["merchant"]
        return str(json.loads(owner.command("key", merchant, "--realm", "test", "--permissions", "full"))["key"])

    def _upgrade(self, owner: Operator, other: Operator, merchant: Merchant) -> None:
        """A commit that changes what the API says of itself, deployed from a checkout that has never deployed."""
        file = owner.checkout / _CHANGED
        text, before = file.read_text(), merchant.version()
        changed = text.replace(f'"{before}"', f'"{before}+rehearsal"')
        demand(changed != text, f"{_CHANGED} does not name version {before}")
        file.write_text(changed)
        operator.git(owner.checkout, "commit", "--quiet", "--all", "--message", "Say that this is a rehearsal")
        operator.clone(owner.checkout, other.checkout)
        url = operator.url_of(other.command("deploy", "--yes"))
        demand(url == merchant.url, f"another checkout made another API: {url}, not {merchant.url}")
        demand(merchant.version() == f"{before}+rehearsal", f"the API tells of version {merchant.version()} after the upgrade")

    def _take_down(self, owner: Operator, merchant: Merchant) -> None:
        for line in owner.command("delete", "--yes").splitlines():
            if line.startswith("kept: "):
                print(f"    {line}")
        try:
            merchant.version()
        except Failed:
            return
        raise Failed(f"{merchant.url} answers after it was deleted")

    def table(self) -> str:
        """The steps with their seconds."""
        widest = max(len(name) for name, _, _ in self.steps)
        lines = [f"{name:{widest}}  {seconds:7.1f} s  {'ok' if ok else 'FAILED'}" for name, seconds, ok in self.steps]
        return "\n".join([*lines, f"{'':{widest}}  {sum(seconds for _, seconds, _ in self.steps):7.1f} s"])


def _topic(port: int) -> str:
    """An SNS topic, which an operator has before he deploys."""
    import boto3

    sns = boto3.client(
        "sns",
        region_name=REGION,
        endpoint_url=f"http://127.0.0.1:{port}",
        aws_access_key_id=ENVIRONMENT["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=ENVIRONMENT["AWS_SECRET_ACCESS_KEY"],
    )
    return str(sns.create_topic(Name="alarms")["TopicArn"])


def _end(process: subprocess.Popen[str]) -> None:
    """Let the stand-in end its functions and itself; after a minute end it."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _tails(folder: Path) -> str:
    """The ends of what AWS and functions said."""
    files = [folder / "aws.log", *sorted((folder / "world").glob("*.log"))]
    found = [(file, file.read_text(errors="replace").strip()[-_TAIL:]) for file in files if file.exists()]
    return "\n".join(f"== {file.name}\n{text}" for file, text in found if text and file.stem not in EXPECTED)


def main(words: list[str] | None = None) -> int:
    """Rehearse; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m infra.rehearse", description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="make an environment for the clone, as an operator does")
    parser.add_argument("--keep", action="store_true", help="keep clones, packages and logs, and say where")
    args = parser.parse_args(words)
    signal.signal(signal.SIGTERM, _stopped)
    folder = Path(tempfile.mkdtemp(prefix="gateway-rehearsal-"))
    rehearsal, code = Rehearsal(folder, args.fresh), 1
    try:
        with ExitStack() as stack:
            rehearsal.run(stack)
        code = 0
    except Failed as error:
        print(f"\n{_tails(folder)}\n\nFAILED: {error}", flush=True)
    except KeyboardInterrupt:
        print("\nstopped", flush=True)
    finally:
        if args.keep:
            print(f"\nkept: {folder}")
        else:
            _remove(folder)
    print(f"\n{rehearsal.table()}" if rehearsal.steps else "", flush=True)
    return code


def _remove(folder: Path) -> None:
    """Delete a folder; its packages are read-only."""
    for place in (folder / "world").glob("task-*"):
        for each, _, _ in os.walk(place):
            Path(each).chmod(0o755)
    shutil.rmtree(folder)


def _stopped(number: int, frame: Any) -> NoReturn:
    raise KeyboardInterrupt
