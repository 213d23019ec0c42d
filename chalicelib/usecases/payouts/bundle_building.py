"""Builds the first bytes of a bundle: UTXOs are reserved and the bytes stored in one transaction (money rule 6)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.treasury.hot_utxos import MOST_INPUTS, HeldCoins
from chalicelib.domain.versions import next_version
from chalicelib.domain.withdrawals.bundles import Built, Bundle, BundledPayout
from chalicelib.domain.withdrawals.payout_line import RETRY_MS, aside_order
from chalicelib.usecases.base.address_forms import same_place
from chalicelib.usecases.payouts.bundle_members import members, most_urgent
from chalicelib.usecases.payouts.bundle_parts import BundleParts
from chalicelib.usecases.payouts.fees import Denied
from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.usecases.ports.coins import CoinPlan, Output, Unspent
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.transactions.utxo.reading import attempt_of
from chalicelib.usecases.wallets.utxos import coins_of
from chalicelib.usecases.withdrawals.steps import moved_in_line, waiting_for_fees

log = logging.getLogger(__name__)


class BundleBuilding:
    """Chooses UTXOs and stores the unsigned bytes. Signs nothing."""

    def __init__(self, parts: BundleParts) -> None:
        self._store, self._rules, self._clock = parts.store, parts.rules, parts.clock
        self._payer_of, self._fees = parts.payer_of, parts.fees

    def spendable(self, network: Network, wallet: Wallet, held: HeldCoins, most: int = MOST_INPUTS) -> list[Unspent]:
        """The largest free coins that the node knows too."""
        free = held.free[: max(0, most)]
        if not free:
            return []
        found = self._payer_of(network).unspent([coin.outpoint for coin in free])
        able: list[Unspent] = []
        for coin, seen in zip(free, found, strict=True):
            if seen is None or seen.amount != coin.amount or not same_place(self._rules, network, seen.address, wallet.address):
                log.error("ALARM %s: the node does not know %s of the hot wallet as it is booked", network.id, coin.outpoint)
            elif seen.height > 0:  # else its block has just fallen out
                able.append(Unspent(coin.outpoint, wallet.address, coin.amount, seen.height))
        return able

    def seal(self, network: Network, wallet: Wallet, bundle: Bundle) -> Bundle:
        """gathering → built: coins reserved, bytes exact. Raises Conflict, Unavailable; LookupError where the bundle says that it
        gathers and its wallet does not, which no step of ours leaves.

        What the coins do not suffice for any more leaves the bundle first, and waits by itself: the fee rate rose, or a coin went.
        Where that is everything, the bundle goes on gathering, with nothing in it.
        """
        held = coins_of(self._store, network, wallet.address)
        if held.gathering != bundle.id:
            if self._store.get(Bundle, id=bundle.id) == bundle:
                raise LookupError(f"{bundle.id} is {bundle.state}, and its wallet gathers {held.gathering}")
            raise Conflict(None)  # it was sealed between the two reads
        if not bundle.payouts:
            return bundle
        kept, plan = self._payable(network, wallet, held, bundle)
        bundle = self._without_others(network, bundle, kept, "liquidity")
        if plan is not None:
            worth, plan = self._worth(network, wallet, held, bundle, plan)
            bundle = self._without_others(network, bundle, worth, "fees")
        if plan is None:
            return bundle
        built = self._built(network, bundle, held, plan)
        held = replace(held.reserve(bundle.id, plan.inputs), gathering=None)
        bundle = replace(bundle, state="built", newest=built).next(self._clock.now_ms())
        self._store.commit([Save(bundle), Save(held.next())])
        return bundle

    def _payable(
        self, network: Network, wallet: Wallet, held: HeldCoins, bundle: Bundle
    ) -> tuple[Sequence[BundledPayout], CoinPlan | None]:
        """What the free coins suffice for now, those that joined first before others, and the transaction that pays it."""
        payer = self._payer_of(network)
        coins, rate = self.spendable(network, wallet, held), payer.fee_rate(bundle.priority)

        def planned(payouts: Sequence[BundledPayout]) -> CoinPlan:
            return payer.plan(wallet.address, coins, [Output(p.recipient, p.amount) for p in payouts], rate)

        try:
            return bundle.payouts, planned(bundle.payouts)
        except Refused:
            pass  # which of them?
        kept: list[BundledPayout] = []
        plan = None
        for payout in bundle.payouts:
            try:
                plan = planned([*kept, payout])
                kept.append(payout)
            except Refused as refused:
                log.error("ALARM %s: %s leaves %s, it can not be paid now: %s", network.id, payout.withdrawal, bundle.id, refused)
        return kept, plan

    def _worth(
        self, network: Network, wallet: Wallet, held: HeldCoins, bundle: Bundle, plan: CoinPlan
    ) -> tuple[Sequence[BundledPayout], CoinPlan | None]:
        """What of a bundle may be paid at its share of the fee of `plan`, and the transaction that pays that.

        The rate may have risen since they joined. Those that leave make the shares of the others larger, so it is asked again.
        """
        kept, last = list(bundle.payouts), plan
        while kept:
            denied = self.denied(network, bundle, kept, last.fee)
            if not denied:
                return kept, last
            for name, why in denied.items():
                log.error("ALARM %s: %s leaves %s because of its fee: %s", network.id, name, bundle.id, why)
            kept = [payout for payout in kept if payout.withdrawal not in denied]
            if kept:
                payer = self._payer_of(network)
                coins, rate = self.spendable(network, wallet, held), payer.fee_rate(bundle.priority)
                last = payer.plan(wallet.address, coins, [Output(p.recipient, p.amount) for p in kept], rate)
        return [], None

    def denied(self, network: Network, bundle: Bundle, payouts: Sequence[BundledPayout], fee: int) -> dict[str, str]:
        """Which of `payouts` may not be paid at an equal share of `fee`, and why. Records are read only where that is in doubt."""
        share = -(-fee // len(payouts))
        names = {payout.withdrawal for payout in payouts if payout.amount < share}
        if not names:
            return {}
        found: dict[str, str] = {}
        for withdrawal, _ in members(self._store, bundle):
            if withdrawal.id in names:
                said = self._fees.check(self._store.catalogue(network.realm), network, withdrawal, share)
                found |= {withdrawal.id: said.why} if isinstance(said, Denied) else {}
        return found

    def _without_others(
        self, network: Network, bundle: Bundle, kept: Sequence[BundledPayout], reason: Literal["liquidity", "fees"]
    ) -> Bundle:
        """Let all but `kept` leave, each in a transaction of its own. They stay processing, and their payouts open; they wait for
        `reason`."""
        if len(kept) == len(bundle.payouts):
            return bundle
        stay = {payout.withdrawal for payout in kept}
        together = members(self._store, bundle)
        priorities = {withdrawal.id: withdrawal.priority for withdrawal, _ in together}
        for withdrawal, order in together:
            if withdrawal.id in stay:
                continue
            now = self._clock.now_ms()
            left = tuple(payout for payout in bundle.payouts if payout.withdrawal != withdrawal.id)
            urgent = most_urgent([priorities[payout.withdrawal] for payout in left]) if left else "low"
            bundle = replace(bundle, payouts=left, priority=urgent).next(now)
            alone = replace(next_version(order), bundle=None)
            due = aside_order(withdrawal, now + RETRY_MS)
            short = replace(next_version(withdrawal), pending_reason="liquidity", updated_at=now, line=due)
            waits = moved_in_line(withdrawal, short) if reason == "liquidity" else waiting_for_fees(withdrawal, now, now)
            self._store.commit([Save(bundle), Save(alone), *waits])
        return bundle

    def _built(self, network: Network, bundle: Bundle, held: HeldCoins, plan: CoinPlan) -> Built:
        """The attempt that `plan` is, told from its bytes. Raises OrderMismatch."""
        known = {coin.outpoint: coin for coin in held.coins} | bundle.coins
        return attempt_of(self._payer_of(network), self._rules, network, bundle, plan.unsigned, known.values())
