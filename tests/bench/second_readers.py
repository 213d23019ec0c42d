"""Second readers' benches: the budget of a signature, and the cost of a library's first import."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

BUDGET = 3.0
"""Milliseconds of CPU."""
_COLD = """
import time
began = time.process_time()
{work}
print((time.process_time() - began) * 1000)
"""


def dearest(cold: Mapping[str, str], kinds: Mapping[str, Callable[[], tuple[float, float]]]) -> float:
    """The dearest second reading, in milliseconds; all are printed. `cold` has imports by name, each run in a process of its own;
    `kinds` measure a signature's second reading, and our own with the signature."""
    root = Path(__file__).resolve().parents[2]
    for name, work in cold.items():
        code = [sys.executable, "-c", _COLD.format(work=work)]
        done = subprocess.run(code, cwd=root, capture_output=True, text=True, check=True)
        print(f"first import of {name}: {float(done.stdout):,.0f} ms of CPU")
    most = 0.0
    for name, measured in kinds.items():
        second, ours = measured()
        print(
            f"{name}: second reader {second:.2f} ms a signature (budget {BUDGET}), our own reading and the signature {ours:.2f} ms"
        )
        most = max(most, second)
    return most
