"""Bundles once they are signed: each payment's money goes in flight, and each merchant is told that it was sent."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.domain import ledger
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.money import Amount
from chalicelib.domain.versions import next_version
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.withdrawals.payout_line import payout_work
from chalicelib.usecases.base.address_forms import account_at
from chalicelib.usecases.base.kill_switch import stopped
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.payouts.bundle_members import members
from chalicelib.usecases.payouts.bundle_parts import BundleParts
from chalicelib.usecases.ports.changes import Change, Close, Open, Post, Save
from chalicelib.usecases.withdrawals.steps import catalogue_views, sent_work, stepped


class SentBundle:
    """One bundle that is signed. A crash between two of its payments leaves the rest to the next worker."""

    def __init__(self, parts: BundleParts, network: Network) -> None:
        self._store, self._rules, self._clock, self._budgets = parts.store, parts.rules, parts.clock, parts.budgets
        self.network = network

    def halted(self) -> bool:
        return stopped(self._store, self.network.realm)

    def book(self, bundle: Bundle) -> Bundle:
        """processing → broadcasting: from now on each payment can reach the chain at any time, and its coins are in flight."""
        newest = bundle.newest
        if newest is None or newest.txid is None:
            return bundle  # a replacement: everything was booked before the first was sent
        for withdrawal, order in members(self._store, bundle):
            if withdrawal.status != "processing":
                continue
            news = News(self._clock.now_ms())
            _, views = catalogue_views(self._store, withdrawal)
            share = bundle.share(withdrawal.id, newest.fee)
            done = replace(next_version(order), txid=newest.txid, fee=share, signed_at=newest.signed_at, state="signed")
            after = replace(withdrawal, status="broadcasting", txid=newest.txid, fee=share, updated_at=news.at)
            after = stepped(news, views, withdrawal, after)
            place = account_at(self._rules, self.network, order.wallet)
            entry = ledger.payment_signed(order.id, news.at, place, Amount(order.asset, order.amount))
            works = (Close(payout_work(withdrawal)), Open(sent_work(withdrawal)))
            self._store.commit([Save(done), Save(after), Post(entry), *works, *news.emit()])
        return bundle

    def tell(self, bundle: Bundle) -> None:
        """broadcasting → confirming, with the id and the fee's share of the attempt that was sent last."""
        newest = bundle.latest
        for withdrawal, order in members(self._store, bundle):
            if withdrawal.status not in ("broadcasting", "confirming"):
                continue
            if withdrawal.status == "confirming" and withdrawal.txid == newest.txid:
                continue
            news = News(self._clock.now_ms())
            _, views = catalogue_views(self._store, withdrawal)
            share = bundle.share(withdrawal.id, newest.fee)
            counted = self._budgets.corrected(withdrawal, share)
            after = replace(counted.withdrawal, status="confirming", txid=newest.txid, fee=share, updated_at=news.at)
            after = stepped(news, views, withdrawal, after)
            changes: list[Change] = [Save(after), *counted.changes]
            if order.txid != newest.txid:
                changes.append(Save(replace(next_version(order), txid=newest.txid, fee=share)))
            self._store.commit([*changes, *news.emit()])
