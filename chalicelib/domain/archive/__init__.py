"""Old payments that are kept outside the tables: what may go there, and the postings that stand for theirs."""

from __future__ import annotations

from chalicelib.domain.addresses.addresses import Address
from chalicelib.domain.deposits.claims import LogClaim
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.ledger import JournalEntry

KINDS: dict[str, type] = {kind.__name__: kind for kind in (Invoice, Deposit, Address, JournalEntry, LogClaim)}
"""The types of the records in the archive, by their names there."""
