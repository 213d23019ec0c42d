"""Invoices: made, paid, expired, added up, and shown on the page to pay on."""
