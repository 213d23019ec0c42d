"""Invoices: what a merchant asks for and reads, one of them by its path, and the settings of new ones."""
