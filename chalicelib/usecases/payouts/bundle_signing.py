"""Bundles as the engine of UTXO transactions signs them: every member is compared with its approved withdrawal (money rule 7)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.treasury.hot_utxos import HeldCoin
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.usecases.base.kill_switch import rests_on
from chalicelib.usecases.payouts.bundle_members import members, unlike
from chalicelib.usecases.payouts.bundle_parts import BundleParts
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.transactions.first_signatures import all_signed_before, never_signed
from chalicelib.usecases.transactions.utxo.kinds import Grounds, InputSigner
from chalicelib.usecases.wallets.utxos import coins_of
from chalicelib.usecases.withdrawals.steps import order_of

log = logging.getLogger(__name__)

_CONDITIONED = 3
"""Payments of a bundle whose conditions fit in the transaction that stores its signature, which has four items of its own."""


class SignedBundle:
    """One bundle of `wallet` that is to be signed."""

    name = "bundle"

    def __init__(self, parts: BundleParts, network: Network, wallet: Wallet) -> None:
        self._store, self._rules, self._clock = parts.store, parts.rules, parts.clock
        self._signer, self._checks = parts.signer, parts.checks
        self.network, self._wallet = network, wallet
        self._reserved: dict[str, int] = {}

    def grounds(self, bundle: Bundle) -> Grounds:
        conditions = rests_on(self._store, self.network.realm)
        unlike, leaving = self._ordered(bundle)
        held = coins_of(self._store, self.network, self._wallet.address)
        self._reserved = {coin.outpoint: coin.amount for coin in held.reserved(bundle.id)}
        if bundle.earlier and any(self._reserved.get(coin.outpoint) != coin.amount for coin in bundle.earlier[0].inputs):
            unlike.append("the reservation of what was signed")
        if not bundle.earlier and len(bundle.payouts) <= _CONDITIONED:
            conditions += [each for payout in bundle.payouts for each in never_signed(order_of(payout.tenant, payout.withdrawal))]
        return Grounds(conditions, unlike, leaving=leaving)

    def coins(self, bundle: Bundle) -> list[HeldCoin]:
        return [coin for coin in bundle.latest.inputs if self._reserved.get(coin.outpoint) == coin.amount]

    def differs(self, bundle: Bundle, names: str) -> None:
        log.error("ALARM %s: bundle %s differs from what was approved in %s", self.network.id, bundle.id, names)

    @contextmanager
    def keys(self, bundle: Bundle) -> Iterator[InputSigner]:
        yield lambda _, digest: self._signer.sign(self._wallet, digest)

    def throw_away(self, bundle: Bundle, leaving: Sequence[str]) -> None:
        """built → gathering: its coins are free, and the next worker seals it with other bytes.

        An altered order holds up no other: `leaving` are withdrawals that it does not pay any more. Their orders go on naming it,
        so that no other bundle takes them, and wait for an operator (`rebuild-order`).

        Where another bundle gathers meanwhile, it waits until that one is sealed: one gathers at a time.
        """
        held = coins_of(self._store, self.network, self._wallet.address)
        if held.gathering not in (None, bundle.id):
            return
        for withdrawal in leaving:
            log.error("ALARM %s: %s leaves %s, its order was altered: see rebuild-order", self.network.id, withdrawal, bundle.id)
        kept = tuple(payout for payout in bundle.payouts if payout.withdrawal not in leaving)
        again = replace(bundle, state="gathering", newest=None, payouts=kept).next(self._clock.now_ms())
        self._store.commit([Save(again), Save(replace(held.released(bundle.id), gathering=bundle.id).next())])

    def _ordered(self, bundle: Bundle) -> tuple[list[str], list[str]]:
        """In what the records of a bundle differ from the approved withdrawals, whatever its bytes do; and the withdrawals that may
        leave it for that, while nothing is signed: none where the bundle's own record differs."""
        replaces = bool(bundle.earlier)
        facts: dict[str, tuple[object, object]] = {
            "wallet": (bundle.wallet, self._wallet.address),
            "network": (bundle.network, self.network.id),
            "each of its payments once": (len({payout.withdrawal for payout in bundle.payouts}), len(bundle.payouts)),
        }
        wrong = [name for name, (found, approved) in facts.items() if found != approved]
        whole, at_fault = not wrong and not replaces, []
        allowed = ("broadcasting", "confirming") if replaces else ("processing",)
        each_now = members(self._store, bundle)
        before = set() if replaces else all_signed_before(self._store, [order.id for _, order in each_now])
        for payout, (withdrawal, order) in zip(bundle.payouts, each_now, strict=True):
            differs = unlike(self._store, self._rules, self.network, bundle, payout, withdrawal, order)
            if withdrawal.status not in allowed or order.state != ("signed" if replaces else "built"):
                differs.append("status")
                whole = False  # something may be signed: nobody leaves, and no coin is let go
            if order.id in before:
                differs.append("what was signed before")
                whole = False
            if not self._checks.agreed(withdrawal):
                differs.append("approval")
            wrong += [f"{withdrawal.id}: {name}" for name in differs]
            if differs and whole:
                at_fault.append(payout.withdrawal)
        return wrong, at_fault if whole else []
