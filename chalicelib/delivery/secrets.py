"""Secrets of webhook endpoints, encrypted by KMS itself (a secret is far below its 4,096 bytes): the API seals, `deliver` opens.

The encryption context names purpose, stage, merchant and endpoint, so a ciphertext that is moved elsewhere does not open. Policies
tell the two sides apart by the purpose. Source: AWS KMS developer guide, "Encryption context"; API reference, Encrypt, Decrypt.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from chalicelib.domain.ids import TenantId
from chalicelib.kms import KmsRefusal, ask_kms
from chalicelib.settings import Settings
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.secrets import NotOurs

PURPOSE = "webhook-secret"
REMEMBERED = 4096
"""Opened secrets that a process keeps: at most two for each endpoint, some hundred bytes each."""


def context_of(settings: Settings, tenant: TenantId, endpoint_id: str) -> dict[str, str]:
    """The encryption context of a secret."""
    return {"purpose": PURPOSE, "stage": settings.stage, "tenant": tenant, "endpoint": endpoint_id}


class KmsSealer:
    """The port Sealer. `kms` gives the client, which is made when the first secret is sealed."""

    def __init__(self, kms: Callable[[], Any], settings: Settings) -> None:
        self._kms = kms
        self._settings = settings

    def seal(self, tenant: TenantId, endpoint_id: str, secret: str) -> str:
        """Base64 of the ciphertext. Raises Unavailable."""
        answer = _call(
            self._kms(),
            "encrypt",
            endpoint_id,
            KeyId=self._settings.key_alias("webhooks"),
            Plaintext=secret.encode(),
            EncryptionContext=context_of(self._settings, tenant, endpoint_id),
        )
        return base64.b64encode(answer["CiphertextBlob"]).decode("ascii")


class KmsOpener:
    """The port Opener. Opened secrets are cached for the life of the process, so that KMS is not asked for every attempt."""

    def __init__(self, kms: Callable[[], Any], settings: Settings) -> None:
        self._kms = kms
        self._settings = settings
        self._remembered = lru_cache(maxsize=REMEMBERED)(self._ask)

    def open(self, tenant: TenantId, endpoint_id: str, sealed: str) -> str:
        """Raises NotOurs, Unavailable; neither is remembered."""
        return self._remembered(tenant, endpoint_id, sealed)

    def _ask(self, tenant: TenantId, endpoint_id: str, sealed: str) -> str:
        try:
            blob = base64.b64decode(sealed, validate=True)
        except (binascii.Error, ValueError):
            blob = b""
        if not blob:
            raise NotOurs("what is stored is no ciphertext")
        answer = _call(
            self._kms(),
            "decrypt",
            endpoint_id,
            KeyId=self._settings.key_alias("webhooks"),
            CiphertextBlob=blob,
            EncryptionContext=context_of(self._settings, tenant, endpoint_id),
        )
        return bytes(answer["Plaintext"]).decode()


def _call(kms: Any, operation: str, endpoint_id: str, **parameters: Any) -> dict[str, Any]:
    """`kms.<operation>(**parameters)`. Raises NotOurs, Unavailable."""
    answer = ask_kms(kms, operation, **parameters)
    if not isinstance(answer, KmsRefusal):
        return answer
    if answer.altered:
        raise NotOurs(f"it was altered, or sealed for something else ({answer.code})")
    raise Unavailable(f"KMS {operation} for the secret of webhook endpoint {endpoint_id}: {answer.code}")
