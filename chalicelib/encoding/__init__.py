"""Byte encodings that `chains` and `custody` share: Keccak, base58check, bech32, EIP-55, addresses of public keys.

Pure functions; imports nothing else of the project, and nothing slow before it is needed.
"""
