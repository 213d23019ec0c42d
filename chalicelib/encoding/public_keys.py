"""Addresses of public keys, and EIP-55. Knows the spelling of each network and chain; knows no private key."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from chalicelib.encoding import base58check, bech32
from chalicelib.encoding.keccak import keccak256

EVM_NETWORKS = ("ethereum", "bsc", "polygon", "arbitrum", "fantom")
TRON_PREFIX = b"\x41"
UTXO_NETWORKS = ("bitcoin", "litecoin")
NETWORKS = (*EVM_NETWORKS, *UTXO_NETWORKS, "tron")

Chain = Literal["main", "testnet", "regtest"]
"""Which of its chains a UTXO network is on. (EVM networks differ by chain id, and Tron's chains spell addresses alike.)"""


@dataclass(frozen=True, slots=True)
class Spelling:
    """A chain's spelling of addresses and keys: the human-readable part of segwit addresses, the version bytes of base58 ones
    and of private keys (WIF). Of `p2sh` all are read and the first is written."""

    segwit: str
    p2pkh: int
    p2sh: tuple[int, ...]
    wif: int


# Sources: SLIP-173; chainparams.cpp of Bitcoin Core and Litecoin Core. (Bitcoin's testnets and its signet are spelled alike.)
# Litecoin's scripts have two spellings: M... (0x32) and, from before 2017, 3... (0x05), which looks like bitcoin's.
# Litecoin Core reads both and writes M (src/key_io.cpp), and so do we: one script, one address in whitelists and grey lists.
_SPELLINGS: dict[tuple[str, Chain], Spelling] = {
    ("bitcoin", "main"): Spelling("bc", 0x00, (0x05,), 0x80),
    ("bitcoin", "testnet"): Spelling("tb", 0x6F, (0xC4,), 0xEF),
    ("bitcoin", "regtest"): Spelling("bcrt", 0x6F, (0xC4,), 0xEF),
    ("litecoin", "main"): Spelling("ltc", 0x30, (0x32, 0x05), 0xB0),
    ("litecoin", "testnet"): Spelling("tltc", 0x6F, (0x3A, 0xC4), 0xEF),
    ("litecoin", "regtest"): Spelling("rltc", 0x6F, (0x3A, 0xC4), 0xEF),
}


def spelling(network: str, chain: Chain = "main") -> Spelling:
    """The spelling of a UTXO network (slug or NetworkId) on one of its chains. Raises LookupError for any other."""
    return _SPELLINGS[slug_of(network), chain]


def slug_of(network: str) -> str:
    """The slug of a network given as slug or as NetworkId: ``live:ethereum`` and ``ethereum`` are both ``ethereum``.

    Raises LookupError, naming the known ones, for any other.
    """
    slug = network.rsplit(":", 1)[-1]
    if slug not in NETWORKS:
        raise LookupError(f"unknown network {slug[:40]!r}; known: {', '.join(NETWORKS)}")
    return slug


def checksum_case(hex40: str) -> str:
    """The EIP-55 spelling of an address given as 40 lower-case hexadecimal digits, with 0x."""
    # A digit of the hash of 8 or more makes the letter at its place a capital.
    hashed = keccak256(hex40.encode("ascii")).hex()
    return "0x" + "".join([char.upper() if nibble > "7" else char for char, nibble in zip(hex40, hashed, strict=False)])


def evm_address(point: bytes) -> str:
    """EIP-55 address of a public key. `point` is x and y, 64 bytes, without the prefix 0x04."""
    return checksum_case(keccak256(point)[12:].hex())


def tron_address(point: bytes) -> str:
    """Base58check address, prefix 0x41, of a public key. `point` is x and y, 64 bytes, without the prefix 0x04."""
    return base58check.encode(TRON_PREFIX + keccak256(point)[12:])


def p2wpkh_address(prefix: str, compressed: bytes) -> str:
    """Segwit address of a public key (BIP-84). `compressed` is the key's 33 byte form."""
    return bech32.encode_segwit(prefix, 0, hash160(compressed))


def compress(point: bytes) -> bytes:
    """The 33 byte form of a public key given as x and y, 64 bytes (SEC 1, 2.3.3)."""
    return (b"\x03" if point[63] & 1 else b"\x02") + point[:32]


def address_of(network: str, point: bytes, chain: Chain = "main") -> str:
    """The address of a public key on `network` (slug or NetworkId), in its public spelling. `point` as 64 bytes.

    EVM: EIP-55; bitcoin and litecoin: P2WPKH of `chain`; tron: base58check. Raises LookupError, ValueError.
    """
    if len(point) != 64:
        raise ValueError("a public key is given as 64 bytes: x and y")
    slug = slug_of(network)
    if slug in EVM_NETWORKS:
        return evm_address(point)
    if slug == "tron":
        return tron_address(point)
    return p2wpkh_address(spelling(slug, chain).segwit, compress(point))


def _ripemd160() -> Callable[[bytes], bytes]:
    """RIPEMD-160 of OpenSSL where it is compiled in (it is an old algorithm, and some builds leave it out)."""
    try:
        hashlib.new("ripemd160", usedforsecurity=False)
    except ValueError:
        from Crypto.Hash import RIPEMD160

        return lambda data: RIPEMD160.new(data).digest()
    return lambda data: hashlib.new("ripemd160", data).digest()


_hash = _ripemd160()


def hash160(data: bytes) -> bytes:
    """RIPEMD-160 of SHA-256: the 20-byte hash of a public key or a script in bitcoin."""
    return _hash(hashlib.sha256(data).digest())
