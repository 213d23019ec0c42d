"""Keys: derivation from xpubs, signing through KMS, envelope encryption. The only place where a key is ever in the clear."""
