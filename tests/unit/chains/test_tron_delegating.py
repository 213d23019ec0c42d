"""Loans of Tron's energy: published transactions to the byte by two encoders, and what is never signed as one."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import pytest

from chalicelib.chains.tron import protobuf
from chalicelib.chains.tron.delegating import TronDelegating
from chalicelib.chains.tron.fees import most_cost, size_of
from chalicelib.chains.tron.payer import TronPayer
from chalicelib.chains.tron.staking import TronStaking
from chalicelib.chains.tron.transactions import Reference, Unsigned, decode, disassemble
from chalicelib.domain.catalogue.catalogue import default_networks
from chalicelib.domain.treasury.energy_loans import PATIENCE_MS, Lendable, way
from chalicelib.usecases.ports.delegating import ExplainedDelegation
from infra.local.tron.messages import CODEC, Signed
from infra.local.tron.signatures import signer
from tests.support.tron_chain import TronKey

OWNER, RECEIVER = "TUoHaVjx7n5xz8LwPRDckgFrDWhMhuSuJM", "TZ4UXDV5ZhNW7fb2AMSbgfAEZ7hWsnYS2g"
# tronprotocol/wallet-cli, README, "DelegateResource" and "UndelegateResource": signed and sent to the Nile network, with their ids.
PUBLISHED = [
    (
        "delegation",
        "0917002d0068dde7ad4ffe46e75303d11192e17bfa78934a5f867c5ae20720ec",
        "0a8f010a02020c220854e32e95d11894f84093e9dcfde5305a710839126d0a35747970652e676f6f676c65617069732e636f6d2f70726f746f636f6c2e"
        "44656c65676174655265736f75726365436f6e747261637412340a1541ce8a0cf0c16d48bcf22825f6053248df653c89ca100118c0843d221541fd49ed"
        "a0f23ff7ec1d03b52c3a45991c24cd440e70a5bbb6f3e5301241414de060e9c104bb45d745e22b7b7a30b4a89a2635c62aab152fff5d2f10b7443023a9"
        "aa487be86652b74974ff6a7d82d3dbf94cea9ac1e0a7e48e682175e3f601",
    ),
    (
        "undelegation",
        "537a3f4461ab55c705b77503bc42f469bfc22c0cb8588b8f3641ab40117ebfd8",
        "0a91010a020251220868ac15256c213e7140febde9fde5305a73083a126f0a37747970652e676f6f676c65617069732e636f6d2f70726f746f636f6c2e"
        "556e44656c65676174655265736f75726365436f6e747261637412340a1541ce8a0cf0c16d48bcf22825f6053248df653c89ca100118c0843d221541fd"
        "49eda0f23ff7ec1d03b52c3a45991c24cd440e709990c3f3e530124102ebde16d1abaccd976f8ead4b5acf92b05f7d9796c28ca6a26b4e51442e638e5e"
        "33e598bb03732da24dc761a39b9d307c045b55323128dc9b07510ffc48933a01",
    ),
]
# The same README, "DelegateResource" with a lock; Nile. It is what we never sign.
LOCKED = (
    "0a020000220819b59068c6058ff440daf691b4d1305a720839126e0a35747970652e676f6f676c65617069732e636f6d2f70726f746f636f6c2e44656c6567"
    "6174655265736f75726365436f6e747261637412350a154159e3741a68ec3e1ebba80ad809d5ccd31674236e1880ade2042215419a9afe56e155ef0ff3f680"
    "d00ecf19deff60bdca280170d0c8eba9d130"
)
NETWORK = next(network for network in default_networks("live") if network.slug == "tron")


class NoNode:
    """None of this asks a node."""

    def call(self, method: str, params: object = ()) -> object:
        raise AssertionError(method)

    batch = call


LENDER = TronDelegating(NETWORK, NoNode(), None)  # type: ignore[arg-type]


@pytest.mark.parametrize(("direction", "txid", "raw"), PUBLISHED)
def test_published_ones_to_the_byte(direction: str, txid: str, raw: str) -> None:
    ours, signature = disassemble(raw)
    unsigned = ours.encode().hex()
    fee = most_cost(size_of(bytes.fromhex(unsigned)), 0, makes_account=False)
    assert LENDER.explain(unsigned) == ExplainedDelegation(direction, OWNER, RECEIVER, 1_000_000, "ENERGY", txid, fee)  # type: ignore[arg-type]
    assert LENDER.digest(unsigned).hex() == txid
    # The strict node's own encoder gives the same bytes, and its own recovery the same signer.
    told = CODEC.decode("Transaction", bytes.fromhex(raw))
    theirs = Signed(told["raw_data"], tuple(told["signature"]))
    assert (theirs.raw_bytes.hex(), theirs.txid.hex()) == (unsigned, txid)
    assert theirs.contract["parameter"]["value"]["resource"] == "ENERGY"
    assert signer(theirs.txid, signature) == told["raw_data"]["contract"][0]["parameter"]["value"]["owner_address"]


def test_a_locked_one_is_never_signed() -> None:
    """Locked, the stake could not come back."""
    raw = bytes.fromhex(LOCKED)
    assert sha256(raw).hexdigest() == "363ac0b82b6ad3e0d3cad90f7d72b3eceafe36585432a3e013389db36152b6ed"
    assert CODEC.decode("raw", raw)["contract"][0]["parameter"]["value"]["lock"] is True
    for ask in (LENDER.explain, LENDER.digest):
        with pytest.raises(ValueError, match="field 5 has no place"):
            ask(LOCKED)


REFERENCE = Reference(b"\1\2", bytes(range(8)), 1_700_000_600_000, 1_700_000_000_000)
LOAN = Unsigned("DelegateResourceContract", OWNER, 5_000_000, REFERENCE, RECEIVER, resource="BANDWIDTH")


def test_only_loans_are_signed_as_loans_and_loans_only_as_such() -> None:
    key = TronKey()
    loan = replace(LOAN, owner=key.address)
    unsigned = loan.encode().hex()
    signed = LENDER.assemble(unsigned, key.sign(LENDER.digest(unsigned)))
    assert signed.txid == loan.txid
    with pytest.raises(ValueError, match="not by the key"):
        LENDER.assemble(unsigned, TronKey().sign(LENDER.digest(unsigned)))
    for other in (
        Unsigned("TransferContract", OWNER, 5, REFERENCE, RECEIVER),
        Unsigned("FreezeBalanceV2Contract", OWNER, 5, REFERENCE, resource="ENERGY"),
        replace(LOAN, recipient=OWNER),
    ):
        with pytest.raises(ValueError, match=r"no delegation|lends nothing"):
            LENDER.digest(other.encode().hex())
    for signs in (TronPayer(NETWORK, NoNode(), None), TronStaking(NETWORK, NoNode(), None)):  # type: ignore[arg-type]
        for ask in (signs.explain, signs.digest):
            with pytest.raises(ValueError, match=r"no payment|no stake"):
                ask(unsigned)


@pytest.mark.parametrize("at", range(0, 190, 3))
def test_any_altered_byte_is_another_order_or_none(at: int) -> None:
    raw = bytearray(replace(LOAN, resource="ENERGY").encode())
    if at >= len(raw):
        return
    raw[at] ^= 1
    try:
        found = LENDER.explain(bytes(raw).hex())
    except ValueError:
        return
    assert found.txid == sha256(raw).hexdigest()
    assert found != LENDER.explain(replace(LOAN, resource="ENERGY").encode().hex())


def test_other_spellings_are_refused() -> None:
    raw = LOAN.encode()
    assert decode(raw) == LOAN
    for more in (protobuf.message((10, b"memo")), protobuf.message((18, 5)), protobuf.message((12, b"x"))):
        with pytest.raises(ValueError, match=r"field|fee limit|canonical"):
            LENDER.explain((raw + more).hex())
    with pytest.raises(ValueError, match="moves nothing"):
        LENDER.explain(replace(LOAN, amount=0).encode().hex())


def test_how_much_stake_gives_how_much() -> None:
    there = Lendable(stake=8_000_000_000, per_unit=180_000_000_000, of=19_500_000_000 * 10**6, active=True)
    stake = there.for_(65_000)
    assert stake % 10**6 == 0
    gives = stake // 10**6 * 180_000_000_000 // 19_500_000_000
    assert gives >= 65_000 > (stake // 10**6 - 1) * 180_000_000_000 // 19_500_000_000
    assert there.covers(65_000)
    assert not there.covers(74_000)
    assert there.for_(1) == 10**6  # the least that the chain lends


@pytest.mark.parametrize(
    ("free", "whole", "active", "energy", "waited", "expected"),
    [
        (8_000, 8_000, True, 65_000, 0, "lend"),
        (5_000, 8_000, True, 65_000, 0, "wait"),  # a day later it is there, for nothing
        (5_000, 8_000, True, 65_000, PATIENCE_MS, "burn"),
        (5_000, 5_000, True, 65_000, 0, "burn"),  # it never suffices
        (8_000, 8_000, False, 65_000, 0, "activate"),  # making the account is paid whichever way its coins come
        (8_000, 8_000, True, 5_000, 0, "burn"),  # 0.5 TRX: lending and taking back cost more
        (8_000, 8_000, True, 0, 0, "burn"),  # it has what it needs
    ],
)
def test_coins_are_burnt_only_where_that_is_cheaper(
    free: int, whole: int, active: bool, energy: int, waited: int, expected: str
) -> None:
    there = Lendable(free * 10**6, 180_000_000_000, 19_500_000_000 * 10**6, active, whole * 10**6, price=100, byte=1_000)
    assert way(there, energy, waited) == expected
