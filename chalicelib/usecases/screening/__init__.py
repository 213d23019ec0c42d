"""Screening: what holds a deposit or a withdrawal back, and why."""
