"""The scanner's reader of an EVM network. Asks the node in batches and checks every answer that it can (money rule 11).

Imports no chain library: the scanner's CPU goes into JSON and very little else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TypeVar

from chalicelib.chains.abi import balance_call
from chalicelib.chains.answers import Garbled, member
from chalicelib.chains.balance_program import FEW
from chalicelib.chains.evm.balances import MOST_TOGETHER, many_balances, many_token_balances, told_balances
from chalicelib.chains.evm.frames import POSITION
from chalicelib.chains.evm.logs import MOST_BLOCKS, LogReader, hash_in
from chalicelib.chains.evm.parsing import parse_block, parse_header
from chalicelib.chains.evm.quantities import Contradicted, data, quantity
from chalicelib.chains.evm.receipts import check_native, check_receipt, first_log, happened, receipt_of, receipts_of
from chalicelib.chains.evm.tracing import Tracer, that_run
from chalicelib.chains.evm.usage import usage
from chalicelib.chains.held import MOST_ROWS, rows_in
from chalicelib.chains.rpc import Request, RpcError, TooMuch, TooMuchTogether, Transport
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Block, Header, Receipt, Transfer, linked
from chalicelib.domain.recovery.addresses import Usage
from chalicelib.domain.scanning.internal_transfers import POSITION as BALANCE
from chalicelib.usecases.ports.failures import Contradiction, Unavailable

log = logging.getLogger(__name__)

T = TypeVar("T")


class EvmReader:
    """Implements `usecases.ports.readers.ChainReader` over one node. Whatever is the node's fault raises Unavailable."""

    def __init__(self, network: Network, rpc: Transport, logs: LogReader | None = None) -> None:
        self._network = network
        self._rpc = rpc
        self._logs = LogReader(network.slug, rpc) if logs is None else logs
        self._tracer = None if network.tracing == "off" else Tracer(network.slug, rpc, must=network.tracing == "on")
        self._proven_logs: tuple[str, dict[str, int]] = ("", {})
        self._at_once = MOST_BLOCKS

    def tip(self) -> int:
        """Number of the newest block."""
        return self._sure(lambda: quantity(self._rpc.call("eth_blockNumber"), "the block number"))

    def block_hash(self, number: int) -> str | None:
        """Hash of the canonical block of that number, None when there is none."""
        return self._sure(lambda: hash_in(self._rpc.call("eth_getBlockByNumber", [hex(number), False]), number))

    def blocks(self, first: int, last: int, contracts: Collection[str]) -> list[Block]:
        """Blocks `first` to `last` in order, fewer when the chain ends before, with native transfers and those of `contracts`.

        `contracts` are in storage form. Two batches: the blocks, then their logs by block hash, so that a reorganisation in
        between can not give one block the logs of another; then what contracts sent, where the node can trace. The node's chain id
        is asked every time: a URL may come to mean another chain. Fewer blocks, too, where more would not fit into memory.
        """
        wanted = frozenset(contracts)
        return self._sure(lambda: self._blocks(first, last, wanted)) if first <= last else []

    def headers(self, first: int, last: int) -> list[Header]:
        """Headers `first` to `last` in order, fewer when the chain ends before. Nothing is traced, and no transaction read."""
        return self._sure(lambda: self._headers(first, last)) if first <= last else []

    def final(self, tag: str) -> int:
        """Number of the block that the node calls `tag` ("safe", "finalized")."""

        def ask() -> int:
            answer = self._rpc.call("eth_getBlockByNumber", [tag, False])
            return quantity(member(answer, "number", f"the {tag} block"), f"the {tag} block's number")

        return self._sure(ask)

    def proven(self, block: Block, transfers: Sequence[Transfer]) -> list[Transfer]:
        """Those of `transfers` that happened in `block`: receipt of that very block, status success, log present (money rule 8);
        of what a contract sent, the trace of that very transaction.

        A receipt that is missing or of another block raises Unavailable: the chain has moved or the node lags, and the
        scanner will see which. So does a native transfer that its transaction contradicts, since a receipt tells no amount.
        """

        from_balance = [transfer for transfer in transfers if transfer.position.startswith(BALANCE)]
        if from_balance:
            # Of these no transaction is known: what the address has at that block is all the proof that there is.
            told = self.balances_at([transfer.recipient for transfer in from_balance], block.number, block.hash)
            has = [t for t, balance in zip(from_balance, told, strict=True) if balance >= t.amount]
            return has + self.proven(block, [transfer for transfer in transfers if transfer not in from_balance])

        slug = self._network.slug

        def prove() -> list[Transfer]:
            native = {transfer.txid: transfer for transfer in transfers if transfer.position == "native"}
            of_one: dict[str, list[Transfer]] = {}
            for transfer in transfers:
                of_one.setdefault(transfer.txid, []).append(transfer)
            happened_: set[Transfer] = set()
            first_logs: dict[str, int] = {}
            for txid, receipt, transaction in receipts_of(self._rpc, list(of_one), native):
                if txid in native:
                    check_native(transaction, native[txid])
                if receipt is None:
                    raise Garbled("the node has no receipt for a transaction of a block that it told")
                there_ = [transfer for transfer in of_one[txid] if happened(self._network.slug, transfer, receipt, block)]
                happened_.update(there_)
                if any(transfer.contract is not None for transfer in there_):
                    first_logs[txid] = first_log(receipt)
            # A caller that has them proven asks for their order next.
            self._proven_logs = block.hash, first_logs
            there = [transfer for transfer in transfers if transfer in happened_]
            inside = [transfer for transfer in there if transfer.position.startswith(POSITION)]
            if not inside:
                return there
            traced = Tracer(self._network.slug, self._rpc) if self._tracer is None else self._tracer
            lacking = frozenset(inside) - traced.proven(block, inside)
            for transfer in lacking:
                log.error("ALARM %s: the trace of %s does not have what was told of block %d", slug, transfer.txid, block.number)
            return [transfer for transfer in there if transfer not in lacking]

        return self._sure(prove) if transfers else []

    def first_logs(self, block: Block, txids: Sequence[str]) -> dict[str, int]:
        """The number in `block` of the first log of each of these transactions, by their receipts: they are in it and have logs."""
        hash_, known = self._proven_logs
        if hash_ == block.hash and known.keys() >= {*txids}:
            return {txid: known[txid] for txid in txids}

        def ask() -> dict[str, int]:
            found: dict[str, int] = {}
            for txid, receipt, _ in receipts_of(self._rpc, list(txids)):
                check_receipt(receipt, txid, block)
                found[txid] = first_log(receipt)
            return found

        return self._sure(ask) if txids else {}

    def audited(self, block: Block, contracts: Collection[str]) -> list[Transfer]:
        """The token transfers of `contracts` in `block`, by the receipts of all its transactions; its logs say the same."""
        wanted = frozenset(contracts)
        return self._sure(lambda: self._logs.audited(block, wanted)) if wanted else []

    def receipt(self, txid: str) -> Receipt | None:
        """The receipt of a transaction, None while it is in no block. `fee` in wei, with a rollup's fee for its parent chain."""
        return self._sure(lambda: receipt_of(self._rpc, txid))

    def balance(self, address: str, contract: str | None = None) -> int:
        """Units that `address` holds at the newest block, of the native coin or of the token `contract`."""
        if contract is None:
            return self._sure(lambda: quantity(self._rpc.call("eth_getBalance", [address, "latest"]), "a balance"))
        request = {"to": contract, "data": "0x" + balance_call(address).hex()}

        def of_token() -> int:
            try:
                answer = data(self._rpc.call("eth_call", [request, "latest"]), "a balance")
            except RpcError as error:
                raise Garbled(f"the token's contract does not tell a balance: {error}") from error
            if len(answer) != 32:
                raise Garbled("there is no token contract at this address, or it knows no balanceOf")
            return int.from_bytes(answer)

        return self._sure(of_token)

    def has_code(self, address: str) -> bool:
        """Whether a contract lies at the address. Source: EIP-7702, whose delegations are 0xef0100 and an address, and are no
        contract's."""
        code = self._sure(lambda: data(self._rpc.call("eth_getCode", [address, "latest"]), "a contract's code"))
        return bool(code) and not (len(code) == 23 and code.startswith(bytes.fromhex("ef0100")))

    @property
    def traces(self) -> bool | None:
        """Whether blocks are read with internal transfers; None while it is not known."""
        return False if self._tracer is None else self._tracer.works

    def balances_at(self, addresses: Sequence[str], number: int, block_hash: str, contract: str | None = None) -> list[int]:
        """Wei, or units of the token `contract`, at that block: many by a program that the node runs (`many_balances`), or one by
        one where it does not run it."""

        def ask() -> list[int]:
            if len(addresses) > FEW:
                try:
                    return self._together(addresses, number, block_hash, contract)
                except (RpcError, Garbled) as error:
                    log.info("%s: balances are asked for one by one: %s", self._network.slug, error)
            if contract is not None:
                return self._token_balances(addresses, number, block_hash, contract)
            requests: list[Request] = [("eth_getBalance", [address, hex(number)]) for address in addresses]
            return [quantity(balance, "a balance") for balance in self._at_block(requests, number, block_hash)]

        return self._sure(ask) if addresses else []

    def nonces(self, addresses: Sequence[str]) -> list[int]:
        """Transactions that each address has sent by the newest block."""
        requests: list[Request] = [("eth_getTransactionCount", [address, "latest"]) for address in addresses]
        return self._sure(lambda: [quantity(told, "a nonce") for told in self._rpc.batch(requests)]) if addresses else []

    def usage(self, addresses: Sequence[str], contracts: Collection[str]) -> list[Usage]:
        """The use of each address by the newest block: for a restore. Raises Unavailable."""
        return self._sure(lambda: usage(self._rpc, addresses, contracts))

    def _together(self, addresses: Sequence[str], number: int, block_hash: str, contract: str | None) -> list[int]:
        parts = [addresses[start : start + MOST_TOGETHER] for start in range(0, len(addresses), MOST_TOGETHER)]
        programs = [many_balances(part) if contract is None else many_token_balances(contract, part) for part in parts]
        requests: list[Request] = [("eth_call", [{"data": program}, hex(number)]) for program in programs]
        told = self._at_block(requests, number, block_hash)
        return [balance for part, answer in zip(parts, told, strict=True) for balance in told_balances(answer, len(part))]

    def _token_balances(self, addresses: Sequence[str], number: int, block_hash: str, contract: str) -> list[int]:
        calls = [{"to": contract, "data": "0x" + balance_call(address).hex()} for address in addresses]
        requests: list[Request] = [("eth_call", [call, hex(number)]) for call in calls]
        code, *told = self._at_block([("eth_getCode", [contract, hex(number)]), *requests], number, block_hash)
        if data(code, "a contract's code") == b"":
            return [0] * len(addresses)  # where there is no contract, nobody has anything of it
        return [told_balances(answer, 1)[0] for answer in told]

    def _at_block(self, requests: Sequence[Request], number: int, block_hash: str) -> list[Any]:
        """What the node answers about a block, and that it still has that very block."""
        header, *told = self._rpc.batch([("eth_getBlockByNumber", [hex(number), False]), *requests])
        if hash_in(header, number) != block_hash:
            raise Garbled("the block is not in the chain")
        return told

    def _told(self, first: int, last: int, full: bool) -> Iterator[list[Any]]:
        """What the node tells of these blocks, with or without their transactions, as far as its chain reaches: as many at once as
        there is room for. The caller may empty a part that it takes."""
        while first <= last:
            until = min(last, first + self._at_once - 1)
            try:
                answers = self._of_chain([("eth_getBlockByNumber", [hex(number), full]) for number in range(first, until + 1)])
            except TooMuch:
                if first == until:
                    raise
                self._at_once = max(1, (until - first + 1) // 2)
                continue
            there = [answer for answer in answers if answer is not None]
            if answers[: len(there)] != there:
                raise Garbled("the node knows a block and not the one before it")
            del answers
            ends = len(there) < until - first + 1
            yield there
            if ends:
                return
            first = until + 1
            self._at_once = min(MOST_BLOCKS, 2 * self._at_once)

    def _of_chain(self, requests: list[Request]) -> list[Any]:
        """The answers to `requests`, of a node that is on this network's chain."""
        try:
            chain_id, *answers = self._rpc.batch([("eth_chainId", []), *requests])
        except TooMuchTogether:
            if len(requests) > 1:
                raise
            chain_id, answers = self._rpc.call("eth_chainId"), [self._rpc.call(*requests[0])]
        if quantity(chain_id, "the chain id") != self._network.chain_id:
            raise Garbled("the node is on another chain")
        return answers

    def _headers(self, first: int, last: int) -> list[Header]:
        headers: list[Header] = []
        for answers in self._told(first, last, full=False):
            headers += [parse_header(answer, number) for number, answer in enumerate(answers, first + len(headers))]
            answers.clear()
        if not linked(headers):
            raise Garbled("the headers are of two branches")
        return headers

    def _blocks(self, first: int, last: int, contracts: frozenset[str]) -> list[Block]:
        blocks: list[Block] = []
        room = MOST_ROWS
        for answers in self._told(first, last, full=True):
            told = len(answers)
            part = self._part(answers, first + len(blocks), contracts, room)
            blocks += part
            if not linked(blocks):
                raise Garbled("the blocks are of two branches")
            room -= sum(map(rows_in, part))
            if len(part) < told or room < 0:
                # The next time, as many as there was room for.
                self._at_once = max(1, len(part))
                break
        return blocks

    def _part(self, answers: list[Any], first: int, contracts: frozenset[str], room: int) -> list[Block]:
        """The blocks from `first` on of these `answers`, which are empty afterwards; fewer where there is no room for all."""
        blocks = [parse_block(answer, number) for number, answer in enumerate(answers, first)]
        blooms = [answer.get("logsBloom") for answer in answers]
        running = {} if self._tracer is None else {b.hash: that_run(answer) for b, answer in zip(blocks, answers, strict=True)}
        # What they hold besides, call data above all, is as large as gas allows.
        answers.clear()
        if not linked(blocks):
            raise Garbled("the blocks are of two branches")
        if contracts and blocks:
            blocks = blocks[: self._logs.add(blocks, blooms, contracts, room)]
        if self._tracer is not None:
            blocks = blocks[: self._tracer.add(blocks, running, room)]
        return blocks

    def _sure(self, ask: Callable[[], T]) -> T:
        """Run `ask`; what the node refuses or garbles is, for a reader, as good as no answer."""
        try:
            return ask()
        except Contradicted as error:
            raise Contradiction(f"{self._network.slug}: {error}") from error
        except (RpcError, Garbled) as error:
            raise Unavailable(f"{self._network.slug}: {error}") from error
