"""How payments of a network went out, as their settlement needs to know it: which transactions, at what cost, and what is done when
none of them gets into a block. Account chains have one order per transaction; where one transaction pays many orders, another
implementation of `Sent` knows which.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Protocol

from chalicelib.domain.catalogue import Coin, Network
from chalicelib.domain.chain import Receipt
from chalicelib.domain.renewals import RenewalRules
from chalicelib.domain.withdrawals import Attempt, PaymentOrder, Usurped, Withdrawal
from chalicelib.usecases.changes import Change, Save
from chalicelib.usecases.outbox import News
from chalicelib.usecases.ports.accounts import ChainPayer, Payment
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.verdicts import Scanned
from chalicelib.usecases.withdrawal_steps import payout_command

log = logging.getLogger(__name__)


class Sent(Protocol):
    def transactions(self, order: PaymentOrder) -> tuple[Attempt, ...]:
        """Every transaction that may have paid `order`, the newest first; none before one is signed. Raises Unavailable."""
        ...

    def fee(self, order: PaymentOrder, attempt: Attempt, receipt: Receipt) -> int:
        """What the network took for this payment, in units of the native coin: its share, where one transaction pays several."""
        ...

    def broadcast(self, raw: str) -> None:
        """As `ChainPayer.broadcast`."""
        ...

    def renewal(self, withdrawal: Withdrawal, order: PaymentOrder, news: News, scanned: Scanned) -> list[Change]:
        """What has to be stored so that the newest transaction, which is in no block, is replaced; `news` gets the command for it.
        Nothing where it is not due. Safe to call at every poll. Raises Unavailable."""
        ...

    def lost(self, order: PaymentOrder, scanned: Scanned) -> int | None:
        """Where no transaction of `order` can ever be mined, since another one used its nonce so long ago that no reorganisation
        reaches it: how many nonces of the wallet are used for good. None otherwise. Raises Unavailable."""
        ...

    def quote(self, sender: str, coin: Coin) -> int:
        """What a plain payment of `coin` costs now, in units of the native coin. Raises Refused, Unavailable."""
        ...


class SentAlone:
    """`Sent` where each order has transactions of its own. Signs nothing: it asks the function that does.

    Made for one poll: it asks for the nonce of a wallet once, however many of its payments wait.
    """

    def __init__(self, network: Network, reader: ChainReader, payer: ChainPayer, rules: RenewalRules) -> None:
        self._network, self._reader, self._payer, self._rules = network, reader, payer, rules
        self._following: dict[str, int] = {}

    def transactions(self, order: PaymentOrder) -> tuple[Attempt, ...]:
        if order.raw is None or order.txid is None:
            return ()
        return Attempt(order.raw, order.txid, order.fee, order.signed_at), *reversed(order.earlier)

    def fee(self, order: PaymentOrder, attempt: Attempt, receipt: Receipt) -> int:
        return attempt.fee if receipt.fee is None else receipt.fee

    def broadcast(self, raw: str) -> None:
        self._payer.broadcast(raw)

    def renewal(self, withdrawal: Withdrawal, order: PaymentOrder, news: News, scanned: Scanned) -> list[Change]:
        """Due when it has waited too long and its own fee is what holds it up: behind an earlier payment, more would not help."""
        priority, block_seconds = withdrawal.priority, self._network.block_time
        if order.txid is None or not self._rules.stuck(order, priority, withdrawal.updated_at, block_seconds, news.at):
            return []
        nonce = self._payer.explain(order.unsigned).nonce
        if nonce is not None:
            following = self._next(order.wallet, nonce)
            if following > nonce:
                return self._note(order, nonce, following, scanned)
            if order.usurped is not None:
                return [Save(replace(order, usurped=None, version=order.version + 1))]
            if following < nonce:
                return []
        if self._rules.exhausted(order, expires=nonce is None):
            self._alarm("%s was replaced %d times and is in no block", order.id, len(order.earlier))
            return []
        if not self._payer.renewable(order.unsigned, order.txid):
            return []
        # Asked for at every poll until it is done: a command may be lost.
        news.command(payout_command(withdrawal))
        return [] if order.renew else [Save(replace(order, renew=True, version=order.version + 1))]

    def _note(self, order: PaymentOrder, nonce: int, following: int, scanned: Scanned) -> list[Change]:
        """Remember since when a transaction of somebody else has the nonce: since the last reorganisation at the earliest."""
        if order.usurped is not None and order.usurped.epoch == scanned.epoch:
            return []
        if any(self._reader.receipt(txid) is not None for txid in order.txids):
            return []  # mined since it was looked at
        self._alarm("%s: a transaction that is not ours used the nonce %d of %s", order.id, nonce, order.wallet)
        seen = Usurped(scanned.tip, scanned.epoch, following)
        return [Save(replace(order, usurped=seen, version=order.version + 1))]

    def lost(self, order: PaymentOrder, scanned: Scanned) -> int | None:
        """Seen since then at every look, through no reorganisation, and told by every node now."""
        seen = order.usurped
        if seen is None or seen.epoch != scanned.epoch or scanned.height - seen.height < self._network.reorg_depth:
            return None
        used = min(seen.used, self._payer.used_nonces(order.wallet))
        return used if used > order.nonce else None

    def _next(self, wallet: str, nonce: int) -> int:
        """The wallet's next nonce: where `nonce` waits behind another one, as it was when last asked for."""
        if self._following.get(wallet, nonce) >= nonce:
            self._following[wallet] = self._payer.next_nonce(wallet)
        return self._following[wallet]

    def quote(self, sender: str, coin: Coin) -> int:
        return self._payer.estimate(Payment(sender, sender, coin.contract, 1, 0)).fee

    def _alarm(self, words: str, *about: object) -> None:
        # On a simulated network a developer decides what sticks: nobody has to look.
        log.error(f"{'' if self._network.simulated else 'ALARM '}%s: {words}", self._network.id, *about)
