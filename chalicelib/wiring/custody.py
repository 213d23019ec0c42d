"""Keys: derivation of addresses from the seed, and signers. Only functions with the right to a key make the signing ones."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chalicelib.domain.ids import Realm
    from chalicelib.usecases.ports.keys import Deriver, WalletKeys
    from chalicelib.usecases.ports.signing import DepositKeys, Signer
    from chalicelib.wiring.parts import Parts


class CustodyWiring:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    @cached_property
    def deriver(self) -> Deriver:
        from chalicelib.custody.derive import XpubDeriver
        from chalicelib.domain.addresses.addresses import Xpub

        def xpub_of(realm: Realm, pool: str) -> str | None:
            found = self._parts.store.get(Xpub, realm=realm, pool=pool)
            return None if found is None else found.xpub

        return XpubDeriver(xpub_of, self._parts.settings.chains)

    @cached_property
    def wallet_keys(self) -> WalletKeys:
        """Makes and encrypts the keys of service wallets; can not use them."""
        from chalicelib.custody.wallet_keys import Keys

        return Keys(self._parts.client, self._parts.settings)

    @cached_property
    def signer(self) -> Signer:
        """Signs with the keys of service wallets."""
        from chalicelib.custody.envelope import EnvelopeSigner
        from chalicelib.custody.kms import KmsSigner
        from chalicelib.custody.records import EncryptedKey
        from chalicelib.custody.signer import WalletSigner

        kms, store = self._parts.client("kms"), self._parts.store
        envelope = EnvelopeSigner(kms, self._parts.settings, lambda key_id: store.get(EncryptedKey, id=key_id))
        return WalletSigner(KmsSigner(kms), envelope)

    @cached_property
    def deposit_keys(self) -> DepositKeys:
        """Signs with the keys of deposit addresses: opens the seed."""
        from chalicelib.custody.derived import SeedKeys
        from chalicelib.custody.records import EncryptedSeed

        kms, store = self._parts.client("kms"), self._parts.store
        return SeedKeys(kms, self._parts.settings, lambda seed_id: store.get(EncryptedSeed, id=seed_id))
