"""Payouts: withdrawals become transactions, and transactions are settled."""
