"""Screening: the reasons that hold a deposit or a withdrawal back."""
