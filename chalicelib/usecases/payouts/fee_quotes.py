"""Fee quotes of a network: what a withdrawal of each coin costs now, stored once a minute."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from chalicelib.domain.chain import FeeQuote
from chalicelib.domain.versions import version_after
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.payouts.sent import Sent
from chalicelib.usecases.ports.accounts import FeeEstimate
from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.usecases.ports.failures import Refused

log = logging.getLogger(__name__)

QUOTE_SECONDS = 60


class FeeQuotes:
    def __init__(self, context: NetworkContext, sent: Sent) -> None:
        self._sent = sent
        self._network, self._store, self._clock = context.network, context.store, context.clock

    def quote(self, senders: Sequence[str]) -> None:
        """Store what a plain payment of each coin costs now, and collecting one deposit of it, once a minute: the API shows the one
        and charges both without asking a node."""
        now = self._clock.now_ms()
        known = self._store.get(FeeQuote, network=self._network.id)
        if known is not None and now - known.at < QUOTE_SECONDS * 1000:
            return
        found: dict[str, FeeEstimate] = {}
        catalogue = self._store.catalogue(self._network.realm)
        native = catalogue.native(self._network.slug)
        for coin in catalogue.coins_of(self._network.slug):
            if coin.status != "ACTIVE":
                continue
            for sender in senders:
                try:
                    found[coin.slug] = self._sent.quote(sender, coin)
                    break
                except Refused as refused:
                    log.info("%s: no fee estimate for %s of %s: %s", self._network.id, coin.slug, sender, refused)
        fees = {slug: estimate.fee for slug, estimate in found.items()}
        collecting = {slug: estimate.sweep for slug, estimate in found.items() if slug == native.slug}
        if native.slug in fees:  # the address of a token needs the sweep's fee first
            collecting |= {slug: fees[native.slug] + found[slug].sweep for slug in found if slug != native.slug}
        version = version_after(known)
        quote = FeeQuote(self._network.id, fees, now, collecting, version)
        try:
            self._store.commit([Save(quote)])
        except Conflict:
            log.info("%s: another poll stored its fee estimate first", self._network.id)
