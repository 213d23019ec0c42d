"""A strict Tron node for tests and the local stack: java-tron's HTTP API over a chain of its own, in one process.

It shares no code with the client library that the service uses: what that library gets wrong, this node refuses.
"""
