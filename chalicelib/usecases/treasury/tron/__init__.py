"""Tron alone: stakes of TRX, and loans of energy."""
