"""Errors that stop a transaction of ours before it is signed."""

from __future__ import annotations


class OrderMismatch(Exception):
    """The bytes about to be signed do not do what was approved. Nothing is signed; an operator has to look (money rule 7).

    `bytes_only`: what was ordered is what was approved, and only the bytes are something else. They can be built anew.
    """

    def __init__(self, words: str, *, bytes_only: bool = False) -> None:
        super().__init__(words)
        self.bytes_only = bytes_only
