"""Transactions of UTXO networks: bundles of payments, and moves of UTXOs between wallets of ours."""
