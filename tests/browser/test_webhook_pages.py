"""Webhooks in the portal: an endpoint is made, what failed is sent again, and what was sent and answered is seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.axe import axe
from tests.support.browser import Browser
from tests.support.pages import fill, press, signed_in, stored, text, wait_for
from tests.support.receiver import Receiver, answer

pytestmark = pytest.mark.browser


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


def test_a_delivery_that_failed_is_sent_again_and_seen(page: Browser, service: dict[str, Any], receiver: Receiver) -> None:
    receiver.behave(answer(500, b"the till <b>burns</b>"), answer(200, b"thanks"))
    signed_in(page, service, "client_test", "/webhooks")
    press(page, "New webhook")
    fill(page, {"URL": receiver.url("/till?shop=1")})
    press(page, "Make it")
    assert stored(page).startswith("whsec_")
    wait_for(page, "Nothing was sent yet")
    assert axe(page) == []
    press(page, "Send a test")
    wait_for(page, "webhook.test")
    press(page, "Send")
    page.wait("location.hash.startsWith('#/deliveries/')")
    page.wait("[...document.querySelectorAll('main button')].some(each => each.textContent === 'Send now')")
    page.wait("fetch, document.body.innerText", lambda _: bool(receiver.received))
    press(page, "Send now")
    assert "the till <b>burns</b>" in wait_for(page, "Delivered"), "an answer is text, whatever it says"
    assert "Attempt 2" in text(page) and "thanks" in text(page)
    assert '"event": "webhook.test"' in text(page) and "/till?shop=1" in text(page)
    assert [got.body for got in receiver.received] == [receiver.received[0].body] * 2
    assert axe(page) == []
