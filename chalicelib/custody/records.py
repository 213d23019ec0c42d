"""Stored secrets: only KMS ciphertext. Light to import, holds no key in the clear."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class EncryptedSeed:
    """The BIP-32 seed of the deposit addresses, encrypted by KMS under `context`. `created_at` in milliseconds since 1970."""

    id: str
    ciphertext_b64: str = field(repr=False)
    context: dict[str, str]
    created_at: int
    version: int = 1


@dataclass(frozen=True, slots=True)
class EncryptedKey:
    """A wallet's private key under a data key of its own (AES-256-GCM), and that data key encrypted by KMS under `context`.

    `ciphertext_b64` is the encrypted key with the 16 byte tag after it. `created_at` in milliseconds since 1970.
    """

    id: str
    data_key_b64: str = field(repr=False)
    nonce_b64: str = field(repr=False)
    ciphertext_b64: str = field(repr=False)
    context: dict[str, str]
    created_at: int
    version: int = 1
