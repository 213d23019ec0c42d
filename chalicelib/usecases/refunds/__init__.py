"""Refunds of invoices and payout links: made, claimed, ordered as withdrawals, cancelled, expired."""
