"""Screening of withdrawals: all facts about a payment are read right before it begins, and `domain.screening.risk` weighs them.

One call reads the merchant's history of the coin, the addresses that look like this one, the whitelist and whose address it is.
The node is asked whether there is a contract only at an address that is new. What was read is saved with the payment in the
transaction that begins it: of two that begin at once, the second is screened again with the first one counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Context

from chalicelib.domain.addresses.addresses import Watched, payees_place, watched_key
from chalicelib.domain.catalogue.catalogue import Catalogue, Network
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.ids import asset_parts
from chalicelib.domain.screening.risk import Assessment, Case, Payees, PaymentHistory, findings_of, mark_of
from chalicelib.domain.screening.rules import RiskRules
from chalicelib.domain.withdrawals.limits import DAY_MS
from chalicelib.domain.withdrawals.whitelist import WhitelistEntry, entry_id
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.base.address_forms import form_of, tokens_by_form
from chalicelib.usecases.base.newer_states import each_of
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Change, Save
from chalicelib.usecases.ports.failures import TooNew
from chalicelib.usecases.ports.readers import ChainReader, Contracts
from chalicelib.usecases.ports.store import Store

_EXACT = Context(prec=120)


@dataclass(frozen=True, slots=True)
class Screened:
    """`assessment` is None where nothing was found. `never` says why nothing can be paid to the address at all: it is a service
    wallet's, or one of ours that is not watched on the network. None where it can be paid. The transaction that begins the payment
    saves `noted`. `own`: the address is one of this service, of any merchant or the operator."""

    assessment: Assessment | None
    asks: bool
    never: str | None
    noted: tuple[Change, ...]
    own: bool = False


PAGE, MOST_PAGES = 500, 10
"""Whitelisted addresses that are looked through: of more, those beyond are known by the payments to them alone."""


class Risk:
    """Reads and screens; stores nothing itself."""

    def __init__(
        self,
        store: Store,
        addresses: AddressRules,
        rates_of: RatesOf,
        reader_of: Callable[[Network], ChainReader],
        rules: RiskRules,
    ) -> None:
        self._store, self._addresses, self._rates_of = store, addresses, rates_of
        self._reader_of, self._rules = reader_of, rules

    def of(self, network: Network, withdrawal: Withdrawal, now: int) -> Screened:
        """The risks of beginning a withdrawal `now`. Raises Unavailable."""
        tenant, address = withdrawal.tenant, withdrawal.to_address
        mark, everywhere = mark_of(address), payees_place(network)
        place = form_of(self._addresses, network, address)
        history, entry, watched, payees, *earlier = self._store.get_many(
            [
                (PaymentHistory, {"tenant": tenant, "asset": withdrawal.asset}),
                (WhitelistEntry, {"tenant": tenant, "id": entry_id(tenant, network.id, address)}),
                watched_key(network, place),
                # Each EVM network once had its own: what was noted then counts, too.
                *((Payees, {"tenant": tenant, "network": each, "mark": mark}) for each in dict.fromkeys((everywhere, network.id))),
            ]
        )
        payees = (payees or Payees(tenant, everywhere, mark)).together(earlier[0] if earlier else None)
        paid, failures = self._outcomes(withdrawal, payees, now)
        trusted: WhitelistEntry | None = entry if entry is not None and entry.removed_at is None else None
        if trusted is None and payees.find(address) is None:
            payees = self._with_whitelist(network, payees)
        case = Case(
            address=address,
            units=withdrawal.amount,
            history=history or PaymentHistory(tenant, withdrawal.asset),
            payees=payees,
            large=self._large(network, withdrawal, now),
            trusted_since=None if trusted is None else trusted.created_at,
            paid=paid,
            failures=failures,
            own=watched is not None and watched.tenant == tenant,
            service=watched is not None,
        )
        new = case.new(now)
        if new:
            case = replace(case, contract=self._has_code(network, address))
        accepted = () if withdrawal.risk is None else withdrawal.risk.accepted
        assessment = Assessment(findings_of(case, self._rules, now), accepted)
        met = case.payees.with_payment(address, now, withdrawal.id, withdrawal.asset, withdrawal.amount, new and case.grows(now))
        noted: list[Change] = [] if met is None else [Save(met)]
        noted.append(Save(case.history.with_payment(now, withdrawal.amount, new, case.service)))
        asks = assessment.unaccepted >= self._rules.threshold
        return Screened(assessment if assessment.findings else None, asks, _never(watched, network), tuple(noted), case.service)

    def _with_whitelist(self, network: Network, payees: Payees) -> Payees:
        """With what the merchant trusts and was trusted before trusting noted it here. Asked for an address that is not known yet,
        once: what is found is saved with its payment."""
        alike = {n.id for n in self._store.catalogue(network.realm).networks.values() if payees_place(n) == payees.network}
        after: str | None = None
        for _ in range(MOST_PAGES):
            page = self._store.page(WhitelistEntry, limit=PAGE, after=after, tenant=payees.tenant)
            for entry in page.items:
                if entry.removed_at is None and entry.network in alike and mark_of(entry.address) == payees.mark:
                    more = payees.with_trusted(entry.address)
                    # Versions count what is stored: the payment's own step is the next one.
                    payees = payees if more is None else replace(more, version=payees.version)
            after = page.next
            if after is None:
                break
        return payees

    def _outcomes(self, withdrawal: Withdrawal, payees: Payees, now: int) -> tuple[bool, int]:
        """Whether money went to the address before, and how many of the latest payments to it failed on the chain in a day."""
        payee = payees.find(withdrawal.to_address)
        if payee is None or not payee.latest:
            return False, 0
        found = each_of(self._store, [(Withdrawal, {"tenant": withdrawal.tenant, "id": name}) for name in payee.latest])
        # One that only a newer version can read vouches for nobody, and may have failed.
        unread = sum(isinstance(one, TooNew) for one in found)
        latest: list[Withdrawal] = [one for one in found if isinstance(one, Withdrawal)]
        failed = [one for one in latest if one.status == "failed"]
        # Only what is in a block has failed on the chain; the rest cost nothing.
        burnt = sum(one.block_number is not None and one.updated_at > now - DAY_MS for one in failed)
        return payee.count > len(payee.latest) or len(failed) < len(latest), burnt + unread

    def _has_code(self, network: Network, address: str) -> bool:
        reader = self._reader_of(network) if network.family in ("evm", "tron") else None
        return isinstance(reader, Contracts) and reader.has_code(address)

    def _large(self, network: Network, withdrawal: Withdrawal, now: int) -> Callable[[int], bool]:
        slug = asset_parts(withdrawal.asset)[1]
        coin = self._store.catalogue(network.realm).coins[network.slug, slug]
        rate = self._rates_of(network.realm).fresh(slug, now)

        def large(units: int) -> bool:
            if rate is None:
                return True
            return _EXACT.multiply(_EXACT.scaleb(_EXACT.create_decimal(units), -coin.decimals), rate.decimal) >= self._rules.usd

        return large


def is_service(watched: Watched | None) -> bool:
    """Whether a watched address (None: not watched) is a service wallet, retired ones included."""
    return watched is not None and watched.tenant is None


def unwatched(watched: Watched | None, network: Network) -> bool:
    """Whether an address is a deposit address of any merchant that is not watched on `network`. Its key is ours there too, but
    no scan would see a payment to it."""
    return watched is not None and not is_service(watched) and network.slug not in watched.networks


def unwatched_words(network: Network) -> str:
    """The reason why nothing is paid to such an address, and its remedy. The network where it is watched is for its owner alone."""
    slug = network.slug
    return (
        f"is a deposit address of this service that is not watched on {slug}: ask its owner for one of {slug}, or a cross address"
    )


def _never(watched: Watched | None, network: Network) -> str | None:
    if is_service(watched):
        return "is a wallet of the service itself"
    return unwatched_words(network) if unwatched(watched, network) else None


def token_contracts(catalogue: Catalogue, network: Network, addresses: AddressRules) -> frozenset[str]:
    """The contracts of a network's registered tokens, in storage form: a payment to one is lost."""
    return frozenset(tokens_by_form(addresses, network, catalogue.coins_of(network.slug)))
