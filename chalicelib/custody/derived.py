"""Signatures by the keys of deposit addresses, for collecting their deposits to service wallets. Needs the seed: function collect.

The seed is open for the length of a `with` block: one call to KMS however many coins are signed for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from coincurve import PrivateKey

from chalicelib.custody.records import EncryptedSeed
from chalicelib.custody.seed import SEED_ID, address_key, unlock_seed
from chalicelib.custody.signatures import check_digest, sign_with
from chalicelib.domain.ids import NetworkId
from chalicelib.encoding.public_keys import Chain, address_of
from chalicelib.settings import Settings
from chalicelib.usecases.ports.signing import Signature


class DerivedSigner:
    """Signs while the seed is open. The caller has checked what it signs (money rule 7)."""

    def __init__(self, seed: bytearray, chain_of: Callable[[str], Chain] = lambda _: "main") -> None:
        self._seed, self._chain_of = seed, chain_of
        self._keys: dict[str, PrivateKey] = {}

    def sign(self, path: str, digest: bytes) -> Signature:
        """Sign 32 bytes with the key of the address at `path` (as `Deriver.derive` gave it). Raises ValueError, also when the seed
        is shut."""
        check_digest(digest)
        return sign_with(self._key(path), digest)

    def sign_as(self, network: NetworkId, address: str, path: str, digest: bytes) -> Signature:
        """The same, only where the key at `path` is the one of `address` on `network`. Raises ValueError, also where it is not."""
        check_digest(digest)
        made = address_of(network, self._key(path).public_key.format(compressed=False)[1:], self._chain_of(network))
        # Hex addresses differ in case alone where they are the same; base58 and bech32 are spelled in one way.
        if made != address and not (made.startswith("0x") and made.lower() == address.lower()):
            raise ValueError(f"the key at {path} is not the one of {address} on {network}")
        return sign_with(self._key(path), digest)

    def _key(self, path: str) -> PrivateKey:
        if not any(self._seed):
            raise ValueError("the seed is shut")
        if path not in self._keys:
            self._keys[path] = PrivateKey(address_key(self._seed, path))
        return self._keys[path]

    def shut(self) -> None:
        """Forget the keys."""
        self._keys.clear()


@contextmanager
def derived_signer(kms: Any, settings: Settings, record: EncryptedSeed) -> Iterator[DerivedSigner]:
    """A signer for every deposit address, for the length of a `with` block. Raises what `unlock_seed` raises."""
    with unlock_seed(kms, settings, record) as seed:
        signer = DerivedSigner(seed, settings.chain)
        try:
            yield signer
        finally:
            signer.shut()


class SeedKeys:
    """The port DepositKeys. `record_of` looks up the encrypted seed by its id, None where there is none."""

    def __init__(self, kms: Any, settings: Settings, record_of: Callable[[str], EncryptedSeed | None]) -> None:
        self._kms, self._settings, self._record_of = kms, settings, record_of

    def opened(self) -> AbstractContextManager[DerivedSigner]:
        """The keys of all deposit addresses, for the length of a `with` block. Raises LookupError where there is no seed, and what
        `derived_signer` raises."""
        record = self._record_of(SEED_ID)
        if record is None:
            raise LookupError("this deployment has no seed")
        return derived_signer(self._kms, self._settings, record)
