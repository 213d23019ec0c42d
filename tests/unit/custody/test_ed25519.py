"""Ed25519 as approvals use it, against RFC 8032's vectors and another implementation."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from chalicelib.encoding.ed25519 import check_public_key, read_bytes, verify

# RFC 8032 section 7.1: TEST 1 and TEST 2, public key, message, signature.
VECTORS = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "r",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
]


@pytest.mark.parametrize(("key", "text", "signature"), VECTORS)
def test_the_published_vectors(key: str, text: str, signature: str) -> None:
    check_public_key(bytes.fromhex(key))
    assert verify(key, text, signature)
    assert not verify(key, text + " ", signature)
    assert not verify(key, text, signature[:-2] + "11")
    assert not verify(key, text, signature[:-2])
    assert not verify(VECTORS[1][0] if key == VECTORS[0][0] else VECTORS[0][0], text, signature)


def test_another_implementation_agrees() -> None:
    for seed in range(4):
        private = Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)
        public = private.public_key().public_bytes_raw().hex()
        text = "wd_1\nethereum\neth\n0.5\n0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed — ü"
        check_public_key(bytes.fromhex(public))
        assert verify(public, text, private.sign(text.encode()).hex())
        assert not verify(public, text.replace("0.5", "5"), private.sign(text.encode()).hex())


def test_a_signature_has_one_spelling() -> None:
    """RFC 8032 section 5.1.7: S is below the group's order L. With S = 0, S + L is the same number once more."""
    order = 2**252 + 27742317777372353535851937790883648493
    for key, text, signature in VECTORS:
        raw = bytes.fromhex(signature)
        scalar = int.from_bytes(raw[32:], "little")
        for multiple in range(1, 16):
            twin = scalar + multiple * order
            if twin < 2**256:
                assert not verify(key, text, (raw[:32] + twin.to_bytes(32, "little")).hex())
    # R and the key are both the neutral element, so S = 0 verifies by the equation, and with it would S = L.
    neutral = "01" + "00" * 31
    assert verify(neutral, "any", neutral + "00" * 32)
    assert not verify(neutral, "any", neutral + order.to_bytes(32, "little").hex())


@pytest.mark.parametrize(
    "key",
    [
        "01" + "00" * 31,  # the neutral element: anybody signs for it
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",  # order 8
        "02" + "00" * 31,  # no point
        "ee" + "ff" * 30 + "7f",  # y = p + 1: a second spelling of 1
        "ff" * 32,
    ],
)
def test_what_nobody_has_the_key_of_is_refused(key: str) -> None:
    with pytest.raises(ValueError):
        check_public_key(bytes.fromhex(key))


def test_hex_and_base64_in_every_spelling() -> None:
    raw = bytes(range(224, 256))
    plain = base64.b64encode(raw).decode()
    for text in (raw.hex(), raw.hex().upper(), plain, plain.rstrip("="), base64.urlsafe_b64encode(raw).decode()):
        assert read_bytes(text, 32) == raw
    for text in ("", "zz", raw.hex()[:-1], plain[:-4], plain + "AAAA", "é" * 43, "=" * 44):
        with pytest.raises(ValueError):
            read_bytes(text, 32)
