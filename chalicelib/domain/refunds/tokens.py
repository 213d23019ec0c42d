"""Tokens of claim links: who knows one may be paid, so none is stored, and none can be guessed.

A token has 256 random bits; what is stored is its SHA-256. A hash without salt is enough for what nobody can list.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets

_FORM = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_BYTES = 32
_CONFIRMS = 16


def new_token() -> str:
    """A fresh token: 43 characters that need no quoting in a URL (RFC 4648 section 5, without padding)."""
    return base64.urlsafe_b64encode(secrets.token_bytes(_BYTES)).rstrip(b"=").decode()


def token_hash(token: str) -> str | None:
    """What the link of `token` is stored under, in hex; None where it is no token at all."""
    return hashlib.sha256(token.encode()).hexdigest() if _FORM.fullmatch(token) else None


def confirmation(token: str, address: str) -> str:
    """The word that says: this address, and no other, was shown to who has the token, and is right."""
    return hmac.new(token.encode(), b"confirm\x1f" + address.encode(), hashlib.sha256).hexdigest()[:_CONFIRMS]


def confirms(word: str, token: str, address: str) -> bool:
    """Whether `word` is that of `confirmation`."""
    return hmac.compare_digest(word.encode(), confirmation(token, address).encode())
