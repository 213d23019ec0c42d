"""EVM chains (ethereum, bsc, polygon, arbitrum, fantom): `reader` for scanning, `payer` for payments. Imports nothing by itself."""
