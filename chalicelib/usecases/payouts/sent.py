"""Payments in flight of a network, as settlement needs to know them: their transactions, their cost, and the step when none is
mined. Account chains have one order per transaction; where one transaction pays many orders, another implementation of `Sent`
knows which."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from chalicelib.domain.catalogue.catalogue import Coin, Network
from chalicelib.domain.chain import Receipt
from chalicelib.domain.transactions.outgoing import Attempt
from chalicelib.domain.transactions.sightings import Ours
from chalicelib.domain.versions import next_version
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Withdrawal
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.ports.accounts import ChainPayer, FeeEstimate, Payment
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Change, Save
from chalicelib.usecases.transactions.finality import Scanned
from chalicelib.usecases.transactions.replacements import Stuck, Waiting
from chalicelib.usecases.transactions.signed_bytes import unlike_ordered
from chalicelib.usecases.withdrawals.steps import payout_command


class Sent(Protocol):
    def transactions(self, order: PaymentOrder) -> tuple[Attempt, ...]:
        """Every transaction that may have paid `order`, the newest first; none before one is signed. Raises Unavailable."""
        ...

    def fee(self, order: PaymentOrder, attempt: Attempt, receipt: Receipt) -> int:
        """What the network took for this payment, in units of the native coin: its share, where one transaction pays several."""
        ...

    def altered(self, order: PaymentOrder, attempt: Attempt) -> list[str]:
        """As `signed_bytes.unlike_ordered`. Raises Unavailable."""
        ...

    def broadcast(self, raw: str) -> None:
        """As `ChainPayer.broadcast`."""
        ...

    def renewal(self, withdrawal: Withdrawal, order: PaymentOrder, news: News, scanned: Scanned) -> list[Change]:
        """What has to be stored so that the newest transaction, which is in no block, is replaced; `news` gets the command for it.
        Nothing where it is not due. Safe to call at every poll. Raises Unavailable."""
        ...

    def overdue(self, withdrawal: Withdrawal, order: PaymentOrder, now: int) -> bool:
        """Whether it has waited too long for a block, so that its replacement may be due. No node is asked."""
        ...

    def ours(self, order: PaymentOrder) -> Ours:
        """The transactions of `order` by what they are met in blocks. Raises Unavailable."""
        ...

    def lost(self, order: PaymentOrder, scanned: Scanned) -> bool:
        """Whether no transaction of `order` can ever be mined, nor anything in their place, so that it has failed: another one used
        its nonce, and no reorganisation reaches that. Raises Unavailable."""
        ...

    def told_nonces(self, wallet: str) -> tuple[int | None, ...]:
        """As `ChainPayer.told_nonces`; nothing where transactions spend coins."""
        ...

    def quote(self, sender: str, coin: Coin) -> FeeEstimate:
        """What a plain payment of `coin` costs now, and a deposit's way to a wallet. Raises Refused, Unavailable."""
        ...


class SentAlone:
    """`Sent` where each order has transactions of its own. Signs nothing: it asks the function that does. Made for one poll."""

    def __init__(self, network: Network, payer: ChainPayer, stuck: Stuck, rules: AddressRules) -> None:
        self._network, self._payer, self._stuck, self._rules = network, payer, stuck, rules

    def ours(self, order: PaymentOrder) -> Ours:
        return self._stuck.ours(order.attempts, order.wallet, order.nonce)

    def transactions(self, order: PaymentOrder) -> tuple[Attempt, ...]:
        return order.attempts

    def fee(self, order: PaymentOrder, attempt: Attempt, receipt: Receipt) -> int:
        return attempt.fee if receipt.fee is None else receipt.fee

    def altered(self, order: PaymentOrder, attempt: Attempt) -> list[str]:
        return unlike_ordered(self._payer, self._rules, self._network, order, order.wallet, attempt)

    def told_nonces(self, wallet: str) -> tuple[int | None, ...]:
        return self._payer.told_nonces(wallet)

    def broadcast(self, raw: str) -> None:
        self._payer.broadcast(raw)

    def renewal(self, withdrawal: Withdrawal, order: PaymentOrder, news: News, scanned: Scanned) -> list[Change]:
        """Due when it has waited too long and its own fee is what holds it up (`Stuck`)."""
        at_stake = (order.asset, order.amount)
        waiting = Waiting(
            order.id, order, order.unsigned, self.ours(order), order.wallet, withdrawal.priority, withdrawal.updated_at, at_stake
        )
        standing = self._stuck.look(waiting, news.at, scanned)
        if standing.usurped != order.usurped:
            return [Save(replace(next_version(order), usurped=standing.usurped))]
        if not standing.replace:
            return []
        # Asked for at every poll until it is done: a command may be lost.
        news.command(payout_command(withdrawal))
        return [] if order.renew else [Save(replace(next_version(order), renew=True))]

    def overdue(self, withdrawal: Withdrawal, order: PaymentOrder, now: int) -> bool:
        return self._stuck.overdue(order, withdrawal.priority, withdrawal.updated_at, now)

    def lost(self, order: PaymentOrder, scanned: Scanned) -> bool:
        return self._stuck.lost(self.ours(order), scanned)

    def quote(self, sender: str, coin: Coin) -> FeeEstimate:
        return self._payer.estimate(Payment(sender, sender, coin.contract, 1, 0))
