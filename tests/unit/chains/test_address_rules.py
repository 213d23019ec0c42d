"""Spelling of addresses on all eight networks, against the vectors that the standards publish."""

from __future__ import annotations

import os

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chalicelib.chains.addresses import Rules, parse
from chalicelib.domain.catalogue.catalogue import NETWORK_ORDER, default_coins
from chalicelib.domain.ids import network_parts
from chalicelib.encoding import base58check, bech32

EVM = ("ethereum", "bsc", "polygon", "arbitrum", "fantom")
RULES = Rules()
EXAMPLES = 300 if os.environ.get("SWEEP") == "full" else 60

# EIP-55, test cases.
EIP55 = (
    "0x52908400098527886E0F7030069857D2E4169EE7",
    "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
    "0xde709f2102306220921060314715629080e2fb77",
    "0x27b1fdb04752bbc536007a920d24acb045561c26",
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
    "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
    "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
)

# Bitcoin Core and Litecoin Core, src/test/data/key_io_valid.json; BIP-173; BIP-350; BIP-84.
VALID = {
    "bitcoin": {
        "1FsSia9rv4NeEwvJ2GvXrX7LyxYspbN2mo": "p2pkh",
        "1FjL87pn8ky6Vbavd1ZHeChRXtoxwRGCRd": "p2pkh",
        "36j4NfKv6Akva9amjWrLG6MuSQym1GuEmm": "p2sh",
        "3BZECeAH8gSKkjrTx8PwMrNQBLG18yHpvf": "p2sh",
        "bc1qvyq0cc6rahyvsazfdje0twl7ez82ndmuac2lhv": "p2wpkh",
        "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu": "p2wpkh",
        "bc1qyucykdlhp62tezs0hagqury402qwhk589q80tqs5myh3rxq34nwqhkdhv7": "p2wsh",
        "bc1qgc9ljrvdf2e0zg9rmmq86xklqwfys7r6wptjlacdgrcdc7sa6ggqu4rrxf": "p2wsh",
        "bc1p83n3au0rjylefxq2nc2xh2y4jzz4pm6zxj4mw5pagdjjr2a9f36s6jjnnu": "p2tr",
        "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0": "p2tr",
    },
    "litecoin": {
        "LT2KVaAy1ppRuxRgrS5RNU3vBsy7RibPeA": "p2pkh",
        "LbfVMz974gbbGFqXF7FZUpSBWSbwBHDwR5": "p2pkh",
        "MHrYRxAiMNBTku3eoDHwhA1LQGDjUStZW2": "p2sh",
        "MWGEAUUZoN4r6puz8KsgnE9wNTQ8fGWCEy": "p2sh",
        "ltc1qjmxnz78nmc8nq77wuxh25n2es7rzm5c2rkk4wh": "p2wpkh",
    },
    "tron": {
        "TJCnKsPa7y5okkXvQAidZBzqx3QyQ6sxMW": "tron",
        "TT67rPNwgmpeimvHUMVzFfKsjL9GZ1wGw8": "tron",
        "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t": "tron",
    },
}
VALID_CASES = [(network, text, kind) for network, addresses in VALID.items() for text, kind in addresses.items()]

# BIP-173 and BIP-350: invalid segwit addresses, those of the test network included (its prefix is wrong here anyway).
INVALID_SEGWIT = (
    "tc1qw508d6qejxtdg4y5r3zarvary0c5xw7kg3g4ty",
    "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5",
    "BC13W508D6QEJXTDG4Y5R3ZARVARY0C5XW7KN40WF2",
    "bc1rw5uspcuh",
    "bc10w508d6qejxtdg4y5r3zarvary0c5xw7kw508d6qejxtdg4y5r3zarvary0c5xw7kw5rljs90",
    "BC1QR508D6QEJXTDG4Y5R3ZARVARYV98GJ9P",
    "tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3q0sL5k7",
    "bc1zw508d6qejxtdg4y5r3zarvaryvqyzf3du",
    "tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3pjxtptv",
    "bc1gmk9yu",
    "tc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq5zuyut",
    "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqh2y7hd",
    "tb1z0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqglt7rf",
    "BC1S0XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ54WELL",
    "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kemeawh",
    "tb1q0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq24jc47",
    "bc1p38j9r5y49hruaue7wxjce0updqjuyyx0kh56v8s25huc6995vvpql3jow4",
    "BC130XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ7ZWS8R",
    "bc1pw5dgrnzv",
    "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7v8n0nx0muaewav253zgeav",
    "tb1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq47Zagq",
    "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7v07qwwzcrf",
    "tb1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vpggkg4j",
)
# The same files, BIP-350: right as bech32, of the test network or of a witness version without rules.
ELSEWHERE = (
    "tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3q0sl5k7",
    "tb1pqqqqp399et2xygdj5xreqhjjvcmzhxw4aywxecjdzew6hylgvsesf3hn0c",
    "bcrt1qdavt4j2sd7dlhqsavtnfxvzppw6k7qy97tmnu9",
    "bc1pw508d6qejxtdg4y5r3zarvary0c5xw7kw508d6qejxtdg4y5r3zarvary0c5xw7kt5nd6y",
    "BC1SW50QGDZ25J",
    "bc1zw508d6qejxtdg4y5r3zarvaryvaxxpcs",
    "bc1z2rksukkjr8",
    "mzK2FFDEhxqHcmrJw1ysqFkVyhUULo45hZ",
    "2NC2hEhe28ULKAJkW5MjZ3jtTMJdvXmByvK",
    "QXaUgLHkZcbJb2j5XgMYzY8cF9YM48Y81Z",
)


@pytest.mark.parametrize("network", EVM)
@pytest.mark.parametrize("address", EIP55)
def test_eip55(network: str, address: str) -> None:
    for text in (address, "0x" + address[2:].lower(), "0x" + address[2:].upper()):
        assert RULES.normalize(network, text) == address
    assert RULES.address_type(network, address) == "evm"
    assert RULES.storage_form(network, address) == address.lower()


@pytest.mark.parametrize("address", EIP55[4:])
def test_any_changed_case_breaks_the_checksum(address: str) -> None:
    for place, char in enumerate(address[2:], start=2):
        swapped = address[:place] + char.swapcase() + address[place + 1 :]
        if char.isalpha():
            with pytest.raises(ValueError, match="EIP-55"):
                RULES.normalize("ethereum", swapped)


@pytest.mark.parametrize(
    "text",
    [
        "5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "0X5aaeb6053f3e94c9b9a09f33669435e7ef1beaed",
        "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beae",
        "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed0",
        "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaeg",
        " 0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed",
        "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed\n",
        "0x" + "٣" * 40,
        "0x" + "３" * 40,
        "0x0000000000000000000000000000000000000000",
        "0x",
        "vitalik.eth",
    ],
)
def test_what_is_no_evm_address(text: str) -> None:
    with pytest.raises(ValueError):
        RULES.normalize("bsc", text)


@pytest.mark.parametrize(("network", "text", "kind"), VALID_CASES, ids=[text for _, text, _ in VALID_CASES])
def test_published_addresses(network: str, text: str, kind: str) -> None:
    assert parse(network, text) == (kind, text)
    assert RULES.storage_form(network, text) == text
    for other in NETWORK_ORDER:
        # Litecoin takes the scripts of bitcoin's spelling, as its own software does.
        if other != network and not (other == "litecoin" and text.startswith("3")):
            with pytest.raises(ValueError):
                RULES.normalize(other, text)


@pytest.mark.parametrize(("network", "text", "kind"), [c for c in VALID_CASES if c[1].startswith(("bc1", "ltc1"))])
def test_bech32_in_capitals_is_the_same_address(network: str, text: str, kind: str) -> None:
    assert parse(network, text.upper()) == (kind, text)
    with pytest.raises(ValueError, match="mixes"):
        RULES.normalize(network, text[:-1] + text[-1].upper() if text[-1].isalpha() else text[:5].upper() + text[5:])


@pytest.mark.parametrize("text", [*INVALID_SEGWIT, *ELSEWHERE])
@pytest.mark.parametrize("network", ["bitcoin", "litecoin"])
def test_invalid_and_foreign_addresses(network: str, text: str) -> None:
    with pytest.raises(ValueError):
        RULES.normalize(network, text)


def test_litecoin_reads_both_spellings_of_a_script_and_writes_m() -> None:
    # The same script hash, as bitcoin writes it and as litecoin writes it since 2017 (Litecoin Core, src/key_io.cpp).
    modern = "MHrYRxAiMNBTku3eoDHwhA1LQGDjUStZW2"
    old = base58check.encode(b"\x05" + bytes.fromhex("6d328a5b2a20d943a641c8d29b6cc3c2d2df85d3"))
    assert old.startswith("3")
    assert parse("litecoin", old) == parse("litecoin", modern) == ("p2sh", modern)
    assert parse("bitcoin", old) == ("p2sh", old)
    with pytest.raises(ValueError, match="another network"):
        RULES.normalize("bitcoin", modern)


@pytest.mark.parametrize("prefix", ["ltc", "bc"])
@pytest.mark.parametrize(("version", "length", "kind"), [(0, 20, "p2wpkh"), (0, 32, "p2wsh"), (1, 32, "p2tr")])
def test_segwit_of_both_chains_as_bitcoinlib_writes_it(
    prefix: str, version: int, length: int, kind: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BCL_DATA_DIR", str(tmp_path))
    from bitcoinlib.encoding import pubkeyhash_to_addr_bech32

    for fill in range(40):
        program = bytes((fill * 7 + place) % 256 for place in range(length))
        text = pubkeyhash_to_addr_bech32(program, prefix=prefix, witver=version)
        assert parse({"ltc": "litecoin", "bc": "bitcoin"}[prefix], text) == (kind, text)
        assert bech32.encode_segwit(prefix, version, program) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ltcmweb1qq", "MWEB"),
        ("LTCMWEB1QQ", "MWEB"),
        ("ltcmweb1" + "q" * 118, "MWEB"),
        ("ltcmweb1" + "q" * 200, "at most 128"),
    ],
)
def test_litecoins_hidden_addresses_are_refused_by_name(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        RULES.normalize("litecoin", text)


@pytest.mark.parametrize(
    "text",
    [
        "TJCnKsPa7y5okkXvQAidZBzqx3QyQ6sxMX",
        "TJCnKsPa7y5okkXvQAidZBzqx3QyQ6sxM",
        "415a523b449890854c8fc460ab602df9f31fe4293f",
        "tJCnKsPa7y5okkXvQAidZBzqx3QyQ6sxMW",
        "TJCnKsPa7y5okkXvQAidZBzqx3QyQ6sxMW ",
        "TJCnKsPa7y5okkXvQAidZBzqx3QyQ6sxM0",
        # 0x41 and twenty zeros: TRON's black hole.
        "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb",
    ],
)
def test_what_is_no_tron_address(text: str) -> None:
    with pytest.raises(ValueError):
        RULES.normalize("tron", text)


def test_the_catalogues_contracts_are_spelled_right() -> None:
    for realm in ("live", "test"):
        for coin in default_coins(realm):  # type: ignore[arg-type]
            if coin.contract is not None:
                assert RULES.normalize(network_parts(coin.network)[1], coin.contract) == coin.contract


def test_a_network_may_be_named_with_its_realm_and_an_unknown_one_is_no_bad_address() -> None:
    assert RULES.normalize("test:ethereum", EIP55[4].lower()) == EIP55[4]
    assert RULES.storage_form("live:bsc", EIP55[4]) == EIP55[4].lower()
    with pytest.raises(LookupError, match="known: ethereum, bsc"):
        RULES.normalize("solana", EIP55[4])


HOSTILE = (
    "",
    "\0",
    "0x\0" + "0" * 39,
    "1" * 10_000,
    "z" * 10_000,
    "bc1" + "q" * 10_000,
    "0x" + "f" * 10_000,
    "T" + "1" * 33,
    "1" * 34,
    "1" * 128,
    "T" + "ß" * 33,
    "bc1q" + "𝟘" * 38,
    "٣" * 34,
    "\ud800" * 34,
    "bc1" + "İ" * 39,
    "ltc1\u212a" + "q" * 38,
    "1" * 120,
    "bc1",
    "1bc1",
    "' OR 1=1 --",
    "{{7*7}}",
)


def test_hostile_input_is_refused_cleanly() -> None:
    """Some of it is long enough to keep a pattern that goes back and forth busy for longer than any test may take."""
    for network in NETWORK_ORDER:
        for text in HOSTILE:
            with pytest.raises(ValueError) as caught:
                RULES.normalize(network, text)
            assert len(str(caught.value)) < 200


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.sampled_from(NETWORK_ORDER), st.text(max_size=70) | st.from_regex(r"\A(bc1|ltc1|0x|T|1|3|L|M)[0-9a-zA-Z]{20,60}\Z"))
@example("bitcoin", "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu")
@example("tron", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t")
def test_a_normalized_address_stays_as_it_is(network: str, text: str) -> None:
    try:
        found = parse(network, text)
    except ValueError:
        return
    assert parse(network, found.text) == found


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.sampled_from(VALID_CASES), st.data())
def test_one_wrong_character_is_always_seen(case: tuple[str, str, str], data: st.DataObject) -> None:
    network, text, _ = case
    place = data.draw(st.integers(0, len(text) - 1))
    char = data.draw(st.sampled_from("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz0l"))
    wrong = text[:place] + char + text[place + 1 :]
    if wrong != text:
        with pytest.raises(ValueError):
            RULES.normalize(network, wrong)
