"""The explorer page. Everything that it loads comes from its own origin; there is no script in it, only links to scripts."""

from __future__ import annotations

from html import escape

from chalicelib.web.files import named

HEADERS = {
    "Content-Security-Policy": (
        # Swagger UI sets style attributes and draws with data: images. It needs no eval.
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'self'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
PAGE_TYPE = "text/html; charset=utf-8"
_FILES = (
    "icon.svg", "swagger-ui.css", "explorer.css", "swagger-ui-license.txt", "swagger-ui-bundle.js", "explorer.js",
)  # fmt: skip


def page(base: str) -> str:
    """The HTML of the page that lies at `base`, with or without a slash at its end: its links are made from there."""
    name = {plain: escape(named(plain)) for plain in _FILES}
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Gateway API</title>
<base href="{escape(base.rstrip("/"))}/">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="{name["icon.svg"]}" type="image/svg+xml">
<link rel="stylesheet" href="{name["swagger-ui.css"]}">
<link rel="stylesheet" href="{name["explorer.css"]}">
</head>
<body>
<header class="bar">
<img class="mark" src="{name["icon.svg"]}" alt="" width="28" height="28">
<h1>Gateway <span>API explorer</span></h1>
<form class="key" id="key-form" autocomplete="off">
<label for="key">API key</label>
<input id="key" type="password" spellcheck="false" autocapitalize="off" autocomplete="off" placeholder="sk_test_…">
<button type="submit">Use</button>
<button type="button" id="forget" hidden>Forget</button>
<output id="key-state" for="key">No key</output>
</form>
<a class="download" id="download" href="openapi.json" download="openapi.json">Download the specification</a>
</header>
<main id="explorer"><noscript>The explorer needs JavaScript. The specification does not: see the link above.</noscript></main>
<footer>Rendered with Swagger UI (<a href="{name["swagger-ui-license.txt"]}">Apache License 2.0</a>)</footer>
<script src="{name["swagger-ui-bundle.js"]}"></script>
<script src="{name["explorer.js"]}"></script>
</body>
</html>
"""
