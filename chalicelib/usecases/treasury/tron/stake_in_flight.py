"""A stake in flight, as `transactions.accounts.following` looks at it."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.domain.chain import Receipt
from chalicelib.domain.ids import AssetId
from chalicelib.domain.transactions.outgoing import Attempt
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.transactions.sightings import Ours
from chalicelib.domain.treasury.stakes import Stake, stake_command
from chalicelib.domain.versions import next_version
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.staking import StakingNode
from chalicelib.usecases.transactions.finality import Finality, Scanned
from chalicelib.usecases.transactions.losses import Losses, stake_sent
from chalicelib.usecases.transactions.replacement_bounds import worn_out
from chalicelib.usecases.transactions.sighting_gaps import NoteGaps
from chalicelib.usecases.treasury.tron.stake_booking import StakeBooking

IDLE_SECONDS = 60
"""A stake whose signature was asked for so long ago is asked for again: a command may be lost."""


class StakeInFlight:
    """Implements `InFlight`. A stake is money that leaves the hot wallet, too: the kill switch stops it.

    It is looked for before it is signed, too: a restored record may have forgotten that it was.
    """

    others = True

    def __init__(
        self,
        context: NetworkContext,
        node: StakingNode,
        booking: StakeBooking,
        renewals: RenewalRules,
        finality: Finality,
        losses: Losses,
        stake: Stake,
    ) -> None:
        self._context, self._node, self._booking, self._renewals = context, node, booking, renewals
        self._finality, self._losses, self._stake = finality, losses, stake
        self.id = self.name = stake.id
        self.attempts = stake.expected
        self.at_stake: tuple[AssetId, int] = (context.native().asset, stake.amount)

    def ours(self) -> Ours:
        return stake_sent(self._context.network, self._context.rules, self._node, self._stake)

    def mined(self, attempt: Attempt, receipt: Receipt, scanned: Scanned) -> bool:
        self._booking.ripen(self._stake, receipt, scanned)
        return False

    def lost(self, ours: Ours, scanned: Scanned) -> bool:
        """False: what can not be mined any more is replaced (`still_out`), and fails only where the chain takes no other."""
        return False

    def lose(self, scanned: Scanned) -> None:
        """Raises LookupError: see `lost`."""
        raise LookupError(f"{self.name} is never lost by its nonce")

    def give_up(self) -> None:
        self._booking.give_up(self._stake)

    def broadcast(self, raw: str) -> None:
        self._node.broadcast(raw)

    def still_out(self, sent: bool, ours: Ours, scanned: Scanned) -> None:
        stake = self._stake
        if stake.newest is None or stake.unsigned is None:
            self._ask(stake)
        elif (stake.renew or self._expired(ours, scanned)) and not worn_out(self._context.network, self._renewals, stake):
            self._ask(replace(stake, renew=True))

    def _expired(self, ours: Ours, scanned: Scanned) -> bool:
        """Whether no block will ever have it: every node says so, and the blocks prove it (money rule 13)."""
        stake = self._stake
        if not self._node.renewable(stake.unsigned or "", stake.txid, self._finality.every_node(*self.at_stake)):
            return False
        lost = self._losses.lost(ours, scanned)
        if not lost:
            gap, now = self._losses.gap(ours, scanned), self._context.clock.now_ms()
            NoteGaps(self._context.network, self._context.store).close(gap, scanned, now)
        return lost

    def _ask(self, wanted: Stake) -> None:
        """Ask the function that signs for its signature, or for another one in place of what has expired."""
        news = News(self._context.clock.now_ms())
        due = news.at - wanted.touched_at >= IDLE_SECONDS * 1000
        if not due and not (wanted.renew and wanted.newest is not None):
            return
        news.command(stake_command(wanted))
        self._context.store.commit([Save(replace(next_version(wanted), touched_at=news.at)), *news.emit()])
