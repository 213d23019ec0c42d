"""Deposit addresses: derived, watched, bounded by a daily limit and by the ceilings of the index pools."""
