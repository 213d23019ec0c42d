"""Ports: the Protocols of everything outside that the use cases need, in their own words. Adapters in `store`, `chains` and
`custody` fit these.

Each room is imported by its name, so that a cold function does not build the types of chains that it never speaks to.
"""
