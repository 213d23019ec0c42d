"""Moves: single transactions between our wallets on account networks."""
