"""The base of every capability: retries, the outbox, open work, clocks, public records, fair shares, the kill switch."""
