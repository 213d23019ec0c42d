"""The frame of portal and console as a person has it: signing in and out, the menu, the keyboard, what may not be seen."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.axe import axe
from tests.support.browser import Browser
from tests.support.pages import go, press, signed_in, text, wait_for

pytestmark = pytest.mark.browser


def test_signing_in_shows_what_the_key_may_see_and_signing_out_forgets_it(page: Browser, service: dict[str, Any]) -> None:
    signed_in(page, service, "client_test")
    assert page.run("document.activeElement.tagName + document.title") == "H1Overview · Portal"
    assert page.run("Object.values(sessionStorage).includes(" + json.dumps(service["keys"]["client_test"]) + ")")
    assert axe(page) == []
    go(page, "/key")
    assert "See balances" in text(page) and page.run("document.activeElement.textContent") == "This key"
    # What is loaded again goes on, and what is signed out is forgotten.
    page.open(page.run("location.href.replace('#', '?again#')"))
    wait_for(page, "This key")
    press(page, "Sign out")
    wait_for(page, "You are signed out")
    assert page.run("sessionStorage.length") == 0
    key = service["keys"]["client_test"]
    assert not [url for url in page.requests if key in url], "no secret in a URL"
