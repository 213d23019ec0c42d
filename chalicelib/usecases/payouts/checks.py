"""Checks of every payment before its money moves, on any chain: the grey list once more, its risk, its approvals, and the step
after a refusal. Shared by payments from accounts (`payouts`) and from coins (`bundle_payouts`)."""

from __future__ import annotations

import logging
from dataclasses import replace

from chalicelib.domain.catalogue.catalogue import Coin, Network
from chalicelib.domain.catalogue.coin_settings import NoFreshRate, amount_text, in_usd, limit_units
from chalicelib.domain.catalogue.rates import Rates, RatesOf
from chalicelib.domain.ids import network_parts
from chalicelib.domain.ledger import Balance
from chalicelib.domain.merchants.suspensions import Suspension
from chalicelib.domain.versions import next_version
from chalicelib.domain.withdrawals.payout_line import RETRY_MS, aside_order, waiting_order
from chalicelib.domain.withdrawals.slot_shortages import SlotShortage
from chalicelib.domain.withdrawals.withdrawals import FEES_WAIT_MS, PendingReason, Withdrawal
from chalicelib.encoding.ed25519 import verify
from chalicelib.usecases.base.views import Views
from chalicelib.usecases.payouts.failing import failed
from chalicelib.usecases.payouts.fees import Denied
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Refused, TooMuchGas
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.screening.grey_list import grey_listed
from chalicelib.usecases.screening.withdrawals import Risk, Screened
from chalicelib.usecases.withdrawals.steps import (
    catalogue_views,
    moved_in_line,
    sent_back,
    waiting_for_fees,
)

log = logging.getLogger(__name__)


class PayoutChecks:
    """Each step is one transaction. Raises Conflict, Unavailable."""

    def __init__(self, store: Store, rules: AddressRules, clock: Clock, risk: Risk, rates_of: RatesOf) -> None:
        self._store, self._rules, self._clock, self._risk, self._rates_of = store, rules, clock, risk, rates_of

    def stopped(self, network: Network, before: Withdrawal) -> bool:
        """Whether something has to happen with a withdrawal first that is pending, or between bundles; the record says what.

        Somebody has to decide, which asks for it again; or its merchant is suspended, or has a negative balance: then the sweep
        does.
        """
        if before.waits_for_approval or before.pending_reason == "approval":
            return True
        tenant = {"tenant": before.tenant}
        suspension, owed = self._store.get_many([(Suspension, tenant), (Balance, {**tenant, "asset": before.asset})])
        if suspension is not None and suspension.suspended:
            self._wait(network, before, "suspended", "until its merchant is resumed")
            return True
        if owed is not None and owed.available < 0:
            # A reorganisation took a deposit whose money was already spent: nothing goes out until that is made good.
            self._wait(network, before, "risk", "for the balance of its merchant, which is negative")
            return True
        if before.status != "pending" or not self._doubtful(before):
            return False  # who left its bundle was asked about before it began, and does not go back to being decided about
        log.warning("%s: %s goes to an address that is on the grey list now: the operator is asked", network.id, before.id)
        self._store.commit(sent_back(before, self._clock.now_ms(), "grey_list"))
        return True

    def screened(self, network: Network, before: Withdrawal) -> Screened | None:
        """What was found about a pending withdrawal, and what the transaction has to save that begins it; None where it waits for
        the operator, or failed.

        What the operator has accepted is not asked again; what comes up besides is.
        """
        now = self._clock.now_ms()
        screened = self._risk.of(network, before, now)
        if screened.never is not None:
            self.fail(before, f"the address {screened.never}")
            return None
        found = screened.assessment
        if not screened.asks or found is None:
            return screened
        names = ", ".join(finding.name for finding in found.findings)
        log.error("ALARM %s: %s waits for the operator, its risk is %d: %s", network.id, before.id, found.score, names)
        self._store.commit(sent_back(before, now, "risk", found))
        return None

    def _doubtful(self, withdrawal: Withdrawal) -> bool:
        """Whether its address is on the grey list now and the operator has not agreed to it. Others' word does not count there."""
        if withdrawal.approval is not None and "grey_list" in withdrawal.approval.reasons:
            return False  # and has an answer, or it would not have come here
        return grey_listed(self._store, self._rules, withdrawal.network, withdrawal.to_address)

    def floor(self, coin: Coin) -> int | None:
        """Units of the coin that payments leave on the hot wallet (its `hotFloor`): 0 where none is set, None while nobody knows
        what one in USD is worth, and then nothing is left to pay with. Rates are read only where they are needed."""
        if amount_text(coin, "hotFloor") == "0":
            return 0
        rates = self._rates_of(network_parts(coin.network)[0]) if in_usd(coin) else Rates()
        try:
            return limit_units(coin, "hotFloor", rates, self._clock.now_ms()) or 0
        except NoFreshRate as reason:
            log.warning("%s: payments of %s wait: %s", coin.network, coin.slug, reason)
            return None

    def wait_for_liquidity(self, network: Network, before: Withdrawal, short: SlotShortage | None = None) -> None:
        """Note on a withdrawal that is pending, or between bundles, that the hot wallet has too little for it; `short`: what the
        treasury is asked to move between several."""
        self._wait(network, before, "liquidity", "for liquidity of the hot wallet", short)

    def wait_for_fees(self, network: Network, before: Withdrawal, why: str, *, own: bool = True) -> Withdrawal | None:
        """Note on a withdrawal that is pending, or between bundles, that it waits with the reason `fees`.

        `why` says for what, in the log; an operator may lift it. `own`: its own fee is too high, so that it fails after
        `FEES_WAIT_MS` in a row, and is returned then; else None.
        """
        now = self._clock.now_ms()
        known = before.fee_wait
        since = (known.since if known is not None and known.since is not None else now) if own else None
        if since is not None and now - since >= FEES_WAIT_MS:
            return self.fail(before, f"{why}, for 24 hours")
        if before.pending_reason != "fees":
            log.warning("ALARM %s: %s waits because of fees: %s", network.id, before.id, why)
        self._store.commit(waiting_for_fees(before, now, since))
        return None

    def halt(self, network: Network, before: Withdrawal) -> None:
        """Note on a withdrawal that is pending that the operator has stopped all payments."""
        if before.status != "pending" or before.waits_for_approval or before.pending_reason == "halted":
            return
        log.info("%s: %s waits: outgoing payments are stopped", network.id, before.id)
        # As soon as payments go on, the oldest first.
        due, now = waiting_order(before.tenant, before.created_at), self._clock.now_ms()
        halted = replace(next_version(before), pending_reason="halted", updated_at=now, line=due)
        self._store.commit(moved_in_line(before, halted))

    def _wait(
        self, network: Network, before: Withdrawal, reason: PendingReason, what: str, short: SlotShortage | None = None
    ) -> None:
        if reason not in (before.pending_reason, "suspended"):  # that is an operator's own decision
            log.warning("ALARM %s: %s waits %s", network.id, before.id, what)
        now = self._clock.now_ms()
        due = aside_order(before, now + RETRY_MS)
        waiting = replace(next_version(before), pending_reason=reason, updated_at=now, line=due)
        self._store.commit([*moved_in_line(before, waiting), *([] if short is None else [Save(short)])])

    def fail(self, before: Withdrawal, why: str) -> Withdrawal:
        """Failed before anything was signed: the money is available again."""
        after, changes = failed(self._store, self._rates_of, before, why, self._clock.now_ms())
        self._store.commit(changes)
        return after

    def refuse(self, before: Withdrawal, refused: Refused) -> Withdrawal:
        """Failed in the same way, since the chain would refuse it: what its merchant is told."""
        return self.fail(before, str(refused) if isinstance(refused, TooMuchGas) else f"the network would refuse it: {refused}")

    def deny(self, network: Network, before: Withdrawal, denied: Denied) -> Withdrawal | None:
        """What it would cost may not be spent on it: failed, or None while it waits."""
        if denied.final:
            return self.fail(before, denied.why)
        return self.wait_for_fees(network, before, denied.why)

    def agreed(self, withdrawal: Withdrawal) -> bool:
        """Whether every approval that it needs was given. The function that signs verifies their signatures once more."""
        if withdrawal.approval is None:
            return True
        text = Views(catalogue_views(self._store, withdrawal)[0]).signing_text(withdrawal)
        return withdrawal.approval.proven(text, verify)
