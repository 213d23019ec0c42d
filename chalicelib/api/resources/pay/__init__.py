"""The payer's endpoints: the checkout page and its choice, and transactions for browser wallets to sign."""
