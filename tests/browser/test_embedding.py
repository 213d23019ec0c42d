"""A shop shows the checkout in a frame: on a site that it lists, and on no other one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.support.asking import ask, poster
from tests.support.browser import Browser

pytestmark = pytest.mark.browser

MERCHANT = "other_merchant_test"
"""One whose pages no other test looks at: what a page knows of its shop may be half a minute old."""


@pytest.fixture
def site() -> Iterator[ThreadingHTTPServer]:
    """A site whose page shows what its query names in a frame. By its two names, localhost and 127.0.0.1, it is two origins."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            framed = self.path.partition("?")[2]
            text = f'<!doctype html><link rel="icon" href="data:,"><title>shop</title><iframe src="{framed}"></iframe>'.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            """Nothing: the tests' output is theirs."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def listed(service: dict[str, Any], origins: list[str]) -> None:
    changed = ask(service, "PUT", "/merchant/settings", {"shop": {"frameAncestors": origins}}, MERCHANT)
    assert changed["data"]["shop"]["frameAncestors"] == origins


def shown(page: Browser, invoice: Any) -> bool:
    """Whether a frame of the page shows the checkout; false once the browser has refused it."""

    def frames() -> list[str]:
        return [each["url"] for each in page.tell("Target.getTargets")["targetInfos"] if each["type"] == "iframe"]

    path = f"/pay/{invoice['id']}"
    page.wait("document.title === 'shop' && document.readyState === 'complete'")
    page.wait("true", lambda _: any(path in url for url in frames()) or refused(page))
    return not refused(page)


def refused(page: Browser) -> bool:
    return any("frame-ancestors" in said for said in page.complaints)


def test_a_listed_site_shows_the_checkout_and_another_does_not(
    browser: Browser, service: dict[str, Any], site: ThreadingHTTPServer
) -> None:
    port = site.server_address[1]
    ours, other = f"http://localhost:{port}", f"http://127.0.0.1:{port}"
    listed(service, [ours])
    try:
        invoice = poster(service, MERCHANT)("/invoices", {"currency": "usdt", "network": "ethereum", "amount": "5"})
        browser.complaints.clear()
        browser.open(f"{other}/?{invoice['checkoutUrl']}")
        assert not shown(browser, invoice)
        browser.complaints.clear()
        browser.open(f"{ours}/?{invoice['checkoutUrl']}")
        assert shown(browser, invoice)
        assert browser.complaints == []
    finally:
        listed(service, [])
        browser.complaints.clear()
        browser.requests.clear()
        browser.open("about:blank")
