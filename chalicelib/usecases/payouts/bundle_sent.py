"""Payments that share a transaction, as `settlement` needs to know them. The bytes are with their bundle."""

from __future__ import annotations

from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.chain import Receipt
from chalicelib.domain.transactions.outgoing import Attempt
from chalicelib.domain.transactions.sightings import Ours, by_inputs
from chalicelib.domain.withdrawals.bundles import Bundle, BundledPayout
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Withdrawal
from chalicelib.usecases.base.address_forms import same_place
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.ports.accounts import FeeEstimate
from chalicelib.usecases.ports.changes import Change
from chalicelib.usecases.ports.coins import CoinPayer
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.transactions.finality import Scanned
from chalicelib.usecases.transactions.utxo.proofs import unproved

PLAIN_VSIZE = 141
"""Virtual bytes of a payment with one input, one recipient and change, all P2WPKH (BIP-141)."""
CONSOLIDATED_VSIZE = 110
"""The same of a transaction with one input and one output: a consolidation of a single deposit, which is the dearest for each."""


class SentTogether:
    """`usecases.payouts.sent.Sent` for networks of coins. Made anew for every poll: it reads each bundle, and sends its bytes,
    once."""

    def __init__(self, context: NetworkContext, payer: CoinPayer) -> None:
        self._network, self._store, self._rules, self._payer = context.network, context.store, context.rules, payer
        self._bundles: dict[str, Bundle] = {}
        self._unproved: dict[str, list[str]] = {}
        self._answers: dict[str, Refused | None] = {}

    def transactions(self, order: PaymentOrder) -> tuple[Attempt, ...]:
        """Every transaction that may have paid `order`, the newest first, each with the share of its fee that the order bears."""
        if order.bundle is None:
            return ()
        bundle = self._bundles.get(order.bundle) or self._store.get(Bundle, id=order.bundle)
        if bundle is None:
            return ()
        self._bundles[bundle.id] = bundle
        return tuple(
            Attempt(built.raw, built.txid, bundle.share(order.withdrawal_id, built.fee), built.signed_at)
            for built in bundle.signed
            if built.raw is not None and built.txid is not None
        )

    def fee(self, order: PaymentOrder, attempt: Attempt, receipt: Receipt) -> int:
        """Known exactly from what was signed: the chain does not tell it."""
        return attempt.fee

    def altered(self, order: PaymentOrder, attempt: Attempt) -> list[str]:
        """The bytes are their bundle's: it has to be what was signed, and the order one of its payments."""
        bundle = self._bundles[order.bundle or ""]
        if attempt.txid not in self._unproved:
            made = bundle.attempt(attempt.txid)
            self._unproved[attempt.txid] = unproved(self._payer, self._rules, self._network, bundle, made)
        recipient = self._rules.normalize(self._network.id, order.recipient)
        paid = BundledPayout(order.withdrawal_id, order.tenant, recipient, order.amount)
        facts = {
            "payment": paid in bundle.payouts,
            "contract": order.contract is None,
            "wallet": same_place(self._rules, self._network, order.wallet, bundle.wallet),
        }
        return [*self._unproved[attempt.txid], *(name for name, same in facts.items() if not same)]

    def told_nonces(self, wallet: str) -> tuple[int | None, ...]:
        return ()

    def broadcast(self, raw: str) -> None:
        """Raises Refused, Unavailable. Many payments have the same bytes: they are sent once, and all get that answer."""
        if raw not in self._answers:
            try:
                self._payer.broadcast(raw)
                self._answers[raw] = None
            except Refused as refused:
                self._answers[raw] = refused
        answer = self._answers[raw]
        if answer is not None:
            raise answer

    def renewal(self, withdrawal: Withdrawal, order: PaymentOrder, news: News, scanned: Scanned) -> list[Change]:
        """Nothing: a transaction of many payments is replaced once, by `bundle_settlement`."""
        return []

    def overdue(self, withdrawal: Withdrawal, order: PaymentOrder, now: int) -> bool:
        """False: see `renewal`."""
        return False

    def ours(self, order: PaymentOrder) -> Ours:
        """By the coins that the first of them spends, and so each."""
        self.transactions(order)
        bundle = self._bundles.get(order.bundle or "")
        if bundle is None or not bundle.signed:
            return by_inputs((), ())
        return by_inputs(bundle.txids, [coin.outpoint for coin in bundle.signed[-1].inputs])

    def lost(self, order: PaymentOrder, scanned: Scanned) -> bool:
        """False: a transaction of many payments is lost once, which `bundle_settlement` finds."""
        return False

    def quote(self, sender: str, coin: Coin) -> FeeEstimate:
        """What a plain payment would cost by itself now, and consolidating one output. Raises Unavailable."""
        rate = self._payer.fee_rate("normal")
        return FeeEstimate(-(-rate * PLAIN_VSIZE // 1000), bare=-(-rate * CONSOLIDATED_VSIZE // 1000))
