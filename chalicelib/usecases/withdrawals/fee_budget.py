"""The fee budget: payout fees that the operator bears, counted for each merchant, network and UTC day (money rule 14).

The step that begins a payment counts its fee, and saves the day's record by its version: of two payments that begin at once the
second is decided again with the first one counted. The withdrawal keeps what was counted for it. So a replacement, the fee on the
chain and a return to the merchant each correct the count once, in their own transactions. Each merchant and network has a record of
its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.chain import FeeQuote
from chalicelib.domain.ids import TenantId, asset_parts, network_parts
from chalicelib.domain.versions import version_after
from chalicelib.domain.withdrawals.fee_budget import DAY_MS, Borne, FeeBudget, FeesBorne, micros_of
from chalicelib.domain.withdrawals.fees import operators_part
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.ports.changes import Change, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store

USED_UP = "for the next UTC day: what the operator bears of its merchant's network fees is used up"


@dataclass(frozen=True, slots=True)
class Counted:
    """`withdrawal` with its counted fee, and the changes that count it; `over`: its merchant's budget is not enough."""

    withdrawal: Withdrawal
    changes: Sequence[Change] = ()
    over: bool = False


class FeeBudgets:
    """Reads and decides; stores nothing itself. `usd` is the deployment's budget in US dollars."""

    def __init__(self, store: Store, clock: Clock, rates_of: RatesOf, usd: int) -> None:
        self._store, self._clock, self._rates_of, self._usd = store, clock, rates_of, usd

    def start(self, network: Network, withdrawal: Withdrawal, fee: int, own: bool) -> Counted:
        """Count a withdrawal that is about to begin and may cost `fee` (units of the native coin).

        `own`: its address is one of this service. Where that was not known when it was created, what collecting costs is not
        reserved, and counts as well; without a quote of that it is `over`. Raises Unavailable.
        """
        unreserved = 0
        if own and not withdrawal.charge_fixed:
            quote = self._store.get(FeeQuote, network=network.id)
            unreserved = 0 if quote is None else quote.collecting.get(asset_parts(withdrawal.asset)[1], 0)
            if not unreserved and not withdrawal.fees_accepted:
                return Counted(withdrawal, over=True)
        noted = replace(withdrawal, uncharged=unreserved)
        now = self._clock.now_ms()
        if noted.borne is not None and noted.borne.day < now // DAY_MS:
            noted = replace(noted, borne=None)  # counted on another day, for a beginning that came to nothing
        record = _counted(self._store, self._rates_of, noted, fee, now)
        if record is None:
            return Counted(noted)
        after, borne, same = record
        budget = None if same else self._store.get(FeeBudget, tenant=withdrawal.tenant)
        usd = self._usd if budget is None or budget.usd is None else budget.usd
        over = not same and after.over(usd) and not withdrawal.fees_accepted
        return Counted(replace(noted, borne=borne), () if same else (Save(after),), over)

    def corrected(self, withdrawal: Withdrawal, fee: int) -> Counted:
        """As the function `corrected`, at the present time."""
        return corrected(self._store, self._rates_of, withdrawal, fee, self._clock.now_ms())


def corrected(store: Store, rates_of: RatesOf, withdrawal: Withdrawal, fee: int | None, now: int) -> Counted:
    """Count a withdrawal that has started anew and now costs `fee`; None: it costs nothing and is not collected. Raises
    Unavailable."""
    if fee is None:
        withdrawal = replace(withdrawal, uncharged=0)
    record = _counted(store, rates_of, withdrawal, fee or 0, now)
    if record is None:
        return Counted(withdrawal)
    after, borne, same = record
    return Counted(replace(withdrawal, borne=borne), () if same else (Save(after),))


def _counted(store: Store, rates_of: RatesOf, withdrawal: Withdrawal, fee: int, now: int) -> tuple[FeesBorne, Borne, bool] | None:
    """The day's record with it, what is counted for it, and whether both are what they were; None: there is nothing to count."""
    part = operators_part(withdrawal, fee) + withdrawal.uncharged
    if not part and withdrawal.borne is None:
        return None
    realm, slug = network_parts(withdrawal.network)
    native = store.catalogue(realm).native(slug)
    # The last one that is known, however old: an expensive hour must not be free because nobody says what it costs.
    rate = rates_of(realm).get(native.slug)
    if rate is None:
        return None
    found = store.get(FeesBorne, tenant=withdrawal.tenant, network=withdrawal.network)
    record = found or FeesBorne(withdrawal.tenant, withdrawal.network)
    after, borne = record.counting(withdrawal.borne, now, micros_of(part, native.decimals, rate.decimal))
    same = borne == withdrawal.borne and (after.day, after.micros) == (record.day, record.micros)
    return after, borne, same


def set_budget(store: Store, tenant: TenantId, usd: int | None, at: int, by: str) -> FeeBudget:
    """Set the operator's budget for a merchant's fees from now on; None: the deployment's. Raises Conflict, Unavailable."""
    known = store.get(FeeBudget, tenant=tenant)
    made = FeeBudget(tenant, usd, at, by, version_after(known))
    store.commit([Save(made)])
    return made
