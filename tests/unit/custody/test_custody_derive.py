"""Deposit addresses: published ones, and a second implementation for a thousand random ones."""

from __future__ import annotations

import hashlib
import random
import subprocess
import sys
from typing import Any

import pytest

from chalicelib.custody.bip32 import ExtendedPrivateKey, ExtendedPublicKey, InvalidChild
from chalicelib.custody.derive import POOLS, XpubDeriver, account_path, pool_of
from chalicelib.custody.seed import account_xpubs, address_key
from chalicelib.domain.catalogue.catalogue import NETWORK_ORDER
from chalicelib.encoding.public_keys import address_of

MNEMONIC = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"
# BIP-39: the seed of these words without a passphrase.
SEED = hashlib.pbkdf2_hmac("sha512", MNEMONIC.encode(), b"mnemonic", 2048)
NETWORK_OF = {"evm": "polygon", "bitcoin": "bitcoin", "litecoin": "litecoin", "tron": "tron"}


def deriver(seed: bytes) -> XpubDeriver:
    xpubs = {(x.realm, x.pool): x.xpub for x in account_xpubs(seed, 0)}
    return XpubDeriver(lambda realm, pool: xpubs.get((realm, pool)))


@pytest.mark.parametrize(
    ("network", "index", "address"),
    [
        # BIP-84, test vectors.
        ("bitcoin", 0, "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu"),
        ("bitcoin", 1, "bc1qnjg0jd8228aq7egyzacy8cys3knf9xvrerkf9g"),
        # What wallets show for these words: the first account of Ethereum, Litecoin, Tron.
        ("ethereum", 0, "0x9858EfFD232B4033E47d90003D41EC34EcaEda94"),
        ("litecoin", 0, "ltc1qjmxnz78nmc8nq77wuxh25n2es7rzm5c2rkk4wh"),
        ("tron", 0, "TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH"),
    ],
)
def test_published_addresses(network: str, index: int, address: str) -> None:
    found, path = deriver(SEED).derive("live", network, index)
    assert found == address
    assert path == f"{account_path('live', pool_of(network))}/0/{index}"


def second_opinion(pool: str, seed: bytes, path: str) -> str:
    """The address at `path` by libraries that share nothing with ours: bitcoinlib, eth_account, tronpy."""
    from bitcoinlib.keys import HDKey
    from eth_account import Account
    from eth_account.hdaccount.deterministic import HDPath
    from tronpy.keys import PrivateKey

    if pool in ("bitcoin", "litecoin"):
        return str(HDKey.from_seed(seed, network=pool, witness_type="segwit").subkey_for_path(path).address())
    key = HDPath(path).derive(seed)
    if pool == "evm":
        return str(Account.from_key(key).address)
    return str(PrivateKey(key).public_key.to_base58check_address())


def test_a_thousand_random_addresses_agree(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the xpub, from the private key, and (every tenth, because it is slow) by another library."""
    monkeypatch.setenv("BCL_DATA_DIR", str(tmp_path))
    source = random.Random(84)
    checked = 0
    for _ in range(5):
        seed = source.randbytes(64)
        ours = deriver(seed)
        for pool in POOLS:
            for turn in range(50):
                index, realm = source.randrange(2**31), source.choice(("live", "test"))
                address, path = ours.derive(realm, NETWORK_OF[pool], index)  # type: ignore[arg-type]
                secret = address_key(seed, path)
                point = ExtendedPrivateKey.master(seed).derive(path).key.public_key.format(compressed=False)[1:]
                assert address == address_of(NETWORK_OF[pool], point)
                assert len(secret) == 32
                if turn % 10 == 0:
                    assert address == second_opinion(pool, seed, path), f"{pool} {path} of seed {seed.hex()}"
                checked += 1
    assert checked == 1000


def test_every_network_has_a_pool_and_evm_networks_share_one() -> None:
    assert {network: pool_of(network) for network in NETWORK_ORDER} == {
        "bitcoin": "bitcoin",
        "litecoin": "litecoin",
        "tron": "tron",
        "ethereum": "evm",
        "bsc": "evm",
        "polygon": "evm",
        "arbitrum": "evm",
        "fantom": "evm",
    }
    assert pool_of("test:arbitrum") == "evm"
    with pytest.raises(LookupError, match="known: ethereum"):
        pool_of("dogecoin")


def test_accounts_follow_bip44_and_bip84_and_realms_never_share_one() -> None:
    assert [account_path("live", pool) for pool in POOLS] == ["m/44'/60'/0'", "m/84'/0'/0'", "m/84'/2'/0'", "m/44'/195'/0'"]
    assert [account_path("test", pool) for pool in POOLS] == ["m/44'/60'/1'", "m/84'/0'/1'", "m/84'/2'/1'", "m/44'/195'/1'"]
    xpubs = account_xpubs(SEED, 7)
    assert len({x.xpub for x in xpubs}) == len({(x.realm, x.pool) for x in xpubs}) == 8
    assert all(x.xpub.startswith("xpub") and x.created_at == 7 and x.version == 1 for x in xpubs)


def test_a_realm_without_an_xpub_says_so() -> None:
    with pytest.raises(LookupError, match="test has no xpub for evm"):
        XpubDeriver(lambda realm, pool: None).derive("test", "bsc", 0)


def test_an_xpub_is_looked_up_once_and_a_missing_one_again() -> None:
    asked: list[tuple[str, str]] = []
    stored: dict[tuple[str, str], str] = {}

    def xpub_of(realm: str, pool: str) -> str | None:
        asked.append((realm, pool))
        return stored.get((realm, pool))

    ours = XpubDeriver(xpub_of)
    with pytest.raises(LookupError):
        ours.derive("live", "ethereum", 0)
    stored.update({(x.realm, x.pool): x.xpub for x in account_xpubs(SEED, 0)})
    assert ours.derive("live", "ethereum", 3)[0] == ours.derive("live", "fantom", 3)[0]
    assert asked == [("live", "evm"), ("live", "evm")]


@pytest.mark.parametrize("path", ["m", "m/44'/60'", "m/44'/60'/1'", "m/44'/60'/0", "m/44'/60'/0'/0"])
def test_an_xpub_of_another_account_is_refused(path: str) -> None:
    xpub = ExtendedPrivateKey.master(SEED).derive(path).xpub()
    with pytest.raises(ValueError, match="not the one of m/44'/60'/0'"):
        XpubDeriver(lambda realm, pool: xpub).derive("live", "ethereum", 0)


@pytest.mark.parametrize("index", [-1, 2**31, 2**40])
def test_indexes_out_of_range_are_refused(index: int) -> None:
    with pytest.raises(ValueError, match="index"):
        deriver(SEED).derive("live", "tron", index)


def test_an_index_that_bip32_leaves_out_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = deriver(SEED)
    ours.derive("live", "ethereum", 0)
    # No such index is known: the hash is made to give a number above the curve's order.
    monkeypatch.setattr("hmac.digest", lambda *_: bytes.fromhex("ff" * 64))
    with pytest.raises(InvalidChild, match="no address of index 1"):
        ours.derive("live", "ethereum", 1)


def test_the_branch_is_the_receiving_one() -> None:
    account = ExtendedPublicKey.parse({x.pool: x.xpub for x in account_xpubs(SEED, 0)}["bitcoin"])
    ours = XpubDeriver(lambda realm, pool: account.xpub())
    point = account.child(0).child(9).key.format(compressed=False)[1:]
    assert ours.derive("test", "bitcoin", 9)[0] == address_of("bitcoin", point)


def run(code: str) -> Any:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()


def test_importing_loads_no_heavy_library_and_deriving_only_the_light_ones() -> None:
    code = f"""
import sys
from chalicelib.custody.derive import XpubDeriver
from chalicelib.chains.addresses import Rules
heavy = {{"web3", "eth_account", "tronpy", "bitcoinlib", "eth_utils", "cryptography", "boto3", "botocore"}}
print(len((heavy | {{"coincurve", "Crypto"}}) & set(sys.modules)))
XpubDeriver(lambda realm, pool: {account_xpubs(SEED, 0)[0].xpub!r}).derive("live", "ethereum", 0)
print(len(heavy & set(sys.modules)), "coincurve" in sys.modules)
"""
    assert run(code) == ["0", "0", "True"]
