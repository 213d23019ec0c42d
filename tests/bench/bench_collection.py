"""What collecting a deposit costs: DynamoDB request units and calls of AWS, from the hint to the swept address.

Run as a script: ``python tests/bench/bench_collection.py``.

Counted as in bench_requests.py, on the simulated ethereum: whole payments, with their collection and without it. Printed is the
difference, for one deposit: the slope between few and many, so that what the schedules cost anyhow is left out.
"""

from __future__ import annotations

import logging
import os
import sys
from collections import Counter
from itertools import cycle
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.update({"STAGE": "local", "SANDBOX_BLOCK_SECONDS": "0"})

from tests.bench.accounting import Account, accounted  # noqa: E402
from tests.bench.bench_requests import started  # noqa: E402
from tests.support.stack import Stack  # noqa: E402

FEW, MANY = 2, 10
ROUNDS = 7
ONLY = ("poll_ethereum", "relay", "payout", "collect")
CASES = {
    "a token, with a top-up": ("usdt", False),
    "a token, the fee is there": ("usdt", True),
    "the native coin": ("eth", False),
}


def counted(account: Account) -> Counter[str]:
    """Units by kind and table, and calls by service; the simulated chain's own table left out."""
    found: Counter[str] = Counter()
    for kind, units in (("reads", account.reads), ("writes", account.writes)):
        for table, value in units.items():
            if "sandbox" not in table:
                found[f"{kind} {table.rsplit('-', 1)[1]}"] += value
    for service, _, sent in account.sent:
        found[f"calls {service}"] += "-sandbox" not in str(sent)
    return found


def collected(stack: Stack, keys: Any, count: int, coin: str, funded: bool, collecting: bool) -> Counter[str]:
    """Units and calls of `count` deposits of `coin`, each on an address of its own, until nothing is left to do."""
    from chalicelib.domain.treasury.collections import Collection
    from chalicelib.wiring import services

    stack.reset()
    if collecting:
        asked = {"coin": coin, "network": "ethereum", "collectThreshold": "0"}
        assert stack.call("PUT", "/v1/coins", stack.keys["admin_test"], json=asked).status == 200
    paid = ([("eth", "0.1")] if funded else []) + [(coin, "500")]
    for _ in range(count):
        body = {"currency": coin, "network": "ethereum", "amount": "500"}
        address = stack.call("POST", "/v1/invoices", next(keys), body).json["address"]
        for which, amount in paid:
            pay = {"address": address, "network": "ethereum", "coin": which, "amount": amount}
            assert stack.call("POST", "/v1/sandbox/deposits", next(keys), pay).status == 201
    chain = services().simulated(services().catalogue("test").networks["ethereum"].id)
    total: Counter[str] = Counter()
    for _ in range(ROUNDS):
        with accounted(units=True) as account:
            stack.drain(only=ONLY, hurry=True)
        total.update(counted(account))
        chain.mine(13)
        services().clock.shift_ms += 61_000
    states = Counter(collection.state for collection in services().store.every(Collection))
    assert states == ({"swept": count} if collecting else {}), states
    return total


def main() -> int:
    stack, made = started()
    logging.disable(logging.ERROR)
    stack.drain(only=ONLY, hurry=True)
    stack._fresh = stack.snapshot()
    keys = cycle(made)
    for name, (coin, funded) in CASES.items():
        slopes: list[dict[str, float]] = []
        for collecting in (False, True):
            few, many = (collected(stack, keys, count, coin, funded, collecting) for count in (FEW, MANY))
            slopes.append({key: (many[key] - few[key]) / (MANY - FEW) for key in {*few, *many}})
        more = {key: slopes[1].get(key, 0) - slopes[0].get(key, 0) for key in sorted({*slopes[0], *slopes[1]})}
        for kind in ("reads", "writes", "calls"):
            parts = {key.split()[1]: value for key, value in more.items() if key.startswith(kind) and abs(value) >= 0.05}
            shown = ", ".join(f"{part} {value:.1f}" for part, value in parts.items())
            print(f"{name}: {kind} {sum(parts.values()):.1f} ({shown})", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
