"""Compares addresses on account networks: the ledger's balance, the on-chain balance expected from it, and the actual one.

Where nodes know balances at a block (EVM), all is compared at the newest block that has its confirmations and was scanned: nothing
that comes later disturbs. Elsewhere nodes tell only balances of the newest block (simulated networks), or of the newest solid one
(Tron). There an address that differs is compared once more between two equal readings of that height, with blocks not yet scanned.

A comparison may still meet a poll between two of its own writes. So a difference proves nothing, it makes a suspect.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from chalicelib.domain.chain import Cursor, Receipt
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.reconciliation import Place, Seen, Unread
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.base.side_by_side import answers
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.readers import Balances, SolidBalances, Stakes, every_block
from chalicelib.usecases.reconciliation.in_flight import Effects, InFlight, InFlightWork, PlaceKey, effects, touching
from chalicelib.usecases.reconciliation.together import Together

MOST_AHEAD = 200
"""Blocks behind the cursor that are read for a look. A network that is further behind is not compared now."""
TRIES = 3
AT_ONCE = 32
"""Requests at a time, where each place is one."""


class _Accounts:
    """The parts of both comparisons."""

    unspent: Sequence[str] = ()

    def __init__(self, context: NetworkContext) -> None:
        self._context, self._network, self._reader, self._store = context, context.network, context.reader, context.store
        self._ways = InFlightWork(context)

    def form(self, contract: str | None) -> str | None:
        return self._context.contract_form(contract)

    def holding(self, places: Sequence[Place]) -> list[Place]:
        return list(places)

    def touched(self) -> Collection[str]:
        return {address for way in self._ways.read() for address in way.addresses}

    def _cursor(self) -> Cursor:
        cursor = self._store.get(Cursor, network=self._network.id)
        if cursor is None or cursor.halted is not None or cursor.rewind_to is not None:
            raise Unavailable(f"{self._network.id} is not scanned yet, follows a reorganisation, or is halted")
        return cursor

    def _ledger(self, places: Sequence[Place]) -> dict[PlaceKey, WalletBalance]:
        """The ledger's balances of these places. Staked coins have no balance of their own: they are the sum of the stakes that are
        final."""
        network = self._network.id
        kept = [place for place in places if not place.staked]
        keys: list[tuple[type[Any], dict[str, str]]] = [
            (WalletBalance, {"network": network, "address": place.address, "asset": place.asset}) for place in kept
        ]
        known = zip(kept, self._store.get_many(keys) if keys else [], strict=True)
        found = {p.key: wallet or WalletBalance(network, p.address, p.asset) for p, wallet in known}
        staked = self._staked() if len(kept) < len(places) else {}
        for place in places:
            if place.staked:
                found[place.key] = WalletBalance(network, place.address, place.asset, staked.get(place.address, 0))
        return found

    def _staked(self) -> dict[str, int]:
        """Units by address (storage form). Only the operator stakes, now and then: all stakes are a page or two."""
        sums: dict[str, int] = defaultdict(int)
        after: str | None = None
        while True:
            page = self._store.page(Stake, limit=1000, after=after, network=self._network.id)
            for stake in page.items:
                if stake.status == "confirmed":
                    sums[self._context.form(stake.wallet)] += stake.amount
            after = page.next
            if after is None:
                return sums

    def _awaited(self, number: int) -> Mapping[PlaceKey, int]:
        """Units by place that arrived up to this block and are not credited yet."""
        sums: dict[PlaceKey, int] = defaultdict(int)
        for works in pages_of(self._store, "deposit", self._network.id, upto=f"{number:015d}"):
            for deposit in self._store.get_many([(Deposit, {"id": work.id}) for work in works]):
                if deposit is not None and deposit.awaited:
                    sums[self._context.form(deposit.address), deposit.asset, False] += deposit.amount
        return sums

    def _effects(self, ways: Sequence[InFlight], places: Sequence[Place], upto: int | None) -> Effects:
        """Of what touches these places, as of the block `upto`; None: as of now."""
        there = touching(ways, {place.address for place in places})
        return effects(there, self._context.native().asset, lambda way: self._mined(way, upto))

    def _mined(self, way: InFlight, upto: int | None) -> Receipt | None:
        for txid in way.txids:
            receipt = self._reader.receipt(txid)
            if receipt is not None and (upto is None or receipt.block_number <= upto):
                return receipt
        return None


def _seen(place: Place, ledger: WalletBalance, awaited: int, told: Effects, held: int, block: int) -> Seen | Unread:
    """`awaited` units have arrived and are not credited yet. Where deposits are set aside the ledger does not have what came."""
    key = place.key
    expected = ledger.units + awaited + told.more.get(key, 0)
    if ledger.aside and held != expected:
        return Unread(place, block, f"{ledger.aside} deposits are set aside there, and in no balance", lasting=True)
    return Seen(place, ledger.units, told.in_flight.get(key, 0), expected, held, told.leaving.get(key, 0), block)


def _sorted(told: Iterable[tuple[Place, int | Unavailable]], block: int) -> tuple[dict[PlaceKey, int], list[Seen | Unread]]:
    """What the chain has, and what could not be read. One token that answers nothing, or nonsense, must not hide what all others
    say. A node that is away does not tell the native coins either."""
    held, unread = dict[PlaceKey, int](), list[Seen | Unread]()
    for place, units in told:
        if isinstance(units, int):
            held[place.key] = units
        else:
            unread.append(Unread(place, block, " ".join(str(units).split())[:200]))
    return held, unread


class LooksAtABlock(_Accounts):
    """Compares live EVM networks."""

    everywhere = True

    def block(self) -> int:
        return self._final()[0]

    def look(self, places: Sequence[Place]) -> list[Seen | Unread]:
        """Compare all places at the same block. Raises Unavailable, also where a fallback node says otherwise."""
        number, block_hash = self._final()
        held, unread = self._told(places, number, block_hash)
        places = [place for place in places if place.key in held]
        ways = self._ways.read()
        ledger = self._ledger(places)
        awaited = self._awaited(number) if any(wallet.pending for wallet in ledger.values()) else {}
        found = self._effects(ways, places, number)
        return [*(_seen(p, ledger[p.key], awaited.get(p.key, 0), found, held[p.key], number) for p in places), *unread]

    def holding(self, places: Sequence[Place]) -> list[Place]:
        """Where a token can not be read, nothing: an address that has some of it is compared by its balance, and told then."""
        held, _ = self._told(places, *self._final())
        return [place for place in places if held.get(place.key)]

    def _told(self, places: Sequence[Place], number: int, block_hash: str) -> tuple[dict[PlaceKey, int], list[Seen | Unread]]:
        """What the chain has at each place at that block, and the places that could not be read."""
        reader = self._reader
        if not isinstance(reader, Balances):
            raise Unavailable(f"{self._network.id}: its node knows no balances at a block")

        def ask(contract: str | None) -> Mapping[Place, int | Unavailable]:
            wanted = [place for place in places if place.contract == contract]
            try:
                told = reader.balances_at([place.address for place in wanted], number, block_hash, contract)
            except Unavailable as error:
                if contract is None:
                    raise
                return dict.fromkeys(wanted, error)
            return dict(zip(wanted, told, strict=True))

        told = answers(ask, list(dict.fromkeys(place.contract for place in places)), AT_ONCE)
        return _sorted([each for answer in told for each in answer.items()], number)

    def _final(self) -> tuple[int, str]:
        """The newest block that has its confirmations and was scanned: what it holds is credited, or waits to be. Of a network that
        is out of service, and not scanned, the newest one: what has come there since shows as more than the ledger has."""
        cursor = self._cursor()
        if self._network.status != "active":
            newest = self._reader.tip() - self._network.confirmations + 1
            found = self._reader.block_hash(newest)
            if found is None:
                raise Unavailable(f"{self._network.id}: its node has no block {newest}")
            return newest, found
        number = cursor.number - self._network.confirmations + 1
        if str(number) not in cursor.recent:
            raise Unavailable(f"{self._network.id}: scanning has just begun")
        return number, cursor.recent[str(number)]


class LooksAtNow(_Accounts):
    """For simulated networks at the newest block, and for Tron at the newest solid one: to the newest balances its nodes add
    transactions that are in no block yet."""

    everywhere = False

    def __init__(self, context: NetworkContext) -> None:
        super().__init__(context)
        reader = context.reader
        self._solid = reader if isinstance(reader, SolidBalances) and context.network.family == "tron" else None
        self._together = None if self._solid is None else Together(self._solid)

    def block(self) -> int:
        return self._reader.tip() if self._solid is None else self._solid.solid()

    def look(self, places: Sequence[Place]) -> list[Seen | Unread]:
        """First without waiting for anything; what differs then, exactly. Raises Unavailable."""
        self._demand_scanned(self._cursor())
        ways, height = self._ways.read(), self.block()
        native_first = sorted(places, key=lambda place: place.contract is not None)
        known = {} if self._together is None else self._together.told(native_first)
        rest = [place for place in native_first if place not in known]
        told = answers(self._asked, rest, 1 if self._solid is None else AT_ONCE)
        held, unread = _sorted([*known.items(), *zip(rest, told, strict=True)], height)
        places = [place for place in places if place.key in held]
        ledger, found = self._ledger(places), self._effects(ways, places, height)
        awaited = self._arrived(ledger, height)
        quick = [_seen(p, ledger[p.key], awaited.get(p.key, 0), found, held[p.key], height) for p in places]
        return [*(self._exactly(seen) if isinstance(seen, Seen) and seen.difference else seen for seen in quick), *unread]

    def _exactly(self, quick: Seen) -> Seen | Unread:
        """Between two readings of the same height. A chain that does not stand still long enough is looked at another time."""
        place = quick.place
        for _ in range(TRIES):
            cursor = self._cursor()
            self._demand_scanned(cursor)
            height, ways = self.block(), self._ways.read()
            ledger, held = self._ledger([place]), self._held(place)
            found = self._effects(ways, [place], height)
            came = self._arrived(ledger, height).get(place.key, 0)
            came += 0 if place.staked else self._ahead(cursor, height, place, ways)
            if self.block() == height and self._cursor() == cursor:
                return _seen(place, ledger[place.key], came, found, held, height)
        return quick

    def _arrived(self, ledger: Mapping[PlaceKey, WalletBalance], height: int) -> Mapping[PlaceKey, int]:
        """Deposits up to `height` that are not credited yet: all pending ones, where the newest block is compared."""
        if self._solid is None:
            return {key: wallet.pending for key, wallet in ledger.items()}
        return self._awaited(height) if any(wallet.pending for wallet in ledger.values()) else {}

    def _ahead(self, cursor: Cursor, height: int, place: Place, ways: Sequence[InFlight]) -> int:
        """Units that came to a place in blocks that are not scanned yet, without our own transactions: their receipts tell
        those."""
        if self._network.status != "active":
            return 0  # It is not scanned: what has come since shows as more than the ledger has.
        if height - cursor.number > MOST_AHEAD:
            raise Unavailable(f"{self._network.id} is {height - cursor.number} blocks behind")
        if height <= cursor.number:
            return 0
        ours = {txid for way in ways for txid in way.txids}
        units = 0
        contracts = () if place.contract is None else (place.contract,)
        for block in every_block(self._reader, cursor.number + 1, height, contracts):
            wanted = [
                transfer
                for transfer in block.transfers
                if (transfer.recipient, transfer.contract) == (place.address, place.contract) and transfer.txid not in ours
            ]
            units += sum(transfer.amount for transfer in self._reader.proven(block, wanted)) if wanted else 0
        return units

    def _asked(self, place: Place) -> int | Unavailable:
        try:
            return self._held(place)
        except Unavailable as error:
            if place.contract is not None:
                return error
            raise

    def _demand_scanned(self, cursor: Cursor) -> None:
        """Raises Unavailable where the chain has left the branch that was scanned."""
        if self._reader.block_hash(cursor.number) != cursor.hash:
            raise Unavailable(f"{self._network.id}: the chain is not on the branch that was scanned")

    def _held(self, place: Place) -> int:
        if place.staked:
            if not isinstance(self._reader, Stakes):
                raise Unavailable(f"{self._network.id}: nobody tells what is staked")
            return self._reader.staked(place.address)
        reader = self._reader.balance if self._solid is None else self._solid.solid_balance
        return reader(place.address, place.contract)
