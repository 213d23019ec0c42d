"""CPU of the second reader of bitcoin and litecoin, per input: the digests made from the order, and the signed bytes read.

Run as a script: ``python tests/bench/bench_second_utxo.py``. Budget: at most 3 ms an input. Most of it is bitcoinlib's check
of a signature.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from coincurve import PrivateKey

from chalicelib.chains.utxo import second_reader
from chalicelib.chains.utxo.transactions import PaidTo, Unsigned
from tests.support.utxo_orders import KINDS, coin, ordered, segwit, signed

ROUNDS = 5
BUDGET_MS = 3.0


def milliseconds(work: Callable[[], object], times: int) -> float:
    """CPU of one call in ms, the best of the rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        for _ in range(times):
            work()
        best = min(best, (time.process_time() - started) / times * 1000)
    return best


def main() -> float:
    started = time.process_time()
    second_reader._library()
    print(f"import {(time.process_time() - started) * 1000:,.0f} ms of CPU, once in a process")
    source, reader = random.Random("second reader"), second_reader.UtxoSecondReader("bitcoin")
    key, worst = PrivateKey(source.randbytes(32)), 0.0
    print(f"{'kind':>12} {'inputs':>7} {'outputs':>8} {'order/ms':>9} {'bytes/ms':>9} {'per input':>10}")
    for kind, count, paid in [*((kind, 1, 2) for kind in KINDS), ("p2wpkh", 10, 2), ("p2wpkh", 80, 101), ("p2pkh", 40, 2)]:
        inputs = tuple(coin(source, key, kind, 10**8 + n) for n in range(count))
        unsigned = Unsigned(inputs, tuple(PaidTo(10**5 + n, segwit(PrivateKey())) for n in range(paid)))
        order, raw = ordered(unsigned), signed(unsigned, [key] * count).raw
        times = max(1, 20 // count)
        made, read = (
            milliseconds(lambda o=order: reader.built(o), times),
            milliseconds(lambda o=order, r=raw: reader.read(o, r), times),
        )
        worst = max(worst, (made + read) / count)
        print(f"{kind:>12} {count:>7} {paid:>8} {made:>9.2f} {read:>9.2f} {(made + read) / count:>10.2f}")
    print(f"at most {worst:.2f} ms an input (budget {BUDGET_MS})")
    return worst


if __name__ == "__main__":
    sys.exit(main() > BUDGET_MS)
