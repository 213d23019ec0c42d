"""The scanner's reader of Tron. Checks every answer that it can (money rule 11). Imports no chain library."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, TypeVar

from chalicelib.chains.answers import Garbled, hash32
from chalicelib.chains.held import MOST_ROWS, rows_in
from chalicelib.chains.rpc import RpcError, TooMuch
from chalicelib.chains.tron.balances import balance_of, balances_of, staked_by
from chalicelib.chains.tron.calls import Node
from chalicelib.chains.tron.parsing import (
    block_number,
    moved_by,
    parse_header,
    senders,
    succeeded,
    tokens_moved,
    transactions_of,
    transfers_in,
)
from chalicelib.chains.tron.transactions import native_transfers
from chalicelib.chains.tron.values import data, hex_address, row, whole
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Block, Header, Receipt, Transfer, linked
from chalicelib.domain.recovery.addresses import Usage
from chalicelib.usecases.ports.failures import Contradiction, Unavailable

T = TypeVar("T")

_log = logging.getLogger(__name__)

MAINNET = "00000000000000001ebf88508a03865c71d452e25f4d51194196a1d22b6653dc"
"""Id of the main network's genesis block (tronscan.org, block 0). Its last four bytes are the chain id of the JSON-RPC."""
_BLOCKS_AT_ONCE = 10
"""A block of the main network with its transactions is about 0.3 MB. Nodes give at most 100 in one answer."""
_PROOFS_AT_ONCE = 50
_HEAD = {"detail": False}


class TronReader:
    """Implements `usecases.ports.readers.ChainReader`. Whatever is the node's fault raises Unavailable.

    `genesis` is the id of the block 0 that the chain must have; None takes any (a chain of the developer's own).
    """

    def __init__(self, network: Network, node: Node, genesis: str | None = MAINNET) -> None:
        self._network, self._node, self._genesis = network, node, genesis
        self._at_once = _BLOCKS_AT_ONCE

    def tip(self) -> int:
        """Number of the newest block."""
        return self._sure(lambda: block_number(self._node.call("wallet/getblock", _HEAD)))

    def block_hash(self, number: int) -> str | None:
        """Id of the canonical block of that number, None when there is none."""
        return self._sure(lambda: self._hash_in(self._node.call("wallet/getblock", header_of(number)), number))

    def blocks(self, first: int, last: int, contracts: Collection[str]) -> list[Block]:
        """Blocks `first` to `last` in order, fewer when the chain ends before, with TRX transfers and those of `contracts`.

        The genesis block is asked for every time: a URL may come to mean another chain. Fewer blocks, too, where more would not
        fit into memory.
        """
        wanted = {hex_address(contract)[2:]: contract for contract in contracts}
        return self._sure(lambda: self._blocks(first, last, wanted)) if first <= last else []

    def headers(self, first: int, last: int) -> list[Header]:
        """Headers `first` to `last` in order, fewer when the chain ends before. No transaction is read."""
        return self._sure(lambda: self._headers(first, last)) if first <= last else []

    def proven(self, block: Block, transfers: Sequence[Transfer]) -> list[Transfer]:
        """Those of `transfers` that happened in `block` (money rule 8): the info of that very transaction in that very block says
        success and has the log; of a TRX transfer, bytes whose hash is the id say it.

        What is missing or of another block raises Unavailable: the chain has moved or the node lags, and the scanner will see.
        """
        return self._sure(lambda: self._proven(block, transfers)) if transfers else []

    def receipt(self, txid: str) -> Receipt | None:
        """The receipt of a transaction, None while it is in no block. `fee` in sun: the burnt TRX, 0 where resources paid."""
        return self._sure(lambda: self._receipt(txid))

    def balance(self, address: str, contract: str | None = None) -> int:
        """Units that `address` holds at the newest block, of TRX (not what is staked) or of the token `contract`."""
        return self._sure(lambda: balance_of(self._node, address, contract))

    def usage(self, addresses: Sequence[str], contracts: Collection[str]) -> list[Usage]:
        """The use of each address by the newest block: for a restore. Raises Unavailable."""
        from chalicelib.chains.tron.usage import usage  # asked for by a restore alone

        return self._sure(lambda: usage(self._node, addresses, contracts))

    def solid(self) -> int:
        """Number of the newest block that can not be undone. Balances of `wallet/` count what waits for a block; these do not."""
        return self._sure(lambda: block_number(self._node.call("walletsolidity/getblock", _HEAD)))

    def solid_balance(self, address: str, contract: str | None = None) -> int:
        """As `balance`, at the newest solid block."""
        return self._sure(lambda: balance_of(self._node, address, contract, "walletsolidity"))

    def solid_balances(self, addresses: Sequence[str], contract: str | None = None) -> list[int] | None:
        """As `solid_balance` of each, in one request; None where the node can not tell so many at once."""
        return self._sure(lambda: balances_of(self._node, addresses, contract))

    def staked(self, address: str) -> int:
        """Sun that are staked at the newest solid block (Stake 2.0), not counting what is being unstaked."""
        return self._sure(lambda: staked_by(self._node, address))

    def has_code(self, address: str) -> bool:
        """Whether a contract lies at the address: java-tron answers {} for any other address."""
        asked = {"value": hex_address(address), "visible": False}
        return self._sure(lambda: bool(row(self._node.call("wallet/getcontract", asked), "a contract").get("bytecode")))

    def _blocks(self, first: int, last: int, contracts: Mapping[str, str]) -> list[Block]:
        self._check_chain(self._node.call("wallet/getblock", header_of(0)))
        blocks: list[Block] = []
        held = 0
        while first + len(blocks) <= last and held <= MOST_ROWS:
            start = first + len(blocks)
            end = min(last + 1, start + self._at_once)
            try:
                part = self._part(range(start, end), contracts)
            except TooMuch:
                if end - start == 1:
                    raise
                self._at_once = (end - start) // 2
                continue
            self._at_once = min(_BLOCKS_AT_ONCE, 2 * self._at_once)
            blocks += part
            held += sum(map(rows_in, part))
            if not linked(blocks):
                raise Garbled("the blocks are of two branches")
            if len(part) < end - start:
                break
        return blocks

    def _part(self, numbers: range, contracts: Mapping[str, str]) -> list[Block]:
        """The blocks of these numbers, fewer where the chain ends before."""
        asked = {"startNum": numbers.start, "endNum": numbers.stop, "visible": True}
        there = sorted(_listed(self._node.call("wallet/getblockbylimitnext", asked)), key=block_number)
        if len(there) > len(numbers):
            raise Garbled("the node tells more blocks than were asked for")
        headers = [parse_header(answer, number) for answer, number in zip(there, numbers, strict=False)]
        blocks = [
            Block(header.number, header.hash, header.parent_hash, header.time, sent=senders(transactions_of(answer)))
            for header, answer in zip(headers, there, strict=True)
        ]
        if not linked(blocks):
            raise Garbled("the blocks are of two branches")
        # The genesis block's transfers have no infos: they are nobody's payments.
        full = [(block, transactions_of(answer)) for block, answer in zip(blocks, there, strict=True) if block.number]
        infos = self._node.batch([("wallet/gettransactioninfobyblocknum", {"num": block.number}) for block, _ in full])
        for (block, transactions), found in zip(full, infos, strict=True):
            block.transfers.extend(transfers_in(block, transactions, found, contracts))
        return blocks

    def _headers(self, first: int, last: int) -> list[Header]:
        genesis, *answers = self._node.batch([("wallet/getblock", header_of(number)) for number in (0, *range(first, last + 1))])
        self._check_chain(genesis)
        there = [answer for answer in answers if row(answer, "a block")]
        if answers[: len(there)] != there:
            raise Garbled("the node knows a block and not the one before it")
        headers = [parse_header(answer, number) for number, answer in enumerate(there, first)]
        if not linked(headers):
            raise Garbled("the headers are of two branches")
        return headers

    def _check_chain(self, genesis: Any) -> None:
        if self._genesis is not None and self._hash_in(genesis, 0) != self._genesis:
            raise Garbled("the node is on another chain")

    def _proven(self, block: Block, transfers: Sequence[Transfer]) -> list[Transfer]:
        of_one: dict[str, list[Transfer]] = {}
        for transfer in transfers:
            of_one.setdefault(transfer.txid, []).append(transfer)
        happened: set[Transfer] = set()
        for txid, info, transaction in self._proofs(of_one):
            happened.update(transfer for transfer in of_one[txid] if self._happened(transfer, block, info, transaction))
        # After the infos: what they say was so in a chain that still has this block.
        if self._hash_in(self._node.call("wallet/getblock", header_of(block.number)), block.number) != block.hash:
            raise Garbled("the block fell out of the chain while it was read")
        return [transfer for transfer in transfers if transfer in happened]

    def _proofs(self, of_one: Mapping[str, Sequence[Transfer]]) -> Iterator[tuple[str, Any, Any]]:
        """Each transaction's id and info, and of those with a TRX transfer the transaction: some at a time, and one by one where
        some do not fit. One may have as many logs as its energy pays for."""
        txids = list(of_one)
        plain = {txid for txid in txids if any(transfer.position == "native" for transfer in of_one[txid])}
        for start in range(0, len(txids), _PROOFS_AT_ONCE):
            some = txids[start : start + _PROOFS_AT_ONCE]
            requests = [request for txid in some for request in _proof_of(txid, txid in plain)]
            try:
                answers: Iterator[Any] = iter(self._node.batch(requests))
            except TooMuch:
                answers = (self._node.call(*request) for request in requests)
            for txid in some:
                yield txid, next(answers), next(answers) if txid in plain else None

    def _receipt(self, txid: str) -> Receipt | None:
        info = row(self._node.call("wallet/gettransactioninfobyid", {"value": txid}), "an info")
        if not info:
            return None
        if info.get("id") != txid:
            raise Garbled("an info is of another transaction")
        number = whole(info.get("blockNumber"), "an info's block")
        block_hash = self._hash_in(self._node.call("wallet/getblock", header_of(number)), number)
        if block_hash is None:
            raise Garbled("a transaction is in a block that the node does not have")
        success = succeeded(info)
        moved = _moved(info) if success else []
        return Receipt(
            txid=txid,
            success=success,
            block_number=number,
            block_hash=block_hash,
            fee=whole(info.get("fee"), "a fee"),
            moved=tuple(who for who, _ in moved),
            amounts=tuple(units for _, units in moved),
        )

    def _happened(self, transfer: Transfer, block: Block, info: Any, transaction: Any) -> bool:
        """Raises Contradiction, with an alarm, where what was told of a block is not what its transaction did."""
        if not _succeeded_in(transfer, block, info):
            return False
        moved = _moved_so(transfer, info, transaction)
        if moved is False:
            _log.error("ALARM %s: %s in block %d did not do what the block tells", self._network.slug, transfer.txid, block.number)
            raise Contradiction(f"{self._network.slug}: a transaction is not what its block tells")
        return bool(moved)

    def _hash_in(self, answer: Any, number: int) -> str | None:
        if not row(answer, "a block"):
            return None
        if block_number(answer) != number:
            raise Garbled("the block is not the one asked for")
        return hash32(answer["blockID"], "a block's id")

    def _sure(self, ask: Callable[[], T]) -> T:
        """Run `ask`; what the node refuses or garbles is, for a reader, as good as no answer."""
        try:
            return ask()
        except (RpcError, Garbled) as error:
            raise Unavailable(f"{self._network.slug}: {error}") from error


def _proof_of(txid: str, plain: bool) -> list[tuple[str, Any]]:
    info: tuple[str, Any] = ("wallet/gettransactioninfobyid", {"value": txid})
    return [info, ("wallet/gettransactionbyid", {"value": txid})] if plain else [info]


def header_of(number: int) -> dict[str, Any]:
    """The request for a block without its transactions."""
    return {"id_or_num": str(number), "detail": False}


def _listed(answer: Any) -> list[dict[str, Any]]:
    found = row(answer, "a list of blocks").get("block", [])
    if not isinstance(found, list):
        raise Garbled("the blocks are no list")
    return [row(block, "a block") for block in found]


def _moved(info: Mapping[str, Any]) -> list[tuple[tuple[str, str, str], int]]:
    """Contract, sender and recipient of every token transfer that an info has a log of, and its units."""
    try:
        return tokens_moved(info)
    except (KeyError, TypeError, AttributeError):
        raise Garbled("a log lacks a field") from None


def _succeeded_in(transfer: Transfer, block: Block, info: Any) -> bool:
    """Whether an info says that the transaction of `transfer` succeeded. Raises Garbled where it is another's."""
    if not row(info, "an info") or info.get("id") != transfer.txid:
        raise Garbled("the node has no info of a transaction of a block that it told")
    if (info.get("blockNumber"), info.get("blockTimeStamp")) != (block.number, block.time):
        raise Garbled("an info is of another block")
    return succeeded(info)


def _moved_so(transfer: Transfer, info: Any, transaction: Any) -> bool | None:
    """Whether an info of success, and for a TRX transfer the transaction, prove `transfer`. None where its bytes are unreadable."""
    if transfer.position != "native":
        contracts = {} if transfer.contract is None else {hex_address(transfer.contract)[2:]: transfer.contract}
        try:
            return transfer in moved_by(transfer.txid, info, contracts)
        except (KeyError, TypeError, AttributeError):
            raise Garbled("an info lacks a field") from None
    raw = data(row(transaction, "a transaction").get("raw_data_hex"), "a transaction's bytes")
    if sha256(raw).hexdigest() != transfer.txid:
        raise Garbled("a transaction's bytes are not those of its id")
    try:
        return (transfer.sender, transfer.recipient, transfer.amount) in native_transfers(raw)
    except ValueError as error:
        # These are the true bytes, so no other node says otherwise; and no stranger's odd bytes may stop the scanner.
        _log.error("ALARM %s can not be read, and is left out: %s", transfer.txid, error)
        return None
