"""The second reader of EVM networks: the same as ours for every order, and each field that differs is caught by it alone."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from coincurve import PrivateKey
from eth_account import Account

from chalicelib.chains.abi import transfer_call
from chalicelib.chains.evm.payer import EvmPayer
from chalicelib.chains.evm.second_reader import EvmSecondReader
from chalicelib.chains.evm.transactions import Unsigned, assemble, terms
from chalicelib.chains.rpc import JsonRpc
from chalicelib.custody.signatures import sign_with
from chalicelib.domain.catalogue.catalogue import Network, default_networks
from chalicelib.encoding.keccak import keccak256
from chalicelib.encoding.public_keys import evm_address
from chalicelib.settings import Settings
from chalicelib.usecases.ports.second_reader import Order
from chalicelib.usecases.ports.signing import Signed
from chalicelib.usecases.transactions.errors import ReadersDiffer
from chalicelib.usecases.transactions.two_readers import sign_read_twice
from chalicelib.wiring.second_readers import SecondReaders

ORDERS = 2_000 if os.environ.get("SWEEP") == "full" else 50
NETWORKS = {network.slug: network for network in default_networks("live") if network.family == "evm"}
ETHEREUM = NETWORKS["ethereum"]
KEY, STRANGER = PrivateKey(b"\x46" * 32), PrivateKey(b"\x47" * 32)
RECIPIENT, TOKEN = "0x" + "35" * 20, "0x" + "70" * 20


def address_of(key: PrivateKey) -> str:
    return evm_address(key.public_key.format(compressed=False)[1:])


def second(network: Network = ETHEREUM) -> EvmSecondReader:
    assert network.chain_id is not None
    return EvmSecondReader(network.chain_id, terms)


def bytes_of(order: Order, gas: int, max_fee: int, tip: int | None, chain_id: int | None = 1) -> Unsigned:
    """What our own code builds."""
    token = order.contract is not None
    to = bytes.fromhex((order.contract or order.recipient)[2:])
    call = transfer_call(order.recipient, order.amount) if token else b""
    return Unsigned(chain_id or 0, order.nonce or 0, gas, max_fee, tip, to, 0 if token else order.amount, call)


def ordered(token: bool, tip: int | None = 10**9) -> tuple[Order, Unsigned]:
    """One order, and the bytes that are right for it."""
    contract = TOKEN if token else None
    order = Order("payment", address_of(KEY), RECIPIENT, contract, 5 * 10**6, 3, 60_000 * 30 * 10**9, "")
    unsigned = bytes_of(order, 60_000, 30 * 10**9, tip)
    return replace(order, unsigned="0x" + unsigned.payload().hex()), unsigned


def made(unsigned: Unsigned, key: PrivateKey = KEY) -> Signed:
    return assemble(unsigned, sign_with(key, keccak256(unsigned.payload())))


def random_order(source: random.Random) -> tuple[Network, Order, PrivateKey]:
    network, key = source.choice(list(NETWORKS.values())), PrivateKey(source.randbytes(32))
    spelled = source.choice((str, str.lower, evm_spelling))
    contract = "0x" + source.randbytes(20).hex() if source.random() < 0.5 else None
    order = Order(
        "payment",
        spelled(address_of(key)),
        spelled("0x" + source.randbytes(20).hex()),
        contract and spelled(contract),
        1 + source.getrandbits(source.choice((1, 8, 64, 255 if contract else 80))),
        source.choice((0, 1, 127, 128, 255, 256, source.getrandbits(32))),
        0,
        "",
    )
    gas, max_fee = source.randrange(21_000, 150_000), 1 + source.getrandbits(source.choice((1, 8, 33)))
    tip = source.choice((None, 0, source.randrange(max_fee + 1)))
    unsigned = "0x" + bytes_of(order, gas, max_fee, tip, network.chain_id).payload().hex()
    return network, replace(order, fee=gas * max_fee, unsigned=unsigned), key


def evm_spelling(address: str) -> str:
    """With capitals, as EIP-55 or another rule has them: a second reader does not judge spellings."""
    return "0x" + address[2:].upper()


def test_random_orders_are_read_alike() -> None:
    source = random.Random("second reader of evm")
    for _ in range(ORDERS):
        network, order, key = random_order(source)
        payer = EvmPayer(network, JsonRpc("http://127.0.0.1:1"))
        does, digest = payer.explain(order.unsigned), payer.digest(order.unsigned)
        signed = sign_read_twice(
            network, "an order", second(network), order, [digest],
            lambda digests, key=key, payer=payer, order=order: payer.assemble(order.unsigned, sign_with(key, digests[0])),
        )  # fmt: skip
        read = second(network).read(order, signed.raw)
        opened = payer.opened(signed.raw)
        assert (read["chainId"], read["nonce"], read["fee"]) == (does.chain_id, does.nonce, does.fee)
        assert (read["recipient"], read["amount"], read["gas"]) == (does.recipient, does.amount, does.gas)
        assert (read["signer"], read["txid"]) == (opened.signer.lower(), opened.txid)
        assert read["to"] == (does.contract or does.recipient)


Change = Callable[[Unsigned], Unsigned]


def with_call(change: Callable[[bytes], bytes]) -> Change:
    return lambda unsigned: replace(unsigned, data=change(unsigned.data))


BOTH: dict[str, tuple[Change, str]] = {
    "chain id": (lambda u: replace(u, chain_id=56), "chainId"),
    "no chain id": (lambda u: replace(u, chain_id=0), "chainId"),
    "nonce": (lambda u: replace(u, nonce=u.nonce + 1), "nonce"),
    "gas": (lambda u: replace(u, gas=u.gas + 1), "fee, gas"),
    "tip": (lambda u: replace(u, tip=2 * 10**9), "maxPriorityFeePerGas"),
    "fee": (lambda u: replace(u, max_fee=u.max_fee + 1), "fee, maxFeePerGas"),
    "type": (lambda u: replace(u, tip=None), "accessList, gasPrice, maxFeePerGas, maxPriorityFeePerGas, type"),
}
NATIVE: dict[str, tuple[Change, str]] = {
    **BOTH,
    "recipient": (lambda u: replace(u, to=b"\x36" * 20), "recipient, to"),
    "amount": (lambda u: replace(u, value=u.value + 1), "amount, value"),
    "a token's payment": (
        lambda u: replace(u, to=b"\x70" * 20, value=0, data=transfer_call(RECIPIENT, u.value)),
        "data, to, value",
    ),
}
TOKENS: dict[str, tuple[Change, str]] = {
    **BOTH,
    "contract": (lambda u: replace(u, to=b"\x71" * 20), "to"),
    "value": (lambda u: replace(u, value=1), "value"),
    "recipient": (with_call(lambda call: transfer_call("0x" + "36" * 20, 5 * 10**6)), "data, recipient"),
    "amount": (with_call(lambda call: transfer_call(RECIPIENT, 5 * 10**6 + 1)), "amount, data"),
    "trailing bytes": (with_call(lambda call: call + b"\0"), "refuses"),
    "a trailing word": (with_call(lambda call: call + b"\0" * 32), "refuses"),
    "bits above the address": (with_call(lambda call: call[:4] + b"\1" + call[5:]), "refuses"),
    "a short call": (with_call(lambda call: call[:-1]), "refuses"),
    "approve": (with_call(lambda call: bytes.fromhex("095ea7b3") + call[4:]), "refuses"),
    "no call": (lambda u: replace(u, data=b""), "amount, data, recipient"),
    "a native payment": (lambda u: replace(u, to=b"\x35" * 20, value=5 * 10**6, data=b""), "data, to, value"),
}
CASES = [(False, *each) for each in NATIVE.values()] + [(True, *each) for each in TOKENS.values()]
IDS = [f"native {name}" for name in NATIVE] + [f"token {name}" for name in TOKENS]


@pytest.mark.parametrize(("token", "change", "named"), CASES, ids=IDS)
def test_an_altered_field_of_our_bytes_is_not_signed(token: bool, change: Change, named: str) -> None:
    """Our own reading would let it pass: the digest that our code hands on is that of the altered bytes."""
    order, unsigned = ordered(token)
    asked: list[object] = []
    with pytest.raises(ReadersDiffer, match="in digests"):
        sign_read_twice(ETHEREUM, "o", second(), order, [keccak256(change(unsigned).payload())], asked.append)  # type: ignore[arg-type]
    assert not asked


@pytest.mark.parametrize(("token", "change", "named"), CASES, ids=IDS)
def test_an_altered_field_of_signed_bytes_is_dropped(token: bool, change: Change, named: str) -> None:
    """The digest is the right one, and what comes out is signed for other bytes."""
    order, unsigned = ordered(token)
    with pytest.raises(ReadersDiffer, match="refuses" if named == "refuses" else f"in {named}$"):
        dropped(order, unsigned, made(change(unsigned)))


def dropped(order: Order, unsigned: Unsigned, signed: Signed) -> None:
    sign_read_twice(ETHEREUM, "o", second(), order, [keccak256(unsigned.payload())], lambda digests: signed)


@pytest.mark.parametrize("tip", [10**9, None], ids=["typed", "legacy"])
@pytest.mark.parametrize("token", [False, True], ids=["native", "token"])
def test_another_signer_is_caught(token: bool, tip: int | None) -> None:
    order, unsigned = ordered(token, tip)
    dropped(order, unsigned, made(unsigned))
    with pytest.raises(ReadersDiffer, match=r"in signer$"):
        dropped(order, unsigned, made(unsigned, STRANGER))
    with pytest.raises(ReadersDiffer, match=r"in txid$"):
        dropped(order, unsigned, replace(made(unsigned), txid="0x" + "77" * 32))


@pytest.mark.parametrize("change", [{"gas": 60_001}, {"max_fee": 30 * 10**9 + 1}, {"gas": 120_000}], ids=str)
def test_fees_beyond_what_the_order_may_cost_are_not_signed(change: dict[str, int]) -> None:
    """Gas and rates stand in our bytes alone. They were altered there, and our own check of them is turned off."""
    order, unsigned = ordered(token=True)
    altered = replace(unsigned, **change)
    asked: list[object] = []
    with pytest.raises(ReadersDiffer, match="were allowed"):
        sign_read_twice(
            ETHEREUM, "o", second(), replace(order, unsigned=altered.payload().hex()), [keccak256(altered.payload())],
            asked.append,  # type: ignore[arg-type]
        )  # fmt: skip
    assert not asked


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "delegation"},
        {"nonce": None},
        {"amount": 0},
        {"amount": -1},
        {"amount": 2**256},
        {"nonce": -1},
        {"recipient": "0x" + "35" * 19},
        {"recipient": "hello"},
        {"contract": "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"},
        {"sender": ""},
        {"unsigned": ""},
        {"unsigned": "0xzz"},
    ],
    ids=str,
)
def test_an_order_that_is_no_payment_is_refused(changes: dict[str, Any]) -> None:
    order, _ = ordered(token=True)
    with pytest.raises(ValueError, match=r"."):
        second().built(replace(order, **changes))


def of_type(kind: int, unsigned: Unsigned) -> str:
    """Signed bytes of another type, with the same payment."""
    fields: dict[str, Any] = {
        "type": kind, "chainId": 1, "nonce": unsigned.nonce, "gas": unsigned.gas, "to": unsigned.to, "value": unsigned.value,
        "data": unsigned.data, "accessList": [],
    }  # fmt: skip
    if kind == 1:
        fields["gasPrice"] = unsigned.max_fee
    else:
        fields |= {"maxFeePerGas": unsigned.max_fee, "maxPriorityFeePerGas": unsigned.tip}
    if kind == 2:
        fields["accessList"] = [{"address": "0x" + "11" * 20, "storageKeys": ["0x" + "00" * 32]}]
    return str(Account.sign_transaction(fields, KEY.secret).raw_transaction.to_0x_hex())


def test_other_types_and_access_lists_are_caught() -> None:
    order, unsigned = ordered(token=True)
    for raw, named in ((of_type(1, unsigned), "type"), (of_type(2, unsigned), "accessList")):
        with pytest.raises(ReadersDiffer, match=named):
            dropped(order, unsigned, Signed(raw, "0x" + keccak256(bytes.fromhex(raw[2:])).hex()))


def other_spellings(raw: bytes) -> Sequence[bytes]:
    signature_at = len(raw) - 64  # r and s are the last two strings
    assert signature_at > 0
    length_written_long = b"\x02\xf9\x00" + raw[2:] if raw[1] == 0xF8 else raw + b"\0"
    return [b"", raw[:-1], raw + b"\0", b"\x00" + raw, raw[:1] + raw, length_written_long, b"\x02", b"\xc0", b"\xff" * 40]


@pytest.mark.parametrize("token", [False, True], ids=["native", "token"])
def test_bytes_in_another_spelling_are_refused(token: bool) -> None:
    order, unsigned = ordered(token)
    raw = bytes.fromhex(made(unsigned).raw[2:])
    for other in other_spellings(raw):
        with pytest.raises(ValueError, match=r"."):
            second().read(order, "0x" + other.hex())


def test_a_signature_in_the_upper_half_is_refused() -> None:
    """By EIP-2 no node takes it; with the other parity it is by the same key."""
    import rlp

    order, unsigned = ordered(token=False)
    fields = rlp.decode(bytes.fromhex(made(unsigned).raw[2:])[1:])
    half = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
    fields[9] = b"" if fields[9] else b"\x01"
    fields[11] = (half - int.from_bytes(fields[11])).to_bytes(32).lstrip(b"\0")
    with pytest.raises(ValueError, match="upper half"):
        second().read(order, "0x02" + rlp.encode(fields).hex())


def test_a_legacy_signature_for_any_chain_is_caught() -> None:
    """Before EIP-155 a signature was good on every chain."""
    order, unsigned = ordered(token=False, tip=None)
    fields = {
        "nonce": 3,
        "gas": unsigned.gas,
        "gasPrice": unsigned.max_fee,
        "to": unsigned.to,
        "value": unsigned.value,
        "data": b"",
    }
    raw = Account.sign_transaction(fields, KEY.secret).raw_transaction
    with pytest.raises(ReadersDiffer, match=r"in chainId, txid$"):
        dropped(order, unsigned, Signed(raw.to_0x_hex(), made(unsigned).txid))


@pytest.mark.parametrize(
    "altered",
    [{"chain_id": 56}, {"chain_id": None}, {"simulated": True}, {"family": "tron"}],
    ids=lambda change: next(iter(change)),
)
def test_the_chain_is_that_of_the_published_list_whatever_its_record_says(altered: dict[str, Any]) -> None:
    chosen = SecondReaders(Settings.from_environment()).accounts(replace(ETHEREUM, **altered))
    assert isinstance(chosen, EvmSecondReader)
    order, ours = ordered(token=False)
    assert chosen.built(order).digests == (keccak256(ours.payload()),)
    elsewhere = replace(ours, chain_id=56).payload()
    assert chosen.built(replace(order, unsigned="0x" + elsewhere.hex())).digests != (keccak256(elsewhere),)
