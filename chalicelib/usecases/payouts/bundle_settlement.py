"""Settlement of bundles: spent UTXOs, change that came in, stuck and dead transactions.

The payments themselves are settled one by one (`settlement`), by the same chain; here it is about the hot wallet's coins:

* deep enough in the chain: what it spent leaves the wallet's coins, its change comes in. What only other attempts would have
  spent stays reserved until no reorganisation reaches it.
* fell out again: the opposite, and the same bytes are sent again.
* in no block for too long: the function that signs is asked for a replacement.
* can not be mined any more: deeper than a reorganisation is followed, another transaction was met that spends one of the coins
  that all attempts spend, and no node has an attempt, in the chain or in its mempool. Then its other coins are free, and its
  payments fail and are given back, each in a transaction of its own. It is watched for as many blocks again: if the chain has it
  after all, an operator is told.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.chain import Receipt
from chalicelib.domain.transactions.given_up import GivenUp
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.withdrawals.bundles import Built, Bundle, bundle_work
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Withdrawal
from chalicelib.domain.work import Work
from chalicelib.usecases.base.kill_switch import stopped
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import Each, until_settled
from chalicelib.usecases.payouts.bundle_members import members
from chalicelib.usecases.payouts.bundle_sent import SentTogether
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Change, Close, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.coins import CoinPayer
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.chain_cache import Answers
from chalicelib.usecases.transactions.finality import Scanned, Verdicts
from chalicelib.usecases.transactions.given_up import WHY
from chalicelib.usecases.transactions.notes import Notes
from chalicelib.usecases.transactions.round_robin import Asking
from chalicelib.usecases.transactions.sorting import Out, Sorted
from chalicelib.usecases.transactions.utxo.attempts import CoinAttempts
from chalicelib.usecases.wallets.returned_utxos import as_they_stand
from chalicelib.usecases.wallets.utxos import coins_of
from chalicelib.usecases.withdrawals.steps import bounced, payout_command

log = logging.getLogger(__name__)


class BundleSettlement:
    """Follows the open bundles of one network. Needs no key: it only sends bytes that are already signed."""

    def __init__(
        self,
        network: Network,
        reader: ChainReader,
        payer: CoinPayer,
        sent: SentTogether,
        store: Store,
        rules: AddressRules,
        clock: Clock,
        renewals: RenewalRules,
        verdicts: Verdicts,
        rates_of: RatesOf,
        answers: Answers | None = None,
    ) -> None:
        """`answers` as in `Settlement`."""
        self._answers = answers or Answers(reader)
        self._rates_of = rates_of
        self._network = network
        self._store, self._rules, self._clock, self._renewals = store, rules, clock, renewals
        self._verdicts = verdicts
        self._attempts = CoinAttempts(network, reader, payer, store, clock, verdicts, sent.broadcast, self._answers)
        self.waits_for_scan = False
        """As in `Settlement`."""

    def follow(self, more: Callable[[], bool]) -> int:
        """Look at the bundles that are due, and at some of the others (`transactions.sorting`); how many.

        Stops when `more` says so. Raises Unavailable, Failures.
        """
        self.waits_for_scan = False
        found, scanned, now = Sorted(), None, self._clock.now_ms()
        with Each(f"{self._network.id}: bundles") as each:
            for works in pages_of(self._store, "bundle", self._network.id):
                scanned = scanned or self._verdicts.scanned()
                bundles = self._store.get_many([(Bundle, {"id": work.id}) for work in works])
                outs = [self._out(work, bundle, scanned, now) for work, bundle in zip(works, bundles, strict=True)]
                found.add([out for out in outs if out is not None], Notes(self._network, self._store, scanned), now)
            if scanned is None:
                return 0
            self.waits_for_scan, at = found.ripens, scanned
            due, quiet = found.ended()
            asking = Asking(self._network, self._store, self._clock, "bundle")
            return asking.take(
                due, quiet, more, lambda work: each.take(work.id, partial(until_settled, partial(self._look, work.id, at)))
            )

    def _out(self, work: Work, bundle: Bundle | None, scanned: Scanned, now: int) -> Out | None:
        """None for one that is settled, watched, and still in the chain."""
        if bundle is None or bundle.state == "dead" or (bundle.state == "signed" and not bundle.signed):
            return Out(work, asks=True)
        if bundle.state == "settled":
            number = bundle.block_number or 0
            stands = self._answers.hash_at(number, scanned) == bundle.block_hash
            return None if stands and number > scanned.height - self._network.reorg_depth else Out(work, asks=True)
        if bundle.state != "signed":
            return None  # its withdrawals are open payouts: the function that signs is asked for them
        return self._attempts.out(
            work, bundle, [coin.outpoint for coin in bundle.signed[-1].inputs], overdue=self._overdue(bundle, now)
        )

    def _look(self, bundle_id: str, scanned: Scanned) -> None:
        bundle = self._store.get(Bundle, id=bundle_id)
        if bundle is None:
            raise LookupError(f"the bundle {bundle_id} is gone")
        match bundle.state:
            case "signed":
                self._await(bundle, scanned)
            case "settled":
                self._watch(bundle, scanned)
            case "dead":
                self._give_back(bundle)
                if self._attempts.watched_enough(bundle, scanned):
                    self._store.commit([Close(bundle_work(bundle))])
            case _:
                pass  # its withdrawals are open payouts: the function that signs is asked for them

    # In the chain, or not

    def _await(self, bundle: Bundle, scanned: Scanned) -> None:
        found, somewhere = self._attempts.mined(bundle, scanned)
        if found is not None:
            self._count(bundle, *found, scanned)
            return
        if somewhere or not self._booked(bundle) or stopped(self._store, self._network.realm):
            return
        needed = [coin.outpoint for coin in bundle.signed[-1].inputs]  # what each of its attempts spends
        fate, bundle = self._attempts.fate(bundle, needed, scanned)
        if fate == "possible":
            self._ask_to_replace(bundle)
        elif fate == "dead":
            self._die(bundle)

    def _booked(self, bundle: Bundle) -> bool:
        """Whether all of its payments are in flight. The function that signs goes on with what is not."""
        return all(order.state != "built" for _, order in members(self._store, bundle))

    def _count(self, bundle: Bundle, attempt: Built, receipt: Receipt, scanned: Scanned) -> None:
        if scanned.depth(receipt.block_number) >= self._network.confirmations and self._booked(bundle):
            believed = self._verdicts.believed(receipt, scanned, bundle.asset, bundle.total)
            if believed is not None:
                self._settle(bundle, attempt, believed)
            return
        self.waits_for_scan |= scanned.tip - receipt.block_number + 1 >= self._network.confirmations
        self._attempts.doubted(bundle, None)

    def _settle(self, bundle: Bundle, attempt: Built, receipt: Receipt) -> None:
        held = coins_of(self._store, self._network, bundle.wallet)
        spent = {coin.outpoint for coin in attempt.inputs}
        if any(coin.gone for coin in held.coins if coin.outpoint in spent):
            return  # what it spends is not confirmed again yet: that comes first, or it would come as a coin to be spent
        held = held.spent(spent)
        change = attempt.change_coin(receipt.block_number)
        held = held if change is None else held.came(change)
        done = replace(
            bundle, state="settled", mined=attempt.txid, block_number=receipt.block_number, block_hash=receipt.block_hash,
            doubtful_since=None, renew=False,
        )  # fmt: skip
        self._store.commit([Save(done.next(self._clock.now_ms())), Save(held.next())])

    def _watch(self, bundle: Bundle, scanned: Scanned) -> None:
        """See that it stays in the chain as deep as a reorganisation is followed; undo its settlement when it does not."""
        number = bundle.block_number or 0
        found = self._answers.hash_at(number, scanned)
        if found is None:
            return  # the node is behind, or a shorter branch has won for a moment
        if found != bundle.block_hash:
            self._unsettle(bundle)
        elif number <= scanned.height - self._network.reorg_depth:
            held = coins_of(self._store, self._network, bundle.wallet)
            freed = [Save(held.released(bundle.id).next())] if held.reserved(bundle.id) else []
            self._store.commit([Close(bundle_work(bundle)), *freed])

    def _unsettle(self, bundle: Bundle) -> None:
        log.warning("%s: the block that settled %s fell out of the chain", self._network.id, bundle.id)
        attempt = bundle.attempt(bundle.mined or "")
        held = coins_of(self._store, self._network, bundle.wallet)
        held = held.unspent(bundle.id, as_they_stand(self._store, self._network, attempt.inputs))
        change = attempt.change_coin(0)
        held = held if change is None else held.taken_back(change.outpoint)
        again = replace(bundle, state="signed", mined=None, block_number=None, block_hash=None, round=bundle.round + 1)
        self._store.commit([Save(again.next(self._clock.now_ms())), Save(held.next())])

    # Stuck, or dead

    def _ask_to_replace(self, bundle: Bundle) -> None:
        newest = bundle.newest
        if newest is None:
            return
        now = self._clock.now_ms()
        news = News(now)
        changes: list[Change] = []
        if newest.raw is not None and not bundle.renew:
            replaced = len(bundle.earlier)
            if not self._overdue(bundle, now):
                return
            if self._renewals.worn_out(replaced):
                log.error("ALARM %s: %s was replaced %d times and is in no block", self._network.id, bundle.id, replaced)
                return
            changes.append(Save(replace(bundle, renew=True).next(now)))
        # Asked for at every poll until it is done: a command may be lost.
        first = bundle.payouts[0]
        withdrawal = self._store.get(Withdrawal, tenant=first.tenant, id=first.withdrawal)
        if withdrawal is not None:
            news.command(payout_command(withdrawal))
        self._store.commit([*changes, *news.emit()])

    def _overdue(self, bundle: Bundle, now: int) -> bool:
        waited = now - max(0 if bundle.newest is None else bundle.newest.signed_at, bundle.updated_at)
        return waited >= self._renewals.patience(bundle.priority, self._network.block_time, len(bundle.earlier))

    def _die(self, bundle: Bundle) -> None:
        log.error("ALARM %s: %s can not be mined any more: its payments fail", self._network.id, bundle.id)
        held = coins_of(self._store, self._network, bundle.wallet)
        dead = replace(bundle, state="dead", renew=False).next(self._clock.now_ms())
        self._store.commit([Save(dead), Save(held.released(bundle.id).next())])
        self._give_back(dead)

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
