"""Withdrawals: rules, steps, batches, approvals, the whitelist, the payout line."""
