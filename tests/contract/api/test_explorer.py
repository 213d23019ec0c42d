"""The explorer page and its files as HTTP. What a browser makes of them: tests/browser."""

from __future__ import annotations

import re

import pytest

from chalicelib.web import files
from infra import assets
from tests.support.edge import PREPARED, Edge

PAGES = ("/openapi", "/openapi/", "/v1/openapi", "/v1/openapi/")


@pytest.fixture
def edge(aws):
    return PREPARED.edge(aws)


def test_the_files_are_those_of_the_pinned_package() -> None:
    """Byte for byte; and nothing is there that comes from nowhere: what is ours has no packed form, and theirs is in `lib`."""
    assert assets.stale() == []
    assert {path.name for path in assets.STATIC.glob("*.gz")} == {f"{name}.gz" for name in assets.FILES}
    assert {f"lib/{path.name}" for path in (assets.STATIC / "lib").iterdir()} == {n for lib in assets.LIBRARIES for n in lib.files}
    assert sum(path.stat().st_size for path in assets.STATIC.glob("*.gz")) < 500_000
    assert "Apache License" in files.files()["swagger-ui-license.txt"].text
    assert 'PACKAGE_VERSION:"5.' in files.files()["swagger-ui-bundle.js"].text


@pytest.mark.parametrize("path", PAGES)
def test_the_page_needs_no_key_and_loads_only_what_is_ours(edge: Edge, path: str) -> None:
    answer = edge.call("GET", path, key=None)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    html = answer.body.decode()
    base = re.search(r'<base href="([^"]+)">', html)
    assert base is not None
    assert base[1] == "/api" + path.rstrip("/") + "/"
    links = re.findall(r'(?:src|href)="([^"]+)"', html)[1:]
    assert len(links) >= 6
    for link in links:
        assert "/" not in link, link
        assert edge.call("GET", base[1].removeprefix("/api") + link, key=None).status == 200
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|<style|javascript:", html)


def test_headers_let_nothing_in_and_nothing_out(edge: Edge) -> None:
    answer = edge.call("GET", "/openapi/", key=None)
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert "unsafe-eval" not in str(policy)
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"


def test_files_are_kept_for_ever_and_the_page_is_not(edge: Edge) -> None:
    for file in files.files().values():
        answer = edge.call("GET", f"/openapi/{file.name}", key=None)
        assert answer.body.decode() == file.text
        assert answer.headers["content-type"] == file.media
        assert answer.headers["etag"] == f'"{file.tag}"'
        assert "immutable" in answer.headers["cache-control"]
    assert edge.call("GET", "/openapi", key=None).headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    "name", ["nothing.js", "explorer.js", "..%2Fexplorer.py", "%2Fetc%2Fpasswd", "icon.svg.gz", "%00", "x" * 300]
)
def test_other_names_are_404(edge: Edge, name: str) -> None:
    answer = edge.call("GET", f"/openapi/{name}", key=None)
    assert (answer.status, answer.json["error"]["code"]) == (404, "NOT_FOUND")


def test_an_address_can_put_nothing_into_the_page(edge: Edge) -> None:
    answer = edge.call("GET", "/%6fpenapi/?x=%22%3E%3Cscript%3E", key=None)
    assert answer.status == 200
    assert "script%3E" not in answer.body.decode()
    assert "<script>" not in answer.body.decode()
