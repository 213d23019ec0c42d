"""Invoices: created, paid, expired, summarised, and shown on the checkout page."""
