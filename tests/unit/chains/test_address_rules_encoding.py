"""The byte encodings below the rules: Keccak, bech32, base58check, EIP-55 over keys, against published vectors."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable

import pytest

from chalicelib.encoding import base58check, bech32, public_keys
from chalicelib.encoding.keccak import keccak256


@pytest.mark.parametrize(
    ("data", "digest"),
    [
        # The empty string's digest is a constant of Ethereum (yellow paper, KEC of nothing); the others are selectors of ERC-20.
        (b"", "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"),
        (b"Transfer(address,address,uint256)", "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"),
        (b"Approval(address,address,uint256)", "8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925"),
    ],
)
def test_keccak(data: bytes, digest: str) -> None:
    assert keccak256(data).hex() == digest


BECH32_VALID = (
    "A12UEL5L",
    "a12uel5l",
    "an83characterlonghumanreadablepartthatcontainsthenumber1andtheexcludedcharactersbio1tt5tgs",
    "abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw",
    "11qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqc8247j",
    "split1checkupstagehandshakeupstreamerranterredcaperred2y9e3w",
    "?1ezyfcl",
)
BECH32M_VALID = (
    "A1LQFN3A",
    "a1lqfn3a",
    "an83characterlonghumanreadablepartthatcontainsthetheexcludedcharactersbioandnumber11sg7hg6",
    "abcdef1l7aum6echk45nj3s0wdvt2fg8x9yrzpqzd3ryx",
    "11llllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllludsr8",
    "split1checkupstagehandshakeupstreamerranterredcaperredlc445v",
    "?1v759aa",
)
BECH32_INVALID = (
    "\x201nwldj5",
    "\x7f1axkwrx",
    "\x801eym55h",
    "an84characterslonghumanreadablepartthatcontainsthenumber1andtheexcludedcharactersbio1569pvx",
    "pzry9x0s0muk",
    "1pzry9x0s0muk",
    "x1b4n0q5v",
    "li1dgmt3",
    "de1lg7wt\xff",
    "A1G7SGD8",
    "10a06t8",
    "1qzzfhee",
    "\x201xj0phk",
    "\x7f1g6xzxy",
    "\x801vctc34",
    "an84characterslonghumanreadablepartthatcontainsthetheexcludedcharactersbioandnumber11d6pts4",
    "qyrz8wqd2c9m",
    "1qyrz8wqd2c9m",
    "y1b0jsk6g",
    "lt1igcx5c0",
    "in1muywd",
    "mm1crxm3i",
    "au1s5cgom",
    "M1VUXWEZ",
    "16plkw9",
    "1p2gdwpf",
)


@pytest.mark.parametrize(
    ("text", "constant"), [(t, bech32.BECH32) for t in BECH32_VALID] + [(t, bech32.BECH32M) for t in BECH32M_VALID]
)
def test_bech32_strings_of_bip173_and_bip350(text: str, constant: int) -> None:
    hrp, _, found = bech32.parse(text)
    assert found == constant
    assert text.lower().startswith(hrp + "1")


@pytest.mark.parametrize("text", BECH32_INVALID, ids=ascii)
def test_invalid_bech32_strings(text: str) -> None:
    with pytest.raises(ValueError):
        bech32.parse(text)


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4", "0014751e76e8199196d454941c45d1b3a323f1433bd6"),
        (
            "tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3q0sl5k7",
            "00201863143c14c5166804bd19203356da136c985678cd4d27a1b8c6329604903262",
        ),
        (
            "bc1pw508d6qejxtdg4y5r3zarvary0c5xw7kw508d6qejxtdg4y5r3zarvary0c5xw7kt5nd6y",
            "5128751e76e8199196d454941c45d1b3a323f1433bd6751e76e8199196d454941c45d1b3a323f1433bd6",
        ),
        ("BC1SW50QGDZ25J", "6002751e"),
        ("bc1zw508d6qejxtdg4y5r3zarvaryvaxxpcs", "5210751e76e8199196d454941c45d1b3a323"),
        (
            "tb1qqqqqp399et2xygdj5xreqhjjvcmzhxw4aywxecjdzew6hylgvsesrxh6hy",
            "0020000000c4a5cad46221b2a187905e5266362b99d5e91c6ce24d165dab93e86433",
        ),
        (
            "tb1pqqqqp399et2xygdj5xreqhjjvcmzhxw4aywxecjdzew6hylgvsesf3hn0c",
            "5120000000c4a5cad46221b2a187905e5266362b99d5e91c6ce24d165dab93e86433",
        ),
        (
            "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
            "512079be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
        ),
    ],
)
def test_segwit_scripts_of_bip350(text: str, script: str) -> None:
    hrp, version, program = bech32.decode_segwit(text)
    opcode = version + 0x50 if version else 0
    assert bytes([opcode, len(program)]).hex() + program.hex() == script
    assert bech32.encode_segwit(hrp, version, program) == text.lower()


def test_base58check_of_trons_documentation() -> None:
    payload = bytes.fromhex("415a523b449890854c8fc460ab602df9f31fe4293f")
    assert base58check.encode(payload) == "TJCnKsPa7y5okkXvQAidZBzqx3QyQ6sxMW"
    assert base58check.decode("TJCnKsPa7y5okkXvQAidZBzqx3QyQ6sxMW") == payload


@pytest.mark.parametrize("text", ["", " ", "TJCnKsPa7y5okkXvQAidZBzqx3QyQ6sxMW ", "0OIl", "1", "1111", "é" * 20, "2" * 121])
def test_base58check_refuses(text: str) -> None:
    with pytest.raises(ValueError):
        base58check.decode(text)


@pytest.mark.parametrize("spoil", [lambda wif: wif[:-1] + "2", lambda wif: wif + " ", lambda wif: wif * 3])
def test_a_mistyped_secret_is_not_repeated_in_the_error(spoil: Callable[[str], str]) -> None:
    # BIP-84, test vectors: the first private key.
    wif = "KyZpNDKnfs94vbrwhJneDi77V6jF64PWPF8x5cdJb8ifgg2DUc9d"
    assert len(base58check.decode(wif)) == 34
    with pytest.raises(ValueError) as caught:
        base58check.decode(spoil(wif))
    assert wif[:8] not in str(caught.value)


def test_hash160_is_the_same_without_openssls_ripemd(monkeypatch: pytest.MonkeyPatch) -> None:
    source = random.Random(160)
    samples = [b"", *[source.randbytes(33) for _ in range(20)]]
    expected = [hashlib.new("ripemd160", hashlib.sha256(data).digest()).digest() for data in samples]
    assert [public_keys.hash160(data) for data in samples] == expected

    def refuse(*_: object, **__: object) -> None:
        raise ValueError("unsupported hash type ripemd160")

    monkeypatch.setattr(hashlib, "new", refuse)
    monkeypatch.setattr(public_keys, "_hash", public_keys._ripemd160())
    assert [public_keys.hash160(data) for data in samples] == expected


def test_addresses_of_keys_as_other_libraries_make_them() -> None:
    from coincurve import PrivateKey
    from eth_keys.datatypes import PublicKey as EthKey
    from tronpy.keys import PublicKey as TronKey

    source = random.Random(50)
    for _ in range(50):
        key = PrivateKey(source.randbytes(32)).public_key
        point = key.format(compressed=False)[1:]
        assert public_keys.address_of("live:polygon", point) == EthKey(point).to_checksum_address()
        assert public_keys.address_of("tron", point) == TronKey(point).to_base58check_address()
        assert public_keys.compress(point) == key.format()


def test_a_public_key_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="64 bytes"):
        public_keys.address_of("tron", bytes(65))
