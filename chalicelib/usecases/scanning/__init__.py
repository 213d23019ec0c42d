"""Scanning the chains: blocks, reorganisations, backlogs, the mempool, and the recording of payments."""
