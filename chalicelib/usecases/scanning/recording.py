"""Recording of our payments in blocks. A crash half-way, or a second run, leaves nothing that the next run does not find.

The list of a block's deposits is stored under its hash first, or in the one transaction that stores all of them: the reorganisation
that drops the block finds everything that may have been stored of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, count, takewhile
from threading import Lock
from typing import NamedTuple

from chalicelib.domain.addresses.addresses import Watched
from chalicelib.domain.archive.payments import DAY_MS, LEAST_DAYS
from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.chain import Block, Reward, Transfer
from chalicelib.domain.deposits.deposits import Deposit, deposit_id
from chalicelib.usecases.base.fairness import AT_LEAST, in_turn, shared_out
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.newer_states import known_of
from chalicelib.usecases.base.retries import Failures
from chalicelib.usecases.base.side_by_side import in_lanes
from chalicelib.usecases.deposits.claims import Claims
from chalicelib.usecases.deposits.deposits import Deposits
from chalicelib.usecases.deposits.first_sight import Scanned
from chalicelib.usecases.deposits.groups import Member, grouped
from chalicelib.usecases.deposits.native_twins import Twins, held_of, twins_in
from chalicelib.usecases.deposits.recorded_before import Claim
from chalicelib.usecases.deposits.returned_payments import owner_of
from chalicelib.usecases.ports.changes import AtEpoch, AtPart, Conflict, Dropped
from chalicelib.usecases.ports.failures import Contradiction
from chalicelib.usecases.scanning.block_lists import list_deposits, to_begin
from chalicelib.usecases.scanning.leftover_rescans import Leftovers
from chalicelib.usecases.scanning.matching import Matcher, from_others
from chalicelib.usecases.scanning.poison import Poison
from chalicelib.usecases.scanning.recording_lanes import Lane, by_coin, lane_of, member_lane, rounds
from chalicelib.usecases.scanning.rewards import tell_rewards
from chalicelib.usecases.scanning.sharing import Sharing, shares
from chalicelib.usecases.scanning.sightings import SightingNotes

log = logging.getLogger(__name__)

_FEW = 10
"""So many that reading whether they are known before each is recorded saves nothing."""


class Recorded(NamedTuple):
    """The number of blocks, from the first on, that are stored; and those of them that hold more: than is recorded at once, or of
    an invoice at which another worker was all the time."""

    blocks: int
    crowded: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class _Known:
    """The addresses and coins of ours that a block is compared with, what of it can not be stored, and the deposits of it that were
    read, by their ids."""

    watched: dict[str, Watched]
    contracts: dict[str, Coin]
    native: Coin
    poison: Poison
    read: dict[str, Deposit | None]


@dataclass(frozen=True, slots=True)
class _Storing:
    """A block that is being stored: which of its payments are `held`, the `parts` of its list, and the lanes whose conflict did not
    settle."""

    scanned: Scanned
    known: _Known
    may_begin: Callable[[], bool]
    held: Collection[Transfer] = ()
    parts: Mapping[str, int] = field(default_factory=dict)
    beaten: dict[Lane, Conflict] = field(default_factory=dict)

    def seen_in(self, member: Member) -> Scanned:
        return replace(self.scanned, part=self.parts[member.id])


class Recorder:
    def __init__(self, context: NetworkContext, deposits: Deposits, leftovers: Leftovers, sharing: Sharing | None = None) -> None:
        """With `sharing` other functions are asked for payments of a crowded block."""
        self._sharing = sharing
        self._network, self._reader, self._store = context.network, context.reader, context.store
        self._deposits, self._leftovers = deposits, leftovers
        self._context, self._matcher, self._noting = context, Matcher(context), SightingNotes(context)
        self._claims = Claims(context.network, context.reader, context.store)

    def contracts(self) -> dict[str, Coin]:
        """The network's tokens by the storage form of their contracts."""
        return self._matcher.contracts()

    def record(
        self,
        blocks: Sequence[Block],
        epoch: int,
        more: Callable[[], bool] = lambda: True,
        most: int | None = None,
        claim: Claim | None = None,
        tip: int = 0,
        comes_again: bool = False,
        named: Callable[[Transfer], bool] = lambda _: True,
    ) -> Recorded:
        """Store our payments in `blocks`, which the chain holds at `epoch`, and the sightings of our own transactions there;
        stored records stay as they are. Confirmations are told as of `tip`, how high the chain is, or as of each block where that
        is not known.

        Stops in the middle of a block where `more` says that the time is over: the next recording goes on there. Of each block
        no more than `most` are recorded here that belong to one merchant: others are asked for the rest. With a `claim` they are
        one block with one transfer, which was found in a balance. What nodes contradict themselves about is left to a rescan after
        a while, and what can not be stored at once, unless the caller `comes_again`. Only what is `named` is stored.

        Raises Conflict (`AtPart`, `AtEpoch`: a reorganisation was followed meanwhile; without `most` also once the others are
        stored, where another worker was at an invoice all the time), Contradiction, Unavailable, Failures.
        """
        self._noting.note(blocks)
        watched = self._matcher.ours(_received(blocks), returned=True)
        contracts, native = self._matcher.contracts(), self._context.native()
        crowded: list[Block] = []
        begun = 0

        def may_begin() -> bool:
            nonlocal begun
            begun += 1
            return begun <= AT_LEAST or more()

        for place, block in enumerate(blocks):
            tell_rewards(self._network, block, watched)
            mine = [t for t in block.transfers if t.recipient in watched and self._matcher.bookable(t, contracts)]
            mine = from_others(self._store, self._network, mine, watched)
            twins = twins_in(mine, contracts, native)
            mine, behind = in_turn([t for t in mine if named(t)], lambda t: t.recipient), list[Transfer]()
            if most is not None:
                mine, behind = shared_out(mine, lambda t: watched[t.recipient].tenant or t.recipient, most)
            poison = Poison(self._network.id, block)
            known = _Known(watched, contracts, native, poison, {})
            mine, behind = self._unknown(block, mine, known), self._unknown(block, behind, known)
            proven = self._proven(block, mine, comes_again) if mine else []
            storing = _Storing(Scanned(block, epoch, claim, tip), known, may_begin)
            if (proven or behind) and not self._store_block(storing, proven, behind, twins):
                return Recorded(place, tuple(crowded))
            if poison.failures:
                if comes_again or claim is not None:
                    raise Failures(f"{self._network.id}: block {block.number}", poison.failures)
                self._leftovers.order(block)
            for conflict in storing.beaten.values() if most is None else ():
                raise conflict
            if behind or storing.beaten:
                crowded.append(block)
        return Recorded(len(blocks), tuple(crowded))

    def _unknown(self, block: Block, mine: list[Transfer], known: _Known) -> list[Transfer]:
        """Those of `mine` that their own ids do not name as being in this very block."""
        ids = [deposit_id(self._network.id, t.txid, t.position) for t in mine]
        missing = self._missing(block, list(zip(ids, mine, strict=True)), known)
        return [t for id_, t in zip(ids, mine, strict=True) if id_ in missing]

    def _missing(self, block: Block, movements: Sequence[tuple[str, Transfer]], known: _Known) -> set[str]:
        """The ids of those that are not stored as being in this very block. What was read before is taken for true, others may
        have stored it since; the rest is read where it is worth looking. What can not be read is not missing: it may be credited,
        and waits for a rescan."""
        read, left = known.read, known.poison.left
        unread = {t: id_ for id_, t in movements if id_ not in read and t not in left}
        if unread and (len(movements) > _FEW or self._may_be_archived(block)):
            found = known.poison.each(
                list(unread), lambda some: known_of(self._store, [(Deposit, {"id": unread[t]}) for t in some])
            )
            read.update((unread[t], deposit) for t, deposit in found.items())
        return {id_ for id_, t in movements if t not in left and not _stored_as(read.get(id_), t, block)}

    def _may_be_archived(self, block: Block) -> bool:
        """Whether payments of the block are perhaps in the archive, and its list gone with them: it is not made again for them."""
        return self._context.clock.now_ms() - block.time >= LEAST_DAYS * DAY_MS

    def _proven(self, block: Block, mine: list[Transfer], comes_again: bool) -> list[Transfer]:
        """The transfers of `mine` that happened. Raises Contradiction, Unavailable."""
        try:
            return self._reader.proven(block, mine)
        except Contradiction:
            if comes_again or not self._leftovers.waited_for(block):
                raise
        self._leftovers.order(block)
        proven: list[Transfer] = []
        for t in mine:
            try:
                proven += self._reader.proven(block, [t])
            except Contradiction as error:
                log.error("ALARM %s: %s in block %d is left to a rescan: %s", self._network.id, t.txid, block.number, error)
        return proven

    def _store_block(self, storing: _Storing, proven: list[Transfer], behind: Sequence[Transfer], twins: Sequence[Twins]) -> bool:
        """Whether there was time to store all that is `proven`. Others are asked for what is `behind` it."""
        block, epoch, watched = storing.scanned.block, storing.scanned.epoch, storing.known.watched
        ids = storing.known.poison.each(proven, lambda some: self._claims.ids(block, some))
        owned = self._owned(ids, watched)
        held = held_of(self._store, self._network, twins, {t: id_ for t, id_, _ in owned})
        if self._may_be_archived(block):
            owned = self._not_stored(block, owned, storing.known)
        groups = grouped(owned)
        if len(groups) == 1 and not held and not behind and self._stored_with_list(storing, groups[0]):
            return True
        # The list first: a reorganisation finds everything that may have been stored of the block, also where we die half-way
        # and another worker credits what we did store.
        listed = [member.id for group in groups for member in group]
        parts = list_deposits(self._store, self._network.id, block, listed, epoch) if listed else {}
        self._ask_for(storing, behind)  # once the list is there: they put theirs on it
        return self._store_shares(replace(storing, held=held, parts=parts), owned)

    def _ask_for(self, storing: _Storing, behind: Sequence[Transfer]) -> None:
        """Ask other functions for payments of the block, those of one merchant and coin together, which groups are made of."""
        if self._sharing is None:
            return
        watched = storing.known.watched
        ordered = sorted(behind, key=lambda t: (str(watched[t.recipient].tenant), t.contract or ""))
        for share in shares(ordered, lambda t: lane_of(t, watched[t.recipient])):
            self._sharing.ask_recorded(storing.scanned.block, storing.scanned.epoch, share)

    def _stored_with_list(self, storing: _Storing, group: list[Member]) -> bool:
        """Whether `group`, all that the block has for us, is stored now in one transaction with the block's list: plain payments
        that nobody has seen, as most blocks have them. Else nothing of it is."""
        scanned = storing.scanned
        if scanned.claim is not None or group[0].owner.tenant is None:
            return False
        begins = to_begin(self._store, self._network.id, scanned.block, [member.id for member in group], scanned.epoch)
        if begins is None or not all(storing.may_begin() for _ in group):
            return False
        coin, seen = _coin(storing.known, group[0]), replace(scanned, part=0)
        return not storing.known.poison.together(
            group, lambda: self._deposits.detect_together(self._network, coin, seen, group, begins)
        )

    def _store_shares(self, storing: _Storing, owned: list[Member]) -> bool:
        """Whether there was time for all of `owned`. Of many, other functions are asked for all shares but the first; here each
        share is come to all the same, and what they have not stored by then is stored."""
        scanned, known = storing.scanned, storing.known
        sharing, todo = self._sharing, self._not_stored(scanned.block, owned, known)
        if sharing is None or not sharing.wanted(len(todo)) or scanned.claim is not None:
            return self._store_some(storing, todo)
        # By groups: a share does not cut one in two.
        todo = [member for group in grouped(todo, storing.parts) for member in group]
        made = shares(todo, member_lane)
        for share in made[1:]:
            sharing.ask_recorded(scanned.block, scanned.epoch, [member.transfer for member in share])
        # Nobody was asked for the first share; others may have stored the rest of the block since it was read.
        looks = chain([storing], (replace(storing, known=replace(known, read={})) for _ in count()))
        return all(
            self._store_some(look, self._not_stored(scanned.block, share, look.known))
            for share, look in zip(made, looks, strict=False)
        )

    def _store_some(self, storing: _Storing, todo: list[Member]) -> bool:
        """Whether there was time for all of `todo`: in groups, and side by side what does not meet."""
        claimed, held = storing.scanned.claim is not None, storing.held
        alone = [member for member in todo if claimed or member.transfer in held or member.owner.tenant is None]
        ids = {member.id for member in alone}
        groups = grouped([member for member in todo if member.id not in ids], storing.parts)
        lock, in_time = Lock(), [True]

        def step(group: list[Member]) -> None:
            with lock:
                begun = list(takewhile(lambda _: in_time[0] and storing.may_begin(), group))
                in_time[0] = len(begun) == len(group)
            self._store_group(storing, begun)

        for some in rounds([*groups, *([member] for member in alone)]):
            in_lanes([[partial(step, group) for group in lane] for lane in by_coin(some)])
        return in_time[0]

    def _store_group(self, storing: _Storing, group: list[Member]) -> None:
        """In one transaction, and one by one what that can not take. What another worker does not let us record is left, and so is
        all that comes after it in its lane."""
        group = [member for member in group if member_lane(member) not in storing.beaten]
        left: Sequence[Member] = group
        poison, read = storing.known.poison, storing.known.read
        if len(group) > 1:
            coin, seen = _coin(storing.known, group[0]), storing.seen_in(group[0])
            new = all(read.get(member.id, member) is None for member in group)
            left = poison.together(group, partial(self._deposits.detect_together, self._network, coin, seen, group, new=new))
        for member in left:
            t, id_, owner = member
            coin, seen = _coin(storing.known, member), storing.seen_in(member)
            try:
                poison.alone(member, partial(self._deposits.detect, self._network, coin, seen, t, owner, id_, t in storing.held))
            except Conflict as conflict:
                if storing.scanned.claim is not None or isinstance(conflict.change, AtEpoch | AtPart | Dropped):
                    raise
                log.warning("%s: %s waits, since others change its invoice all the time", self._network.id, id_)
                storing.beaten[member_lane(member)] = conflict

    def _owned(self, ids: Mapping[Transfer, str], watched: Mapping[str, Watched]) -> list[Member]:
        """Those of the transfers with these `ids` that have an owner here."""
        found: list[Member] = []
        for transfer, id_ in ids.items():
            payee = watched[transfer.recipient]
            owner = owner_of(self._store, self._network, payee, id_)
            if owner is None:
                self._matcher.astray(transfer, payee)
            else:
                found.append(Member(transfer, id_, owner))
        return found

    def _not_stored(self, block: Block, owned: Sequence[Member], known: _Known) -> list[Member]:
        """Those of `owned` that are not stored as being in this very block."""
        missing = self._missing(block, [(member.id, member.transfer) for member in owned], known)
        return [member for member in owned if member.id in missing]


def _coin(known: _Known, member: Member) -> Coin:
    contract = member.transfer.contract
    return known.native if contract is None else known.contracts[contract]


def _stored_as(known: Deposit | None, transfer: Transfer, block: Block) -> bool:
    """Whether `known` is `transfer` in this very block: what a claim gave the id of another log stands at another position."""
    if known is None or known.status == "orphaned":
        return False
    return (known.block_hash, known.position) == (block.hash, transfer.position)


def _received(blocks: Sequence[Block]) -> Iterator[Transfer | Reward]:
    for block in blocks:
        yield from block.transfers
        yield from block.rewards
