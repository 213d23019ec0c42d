"""The seal of a wallet backup: the file names where the operator's coins go, so only files of this service are believed.

The digest of the whole document, encrypted under the KMS key `data` with a purpose of its own. KMS opens no ciphertext that it did
not make, and no function may encrypt or decrypt with this purpose (`infra/policies.py`): only who has the operator's credentials
can make a file that opens. An older file is as good as it was: it names when it was made.
Source: AWS KMS developer guide, "Encryption context"; the algorithm is AES-256-GCM, which authenticates.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

from chalicelib.custody.aws import SecretUnusable, call
from chalicelib.settings import Settings

WHAT = "the backup of wallets"


def _context(settings: Settings) -> dict[str, str]:
    return {"purpose": "wallet-backup", "stage": settings.stage}


def _digest(document: Mapping[str, Any]) -> bytes:
    bare = {name: value for name, value in document.items() if name != "seal"}
    return hashlib.sha256(json.dumps(bare, sort_keys=True, separators=(",", ":")).encode()).digest()


def sealed(kms: Any, settings: Settings, document: Mapping[str, Any]) -> dict[str, Any]:
    """`document`, a JSON value, with its seal. Raises Unavailable."""
    answer = call(
        kms, "encrypt", WHAT, KeyId=settings.key_alias("data"), Plaintext=_digest(document), EncryptionContext=_context(settings)
    )
    return {**document, "seal": base64.b64encode(answer["CiphertextBlob"]).decode()}


def demand_seal(kms: Any, settings: Settings, document: Mapping[str, Any]) -> None:
    """Raises SecretUnusable unless `document` is, to the letter, one that `sealed` made on this stage; Unavailable."""
    try:
        seal = base64.b64decode(str(document.get("seal") or ""), validate=True)
    except (binascii.Error, ValueError):
        seal = b""
    if not seal:
        raise SecretUnusable(f"{WHAT} has no seal")
    answer = call(kms, "decrypt", WHAT, KeyId=settings.key_alias("data"), CiphertextBlob=seal, EncryptionContext=_context(settings))
    if not hmac.compare_digest(bytes(answer["Plaintext"]), _digest(document)):
        raise SecretUnusable(f"{WHAT} was altered: its seal is of another one")
