"""Reconciliation: compares the ledger with the chains, and audits the whole store."""
