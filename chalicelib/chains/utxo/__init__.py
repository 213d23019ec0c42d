"""UTXO chains (bitcoin, litecoin): `reader` and `mempool` for scanning, `payer` for payments. Imports nothing by itself."""
