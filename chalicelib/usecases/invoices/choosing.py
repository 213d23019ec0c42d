"""The payer's choice of a coin, and new rates for a choice whose lock has ended.

A choice is one transaction on condition of the invoice's version: the address, where its family has none yet, the locked rate, and
the invoice. Of fifty at once one commits; the others read it and find the same choice. A repeated choice writes nothing while its
rate is locked. Dying before the commit leaves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from chalicelib.domain.addresses.addresses import family_key
from chalicelib.domain.catalogue.catalogue import Catalogue, Coin
from chalicelib.domain.catalogue.rates import Rates, RatesOf
from chalicelib.domain.errors import BusinessRule, InvalidParameter, NotFound, ServiceError
from chalicelib.domain.ids import Realm, asset_parts, network_id, network_parts
from chalicelib.domain.invoices.choices import MOST_CHOICES, Accepted, Choice, Choosing
from chalicelib.domain.invoices.invoices import PAYABLE, Invoice
from chalicelib.domain.invoices.quotes import Quote
from chalicelib.domain.invoices.settings import InvoiceSettings
from chalicelib.domain.money import MAX_DIGITS
from chalicelib.domain.versions import next_version
from chalicelib.usecases.addresses.addresses import Addresses, widest
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.invoices.invoices import demand_minimum, demand_scanning, fresh_quote
from chalicelib.usecases.invoices.settings import InvoiceSettingsService
from chalicelib.usecases.invoices.status import changed
from chalicelib.usecases.ports.changes import Change
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Listed, Store

_ANOTHER = "choose another coin"
MOST_VERSIONS = 1_000
"""So often an invoice may have changed when a payer goes back to an earlier choice. Beyond it the choice is answered as it is, and
another one stays the latest: a stranger who goes to and fro must not write without end."""
INVOICE_ID = re.compile(r"inv_[0-9a-hjkmnp-tv-z]{26}", re.ASCII)


class TooManyChoices(ServiceError):
    """An invoice has all the choices that it can have. `seconds_left` until its time is over."""

    code = "RATE_LIMIT_EXCEEDED"

    def __init__(self, seconds_left: int) -> None:
        super().__init__(f"At most {MOST_CHOICES} different coins can be chosen for one invoice", {"limit": MOST_CHOICES})
        self.seconds_left = seconds_left


def known_invoice(store: Store, invoice_id: str) -> Invoice | None:
    """The invoice with that id, of any merchant: at most two reads. Raises Unavailable.

    An id that is not in our form is not looked up. The index that knows the owner follows the invoice by a moment.
    """
    if not INVOICE_ID.fullmatch(invoice_id):
        return None
    places = store.places(Listed("inv", "id", invoice_id), limit=1).places
    found: Invoice | None = next(iter(store.at(places)), None) if places else None
    return found


@dataclass(frozen=True, slots=True)
class Chosen:
    """The invoice after a choice, and the choice."""

    invoice: Invoice
    choice: Choice


class Choices:
    def __init__(
        self,
        store: Store,
        addresses: Addresses,
        settings: InvoiceSettingsService,
        clock_of: Callable[[Realm], Clock],
        rates: RatesOf,
    ) -> None:
        self._store, self._addresses, self._settings = store, addresses, settings
        self._clock_of, self._rates = clock_of, rates

    def choose(self, invoice_id: str, coin: str, network: str | None) -> Chosen:
        """Choose a coin, in lower case, for an invoice of any merchant; without a network its first accepted one.

        Raises NotFound, InvalidParameter (an unknown coin or network), BusinessRule (not accepted, not active, no fresh rate, too
        little, the invoice is not open), TooManyChoices, Unavailable.
        """
        found = known_invoice(self._store, invoice_id)
        if found is None:
            raise NotFound(f"No invoice {invoice_id[:80]}", {"id": invoice_id[:80]})
        key = {"tenant": found.tenant, "id": found.id}
        read = [found]

        def decide() -> Chosen:
            before = read.pop() if read else self._store.get(Invoice, **key)
            if before is None:
                raise NotFound(f"No invoice {invoice_id[:80]}", {"id": invoice_id[:80]})
            return self._choose(before, coin, network)

        with in_realm(network_parts(found.network)[0]):
            return until_settled(decide)

    def looked(self, invoice: Invoice) -> Invoice:
        """The invoice with new rates for its choices whose lock has ended, stored. Without a fresh rate a choice keeps its old one.

        At most one write for each end of a lock; none for an invoice that names its coin, or waits for nothing. Raises Unavailable.
        """
        if invoice.choosing is None or not self._waits(invoice):
            return invoice
        read = [invoice]

        def decide() -> Invoice:
            before = read.pop() if read else self._store.get(Invoice, tenant=invoice.tenant, id=invoice.id) or invoice
            if before.choosing is None or not self._waits(before):
                return before
            choosing = self._locked_anew(before, before.choosing)
            if choosing is before.choosing:
                return before
            after = _with_latest(replace(next_version(before), choosing=choosing), choosing)
            self._store.commit(changed(before, after))
            return after

        with in_realm(network_parts(invoice.network)[0]):
            return until_settled(decide)

    def _waits(self, invoice: Invoice) -> bool:
        return invoice.status in PAYABLE and self._now(invoice) <= invoice.expires_at

    def _now(self, invoice: Invoice) -> int:
        return self._clock_of(network_parts(invoice.network)[0]).now_ms()

    def _locked_anew(self, invoice: Invoice, choosing: Choosing) -> Choosing:
        now = self._now(invoice)
        for choice in choosing.chosen:
            quote = None if choice.is_locked(now) else self._quote(invoice, choosing, choice)
            if quote is not None:
                settings, _ = self._settings.for_new(invoice.tenant, choice.network)
                choosing = choosing.with_choice(choice.locked(quote, now, settings.lock_seconds))
        return choosing

    def _quote(self, invoice: Invoice, choosing: Choosing, choice: Choice) -> Quote | None:
        realm, network = network_parts(choice.network)
        coin = self._store.catalogue(realm).coin(network, asset_parts(choice.asset)[1])
        if coin is None or coin.status != "ACTIVE":
            return None
        quote = fresh_quote(self._rates(realm).of(invoice.tenant), coin, choosing.fiat, self._now(invoice))
        return None if quote is None or _too_long(quote, choosing) else quote

    def _choose(self, before: Invoice, slug: str, network: str | None) -> Chosen:
        choosing = before.choosing
        if choosing is None:
            place, named = asset_parts(before.asset)
            raise BusinessRule("coin", f"this invoice names its coin: {named} on {network_parts(place)[1]}")
        catalogue = self._store.catalogue(network_parts(before.network)[0])
        accepted = _accepted(catalogue, choosing, slug, network)
        now = self._now(before)
        if not self._waits(before):
            over = before.status if before.status not in PAYABLE else "over: its time has passed"
            raise BusinessRule("invoiceId", f"this invoice is {over}: no coin can be chosen for it any more")
        known = choosing.choice(accepted.asset)
        if known is not None and known.is_locked(now):
            return self._again(before, choosing, known)
        coin = catalogue.coins[network_parts(asset_parts(accepted.asset)[0])[1], slug]
        choice, changes = self._made(before, choosing, coin, known)
        made = self._locked_anew(before, replace(choosing.with_choice(choice), latest=choice.asset))
        after = _with_latest(replace(next_version(before), choosing=made), made)
        self._store.commit([*changes, *changed(before, after)])
        return Chosen(after, choice)

    def _again(self, before: Invoice, choosing: Choosing, known: Choice) -> Chosen:
        """A choice whose rate is locked: it is shown first from now on, and stays as it is."""
        if choosing.latest == known.asset or before.version > MOST_VERSIONS:
            return Chosen(before, known)
        chosen = replace(choosing, latest=known.asset)
        after = _with_latest(replace(next_version(before), choosing=chosen), chosen)
        self._store.commit(changed(before, after))
        return Chosen(after, known)

    def _made(self, invoice: Invoice, choosing: Choosing, coin: Coin, known: Choice | None) -> tuple[Choice, list[Change]]:
        """The choice with a rate locked now, and the changes that store its address where there is none for it yet."""
        realm, place = network_parts(coin.network)
        now, network = self._now(invoice), self._store.catalogue(realm).networks[place]
        rates = self._rates(realm).of(invoice.tenant)
        if (known is None or not known.chosen) and len(choosing.chosen) >= MOST_CHOICES:
            raise TooManyChoices(max(1, (invoice.expires_at - now) // 1000))
        if coin.status != "ACTIVE":
            raise BusinessRule("coin", f"the coin {coin.slug} on {place} is not active: {_ANOTHER}")
        settings, halted = self._settings.for_new(invoice.tenant, network.id)
        demand_scanning(network, halted)
        quote = fresh_quote(rates, coin, choosing.fiat, now)
        if quote is None:
            reason = f"there is no fresh rate of {coin.slug} in {choosing.fiat} now: {_ANOTHER}, or try again in a minute"
            raise BusinessRule("coin", reason)
        amount = quote.units_worth(choosing.whole)
        if _too_long(quote, choosing):
            raise BusinessRule("coin", f"the price is more {coin.slug} than an invoice can ask for: {_ANOTHER}")
        _demand(settings, coin, amount, rates, now)
        changes: list[Change] = []
        family = family_key(network)
        served = choosing.served(family)
        if served is None:
            address, changes = self._addresses.prepare(invoice.tenant, network, widest(network), invoice_id=invoice.id)
            served = Choice(coin.asset, coin.decimals, family, address.address, address.id, opened=True)
        own = served if served.asset == coin.asset else None
        choice = known or own or Choice(coin.asset, coin.decimals, family, served.address, served.address_id)
        return choice.locked(quote, now, settings.lock_seconds), changes


def _demand(settings: InvoiceSettings, coin: Coin, amount: int, rates: Rates, now: int) -> None:
    """Raises BusinessRule where the merchant or the operator wants no such invoice, without saying to a stranger what is set."""
    try:
        settings.demand(coin.slug, amount, coin.decimals)
        demand_minimum(coin, amount, "coin", rates, now)
    except BusinessRule as refused:
        raise BusinessRule("coin", f"the shop takes no {coin.slug} for this amount: {_ANOTHER}") from refused


def _too_long(quote: Quote, choosing: Choosing) -> bool:
    """Whether the whole price is an amount of more digits than are kept."""
    return len(str(quote.units_worth(choosing.whole))) > MAX_DIGITS


def _with_latest(invoice: Invoice, choosing: Choosing | None) -> Invoice:
    """The invoice with the fields that show its latest choice."""
    current = None if choosing is None else choosing.current
    if current is None or current.quote is None:
        return invoice
    return replace(
        invoice,
        network=current.network,
        asset=current.asset,
        address=current.address,
        address_id=current.address_id,
        amount=current.quote.units_worth(invoice.price),
    )


def _accepted(catalogue: Catalogue, choosing: Choosing, slug: str, network: str | None) -> Accepted:
    """The accepted coin of that name. Raises InvalidParameter, BusinessRule."""
    offered = [asset_parts(one.asset) for one in choosing.accept]
    named = ", ".join(f"{coin} on {network_parts(place)[1]}" for place, coin in offered)
    if slug not in catalogue.slugs():
        raise InvalidParameter.one("coin", slug[:80], f"must be one of: {', '.join(dict.fromkeys(coin for _, coin in offered))}")
    if network is not None and catalogue.network(network) is None:
        known = ", ".join(dict.fromkeys(network_parts(place)[1] for place, _ in offered))
        raise InvalidParameter.one("network", network[:80], f"must be one of: {known}")
    place = None if network is None else network_id(catalogue.realm, network)
    found = [one for one in choosing.accept if asset_parts(one.asset)[1] == slug and place in (None, asset_parts(one.asset)[0])]
    if not found:
        raise BusinessRule(
            "coin", f"the invoice is not paid in {slug}{'' if network is None else f' on {network}'}; accepted: {named}"
        )
    return found[0]
