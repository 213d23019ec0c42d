"""CPU of signing a UTXO transaction with 1, 10 and 50 inputs, as ratios to bare coincurve and the plainest encoding.

Run as a script: ``python tests/bench/bench_sign_utxo.py``. Budget: at least 0.5 of bare coincurve plus encoding. What is timed is
all that happens to a payment between the store and the node: decode the unsigned transaction, digests, one signature per input, the
bytes for the node. That is compared with bare signing; with the check of each signature against its input's address (`assemble`
always does that) it is compared with bare signing and bare recovery. bitcoinlib builds and encodes, checks nothing.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from coincurve import PrivateKey, PublicKey

from chalicelib.chains.rpc import JsonRpc
from chalicelib.chains.utxo import psbt
from chalicelib.chains.utxo.payer import UtxoPayer
from chalicelib.chains.utxo.transactions import Input, PaidTo, Unsigned, der_of
from chalicelib.custody.signatures import sign_with
from chalicelib.domain.catalogue.catalogue import default_networks
from chalicelib.encoding.public_keys import hash160

ROUNDS = 7
BUDGET = 0.5


def milliseconds(*works: Callable[[], object], times: int) -> list[float]:
    """CPU of one call of each in ms, the best of rounds that take turns."""
    best = [float("inf")] * len(works)
    for _ in range(ROUNDS):
        for place, work in enumerate(works):
            started = time.process_time()
            for _ in range(times):
                work()
            best[place] = min(best[place], (time.process_time() - started) / times * 1000)
    return best


def twice(data: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(data).digest()).digest()


def bare(key: PrivateKey, unsigned: Unsigned, recover: bool) -> str:
    """The floor, in the plainest lines: BIP-143's digests, coincurve's signature in DER, the bytes. No checks, nothing decoded.

    `recover`: with the public key recovered from each signature. The signer's port names no key, and what it says is not believed.
    """
    script, public = hash160(key.public_key.format()), key.public_key.format()
    outpoints = [spent.outpoint for spent in unsigned.inputs]
    outputs = b"".join(o.amount.to_bytes(8, "little") + bytes([len(o.script)]) + o.script for o in unsigned.outputs)
    head = b"\x02\0\0\0" + twice(b"".join(outpoints)) + twice(b"\xfd\xff\xff\xff" * len(outpoints))
    tail = b"\xfd\xff\xff\xff" + twice(outputs) + b"\0\0\0\0\x01\0\0\0"
    code = b"\x19\x76\xa9\x14" + script + b"\x88\xac"
    witnesses = []
    for spent in unsigned.inputs:
        digest = twice(head + spent.outpoint + code + spent.amount.to_bytes(8, "little") + tail)
        if recover:
            signature = key.sign_recoverable(digest, hasher=None)
            public = PublicKey.from_signature_and_message(signature, digest, hasher=None).format()
        der = key.sign(digest, hasher=None) if not recover else plain_der(signature)
        witnesses.append(b"\x02" + bytes([len(der) + 1]) + der + b"\x01\x21" + public)
    inputs = b"".join(outpoint + b"\0\xfd\xff\xff\xff" for outpoint in outpoints)
    body = bytes([len(outpoints)]) + inputs + bytes([len(unsigned.outputs)]) + outputs
    return (b"\x02\0\0\0\0\x01" + body + b"".join(witnesses) + b"\0\0\0\0").hex() + twice(b"\x02\0\0\0" + body + b"\0\0\0\0").hex()


def plain_der(compact: bytes) -> bytes:
    numbers = []
    for part in (compact[:32], compact[32:64]):
        body = part.lstrip(b"\0")
        body = b"\0" + body if body[0] & 0x80 else body
        numbers.append(b"\x02" + bytes([len(body)]) + body)
    return b"\x30" + bytes([len(numbers[0]) + len(numbers[1])]) + numbers[0] + numbers[1]


def bitcoinlibs(key: PrivateKey, unsigned: Unsigned) -> Callable[[], str]:
    os.environ["BCL_DATA_DIR"] = tempfile.mkdtemp()
    from bitcoinlib.keys import Key, Signature
    from bitcoinlib.transactions import Transaction

    public = Key(key.public_key.format().hex(), network="bitcoin")

    def sign() -> str:
        made: Any = Transaction(version=2, network="bitcoin", witness_type="segwit")
        for spent in unsigned.inputs:
            txid, index = spent.name.split(":")
            made.add_input(txid, int(index), keys=public, value=spent.amount, sequence=0xFFFFFFFD, witness_type="segwit")
        for output in unsigned.outputs:
            made.add_output(output.amount, lock_script=output.script)
        for n, spent in enumerate(made.inputs):
            digest = made.signature_hash(n, 1, "segwit")
            signature = sign_with(key, digest)
            spent.signatures = [Signature(signature.r, signature.s, message=digest, public_key=public)]
            spent.update_scripts(1)
        return str(made.raw_hex())

    return sign


def main() -> float:
    key = PrivateKey()
    public = key.public_key.format()
    script = b"\0\x14" + hash160(public)
    payer = UtxoPayer(next(n for n in default_networks("live") if n.slug == "bitcoin"), JsonRpc("http://127.0.0.1:1"))
    print(f"{'inputs':>8} {'signed/s':>9} {'of bare':>9} {'+ checked/s':>11} {'of bare':>9} {'bitcoinlib/s':>13} {'of bare':>9}")
    ratio = 0.0
    for count in (1, 10, 50):
        inputs = tuple(Input(os.urandom(32) + n.to_bytes(4, "little"), 10**6 + n, script) for n in range(count))
        unsigned = Unsigned(inputs, (PaidTo(sum(spent.amount for spent in inputs) - 20_000, script),))
        text = psbt.encode(unsigned)

        def checked(text: str = text) -> str:
            psbt.decode.cache_clear()
            return payer.assemble(text, [sign_with(key, digest) for digest in payer.digests(text)]).raw

        def ours(text: str = text) -> str:
            psbt.decode.cache_clear()
            signatures = [sign_with(key, digest) for digest in payer.digests(text)]
            return psbt.decode(text).signed([(der_of(each.r, each.s), public) for each in signatures]).raw

        theirs = bitcoinlibs(key, unsigned)
        if not ours() == checked() == theirs() == bare(key, unsigned, True)[:-64] == bare(key, unsigned, False)[:-64]:
            raise SystemExit("the ways make different transactions")
        mine, floor, mine_checked, floor_checked = milliseconds(
            ours,
            lambda u=unsigned: bare(key, u, False),
            checked,
            lambda u=unsigned: bare(key, u, True),
            times=max(2, 200 // count),
        )
        (library,) = milliseconds(theirs, times=2)
        print(
            f"{count:>8} {1000 / mine:>9,.0f} {floor / mine:>9.2f} {1000 / mine_checked:>11,.0f}"
            f" {floor_checked / mine_checked:>9.2f} {1000 / library:>13,.0f} {floor / library:>9.2f}"
        )
        ratio = min(floor / mine, floor_checked / mine_checked)
    print(f"ratio {ratio:.2f} (budget {BUDGET}) at 50 inputs")
    return ratio


if __name__ == "__main__":
    sys.exit(main() < BUDGET)
