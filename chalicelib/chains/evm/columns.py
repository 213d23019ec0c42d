"""Fast parsing of a block's transactions and logs: field by field over all rows at once, at the speed of C.

Pure. Gives None as soon as anything is not the plain case, correct to the last digit; the careful way in `parsing` then goes row by
row, and decides what may be left out and what is wrong. Both give the same transfers for the same rows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any

from chalicelib.chains.abi import TRANSFER_TOPIC
from chalicelib.domain.chain import Sent, Transfer

_HEX = b"0123456789abcdef"
_WORD, _ADDRESS = 66, 42
_PADDING = "0x" + "0" * 24
_transaction = itemgetter("hash", "from", "to", "value", "blockHash")
_signed = itemgetter("hash", "from", "nonce")
_log = itemgetter("address", "logIndex", "transactionHash", "data", "blockHash", "topics", "removed")
_make = tuple.__new__


class _Positions(dict[str, str]):
    """`Transfer.position` of a log by its index as nodes write it. Raises ValueError for any but the shortest way to."""

    def __missing__(self, text: str) -> str:
        (number,) = _numbers([text]) or [-1]
        if number < 0:
            raise ValueError("a log's index is no number")
        position = f"log:{number}"
        if number < _REMEMBERED:
            self[text] = position
        return position


_REMEMBERED = 8_192
_positions = _Positions()


def senders(transactions: list[Any]) -> Sent | None:
    """Sender and nonce of each of `transactions`; None if not all of them are plain. These are compared with senders and ids of
    ours: another form is foreign, but one of ours in capitals has to be recognised.
    """
    if not transactions:
        return Sent()
    try:
        txids, froms, nonces = zip(*map(_signed, transactions), strict=True)
        if not _lower("".join(froms)) or not _lower("".join(txids)):
            return None
        return Sent(txids, froms, tuple(map(int, nonces, repeat(16))))
    except (KeyError, TypeError, ValueError):
        return None


def native_transfers(transactions: list[Any], block_hash: str, most: int) -> list[Transfer] | None:
    """The value transfers above zero among `transactions`, None if not all of them are plain and at most `most` units."""
    try:
        rows = [row for row in map(_transaction, transactions) if row[3] != "0x0" and row[2] is not None]
        if not rows:
            return []
        txids, senders, recipients, values, hashes = zip(*rows, strict=True)
        amounts = _numbers(values)
        plain = amounts is not None and max(amounts) <= most and set(hashes) == {block_hash}
        if not (plain and _column(txids, _WORD) and _column(senders, _ADDRESS) and _column(recipients, _ADDRESS)):
            return None
    except (KeyError, TypeError, ValueError):
        return None
    return [
        _make(Transfer, (txid, "native", None, sender, recipient, amount))
        for txid, sender, recipient, amount in zip(txids, senders, recipients, amounts or (), strict=True)
    ]


def token_transfers(logs: list[Any], block_hash: str, contracts: Collection[str], most: int) -> list[Transfer] | None:
    """The transfers above zero among `logs`, None if not all of them are EIP-20's, of `contracts`, and at most `most` units."""
    if not logs:
        return []
    try:
        addresses, indexes, txids, data, hashes, topics, removed = zip(*map(_log, logs), strict=True)
        kinds, senders, recipients = zip(*topics, strict=True)
        positions = list(map(_positions.__getitem__, indexes))
        plain = len(set(positions)) == len(positions) and not any(removed)
        # Comparing costs less than hashing each of them.
        plain = plain and hashes.count(block_hash) == kinds.count(TRANSFER_TOPIC) == len(logs)
        plain = plain and set(addresses).issubset(contracts)
        if not (plain and _column(txids, _WORD) and _column(data, _WORD)):
            return None
        if not (_column(senders, _WORD, _PADDING) and _column(recipients, _WORD, _PADDING)):
            return None
    except (KeyError, TypeError, ValueError):
        return None
    amounts = list(map(int, data, repeat(16)))
    if max(amounts) > most:
        return None
    return [
        _make(Transfer, (txid, position, contract, "0x" + sender[26:], "0x" + recipient[26:], amount))
        for txid, position, contract, sender, recipient, amount in zip(
            txids, positions, addresses, senders, recipients, amounts, strict=True
        )
        if amount
    ]


def _numbers(texts: Sequence[str]) -> list[int] | None:
    """Numbers in their shortest lower-case form with 0x, None if one is not: `int` alone would take signs, blanks and more."""
    numbers = list(map(int, texts, repeat(16)))
    return numbers if list(map(hex, numbers)) == list(texts) and min(numbers) >= 0 else None


def _column(texts: Sequence[str], length: int, begins: str = "0x") -> bool:
    """Whether every text is 0x and lower-case digits, `length` characters in all, and begins so."""
    if set(map(len, texts)) != {length}:
        return False
    joined = "".join(texts)
    marks = "x" * len(texts)
    if joined[::length] != "0" * len(texts) or joined[1::length] != marks or not joined.isascii():
        return False
    if joined.encode().translate(None, _HEX) != marks.encode():
        return False
    # There is one "x" in each text, its second character: `begins` is found at beginnings alone.
    return begins == "0x" or joined.count(begins) == len(texts)


def _lower(text: str) -> bool:
    """Whether `text` has no capitals. Compared, since `str.islower` looks at letter after letter and costs twenty times as much."""
    return text == text.lower()
