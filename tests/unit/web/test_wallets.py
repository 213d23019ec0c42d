"""What the checkout asks of a wallet in the payer's browser: exact units, one plain transfer, and nothing of a wrong network."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.chains.abi import transfer_call
from tests.support.javascript import value

pytestmark = pytest.mark.nodes

IMPORTS = """
import * as evm from "checkout/evm.js";
const PAYMENT = evm.asked("ethereum:0xdAC17F958D2ee523a2206206994597C13D831ec7@137/transfer?address=" +
  "0x52908400098527886E0F7030069857D2E4169EE7&uint256=1234567890123456789012");
const NATIVE = evm.asked("ethereum:0x52908400098527886E0F7030069857D2E4169EE7@137?value=1500000000000000001");
const ME = "0x" + "ab".repeat(20);
const word = (n) => "0x" + BigInt(n).toString(16);
// A wallet that answers from a table, and writes down what it was asked.
function wallet(answers) {
  const asked = [];
  return { asked, request: async ({ method, params }) => {
    asked.push([method, params ?? []]);
    const answer = answers[method];
    const found = typeof answer === "function" ? answer(params) : answer;
    if (found?.code) throw found;
    return found;
  } };
}
async function tried(run) {
  try {
    return { done: await run() ?? null };
  } catch (error) {
    return { key: error.key, values: error.values };
  }
}
"""


def of(expression: str) -> Any:
    return value(IMPORTS, expression)


URIS = [
    "bitcoin:bc1q?amount=1",
    "ethereum:0x52908400098527886E0F7030069857D2E4169EE7@1",
    "ethereum:0x52908400098527886E0F7030069857D2E4169EE7@1?value=1e18",
    "ethereum:0x52908400098527886E0F7030069857D2E4169EE7@1?value=1.5",
    "ethereum:0x52908400098527886E0F7030069857D2E4169EE7@1?value=-1",
    "ethereum:0x52908400098527886E0F7030069857D2E4169EE7@1/approve?address=0x52908400098527886E0F7030069857D2E4169EE7&uint256=1",
    "ethereum:0x52908400098527886E0F7030069857D2E4169EE7@1?value=1&gas=9",
    "javascript:alert(1)",
    "",
]


def test_only_plain_transfers_are_read() -> None:
    assert of(f"{URIS!r}.map(evm.asked)") == [None] * len(URIS)


def test_amounts_are_exact_to_the_last_unit() -> None:
    recipient, units = "0x52908400098527886E0F7030069857D2E4169EE7", 1234567890123456789012
    assert of("evm.transaction(PAYMENT, ME)") == {
        "from": "0x" + "ab" * 20,
        "chainId": "0x89",
        "to": "0xdAC17F958D2ee523a2206206994597C13D831ec7",
        "value": "0x0",
        "data": "0x" + transfer_call(recipient, units).hex(),
    }
    native, *decimals = of(
        "[evm.transaction(NATIVE, ME), evm.decimal(1500000000000000001n, 18), evm.decimal(0n, 6), evm.decimal(7n, 6),"
        " evm.decimal(1000000n, 6), evm.decimal(12n, 0)]"
    )
    assert (native["to"], int(native["value"], 16), "data" in native) == (recipient, 1500000000000000001, False)
    assert decimals == ["1.500000000000000001", "0", "0.000007", "1", "12"]


def test_a_wallet_on_another_network_sends_nothing() -> None:
    run = (
        "(async () => { const w = wallet({ eth_chainId: '0x1' }); return [await tried(() => evm.pay(w, NATIVE, ME)), w.asked]; })()"
    )
    said, asked = of(run)
    assert said["key"] == "wrongNetwork"
    assert [method for method, _ in asked] == ["eth_chainId"]


def test_a_network_that_the_wallet_does_not_know_is_added_where_its_data_are_public() -> None:
    wallets = """(async () => {
      let chain = "0x1", known = false;
      const w = wallet({
        eth_chainId: () => chain,
        wallet_switchEthereumChain: () => {
          if (!known) return { code: -32603, data: { originalError: { code: 4902 } } };
          chain = "0x89";
          return null;
        },
        wallet_addEthereumChain: () => { known = true; return null; },
      });
      const said = await tried(() => evm.switchTo(w, NATIVE, CHAIN));
      return [said, w.asked];
    })()"""
    said, asked = of(wallets.replace("CHAIN", '{ chainId: "0x89", rpcUrls: ["https://polygon-rpc.com"] }'))
    assert said == {"done": None}
    assert [method for method, _ in asked if method.startswith("wallet")] == [
        "wallet_switchEthereumChain", "wallet_addEthereumChain", "wallet_switchEthereumChain",
    ]  # fmt: skip
    assert asked[0][1] == [{"chainId": "0x89"}]
    said, asked = of(wallets.replace("CHAIN", "null"))
    assert said["key"] == "noNetwork"


def test_a_wallet_that_lies_about_its_switch_is_not_believed() -> None:
    run = "tried(() => evm.switchTo(wallet({ eth_chainId: '0x1', wallet_switchEthereumChain: null }), NATIVE, null))"
    assert of(run)["key"] == "wrongNetwork"


FUNDS: list[tuple[str, int, str, str | None]] = [
    ("NATIVE", 10**18, "null", "wrongCoin"),
    ("NATIVE", 1500000000000000001, "null", "noFee"),
    ("NATIVE", 2 * 10**18, "null", None),
    ("PAYMENT", 1, '"0x"', "wrongCoin"),
    ("PAYMENT", 1, "word(5)", "wrongCoin"),
    ("PAYMENT", 0, "word(1234567890123456789012n)", "noFee"),
    ("PAYMENT", 1, "word(1234567890123456789012n)", None),
    ("PAYMENT", 1, '"nonsense"', None),
]


def test_an_account_without_money_is_told_before() -> None:
    calls = [
        f"tried(() => evm.demandFunds(wallet({{ eth_getBalance: word({native}n), eth_call: {tokens} }}), {payment}, ME, 18))"
        for payment, native, tokens, _ in FUNDS
    ]
    said = of(f"Promise.all([{', '.join(calls)}])")
    assert [each.get("key") for each in said] == [expected for *_, expected in FUNDS]
    assert said[0]["values"] == {"have": "1"}


def test_answers_that_are_none_are_not_believed() -> None:
    hashes = ["null", "{}", '"0xabc"', "[]", '"<img src=x>"']
    paid = [f"tried(() => evm.pay(wallet({{ eth_chainId: '0x89', eth_sendTransaction: {each} }}), NATIVE, ME))" for each in hashes]
    accounts = ["null", "[]", '"0x"', '["0x12"]', "[{}]"]
    connected = [f"tried(() => evm.connect(wallet({{ eth_requestAccounts: {each} }})))" for each in accounts]
    said = of(f"Promise.all([{', '.join([*paid, *connected])}])")
    assert [each["key"] for each in said] == ["unsure"] * 5 + ["unclear"] * 5


def test_names_are_text_and_icons_are_images() -> None:
    source = 'import { nameOf, iconOf } from "checkout/found_wallets.js";'
    names = ["'<b>Fox</b>'", "'Meta\\u202eksaM\\u0000'", "'x'.repeat(999)", "null"]
    icons = [
        "'https://evil.example/x.png'", "'javascript:alert(1)'", "'data:text/html,<script>'",
        "'data:image/png;base64,' + 'A'.repeat(70000)", "7", "'data:image/svg+xml;base64,AA=='",
    ]  # fmt: skip
    said = value(source, f"[[{', '.join(names)}].map(nameOf), [{', '.join(icons)}].map(iconOf)]")
    assert said == [["<b>Fox</b>", "MetaksaM", "x" * 40, None], [None] * 5 + ["data:image/svg+xml;base64,AA=="]]


TRON = """
import * as tron from "checkout/tron_link.js";
globalThis.window = {};
globalThis.setTimeout = (run) => { run(); };
const ME = "TCNkawTmcQgYSU8nP8cHswT1QPjharxJr7";
const asked = [];
// The service: answers in order, [status, body], or nothing at all.
function service(...answers) {
  globalThis.fetch = async (path, { method, body, credentials, redirect }) => {
    asked.push([method, path, JSON.parse(body), credentials, redirect]);
    const answer = answers.shift();
    if (!answer) throw new TypeError("Failed to fetch");
    return { ok: answer[0] === 200, status: answer[0], json: async () => answer[1] };
  };
}
const tried = async (run) => {
  try { return { done: await run() ?? null }; } catch (e) { return { key: e.key, values: e.values, code: e.code }; }
};
const refusal = (field, message) => [400, { error: { message, details: { field } } }];
const SIGNED = { raw_data_hex: "0a02", signature: "ab".repeat(65) };
"""


def test_tronlink_connects_in_both_its_forms() -> None:
    said = value(
        TRON,
        """(async () => {
          const web = { defaultAddress: { base58: ME } };
          const modern = { request: async () => [ME] };
          const older = { request: async () => ({ code: 200 }), tronWeb: web };
          const answers = [await tried(() => tron.connect(modern))];
          for (const code of [200, 4001, 4000]) {
            window.tronLink = { ...older, request: async () => ({ code }) };
            answers.push(await tried(() => tron.connect(window.tronLink)));
          }
          window.tronLink = { request: async () => "" };
          answers.push(await tried(() => tron.connect(window.tronLink)));
          answers.push(await tried(() => tron.connect({ request: async () => ["0x12"] })));
          return answers;
        })()""",
    )
    me = "TCNkawTmcQgYSU8nP8cHswT1QPjharxJr7"
    assert [each.get("done") or each.get("key") or each.get("code") for each in said] == [
        me, me, 4001, "waiting", "locked", "locked",
    ]  # fmt: skip


def test_a_wallet_on_another_chain_of_tron_is_told_where_it_tells() -> None:
    said = value(
        TRON,
        """(async () => {
          const on = (chain) => ({ request: async () => chain });
          const there = (w, chain) => tron.isThere(w, chain);
          return [await there(on("0x2B6653DC"), "0x2b6653dc"), await there(on("0xcd8690dc"), "0x2b6653dc"),
            await there(on("0xcd8690dc"), null), await there({ request: async () => { throw new Error(); } }, "0x2b6653dc"),
            await tried(() => tron.switchTo(on("0xcd8690dc"), "0x2b6653dc"))];
        })()""",
    )
    assert said == [True, False, True, True, {"key": "wrongNetwork", "values": {}}]


def test_a_signed_transaction_is_sent_until_there_is_an_answer() -> None:
    said, asked = value(
        TRON,
        """(async () => {
          const answers = [];
          const go = async (...said) => {
            service(...said);
            answers.push(await tried(() => tron.send("pay/inv_1/transaction", SIGNED)));
          };
          await go(null, [500, {}], [200, { txId: "5c" }]);
          await go(refusal("network", "silent"), [200, { txId: "5c" }]);
          await go(null, null, null);
          await go(refusal("from", "poor"));
          await go(refusal("transaction", "does not pay what is missing now"));
          await go([429, {}]);
          return [answers, asked];
        })()""",
    )
    assert [each.get("done") or each["key"] for each in said] == ["5c", "5c", "notSent", "tooLittle", "refused", "tooOften"]
    assert said[4]["values"] == {"reason": "does not pay what is missing now"}
    assert all(
        each == ["PUT", "pay/inv_1/transaction", {"raw_data_hex": "0a02", "signature": "ab" * 65}, "omit", "error"]
        for each in asked
    )
    assert len(asked) == 3 + 2 + 3 + 1 + 1 + 1
