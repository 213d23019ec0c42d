"""Bounds of an attempt when it is signed (money rule 14): how often it is replaced, and at what fee.

When it was asked for, and built, the same was checked. Until it is signed its record may have been altered, and what a record says
of fees is no measure: for a first attempt the fees of now by the node's word are (`quoted`), for a replacement the bytes of the
first attempt, which the wallet's key signed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.transactions.outgoing import Attempt
from chalicelib.domain.transactions.replacements import RenewalRules, Replaced
from chalicelib.domain.treasury.hot_utxos import MOST_RATE
from chalicelib.usecases.ports.accounts import ChainPayer, Explained, Payment
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.failures import InsufficientFunds, Refused, Unavailable
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.usecases.transactions.losses import has_nonces
from chalicelib.usecases.transactions.signed_bytes import fee_signed

log = logging.getLogger(__name__)


class OfAccounts(Replaced, Protocol):
    """A payment, a move or a stake."""

    @property
    def id(self) -> str: ...


class OutSigned(OfAccounts, Protocol):
    """A payment or a move whose newest attempt is signed."""

    @property
    def attempts(self) -> Sequence[Attempt]: ...


def worn_out(network: Network, renewals: RenewalRules, record: OfAccounts) -> bool:
    """Whether it was replaced as often as it may be; with an alarm."""
    if not renewals.exhausted(record, expires=not has_nonces(network)):
        return False
    log.error("ALARM %s: %s was replaced %d times and is in no block", network.id, record.id, len(record.earlier))
    return True


def affordable(
    payer: ChainPayer,
    rules: AddressRules,
    network: Network,
    renewals: RenewalRules,
    record: OutSigned,
    does: Explained,
    signer: str,
) -> bool:
    """Whether a replacement of `record` that does `does` may cost what it does, measured by its first attempt.

    Raises OrderMismatch, with an alarm, unless `signer` signed that attempt and it does the same as `does`.
    """
    fee = fee_signed(payer, rules, network, record.attempts[-1], does, signer)
    if fee is None:
        log.error("ALARM %s: %s differs from what was signed in %s", network.id, record.id, "its first attempt")
        raise OrderMismatch(f"{record.id} differs from what was signed in its first attempt")
    return renewals.within(fee, does.fee)


def quoted(payer: ChainPayer, payment: Payment) -> int | None:
    """The most that bytes of `payment` could cost if they were built now, whether or not the sender has that. None where the chain
    would refuse it whatever it pays: then only what the payer decodes at all bounds it. Raises Unavailable.

    Asked for one unit, and as of a nonce that has to be used: neither a wallet that has too little for now nor a recipient that
    takes nothing any more keeps the bound from being known.
    """
    try:
        cost = payer.cost(replace(payment, amount=1, gas="used"))
    except InsufficientFunds as nothing:
        raise Unavailable(f"{payment.sender} has nothing of its coin, and nobody can say what a transfer costs") from nothing
    except Refused:
        return None
    return cost.fee if cost.stated is None else cost.stated


class Priced(Protocol):
    @property
    def fee(self) -> int: ...


def out_of_bounds(renewals: RenewalRules, earlier: Sequence[Priced], fee: int, vsize: int) -> list[str]:
    """Which bounds a UTXO attempt in place of `earlier` ones breaks at `fee` units for `vsize` virtual bytes. `earlier` are the
    oldest first, and none where it is the first itself.

    The fee on record of the first attempt is the measure: before a signature it is compared with the bytes (`utxo.proofs`).
    """
    most = MOST_RATE * vsize // 1000
    if not earlier:
        return [] if 0 < fee <= most else ["fee's bounds"]
    wrong = ["number of replacements"] if renewals.worn_out(len(earlier) - 1) else []
    return wrong if earlier[-1].fee < fee <= min(earlier[0].fee * renewals.times, most) else [*wrong, "fee's bounds"]
