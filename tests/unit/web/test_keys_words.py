"""The pages about API keys: their words fit the API's, and a form sends what was meant."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.api import resources
from chalicelib.api.routes import ROUTES
from chalicelib.domain.merchants.merchants import PERMISSIONS, PRESETS
from tests.support.javascript import value

pytestmark = pytest.mark.nodes

SOURCE = """
import { PRESETS, changed, choices, dangers, made, presetOf, summary, toType } from "keys/words.js";
import { PERMISSIONS } from "app/permissions.js";
import { ROUTES, activityWords } from "keys/activity_words.js";
const key = {
  name: "Shop", key_prefix: "sk_test_abcd", permissions: PRESETS.write, expires_at: "2027-01-31T12:00:30.000Z",
  restrictions: { ip_whitelist: ["203.0.113.7"], rate_limit: 100, daily_limit: 10000 },
};
const same = {
  name: "Shop", preset: "write", "restrictions.ip_whitelist": ["203.0.113.7"], "restrictions.rate_limit": 100,
  "restrictions.daily_limit": 10000, expires_at: "2027-01-31T12:00:00.000Z",
};
"""
NOT_CHANGING = {"POST /addresses/validate", "PUT /coins/precreate-token"}


def of(expression: str) -> Any:
    return value(SOURCE, expression)


def test_permissions_and_presets_are_those_of_the_api() -> None:
    assert of("PERMISSIONS.map(([name]) => name)") == list(PERMISSIONS)
    assert of("PRESETS") == {name: list(permissions) for name, permissions in PRESETS.items()}


def test_every_changing_route_has_words() -> None:
    resources.load()
    routes = {f"{r.method} {r.path}" for r in ROUTES if r.method != "GET" and r.level != "public"} - NOT_CHANGING
    assert set(of("ROUTES")) == routes, "keys/activity_words.js says in a person's words what each did"
    assert of('activityWords({ method: "POST", route: "/of/tomorrow" })') == "POST /of/tomorrow"


def test_only_what_is_held_is_offered() -> None:
    assert of("choices(PRESETS.full).map(([name]) => name)") == ["read-only", "write", "full", "chosen"]
    assert of('choices(PRESETS["read-only"]).map(([name]) => name)') == ["read-only", "chosen"]
    assert of('choices(["keys:write"]).map(([name]) => name)') == ["chosen"]


def test_permissions_in_a_few_words() -> None:
    assert of("[presetOf(PRESETS.write), presetOf([...PRESETS.write].reverse()), presetOf(['coins:read'])]") == [
        "write", "write", "chosen",
    ]  # fmt: skip
    assert of("summary(PRESETS.full)") == "Everything"
    assert of("summary(['balances:read', 'events:read', 'coins:read'])") == "See balances, see events, and 1 other thing"
    assert of("dangers(['balances:read'])") == []
    assert of("[dangers(['withdrawals:create']), dangers(['withdrawals:create'], 'test')]") == [["It can send money away."], []]


def test_a_new_key_is_asked_for_without_what_was_left_empty() -> None:
    assert of("made({ name: 'n', preset: 'write', 'restrictions.ip_whitelist': [], level: 'client' })") == {
        "name": "n",
        "permissions": ["write"],
    }
    assert of(
        "made({ name: 'n', type: 'test', level: 'admin', preset: 'chosen', permissions: ['coins:read'],"
        " 'restrictions.ip_whitelist': ['::1'], 'restrictions.daily_limit': 5, expires_at: '2027-01-01T00:00:00.000Z' })"
    ) == {
        "name": "n",
        "type": "test",
        "level": "admin",
        "permissions": ["coins:read"],
        "restrictions": {"ip_whitelist": ["::1"], "daily_limit": 5},
        "expires_at": "2027-01-01T00:00:00.000Z",
    }


def test_a_change_asks_for_what_differs_alone() -> None:
    assert of("changed(same, key)") == {}
    assert of("changed({ ...same, name: 'New', preset: 'chosen', permissions: PRESETS.write }, key)") == {"name": "New"}
    assert of("changed({ ...same, preset: 'full' }, key)") == {"permissions": ["full"]}
    freed = "{ name: 'Shop', preset: 'write' }"
    assert of(f"changed({freed}, key)") == {
        "restrictions": {"ip_whitelist": [], "rate_limit": None, "daily_limit": None},
        "expires_at": None,
    }


def test_a_name_that_can_not_be_typed_is_not_asked_for() -> None:
    assert of("toType({ name: ' Web shop ', key_prefix: 'sk_x' })") == "Web shop"
    assert of("[...['\\u202eevil', 'a  b', 'Käse', ''].map((name) => toType({ name, key_prefix: 'sk_x' }))]") == ["sk_x"] * 4
