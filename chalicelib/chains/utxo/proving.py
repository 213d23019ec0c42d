"""The content of our signed transactions, decoded from their bytes: a replacement trusts no record about them.

Pure. Takes only what `transactions` makes: one signature of one key for each input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chalicelib.chains.utxo.transactions import LOCK_TIME, VERSION, Bytes, Input, PaidTo, Unsigned, transaction_id
from chalicelib.encoding.public_keys import hash160


def proved(raw: bytes, coins: Sequence[Input]) -> tuple[str, Unsigned]:
    """The id of a signed transaction that spends exactly `coins`, in whatever order, and what was signed.

    Raises ValueError unless the key of each coin's address signed for it, amount included (BIP-143; P2PKH does not commit to it).
    """
    spent, paid = _read(raw)
    known = {coin.outpoint: coin for coin in coins}
    if len(spent) != len(known) or {each.outpoint for each in spent} != set(known):
        raise ValueError("the signed transaction spends other coins")
    inputs, proofs = [], []
    for each in spent:
        coin = known[each.outpoint]
        parts = each.witness or _pushes(each.script)
        redeem = _pushes(each.script)[0] if each.witness and each.script else b""
        if len(parts) != 2:
            raise ValueError("an input is not unlocked by one signature of one key")
        inputs.append(Input(each.outpoint, coin.amount, coin.script, redeem, sequence=each.sequence))
        proofs.append((parts[0][:-1], parts[1]))
    unsigned = Unsigned(tuple(inputs), tuple(paid))
    _verify(unsigned, proofs)
    # Byte for byte what we make of it: nothing is in it that was not looked at.
    if unsigned.signed(proofs).raw != raw.hex():
        raise ValueError("the signed transaction is not in the form in which ours are made")
    return transaction_id(raw), unsigned


@dataclass(frozen=True, slots=True)
class _Spent:
    """An input as it stands in the bytes."""

    outpoint: bytes
    script: bytes
    sequence: bytes
    witness: list[bytes]


def _read(raw: bytes) -> tuple[list[_Spent], list[PaidTo]]:
    """The inputs and outputs of a signed transaction. Raises ValueError for one of another form than ours."""
    reader = Bytes(raw)
    version, extended = reader.take(4), raw[4:5] == b"\0"
    if extended:
        reader.take(2)
    spent = [(reader.take(36), reader.sized(), reader.take(4)) for _ in range(reader.size())]
    paid = [PaidTo(reader.amount(), reader.sized()) for _ in range(reader.size())]
    witnesses = [[reader.sized() for _ in range(reader.size())] if extended else [] for _ in spent]
    if (version, reader.take(4), reader.left) != (VERSION, LOCK_TIME, 0):
        raise ValueError("the signed transaction is none of ours")
    return [_Spent(*each, witness) for each, witness in zip(spent, witnesses, strict=True)], paid


def _verify(unsigned: Unsigned, proofs: Sequence[tuple[bytes, bytes]]) -> None:
    """Raises ValueError unless each (signature, key) of `proofs` signs its input with the key of the coin's address."""
    from coincurve import PublicKey

    for (der, key), digest, (_, key_hash) in zip(proofs, unsigned.digests, unsigned.keys, strict=True):
        try:
            good = hash160(key) == key_hash and PublicKey(key).verify(der, digest, hasher=None)
        except Exception as error:
            # coincurve raises a bare Exception for what is no key or no signature.
            raise ValueError("an input's signature is none") from error
        if not good:
            raise ValueError("an input is not signed by the key of its address")


def _pushes(script: bytes) -> list[bytes]:
    reader, found = Bytes(script), []
    while reader.left:
        found.append(reader.sized())
    return found
