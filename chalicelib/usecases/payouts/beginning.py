"""Begins payouts on account networks: pending → processing, before a nonce is allotted.

What is asked: the grey list and the risk, the hot wallet's balance and floors by the ledger and by the chain, what the payment
would cost, and whether that may be spent on it. A crash leaves the withdrawal pending, and everything is asked again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from chalicelib.domain.addresses.addresses import Wallet, floor_part
from chalicelib.domain.catalogue.catalogue import Coin, Network
from chalicelib.domain.chain import FeeQuote
from chalicelib.domain.withdrawals.withdrawals import Withdrawal, ended
from chalicelib.usecases.base.current_wallets import hot_wallets
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.payouts.attempts import PayoutParts, coin_of, payment_of
from chalicelib.usecases.payouts.fees import Denied, estimated
from chalicelib.usecases.ports.accounts import ChainPayer, FeeEstimate
from chalicelib.usecases.ports.changes import Save, Still
from chalicelib.usecases.ports.failures import InsufficientFunds, Refused
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.screening.withdrawals import Screened
from chalicelib.usecases.transactions.first_nonce import counter_of
from chalicelib.usecases.wallets.booked import booked_at
from chalicelib.usecases.withdrawals.fee_budget import USED_UP
from chalicelib.usecases.withdrawals.steps import catalogue_views, stepped


class PayoutBeginning:
    def __init__(
        self, parts: PayoutParts, payer_of: Callable[[Network], ChainPayer], reader_of: Callable[[Network], ChainReader]
    ) -> None:
        self._parts, self._store, self._checks = parts, parts.store, parts.checks
        self._payer_of, self._reader_of = payer_of, reader_of

    def begin(self, network: Network, before: Withdrawal, slot: int = 0) -> Withdrawal | None:
        """pending → processing where nothing stands in the way, failed where it can never be paid; None while something does, and
        the record says what. The hot wallet in `slot` pays where it can, else another one; the record names it from then on.
        Raises Conflict, Unavailable."""
        if self._checks.stopped(network, before):
            return None
        screened = self._checks.screened(network, before)
        if screened is None:
            return None
        wallets, payer = hot_wallets(self._store, network.id), self._payer_of(network)
        for wallet in sorted(wallets, key=lambda each: each.slot != slot):
            if not self._covered(network, wallet, before, len(wallets)):
                continue
            payment = payment_of(self._store, wallet, before, counter_of(self._store, network, payer, wallet.address).next)
            try:
                cost = estimated(payer, payment)
            except InsufficientFunds:
                continue
            except Refused as refused:
                return self._checks.refuse(before, refused)
            return self._begun(network, wallet, before, screened, cost)
        self._checks.wait_for_liquidity(network, before)
        return None

    def _begun(
        self, network: Network, wallet: Wallet, before: Withdrawal, screened: Screened, cost: tuple[FeeEstimate, int, bool]
    ) -> Withdrawal | None:
        """Where its fee may be spent on it; `cost` as of `estimated`."""
        (estimate, bound, short), news = cost, News(self._parts.clock.now_ms())
        catalogue, views = catalogue_views(self._store, before, self._parts.rates_of, news.at)
        allowed = self._parts.fees.judge(catalogue, network, before, estimate.fee, gas=estimate.gas, bound=bound)
        if isinstance(allowed, Denied):
            return self._checks.deny(network, before, allowed)
        if short:
            self._checks.wait_for_liquidity(network, before)
            return None
        counted = self._parts.budgets.begun(network, allowed.withdrawal, estimate.fee, screened.own)
        if counted.over:
            return self._checks.wait_for_fees(network, before, USED_UP, own=False)
        after = replace(
            counted.withdrawal, status="processing", pending_reason=None, from_address=wallet.address, slot=wallet.slot,
            fee=estimate.fee, updated_at=news.at, risk=screened.assessment or before.risk, fee_wait=ended(before.fee_wait),
        )  # fmt: skip
        after = stepped(news, views, before, after)
        reserved = self._parts.fees.reserving(news, views, allowed)
        # Nothing new begins with a retired wallet: its rotation has to know what it still pays.
        self._store.commit([Save(after), Still(wallet), *screened.noted, *reserved, *counted.changes, *news.emit()])
        return after

    def _covered(self, network: Network, wallet: Wallet, withdrawal: Withdrawal, wallets: int) -> bool:
        """Whether the hot wallet has the amount and the fee, by the ledger (which knows what is signed and not yet mined) and
        by the chain, and keeps its floors: that of the coin, and that of the native coin, which the fee is paid in.

        Of several `wallets` each keeps its part of a floor: so all together keep the whole, whichever of them pay at once.
        """
        coin = coin_of(self._store, withdrawal)
        native = catalogue_views(self._store, withdrawal)[0].native(network.slug)
        floor, floor_of_fees = self._checks.floor(coin), self._checks.floor(native)
        if floor is None or floor_of_fees is None:
            return False
        floor, floor_of_fees = floor_part(floor, wallets), floor_part(floor_of_fees, wallets)
        booked = self._booked(network, wallet, coin)
        quote = self._store.get(FeeQuote, network=network.id)
        fee = max(1, quote.fees.get(coin.slug, 0)) if quote is not None else 1
        needed = withdrawal.amount + (fee if coin.contract is None else 0)
        if booked < needed + floor:
            return False
        if coin.contract is not None and floor_of_fees and self._booked(network, wallet, native) < fee + floor_of_fees:
            return False
        reader = self._reader_of(network)
        if reader.balance(wallet.address, coin.contract) < needed:
            return False
        return coin.contract is None or reader.balance(wallet.address) >= fee

    def _booked(self, network: Network, wallet: Wallet, coin: Coin) -> int:
        return booked_at(self._store, self._parts.rules, network, wallet.address, coin.asset).units
