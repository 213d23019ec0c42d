"""What the pages for payers and payees have in common: headers, the frame of a page, and the boxes that say how things stand.

It knows no record but its description. All text is escaped here; `head` and `body` are HTML already.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from chalicelib.web.files import named

PAGE_TYPE = "text/html; charset=utf-8"
HEADERS = {
    "Content-Type": PAGE_TYPE,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex",
}
"""Of each page, beside its Content-Security-Policy."""
NO_FORMS = "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'self'; form-action 'none'; frame-ancestors 'none'"
"""The policy of a page without scripts and forms."""
NOTHING_TO_PAY = "There is nothing to pay here. Look at the link again, or ask the shop for a new one."
_ICONS = {
    "good": '<path d="M6 12.5l4 4 8-9"/>',
    "busy": '<path d="M12 7v5l3.5 2"/>',
    "calm": '<path d="M12 7v5l3.5 2"/>',
    "warn": '<path d="M12 6.5v7M12 17v.5"/>',
    "bad": '<path d="M8 8l8 8M16 8l-8 8"/>',
}


def whole(root: str, title: str, body: str, head: str = "", script: str = "") -> str:
    """A page below `root`; `script` names a file of ours that it loads."""
    loaded = f'\n<script src="openapi/{named(script)}" defer></script>' if script else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{escape(title)}</title>
<base href="{escape(root)}/">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">{head}
<link rel="icon" href="openapi/{named("icon.svg")}" type="image/svg+xml">
<link rel="stylesheet" href="openapi/{named("checkout.css")}">{loaded}
</head>
<body>
{body}
</body>
</html>
"""


def unknown(root: str, title: str, words: str) -> str:
    """The page of what there is not."""
    return whole(root, title, f'<main class="card one"><section class="info">\n{state("bad", title, words)}\n</section></main>')


def icon(tone: str) -> str:
    """The drawing beside what a page says."""
    return f'<svg viewBox="0 0 24 24" aria-hidden="true"><circle cx="12" cy="12" r="11"/>{_ICONS[tone]}</svg>'


def state(tone: str, title: str, words: str) -> str:
    """How things stand, and what it means."""
    said = f"<h1>{escape(title)}</h1><p>{escape(words)}</p>"
    return f'<div class="state {tone}" role="status">{icon(tone)}<div>{said}</div></div>'


def refusal(words: str | None) -> str:
    """Why what was typed is refused; nothing where it is not."""
    if words is None:
        return ""
    return f'<div class="state bad" role="alert">{icon("bad")}<div><p>{escape(words)}</p></div></div>\n'


def badge(testnet: bool) -> str:
    """Says that no real money is meant, where that is so."""
    return '<span class="badge">Test network: no real money</span>' if testnet else ""


def described(shown: Mapping[str, Any]) -> str:
    """The merchant's words about what is paid, where there are some."""
    text = shown.get("description")
    return f'<p class="what" dir="auto">{escape(text)}</p>\n' if text else ""
