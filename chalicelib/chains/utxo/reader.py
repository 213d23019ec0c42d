"""The scanner's reader of a UTXO network: blocks from Core's JSON-RPC, in batches. Checks every answer that it can.

The node needs a transaction index (Core: -txindex=1), because payments of ours are looked up by their ids. Imports no chain
library: the scanner's CPU goes into JSON and very little else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from chalicelib.chains.answers import Garbled, hash32, member
from chalicelib.chains.held import MOST_ROWS, rows_in
from chalicelib.chains.rpc import JsonRpc, Request, RpcError, TooMuchTogether
from chalicelib.chains.utxo.answers import number
from chalicelib.chains.utxo.facts import GENESIS
from chalicelib.chains.utxo.headers import read_header
from chalicelib.chains.utxo.parsing import outputs_by_id, parse_block
from chalicelib.chains.utxo.refusals import no_such_height, no_such_transaction
from chalicelib.chains.utxo.scripts import script_of
from chalicelib.chains.utxo.transactions import PaidTo
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Block, Header, Receipt, Transfer, linked
from chalicelib.encoding.public_keys import Chain
from chalicelib.usecases.ports.failures import Contradiction, Unavailable

T = TypeVar("T")

_AT_ONCE = 8_000_000
"""Bytes of blocks asked for at once. As JSON a block is up to fourteen times as large: where that is too much, half of them."""


class UtxoReader:
    """Implements `usecases.ports.readers.ChainReader` over one node. Whatever is the node's fault raises Unavailable."""

    def __init__(self, network: Network, rpc: JsonRpc, chain: Chain = "main") -> None:
        self._network, self._rpc, self._chain = network, rpc, chain
        self._genesis = GENESIS[network.slug, chain]

    def tip(self) -> int:
        """Number of the newest block."""
        return self._sure(lambda: number(self._rpc.call("getblockcount"), "the number of blocks"))

    def block_hash(self, number: int) -> str | None:
        """Hash of the canonical block of that number, None when there is none."""
        return self._sure(lambda: self._hash_at(number))

    def blocks(self, first: int, last: int, contracts: Collection[str]) -> list[Block]:
        """Blocks `first` to `last` in order, fewer when the chain ends before. There are no contracts here.

        A block's transfers are its outputs above zero with an address, without a sender and without those of its coinbase. The
        node's first block is asked for every time: a URL may come to mean another chain. Fewer blocks, too, where more would not
        fit into memory.
        """
        return self._sure(lambda: self._blocks(first, last)) if first <= last else []

    def headers(self, first: int, last: int) -> list[Header]:
        """Headers `first` to `last` in order, fewer when the chain ends before. No transaction is read."""
        return self._sure(lambda: self._headers(first, last)) if first <= last else []

    def proven(self, block: Block, transfers: Sequence[Transfer]) -> list[Transfer]:
        """All of `transfers`, when the block is still in the chain and each output is in the bytes of its transaction.

        The bytes are what the id is the hash of, so that amount and script are no longer the node's word. Raises Unavailable
        where anything is otherwise.
        """
        return self._sure(lambda: self._proven(block, transfers)) if transfers else []

    def receipt(self, txid: str) -> Receipt | None:
        """The receipt of a transaction, None while it is in no block. `fee` is None: the node does not tell it.

        Raises Unavailable where the node has no transaction index, too: it would not find what is in a block.
        """
        return self._sure(lambda: self._receipt(txid))

    def balance(self, address: str, contract: str | None = None) -> int:
        """Always raises Unavailable. A node of this family keeps no balances of addresses (Core's scantxoutset reads all outputs
        that there are, and takes minutes): what can be spent is known coin by coin, see `CoinPayer.unspent`."""
        raise Unavailable(f"{self._network.slug}: its nodes know outputs, no balances of addresses")

    def _hashes(self, first: int, last: int) -> dict[int, str]:
        """The hashes of these blocks by number, as far as the chain reaches."""
        tip, genesis = self._rpc.batch([("getblockcount", []), ("getblockhash", [0])])
        if genesis not in self._genesis:
            raise Garbled("the node is on another chain")
        numbers = range(first, min(last, number(tip, "the number of blocks")) + 1)
        found = self._rpc.batch([("getblockhash", [n]) for n in numbers])
        return {n: hash32(hash_, "a block's hash") for n, hash_ in zip(numbers, found, strict=True)}

    def _headers(self, first: int, last: int) -> list[Header]:
        hashes = self._hashes(first, last)
        answers = self._rpc.batch([("getblockheader", [hash_, False]) for hash_ in hashes.values()])
        headers = [read_header(answer, *asked) for answer, asked in zip(answers, hashes.items(), strict=True)]
        if not linked(headers):
            raise Garbled("the headers are of two branches")
        return headers

    def _blocks(self, first: int, last: int) -> list[Block]:
        hashes = list(self._hashes(first, last).items())
        blocks: list[Block] = []
        held, at_once, most = 0, 1, len(hashes)
        while len(blocks) < len(hashes) and held <= MOST_ROWS:
            some = hashes[len(blocks) : len(blocks) + at_once]
            try:
                part, largest = self._part(some)
            except TooMuchTogether:
                if len(some) == 1:
                    raise
                at_once = most = max(1, len(some) // 2)
                continue
            blocks += part
            held += sum(map(rows_in, part))
            # Blocks differ: no more than twice as many as last time, and not more than fit if all are like the largest.
            at_once = max(1, min(2 * at_once, most, _AT_ONCE // largest)) if largest else 1
        if not linked(blocks):
            raise Garbled("the blocks are of two branches")
        return blocks

    def _part(self, some: Sequence[tuple[int, str]]) -> tuple[list[Block], int]:
        """The blocks of these numbers and hashes, and the size of the largest; 0 where the node does not tell it."""
        requests: list[Request] = [("getblock", [hash_, 2]) for _, hash_ in some]
        try:
            answers = self._rpc.batch(requests)
        except TooMuchTogether:
            if len(some) > 1:
                raise
            answers = [self._rpc.call(*requests[0])]
        blocks = [parse_block(answer, *asked) for answer, asked in zip(answers, some, strict=True)]
        return blocks, max((size for answer in answers if type(size := answer.get("size")) is int), default=0)

    def _proven(self, block: Block, transfers: Sequence[Transfer]) -> list[Transfer]:
        txids = [hash32(txid, "a transaction's id") for txid in dict.fromkeys(transfer.txid for transfer in transfers)]
        # By the block's hash: Core finds it without an index then.
        requests: list[Request] = [("getrawtransaction", [txid, False, block.hash]) for txid in txids]
        hash_, *found = self._rpc.batch([("getblockhash", [block.number]), *requests])
        if hash_ != block.hash:
            raise Garbled("a block fell out of the chain while it was read")
        outputs = dict(zip(txids, map(outputs_by_id, found, txids), strict=True))
        for transfer in transfers:
            script = script_of(self._network.slug, transfer.recipient, self._chain)
            place = int(transfer.position.removeprefix("out:"))
            if outputs[transfer.txid][place : place + 1] != [PaidTo(transfer.amount, script)]:
                # These bytes are the true ones: of several nodes, the one that told this output lied, and the others go on.
                raise Contradiction(f"{self._network.slug}: an output is not what its transaction says")
        return list(transfers)

    def _hash_at(self, height: int) -> str | None:
        try:
            return hash32(self._rpc.call("getblockhash", [height]), "a block's hash")
        except RpcError as error:
            if no_such_height(error):
                return None
            raise

    def _receipt(self, txid: str) -> Receipt | None:
        try:
            found: Any = self._rpc.call("getrawtransaction", [txid, True])
        except RpcError as error:
            if no_such_transaction(error):
                return None
            raise
        if member(found, "txid", "a transaction") != txid:
            raise Garbled("the transaction is not the one asked for")
        if found.get("blockhash") is None:
            return None
        hash_ = hash32(found["blockhash"], "a transaction's block")
        header = self._rpc.call("getblockheader", [hash_, True])
        if member(header, "hash", "a block's header") != hash_:
            raise Garbled("the header is not the one asked for")
        height = number(header.get("height"), "a block's height")
        # A transaction index may name a block that is not in the chain any more.
        if self._hash_at(height) != hash_:
            return None
        return Receipt(txid=txid, success=True, block_number=height, block_hash=hash_, fee=None)

    def _sure(self, ask: Callable[[], T]) -> T:
        """Run `ask`; what the node refuses or garbles is, for a reader, as good as no answer."""
        try:
            return ask()
        except (RpcError, Garbled) as error:
            raise Unavailable(f"{self._network.slug}: {error}") from error
