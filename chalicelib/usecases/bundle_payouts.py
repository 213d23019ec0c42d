"""Paying withdrawals on networks of coins: several in one transaction, each step stored before the next begins.

What a crash leaves is always one of these, and `pay` goes on from it:

* pending: nothing was begun. Whatever is open and covered joins the bundle that gathers, one withdrawal per transaction.
* gathering: payments are named, no coin is taken. Coins are reserved and the exact bytes stored in one transaction (money rule 6).
* built: the same bytes are checked and signed; of two workers that sign, one stores its signatures (money rules 5 and 7).
* signed: each payment's coins are booked as in flight, in a transaction of its own; then the same bytes go to the node, as often
  as it takes. A replacement (BIP-125) is built, stored, checked and signed the same way, beside what it replaces.

What happens after the broadcast is decided by `bundle_settlement` for the coins and by `settlement` for each payment.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from chalicelib.domain import ledger
from chalicelib.domain.addresses import Wallet
from chalicelib.domain.bundles import (
    MOST_INPUTS,
    MOST_PAYOUTS,
    MOST_RATE,
    MOST_REPLACED,
    Built,
    Bundle,
    BundledPayout,
)
from chalicelib.domain.catalogue import Network
from chalicelib.domain.coins_held import HeldCoins, OwnTransaction
from chalicelib.domain.ids import TenantId, new_id
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.money import Amount
from chalicelib.domain.renewals import RenewalRules
from chalicelib.domain.withdrawals import FEE_TENTHS, FINAL, PaymentOrder, Priority, Withdrawal
from chalicelib.domain.work import Work, time_order
from chalicelib.usecases.changes import Change, Close, Conflict, Open, Post, Save
from chalicelib.usecases.hot_coins import coins_of
from chalicelib.usecases.outbox import News
from chalicelib.usecases.payout_checks import PayoutChecks
from chalicelib.usecases.payouts import OrderMismatch, Outcome, order_id
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.coins import CoinPayer, CoinPlan, Output, Unspent
from chalicelib.usecases.ports.failures import InsufficientFunds, Refused, Unavailable
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.ports.signing import Signer
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.sweeping import pages_of
from chalicelib.usecases.withdrawal_steps import catalogue_views, payout_parts, payout_work, sent_work, stepped

log = logging.getLogger(__name__)

MOST_SHORT = 10
"""Withdrawals that there is too little for, after which no others are tried at once."""


def bundle_work(bundle: Bundle) -> Work:
    """The obligation to bring a bundle to its end, which is when no reorganisation reaches its transaction any more."""
    return Work("bundle", bundle.network, time_order(bundle.created_at), bundle.id)


def members(store: Store, bundle: Bundle) -> list[tuple[Withdrawal, PaymentOrder]]:
    """The withdrawals of a bundle with their orders, as they are now. Raises LookupError where one is gone, Unavailable."""
    withdrawals = store.get_many([(Withdrawal, {"tenant": p.tenant, "id": p.withdrawal}) for p in bundle.payouts])
    if not all(withdrawals):
        raise LookupError(f"a withdrawal of {bundle.id} is gone")
    orders = store.get_many([(PaymentOrder, {"id": order_id(w)}) for w in withdrawals])
    if not all(orders):
        raise LookupError(f"an order of {bundle.id} is gone")
    return list(zip(withdrawals, orders, strict=True))


class BundlePayouts:
    """Needs the signer: only the payout function has one."""

    def __init__(
        self,
        store: Store,
        rules: AddressRules,
        clock: Clock,
        signer: Signer,
        payer_of: Callable[[Network], CoinPayer],
        reader_of: Callable[[Network], ChainReader],
        renewals: RenewalRules,
    ) -> None:
        self._store, self._rules, self._clock, self._signer = store, rules, clock, signer
        self._payer_of, self._reader_of = payer_of, reader_of
        self._renewals = renewals
        self._checks = PayoutChecks(store, rules, clock)

    def advance(self, network: Network, tenant: TenantId, withdrawal_id: str) -> Outcome:
        """Bring a withdrawal, and whatever can be paid with it, as far as the broadcast: one try of `Payouts.pay`."""
        withdrawal = self._store.get(Withdrawal, tenant=tenant, id=withdrawal_id)
        if withdrawal is None or withdrawal.status in FINAL:
            return "done"
        wallet = self._store.get(Wallet, network=network.id, role="hot")
        if withdrawal.status == "pending":
            self._gather(network, wallet, withdrawal)
            withdrawal = self._store.get(Withdrawal, tenant=tenant, id=withdrawal_id)
            if withdrawal is None or withdrawal.status in FINAL:
                return "done"
            if withdrawal.status == "pending":
                return "waiting"
        order = self._store.get(PaymentOrder, id=order_id(withdrawal))
        bundle = None if order is None or order.bundle is None else self._store.get(Bundle, id=order.bundle)
        if bundle is None or wallet is None:
            raise LookupError(f"{withdrawal.id} is {withdrawal.status}, and its bundle or the hot wallet is gone")
        return self._finish(network, wallet, bundle)

    def _finish(self, network: Network, wallet: Wallet, bundle: Bundle) -> Outcome:
        """Everything that is left to do for a bundle here."""
        if bundle.state == "gathering":
            bundle = self._seal(network, wallet, bundle)
        if bundle.state == "built":
            bundle = self._sign(network, wallet, bundle)
        if bundle.state != "signed":
            return "done"
        self._book(network, bundle)
        if bundle.renew:
            bundle = self._replace(network, wallet, bundle)
        if bundle.newest is not None and bundle.newest.raw is None:
            bundle = self._sign(network, wallet, bundle)
        return self._send(network, bundle)

    # Gathering

    def _gather(self, network: Network, wallet: Wallet | None, first: Withdrawal) -> None:
        """Let `first`, and what else is open and nobody objects to, join the bundle that gathers, as far as the coins go."""
        if wallet is None:
            if not self._checks.stopped(network, first):
                self._checks.wait_for_liquidity(network, first)
            return
        held = coins_of(self._store, network, wallet.address)
        bundle = None if held.gathering is None else self._store.get(Bundle, id=held.gathering)
        room = MOST_PAYOUTS - (0 if bundle is None else len(bundle.payouts))
        wanted = self._open_ones(network, wallet, first, room) if room > 0 else []
        share = 0
        if wanted:
            wanted, fee = self._covered(network, wallet, held, bundle, wanted)
            share = fee // max(1, len(wanted) + (0 if bundle is None else len(bundle.payouts)))
        for withdrawal in wanted:
            bundle, held = self._join(network, wallet, bundle, held, withdrawal, share)
        if room <= 0 and bundle is not None:
            # Full, and whoever filled it died: it has to go on before anything else can join another.
            self._finish(network, wallet, bundle)
            raise Conflict(None)

    def _open_ones(self, network: Network, wallet: Wallet, first: Withdrawal, room: int) -> list[Withdrawal]:
        found: list[Withdrawal] = []
        seen: set[str] = set()

        def consider(withdrawal: Withdrawal | None) -> None:
            if withdrawal is None or withdrawal.id in seen or withdrawal.status != "pending" or len(found) >= room:
                return
            seen.add(withdrawal.id)
            if self._checks.stopped(network, withdrawal):
                return
            if not self._checks.agreed(withdrawal):
                # It must not keep the others of its bundle from being paid.
                log.error("ALARM %s: %s differs from what was approved", network.id, withdrawal.id)
                return
            if self._same(network, withdrawal.to_address, wallet.address):
                # It could not be told from change.
                self._checks.fail(withdrawal, "the address is that of the wallet that pays")
                return
            found.append(withdrawal)

        consider(first)
        for works in pages_of(self._store, "payout", network.id):
            for withdrawal in self._store.get_many(
                [(Withdrawal, dict(zip(("tenant", "id"), payout_parts(work), strict=True))) for work in works]
            ):
                consider(withdrawal)
            if len(found) >= room:
                break
        return found

    def _covered(
        self, network: Network, wallet: Wallet, held: HeldCoins, bundle: Bundle | None, wanted: list[Withdrawal]
    ) -> tuple[list[Withdrawal], int]:
        """Those that the wallet's coins suffice for, by the ledger and by the chain, and the fee of paying all of them.

        What the chain would refuse fails; what has to wait for liquidity says so.
        """
        payer = self._payer_of(network)
        rate = payer.fee_rate(_most_urgent([*([bundle.priority] if bundle else []), *(w.priority for w in wanted)]))
        coins = self._spendable(network, wallet, held)
        place = self._rules.storage_form(network.slug, wallet.address)
        asset = wanted[0].asset
        booked = self._store.get(WalletBalance, network=network.id, address=place, asset=asset)
        units = 0 if booked is None else booked.units
        outputs = [] if bundle is None else [Output(p.recipient, p.amount) for p in bundle.payouts]

        def planned(more: Sequence[Withdrawal]) -> int:
            together = [*outputs, *(Output(w.to_address, w.amount) for w in more)]
            plan = payer.plan(wallet.address, coins, together, rate)
            if sum(output.amount for output in together) + plan.fee > units:
                raise InsufficientFunds("the ledger has less in the hot wallet than its coins are worth")
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
                self._checks.fail(withdrawal, f"the network would refuse it: {refused}")
        return able, fee

    def _spendable(self, network: Network, wallet: Wallet, held: HeldCoins, most: int = MOST_INPUTS) -> list[Unspent]:
        """The largest free coins that the node knows too."""
        free = held.free[: max(0, most)]
        if not free:
            return []
        found = self._payer_of(network).unspent([coin.outpoint for coin in free])
        able: list[Unspent] = []
        for coin, seen in zip(free, found, strict=True):
            if seen is None or seen.amount != coin.amount or not self._same(network, seen.address, wallet.address):
                log.error("ALARM %s: the node does not know %s of the hot wallet as it is booked", network.id, coin.outpoint)
            elif seen.height > 0:  # else its block has just fallen out
                able.append(Unspent(coin.outpoint, wallet.address, coin.amount, seen.height))
        return able

    def _join(
        self, network: Network, wallet: Wallet, bundle: Bundle | None, held: HeldCoins, before: Withdrawal, fee: int
    ) -> tuple[Bundle, HeldCoins]:
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
            urgent = _most_urgent([bundle.priority, before.priority])
            bundle = replace(bundle, payouts=(*bundle.payouts, joined), priority=urgent).next(news.at)
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
            created_at=news.at,
            bundle=bundle.id,
        )
        after = replace(
            before, status="processing", pending_reason=None, from_address=wallet.address, fee=fee,
            order_id=order.id, updated_at=news.at,
        )  # fmt: skip
        after = stepped(news, views, before, after)
        self._store.commit([Save(bundle), Save(after), Save(order), *changes, *news.emit()])
        return bundle, held

    # Building and signing

    def _seal(self, network: Network, wallet: Wallet, bundle: Bundle) -> Bundle:
        """gathering → built: coins reserved, bytes exact. Raises Unavailable while there is too little."""
        held = coins_of(self._store, network, wallet.address)
        if held.gathering != bundle.id:
            raise Conflict(None)
        payer = self._payer_of(network)
        outputs = [Output(payout.recipient, payout.amount) for payout in bundle.payouts]
        try:
            plan = payer.plan(wallet.address, self._spendable(network, wallet, held), outputs, payer.fee_rate(bundle.priority))
        except Refused as refused:
            log.error("ALARM %s: %s can not be built now: %s", network.id, bundle.id, refused)
            raise Unavailable(f"{bundle.id} of {network.id} can not be built now: {refused}") from refused
        built = self._built(network, wallet, bundle, held, plan)
        held = replace(held.reserve(bundle.id, plan.inputs), gathering=None)
        bundle = replace(bundle, state="built", newest=built).next(self._clock.now_ms())
        self._store.commit([Save(bundle), Save(held.next())])
        return bundle

    def _built(self, network: Network, wallet: Wallet, bundle: Bundle, held: HeldCoins, plan: CoinPlan) -> Built:
        """The attempt that `plan` is, told from its bytes. Raises OrderMismatch."""
        known = {coin.outpoint: coin for coin in held.coins} | bundle.coins
        try:
            does = self._payer_of(network).explain(plan.unsigned)
            change, amount = bundle.change_among(self._spelled(network, does.outputs), wallet.address)
        except ValueError as error:
            raise OrderMismatch(f"bundle {bundle.id}: {error}") from error
        if not set(does.inputs) <= set(known):
            raise OrderMismatch(f"bundle {bundle.id} would spend what is not ours")
        inputs = tuple(replace(known[outpoint], reserved_by=None, gone=False) for outpoint in does.inputs)
        return Built(does.unsigned, inputs, change, amount, does.fee, does.vsize)

    def _spelled(self, network: Network, outputs: Sequence[Output]) -> list[tuple[str, int]]:
        return [(self._rules.normalize(network.id, output.address), output.amount) for output in outputs]

    def _same(self, network: Network, one: str, other: str) -> bool:
        return self._rules.storage_form(network.slug, one) == self._rules.storage_form(network.slug, other)

    def _sign(self, network: Network, wallet: Wallet, bundle: Bundle) -> Bundle:
        """Check the newest bytes against what was approved; sign; store the signed bytes before anybody can see them."""
        newest = bundle.newest
        if newest is None:
            raise LookupError(f"{bundle.id} has nothing to sign")
        payer = self._payer_of(network)
        self._approve(network, wallet, bundle, newest)
        digests = payer.digests(newest.unsigned)
        if len(digests) != len(newest.inputs):
            raise OrderMismatch(f"bundle {bundle.id} has {len(newest.inputs)} inputs and {len(digests)} digests")
        signed = payer.assemble(newest.unsigned, [self._signer.sign(wallet, digest) for digest in digests])
        now = self._clock.now_ms()
        done = replace(newest, raw=signed.raw, txid=signed.txid, signed_at=now)
        bundle = replace(bundle, state="signed", newest=done).next(now)
        ours = [] if done.change is None else [Save(OwnTransaction(network.id, signed.txid, (done.change,)))]
        self._store.commit([Save(bundle), *ours])
        return bundle

    def _approve(self, network: Network, wallet: Wallet, bundle: Bundle, newest: Built) -> None:
        """Raise OrderMismatch unless the bytes do exactly what was approved (money rule 7)."""
        replaces = bool(bundle.earlier)
        try:
            does = self._payer_of(network).explain(newest.unsigned)
            change = bundle.change_among(self._spelled(network, does.outputs), wallet.address)
        except ValueError as error:
            raise OrderMismatch(f"bundle {bundle.id}: {error}") from error
        held = coins_of(self._store, network, wallet.address)
        ours = {coin.outpoint: coin.amount for coin in held.reserved(bundle.id)}
        spent = sum(ours.get(outpoint, 0) for outpoint in does.inputs)
        facts = {
            "wallet": (bundle.wallet, wallet.address),
            "network": (bundle.network, network.id),
            "inputs": (set(does.inputs) <= set(ours), True),
            "what was built": (does.inputs, tuple(coin.outpoint for coin in newest.inputs)),
            "change": (change, (newest.change, newest.change_amount)),
            "fee": (spent - sum(output.amount for output in does.outputs), newest.fee),
            "stated fee": (does.fee, newest.fee),
        }
        wrong = [name for name, (found, approved) in facts.items() if found != approved]
        if not 0 < newest.fee <= MOST_RATE * does.vsize // 1000:
            wrong.append("fee's bounds")
        if replaces and not {c.outpoint for c in bundle.earlier[0].inputs} <= set(does.inputs):
            wrong.append("the inputs of what it replaces")
        allowed = ("broadcasting", "confirming") if replaces else ("processing",)
        for payout, (withdrawal, order) in zip(bundle.payouts, members(self._store, bundle), strict=True):
            wrong += [f"{withdrawal.id}: {name}" for name in self._unlike(network, bundle, payout, withdrawal, order)]
            if withdrawal.status not in allowed or order.state != ("signed" if replaces else "built"):
                wrong.append(f"{withdrawal.id}: status")
            if not self._checks.agreed(withdrawal):
                wrong.append(f"{withdrawal.id}: approval")
        if wrong:
            named = ", ".join(wrong[:10])
            log.error("ALARM %s: bundle %s differs from what was approved in %s", network.id, bundle.id, named)
            raise OrderMismatch(f"bundle {bundle.id} differs from the approved withdrawals in {named}")

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

    # What is signed

    def _book(self, network: Network, bundle: Bundle) -> None:
        """processing → broadcasting: from now on each payment can reach the chain at any time, and its coins are in flight."""
        newest = bundle.newest
        if newest is None or newest.txid is None:
            return  # a replacement: everything was booked before the first was sent
        for withdrawal, order in members(self._store, bundle):
            if withdrawal.status != "processing":
                continue
            news = News(self._clock.now_ms())
            _, views = catalogue_views(self._store, withdrawal)
            share = bundle.share(withdrawal.id, newest.fee)
            done = replace(
                order, txid=newest.txid, fee=share, signed_at=newest.signed_at, state="signed", version=order.version + 1
            )
            after = replace(withdrawal, status="broadcasting", txid=newest.txid, fee=share, updated_at=news.at)
            after = stepped(news, views, withdrawal, after)
            place = ledger.wallet(network.id, self._rules.storage_form(network.slug, order.wallet))
            entry = ledger.payment_signed(order.id, news.at, place, Amount(order.asset, order.amount))
            works = (Close(payout_work(withdrawal)), Open(sent_work(withdrawal)))
            self._store.commit([Save(done), Save(after), Post(entry), *works, *news.emit()])

    def _replace(self, network: Network, wallet: Wallet, bundle: Bundle) -> Bundle:
        """Build what takes the place of the newest attempt: the same payments, at least its coins, a higher fee."""
        newest = bundle.newest
        if newest is None or newest.txid is None:
            return bundle
        payer, reader = self._payer_of(network), self._reader_of(network)
        now = self._clock.now_ms()
        as_it_is = replace(bundle, renew=False)
        exhausted = len(bundle.earlier) >= min(self._renewals.most, MOST_REPLACED)
        if exhausted or any(reader.receipt(txid) is not None for txid in bundle.txids):
            self._store.commit([Save(as_it_is.next(now))])
            return as_it_is.next(now)
        held = coins_of(self._store, network, wallet.address)
        try:
            rate = min(MOST_RATE, payer.fee_rate(bundle.priority))
            coins = self._spendable(network, wallet, held, MOST_INPUTS - len(newest.inputs))
            plan = payer.replace(newest.unsigned, wallet.address, coins, rate)
        except Refused as refused:
            log.warning("ALARM %s: %s is stuck and can not be replaced now: %s", network.id, bundle.id, refused)
            self._store.commit([Save(as_it_is.next(now))])
            return as_it_is.next(now)
        built = self._built(network, wallet, bundle, held, plan)
        most = min(bundle.signed[-1].fee * self._renewals.times, MOST_RATE * built.vsize // 1000)
        if not newest.fee < built.fee <= most:
            log.warning("ALARM %s: %s is stuck, and a replacement would cost %d", network.id, bundle.id, built.fee)
            self._store.commit([Save(as_it_is.next(now))])
            return as_it_is.next(now)
        earlier = (*bundle.earlier, replace(newest, unsigned=""))
        bundle = replace(as_it_is, newest=built, earlier=earlier).next(now)
        self._store.commit([Save(bundle), Save(held.reserve(bundle.id, [c.outpoint for c in built.inputs]).next())])
        return bundle

    def _send(self, network: Network, bundle: Bundle) -> Outcome:
        newest = bundle.newest
        if newest is None or newest.raw is None or newest.txid is None:
            raise LookupError(f"{bundle.id} has no signed bytes")
        try:
            self._payer_of(network).broadcast(newest.raw)
        except Refused as refused:
            # Signed bytes stay valid: whether they can ever be paid, only the chain decides. Sent again by the polls.
            log.warning("%s: the node refused %s for now: %s", network.id, bundle.id, refused)
            return "waiting"
        for withdrawal, order in members(self._store, bundle):
            if withdrawal.status not in ("broadcasting", "confirming"):
                continue
            if withdrawal.status == "confirming" and withdrawal.txid == newest.txid:
                continue
            news = News(self._clock.now_ms())
            _, views = catalogue_views(self._store, withdrawal)
            share = bundle.share(withdrawal.id, newest.fee)
            after = replace(withdrawal, status="confirming", txid=newest.txid, fee=share, updated_at=news.at)
            after = stepped(news, views, withdrawal, after)
            changes: list[Change] = [Save(after)]
            if order.txid != newest.txid:
                changes.append(Save(replace(order, txid=newest.txid, fee=share, version=order.version + 1)))
            self._store.commit([*changes, *news.emit()])
        return "done"


def _most_urgent(priorities: Sequence[Priority]) -> Priority:
    return max(priorities, key=lambda priority: FEE_TENTHS[priority])
