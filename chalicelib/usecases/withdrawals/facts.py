"""What a decision about withdrawals begins with and ends in: the payments, the facts that were read, and the ruling."""

from __future__ import annotations

from dataclasses import dataclass, field

from chalicelib.domain.addresses.addresses import Wallet, Watched
from chalicelib.domain.chain import FeeQuote
from chalicelib.domain.merchants.settings import MerchantSettings
from chalicelib.domain.withdrawals.approvals import Approval, ApprovalReason
from chalicelib.domain.withdrawals.fees import Charge
from chalicelib.domain.withdrawals.limits import PayeeSpent, Spent
from chalicelib.domain.withdrawals.whitelist import WhitelistEntry
from chalicelib.usecases.base.awaited_deposits import Owned


@dataclass(frozen=True, slots=True)
class Output:
    """One payment of a request. `address_field` and `amount_field` name it in errors."""

    to_address: str
    amount: int
    address_field: str = "to_address"
    amount_field: str = "amount"


@dataclass(frozen=True, slots=True)
class Reserved:
    """What is settled already about a payment: `units` of it are frozen, and with `any_address` it was allowed to addresses that
    are not on the whitelist."""

    units: int = 0
    any_address: bool = False


NOTHING_RESERVED = Reserved()


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that is read for a decision."""

    owned: Owned
    spent: Spent
    own: dict[str, PayeeSpent]
    quote: FeeQuote | None
    settings: MerchantSettings
    hot: Wallet | None
    entries: dict[str, WhitelistEntry]
    grey: frozenset[str]
    ours: dict[str, Watched]
    """Those of the addresses that are of this service, of any merchant: on this network, or on another one of its family."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """Yes: what to store beside the withdrawals: `spent`, and `own` of single addresses. For each output: `charges`, its charge
    beside its amount, `reasons` why it needs an approval, and `limited`, whether it counts towards limits of its address."""

    owned: Owned
    spent: Spent
    own: tuple[PayeeSpent, ...]
    fee: int
    charges: tuple[Charge, ...]
    reasons: tuple[tuple[ApprovalReason, ...], ...]
    limited: tuple[bool, ...]
    settings: MerchantSettings = field(repr=False)

    def approval(self, reasons: tuple[ApprovalReason, ...]) -> Approval | None:
        if not reasons:
            return None
        config = self.settings.multisig
        signed = "multisig" in reasons
        return Approval(reasons, config.required_signatures if signed else 0, config.signers if signed else ())
