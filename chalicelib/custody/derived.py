"""Signatures by the keys of deposit addresses, for moving to the hot wallet what arrived there. Needs the seed, so payout alone.

The seed is open for the length of a `with` block: one call to KMS however many coins are signed for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from coincurve import PrivateKey

from chalicelib.custody.records import EncryptedSeed
from chalicelib.custody.seed import address_key, unlock_seed
from chalicelib.custody.signatures import check_digest, sign_with
from chalicelib.settings import Settings
from chalicelib.usecases.ports.signing import Signature


class DerivedSigner:
    """Signs while the seed is open. The caller has checked what it signs (money rule 7)."""

    def __init__(self, seed: bytearray) -> None:
        self._seed = seed
        self._keys: dict[str, PrivateKey] = {}

    def sign(self, path: str, digest: bytes) -> Signature:
        """Sign 32 bytes with the key of the address at `path` (as `Deriver.derive` gave it). Raises ValueError, also when the seed
        is shut."""
        check_digest(digest)
        if not any(self._seed):
            raise ValueError("the seed is shut")
        if path not in self._keys:
            self._keys[path] = PrivateKey(address_key(self._seed, path))
        return sign_with(self._keys[path], digest)

    def shut(self) -> None:
        """Forget the keys."""
        self._keys.clear()


@contextmanager
def derived_signer(kms: Any, settings: Settings, record: EncryptedSeed) -> Iterator[DerivedSigner]:
    """A signer for every deposit address, for the length of a `with` block. Raises what `unlock_seed` raises."""
    with unlock_seed(kms, settings, record) as seed:
        signer = DerivedSigner(seed)
        try:
            yield signer
        finally:
            signer.shut()
