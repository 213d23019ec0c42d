"""Screening of a deposit at first sight: its amount, its invoice, its sender on the grey list, and whether it is a known
payment."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.domain.catalogue.catalogue import Coin, Network
from chalicelib.domain.catalogue.coin_settings import NoFreshRate, in_usd, limit_units
from chalicelib.domain.catalogue.rates import Rates, RatesOf
from chalicelib.domain.deposits.deposits import BELOW_MINIMUM, GREY_LISTED, Deposit
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.screening.grey_list import GreyListEntry
from chalicelib.domain.versions import version_after
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.screening.grey_list import grey_key, grey_listed


class DepositScreening:
    def __init__(self, store: Store, rules: AddressRules, clock: Clock, rates: RatesOf) -> None:
        self._store, self._rules, self._clock, self._rates = store, rules, clock, rates

    def screened(self, network: Network, coin: Coin, deposit: Deposit) -> Deposit:
        """Screen a new deposit: `deposit` with its flags; for no invoice where it is too little.

        At the address of an invoice that is open now every amount is the merchant's: a price may be paid in parts. A return goes
        back whole, however little it is.
        """
        small = deposit.tenant is not None and not deposit.returned and deposit.amount < self.minimum(network, coin)
        if small and not self._for_open_invoice(deposit):
            deposit = replace(deposit, invoice_id=None, flags=(*deposit.flags, BELOW_MINIMUM))
        return replace(deposit, flags=self.flags(network, deposit))

    def _for_open_invoice(self, deposit: Deposit) -> bool:
        if deposit.tenant is None or deposit.invoice_id is None:
            return False
        invoice = self._store.get(Invoice, tenant=deposit.tenant, id=deposit.invoice_id)
        if invoice is None:
            return False
        return invoice.takes_any(deposit.block_number, deposit.network)

    def minimum(self, network: Network, coin: Coin) -> int:
        """Units below which a deposit is not the merchant's."""
        rates = self._rates(network.realm) if in_usd(coin) else Rates()
        if in_usd(coin) and not rates.constant:
            return 0
        try:
            return limit_units(coin, "minDepositAmount", rates, self._clock.now_ms()) or 0
        except NoFreshRate:
            return 0  # a payment can not be sent back: doubt is for the merchant

    def grey_key(self, network: Network, deposit: Deposit) -> tuple[type[GreyListEntry], dict[str, str]]:
        """What to read of the grey list about its sender."""
        return grey_key(self._rules, network.id, deposit.sender)

    def flags(self, network: Network, deposit: Deposit) -> tuple[str, ...]:
        """Its flags, with GREY_LISTED where its sender is on the list now. An unknown sender is on no list."""
        if GREY_LISTED in deposit.flags or not deposit.sender:
            return deposit.flags
        listed = grey_listed(self._store, self._rules, network.id, deposit.sender)
        return (*deposit.flags, GREY_LISTED) if listed else deposit.flags


def same_payment(known: Deposit, seen: Deposit) -> bool:
    """Whether another block tells of the same payment. A contract call that is run again after a reorganisation may log
    something else under the same transaction and position: that is another payment, and screened as such."""

    def facts(deposit: Deposit) -> tuple[object, ...]:
        return (deposit.asset, deposit.amount, deposit.address, deposit.tenant, deposit.address_id)

    if known.sender != seen.sender and known.sender and seen.sender:
        return False
    # What was below the minimum is for no invoice, whatever its address is for.
    return facts(known) == facts(seen) and (known.below_minimum or known.invoice_id == seen.invoice_id)


def anew(known: Deposit, seen: Deposit) -> Deposit:
    """`seen` in the place of `known`, which the chain now tells otherwise. Of its decisions only the grey-listed sender is kept,
    where it is the same sender. Its archives have postings of before."""
    listed = GREY_LISTED in known.flags and known.sender == seen.sender
    return replace(
        seen,
        flags=(*seen.flags, GREY_LISTED) if listed else seen.flags,
        round=known.round,
        emitted=known.emitted,
        archives=known.archives,
        version=version_after(known),
    )
