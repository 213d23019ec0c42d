"""The fee bound of a withdrawal (money rule 14): checked when it begins, before its bytes are stored, and before a replacement
is signed. The same for payments from accounts (`payouts`) and from coins (`bundle_payouts`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from chalicelib.domain import ledger
from chalicelib.domain.catalogue.catalogue import Catalogue, Network
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.ids import asset_parts
from chalicelib.domain.ledger import Balance
from chalicelib.domain.money import Amount
from chalicelib.domain.withdrawals.fees import SAME_COIN, bears_fee, covers, in_coin, operators_part, rate_text
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.side_by_side import meanwhile
from chalicelib.usecases.base.views import Views
from chalicelib.usecases.ports.accounts import ChainPayer, Explained, FeeEstimate, Payment
from chalicelib.usecases.ports.changes import Change
from chalicelib.usecases.ports.failures import InsufficientFunds
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.withdrawals.steps import moved

ANY_GAS = 2**63
"""More than any transaction takes."""
WORTH_MORE = "its network fee is worth more than it pays"
NOT_RESERVED = "its network fee is more than was reserved for it, and the balance does not have the rest"


@dataclass(frozen=True, slots=True)
class Allowed:
    """It may cost that. `withdrawal` has what is reserved by then: `excess` units more than before, out of `balance`."""

    withdrawal: Withdrawal
    excess: int = 0
    balance: Balance | None = None


@dataclass(frozen=True, slots=True)
class Denied:
    """It may not, and `why`. `final`: it never may; else it waits with the reason `fees`."""

    why: str
    final: bool = False


class PayoutFees:
    """Reads and checks; stores nothing by itself."""

    def __init__(self, store: Store, rates_of: RatesOf) -> None:
        self._store, self._rates_of = store, rates_of

    def check(
        self, catalogue: Catalogue, network: Network, before: Withdrawal, fee: int, *, gas: int = 0, bound: int = 0,
        replaces: bool = False,
    ) -> Allowed | Denied:  # fmt: skip
        """Whether `before` may cost `fee` units of the native coin, and take `gas` where three times a plain payment's is `bound`.

        * More gas than that: at nobody's cost but the merchant's. Where the hot wallet pays it fails, whatever an operator said;
          where the merchant pays, the excess over what is reserved is reserved, too, at the last known rate.
        * A replacement (`replaces`) that the merchant pays for: the same.
        * What the operator bears of the fee is worth no more than the payment. Where no rate was ever known, nothing is asked.

        What an operator has accepted is not asked again. Raises Unavailable.
        """
        dear, bears = gas > bound, bears_fee(before)
        if dear and not bears:
            return Denied(
                f"the payment takes {gas} gas, more than three times what a plain one takes ({bound // 3}): the recipient, or the "
                "token, computes at the expense of the service",
                final=True,
            )
        covered = covers(before)
        if covered is not None and fee <= covered:
            return Allowed(before)
        rate = self._rate(catalogue, network, before)
        if bears and (dear or replaces):
            return self._with_excess(before, fee, rate or before.charge_rate)
        over = operators_part(before, fee)
        if over and rate is not None and in_coin(over, rate) > before.amount and not before.fees_accepted:
            return Denied(WORTH_MORE)
        return Allowed(before)

    def of_bytes(
        self, catalogue: Catalogue, network: Network, payer: ChainPayer, before: Withdrawal, payment: Payment, unsigned: str
    ) -> Allowed | Denied:
        """The same of what the bytes `unsigned` of `payment` may cost and take. Raises Unavailable."""
        try:
            does = payer.explain(unsigned)
        except ValueError:
            return Allowed(before)  # who signs refuses it, and says why
        bound = payer.gas_bound(payment.sender, payment.contract, does.gas)
        return self.check(catalogue, network, before, does.fee, gas=does.gas, bound=bound)

    def reserving(self, news: News, views: Views, allowed: Allowed) -> Sequence[Change]:
        """The changes that reserve the excess, beside the withdrawal with its next version."""
        if allowed.balance is None:
            return ()
        w = allowed.withdrawal
        entry = ledger.fee_reserved(w.id, w.version, news.at, w.tenant, Amount(w.asset, allowed.excess))
        return moved(self._store, news, views, allowed.balance, entry)

    def _with_excess(self, before: Withdrawal, fee: int, rate: str | None) -> Allowed | Denied:
        excess = None if rate is None else in_coin(fee, rate) + before.charge_fixed - before.charge
        if excess is not None and excess <= 0:
            return Allowed(replace(before, charge_rate=rate))
        balance = self._store.get(Balance, tenant=before.tenant, asset=before.asset)
        if excess is not None and balance is not None and balance.available >= excess:
            return Allowed(replace(before, charge=before.charge + excess, charge_rate=rate), excess, balance)
        return Allowed(before) if before.fees_accepted else Denied(NOT_RESERVED)

    def _rate(self, catalogue: Catalogue, network: Network, w: Withdrawal) -> str | None:
        """A fee in the withdrawn coin, by the last known rates; None where one was never known."""
        coin, native = catalogue.coins[network.slug, asset_parts(w.asset)[1]], catalogue.native(network.slug)
        if coin.contract is None:
            return SAME_COIN
        rates = self._rates_of(network.realm)
        worth, price = rates.get(native.slug), rates.get(coin.slug)
        if worth is None or price is None or not price.decimal:
            return None
        return rate_text(worth.decimal, native.decimals, price.decimal, coin.decimals)


def estimated(payer: ChainPayer, payment: Payment) -> tuple[FeeEstimate, int, bool]:
    """What `payment` would cost and take, three times a plain payment's gas, and whether its sender has too little for it now.

    Raises InsufficientFunds where it has too little even to be asked about, Refused, Unavailable.
    """
    if payment.contract is None:
        estimate, short = _cost(payer, payment)
        return estimate, payer.gas_bound(payment.sender, None, estimate.gas), short
    # Of a token the node has to be asked for the bound whenever the recipient never had it.
    with meanwhile(lambda: payer.gas_bound(payment.sender, payment.contract, ANY_GAS)) as bound:
        estimate, short = _cost(payer, payment)
    return estimate, bound(), short


def _cost(payer: ChainPayer, payment: Payment) -> tuple[FeeEstimate, bool]:
    try:
        return payer.estimate(payment), False
    except InsufficientFunds:
        # Perhaps for what the recipient would burn: that is no lack of money.
        return payer.cost(payment), True


def gas_allowed(
    payer: ChainPayer, withdrawal: Withdrawal, sender: str, contract: str | None, does: Explained, signed: int = 0
) -> bool:
    """Whether bytes that do `does` take no more gas than may be signed for: three times a plain payment's, more where the merchant
    has it reserved or the operator has accepted it, and as much as was `signed` for before. Raises Unavailable."""
    if does.gas <= signed or does.gas <= payer.gas_bound(sender, contract, does.gas):
        return True
    covered = covers(withdrawal)
    return bears_fee(withdrawal) and (withdrawal.fees_accepted or covered is None or does.fee <= covered)
