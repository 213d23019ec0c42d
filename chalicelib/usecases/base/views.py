"""Public records: merchants see the same in answers and in events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from chalicelib.domain.addresses.addresses import Address
from chalicelib.domain.catalogue.catalogue import Catalogue, Coin
from chalicelib.domain.catalogue.rates import Rates, RatesOf
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import AssetId, NetworkId, network_parts
from chalicelib.domain.invoices.invoices import Invoice, Payment
from chalicelib.domain.invoices.quotes import FiatValue
from chalicelib.domain.invoices.terms import Terms
from chalicelib.domain.ledger import Balance, WalletBalance
from chalicelib.domain.money import format_units
from chalicelib.domain.refunds.refunds import Refund
from chalicelib.domain.times import iso
from chalicelib.domain.treasury.consolidations import CoinMove
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.domain.withdrawals.approvals import withdrawal_text
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.base.balance_views import Holdings, balance_record, coins_on, holding_record, owned, with_parts
from chalicelib.usecases.base.payment_requests import chosen_record, coin_and_network, misdirected_record, quoted, uri_of
from chalicelib.usecases.base.refund_views import refund_record, standing, standing_by
from chalicelib.usecases.base.transaction_views import (
    confirmations,
    deposit_record,
    depth,
    fiat_record,
    move_record,
    payment_record,
    stake_record,
)

Tips = int | Mapping[NetworkId, int] | None
"""The height of a chain; or of each network that holds payments, where they may be on several."""


def without_none(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if value is not None}


def _charged(withdrawal: Withdrawal, coin: Coin) -> str:
    """The amount debited for the fee; until then the amount reserved for it."""
    return format_units(withdrawal.charge if withdrawal.debited is None else withdrawal.debited, coin.decimals)


def _risk(withdrawal: Withdrawal) -> dict[str, Any] | None:
    found = withdrawal.risk
    if found is None:
        return None
    return {"score": found.score, "findings": [{"name": finding.name, "weight": finding.weight} for finding in found.findings]}


class Views:
    """Renders records with the names and decimals of a catalogue, and values amounts at the rates of `now_ms`.

    `rates` is called for the first amount that is not zero; without it every value is unknown (null). `valued`: with what payments
    were worth when they were made. Answers have that and events do not: each would be written in every event of a payment, twice.
    """

    def __init__(
        self, catalogue: Catalogue, rates: Callable[[], Rates] | None = None, now_ms: int = 0, *, valued: bool = False
    ) -> None:
        self._catalogue, self._rates, self._now_ms, self._valued = catalogue, rates, now_ms, valued

    def usd(self, coin: Coin, units: int) -> float | None:
        """The value of `units` in US dollars, rounded to cents; None without a fresh rate. Zero units are worth 0."""
        if units == 0:
            return 0.0
        return None if self._rates is None else self._rates().usd(coin.slug, units, coin.decimals, self._now_ms)

    def cents(self, asset: AssetId, units: int) -> int:
        """The same in cents; 0 without a fresh rate."""
        dollars = self.usd(self._coin(asset), units)
        return 0 if dollars is None else round(Decimal(str(dollars)) * 100)

    def payout_slots(self, network: NetworkId) -> int:
        """As the catalogue has it (`Catalogue.payout_slots`)."""
        return self._catalogue.payout_slots(network)

    def _coin(self, asset: AssetId) -> Coin:
        return self._catalogue.coin_of(asset)

    def invoice(self, invoice: Invoice, tip: Tips = None) -> dict[str, Any]:
        """`tip` is the chain's height, from which confirmations are counted; without it, confirmations are shown as far as they
        are certain."""
        coin = self._coin(invoice.asset)
        amount, uri = _formatter(coin), payment_uri(invoice, coin, self._catalogue)
        record = without_none(
            {
                "id": invoice.id,
                "address": invoice.address,
                "amount": amount(invoice.amount),
                "received": amount(invoice.received),
                "unconfirmed": amount(invoice.unconfirmed + invoice.late_unconfirmed),
                "overpaid": amount(invoice.overpaid) if invoice.overpaid else None,
                "currency": coin.slug,
                "symbol": coin.symbol,
                "network": network_parts(invoice.network)[1],
                "status": invoice.status,
                "externalId": invoice.external_id,
                "description": invoice.description,
                "redirectUrl": invoice.redirect_url,
                "fiatAmount": invoice.fiat_amount,
                "fiatCurrency": invoice.priced.fiat if invoice.priced is not None else None,
                "rate": quoted(invoice.priced or invoice.usd),
                "transactions": [self._payment(invoice, payment, tip) for payment in reversed(invoice.payments)],
                "paymentUri": uri or "",
                "checkoutUrl": invoice.checkout_url,
                "createdAt": iso(invoice.created_at),
                "expiresAt": iso(invoice.expires_at),
                "missing": amount(invoice.missing),
                "cancelUrl": invoice.cancel_url,
                "metadata": None if invoice.metadata is None else dict(invoice.metadata),
                "webhookUrl": None if invoice.hook is None else invoice.hook.shown_url,
                "webhookId": None if invoice.hook is None else invoice.hook.id,
                "shortfall": amount(invoice.shortfall) if invoice.shortfall else None,
                **_forgiving(invoice.terms),
                "paymentLinkId": invoice.payment_link,
            }
        )
        record |= {"paymentUri": uri} | misdirected_record(invoice, self._coin)
        return record if invoice.choosing is None else record | chosen_record(invoice, invoice.choosing, self._coin)

    def _payment(self, invoice: Invoice, payment: Payment, tip: Tips) -> dict[str, Any]:
        place, coin = invoice.network_of(payment), self._coin(invoice.asset_of(payment))
        network = self._catalogue.networks[network_parts(place)[1]]
        counted = depth(payment.block, tip.get(place) if isinstance(tip, Mapping) else tip)
        shown = {
            "hash": payment.hash,
            "amount": format_units(payment.amount, coin.decimals),
            "confirmations": confirmations(network, payment.confirmed, counted),
            **self._worth(payment.worth),
        }
        return shown if invoice.choosing is None else shown | coin_and_network(coin.asset)

    def _worth(self, worth: FiatValue | None) -> dict[str, Any]:
        return {"fiatValue": fiat_record(worth)} if self._valued else {}

    def deposit(self, deposit: Deposit, tip: int | None = None) -> dict[str, Any]:
        """As `transaction_views.deposit_record`."""
        return deposit_record(self._catalogue, deposit, tip) | self._worth(deposit.fiat_value)

    def payment(self, withdrawal: Withdrawal) -> dict[str, Any]:
        """As `transaction_views.payment_record`."""
        return payment_record(self._catalogue, withdrawal) | self._worth(withdrawal.worth)

    def stake(self, stake: Stake, tip: int | None = None) -> dict[str, Any]:
        """As `transaction_views.stake_record`."""
        return stake_record(self._catalogue, stake, tip) | self._worth(None)

    def move(self, move: Move | CoinMove) -> dict[str, Any]:
        """As `transaction_views.move_record`."""
        return move_record(self._catalogue, move) | self._worth(None)

    def withdrawal(self, withdrawal: Withdrawal) -> dict[str, Any]:
        coin, fee_coin = self._coin(withdrawal.asset), self._coin(withdrawal.fee_asset)
        network = self._catalogue.networks[network_parts(withdrawal.network)[1]]
        final = withdrawal.confirmed_at
        return without_none(
            {
                "id": withdrawal.id,
                "status": withdrawal.status,
                "network": network.slug,
                "coin": coin.slug,
                "amount": format_units(withdrawal.amount, coin.decimals),
                "fee": format_units(withdrawal.fee, fee_coin.decimals),
                "fee_coin": fee_coin.slug,
                "fee_charged": _charged(withdrawal, coin) if withdrawal.charge else None,
                "to_address": withdrawal.to_address,
                "from_address": withdrawal.from_address,
                "priority": withdrawal.priority,
                "pending_reason": withdrawal.pending_reason if withdrawal.status == "pending" else None,
                "failure_reason": withdrawal.failure,
                "transaction_hash": withdrawal.txid,
                "confirmations": confirmations(network, withdrawal.status == "confirmed", withdrawal.confirmations),
                "block_number": withdrawal.block_number,
                "metadata": withdrawal.metadata or None,
                "batch_id": withdrawal.batch_id,
                "approval": self._approval(withdrawal),
                "risk": _risk(withdrawal),
                "created_at": iso(withdrawal.created_at),
                "updated_at": iso(withdrawal.updated_at),
                "confirmed_at": iso(final) if final is not None else None,
                "fiat_value": fiat_record(withdrawal.worth) if self._valued else None,
            }
        )

    def refund(self, refund: Refund, withdrawal: Withdrawal | None = None, claim_url: str | None = None) -> dict[str, Any]:
        """A refund or a payout link. `withdrawal` is the one that pays it, where there is one."""
        return refund_record(refund.id, refund.terms, standing(refund, withdrawal), self._coin(refund.terms.asset), claim_url)

    def repaid(self, withdrawal: Withdrawal) -> dict[str, Any]:
        """The same of what `withdrawal` pays. Raises LookupError where it pays no refund."""
        if withdrawal.repays is None:
            raise LookupError(f"{withdrawal.id} pays no refund")
        return refund_record(withdrawal.repays.id, withdrawal.repays.terms, standing_by(withdrawal), self._coin(withdrawal.asset))

    def signing_text(self, withdrawal: Withdrawal) -> str:
        """The text that a signer signs to accept a withdrawal: made from the record as it is shown."""
        coin = self._coin(withdrawal.asset)
        amount = format_units(withdrawal.amount, coin.decimals)
        return withdrawal_text(withdrawal.id, network_parts(withdrawal.network)[1], coin.slug, amount, withdrawal.to_address)

    def _approval(self, withdrawal: Withdrawal) -> dict[str, Any] | None:
        approval = withdrawal.approval
        if approval is None:
            return None
        return {
            "reasons": list(approval.reasons),
            "given": approval.given,
            "required_signatures": approval.required,
            "signers": [signer.id for signer in approval.signers],
            "signer_keys": [{"id": signer.id, "public_key": signer.public_key} for signer in approval.signers],
            "signatures": [{"signer_id": s.signer_id, "signed_at": iso(s.at)} for s in approval.signatures],
            "operator_accepted": approval.operator is not None,
            "signing_text": self.signing_text(withdrawal),
        }

    def balance(self, balance: Balance) -> dict[str, Any]:
        """The merchant's balance of one coin."""
        coin = self._coin(balance.asset)
        return balance_record(coin, balance, self.usd(coin, owned(balance)))

    def address(self, address: Address, holdings: Holdings | None = None) -> dict[str, Any]:
        """`holdings` is what the ledger has on the address; without them it has nothing yet."""
        known = holdings or {}
        balances = [self.holding(coin, known.get(coin.asset)) for coin in coins_on(self._catalogue, address)]
        return without_none(
            {
                "id": address.id,
                "address": address.address,
                "network": network_parts(address.network)[1],
                "coin": address.coin,
                "type": address.type,
                "mode": address.mode,
                "label": address.label,
                "metadata": address.metadata or None,
                "affectedNetworks": list(address.networks),
                "archived": True if address.archived else None,
                "balances": balances,
                "createdAt": iso(address.created_at),
            }
        )

    def holding(self, coin: Coin, there: WalletBalance | None) -> dict[str, Any]:
        """An address's balance of one coin."""
        return holding_record(coin, there, self.usd(coin, there.units if there is not None else 0))

    def holding_in_detail(self, coin: Coin, there: WalletBalance | None) -> dict[str, Any]:
        """As `balance_views.with_parts`."""
        return with_parts(self.holding(coin, there), coin, there)


def views_now(catalogue: Catalogue, rates_of: RatesOf, now_ms: int) -> Views:
    """Views that value amounts at `now_ms`: for events about balances."""
    return Views(catalogue, lambda: rates_of(catalogue.realm), now_ms)


def _forgiving(terms: Terms | None) -> dict[str, Any]:
    if terms is None:
        return {}
    most = terms.tolerance_max_usd
    return {
        "tolerancePercent": _number(terms.tolerance_percent),
        "toleranceMaxUSD": None if most is None else _number(most),
        "latePayments": terms.late_payments,
        "latePaymentsPercent": _number(terms.late_payments_percent),
    }


def _number(text: str) -> float:
    """A plain decimal of few digits as the JSON number that the interface shows. For display only."""
    return float(text) if "." in text else int(text)


def _formatter(coin: Coin) -> Any:
    return lambda units: format_units(units, coin.decimals)


def payment_uri(invoice: Invoice, coin: Coin, catalogue: Catalogue) -> str | None:
    """The payment URI of what is still to be sent, for a wallet's camera: BIP 21 (bitcoin:, litecoin:), EIP-681 (ethereum:), tron:.
    None where nothing more should be sent."""
    if not invoice.to_send or invoice.address is None:
        return None
    return uri_of(invoice.network, coin, invoice.address, invoice.to_send, catalogue)
