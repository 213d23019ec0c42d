"""A merchant's shop as its payers see it: name, colour, logo, and the sites that may show the checkout in a frame."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from chalicelib.domain.ids import TenantId
from chalicelib.domain.webhooks.urls import url_problems

MOST_NAME = 80
MOST_ORIGINS = 20
_ORIGIN = re.compile(r"https?://[a-z0-9.:\[\]_-]+", re.ASCII)
_JOINERS = "\u200c\u200d"
"""Characters without a shape of their own that names in some scripts are written with."""


@dataclass(frozen=True, slots=True)
class ShopLooks:
    """What a merchant's payers see of its shop. `color` is "#rrggbb"; `logo` the SHA-256 (hex) of the logo's PNG, which lies in a
    record of its own: nobody who reads this reads 64 KiB. `frame_ancestors` are origins. `updated_by` is a key's id."""

    tenant: TenantId
    name: str | None = None
    color: str | None = None
    logo: str | None = None
    frame_ancestors: tuple[str, ...] = ()
    updated_at: int | None = None
    updated_by: str | None = None
    version: int = 0


@dataclass(frozen=True, slots=True)
class ShopLogo:
    """A shop's logo as base64 of a PNG that `encoding.png` has rewritten; None where it was taken away."""

    tenant: TenantId
    png: str | None = None
    version: int = 0


def name_problem(name: str) -> str | None:
    """Why a text is no name of a shop; None where it is one. Characters that turn the direction of the text around it, or that
    nobody sees, could make the page say what the service does not."""
    if not 1 <= len(name) <= MOST_NAME:
        return f"must have 1 to {MOST_NAME} characters"
    if name != name.strip() or not all(char.isprintable() or char in _JOINERS for char in name):
        return "must have printable characters only, and none but those at its ends"
    if all(char in _JOINERS for char in name):
        return "must have a character that can be seen"
    return None


def origin_of(text: str, *, allow_private: bool) -> str:
    """The origin (RFC 6454) that `text` names, in lower case, without the scheme's own port and without a slash at the end.

    It goes into a policy that browsers read: whatever could be more than one origin there is refused. `allow_private` (the local
    stack) also takes http and private hosts. Raises ValueError with the reason in words for the caller.
    """
    plain = text.lower().removesuffix("/")
    problems = url_problems(plain, allow_private=allow_private)
    if problems:
        raise ValueError(problems[0] if problems[0].startswith("must") else f"must be an origin: {problems[0]}")
    if not _ORIGIN.fullmatch(plain):
        raise ValueError("must be an origin such as https://shop.example: no path, no query, no wildcard")
    parts = urlsplit(plain)
    default = 80 if parts.scheme == "http" else 443
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}" + ("" if parts.port in (None, default) else f":{parts.port}")
