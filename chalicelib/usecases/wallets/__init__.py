"""Service wallets: registration, look-up, on-chain balances and UTXOs."""
