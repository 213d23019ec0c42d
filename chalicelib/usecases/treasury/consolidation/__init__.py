"""Consolidation: UTXOs of deposits and hot wallets go to another wallet of ours."""
