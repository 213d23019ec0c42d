"""The shells of portal and console, and the way to them, as HTTP."""

from __future__ import annotations

import gzip
import re
from dataclasses import replace

import pytest

from chalicelib.web import files
from infra.local.gateway import COMPRESSED_FROM
from infra.stage_settings import CONFIG
from tests.support.edge import PREPARED, Edge

BROWSER = {"Accept": "text/html,application/xhtml+xml,image/avif,*/*;q=0.8"}


@pytest.fixture
def edge(aws):
    return PREPARED.edge(aws)


@pytest.mark.parametrize("path", ["/portal", "/portal/", "/console"])
def test_a_shell_needs_no_key_and_loads_only_what_is_ours(edge: Edge, path: str) -> None:
    answer = edge.call("GET", path, key=None, headers=BROWSER)
    html = answer.body.decode()
    assert (answer.status, answer.headers["content-type"], answer.headers["cache-control"]) == (
        200,
        "text/html; charset=utf-8",
        "no-cache",
    )
    assert '<base href="/api/">' in html and answer.headers["etag"]
    links = [link for link in re.findall(r'(?:src|href)="([^"]+)"', html)[1:] if link != "openapi"]
    assert len(links) > 15 and all(link.startswith("openapi/") for link in links)
    for link in links:
        assert edge.call("GET", f"/{link}", key=None).status == 200
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|<style|\sstyle=|javascript:", html)


@pytest.mark.parametrize("path", ["/portal", "/console", "/"])
def test_headers_let_nothing_in_and_nothing_out(edge: Edge, path: str) -> None:
    headers = edge.call("GET", path, key=None, headers=BROWSER).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy == {
        "default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "img-src": "'self' data:", "connect-src": "'self'",
        "base-uri": "'self'", "form-action": "'none'", "frame-ancestors": "'none'", "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }  # fmt: skip
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["x-robots-tag"] == "noindex"


def test_a_page_has_no_version(edge: Edge) -> None:
    for path in ("/v1/portal", "/v1/console", "/v1"):
        assert edge.call("GET", path, key=None, headers=BROWSER).status == 404


def test_a_person_is_led_to_the_portal_and_a_program_reads_what_it_did(edge: Edge) -> None:
    for path in ("", "/"):
        answer = edge.call("GET", path, key=None, headers=BROWSER)
        assert answer.status == 200 and '<a class="button" href="portal">' in answer.body.decode()
        assert '<base href="/api/">' in answer.body.decode()
        assert 'content="0; url=portal"' in answer.body.decode()
        for headers in ({}, {"Accept": "application/json"}, {"Accept": "*/*"}):
            plain = edge.call("GET", path, key=None, headers=headers)
            assert (plain.status, plain.json["error"]["code"]) == (404, "NOT_FOUND")


def test_the_console_can_be_off(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(edge.services.__dict__, "settings", replace(edge.services.settings, console=False))
    answer = edge.call("GET", "/console", key=None, headers=BROWSER)
    assert (answer.status, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "There is nothing here" in answer.body.decode() and "openapi/console" not in answer.body.decode()
    assert edge.call("GET", "/portal", key=None).status == 200


@pytest.mark.parametrize(("which", "most"), [("portal", 100), ("console", 100)])
def test_the_first_view_is_small(edge: Edge, which: str, most: int) -> None:
    """KiB that travel before the first page is drawn: the shell and all that it names, each compressed by itself."""
    html = edge.call("GET", f"/{which}", key=None).body
    links = re.findall(r'(?:src|href)="openapi/([^"]+)"', html.decode())
    sent = [html, *[edge.call("GET", f"/openapi/{name}", key=None).body for name in sorted(set(links))]]
    assert sum(len(gzip.compress(each, 6)) if len(each) >= COMPRESSED_FROM else len(each) for each in sent) < most * 1024


def test_what_is_large_travels_compressed(edge: Edge) -> None:
    name = files.named("app/app.css")
    plain = edge.call("GET", f"/openapi/{name}", key=None)
    packed = edge.call("GET", f"/openapi/{name}", key=None, headers={"Accept-Encoding": "br, gzip;q=0.5"})
    assert packed.headers["content-encoding"] == "gzip" and gzip.decompress(packed.body) == plain.body
    assert len(packed.body) * 3 < len(plain.body)
    for refused in ("", "identity", "gzip;q=0", "br"):
        answer = edge.call("GET", f"/openapi/{name}", key=None, headers={"Accept-Encoding": refused})
        assert answer.body == plain.body and "content-encoding" not in answer.headers
    small = edge.call("GET", "/health", key=None, headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in small.headers
    assert f'"minimum_compression_size": {COMPRESSED_FROM},' in CONFIG.read_text()


@pytest.mark.parametrize("accept", ["image/avif,image/webp,*/*", "application/octet-stream", "*/*", "text/html"])
def test_every_page_and_file_is_text_to_the_gateway(edge: Edge, accept: str) -> None:
    """API Gateway decides by the first type of the Accept header whether it takes an answer for binary: ours are text for each."""
    from app import app

    paths = ["/portal", "/console", "/openapi", "/pay/inv_1", "/claim/x", "/link/plk_1"]
    for path in [*paths, *[f"/openapi/{file.name}" for file in files.files().values()]]:
        answer = edge.call("GET", path, key=None, headers={"Accept": accept})
        assert answer.status in (200, 404), (path, answer.status)
        assert answer.headers["content-type"].partition(";")[0] not in app.api.binary_types
        assert answer.body.decode("utf-8")
