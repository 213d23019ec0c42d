"""Transactions for payers whose browser wallet can not build its own (TronLink): built from an invoice, checked and sent.

Building asks no node and stores nothing: the block that a transaction refers to is one that the scanner has passed. A signed one is
read byte by byte, and has to pay exactly what this invoice asks for now, by the key of the account that pays; then it is handed to
the network. Its id is stored before (`PayerSent`), so that an answer which was lost can be asked for again: the account may have
too little by then, because it has paid. What counts as a payment is what the scanner finds in a block. Dying in between loses
nothing, since the page still has the signed transaction, and the chain never takes the same one twice.

No key of ours has a part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Cursor
from chalicelib.domain.errors import BusinessRule, InvalidParameter, ServiceError
from chalicelib.domain.ids import Realm
from chalicelib.domain.invoices.sendings import HOUR_MS, MOST_SENT, PayerSendings, PayerSent, caller_of
from chalicelib.usecases.invoices.checkout import Checkout, Checkouts
from chalicelib.usecases.merchants.access import Usage, Window, source_of
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.counters import Counters
from chalicelib.usecases.ports.failures import InsufficientFunds, Refused, Unavailable
from chalicelib.usecases.ports.payer_transactions import PayerSigned, PayerTransactions, PayerTransfer
from chalicelib.usecases.ports.store import Store

FAMILIES = ("tron",)
"""The families whose wallets need it. Those of EVM networks build by themselves, and those of coins pay by the payment URI."""
LIFE_MS = 10 * 60_000
"""How long a payer may think about a transaction, at most."""
LEAST_LIFE_MS = 60_000
"""And at least, where the time to pay or the rate ends sooner: the wallet asks, and the network takes a moment."""
_OLD_MS = 12 * HOUR_MS
"""A transaction may refer to the last 65,536 blocks, which are made in 54 hours (developers.tron.network, "Transactions")."""
_WINDOW = Window("sendings", HOUR_MS // 1000, MOST_SENT)
_KEPT_SECONDS = 2 * 3600


class TooManySent(ServiceError):
    """A caller has handed over all the transactions of an invoice that it may in an hour, see `usage`."""

    code = "RATE_LIMIT_EXCEEDED"

    def __init__(self, usage: Usage) -> None:
        super().__init__(f"At most {usage.window.limit} transactions for one invoice in an hour")
        self.usage = usage


@dataclass(frozen=True, slots=True)
class Prepared:
    """An unsigned transaction as a wallet takes it, and until when the chain does (ms since 1970)."""

    transaction: Mapping[str, Any]
    expires_at: int


@dataclass(frozen=True, slots=True)
class Sent:
    """The id of a transaction that the network has, and the network."""

    txid: str
    network: Network


class InvoiceTransactions:
    def __init__(
        self,
        store: Store,
        checkouts: Checkouts,
        transactions: Callable[[Network], PayerTransactions],
        rules: AddressRules,
        counters: Counters,
        clock_of: Callable[[Realm], Clock],
    ) -> None:
        self._store, self._checkouts, self._transactions = store, checkouts, transactions
        self._rules, self._counters, self._clock_of = rules, counters, clock_of

    def prepare(self, invoice_id: str, sender: str) -> Prepared:
        """The transaction by which the account `sender` pays what is missing of an invoice of any merchant.

        Raises NotFound, InvalidParameter (no such account), BusinessRule (nothing is to be paid, or not on such a network),
        Unavailable.
        """
        found = self._checkouts.find(invoice_id)
        wanted = _demand_payable(found, self._sender(sender))
        cursor = self._store.get(Cursor, network=found.network.id)
        now = self._clock_of(found.network.realm).now_ms()
        if cursor is None or cursor.halted is not None or now - cursor.block_time > _OLD_MS:
            raise BusinessRule("network", "takes no payment from here at the moment: pay by the address, or try again later")
        until = _ends(found, max(now, cursor.block_time))
        try:
            made = self._transactions(found.network).build(wanted, _deep(cursor, found.network), now, until)
        except ValueError as reason:
            raise BusinessRule("from", str(reason)) from reason
        return Prepared(made, until)

    def send(self, invoice_id: str, unsigned: str, signature: str, source: str, now_ms: int) -> Sent:
        """Hand a signed transaction to the network, if it pays exactly what is missing of the invoice. `source` is the caller's IP
        address, `now_ms` the machine's time that its transactions are counted by. Safe to repeat.

        Raises NotFound, BusinessRule (another transaction, or one that the network does not take), TooManySent, Unavailable.
        """
        found = self._checkouts.find(invoice_id)
        _demand_network(found)
        try:
            signed = self._transactions(found.network).read(unsigned, signature)
        except ValueError as reason:
            raise BusinessRule("transaction", f"is not the one to sign: {reason}") from reason
        if any(payment.hash == signed.txid for payment in found.invoice.payments):
            return Sent(signed.txid, found.network)
        if _demand_payable(found, signed.transfer.sender) != signed.transfer:
            raise BusinessRule("transaction", "does not pay what is missing now: begin anew")
        if signed.expires_at <= self._clock_of(found.network.realm).now_ms():
            raise BusinessRule("transaction", "came too late to be sent: begin anew")
        self._count(found.invoice.id, source, now_ms)
        return self._sent(found.network, found.invoice.id, signed, now_ms)

    def _sent(self, network: Network, invoice_id: str, signed: PayerSigned, now_ms: int) -> Sent:
        transactions, key = self._transactions(network), {"invoice": invoice_id, "txid": signed.txid}
        if self._store.get(PayerSent, **key) is None:
            _told(network, lambda: transactions.rehearse(signed.transfer))
            self._counters.up(PayerSent, key, "sent", 1, ttl=(now_ms + LIFE_MS) // 1000 + _KEPT_SECONDS)
        _told(network, lambda: transactions.send(signed))
        return Sent(signed.txid, network)

    def _sender(self, text: str) -> str:
        try:
            return self._rules.normalize("tron", text)
        except ValueError as reason:
            raise InvalidParameter.one("from", text[:100], str(reason)) from reason

    def _count(self, invoice_id: str, source: str, now_ms: int) -> None:
        end = (now_ms // HOUR_MS + 1) * HOUR_MS // 1000
        key = {"invoice": invoice_id, "caller": caller_of(invoice_id, source_of(source)), "hour": f"{now_ms // HOUR_MS:09d}"}
        if not self._counters.up(PayerSendings, key, "sent", MOST_SENT, ttl=end + _KEPT_SECONDS):
            raise TooManySent(Usage(_WINDOW, 0, end))


def _told(network: Network, ask: Callable[[], None]) -> None:
    """Ask the network; its refusals, and its silence, as rules for the caller."""
    try:
        ask()
    except InsufficientFunds as reason:
        raise BusinessRule("from", "has too little, for the amount or for the network's fee: nothing was sent") from reason
    except Refused as reason:
        raise BusinessRule("transaction", f"is refused by the network: {reason}") from reason
    except (Unavailable, LookupError) as reason:
        # 503 is no status of the interface, and a 500 would be an alarm: the transaction is right, and can be sent again.
        raise BusinessRule("network", f"{network.name} does not answer now: send the same transaction again") from reason


def _demand_network(found: Checkout) -> None:
    if found.network.family not in FAMILIES:
        raise BusinessRule("network", f"has wallets of its own: {found.network.name} is paid by the address or the payment URI")
    if found.network.simulated:
        raise BusinessRule("network", "is simulated, and no wallet can pay on it: pay with POST /sandbox/deposits")


def _demand_payable(found: Checkout, sender: str) -> PayerTransfer:
    """The transfer that pays what is missing now. Raises BusinessRule."""
    _demand_network(found)
    invoice = found.invoice
    if not found.seconds_left or not found.locked or not invoice.to_send or invoice.address is None:
        raise BusinessRule("invoice", "waits for no payment now")
    return PayerTransfer(sender, invoice.address, found.coin.contract, invoice.to_send)


def _ends(found: Checkout, now: int) -> int:
    """Until when the chain may take the transaction: no longer than a payment counts in time and at its rate, where that leaves
    time enough."""
    left = found.seconds_left if found.lock_left is None else min(found.seconds_left, found.lock_left)
    return now + min(LIFE_MS, max(LEAST_LIFE_MS, left * 1000))


def _deep(cursor: Cursor, network: Network) -> str:
    """The hash of a block that is in the chain for good, or of the newest where that is not remembered."""
    return cursor.recent.get(str(cursor.number - network.confirmations), cursor.hash)
