"""Tron alone: stakes of TRX, and energy loans."""
