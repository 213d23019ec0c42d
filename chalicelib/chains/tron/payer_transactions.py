"""Transactions that a payer's browser wallet signs on Tron: built from blocks that we have scanned, read, and sent.

A wallet's script in a page builds transactions by asking a node, which the page's policy forbids. So they are built here, and the
wallet signs. Implements `usecases.ports.payer_transactions.PayerTransactions`. Holds no key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from chalicelib.chains.tron import transactions
from chalicelib.chains.tron.fees import MOST_FEE_LIMIT
from chalicelib.chains.tron.payer import TronPayer
from chalicelib.usecases.ports.accounts import Payment
from chalicelib.usecases.ports.payer_transactions import PayerSigned, PayerTransfer
from chalicelib.usecases.ports.signing import Signature

FEE_LIMIT = 100_000_000
"""100 TRX: the most that a token's transfer may burn of the payer's. One to an address that had none of the token takes 130,000
energy, which was 13 to 55 TRX between 2024 and 2026. `rehearse` asks the network before anything is burnt."""
_BLOCK_ID = re.compile(r"[0-9a-f]{64}", re.ASCII)
_HEX = re.compile(r"(?:0x)?((?:[0-9a-fA-F]{2})+)", re.ASCII)
_SIGNATURE_BYTES = 65
_MOST_BYTES = 1024


class TronPayerTransactions:
    """`payer` is asked for when something is sent, and not before."""

    def __init__(self, payer: Callable[[], TronPayer]) -> None:
        self._payer = payer

    def build(self, transfer: PayerTransfer, block_hash: str, now_ms: int, expires_at: int) -> Mapping[str, Any]:
        """The unsigned transaction in the form of Tron's nodes. Raises ValueError."""
        if not _BLOCK_ID.fullmatch(block_hash):
            raise ValueError("the block has no id of Tron's")
        if transfer.sender == transfer.recipient:
            raise ValueError("the account that pays is the one that is paid")
        unsigned = transactions.Unsigned(
            "TransferContract" if transfer.contract is None else "TriggerSmartContract",
            transfer.sender,
            transfer.amount,
            transactions.reference_to(block_hash, expires_at, now_ms),
            transfer.recipient,
            transfer.contract,
            fee_limit=0 if transfer.contract is None else FEE_LIMIT,
        )
        transactions.decode(unsigned.encode())
        return unsigned.json()

    def read(self, unsigned: str, signature: str) -> PayerSigned:
        """The signed transaction. Wallets end a signature with 0 or 1, or with 27 or 28. Raises ValueError."""
        raw, signed = _bytes(unsigned, "the transaction"), _bytes(signature, "the signature")
        if len(signed) != _SIGNATURE_BYTES or signed[64] not in (0, 1, 27, 28):
            raise ValueError("the signature is none of Tron's")
        decoded = transactions.decode(raw)
        if decoded.recipient is None or decoded.kind not in ("TransferContract", "TriggerSmartContract"):
            raise ValueError("the transaction is no payment")
        if decoded.fee_limit > MOST_FEE_LIMIT:
            raise ValueError("the transaction may burn more than a payment costs")
        parts = Signature(int.from_bytes(signed[:32]), int.from_bytes(signed[32:64]), signed[64] % 27)
        made = transactions.assemble(raw, parts)
        transfer = PayerTransfer(decoded.owner, decoded.recipient, decoded.contract, decoded.amount)
        return PayerSigned(transfer, made.txid, decoded.reference.expiration, made.raw)

    def rehearse(self, transfer: PayerTransfer) -> None:
        """Ask the node whether the transfer would succeed now. Raises Refused, InsufficientFunds, Unavailable."""
        self._payer().estimate(Payment(transfer.sender, transfer.recipient, transfer.contract, transfer.amount, 0))

    def send(self, signed: PayerSigned) -> None:
        """Hand it to the node. Safe to repeat. Raises Refused, InsufficientFunds, Unavailable."""
        self._payer().broadcast(signed.raw)


def _bytes(text: str, what: str) -> bytes:
    found = _HEX.fullmatch(text)
    if found is None or len(text) > 2 * _MOST_BYTES:
        raise ValueError(f"{what} is not in hexadecimal")
    return bytes.fromhex(found[1])
