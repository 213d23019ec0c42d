"""Risk rules of withdrawals: a history of each merchant's payments, and weighted findings that are scored against it.

The history is two small records: one of a coin (amounts and counts), and one of addresses that look alike. Both are saved in the
transaction that begins a payment, so each payment counts once, however often it is retried.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median_low
from typing import Literal

from chalicelib.domain.ids import AssetId, NetworkId, TenantId
from chalicelib.domain.screening.rules import RiskRules
from chalicelib.domain.versions import next_version
from chalicelib.domain.withdrawals.limits import DAY_MS, booked, used

HOUR_MS = 3600 * 1000
FindingName = Literal["new_address", "unusual_amount", "velocity", "look_alike", "contract", "own_address", "repeated_failures"]
WEIGHTS: dict[FindingName, int] = {
    "new_address": 20,
    "unusual_amount": 40,
    "velocity": 60,
    "look_alike": 100,
    "contract": 20,
    "own_address": 10,
    "repeated_failures": 100,
}
ENORMOUS_TIMES, ENORMOUS = 100, 60
"""An unusual amount so many times the largest before has this weight, for any payee."""
ESTABLISHED = 5
"""Payments of a coin after which its amounts are a habit, and days after which its volume is: others are compared with it."""
UNUSUAL_TIMES = 10
"""An amount so many times the typical one, and larger than every one before, is unusual. To one payee, more in a day than so many
times all that it had before is as new as the payee was."""
BUSY_TIMES = 3
"""So many times the busiest day's new payees are an attack, however busy the merchant is."""
VOLUME_TIMES = 5
"""The same of what goes to new payees in a day."""
MOST_AMOUNTS = 21
MOST_DAYS = 30
MOST_ALIKE = 20
"""Addresses of one merchant that look alike. By chance there are never two."""
MOST_LATEST = 6
MOST_COINS = 8
"""Coins of which it is known how much one address had: those that were paid last."""
_COMMON = re.compile(r"0x|(?:bc|tb|bcrt|ltc|tltc|rltc)1.|.")


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule that a withdrawal met, and its part of the score."""

    name: FindingName
    weight: int


@dataclass(frozen=True, slots=True)
class Assessment:
    """The findings about a withdrawal when it was about to begin, and those that the operator has accepted."""

    findings: tuple[Finding, ...]
    accepted: tuple[FindingName, ...] = ()

    @property
    def score(self) -> int:
        return sum(finding.weight for finding in self.findings)

    @property
    def unaccepted(self) -> int:
        """The score of the findings that the operator has not accepted."""
        return sum(finding.weight for finding in self.findings if finding.name not in self.accepted)

    def agreed(self) -> Assessment:
        """The same assessment with every finding accepted."""
        return replace(self, accepted=tuple(dict.fromkeys([*self.accepted, *(finding.name for finding in self.findings)])))


@dataclass(frozen=True, slots=True)
class PaymentHistory:
    """One merchant's payments of one coin: how often, the largest amount and the latest ones in units; payments and units to
    new addresses within a day, as windows (`domain.withdrawals.limits`); and for each of the last days with payments its number
    since 1970, how many and how many units went to new addresses. Payments to addresses of this service come back, and would
    make any habit: they are in the windows alone."""

    tenant: TenantId
    asset: AssetId
    count: int = 0
    largest: int = 0
    latest: tuple[int, ...] = ()
    fresh: tuple[tuple[int, int], ...] = ()
    fresh_units: tuple[tuple[int, int], ...] = ()
    days: tuple[tuple[int, int, int], ...] = ()
    version: int = 0

    @property
    def typical(self) -> int:
        """The median of the latest amounts."""
        return median_low(self.latest) if self.latest else 0

    def with_payment(self, now: int, units: int, new: bool, service: bool = False) -> PaymentHistory:
        """The next version, with a payment that begins `now`, to an address that is `new` or not, or one of this service."""
        if service:
            return replace(
                next_version(self),
                fresh=booked(self.fresh, now, 1, DAY_MS),
                fresh_units=booked(self.fresh_units, now, units, DAY_MS),
            )
        today = now // DAY_MS
        days = {number: (many, total) for number, many, total in self.days}
        many, total = days.get(today, (0, 0))
        days[today] = (many + new, total + (units if new else 0))
        kept = sorted((number, *entry) for number, entry in days.items())[-MOST_DAYS:]
        return replace(
            next_version(self),
            count=self.count + 1,
            largest=max(self.largest, units),
            latest=(*self.latest, units)[-MOST_AMOUNTS:],
            fresh=booked(self.fresh, now, 1, DAY_MS) if new else self.fresh,
            fresh_units=booked(self.fresh_units, now, units, DAY_MS) if new else self.fresh_units,
            days=tuple(kept),
        )


@dataclass(frozen=True, slots=True)
class Payee:
    """An address (public spelling) that was paid `count` times since `first`, or is whitelisted (0 times). `latest` are the ids of
    the last withdrawals to it. `had`: of a coin the day (since 1970) of the last payment, units before that day, and units in all.
    `grown`: when it last had far more than before. Times in milliseconds since 1970."""

    address: str
    first: int = 0
    last: int = 0
    count: int = 0
    latest: tuple[str, ...] = ()
    had: tuple[tuple[str, int, int, int], ...] = ()
    grown: int = 0

    def had_of(self, asset: AssetId, now: int) -> tuple[int, int]:
        """Units of a coin that it received before today, and today."""
        for name, day, before, total in self.had:
            if name == asset:
                return (before, total - before) if day == now // DAY_MS else (total, 0)
        return 0, 0

    def paid(self, asset: AssetId, units: int, now: int) -> Payee:
        """The payee after a payment of so many units."""
        before, today = self.had_of(asset, now)
        others = tuple(each for each in self.had if each[0] != asset)
        return replace(self, had=(*others, (asset, now // DAY_MS, before, before + today + units))[-MOST_COINS:])


@dataclass(frozen=True, slots=True)
class Payees:
    """The addresses that a merchant has paid or whitelisted and that have one `mark`: nearly always one. `network` is a network, or
    all EVM networks of a realm together (``live:evm``): there an address is the same on each."""

    tenant: TenantId
    network: NetworkId
    mark: str
    known: tuple[Payee, ...] = ()
    version: int = 0

    def find(self, address: str) -> Payee | None:
        return next((payee for payee in self.known if payee.address == address), None)

    def together(self, other: Payees | None) -> Payees:
        """These payees with those of another record that are not here."""
        more = [] if other is None else [payee for payee in other.known if self.find(payee.address) is None]
        return replace(self, known=(*self.known, *more)[:MOST_ALIKE])

    def with_payment(
        self, address: str, now: int, withdrawal_id: str, asset: AssetId | None = None, units: int = 0, grown: bool = False
    ) -> Payees | None:
        """The next version, after `units` of a coin, which may be far more than it had before; None where the record is full,
        so that the first ones stay."""
        before = self.find(address)
        if before is None and len(self.known) >= MOST_ALIKE:
            return None
        payee = before or Payee(address)
        latest = (*payee.latest, withdrawal_id)[-MOST_LATEST:]
        after = replace(payee, first=payee.first or now, last=now, count=payee.count + 1, latest=latest)
        after = replace(after if asset is None else after.paid(asset, units, now), grown=now if grown else payee.grown)
        others = tuple(payee for payee in self.known if payee.address != address)
        return replace(next_version(self), known=(*others, after))

    def with_trusted(self, address: str) -> Payees | None:
        """The next version, with an address that is whitelisted; None where nothing changes."""
        if self.find(address) is not None or len(self.known) >= MOST_ALIKE:
            return None
        return replace(next_version(self), known=(*self.known, Payee(address)))


def mark_of(address: str) -> str:
    """The part of an address that people compare: its first and last four characters, in lower case, after the prefix that all
    of its kind share: 0x; the human-readable part and version of bech32; the first letter of base58."""
    prefix = _COMMON.match(address)
    body = address[prefix.end() if prefix else 0 :]
    return f"{body[:4]}{body[-4:]}".lower()


@dataclass(frozen=True, slots=True)
class Case:
    """One payment and the known facts about it. `trusted_since`: when its address was whitelisted, None where it is not;
    `paid`: it was paid before; `failures` on the chain within a day; `contract`: code lies at the address; `own`: a deposit
    address of the same merchant; `service`: of any merchant here. `large`: so many units are worth as much as the rules' `usd`;
    yes without a rate."""

    address: str
    units: int
    history: PaymentHistory
    payees: Payees
    large: Callable[[int], bool]
    trusted_since: int | None = None
    paid: bool = False
    failures: int = 0
    contract: bool = False
    own: bool = False
    service: bool = False

    def new(self, now: int) -> bool:
        """Whether its address is new: first paid less than a day ago, or paid far more since then than before; not one that has
        been whitelisted for an hour."""
        if self.trusted_since is not None and now - self.trusted_since >= HOUR_MS:
            return False
        payee = self.payees.find(self.address)
        if not self.paid or payee is None or now - max(payee.first, payee.grown) < DAY_MS:
            return True
        return self.grows(now)

    def grows(self, now: int) -> bool:
        """Whether a known address would receive far more of the coin today than ever before: one unit makes no address known."""
        payee = self.payees.find(self.address)
        if payee is None:
            return False
        before, today = payee.had_of(self.history.asset, now)
        return today + self.units > UNUSUAL_TIMES * before and self.large(today + self.units)


def findings_of(case: Case, rules: RiskRules, now: int) -> tuple[Finding, ...]:
    """The findings against a payment. Payments to new addresses within a day count together: many small ones are a large one."""
    history, new = case.history, case.new(now)
    found: list[FindingName] = []
    if new and case.large(case.units + used(history.fresh_units, now, DAY_MS)):
        found.append("new_address")
    if history.count >= ESTABLISHED and case.units > max(history.largest, UNUSUAL_TIMES * history.typical - 1):
        found += ["unusual_amount"] if case.large(case.units) else []
    if (new or case.service) and _hurried(case, rules, now):
        found.append("velocity")
    if not case.paid and any(payee.address != case.address for payee in case.payees.known):
        found.append("look_alike")
    if case.contract and new:
        found.append("contract")
    if case.own:
        found.append("own_address")
    if case.failures >= rules.failures:
        found.append("repeated_failures")
    weights = dict(WEIGHTS)
    if case.units >= ENORMOUS_TIMES * history.largest:
        weights["unusual_amount"] = ENORMOUS
    return tuple(Finding(name, weights[name]) for name in found)


def _hurried(case: Case, rules: RiskRules, now: int) -> bool:
    history, today = case.history, now // DAY_MS
    # A day back lies in today and yesterday: neither may be what it is held against.
    earlier: Sequence[tuple[int, int, int]] = [day for day in history.days if day[0] < today - 1]
    busiest = max((many for _, many, _ in earlier), default=0)
    if used(history.fresh, now, HOUR_MS) >= max(rules.per_hour, busiest):
        return True
    if used(history.fresh, now, DAY_MS) >= max(rules.per_day, BUSY_TIMES * busiest):
        return True
    total = case.units + used(history.fresh_units, now, DAY_MS)
    # A merchant that never pays new payees has an ordinary payment to compare with.
    usual = max((units for _, _, units in earlier), default=0) or history.typical
    return len(earlier) >= ESTABLISHED and total > VOLUME_TIMES * usual and case.large(total)
