"""What a cold start of the API function costs, as a ratio to the floor measured in the same run.

Run as a script: ``python tests/bench/bench_import.py``. Budget: at most 1.3 (aim: 1.15) times the floor, which is
`import chalice, pydantic` and one boto3 client for DynamoDB. What is compared with it is `import app` and the store with its one
client; what a request that changes something builds beside it, the queues' client, is shown too, and so is the function that
delivers webhooks, with its three clients. CPU time, since imports are nothing else once the files are in memory. Each run is a new
process; they take turns, so that all meet the same machine.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 15
BUDGET = 1.3
ENVIRONMENT = {
    **os.environ,
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "STAGE": "prod",
}
_TIMED = """
import time, resource
began = time.process_time()
{work}
print(time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
COMPARED = "import app, store"
_STORE = "import app; from chalicelib import wiring; wired = wiring.services(); wired.gate, wired.store.models.connection.client"
WORKS = {
    "floor": "import chalice, pydantic, boto3; boto3.client('dynamodb')",
    "import app": "import app",
    COMPARED: _STORE,
    "import app, store, queues": f"{_STORE}; wired.queues",
    "deliver, to its first message": (
        "import app; from chalicelib.workers import batches, deliver; from chalicelib import wiring; wired = wiring.services(); "
        "wired.leases, wired.wiring.parts.client('kms')"
    ),
}


def measure(work: str) -> tuple[float, float]:
    """CPU time in milliseconds, and the process's largest memory in MB."""
    done = subprocess.run(
        [sys.executable, "-c", _TIMED.format(work=work)], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    seconds, memory = map(float, done.stdout.split())
    return seconds * 1000, memory / 1024


def main() -> int:
    times: dict[str, list[float]] = {name: [] for name in WORKS}
    memory: dict[str, float] = {}
    for turn in range(ROUNDS + 1):
        for name, work in WORKS.items():
            milliseconds, memory[name] = measure(work)
            if turn:  # the first one fills the machine's file cache
                times[name].append(milliseconds)
    best = {name: min(values) for name, values in times.items()}
    for name, values in times.items():
        print(
            f"{name:29} best {best[name]:6.0f} ms   median {statistics.median(values):6.0f} ms   {memory[name]:4.0f} MB   "
            f"{best[name] / best['floor']:.2f} x the floor"
        )
    ratio = best[COMPARED] / best["floor"]
    print(f"budget {BUDGET}: {'kept' if ratio <= BUDGET else 'BROKEN'}")
    return 0 if ratio <= BUDGET else 1


if __name__ == "__main__":
    sys.exit(main())
