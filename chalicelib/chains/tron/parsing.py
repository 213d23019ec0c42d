"""Blocks, transaction infos and logs of a Tron node, turned into ours, and distrusted on the way (money rules 8 and 11).

Pure: raises Garbled where an answer contradicts the request or itself. This is the scanner's hot path.

A transaction moves money in three ways. `Transfer.position` says which: "native" for a TransferContract, "log:<n>" for the n-th
log of its own transaction info (from 0), "int:<n>" for the n-th internal transaction of it: TRX that a contract sent. All count
only when the transaction succeeded in both places that say so, the block (contractRet) and the info (result, receipt.result).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from chalicelib.chains.evm.abi import TRANSFER_TOPIC
from chalicelib.chains.tron.values import Garbled, address, hash32, row, whole
from chalicelib.domain.chain import Block, Transfer
from chalicelib.domain.money import MAX_DIGITS

_log = logging.getLogger(__name__)

MOST_UNITS = 10**MAX_DIGITS - 1
"""The largest amount that can be stored. No coin has so many units: such a log is a contract's nonsense."""

_TOPIC = TRANSFER_TOPIC[2:]
_WORD = re.compile(r"[0-9a-f]{64}", re.ASCII)
_NO_HIGH_BYTES = "0" * 24
_MOVES = frozenset({b"call".hex(), b"suicide".hex()})
"""Notes of internal transactions that give TRX to another account. Others carry an amount as well: what a contract freezes,
delegates or creates is nobody's deposit (java-tron, Program.java: addInternalTx)."""


def block_number(header: Any) -> int:
    """The number in a block's header, whose first digits of the id must say the same."""
    found = row(header, "a block")
    number = whole(raw_header(found).get("number"), "a block's number")
    if int(hash32(found.get("blockID"), "a block's id")[:16], 16) != number:
        raise Garbled("a block's id is of another number")
    return number


def raw_header(block: Mapping[str, Any]) -> dict[str, Any]:
    """What a block's producer has signed: number, timestamp, parentHash, witness_address."""
    return row(row(block.get("block_header"), "a block's header").get("raw_data"), "a block's header")


def block_time(block: Mapping[str, Any]) -> int:
    """A block's time in milliseconds since 1970."""
    return whole(raw_header(block).get("timestamp"), "a block's time")


def parse_header(answer: Any, number: int) -> Block:
    """A block without its transfers."""
    if block_number(answer) != number:
        raise Garbled("the block is not the one asked for")
    header = raw_header(answer)
    return Block(number, answer["blockID"], hash32(header.get("parentHash"), "a block's parent"), block_time(answer))


def transactions_of(answer: Mapping[str, Any]) -> list[Any]:
    """The transactions of a block, none where the node leaves the list out."""
    found = answer.get("transactions", [])
    if not isinstance(found, list):
        raise Garbled("a block's transactions are no list")
    return found


def transfers_in(block: Block, transactions: list[Any], infos: Any, contracts: Mapping[str, str]) -> list[Transfer]:
    """What the block's transactions moved, above zero. `infos`: the answer to gettransactioninfobyblocknum; `contracts`: the
    tokens that count, by their address as it stands in logs (40 hex digits). There must be one info for each transaction.
    """
    if infos == {}:
        infos = []  # some versions answer so for an empty block
    if not isinstance(infos, list) or len(infos) != len(transactions):
        raise Garbled("the node has not one info for each transaction of the block")
    found: list[Transfer] = []
    try:
        by_id = {info["id"]: info for info in infos}
        for transaction in transactions:
            txid = transaction["txID"]
            info = by_id.pop(txid, None)
            if info is None:
                raise Garbled("an info of the block is missing, or there twice")
            if info.get("blockNumber", 0) != block.number:
                raise Garbled("an info is of another block")
            contract = transaction["raw_data"]["contract"][0]
            if contract["type"] == "TransferContract":
                if _in_block(transaction) and succeeded(info):
                    found.append(_native(txid, contract["parameter"]["value"]))
            elif ("log" in info or "internal_transactions" in info) and _in_block(transaction) and succeeded(info):
                found += moved_by(txid, info, contracts)
    except (KeyError, IndexError, TypeError, AttributeError):
        raise Garbled("a transaction or its info lacks a field") from None
    return found


def _in_block(transaction: Mapping[str, Any]) -> bool:
    return bool(transaction["ret"][0].get("contractRet", "SUCCESS") == "SUCCESS")


def succeeded(info: Mapping[str, Any]) -> bool:
    """Whether a transaction's info says that it succeeded. Only calls of contracts have receipt.result."""
    # "SUCESS" is how the protocol spells it; where it is the default, nodes leave it out.
    receipt = info.get("receipt", {}).get("result", "SUCCESS")
    return bool(info.get("result", "SUCESS") == "SUCESS" and receipt == "SUCCESS")


def _native(txid: str, value: Mapping[str, Any]) -> Transfer:
    amount = value["amount"]
    if type(amount) is not int or not 0 < amount < 2**63:
        raise Garbled("a transfer's amount is no number")
    sender, recipient = address(value["owner_address"]), address(value["to_address"])
    return Transfer(hash32(txid, "a transaction's id"), "native", None, sender, recipient, amount)


def moved_by(txid: str, info: Mapping[str, Any], contracts: Mapping[str, str]) -> list[Transfer]:
    """The transfers of tokens in `contracts`, and of TRX, that a contract's call made, from the info of a successful one."""
    found: list[Transfer] = []
    for index, log in enumerate(info.get("log", ())):
        contract = contracts.get(log["address"])
        if contract is not None and (moved := transfer_of(log)) is not None:
            if moved[2] > MOST_UNITS:
                _log.warning("left out: a Transfer log with an impossible amount", extra={"contract": contract, "txid": txid})
            elif moved[2]:
                found.append(Transfer(hash32(txid, "a transaction's id"), f"log:{index}", contract, *moved))
    for index, inner in enumerate(info.get("internal_transactions", ())):
        if inner.get("rejected") or inner.get("note") not in _MOVES:
            continue
        for value in inner.get("callValueInfo", ()):
            # With a tokenId it is TRC-10's, which nobody takes here.
            if value.get("callValue") and "tokenId" not in value:
                amount = whole(value["callValue"], "an internal transfer's amount")
                sender, recipient = address(inner["caller_address"]), address(inner["transferTo_address"])
                found.append(Transfer(hash32(txid, "a transaction's id"), f"int:{index}", None, sender, recipient, amount))
    return found


def transfer_of(log: Mapping[str, Any]) -> tuple[str, str, int] | None:
    """Sender, recipient and units of a log, None where it is no transfer of TRC-20's shape."""
    topics, amount = log.get("topics", ()), log.get("data", "")
    if len(topics) != 3 or topics[0] != _TOPIC:
        return None
    _, sender, recipient = topics
    if not (_WORD.fullmatch(amount) and _WORD.fullmatch(sender) and _WORD.fullmatch(recipient)):
        return None
    if sender[:24] != _NO_HIGH_BYTES or recipient[:24] != _NO_HIGH_BYTES:
        return None
    return address("41" + sender[24:]), address("41" + recipient[24:]), int(amount, 16)
