"""Lists: fields, sorting and filters are declared once per list; paging is the same for all (decisions §7).

fields.py    what a field of a list is: its type, how it is read from a record, and the operators it takes
query.py     the query model that a list's declaration makes: every parameter validated and documented
listing.py   the declaration of a list (`Listing`), and `page`, which answers a query
sources.py   where entries come from: a partition of the table, or indexes and what several have in common
cursors.py   the place in a list where a page ended, as text
"""

from chalicelib.api.lists.fields import ListField, amount, choice, coin, flag, hash_text, network, text, time, whole
from chalicelib.api.lists.listing import Listing
from chalicelib.api.lists.query import ListQuery, Shortcut

__all__ = [
    "ListField", "ListQuery", "Listing", "Shortcut", "amount", "choice", "coin", "flag", "hash_text", "network", "text", "time",
    "whole",
]  # fmt: skip
