"""What the use cases need of the outside, in their own words. Adapters in `store`, `chains` and `custody` fit these.

Each room is imported by its name, so that a cold function does not build the types of chains that it never speaks to.
"""
