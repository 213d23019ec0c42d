"""Deposit addresses: derived, watched, bounded a day and by the ceilings of the index pools."""
