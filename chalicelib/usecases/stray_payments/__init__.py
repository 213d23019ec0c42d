"""Stray payments: to our addresses on the wrong network, or in an unregistered coin."""
