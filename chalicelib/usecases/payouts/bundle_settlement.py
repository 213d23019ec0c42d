"""Settlement of bundles: spent UTXOs, change that came in, stuck and dead transactions, followed by `transactions.utxo.following`.

The payments themselves are settled one by one (`settlement`), by the same chain; here it is about the hot wallet's coins:

* settled: what it spent leaves the wallet's coins, its change comes in. What only other attempts would have spent stays reserved
  until no reorganisation reaches it.
* dead: its other coins are free, and its payments fail and are given back, each in a transaction of its own: a crash leaves the
  rest to the next poll. Where nothing was signed an operator took it apart, and its payments wait for the next (`bundle_apart`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.chain import Receipt
from chalicelib.domain.transactions.given_up import GivenUp
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.withdrawals.bundles import Bundle, bundle_work
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Priority, Withdrawal
from chalicelib.domain.work import Work
from chalicelib.usecases.base.kill_switch import stopped
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.newer_states import known_of
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.payouts.bundle_apart import Leaving
from chalicelib.usecases.payouts.bundle_members import members
from chalicelib.usecases.payouts.bundle_sent import SentTogether
from chalicelib.usecases.ports.changes import Change, Close, Save
from chalicelib.usecases.ports.coins import CoinPayer
from chalicelib.usecases.transactions.chain_cache import Answers
from chalicelib.usecases.transactions.finality import Finality
from chalicelib.usecases.transactions.given_up import WHY
from chalicelib.usecases.transactions.utxo.following import Due, UtxoFollowing
from chalicelib.usecases.wallets.returned_utxos import as_they_stand
from chalicelib.usecases.wallets.utxos import coins_of
from chalicelib.usecases.withdrawals.steps import bounced, payout_command

log = logging.getLogger(__name__)

_UNSIGNED = frozenset({"gathering", "built"})


class BundleSettlement:
    """Follows the open bundles of one network. Needs no key: it only sends bytes that are already signed."""

    name = "bundles"

    def __init__(
        self,
        context: NetworkContext,
        payer: CoinPayer,
        sent: SentTogether,
        renewals: RenewalRules,
        finality: Finality,
        rates_of: RatesOf,
        answers: Answers | None = None,
    ) -> None:
        """`answers` as in `Settlement`."""
        self._network, self._store, self._clock = context.network, context.store, context.clock
        self._rules, self._rates_of = context.rules, rates_of
        self._leaving = Leaving(context, rates_of)
        answers = answers or Answers(context.reader)
        self._following = UtxoFollowing(context, payer, renewals, finality, sent.broadcast, answers, self)

    @property
    def waits_for_scan(self) -> bool:
        return self._following.waits_for_scan

    def follow(self, more: Callable[[], bool]) -> int:
        """As `UtxoFollowing.follow`."""
        return self._following.follow(["bundle"], more)

    # As `FollowedKind`

    def records(self, works: Sequence[Work]) -> Sequence[Bundle | None]:
        return known_of(self._store, [(Bundle, {"id": work.id}) for work in works])

    def due(self, bundle: Bundle) -> Due:
        """One that is not signed has open payouts: the function that signs is asked for those."""
        if bundle.state in _UNSIGNED:
            return "always" if bundle.signed else "never"
        return "by chain" if bundle.state == "signed" and bundle.signed else "always"

    def followed(self, id: str) -> Bundle | None:
        bundle = self._store.get(Bundle, id=id)
        if bundle is None:
            raise LookupError(f"the bundle {id} is gone")
        if bundle.state not in _UNSIGNED:
            return bundle
        if bundle.signed:
            log.error("ALARM %s: %s differs from what was signed in its state: it is %s", self._network.id, id, bundle.state)
        return None

    def priority(self, bundle: Bundle) -> Priority:
        return bundle.priority

    def in_flight(self, bundle: Bundle) -> bool:
        return all(order.state != "built" for _, order in members(self._store, bundle))

    def halted(self) -> bool:
        return stopped(self._store, self._network.realm)

    def ask(self, bundle: Bundle, changes: Sequence[Change]) -> None:
        news = News(self._clock.now_ms())
        first = bundle.payouts[0]
        withdrawal = self._store.get(Withdrawal, tenant=first.tenant, id=first.withdrawal)
        if withdrawal is not None:
            news.command(payout_command(withdrawal))
        self._store.commit([*changes, *news.emit()])

    def settle(self, bundle: Bundle, txid: str, receipt: Receipt) -> None:
        attempt = bundle.attempt(txid)
        held = coins_of(self._store, self._network, bundle.wallet)
        spent = {coin.outpoint for coin in attempt.inputs}
        if any(coin.gone for coin in held.coins if coin.outpoint in spent):
            return  # what it spends is not confirmed again yet: that comes first, or it would come as a coin to be spent
        held = held.spent(spent)
        change = attempt.change_coin(receipt.block_number)
        held = held if change is None else held.came(change)
        done = replace(
            bundle, state="settled", mined=txid, block_number=receipt.block_number, block_hash=receipt.block_hash,
            doubtful_since=None, renew=False,
        )  # fmt: skip
        self._store.commit([Save(done.next(self._clock.now_ms())), Save(held.next())])

    def unsettle(self, bundle: Bundle) -> None:
        attempt = bundle.attempt(bundle.mined or "")
        held = coins_of(self._store, self._network, bundle.wallet)
        held = held.unspent(bundle.id, as_they_stand(self._store, self._network, attempt.inputs))
        change = attempt.change_coin(0)
        held = held if change is None else held.taken_back(change.outpoint)
        again = replace(bundle, state="signed", mined=None, block_number=None, block_hash=None, round=bundle.round + 1)
        self._store.commit([Save(again.next(self._clock.now_ms())), Save(held.next())])

    def finish(self, bundle: Bundle) -> None:
        held = coins_of(self._store, self._network, bundle.wallet)
        freed = [Save(held.released(bundle.id).next())] if held.reserved(bundle.id) else []
        self._store.commit([Close(bundle_work(bundle)), *freed])

    def die(self, bundle: Bundle) -> None:
        log.error("ALARM %s: %s can not be mined any more: its payments fail", self._network.id, bundle.id)
        held = coins_of(self._store, self._network, bundle.wallet)
        dead = replace(bundle, state="dead", renew=False).next(self._clock.now_ms())
        self._store.commit([Save(dead), Save(held.released(bundle.id).next())])
        self._give_back(dead)

    def owes(self, bundle: Bundle) -> bool:
        return any(order.state == "signed" for _, order in members(self._store, bundle))

    def bury(self, bundle: Bundle) -> bool:
        if bundle.signed:
            self._give_back(bundle)
        else:
            self._leaving.let_go(bundle)
        return True

    def forget(self, bundle: Bundle) -> None:
        self._store.commit([Close(bundle_work(bundle))])

    def _give_back(self, bundle: Bundle) -> None:
        open_ = [(withdrawal, order) for withdrawal, order in members(self._store, bundle) if order.state == "signed"]
        why = "a coin that its transaction spends is gone: it can not be mined any more"
        if open_ and self._store.get(GivenUp, id=bundle.id) is not None:
            why = WHY
        for withdrawal, order in open_:
            self._bounce(withdrawal, order, why)

    def _bounce(self, before: Withdrawal, order: PaymentOrder, why: str) -> None:
        now = self._clock.now_ms()
        _, changes = bounced(self._store, self._rules, self._rates_of, self._network, before, order, now, why)
        self._store.commit(changes)
