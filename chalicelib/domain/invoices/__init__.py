"""Invoices: the record, the settings, the totals."""
