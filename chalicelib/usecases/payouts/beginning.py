"""Begins payouts on account networks: pending → processing, before a nonce is allotted.

What is asked: the grey list and the risk, the hot wallet's balance and floors by the ledger and by the chain, what the payment
would cost, and whether that may be spent on it. A crash leaves the withdrawal pending, and everything is asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from chalicelib.domain.addresses.addresses import Wallet, floor_part
from chalicelib.domain.catalogue.catalogue import Coin, Network
from chalicelib.domain.chain import FeeQuote
from chalicelib.domain.versions import version_after
from chalicelib.domain.withdrawals.slot_shortages import FEES, SlotShortage
from chalicelib.domain.withdrawals.withdrawals import Withdrawal, ended
from chalicelib.usecases.base.current_wallets import hot_wallets
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.side_by_side import meanwhile
from chalicelib.usecases.payouts.attempts import PayoutParts, coin_of, payment_of
from chalicelib.usecases.payouts.fees import Denied, estimated
from chalicelib.usecases.ports.accounts import ChainPayer, FeeEstimate
from chalicelib.usecases.ports.changes import Save, Still
from chalicelib.usecases.ports.failures import InsufficientFunds, Refused
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.screening.withdrawals import Screened
from chalicelib.usecases.transactions.first_nonce import counter_beside
from chalicelib.usecases.wallets.ledger_balances import ledger_balance
from chalicelib.usecases.withdrawals.fee_budget import USED_UP
from chalicelib.usecases.withdrawals.shortages import counts
from chalicelib.usecases.withdrawals.steps import catalogue_views, handed_command, stepped

Cost = tuple[FeeEstimate, int, bool]
"""As `estimated` gives it."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a payout needs of one hot wallet: `units` of its coin, and the `fee` in the native one; and what is to stay there."""

    coin: Coin
    native: Coin
    units: int
    fee: int
    floor: int
    floor_of_fees: int


class PayoutBeginning:
    def __init__(
        self, parts: PayoutParts, payer_of: Callable[[Network], ChainPayer], reader_of: Callable[[Network], ChainReader]
    ) -> None:
        self._parts, self._store, self._checks = parts, parts.store, parts.checks
        self._payer_of, self._reader_of = payer_of, reader_of

    def begin(self, network: Network, before: Withdrawal, slot: int = 0, *, handed: bool = False) -> Withdrawal | None:
        """pending → processing where nothing stands in the way, failed where it can never be paid; None while something does, and
        the record says what.

        The hot wallet in `slot` pays, and the record names it from then on. Where that one has too little and another has enough,
        the payout is handed over to the other's group of commands, once (`handed`): payouts of one wallet are started one after the
        other, so that no two count on the same coins. Raises Conflict, Unavailable.
        """
        if self._checks.stopped(network, before):
            return None
        wallets = hot_wallets(self._store, network.id)
        needs = self._needs(network, before, len(wallets))
        own = next((wallet for wallet in wallets if wallet.slot == slot), None)
        with self._asked(network, own, before, needs) as told:
            screened = self._checks.screened(network, before)
        if screened is None:
            return None
        try:
            cost = told()
        except Refused as refused:
            return self._checks.refuse(before, refused)
        if own is not None and cost is not None:
            return self._begun(network, own, before, screened, cost)
        other = None if handed else self._able(network, [wallet for wallet in wallets if wallet.slot != slot], needs)
        if other is not None:
            news = News(self._parts.clock.now_ms())
            news.command(handed_command(before, other.slot))
            self._store.commit([Still(before), *news.emit()])
        else:
            self._checks.wait_for_liquidity(network, before, self._shortage(network, wallets, needs, before))
        return None

    def _able(self, network: Network, wallets: Sequence[Wallet], needs: Needs | None) -> Wallet | None:
        """The first that has enough."""
        return None if needs is None else next((wallet for wallet in wallets if self._covered(network, wallet, needs)), None)

    @contextmanager
    def _asked(
        self, network: Network, wallet: Wallet | None, before: Withdrawal, needs: Needs | None
    ) -> Iterator[Callable[[], Cost | None]]:
        """Ask, while the block runs, whether `wallet` has enough, and what the payment costs out of it: neither answer decides what
        the other question is. The value tells the cost, None where the wallet has too little. It raises Refused, Unavailable."""
        if wallet is None or needs is None or not self._recorded(network, wallet, needs):
            yield lambda: None
            return
        with (
            meanwhile(partial(_holds, self._reader_of(network), wallet, needs)) as holds,
            meanwhile(partial(self._cost, network, self._payer_of(network), wallet, before)) as cost,
        ):

            def told() -> Cost | None:
                try:
                    return cost() if holds() else None
                except InsufficientFunds:
                    return None

            yield told

    def _cost(self, network: Network, payer: ChainPayer, wallet: Wallet, before: Withdrawal) -> Cost:
        """As `estimated` says. Raises InsufficientFunds, Refused, Unavailable."""
        payment = payment_of(self._store, wallet, before, 0)
        _, cost = counter_beside(
            self._store, network, payer, wallet.address, lambda nonce: estimated(payer, replace(payment, nonce=nonce))
        )
        return cost()

    def _begun(self, network: Network, wallet: Wallet, before: Withdrawal, screened: Screened, cost: Cost) -> Withdrawal | None:
        """Where its fee may be spent on it; `cost` as of `estimated`."""
        (estimate, bound, short), news = cost, News(self._parts.clock.now_ms())
        catalogue, views = catalogue_views(self._store, before, self._parts.rates_of, news.at)
        allowed = self._parts.fees.check(catalogue, network, before, estimate.fee, gas=estimate.gas, bound=bound)
        if isinstance(allowed, Denied):
            return self._checks.deny(network, before, allowed)
        if short:
            self._checks.wait_for_liquidity(network, before)
            return None
        counted = self._parts.budgets.start(network, allowed.withdrawal, estimate.fee, screened.own)
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

    def _needs(self, network: Network, withdrawal: Withdrawal, wallets: int) -> Needs | None:
        """None while nobody knows a floor's units."""
        coin = coin_of(self._store, withdrawal)
        native = catalogue_views(self._store, withdrawal)[0].native(network.slug)
        floor, floor_of_fees = self._checks.floor(coin), self._checks.floor(native)
        if floor is None or floor_of_fees is None:
            return None
        quote = self._store.get(FeeQuote, network=network.id)
        fee = max(1, quote.fees.get(coin.slug, 0)) if quote is not None else 1
        units = withdrawal.amount + (fee if coin.contract is None else 0)
        return Needs(coin, native, units, fee, floor_part(floor, wallets), floor_part(floor_of_fees, wallets))

    def _covered(self, network: Network, wallet: Wallet, needs: Needs) -> bool:
        return self._recorded(network, wallet, needs) and _holds(self._reader_of(network), wallet, needs)

    def _recorded(self, network: Network, wallet: Wallet, needs: Needs) -> bool:
        """Whether the hot wallet has the amount and the fee by the ledger (which knows what is signed and not yet mined), and keeps
        its floors: that of the coin, and that of the native coin, which the fee is paid in."""
        coin, token = needs.coin, needs.coin.contract is not None
        if self._booked(network, wallet, coin) < needs.units + needs.floor:
            return False
        if not token or not needs.floor_of_fees:
            return True
        return self._booked(network, wallet, needs.native) >= needs.fee + needs.floor_of_fees

    def _shortage(
        self, network: Network, wallets: Sequence[Wallet], needs: Needs | None, before: Withdrawal
    ) -> SlotShortage | None:
        """What the treasury is asked to move between several hot wallets: the rest of the amount to the one that has most of the
        coin, or coins for its fees where that is what it lacks. None where a payout that needs less is to have it first: one that
        no hot wallets can fill must not keep the others waiting."""
        if needs is None or len(wallets) < 2:
            return None
        best = max(wallets, key=lambda wallet: (self._booked(network, wallet, needs.coin), -wallet.slot))
        coin, units, floor = needs.coin, needs.units, needs.floor
        if self._booked(network, best, coin) >= units + floor:
            coin, units, floor = needs.native, FEES * needs.fee, needs.floor_of_fees
        known, now = self._store.get(SlotShortage, network=network.id, asset=coin.asset), self._parts.clock.now_ms()
        others = known is not None and known.withdrawal != before.id
        if known is not None and others and known.units < units and counts(self._store, known, now):
            target = next((wallet for wallet in wallets if wallet.address == known.wallet), None)
            if target is not None and self._booked(network, target, coin) < known.units + floor:
                return None
        return SlotShortage(
            *(network.id, coin.asset, best.address, units, now), tenant=before.tenant, withdrawal=before.id,
            version=version_after(known),
        )  # fmt: skip

    def _booked(self, network: Network, wallet: Wallet, coin: Coin) -> int:
        return ledger_balance(self._store, self._parts.rules, network, wallet.address, coin.asset).units


def _holds(reader: ChainReader, wallet: Wallet, needs: Needs) -> bool:
    """Whether the hot wallet has the amount and the fee by the chain."""
    contract = needs.coin.contract
    if contract is None:
        return reader.balance(wallet.address) >= needs.units
    with meanwhile(partial(reader.balance, wallet.address)) as native:
        tokens = reader.balance(wallet.address, contract)
    return tokens >= needs.units and native() >= needs.fee
