"""A deposit: one transfer on a chain to an address of ours, and its state."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from chalicelib.domain.ids import AssetId, NetworkId, TenantId, derived_id
from chalicelib.domain.invoices.choices import Share
from chalicelib.domain.invoices.invoices import Misdirected, Payment
from chalicelib.domain.invoices.quotes import FiatValue, Quote
from chalicelib.domain.money import Units
from chalicelib.domain.work import Work, time_order

DepositStatus = Literal["pending", "confirmed", "orphaned"]
GREY_LISTED = "grey_listed"
HELD = "held"
BELOW_MINIMUM = "below_minimum"
SET_ASIDE = "set_aside"
NATIVE_TWIN = "native_twin"
REPLACEABLE = "replaceable"
UNPRICED = "unpriced"
WAITS_IN_TIME_MS = 24 * 3600 * 1000
"""How long a payment that was seen in time may wait for its block and still be in time."""


def deposit_id(network: NetworkId, txid: str, position: str) -> str:
    """The one id of a transfer on a chain (money rule 2). `position`, as `Transfer` has it, is where it was seen first."""
    return derived_id("tx", network, txid, position)


@dataclass(frozen=True, slots=True)
class Deposit:
    """`amount` in units, times in milliseconds since 1970. `tenant` is None for the operator's own wallets.

    `flags` tells what is special about it: GREY_LISTED came from an address of the grey list; NATIVE_TWIN may be told twice by its
    block, as a token and as native coins (`usecases/deposits/native_twins.py`); HELD is credited and waits, for one of these, for
    an operator's release (`released_at`, and `released_by` the id of the key). A deposit that was released once is never held
    again. BELOW_MINIMUM was less than the coin's minDepositAmount when it was seen, and its address was that of no open invoice: it
    is recorded, counts for no invoice, and is the operator's until an operator releases it (`admitted_at`, and `admitted_by` the id
    of the key): then it has the flag no more. That is decided once, whatever the minimum and the invoice become. Where another
    block tells of another payment under the same id, all of this is decided anew.

    SET_ASIDE would have taken a sum past MOST_SUM (`domain.deposits.sums`) when it was seen or credited: it is in no sum, no
    invoice and no journal entry, whatever its status, until an operator releases it (`admitted_at`). It is decided anew when it
    comes back into the chain.

    `rate` is the rate at which it counts for an invoice whose payer chooses the coin, decided once, when it is first seen; and the
    rate of the time of a late payment, where its worth then decides about its invoice. Its block decides both anew where that came
    too long after first sight (`mined_long_after`). UNPRICED waits for the first of the two: no
    lock of the invoice held when it was paid, and no rate was fresh. Until then it counts nothing there.

    A payment that was seen waiting (bitcoin, litecoin) has no block yet: `block_number` and `block_hash` are None, `block_time` 0.
    `glimpsed_at` is when it was first seen so, and `missing_since` since when it is neither waiting nor in a block. `spends` has
    some of the outputs "txid:n" that its transaction spends, those which were in blocks then: once another transaction has spent
    one of them, it was replaced. REPLACEABLE says that it announces that itself (BIP-125). Both are gone once it is in a block.

    `worth` is what it was worth when it was first seen, where no `rate` says so: for the merchant's accounts, and no sum counts it.

    `part` is the part of its block's list that its commits rest on (`domain.chain.BlockDeposits`); None in no block, and where a
    version that knew no parts saved it last.

    `archives` names the archive's objects that have it, or once had it, newest first.

    `round` counts how often it fell out of the chain, or was gone before it was in it: crediting again is a new journal entry.
    """

    id: str
    network: NetworkId
    asset: AssetId
    tenant: TenantId | None
    txid: str
    position: str
    sender: str
    address: str
    amount: Units
    block_number: int | None
    block_hash: str | None
    block_time: int
    created_at: int
    status: DepositStatus = "pending"
    address_id: str | None = None
    invoice_id: str | None = None
    late: bool = False
    flags: tuple[str, ...] = ()
    released_at: int | None = None
    released_by: str | None = None
    admitted_at: int | None = None
    admitted_by: str | None = None
    confirmed_at: int | None = None
    glimpsed_at: int | None = None
    missing_since: int | None = None
    spends: tuple[str, ...] = ()
    rate: Quote | None = None
    worth: FiatValue | None = None
    part: int | None = None
    archives: tuple[str, ...] | None = None
    round: int = 0
    emitted: int = 0
    version: int = 1

    @property
    def held(self) -> bool:
        """Its amount is the merchant's and can not be used: it is in the purse `held`."""
        return HELD in self.flags

    @property
    def below_minimum(self) -> bool:
        """Whether it is below the coin's minimum, and so not the merchant's."""
        return BELOW_MINIMUM in self.flags

    @property
    def set_aside(self) -> bool:
        """Whether it is recorded, and in no sum."""
        return SET_ASIDE in self.flags

    @property
    def unpriced(self) -> bool:
        """Whether it waits for the rate at which it counts."""
        return UNPRICED in self.flags

    @property
    def fiat_value(self) -> FiatValue | None:
        """What it was worth when it was paid: at the rate at which it counts, where it has one. None where nobody knew a rate."""
        return self.worth if self.rate is None else self.rate.fiat_value(self.amount)

    @property
    def returned(self) -> bool:
        """Whether it came to another merchant's address on the wrong network: the operator's merchant has to return it."""
        return self.tenant is not None and self.address_id is None

    @property
    def small(self) -> bool:
        """Whether it came to a merchant's address below the minimum: it is never collected."""
        return self.below_minimum and self.tenant is not None

    @property
    def credited(self) -> bool:
        """Whether it counts for its invoice and can be used."""
        return self.status == "confirmed" and not self.held and not self.set_aside

    @property
    def awaited(self) -> bool:
        """Whether it is part of the pending sum."""
        return self.status == "pending" and not self.set_aside

    @property
    def posted(self) -> bool:
        """Whether it is posted in the journal."""
        return self.status == "confirmed" and not self.set_aside

    @property
    def suspect(self) -> bool:
        """Whether a flag speaks against it that no operator has released: it is held from its confirmation on."""
        return bool({GREY_LISTED, NATIVE_TWIN} & set(self.flags)) and self.released_at is None

    @property
    def doubtful(self) -> bool:
        """Whether it is in no block, or suspect: then it completes no invoice."""
        return self.block_number is None or self.suspect

    @property
    def releasable(self) -> bool:
        """Whether an operator can release it: it is held; or it is small or set aside, and in the chain or about to be."""
        if self.set_aside:
            return self.status != "orphaned"
        return self.tenant is not None and (self.held or (self.below_minimum and self.status != "orphaned"))

    @property
    def questioned(self) -> bool:
        """Whether something keeps it from its owner, or did: who is told of it may ask the operator for its release."""
        reasons = {GREY_LISTED, HELD, BELOW_MINIMUM, SET_ASIDE, NATIVE_TWIN}
        return bool(reasons & set(self.flags)) or self.released_at is not None or self.admitted_at is not None

    @property
    def block(self) -> tuple[int, str]:
        """Number and hash of its block. Raises LookupError while it is in none."""
        if self.block_number is None or self.block_hash is None:
            raise LookupError(f"{self.id} is in no block")
        return self.block_number, self.block_hash

    @property
    def mined_long_after(self) -> bool:
        """Whether its block came so long after first sight that the block's time alone counts."""
        seen = self.glimpsed_at
        return self.block_number is not None and seen is not None and self.block_time - seen > WAITS_IN_TIME_MS

    @property
    def paid_at(self) -> int | None:
        """The time that decides whether it was in time: the block's own time, or the earlier time at which its mempool transaction
        was seen.

        Unless the block came too long after: a payer who offers too low a fee must not hold a price open.
        """
        if self.block_number is None or self.glimpsed_at is None:
            return self.glimpsed_at if self.block_number is None else self.block_time
        return self.block_time if self.mined_long_after else min(self.block_time, self.glimpsed_at)


def payment_of(deposit: Deposit) -> Payment:
    """The deposit as its invoice shows it."""
    return Payment(
        deposit.id, deposit.txid, deposit.amount, deposit.block_number, deposit.status == "confirmed", deposit.fiat_value
    )


def share_of(deposit: Deposit | None) -> dict[str, int]:
    """The amounts that a deposit adds to the sums of its invoice, by field, in units. Nothing where it is orphaned or set
    aside."""
    if deposit is None or deposit.status == "orphaned" or deposit.set_aside:
        return {}
    if deposit.credited:
        return {"late" if deposit.late else "confirmed": deposit.amount}
    if deposit.late:
        return {"late_unconfirmed": deposit.amount}
    return {"unconfirmed": deposit.amount} | ({"doubtful": deposit.amount} if deposit.doubtful else {})


def late_worth_of(deposit: Deposit | None) -> dict[str, Fraction]:
    """The worth of the late part of that share at the deposit's own rate, by field; nothing without a rate."""
    if deposit is None or deposit.rate is None:
        return {}
    return {name: deposit.rate.worth(units) for name, units in share_of(deposit).items() if name in ("late", "late_unconfirmed")}


def counted_share(deposit: Deposit | None) -> Share:
    """The same for an invoice whose payer chooses the coin, with the rate at which it counts."""
    return Share(share_of(deposit), None if deposit is None else deposit.rate)


def misdirected_of(deposit: Deposit) -> Misdirected:
    """The deposit as an invoice shows it that it does not count for."""
    return Misdirected(deposit.id, deposit.asset, deposit.txid, deposit.amount)


def deposit_work(deposit: Deposit) -> Work:
    """The obligation to confirm a deposit, found by network and height; for a mempool transaction, to watch whether it is mined."""
    if deposit.block_number is None:
        return Work("glimpse", deposit.network, time_order(deposit.glimpsed_at or 0), deposit.id)
    return Work("deposit", deposit.network, f"{deposit.block_number:015d}", deposit.id)
