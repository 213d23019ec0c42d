"""The attempts of a payout on an account network: how its bytes are proved against the approved withdrawal, and stored.

The engine (`transactions.accounts.signing`) signs and sends them. Here its withdrawal, balance and fee are known.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from chalicelib.domain import ledger
from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.catalogue import Coin, Network
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.ids import asset_parts, network_parts
from chalicelib.domain.money import Amount
from chalicelib.domain.transactions.outgoing import Attempt
from chalicelib.domain.versions import next_version, version_after
from chalicelib.domain.withdrawals.payout_line import payout_work
from chalicelib.domain.withdrawals.withdrawals import NonceUse, PaymentOrder, Withdrawal
from chalicelib.usecases.base.address_forms import account_at, form_or_none
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.payouts.checks import PayoutChecks
from chalicelib.usecases.payouts.fees import Allowed, PayoutFees, gas_allowed
from chalicelib.usecases.payouts.replacement_fees import ReplacementFees
from chalicelib.usecases.ports.accounts import ChainPayer, Explained, Payment
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Change, Close, Open, Post, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.ports.second_reader import Order
from chalicelib.usecases.ports.signing import Signature, Signed, Signer
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.accounts.signing import Proved
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.usecases.transactions.replacement_bounds import quoted
from chalicelib.usecases.withdrawals.fee_budget import FeeBudgets
from chalicelib.usecases.withdrawals.steps import catalogue_views, order_id, sent_work, stepped

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PayoutProved(Proved):
    """`withdrawal` may cost that; of a replacement `allowed` has what is reserved for it beside."""

    allowed: Allowed | None = None


@dataclass(frozen=True, slots=True)
class PayoutParts:
    """The parts that the attempts of all payouts share."""

    store: Store
    rules: AddressRules
    clock: Clock
    signer: Signer
    checks: PayoutChecks
    replacements: ReplacementFees
    budgets: FeeBudgets
    rates_of: RatesOf

    @property
    def fees(self) -> PayoutFees:
        """The fee bound of first transactions and of replacements alike."""
        return self.replacements.fees


def coin_of(store: Store, withdrawal: Withdrawal) -> Coin:
    """Raises Unavailable."""
    network, slug = asset_parts(withdrawal.asset)
    return catalogue_views(store, withdrawal)[0].coins[network_parts(network)[1], slug]


def payment_of(store: Store, wallet: Wallet, withdrawal: Withdrawal, nonce: int) -> Payment:
    """The payment of `withdrawal` out of `wallet`. Raises Unavailable."""
    return Payment(
        sender=wallet.address,
        recipient=withdrawal.to_address,
        contract=coin_of(store, withdrawal).contract,
        amount=withdrawal.amount,
        nonce=nonce,
        priority=withdrawal.priority,
        reference=withdrawal.id,
    )


class PayoutAttempts:
    """Implements `Attempts` for one withdrawal, as it was read before its order is signed or replaced."""

    others = True

    def __init__(self, parts: PayoutParts, network: Network, payer: ChainPayer, wallet: Wallet, withdrawal: Withdrawal) -> None:
        self.network, self.payer, self.name = network, payer, f"order {order_id(withdrawal)}"
        self.withdrawal = withdrawal
        """As it is stored by now."""
        self._parts, self._store, self._wallet = parts, parts.store, wallet
        self._replacements = parts.replacements

    def facts(self, record: PaymentOrder) -> Order:
        paid = payment_of(self._store, self._wallet, self.withdrawal, record.nonce)
        return Order("payment", paid.sender, paid.recipient, paid.contract, paid.amount, paid.nonce, 0, record.unsigned)

    def proved(self, record: PaymentOrder) -> PayoutProved:
        return PayoutProved(self._approve(record).fee)

    def quoted(self, record: PaymentOrder) -> int | None:
        return quoted(self.payer, payment_of(self._store, self._wallet, self.withdrawal, record.nonce))

    def cure(self, record: PaymentOrder, mismatch: OrderMismatch) -> None:
        """Nothing was signed, so the same nonce may have other bytes. Later payments of the wallet wait for it."""
        if mismatch.bytes_only:
            self._store.commit([Save(replace(next_version(record), unsigned=""))])

    def altered(self, before: PaymentOrder) -> list[str]:
        return []  # it is replaced by bytes that are made of its own bytes

    def differs(self, before: PaymentOrder, named: str) -> None:
        log.error("ALARM %s: order %s differs from what was signed in %s", self.network.id, before.id, named)

    def renewed(self, before: PaymentOrder) -> PaymentOrder | None:
        try:
            unsigned = self.payer.renew(before.unsigned, self.withdrawal.priority, self._wallet.address)
        except Refused as refused:
            log.warning("ALARM %s: %s is stuck and can not be replaced now: %s", self.network.id, before.id, refused)
            return None
        return replace(before, unsigned=unsigned)

    def proved_again(self, before: PaymentOrder, wanted: PaymentOrder) -> PayoutProved | None:
        does = self._approve(wanted, gas=self.payer.explain(before.unsigned).gas)
        now = self._parts.clock.now_ms()
        catalogue, _ = catalogue_views(self._store, self.withdrawal, self._parts.rates_of, now)
        allowed = self._replacements.allowed(catalogue, self.network, self.payer, self.withdrawal, before, does)
        return None if allowed is None else PayoutProved(does.fee, allowed=allowed)

    def signature(self, record: PaymentOrder, digest: bytes) -> Signature:
        return self._parts.signer.sign(self._wallet, digest)

    def store(self, record: PaymentOrder, signed: Signed, proved: PayoutProved, rests_on: Sequence[Change]) -> PaymentOrder:
        """The withdrawal becomes broadcasting, and its coins are in flight."""
        before, news = self.withdrawal, News(self._parts.clock.now_ms())
        _, views = catalogue_views(self._store, before)
        done = record.signed_as(Attempt(signed.raw, signed.txid, proved.fee, news.at))
        sent = replace(before, status="broadcasting", txid=signed.txid, fee=proved.fee, updated_at=news.at)
        after = stepped(news, views, before, sent)
        place = account_at(self._parts.rules, self.network, record.wallet)
        entry = ledger.payment_signed(record.id, news.at, place, Amount(record.asset, record.amount))
        works = (Close(payout_work(before)), Open(sent_work(before)))
        self._store.commit([Save(done), Save(after), Post(entry), *works, *rests_on, *news.emit()])
        self.withdrawal = after
        return done

    def store_again(
        self, before: PaymentOrder, wanted: PaymentOrder, signed: Signed, proved: PayoutProved, rests_on: Sequence[Change]
    ) -> PaymentOrder:
        """It counts towards the fee budget, and waits for none: later payments of the wallet wait for its nonce."""
        allowed, news = proved.allowed or Allowed(self.withdrawal), News(self._parts.clock.now_ms())
        _, views = catalogue_views(self._store, self.withdrawal, self._parts.rates_of, news.at)
        done = wanted.signed_as(Attempt(signed.raw, signed.txid, proved.fee, news.at))
        counted = self._parts.budgets.corrected(allowed.withdrawal, proved.fee)
        after = replace(
            counted.withdrawal, txid=signed.txid, fee=proved.fee, updated_at=news.at, version=version_after(self.withdrawal)
        )
        reserved = self._parts.fees.reserving(news, views, allowed)
        self._store.commit([Save(done), Save(after), *rests_on, *reserved, *counted.changes, *news.emit()])
        self.withdrawal = after
        return done

    def _approve(self, order: PaymentOrder, gas: int = 0) -> Explained:
        """The bytes decoded. Raises OrderMismatch unless that is exactly what was approved (money rule 7).

        `gas`: how much was signed for before, of one that is replaced.
        """
        network, wallet, withdrawal, coin = self.network, self._wallet, self.withdrawal, coin_of(self._store, self.withdrawal)
        wrong = self._unlike_withdrawal(order, coin)
        ordered = not wrong
        use = self._store.get(NonceUse, owner=order.id)
        allotted = None if use is None else (use.network, use.wallet, use.nonce)
        try:
            does = self.payer.explain(order.unsigned)
        except ValueError as error:
            log.error("ALARM %s: order %s differs from what was approved in being no plain payment", network.id, order.id)
            raise OrderMismatch(f"order {order.id} is no plain payment: {error}", bytes_only=ordered) from error
        done: dict[str, tuple[object, object]] = {
            "chain": (does.chain_id, network.chain_id),
            # Bytes without a nonce (Tron) name their sender. Those of EVM name none: the key that signs makes it.
            "nonce": (does.nonce, order.nonce if does.nonce is not None or does.sender is None else None),
            "allotted nonce": ((network.id, wallet.address, order.nonce), allotted),
            "sender": (self._form(does.sender), None if does.sender is None else self._form(wallet.address)),
            "recipient": (self._form(does.recipient), self._form(withdrawal.to_address)),
            "contract": (self._form(does.contract), self._form(coin.contract)),
            "amount": (does.amount, withdrawal.amount),
            "gas": (gas_allowed(self.payer, withdrawal, wallet.address, coin.contract, does, gas), True),
        }
        wrong += [name for name, (found, approved) in done.items() if found != approved]
        if wrong:
            log.error("ALARM %s: order %s differs from what was approved in %s", network.id, order.id, ", ".join(wrong))
            # Where the order itself names another nonce than was allotted, an operator looks first.
            bytes_only = ordered and not {"nonce", "allotted nonce"} & set(wrong)
            raise OrderMismatch(
                f"order {order.id} differs from the approved withdrawal in {', '.join(wrong)}", bytes_only=bytes_only
            )
        return does

    def _unlike_withdrawal(self, order: PaymentOrder, coin: Coin) -> list[str]:
        """In what the order's record, whatever its bytes are, is not what was approved."""
        withdrawal = self.withdrawal
        facts: dict[str, tuple[object, object]] = {
            "withdrawal": (order.withdrawal_id, withdrawal.id),
            "merchant": (order.tenant, withdrawal.tenant),
            "coin": (order.asset, withdrawal.asset),
            "network": (order.network, withdrawal.network),
            "wallet": (self._form(order.wallet), self._form(self._wallet.address)),
            "order": (
                (order.amount, self._form(order.recipient), self._form(order.contract)),
                (withdrawal.amount, self._form(withdrawal.to_address), self._form(coin.contract)),
            ),
        }
        wrong = [name for name, (found, approved) in facts.items() if found != approved]
        return wrong if self._parts.checks.agreed(withdrawal) else [*wrong, "approval"]

    def _form(self, address: str | None) -> str | None:
        return form_or_none(self._parts.rules, self.network, address)
