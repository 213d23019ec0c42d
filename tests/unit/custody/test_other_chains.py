"""Deployments on a testnet or regtest: addresses, private keys and derivation are spelled for it, the sandbox's for main."""

from __future__ import annotations

from typing import Any

import pytest
from coincurve import PrivateKey

from chalicelib.chains.addresses import Rules, parse
from chalicelib.custody.bip32 import ExtendedPrivateKey
from chalicelib.custody.derive import XpubDeriver, account_path
from chalicelib.custody.wallets import import_wallet, new_kms_wallet
from chalicelib.domain.ids import NetworkId
from chalicelib.encoding.public_keys import Chain, address_of
from chalicelib.settings import Settings
from tests.support.custody import kms_of

KEY_OF_ONE = PrivateKey.from_int(1)
POINT_OF_ONE = KEY_OF_ONE.public_key.format(compressed=False)[1:]
CHAINS: dict[str, Chain] = {"live:bitcoin": "regtest", "live:litecoin": "testnet"}

# BIP-173 (the public key of 1); Bitcoin Core, src/test/data/key_io_valid.json.
KNOWN: list[tuple[str, Chain, str, str]] = [
    ("bitcoin", "testnet", "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx", "p2wpkh"),
    ("bitcoin", "testnet", "mo9ncXisMeAoXwqcV5EWuyncbmCcQN4rVs", "p2pkh"),
    ("bitcoin", "testnet", "2N2JD6wb56AfK4tfmM6PwdVmoYk2dCKf4Br", "p2sh"),
    ("bitcoin", "regtest", "mo9ncXisMeAoXwqcV5EWuyncbmCcQN4rVs", "p2pkh"),
    ("bitcoin", "regtest", "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080", "p2wpkh"),
    ("litecoin", "regtest", "rltc1qw508d6qejxtdg4y5r3zarvary0c5xw7k693xs3", "p2wpkh"),
]


@pytest.mark.parametrize(("network", "chain", "address", "kind"), KNOWN)
def test_an_address_belongs_to_its_chain_alone(network: str, chain: Chain, address: str, kind: str) -> None:
    assert parse(network, address, chain) == (kind, address)
    rules = Rules({f"live:{network}": chain})
    assert rules.normalize(f"live:{network}", address) == address
    assert rules.address_type(f"live:{network}", address) == kind
    for elsewhere in (network, f"test:{network}", "live:ethereum"):
        with pytest.raises(ValueError):
            rules.normalize(elsewhere, address)


def test_an_address_of_main_is_none_elsewhere_and_the_refusal_says_where_we_are() -> None:
    with pytest.raises(ValueError, match=r"bitcoin \(regtest\), whose addresses start with bcrt1"):
        parse("bitcoin", "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "regtest")
    with pytest.raises(ValueError, match=r"litecoin \(testnet\)"):
        parse("litecoin", "LT2KVaAy1ppRuxRgrS5RNU3vBsy7RibPeA", "testnet")


def test_the_litecoin_scripts_two_spellings_are_one_there_too() -> None:
    # One script hash under the old version byte (0xC4) and the new one (0x3A).
    assert parse("litecoin", "2N2JD6wb56AfK4tfmM6PwdVmoYk2dCKf4Br", "regtest").text[0] == "Q"


@pytest.mark.parametrize("chain", ["main", "testnet", "regtest"])
@pytest.mark.parametrize("network", ["bitcoin", "litecoin"])
def test_a_public_key_is_spelled_for_its_chain(network: str, chain: Chain) -> None:
    address = address_of(network, POINT_OF_ONE, chain)
    assert parse(network, address, chain).type == "p2wpkh"
    assert address in {known for *_, known, _ in KNOWN} | {
        "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
        "ltc1qw508d6qejxtdg4y5r3zarvary0c5xw7kgmn4n9",
        "tltc1qw508d6qejxtdg4y5r3zarvary0c5xw7klfsuq0",
    }


def test_derived_addresses_differ_in_their_spelling_only() -> None:
    master = ExtendedPrivateKey.master(bytes(64))

    def xpub_of(realm: Any, pool: str) -> str:
        return master.derive(account_path(realm, pool)).xpub()

    main, other = XpubDeriver(xpub_of), XpubDeriver(xpub_of, CHAINS)
    for realm, network, prefix in (("live", "bitcoin", "bcrt1"), ("live", "litecoin", "tltc1"), ("test", "bitcoin", "bc1")):
        address, path = other.derive(realm, network, 5)  # type: ignore[arg-type]
        assert address.startswith(prefix)
        assert path == main.derive(realm, network, 5)[1]  # type: ignore[arg-type]
    assert main.derive("live", "tron", 5) == other.derive("live", "tron", 5)


def test_wallets_are_spelled_for_the_chain_and_read_its_private_keys() -> None:
    settings = Settings(stage="prod", chains=CHAINS)
    with kms_of(settings) as kms:
        bitcoin, sandbox = NetworkId("live:bitcoin"), NetworkId("test:bitcoin")
        in_kms = new_kms_wallet(kms, settings.key_alias("hot-live"), bitcoin, "hot", 1, settings.chain(bitcoin))
        assert in_kms.address.startswith("bcrt1")
        # The key of 1 in wallet import format, compressed: of the test networks, and of main.
        theirs, ours = (
            "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA",
            "KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn",
        )
        assert import_wallet(kms, settings, bitcoin, "hot", theirs, 1)[0].address == KNOWN[4][2]
        assert import_wallet(kms, settings, sandbox, "hot", ours, 1)[0].address.startswith("bc1")
        for network, secret in ((bitcoin, ours), (sandbox, theirs)):
            with pytest.raises(ValueError, match="not a compressed one of bitcoin"):
                import_wallet(kms, settings, network, "hot", secret, 1)


def test_the_setting_names_networks_and_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIVE_CHAINS", "bitcoin=testnet, litecoin=regtest")
    settings = Settings.from_environment()
    assert settings.chain("live:bitcoin") == "testnet"
    assert settings.chain("live:litecoin") == "regtest"
    assert settings.chain("test:bitcoin") == "main"


@pytest.mark.parametrize("text", ["bitcoin=signet", "ethereum=testnet", "bitcoin", "=regtest"])
def test_a_mistyped_setting_stops_the_start(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("LIVE_CHAINS", text)
    with pytest.raises(ValueError, match="LIVE_CHAINS"):
        Settings.from_environment()
