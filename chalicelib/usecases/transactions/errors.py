"""Errors that stop a transaction of ours before it is signed."""

from __future__ import annotations


class OrderMismatch(Exception):
    """The bytes about to be signed do not do what was approved. Nothing is signed; an operator has to look (money rule 7).

    `bytes_only`: what was ordered is what was approved, and only the bytes are something else. They can be built anew.
    """

    def __init__(self, words: str, *, bytes_only: bool = False) -> None:
        super().__init__(words)
        self.bytes_only = bytes_only


class ReadersDiffer(OrderMismatch):
    """Our code and the library of the network's family read an order, or the bytes signed for it, differently. Nothing is signed,
    or what was signed is dropped; an operator has to look (money rule 15)."""
