"""Signs a bundle: its newest bytes are compared with every approved order (money rule 7), and stored signed (rule 5)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.treasury.hot_utxos import MOST_RATE, OwnTransaction
from chalicelib.domain.withdrawals.bundles import Built, Bundle, BundledPayout
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Withdrawal
from chalicelib.usecases.base.kill_switch import rests_on
from chalicelib.usecases.payouts.bundle_members import members
from chalicelib.usecases.payouts.checks import PayoutChecks
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.coins import CoinPayer, Output, Unspent
from chalicelib.usecases.ports.second_reader import CoinOrder, SecondReader
from chalicelib.usecases.ports.signing import Signed, Signer
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.usecases.transactions.replacement_bounds import out_of_bounds
from chalicelib.usecases.transactions.spelling import spelled
from chalicelib.usecases.transactions.two_readers import sign_read_twice
from chalicelib.usecases.transactions.utxo.orders import coin_order
from chalicelib.usecases.transactions.utxo.proofs import bundle_unproved
from chalicelib.usecases.wallets.utxos import coins_of
from chalicelib.usecases.withdrawals.steps import catalogue_views

log = logging.getLogger(__name__)


class MemberMismatch(OrderMismatch):
    """Some `withdrawals` of a bundle are not what was approved, or their orders are not; the others are."""

    def __init__(self, words: str, withdrawals: Sequence[str]) -> None:
        super().__init__(words)
        self.withdrawals = tuple(withdrawals)


class BundleSigning:
    """Needs the signer."""

    def __init__(
        self,
        store: Store,
        rules: AddressRules,
        clock: Clock,
        signer: Signer,
        payer_of: Callable[[Network], CoinPayer],
        checks: PayoutChecks,
        renewals: RenewalRules,
        second_of: Callable[[Network], SecondReader[CoinOrder]],
    ) -> None:
        self._store, self._rules, self._clock, self._signer = store, rules, clock, signer
        self._payer_of, self._checks, self._renewals, self._second_of = payer_of, checks, renewals, second_of

    def sign(self, network: Network, wallet: Wallet, bundle: Bundle) -> Bundle:
        """Check the newest bytes against what was approved; sign; store the signed bytes before anybody can see them."""
        newest = bundle.newest
        if newest is None:
            raise LookupError(f"{bundle.id} has nothing to sign")
        try:
            coins = self._approve(network, wallet, bundle, newest)
        except MemberMismatch as mismatch:
            # One that was altered holds up nobody else: it leaves, and waits for an operator (`rebuild-order`).
            self._throw_away(network, wallet, bundle, mismatch.withdrawals)
            raise
        except OrderMismatch as mismatch:
            if mismatch.bytes_only:
                self._throw_away(network, wallet, bundle)
            raise
        rests = rests_on(self._store, network.realm)
        signed = self._signed(network, wallet, bundle, newest, coins)
        now = self._clock.now_ms()
        done = replace(newest, raw=signed.raw, txid=signed.txid, signed_at=now)
        bundle = replace(bundle, state="signed", newest=done).next(now)
        ours = [] if done.change is None else [Save(OwnTransaction(network.id, signed.txid, (done.change,)))]
        self._store.commit([Save(bundle), *ours, *rests])
        return bundle

    def _signed(self, network: Network, wallet: Wallet, bundle: Bundle, newest: Built, coins: Sequence[Unspent]) -> Signed:
        """Sign what both readers read as the bundle's payments out of `coins`, the change last (money rule 15). Raises
        ReadersDiffer, Unavailable."""
        payer = self._payer_of(network)
        paid = [Output(payout.recipient, payout.amount) for payout in bundle.payouts]
        if newest.change is not None:
            paid.append(Output(wallet.address, newest.change_amount))
        order = coin_order(payer, newest.unsigned, coins, paid)

        def sign(digests: Sequence[bytes]) -> Signed:
            return payer.assemble(newest.unsigned, [self._signer.sign(wallet, digest) for digest in digests])

        digests = payer.digests(newest.unsigned)
        if len(digests) != len(newest.inputs):
            raise OrderMismatch(f"bundle {bundle.id} has {len(newest.inputs)} inputs and {len(digests)} digests")
        return sign_read_twice(network, f"bundle {bundle.id}", self._second_of(network), order, digests, sign)

    def _throw_away(self, network: Network, wallet: Wallet, bundle: Bundle, leaving: Collection[str] = ()) -> None:
        """built → gathering: its coins are free, and whoever is next seals it with other bytes. Nothing was signed.

        `leaving` are withdrawals that it does not pay any more. Their orders go on naming it, so that no other bundle takes them.

        Where another bundle gathers meanwhile, it waits until that one is sealed: one gathers at a time.
        """
        held = coins_of(self._store, network, wallet.address)
        if bundle.state != "built" or held.gathering not in (None, bundle.id):
            return
        for withdrawal in leaving:
            log.error("ALARM %s: %s leaves %s, its order was altered: see rebuild-order", network.id, withdrawal, bundle.id)
        kept = tuple(payout for payout in bundle.payouts if payout.withdrawal not in leaving)
        again = replace(bundle, state="gathering", newest=None, payouts=kept).next(self._clock.now_ms())
        self._store.commit([Save(again), Save(replace(held.released(bundle.id), gathering=bundle.id).next())])

    def _approve(self, network: Network, wallet: Wallet, bundle: Bundle, newest: Built) -> list[Unspent]:
        """The coins that the bytes spend, as they are reserved. Raises OrderMismatch unless the bytes do exactly what was approved
        (money rule 7)."""
        replaces = bool(bundle.earlier)
        ordered, at_fault = self._ordered(network, wallet, bundle, replaces)
        try:
            does = self._payer_of(network).explain(newest.unsigned)
            change = bundle.change_among(spelled(self._rules, network, does.outputs), wallet.address)
        except ValueError as error:
            log.error(
                "ALARM %s: bundle %s differs from what was approved in %s",
                network.id,
                bundle.id,
                ", ".join(ordered[:10]) or "bytes",
            )
            if at_fault:
                raise MemberMismatch(f"bundle {bundle.id}: {error}", at_fault) from error
            raise OrderMismatch(f"bundle {bundle.id}: {error}", bytes_only=not ordered) from error
        held = coins_of(self._store, network, wallet.address)
        ours = {coin.outpoint: coin.amount for coin in held.reserved(bundle.id)}
        spent = sum(ours.get(outpoint, 0) for outpoint in does.inputs)
        facts = {
            "inputs": (set(does.inputs) <= set(ours), True),
            "what was built": (does.inputs, tuple(coin.outpoint for coin in newest.inputs)),
            "change": (change, (newest.change, newest.change_amount)),
            "fee": (spent - sum(output.amount for output in does.outputs), newest.fee),
            "stated fee": (does.fee, newest.fee),
        }
        wrong = [name for name, (found, approved) in facts.items() if found != approved]
        if not 0 < newest.fee <= MOST_RATE * does.vsize // 1000:
            wrong.append("fee's bounds")
        if replaces:
            wrong += out_of_bounds(self._renewals, bundle.earlier, newest.fee, does.vsize)
            first = bundle.earlier[0]
            wrong += bundle_unproved(self._payer_of(network), self._rules, network, bundle, first, held.reserved(bundle.id))
            if not {c.outpoint for c in first.inputs} <= set(does.inputs):
                wrong.append("the inputs of what it replaces")
        if wrong or ordered:
            named = ", ".join([*ordered, *wrong][:10])
            log.error("ALARM %s: bundle %s differs from what was approved in %s", network.id, bundle.id, named)
            if at_fault:
                raise MemberMismatch(f"bundle {bundle.id} differs from the approved withdrawals in {named}", at_fault)
            raise OrderMismatch(f"bundle {bundle.id} differs from the approved withdrawals in {named}", bytes_only=not ordered)
        return [Unspent(coin.outpoint, wallet.address, ours[coin.outpoint], coin.height) for coin in newest.inputs]

    def _ordered(self, network: Network, wallet: Wallet, bundle: Bundle, replaces: bool) -> tuple[list[str], list[str]]:
        """In what the records of a bundle differ from the approved withdrawals, whatever its bytes do; and the withdrawals that may
        leave it for that, while nothing is signed: none where the bundle's own record differs."""
        facts: dict[str, tuple[object, object]] = {
            "wallet": (bundle.wallet, wallet.address),
            "network": (bundle.network, network.id),
            "each of its payments once": (len({payout.withdrawal for payout in bundle.payouts}), len(bundle.payouts)),
        }
        wrong = [name for name, (found, approved) in facts.items() if found != approved]
        whole, at_fault = not wrong and not replaces, []
        allowed = ("broadcasting", "confirming") if replaces else ("processing",)
        for payout, (withdrawal, order) in zip(bundle.payouts, members(self._store, bundle), strict=True):
            differs = self._unlike(network, bundle, payout, withdrawal, order)
            if withdrawal.status not in allowed or order.state != ("signed" if replaces else "built"):
                differs.append("status")
                whole = False  # something may be signed: nobody leaves, and no coin is let go
            if not self._checks.agreed(withdrawal):
                differs.append("approval")
            wrong += [f"{withdrawal.id}: {name}" for name in differs]
            if differs and whole:
                at_fault.append(payout.withdrawal)
        return wrong, at_fault if whole else []

    def _unlike(
        self, network: Network, bundle: Bundle, payout: BundledPayout, withdrawal: Withdrawal, order: PaymentOrder
    ) -> list[str]:
        recipient = self._rules.normalize(network.id, withdrawal.to_address)
        native = catalogue_views(self._store, withdrawal)[0].native(network.slug).asset
        facts = {
            "bundle": (order.bundle, bundle.id),
            "withdrawal": (order.withdrawal_id, withdrawal.id),
            "merchant": ((order.tenant, payout.tenant), (withdrawal.tenant, withdrawal.tenant)),
            "coin": ((order.asset, withdrawal.asset), (native, native)),
            "network": ((order.network, withdrawal.network), (network.id, network.id)),
            "recipient": ((payout.recipient, self._rules.normalize(network.id, order.recipient)), (recipient, recipient)),
            "amount": ((payout.amount, order.amount), (withdrawal.amount, withdrawal.amount)),
        }
        return [name for name, (found, approved) in facts.items() if found != approved]
