"""Address formats of each network: valid spellings, and the canonical one.

Pure: asks no node, knows no key. Light to import, because the API checks addresses with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from chalicelib.encoding import base58check, bech32
from chalicelib.encoding.public_keys import EVM_NETWORKS, TRON_PREFIX, Chain, checksum_case, slug_of, spelling

MAX_LENGTH = 128
"""Characters; no address of a supported kind is longer than 62."""

_EVM = re.compile(r"0x[0-9a-fA-F]{40}", re.ASCII)
_SEGWIT_PREFIXES = re.compile(r"(bc|tb|bcrt|ltc|tltc|rltc|ltcmweb|tmweb)1", re.ASCII | re.IGNORECASE)


class Parsed(NamedTuple):
    """`type` is evm, tron, p2pkh, p2sh, p2wpkh, p2wsh or p2tr; `text` is the public spelling."""

    type: str
    text: str


_WITNESS = {(0, 20): "p2wpkh", (0, 32): "p2wsh", (1, 32): "p2tr"}


def parse(network: str, text: str, chain: Chain = "main") -> Parsed:
    """The type of the address `text` on `network` (slug or NetworkId) and its `chain`, and its public spelling.

    Raises ValueError with the reason in words for the caller, LookupError for a network that we do not know.
    """
    slug = slug_of(network)
    if len(text) > MAX_LENGTH:
        raise ValueError(f"an address has at most {MAX_LENGTH} characters")
    if not text:
        raise ValueError("the address is empty")
    if slug in EVM_NETWORKS:
        return _evm(text)
    return _tron(text) if slug == "tron" else _utxo(slug, text, chain)


def _evm(text: str) -> Parsed:
    """Source: EIP-55. All-lower and all-upper digits carry no checksum and are valid."""
    if not _EVM.fullmatch(text):
        raise ValueError("must be 0x and 40 hexadecimal digits")
    digits = text[2:]
    lower = digits.lower()
    if lower == "0" * 40:
        raise ValueError("the zero address belongs to nobody: what is sent there is lost")
    normalized = checksum_case(lower)
    if digits not in (lower, digits.upper()) and text != normalized:
        raise ValueError("the checksum of its upper and lower case (EIP-55) is wrong: a character was mistyped")
    return Parsed("evm", normalized)


def _tron(text: str) -> Parsed:
    """Source: TRON's documentation, "Account address format": base58check of 0x41 and 20 bytes."""
    if not text.startswith("T") or len(text) != 34:
        raise ValueError("must be a T and 33 more characters of base58")
    payload = base58check.decode(text)
    if len(payload) != 21 or payload[:1] != TRON_PREFIX:
        raise ValueError("is not an address of the Tron network")
    if not any(payload[1:]):
        raise ValueError("the zero address belongs to nobody: what is sent there is lost")
    return Parsed("tron", text)


def _utxo(slug: str, text: str, chain: Chain) -> Parsed:
    if _SEGWIT_PREFIXES.match(text):
        return _segwit(slug, text, chain)
    known = spelling(slug, chain)
    try:
        payload = base58check.decode(text)
    except ValueError as reason:
        raise ValueError(f"is neither bech32 ({known.segwit}1...) nor base58: {reason}") from None
    if len(payload) != 21:
        raise ValueError("has a wrong length")
    version = payload[0]
    if version == known.p2pkh:
        return Parsed("p2pkh", text)
    if version in known.p2sh:
        return Parsed("p2sh", base58check.encode(bytes([known.p2sh[0]]) + payload[1:]))
    raise ValueError(f"belongs to another network than {_named(slug, chain)}")


def _segwit(slug: str, text: str, chain: Chain) -> Parsed:
    """Source: BIP-173, BIP-350. Witness versions from 2 on are for future rules; today nobody could spend what arrives there."""
    if text.lower().startswith(("ltcmweb1", "tmweb1")):
        raise ValueError("MWEB addresses are not supported")
    prefix, version, program = bech32.decode_segwit(text)
    known = spelling(slug, chain)
    if prefix != known.segwit:
        raise ValueError(f"belongs to another network than {_named(slug, chain)}, whose addresses start with {known.segwit}1")
    kind = _WITNESS.get((version, len(program)))
    if kind is None:
        raise ValueError("is of a witness version or length that is not supported")
    return Parsed(kind, text.lower())


def _named(slug: str, chain: Chain) -> str:
    return slug if chain == "main" else f"{slug} ({chain})"


class Rules:
    """The port AddressRules over `parse`, for all eight networks. `network` is a NetworkId, or a slug for the main chain.

    `chains` has, by NetworkId, the chain of each network that is not on its main chain.
    """

    def __init__(self, chains: Mapping[str, Chain] | None = None) -> None:
        self._chains = dict(chains or {})

    def normalize(self, network: str, text: str) -> str:
        """The public spelling: EIP-55, lower-case bech32, litecoin's scripts with M. Raises ValueError with the reason."""
        return parse(network, text, self._chain(network)).text

    def address_type(self, network: str, text: str) -> str:
        """evm, tron, p2pkh, p2sh, p2wpkh, p2wsh or p2tr. Raises ValueError with the reason."""
        return parse(network, text, self._chain(network)).type

    def storage_form(self, network: str, address: str) -> str:
        """The spelling for comparing and for keys. `address` is in the public spelling (`normalize`) or from a node; not checked.

        EVM: lower case; the others have one spelling anyway.
        """
        return address.lower() if slug_of(network) in EVM_NETWORKS else address

    def _chain(self, network: str) -> Chain:
        return self._chains.get(network, "main")
