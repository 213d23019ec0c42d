"""Merchants, their API keys and settings."""
