"""Deposits, the claims of their transactions, and the bounds of sums."""
