"""Collection: deposits on networks of accounts go to the service wallets."""
