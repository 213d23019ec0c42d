"""What the first payment costs a function that has just started, in seconds at the memory of `payout`.

Run as a script: ``python tests/bench/bench_cold_payout.py``. Budget: at most 10 s. Each family is measured in a new process that
has nothing but the deployment package, unzipped (pip downloads what is pinned: a minute): the function's modules, the clients of
AWS and the node, then the second reader, which imports its family's library, builds one order and reads one signed transaction.

CPU time, at the share of a vCPU that the memory buys (one at 1,769 MB), so a start that Lambda gives more is faster. Waiting for
AWS and nodes comes on top, and so does reading the files at a start of which this machine's memory has none. The last column is
the same without the compiled modules, as plain `chalice deploy` leaves it.
https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from infra.chalice import write_package
from infra.rehearse.packages import Packages
from tests.deploy.conftest import ROOT, copy_project
from tests.support.first_payments import cases, first_payment

ROUNDS = 5
BUDGET = 10.0
"""Seconds."""
WHOLE_VCPU = 1769


def unpacked(folder: Path) -> tuple[Packages, Path]:
    """The deployment package as Lambda unpacks it, read-only; what knows whether it was touched, and where it is."""
    packages = Packages(folder)
    return packages, packages.of("prod", write_package(copy_project(folder), "prod").read_bytes())


def main() -> float:
    memory = json.loads((ROOT / ".chalice" / "config.json").read_text())["lambda_functions"]["payout"]["lambda_memory_size"]
    share, slowest = min(1.0, memory / WHOLE_VCPU), 0.0
    with tempfile.TemporaryDirectory() as folder:
        packages, package = unpacked(Path(folder))
        print(f"seconds at {memory} MB ({share:.2f} vCPU)   function   reader      all     MB   all, not compiled")
        for name, case in cases().items():
            runs = [first_payment(package, case) for _ in range(ROUNDS)]
            own, reader, peak = (min(column) for column in zip(*runs, strict=True))
            plain = first_payment(package, case, "-X", f"pycache_prefix={folder}/none")
            whole = (own + reader) / share
            print(f"{name:28}{own / share:11.2f}{reader / share:9.2f}{whole:9.2f}{peak:7.0f}{sum(plain[:2]) / share:20.2f}")
            slowest = max(slowest, whole)
        if touched := packages.touched():
            raise RuntimeError(f"written into the package: {touched[:5]}")
    print(f"budget {BUDGET:.0f}: {'kept' if slowest <= BUDGET else 'BROKEN'}")
    return slowest


if __name__ == "__main__":
    sys.exit(0 if main() <= BUDGET else 1)
