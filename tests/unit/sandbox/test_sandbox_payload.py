"""The simulated networks' payments as bytes: strict, canonical, bound to the key of their sender."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from coincurve import PrivateKey
from eth_account import Account
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.chains.sandbox.payload import HALF_ORDER, SignedPayment, Unsigned, digest_of, fee_of, recover, txid_of
from chalicelib.domain.catalogue.catalogue import default_networks
from chalicelib.encoding.public_keys import evm_address
from chalicelib.usecases.ports.signing import Signature

NETWORKS = {network.slug: network for network in default_networks("test")}
# Chain id 1, which JSON's true would pass for.
ETHEREUM, BITCOIN = replace(NETWORKS["ethereum"], chain_id=1), NETWORKS["bitcoin"]
KEY = PrivateKey.from_int(0xC0FFEE)
ORDER = 2 * HALF_ORDER + 1


def payment(**changes: object) -> Unsigned:
    fields: dict[str, object] = {
        "amount": 10**18, "chain_id": 1, "contract": None, "fee": 420_000_000_000_000, "network": "test:ethereum", "nonce": 3,
        "recipient": "0x" + "22" * 20, "sender": "0x" + "11" * 20,
    }  # fmt: skip
    return Unsigned(**{**fields, **changes})  # type: ignore[arg-type]


def signature(unsigned: str) -> Signature:
    made = KEY.sign_recoverable(digest_of(unsigned), hasher=None)
    return Signature(int.from_bytes(made[:32], "big"), int.from_bytes(made[32:64], "big"), made[64])


def hexed(doc: object) -> str:
    return json.dumps(doc, sort_keys=True, separators=(",", ":")).encode().hex()


def test_the_digest_is_sha256_twice() -> None:
    # Bitcoin wiki, "Protocol documentation", Hashes: the double SHA-256 of "hello".
    assert digest_of(b"hello".hex()).hex() == "9595c9df90075148eb06860365df33584b75bff782a510c6cd4883a419833d50"


@given(st.integers(0, 10**38), st.integers(0, 10**9), st.sampled_from([None, "0x" + "ab" * 20]))
def test_what_is_encoded_is_decoded(amount: int, nonce: int, contract: str | None) -> None:
    does = payment(amount=amount, nonce=nonce, contract=contract)
    assert Unsigned.decode(does.encode(), ETHEREUM) == does


@pytest.mark.parametrize(
    "changes",
    [
        {"chain_id": 56},
        {"chain_id": True},
        {"chain_id": None},
        {"network": "test:bsc"},
        {"network": "live:ethereum"},
        {"amount": -1},
        {"amount": True},
        {"amount": "1"},
        {"amount": 1.0},
        {"nonce": None},
        {"fee": -5},
        {"recipient": ""},
        {"sender": 5},
        {"contract": ""},
        {"contract": ["0x"]},
    ],
)
def test_anything_but_a_payment_of_this_network_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        Unsigned.decode(payment(**changes).encode(), ETHEREUM)


def test_bytes_with_more_fewer_or_differently_written_fields_are_refused() -> None:
    good = json.loads(bytes.fromhex(payment().encode()))
    assert Unsigned.decode(hexed(good), ETHEREUM) == payment()
    bad = [
        hexed({**good, "data": "0x095ea7b3"}),
        hexed({name: value for name, value in good.items() if name != "fee"}),
        json.dumps(good).encode().hex(),
        hexed([good]),
        payment().encode() + "20",
        payment().encode().upper(),
        "zz",
        "",
        b"not json".hex(),
        "00" * 5_000,
    ]
    for text in bad:
        with pytest.raises(ValueError):
            Unsigned.decode(text, ETHEREUM)


def test_the_signer_is_the_one_that_another_implementation_finds() -> None:
    unsigned = payment().encode()
    signed = SignedPayment(unsigned, signature(unsigned))
    assert evm_address(recover(signed)) == Account.from_key(KEY.secret).address
    s = signed.signature
    assert Account._recover_hash(digest_of(unsigned), vrs=(27 + s.parity, s.r, s.s)) == Account.from_key(KEY.secret).address


def test_a_high_s_or_an_impossible_r_is_refused() -> None:
    unsigned = payment().encode()
    s = signature(unsigned)
    for wrong in (
        Signature(s.r, ORDER - s.s, 1 - s.parity),
        Signature(s.r, 0, 0),
        Signature(0, s.s, 0),
        Signature(2**256 - 1, s.s, 0),
    ):
        with pytest.raises(ValueError):
            recover(SignedPayment(unsigned, wrong))


def test_signed_bytes_are_strict_too() -> None:
    unsigned = payment().encode()
    signed = SignedPayment(unsigned, signature(unsigned))
    raw = signed.encode()
    assert SignedPayment.decode(raw) == signed
    doc = json.loads(bytes.fromhex(raw))
    for changes in (
        {"y": 2},
        {"y": True},
        {"r": doc["r"].upper()},
        {"r": "0x" + doc["r"][2:]},
        {"s": "1"},
        {"unsigned": 5},
        {"extra": 1},
    ):
        with pytest.raises(ValueError):
            SignedPayment.decode(hexed({**doc, **changes}))


def test_only_evm_ids_change_with_the_signature() -> None:
    unsigned = payment().encode()
    s = signature(unsigned)
    two = [SignedPayment(unsigned, s), SignedPayment(unsigned, Signature(s.r + 1, s.s, s.parity))]
    assert len({txid_of("evm", signed) for signed in two}) == 2
    assert {txid_of("utxo", signed) for signed in two} == {digest_of(unsigned).hex()}
    assert {txid_of("tron", signed) for signed in two} == {digest_of(unsigned).hex()}


@pytest.mark.parametrize("family", ["evm", "utxo", "tron"])
def test_fees_rise_with_priority_by_the_published_multipliers(family: str) -> None:
    for token in (False, True):
        normal = fee_of(family, token, "normal")  # type: ignore[arg-type]
        fees = [fee_of(family, token, p) for p in ("low", "normal", "high", "urgent")]  # type: ignore[arg-type]
        assert [fee * 10 for fee in fees] == [normal * 8, normal * 10, normal * 15, normal * 20]


def test_networks_without_a_chain_id_work() -> None:
    does = payment(network="test:bitcoin", chain_id=None, sender="bc1q", recipient="bc1p")
    assert Unsigned.decode(does.encode(), BITCOIN) == does
