"""Receipts: read in small groups, since one may have as many logs as a block has gas for; and the proof of a transfer by them."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from chalicelib.chains.abi import TRANSFER_TOPIC
from chalicelib.chains.answers import Garbled, member
from chalicelib.chains.evm.parsing import transfer_of
from chalicelib.chains.evm.quantities import Contradicted, address, hash32, quantity
from chalicelib.chains.rows import Thin
from chalicelib.chains.rpc import Request, TooMuch, Transport, rows_of
from chalicelib.domain.chain import Block, Receipt, Transfer

log = logging.getLogger(__name__)

AT_ONCE = 50
"""Receipts asked for in one batch."""


def receipts_of(rpc: Transport, txids: Sequence[str], also: Collection[str] = ()) -> Iterator[tuple[str, Any, Any]]:
    """Each transaction's id and receipt; its body, too, of those in `also`, else None. None where the node has none.

    Where some are too large together, each is read by itself, and its logs without what nobody needs of them: of those that are no
    transfers contract, first topic and number stay. Raises RpcError, Unavailable, Garbled.
    """
    for start in range(0, len(txids), AT_ONCE):
        some = txids[start : start + AT_ONCE]
        bodies = [txid for txid in some if txid in also]
        requests: list[Request] = [("eth_getTransactionReceipt", [txid]) for txid in some]
        requests += [("eth_getTransactionByHash", [txid]) for txid in bodies]
        try:
            told = rpc.batch(requests)
        except TooMuch:
            for txid in some:
                receipt = rows_of(rpc, "eth_getTransactionReceipt", [txid], _thin(), "logs")
                yield txid, receipt, rpc.call("eth_getTransactionByHash", [txid]) if txid in also else None
        else:
            body_of = dict(zip(bodies, told[len(some) :], strict=True))
            for txid, receipt in zip(some, told, strict=False):
                yield txid, receipt, body_of.get(txid)


def _thin() -> Thin:
    same: dict[Any, Any] = {}

    def thin(logs: list[Any]) -> list[Any]:
        kept = []
        try:
            for log in logs:
                topics = log["topics"]
                if topics and topics[0] == TRANSFER_TOPIC:
                    kept.append(log)
                    continue
                address, first = log["address"], topics[0] if topics else None
                few = same.setdefault(first, topics[:1])
                kept.append({"address": same.setdefault(address, address), "topics": few, "logIndex": log["logIndex"]})
        except (KeyError, TypeError, IndexError):
            raise Garbled("a receipt's log lacks a field") from None
        return kept

    return thin


def receipt_of(rpc: Transport, txid: str) -> Receipt | None:
    """The receipt of a transaction that is in a block, its fee in wei; None where the node has none. Raises RpcError, Garbled,
    Unavailable.
    """
    answer = rpc.call("eth_getTransactionReceipt", [txid])
    # Some nodes know a receipt of a transaction that is not in a block yet.
    if answer is None or member(answer, "blockNumber", "a receipt") is None:
        return None
    if hash32(answer.get("transactionHash"), "a receipt's transaction") != txid.lower():
        raise Garbled("a receipt is of another transaction")
    price = answer.get("effectiveGasPrice")
    if price is None:
        transaction = rpc.call("eth_getTransactionByHash", [txid])
        price = member(transaction, "gasPrice", "a transaction")
    fee = quantity(answer.get("gasUsed"), "the gas used") * quantity(price, "the gas price")
    if answer.get("l1Fee") is not None:
        fee += quantity(answer["l1Fee"], "the fee of the parent chain")
    moved = moved_tokens(answer.get("logs"))
    return Receipt(
        txid=txid,
        success=quantity(answer.get("status"), "a receipt's status") == 1,
        block_number=quantity(answer["blockNumber"], "a receipt's block"),
        block_hash=hash32(answer.get("blockHash"), "a receipt's block"),
        fee=fee,
        moved=tuple(who for who, _ in moved),
        amounts=tuple(units for _, units in moved),
    )


def happened(network: str, transfer: Transfer, receipt: Any, block: Block) -> bool:
    """Whether `receipt` proves `transfer`: that very block, and status 1. What a node can not say of the same block unless it is
    wrong is an alarm.

    Raises Garbled where the receipt is of another transaction or another block: then nothing is known of this one; Contradicted
    where a token's log is not in it as it was told.
    """
    try:
        there = _happened(transfer, receipt, block)
    except Contradicted as error:
        log.error("ALARM %s: the receipt of %s in block %d contradicts its logs: %s", network, transfer.txid, block.number, error)
        raise
    if not there and transfer.contract is not None:
        log.error("ALARM %s: %s in block %d has a log and is said to have failed", network, transfer.txid, block.number)
    return there


def _happened(transfer: Transfer, receipt: Any, block: Block) -> bool:
    """A receipt of the same block has the same logs, so one of the two is wrong where they differ."""
    check_receipt(receipt, transfer.txid, block)
    if quantity(receipt.get("status"), "a receipt's status") != 1:
        return False
    if transfer.contract is None:
        return True
    logs = receipt.get("logs")
    if not isinstance(logs, list):
        raise Garbled("a receipt has no list of logs")
    for row in logs:
        try:
            if f"log:{int(row['logIndex'], 16)}" == transfer.position:
                topics = row["topics"]
                same = row["address"].lower() == transfer.contract and topics[0] == TRANSFER_TOPIC
                if not same or transfer_of(topics, row["data"]) != (transfer.sender, transfer.recipient, transfer.amount):
                    raise Contradicted("a receipt has another log in the place of one that was told")
                return True
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            raise Garbled("a receipt's log lacks a field") from None
    raise Contradicted("a receipt lacks a log that was told")


def check_receipt(receipt: Any, txid: str, block: Block) -> None:
    """Raise Garbled unless `receipt` is of that very transaction in that very block."""
    _check(member(receipt, "transactionHash", "a receipt") == txid, "a receipt is of another transaction")
    _check(receipt.get("blockHash") == block.hash, "a receipt is of another block")


def first_log(receipt: Any) -> int:
    """The number in the block of a transaction's first log, by its receipt. Raises Garbled where one between others is missing."""
    logs = member(receipt, "logs", "a receipt")
    if not isinstance(logs, list) or not logs:
        raise Garbled("a receipt has no logs")
    numbers = sorted(quantity(member(log, "logIndex", "a log"), "a log's index") for log in logs)
    _check(numbers == list(range(numbers[0], numbers[0] + len(numbers))), "the logs of a receipt do not follow one another")
    return numbers[0]


def check_native(transaction: Any, transfer: Transfer) -> None:
    """Raise Contradicted where a transaction, fetched by its hash, is not the transfer that its block had."""
    right = member(transaction or {}, "hash", "a transaction") == transfer.txid
    right = right and address(transaction.get("to"), "a recipient") == transfer.recipient
    right = right and address(transaction.get("from"), "a sender") == transfer.sender
    if not right or quantity(transaction.get("value"), "a value") != transfer.amount:
        raise Contradicted("a transaction is not what its block tells")


def moved_tokens(logs: Any) -> list[tuple[tuple[str, str, str], int]]:
    """Contract, sender and recipient of every ERC-20 transfer above zero in a receipt's logs, and its units."""
    if not isinstance(logs, list):
        raise Garbled("a receipt has no list of logs")
    moved = []
    for row in logs:
        try:
            topics, contract, data = row["topics"], row["address"].lower(), row["data"]
        except (KeyError, TypeError, AttributeError):
            raise Garbled("a receipt's log lacks a field") from None
        if topics and topics[0] == TRANSFER_TOPIC:
            found = transfer_of(topics, data)
            if found is not None and found[2] > 0:
                moved.append(((contract, found[0], found[1]), found[2]))
    return moved


def _check(right: bool, problem: str) -> None:
    if not right:
        raise Garbled(problem)
