"""Unsigned transactions as text: partially signed bitcoin transactions (BIP-174, version 0), which every wallet and node can show.

Pure. Strict, because the signer signs what it decodes here (money rule 7): the bytes must be exactly what `encode` makes of a
transaction of ours, with no field, order or spelling that it would not use.
"""

from __future__ import annotations

from functools import lru_cache

from chalicelib.chains.utxo.transactions import (
    LOCK_TIME,
    MOST_UNITS,
    SEQUENCE,
    VERSION,
    Bytes,
    Input,
    PaidTo,
    Unsigned,
    compact_size,
    double_sha256,
    outputs_in,
)

_MAGIC = b"psbt\xff"
_GLOBAL_TRANSACTION = b"\0"
_PREVIOUS, _SPENT_OUTPUT, _REDEEM = b"\0", b"\x01", b"\x04"
"""PSBT_IN_NON_WITNESS_UTXO, PSBT_IN_WITNESS_UTXO, PSBT_IN_REDEEM_SCRIPT."""
_END = b"\0"
MOST_BYTES = 150_000
"""A record has 400 KB (DynamoDB), and this is stored as hex."""


def encode(unsigned: Unsigned) -> str:
    """As hex. Raises ValueError for what `decode` would not take back."""
    raw = _bytes(unsigned)
    _check(unsigned)
    if len(raw) > MOST_BYTES:
        raise ValueError("the transaction is too large to be stored")
    return raw.hex()


@lru_cache(maxsize=4)
def decode(text: str) -> Unsigned:
    """The transaction whose encoding this is. Raises ValueError for any other text.

    The last ones are remembered: explaining, digests and assembling follow each other.
    """
    raw = bytes.fromhex(text)
    if len(raw) > MOST_BYTES or not raw.startswith(_MAGIC):
        raise ValueError("not an unsigned transaction (BIP-174)")
    reader = Bytes(raw)
    reader.take(len(_MAGIC))
    skeleton = Bytes(_map(reader).pop(_GLOBAL_TRANSACTION, b""))
    if skeleton.take(4) != VERSION:
        raise ValueError("the transaction is of another version")
    outpoints = []
    for _ in range(skeleton.size()):
        outpoints.append(skeleton.take(36))
        if skeleton.sized() or skeleton.take(4) != SEQUENCE:
            raise ValueError("an input is signed already, or can not be replaced")
    outputs = tuple([PaidTo(skeleton.amount(), skeleton.sized()) for _ in range(skeleton.size())])
    if skeleton.take(4) != LOCK_TIME or skeleton.left:
        raise ValueError("the transaction has a lock time, or something behind its end")
    decoded = Unsigned(tuple([_input(outpoint, _map(reader)) for outpoint in outpoints]), outputs)
    _check(decoded)
    # Whatever else there was, in whatever order, would be missing here.
    if _bytes(decoded).hex() != text:
        raise ValueError("the transaction is not in its canonical encoding, or has fields that we do not use")
    return decoded


def _bytes(unsigned: Unsigned) -> bytes:
    parts = [_MAGIC, _field(_GLOBAL_TRANSACTION, unsigned.skeleton()), _END]
    for spent in unsigned.inputs:
        if spent.previous:
            parts.append(_field(_PREVIOUS, spent.previous))
        else:
            output = spent.amount.to_bytes(8, "little") + compact_size(len(spent.script)) + spent.script
            parts.append(_field(_SPENT_OUTPUT, output))
        if spent.redeem:
            parts.append(_field(_REDEEM, spent.redeem))
        parts.append(_END)
    return b"".join([*parts, _END * len(unsigned.outputs)])


def _check(unsigned: Unsigned) -> None:
    """Raises ValueError for what the chain would not take, or what does not add up."""
    if not unsigned.inputs or not unsigned.outputs:
        raise ValueError("the transaction spends or pays nothing")
    if len({spent.outpoint for spent in unsigned.inputs}) < len(unsigned.inputs):
        raise ValueError("the transaction spends an output twice")
    for spent, (kind, _) in zip(unsigned.inputs, unsigned.keys, strict=True):
        if (kind == "p2pkh") != bool(spent.previous):
            raise ValueError("an input of the legacy kind has to come with the transaction that made it, and no other")
        if spent.previous:
            _same_output(spent)
    amounts = [spent.amount for spent in unsigned.inputs] + [output.amount for output in unsigned.outputs]
    if min(amounts) <= 0 or sum(amounts) > 2 * MOST_UNITS or unsigned.fee < 0:
        raise ValueError("the transaction's amounts are impossible")


def _same_output(spent: Input) -> None:
    if double_sha256(spent.previous) != spent.outpoint[:32]:
        raise ValueError("a previous transaction is another than the input names")
    outputs = outputs_in(spent.previous)
    index = int.from_bytes(spent.outpoint[32:], "little")
    if index >= len(outputs) or outputs[index] != PaidTo(spent.amount, spent.script):
        raise ValueError("an input's amount or script is not what the previous transaction says")


def _input(outpoint: bytes, fields: dict[bytes, bytes]) -> Input:
    previous = fields.get(_PREVIOUS, b"")
    if previous:
        outputs = outputs_in(previous)
        index = int.from_bytes(outpoint[32:], "little")
        if index >= len(outputs):
            raise ValueError("a previous transaction has no such output")
        return Input(outpoint, outputs[index].amount, outputs[index].script, fields.get(_REDEEM, b""), previous)
    output = Bytes(fields.get(_SPENT_OUTPUT, b""))
    return Input(outpoint, output.amount(), output.sized(), fields.get(_REDEEM, b""))


def _field(key: bytes, value: bytes) -> bytes:
    return compact_size(len(key)) + key + compact_size(len(value)) + value


def _map(reader: Bytes) -> dict[bytes, bytes]:
    fields: dict[bytes, bytes] = {}
    while key := reader.sized():
        if key in fields:
            raise ValueError("a field is there twice")
        fields[key] = reader.sized()
    return fields
