"""The rate at which a deposit counts for an invoice whose payer chooses the coin: decided once, and stored with the deposit.

It is the quote whose lock holds the payment's time; else the fresh rate when the deposit is first seen. Where there is none, the
deposit waits: it is flagged, its obligation `unpriced` is open, and it counts nothing for its invoice. Each poll of its network
looks again. A crash leaves the obligation; the deposit's version decides between two polls, and between a poll and a
reorganisation.

A payment that waits for its block longer than a day is decided about once more, by the block: who sends it with too low a fee must
not hold a rate open, to have it mined when the rate has become the better one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial

from chalicelib.domain.catalogue.catalogue import Catalogue, Network
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.deposits.deposits import UNPRICED, Deposit
from chalicelib.domain.ids import NetworkId, asset_parts, network_parts
from chalicelib.domain.invoices.choices import Choosing
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.invoices.quotes import Quote
from chalicelib.domain.versions import next_version
from chalicelib.domain.work import Work, time_order
from chalicelib.usecases.base.newer_states import known_of
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import Each, until_settled
from chalicelib.usecases.base.views import Views
from chalicelib.usecases.deposits.posting import DepositPostings
from chalicelib.usecases.invoices.status import changed, paid
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Change, Close, Open, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store

_AT_ONCE = 100
MOST_PAGES = 5
"""Pages of one look: what waits without end, which anybody can make, costs each poll so much at most (500 deposits read)."""


def unpriced_work(deposit: Deposit) -> Work:
    """The obligation to find the rate of a deposit, in the lane of its network."""
    return Work("unpriced", deposit.network, time_order(deposit.created_at), deposit.id)


def counting_at(
    deposit: Deposit, invoice: Invoice | None, catalogue: Catalogue, rates: RatesOf, now_ms: int
) -> tuple[Deposit, list[Change]]:
    """The deposit with its rate where its invoice needs one, and the obligation to find it where there is none now.

    A rate that was decided before stays: what a reorganisation took away comes back as it was.
    """
    if invoice is None or invoice.choosing is None or deposit.rate is not None or deposit.unpriced or deposit.set_aside:
        return deposit, []
    if not invoice.counts(deposit.asset):
        return deposit, []
    quote = _rate(deposit, invoice.choosing, catalogue, rates, now_ms)
    if quote is not None:
        return replace(deposit, rate=quote), []
    waiting = replace(deposit, flags=(*deposit.flags, UNPRICED))
    return waiting, [Open(unpriced_work(waiting))]


def by_its_block(known: Deposit, now: Deposit) -> Deposit:
    """The deposit as it is `now`, in a block, without the rate and the worth of its first sight where that block came too long
    after."""
    return replace(now, rate=None, worth=None) if known.block_number is None and now.mined_long_after else now


def no_longer_unpriced(deposit: Deposit) -> tuple[Deposit, list[Change]]:
    """The deposit without its wait for a rate: it fell out of the chain, and is looked at anew when it comes back."""
    if not deposit.unpriced:
        return deposit, []
    return replace(deposit, flags=tuple(flag for flag in deposit.flags if flag != UNPRICED)), [Close(unpriced_work(deposit))]


def _rate(deposit: Deposit, choosing: Choosing, catalogue: Catalogue, rates: RatesOf, now_ms: int) -> Quote | None:
    """Without a promise a coin that is not active has none: rates go by its name, and on one network it may have lost its worth."""
    choice, accepted = choosing.choice(deposit.asset), choosing.accepted(deposit.asset)
    promised = None if choice is None else choice.quote_at(deposit.paid_at)
    if promised is not None or accepted is None or catalogue.coin_of(deposit.asset).status != "ACTIVE":
        return promised
    network, slug = asset_parts(deposit.asset)
    usual = rates(network_parts(network)[0])
    known = (usual if deposit.tenant is None else usual.of(deposit.tenant)).fresh(slug, now_ms, choosing.fiat)
    if known is None or known.decimal <= 0:
        return None
    return Quote(choosing.fiat, f"{Decimal(known.value):f}", accepted.decimals, known.at, known.source)


class UnpricedPayments:
    """Finds the rates of deposits that wait for one. One network's."""

    def __init__(
        self,
        network: Network,
        store: Store,
        rules: AddressRules,
        clock: Clock,
        rates: RatesOf,
        stopped: dict[NetworkId, Work] | None = None,
    ) -> None:
        """`stopped`: where the last look of this process stopped, by network. Another process begins at the oldest."""
        self._network, self._store, self._clock, self._rates = network, store, clock, rates
        self._book = DepositPostings(store, rules)
        self._stopped = {} if stopped is None else stopped

    def work(self, more: Callable[[], bool] = lambda: True) -> None:
        """Look at those that wait, oldest first, while there is time, and on from there the next time: payments in a coin that
        nobody quotes, which anybody can make, keep no others waiting. One read where nothing waits. Raises Failures."""
        after = self._stopped.pop(self._network.id, None)
        with Each(f"{self._network.id}: rates of payments") as each:
            for page_number in range(1, MOST_PAGES + 1):
                page = self._store.open_work("unpriced", self._network.id, after=after, limit=_AT_ONCE)
                for work in self._ready(page):
                    each.take(work.id, partial(until_settled, partial(self._price, work)))
                    if not more():
                        self._stop(after)
                        return
                if len(page) < _AT_ONCE:
                    return
                after = page[-1]
                if page_number == MOST_PAGES or not more():
                    self._stop(after)
                    return

    def _stop(self, after: Work | None) -> None:
        if after is not None:
            self._stopped[self._network.id] = after

    def _ready(self, page: Sequence[Work]) -> list[Work]:
        """Those that have a rate now, or need none any more: two reads."""
        deposits = known_of(self._store, [(Deposit, {"id": work.id}) for work in page]) if page else []
        waiting = [d for d in deposits if d is not None and d.unpriced and d.tenant is not None and d.invoice_id is not None]
        wanted = [(Invoice, {"tenant": d.tenant or "", "id": d.invoice_id or ""}) for d in waiting]
        invoices = known_of(self._store, wanted) if wanted else []
        now, catalogue = self._clock.now_ms(), self._store.catalogue(self._network.realm)
        still = {
            deposit.id
            for deposit, invoice in zip(waiting, invoices, strict=True)
            if invoice is not None and invoice.choosing is not None
            if _rate(deposit, invoice.choosing, catalogue, self._rates, now) is None
        }
        return [work for work in page if work.id not in still]

    def _price(self, work: Work) -> None:
        before = self._store.get(Deposit, id=work.id)
        invoice = None if before is None else self._book.invoice(before.tenant, before.invoice_id)
        if before is None or not before.unpriced or invoice is None or invoice.choosing is None:
            self._store.commit([Close(work)])
            return
        now = self._clock.now_ms()
        catalogue = self._store.catalogue(self._network.realm)
        quote = _rate(before, invoice.choosing, catalogue, self._rates, now)
        if quote is None:
            return
        after, closing = no_longer_unpriced(replace(next_version(before), rate=quote))
        news, views = News(now), Views(catalogue)
        moved = changed(invoice, paid(news, invoice, before, after, views, self._book.tip(self._network)))
        self._store.commit([Save(after), *closing, *moved, *news.emit()])
