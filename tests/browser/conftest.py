"""One running local stack and one browser for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.browser import Browser
from tests.support.pages import REFUSED, fresh
from tests.support.running import Running, free_port


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What the stack's runtime file says: `base_url`, `keys`."""
    running = Running(tmp_path_factory.mktemp("stack"), free_port(), "tests.support.roomy_run")
    try:
        yield running.wait_until_up()
    finally:
        running.kill()


@pytest.fixture
def page(browser: Browser) -> Iterator[Browser]:
    """The browser, as new. Afterwards: it asked nobody but the service, kept nothing that outlives the tab, and no page complained,
    unless of an answer that was refused."""
    fresh(browser)
    yield browser
    browser.tell("Emulation.setScriptExecutionDisabled", value=False)
    assert [said for said in browser.complaints if not said.startswith(REFUSED)] == []
    assert {urlsplit(url).hostname for url in browser.requests if not url.startswith("data:")} <= {"127.0.0.1"}
    assert browser.run("location.protocol === 'about:' ? '0' : document.cookie + localStorage.length") == "0"
    browser.run("sessionStorage.clear()")
    browser.open("about:blank")


@pytest.fixture(scope="package")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    opened = Browser(tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()
