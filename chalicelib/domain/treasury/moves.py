"""Moves: our own transactions between two of our addresses, on account networks.

A move credits nobody. In the book *where* its coins go from the source to the destination, through "in flight"; in the book
*whose* only the fee changes, which the operator pays. The signer follows from `path`: a deposit address' key comes from the seed,
which the function `collect` alone may open; every other source is a service wallet, whose key the function `payout` may use.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Self

from chalicelib.domain.addresses.addresses import group_of
from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.ids import AssetId, NetworkId, Realm, TenantId, derived_id, network_parts
from chalicelib.domain.transactions.outgoing import Attempt, Outgoing
from chalicelib.domain.versions import next_version
from chalicelib.domain.withdrawals.withdrawals import Usurped
from chalicelib.domain.work import Command, Work, time_order

MoveKind = Literal["topup", "sweep", "distribution", "cold", "drain", "delegation", "undelegation", "filler"]
"""`topup`: native coins for the fee of what shall leave an address; `sweep`: from a deposit address to a service wallet;
`distribution`: from the collector to a hot wallet, or between hot wallets; `cold`: from a service wallet to the cold one; `drain`:
from a wallet that was replaced to the one in its place; `delegation` and `undelegation` (Tron): the energy of a stake is lent to an
address, and taken back. These two are transactions like the others and move no coins. `filler`: one unit from a place to itself,
which uses a nonce that nothing else may use any more, so that what is behind it goes on."""
LOANS: frozenset[MoveKind] = frozenset({"delegation", "undelegation"})
STAYS: frozenset[MoveKind] = LOANS | {"filler"}
"""Kinds that move nothing in the ledger but their fee."""
MoveState = Literal["planned", "built", "signed", "settled", "failed", "dropped"]
"""`planned`: nothing is allotted; `built`: it has a nonce and its exact bytes; `signed`: it can reach the chain at any time;
`settled`: the chain has it; `failed`: the chain has it, and it moved nothing; `dropped`: refused before anything was signed, and it
has no nonce (any more)."""
AT_REST: frozenset[str] = frozenset({"settled", "failed", "dropped"})
WHOLE_TRANSACTION = "*"
"""In `OwnTransaction.positions`: whatever this transaction moved to our addresses credits nobody."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Who plans a move: `owner`, as its `number`-th one of the kind on `network`, at a time in milliseconds since 1970. The move's
    id follows from it, so that the same plan is the same move."""

    network: NetworkId
    owner: str
    number: int
    at: int


@dataclass(frozen=True, slots=True)
class Move(Outgoing):
    """Made by the constructors named after its kinds, which fix what may not vary within a kind; `next_version` alters it.

    `amount` in units of `asset`, `fee` in units of the native coin (until it is settled the most that it can cost), times in
    milliseconds since 1970. `source` and `recipient` are in their public spelling.

    `path` is the derivation path of a deposit address, None where the source is a service wallet. `owner` names what it belongs to:
    a collection's id, or what else planned it, where its planner finds what became of it. `bare` asks to send everything that
    the source has of the native coin, less the fee: `amount` then is what was asked for at most, and what is sent is fixed with the
    bytes. `arrived` is what the token's own log says arrived (a token may take a part), set when it is settled.

    Of a loan `amount` is the stake, in units of the native coin, whose energy is lent.

    The exact bytes are in `unsigned` (of a built move empty: they were thrown away, and others with its nonce are to be built);
    `raw` and `txid` are set together before the first broadcast (money rule 5), `earlier` are the attempts that they replaced.
    `renew` asks for a replacement, which only the function that signs can make. `tried` counts the refusals before anything was
    signed, `reason` says the last. `mined` is the transaction that settled it; a failed move has none where others used its
    nonce (`usurped`). `round` counts how often a reorganisation undid its settlement.

    `over` is there for a filler that an operator put on the nonce of an open payment: the order's id. One of the two is mined.
    `decided` says who did that, and why.

    `seat` names the group of commands of the service wallet that it leaves (`Wallet.seat`); None for the network's own group.
    """

    id: str
    network: NetworkId
    kind: MoveKind
    asset: AssetId
    contract: str | None
    source: str
    path: str | None
    recipient: str
    amount: int
    owner: str
    created_at: int
    updated_at: int
    state: MoveState = "planned"
    bare: bool = False
    nonce: int | None = None
    unsigned: str | None = None
    raw: str | None = None
    txid: str | None = None
    fee: int = 0
    signed_at: int = 0
    earlier: tuple[Attempt, ...] = ()
    renew: bool = False
    tried: int = 0
    reason: str | None = None
    arrived: int | None = None
    block_number: int | None = None
    block_hash: str | None = None
    confirmed_at: int | None = None
    mined: str | None = None
    usurped: Usurped | None = None
    round: int = 0
    over: str | None = None
    decided: str | None = None
    seat: str | None = None
    version: int = 1

    @classmethod
    def topup(cls, origin: Origin, native: AssetId, source: str, recipient: str, amount: int, seat: str | None = None) -> Self:
        """Native coins of the service wallet `source`, which has that seat, for the fees of `recipient`."""
        planned = cls._planned(origin, "topup", (native, None), (source, None), recipient, amount)
        return replace(planned, seat=seat)

    @classmethod
    def sweep(cls, origin: Origin, coin: Coin, source: str, path: str, recipient: str, amount: int) -> Self:
        """From the deposit address with the derivation path `path`; of the native coin everything, less the fee."""
        swept = cls._planned(origin, "sweep", (coin.asset, coin.contract), (source, path), recipient, amount)
        return replace(swept, bare=coin.contract is None)

    @classmethod
    def distribution(cls, origin: Origin, coin: Coin, source: str, recipient: str, amount: int) -> Self:
        """From the collector to the hot wallet, or between hot wallets."""
        return cls._planned(origin, "distribution", (coin.asset, coin.contract), (source, None), recipient, amount)

    @classmethod
    def cold(cls, origin: Origin, coin: Coin, source: str, recipient: str, amount: int) -> Self:
        """From a service wallet to the cold one."""
        return cls._planned(origin, "cold", (coin.asset, coin.contract), (source, None), recipient, amount)

    @classmethod
    def drain(cls, origin: Origin, coin: Coin, source: str, recipient: str, amount: int, *, bare: bool = False) -> Self:
        """From a retired wallet to its successor; `bare`: everything, less the fee."""
        drained = cls._planned(origin, "drain", (coin.asset, coin.contract), (source, None), recipient, amount)
        return replace(drained, bare=bare)

    @classmethod
    def loan(cls, origin: Origin, native: AssetId, wallet: str, address: str, stake: int) -> Self:
        """The energy of `stake`, lent by `wallet` to `address`."""
        return cls._planned(origin, "delegation", (native, None), (wallet, None), address, stake)

    @classmethod
    def loan_return(cls, origin: Origin, loan: Move) -> Self:
        """What `loan` lent, taken back."""
        return cls._planned(origin, "undelegation", (loan.asset, None), (loan.source, None), loan.recipient, loan.amount)

    @classmethod
    def fill(cls, origin: Origin, native: AssetId, address: str, path: str | None, nonce: int) -> Self:
        """A filler for `nonce`, which is allotted already: it is built, and its bytes are to be made."""
        filler = cls._planned(origin, "filler", (native, None), (address, path), address, 1)
        return replace(filler, state="built", nonce=nonce, unsigned="")

    @classmethod
    def found(cls, origin: Origin, kind: MoveKind, coin: Coin, source: tuple[str, str | None], recipient: str, amount: int) -> Self:
        """A move that the chain has and the store has lost: nothing is stored of it yet. `source` with its derivation path."""
        return replace(cls._planned(origin, kind, (coin.asset, coin.contract), source, recipient, amount), version=0)

    @classmethod
    def _planned(
        cls,
        origin: Origin,
        kind: MoveKind,
        asset: tuple[AssetId, str | None],
        source: tuple[str, str | None],
        recipient: str,
        amount: int,
    ) -> Self:
        """`asset` with its contract, `source` with its derivation path."""
        return cls(
            id=move_id(origin.owner, kind, origin.number), network=origin.network, kind=kind, asset=asset[0], contract=asset[1],
            source=source[0], path=source[1], recipient=recipient, amount=amount, owner=origin.owner, created_at=origin.at,
            updated_at=origin.at,
        )  # fmt: skip

    @property
    def units(self) -> int:
        """Units that it moves in the ledger: a loan's stake stays in place, and so does a filler's payment to itself."""
        return 0 if self.kind in STAYS else self.amount

    @property
    def tenant(self) -> TenantId:
        """The tenant whose lists show it: the operator's."""
        return operators(network_parts(self.network)[0])

    @property
    def hash(self) -> str | None:
        """The transaction to show: the one that settled it, before that the newest."""
        return self.mined or self.txid

    @property
    def newest(self) -> Attempt | None:
        return Attempt.stored(self.raw, self.txid, self.fee, self.signed_at)

    def signed_as(self, attempt: Attempt) -> Move:
        return replace(
            next_version(self), state="signed", raw=attempt.raw, txid=attempt.txid, fee=attempt.fee, signed_at=attempt.at,
            earlier=self.replaced, renew=False, updated_at=attempt.at,
        )  # fmt: skip

    @property
    def at_rest(self) -> bool:
        return self.state in AT_REST


def transaction_type(move: Move) -> Literal["topup", "collection", "stake"]:
    """The type of a move in lists of transactions. A loan is of a stake, and moves nothing."""
    if move.kind in LOANS:
        return "stake"
    return "topup" if move.kind == "topup" else "collection"


def transaction_state(move: Move) -> Literal["pending", "confirmed", "failed"]:
    """The status of a move in lists of transactions."""
    return "confirmed" if move.state == "settled" else "failed" if move.state == "failed" else "pending"


def operators(realm: Realm) -> TenantId:
    """The owner's name of records without a merchant: for keys of the level admin."""
    return TenantId(f"operator:{realm}")


def move_id(owner: str, kind: MoveKind, number: int) -> str:
    """The id of the `number`-th move of this kind that `owner` planned: the same plan always gives the same id."""
    return derived_id("mov", owner, kind, str(number))


def move_work(move: Move) -> Work:
    """Open work: settle a move. In the lane of its network."""
    return Work("move", move.network, time_order(move.created_at), move.id)


def moved_work(move: Move) -> Work:
    """Open work: watch the block that settled a move until no reorganisation reaches it. Found by height."""
    return Work("moved", move.network, f"{move.block_number or 0:015d}", f"{move.id}|{move.block_hash}")


def move_command(move: Move) -> Command:
    """A command for the signer's next step. In the group of the wallet that pays, as payments are; deposit addresses each have
    a group of their own."""
    body = {"move": move.id, "network": move.network}
    if move.path is None:
        return Command("payouts", group_of(move.network, move.seat), body)
    return Command("collections", f"{move.network}:{move.source}", body)
