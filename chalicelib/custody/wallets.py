"""New service wallets: over a key in KMS, or over an imported or generated key under envelope encryption.

Makes records only; storing them is the caller's. A wallet's address is in its public spelling.
"""

from __future__ import annotations

import os
import re
from typing import Any

from chalicelib.custody.envelope import private_key, seal
from chalicelib.custody.kms import describe_key
from chalicelib.custody.records import EncryptedKey
from chalicelib.domain.addresses.addresses import Role, Wallet
from chalicelib.domain.ids import NetworkId
from chalicelib.encoding import base58check
from chalicelib.encoding.public_keys import UTXO_NETWORKS, Chain, address_of, slug_of, spelling
from chalicelib.settings import Settings

_HEX = re.compile(r"(?:0x)?([0-9a-fA-F]{64})", re.ASCII)


def new_kms_wallet(kms: Any, key_id: str, network: NetworkId, role: Role, now_ms: int, chain: Chain = "main") -> Wallet:
    """A wallet over an ECC_SECG_P256K1 key that is in KMS already; `key_id` is its id, ARN or alias.

    The record keeps the key's own id, so that a moved alias changes nothing. `now_ms` in milliseconds since 1970.
    Raises Unavailable; ValueError for another kind of key; LookupError for an unknown network.
    """
    key, point = describe_key(kms, key_id)
    return Wallet(network, role, address_of(network, bytes.fromhex(point), chain), "kms", key, point, now_ms)


def new_private_key() -> str:
    """A random private key as 64 hex digits, for `import_wallet`. A secret: shown to its owner once, never logged."""
    while True:
        secret = os.urandom(32)
        try:
            return private_key(secret).to_hex().rjust(64, "0")
        except ValueError:
            continue  # not below the curve's order: chance 1 in 2^128


def import_wallet(
    kms: Any, settings: Settings, network: NetworkId, role: Role, secret: str, now_ms: int
) -> tuple[Wallet, EncryptedKey]:
    """A wallet over an existing private key, and the row that keeps the key encrypted. Store both together.

    `secret` is 64 hex digits (0x before them or not), or for bitcoin and litecoin also WIF of a compressed key. `now_ms` in
    milliseconds since 1970. Raises Unavailable; LookupError for an unknown network; ValueError, without the key in its
    message, for anything else.
    """
    chain = settings.chain(network)
    raw = _secret_bytes(slug_of(network), secret, chain)
    point = private_key(raw).public_key.format(compressed=False)[1:]
    address = address_of(network, point, chain)
    record = seal(kms, settings, network, address, raw, now_ms)
    return Wallet(network, role, address, "envelope", record.id, point.hex(), now_ms), record


def _secret_bytes(slug: str, secret: str, chain: Chain) -> bytes:
    if match := _HEX.fullmatch(secret):
        return bytes.fromhex(match.group(1))
    if slug not in UTXO_NETWORKS:
        raise ValueError("a private key has 64 hexadecimal digits")
    try:
        payload = base58check.decode(secret)
    except ValueError:
        raise ValueError("a private key has 64 hexadecimal digits, or is in wallet import format (WIF)") from None
    # Our addresses are segwit, which has compressed keys only: the trailing 01 says that the key is used so.
    if len(payload) != 34 or payload[0] != spelling(slug, chain).wif or payload[33] != 1:
        raise ValueError(f"the private key is not a compressed one of {slug}")
    return payload[1:33]
