"""Consolidation: UTXOs of deposits and hot wallets go to a service wallet."""
