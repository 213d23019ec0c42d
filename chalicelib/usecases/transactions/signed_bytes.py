"""Attempts in flight on account networks, read from their signed bytes alone: a replacement may be signed only on this ground.

A replacement keeps the nonce (on Tron: waits for the end) of what it replaces. A record that says which that is may have been
altered; the signature of the wallet's own key can not have been (money rules 5 and 7).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.transactions.outgoing import Attempt
from chalicelib.usecases.base.address_forms import form_or_none, same_place
from chalicelib.usecases.ports.accounts import ChainPayer, Explained, Opened
from chalicelib.usecases.ports.addresses import AddressRules


class Opens(Protocol):
    """As `ChainPayer` and `StakingNode`."""

    def opened(self, raw: str) -> Opened: ...


class Ordered(Protocol):
    """A payment or a move, as its record says."""

    @property
    def contract(self) -> str | None: ...

    @property
    def recipient(self) -> str: ...

    @property
    def amount(self) -> int: ...

    @property
    def nonce(self) -> int | None: ...


def unlike_ordered(
    payer: ChainPayer, rules: AddressRules, network: Network, record: Ordered, sender: str, attempt: Attempt
) -> list[str]:
    """In what `record`, which `sender` pays, is not what the signed bytes of its `attempt` do. Whether they paid, the record alone
    can not tell: of what it was altered to name, the receipt is another's.

    Nothing where a restore has forgotten the bytes: then the blocks are asked (`forgotten`).
    """

    def form(address: str | None) -> str | None:
        return form_or_none(rules, network, address)

    if attempt.forgotten:
        return []
    try:
        found = payer.opened(attempt.raw)
        does = payer.explain(found.unsigned)
    except ValueError:
        return ["signed bytes"]
    facts: dict[str, tuple[object, object]] = {
        "id": (found.txid, attempt.txid),
        "wallet": (form(found.signer), form(sender)),
        "nonce": (record.nonce if does.nonce is None else does.nonce, record.nonce),
        "recipient": (form(does.recipient), form(record.recipient)),
        "contract": (form(does.contract), form(record.contract)),
        "amount": (does.amount, record.amount),
    }
    return [name for name, (signed, recorded) in facts.items() if signed != recorded]


def unlike_signed(
    payer: Opens, rules: AddressRules, network: Network, raw: str, txid: str, unsigned: str, signer: str
) -> list[str]:
    """In what a record of signed bytes is not what its `raw` is; nothing where `signer` signed exactly `unsigned`, under `txid`."""
    try:
        found = payer.opened(raw)
    except ValueError:
        return ["signed bytes"]
    facts = {
        "bytes that were signed": found.unsigned == unsigned,
        "id of what was signed": found.txid == txid,
        "who signed": same_place(rules, network, found.signer, signer),
    }
    return [name for name, same in facts.items() if not same]


def fee_signed(
    payer: ChainPayer, rules: AddressRules, network: Network, attempt: Attempt, does: Explained, signer: str
) -> int | None:
    """The most that `attempt` could cost by its own signed bytes, in units of the native coin: a record may state any fee.

    None unless `signer` signed it, under its id, and it does the same as `does` but for fee and gas.
    """
    try:
        found = payer.opened(attempt.raw)
        did = payer.explain(found.unsigned)
    except ValueError:
        return None
    if unlike_signed(payer, rules, network, attempt.raw, attempt.txid, found.unsigned, signer):
        return None
    return did.fee if replace(did, fee=does.fee, gas=does.gas) == does else None
