"""Every page of portal and console that needs no name of an object: drawn by day and by night, on a desk and in a hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.axe import axe
from tests.support.browser import Browser
from tests.support.javascript import value
from tests.support.pages import go, look, signed_in

pytestmark = [pytest.mark.browser, pytest.mark.sweep]

WHO = {"portal": "client_test", "console": "admin_test"}


def paths(which: str) -> list[str]:
    """The addresses of pages that need no name of an object."""
    found: list[str] = value(f'import {{ pages }} from "{which}/pages.js";', "pages.map((page) => page.path)")
    return [path for path in found if ":" not in path]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("which", ["portal", "console"])
def test_every_page_is_drawn(
    page: Browser, service: dict[str, Any], tmp_path: Path, which: str, width: int, scheme: str
) -> None:  # fmt: skip
    look(page, width=width, scheme=scheme)
    signed_in(page, service, WHO[which], which=which)
    wrong: dict[str, Any] = {}
    for path in paths(which):
        go(page, path)
        page.wait("!document.querySelector('main .loading')")
        page.screenshot(tmp_path / f"{path.strip('/').replace('/', '-') or 'first'}.png")
        found: list[Any] = list(axe(page))
        wide = page.run("document.documentElement.scrollWidth")
        found += [f"{wide} pixels wide"] if wide > width else []
        found += [said for said in page.complaints if not said.startswith("Failed to load resource")]
        found += ["a fault"] if "This page has a fault" in page.run("document.body.innerText") else []
        found += ["no heading"] if page.run("document.querySelectorAll('main h1').length") != 1 else []
        page.complaints.clear()
        if found:
            wrong[path] = found
    assert wrong == {}
