"""The tab's session: what comes late, after somebody has signed out, changes nothing."""

from __future__ import annotations

from typing import Any

from tests.support.javascript import value

_SESSION = """
const kept = new Map();
globalThis.sessionStorage = {
  getItem: (name) => kept.get(name) ?? null, setItem: (name, text) => kept.set(name, text), removeItem: (name) => kept.delete(name),
};
globalThis.document = { baseURI: "https://gateway.example/api/" };
const waiting = [], asked = [];
globalThis.fetch = (url, { headers }) => new Promise((resolve) => {
  asked.push(headers["X-Api-Key"].slice(-1));
  waiting.push((status, body) => resolve({
    ok: status < 400, status, headers: new Map(), text: async () => JSON.stringify(body),
  }));
});
const ME = { key_id: "key_1", type: "test", level: "client", permissions: [] };
const yes = { success: true, data: ME };
const [one, two] = ["sk_test_000000000000000A", "sk_test_000000000000000B"];
const s = await import("app/session.js");
const { get } = await import("app/api.js");
const enter = async (key) => { const done = s.signIn(key); waiting.pop()(200, yes); await done; };
"""


def played(script: str) -> Any:
    return value(_SESSION, f"(async () => {{ {script} }})()")


def test_nobody_is_signed_in_again_by_an_answer_that_comes_late() -> None:
    found = played("""
      await enter(one);
      const late = s.refresh();
      s.signOut();
      waiting.shift()(200, yes);
      await late;
      const out = s.me();
      await enter(one);
      const resumed = s.resume();
      s.signOut();
      waiting.shift()(200, yes);
      await resumed;
      return { out, resumed: s.me(), kept: [...kept.keys()] };
    """)
    assert found == {"out": None, "resumed": None, "kept": []}


def test_a_late_refusal_of_one_key_signs_no_other_out() -> None:
    found = played("""
      await enter(one);
      const late = get("/balances").catch((error) => error.status);
      s.signOut();
      await enter(two);
      waiting.shift()(401, { success: false, error: { code: "INVALID_API_KEY", message: "revoked" } });
      const status = await late;
      const stays = s.me()?.key_id;
      const own = get("/balances").catch((error) => error.status);
      waiting.shift()(401, { success: false, error: { code: "INVALID_API_KEY", message: "revoked" } });
      await own;
      return { status, stays, after: s.me(), kept: [...kept.keys()], asked };
    """)
    assert found == {"status": 401, "stays": "key_1", "after": None, "kept": [], "asked": ["A", "A", "B", "B"]}


def test_what_may_have_been_done_is_told_by_the_status() -> None:
    asked = [0, 500, 502, 504, 400, 401, 403, 404, 409, 429]
    found = value('import { mayBeDone } from "app/api.js";', f"{asked}.filter((status) => mayBeDone({{ status }}))")
    assert found == [0, 500, 502, 504]


def test_no_address_has_an_api_key_in_it() -> None:
    key = "sk_live_0123456789abcdef"
    asked = f"""[["/invoices/getAll", {{ externalId: "x {key}" }}], ["/invoices/{key}", {{}}], ["/invoices", {{ q: "sk_live_" }}]]
      .map(([path, query]) => {{ try {{ return address("/api/", path, query); }} catch (error) {{ return error.code; }} }})"""
    assert value('import { address } from "app/api.js";', asked) == ["NOT_SENT", "NOT_SENT", "/api/v1/invoices?q=sk_live_"]
    shown = f"""fragment("/search", {{ q: "{key}", page: 2 }})"""
    assert value('import { fragment } from "app/router.js";', shown) == "#/search?page=2"
