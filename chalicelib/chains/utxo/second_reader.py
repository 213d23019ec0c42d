"""The second reader of bitcoin and litecoin (money rule 15): bitcoinlib builds an order's transaction and reads signed bytes.

Shares no code with `transactions`, `scripts`, `psbt` and `payer`: addresses become scripts, digests and bytes by the library alone.
It has no key. It takes three things from our own bytes: the order of the inputs, a P2PKH coin's previous transaction and the script
behind a P2SH address. Hashes in the coin's record prove the last two.

The library knows the main chains and the testnets. Its `regtest` has the main chain's version bytes, and it has no regtest of
litecoin. Both are described here by the testnet's version bytes and the prefix of SLIP-173; the library does the rest.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any, NamedTuple

from chalicelib.encoding.public_keys import Chain
from chalicelib.usecases.ports.second_reader import Built, CoinOrder, OrderedCoin

_VERSION, _LOCK_TIME = 2, 0
_SEQUENCE = 0xFFFFFFFD
"""Of every input: replaceable (BIP-125), no relative lock time (BIP-68)."""
_SIGHASH_ALL = 1
_NAMES: dict[tuple[str, Chain], str] = {
    ("bitcoin", "main"): "bitcoin",
    ("bitcoin", "testnet"): "testnet",
    ("bitcoin", "regtest"): "bitcoin_regtest",
    ("litecoin", "main"): "litecoin",
    ("litecoin", "testnet"): "litecoin_testnet",
    ("litecoin", "regtest"): "litecoin_regtest",
}
_REGTESTS = {"bitcoin_regtest": ("testnet", "bcrt"), "litecoin_regtest": ("litecoin_testnet", "rltc")}
"""By the name that the library is given: the network whose version bytes they share, and the prefix of segwit addresses."""
_CONFIG = "[logs]\nenable_bitcoinlib_logging = False\n"
_IMPORTING = Lock()
"""The environment is the process's, and the local stack signs in several threads."""


class _Library(NamedTuple):
    """The modules of bitcoinlib that are used."""

    encoding: Any
    keys: Any
    transactions: Any


class _Proof(NamedTuple):
    """A signature and a public key, as objects of the library."""

    signature: Any
    key: Any


class UtxoSecondReader:
    """Implements `usecases.ports.second_reader.SecondReader` for one UTXO network."""

    def __init__(self, slug: str, chain: Chain = "main") -> None:
        self._network = _NAMES[slug, chain]

    def built(self, order: CoinOrder) -> Built:
        """The digest of each input, and every field that the signed transaction must have. Raises ValueError for what the library
        makes no transaction of, and for a previous transaction or script that is not what the coin's record names."""
        with _as_value_error():
            made = _Made(self._network, order)
            return Built(made.digests, made.reading)

    def read(self, order: CoinOrder, raw: str) -> dict[str, object]:
        """The fields of the signed transaction `raw`; the fee by the amounts of the order's coins. The signer of an input is the
        HASH160 of the key whose signature is valid for the order's digest, None where no such key signed.

        Raises ValueError for what the library can not decode.
        """
        with _as_value_error():
            made = _Made(self._network, order)
            told = _parsed(bytes.fromhex(raw), self._network)
            proofs = [_proof(spent) for spent in told.inputs]
            fields = _fields(told.version_int, told.locktime, told.outputs)
            for n, (spent, proof) in enumerate(zip(told.inputs, proofs, strict=True)):
                fields[f"input {n} outpoint"] = f"{spent.prev_txid.hex()}:{spent.output_n_int}"
                fields[f"input {n} sequence"] = spent.sequence
                fields[f"input {n} signer"] = _signer(proof, made.digests[n]) if n < len(made.digests) else None
            spent = sum(coin.amount for coin in order.inputs)
            return {
                **fields,
                "fee": spent - sum(output.value for output in told.outputs),
                "txid": told.txid,
                "encoding": "exact" if made.signed(proofs) == raw else "other",
            }


class _Made:
    """The transaction that the library makes of an order, before its signatures."""

    def __init__(self, network: str, order: CoinOrder) -> None:
        lib = self._lib = _library()
        self._order, self._network = order, network
        inputs = [self._input(place, coin) for place, coin in enumerate(order.inputs)]
        outputs = [
            lib.transactions.Output(output.amount, address=output.address, output_n=place, network=network)
            for place, output in enumerate(order.outputs)
        ]
        # The library writes marker and flag where it is told "segwit", whatever the inputs are.
        kind = "legacy" if all(each.witness_type == "legacy" for each in inputs) else "segwit"
        self._made = lib.transactions.Transaction(
            inputs, outputs, locktime=_LOCK_TIME, version=_VERSION, network=network, witness_type=kind
        )
        self.digests: tuple[bytes, ...] = tuple(
            self._made.signature_hash(place, _SIGHASH_ALL, each.witness_type) for place, each in enumerate(self._made.inputs)
        )

    @property
    def reading(self) -> dict[str, object]:
        fields = _fields(_VERSION, _LOCK_TIME, self._made.outputs)
        for n, (coin, made) in enumerate(zip(self._order.inputs, self._made.inputs, strict=True)):
            fields[f"input {n} outpoint"] = coin.outpoint
            fields[f"input {n} sequence"] = _SEQUENCE
            fields[f"input {n} signer"] = made.public_hash.hex()
        paid = sum(output.amount for output in self._order.outputs)
        return {**fields, "fee": sum(coin.amount for coin in self._order.inputs) - paid, "encoding": "exact"}

    def signed(self, proofs: Sequence[_Proof | None]) -> str:
        """The bytes of this transaction with the signatures and keys of another one's inputs; nothing where they do not fit."""
        if len(proofs) != len(self._made.inputs) or None in proofs:
            return ""
        for each, proof in zip(self._made.inputs, proofs, strict=True):
            if proof is not None:
                # From the numbers, not from the bytes: in the one way to write them (BIP-66).
                each.signatures = [self._lib.keys.Signature(proof.signature.r, proof.signature.s, hash_type=_SIGHASH_ALL)]
                each.keys = [proof.key]
                each.update_scripts(_SIGHASH_ALL)
        return str(self._made.raw_hex())

    def _input(self, place: int, coin: OrderedCoin) -> Any:
        txid, _, index = coin.outpoint.partition(":")
        kind, key_hash = self._owner(coin)
        if kind == "legacy":
            self._same_output(coin, txid, int(index))
        return self._lib.transactions.Input(
            txid, int(index), public_hash=key_hash, value=coin.amount, sequence=_SEQUENCE, witness_type=kind, index_n=place,
            network=self._network,
        )  # fmt: skip

    def _owner(self, coin: OrderedCoin) -> tuple[str, bytes]:
        """How the coin is unlocked, as the library names it, and the HASH160 of the key."""
        told = self._lib.keys.deserialize_address(coin.address, network=self._network)
        if self._network not in told["networks"]:
            raise ValueError(f"{coin.address} belongs to another network")
        kind, hashed = told["script_type"], told["public_key_hash_bytes"]
        if kind == "p2wpkh":
            return "segwit", hashed
        if kind == "p2pkh":
            return "legacy", hashed
        redeem = bytes.fromhex(coin.redeem)
        if kind != "p2sh" or len(redeem) != 22 or redeem[:2] != b"\0\x14" or self._lib.encoding.hash160(redeem) != hashed:
            raise ValueError(f"{coin.outpoint} is no plain output of one key")
        return "p2sh-segwit", redeem[2:]

    def _same_output(self, coin: OrderedCoin, txid: str, index: int) -> None:
        """Raises ValueError unless the previous transaction has the coin: a legacy signature does not commit to the amount."""
        previous = bytes.fromhex(coin.previous)
        if self._lib.encoding.double_sha256(previous)[::-1].hex() != txid:
            raise ValueError(f"{coin.outpoint} is of another transaction than the one shown")
        told = _parsed(previous, self._network)
        wanted = self._lib.transactions.Output(coin.amount, address=coin.address, network=self._network)
        # The library takes a script that is written in hexadecimal digits for what they stand for: encoded again, it is another.
        if not previous.endswith(self._encoded(told)) or index >= len(told.outputs):
            raise ValueError(f"{coin.outpoint} is in no transaction that the library reads")
        found = told.outputs[index]
        if (found.value, found.lock_script) != (coin.amount, wanted.lock_script):
            raise ValueError(f"{coin.outpoint} has another amount or owner than its record says")

    def _encoded(self, told: Any) -> bytes:
        """The end of a transaction without witnesses: its outputs and lock time."""
        size, sized = self._lib.encoding.int_to_varbyteint, self._lib.encoding.varstr
        outputs = [output.value.to_bytes(8, "little") + sized(output.lock_script) for output in told.outputs]
        return b"".join([size(len(outputs)), *outputs, told.locktime.to_bytes(4, "little")])


def _fields(version: int, lock_time: int, outputs: Sequence[Any]) -> dict[str, object]:
    """Scripts, not the addresses that stand for them."""
    fields: dict[str, object] = {"version": version, "lock time": lock_time}
    for n, output in enumerate(outputs):
        fields[f"output {n} script"] = output.lock_script.hex()
        fields[f"output {n} amount"] = output.value
    return fields


def _parsed(raw: bytes, network: str) -> Any:
    """The library's reading of a transaction. Not strict: it guesses what each part of a script may be, and a strict one refuses
    a short signature. The guesses are not used."""
    return _library().transactions.Transaction.parse_bytesio(_Whole(raw), strict=False, network=network, raw_bytes=raw)


class _Whole(BytesIO):
    """Raises ValueError at its end, where the library would go on: a wrong count lets it read nothing for ever."""

    def read(self, size: int | None = -1, /) -> bytes:
        part = super().read(size)
        if size and not part:
            raise ValueError("the transaction is cut short")
        return part


def _proof(spent: Any) -> _Proof | None:
    """The signature and the public key that an input shows; None where it shows anything but one of each."""
    lib = _library()
    parts = spent.witnesses or _pushes(spent.unlocking_script)
    if len(parts) != 2:
        return None
    r, s = lib.encoding.signature_der_decode(parts[0][:-1])
    return _Proof(lib.keys.Signature(r, s, hash_type=parts[0][-1]), lib.keys.Key(parts[1]))


def _pushes(script: bytes) -> list[bytes]:
    """The parts of a script that pushes data of up to 75 bytes."""
    reader, found = BytesIO(script), []
    while reader.tell() < len(script):
        found.append(reader.read(_library().encoding.read_varbyteint(reader)))
    return found


def _signer(proof: _Proof | None, digest: bytes) -> str | None:
    """The HASH160 of the key that signed `digest`; None where none did, or with s in the upper half (BIP-62)."""
    keys = _library().keys
    if proof is None or proof.signature.s > keys.secp256k1_n // 2 or not keys.verify(digest, proof.signature, proof.key):
        return None
    return str(proof.key.hash160.hex())


@contextmanager
def _as_value_error() -> Iterator[None]:
    try:
        yield
    except ValueError:
        raise
    except Exception as error:
        # The library's errors have no base of their own.
        raise ValueError(f"bitcoinlib: {error}") from error


@lru_cache(maxsize=1)
def _library() -> _Library:
    """bitcoinlib, imported at first use, without its wallets, database and node services.

    At its import it demands a folder that it can write: it copies its settings there and opens its log. It gets an empty one for
    that time, and no log.
    """
    with _IMPORTING, tempfile.TemporaryDirectory(prefix="bitcoinlib-") as folder, _settings_in(folder), _hidden("sqlalchemy"):
        Path(folder, "config.ini").write_text(_CONFIG)
        from bitcoinlib import encoding, keys, networks, transactions
    # It logs each guess at a script that it gives up. What matters it raises.
    logging.getLogger("bitcoinlib").setLevel(logging.CRITICAL)
    for name, (like, prefix) in _REGTESTS.items():
        networks.NETWORK_DEFINITIONS[name] = {**networks.NETWORK_DEFINITIONS[like], "prefix_bech32": prefix}
    return _Library(encoding, keys, transactions)


@contextmanager
def _settings_in(folder: str) -> Iterator[None]:
    before = os.environ.get("BCL_DATA_DIR")
    os.environ["BCL_DATA_DIR"] = folder
    try:
        yield
    finally:
        if before is None:
            del os.environ["BCL_DATA_DIR"]
        else:
            os.environ["BCL_DATA_DIR"] = before


@contextmanager
def _hidden(name: str) -> Iterator[None]:
    """Imports do not find the package `name`: bitcoinlib leaves out what needs it."""
    modules: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]
    if name in modules:
        yield
        return
    modules[name] = None
    try:
        yield
    finally:
        del modules[name]
