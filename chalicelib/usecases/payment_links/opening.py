"""A visitor opens a payment link: an invoice on the link's terms, and a piece of its stock, in one transaction.

Many who open a link at once share nothing that all of them write: the stock and the merchant's sums lie in shards, and the count of
a caller's openings is a write of its own. That count comes first: dying behind it counts one too many for an hour, and opens
nothing. A piece that another visitor was faster to take is looked for again until none is left.

Visitors are strangers. What the merchant's settings or the operator refuse is told to them without saying what is set.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from chalicelib.domain.catalogue.catalogue import Catalogue, Coin
from chalicelib.domain.catalogue.fiats import fiat_problem
from chalicelib.domain.errors import BusinessRule, InvalidParameter, ServiceError
from chalicelib.domain.ids import Realm, asset_parts, network_parts, tenant_parts
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.money import NotAnAmount, parse_units
from chalicelib.domain.payment_links.links import PaymentLink, Price
from chalicelib.domain.payment_links.openings import HOUR_MS, MOST_OPENED, LinkOpenings, caller_of
from chalicelib.domain.payment_links.stock import LinkStock, any_piece
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.base.creation import Creation, Prepared
from chalicelib.usecases.invoices.choosable import ChoosableInvoices, Offer
from chalicelib.usecases.invoices.invoices import FiatPrice, Invoices, NewInvoice, Wishes
from chalicelib.usecases.invoices.pieces import piece_moved, stock_of
from chalicelib.usecases.merchants.access import Usage, Window, source_of
from chalicelib.usecases.payment_links.links import PaymentLinks
from chalicelib.usecases.payment_links.stock import Stocked, stocked
from chalicelib.usecases.ports.changes import Change, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.counters import Counters
from chalicelib.usecases.ports.store import Store

log = logging.getLogger(__name__)

SOLD_OUT = "is sold out"
OVER = "has expired"
_ASK = "can not be paid at the moment: try again later, or ask the shop"
_TOO_LITTLE = "is too little to be paid in this coin"
_NO_RATE = "has no fresh rate at the moment: try again in a few minutes"
_WINDOW = Window("link", HOUR_MS // 1000, MOST_OPENED)
_KEPT_SECONDS = 2 * 3600
_STOCK_TRIES = 30
"""Tries at a piece of the stock: a crowd meets at its last pieces. The pauses between them take five seconds at most."""


class TooManyOpened(ServiceError):
    """A caller has opened all the invoices of a link that it may in an hour, see `usage`."""

    code = "RATE_LIMIT_EXCEEDED"

    def __init__(self, usage: Usage) -> None:
        super().__init__(f"At most {usage.window.limit} invoices of one link in an hour")
        self.usage = usage


@dataclass(frozen=True, slots=True)
class Caller:
    """Who opens: the address that the gateway saw, and the machine's time (ms since 1970) that its requests are counted by."""

    source: str
    now_ms: int
    gateway_url: str | None = None


class LinkOpening:
    def __init__(
        self,
        store: Store,
        links: PaymentLinks,
        invoices: Invoices,
        choosable: ChoosableInvoices,
        counters: Counters,
        clock_of: Callable[[Realm], Clock],
    ) -> None:
        self._store, self._links, self._invoices, self._choosable = store, links, invoices, choosable
        self._counters, self._clock_of = counters, clock_of

    def look(self, link_id: str) -> tuple[Stocked, bool]:
        """The link of that id as its page shows it, and whether its time is over. Raises NotFound, Unavailable."""
        link = self._links.find(link_id)
        return stocked(self._store, [link])[0], link.over(self._clock_of(tenant_parts(link.tenant)[1]).now_ms())

    def open(self, link_id: str, asked: str | None, caller: Caller) -> Invoice:
        """A new invoice on the terms of a link of any merchant. `asked` is the amount that the visitor named: plain decimal.

        Raises NotFound, InvalidParameter (no such amount), BusinessRule (sold out, expired, an amount that is not asked for or is
        out of range, what can not be paid now), TooManyOpened, Conflict, Unavailable.
        """
        link = self._links.find(link_id)
        realm = tenant_parts(link.tenant)[1]
        with in_realm(realm):
            if link.over(self._clock_of(realm).now_ms()):
                raise BusinessRule("link", OVER)
            creating = self._creating(link, asked, caller)
            there = stock_of(self._store, link.id) if link.stocked else []
            if link.stocked and any_piece(there) is None:
                raise BusinessRule("link", SOLD_OUT)
            self._count(link, caller)
            try:
                return self._stocked(link, there, creating()).run().invoice
            except BusinessRule:
                # Nothing was opened.
                self._counters.down(LinkOpenings, _counted(link, caller), "opened")
                raise

    def _creating(self, link: PaymentLink, asked: str | None, caller: Caller) -> Callable[[], Creation[NewInvoice]]:
        """How its invoice is made; everything that the visitor sent is checked now."""
        price = link.price
        coin = coin_of(link, self._store.catalogue(tenant_parts(link.tenant)[1]))
        if coin is None and (price.asset is not None or price.fiat is None):
            raise BusinessRule("link", _ASK)
        unit = price.fiat or ("" if coin is None else coin.slug)
        amount = _read(price.demand(None if asked is None else plain_amount(asked), unit), coin, price.fiat)
        wishes = Wishes(
            description=link.description or link.name,
            redirect_url=link.redirect_url,
            metadata=link.metadata,
            payment_link=link.id,
            gateway_url=caller.gateway_url,
        )

        def creating() -> Creation[NewInvoice]:
            try:
                if coin is not None:
                    return self._invoices.creating(link.tenant, coin, amount, wishes)
                return self._choosable.creating(link.tenant, _in_fiat(amount), _offers(price), wishes)
            except BusinessRule as refused:
                log.info("%s can not be opened: %s", link.id, refused.message)
                raise _for_strangers(refused, ranged=price.most is not None) from refused

        return creating

    def _stocked(self, link: PaymentLink, there: list[LinkStock], creation: Creation[NewInvoice]) -> Creation[NewInvoice]:
        """The same invoice with a piece of the stock, which was read as `there`: a try whose piece was taken meanwhile takes
        another one."""
        if not link.stocked:
            return creation
        read = [there]
        prepared = creation.prepare()
        made = prepared.made.invoice
        others: list[Change] = [change for change in prepared.changes if change != Save(made)]

        def prepare() -> Prepared[NewInvoice]:
            piece = any_piece(read.pop() if read else stock_of(self._store, link.id))
            if piece is None:
                raise BusinessRule("link", SOLD_OUT)
            invoice = replace(made, piece=piece)
            return Prepared(NewInvoice(invoice, prepared.made.shown), [*others, Save(invoice), *piece_moved(None, invoice)])

        return Creation(self._store, prepare, tries=_STOCK_TRIES)

    def _count(self, link: PaymentLink, caller: Caller) -> None:
        end = (caller.now_ms // HOUR_MS + 1) * HOUR_MS // 1000
        if not self._counters.up(LinkOpenings, _counted(link, caller), "opened", MOST_OPENED, ttl=end + _KEPT_SECONDS):
            raise TooManyOpened(Usage(_WINDOW, 0, end))


def coin_of(link: PaymentLink, catalogue: Catalogue) -> Coin | None:
    """The coin that a link names, None where the catalogue has it no more."""
    if link.price.asset is None:
        return None
    network, slug = asset_parts(link.price.asset)
    return catalogue.coin(network_parts(network)[1], slug)


def plain_amount(asked: str) -> str:
    """An amount as it was typed, as a plain decimal. Raises InvalidParameter."""
    text = asked.strip()
    try:
        if parse_units(text, len(text.partition(".")[2])) > 0:
            return text
        reason = "must be more than zero"
    except NotAnAmount as error:
        reason = str(error)
    raise InvalidParameter.one("amount", asked[:100], reason)


def _in_fiat(amount: int | FiatPrice) -> FiatPrice:
    if isinstance(amount, int):
        raise TypeError("a price without a coin is one in fiat")
    return amount


def _offers(price: Price) -> list[Offer] | None:
    return None if price.accept is None else [Offer(each.coin, each.network) for each in price.accept]


def _read(amount: str, coin: Coin | None, fiat: str | None) -> int | FiatPrice:
    """The price of the invoice. Raises InvalidParameter where it has more decimals than the currency."""
    if fiat is not None or coin is None:
        fiat = fiat or ""
        problem = fiat_problem(amount, fiat)
        if problem is not None:
            raise InvalidParameter.one("amount", amount, problem)
        return FiatPrice(amount, fiat)
    try:
        return parse_units(amount, coin.decimals)
    except NotAnAmount as error:
        raise InvalidParameter.one("amount", amount, str(error)) from error


def _counted(link: PaymentLink, caller: Caller) -> dict[str, str]:
    key = {"link": link.id, "caller": caller_of(link.id, source_of(caller.source))}
    return key | {"hour": f"{caller.now_ms // HOUR_MS:09d}"}


def _for_strangers(refused: BusinessRule, ranged: bool) -> BusinessRule:
    """A refusal of an invoice's terms, in words for a visitor."""
    field = refused.details.get("field") if isinstance(refused.details, dict) else None
    if field == "fiatCurrency":
        return BusinessRule("link", _NO_RATE)
    if ranged and field in ("amount", "fiatAmount"):
        return BusinessRule("amount", _TOO_LITTLE)
    return BusinessRule("link", _ASK)
