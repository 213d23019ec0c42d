"""Where a page can not be made, a person reads a page all the same, and what to do next."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.usecases.merchants.source_limits import SourceLimits
from chalicelib.web.parts import PAGE_TYPE
from tests.support.edge import PREPARED, Edge

PAGES = ["/v1/pay/inv_1", "/v1/claim/x", "/v1/link/plk_1"]
FORMS = ["/v1/pay/inv_1/choice", "/v1/claim/x", "/v1/link/plk_1"]
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def edge(aws: Any) -> Edge:
    return PREPARED.edge(aws)


def broken(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is asked, our own side fails."""
    for name in ("checkouts", "choices", "claims", "link_opening"):
        monkeypatch.setitem(edge.services.__dict__, name, None)


@pytest.mark.parametrize(("method", "path"), [("GET", path) for path in PAGES] + [("POST", path) for path in FORMS])
def test_a_fault_of_ours_is_a_page(edge: Edge, monkeypatch: pytest.MonkeyPatch, method: str, path: str) -> None:
    broken(edge, monkeypatch)
    sent = {"headers": FORM, "body": b"coin=eth" if path.endswith("choice") else b""} if method == "POST" else {}
    answer = edge.call(method, path, **sent)
    text = answer.body.decode()
    assert (answer.status, answer.headers["content-type"], answer.headers["cache-control"]) == (500, PAGE_TYPE, "no-store")
    assert answer.headers["x-request-id"] in text and "load this page again" in text and "NoneType" not in text
    assert "default-src 'none'" in answer.headers["content-security-policy"] and '<base href="/api/v1/">' in text


@pytest.mark.parametrize("path", FORMS)
def test_what_is_asked_by_a_program_is_answered_to_a_program(edge: Edge, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    broken(edge, monkeypatch)
    answer = edge.call("POST", path, json={"coin": "eth"} if path.endswith("choice") else {})
    assert (answer.status, answer.headers["content-type"]) == (500, "application/json")
    assert answer.json["error"]["code"] == "INTERNAL_ERROR"


def test_too_many_requests_are_a_page(edge: Edge) -> None:
    edge.services.__dict__["source_limits"] = SourceLimits(1)
    assert edge.call("GET", PAGES[0]).status == 404
    answer = edge.call("GET", PAGES[0])
    assert (answer.status, answer.headers["content-type"]) == (429, PAGE_TYPE)
    assert int(answer.headers["retry-after"]) > 0 and "Wait a minute" in answer.body.decode()


def test_what_a_form_can_not_say_stays_text(edge: Edge) -> None:
    answer = edge.call("POST", FORMS[0], headers=FORM, body=b"%3Cscript%3Ealert(1)=1")
    text = answer.body.decode()
    assert (answer.status, answer.headers["content-type"]) == (400, PAGE_TYPE)
    assert "coin: is required" in text and "Go back, and try again." in text and "<script>" not in text
