"""How fast Tron payments are explained, signed and assembled, as a ratio to bare coincurve plus the encoding, in the same run.

Run as a script: ``python tests/bench/bench_sign_tron.py``. Budget: at least 0.5. Beside the signature itself, our side finds the
key that made it, since a signature of another key must never be stored: the floor is told with and without that.
"""

from __future__ import annotations

import secrets
import sys
from hashlib import sha256
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from coincurve import PrivateKey, PublicKey

from chalicelib.chains.tron.payer import TronPayer
from chalicelib.chains.tron.transactions import Reference, Unsigned
from chalicelib.custody.signatures import sign_with
from chalicelib.domain.catalogue.catalogue import default_networks
from chalicelib.encoding import base58check
from chalicelib.encoding.public_keys import tron_address
from tests.bench.bench_derive_sign import COUNT, microseconds


def main() -> float:
    network = next(network for network in default_networks("live") if network.slug == "tron")
    payer, key = TronPayer(network, None, None), PrivateKey()  # type: ignore[arg-type]
    owner = tron_address(key.public_key.format(compressed=False)[1:])

    def somebody() -> str:
        return base58check.encode(b"\x41" + secrets.token_bytes(20))

    reference = Reference(b"\1\2", b"12345678", 1_760_000_000_000, 1_760_000_000_000)
    made = [
        Unsigned("TriggerSmartContract", owner, 5_000_000 + n, reference, somebody(), somebody(), fee_limit=10**8)
        for n in range(COUNT)
    ]
    unsigned = [one.encode().hex() for one in made]

    def ours(n: int) -> object:
        payer.explain(unsigned[n])
        return payer.assemble(unsigned[n], sign_with(key, payer.digest(unsigned[n])))

    def bare(n: int) -> object:
        raw = made[n].encode()
        return raw.hex() + key.sign_recoverable(sha256(raw).digest(), hasher=None).hex()

    def recovered(n: int) -> object:
        raw = made[n].encode()
        digest = sha256(raw).digest()
        return PublicKey.from_signature_and_message(key.sign_recoverable(digest, hasher=None), digest, hasher=None)

    whole, floor, checked = microseconds(ours, bare, recovered)
    print(f"explain, sign, assemble {1e6 / whole:,.0f} a second; bare coincurve and encoding {1e6 / floor:,.0f}")
    print(f"ratio {checked / whole:.2f} with the key found on both sides (budget 0.5); without on the floor's {floor / whole:.2f}")
    return checked / whole


if __name__ == "__main__":
    sys.exit(main() < 0.5)
