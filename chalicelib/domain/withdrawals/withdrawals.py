"""Withdrawals: states and transitions, and the payment order that pays one on the chain."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from chalicelib.domain.ids import AssetId, NetworkId, TenantId
from chalicelib.domain.invoices.quotes import FiatValue
from chalicelib.domain.refunds.refunds import Repays
from chalicelib.domain.screening.risk import Assessment
from chalicelib.domain.transactions.outgoing import Attempt, Outgoing
from chalicelib.domain.versions import next_version
from chalicelib.domain.withdrawals.approvals import Approval
from chalicelib.domain.withdrawals.fee_budget import Borne

WithdrawalStatus = Literal["pending", "processing", "broadcasting", "confirming", "confirmed", "failed", "cancelled"]
PendingReason = Literal["approval", "liquidity", "risk", "halted", "fees", "suspended"]
Priority = Literal["low", "normal", "high", "urgent"]
PRIORITIES: tuple[Priority, ...] = ("low", "normal", "high", "urgent")
FEE_TENTHS: dict[Priority, int] = {"low": 8, "normal": 10, "high": 15, "urgent": 20}
"""The published multipliers, in tenths."""
MINUTES: dict[Priority, tuple[int, int]] = {"low": (30, 60), "normal": (10, 30), "high": (5, 15), "urgent": (1, 10)}
"""The published confirmation times."""

_NEXT: dict[str, frozenset[str]] = {
    "pending": frozenset({"processing", "cancelled", "failed"}),
    "processing": frozenset({"broadcasting", "failed"}),
    "broadcasting": frozenset({"confirming", "failed"}),
    "confirming": frozenset({"confirmed", "failed"}),
    # Back only when a reorganisation takes the transaction out of the chain after it was settled.
    "confirmed": frozenset({"confirming"}),
    "failed": frozenset({"confirming"}),
    "cancelled": frozenset(),
}
FINAL: frozenset[str] = frozenset({"confirmed", "failed", "cancelled"})


def may_follow(status: str, following: str) -> bool:
    """Whether a withdrawal may go from `status` to `following` in one step."""
    return following in _NEXT[status]


def fee_at(fee: int, priority: Priority) -> int:
    """The fee of a payment that costs `fee` at the priority normal; fractions of a unit count as one."""
    return -(-fee * FEE_TENTHS[priority] // 10)


def transaction_status(status: str) -> Literal["pending", "confirmed", "failed"]:
    """The status of a withdrawal's transaction in lists of transactions."""
    return "confirmed" if status == "confirmed" else "failed" if status == "failed" else "pending"


FEES_WAIT_MS = 24 * 3_600_000
"""How long a withdrawal whose own fee is too high waits for a lower one before it fails (milliseconds)."""


@dataclass(frozen=True, slots=True)
class FeeWait:
    """A withdrawal's wait with the reason `fees`. `since`: since when its own fee is too high, in milliseconds since 1970; None
    while it is not (its merchant's budget is used up, or it waits no more). `accepted_by` is the id of the operator's key that
    accepted the fee."""

    since: int | None = None
    accepted_by: str | None = None


def ended(wait: FeeWait | None) -> FeeWait | None:
    """The same record after the wait."""
    return None if wait is None else replace(wait, since=None)


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """`amount` in units of `asset`, `fee` in units of `fee_asset`, times in milliseconds since 1970.

    `approval` is there where signers or the operator have to agree; until then there is no payout work and no command for it.
    `limited`: it counts towards the limits that its address has on the whitelist. `charge` is what is reserved of the merchant's
    balance for the network's fee, in units of `asset`; 0 where the hot wallet pays. `risk`: what was found when it was about to
    begin, if anything. `charge_rate` is the rate that `charge` was reserved at (`domain.withdrawals.fees`), `charge_fixed` the part
    of `charge` that is no fee of this payment and is debited whole, and `debited` what was debited of it: None until the chain has
    decided. `fee_wait` is there once it has waited with the reason `fees`. `borne` is what of its fee counts towards the merchant's
    fee budget, `uncharged` what collecting costs, in units of `fee_asset`, where its address was known as ours only when it began.
    `line` is where its open payout stands (`domain.withdrawals.payout_line`); None in records from before there was a line.
    `slot` is that of the hot wallet it was started with, `from_address`: the address decides which key signs, the slot only which
    group its commands are in. `repays` is the refund or payout link that it pays, None for any other withdrawal. `worth` is what it
    was worth when it was first confirmed, None where nobody knew a rate.
    """

    id: str
    tenant: TenantId
    network: NetworkId
    asset: AssetId
    amount: int
    to_address: str
    fee_asset: AssetId
    created_at: int
    updated_at: int
    status: WithdrawalStatus = "pending"
    pending_reason: PendingReason | None = None
    failure: str | None = None
    priority: Priority = "normal"
    metadata: dict[str, Any] = field(default_factory=dict)
    from_address: str | None = None
    fee: int = 0
    order_id: str | None = None
    txid: str | None = None
    confirmations: int = 0
    block_number: int | None = None
    confirmed_at: int | None = None
    emitted: int = 0
    batch_id: str | None = None
    approval: Approval | None = None
    limited: bool = False
    charge: int = 0
    block_hash: str | None = None
    risk: Assessment | None = None
    charge_rate: str | None = None
    charge_fixed: int = 0
    debited: int | None = None
    fee_wait: FeeWait | None = None
    borne: Borne | None = None
    uncharged: int = 0
    line: str | None = None
    repays: Repays | None = None
    worth: FiatValue | None = None
    slot: int = 0
    version: int = 1

    @property
    def reserved(self) -> int:
        """Units of `asset` that it reserves of the merchant's balance."""
        return self.amount + self.charge

    @property
    def fees_accepted(self) -> bool:
        """Whether the operator accepted its fee: it does not wait with the reason `fees` again."""
        return self.fee_wait is not None and self.fee_wait.accepted_by is not None

    @property
    def waits_for_fees(self) -> bool:
        """Whether it waits with the reason `fees`, which an operator may lift."""
        return self.status == "pending" and self.pending_reason == "fees" and not self.fees_accepted

    @property
    def waits_for_approval(self) -> bool:
        return self.status == "pending" and self.approval is not None and not self.approval.given


@dataclass(frozen=True, slots=True)
class Usurped:
    """A foreign transaction that used one of our nonces: seen up to block `height`, in the time between the reorganisations
    `epoch` and the next (`domain.chain.Cursor`). `used` is how many nonces of the wallet were used by then.
    """

    height: int
    epoch: int
    used: int


@dataclass(frozen=True, slots=True)
class PaymentOrder(Outgoing):
    """One approved payment out of one wallet with one nonce: the ordered payment, the signed one, and nothing else ever.

    `unsigned` is the exact bytes whose digest is signed, as hex, from which everything can be decoded again.
    `raw` and `txid` are set together before the first broadcast (money rule 5): those of the newest attempt. `earlier` are the
    ones it replaced, oldest first: whichever of all of them is in the chain has paid. `signed_at` is when the newest was signed,
    in milliseconds since 1970, `fee` the most that it can cost. `renew` says that the newest should be replaced, which only the
    function that signs can do. `bundle` names the transaction that pays this and other orders at once (UTXO); the bytes are
    there then, not here, and `nonce` is -1. `round` counts how often a reorganisation undid its settlement. `usurped` is there
    while the chain says that something else used its nonce.
    """

    id: str
    network: NetworkId
    wallet: str
    nonce: int
    withdrawal_id: str
    tenant: TenantId
    asset: AssetId
    contract: str | None
    recipient: str
    amount: int
    unsigned: str
    created_at: int
    raw: str | None = None
    txid: str | None = None
    state: Literal["built", "signed", "settled", "bounced"] = "built"
    round: int = 0
    fee: int = 0
    signed_at: int = 0
    earlier: tuple[Attempt, ...] = ()
    renew: bool = False
    bundle: str | None = None
    usurped: Usurped | None = None
    version: int = 1

    @property
    def unbundled(self) -> bool:
        """Whether its bundle was built without it (UTXO): it has no bytes, and the next gathering bundle may take it."""
        return self.bundle is None and self.nonce < 0

    @property
    def newest(self) -> Attempt | None:
        """None as well of an order that a bundle pays: the bytes are there."""
        return Attempt.stored(self.raw, self.txid, self.fee, self.signed_at)

    def signed_as(self, attempt: Attempt) -> PaymentOrder:
        return replace(
            next_version(self), state="signed", raw=attempt.raw, txid=attempt.txid, fee=attempt.fee, signed_at=attempt.at,
            earlier=self.replaced, renew=False,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class NonceUse:
    """The order or move, `owner` by its id, that a wallet's nonce was allotted to. Stored with the allotment and never changed:
    the signed bytes have the nonce that is here, whatever the order says by then."""

    owner: str
    network: NetworkId
    wallet: str
    nonce: int
    version: int = 1


@dataclass(frozen=True, slots=True)
class NonceCounter:
    """The next nonce of a wallet. Allotted only together with the order that uses it, so there is never a gap.

    `foreign` are ranges (first, last) of nonces that are nobody's here: somebody else used them with the wallet's key, or, on a
    chain without nonces, what had them was dropped.
    """

    network: NetworkId
    wallet: str
    next: int
    foreign: tuple[tuple[int, int], ...] = ()
    version: int = 1

    def caught_up(self, used: int) -> NonceCounter:
        """The version to save, where `used` nonces of the wallet are used for good and fewer were allotted."""
        return replace(next_version(self), next=used, foreign=(*self.foreign, (self.next, used - 1)))

    def without(self, nonce: int) -> NonceCounter:
        """The version to save, where nothing was signed for `nonce`, and it is not to be used: the last one is given again."""
        if nonce + 1 == self.next:
            return replace(next_version(self), next=nonce)
        return replace(next_version(self), foreign=(*self.foreign, (nonce, nonce)))
