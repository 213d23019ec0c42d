"""Moves: single transactions between our own wallets on networks of accounts."""
