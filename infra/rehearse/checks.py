"""What has to be so after each step of a rehearsal."""

from __future__ import annotations

import http.client
import json
from typing import Any

from infra.rehearse.money import Failed, until
from infra.rehearse.operator import STAGE

EXPECTED = {f"gateway-{STAGE}-rates": "no provider of rates answers"}
"""Failures that a rehearsal has: no provider of rates can be asked without a network. The sandbox has rates of its own."""


def demand(true: bool, otherwise: str) -> None:
    """Raises Failed with `otherwise` unless it is so."""
    if not true:
        raise Failed(otherwise)


def demand_same(before: list[Any], after: list[Any]) -> None:
    """Raises Failed where the merchant reads something else of his money."""
    demand(before == after, f"money reads otherwise:\n  {before}\n  {after}")


def demand_called(port: int, code: str, before: dict[str, Any] | None = None) -> None:
    """Wait until the API and what moves money were called with this code, since `before` was seen. Raises Failed."""

    def calls(found: dict[str, Any], name: str) -> int:
        return int(found["functions"].get(name, {"codes": {}})["codes"].get(code, 0))

    for name in (f"gateway-{STAGE}", f"gateway-{STAGE}-relay", f"gateway-{STAGE}-deliver", f"gateway-{STAGE}-poll_ethereum"):
        known = 0 if before is None else calls(before, name)

        def called(name: str = name, known: int = known) -> bool:
            return calls(seen(port), name) > known

        until(called, f"{name} was not called with the code {code}")


def demand_well(found: dict[str, Any]) -> None:
    """Raises Failed where a function failed, wrote where Lambda lets none write, or took more memory than it has."""
    for name, figures in found["functions"].items():
        others = [said for said in figures["failures"] if EXPECTED.get(name, "\0") not in said]
        demand(not others, f"{name} failed: {'; '.join(others)}")
        used, limit = figures["memory_mb"], figures["memory_limit"]
        demand(used <= limit, f"{name} took {used:.0f} MB of memory, and has {limit}")
    demand(not found["refused"], f"roles do not allow what functions do: {'; '.join(found['refused'])}")
    demand(not found["touched"], f"functions wrote into their package: {', '.join(found['touched'][:10])}")
    figures = found["functions"].values()
    slowest = max(found["functions"], key=lambda name: float(found["functions"][name]["init_seconds"]))
    print(f"  {sum(each['calls'] for each in figures)} calls, {sum(each['starts'] for each in figures)} cold starts")
    print(f"  slowest start: {slowest}, {found['functions'][slowest]['init_seconds']:.1f} s; packages were not written to")
    for name, said in EXPECTED.items():
        if found["functions"].get(name, {}).get("failures"):
            print(f"  {name} failed, as it has to without a network: {said}")


def code_of(said: str) -> str:
    """The checksum of the code that all functions run, as `deploy --check` tells it. Raises Failed where there are several."""
    codes = {line.split()[1] for line in said.splitlines() if line.startswith(f"gateway-{STAGE}") and len(line.split()) == 3}
    demand(len(codes) == 1, f"functions run {len(codes)} versions")
    return codes.pop()


def seen(port: int) -> dict[str, Any]:
    """What the stand-in saw of functions. Raises Failed."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", "/", headers={"Host": "rehearsal"})
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    demand(answer.status == 200, f"the AWS stand-in answers {answer.status}")
    found: dict[str, Any] = json.loads(text)
    return found
