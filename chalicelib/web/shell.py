"""The pages for people with an API key: the merchant's portal and the operator's console. Their HTML is an empty shell; ES modules
draw everything, from what the API answers to the key that was typed.
"""

from __future__ import annotations

from html import escape

from chalicelib.web.files import named, needed

PAGE_TYPE = "text/html; charset=utf-8"
HEADERS = {
    "Content-Type": PAGE_TYPE,
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'self'; "
        # In nobody's frame: a page around it could put its own words over a button that pays. Text never becomes markup:
        # the browser refuses each place where it would.
        "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    # Other pages neither hold a handle on this one's window nor read its files.
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # What a page that handles money never needs.
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex",
}
_FIRST = {"portal": ("portal/overview.js",), "console": ("console/overview.js",)}
"""Modules of the first view after sign-in, beside those that the main module imports."""
_TITLES = {"portal": "Portal", "console": "Console"}


def page(root: str, which: str) -> str:
    """The HTML of `which` ("portal", "console") below `root`."""
    modules = "\n".join(
        f'<link rel="modulepreload" href="openapi/{escape(name)}">' for name in needed(f"{which}/main.js", *_FIRST[which])
    )
    title = _TITLES[which]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<base href="{escape(root)}/">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="openapi/{named("icon.svg")}" type="image/svg+xml">
<link rel="stylesheet" href="openapi/{named("app/app.css")}">
{modules}
</head>
<body>
<div id="app"><main class="alone"><h1>{title}</h1><p id="wait">One moment…</p>
<noscript><p>This page needs JavaScript. The API does not: <a href="openapi">its explorer and specification</a>.</p></noscript>
</main></div>
<script type="module" src="openapi/{named(f"{which}/main.js")}"></script>
</body>
</html>
"""


def door(root: str) -> str:
    """The page at the API's own address: it leads a person to the portal."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Gateway</title>
<base href="{escape(root)}/">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="refresh" content="0; url=portal">
<link rel="icon" href="openapi/{named("icon.svg")}" type="image/svg+xml">
<link rel="stylesheet" href="openapi/{named("app/app.css")}">
</head>
<body>
<main class="alone"><h1>Gateway</h1>
<p><a class="button" href="portal">Open the portal</a></p>
<p>For programs: <a href="openapi">the API's explorer and specification</a>.</p>
</main>
</body>
</html>
"""
