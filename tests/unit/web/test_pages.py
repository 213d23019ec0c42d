"""The registries of pages: what the menus lead to is there, and each page names what it needs."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.domain.merchants.merchants import PERMISSIONS
from tests.support.javascript import value

pytestmark = pytest.mark.nodes

_PAGES = """Promise.all(pages.map(async (page) => ({ path: page.path, title: page.title, menu: page.menu ?? null,
  needs: [page.needs ?? []].flat(), page: typeof (await page.load()).default })))"""
_SHELL = 'import { find, menu, refusal } from "app/shell.js"; import { groups, pages } from "portal/pages.js";'


@pytest.mark.parametrize("which", ["portal", "console"])
def test_every_page_can_be_loaded_and_needs_what_there_is(which: str) -> None:
    source = f'import {{ groups, pages }} from "{which}/pages.js";'
    groups, pages = value(source, f"Promise.all([groups, {_PAGES}])")
    paths = [page["path"] for page in pages]
    assert "/" in paths and len(set(paths)) == len(paths)
    for page in pages:
        assert page["page"] == "function", page
        assert set(page["needs"]) <= set(PERMISSIONS), page
        assert page["menu"] is None or (page["menu"] in groups and ":" not in page["path"]), page
        assert page["title"], page


def test_a_menu_shows_what_a_key_may_see() -> None:
    me = '{ level: "client", type: "production", permissions: ["invoices:read"] }'
    shown, why, admin = value(
        _SHELL,
        f"""[menu(pages, groups, {me}).flatMap(([, found]) => found.map((page) => page.path)),
        refusal(find(pages, "/withdrawals").page, {me}), refusal({{ admin: true }}, {me})]""",
    )
    assert "/invoices" in shown and not {"/withdrawals", "/sandbox", "/settings/keys", "/whitelist"} & set(shown)
    assert "withdrawals:read" in why and "admin key" in admin


def test_what_search_finds_has_a_page() -> None:
    tail, search = "01jd2w3x4y5z6a7b8c9d0e1f2g", _SHELL + 'import { lookups } from "app/lookups.js";'
    ids = [f"{prefix}_{tail}" for prefix in ("inv", "wd", "ref", "plk", "pol", "evt", "dlv", "wh", "key", "addr", "tx", "txw")]
    addresses = ["0x" + "aB" * 20, "T" + "x" * 33, "bc1q" + "a" * 38, "LTC1Q" + "A" * 38, "3" + "x" * 33]
    pasted = [*ids, "0x" + "a" * 64, "a" * 64, *addresses, "order 7", "<b>"]
    found: list[list[dict[str, Any]]] = value(
        search,
        f"""{pasted!r}.map((text) => lookups(text).map((each) => ({{ what: each.what, needs: each.needs,
        page: find(pages, each.to({{ id: "x_1", key_id: "key_1" }})).page !== null }})))""",
    )
    for text, lookups in zip(pasted, found, strict=True):
        assert all(each["page"] and each["needs"] in PERMISSIONS for each in lookups), (text, lookups)
        assert len(lookups) >= (1 if text in ("order 7", "<b>") else 2), (text, lookups)
        assert lookups[-1]["what"] == "Invoice by its external id"


def test_an_id_leads_to_its_page_where_the_key_may_see_it() -> None:
    ids = ["inv_01jd2w3x4y5z6a7b8c9d0e1f2g", "txd_01jd2w3x4y5z6a7b8c9d0e1f2g", "act_01jd2w3x4y5z6a7b8c9d0e1f2g", "inv_../x", "x"]
    source = 'import { pageOf } from "app/lookups.js"; import { placeOf } from "events/places.js";'
    all, none, event = value(
        source,
        f"""[{ids!r}.map((id) => pageOf(id, () => true)), {ids!r}.map((id) => pageOf(id, (needs) => needs === "events:read")),
        placeOf({{ event: "balance.updated", data: {{}} }}, () => false)]""",
    )
    assert all == [f"/invoices/{ids[0]}", f"/transactions/{ids[1]}", None, None, None]
    assert none == [None] * len(ids) and event is None
