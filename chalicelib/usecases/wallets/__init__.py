"""Service wallets: registered, looked up, their balances on the chain and their UTXOs."""
