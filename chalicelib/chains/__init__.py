"""Adapters to networks, one package per family, and the spelling rules of addresses."""
