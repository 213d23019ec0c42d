"""The treasury: moves between our wallets, collection, consolidation, cold storage, stakes, nonces."""
