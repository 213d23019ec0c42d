"""First signatures: an order of ours is signed as a first attempt once for ever, whatever its record says later. Where attempts
have no nonce (Tron) each of them is signed once for ever."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FirstSignature:
    """The first attempt of the stake, bundle or coin move `owner` was signed, `at` in milliseconds since 1970. Stored with its
    signed bytes and never changed. Payments and moves of accounts have a posting of that kind instead.

    `<order>#<number>` as `owner`: the attempt of that number, from 1 on, of an order without a nonce."""

    owner: str
    txid: str
    at: int
    version: int = 1
