"""What scanning remembers: ranges, rescans, transfers without a log."""
