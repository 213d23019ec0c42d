"""What the second reader costs a Tron signature: the order built and hashed, the signed bytes decoded and their signer found.

Run as a script: ``python tests/bench/bench_second_tron.py``. Budget: at most 3 ms of CPU a signature, beside our own reading and
the signature, whose cost is told too. The first call in a process imports the libraries: told by itself, each in a new process.
"""

from __future__ import annotations

import secrets
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from coincurve import PrivateKey

from chalicelib.chains.tron.second_reader import TronSecondReader
from chalicelib.chains.tron.transactions import Kind, Reference, Unsigned, assemble, decode
from chalicelib.custody.signatures import sign_with
from chalicelib.domain.treasury.stakes import Resource
from chalicelib.encoding import base58check
from chalicelib.encoding.public_keys import tron_address
from chalicelib.usecases.ports.second_reader import Order, OrderKind
from tests.bench.bench_derive_sign import COUNT, microseconds
from tests.bench.second_readers import BUDGET, dearest

COLD = {
    "tronpy": "import tronpy.tron, tronpy.contract, tronpy.proto.tron_pb2",
    "protobuf, and stakes' schema": "from chalicelib.chains.tron.schema import published; published()",
}
KINDS: dict[str, tuple[Kind, OrderKind]] = {
    "TRX": ("TransferContract", "payment"),
    "token": ("TriggerSmartContract", "payment"),
    "stake": ("FreezeBalanceV2Contract", "stake"),
    "loan": ("DelegateResourceContract", "delegation"),
}


def measured(kind: Kind, ordered: OrderKind) -> tuple[float, float]:
    """Milliseconds of CPU of one signature: the second reader's, and ours with the signature."""
    key, second, at = PrivateKey(), TronSecondReader(), 1_790_000_000_000
    owner, limit = tron_address(key.public_key.format(compressed=False)[1:]), 10**8 if kind == "TriggerSmartContract" else 0
    resource: Resource | None = None if ordered == "payment" else "ENERGY"

    def somebody() -> str:
        return base58check.encode(b"\x41" + secrets.token_bytes(20))

    def order(n: int) -> Order:
        recipient, contract = owner if ordered == "stake" else somebody(), somebody() if limit else None
        reference, to = Reference(b"\1\2", b"12345678", at + 600_000, at + n % 1000), None if ordered == "stake" else recipient
        unsigned = Unsigned(kind, owner, n + 1, reference, to, contract, resource, limit).encode().hex()
        return Order(ordered, owner, recipient, contract, n + 1, n, limit + 10**6, unsigned, resource)

    def ours(n: int) -> str:
        raw = bytes.fromhex(orders[n].unsigned)
        return assemble(raw, sign_with(key, bytes.fromhex(decode(raw).txid))).raw

    orders = [order(n) for n in range(COUNT)]
    raw = [ours(n) for n in range(COUNT)]

    def theirs(n: int) -> object:
        return second.built(orders[n]), second.read(orders[n], raw[n])

    first, other = microseconds(ours, theirs)
    return other / 1000, first / 1000


def main() -> float:
    return dearest(COLD, {name: partial(measured, *kinds) for name, kinds in KINDS.items()})


if __name__ == "__main__":
    sys.exit(0 if main() <= BUDGET else 1)
