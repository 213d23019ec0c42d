"""Parsing of a Tron node's blocks, transaction infos and logs, with checks of each (money rules 8 and 11).

Pure: raises Garbled where an answer contradicts the request or itself. This is the scanner's hot path.

A transaction moves money in three ways. `Transfer.position` says which: "native" for a TransferContract, "log:<n>" for the n-th
log of its own transaction info (from 0), "int:<n>" for the n-th internal transaction of it: TRX that a contract sent. All count
only when the transaction succeeded in both places that say so, the block (contractRet) and the info (result, receipt.result).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any

from chalicelib.chains.abi import TRANSFER_TOPIC
from chalicelib.chains.answers import Garbled, hash32
from chalicelib.chains.tron.values import SPELLED, address, addresses, row, whole
from chalicelib.domain.chain import EVERYBODY, Block, Header, Sent, Transfer

_log = logging.getLogger(__name__)

MOST_STRANGE = 50
"""Transactions of a block whose contract a node does not tell: it leaves out a kind that it does not know. Each of them is noted;
where there are more the node is of no use."""

_TOPIC = TRANSFER_TOPIC[2:]
_SPELLED = SPELLED.fullmatch
_HEX, _ZEROS = b"0123456789abcdef", "0" * 24
_WORDS = re.compile(r"(?:0{24}[0-9a-f]{40}){2}[0-9a-f]{64}", re.ASCII)
_IDS = re.compile(r"[0-9a-f]*", re.ASCII)
_NOTHING: dict[str, Any] = {}
_make = tuple.__new__
_Log = tuple[str, int, str, str, str, str]
"""Of a transfer: transaction, index, contract, and as the node writes them sender, recipient and data."""
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
    """The signed part of a block's header: number, timestamp, parentHash, witness_address."""
    return row(row(block.get("block_header"), "a block's header").get("raw_data"), "a block's header")


def block_time(block: Mapping[str, Any]) -> int:
    """A block's time in milliseconds since 1970."""
    return whole(raw_header(block).get("timestamp"), "a block's time")


def parse_header(answer: Any, number: int) -> Header:
    """The header of a block, with transactions or without."""
    if block_number(answer) != number:
        raise Garbled("the block is not the one asked for")
    header = raw_header(answer)
    return Header(number, answer["blockID"], hash32(header.get("parentHash"), "a block's parent"), block_time(answer))


def transactions_of(answer: Mapping[str, Any]) -> list[Any]:
    """The transactions of a block, none where the node leaves the list out."""
    found = answer.get("transactions", [])
    if not isinstance(found, list):
        raise Garbled("a block's transactions are no list")
    return found


def senders(transactions: list[Any]) -> Sent:
    """The sender of each transaction of a block that was asked for with addresses in base58: the owner of its only contract. A
    shielded transfer has none, and java-tron's JSON leaves out empty fields and those that it can not spell."""
    try:
        values = [transaction["raw_data"]["contract"][0]["parameter"]["value"] for transaction in transactions]
        owners = [value.get("owner_address", "") for value in values]
    except (KeyError, IndexError, TypeError, AttributeError):
        owners = [_owner(transaction) for transaction in transactions]
        if (strange := owners.count(EVERYBODY)) > MOST_STRANGE:
            raise Garbled(f"{strange} transactions of a block lack their contract") from None
        _log.error("ALARM tron: %d transactions of a block lack their contract: they are taken for anybody's", strange)
    try:
        # In lower case, as ids of ours are kept: one that is spelled otherwise would look as if it were in no block.
        return Sent(tuple(transaction["txID"].lower() for transaction in transactions), tuple(owners), (None,) * len(owners))
    except (KeyError, TypeError, AttributeError):
        raise Garbled("a transaction lacks its id") from None


def _owner(transaction: Any) -> str:
    """The owner of a transaction's only contract, EVERYBODY where the node does not tell it.

    One strange transaction must not keep a whole network from being scanned, and it must not hide one of ours either: that a block
    does not have our transaction is what pays it anew (`usecases.transactions.losses`).
    """
    found = transaction
    for step in ("raw_data", "contract", 0, "parameter", "value", "owner_address"):
        try:
            found = found[step]
        except (KeyError, IndexError, TypeError):
            return "" if step == "owner_address" and isinstance(found, dict) else EVERYBODY
    return found if isinstance(found, str) else EVERYBODY


def transfers_in(block: Block, transactions: list[Any], infos: Any, contracts: Mapping[str, str]) -> list[Transfer]:
    """What the block's transactions moved, above zero. The block was asked for with addresses in base58 ("visible"), which saves
    spelling those of TRX transfers; infos have them in hex either way. `infos`: the answer to gettransactioninfobyblocknum;
    `contracts`: the tokens that count, by their address as it stands in logs (40 hex digits). There must be one info for each
    transaction.
    """
    try:
        return _transfers_in(block, transactions, infos, contracts)
    except (KeyError, IndexError, TypeError, AttributeError):
        pass
    try:
        return _transfers_in(block, list(map(_without_strange, transactions)), infos, contracts)
    except (KeyError, IndexError, TypeError, AttributeError):
        raise Garbled("a transaction or its info lacks a field") from None


def _without_strange(transaction: Any) -> Any:
    """A transaction whose contract the node does not tell, as one of a kind that moves no TRX: java-tron leaves out what it can not
    unpack, and knows every transfer of TRX (Util.printTransactionToJSON). Its logs and internal transactions count as ever."""
    try:
        told = isinstance(transaction["raw_data"]["contract"][0]["type"], str)
    except (KeyError, IndexError, TypeError):
        told = False
    return transaction if told else {**transaction, "raw_data": {"contract": [{"type": ""}]}}


def _transfers_in(block: Block, transactions: list[Any], infos: Any, contracts: Mapping[str, str]) -> list[Transfer]:
    found: list[Transfer] = []
    inside: list[Transfer] = []
    logs: list[_Log] = []
    add, note = found.append, logs.append
    for transaction, info in zip(transactions, _paired(block, transactions, infos), strict=True):
        contract = transaction["raw_data"]["contract"][0]
        native = contract["type"] == "TransferContract"
        if not native and "log" not in info and "internal_transactions" not in info:
            continue
        if transaction["ret"][0].get("contractRet", "SUCCESS") != "SUCCESS":
            continue
        # `succeeded`, written out: calls are what this loop would cost most.
        if info.get("result", "SUCESS") != "SUCESS" or info.get("receipt", _NOTHING).get("result", "SUCCESS") != "SUCCESS":
            continue
        if native:
            value = contract["parameter"]["value"]
            add(_make(Transfer, (info["id"], "native", None, value["owner_address"], value["to_address"], value["amount"])))
            continue
        for index, log in enumerate(info.get("log", ())):
            if (token := contracts.get(log["address"])) is not None:
                topics = log.get("topics", ())
                if len(topics) == 3 and topics[0] == _TOPIC:
                    note((info["id"], index, token, topics[1], topics[2], log.get("data", "")))
        if "internal_transactions" in info:
            inside += _internal(info["id"], info)
    _check_native(found)
    found += inside
    found += _tokens(logs)
    return found


def _paired(block: Block, transactions: list[Any], infos: Any) -> list[Any]:
    """The infos in the order of the transactions, one for each."""
    if infos == {}:
        infos = []  # some versions answer so for an empty block
    if not isinstance(infos, list) or len(infos) != len(transactions):
        raise Garbled("the node has not one info for each transaction of the block")
    ids, wanted = [info["id"] for info in infos], [transaction["txID"] for transaction in transactions]
    if {info["blockNumber"] for info in infos} - {block.number}:
        raise Garbled("an info is of another block")
    if len({*ids}) != len(ids) or {*map(len, ids)} - {64} or not _IDS.fullmatch("".join(ids)):
        raise Garbled("an info is there twice, or its id is no hash")
    if ids == wanted:
        return infos
    # No document promises the order.
    by_id = dict(zip(ids, infos, strict=True))
    if {*wanted} != {*ids}:
        raise Garbled("an info of the block is missing")
    return [by_id[txid] for txid in wanted]


def succeeded(info: Mapping[str, Any]) -> bool:
    """Whether a transaction's info says that it succeeded. Only calls of contracts have receipt.result."""
    # "SUCESS" is how the protocol spells it; where it is the default, nodes leave it out.
    if info.get("result", "SUCESS") != "SUCESS":
        return False
    return bool(info.get("receipt", _NOTHING).get("result", "SUCCESS") == "SUCCESS")


def _check_native(transfers: Sequence[Transfer]) -> None:
    """Raise Garbled where a TRX transfer has no amount or no addresses, as a node tells it."""
    for _, _, _, sender, recipient, amount in transfers:
        if type(amount) is not int or not 0 < amount < 2**63:
            raise Garbled("a transfer's amount is no number")
        if not (_SPELLED(sender) and _SPELLED(recipient)):
            raise Garbled("an address is none")


def moved_by(txid: str, info: Mapping[str, Any], contracts: Mapping[str, str]) -> list[Transfer]:
    """The transfers of tokens in `contracts`, and of TRX, that a contract's call made, from the info of a successful one."""
    logs: list[_Log] = []
    for index, log in enumerate(info.get("log", ())):
        contract, topics = contracts.get(log["address"]), log.get("topics", ())
        if contract is not None and len(topics) == 3 and topics[0] == _TOPIC:
            logs.append((txid, index, contract, topics[1], topics[2], log.get("data", "")))
    return _tokens(logs) + _internal(txid, info)


def _tokens(logs: Sequence[_Log]) -> list[Transfer]:
    """The transfers above zero in logs under the Transfer topic; those that are not of TRC-20's shape are left out. All at once,
    at the speed of C, where every log is plain."""
    if not logs:
        return []
    columns = list(zip(*logs, strict=True))
    if not _plain(columns):
        logs = [log for log in logs if _WORDS.fullmatch("".join(log[3:]))]
        if not logs:
            return []
        columns = list(zip(*logs, strict=True))
    txids, indexes, contracts, senders, recipients, data = columns
    froms, tos, amounts = [s[24:] for s in senders], [r[24:] for r in recipients], list(map(int, data, repeat(16)))
    names = addresses({*froms, *tos})
    return [
        _make(Transfer, (txid, f"log:{index}", contract, names[sender], names[recipient], amount))
        for txid, index, contract, sender, recipient, amount in zip(txids, indexes, contracts, froms, tos, amounts, strict=True)
        if amount
    ]


def _plain(columns: Sequence[Sequence[Any]]) -> bool:
    """Whether all of the logs are of TRC-20's shape."""
    joined = "".join([*columns[3], *columns[4], *columns[5]])
    if {*map(len, columns[3]), *map(len, columns[4]), *map(len, columns[5])} != {64} or not joined.isascii():
        return False
    begins = {text[:24] for column in columns[3:5] for text in column}
    return begins == {_ZEROS} and not joined.encode().translate(None, _HEX)


def _internal(txid: str, info: Mapping[str, Any]) -> list[Transfer]:
    """The TRX that a contract's call sent."""
    found = []
    for index, inner in enumerate(info.get("internal_transactions", ())):
        if inner.get("rejected") or inner.get("note") not in _MOVES:
            continue
        for value in inner.get("callValueInfo", ()):
            # With a tokenId it is TRC-10's, which nobody takes here.
            if value.get("callValue") and "tokenId" not in value:
                amount = whole(value["callValue"], "an internal transfer's amount")
                sender, recipient = address(inner["caller_address"]), address(inner["transferTo_address"])
                found.append(Transfer(txid, f"int:{index}", None, sender, recipient, amount))
    return found


def tokens_moved(info: Mapping[str, Any]) -> list[tuple[tuple[str, str, str], int]]:
    """Contract, sender and recipient of every token transfer above zero that an info has a log of, and its units."""
    every = {log["address"]: address("41" + log["address"]) for log in info.get("log", ())}
    moved = moved_by(info["id"], {"log": info.get("log", ())}, every)
    return [((transfer.contract or "", transfer.sender, transfer.recipient), transfer.amount) for transfer in moved]
