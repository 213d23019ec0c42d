"""What the portal's forms of invoices, refunds, payment links and settings send."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from chalicelib.domain.catalogue.fiats import FIATS
from chalicelib.web.colors import ink_on, rgb
from tests.support.javascript import value

pytestmark = pytest.mark.nodes


IMPORTS = """
import { FIATS } from "catalogue/fiats.js";
import { transactionUrl } from "catalogue/explorers.js";
import { unnested } from "app/nested_errors.js";
import { priceFields, priced } from "invoices/price_fields.js";
import { invoiceOf } from "invoices/fields.js";
import { refundFields, refundOf } from "invoices/refund_fields.js";
import { leastOf, settingsOf } from "invoices/settings_fields.js";
import { moments } from "invoices/timeline.js";
import { changedLink, linkFields, newLink } from "payment_links/fields.js";
import { readable, shopChange } from "shop/fields.js";
import { base64, fitted, isPng, sides } from "shop/images.js";
import { converted } from "app/form.js";
import { first } from "app/fields.js";
import { unwrapped } from "app/api.js";
const coins = { known: true, coins: [{ coin: "usdt", network: "tron" }], options: [["usdt@tron", "USDT"]] };
// What a form sends that nobody has touched: the fields that it shows, with what they begin with.
const untouched = (fields) => {
  const values = Object.fromEntries(fields.map((field) => [field.name, first(field)]));
  const { content, problems } = converted(fields.filter((field) => !field.when || field.when(values)), values);
  if (Object.keys(problems).length > 0) throw new Error(JSON.stringify(problems));
  return content;
};
"""


def js(expression: str) -> Any:
    return value(IMPORTS, expression)


def test_the_currencies_are_those_of_the_service() -> None:
    assert js("FIATS") == dict(FIATS)


def test_a_list_without_an_envelope_has_its_page() -> None:
    assert js("""unwrapped({ count: 1, data: [7], meta: { pagination: { total: 1 } } })""") == {"data": [7], "page": {"total": 1}}


ASKED = [
    (
        """{ priceIn: "fiat", fiatAmount: "49.90", fiatCurrency: "EUR", coins: "any", minutes: 30, more: false }""",
        {"fiatAmount": "49.90", "fiatCurrency": "EUR", "expiresIn": 1800},
    ),
    (
        """{ priceIn: "fiat", fiatAmount: "5", fiatCurrency: "USD", coins: "some", accept: ["usdt@tron", "btc"], more: true,
             metadata: { a: 1 } }""",
        {
            "fiatAmount": "5",
            "fiatCurrency": "USD",
            "accept": [{"coin": "usdt", "network": "tron"}, {"coin": "btc"}],
            "metadata": {"a": 1},
        },
    ),
    (
        """{ priceIn: "coin", amount: "0.05", currency: "eth@ethereum", description: "shoes" }""",
        {"amount": "0.05", "currency": "eth", "network": "ethereum", "description": "shoes"},
    ),
]


def test_an_invoice_is_asked_for_as_it_was_typed() -> None:
    assert js(f"[{', '.join(values for values, _ in ASKED)}].map(invoiceOf)") == [body for _, body in ASKED]


def test_a_refund_names_what_it_has_to() -> None:
    linked, sent = js("""[refundOf({ mode: "same", to: "link", days: 2, reason: "Out of stock" }),
        refundOf({ mode: "same", coin: "usdt@tron", amount: "5", to: "address", address: "T1", days: 7 })]""")
    assert linked == {"mode": "same", "expiresIn": 172_800, "reason": "Out of stock"}
    assert sent == {"mode": "same", "coin": "usdt", "network": "tron", "amount": "5", "address": "T1"}


def test_an_invoice_paid_in_two_coins_asks_which() -> None:
    asked = js("""refundFields({ currency: "eth", network: "ethereum", choices: [
        { coin: "usdt", network: "tron", received: "5" }, { coin: "btc", network: "bitcoin", received: "0" },
        { coin: "eth", network: "ethereum", received: "1" }] }, coins)
        .filter((field) => field.name === "coin").map((field) => field.options)""")
    assert asked == [[["usdt@tron", "USDT on tron"], ["eth@ethereum", "ETH on ethereum"]]]


LINKS = [
    """{ name: "a", fiatAmount: "49.9", fiatCurrency: "EUR" }""",
    """{ name: "a", fiatAmount: { min: "5", max: "50" }, fiatCurrency: "EUR", accept: [{ coin: "usdt", network: "tron" }],
         stock: 3 }""",
    """{ name: "a", amount: "5", currency: "usdt", network: "tron", description: "x", expiresAt: "2030-01-01T00:00:12.345Z",
         redirectUrl: "https://shop.example/", metadata: { b: 1, a: 2 } }""",
    """{ name: "a", fiatAmount: "5", fiatCurrency: "EUR", currency: "usdt", network: "tron" }""",
]


def test_a_link_that_nobody_touched_is_not_changed() -> None:
    assert js(f"[{', '.join(LINKS)}].map((link) => changedLink(link, untouched(linkFields(coins, link))))") == [{}] * len(LINKS)


CHANGES = [
    (LINKS[0], """{ name: "b" }""", {"name": "b"}),
    (LINKS[1], """{ stock: undefined }""", {"stock": None}),
    (LINKS[0], """{ fiatAmount: "50" }""", {"fiatAmount": "50", "fiatCurrency": "EUR"}),
    (LINKS[3], """{ coins: "any", currency: undefined }""", {"fiatAmount": "5", "fiatCurrency": "EUR", "currency": None}),
    (
        LINKS[2],
        """{ description: undefined, expiresAt: "2031-01-01T00:00:00.000Z" }""",
        {"description": None, "expiresAt": "2031-01-01T00:00:00.000Z"},
    ),
]


def test_a_changed_link_sends_what_is_another_now() -> None:
    asked = ", ".join(f"[{link}, {change}]" for link, change, _ in CHANGES)
    found = js(f"[{asked}].map(([link, change]) => changedLink(link, {{ ...untouched(linkFields(coins, link)), ...change }}))")
    assert found == [body for *_, body in CHANGES]


def test_settings_are_sent_as_they_are_shown() -> None:
    sent, said = js("""[settingsOf({ minutes: 60, lockMinutes: 15, autoConfirmThreshold: "0", limited: false,
        latePayments: "manual", minimumAmounts: ["BTC 0.0001"] }, {}),
        (() => { try { leastOf(["btc"]); } catch (error) { return error.message; } })()]""")
    assert sent == {
        "defaultExpirationTime": 3600,
        "autoConfirmThreshold": "0",
        "supportedCurrencies": [],
        "minimumAmounts": {"btc": "0.0001"},
        "tolerancePercent": "0",
        "toleranceMaxUSD": None,
        "latePayments": "manual",
    }
    assert "no coin with an amount" in said


def test_a_nested_body_complains_under_the_names_of_the_form() -> None:
    found = js("""unnested("settings",
                    async () => { throw { fields: [{ field: "settings.toleranceMaxUSD" }, { field: "other" }] }; })
                  .catch((error) => error.fields.map((each) => each.field))""")
    assert found == ["toleranceMaxUSD", "other"]


def test_a_shop_sends_what_is_another_now() -> None:
    shop = """{ name: "Shoes", color: "#0b6e4f", logo: null, frameAncestors: ["https://a.example"] }"""
    same, other, inks = js(f"""[shopChange({shop}, {{ name: "Shoes", color: "#0b6e4f", frameAncestors: ["https://a.example"] }}),
        shopChange({shop}, {{ color: "#000000" }}), ["#0b6e4f", "#ffcc00", "#ffffff", "#000000"].map(readable)]""")
    assert same == {}
    assert other == {"name": None, "color": "#000000", "frameAncestors": []}
    assert inks == ["#ffffff", "#000000", "#000000", "#ffffff"]
    # As the pages themselves choose it: the preview shows what payers see.
    greys = [f"#{grey:02x}{grey:02x}{grey:02x}" for grey in range(100, 140)]
    assert js(f"{greys!r}.map(readable)") == ["#" + ink_on(rgb(grey))[1:] * 2 for grey in greys]


def test_pictures_shrink_in_proportion() -> None:
    fitted, tried, text, known = js("""[[fitted(1000, 300), fitted(40, 20), fitted(3, 4000)], sides(4000, 2000),
        base64(new Uint8Array([104, 105])), [[0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10], [0xff, 0xd8]].map(isPng)]""")
    assert fitted == [[512, 154], [40, 20], [1, 512]]
    assert tried[0] == [512, 256]
    assert all(one[0] > other[0] for one, other in pairwise(tried))
    assert (text, known) == ("aGk=", [True, False])


def test_explorers_are_linked_for_hashes_alone() -> None:
    of, plain = "0x" + "a" * 64, "b" * 64
    found = js(f"""[["https://etherscan.io/", "ethereum", "{of}"], ["https://tronscan.org", "tron", "{plain}"],
        ["javascript:alert(1)", "ethereum", "{of}"], ["https://etherscan.io", "ethereum", "../../evil"]]
        .map((each) => transactionUrl(...each))""")
    assert found == [f"https://etherscan.io/tx/{of}", f"https://tronscan.org/#/transaction/{plain}", None, None]


def test_the_timeline_tells_what_was_and_what_comes() -> None:
    told = js("""moments({ createdAt: "2026-05-01T12:00:00.000Z", expiresAt: "2026-05-01T13:00:00.000Z", status: "pending" }, {},
                         Date.parse("2026-05-01T12:30:00.000Z")).map((each) => each.text)""")
    assert told == ["Expires, if it is not paid by then", "Invoice made"]
