"""The portal's payout files: what is wrong with a row is said before anything is sent, and no batch is paid twice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.javascript import value

pytestmark = pytest.mark.nodes


A, B = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"
LIMITS = {"useUsdLimits": False, "minValue": 0.01, "maxValue": 5, "maxValueDaily": 0}
COINS = [
    {"coin": "eth", "symbol": "ETH", "decimals": 18, "status": "ACTIVE", "network": {"network": "ethereum"}, "settings": LIMITS},
    {
        "coin": "usdt",
        "symbol": "USDT",
        "decimals": 6,
        "status": "ACTIVE",
        "network": {"network": "tron"},
        "settings": {"useUsdLimits": True},
    },
    {"coin": "busd", "symbol": "BUSD", "decimals": 18, "status": "INACTIVE", "network": {"network": "bsc"}, "settings": {}},
]


def answered(imports: str, expression: str, **names: Any) -> Any:
    constants = "".join(f"const {name} = {json.dumps(value)};\n" for name, value in names.items())
    return value(f"{imports}\n{constants}", expression)


FILES = 'import * as files from "payouts/file.js";'
READ = """given.map((text) => {
  try { return files.readPayouts(text, usual); } catch (error) { return [error.constructor.name, error.message]; }
})"""
USUAL = {"network": "ethereum", "coin": "eth"}


def test_rows_are_read_with_and_without_headings() -> None:
    texts = [
        f"address,amount\n{A},1\n\n{B},0.5\n",
        f'\ufeffAmount;Recipient;Name;Network;Coin\r\n1;{A};"O\'Hara; Ann";TRON;USDT\r\n',
        f"{A},1,usdt,tron",
        f"{A}\t1",
    ]
    plain, named, places, tabs = answered(FILES, READ, given=texts, usual=USUAL)
    assert plain["rows"] == [
        {"row": 2, "address": A, "amount": "1", "coin": "eth", "network": "ethereum"},
        {"row": 3, "address": B, "amount": "0.5", "coin": "eth", "network": "ethereum"},
    ]
    assert named == {"rows": [{"row": 2, "address": A, "amount": "1", "coin": "usdt", "network": "tron"}], "ignored": ["Name"]}
    assert places["rows"] == [{"row": 1, "address": A, "amount": "1", "coin": "usdt", "network": "tron"}]
    assert tabs["rows"][0]["amount"] == "1"


def test_what_is_no_payout_file_is_refused_in_words() -> None:
    texts = [
        "",
        "address,amount",
        "address,coin\nx,y",
        "hello",
        "who,what\nx,1",
        "amount,amount,address\n1,2,x",
        '"x',
        "a,1\n" * 5001,
    ]
    said = answered(FILES, READ, given=texts, usual=USUAL)
    assert {kind for kind, _ in said} == {"SyntaxError"}
    words = [
        "nothing in it",
        "no rows",
        "no column called amount",
        "address and an amount",
        "first line",
        "Two columns",
        "quote",
        "5001 rows",
    ]
    assert all(word in text for word, (_, text) in zip(words, said, strict=True)), said


def test_amounts_are_judged_by_their_coin() -> None:
    asked = [
        ("1.5", "eth", "ethereum"), ("0", "eth", "ethereum"), ("1,5", "eth", "ethereum"), ("1e3", "eth", "ethereum"),
        ("", "eth", "ethereum"),
        ("0.0000000000000000001", "eth", "ethereum"), ("0.009", "eth", "ethereum"), ("5.000000000000000001", "eth", "ethereum"),
        ("01", "eth", "ethereum"),
        ("9" * 30, "usdt", "tron"), ("9" * 33, "usdt", "tron"), ("1", "eth", "tron"), ("1", "busd", "bsc"), ("1", "", ""),
        ("-1", "eth", "ethereum"),
    ]  # fmt: skip
    rows = [
        {"row": n, "address": A, "amount": amount, "coin": coin, "network": network}
        for n, (amount, coin, network) in enumerate(asked)
    ]
    found = answered(FILES, "rows.map((row) => files.wrongWith(row, files.coinTable(coins)).join('; '))", rows=rows, coins=COINS)
    words = [
        "", "more than zero", "is no amount", "is no amount", "has no amount", "at most 18 decimals",
        "least of one withdrawal is 0.01",
        "most of one withdrawal is 5", "is no amount", "", "too many digits", "eth is not on tron", "not paid out at present",
        "names no network; names no coin", "is no amount",
    ]  # fmt: skip
    assert [(said == "") if word == "" else (word in said) for word, said in zip(words, found, strict=True)] == [True] * len(
        words
    ), found


CHECKED = """(() => {
  const { rows } = files.readPayouts(text, usual);
  const addresses = files.withResults(new Map(), results);
  const known = { coins: files.coinTable(coins), addresses, balances, recent };
  return files.checked(rows, { ...known, trusted: trusted && files.trustedOf(trusted) });
})()"""


def valid(address: str, normalized: str | None = None, reason: str | None = None) -> dict[str, Any]:
    return {
        "network": "ethereum",
        "address": address,
        "valid": reason is None,
        "normalized": None if reason else normalized or address,
        "reason": reason,
    }


def test_rows_are_checked_together() -> None:
    text = f"address,amount\n{A},1\n{A.lower()},1.50\nnothing,1\n{B},2\n{B},0\n"
    facts: dict[str, Any] = {
        "text": text, "usual": USUAL, "coins": COINS, "trusted": None,
        "results": [valid(A), valid(A.lower(), A), valid(B), valid("nothing", reason="must be 0x and 40 hexadecimal digits")],
        "balances": [{"network": "ethereum", "coin": "eth", "available": "4.25"}],
        "recent": [{"id": "wd_1", "network": "ethereum", "coin": "eth", "to_address": A, "amount": "1.5"}],
    }  # fmt: skip
    found = answered(FILES, CHECKED, **facts)
    assert [row["problems"] for row in found["rows"]] == [
        [], [], ["no address of ethereum: must be 0x and 40 hexadecimal digits"], [], ["the amount must be more than zero"],
    ]  # fmt: skip
    assert [row["warnings"] for row in found["rows"]] == [[], ["the same address as row 2"], [], [], []]
    assert [row["before"] and row["before"]["id"] for row in found["rows"]] == [None, "wd_1", None, None, None]
    (total,) = found["totals"]
    assert (total["count"], total["total"], total["available"], total["left"]) == (3, "4.5", "4.25", None)
    assert total["problem"] == "0.25 ETH are missing"
    listed = answered(FILES, CHECKED, **{**facts, "trusted": [{"network": "ethereum", "address": A}], "balances": None})
    assert [row["problems"] for row in listed["rows"]][3] == ["the address is not on the whitelist"]
    assert (listed["totals"][0]["total"], listed["totals"][0]["problem"]) == ("2.5", None)
    limited = [{**COINS[0], "settings": {**LIMITS, "maxValueDaily": 4}}]
    many = answered(FILES, CHECKED, **{**facts, "coins": limited, "balances": [{**facts["balances"][0], "available": "10"}]})
    assert (many["totals"][0]["left"], many["totals"][0]["problem"]) == ("5.5", "at most 4 ETH go out in 24 hours")


def test_each_address_is_validated_once_and_a_hundred_at_a_time() -> None:
    rows = [{"network": "ethereum", "address": f"0x{n % 150}"} for n in range(400)] + [
        {"network": "tron", "address": "T1"},
        {"network": "", "address": "x"},
    ]
    lists = answered(FILES, "files.toValidate(rows, files.withResults(new Map(), known))", rows=rows, known=[valid("0x0")])
    assert [(one["network"], len(one["addresses"])) for one in lists] == [("ethereum", 100), ("ethereum", 49), ("tron", 1)]
    assert len({address for one in lists for address in one["addresses"]}) == 150


RUNS = 'import * as runs from "payouts/run.js";'
SERVER = """
// A service that does each request once, and loses some of its answers.
function service(troubles) {
  const done = new Map(), asked = [], kept = [], paused = [];
  let paid = 0;
  const fail = (known) => Object.assign(new Error(known.message ?? "no answer"), { status: 0, ...known });
  return {
    asked, kept, paused, paid: () => paid, stopped: () => false, keep: (run) => kept.push(structuredClone(run)),
    pause: async (seconds) => { paused.push(seconds); },
    send: async (body, key) => {
      asked.push(key);
      const trouble = troubles.shift();
      if (trouble?.before) throw fail(trouble.before);
      const content = JSON.stringify(body);
      const before = done.get(key);
      if (before && before.content !== content) throw fail({ status: 400, message: "used with another request" });
      if (!before) {
        paid += body.batch_withdrawal.outputs.length;
        const withdrawals = body.batch_withdrawal.outputs.map((_, n) => ({ id: `wd_${done.size}_${n}`, status: "pending" }));
        done.set(key, { content, data: { batch_id: `wdb_${done.size}`, withdrawals } });
      }
      if (trouble?.after) throw fail(trouble.after);
      return { data: done.get(key).data, replayed: Boolean(before) };
    },
  };
}
const one = (n) => ({ row: n + 2, normalized: `0x${n}`, amount: "1", network: "ethereum", coin: "eth" });
const rows = Array.from({ length: 250 }, (_, n) => one(n));
const begin = (name = "May", salt) => runs.runOf({ name, salt, priority: "normal", rows, by: "key_1" }, runs.sha256, () => "spare");
"""


def played(script: str) -> Any:
    return value(f"{RUNS}\n{SERVER}", f"(async () => {{ {script} }})()")


def test_a_lost_answer_pays_nothing_twice() -> None:
    found = played("""
      const tools = service([{}, { after: {} }, { before: {} }, {}, { after: { status: 504 } }]);
      const run = await runs.sendAll(await begin(), tools);
      const keys = [...new Set(tools.asked)];
      return { paid: tools.paid(), progress: runs.progress(run), asked: tools.asked.length, keys, paused: tools.paused,
        replayed: run.batches.map((b) => b.replayed), ids: runs.results(run).map((r) => r.withdrawal),
        sent: tools.kept.map((r) => r.batches.map((b) => b.state)) };
    """)
    assert (found["paid"], found["asked"], len(found["keys"])) == (250, 6, 3)
    assert found["progress"] == {"all": 250, "made": 250, "refused": 0, "unknown": 0, "left": 0}
    assert found["paused"] == [2, 5, 2]
    assert found["replayed"] == [False, True, True]
    assert len(set(found["ids"])) == 250
    assert found["sent"][0] == ["sending", "waiting", "waiting"]
    assert all(key.startswith("payouts-") and len(key) == 72 for key in found["keys"])


def test_a_run_goes_on_where_it_stopped_also_in_another_browser() -> None:
    found = played("""
      const silence = Array.from({ length: 4 }, () => ({ after: {} }));
      const tools = service([{}, ...silence]);
      const stopped = await runs.sendAll(await begin(), tools);
      const again = await runs.sendAll(structuredClone(stopped), tools);
      const elsewhere = await runs.sendAll(await begin(), tools);
      const [renamed, again_] = [await begin("June"), await begin("May", "wd_9")];
      return { first: stopped.batches.map((b) => b.state), progress: runs.progress(stopped), again: runs.progress(again),
        paid: tools.paid(), elsewhere: elsewhere.batches.map((b) => b.replayed),
        other: [...renamed.batches, ...again_.batches].some((b) => again.batches.some((a) => a.key === b.key)) };
    """)
    assert found["first"] == ["made", "unknown", "waiting"]
    assert found["progress"] == {"all": 250, "made": 100, "refused": 0, "unknown": 100, "left": 50}
    assert (found["again"]["made"], found["paid"]) == (250, 250)
    assert (found["elsewhere"], found["other"]) == ([True, True, True], False)


def test_a_batch_whose_key_may_be_forgotten_is_not_sent_again() -> None:
    found = played("""
      const silence = Array.from({ length: 4 }, () => ({ after: {} }));
      const tools = service(silence);
      const stopped = await runs.sendAll(await begin(), tools);
      const day = 24 * 3_600_000;
      const old = { ...stopped, batches: stopped.batches.map((b) => ({ ...b, since: b.since && b.since - day })) };
      const asked = tools.asked.length;
      const after = await runs.sendAll(old, tools);
      return { more: tools.asked.length - asked, states: after.batches.map((b) => [b.state, Boolean(b.old)]), paid: tools.paid() };
    """)
    assert found == {"more": 0, "states": [["unknown", True], ["waiting", False], ["waiting", False]], "paid": 100}


def test_another_speed_makes_no_other_payment() -> None:
    found = played("""
      const tools = service([]);
      await runs.sendAll(await begin(), tools);
      const begun = await runs.runOf({ name: "May", priority: "high", rows, by: "key_1" }, runs.sha256, () => "spare");
      const after = await runs.sendAll(begun, tools);
      return { paid: tools.paid(), states: after.batches.map((b) => b.state) };
    """)
    assert found == {"paid": 250, "states": ["refused", "waiting", "waiting"]}


def test_rows_that_are_left_out_change_no_key_of_other_batches() -> None:
    found = played("""
      const made = (without) => runs.runOf({ name: "May", priority: "normal", rows, by: "key_1", without: new Set(without) },
        runs.sha256, () => "spare");
      const [whole, part] = [await made([]), await made(rows.slice(0, 101).map((r) => r.row))];
      const keys = whole.batches.map((b) => b.key);
      return { kept: part.batches.map((b) => b.rows.length), same: part.batches.map((b) => keys.includes(b.key)) };
    """)
    assert found == {"kept": [99, 50], "same": [False, True]}


def test_a_refused_batch_stops_the_run_and_names_its_rows() -> None:
    found = played("""
      const fields = [{ field: "batch_withdrawal.outputs.3.amount", value: "x", constraints: ["must be more than zero"] }];
      const details = { fields: ["batch_withdrawal.outputs.7.to_address"] };
      const bad = { status: 400, message: "Not an address", details, fields };
      const tools = service([{ before: { status: 429, retryAfter: 7 } }, {}, { before: bad }]);
      const run = await runs.sendAll(await begin(), tools);
      const rest = await runs.sendAll(run, tools, { skipRefused: true });
      const locked = await runs.sendAll(await begin("x"), service([{ before: { status: 401, message: "key revoked" } }]));
      return { paused: tools.paused, states: run.batches.map((b) => b.state), problems: run.batches[1].problems,
        rest: rest.batches.map((b) => b.state), paid: tools.paid(), locked: locked.batches.map((b) => [b.state, b.words]) };
    """)
    assert found["paused"] == [7]
    assert found["states"] == ["made", "refused", "waiting"]
    assert found["problems"] == {"109": ["Not an address"], "105": ["must be more than zero"]}
    assert (found["rest"], found["paid"]) == (["made", "refused", "made"], 150)
    assert found["locked"] == [["waiting", "key revoked"], ["waiting", None], ["waiting", None]]


def test_batches_are_of_one_coin_and_keep_the_order() -> None:
    rows = [
        {"row": n, "network": "tron" if n % 3 else "ethereum", "coin": "eth", "normalized": "x", "amount": "1"} for n in range(301)
    ]
    batches = answered(RUNS, "runs.batchesOf(rows).map((b) => [b.network, b.rows.map((r) => r.row)])", rows=rows)
    assert [(network, len(found)) for network, found in batches] == [
        ("ethereum", 100),
        ("tron", 100),
        ("tron", 100),
        ("ethereum", 1),
    ]
    assert all(found == sorted(found) for _, found in batches)
