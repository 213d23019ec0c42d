"""What every capability needs: retries, the outbox, open work, clocks, public records, fair shares, the kill switch."""
