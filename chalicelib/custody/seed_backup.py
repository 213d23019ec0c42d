"""Seed backups outside of the store: as KMS ciphertext, or, against the loss of that KMS key, encrypted to the operator's public
key.

Neither kind of file has the seed in the clear, nor does anything here return it but for the length of a `with` block.

A *backup* is the record's ciphertext with the KMS key and the context that open it. It is worth nothing without the KMS key.
An *escrow* is the seed by RSA-OAEP (SHA-256) under a public key of 3,072 bits at least, whose private key the operator keeps where
no machine reaches it. That key and the file together open every deposit address. ``openssl pkeyutl -decrypt -pkeyopt
rsa_padding_mode:oaep -pkeyopt rsa_oaep_md:sha256 -pkeyopt rsa_mgf1_md:sha256`` opens it as well, with no code of ours.

Both carry the account xpubs, so that a wrong seed is noticed before an address comes from it.
Source: RFC 8017, section 7.1; AWS KMS API reference, Decrypt.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from chalicelib.custody.aws import SecretUnusable, call
from chalicelib.custody.records import EncryptedSeed
from chalicelib.custody.seed import SEED_BYTES, account_xpubs, wipe
from chalicelib.domain.addresses.addresses import Xpub
from chalicelib.settings import Settings

BACKUP, ESCROW = "gateway-seed-backup", "gateway-seed-escrow"
LEAST_BITS = 3072
"""NIST SP 800-57, part 1: 128 bits of security, which is what a secp256k1 key has."""

Document = Mapping[str, Any]


def backup(kms: Any, settings: Settings, record: EncryptedSeed, xpubs: Sequence[Xpub]) -> dict[str, Any]:
    """The backup's document. The seed is opened once, so that no backup is written that can not be opened.

    Raises Unavailable; SecretUnusable, also where the seed is not the one of `xpubs`.
    """
    document = {
        "format": BACKUP,
        "version": 1,
        "stage": settings.stage,
        "key": _decrypted(kms, record.ciphertext_b64, record.context)[0],
        "context": dict(record.context),
        "ciphertext": record.ciphertext_b64,
        "created_at": record.created_at,
        "xpubs": _named(xpubs),
    }
    with from_backup(kms, document):
        return document


def escrow(seed: bytearray, settings: Settings, xpubs: Sequence[Xpub], public_pem: bytes, created_at: int) -> dict[str, Any]:
    """The seed encrypted to the RSA key of `public_pem`. Raises ValueError for a key that is none, too short or private."""
    from Crypto.Cipher import PKCS1_OAEP
    from Crypto.Hash import SHA256

    key = _rsa(public_pem, None)
    if key.has_private():
        raise ValueError("this is a private key: it belongs where no machine of the service reaches it; give the public one")
    if key.size_in_bits() < LEAST_BITS:
        raise ValueError(f"an RSA key of {LEAST_BITS} bits at least is needed")
    sealed = PKCS1_OAEP.new(key, hashAlgo=SHA256).encrypt(bytes(seed))
    return {
        "format": ESCROW,
        "version": 1,
        "stage": settings.stage,
        "algorithm": "RSA-OAEP-SHA256",
        "public_key_sha256": hashlib.sha256(key.export_key("DER")).hexdigest(),
        "ciphertext": base64.b64encode(sealed).decode(),
        "created_at": created_at,
        "xpubs": _named(xpubs),
    }


@contextmanager
def opened(kms: Any, document: Document, private_pem: bytes | None = None, passphrase: str | None = None) -> Iterator[bytearray]:
    """The seed of either kind of file, for the length of a `with` block.

    Raises ValueError for another kind of file or a private key that is missing or does not fit; Unavailable, SecretUnusable.
    """
    if document.get("version") != 1 or document.get("format") not in (BACKUP, ESCROW):
        raise ValueError("the file is no backup of a seed")
    if document["format"] == BACKUP:
        with from_backup(kms, document) as seed:
            yield seed
        return
    if private_pem is None:
        raise ValueError("this file was made for the day without the KMS key: opening it takes the operator's private key")
    seed = _from_escrow(document, private_pem, passphrase)
    try:
        _check(seed, document)
        yield seed
    finally:
        wipe(seed)


@contextmanager
def from_backup(kms: Any, document: Document) -> Iterator[bytearray]:
    """The seed of a backup, for the length of a `with` block. Raises Unavailable, SecretUnusable."""
    _, seed = _decrypted(kms, str(document["ciphertext"]), dict(document["context"]), str(document["key"]))
    try:
        _check(seed, document)
        yield seed
    finally:
        wipe(seed)


def _decrypted(kms: Any, ciphertext: str, context: Mapping[str, str], key: str | None = None) -> tuple[str, bytearray]:
    """The KMS key's ARN, and what it opened. Without `key` KMS finds it by the ciphertext."""
    named = {} if key is None else {"KeyId": key}
    answer = call(
        kms,
        "decrypt",
        "the deposit seed",
        CiphertextBlob=base64.b64decode(ciphertext),
        EncryptionContext=dict(context),
        **named,
    )
    return str(answer["KeyId"]), bytearray(answer.pop("Plaintext"))


def _from_escrow(document: Document, private_pem: bytes, passphrase: str | None) -> bytearray:
    from Crypto.Cipher import PKCS1_OAEP
    from Crypto.Hash import SHA256

    key = _rsa(private_pem, passphrase)
    if not key.has_private():
        raise ValueError("this is a public key: the private one is needed")
    if hashlib.sha256(key.public_key().export_key("DER")).hexdigest() != document["public_key_sha256"]:
        raise ValueError("the file was made for another key")
    try:
        return bytearray(PKCS1_OAEP.new(key, hashAlgo=SHA256).decrypt(base64.b64decode(document["ciphertext"])))
    except ValueError:
        raise SecretUnusable("the file was altered: the key does not open it") from None


def _rsa(pem: bytes, passphrase: str | None) -> Any:
    from Crypto.PublicKey import RSA

    try:
        return RSA.import_key(pem, passphrase=passphrase)
    except (ValueError, IndexError, TypeError):
        # Nothing of the file is repeated: it may be a private key.
        raise ValueError("this is no RSA key in PEM form, or its passphrase is another") from None


def _check(seed: bytearray, document: Document) -> None:
    if len(seed) != SEED_BYTES:
        raise SecretUnusable("the deposit seed has a wrong length")
    of_seed = _named(account_xpubs(seed, 0))
    if any(of_seed.get(name) != xpub for name, xpub in document["xpubs"].items()) or not document["xpubs"]:
        raise SecretUnusable("the seed is not the one that the file's xpubs are of")


def _named(xpubs: Sequence[Xpub]) -> dict[str, str]:
    return {f"{xpub.realm}:{xpub.pool}": xpub.xpub for xpub in xpubs}
