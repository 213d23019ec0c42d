"""Ed25519 signatures of approvers (RFC 8032). Verifies only: nothing here signs.

pycryptodome is loaded at the first use: most requests never need it.
"""

from __future__ import annotations

import base64
import binascii
import re

_HEX = re.compile(r"[0-9a-fA-F]*", re.ASCII)
_PRIME = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
"""L of RFC 8032 section 5.1."""


def read_bytes(text: str, size: int) -> bytes:
    """The `size` bytes of `text`, in hex or in base64 (either alphabet, padded or not). Raises ValueError."""
    if len(text) == 2 * size and _HEX.fullmatch(text):
        return bytes.fromhex(text)
    try:
        found = base64.b64decode(
            text.replace("-", "+").replace("_", "/").rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), validate=True
        )
    except (binascii.Error, ValueError):
        found = b""
    if len(found) != size:
        raise ValueError(f"must be {size} bytes in hex or base64")
    return found


def check_public_key(key: bytes) -> None:
    """Raises ValueError for anything but the canonical encoding of a usable point.

    Points of small order are refused: their signatures can be made without a key (RFC 8032 section 5.1.7 multiplies by 8, and they
    vanish).
    """
    from Crypto.Signature import eddsa

    if int.from_bytes(key, "little") & ~(1 << 255) >= _PRIME:
        raise ValueError("must be the canonical encoding of a point of Ed25519")
    try:
        point = eddsa.import_public_key(key).pointQ
    except ValueError:
        raise ValueError("must be a point of Ed25519") from None
    if (point * 8).is_point_at_infinity():
        raise ValueError("must not be a point of small order")


def verify(public_key: str, text: str, signature: str) -> bool:
    """Whether `signature` (hex) is that of `public_key` (hex) over the UTF-8 bytes of `text`.

    Only the signer can encode one in other bytes: R is hashed as it is spelled, and S has to be below L (section 5.1.7).
    pycryptodome refuses S above L, and takes L itself.
    """
    from Crypto.Signature import eddsa

    try:
        raw = bytes.fromhex(signature)
        if int.from_bytes(raw[32:], "little") >= _ORDER:
            return False
        eddsa.new(eddsa.import_public_key(bytes.fromhex(public_key)), "rfc8032").verify(text.encode(), raw)
    except ValueError:
        return False
    return True
