"""How fast addresses are derived and digests signed, as ratios to bare coincurve measured in the same run.

Run as a script: ``python tests/bench/bench_derive_sign.py``. Budgets: addresses at least 0.8, signatures at least 0.5.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import base58
from coincurve import PrivateKey, PublicKey
from Crypto.Hash import keccak

from chalicelib.custody.bip32 import ExtendedPrivateKey, ExtendedPublicKey
from chalicelib.custody.derive import POOLS, XpubDeriver
from chalicelib.custody.seed import account_xpubs
from chalicelib.custody.signatures import finish, parse_der, sign_with

ROUNDS = 7
COUNT = 2000
NETWORK_OF = {"evm": "ethereum", "bitcoin": "bitcoin", "litecoin": "litecoin", "tron": "tron"}


def microseconds(*works: Callable[[int], object]) -> list[float]:
    """CPU time of one call of each, the best of several rounds that take turns, so that all meet the same machine."""
    best = [float("inf")] * len(works)
    for _ in range(ROUNDS):
        for place, work in enumerate(works):
            started = time.process_time()
            for index in range(COUNT):
                work(index)
            best[place] = min(best[place], (time.process_time() - started) / COUNT * 1e6)
    return best


def bare_child(branch: ExtendedPublicKey) -> Callable[[int], PublicKey]:
    """The floor: BIP-32's hash and the library's addition, with the parent at hand."""
    parent, chain_code = branch.key, branch.chain_code
    head = parent.format()

    def child(index: int) -> PublicKey:
        return parent.add(hmac.digest(chain_code, head + index.to_bytes(4, "big"), "sha512")[:32])

    return child


def bare_address(pool: str, branch: ExtendedPublicKey) -> Callable[[int], object]:
    """The floor with the encoding, in the plainest lines over the same libraries: none of our code, no checks, no paths."""
    child = bare_child(branch)

    def point_hash(index: int) -> bytes:
        return keccak.new(data=child(index).format(compressed=False)[1:], digest_bits=256).digest()[12:]

    def evm(index: int) -> str:
        digits = point_hash(index).hex()
        hashed = keccak.new(data=digits.encode(), digest_bits=256).digest().hex()
        return "0x" + "".join(c.upper() if h >= "8" else c for c, h in zip(digits, hashed, strict=False))

    def tron(index: int) -> bytes:
        return base58.b58encode_check(b"\x41" + point_hash(index))

    def segwit(index: int) -> str:
        program = hashlib.new("ripemd160", hashlib.sha256(child(index).format()).digest()).digest()
        bits = int.from_bytes(program, "big")
        values = [0, *[bits >> shift & 31 for shift in range(155, -5, -5)]]
        prefix = {"bitcoin": "bc", "litecoin": "ltc"}[pool]
        state = 1
        for value in [*[ord(c) >> 5 for c in prefix], 0, *[ord(c) & 31 for c in prefix], *values, 0, 0, 0, 0, 0, 0]:
            top, state = state >> 25, (state & 0x1FFFFFF) << 5 ^ value
            for bit, generator in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
                state ^= generator if top >> bit & 1 else 0
        values += [(state ^ 1) >> shift & 31 for shift in (25, 20, 15, 10, 5, 0)]
        return prefix + "1" + "".join("qpzry9x8gf2tvdw0s3jn54khce6mua7l"[value] for value in values)

    return {"evm": evm, "tron": tron}.get(pool, segwit)


def derivation(seed: bytes) -> None:
    xpubs = {(x.realm, x.pool): x.xpub for x in account_xpubs(seed, 0)}
    deriver = XpubDeriver(lambda realm, pool: xpubs[realm, pool])
    print(f"{'addresses from an xpub':34} {'per second':>10} {'of bare coincurve':>18} {'+ plain lines':>14}")
    for pool in POOLS:
        branch = ExtendedPublicKey.parse(xpubs["live", pool]).child(0)
        network = NETWORK_OF[pool]
        ours, key_only, encoded = microseconds(
            partial(deriver.derive, "live", network), bare_child(branch), bare_address(pool, branch)
        )
        address = bare_address(pool, branch)(7)
        if deriver.derive("live", network, 7)[0] != (address.decode() if isinstance(address, bytes) else address):
            raise SystemExit(f"{pool}: the floor makes another address than we do")
        print(f"  {pool:32} {1e6 / ours:>10,.0f} {key_only / ours:>18.2f} {encoded / ours:>14.2f}")
    print(f"  {'(bare coincurve, key only)':32} {1e6 / key_only:>10,.0f}")


def signing(seed: bytes) -> None:
    key = ExtendedPrivateKey.master(seed).key
    point = key.public_key.format(compressed=False)[1:]
    digest = hashlib.sha256(seed).digest()
    der = key.sign(digest, hasher=None)
    recoverable = key.sign_recoverable(digest, hasher=None)
    secret = key.secret
    bare, local, bare_opened, opened, bare_recovered, after_kms = microseconds(
        lambda _: key.sign_recoverable(digest, hasher=None),
        lambda _: sign_with(key, digest),
        lambda _: PrivateKey(secret).sign_recoverable(digest, hasher=None),
        lambda _: sign_with(PrivateKey(secret), digest),
        lambda _: PublicKey.from_signature_and_message(recoverable, digest, hasher=None),
        lambda _: finish(*parse_der(der), digest, point),
    )
    print(f"{'signatures':34} {'per second':>10} {'of bare coincurve':>18}")
    print(f"  {'key at hand':32} {1e6 / local:>10,.0f} {bare / local:>18.2f}")
    print(f"  {'key from bytes (envelope)':32} {1e6 / opened:>10,.0f} {bare_opened / opened:>18.2f}")
    # Bare: one recovery. Ours tries one parity and, for every second signature, the other too.
    print(
        f"  {f'checking one from KMS, parity {recoverable[64]}':32} {1e6 / after_kms:>10,.0f} {bare_recovered / after_kms:>18.2f}"
    )
    print(f"  {'(bare coincurve, key at hand)':32} {1e6 / bare:>10,.0f}")


def imports() -> None:
    print(f"{'imports, own time, best of 5':34} {'ms':>10}")
    root = Path(__file__).resolve().parents[2]
    for module in ("chalicelib.custody.derive", "chalicelib.chains.addresses", "chalicelib.custody.bip32", "Crypto.Hash.keccak"):
        code = f"import time, typing, dataclasses; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
        runs = [
            float(subprocess.run([sys.executable, "-c", code], cwd=root, check=True, capture_output=True).stdout) for _ in range(5)
        ]
        print(f"  {module:32} {min(runs) * 1000:>10.1f}")


if __name__ == "__main__":
    secret = os.urandom(64)
    derivation(secret)
    signing(secret)
    imports()
