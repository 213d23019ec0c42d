"""What the second reader costs an EVM signature: the order built and hashed, the signed bytes decoded and their signer found.

Run as a script: ``python tests/bench/bench_second_evm.py``. Budget: at most 3 ms of CPU a signature, beside our own reading and the
signature, whose cost is told too. The first call in a process imports the libraries: told by itself, each in a new process.
"""

from __future__ import annotations

import secrets
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from coincurve import PrivateKey

from chalicelib.chains.abi import transfer_call
from chalicelib.chains.evm.payer import EvmPayer
from chalicelib.chains.evm.second_reader import EvmSecondReader
from chalicelib.chains.evm.transactions import Unsigned, terms
from chalicelib.custody.signatures import sign_with
from chalicelib.domain.catalogue.catalogue import default_networks
from chalicelib.encoding.public_keys import evm_address
from chalicelib.usecases.ports.second_reader import Order
from tests.bench.bench_derive_sign import COUNT, microseconds
from tests.bench.second_readers import BUDGET, dearest

COLD = {
    "eth-account": "import eth_account, eth_account.typed_transactions",
    "eth-account and web3": "import eth_account, eth_account.typed_transactions, web3",
}


def measured(token: bool) -> tuple[float, float]:
    """Milliseconds of CPU of one signature: the second reader's, and ours with the signature."""
    network = next(network for network in default_networks("live") if network.slug == "ethereum")
    payer, key, second = EvmPayer(network, None), PrivateKey(), EvmSecondReader(1, terms)  # type: ignore[arg-type]
    sender, gas, rate = evm_address(key.public_key.format(compressed=False)[1:]), 60_000, 30 * 10**9

    def order(n: int) -> Order:
        recipient, contract = "0x" + secrets.token_hex(20), "0x" + secrets.token_hex(20) if token else None
        to = bytes.fromhex((contract or recipient)[2:])
        call = transfer_call(recipient, n + 1) if token else b""
        unsigned = Unsigned(1, n, gas, rate, 10**9, to, 0 if token else n + 1, call).payload().hex()
        return Order("payment", sender, recipient, contract, n + 1, n, gas * rate, unsigned)

    def ours(n: int) -> str:
        unsigned = orders[n].unsigned
        payer.explain(unsigned)
        return payer.assemble(unsigned, sign_with(key, payer.digest(unsigned))).raw

    orders = [order(n) for n in range(COUNT)]
    raw = [ours(n) for n in range(COUNT)]

    def theirs(n: int) -> object:
        return second.built(orders[n]), second.read(orders[n], raw[n])

    first, other = microseconds(ours, theirs)
    return other / 1000, first / 1000


def main() -> float:
    return dearest(COLD, {"native coin": partial(measured, False), "token": partial(measured, True)})


if __name__ == "__main__":
    sys.exit(0 if main() <= BUDGET else 1)
