"""No step of a deposit needs more items than a transaction has: one too many would stop its whole network at that block.

Every combination of what adds items is tried, counted by the function that writes to DynamoDB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, cast

import pytest
from pynamodb.connection import Connection

from chalicelib.chains.addresses import Rules
from chalicelib.domain.addresses.addresses import Watched
from chalicelib.domain.catalogue.catalogue import Catalogue, default_coins, default_networks
from chalicelib.domain.catalogue.rates import Rate, Rates
from chalicelib.domain.chain import Block, Transfer, Unmined
from chalicelib.domain.deposits.deposits import UNPRICED, WAITS_IN_TIME_MS, Deposit, DepositStatus, counted_share, deposit_id
from chalicelib.domain.ids import TenantId, asset_id
from chalicelib.domain.invoices.choices import Accepted, Choice, Choosing, Lock, Share
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.invoices.quotes import Quote
from chalicelib.domain.invoices.terms import LatePayments, Terms
from chalicelib.domain.ledger import Balance
from chalicelib.domain.payment_links.stock import LinkStock
from chalicelib.domain.scanning.internal_transfers import BalanceBooking
from chalicelib.domain.work import Work
from chalicelib.settings import Settings
from chalicelib.store import commit
from chalicelib.store.models import Models
from chalicelib.usecases.deposits.deposits import Deposits, Scanned
from chalicelib.usecases.deposits.recorded_before import Claim
from chalicelib.usecases.ports.changes import Change, Save
from chalicelib.usecases.ports.store import Store
from tests.support.memory_store import HandClock

CATALOGUE = Catalogue("live", default_networks("live"), default_coins("live"))
ETHEREUM = CATALOGUE.networks["ethereum"]
ETH, USDT, USDC = (asset_id(ETHEREUM.id, slug) for slug in ("eth", "usdt", "usdc"))
SHOP = TenantId("mch_a:live")
PAYER, PAYEE, TXID = "0x" + "11" * 20, "0x" + "22" * 20, "0x" + "33" * 32
MINED_IN = "0x" + "44" * 32
GLIMPSED, MINED, NOW = 4_000_000, 5_000_000, 6_000_000
UNITS = 10**17
"""More than the price in any of the coins, at the fresh rates."""
NEITHER, FRESH = Rates(), Rates(Rate(coin, "EUR", "3000", NOW, "t") for coin in ("eth", "usdc"))
RULES: tuple[LatePayments, ...] = ("accept", "manual")
BOOKING = BalanceBooking(ETHEREUM.id, PAYEE, 1, "tx_earlier")
WATCHED = Watched("live", "evm", PAYEE, "user", ("ethereum",), SHOP, "addr_1", "inv_1")
KNOWN = deposit_id(ETHEREUM.id, TXID, "native")

Case = tuple[str, "Counting", Callable[[Deposits], object]]
"""The combination for a report, the store before it, and the step."""


class Counting:
    """The records that a deposit rests on, one of a kind, and a piece in each shard of a stock. Every commit is made into the
    transaction that the store would send."""

    def __init__(self, models: Models, *records: object) -> None:
        self.models, self.records = models, {type(record): record for record in records}
        self.commits = 0

    def get(self, kind: type[Any], /, **key: str) -> Any:
        return self.records.get(kind)

    def get_many(self, wanted: Sequence[tuple[type[Any], Mapping[str, str]]], /) -> list[Any]:
        return [LinkStock(**key, left=1) if kind is LinkStock else None for kind, key in wanted]

    def catalogue(self, realm: str, fresh: bool = False) -> Catalogue:
        return CATALOGUE

    def open_work(self, *_: object, **__: object) -> list[Work]:
        return []

    def commit(self, changes: Sequence[Change], /) -> None:
        commit.write(self.models, changes, "token")  # raises ValueError for more items than a transaction has
        self.records.update({type(change.record): change.record for change in changes if isinstance(change, Save)})
        self.commits += 1


class Unsent:
    """In the place of pynamodb's transaction: what is put into it has been counted."""

    def __init__(self, **_: object) -> None:
        self._put_items: list[object] = []
        self._update_items: list[object] = []
        self._delete_items: list[object] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_, **__: None


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    monkeypatch.setattr(Connection, "get_meta_table", lambda *_: None)
    monkeypatch.setattr(commit, "TransactWrite", Unsent)
    return Models(Settings(stage="test"), Connection(region="eu-central-1"))


def invoices() -> Iterator[tuple[str, Invoice]]:
    """Of a link with a stock, at a price in fiat that three coins can pay. One was chosen, and its promised rate is over."""
    quote = Quote("EUR", "1", 6, 0, "t")
    chosen = Choice(USDT, 6, "evm", PAYEE, "addr_1", opened=True, locks=(Lock(quote, 0, 1000),))
    accept = (Accepted(USDT, 6), Accepted(USDC, 6), Accepted(ETH, 18))
    for paid_late, expired, gave, ends, rule in product((False, True), (False, True), (False, True), (1000, 10**9), RULES):
        came = replace(chosen, units={"late": 50 * 10**6}, worth={"late": "50"}) if paid_late else chosen
        invoice = Invoice(
            "inv_1", SHOP, ETHEREUM.id, USDT, PAYEE, "addr_1", 50 * 10**6, created_at=0, expires_at=ends, expired=expired,
            fiat_amount="50", terms=Terms(late_payments=rule), choosing=Choosing("EUR", "50", accept, ETHEREUM.id, (came,), USDT),
            payment_link="plk_1", piece=None if gave else "3", given_back="3" if gave else None, version=7,
        )  # fmt: skip
        yield f"{paid_late=} {expired=} {gave=} {ends=} {rule=}", invoice.settled()


def deposits(*statuses: DepositStatus) -> Iterator[tuple[str, Deposit]]:
    """Those that are known, in a block, each with and without the rate at which it counts."""
    block = 5, MINED_IN, MINED
    deposit = Deposit(
        KNOWN, ETHEREUM.id, ETH, SHOP, TXID, "native", PAYER, PAYEE, UNITS, *block, MINED, "pending", "addr_1", "inv_1"
    )
    for status, late, unpriced in product(statuses, (False, True), (False, True)):
        rate = {"flags": (UNPRICED,)} if unpriced else {"rate": Quote("EUR", "3000", 18, 0, "t")}
        yield f"{status} {late=} {unpriced=}", replace(deposit, status=status, late=late, **rate)


def counted(models: Models, invoice: Invoice, deposit: Deposit) -> Counting:
    """A store with a deposit, and with its invoice that counts it."""
    came = Choice(ETH, 18, "evm", PAYEE, "addr_1").moved(Share(), counted_share(deposit))
    choosing = None if invoice.choosing is None else invoice.choosing.with_choice(came)
    after = replace(invoice, choosing=choosing).settled()
    return Counting(models, after, deposit, Balance(SHOP, deposit.asset, available=UNITS, pending=UNITS))


def block_at(time: int = MINED, claim: Claim | None = None) -> Scanned:
    return Scanned(Block(9, "0x" + "55" * 32, "0x" + "66" * 32, time), 1, claim, 9)


def first_seen(models: Models) -> Iterator[Case]:
    """In a block, with each condition that the record may rest on, or in the mempool, where no epoch is asked for."""
    native, token = Transfer(TXID, "native", None, PAYER, PAYEE, UNITS), Transfer(TXID, "log:1", "0x", PAYER, PAYEE, UNITS)
    eth, usdc = CATALOGUE.coin_of(ETH), CATALOGUE.coin_of(USDC)
    claimed = block_at(claim=Claim(BOOKING, 0, 0))
    waits = Unmined(TXID, [native])
    for name, invoice in invoices():
        yield f"{name} token", Counting(models, invoice), lambda do: do.detect(ETHEREUM, usdc, block_at(), token, WATCHED)
        for booked in ((), (BOOKING,)):
            store = Counting(models, invoice, *booked)
            yield f"{name} {booked=}", store, lambda do: do.detect(ETHEREUM, eth, block_at(), native, WATCHED)
        yield f"{name} claimed", Counting(models, invoice), lambda do: do.detect(ETHEREUM, eth, claimed, native, WATCHED)
        yield f"{name} mempool", Counting(models, invoice), lambda do: do.detect_unmined(ETHEREUM, eth, native, WATCHED, waits, 9)


def moved(models: Models) -> Iterator[Case]:
    """Into another block: from one that is gone, or from the mempool, soon or after more than a day."""
    transfer, eth = Transfer(TXID, "native", None, PAYER, PAYEE, UNITS), CATALOGUE.coin_of(ETH)
    soon, long_after = block_at(), block_at(GLIMPSED + WAITS_IN_TIME_MS + 1)
    for (name, invoice), (of, deposit) in product(invoices(), deposits("pending")):
        glimpsed = replace(deposit, block_number=None, block_hash=None, block_time=0, glimpsed_at=GLIMPSED)
        store = counted(models, invoice, deposit)
        yield f"{name} {of}", store, lambda do: do.detect(ETHEREUM, eth, soon, transfer, WATCHED)
        store = counted(models, invoice, glimpsed)
        yield f"{name} {of} mempool", store, lambda do: do.detect(ETHEREUM, eth, soon, transfer, WATCHED)
        store = counted(models, invoice, glimpsed)
        yield f"{name} {of} long after", store, lambda do: do.detect(ETHEREUM, eth, long_after, transfer, WATCHED)


def confirmed(models: Models) -> Iterator[Case]:
    for (name, invoice), (of, deposit) in product(invoices(), deposits("pending")):
        yield f"{name} {of}", counted(models, invoice, deposit), lambda do: do.confirm(ETHEREUM, KNOWN, MINED_IN, 9, 1)


def orphaned(models: Models) -> Iterator[Case]:
    """Fallen out of the chain; or there with another amount, which the epoch of a scan has to hold for."""
    other, eth = Transfer(TXID, "native", None, PAYER, PAYEE, UNITS + 1), CATALOGUE.coin_of(ETH)
    for (name, invoice), (of, deposit) in product(invoices(), deposits("pending", "confirmed")):
        yield f"{name} {of}", counted(models, invoice, deposit), lambda do: do.orphan(ETHEREUM, KNOWN, MINED_IN, 9)
        if deposit.status == "pending":
            store = counted(models, invoice, deposit)
            yield f"{name} {of} another", store, lambda do: do.detect(ETHEREUM, eth, block_at(), other, WATCHED)


@pytest.mark.parametrize(
    ("cases", "rates"),
    [(first_seen, NEITHER), (first_seen, FRESH), (moved, NEITHER), (moved, FRESH), (confirmed, FRESH), (orphaned, FRESH)],
    ids=["first seen, no rate", "first seen", "moved, no rate", "moved", "confirmed", "orphaned"],
)
def test_a_step_fits_into_a_transaction(models: Models, cases: Callable[[Models], Iterator[Case]], rates: Rates) -> None:
    """Once a deposit has counted, its own rate decides, not the rates of the day."""
    too_large = []
    for name, store, step in cases(models):
        try:
            step(Deposits(cast(Store, store), Rules(), HandClock(NOW), lambda realm: rates))
        except ValueError as error:
            too_large.append(f"{name}: {error}")
        else:
            assert store.commits, name
    assert not too_large
