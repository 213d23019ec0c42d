"""First sight of a deposit: the record that the chain tells, what it is worth, and what it does to its invoice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from chalicelib.domain.addresses.addresses import Watched
from chalicelib.domain.catalogue.catalogue import Coin, Network
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.chain import Block, Transfer
from chalicelib.domain.deposits.deposits import REPLACEABLE, Deposit, deposit_id
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.versions import next_version
from chalicelib.usecases.base.fiat_values import deposit_worth
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.views import Views
from chalicelib.usecases.deposits.counted_rates import counting_at
from chalicelib.usecases.deposits.late_rates import at_its_worth
from chalicelib.usecases.deposits.posting import DepositPostings, is_late
from chalicelib.usecases.deposits.recorded_before import Claim
from chalicelib.usecases.invoices.status import changed, paid
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import AtEpoch, AtPart, Change
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store


@dataclass(frozen=True, slots=True)
class Scanned:
    """A block of a chain that is `tip` high, or higher, as it was read at `epoch`.

    What is found in it commits only while no reorganisation after `epoch` has dropped the block, by the `part` of its list that has
    the deposit: a scan that slept through a reorganisation changes nothing. What was found in a balance comes with its `claim`, is
    recorded only while that holds, and at the first conflict not at all.
    """

    block: Block
    epoch: int
    claim: Claim | None = None
    tip: int = 0
    part: int | None = None

    @property
    def height(self) -> int:
        """How high the chain is at least."""
        return max(self.tip, self.block.number)

    def stands(self, network: Network) -> Change:
        """The condition on which it tells of a deposit: its block has not fallen out."""
        if self.part is None:
            return AtEpoch(network.id, self.epoch)
        return AtPart(network.id, self.block.hash, self.part, self.epoch)


class FirstSight:
    def __init__(self, store: Store, rules: AddressRules, clock: Clock, rates: RatesOf, book: DepositPostings) -> None:
        self._store, self._rules, self._clock, self._rates, self._book = store, rules, clock, rates, book

    def seen(self, network: Network, coin: Coin, transfer: Transfer, watched: Watched, scanned: Scanned | None) -> Deposit:
        """The deposit as the chain tells it, before it is screened."""
        seen = Deposit(
            id=deposit_id(network.id, transfer.txid, transfer.position),
            network=network.id,
            asset=coin.asset,
            tenant=watched.tenant,
            txid=transfer.txid,
            position=transfer.position,
            sender=self._spelled(network, transfer.sender),
            address=self._spelled(network, transfer.recipient),
            amount=transfer.amount,
            block_number=None,
            block_hash=None,
            block_time=0,
            created_at=self._clock.now_ms(),
            address_id=watched.address_id,
            invoice_id=watched.invoice_id,
            version=0,
        )
        return in_block(seen, scanned)

    def valued(self, network: Network, deposit: Deposit, invoice: Invoice | None, now_ms: int) -> tuple[Deposit, list[Change]]:
        """The deposit with what it is worth, and whether it is late for its invoice; the obligation to find its rate where it needs
        one that nobody knows now."""
        catalogue = self._store.catalogue(network.realm)
        deposit = at_its_worth(replace(deposit, late=is_late(deposit, invoice)), invoice, self._rates, now_ms)
        deposit, waits = counting_at(deposit, invoice, catalogue, self._rates, now_ms)
        return deposit_worth(deposit, invoice, catalogue, self._rates, now_ms), waits

    def told(
        self,
        news: News,
        network: Network,
        deposit: Deposit,
        invoice: Invoice | None,
        tip: int | None,
        previous: str | None = None,
        *,
        ends_it: bool = True,
    ) -> tuple[Deposit, Sequence[Change]]:
        """The deposit once it is told, and the changes of its invoice. `previous` is its status before, where it was known;
        `ends_it` as `status.paid` has it."""
        views = Views(self._store.catalogue(network.realm))
        deposit = self._book.told(news, deposit, "transaction.detected", views, tip, previous)
        if invoice is None or deposit.set_aside:
            return deposit, ()
        return deposit, changed(invoice, paid(news, invoice, None, deposit, views, tip, ends_it=ends_it))

    def _spelled(self, network: Network, address: str) -> str:
        try:
            return self._rules.normalize(network.id, address)
        except ValueError:
            # A sender may be what nobody can pay to: a token's mint comes from the zero address. Shown as the chain has it.
            return address


def in_block(deposit: Deposit, scanned: Scanned | None) -> Deposit:
    """The next version of `deposit`, which is in the block of `scanned` now; in none where that is None."""
    number, hash_, time, part = None, None, 0, None
    if scanned is not None:
        number, hash_, time, part = scanned.block.number, scanned.block.hash, scanned.block.time, scanned.part
    deposit = replace(next_version(deposit), block_number=number, block_hash=hash_, block_time=time, part=part)
    return replace(deposit, missing_since=None, spends=(), flags=tuple(flag for flag in deposit.flags if flag != REPLACEABLE))
