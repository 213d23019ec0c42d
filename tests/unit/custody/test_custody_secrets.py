"""The seed and the envelope wallets: opened only as what they were stored as, and never seen outside."""

from __future__ import annotations

import base64
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields, replace
from typing import Any

import pytest
from coincurve import PrivateKey

from chalicelib.custody import envelope, seed
from chalicelib.custody.aws import SecretUnusable
from chalicelib.custody.derive import POOLS, XpubDeriver
from chalicelib.custody.envelope import EnvelopeSigner
from chalicelib.custody.kms import KmsSigner
from chalicelib.custody.records import EncryptedKey
from chalicelib.custody.signatures import sign_with
from chalicelib.custody.signer import WalletSigner
from chalicelib.custody.wallets import import_wallet, new_kms_wallet, new_private_key
from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.catalogue import NETWORK_ORDER
from chalicelib.domain.ids import NetworkId, network_id
from chalicelib.settings import Settings
from chalicelib.usecases.ports.failures import Unavailable
from tests.support.custody import kms_of, unreachable_kms

SETTINGS = Settings(stage="prod")
ETHEREUM = NetworkId("live:ethereum")
DIGEST = bytes(range(32))
# The first key of anvil and Hardhat (words "test test ... junk") and its published address.
KNOWN_KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
KNOWN_ADDRESS = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"


@pytest.fixture(name="kms")
def _kms() -> Iterator[Any]:
    with kms_of(SETTINGS) as kms:
        yield kms


def signer_of(kms: Any, *records: EncryptedKey, settings: Settings = SETTINGS) -> EnvelopeSigner:
    return EnvelopeSigner(kms, settings, {record.id: record for record in records}.get)


def altered(text: str) -> str:
    data = bytearray(base64.b64decode(text))
    data[-1] ^= 1
    return base64.b64encode(data).decode()


# --- the seed -------------------------------------------------------------------------------------------------------------


def test_a_seed_opens_to_the_same_bytes_and_is_overwritten_after(kms: Any) -> None:
    record = seed.create_seed(kms, SETTINGS, 5)
    assert (record.id, record.version, record.created_at) == ("deposit", 1, 5)
    assert record.context == {"purpose": "deposit-seed", "stage": "prod"}
    with seed.unlock_seed(kms, SETTINGS, record) as first:
        kept = bytes(first)
    with seed.unlock_seed(kms, SETTINGS, record) as second:
        assert bytes(second) == kept
    assert len(kept) == 64 and len(set(kept)) > 20
    assert first == second == bytearray(64)
    with seed.unlock_seed(kms, SETTINGS, seed.create_seed(kms, SETTINGS, 6)) as other:
        assert bytes(other) != kept


def test_a_seed_is_overwritten_when_its_user_fails(kms: Any) -> None:
    held: list[bytearray] = []
    unlocked = seed.unlock_seed(kms, SETTINGS, seed.create_seed(kms, SETTINGS, 5))

    def use() -> None:
        with unlocked as secret:
            held.append(secret)
            raise RuntimeError("user")

    with pytest.raises(RuntimeError, match="user"):
        use()
    assert held == [bytearray(64)]


def test_what_is_stored_of_a_seed_is_only_ciphertext(kms: Any) -> None:
    record = seed.create_seed(kms, SETTINGS, 5)
    with seed.unlock_seed(kms, SETTINGS, record) as secret:
        assert bytes(secret) not in base64.b64decode(record.ciphertext_b64)
        assert bytes(secret).hex() not in str(asdict(record))
    assert record.ciphertext_b64 not in repr(record)


def test_a_seed_of_another_stage_or_purpose_or_an_altered_one_does_not_open(kms: Any) -> None:
    record = seed.create_seed(kms, SETTINGS, 5)
    demo = Settings(stage="demo")
    kms.create_alias(
        AliasName=demo.key_alias("data"), TargetKeyId=kms.describe_key(KeyId=SETTINGS.key_alias("data"))["KeyMetadata"]["KeyId"]
    )
    wallet, key = import_wallet(kms, SETTINGS, ETHEREUM, "hot", KNOWN_KEY, 1)
    for settings, bad in (
        (demo, record),
        (SETTINGS, replace(record, ciphertext_b64=altered(record.ciphertext_b64))),
        (SETTINGS, replace(record, ciphertext_b64=key.data_key_b64)),
    ):
        with pytest.raises(SecretUnusable, match="deposit seed"), seed.unlock_seed(kms, settings, bad):
            pytest.fail("it opened")
    assert wallet.address == KNOWN_ADDRESS


def test_no_kms_no_seed() -> None:
    with pytest.raises(Unavailable, match="EndpointConnectionError"):
        seed.create_seed(unreachable_kms(), SETTINGS, 5)


def test_the_key_of_a_derived_address_is_found_by_its_path(kms: Any) -> None:
    """The way back, for collection and restore: xpub → address and path; seed and path → the key of that very address."""
    from eth_account import Account

    with seed.unlock_seed(kms, SETTINGS, seed.create_seed(kms, SETTINGS, 5)) as secret:
        xpubs = {(x.realm, x.pool): x.xpub for x in seed.account_xpubs(secret, 5)}
        assert len(xpubs) == 2 * len(POOLS)
        address, path = XpubDeriver(lambda realm, pool: xpubs[realm, pool]).derive("live", "arbitrum", 12)
        assert Account.from_key(seed.address_key(secret, path)).address == address


# --- envelope wallets -----------------------------------------------------------------------------------------------------


def test_an_imported_key_gives_the_published_address_and_signs(kms: Any) -> None:
    from eth_account import Account

    wallet, record = import_wallet(kms, SETTINGS, ETHEREUM, "hot", KNOWN_KEY, 9)
    assert wallet == Wallet(ETHEREUM, "hot", KNOWN_ADDRESS, "envelope", record.id, wallet.public_key, 9)
    assert record.context == {"purpose": "wallet-key", "stage": "prod", "network": ETHEREUM, "address": KNOWN_ADDRESS}
    signature = signer_of(kms, record).sign(wallet, DIGEST)
    theirs = Account.unsafe_sign_hash(DIGEST, KNOWN_KEY)
    assert (signature.r, signature.s, signature.parity + 27) == (theirs.r, theirs.s, theirs.v)


LIKE_ETHEREUM = ("bsc", "polygon", "arbitrum", "fantom")


# The sweep: wallets of the other EVM networks take the way of ethereum's, which stays.
@pytest.mark.parametrize(
    "slug", [pytest.param(slug, marks=[pytest.mark.sweep] * (slug in LIKE_ETHEREUM)) for slug in NETWORK_ORDER]
)
def test_a_generated_wallet_signs_on_every_network(kms: Any, slug: str) -> None:
    secret = new_private_key()
    wallet, record = import_wallet(kms, SETTINGS, network_id("test", slug), "collector", secret, 9)
    assert signer_of(kms, record).sign(wallet, DIGEST) == sign_with(PrivateKey.from_hex(secret), DIGEST)


@pytest.mark.parametrize(
    ("network", "wif", "address"),
    [
        # BIP-84, test vectors: the first receiving key.
        ("bitcoin", "KyZpNDKnfs94vbrwhJneDi77V6jF64PWPF8x5cdJb8ifgg2DUc9d", "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu"),
        # Litecoin Core, key_io_valid.json: the key 44b7... in WIF, compressed.
        ("litecoin", "T5MZ5z9WqJxzVxYyVPecTJUSDkzDWrUYe1JuSX2AqJ9jKmLJrvTE", None),
    ],
)
def test_wif_is_read_for_bitcoin_and_litecoin(kms: Any, network: str, wif: str, address: str | None) -> None:
    wallet, record = import_wallet(kms, SETTINGS, network_id("live", network), "hot", wif, 1)
    if address is None:
        plain, _ = import_wallet(
            kms, SETTINGS, network_id("live", network), "hot", "44b78d45adc801a65949661d5df1c4a44f532cd422be413a505d776784ddbe25", 1
        )
        address = plain.address
    assert wallet.address == address
    assert record.id == f"live:{network}:{address}"


@pytest.mark.parametrize(
    ("network", "secret"),
    [
        ("ethereum", ""),
        ("ethereum", "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff"),
        ("ethereum", "0x" + "0" * 64),
        ("ethereum", "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"),
        ("ethereum", "KyZpNDKnfs94vbrwhJneDi77V6jF64PWPF8x5cdJb8ifgg2DUc9d"),
        ("tron", "٣" * 64),
        ("litecoin", "KyZpNDKnfs94vbrwhJneDi77V6jF64PWPF8x5cdJb8ifgg2DUc9d"),
        ("bitcoin", "KyZpNDKnfs94vbrwhJneDi77V6jF64PWPF8x5cdJb8ifgg2DUc9e"),
        # Bitcoin Core, key_io_valid.json: right WIF, of a key that is used uncompressed; and one of the test network.
        ("bitcoin", "5JuW2AMDYu4xVwRG9DZW18VbzQrGcd5RCgb99sS6ehJsNQXu5b9"),
        ("bitcoin", "cV83kKisF3RQSvXbUCm9ox3kaz5JjEUBWcx8tNydfGJcyeUxuH47"),
        ("bitcoin", "K" * 10_000),
    ],
)
def test_a_bad_private_key_is_refused_and_not_repeated(kms: Any, network: str, secret: str) -> None:
    with pytest.raises(ValueError) as caught:
        import_wallet(kms, SETTINGS, network_id("live", network), "hot", secret, 1)
    assert len(str(caught.value)) < 150
    assert not secret or secret[:12] not in str(caught.value)


TAMPERING: dict[str, Callable[[EncryptedKey, EncryptedKey], EncryptedKey]] = {
    "ciphertext": lambda mine, other: replace(mine, ciphertext_b64=altered(mine.ciphertext_b64)),
    "no tag": lambda mine, other: replace(mine, ciphertext_b64=""),
    "nonce": lambda mine, other: replace(mine, nonce_b64=altered(mine.nonce_b64)),
    "data key": lambda mine, other: replace(mine, data_key_b64=altered(mine.data_key_b64)),
    "another wallet's row": lambda mine, other: replace(other, id=mine.id, context=mine.context),
    "another wallet's data key": lambda mine, other: replace(mine, data_key_b64=other.data_key_b64),
    "another wallet's ciphertext": lambda mine, other: replace(
        mine, ciphertext_b64=other.ciphertext_b64, nonce_b64=other.nonce_b64
    ),
}


@pytest.mark.parametrize("tamper", TAMPERING.values(), ids=TAMPERING.keys())
def test_a_row_that_was_changed_or_swapped_does_not_open(kms: Any, tamper: Callable[..., EncryptedKey]) -> None:
    wallet, mine = import_wallet(kms, SETTINGS, ETHEREUM, "hot", new_private_key(), 1)
    _, other = import_wallet(kms, SETTINGS, ETHEREUM, "hot", new_private_key(), 1)
    with pytest.raises(SecretUnusable, match="wallet"):
        signer_of(kms, tamper(mine, other)).sign(wallet, DIGEST)
    assert signer_of(kms, mine).sign(wallet, DIGEST).parity in (0, 1)


def test_a_key_opens_for_its_wallet_only(kms: Any) -> None:
    wallet, record = import_wallet(kms, SETTINGS, ETHEREUM, "hot", KNOWN_KEY, 1)
    for stranger in (replace(wallet, network=NetworkId("test:ethereum")), replace(wallet, address="0x" + "11" * 20)):
        with pytest.raises(SecretUnusable, match="belongs to something else"):
            signer_of(kms, record).sign(stranger, DIGEST)
    with pytest.raises(SecretUnusable, match="not the one of wallet"):
        signer_of(kms, record).sign(replace(wallet, public_key="11" * 64), DIGEST)
    with pytest.raises(SecretUnusable, match="not in the store"):
        signer_of(kms).sign(wallet, DIGEST)


def test_the_key_is_fetched_for_every_signature_and_wiped_after(kms: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wallet, record = import_wallet(kms, SETTINGS, ETHEREUM, "hot", KNOWN_KEY, 1)
    opened: list[bytearray] = []
    real = envelope._open

    def watched(*arguments: Any) -> bytearray:
        opened.append(real(*arguments))
        assert opened[-1].hex() == KNOWN_KEY[2:]
        return opened[-1]

    monkeypatch.setattr(envelope, "_open", watched)
    signer = signer_of(kms, record)
    signer.sign(wallet, DIGEST)
    signer.sign(wallet, os.urandom(32))
    assert opened == [bytearray(32), bytearray(32)]
    assert KNOWN_KEY[2:] not in str(vars(signer))


def test_an_envelope_wallet_without_kms_is_unavailable(kms: Any) -> None:
    wallet, record = import_wallet(kms, SETTINGS, ETHEREUM, "hot", KNOWN_KEY, 1)
    with pytest.raises(Unavailable, match="EndpointConnectionError"):
        signer_of(unreachable_kms(), record).sign(wallet, DIGEST)


def test_no_key_is_in_a_repr_an_error_or_a_log(kms: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    wallet, record = import_wallet(kms, SETTINGS, ETHEREUM, "hot", KNOWN_KEY, 1)
    with pytest.raises(SecretUnusable) as caught:
        signer_of(kms, replace(record, ciphertext_b64=altered(record.ciphertext_b64))).sign(wallet, DIGEST)
    secret = KNOWN_KEY[2:]
    forms = (secret, base64.b64encode(bytes.fromhex(secret)).decode(), repr(bytes.fromhex(secret)))
    shown = " ".join([repr(record), str(record), repr(wallet), str(caught.value), caplog.text, str(asdict(record))])
    assert not [form for form in forms if form in shown]
    assert {f.name for f in fields(record) if f.repr} == {"id", "context", "created_at", "version"}


# --- one signer for all ---------------------------------------------------------------------------------------------------


def test_each_wallet_is_signed_for_by_the_signer_that_has_its_key(kms: Any) -> None:
    imported, record = import_wallet(kms, SETTINGS, ETHEREUM, "hot", KNOWN_KEY, 1)
    in_kms = new_kms_wallet(kms, SETTINGS.key_alias("hot-live"), NetworkId("live:tron"), "hot", 2)
    cold = Wallet(ETHEREUM, "cold", KNOWN_ADDRESS, "none", "", "", 3)
    signer = WalletSigner(KmsSigner(kms), signer_of(kms, record))
    assert signer.sign(imported, DIGEST) == sign_with(PrivateKey.from_hex(KNOWN_KEY[2:]), DIGEST)
    assert signer.sign(in_kms, DIGEST).r > 0
    with pytest.raises(ValueError, match="can not sign"):
        signer.sign(cold, DIGEST)


def test_one_kms_key_is_a_wallet_on_every_network(kms: Any) -> None:
    wallets = [new_kms_wallet(kms, SETTINGS.key_alias("hot-live"), network_id("live", slug), "hot", 1) for slug in NETWORK_ORDER]
    assert len({wallet.public_key for wallet in wallets}) == 1
    assert len({wallet.address for wallet in wallets}) == 4
    assert all(wallet.custody == "kms" and not wallet.key.startswith("alias/") for wallet in wallets)
