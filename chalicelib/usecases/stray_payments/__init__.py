"""Stray payments: to our addresses on the wrong network, or in a coin that nobody registered."""
