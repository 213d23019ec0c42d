"""Records of scanning: ranges, rescans, transfers without a log."""
