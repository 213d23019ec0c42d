"""Transfer logs of blocks: asked by block hash, split where the node refuses, and compared with the receipts.

A node may refuse to answer (too many results), answer too early (geth #26098, #18198: no logs at the head), or leave logs out. The
first is met with smaller questions, the second by the block's bloom, the third by looking at the block's receipts now and then.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from typing import Any

from chalicelib.chains.abi import TRANSFER_TOPIC, bloom_mask
from chalicelib.chains.answers import Garbled, member
from chalicelib.chains.evm.parsing import may_have_logs, parse_logs
from chalicelib.chains.evm.quantities import hash32, quantity
from chalicelib.chains.evm.receipts import receipts_of
from chalicelib.chains.held import MOST_ROWS, rows_in
from chalicelib.chains.rpc import Request, RpcError, TooMuch, TooMuchTogether, Transport, rows_of
from chalicelib.domain.chain import Block, Transfer

log = logging.getLogger(__name__)

AUDITED = 1 / 128
"""The part of the blocks with logs of ours whose receipts are read, too: a block of Ethereum has about a megabyte of them."""
MOST_BLOCKS = 50
"""Blocks whose logs are asked for at once, where their answers fit; else half of them, and twice as many the next time."""


class LogReader:
    """`draw` gives numbers from 0 to 1: which blocks are compared with their receipts."""

    def __init__(self, slug: str, rpc: Transport, audited: float = AUDITED, draw: Callable[[], float] = random.random) -> None:
        self._slug, self._rpc, self._audited, self._draw = slug, rpc, audited, draw
        self._masks: dict[str, int] = {}
        self._no_receipts = False
        self._at_once = MOST_BLOCKS

    def add(self, blocks: Sequence[Block], blooms: Sequence[Any], contracts: frozenset[str], room: int = MOST_ROWS) -> int:
        """Put the token transfers of `contracts` into `blocks`, whose logs blooms are `blooms`, until these have more rows than
        `room`. Returns how many of the blocks, from the first on, have theirs.

        Raises RpcError, Unavailable, Garbled; that also where the logs are not those of the node's receipts: some are left out.
        """
        topic, masks = self._mask(TRANSFER_TOPIC), [self._mask(contract) for contract in contracts]
        done, alone = 0, False
        while done < len(blocks) and room >= 0:
            some = blocks[done : done + (1 if alone else self._at_once)]
            may = [may_have_logs(bloom, topic, masks) for bloom in blooms[done : done + len(some)]]
            try:
                found = [self._of_one(some[0], may[0], contracts)] if alone else self._together(some, may, contracts)
            except (RpcError, TooMuch) as error:
                if alone:
                    raise
                log.info("%s: the logs of %d blocks are refused at once: %s", self._slug, len(some), error)
                alone = len(some) == 1 or not isinstance(error, TooMuchTogether)
                self._at_once = max(1, len(some) // 2)
                continue
            for block, maybe, transfers in zip(some, may, found, strict=True):
                if maybe and self._draw() < self._audited:
                    self._audit(block, contracts, transfers)
                block.transfers.extend(transfers)
                room -= rows_in(block)
                done += 1
                if room < 0:
                    break
        self._at_once = min(MOST_BLOCKS, 2 * self._at_once)
        return done

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
            receipts = self._one_by_one(txids)
        # Some chains have receipts besides, of what the protocol itself did.
        if not {*txids} <= {member(receipt, "transactionHash", "a receipt") for receipt in receipts}:
            raise Garbled("the receipts are not those of the block's transactions")
        return self._compared(block, contracts, self._of_one(block, False, contracts), receipts)

    def _one_by_one(self, txids: Sequence[Any]) -> list[Any]:
        return [receipt for _, receipt, _ in receipts_of(self._rpc, txids)]

    def _together(self, blocks: Sequence[Block], may: Sequence[bool], contracts: frozenset[str]) -> list[list[Transfer]]:
        """The transfers in each of some blocks. `may` says where there may be logs of ours."""
        logs = self._rpc.batch([_logs_of(block, contracts) for block in blocks])
        doubtful = [n for n in range(len(blocks)) if logs[n] == [] and may[n]]
        for n, found in zip(doubtful, self._asked_again([blocks[n] for n in doubtful], contracts), strict=True):
            logs[n] = found
        return [parse_logs(answer, block, contracts) for answer, block in zip(logs, blocks, strict=True)]

    def _of_one(self, block: Block, may: bool, contracts: frozenset[str]) -> list[Transfer]:
        """The transfers in a block: of its logs, else of its receipts, else of half the contracts each time, else of each receipt.

        Logs are read some at a time. Gas pays for as many as fit into no function at once.
        """
        told = 0

        def thin(rows: list[Any]) -> list[Transfer]:
            nonlocal told
            told += len(rows)
            return parse_logs(rows, block, contracts)

        try:
            found: Any = rows_of(self._rpc, *_logs_of(block, contracts), thin)
        except (RpcError, TooMuch) as error:
            receipts = self._receipts(block)
            if receipts is not None:
                return parse_logs(_transfer_logs(receipts, block, contracts), block, contracts)
            if len(contracts) > 1:
                some = sorted(contracts)
                halves = some[: len(some) // 2], some[len(some) // 2 :]
                return [transfer for half in halves for transfer in self._of_one(block, may, frozenset(half))]
            if not isinstance(error, TooMuch):
                raise
            each = self._one_by_one(block.sent.txids)
            return parse_logs(_transfer_logs(each, block, contracts), block, contracts)
        if not isinstance(found, list):
            raise Garbled("the logs are no list")
        if len({transfer.position for transfer in found}) != len(found):
            raise Garbled("a log was told twice")
        if not told and may:
            (again,) = self._asked_again([block], contracts)
            return parse_logs(again, block, contracts)
        return found

    def _asked_again(self, blocks: Sequence[Block], contracts: frozenset[str]) -> list[Any]:
        """The logs of blocks for which the node answered none although the bloom says that there may be some: the bloom has false
        positives, so once more, and whether the block still stands (some answer so for a block that fell out of the chain)."""
        if not blocks:
            return []
        requests = [_logs_of(block, contracts) for block in blocks]
        requests += [("eth_getBlockByNumber", [hex(block.number), False]) for block in blocks]
        second = self._rpc.batch(requests)
        for block, header in zip(blocks, second[len(blocks) :], strict=True):
            if hash_in(header, block.number) != block.hash:
                raise Garbled("a block fell out of the chain while it was read")
        return second[: len(blocks)]

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
