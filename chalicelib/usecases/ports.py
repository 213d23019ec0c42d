"""What the use cases need of the outside, in their own words. Adapters in `store`, `chains` and `custody` fit these."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from chalicelib.domain.addresses import Role, Wallet
from chalicelib.domain.catalogue import Catalogue
from chalicelib.domain.chain import Block, Receipt, Transfer
from chalicelib.domain.ids import NetworkId, Realm
from chalicelib.domain.stakes import Resource
from chalicelib.domain.withdrawals import Priority
from chalicelib.domain.work import Command, Work, WorkKind
from chalicelib.usecases.changes import Change

R = TypeVar("R")


class Unavailable(Exception):
    """A node, a queue or a key service did not answer, or answered nonsense. Nothing is known; try again later."""


class Refused(Exception):
    """The chain says that this payment can not be made as it stands (it would revert, no funds). The message says why."""


class InsufficientFunds(Refused):
    """The paying wallet has too little now, for the amount or for the fee. Waiting for more helps."""


class Clock(Protocol):
    def now_ms(self) -> int:
        """Milliseconds since 1970, UTC."""
        ...


@dataclass(frozen=True, slots=True)
class Page(Generic[R]):
    """`next` starts the following page; None at the end."""

    items: list[R]
    next: str | None


@dataclass(frozen=True, slots=True)
class Listed:
    """One list that is kept in order of time: what `owner` has of a `family`, or what in it has one value.

    `store/schema.py::INDEXES` says which families there are and what each can be looked up `by`.
    """

    family: str
    by: str
    owner: str
    value: str | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """Sort keys from `low` to `high`, both included; None is open."""

    low: str | None = None
    high: str | None = None


EVERYWHERE = Span()


@dataclass(frozen=True, slots=True)
class Place:
    """One entry of a list: its `position` in the list, and the key of its record."""

    position: str
    pk: str
    sk: str


@dataclass(frozen=True, slots=True)
class Places:
    """`more`: there was more than was asked for."""

    places: list[Place]
    more: bool


@dataclass(frozen=True, slots=True)
class Counted:
    """`last` is the position of the last one counted where the count stopped before the end; else None."""

    count: int
    last: str | None


class Store(Protocol):
    """Records by their type and key fields; see `store/schema.py` for which fields make each key."""

    def get(self, kind: type[R], /, **key: str) -> R | None:
        """One record, strongly consistent, or None."""
        ...

    def get_many(self, wanted: Sequence[tuple[type[Any], Mapping[str, str]]], /) -> list[Any]:
        """Records by type and key, in the order asked, None where there is none. Strongly consistent, 100 keys a round trip."""
        ...

    def page(
        self,
        kind: type[R],
        /,
        *,
        limit: int,
        after: str | None = None,
        newest_first: bool = False,
        span: Span = EVERYWHERE,
        **partition: str,
    ) -> Page[R]:
        """The records of one partition in the order of their sort keys (for ids of `new_id`: of creation)."""
        ...

    def places(
        self, listed: Listed, /, *, limit: int, after: str | None = None, newest_first: bool = False, span: Span = EVERYWHERE
    ) -> Places:
        """Up to `limit` entries of a list behind the position `after`. A change is seen in lists a moment after its commit."""
        ...

    def at(self, places: Sequence[Place], /) -> list[Any]:
        """The records at these places, None where one is gone. Strongly consistent, 100 a round trip."""
        ...

    def count(
        self,
        where: Listed | tuple[type[Any], Mapping[str, str]],
        /,
        *,
        most: int,
        after: str | None = None,
        newest_first: bool = False,
        span: Span = EVERYWHERE,
    ) -> Counted:
        """How many entries a list, or a partition of records, has behind `after`. Stops at `most`, and says where that is."""
        ...

    def commit(self, changes: Sequence[Change], /) -> None:
        """All of `changes`, or none. Raises Conflict."""
        ...

    def open_work(
        self, kind: WorkKind, lane: str, *, upto: str | None = None, after: Work | None = None, limit: int = 100
    ) -> list[Work]:
        """Open obligations of a lane in order, behind `after`, those whose `order` is at most `upto`. Strongly consistent."""
        ...

    def reserve_indexes(self, pool: str, count: int) -> int:
        """Take `count` fresh address indexes out of `pool` for good; the first of them."""
        ...

    def every(self, kind: type[R], /) -> Iterator[R]:
        """All records of a kind, by a scan: for the operator's checks, never on a request's path."""
        ...

    def every_work(self) -> Iterator[Work]:
        """All open obligations, by a scan: for the operator's checks."""
        ...

    def catalogue(self, realm: Realm, fresh: bool = False) -> Catalogue:
        """Networks and coins of a realm; at most 30 seconds old, or `fresh` as they are now."""
        ...


class Queues(Protocol):
    """Wake-up calls. Losing one delays, it never loses: the work is in the store."""

    def kick(self, outbox_id: str) -> None:
        """Ask for an outbox row to be told now. Never raises: the sweep finds the row anyway."""
        ...

    def send(self, command: Command) -> None:
        """Raises Unavailable."""
        ...

    def deliver(self, delivery_id: str, tenant: str, delay_seconds: int) -> None:
        """Ask for a webhook delivery after `delay_seconds` (at most 900). Raises Unavailable."""
        ...


class RangeQueue(Protocol):
    """Wake-up calls for whoever scans ranges of a backlog. Losing one delays, it never loses."""

    def scan(self, network: NetworkId, name: str) -> None:
        """Ask for the range of that name. Raises Unavailable."""
        ...


class ChainReader(Protocol):
    """One network, as the scanner needs it. Every method raises Unavailable."""

    def tip(self) -> int:
        """Number of the newest block."""
        ...

    def blocks(self, first: int, last: int, contracts: Collection[str]) -> list[Block]:
        """Blocks `first` to `last` in order, fewer when the chain ends before; transfers of `contracts` and native ones."""
        ...

    def block_hash(self, number: int) -> str | None:
        """Hash of the canonical block of that number, None when there is none."""
        ...

    def proven(self, block: Block, transfers: Sequence[Transfer]) -> list[Transfer]:
        """Those of `transfers` that happened: receipt of that very block, status success, log present (money rule 8)."""
        ...

    def receipt(self, txid: str) -> Receipt | None:
        """What became of a transaction, None while it is in no block."""
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


@runtime_checkable
class Finality(Protocol):
    """A reader whose nodes know which blocks can not fall out of the chain."""

    def final(self, tag: str) -> int:
        """Number of the newest block that is `tag` ("safe", "finalized"). Raises Unavailable."""
        ...


@runtime_checkable
class Balances(Protocol):
    """A reader whose nodes know what addresses had at a block."""

    @property
    def traces(self) -> bool | None:
        """Whether blocks are read with what contracts sent; None while it is not known."""
        ...

    def balances_at(self, addresses: Sequence[str], number: int, block_hash: str) -> list[int | None]:
        """Units of the native coin at that block; None for an address that has sent something itself. Raises Unavailable."""
        ...


@dataclass(frozen=True, slots=True)
class TokenFacts:
    """What a contract says of itself. Nobody has looked yet whether that makes sense."""

    symbol: str
    name: str
    decimals: int


class NoToken(Exception):
    """There is no token at this address: no contract, or one that does not say what it is. The message says which."""


class TokenReader(Protocol):
    """Tokens of one network, as registering them needs it."""

    def facts(self, contract: str) -> TokenFacts:
        """What `contract` says of itself. Raises NoToken, Unavailable."""
        ...


@dataclass(frozen=True, slots=True)
class Payment:
    """What is to be paid, before the chain's own fields are filled in. `amount` in units; `contract` None for the native coin.

    `reference` is the withdrawal's id: simulated networks write it into the payment, so that an outcome can be planned for it.
    """

    sender: str
    recipient: str
    contract: str | None
    amount: int
    nonce: int
    priority: Priority = "normal"
    reference: str | None = None


@dataclass(frozen=True, slots=True)
class Explained:
    """What a transaction about to be signed really does, decoded from its bytes. `nonce` is None where the chain has none (Tron).

    `sender` is None where the bytes do not name one (EVM); `fee` is the most that it can cost, in units of the native coin.
    """

    chain_id: int | None
    nonce: int | None
    recipient: str
    contract: str | None
    amount: int
    sender: str | None = None
    fee: int = 0


@dataclass(frozen=True, slots=True)
class Signature:
    """secp256k1, s in the lower half (EIP-2, BIP-62); `parity` is the y parity of R."""

    r: int
    s: int
    parity: int


@dataclass(frozen=True, slots=True)
class Signed:
    """`raw` is what goes to the node, as hex."""

    raw: str
    txid: str


@dataclass(frozen=True, slots=True)
class FeeEstimate:
    """`fee` is the most that the payment can cost, in units of the native coin."""

    fee: int


class ChainPayer(Protocol):
    """One network of accounts (EVM, Tron, every simulated one), as payments need it."""

    def next_nonce(self, address: str) -> int:
        """Transactions of `address` that are in blocks (not the mempool). Raises Unavailable."""
        ...

    def estimate(self, payment: Payment) -> FeeEstimate:
        """What it would cost now. Raises Refused (InsufficientFunds) when it would fail on the chain, Unavailable."""
        ...

    def prepare(self, payment: Payment) -> str:
        """The unsigned transaction, as hex, with fees of now. Raises Refused (InsufficientFunds), Unavailable."""
        ...

    def explain(self, unsigned: str) -> Explained:
        """Decode `unsigned`. Raises ValueError for anything but a plain transfer of the native coin or of a token."""
        ...

    def digest(self, unsigned: str) -> bytes:
        """The 32 bytes to sign."""
        ...

    def assemble(self, unsigned: str, signature: Signature) -> Signed:
        """The signed transaction and its id."""
        ...

    def broadcast(self, raw: str) -> None:
        """Hand it to the node. Safe to repeat: known already is done. Raises Refused (the node's words), Unavailable."""
        ...

    def renew(self, unsigned: str, priority: Priority, sender: str) -> str:
        """The same payment with the same nonce, in bytes that a node takes in place of `unsigned`: at the fees of now, and at least
        at what nodes ask of a replacement; where transactions expire, with a new expiry. `sender` is the wallet that pays, which
        some chains' bytes do not name. Raises Refused (InsufficientFunds), Unavailable, and ValueError as `explain` does."""
        ...

    def renewable(self, unsigned: str, txid: str) -> bool:
        """Whether signing a replacement of `unsigned`, whose signed form is `txid`, can never pay twice. Where both have one nonce:
        always. Where transactions have none: once this one is past its expiry and in no block, both for good. Raises Unavailable.
        """
        ...


@dataclass(frozen=True, slots=True)
class ExplainedStake:
    """What a staking transaction about to be signed really does, decoded from its bytes. `amount` in units of the native coin."""

    owner: str
    amount: int
    resource: Resource
    txid: str


class StakingNode(Protocol):
    """A real network on which coins of a wallet can be staked, by a transaction that the wallet's key signs."""

    def prepare(self, wallet: str, amount: int, resource: Resource, sequence: int) -> str:
        """The unsigned transaction, as hex. `sequence` makes equal ones differ. Raises InsufficientFunds, Unavailable."""
        ...

    def explain(self, unsigned: str) -> ExplainedStake:
        """Decode `unsigned`. Raises ValueError for anything but a plain stake."""
        ...

    def digest(self, unsigned: str) -> bytes:
        """The 32 bytes to sign."""
        ...

    def assemble(self, unsigned: str, signature: Signature) -> Signed:
        """The signed transaction and its id. Raises ValueError unless the wallet's key signed."""
        ...

    def broadcast(self, raw: str) -> None:
        """As `ChainPayer.broadcast`."""
        ...

    def renewable(self, unsigned: str, txid: str) -> bool:
        """As `ChainPayer.renewable`: whether no block will ever have it."""
        ...


@dataclass(frozen=True, slots=True)
class Output:
    """An output of a UTXO transaction that pays `amount` units to `address` (public spelling)."""

    address: str
    amount: int


@dataclass(frozen=True, slots=True)
class Unspent:
    """An output of ours that may be spent. `outpoint` is "<txid>:<n>", `address` whose it is, `height` its block's number."""

    outpoint: str
    address: str
    amount: int
    height: int


@dataclass(frozen=True, slots=True)
class CoinPlan:
    """A UTXO transaction before its signatures: `inputs` are outpoints, `change` the output that comes back to the wallet (None
    where there is none), `fee` in units, exact. `vsize` in virtual bytes (BIP-141)."""

    unsigned: str
    inputs: tuple[str, ...]
    outputs: tuple[Output, ...]
    change: Output | None
    fee: int
    vsize: int


class CoinPayer(Protocol):
    """One UTXO network, as payments need it. `unsigned` carries the amounts and scripts of what it spends, so that digests and
    fee can be computed from it alone."""

    def fee_rate(self, priority: Priority) -> int:
        """Units per 1,000 virtual bytes to be mined in the time that the priority promises, within bounds. Raises Unavailable."""
        ...

    def plan(self, wallet: str, coins: Sequence[Unspent], outputs: Sequence[Output], rate: int) -> CoinPlan:
        """A transaction that pays `outputs` out of some of `coins`, the rest back to `wallet`, at `rate` units per 1,000 vbytes.
        Raises InsufficientFunds, Refused (an output is dust)."""
        ...

    def consolidate(self, wallet: str, coins: Sequence[Unspent], rate: int) -> CoinPlan:
        """A transaction that pays all of `coins` that are worth their fee to `wallet`. Raises Refused where none is."""
        ...

    def replace(self, unsigned: str, wallet: str, coins: Sequence[Unspent], rate: int) -> CoinPlan:
        """A replacement (BIP-125) of `unsigned` that pays the same outputs, spends at least its inputs, and `coins` where it needs
        more, at `rate` or what nodes ask of a replacement, whichever is more. Raises InsufficientFunds."""
        ...

    def explain(self, unsigned: str) -> CoinPlan:
        """Decode `unsigned`; `change` is None (every output is in `outputs`, in order). Raises ValueError for anything else than
        a transaction of ours that spends plain key-hash outputs and can be replaced."""
        ...

    def digests(self, unsigned: str) -> list[bytes]:
        """The 32 bytes to sign for each input, in order (BIP-143; the legacy rules for legacy inputs)."""
        ...

    def assemble(self, unsigned: str, signatures: Sequence[Signature]) -> Signed:
        """The signed transaction and its id. Raises ValueError unless each signature is by the key of its input's address."""
        ...

    def broadcast(self, raw: str) -> None:
        """As `ChainPayer.broadcast`."""
        ...

    def unspent(self, outpoints: Sequence[str], mempool: bool = True) -> list[Unspent | None]:
        """What the node says of outputs: None where it is spent or unknown, in blocks alone or in its mempool too. Raises
        Unavailable."""
        ...


class Mempool(Protocol):
    """What waits to be mined on a UTXO network. Every method raises Unavailable."""

    def waiting(self) -> frozenset[str]:
        """The ids of all transactions in the node's mempool."""
        ...

    def transfers_of(self, txids: Sequence[str]) -> list[Transfer]:
        """The outputs of those of `txids` that are in the mempool still."""
        ...


class Signer(Protocol):
    def sign(self, wallet: Wallet, digest: bytes) -> Signature:
        """Sign with the wallet's key. The caller has checked what it signs (money rule 7). Raises Unavailable."""
        ...


class WalletKeys(Protocol):
    """Keys of service wallets, put away for the payouts. What is put away can be read by nothing that registers wallets."""

    def new(self) -> str:
        """A fresh private key, as hex."""
        ...

    def put_away(self, network: NetworkId, role: Role, secret: str, now_ms: int) -> tuple[Wallet, Any]:
        """The wallet of a private key, and the record that keeps the key encrypted: store both together.

        Raises ValueError, without the key in its message, for what is no private key of that network; Unavailable.
        """
        ...


class Deriver(Protocol):
    """Deposit addresses from public keys alone."""

    def derive(self, realm: Realm, network: str, index: int) -> tuple[str, str]:
        """Address in its public spelling, and its derivation path. Raises LookupError when the realm has no xpub yet."""
        ...


class AddressRules(Protocol):
    """How addresses of a network are written. Pure: no node is asked. A slug stands for the main chain, a NetworkId for its own."""

    def normalize(self, network: str, text: str) -> str:
        """The public spelling (EIP-55, bech32 lower case). Raises ValueError with the reason."""
        ...

    def storage_form(self, network: str, address: str) -> str:
        """One spelling for comparing and for keys."""
        ...
