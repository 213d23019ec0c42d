"""Collection: deposits on account networks go to the service wallets."""
