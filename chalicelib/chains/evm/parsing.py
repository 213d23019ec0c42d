"""Parsing of a node's blocks, logs and receipts, with checks of each (money rules 8 and 11).

Pure: raises Garbled where an answer contradicts the request or itself. This is the scanner's hot path: a block may hold
thousands of transactions, so what is not a transfer must cost next to nothing.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection
from typing import Any

from chalicelib.chains.abi import TRANSFER_TOPIC
from chalicelib.chains.answers import Garbled, member
from chalicelib.chains.evm.columns import native_transfers, senders, token_transfers
from chalicelib.chains.evm.quantities import address, hash32, quantity
from chalicelib.domain.chain import Block, Header, Reward, Sent, Transfer
from chalicelib.domain.money import MAX_DIGITS

_log = logging.getLogger(__name__)

MOST_UNITS = 10**MAX_DIGITS - 1
"""More of a network's own coin than there can be: a node that says so lies."""
MOST_LOGGED = 2**256 - 1
"""The largest amount that a log can name (EIP-20): a token may log any. What sums can not take is set aside when it is recorded."""

_GWEI = 10**9
_TOPIC = re.compile(r"0x[0-9a-fA-F]{64}", re.ASCII)
_WORDS = re.compile(r"0x(?:[0-9a-fA-F]{2})*", re.ASCII)
_NO_HIGH_BYTES = "0x" + "0" * 24


def parse_header(answer: Any, number: int) -> Header:
    """The header in an answer to eth_getBlockByNumber, with transactions or without."""
    _check(quantity(member(answer, "number", "a block"), "a block's number") == number, "the block is not the one asked for")
    return Header(
        number=number,
        hash=hash32(answer.get("hash"), "a block's hash"),
        parent_hash=hash32(answer.get("parentHash"), "a block's parent"),
        time=quantity(answer.get("timestamp"), "a block's time") * 1000,
    )


def parse_block(answer: Any, number: int) -> Block:
    """A block of eth_getBlockByNumber with full transactions; its `transfers` are the native ones above zero."""
    header = parse_header(answer, number)
    transactions = answer.get("transactions")
    if not isinstance(transactions, list):
        raise Garbled("a block has no list of transactions")
    transfers = native_transfers(transactions, header.hash, MOST_UNITS)
    if transfers is None:
        transfers = careful_native(transactions, header.hash)
    sent = senders(transactions)
    if sent is None:
        sent = careful_senders(transactions)
    return Block(number, header.hash, header.parent_hash, header.time, transfers, sent, rewards=rewards_of(answer, number))


def rewards_of(answer: dict[str, Any], number: int) -> list[Reward]:
    """Protocol rewards of a block: the fees to its `miner`, and withdrawals of validators' stakes (EIP-4895, in gwei).

    It moves nothing here, so what a node spells otherwise than it should is left out with a warning: no scan waits for it.
    """
    rewards: list[Reward] = []
    try:
        if answer.get("miner") is not None:
            rewards.append(Reward(f"the fees of block {number}", address(answer["miner"], "a block's miner"), None))
        for row in answer.get("withdrawals") or ():
            units = quantity(row["amount"], "a withdrawal's amount") * _GWEI
            source = f"withdrawal {quantity(row['index'], 'a withdrawal')}"
            rewards.append(Reward(source, address(row["address"], "a withdrawal's address"), units))
    except (KeyError, TypeError, Garbled) as error:
        _log.warning("left out: what block %d gives without a transaction: %s", number, error)
    return rewards


def careful_senders(transactions: list[Any]) -> Sent:
    """The same, row by row: a sender in an invalid form is foreign, and an invalid nonce is none."""
    found: list[tuple[str, str, int | None]] = []
    for transaction in transactions:
        try:
            txid, sender = hash32(transaction["hash"], "a transaction's hash"), address(transaction["from"], "a sender")
        except (KeyError, TypeError, Garbled):
            continue
        try:
            nonce: int | None = quantity(transaction["nonce"], "a nonce")
        except (KeyError, Garbled):
            nonce = None
        found.append((txid, sender, nonce))
    return Sent(*zip(*found, strict=True)) if found else Sent()


def careful_native(transactions: list[Any], block_hash: str) -> list[Transfer]:
    """The value transfers above zero among a block's transactions, row by row."""
    transfers = []
    for transaction in transactions:
        try:
            value = transaction["value"]
            if value == "0x0" or (recipient := transaction["to"]) is None:
                continue
            sender, txid = transaction["from"], transaction["hash"]
        except (KeyError, TypeError):
            raise Garbled("a block's transaction lacks a field, or is only a hash") from None
        if amount := quantity(value, "a transaction's value"):
            _check(amount <= MOST_UNITS, "a transaction moves more than there is")
            _check(transaction.get("blockHash", block_hash) == block_hash, "a transaction says that it is in another block")
            transfers.append(
                Transfer(
                    hash32(txid, "a transaction's hash"),
                    "native",
                    None,
                    address(sender, "a sender"),
                    address(recipient, "a recipient"),
                    amount,
                )
            )
    return transfers


def parse_logs(answer: Any, block: Block, contracts: Collection[str]) -> list[Transfer]:
    """The transfers above zero in an answer to eth_getLogs by the block's hash for `contracts` and the Transfer topic."""
    if not isinstance(answer, list):
        raise Garbled("the logs are no list")
    transfers = token_transfers(answer, block.hash, contracts, MOST_LOGGED)
    return careful_tokens(answer, block, contracts) if transfers is None else transfers


def careful_tokens(answer: list[Any], block: Block, contracts: Collection[str]) -> list[Transfer]:
    """The same, row by row: a log that is not EIP-20's or can not be stored is left out with a warning, a wrong one raises."""
    transfers: list[Transfer] = []
    seen: set[int] = set()
    for log in answer:
        try:
            _check(log["blockHash"] == block.hash, "a log is of another block")
            _check(not log.get("removed"), "a log was removed")
            contract = log["address"].lower()
            _check(contract in contracts, "a log is of a contract that was not asked for")
            topics, data = log["topics"], log["data"]
            _check(topics[0] == TRANSFER_TOPIC, "a log has a topic that was not asked for")
            index = quantity(log["logIndex"], "a log's index")
            txid = hash32(log["transactionHash"], "a log's transaction")
        except (KeyError, TypeError, AttributeError, IndexError):
            raise Garbled("a log lacks a field") from None
        _check(index not in seen, "a log was told twice")
        seen.add(index)
        moved = transfer_of(topics, data)
        if moved is None:
            # Any contract may write such a log: EIP-721 does. It is the chain's content, not the node's fault.
            if len(topics) != 4:
                _log.warning("left out: a Transfer log that is not EIP-20's", extra={"contract": contract, "txid": txid})
        elif moved[2]:
            transfers.append(Transfer(txid, f"log:{index}", contract, *moved))
    return transfers


def transfer_of(topics: Any, data: Any) -> tuple[str, str, int] | None:
    """Sender, recipient and units of a log under the Transfer topic, None where it is not of EIP-20's shape."""
    if not isinstance(data, str) or not _WORDS.fullmatch(data):
        raise Garbled("a log's data is not hexadecimal")
    if not isinstance(topics, list) or not all(isinstance(topic, str) and _TOPIC.fullmatch(topic) for topic in topics):
        raise Garbled("a log's topics are not hexadecimal")
    if len(topics) != 3 or len(data) != 66:
        return None
    _, sender, recipient = topics
    if sender[:26] != _NO_HIGH_BYTES or recipient[:26] != _NO_HIGH_BYTES:
        return None
    return "0x" + sender[26:].lower(), "0x" + recipient[26:].lower(), int(data, 16)


def may_have_logs(bloom: Any, topic: int, contracts: Collection[int]) -> bool:
    """Whether the logs bloom of a block says that one of `contracts` may have logged under `topic` (both as bloom masks).

    A bloom has false positives and, on an honest node, no false negatives. A block without one says no.
    """
    if not isinstance(bloom, str) or len(bloom) != 514:
        return False
    bits = quantity_of_bloom(bloom)
    return bits & topic == topic and any(bits & mask == mask for mask in contracts)


def quantity_of_bloom(bloom: str) -> int:
    try:
        return int(bloom, 16)
    except ValueError:
        raise Garbled("a block's bloom is not hexadecimal") from None


def _check(right: bool, problem: str) -> None:
    if not right:
        raise Garbled(problem)
