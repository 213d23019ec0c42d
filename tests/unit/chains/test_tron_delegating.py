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
from tests.support.tron_published import LOCKED, PUBLISHED

OWNER, RECEIVER = "TUoHaVjx7n5xz8LwPRDckgFrDWhMhuSuJM", "TZ4UXDV5ZhNW7fb2AMSbgfAEZ7hWsnYS2g"
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
