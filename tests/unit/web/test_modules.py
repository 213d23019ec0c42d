"""The pages' modules that compute, in Node.js: money as text, CSV, addresses, what an error says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.javascript import value

pytestmark = pytest.mark.nodes

_FORMAT = 'import * as f from "app/format.js"; import { harmless, parseCsv, toCsv } from "app/csv.js";'
_ADDRESS = (
    'import * as r from "app/router.js"; import * as a from "app/api.js"; import { parseJson } from "app/json.js";'
    "const fails = (f) => { try { f(); return null; } catch (error) { return error.name; } };"
)


def computed(source: str, cases: list[tuple[str, Any]]) -> None:
    """One Node.js for all cases: each expression has its value."""
    found = value(source, f"[{', '.join(expression for expression, _ in cases)}]")
    assert dict(zip((expression for expression, _ in cases), found, strict=True)) == dict(cases)


def test_money_is_text_and_exact() -> None:
    computed(
        _FORMAT,
        [
            ('f.amount("1234567.890000000000000001")', "1,234,567.890000000000000001"),
            ('f.amount("0")', "0"),
            ('f.amount("-1000")', "-1,000"),
            ('f.amount("<b>")', "<b>"),
            ('f.sum("0.1", "0.2", "1000000000000000000000000.000000000000000001")', "1000000000000000000000000.300000000000000001"),
            ('f.difference("1", "0.000000000000000001")', "0.999999999999999999"),
            ('f.difference("1.50", "2.5")', "-1"),
            ("f.sumOfDollars([0.1, 0.2, 1e-9, 12])", "12.3"),
            ('f.compare("0.10", "0.1")', 0),
            ('f.compare("10", "9.999999999999999999")', 1),
            ('String(f.toUnits("1.5", 18))', "1500000000000000000"),
            ("f.fromUnits(-1n, 8)", "-0.00000001"),
            ('f.fiat(1234.5)', "$1,234.50"),
            ('f.fiat("10.5", "KWD")', "10.5 KWD"),
            ("f.fiat(null)", ""),
            ('["1e5", "-1", ".5", "1.", "0x1", "", "1,5", "٣"].map(f.isAmount)', [False] * 8),
            ('f.isAmount("0.123456789012345678")', True),
        ],
    )  # fmt: skip


def test_times_and_words() -> None:
    computed(
        _FORMAT,
        [
            ('f.utc("2026-05-01T12:00:05.000Z")', "1 May 2026, 12:00:05 UTC"),
            ('f.moment("2026-05-01T23:30:00Z", { zone: "Asia/Tokyo" })', "2 May 2026, 08:30"),
            ('f.moment("nonsense")', "nonsense"),
            ("f.duration(5400)", "1 hour 30 minutes"),
            ("f.duration(3605)", "1 hour"),
            ("f.duration(0)", "0 seconds"),
            ('f.since("2026-05-01T12:00:00Z", Date.parse("2026-05-01T12:03:00Z"))', "3 minutes ago"),
            ('f.since("2026-05-01T14:00:00Z", Date.parse("2026-05-01T12:00:00Z"))', "in 2 hours"),
            ('f.words("awaiting_claim")', "Awaiting claim"),
            ('f.words("latePaymentsPercent")', "Late payments percent"),
            ('f.shorten("0x5c504ed432cb51138bcf09aa5e8a410d")', "0x5c504e…8a410d"),
            ('["javascript:alert(1)", "data:text/html,x", "//x.example", "ftp://x"].map(f.webLink)', [None] * 4),
            ('f.webLink("https://shop.example/a?b=1")', "https://shop.example/a?b=1"),
        ],
    )


def test_cells_are_harmless_and_come_back() -> None:
    rows = '[["a", "=1+1"], ["b\\"c", "x, y"], ["line\\nbreak", "-5"]]'
    columns = '[{ label: "@one", value: (row) => row[0] }, { label: "two", value: (row) => row[1] }]'
    computed(
        _FORMAT,
        [
            ('["=1", "+1", "-1", "@x", "\\tx", "\\rx", "＝x", "x=1", "", null, 5].map(harmless)',
             ["'=1", "'+1", "'-1", "'@x", "'\tx", "'\rx", "'＝x", "x=1", "", "", "5"]),
            # Where the separator is a semicolon, and our quotes do not count.
            ('["a;=1", "a; \\"@x", "a\\n=1", "a\\t+1", " =1", "a;b=1", "a-1"].map(harmless)',
             ["a;'=1", "a; \"'@x", "a\n'=1", "a\t'+1", "' =1", "a;b=1", "a-1"]),
            (f"toCsv({columns}, {rows})", '\'@one,two\r\na,\'=1+1\r\n"b""c","x, y"\r\n"line\nbreak",\'-5\r\n'),
            (f"parseCsv(toCsv({columns}, {rows}))", [["'@one", "two"], ["a", "'=1+1"], ['b"c', "x, y"], ["line\nbreak", "'-5"]]),
            ('parseCsv("\\ufeffa;b,c;d\\r\\n1;2;3\\n\\n")', [["a", "b,c", "d"], ["1", "2", "3"]]),
            ('parseCsv("a\\tb\\n\\"x\\ty\\"\\t")', [["a", "b"], ["x\ty", ""]]),
            ('(() => { try { return parseCsv("a,b\\n1,\\"open"); } catch (error) { return error.message; } })()',
             "Line 2: a quote is opened and never closed"),
        ],
    )  # fmt: skip


def test_an_address_leads_where_it_reads() -> None:
    """Parts of an address may come from a link that somebody was sent: none of them may name another endpoint."""
    hostile = ["../api-keys", "..", ".", "%2e%2e", "a%2Fb", "a\\\\b", "a?b=1", "a#b", "", "%00", "%zz"]
    computed(
        _ADDRESS,
        [
            (f"{hostile!r}.map((id) => fails(() => a.address('/api/', '/invoices/' + id)))", ["TypeError"] * len(hostile)),
            (f"{[*hostile, 'a/b']!r}.map((id) => r.match('/invoices/:id', '/invoices/' + id)).filter(Boolean)", []),
            ("r.match('/invoices/:id', '/invoices/inv_1')", {"id": "inv_1"}),
            ("r.match('/a/:id/b', '/a/x%20y/b')", {"id": "x y"}),
            ("a.address('/api/', a.at`/a/${'x y'}`, { a: 1, b: '', c: null, d: ['x', 'y'] })", "/api/v1/a/x%20y?a=1&d=x&d=y"),
            ("fails(() => a.address('/api/', a.at`/a/${'../b'}`))", "TypeError"),
            ("fails(() => a.address('/api/', 'https://x.example'))", "TypeError"),
            ("fails(() => a.address('/api/', '//x.example/a'))", "TypeError"),
            ("r.parse('#/invoices/?status=a%26b&page=2')", {"path": "/invoices", "query": {"status": "a&b", "page": "2"}}),
            ("r.parse('#nonsense')", {"path": "/", "query": {}}),
            ("r.fragment('/a', { x: '1 2', y: null, z: '' })", "#/a?x=1+2"),
            ("r.parse(r.fragment('/a', { 'created_at.gte': '2026-05-01' })).query", {"created_at.gte": "2026-05-01"}),
        ],
    )  # fmt: skip


def test_numbers_of_the_api_keep_every_digit() -> None:
    computed(
        _ADDRESS,
        [
            ("""parseJson('{"a":0.123456789012345678,"b":1.5,"c":[12345678901234567890,-0.1],"d":"1.123456789012345678"}')""",
             {"a": "0.123456789012345678", "b": 1.5, "c": ["12345678901234567890", -0.1], "d": "1.123456789012345678"}),
            ("fails(() => parseJson('<html>'))", "SyntaxError"),
        ],
    )  # fmt: skip


def test_an_error_is_understood_in_every_published_shape() -> None:
    wrong = '"INVALID_PARAMETER"'
    flat = f'{{ error: "m", code: {wrong}, details: "currency: is required; amount: must be more, or not" }}'
    rule = '{ error: "m", code: "VALIDATION_ERROR", details: "field: amount; reason: is more than can be refunded" }'
    problem = '{ field: "a.b", value: 1, constraints: ["c"] }'
    listed = f'{{ success: false, error: {{ code: {wrong}, message: "m", details: [{problem}] }} }}'
    business = '{ error: { code: "VALIDATION_ERROR", message: "m", details: { field: "a", reason: "no" } } }'
    fields = "(body) => a.failureOf(400, body).fields"
    computed(
        _ADDRESS,
        [
            (f"({fields})({flat}).map((each) => each.field + ' ' + each.constraints[0])",
             ["currency is required", "amount must be more, or not"]),
            (f"({fields})({rule})[0]", {"field": "amount", "value": None, "constraints": ["is more than can be refunded"]}),
            (f"({fields})({listed})[0]", {"field": "a.b", "value": 1, "constraints": ["c"]}),
            (f"({fields})({business})[0]", {"field": "a", "value": None, "constraints": ["no"]}),
            ("a.failureOf(502, null).code", "UNREADABLE"),
            ('a.failureOf(429, {}, new Map([["retry-after", "7"]])).retryAfter', 7),
            ("a.unwrapped({ success: true, data: [1], meta: { pagination: { page: 1 } } })", {"data": [1], "page": {"page": 1}}),
            ("a.unwrapped({ count: 1, data: [1], meta: { pagination: {} } })", {"data": [1], "page": {}}),
            ("a.unwrapped([1])", {"data": [1], "page": None}),
        ],
    )  # fmt: skip


def test_a_list_that_comes_at_once_is_shown_page_by_page() -> None:
    rows = "Array.from({ length: 101 }, (_, at) => at)"
    pages = [
        "paged([1, 2], {})",
        *(f"(({{ rows, page }}) => [rows[0], rows.length, page.page, page.pages])(paged({rows}, {query}))" for query in (
            "{}", '{ page: "2" }', '{ page: "99", limit: "20" }', '{ page: "nonsense", limit: "7" }',
        )),
    ]  # fmt: skip
    whole: dict[str, Any] = {"rows": [1, 2], "page": None}
    computed(
        'import { paged } from "app/list.js";',
        list(zip(pages, [whole, [0, 100, 1, 2], [100, 1, 2, 2], [100, 1, 6, 6], [0, 100, 1, 2]], strict=True)),
    )
