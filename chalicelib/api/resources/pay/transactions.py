"""Transactions that a payer's browser wallet signs: made here, and sent from here, for wallets that can do neither in our page."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.errors import RateLimitExceeded
from chalicelib.api.fields import AddressText
from chalicelib.api.models import Request
from chalicelib.api.routes import endpoint
from chalicelib.domain.catalogue.explorers import transaction_url
from chalicelib.domain.times import iso
from chalicelib.usecases.invoices.payer_transactions import TooManySent

_PRIVATE = {"Cache-Control": "no-store"}


class TransactionRequest(Request):
    """The account that pays."""

    from_: Annotated[AddressText, Field(alias="from", examples=["TQn9Y2khEsLJW1ChVWFMSMeRDow5KcbLSE"])]


class SignedTransaction(Request):
    """A transaction that the account's wallet has signed."""

    raw_data_hex: Annotated[
        str,
        Field(
            min_length=2, max_length=2048, description="The bytes that were signed, in hex, as they were built.", examples=["0a02"]
        ),
    ]
    signature: Annotated[str, Field(min_length=130, max_length=132, description="65 bytes in hex.", examples=["00" * 65])]


@endpoint(
    "POST", "/pay/{invoiceId}/transaction", family="object", level="public", body=TransactionRequest,
    answer="checkout.PayerTransaction", errors=("NOT_FOUND", "VALIDATION_ERROR"),
    summary="The transaction that pays an invoice, for a wallet to sign",
)  # fmt: skip
def build_transaction(ctx: Ctx, body: TransactionRequest) -> Answer:
    """For Tron, whose wallets can not build one within the page. It moves what is missing now from the account `from` to the
    invoice's address, and stores nothing. `transaction` is what TronLink signs. Another network, a simulated one, or an invoice
    that waits for no payment: `VALIDATION_ERROR`."""
    made = ctx.services.payer_transactions.prepare(ctx.param("invoiceId"), body.from_)
    return Answer({"transaction": dict(made.transaction), "expiresAt": iso(made.expires_at)}, headers=_PRIVATE)


@endpoint(
    "PUT", "/pay/{invoiceId}/transaction", family="object", level="public", body=SignedTransaction,
    answer="checkout.SentTransaction", errors=("NOT_FOUND", "VALIDATION_ERROR"),
    summary="Send the transaction that a wallet has signed",
)  # fmt: skip
def send_transaction(ctx: Ctx, body: SignedTransaction) -> Answer:
    """Takes only a transaction that pays exactly what is missing of this invoice, signed by the account that pays; another one, or
    one that the network does not take (the account has too little), is `VALIDATION_ERROR`, and nothing was sent. The same
    transaction may be sent again. At most 10 in an hour for each caller on each invoice. A payment counts once the network has it
    in a block, as any other."""
    try:
        sent = ctx.services.payer_transactions.send(
            ctx.param("invoiceId"), body.raw_data_hex, body.signature, ctx.source_ip, ctx.now_ms
        )
    except TooManySent as refused:
        raise RateLimitExceeded(refused.usage, " that send a transaction for this invoice") from None
    url = transaction_url(sent.network, sent.txid)
    shown: dict[str, Any] = {"txId": sent.txid} | ({} if url is None else {"explorerUrl": url})
    return Answer(shown, headers=_PRIVATE)
