"""Invariants of the whole store: the rules that an audit checks, by subject."""
