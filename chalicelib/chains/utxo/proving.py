"""What a signed transaction of ours does, told from its bytes: whoever makes a replacement believes no record about what is out.

Pure. Takes only what `transactions` makes: one signature of one key for each input.
"""

from __future__ import annotations

from collections.abc import Sequence

from chalicelib.chains.utxo.transactions import LOCK_TIME, VERSION, Bytes, Input, PaidTo, Unsigned, transaction_id
from chalicelib.encoding.public_keys import hash160


def proved(raw: bytes, coins: Sequence[Input]) -> tuple[str, Unsigned]:
    """The id of a signed transaction that spends exactly `coins`, in whatever order, and what was signed.

    Raises ValueError unless the key of each coin's address signed for it, amount included (BIP-143; P2PKH does not commit to it).
    """
    from coincurve import PublicKey

    reader = Bytes(raw)
    version, extended = reader.take(4), raw[4:5] == b"\0"
    if extended:
        reader.take(2)
    spent: list[tuple[bytes, bytes, bytes]] = []
    for _ in range(reader.size()):
        spent.append((reader.take(36), reader.sized(), reader.take(4)))
    paid: list[PaidTo] = []
    for _ in range(reader.size()):
        paid.append(PaidTo(reader.amount(), reader.sized()))
    witnesses = [[reader.sized() for _ in range(reader.size())] if extended else [] for _ in spent]
    if (version, reader.take(4), reader.left) != (VERSION, LOCK_TIME, 0):
        raise ValueError("the signed transaction is none of ours")
    known = {coin.outpoint: coin for coin in coins}
    if len(spent) != len(known) or {outpoint for outpoint, _, _ in spent} != set(known):
        raise ValueError("the signed transaction spends other coins")
    inputs, proofs = [], []
    for (outpoint, script, sequence), witness in zip(spent, witnesses, strict=True):
        coin = known[outpoint]
        parts = witness or _pushes(script)
        redeem = _pushes(script)[0] if witness and script else b""
        if len(parts) != 2:
            raise ValueError("an input is not unlocked by one signature of one key")
        inputs.append(Input(outpoint, coin.amount, coin.script, redeem, sequence=sequence))
        proofs.append((parts[0][:-1], parts[1]))
    unsigned = Unsigned(tuple(inputs), tuple(paid))
    for (der, key), digest, (_, key_hash) in zip(proofs, unsigned.digests, unsigned.keys, strict=True):
        try:
            good = hash160(key) == key_hash and PublicKey(key).verify(der, digest, hasher=None)
        except Exception as error:
            # coincurve raises a bare Exception for what is no key or no signature.
            raise ValueError("an input's signature is none") from error
        if not good:
            raise ValueError("an input is not signed by the key of its address")
    # Byte for byte what we make of it: nothing is in it that was not looked at.
    if unsigned.signed(proofs).raw != raw.hex():
        raise ValueError("the signed transaction is not in the form in which ours are made")
    return transaction_id(raw), unsigned


def _pushes(script: bytes) -> list[bytes]:
    reader, found = Bytes(script), []
    while reader.left:
        found.append(reader.sized())
    return found
