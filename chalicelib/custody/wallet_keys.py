"""Keys of service wallets that the API registers: imported or generated under envelope encryption, or made in KMS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chalicelib.custody.native import make_wallet
from chalicelib.custody.records import EncryptedKey
from chalicelib.custody.wallets import import_wallet, new_private_key
from chalicelib.domain.addresses.addresses import Role, Wallet
from chalicelib.domain.ids import NetworkId
from chalicelib.settings import Settings


class Keys:
    """The port WalletKeys: only encrypts, and makes keys that it can not use. `client` gives the client of an AWS service."""

    def __init__(self, client: Callable[[str], Any], settings: Settings) -> None:
        self._client, self._settings = client, settings

    @property
    def native(self) -> bool:
        return self._settings.wallet_custody == "native"

    def new(self) -> str:
        return new_private_key()

    def put_away(self, network: NetworkId, role: Role, secret: str, now_ms: int) -> tuple[Wallet, EncryptedKey]:
        return import_wallet(self._client("kms"), self._settings, network, role, secret, now_ms)

    def make(self, network: NetworkId, role: Role, number: int, now_ms: int) -> Wallet:
        kms, sts = self._client("kms"), self._client("sts")
        return make_wallet(kms, sts, self._settings, network, role, number, now_ms)
