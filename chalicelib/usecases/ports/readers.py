"""Readers of a network: its blocks, receipts and balances, and the further facts that some networks' nodes know."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

from chalicelib.domain.chain import Block, Header, Receipt, Transfer, Unmined
from chalicelib.domain.recovery.addresses import Usage
from chalicelib.usecases.ports.failures import Unavailable


class ChainReader(Protocol):
    """One network, as the scanner needs it. Every method raises Unavailable."""

    def tip(self) -> int:
        """Number of the newest block."""
        ...

    def blocks(self, first: int, last: int, contracts: Collection[str]) -> list[Block]:
        """Blocks `first` to `last` in order, with transfers of `contracts` and native ones. Fewer when the chain ends before, or
        when more would not fit into memory (a stranger decides how much a block has): then the first of them, one at least. A
        caller that needs all of them asks again behind the last one (`every_block`)."""
        ...

    def headers(self, first: int, last: int) -> list[Header]:
        """Headers `first` to `last` in order, linked, fewer when the chain ends before: a small part of what blocks cost."""
        ...

    def block_hash(self, number: int) -> str | None:
        """Hash of the canonical block of that number, None when there is none."""
        ...

    def proven(self, block: Block, transfers: Sequence[Transfer]) -> list[Transfer]:
        """Those of `transfers` that happened: receipt of that very block, status success, log present (money rule 8)."""
        ...

    def receipt(self, txid: str) -> Receipt | None:
        """The receipt of a transaction, None while it is in no block."""
        ...

    def balance(self, address: str, contract: str | None = None) -> int:
        """Units that `address` holds at the newest block, of the native coin or of the token `contract`."""
        ...


@runtime_checkable
class Witness(Protocol):
    """A reader that has several nodes."""

    def agreed(self, block: Block, transfers: Sequence[Transfer]) -> bool:
        """Whether two nodes have `block` in the chain and prove all of `transfers` in it. Of `block`, number and hash count."""
        ...


def every_block(reader: ChainReader, first: int, last: int, contracts: Collection[str]) -> Iterator[Block]:
    """Blocks `first` to `last`, fewer when the chain ends before; read as many at a time as `reader` gives. Raises Unavailable,
    also where they are of two branches."""
    parent: str | None = None
    while first <= last:
        blocks = reader.blocks(first, last, contracts)
        if not blocks:
            return
        if parent is not None and blocks[0].parent_hash != parent:
            raise Unavailable("the chain changed while its blocks were read")
        first, parent = blocks[-1].number + 1, blocks[-1].hash
        # Nothing here holds them while the next ones are read.
        blocks.reverse()
        while blocks:
            yield blocks.pop()


class NodeHealth(Protocol):
    """How one node has been doing, as far as its vote goes."""

    @property
    def number(self) -> int:
        """Its position in the configuration, from 1 on: its name in the log."""
        ...

    @property
    def name(self) -> str:
        """Its name in stored records: without its URL, which may hold a secret."""
        ...

    has_vote: bool
    """False where it has not answered for so long that nothing waits for its word. Its first answer makes it True again."""

    silent: bool
    """Whether it gave no answer when it was last asked."""

    @property
    def voteless(self) -> bool:
        """Whether it has no vote and did not answer when it was last asked."""
        ...

    def taken(self) -> bool | None:
        """Whether it has answered anything since this was last called; None where nobody asked it."""
        ...


@runtime_checkable
class Jury(ChainReader, Protocol):
    """A reader with several nodes, each of which can be asked by itself for a transaction's outcome."""

    @property
    def members(self) -> int:
        """The number of configured nodes."""
        ...

    @property
    def voteless(self) -> int:
        """How many of them have no vote at the moment: they have not answered for long (`usecases.transactions.node_votes`), nor
        now."""
        ...

    @property
    def healths(self) -> Sequence[NodeHealth]:
        """How each node has been doing."""
        ...

    def revisit(self, nodes: Collection[str]) -> None:
        """Ask those of the nodes that have these names, though they are left alone. What comes of it, their health tells."""
        ...

    def testimonies(self, txid: str) -> Iterator[Receipt | None]:
        """`ChainReader.receipt` of each node that answers, asked when the next is taken. Raises Unavailable where none does."""
        ...


@runtime_checkable
class Finality(Protocol):
    """A reader whose nodes know which blocks can not fall out of the chain."""

    def final(self, tag: str) -> int:
        """Number of the newest block that is `tag` ("safe", "finalized"). Raises Unavailable."""
        ...


@runtime_checkable
class Auditor(Protocol):
    """A reader whose nodes tell the same thing twice: an EVM block's logs, and its receipts."""

    def audited(self, block: Block, contracts: Collection[str]) -> list[Transfer]:
        """The transfers of `contracts` in `block` (its number and hash count), by all its receipts, which the logs agree with.

        Raises Unavailable: also where they do not agree.
        """
        ...


@runtime_checkable
class LogOrder(Protocol):
    """A reader of a network that numbers logs across the block (EVM)."""

    def first_logs(self, block: Block, txids: Sequence[str]) -> dict[str, int]:
        """The number in `block` of the first log of each of these transactions, which are in it and have logs.

        Raises Unavailable.
        """
        ...


@runtime_checkable
class Balances(Protocol):
    """A reader whose nodes know what addresses had at a block."""

    @property
    def traces(self) -> bool | None:
        """Whether blocks are read with what contracts sent; None while it is not known."""
        ...

    def balances_at(self, addresses: Sequence[str], number: int, block_hash: str, contract: str | None = None) -> list[int]:
        """Units of the native coin, or of the token `contract`, at that block. Raises Unavailable."""
        ...

    def nonces(self, addresses: Sequence[str]) -> list[int]:
        """The number of transactions that each address has sent so far. Raises Unavailable."""
        ...


@runtime_checkable
class Usages(Protocol):
    """A reader whose nodes know accounts: whether an address was ever used."""

    def usage(self, addresses: Sequence[str], contracts: Collection[str]) -> list[Usage]:
        """The use of each address, by the newest block: native coins, tokens of `contracts`, own transactions.

        Raises Unavailable.
        """
        ...


@runtime_checkable
class SolidBalances(Protocol):
    """A reader whose nodes know balances at the newest block that can not be undone (Tron). Of several nodes two have to say the
    same."""

    def solid(self) -> int:
        """Number of that block. Raises Unavailable."""
        ...

    def solid_balance(self, address: str, contract: str | None = None) -> int:
        """Units of the native coin, or of the token `contract`. Raises Unavailable."""
        ...

    def solid_balances(self, addresses: Sequence[str], contract: str | None = None) -> list[int] | None:
        """As `solid_balance` of each, a hundred at most, in one request; None where that can not be told so. Raises Unavailable."""
        ...


@runtime_checkable
class Stakes(Protocol):
    """A reader whose network can lock coins of an address (Tron)."""

    def staked(self, address: str) -> int:
        """Units of the native coin that are locked, not counting what is being unlocked: at the newest block, or the newest solid
        one. Raises Unavailable."""
        ...


@runtime_checkable
class Contracts(Protocol):
    """A reader of a network that has contracts."""

    def has_code(self, address: str) -> bool:
        """Whether a contract lies at `address` by the newest block. An account that only delegates (EIP-7702) is none."""
        ...


class Mempool(Protocol):
    """The mempool of a UTXO network. Every method raises Unavailable."""

    def waiting(self) -> frozenset[str]:
        """The ids of all transactions in the node's mempool."""
        ...

    def transactions(self, txids: Sequence[str]) -> list[Unmined]:
        """Those of `txids` that are in the mempool still."""
        ...

    def ousted(self, spends: Mapping[str, Sequence[str]]) -> set[str]:
        """Those of the transactions `spends` that are not in the mempool, and one of whose outputs "txid:n" is there no more:
        another transaction spends it, in the mempool or in a block. Each output was in a block when it was remembered.
        """
        ...
