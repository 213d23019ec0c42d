"""Fixtures that every test may use. The environment is set here, before anything of ours is imported.

`aws` is an empty AWS (tables, queues, keys of the stage `local`), `stack` is the whole service after its first start, with
merchants and keys. Both are made once per process and put back to that state before each test that asks for them.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest

os.environ.update({"STAGE": "local", "WEBHOOKS_ALLOW_PRIVATE": "true", "SANDBOX_BLOCK_SECONDS": "0"})

from infra.local.aws import LocalAws, isolate_environment, start_aws
from tests.support.stack import Stack, first_stack

isolate_environment()
gc.disable()  # until all tests are collected: nothing of what is imported meanwhile is garbage

# The same examples in every run: a check fails for what was changed. `make sweep` draws others, and more of them.
# How long an example takes says how busy the machine is, and nothing about the code: times are measured in tests/bench.
_UNTIMED: dict[str, Any] = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("same", derandomize=True, max_examples=40, **_UNTIMED)
hypothesis.settings.register_profile("others", derandomize=False, **_UNTIMED)
hypothesis.settings.load_profile("others" if os.environ.get("SWEEP") == "full" else "same")


_MADE_ONCE = ("browser", "concurrency", "nodes")
"""Folders whose tests share a service, a browser, nodes or a DynamoDB Local: seconds of CPU for each worker that starts them."""

_terminal: Any = None
"""Where failures are shown; None in the workers of `-n`, whose reports the controller shows."""


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    global _terminal  # noqa: PLW0603 - the hooks that get a report get no config
    if not hasattr(config, "workerinput"):
        _terminal = config.get_terminal_writer()


@pytest.fixture(scope="session")
def running_aws() -> Iterator[LocalAws]:
    """AWS for the whole session, parked between the tests that use it. Ask for `aws` instead."""
    from chalicelib.settings import Settings

    running = start_aws(Settings.from_environment())
    running.park()
    yield running
    running.stop()


@pytest.fixture
def aws(running_aws: LocalAws) -> Iterator[LocalAws]:
    """AWS with empty tables and queues."""
    from chalicelib import wiring

    with running_aws.active():
        running_aws.reset_data()
        wiring.forget()
        yield running_aws


@pytest.fixture(scope="session")
def started_stack(running_aws: LocalAws) -> Stack:
    """The service after its first start. Ask for `stack` instead."""
    with running_aws.active():
        return first_stack(running_aws)


@pytest.fixture
def stack(started_stack: Stack) -> Iterator[Stack]:
    """The service as it is after its first start, whatever the test before did."""
    with started_stack.aws.active():
        started_stack.reset()
        yield started_stack


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only `make sweep` has time for, and spread the slow tests over the workers."""
    if os.environ.get("SWEEP") != "full":
        long = [item for item in items if item.get_closest_marker("sweep")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if not item.get_closest_marker("sweep")]
    _spread(items)


def _spread(items: list[pytest.Item]) -> None:
    """Each worker begins with its share of the long tests: at the end, who has nothing left takes short ones from the others.

    Workers get the list in equal parts, one after the other (`--dist worksteal`), so the long ones are put at each part's head.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    groups: dict[str, list[pytest.Item]] = {}
    short = []
    for item in items:
        group = _group(item)
        if group is None:
            short.append(item)
        else:
            groups.setdefault(group, []).append(item)
    shares: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for together in sorted(groups.values(), key=len, reverse=True):
        min(shares, key=len).extend(together)
    ordered: list[pytest.Item] = []
    for n, mine in enumerate(shares):
        rest = len(items) * (n + 1) // workers - len(ordered) - len(mine)
        ordered += [*mine, *short[:rest]]
        del short[:rest]
    items[:] = ordered + short


def _group(item: pytest.Item) -> str | None:
    """What a long test shares with others, so that one worker makes it, once: a module, or a folder's browser or database.
    None for a short test."""
    for folder in item.path.parents:
        if folder.name in _MADE_ONCE:
            return folder.name
    return str(item.path) if item.get_closest_marker("slow") else None


def pytest_collection_finish() -> None:
    """What was imported stays: looking through all of it for garbage again and again takes an eighth of the time of the tests.
    So does what is garbage by now: to look for it takes half a second of each process."""
    gc.freeze()
    gc.set_threshold(200_000, 20, 100)
    gc.enable()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Show a failure when it happens: pytest itself keeps them all for the end, which may be minutes away."""
    if _terminal is None or not report.failed:
        return
    _terminal.line()
    _terminal.sep("_", f"{report.nodeid} failed ({report.when})", red=True)
    report.toterminal(_terminal)
    for name, content in report.sections:
        _terminal.sep("-", name)
        _terminal.line(content.rstrip())
    _terminal.flush()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """The failures were shown already: the end names them once more, a line each."""
    if _terminal is not None:
        session.config.option.tbstyle = "no"
    elif "coverage" in sys.modules:
        _keep_coverage()


def _keep_coverage() -> None:
    """A worker that ends slowly is killed before coverage writes what it has measured (`make coverage`): half of all was lost."""
    measured = sys.modules["coverage"].Coverage.current()
    if measured is not None:
        measured.save()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What the fault sweeps covered: workers' own output is not shown."""
    points: dict[str, int] = {}
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            for name, value in getattr(report, "user_properties", []):
                if name == "cut_points":
                    way = "-".join(report.nodeid.rsplit("[", 1)[-1].rstrip("]").split("-")[-2:])
                    points[way] = points.get(way, 0) + int(value)
    if points:
        terminalreporter.section("fault sweep")
        for path, count in sorted(points.items()):
            terminalreporter.write_line(f"{path}: {count} cut points")
        terminalreporter.write_line(f"{sum(points.values())} cut points, every one followed by an audit without violations")
