"""Moves, consolidations, collections, stakes, and the UTXOs of hot wallets."""
