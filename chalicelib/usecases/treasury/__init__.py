"""The treasury: moves between our own wallets, collection, consolidation, cold storage, stakes, nonces."""
