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
from chalicelib.domain.withdrawals import Attempt, PaymentOrder, Withdrawal
from chalicelib.usecases.changes import Change, Save
from chalicelib.usecases.outbox import News
from chalicelib.usecases.ports.accounts import ChainPayer, Payment
from chalicelib.usecases.ports.readers import ChainReader
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

    def renewal(self, withdrawal: Withdrawal, order: PaymentOrder, news: News) -> list[Change]:
        """What has to be stored so that the newest transaction, which is in no block, is replaced; `news` gets the command for it.
        Nothing where it is not due. Safe to call at every poll. Raises Unavailable."""
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

    def renewal(self, withdrawal: Withdrawal, order: PaymentOrder, news: News) -> list[Change]:
        """Due when it has waited too long and its own fee is what holds it up: behind an earlier payment, more would not help."""
        priority, block_seconds = withdrawal.priority, self._network.block_time
        if order.txid is None or not self._rules.stuck(order, priority, withdrawal.updated_at, block_seconds, news.at):
            return []
        nonce = self._payer.explain(order.unsigned).nonce
        if nonce is not None:
            following = self._next(order.wallet, nonce)
            if following < nonce:
                return []
            if following > nonce:
                if all(self._reader.receipt(txid) is None for txid in order.txids):
                    self._alarm("%s: a transaction that is not ours used the nonce %d of %s", order.id, nonce, order.wallet)
                return []
        if self._rules.exhausted(order, expires=nonce is None):
            self._alarm("%s was replaced %d times and is in no block", order.id, len(order.earlier))
            return []
        if not self._payer.renewable(order.unsigned, order.txid):
            return []
        # Asked for at every poll until it is done: a command may be lost.
        news.command(payout_command(withdrawal))
        return [] if order.renew else [Save(replace(order, renew=True, version=order.version + 1))]

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
