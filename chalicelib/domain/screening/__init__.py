"""Screening: risk rules, and the grey list."""
