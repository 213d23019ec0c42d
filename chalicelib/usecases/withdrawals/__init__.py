"""Withdrawals: rules, steps, batches, approvals, the whitelist, the line that waits for its payout."""
