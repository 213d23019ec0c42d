"""The port ChainReader over a simulated network. Only reads the table."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from chalicelib.chains.sandbox.branch import View
from chalicelib.chains.sandbox.ledger import NATIVE, STAKED, transfers
from chalicelib.chains.sandbox.reads import Ahead, Mined, Reads, not_ahead
from chalicelib.chains.sandbox.table import SandboxTable
from chalicelib.chains.sandbox.tokens import is_contract
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Block, Header, Receipt, Sent, Transfer
from chalicelib.domain.recovery.addresses import Usage
from chalicelib.usecases.ports.clock import Clock

_TOGETHER = 100
"""Accounts in one read."""


class SandboxReader:
    """The port ChainReader. Raises ValueError for a live network; every method raises Unavailable."""

    def __init__(self, network: Network, table: SandboxTable, clock: Clock, ahead: Ahead = not_ahead) -> None:
        self._reads = Reads(network, table, clock, ahead)
        self._network = network

    def tip(self) -> int:
        """Number of the newest block. One read."""
        return self._reads.view().tip

    def blocks(self, first: int, last: int, contracts: Collection[str]) -> list[Block]:
        """Blocks `first` to `last` in order, fewer when the chain ends before. Two or three reads, however many blocks."""
        view = self._reads.view()
        last = min(last, view.tip)
        if not 0 <= first <= last:
            return []
        view, stored = self._stored(view, max(0, first - 1), last)
        held = {mined.number: mined for mined in stored if mined.tx is not None}
        ends = iter(stored)
        end = next(ends, None)
        result = []
        parent = self._hash(view, held, first - 1) if first else _no_parent(self._network)
        for number in range(first, last + 1):
            while end is not None and end.number < number:
                end = next(ends, None)
            time = view.grown_time(number) if end is None or number == 0 else end.stretch.time_of(number)
            mined = held.get(number)
            moved = [] if mined is None or mined.tx is None else transfers(self._network.family, mined.tx, mined.success, contracts)
            name = self._hash(view, held, number)
            result.append(Block(number, name, parent, time, moved, _sent(mined)))
            parent = name
        return result

    def headers(self, first: int, last: int) -> list[Header]:
        """Headers `first` to `last` in order, fewer when the chain ends before. Costs what blocks cost: they are virtual."""
        return [Header(block.number, block.hash, block.parent_hash, block.time) for block in self.blocks(first, last, ())]

    def block_hash(self, number: int) -> str | None:
        """Hash of the block of that number, None when there is none. Two reads."""
        view = self._reads.view()
        if not 0 <= number <= view.tip:
            return None
        view = self._reads.reaching(view, number)
        return self._hash(view, self._held(view, number), number)

    def proven(self, block: Block, transfers: Sequence[Transfer]) -> list[Transfer]:
        """Those of `transfers` that `block` holds and that succeeded; none when it is not in the chain. Two reads."""
        view = self._reads.view()
        if not transfers or not 0 <= block.number <= view.tip:
            return []
        view = self._reads.reaching(view, block.number)
        held = self._held(view, block.number)
        mined = held.get(block.number)
        if mined is None or mined.tx is None or not mined.success or self._hash(view, held, block.number) != block.hash:
            return []
        return [t for t in transfers if t in self._moved(mined, t.contract)]

    def receipt(self, txid: str) -> Receipt | None:
        """The receipt of a transaction, None while it is in no block. One read."""
        view, state = self._reads.tx_now(txid)
        place = state.place(view) if state is not None else None
        if state is None or place is None:
            return None
        name = self._reads.hash_at(view, place.number, txid)
        tx = state.tx
        moved = ((tx.contract, tx.sender, tx.recipient),) if place.success and tx.contract is not None else ()
        return Receipt(txid, place.success, place.number, name, tx.fee, moved, (tx.amount,) if moved else ())

    def balance(self, address: str, contract: str | None = None) -> int:
        """Units of the native coin, or of the token `contract`, at the newest block. One read."""
        form = self._reads.form
        return self._reads.value_now(form(address), NATIVE if contract is None else form(contract))

    def usage(self, addresses: Sequence[str], contracts: Collection[str]) -> list[Usage]:
        """The use of each address by the newest block: for a restore. Two reads for a hundred. Raises Unavailable."""
        form = self._reads.form
        keys = [NATIVE, *(form(contract) for contract in contracts)]
        places = [form(address) for address in addresses]
        found: list[Usage] = []
        for start in range(0, len(places), _TOGETHER):
            for view, account in self._reads.accounts_now(places[start : start + _TOGETHER]):
                holds = account is not None and any(account.value(view, key) for key in keys)
                found.append("holding" if holds else "unused" if account is None else "emptied")
        return found

    def staked(self, address: str) -> int:
        """Units of the native coin that are locked at the newest block. One read."""
        return self._reads.value_now(self._reads.form(address), STAKED)

    def has_code(self, address: str) -> bool:
        """Whether it is a token's contract: one of the catalogue's, or one that a developer made. One read."""
        return is_contract(self._reads, self._network, address)

    def _stored(self, view: View, first: int, last: int) -> tuple[View, list[Mined]]:
        view = self._reads.reaching(view, first)
        return view, self._reads.stored(view, first, last)

    def _held(self, view: View, number: int) -> dict[int, Mined]:
        mined = self._reads.block(view, number)
        return {} if mined is None or mined.tx is None else {number: mined}

    def _hash(self, view: View, held: dict[int, Mined], number: int) -> str:
        mined = held.get(number)
        return self._reads.hash_at(view, number, None if mined is None or mined.tx is None else mined.tx.txid)

    def _moved(self, mined: Mined, contract: str | None) -> list[Transfer]:
        if mined.tx is None:
            return []
        return transfers(self._network.family, mined.tx, mined.success, () if contract is None else (contract,))


def _sent(mined: Mined | None) -> Sent:
    """What comes from outside, out of nothing, has no nonce, and nobody signed it."""
    if mined is None or mined.tx is None or mined.tx.nonce is None:
        return Sent()
    return Sent((mined.tx.txid,), (mined.tx.sender,), (mined.tx.nonce,))


def _no_parent(network: Network) -> str:
    """What block 0 names as its parent: zeros, as real chains do."""
    return ("0x" if network.family == "evm" else "") + "0" * 64
