"""The Transfer logs of blocks: asked by block hash, of less at once where the node refuses, and compared with the receipts.

A node may refuse to answer (too many results), answer too early (geth #26098, #18198: no logs at the head), or leave logs out. The
first is met with smaller questions, the second by the block's bloom, the third by looking at the block's receipts now and then.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from typing import Any

from chalicelib.chains.answers import Garbled, member
from chalicelib.chains.evm.abi import TRANSFER_TOPIC, bloom_mask
from chalicelib.chains.evm.parsing import may_have_logs, parse_logs
from chalicelib.chains.evm.quantities import hash32, quantity
from chalicelib.chains.rpc import Request, RpcError, TooMuch, Transport
from chalicelib.domain.chain import Block, Transfer

log = logging.getLogger(__name__)

AUDITED = 1 / 128
"""The part of the blocks with logs of ours whose receipts are read, too: a block of Ethereum has about a megabyte of them."""


class LogReader:
    """`draw` gives numbers from 0 to 1: which blocks are compared with their receipts."""

    def __init__(self, slug: str, rpc: Transport, audited: float = AUDITED, draw: Callable[[], float] = random.random) -> None:
        self._slug, self._rpc, self._audited, self._draw = slug, rpc, audited, draw
        self._masks: dict[str, int] = {}
        self._no_receipts = False

    def add(self, blocks: Sequence[Block], answers: Sequence[Any], contracts: frozenset[str]) -> None:
        """Put the token transfers of `contracts` into `blocks`, which were parsed from `answers`.

        Raises RpcError, Unavailable, Garbled; that also where the logs are not those of the node's receipts: some are left out.
        """
        logs = self._asked(blocks, contracts)
        topic, masks = self._mask(TRANSFER_TOPIC), [self._mask(contract) for contract in contracts]
        empty = [n for n in range(len(blocks)) if logs[n] == [] and may_have_logs(answers[n], topic, masks)]
        self._ask_again(empty, blocks, contracts, logs)
        for n, block in enumerate(blocks):
            transfers = parse_logs(logs[n], block, contracts)
            if self._draw() < self._audited and may_have_logs(answers[n], topic, masks):
                self._audit(block, contracts, transfers)
            block.transfers.extend(transfers)

    def audited(self, block: Block, contracts: frozenset[str]) -> list[Transfer]:
        """The transfers of `contracts` in a block by the receipts of all its transactions. Raises as `add` does; also where the
        logs say otherwise, or where a receipt is missing."""
        header = self._rpc.call("eth_getBlockByNumber", [hex(block.number), False])
        if hash_in(header, block.number) != block.hash:
            raise Garbled("the block is not in the chain")
        txids = header.get("transactions")
        if not isinstance(txids, list):
            raise Garbled("a block's transactions are no list")
        receipts = self._receipts(block)
        if receipts is None:
            receipts = [r for n in range(0, len(txids), _AT_ONCE) for r in self._one_by_one(txids[n : n + _AT_ONCE])]
        # Some chains have receipts besides, of what the protocol itself did.
        if not {*txids} <= {member(receipt, "transactionHash", "a receipt") for receipt in receipts}:
            raise Garbled("the receipts are not those of the block's transactions")
        told = parse_logs(self._of_one(block, sorted(contracts)), block, contracts)
        return self._compared(block, contracts, told, receipts)

    def _one_by_one(self, txids: Sequence[Any]) -> list[Any]:
        return self._rpc.batch([("eth_getTransactionReceipt", [txid]) for txid in txids])

    def _asked(self, blocks: Sequence[Block], contracts: frozenset[str]) -> list[Any]:
        try:
            return self._rpc.batch([_logs_of(block, contracts) for block in blocks])
        except (RpcError, TooMuch) as error:
            log.info("%s: the logs of %d blocks are refused at once: %s", self._slug, len(blocks), error)
            return [self._of_one(block, sorted(contracts)) for block in blocks]

    def _of_one(self, block: Block, contracts: list[str]) -> list[Any]:
        """The logs of one block: at once, else out of its receipts, else of half the contracts each time."""
        try:
            answer = self._rpc.call(*_logs_of(block, contracts))
        except (RpcError, TooMuch) as error:
            receipts = self._receipts(block)
            if receipts is not None:
                return _transfer_logs(receipts, block, frozenset(contracts))
            if len(contracts) == 1:
                raise error
            middle = len(contracts) // 2
            return self._of_one(block, contracts[:middle]) + self._of_one(block, contracts[middle:])
        if not isinstance(answer, list):
            raise Garbled("the logs are no list")
        return answer

    def _ask_again(self, doubtful: list[int], blocks: Sequence[Block], contracts: frozenset[str], logs: list[Any]) -> None:
        """Where the node answered no logs although the bloom says that there may be some: the bloom has false positives, so once
        more, and whether the block still stands (some answer so for a block that fell out of the chain)."""
        if not doubtful:
            return
        requests = [_logs_of(blocks[n], contracts) for n in doubtful]
        requests += [("eth_getBlockByNumber", [hex(blocks[n].number), False]) for n in doubtful]
        second = self._rpc.batch(requests)
        for n, found, header in zip(doubtful, second[: len(doubtful)], second[len(doubtful) :], strict=True):
            if hash_in(header, blocks[n].number) != blocks[n].hash:
                raise Garbled("a block fell out of the chain while it was read")
            logs[n] = found

    def _audit(self, block: Block, contracts: frozenset[str], transfers: Sequence[Transfer]) -> None:
        receipts = self._receipts(block)
        if receipts is not None:
            self._compared(block, contracts, transfers, receipts)

    def _compared(
        self, block: Block, contracts: frozenset[str], transfers: Sequence[Transfer], receipts: list[Any]
    ) -> list[Transfer]:
        there = parse_logs(_transfer_logs(receipts, block, contracts), block, contracts)
        if sorted(there) != sorted(transfers):
            log.error(
                "ALARM %s: the node tells %d transfers of block %d, and its receipts %d",
                *(self._slug, len(transfers), block.number, len(there)),
            )
            raise Garbled("a block's logs are not those of its receipts")
        return there

    def _receipts(self, block: Block) -> list[Any] | None:
        """All receipts of a block, None where the node does not give them so."""
        if self._no_receipts:
            return None
        try:
            answer = self._rpc.call("eth_getBlockReceipts", [block.hash])
        except TooMuch:
            return None
        except RpcError as error:
            log.info("%s: the node gives no receipts of blocks: %s", self._slug, error)
            self._no_receipts = error.code == _METHOD_NOT_FOUND
            return None
        if answer is None:
            raise Garbled("the node has no receipts of a block that it told")
        if not isinstance(answer, list):
            raise Garbled("a block's receipts are no list")
        return answer

    def _mask(self, value: str) -> int:
        if value not in self._masks:
            self._masks[value] = bloom_mask(value)
        return self._masks[value]


_AT_ONCE = 100
"""Receipts asked for in one batch, of a node that does not give all of a block's."""
_METHOD_NOT_FOUND = -32601


def _logs_of(block: Block, contracts: Sequence[str] | frozenset[str]) -> Request:
    return ("eth_getLogs", [{"blockHash": block.hash, "address": sorted(contracts), "topics": [TRANSFER_TOPIC]}])


def _transfer_logs(receipts: list[Any], block: Block, contracts: frozenset[str]) -> list[Any]:
    """Those logs in a block's receipts that eth_getLogs would answer."""
    found = []
    for receipt in receipts:
        if hash32(member(receipt, "blockHash", "a receipt"), "a receipt's block") != block.hash:
            raise Garbled("a receipt is of another block")
        logs = receipt.get("logs")
        if not isinstance(logs, list):
            raise Garbled("a receipt has no list of logs")
        for row in logs:
            try:
                if row["address"].lower() in contracts and row["topics"] and row["topics"][0] == TRANSFER_TOPIC:
                    found.append(row)
            except (KeyError, TypeError, AttributeError):
                raise Garbled("a receipt's log lacks a field") from None
    return found


def hash_in(answer: Any, number: int) -> str | None:
    """The hash of the block in an answer to eth_getBlockByNumber, None where there is none. Raises Garbled for another block's."""
    if answer is None:
        return None
    if quantity(member(answer, "number", "a block"), "a block's number") != number:
        raise Garbled("the block is not the one asked for")
    return hash32(answer.get("hash"), "a block's hash")
