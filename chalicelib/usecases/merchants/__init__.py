"""Merchants: their API keys, their limits, their settings, and the signers that guard them."""
