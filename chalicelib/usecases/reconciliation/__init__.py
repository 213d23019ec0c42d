"""Reconciliation: the ledger against the chains, and the audit of the whole store."""
