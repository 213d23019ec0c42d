"""Exports of lists: walked to the end whatever happens meanwhile, with cells that no spreadsheet runs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.javascript import value

pytestmark = pytest.mark.nodes


JOB = """
import { ExportJob, wholeList } from "app/export_job.js";
const columns = [{ label: "id", value: (row) => row.id }, { label: "note", value: (row) => row.note }];
const failure = (status, retryAfter) => Object.assign(new Error("x"), { status, retryAfter });
// A list of the newest first: its cursor is the id of the last row, as the API's is a place in time.
function server(rows, { fails = {}, between = () => {}, size = 3 } = {}) {
  let asked = 0;
  return async (query) => {
    asked += 1;
    if (fails[asked]) throw fails[asked];
    const behind = query.cursor === undefined ? 0 : rows.findIndex((row) => row.id === query.cursor) + 1;
    const data = rows.slice(behind, behind + size);
    const more = behind + size < rows.length;
    const total = query.cursor === undefined ? rows.length : null;
    between(asked, rows);
    return { data, page: { has_next: more, next_cursor: more ? data.at(-1).id : null, total } };
  };
}
const some = (count) => Array.from({ length: count }, (_, place) => ({ id: `r${count - place}`, note: "" }));
async function exported(ask, more = {}) {
  const waits = [];
  const phases = [];
  const job = new ExportJob({ ask, columns, query: {}, sleep: async (ms) => { waits.push(ms); }, ...more });
  job.tell = () => phases.push(job.state.phase);
  await job.run();
  const ids = () => job.text.join("").split("\\r\\n").slice(1, -1).map((line) => line.split(",")[0]);
  return { job, waits, phases, ids };
}
"""


def run(expression: str) -> Any:
    return value(JOB, f"(async () => {{ {expression} }})()")


def test_no_row_is_lost_or_doubled_while_new_ones_arrive() -> None:
    found = run("""
        const rows = some(10);
        const between = (asked, list) => list.unshift({ id: `new${asked}`, note: "" });
        const { ids, job } = await exported(server(rows, { between }));
        return [ids(), job.state];
    """)
    assert found[0] == [f"r{number}" for number in range(10, 0, -1)]
    assert (found[1]["phase"], found[1]["rows"], found[1]["total"]) == ("done", 10, 10)


def test_the_limit_of_the_key_is_waited_for() -> None:
    found = run("""
        const { ids, waits, phases } = await exported(server(some(7), { fails: { 2: failure(429, 17), 3: failure(429, null) } }));
        return [ids().length, waits, phases.includes("waiting"), phases.at(-1)];
    """)
    assert found == [7, [17_000, 60_000], True, "done"], "as long as Retry-After says, and a minute where nothing does"


def test_it_goes_on_after_a_failure_from_where_it_stopped() -> None:
    found = run("""
        const fails = Object.fromEntries([2, 3, 4, 5].map((at) => [at, failure(500)]));
        const { ids, job, waits } = await exported(server(some(8), { fails }));
        const stopped = { ...job.state };
        await job.run();
        return [stopped.phase, stopped.rows, waits, job.state.phase, ids()];
    """)
    assert found[:2] == ["failed", 3]
    assert found[2] == [1_000, 4_000, 16_000], "a silent service is asked again by itself, and not for ever"
    assert found[3:] == ["done", [f"r{number}" for number in range(8, 0, -1)]]


def test_what_no_waiting_mends_is_told_at_once() -> None:
    found = run("""
        const { job, waits } = await exported(server(some(8), { fails: { 2: failure(403) } }));
        return [job.state.phase, waits, job.state.error.status];
    """)
    assert found == ["failed", [], 403]


def test_a_cancelled_one_asks_no_more_and_keeps_nothing() -> None:
    found = run("""
        let asked = 0;
        const ask = server(some(9));
        const asking = async (query) => { asked += 1; if (asked === 2) job.cancel(); return ask(query); };
        const job = new ExportJob({ ask: asking, columns, query: {} });
        await job.run();
        return [job.state.phase, asked, job.text.length];
    """)
    assert found == ["cancelled", 2, 0]


def test_a_cursor_that_stays_ends_it() -> None:
    found = run("""
        const ask = async () => ({ data: [{ id: "a" }], page: { has_next: true, next_cursor: "same", total: null } });
        const { job } = await exported(ask);
        return [job.state.phase, job.state.error.message.includes("does not go on")];
    """)
    assert found == ["failed", True], "a fault of the service is no endless loop"


def test_all_rows_are_asked_for_in_order_of_time() -> None:
    asked = run("""return wholeList({ status: "paid", page: 3, cursor: "x", sort: "amount", order: "asc", limit: 20 });""")
    assert asked == {"status": "paid", "limit": 100}


def test_a_long_export_leaves_room_for_others() -> None:
    found = run("""
        const { waits } = await exported(server(some(120)), { rest: 250 });
        return [waits.length, new Set(waits).size, waits[0]];
    """)
    assert found == [9, 1, 250], "of forty requests those behind the thirtieth wait before they are sent"


def test_it_says_from_which_day_on_it_has_everything() -> None:
    found = run("""
        const ask = (days) => async () => {
            const from = days.shift();
            const more = days.length > 0;
            const page = { has_next: more, next_cursor: more ? `c${days.length}` : null, total: null };
            return { data: [], page: from ? { ...page, covers_from: from } : page };
        };
        const covers = async (days) => (await exported(ask(days))).job.state.covers;
        return [await covers([null]), await covers([null, "2025-10-19"]), await covers(["2025-10-19", "2025-10-20"])];
    """)
    assert found == [None, "2025-10-19", "2025-10-20"], "a day that ends meanwhile takes rows of the last pages away"


def test_what_asks_for_earlier_days_is_known() -> None:
    found = value(
        """import { asksBefore, coverage } from "app/coverage.js";
        const day = "2025-10-19";""",
        """[asksBefore(undefined, {}), asksBefore(day, {}), asksBefore(day, { "createdAt[lte]": "2026-01-01" }),
            asksBefore(day, { "createdAt[gte]": "2025-10-18" }), asksBefore(day, { "createdAt[gte]": "2025-10-19" }),
            asksBefore(day, { "createdAt[gte]": "2025-10-18T23:59:59Z" }), coverage(day)]""",
    )
    assert found[:-1] == [False, True, True, True, False, True]
    assert "everything from 19 Oct 2025 (UTC) on" in found[-1], "a day in UTC, wherever the reader is"


COLUMNS = """
import { INVOICES, TRANSACTIONS, WITHDRAWALS, paidValue } from "app/export_columns.js";
import { toCsv } from "app/csv.js";
"""


def csv_of(columns: str, row: str) -> dict[str, str]:
    head, line = value(COLUMNS, f"toCsv({columns}, [{row}])").split("\r\n")[:2]
    return dict(zip(head.split(","), line.split(","), strict=False))


def test_an_invoice_has_the_value_of_all_its_payments() -> None:
    row = csv_of(
        "INVOICES",
        """{ id: "inv_1", amount: "1", transactions: [
            { hash: "a", fiatValue: { amount: "2.50", currency: "EUR", source: "kraken" } },
            { hash: "b", fiatValue: { amount: "10.10", currency: "EUR", source: "coingecko" } },
            { hash: "c", fiatValue: null }] }""",
    )
    assert (row["fiatValue"], row["fiatValueCurrency"], row["fiatValueSource"]) == ("12.60", "EUR", "kraken coingecko")
    assert (row["paymentsWithoutFiatValue"], row["payments"]) == ("1", "3")


def test_values_in_two_currencies_are_not_added() -> None:
    found = value(
        COLUMNS,
        """paidValue({ transactions: [{ fiatValue: { amount: "1", currency: "EUR", source: "a" } },
                                      { fiatValue: { amount: "1", currency: "USD", source: "a" } }] })""",
    )
    assert (found["amount"], found["currency"], found["unknown"]) == (None, None, 2)


def test_what_strangers_wrote_is_no_formula() -> None:
    row = csv_of("INVOICES", """{ id: "inv_1", externalId: "=HYPERLINK(1)", description: "@SUM(A1)", transactions: [] }""")
    assert (row["externalId"], row["description"]) == ("'=HYPERLINK(1)", "'@SUM(A1)")


def test_transactions_and_withdrawals_have_value_and_source() -> None:
    worth = """{ amount: "150.00", currency: "USD", source: "kraken" }"""
    sent = csv_of("TRANSACTIONS", f"""{{ id: "tx_1", amount: "0.05", fiatValue: {worth}, flags: ["held"] }}""")
    out = csv_of("WITHDRAWALS", f"""{{ id: "wd_1", amount: "0.05", fiat_value: {worth} }}""")
    for row in (sent, out):
        assert (row["fiatValue"], row["fiatValueCurrency"], row["fiatValueSource"]) == ("150.00", "USD", "kraken")
    assert csv_of("TRANSACTIONS", """{ id: "tx_1", fiatValue: null }""")["fiatValue"] == ""
