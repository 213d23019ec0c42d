"""What the portal signs in the browser: its texts are those of the service, to the byte, and its signatures are Ed25519's."""

from __future__ import annotations

import base64
import json
import random
from dataclasses import replace
from typing import Any

import pytest
from Crypto.PublicKey import ECC
from Crypto.Signature import eddsa

from chalicelib.domain.ids import TenantId
from chalicelib.domain.merchants.settings import MerchantSettings
from chalicelib.domain.withdrawals.approvals import (
    MultisigConfig,
    Signer,
    rejection_text,
    settings_text,
    whitelist_text,
    withdrawal_text,
)
from chalicelib.encoding.ed25519 import verify
from chalicelib.usecases.merchants.settings import guarded, settings_view
from tests.support.javascript import value

pytestmark = pytest.mark.nodes


TENANT = TenantId("mch_01kab7n3q2w8z5r6t4y1v9c0x3:test")
SEED = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")  # RFC 8032 section 7.1, test 1
PUBLIC = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
EMPTY = bytes.fromhex(
    "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
    "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
).hex()


def answered(imports: str, expression: str, **names: Any) -> Any:
    """The JSON of an expression, in a module with these imports and constants."""
    constants = "".join(f"const {name} = {json.dumps(value)};\n" for name, value in names.items())
    return value(f"{imports}\n{constants}", expression)


TEXTS = 'import * as texts from "signing/texts.js";'


def test_texts_of_withdrawals_are_the_services() -> None:
    chance = random.Random(16)
    fields = ("id", "network", "coin", "amount", "to_address")
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFXYZ0123456789_-.:"
    records = [{name: "".join(chance.choices(letters, k=chance.randint(1, 60))) for name in fields} for _ in range(200)]
    made = answered(
        TEXTS, "records.map((r) => { const t = texts.withdrawalText(r); return [t, texts.rejectionText(t)]; })", records=records
    )
    expected = [withdrawal_text(r["id"], r["network"], r["coin"], r["amount"], r["to_address"]) for r in records]
    assert made == [[text, rejection_text(text)] for text in expected]


def test_no_text_is_made_of_a_field_that_is_no_line() -> None:
    hostile = ["", "a\nb", "a\rb", "a\u2028b", "0.5\n0xabc", None, 5, ["a"], "é"]
    records = [{"id": "wd_1", "network": "ethereum", "coin": "eth", "amount": each, "to_address": "0x1"} for each in hostile]
    words = "records.map((r) => { try { return texts.withdrawalText(r); } catch (error) { return [error.message]; } })"
    assert answered(TEXTS, words, records=records) == [["amount can not stand in a text to sign"]] * len(hostile)


def test_texts_of_settings_are_the_services() -> None:
    settings = MerchantSettings(
        TENANT,
        True,
        MultisigConfig(
            True, 2, 3, "10.5", (Signer("alice", PUBLIC, "finance"), Signer("bob.b", "ab" * 32, 'a "b" \\ ü \u2028 \x1f €😀'))
        ),
        refund_daily_limit_usd="500",
        version=7,
    )
    cases = [settings, MerchantSettings(TENANT), replace(settings, refund_daily_limit_usd="0")]
    shown = [settings_view(one) for one in cases]
    made = answered(TEXTS, f"shown.map((s) => texts.settingsText({json.dumps(TENANT)}, s.revision, s))", shown=shown)
    assert made == [settings_text(TENANT, one.version, guarded(one)) for one in cases]
    read = answered(TEXTS, "made.map(texts.readChange)", made=made)
    assert [(one["what"], one["tenant"], one["revision"], one["record"]) for one in read] == [
        ("settings", TENANT, one.version, json.loads(json.dumps(guarded(one)))) for one in cases
    ]


def test_texts_of_the_whitelist_are_the_services() -> None:
    entry = {
        "address": "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "network": "ethereum",
        "daily_limit": "10",
        "monthly_limit": None,
    }
    made = answered(TEXTS, f"texts.whitelistText({json.dumps(TENANT)}, 3, {{ ...entry, label: 'x', id: 'wla_1' }})", entry=entry)
    assert made == whitelist_text(TENANT, 3, entry)
    refusal = f"while multisig is enabled, 2 signers have to sign this change: {made}"
    failures = [{"details": {"field": "signatures", "reason": refusal}}, {"message": refusal}, {"message": "no"}, None]
    assert answered(TEXTS, "failures.map(texts.shownText)", failures=failures) == [made, made, None, None]


def test_what_is_no_change_is_not_read_as_one() -> None:
    bodies = ("[1", "{ }", '{"b":1,"a":2}', "{}\n", "null", "5", '{"a":1,"a":1}')
    others = ("", "wd_1\nethereum\neth\n1\n0x1", "settings\nm:test\n-1\n{}", "x\nm:test\n1\n{}")
    texts = [*others, *(f"settings\nm:test\n1\n{body}" for body in bodies)]
    assert answered(TEXTS, "given.map(texts.readChange)", given=texts) == [None] * len(texts)


def test_amounts_have_one_spelling() -> None:
    spelled = {
        "10": "10",
        "0": "0",
        "0.0": "0",
        "10.50": "10.5",
        " 1.0 ": "1",
        "100": "100",
        "0.000000000000000001": "0.000000000000000001",
    }
    wrong = ["1.", "01", "1e3", "-1", "", "1,5", ".5", "NaN", "١"]
    assert answered(TEXTS, "given.map(texts.plainAmount)", given=[*spelled, *wrong]) == [*spelled.values(), *[None] * len(wrong)]


KEYS = 'import { readKeyFile } from "signing/key_files.js"; import { toHex } from "signing/bytes.js";'
READ = """files.map((hex) => {
  const bytes = Uint8Array.from(hex.match(/../g) ?? [], (two) => parseInt(two, 16));
  try {
    const seed = readKeyFile(bytes);
    return { seed: toHex(seed), wiped: bytes.every((byte) => byte === 0) };
  } catch (error) {
    return { refused: error.message, known: error.constructor.name, wiped: bytes.every((byte) => byte === 0) };
  }
})"""


def read(*files: bytes) -> Any:
    return answered(KEYS, READ, files=[file.hex() for file in files])


def key() -> ECC.EccKey:
    return eddsa.import_private_key(SEED)


def jwk(**more: Any) -> bytes:
    secret = base64.urlsafe_b64encode(SEED).rstrip(b"=").decode()
    public = base64.urlsafe_b64encode(bytes.fromhex(PUBLIC)).rstrip(b"=").decode()
    return json.dumps({"kty": "OKP", "crv": "Ed25519", "kid": 'a "d": b', "d": secret, "x": public, **more}).encode()


def test_key_files_of_each_form_are_read_and_wiped() -> None:
    der, pem = key().export_key(format="DER"), key().export_key(format="PEM").encode()
    # RFC 8410 section 10.3: with attributes and the public key behind it.
    with_public = bytes.fromhex("3051020101300506032b657004220420") + SEED + b"\x81\x21\x00" + bytes.fromhex(PUBLIC)
    files = [
        pem, pem.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + pem, der, with_public, jwk(),
        SEED.hex().encode(), SEED.hex().upper().encode() + b"\r\n", json.dumps(json.loads(jwk()), indent=2).encode(),
        jwk(key_ops=["sign"], ext=False),
    ]  # fmt: skip
    assert read(*files) == [{"seed": SEED.hex(), "wiped": True}] * len(files)


REFUSED = [
    (b"", "empty"),
    (b"a" * 20_000, "too large"),
    (b"hello", "no key that can be read here"),
    (b"g" * 64, "no key that can be read here"),
    (SEED, "no key that can be read here"),
    (b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----", "locked with a password"),
    (b"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----", "OpenSSH"),
    (b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "public half"),
    (b"-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----", "no Ed25519 key"),
    (b"-----BEGIN PRIVATE KEY-----\nAAAA\n", "cut off"),
    (b"-----BEGIN PRIVATE KEY-----\nA*AA\n-----END PRIVATE KEY-----", "no base64"),
    (ECC.generate(curve="P-256").export_key(format="DER", use_pkcs8=True), "another kind"),
    (bytes.fromhex("302e020100300506032b657004220420") + SEED[:31], "cut off"),
    (bytes.fromhex("302d020100300506032b65700421041f") + SEED[:31], "32 bytes"),
    (b"\x30\x84\xff\xff\xff\xff", "damaged"),
    (b"\x30", "cut off"),
    (b"{", "no JSON|no private part"),
    (b'{"kty": "OKP"', "no private part"),
    (jwk(crv="X25519"), "another kind"),
    (jwk(d="AAAA"), "32 bytes"),
    (jwk(d=5), "no private part"),
    (jwk()[:-1] + b', "d": "AAAA"}', "twice"),
    (b'{"a": "b', "no JSON"),
]


def test_a_file_that_is_no_key_is_refused_in_words() -> None:
    for (_, words), answer in zip(REFUSED, read(*(file for file, _ in REFUSED)), strict=True):
        assert answer["known"] == "KeyFileError", answer
        assert any(word in answer["refused"] for word in words.split("|")), (words, answer)
        assert answer["wiped"]
        assert SEED.hex() not in json.dumps(answer)


def test_a_key_in_hex_may_begin_like_der() -> None:
    seeds = [bytes([first]) + SEED[1:] for first in range(0, 256, 5)]
    assert [answer.get("seed") for answer in read(*(seed.hex().encode() for seed in seeds))] == [seed.hex() for seed in seeds]


def test_random_bytes_are_never_a_fault() -> None:
    chance = random.Random(8032)
    heads = [b"", b"\x30", b"\x30\x2e\x02\x01\x00", b"{", b'{"d":"', b"-----BEGIN PRIVATE KEY-----"]
    answers = read(*(chance.choice(heads) + chance.randbytes(chance.randint(0, 80)) for _ in range(400)))
    assert {answer.get("known", "KeyFileError") for answer in answers} == {"KeyFileError"}
    assert all(answer["wiped"] for answer in answers)


SIGNING = 'import { hasEd25519, readSignature, signOnce } from "signing/ed25519.js";'
TOLD = """await (async () => {
  try { return await make(); } catch (error) { return { refused: error.message, known: error.constructor.name }; }
})()"""


def told(*makings: str, **names: Any) -> Any:
    """What each of some promises comes to, one after the other."""
    return answered(SIGNING, f"[{', '.join(TOLD.replace('make()', each) for each in makings)}]", **names)


def test_one_signature_by_a_key_file() -> None:
    bob = {"id": "bob", "public_key": "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"}
    signers = [bob, {"id": "alice", "public_key": PUBLIC}]
    text = "wd_1\nethereum\neth\n0.5\n0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
    signature = eddsa.new(key(), "rfc8032").sign(text.encode()).hex()
    spelled = [signature, signature.upper(), base64.b64encode(bytes.fromhex(signature)).decode()]
    assert verify(PUBLIC, text, signature)
    file = f'new Blob(["{SEED.hex()}"])'
    made, empty, stranger, other, short, *read_again = told(
        f"signOnce({file}, text, signers)",
        f'signOnce({file}, "", signers)',
        f"signOnce({file}, text, signers.slice(0, 1))",
        "readSignature(spelled[0], `${text}\\nreject`, signers)",
        'readSignature("abc", text, signers)',
        *(f"readSignature(` ${{spelled[{place}]}}\\n`, text, signers)" for place in range(3)),
        text=text,
        signers=signers,
        spelled=spelled,
    )
    assert made == {"signer_id": "alice", "signature": signature}
    assert empty["signature"] == EMPTY
    assert stranger == {"refused": "This key is none of the signers': bob.", "known": "SigningError"}
    assert (other["known"], short["known"]) == ("SigningError", "SigningError")
    assert read_again == [made] * 3


def test_without_ed25519_the_service_verifies_alone() -> None:
    without = "(Object.defineProperty(globalThis, 'crypto', { value: {}, configurable: true }), {})"
    signers = [{"id": "alice", "public_key": PUBLIC}]
    missing, chosen, unnamed = told(
        f"({without}, hasEd25519())",
        f'readSignature("{EMPTY}", "", signers, "alice")',
        f'readSignature("{EMPTY}", "", signers, "")',
        signers=signers,
    )
    assert missing is False
    assert chosen == {"signer_id": "alice", "signature": EMPTY}
    assert unnamed["known"] == "SigningError"
