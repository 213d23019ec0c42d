"""Scanning the chains: blocks, reorganisations, backlogs, the mempool, and what is recorded of them."""
