"""Repair of moto's KMS (5.2): signatures over digests. And keys for signing are not made for those that do not sign."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from moto.kms import models
from moto.kms.exceptions import ValidationException
from moto.kms.responses import KmsResponse
from moto.kms.utils import ECDSAPrivateKey, generate_private_key

_DONE = "_gateway_repaired"
_digest_given: ContextVar[bool] = ContextVar("digest_given", default=False)
_HASHES: dict[str, Callable[[], hashes.HashAlgorithm]] = {
    "ECDSA_SHA_256": hashes.SHA256,
    "ECDSA_SHA_384": hashes.SHA384,
    "ECDSA_SHA_512": hashes.SHA512,
}


def repair_kms() -> None:
    """Make moto's Sign and Verify heed MessageType=DIGEST for elliptic-curve keys. May be called any number of times.

    moto drops MessageType and hashes the digest once more; its own Verify does the same, so it agrees with itself while no
    chain accepts the signature. RAW messages keep moto's way. RSA keys, which we do not use, are left alone.
    """
    if getattr(ECDSAPrivateKey, _DONE, False):
        return
    setattr(ECDSAPrivateKey, _DONE, True)
    KmsResponse.sign = _noting_message_type(KmsResponse.sign)  # type: ignore[assignment,method-assign]
    KmsResponse.verify = _noting_message_type(KmsResponse.verify)  # type: ignore[assignment,method-assign]
    setattr(models, "generate_private_key", _private_key)  # noqa: B010 - not exported there
    raw_sign, raw_verify = ECDSAPrivateKey.sign, ECDSAPrivateKey.verify

    def sign(self: ECDSAPrivateKey, message: bytes, signing_algorithm: str) -> bytes:
        if not _digest_given.get():
            return raw_sign(self, message, signing_algorithm)
        return self.private_key.sign(message, ec.ECDSA(_prehashed(self, message, signing_algorithm)))

    def verify(self: ECDSAPrivateKey, message: bytes, signature: bytes, signing_algorithm: str) -> bool:
        if not _digest_given.get():
            return raw_verify(self, message, signature, signing_algorithm)
        try:
            self.private_key.public_key().verify(signature, message, ec.ECDSA(_prehashed(self, message, signing_algorithm)))
        except InvalidSignature:
            return False
        return True

    ECDSAPrivateKey.sign = sign  # type: ignore[method-assign]
    ECDSAPrivateKey.verify = verify  # type: ignore[method-assign]


class _Late:
    """An RSA key that is made when somebody asks for it."""

    def __getattr__(self, name: str) -> Any:
        made = generate_private_key("RSA_2048")
        self.__dict__.update({name: getattr(made, name) for name in ("sign", "verify", "public_key", "private_key")})
        return getattr(made, name)


def _private_key(key_spec: str) -> Any:
    """moto makes an RSA key for each key that only encrypts, which takes longer than all else that a stack is made of."""
    return _Late() if key_spec == "SYMMETRIC_DEFAULT" else generate_private_key(key_spec)


def _noting_message_type(method: Callable[[KmsResponse], str]) -> Callable[[KmsResponse], str]:
    """The handler of Sign or Verify, which alone sees MessageType, telling it to the key it ends up at."""

    def handler(self: KmsResponse) -> str:
        with _noted(self._get_param("MessageType") == "DIGEST"):
            return method(self)

    return handler


@contextmanager
def _noted(digest: bool) -> Iterator[None]:
    token = _digest_given.set(digest)
    try:
        yield
    finally:
        _digest_given.reset(token)


def _prehashed(key: Any, digest: bytes, signing_algorithm: str) -> Prehashed:
    """As KMS does: refuse an algorithm that is not the key's, and a digest of another length than the algorithm's."""
    if signing_algorithm not in key.valid_signing_algorithms:
        raise ValidationException(f"Algorithm {signing_algorithm} and key spec do not match")
    algorithm = _HASHES[signing_algorithm]()
    if len(digest) != algorithm.digest_size:
        raise ValidationException(f"Digest is invalid length for algorithm {signing_algorithm}.")
    return Prehashed(algorithm)
