"""Private keys under envelope encryption: a data key of its own for each, and KMS over that. For imported and generated wallets.

A key is in the clear only inside `seal` and inside one `sign`; nothing is kept between calls.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from typing import Any

from coincurve import PrivateKey

from chalicelib.custody.aws import SecretUnusable, call
from chalicelib.custody.records import EncryptedKey
from chalicelib.custody.seed import wipe
from chalicelib.custody.signatures import check_digest, sign_with
from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.ids import NetworkId
from chalicelib.settings import Settings
from chalicelib.usecases.ports.signing import Signature

_TAG_BYTES = 16
_NONCE_BYTES = 12
_DATA_KEY_BYTES = 32


def context_of(settings: Settings, network: NetworkId, address: str) -> dict[str, str]:
    """The encryption context of a wallet's key: a row copied to another wallet or stage does not open."""
    return {"purpose": "wallet-key", "stage": settings.stage, "network": network, "address": address}


def key_id_of(network: NetworkId, address: str) -> str:
    """The id of the custody row of a wallet. Fixed by the wallet: its key can not be stored twice, nor replaced unseen."""
    return f"{network}:{address}"


def _bound(context: dict[str, str]) -> bytes:
    return json.dumps(context, sort_keys=True, separators=(",", ":")).encode()


def seal(kms: Any, settings: Settings, network: NetworkId, address: str, secret: bytes, now_ms: int) -> EncryptedKey:
    """Encrypt a private key (32 bytes): AES-256-GCM under a fresh data key, the data key under the KMS key `data`.

    The data key is made here, not by KMS, so that sealing needs the right to encrypt and nothing more. `now_ms` in
    milliseconds since 1970. Raises Unavailable. Source: AWS KMS developer guide, "Data keys"; NIST SP 800-38D.
    """
    from Crypto.Cipher import AES

    context = context_of(settings, network, address)
    data_key = bytearray(os.urandom(_DATA_KEY_BYTES))
    nonce = os.urandom(_NONCE_BYTES)
    try:
        answer = call(
            kms,
            "encrypt",
            f"wallet {address}",
            KeyId=settings.key_alias("data"),
            Plaintext=bytes(data_key),
            EncryptionContext=context,
        )
        cipher = AES.new(data_key, AES.MODE_GCM, nonce=nonce, mac_len=_TAG_BYTES)
        cipher.update(_bound(context))
        ciphertext, tag = cipher.encrypt_and_digest(secret)
    finally:
        wipe(data_key)
    return EncryptedKey(
        id=key_id_of(network, address),
        data_key_b64=_b64(answer["CiphertextBlob"]),
        nonce_b64=_b64(nonce),
        ciphertext_b64=_b64(ciphertext + tag),
        context=context,
        created_at=now_ms,
    )


def _open(kms: Any, settings: Settings, record: EncryptedKey, context: dict[str, str]) -> bytearray:
    """The private key in the clear; the caller wipes it. Raises Unavailable, SecretUnusable."""
    from Crypto.Cipher import AES

    what = f"the key of wallet {context['address']}"
    answer = call(
        kms,
        "decrypt",
        what,
        KeyId=settings.key_alias("data"),
        CiphertextBlob=base64.b64decode(record.data_key_b64),
        EncryptionContext=context,
    )
    data_key = bytearray(answer.pop("Plaintext"))
    sealed = base64.b64decode(record.ciphertext_b64)
    try:
        cipher = AES.new(data_key, AES.MODE_GCM, nonce=base64.b64decode(record.nonce_b64), mac_len=_TAG_BYTES)
        cipher.update(_bound(context))
        return bytearray(cipher.decrypt_and_verify(sealed[:-_TAG_BYTES], sealed[-_TAG_BYTES:]))
    except ValueError:
        raise SecretUnusable(f"{what} was altered in the store, or belongs to something else") from None
    finally:
        wipe(data_key)


class EnvelopeSigner:
    """The port Signer for wallets whose `custody` is ``envelope``; `wallet.key` is the id of the custody row.

    `record_of` reads a row, None where there is none.
    """

    def __init__(self, kms: Any, settings: Settings, record_of: Callable[[str], EncryptedKey | None]) -> None:
        self._kms = kms
        self._settings = settings
        self._record_of = record_of

    def sign(self, wallet: Wallet, digest: bytes) -> Signature:
        """Sign 32 bytes: decrypt the key, sign, overwrite the key.

        The context is made from the wallet, never taken from the row, so a swapped row does not open. Raises Unavailable;
        SecretUnusable for a row that is missing, altered, or of another wallet; ValueError for a digest without 32 bytes.
        """
        check_digest(digest)
        record = self._record_of(wallet.key)
        if record is None:
            raise SecretUnusable(f"the key of wallet {wallet.address} is not in the store")
        secret = _open(self._kms, self._settings, record, context_of(self._settings, wallet.network, wallet.address))
        try:
            key = private_key(bytes(secret))
        finally:
            wipe(secret)
        if key.public_key.format(compressed=False)[1:].hex() != wallet.public_key:
            raise SecretUnusable(f"the stored key is not the one of wallet {wallet.address}")
        return sign_with(key, digest)


def private_key(secret: bytes) -> PrivateKey:
    """The key of 32 bytes. Raises ValueError, without the bytes, for what is no private key of the curve."""
    try:
        if len(secret) != 32:
            raise ValueError
        return PrivateKey(secret)
    except ValueError:
        raise ValueError("is not a private key: 32 bytes, from 1 to the order of secp256k1 less one") from None


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
