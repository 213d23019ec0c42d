"""Withdrawals, batches, bundles, approvals, limits, the whitelist, fees."""
