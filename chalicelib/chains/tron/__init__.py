"""Tron: `reader` for scanning, `payer` for payments, `staking` for stakes. Imports nothing by itself."""
