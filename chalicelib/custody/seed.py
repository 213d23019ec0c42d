"""The seed of the deposit addresses: made once, kept only as KMS encrypted it, opened only to collect and to restore.

It is a plain BIP-32 seed of 64 random bytes, not the words of BIP-39: nobody has to write it down, because the encrypted
record and the KMS key are what is backed up. (A seed that once came from words works too: BIP-39's result is these 64 bytes.)
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from chalicelib.custody.aws import SecretUnusable, call
from chalicelib.custody.bip32 import ExtendedPrivateKey
from chalicelib.custody.derive import POOLS, account_path
from chalicelib.custody.records import EncryptedSeed
from chalicelib.domain.addresses.addresses import Xpub
from chalicelib.domain.ids import Realm
from chalicelib.settings import Settings

SEED_ID = "deposit"
"""There is one seed for a deployment; both realms and all pools are accounts of it. Its id is fixed so that a second one
can not be stored by accident."""
SEED_BYTES = 64


def _context(settings: Settings) -> dict[str, str]:
    return {"purpose": "deposit-seed", "stage": settings.stage}


def create_seed(kms: Any, settings: Settings, now_ms: int) -> EncryptedSeed:
    """A new random seed, encrypted under the key `data`, with version 1: storing it fails where there is one already.

    `now_ms` in milliseconds since 1970. Raises Unavailable. KMS Encrypt takes 4,096 bytes, so no data key is needed.
    """
    seed = bytearray(os.urandom(SEED_BYTES))
    try:
        return seal_seed(kms, settings, seed, now_ms)
    finally:
        wipe(seed)


def seal_seed(kms: Any, settings: Settings, seed: bytearray, now_ms: int) -> EncryptedSeed:
    """The record of a seed that there is already: encrypted under this stage's key `data`. Raises Unavailable.

    `now_ms` in milliseconds since 1970.
    """
    context = _context(settings)
    answer = call(
        kms, "encrypt", "the deposit seed", KeyId=settings.key_alias("data"), Plaintext=bytes(seed), EncryptionContext=context
    )
    return EncryptedSeed(SEED_ID, base64.b64encode(answer["CiphertextBlob"]).decode(), context, now_ms)


@contextmanager
def unlock_seed(kms: Any, settings: Settings, record: EncryptedSeed) -> Iterator[bytearray]:
    """The seed in the clear for the length of a `with` block, then overwritten.

    Best effort: what botocore and the interpreter copied on the way is out of reach and left to the garbage collector.
    Raises Unavailable, and SecretUnusable for a record that was altered or that belongs to another stage.
    """
    answer = call(
        kms,
        "decrypt",
        "the deposit seed",
        KeyId=settings.key_alias("data"),
        CiphertextBlob=base64.b64decode(record.ciphertext_b64),
        EncryptionContext=_context(settings),
    )
    seed = bytearray(answer.pop("Plaintext"))
    try:
        if len(seed) != SEED_BYTES:
            raise SecretUnusable("the deposit seed has a wrong length")
        yield seed
    finally:
        wipe(seed)


def wipe(secret: bytearray) -> None:
    """Overwrite `secret` with zeros."""
    secret[:] = bytes(len(secret))


def account_xpubs(seed: bytes | bytearray, now_ms: int) -> list[Xpub]:
    """The public account keys of both realms and all pools: what the API needs, and nothing that can spend."""
    master = ExtendedPrivateKey.master(seed)
    realms: tuple[Realm, ...] = ("live", "test")
    return [
        Xpub(realm, pool, master.derive(path).xpub(), path, now_ms)
        for realm in realms
        for pool in POOLS
        for path in (account_path(realm, pool),)
    ]


def address_key(seed: bytes | bytearray, path: str) -> bytes:
    """The private key, 32 bytes, of the address at `path` (as `Deriver.derive` gave it). For collecting from it only."""
    return ExtendedPrivateKey.master(seed).derive(path).key.secret
