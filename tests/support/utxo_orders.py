"""Orders of bitcoin and litecoin, their coins of every kind, and what an honest signer makes of them."""

from __future__ import annotations

import random
from collections.abc import Sequence

from coincurve import PrivateKey

from chalicelib.chains.utxo.scripts import address_of
from chalicelib.chains.utxo.transactions import Input, PaidTo, Unsigned, compact_size, der_of, double_sha256
from chalicelib.custody.signatures import sign_with
from chalicelib.domain.catalogue.catalogue import Network, default_networks
from chalicelib.encoding.public_keys import Chain, hash160
from chalicelib.usecases.ports.coins import Output
from chalicelib.usecases.ports.second_reader import CoinOrder, OrderedCoin
from chalicelib.usecases.ports.signing import Signed

KINDS = ("p2wpkh", "p2pkh", "p2sh-p2wpkh")
LIVE: dict[str, Network] = {network.slug: network for network in default_networks("live")}


def segwit(key: PrivateKey) -> bytes:
    return b"\0\x14" + hash160(key.public_key.format())


def legacy(key: PrivateKey) -> bytes:
    return b"\x76\xa9\x14" + hash160(key.public_key.format()) + b"\x88\xac"


def coin(source: random.Random, key: PrivateKey, kind: str, amount: int) -> Input:
    """A coin of a key; a P2PKH one with the transaction that made it."""
    if kind == "p2pkh":
        others = [PaidTo(source.randrange(1, 10**9), some_script(source)) for _ in range(source.randrange(3))]
        place = source.randint(0, len(others))
        others.insert(place, PaidTo(amount, legacy(key)))
        # Whatever else a stranger may have in it.
        spent = [source.randbytes(36) + push(source.randbytes(source.randrange(80))) + source.randbytes(4) for _ in range(2)]
        paid = [each.amount.to_bytes(8, "little") + push(each.script) for each in others]
        previous = b"".join([b"\2\0\0\0", compact_size(2), *spent, compact_size(len(paid)), *paid, bytes(4)])
        return Input(double_sha256(previous) + place.to_bytes(4, "little"), amount, legacy(key), previous=previous)
    outpoint = source.randbytes(32) + source.randrange(2**16).to_bytes(4, "little")
    if kind == "p2wpkh":
        return Input(outpoint, amount, segwit(key))
    return Input(outpoint, amount, b"\xa9\x14" + hash160(segwit(key)) + b"\x87", redeem=segwit(key))


def push(data: bytes) -> bytes:
    return compact_size(len(data)) + data


def some_script(source: random.Random) -> bytes:
    """Of an address."""
    return source.choice(
        (
            b"\0\x14" + source.randbytes(20),
            b"\0\x20" + source.randbytes(32),
            b"\x51\x20" + source.randbytes(32),
            b"\xa9\x14" + source.randbytes(20) + b"\x87",
            b"\x76\xa9\x14" + source.randbytes(20) + b"\x88\xac",
        )
    )


def ordered(unsigned: Unsigned, slug: str = "bitcoin", chain: Chain = "main") -> CoinOrder:
    """The order of what `unsigned` does."""

    def named(script: bytes) -> str:
        return address_of(slug, script, chain)

    inputs = [OrderedCoin(i.name, i.amount, named(i.script), i.previous.hex(), i.redeem.hex()) for i in unsigned.inputs]
    return CoinOrder(tuple(inputs), tuple(Output(named(paid.script), paid.amount) for paid in unsigned.outputs))


def proofs_of(unsigned: Unsigned, keys: Sequence[PrivateKey], digests: Sequence[bytes] = ()) -> list[tuple[bytes, bytes]]:
    made = [sign_with(key, digest) for key, digest in zip(keys, digests or unsigned.digests, strict=True)]
    return [(der_of(each.r, each.s), key.public_key.format()) for each, key in zip(made, keys, strict=True)]


def signed(unsigned: Unsigned, keys: Sequence[PrivateKey]) -> Signed:
    """What an honest signer makes of it, whatever it is."""
    return unsigned.signed(proofs_of(unsigned, keys))


SOURCE = random.Random("altered")
KEYS = [PrivateKey(SOURCE.randbytes(32)) for _ in KINDS]
STRANGER = PrivateKey(SOURCE.randbytes(32))
PLAIN = Unsigned(
    tuple(coin(SOURCE, key, kind, 10**6 + n) for n, (key, kind) in enumerate(zip(KEYS, KINDS, strict=True))),
    (PaidTo(10**6, segwit(STRANGER)), PaidTo(1_990_000, segwit(KEYS[0]))),
)
