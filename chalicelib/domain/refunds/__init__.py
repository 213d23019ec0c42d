"""Refunds and payout links: the records, their states, their tokens, and how much of an invoice can be refunded."""
