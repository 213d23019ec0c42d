"""What the pages for payers and payees have in common: headers, the frame of a page, and the boxes that say how things stand.

All text is escaped here; arguments named `body`, `head` and `value` are HTML already. Pages use no script but those of `scripts`.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any
from urllib.parse import urlsplit

from chalicelib.web.colors import sheet
from chalicelib.web.files import named
from chalicelib.web.words import Words

PAGE_TYPE = "text/html; charset=utf-8"
HEADERS = {
    "Content-Type": PAGE_TYPE,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex",
    "Vary": "Accept-Language",
}
"""Of each page, beside its Content-Security-Policy."""
_LOGO = re.compile(r"data:image/png;base64,[A-Za-z0-9+/]+={0,2}", re.ASCII)
_MOST_NAMED = 120
PAYOUT_TONES = {
    "awaiting_claim": "calm", "pending": "busy", "processing": "busy", "completed": "good", "failed": "bad", "expired": "bad",
    "cancelled": "bad",
}  # fmt: skip
"""How refunds and claim links stand, by their status."""
_ICONS = {
    "good": '<path d="M6 12.5l4 4 8-9"/>',
    "busy": '<path d="M12 7v5l3.5 2"/>',
    "calm": '<path d="M12 7v5l3.5 2"/>',
    "warn": '<path d="M12 6.5v7M12 17v.5"/>',
    "bad": '<path d="M8 8l8 8M16 8l-8 8"/>',
}


@dataclass(frozen=True, slots=True)
class Shop:
    """Whose page it is: what it is called, its logo as a data: URI, its colour. What is not of that form is left out."""

    name: str | None = None
    logo: str | None = None
    color: str | None = None

    @property
    def style(self) -> str:
        """The style sheet that makes its colour the page's; empty without one."""
        return sheet(self.color or "")


def shop_of(shown: Mapping[str, Any]) -> Shop:
    """The shop of a page's record, `{ name, logo, color }` under `shop`; nothing where there is none."""
    found = shown.get("shop") or {}
    name, logo, color = (found.get(part) for part in ("name", "logo", "color"))
    name = name[:_MOST_NAMED] if isinstance(name, str) and name.strip() else None
    logo = logo if isinstance(logo, str) and _LOGO.fullmatch(logo) else None
    return Shop(name, logo, color if isinstance(color, str) else None)


@dataclass(frozen=True, slots=True)
class Frame:
    """What every page is made with: the path `root` that its links begin with, the reader's `words`, and the shop."""

    root: str
    words: Words
    testnet: bool = False
    shop: Shop = Shop()

    def say(self, key: str, **values: str) -> str:
        """A message, escaped: HTML. Raises LookupError for an unknown key."""
        return self.words.html(key, **values)


def policy(shop: Shop, *, scripts: bool = False, asks: bool = False, forms: str = "'none'") -> str:
    """The Content-Security-Policy of a page, in nobody's frame (`web.framing` lets some in). `scripts`: ours run; `asks`: they ask
    our own origin. `forms` says where forms go. Images may be data: for the shop's logo, and for the icons of wallets."""
    style = f" 'sha256-{_hash(shop.style)}'" if shop.style else ""
    runs = ("script-src 'self'; " if scripts else "") + ("connect-src 'self'; " if asks else "")
    return (
        f"default-src 'none'; {runs}style-src 'self'{style}; img-src 'self' data:; base-uri 'self'; form-action {forms}; "
        "frame-ancestors 'none'"
    )


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def whole(frame: Frame, title: str, body: str, head: str = "", scripts: Sequence[str] = ()) -> str:
    """A page. `scripts` are names of modules of ours that it loads."""
    loaded = "".join(f'\n<script type="module" src="openapi/{named(script)}"></script>' for script in scripts)
    style = f"\n<style>{frame.shop.style}</style>" if frame.shop.style else ""
    return f"""<!doctype html>
<html lang="{frame.words.lang}" dir="{frame.words.direction}">
<head>
<meta charset="utf-8">
<title>{escape(title)}</title>
<base href="{escape(frame.root)}/">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">{head}
<link rel="icon" href="openapi/{named("icon.svg")}" type="image/svg+xml">
<link rel="stylesheet" href="openapi/{named("checkout/checkout.css")}">{style}{loaded}
</head>
<body>
{body}
</body>
</html>
"""


def unknown(frame: Frame, title: str, words: str) -> str:
    """The page of what there is not. Both texts are plain."""
    inside = state("bad", escape(title), escape(words))
    return whole(frame, title, f'<main class="card one"><section class="info">\n{inside}\n</section></main>')


def header(frame: Frame) -> str:
    """The shop's logo and name above the card; nothing where neither is known."""
    shop = frame.shop
    # The name stands beside the logo, so a reader that says both aloud would say it twice.
    logo = f'<img class="logo" src="{shop.logo}" alt="" width="44" height="44">' if shop.logo else ""
    name = f'<span class="shop-name" dir="auto">{escape(shop.name)}</span>' if shop.name else ""
    return f'<header class="shop">{logo}{name}</header>\n' if logo or name else ""


def icon(tone: str) -> str:
    """The drawing beside what a page says."""
    return f'<svg viewBox="0 0 24 24" aria-hidden="true"><circle cx="12" cy="12" r="11"/>{_ICONS[tone]}</svg>'


def state(tone: str, title: str, words: str) -> str:
    """How things stand, and what it means: HTML both."""
    return f'<div class="state {tone}" role="status">{icon(tone)}<div><h1>{title}</h1><p>{words}</p></div></div>'


def notice(tone: str, title: str, words: str) -> str:
    """A remark beside how things stand: HTML both."""
    return f'<div class="state {tone}">{icon(tone)}<div><p class="says">{title}</p><p>{words}</p></div></div>'


def refusal(words: str | None) -> str:
    """Why what was typed is refused; nothing where it is not."""
    if words is None:
        return ""
    return f'<div class="state bad" role="alert">{icon("bad")}<div><p>{escape(words)}</p></div></div>\n'


def badge(frame: Frame) -> str:
    """Says that no real money is meant, where that is so."""
    return f'<span class="badge">{frame.say("common.badge")}</span>' if frame.testnet else ""


def described(shown: Mapping[str, Any]) -> str:
    """The merchant's words about what is paid, where there are some."""
    text = shown.get("description")
    return f'<p class="what" dir="auto">{escape(text)}</p>\n' if text else ""


def facts(rows: Sequence[tuple[str, str]]) -> str:
    """Names and values, HTML both, as the rows of a list."""
    return "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in rows)


def moment(frame: Frame, at: str, form: str = "moment", more: str = "") -> str:
    """A time, which a script shows in the reader's zone, and in UTC without one. `form`: `moment`, or `clock` for the time of day.
    `more` are attributes."""
    return f'<time datetime="{escape(at)}" data-form="{form}"{more}>{escape(frame.words.moment(at, form))}</time>'


def short(text: str) -> str:
    """A long hash with its middle left out."""
    return text if len(text) <= 22 else f"{text[:10]}…{text[-10:]}"


def transaction(frame: Frame, txid: str, link: str | None) -> str:
    """A transaction's hash, shortened; a link to the network's explorer where there is one. Looked at once more: only a page of
    the web is linked to."""
    code = f'<code dir="ltr" title="{escape(txid)}">{escape(short(txid))}</code>'
    if link is None or web_host(link) is None:
        return code
    label = frame.say("common.explorer", id=txid)
    return f'<a href="{escape(link)}" target="_blank" rel="noreferrer noopener" aria-label="{label}">{code}</a>'


def web_host(link: str) -> str | None:
    """The host of a link to a page of the web; None for any other text."""
    try:
        parts = urlsplit(link)
        return parts.hostname if parts.scheme in ("http", "https") and parts.hostname else None
    except ValueError:
        return None
