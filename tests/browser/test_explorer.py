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


@pytest.fixture(scope="module")
def explorer(browser: Browser, service: dict[str, Any]) -> Browser:
    """The page, opened once: drawing all operations takes seconds of CPU."""
    browser.requests.clear()
    browser.complaints.clear()
    browser.size(1280, 900)
    browser.open(f"{service['base_url']}/openapi/")
    browser.wait("document.body?.dataset.ready")
    assert len(browser.requests) > 4
    return browser


@pytest.fixture
def page(explorer: Browser) -> Iterator[Browser]:
    """The page without a key. What it asked for and what it complained of is looked at after every test."""
    yield explorer
    explorer.run("sessionStorage.clear()")
    assert [said for said in explorer.complaints if " 401 " not in said] == [], "a page that fetches a 401 is told so by Chromium"
    outside = [url for url in explorer.requests if urlsplit(url).scheme != "data" and urlsplit(url).hostname != "127.0.0.1"]
    assert outside == []


def document(service: dict[str, Any]) -> dict[str, Any]:
    with urllib.request.urlopen(f"{service['base_url']}/openapi/openapi.json") as answer:  # noqa: S310
        parsed: dict[str, Any] = json.loads(answer.read())
        return parsed


def enter_key(page: Browser, key: str) -> None:
    page.run(f"document.getElementById('key').value = {json.dumps(key)}; document.querySelector('#key-form button').click()")
    page.wait("document.getElementById('key-state').classList.contains('set')")


def only(page: Browser, group: str) -> list[str]:
    """Filter the page by a group of operations; the groups that are left. Each click draws all that is shown anew."""
    page.run(
        f"""(() => {{
        const box = document.querySelector('.operation-filter-input');
        Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(box, {json.dumps(group)});
        box.dispatchEvent(new Event('input', {{bubbles: true}}));
    }})()"""
    )
    shown = "[...document.querySelectorAll('.opblock-tag')].map(tag => tag.dataset.tag)"
    left: list[str] = page.wait(shown, lambda tags: bool(tags) and all(group in tag for tag in tags))
    return left


def execute(page: Browser, operation: str) -> tuple[str, Any]:
    """Open an operation, press its button, and what the page then shows: the status and the body."""
    block = _BLOCK.format(operation)
    page.run(f"{block}.querySelector('.opblock-summary-control').click()")
    page.wait(f"Boolean({block}.querySelector('.btn.execute'))")
    page.run(f"{block}.querySelector('.btn.execute').click()")
    answer = page.wait(_ANSWER.format(block), lambda found: bool(found and found["body"]))
    return answer["status"], json.loads(answer["body"])


def test_it_looks_right_on_a_desk_and_in_a_hand(page: Browser, tmp_path: Path) -> None:
    only(page, "")
    page.screenshot(tmp_path / "desk.png")
    assert page.run("document.documentElement.scrollWidth") <= 1280
    page.size(390, 844, phone=True)
    page.wait("innerWidth", lambda width: width == 390)
    page.screenshot(tmp_path / "phone.png")
    assert page.run("document.documentElement.scrollWidth") <= 390
    page.size(1280, 900)


def test_every_operation_is_there(page: Browser, service: dict[str, Any]) -> None:
    """One of each method is opened: each has the button that calls it."""
    wanted = sorted([method, path] for path, several in document(service)["paths"].items() for method in several)
    only(page, "")
    assert sorted(page.wait(_SHOWN, lambda shown: len(shown) >= len(wanted))) == wanted
    only(page, "Webhooks")
    shown = page.run(_SHOWN)
    for method in ("get", "post", "put", "delete"):
        place = next(place for place, (known, _) in enumerate(shown) if known == method)
        block = f"document.querySelectorAll('{_OPERATIONS}')[{place}]"
        page.run(f"{block}.querySelector('.opblock-summary-control').click()")
        page.wait(f"Boolean({block}.querySelector('.btn.execute'))")


def test_a_key_is_entered_once_and_calls_work(page: Browser, service: dict[str, Any], tmp_path: Path) -> None:
    only(page, "Networks")
    enter_key(page, service["keys"]["client_test"])
    status, networks = execute(page, "listNetworks")
    assert status == "200"
    assert [network["id"] for network in networks][:2] == ["bitcoin", "ethereum"]
    only(page, "Invoices")
    status, invoice = execute(page, "createInvoice")
    assert status == "201"
    assert invoice["status"] == "pending"
    page.run(f"{_BLOCK.format('createInvoice')}.scrollIntoView(); window.scrollBy(0, -80)")
    assert page.screenshot(tmp_path / "invoice.png").stat().st_size > 20_000

    # The next page of this tab still has the key; the browser's storage that stays has nothing.
    page.open(f"{service['base_url']}/v1/openapi")
    page.wait("location.pathname.endsWith('/v1/openapi') && document.body?.dataset.ready")
    only(page, "Networks")
    assert execute(page, "listNetworks")[0] == "200"
    assert page.run("localStorage.length") == 0
    assert page.run("document.cookie") == ""
    page.run("document.getElementById('forget').click()")
    assert page.run("sessionStorage.length") == 0


def test_without_a_key_the_answer_is_shown_too(page: Browser) -> None:
    only(page, "Balances")
    status, body = execute(page, "getBalances")
    assert (status, body["error"]["code"]) == ("401", "INVALID_API_KEY")


def test_the_link_downloads_the_document(page: Browser, service: dict[str, Any]) -> None:
    link = "document.getElementById('download')"
    assert page.run(f"{link}.offsetParent !== null && {link}.hasAttribute('download')")
    assert json.loads(page.run(f"fetch({link}.href).then(answer => answer.text())")) == document(service)


def test_the_filter_leaves_one_group(page: Browser) -> None:
    assert only(page, "Invoices") == ["Invoices"]
