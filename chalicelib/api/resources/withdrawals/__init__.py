"""Withdrawals: asked for, listed, approved, stopped."""
