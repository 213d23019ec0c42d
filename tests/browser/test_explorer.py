"""The explorer page as a person uses it: in a real browser, on the running stack."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.browser import Browser

pytestmark = pytest.mark.browser

_OPERATIONS = ".opblock-tag-section > div .opblock"
_SHOWN = f"""[...document.querySelectorAll('{_OPERATIONS}')].map(block => [
    block.querySelector('.opblock-summary-method').textContent.trim().toLowerCase(),
    block.querySelector('.opblock-summary-path').dataset.path])"""
_BLOCK = "[...document.querySelectorAll('.opblock')].find(b => b.id.endsWith('-{0}'))"
_ANSWER = """(() => {{
    const row = {0}.querySelector('.live-responses-table .response');
    return row && {{status: row.querySelector('.response-col_status').innerText.trim().split(/\\s/)[0],
        body: row.querySelector('pre.microlight')?.textContent}};
}})()"""


def opened(browser: Browser, service: dict[str, Any]) -> None:
    browser.requests.clear()
    browser.complaints.clear()
    browser.size(1280, 900)
    browser.open(f"{service['base_url']}/openapi/")
    browser.wait("document.body?.dataset.ready")
    assert len(browser.requests) > 4


def assert_calm(browser: Browser) -> None:
    """What it asked for and what it complained of."""
    assert [said for said in browser.complaints if " 401 " not in said] == [], "a page that fetches a 401 is told so by Chromium"
    outside = [url for url in browser.requests if urlsplit(url).scheme != "data" and urlsplit(url).hostname != "127.0.0.1"]
    assert outside == []


@pytest.fixture
def page(browser: Browser, service: dict[str, Any]) -> Iterator[Browser]:
    """The page, ready, without a key."""
    opened(browser, service)
    yield browser
    browser.run("sessionStorage.clear()")
    assert_calm(browser)


@pytest.fixture(scope="module")
def loaded(browser: Browser, service: dict[str, Any]) -> Browser:
    """The page, loaded once for the tests that only look at it: drawing all operations takes seconds of CPU."""
    opened(browser, service)
    return browser


@pytest.fixture
def looked_at(loaded: Browser) -> Iterator[Browser]:
    yield loaded
    assert_calm(loaded)


def document(service: dict[str, Any]) -> dict[str, Any]:
    with urllib.request.urlopen(f"{service['base_url']}/openapi/openapi.json") as answer:  # noqa: S310
        parsed: dict[str, Any] = json.loads(answer.read())
        return parsed


def enter_key(page: Browser, key: str) -> None:
    page.run(f"document.getElementById('key').value = {json.dumps(key)}; document.querySelector('#key-form button').click()")
    page.wait("document.getElementById('key-state').classList.contains('set')")


def execute(page: Browser, operation: str) -> tuple[str, Any]:
    """Open an operation, press its button, and what the page then shows: the status and the body."""
    block = _BLOCK.format(operation)
    page.run(f"{block}.querySelector('.opblock-summary-control').click()")
    page.wait(f"Boolean({block}.querySelector('.btn.execute'))")
    page.run(f"{block}.querySelector('.btn.execute').click()")
    answer = page.wait(_ANSWER.format(block), lambda found: bool(found and found["body"]))
    return answer["status"], json.loads(answer["body"])


def test_it_looks_right_on_a_desk_and_in_a_hand(looked_at: Browser, tmp_path: Path) -> None:
    looked_at.screenshot(tmp_path / "desk.png")
    assert looked_at.run("document.documentElement.scrollWidth") <= 1280
    looked_at.size(390, 844, phone=True)
    looked_at.wait("innerWidth", lambda width: width == 390)
    looked_at.screenshot(tmp_path / "phone.png")
    assert looked_at.run("document.documentElement.scrollWidth") <= 390
    looked_at.size(1280, 900)


def test_the_link_downloads_the_document(looked_at: Browser, service: dict[str, Any]) -> None:
    link = "document.getElementById('download')"
    assert looked_at.run(f"{link}.offsetParent !== null && {link}.hasAttribute('download')")
    assert json.loads(looked_at.run(f"fetch({link}.href).then(answer => answer.text())")) == document(service)


def test_every_operation_is_there(looked_at: Browser, service: dict[str, Any]) -> None:
    """One of each method is opened: each has the button that calls it."""
    wanted = sorted([method, path] for path, several in document(service)["paths"].items() for method in several)
    assert sorted(looked_at.run(_SHOWN)) == wanted
    shown = looked_at.run(_SHOWN)
    for method in ("get", "post", "put", "delete"):
        place = next(place for place, (known, _) in enumerate(shown) if known == method)
        block = f"document.querySelectorAll('{_OPERATIONS}')[{place}]"
        looked_at.run(f"{block}.querySelector('.opblock-summary-control').click()")
        looked_at.wait(f"Boolean({block}.querySelector('.btn.execute'))")


def test_the_filter_leaves_one_group(looked_at: Browser) -> None:
    looked_at.run(
        """(() => {
        const box = document.querySelector('.operation-filter-input');
        Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(box, 'Invoices');
        box.dispatchEvent(new Event('input', {bubbles: true}));
    })()"""
    )
    shown = "[...document.querySelectorAll('.opblock-tag')].map(tag => tag.dataset.tag)"
    assert looked_at.wait(shown, lambda tags: len(tags) == 1) == ["Invoices"]


def test_a_key_is_entered_once_and_calls_work(page: Browser, service: dict[str, Any], tmp_path: Path) -> None:
    enter_key(page, service["keys"]["client_test"])
    status, networks = execute(page, "listNetworks")
    assert status == "200"
    assert [network["id"] for network in networks][:2] == ["bitcoin", "ethereum"]
    status, invoice = execute(page, "createInvoice")
    assert status == "201"
    assert invoice["status"] == "pending"
    page.run(f"{_BLOCK.format('createInvoice')}.scrollIntoView(); window.scrollBy(0, -80)")
    assert page.screenshot(tmp_path / "invoice.png").stat().st_size > 20_000

    # The next page of this tab still has the key; the browser's storage that stays has nothing.
    page.open(f"{service['base_url']}/v1/openapi")
    page.wait("location.pathname.endsWith('/v1/openapi') && document.body?.dataset.ready")
    assert execute(page, "listNetworks")[0] == "200"
    assert page.run("localStorage.length") == 0
    assert page.run("document.cookie") == ""
    page.run("document.getElementById('forget').click()")
    assert page.run("sessionStorage.length") == 0


def test_without_a_key_the_answer_is_shown_too(page: Browser) -> None:
    status, body = execute(page, "getBalances")
    assert (status, body["error"]["code"]) == ("401", "INVALID_API_KEY")
