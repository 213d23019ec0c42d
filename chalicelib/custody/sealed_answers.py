"""Stored answers with a secret, encrypted so that only the API key that got them can open them.

An answer to an Idempotency-Key is kept for a day. One with an API key or a webhook's secret would lie there in the clear, against
the rule that a key is stored as a hash only. It is encrypted with a key derived from the caller's own API key, of which the
service has nothing but the hash: a copy of the table, a backup included, opens nothing.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os

_NONCE_BYTES = 12
_TAG_BYTES = 16


def seal(api_key: str, context: str, text: str) -> str:
    """`text` under AES-256-GCM (NIST SP 800-38D), bound to `context`. `api_key` is the caller's, in the clear."""
    from Crypto.Cipher import AES

    nonce = os.urandom(_NONCE_BYTES)
    cipher = AES.new(_key(api_key, context), AES.MODE_GCM, nonce=nonce, mac_len=_TAG_BYTES)
    cipher.update(context.encode())
    shut, tag = cipher.encrypt_and_digest(text.encode())
    return base64.b64encode(nonce + tag + shut).decode()


def unseal(api_key: str, context: str, sealed: str) -> str | None:
    """The text given to `seal`; None where another API key sealed it."""
    from Crypto.Cipher import AES

    raw = base64.b64decode(sealed)
    nonce, tag, shut = raw[:_NONCE_BYTES], raw[_NONCE_BYTES : _NONCE_BYTES + _TAG_BYTES], raw[_NONCE_BYTES + _TAG_BYTES :]
    cipher = AES.new(_key(api_key, context), AES.MODE_GCM, nonce=nonce, mac_len=_TAG_BYTES)
    cipher.update(context.encode())
    try:
        return cipher.decrypt_and_verify(shut, tag).decode()
    except ValueError:
        return None


def _key(api_key: str, context: str) -> bytes:
    """The API key has 95 random bits, so one HMAC is extraction enough (RFC 5869 section 3.3)."""
    return hmac.new(api_key.encode(), b"sealed answer\x1f" + context.encode(), hashlib.sha256).digest()
