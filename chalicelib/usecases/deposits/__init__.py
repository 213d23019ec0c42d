"""Deposits: recorded, credited, released, undone."""
