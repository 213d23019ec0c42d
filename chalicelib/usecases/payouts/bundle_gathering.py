"""Gathers the withdrawals of a bundle: open ones without an objection join the gathering bundle, as far as the UTXOs go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.ids import new_id
from chalicelib.domain.treasury.hot_utxos import HeldCoins
from chalicelib.domain.versions import version_after
from chalicelib.domain.withdrawals.bundles import MOST_PAYOUTS, Bundle, BundledPayout, bundle_work
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Withdrawal, ended
from chalicelib.usecases.base.newer_states import known_of
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.payouts.bundle_building import BundleBuilding
from chalicelib.usecases.payouts.bundle_candidates import Candidates, afforded, between_bundles
from chalicelib.usecases.payouts.bundle_members import most_urgent
from chalicelib.usecases.payouts.bundle_parts import BundleParts
from chalicelib.usecases.payouts.fees import Denied
from chalicelib.usecases.ports.changes import Change, Conflict, Open, Save, Still
from chalicelib.usecases.ports.coins import Output
from chalicelib.usecases.ports.failures import InsufficientFunds, Refused
from chalicelib.usecases.wallets.ledger_balances import ledger_balance
from chalicelib.usecases.wallets.utxos import coins_of
from chalicelib.usecases.withdrawals.payout_line import in_turns
from chalicelib.usecases.withdrawals.steps import catalogue_views, order_id, payout_parts, stepped

MOST_CONSIDERED = 3 * MOST_PAYOUTS
"""Open payouts that are read for one bundle, merchants by turns."""
MOST_SHORT = 10
"""Withdrawals that there is too little for, after which no others are tried at once."""


class BundleGathering:
    """Stores who is paid: payments are named, no coin is taken."""

    def __init__(self, parts: BundleParts, building: BundleBuilding) -> None:
        self._parts, self._building, self._checks, self._fees = parts, building, parts.checks, parts.fees
        self._store, self._rules, self._clock, self._payer_of = parts.store, parts.rules, parts.clock, parts.payer_of

    def gather(self, network: Network, wallet: Wallet | None, first: Withdrawal) -> Bundle | None:
        """Let `first`, and what else is open and nobody objects to, join the bundle that gathers, as far as the coins go.

        Returns a bundle that is full: whoever filled it died, and it has to go on before anything else can join another.
        """
        if wallet is None:
            if not self._checks.stopped(network, first):
                self._checks.wait_for_liquidity(network, first)
            return None
        held = coins_of(self._store, network, wallet.address)
        bundle = None if held.gathering is None else self._store.get(Bundle, id=held.gathering)
        room = MOST_PAYOUTS - (0 if bundle is None else len(bundle.payouts))
        wanted = self._open_ones(network, wallet, first, room) if room > 0 else []
        share = 0
        if wanted:
            wanted, fee = self._worth(network, wallet, held, bundle, wanted, first)
            share = fee // max(1, len(wanted) + (0 if bundle is None else len(bundle.payouts)))
        for withdrawal in wanted:
            bundle, held = self._join(network, wallet, bundle, held, withdrawal, share)
        return bundle if room <= 0 else None

    def _open_ones(self, network: Network, wallet: Wallet, first: Withdrawal, room: int) -> list[Withdrawal]:
        candidates = Candidates(self._parts, network, wallet, first.asset, room)
        candidates.consider(first)
        line = islice(in_turns(self._store, network.id, first.tenant), MOST_CONSIDERED)
        while len(candidates.found) < room and (works := list(islice(line, room - len(candidates.found)))):
            keys = [(Withdrawal, dict(zip(("tenant", "id"), payout_parts(work), strict=True))) for work in works]
            for withdrawal in known_of(self._store, keys):
                candidates.consider(withdrawal)
        return candidates.found

    def _worth(
        self, network: Network, wallet: Wallet, held: HeldCoins, bundle: Bundle | None, wanted: list[Withdrawal], first: Withdrawal
    ) -> tuple[list[Withdrawal], int]:
        """Those of the covered ones whose share of the fee may be spent on them, and the fee of paying all of them.

        The others wait with the reason `fees`. Without them the shares are larger, so it is asked again until all may be paid.
        """
        able, fee = self._covered(network, wallet, held, bundle, wanted)
        while able:
            share = -(-fee // (len(able) + (0 if bundle is None else len(bundle.payouts))))
            catalogue = catalogue_views(self._store, able[0])[0]
            denied = {w.id: said for w in able if isinstance(said := self._fees.check(catalogue, network, w, share), Denied)}
            if not denied:
                break
            for withdrawal in able:
                # Each in its turn: what is asked for now says so, and fails once it has waited for a day.
                if withdrawal.id in denied and (withdrawal.id == first.id or withdrawal.pending_reason != "fees"):
                    self._checks.wait_for_fees(network, withdrawal, denied[withdrawal.id].why)
            rest = [withdrawal for withdrawal in able if withdrawal.id not in denied]
            able, fee = self._covered(network, wallet, held, bundle, rest) if rest else ([], 0)
        return able, fee

    def _covered(
        self, network: Network, wallet: Wallet, held: HeldCoins, bundle: Bundle | None, wanted: list[Withdrawal]
    ) -> tuple[list[Withdrawal], int]:
        """Those that the wallet's coins suffice for, by the ledger (of which its floor stays) and by the chain, and the fee of
        paying all of them.

        What the chain would refuse fails; what has to wait for liquidity says so.
        """
        payer = self._payer_of(network)
        rate = payer.fee_rate(most_urgent([*([bundle.priority] if bundle else []), *(w.priority for w in wanted)]))
        coins = self._building.spendable(network, wallet, held)
        asset = wanted[0].asset
        booked = ledger_balance(self._store, self._rules, network, wallet.address, asset)
        floor = self._checks.floor(catalogue_views(self._store, wanted[0])[0].native(network.slug))
        units = 0 if floor is None else booked.units - floor
        outputs = [] if bundle is None else [Output(p.recipient, p.amount) for p in bundle.payouts]

        def planned(more: Sequence[Withdrawal]) -> int:
            together = [*outputs, *(Output(w.to_address, w.amount) for w in more)]
            plan = payer.plan(wallet.address, coins, together, rate)
            if sum(output.amount for output in together) + plan.fee > units:
                raise InsufficientFunds("the ledger has less in the hot wallet than its coins are worth, or its floor has to stay")
            return plan.fee

        try:
            return wanted, planned(wanted)
        except Refused:
            pass  # one of them is too much: which?
        able: list[Withdrawal] = []
        fee = short = 0
        for withdrawal in wanted:
            try:
                fee = planned([*able, withdrawal])
                able.append(withdrawal)
            except InsufficientFunds:
                short += 1
                if withdrawal is wanted[0] or withdrawal.pending_reason is None:
                    self._checks.wait_for_liquidity(network, withdrawal)
                if short >= MOST_SHORT:
                    break
            except Refused as refused:
                if withdrawal.status == "pending":
                    self._checks.fail(withdrawal, f"the network would refuse it: {refused}")
                else:  # it was accepted once, and told: what the network takes again it will pay
                    self._checks.wait_for_liquidity(network, withdrawal)
        return able, fee

    def _join(
        self, network: Network, wallet: Wallet, bundle: Bundle | None, held: HeldCoins, before: Withdrawal, fee: int
    ) -> tuple[Bundle | None, HeldCoins]:
        screened = None
        if before.status == "pending":
            # Once more, since others have joined before it: of many at once, each is screened with those before it counted.
            screened = self._checks.screened(network, before)
            counted = None if screened is None else afforded(self._parts, network, before, fee, screened.own)
            if counted is None:
                return bundle, held
            if counted.changes:
                # The step itself has no room for it. Who dies between the two has counted it, and it is not counted again.
                before = replace(counted.withdrawal, version=version_after(before))
                self._store.commit([Save(before), *counted.changes])
        news = News(self._clock.now_ms())
        _, views = catalogue_views(self._store, before)
        joined = BundledPayout(before.id, before.tenant, self._rules.normalize(network.id, before.to_address), before.amount)
        changes: list[Change] = []
        if bundle is None:
            made = new_id("bun", news.at)
            bundle = Bundle(
                made, network.id, wallet.address, before.asset, news.at, news.at, before.priority, (joined,)
            )  # fmt: skip
            held = replace(held, gathering=made).next()
            changes += [Save(held), Open(bundle_work(bundle))]
        else:
            urgent = most_urgent([bundle.priority, before.priority])
            bundle = replace(bundle, payouts=(*bundle.payouts, joined), priority=urgent).next(news.at)
        known = between_bundles(self._store, before)
        if known is None and before.status != "pending":
            raise Conflict(None)
        order = PaymentOrder(
            id=order_id(before),
            network=network.id,
            wallet=wallet.address,
            nonce=-1,
            withdrawal_id=before.id,
            tenant=before.tenant,
            asset=before.asset,
            contract=None,
            recipient=before.to_address,
            amount=before.amount,
            unsigned="",
            created_at=news.at if known is None else known.created_at,
            bundle=bundle.id,
            version=version_after(known),
        )
        after = replace(
            before, status="processing", pending_reason=None, from_address=wallet.address, fee=fee, fee_wait=ended(before.fee_wait),
            order_id=order.id, updated_at=news.at, risk=before.risk if screened is None else screened.assessment or before.risk,
        )  # fmt: skip
        after = stepped(news, views, before, after)
        # Nothing new begins with a wallet that was replaced.
        noted = () if screened is None else screened.noted
        self._store.commit([Save(bundle), Save(after), Save(order), Still(wallet), *changes, *noted, *news.emit()])
        return bundle, held
