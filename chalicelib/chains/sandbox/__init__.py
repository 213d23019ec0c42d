"""Simulated networks for test keys: the state of a public chain in DynamoDB, behind the same ports as a real node.

`branch` (blocks, hashes, forks) and `ledger` (transactions, accounts) are pure; `table` is the only module that knows
DynamoDB; `reads` puts them together; `chain` changes the chain; `reader` and `payer` are the ports. Test realm only.
"""
