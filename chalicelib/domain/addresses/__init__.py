"""Watched addresses, service wallets, and the pools of indexes."""
