"""A test for every row of every endpoint table of the published interface and of the decisions about it.

A row is one call as its table shows it: the status and the fields that were published, on a service with simulated networks.
What each endpoint refuses, and what it does in the long run, is in the tests of its resource.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from chalicelib.api import resources
from chalicelib.api.routes import ROUTES
from chalicelib.domain.merchants.activity import Activity
from chalicelib.wiring import services
from tests.support.shop import PAYEE
from tests.support.stack import Response, Stack

CONTRACT = "0x" + "5a" * 20
COLD = "0x52908400098527886E0F7030069857D2E4169EE7"  # EIP-55's example of an address in capitals alone


class Caller:
    """A merchant and an operator of the sandbox. What a call must answer is asserted here: status, then fields."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.changes: list[tuple[str, str, Response]] = []
        """Requests that may change something, with their answers."""

    def call(self, method: str, path: str, body: Any = None, /, *, key: str = "client_test", **query: Any) -> Response:
        answer = self.stack.call(method, path, self.stack.keys[key], json=body, query=query or None)
        if method != "GET":
            self.changes.append((method, path, answer))
        return answer

    def ok(self, status: int, method: str, path: str, body: Any = None, /, **more: Any) -> Any:
        answer = self.call(method, path, body, **more)
        assert answer.status == status, (method, path, answer.status, answer.body)
        return answer.json

    def admin(self, status: int, method: str, path: str, body: Any = None, /, **query: Any) -> Any:
        return self.ok(status, method, path, body, key="admin_test", **query)

    def turn(self) -> None:
        self.stack.drain(only=("poll_ethereum", "relay", "payout"), hurry=True)

    # Things that rows need.

    def address(self, **more: Any) -> Any:
        return self.ok(201, "POST", "/v1/addresses", {"network": "ethereum", **more})

    def invoice(self, **more: Any) -> Any:
        return self.ok(201, "POST", "/v1/invoices", {"currency": "eth", "network": "ethereum", "amount": 0.5, **more})

    def pay(self, address: str, amount: str = "2", coin: str = "eth") -> Any:
        body = {"address": address, "network": "ethereum", "coin": coin, "amount": amount}
        return self.ok(201, "POST", "/v1/sandbox/deposits", body)["data"]

    def rich(self) -> None:
        """Two ether on the merchant's balance: earned once, given back to each row that begins with it."""
        self.stack.prepare("rich", self._earn)

    def _earn(self) -> None:
        self.turn()
        self.pay(self.address()["address"])
        self.ok(201, "POST", "/v1/sandbox/blocks", {"network": "ethereum", "count": 12})
        self.turn()

    def withdrawal(self, **more: Any) -> Any:
        self.rich()
        body = {"network": "ethereum", "coin": "eth", "amount": "0.25", "to_address": PAYEE, **more}
        return self.ok(201, "POST", "/v1/withdrawals", body)["data"]

    def held_back(self) -> str:
        """A withdrawal that waits for the operator: its destination is on the grey list."""
        self.admin(201, "POST", "/v1/addresses/grey-list", {"network": "ethereum", "address": PAYEE, "reason": "a test"})
        return str(self.withdrawal()["id"])

    def webhook(self) -> Any:
        body = {"url": "http://127.0.0.1:9999/hook", "events": ["invoice.created"], "secret": "0123456789abcdef"}
        return self.ok(201, "POST", "/v1/webhooks", body)["data"]

    def waiting_webhook(self) -> Any:
        """One whose deliveries are listed before they are sent."""
        made = self.webhook()
        self.ok(200, "PUT", f"/v1/webhooks/{made['id']}", {"status": "paused"})
        return made

    def token(self) -> str:
        body = {"network": "ethereum", "symbol": "TKN", "name": "Token", "decimals": 8}
        return str(self.ok(201, "POST", "/v1/sandbox/tokens", body)["data"]["contractAddress"])


Body = Callable[[Caller], None]


@dataclass(frozen=True)
class Row:
    table: str
    method: str
    path: str
    run: Body


ROWS: list[Row] = []


def row(table: str, method: str, path: str) -> Callable[[Body], Body]:
    def add(run: Body) -> Body:
        ROWS.append(Row(table, method, path, run))
        return run

    return add


def has(record: Any, *names: str) -> Any:
    missing = [name for name in names if name not in record]
    assert not missing, (missing, record)
    return record


def enveloped(answer: Any, paginated: bool = False) -> Any:
    assert answer["success"] is True
    has(answer["meta"], "timestamp", "request_id", *(["pagination"] if paginated else []))
    if paginated:
        has(answer["meta"]["pagination"], "page", "limit", "total", "pages", "has_next", "has_prev", "next_cursor")
    return answer["data"]


# ---- Addresses: the reference -------------------------------------------------------------------------------------------------

ADDRESS = ("id", "address", "network", "type", "mode", "affectedNetworks", "balances", "createdAt")
BALANCE = ("coin", "symbol", "network", "balance", "balanceUSD", "contractAddress")
WALLET = ("network", "walletType", "address", "balances")


@row("Addresses", "POST", "/addresses")
def _(a: Caller) -> None:
    made = has(a.address(label="till 3", metadata={"a": 1}), *ADDRESS, "label", "metadata")
    for entry in made["balances"]:
        has(entry, *BALANCE)
    assert has(a.address(coin="usdt", mode="single"), *ADDRESS, "coin")["coin"] == "usdt"
    assert a.address(mode="universal")["mode"] == "common"
    assert a.address(mode="cross")["affectedNetworks"] == ["ethereum", "bsc", "polygon", "arbitrum", "fantom"]


@row("Addresses", "GET", "/addresses/{address}")
def _(a: Caller) -> None:
    made = a.address()
    for name in (made["id"], made["address"]):
        assert has(a.ok(200, "GET", f"/v1/addresses/{name}"), *ADDRESS, "totalBalanceUSD")["id"] == made["id"]
    assert a.call("GET", "/v1/addresses/not-an-address").status == 400
    assert a.call("GET", f"/v1/addresses/{PAYEE}").status == 404


@row("Addresses", "GET", "/addresses/hot-wallet/{network}")
def _(a: Caller) -> None:
    shown = has(a.ok(200, "GET", "/v1/addresses/hot-wallet/ethereum"), *WALLET)
    assert shown["walletType"] == "hot"
    assert a.call("GET", "/v1/addresses/hot-wallet/dogecoin").status == 400


@row("Addresses", "GET", "/addresses/service-wallet/{network}")
def _(a: Caller) -> None:
    assert a.call("GET", "/v1/addresses/service-wallet/ethereum").status == 404
    a.admin(201, "POST", "/v1/addresses/service-wallets", {"network": "ethereum", "type": "token-collector"})
    assert has(a.ok(200, "GET", "/v1/addresses/service-wallet/ethereum"), *WALLET)["walletType"] == "tokens_collector"
    assert a.call("GET", "/v1/addresses/service-wallet/dogecoin").status == 400


@row("Addresses", "GET", "/addresses/cold-wallet/{network}")
def _(a: Caller) -> None:
    a.admin(201, "POST", "/v1/addresses/service-wallets", {"network": "ethereum", "type": "cold-wallet", "address": COLD})
    shown = has(a.ok(200, "GET", "/v1/addresses/cold-wallet/ethereum", coin="usdt"), *WALLET)
    assert (shown["walletType"], shown["address"], {b["coin"] for b in shown["balances"]}) == ("cold", COLD, {"usdt"})
    assert a.call("GET", "/v1/addresses/cold-wallet/ethereum", coin="doge").status == 400


@row("Addresses", "POST", "/addresses/service-wallets")
def _(a: Caller) -> None:
    made = a.admin(201, "POST", "/v1/addresses/service-wallets", {"network": "bsc", "type": "tokens_collector"})
    assert has(made, "address", "privateKey", "network", "type")["type"] == "tokens_collector"
    assert a.call("POST", "/v1/addresses/service-wallets", {"network": "bsc", "type": "cold"}, key="admin_test").status == 400
    assert a.call("POST", "/v1/addresses/service-wallets", {"network": "bsc", "type": "hot"}).status == 403


@row("Addresses", "GET", "/addresses/grey-list")
def _(a: Caller) -> None:
    assert a.ok(200, "GET", "/v1/addresses/grey-list") == []


@row("Addresses", "POST", "/addresses/grey-list")
def _(a: Caller) -> None:
    a.admin(201, "POST", "/v1/addresses/grey-list", {"network": "ethereum", "address": PAYEE.lower(), "reason": "watched"})
    (entry,) = a.admin(200, "GET", "/v1/addresses/grey-list")
    has(entry, "address", "network", "reason", "createdAt")
    assert (entry["address"], entry["network"]) == (PAYEE, "ethereum")


@row("Addresses", "DELETE", "/addresses/grey-list")
def _(a: Caller) -> None:
    entry = {"network": "ethereum", "address": PAYEE}
    for by_query in (True, False):
        a.admin(201, "POST", "/v1/addresses/grey-list", entry)
        a.admin(200, "DELETE", "/v1/addresses/grey-list", None if by_query else entry, **(entry if by_query else {}))
        assert a.admin(200, "GET", "/v1/addresses/grey-list") == []
    assert a.call("DELETE", "/v1/addresses/grey-list", entry, key="admin_test").status == 404


# ---- Addresses: the address-management guide and the overview -------------------------------------------------------------------


@row("Addresses: guide", "GET", "/addresses")
def _(a: Caller) -> None:
    a.address()
    a.ok(201, "POST", "/v1/addresses", {"network": "bitcoin"})
    (found,) = enveloped(a.ok(200, "GET", "/v1/addresses", network="bitcoin", type="default", limit=5), paginated=True)
    assert has(found, *ADDRESS)["network"] == "bitcoin"


@row("Addresses: guide", "PUT", "/addresses/{address}")
def _(a: Caller) -> None:
    made = a.address()
    shown = a.ok(200, "PUT", f"/v1/addresses/{made['id']}", {"label": "new", "metadata": {"b": 2}})
    assert (shown["label"], shown["metadata"]) == ("new", {"b": 2})


@row("Addresses: guide", "POST", "/addresses/validate")
def _(a: Caller) -> None:
    shown = a.ok(200, "POST", "/v1/addresses/validate", {"address": PAYEE.lower(), "network": "ethereum"})
    has(shown, "valid", "address", "network", "normalized", "type", "reason")
    assert (shown["valid"], shown["normalized"]) == (True, PAYEE)
    assert a.ok(200, "POST", "/v1/addresses/validate", {"address": "x", "network": "tron"})["valid"] is False
    several = a.ok(200, "POST", "/v1/addresses/validate", {"addresses": [PAYEE.lower(), "x"], "network": "ethereum"})
    assert [(one["address"], one["normalized"]) for one in several["results"]] == [(PAYEE.lower(), PAYEE), ("x", None)]


@row("Addresses: guide", "GET", "/addresses/{address}/balances")
def _(a: Caller) -> None:
    shown = a.ok(200, "GET", f"/v1/addresses/{a.address()['id']}/balances")
    entries = shown if isinstance(shown, list) else shown["balances"]
    for entry in entries:
        has(entry, *BALANCE, "confirmed", "unconfirmed", "frozen", "available")


@row("Addresses: guide", "GET", "/addresses/{address}/balances/{coin}")
def _(a: Caller) -> None:
    shown = a.ok(200, "GET", f"/v1/addresses/{a.address()['address']}/balances/usdt")
    assert has(shown, "coin", "balance", "confirmed", "unconfirmed", "frozen", "available")["coin"] == "usdt"


@row("Addresses: guide", "GET", "/addresses/{address}/transactions")
def _(a: Caller) -> None:
    made = a.address()
    a.turn()
    paid = a.pay(made["address"])
    a.turn()
    (found,) = enveloped(a.ok(200, "GET", f"/v1/addresses/{made['id']}/transactions"), paginated=True)
    assert found["hash"] == paid["txid"]


@row("Addresses: overview", "DELETE", "/addresses/{address}")
def _(a: Caller) -> None:
    made = a.address()
    a.ok(200, "DELETE", f"/v1/addresses/{made['id']}")
    assert enveloped(a.ok(200, "GET", "/v1/addresses"), paginated=True) == []


# ---- Coins --------------------------------------------------------------------------------------------------------------------

COIN = ("coin", "name", "type", "decimals", "contractAddress", "status", "settings", "network")
SETTINGS = (
    "useUsdLimits", "collectThreshold", "collectServiceToColdThreshold", "collectPercentageHot", "approveThreshold", "minValue",
    "maxValue", "maxValueDaily", "minDepositAmount",
)  # fmt: skip
IN_USD = ("collectThreshold", "collectServiceToColdThreshold", "approveThreshold", "minValue", "maxValue", "maxValueDaily")


@row("Coins", "POST", "/coins")
def _(a: Caller) -> None:
    made = a.admin(
        201, "POST", "/v1/coins", {"network": "ethereum", "contractAddress": a.token(), "minValue": 0.5, "maxValue": "9"}
    )
    has(made, "message")
    shown = a.ok(200, "GET", "/v1/coins/tkn")
    assert (shown["name"], shown["decimals"], shown["type"], shown["settings"]["minValue"]) == ("Token", 8, "TOKEN", 0.5)


@row("Coins", "PUT", "/coins/precreate-token")
def _(a: Caller) -> None:
    shown = a.admin(201, "PUT", "/v1/coins/precreate-token", {"network": "ethereum", "contractAddress": a.token()})
    assert shown == {"coin": "tkn", "symbol": "TKN", "name": "Token", "decimals": 8}
    refused = a.call("PUT", "/v1/coins/precreate-token", {"network": "ethereum", "contractAddress": CONTRACT}, key="admin_test")
    assert refused.status == 400


@row("Coins", "PUT", "/coins")
def _(a: Caller) -> None:
    has(a.admin(200, "PUT", "/v1/coins", {"coin": "btc", "status": "INACTIVE", "minDepositAmount": 0.001}), "message")
    shown = a.ok(200, "GET", "/v1/coins/btc")
    assert (shown["status"], shown["settings"]["minDepositAmount"]) == ("INACTIVE", 0.001)


@row("Coins", "GET", "/coins")
def _(a: Caller) -> None:
    coins = a.ok(200, "GET", "/v1/coins")
    assert isinstance(coins, list)
    for coin in coins:
        has(coin, *COIN)
        has(coin["settings"], *SETTINGS)
    assert {coin["network"]["network"] for coin in a.ok(200, "GET", "/v1/coins", network="tron")} == {"tron"}


@row("Coins", "GET", "/coins/{coin}")
def _(a: Caller) -> None:
    shown = has(a.ok(200, "GET", "/v1/coins/eth"), *COIN)
    has(shown["settings"], *SETTINGS, *(f"{name}USD" for name in (*IN_USD, "minDepositAmount")))
    assert shown["network"] == {"network": "ethereum"}
    assert a.call("GET", "/v1/coins/doge").status == 400


@row("Coins: overview", "PUT", "/coins/{coin}")
def _(a: Caller) -> None:
    has(a.admin(200, "PUT", "/v1/coins/usdt", {"network": "tron", "name": "Tether"}), "message")
    assert a.ok(200, "GET", "/v1/coins/usdt", network="tron")["name"] == "Tether"
    assert a.call("PUT", "/v1/coins/usdt", {"name": "Tether"}, key="admin_test").status == 400


# ---- Networks -----------------------------------------------------------------------------------------------------------------

NETWORK = ("id", "name", "symbol", "isTestnet", "confirmations", "blockTime", "network", "status", "lastBlock")


@row("Networks", "GET", "/networks")
def _(a: Caller) -> None:
    networks = a.ok(200, "GET", "/networks")
    assert [n["id"] for n in networks] == ["bitcoin", "ethereum", "tron", "bsc", "polygon", "arbitrum", "fantom", "litecoin"]
    assert [n["confirmations"] for n in networks] == [6, 12, 19, 15, 20, 10, 12, 6]
    for network in networks:
        has(network, *NETWORK)


@row("Networks", "GET", "/networks/{network}")
def _(a: Caller) -> None:
    shown = a.ok(200, "GET", "/v1/networks/polygon")
    has(shown, *NETWORK, "slug", "chainId", "explorerUrl", "confirmationBlocks", "gasLimit", "features")
    has(a.admin(200, "GET", "/v1/networks/polygon"), "rpcUrl", "wsUrl")
    assert a.call("GET", "/v1/networks/dogecoin").status == 400


@row("Networks", "GET", "/networks/last-number-block/{network}")
def _(a: Caller) -> None:
    a.turn()
    assert set(a.ok(200, "GET", "/v1/networks/last-number-block/ethereum")) == {"network", "lastBlockNumber", "timestamp"}


@row("Networks", "POST", "/networks/tron/stake")
def _(a: Caller) -> None:
    a.stack.drain(only=("poll_tron", "relay"), hurry=True)
    made = a.admin(201, "POST", "/v1/networks/tron/stake", {"amount": "10", "resource": "ENERGY"})
    has(made, "transactionId", "amount", "resource", "status")
    assert (made["amount"], made["resource"]) == ("10", "ENERGY")


@row("Networks: overview", "GET", "/networks/last-number-blocks")
def _(a: Caller) -> None:
    assert len(a.ok(200, "GET", "/v1/networks/last-number-blocks")) == 8


@row("Networks: overview", "PUT", "/networks")
def _(a: Caller) -> None:
    a.admin(200, "PUT", "/v1/networks", {"network": "fantom", "confirmationBlocks": 30, "status": "inactive"})
    assert has(a.ok(200, "GET", "/v1/networks/fantom"), "status")["confirmationBlocks"] == 30


# ---- Withdrawals --------------------------------------------------------------------------------------------------------------

WITHDRAWAL = ("id", "status", "network", "coin", "amount", "fee", "to_address", "created_at")


@row("Withdrawals A", "POST", "/withdraws")
def _(a: Caller) -> None:
    a.rich()
    made = a.ok(201, "POST", "/v1/withdraws", {"network": "ethereum", "coin": "eth", "address": PAYEE, "amount": "0.25"})
    assert has(made, *WITHDRAWAL)["status"] == "pending"


@row("Withdrawals A", "GET", "/withdraws")
def _(a: Caller) -> None:
    made = a.withdrawal()
    shown = a.admin(200, "GET", "/v1/withdraws", page=1, limit=10)
    assert [w["id"] for w in (shown["data"] if isinstance(shown, dict) else shown)] == [made["id"]]
    assert a.call("GET", "/v1/withdraws").status == 403


@row("Withdrawals B", "POST", "/withdrawals")
def _(a: Caller) -> None:
    made = a.withdrawal(priority="high", metadata={"order": 7})
    has(made, *WITHDRAWAL, "estimated_confirmation_time")
    output = {"to_address": PAYEE, "amount": "0.1"}
    batch = {"network": "ethereum", "coin": "eth", "outputs": [output, output], "priority": "low"}
    several = enveloped(a.ok(201, "POST", "/api/v1/withdrawals".removeprefix("/api"), {"batch_withdrawal": batch}))
    assert [has(w, *WITHDRAWAL)["amount"] for w in has(several, "batch_id", "withdrawals")["withdrawals"]] == ["0.1", "0.1"]


@row("Withdrawals B", "GET", "/withdrawals/{id}")
def _(a: Caller) -> None:
    made = a.withdrawal()
    a.turn()
    a.ok(201, "POST", "/v1/sandbox/blocks", {"network": "ethereum", "count": 12})
    a.turn()
    shown = enveloped(a.ok(200, "GET", f"/v1/withdrawals/{made['id']}"))
    has(shown, *WITHDRAWAL, "from_address", "transaction_hash", "confirmations", "block_number", "confirmed_at")
    assert shown["status"] == "confirmed"


@row("Withdrawals B", "GET", "/withdrawals")
def _(a: Caller) -> None:
    made = a.withdrawal()
    day = made["created_at"]
    query = {"page": 1, "limit": 5, "status": "pending", "network": "ethereum", "coin": "eth", "from_date": day, "to_date": day}
    assert [w["id"] for w in enveloped(a.ok(200, "GET", "/v1/withdrawals", **query), paginated=True)] == [made["id"]]
    assert enveloped(a.ok(200, "GET", "/v1/withdrawals", from_date="2001-01-01", to_date="2001-01-02"), paginated=True) == []


@row("Withdrawals B", "DELETE", "/withdrawals/{id}")
def _(a: Caller) -> None:
    made = a.withdrawal()
    assert enveloped(a.ok(200, "DELETE", f"/v1/withdrawals/{made['id']}"))["status"] == "cancelled"
    assert a.call("DELETE", f"/v1/withdrawals/{made['id']}").status == 400


@row("Withdrawals B", "POST", "/whitelist/addresses")
def _(a: Caller) -> None:
    entry = {"address": PAYEE, "network": "ethereum", "label": "supplier", "daily_limit": "1", "monthly_limit": "10"}
    made = enveloped(a.ok(201, "POST", "/v1/whitelist/addresses", entry))
    assert {name: made[name] for name in entry} == entry


@row("Withdrawals: overview", "GET", "/withdrawals/requests")
def _(a: Caller) -> None:
    waiting = a.held_back()
    assert [w["id"] for w in enveloped(a.admin(200, "GET", "/v1/withdrawals/requests"), paginated=True)] == [waiting]


@row("Withdrawals: overview", "PUT", "/withdrawals/request/accept")
def _(a: Caller) -> None:
    waiting = a.held_back()
    a.turn()
    assert enveloped(a.ok(200, "GET", f"/v1/withdrawals/{waiting}"))["pending_reason"] == "approval"
    enveloped(a.admin(200, "PUT", "/v1/withdrawals/request/accept", {"id": waiting, "reason": "known"}))
    a.turn()
    assert enveloped(a.ok(200, "GET", f"/v1/withdrawals/{waiting}"))["status"] == "confirming"


@row("Withdrawals: overview", "PUT", "/withdrawals/request/reject")
def _(a: Caller) -> None:
    waiting = a.held_back()
    assert enveloped(a.admin(200, "PUT", "/v1/withdrawals/request/reject", {"id": waiting}))["status"] == "failed"
    (balance,) = [b for b in enveloped(a.ok(200, "GET", "/v1/balances")) if b["coin"] == "eth"]
    assert (balance["available"], balance["frozen"]) == ("2", "0")


@row("Withdrawals: demo explorer", "GET", "/withdrawals/fees")
def _(a: Caller) -> None:
    a.turn()
    shown = enveloped(a.ok(200, "GET", "/v1/withdrawals/fees", network="ethereum", coin="usdt"))
    assert has(shown, "network", "coin", "fee_coin", "estimates")["fee_coin"] == "eth"
    assert [(e["priority"], e["multiplier"]) for e in shown["estimates"]] == [
        ("low", 0.8), ("normal", 1.0), ("high", 1.5), ("urgent", 2.0),
    ]  # fmt: skip
    for estimate in shown["estimates"]:
        has(estimate, "fee", "feeUSD", "confirmation_time")


# ---- Invoices -----------------------------------------------------------------------------------------------------------------

INVOICE = ("id", "address", "amount", "received", "currency", "symbol", "network", "status", "createdAt")


@row("Invoices", "POST", "/invoices")
def _(a: Caller) -> None:
    made = has(a.invoice(externalId="A-1"), "id", "address", "amount", "currency", "externalId", "paymentUri", "expiresAt")
    assert (made["amount"], made["currency"], made["externalId"]) == ("0.5", "eth", "A-1")
    assert a.call("POST", "/v1/invoices", {"currency": "doge", "amount": 1}).status == 400


@row("Invoices", "PUT", "/invoices")
def _(a: Caller) -> None:
    made = a.invoice()
    shown = a.ok(201, "PUT", "/v1/invoices", {"invoiceId": made["id"], "status": "completed"})
    assert (has(shown, "message")["invoiceId"], shown["newStatus"]) == (made["id"], "completed")
    assert a.call("PUT", "/v1/invoices", {"invoiceId": "inv_x", "status": "completed"}).status == 400


@row("Invoices", "GET", "/invoices/getAll")
def _(a: Caller) -> None:
    made = a.invoice()
    a.turn()
    paid = a.pay(made["address"], "0.5")
    a.turn()
    day = made["createdAt"][:10]
    query = {"page": 1, "perPage": 5, "status": ["confirming", "completed"], "address": made["address"], "currency": "eth"}
    shown = a.ok(200, "GET", "/v1/invoices/getAll", **query, **{"from": day, "to": day})
    (found,) = has(shown, "count", "data")["data"]
    assert (shown["count"], has(found, *INVOICE)["id"]) == (1, made["id"])
    worth = {"amount": "1500.00", "currency": "USD", "source": "fixed"}
    assert found["transactions"] == [{"hash": paid["txid"], "amount": "0.5", "confirmations": 1, "fiatValue": worth}]


@row("Invoices", "GET", "/invoices")
def _(a: Caller) -> None:
    made = a.invoice()
    assert has(a.ok(200, "GET", "/v1/invoices", id=made["id"]), *INVOICE)["id"] == made["id"]
    assert a.call("GET", "/v1/invoices", id="inv_x").status == 400


@row("Invoices", "GET", "/invoices/getByExternalId")
def _(a: Caller) -> None:
    made = a.invoice(externalId="A-1")
    assert has(a.ok(200, "GET", "/v1/invoices/getByExternalId", externalId="A-1"), *INVOICE)["id"] == made["id"]
    assert a.call("GET", "/v1/invoices/getByExternalId", externalId="A-2").status == 400


@row("Invoices", "GET", "/invoices/summary")
def _(a: Caller) -> None:
    a.invoice()
    shown = a.ok(200, "GET", "/v1/invoices/summary")
    has(shown, "totalInvoices", "totalAmount", "totalReceived", "completedInvoices", "pendingInvoices", "currencies")
    assert (shown["totalInvoices"], shown["completedInvoices"], shown["pendingInvoices"]) == (1, 0, 1)
    assert shown["currencies"] == [{"currency": "eth", "totalAmount": "0.5", "totalReceived": "0"}]


@row("Invoices", "GET", "/invoices/configureSettings")
def _(a: Caller) -> None:
    shown = a.ok(200, "GET", "/v1/invoices/configureSettings")["settings"]
    has(shown, "defaultExpirationTime", "autoConfirmThreshold", "supportedCurrencies", "minimumAmounts")


@row("Invoices", "PUT", "/invoices/configureSettings")
def _(a: Caller) -> None:
    wanted = {
        "defaultExpirationTime": 600,
        "autoConfirmThreshold": 10,
        "supportedCurrencies": ["eth", "btc"],
        "minimumAmounts": {"eth": "0.6"},
    }
    a.ok(201, "PUT", "/v1/invoices/configureSettings", {"settings": wanted})
    assert a.ok(200, "GET", "/v1/invoices/configureSettings")["settings"] == wanted
    assert a.call("POST", "/v1/invoices", {"currency": "eth", "amount": 0.5}).json["code"] == "VALIDATION_ERROR"


# ---- Other endpoints ----------------------------------------------------------------------------------------------------------


@row("Other", "GET", "/auth/test")
def _(a: Caller) -> None:
    shown = has(enveloped(a.ok(200, "GET", "/v1/auth/test")), "authenticated", "key_id", "permissions", "rate_limits")
    assert shown["authenticated"] is True
    has(shown["rate_limits"], "remaining", "reset_at")


@row("Other", "GET", "/merchant")
def _(a: Caller) -> None:
    has(enveloped(a.ok(200, "GET", "/v1/merchant")), "id", "name", "createdAt")


@row("Other", "POST", "/webhooks")
def _(a: Caller) -> None:
    assert has(a.webhook(), "id", "url", "events", "secret")["secret"] == "0123456789abcdef"


@row("Other", "GET", "/balances")
def _(a: Caller) -> None:
    a.rich()
    (entry,) = enveloped(a.ok(200, "GET", "/v1/balances"))
    has(entry, "network", "coin", "symbol", "balance", "available", "frozen", "held", "pending", "balanceUSD")
    assert entry["available"] == "2"


TRANSACTION = (
    "id", "hash", "network", "coin", "symbol", "contractAddress", "type", "address", "from", "to", "amount", "fee", "status",
    "confirmations", "requiredConfirmations", "blockNumber", "blockHash", "invoiceId", "withdrawalId", "flags", "createdAt",
    "confirmedAt",
)  # fmt: skip


@row("Other", "GET", "/transactions")
def _(a: Caller) -> None:
    made = a.withdrawal()
    a.turn()
    out, into = enveloped(a.ok(200, "GET", "/v1/transactions", limit=5), paginated=True)
    assert (has(out, *TRANSACTION)["type"], out["withdrawalId"], out["status"]) == ("withdrawal", made["id"], "pending")
    assert (has(into, *TRANSACTION)["type"], into["status"]) == ("deposit", "confirmed")


@row("Other", "GET", "/transactions/{txId}")
def _(a: Caller) -> None:
    a.rich()
    (found,) = enveloped(a.ok(200, "GET", "/v1/transactions"), paginated=True)
    for name in (found["id"], found["hash"]):
        assert enveloped(a.ok(200, "GET", f"/v1/transactions/{name}")) == found
    assert a.call("GET", "/v1/transactions/tx_x").status == 404


@row("Other", "GET", "/transactions/address/{address}")
def _(a: Caller) -> None:
    a.rich()
    (found,) = enveloped(a.ok(200, "GET", "/v1/transactions"), paginated=True)
    assert enveloped(a.ok(200, "GET", f"/v1/transactions/address/{found['address']}"), paginated=True) == [found]
    assert a.call("GET", f"/v1/transactions/address/{PAYEE}").status == 404


# ---- What the decisions add ---------------------------------------------------------------------------------------------------


@row("Decisions", "GET", "/openapi")
def _(a: Caller) -> None:
    for path in ("/openapi/", "/v1/openapi/"):
        page = a.stack.call("GET", path)
        assert (page.status, page.headers["content-type"].partition(";")[0]) == (200, "text/html")


@row("Decisions", "GET", "/openapi/openapi.json")
def _(a: Caller) -> None:
    document = a.stack.call("GET", "/openapi/openapi.json")
    assert (document.status, document.json["openapi"]) == (200, "3.1.0")


@row("Decisions", "GET", "/pay/{invoiceId}")
def _(a: Caller) -> None:
    made = a.invoice()
    page = a.stack.call("GET", f"/pay/{made['id']}")
    assert (page.status, page.headers["content-type"].partition(";")[0]) == (200, "text/html")
    assert made["address"] in page.body.decode()


@row("Decisions", "GET", "/pay/{invoiceId}/status")
def _(a: Caller) -> None:
    made = a.invoice()
    shown = a.stack.call("GET", f"/v1/pay/{made['id']}/status").json
    assert (shown["address"], shown["status"], shown["paymentUri"]) == (made["address"], "pending", made["paymentUri"])


LINK = {"name": "Two pairs of shoes", "currency": "eth", "network": "ethereum", "amount": "0.5"}


@row("Decisions", "POST", "/payment-links")
def _(a: Caller) -> None:
    made = a.ok(201, "POST", "/v1/payment-links", {**LINK, "stock": 3})
    assert made["url"].endswith(f"/link/{made['id']}") and made["stock"] == 3


@row("Decisions", "GET", "/payment-links")
def _(a: Caller) -> None:
    made = a.ok(201, "POST", "/v1/payment-links", LINK)
    assert enveloped(a.ok(200, "GET", "/v1/payment-links"), paginated=True) == [made]


@row("Decisions", "GET", "/payment-links/{id}")
@row("Decisions", "PUT", "/payment-links/{id}")
@row("Decisions", "DELETE", "/payment-links/{id}")
def _(a: Caller) -> None:
    path = f"/v1/payment-links/{a.ok(201, 'POST', '/v1/payment-links', LINK)['id']}"
    changed = a.ok(200, "PUT", path, {"amount": {"min": 1, "max": 5}})
    assert changed["amount"] == {"min": "1", "max": "5"} and a.ok(200, "GET", path) == changed
    assert a.ok(200, "DELETE", path) == changed and a.ok(404, "GET", path)["error"]["code"] == "NOT_FOUND"


@row("Decisions", "GET", "/link/{id}")
@row("Decisions", "POST", "/link/{id}")
def _(a: Caller) -> None:
    link = a.ok(201, "POST", "/v1/payment-links", LINK)["id"]
    page = a.stack.call("GET", f"/link/{link}")
    assert (page.status, page.headers["content-type"].partition(";")[0]) == (200, "text/html")
    opened = a.stack.call("POST", f"/link/{link}")
    assert opened.status == 201 and opened.json["checkoutUrl"].endswith(f"/pay/{opened.json['invoiceId']}")
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    sent = a.stack.call("POST", f"/link/{link}", headers=form)
    assert sent.status == 303 and "/pay/inv_" in sent.headers["location"]


@row("Decisions", "GET", "/invoices/{id}")
def _(a: Caller) -> None:
    made = a.invoice()
    assert a.ok(200, "GET", f"/v1/invoices/{made['id']}") == a.ok(200, "GET", "/v1/invoices", id=made["id"])
    assert a.ok(404, "GET", "/v1/invoices/inv_x")["code"] == "NOT_FOUND"


@row("Decisions", "DELETE", "/invoices/{id}")
def _(a: Caller) -> None:
    made = a.invoice()
    for _ in range(2):
        assert has(a.ok(200, "DELETE", f"/v1/invoices/{made['id']}"), *INVOICE)["status"] == "cancelled"


@row("Decisions", "POST", "/invoices/{id}/extend")
def _(a: Caller) -> None:
    made = a.invoice(expiresIn=60)
    longer = has(a.ok(200, "POST", f"/v1/invoices/{made['id']}/extend", {"expiresIn": 3600}), *INVOICE)
    assert longer["expiresAt"] > made["expiresAt"]


@row("Decisions", "POST", "/pay/{invoiceId}/choice")
def _(a: Caller) -> None:
    made = a.ok(201, "POST", "/v1/invoices", {"fiatAmount": "30", "fiatCurrency": "USD", "accept": [{"coin": "eth"}]})
    choice = a.stack.call("POST", f"/v1/pay/{made['id']}/choice", json={"coin": "eth", "network": "ethereum"})
    assert (choice.status, choice.json["amount"], choice.json["missing"]) == (200, "0.01", "0.01")
    assert choice.json.keys() == {"coin", "network", "address", "amount", "missing", "rate", "lockedUntil", "paymentUri"}


@row("Decisions", "POST", "/pay/{invoiceId}/transaction")
def _(a: Caller) -> None:
    """What a live network answers: tests/nodes/tron/test_payer_transactions.py."""
    made = a.invoice(currency="trx", network="tron")
    body = {"from": "TQn9Y2khEsLJW1ChVWFMSMeRDow5KcbLSE"}
    answer = a.stack.call("POST", f"/v1/pay/{made['id']}/transaction", json=body)
    assert (answer.status, answer.json["error"]["code"]) == (400, "VALIDATION_ERROR"), answer.body
    assert "simulated" in answer.json["error"]["message"]


@row("Decisions", "PUT", "/pay/{invoiceId}/transaction")
def _(a: Caller) -> None:
    made = a.invoice(currency="trx", network="tron")
    body = {"raw_data_hex": "0a02", "signature": "00" * 65}
    answer = a.stack.call("PUT", f"/v1/pay/{made['id']}/transaction", json=body)
    assert (answer.status, answer.json["error"]["code"]) == (400, "VALIDATION_ERROR"), answer.body


@row("Decisions", "GET", "/health")
def _(a: Caller) -> None:
    assert a.stack.call("GET", "/health").json["status"] == "ok"


@row("Decisions", "POST", "/transactions/{txId}/release")
def _(a: Caller) -> None:
    a.turn()
    a.admin(201, "POST", "/v1/addresses/grey-list", {"network": "ethereum", "address": PAYEE})
    body = {"address": a.address()["address"], "network": "ethereum", "coin": "eth", "amount": "2", "from": PAYEE}
    a.ok(201, "POST", "/v1/sandbox/deposits", body)
    a.ok(201, "POST", "/v1/sandbox/blocks", {"network": "ethereum", "count": 12})
    a.turn()
    (found,) = enveloped(a.ok(200, "GET", "/v1/transactions"), paginated=True)
    (balance,) = enveloped(a.ok(200, "GET", "/v1/balances"))
    assert (balance["available"], balance["held"]) == ("0", "2")
    enveloped(a.admin(200, "POST", f"/v1/transactions/{found['id']}/release"))
    (balance,) = enveloped(a.ok(200, "GET", "/v1/balances"))
    assert (balance["available"], balance["held"]) == ("2", "0")


KEY = ("key_id", "name", "type", "permissions", "restrictions", "created_at", "expires_at")


def _new_key(a: Caller) -> Any:
    restrictions = {"ip_whitelist": ["10.0.0.0/8"], "rate_limit": 5, "daily_limit": 50}
    body = {"name": "till", "permissions": ["addresses:read"], "restrictions": restrictions}
    return enveloped(a.ok(201, "POST", "/v1/api-keys", body))


@row("Decisions", "POST", "/api-keys")
def _(a: Caller) -> None:
    made = has(_new_key(a), *KEY, "key")
    assert (made["type"], made["permissions"], made["key"][:8]) == ("test", ["addresses:read"], "sk_test_")
    shown = a.stack.call("GET", "/v1/addresses", made["key"], source_ip="10.1.2.3")
    assert (shown.status, a.stack.call("GET", "/v1/addresses", made["key"], source_ip="11.1.2.3").status) == (200, 403)


@row("Decisions", "GET", "/api-keys")
def _(a: Caller) -> None:
    made = _new_key(a)
    found = enveloped(a.ok(200, "GET", "/v1/api-keys"), paginated=True)
    assert made["key_id"] in {has(key, *KEY)["key_id"] for key in found}
    assert all("key" not in key for key in found)


@row("Decisions", "GET", "/activity")
def _(a: Caller) -> None:
    made = _new_key(a)["key_id"]
    (record,) = enveloped(a.ok(200, "GET", "/v1/activity", object_id=made), paginated=True)
    assert (has(record, "key_id", "created_at")["method"], record["route"]) == ("POST", "/api-keys")


@row("Decisions", "PUT", "/api-keys/{id}")
def _(a: Caller) -> None:
    made = _new_key(a)
    assert enveloped(a.ok(200, "PUT", f"/v1/api-keys/{made['key_id']}", {"name": "desk"}))["name"] == "desk"


@row("Decisions", "DELETE", "/api-keys/{id}")
def _(a: Caller) -> None:
    made = _new_key(a)
    enveloped(a.ok(200, "DELETE", f"/v1/api-keys/{made['key_id']}"))
    assert a.stack.call("GET", "/v1/addresses", made["key"], source_ip="10.1.2.3").status == 401


@row("Decisions", "POST", "/api-keys/{id}/rotate")
def _(a: Caller) -> None:
    made = _new_key(a)
    again = enveloped(a.ok(201, "POST", f"/v1/api-keys/{made['key_id']}/rotate", {"overlap": 0}))
    assert [a.stack.call("GET", "/v1/addresses", key, source_ip="10.1.2.3").status for key in (made["key"], again["key"])] == [
        401,
        200,
    ]


@row("Decisions", "GET", "/merchant/settings")
def _(a: Caller) -> None:
    has(enveloped(a.ok(200, "GET", "/v1/merchant/settings")), "whitelist_enforced", "multisig_config")


@row("Decisions", "PUT", "/merchant/settings")
def _(a: Caller) -> None:
    assert enveloped(a.ok(200, "PUT", "/v1/merchant/settings", {"whitelist_enforced": True}))["whitelist_enforced"] is True
    a.rich()
    body = {"network": "ethereum", "coin": "eth", "amount": "0.1", "to_address": PAYEE}
    assert a.call("POST", "/v1/withdrawals", body).json["error"]["code"] == "VALIDATION_ERROR"


@row("Decisions", "GET", "/webhooks")
def _(a: Caller) -> None:
    made = a.webhook()
    (found,) = enveloped(a.ok(200, "GET", "/v1/webhooks"))
    assert (found["id"], "secret" in found) == (made["id"], False)


@row("Decisions", "GET", "/webhooks/{id}")
def _(a: Caller) -> None:
    made = a.webhook()
    assert enveloped(a.ok(200, "GET", f"/v1/webhooks/{made['id']}"))["url"] == made["url"]


@row("Decisions", "PUT", "/webhooks/{id}")
def _(a: Caller) -> None:
    made = a.webhook()
    shown = enveloped(a.ok(200, "PUT", f"/v1/webhooks/{made['id']}", {"events": ["*"]}))
    assert shown["events"] == ["*"]


@row("Decisions", "DELETE", "/webhooks/{id}")
def _(a: Caller) -> None:
    made = a.webhook()
    enveloped(a.ok(200, "DELETE", f"/v1/webhooks/{made['id']}"))
    assert enveloped(a.ok(200, "GET", "/v1/webhooks")) == []


@row("Decisions", "POST", "/webhooks/{id}/test")
def _(a: Caller) -> None:
    enveloped(a.ok(201, "POST", f"/v1/webhooks/{a.webhook()['id']}/test"))


@row("Decisions", "POST", "/webhooks/{id}/rotate-secret")
def _(a: Caller) -> None:
    made = a.webhook()
    assert enveloped(a.ok(201, "POST", f"/v1/webhooks/{made['id']}/rotate-secret"))["secret"] != made["secret"]


@row("Decisions", "GET", "/webhooks/{id}/deliveries")
def _(a: Caller) -> None:
    made = a.waiting_webhook()
    a.invoice()
    a.stack.drain(only=("relay",), hurry=True)
    (found,) = enveloped(a.ok(200, "GET", f"/v1/webhooks/{made['id']}/deliveries"), paginated=True)
    assert found["event"] == "invoice.created"


@row("Decisions", "POST", "/webhooks/deliveries/{id}/redeliver")
def _(a: Caller) -> None:
    made = a.waiting_webhook()
    a.invoice()
    a.stack.drain(only=("relay",), hurry=True)
    (found,) = enveloped(a.ok(200, "GET", f"/v1/webhooks/{made['id']}/deliveries"), paginated=True)
    enveloped(a.ok(201, "POST", f"/v1/webhooks/deliveries/{found['id']}/redeliver"))


@row("Decisions", "GET", "/events")
def _(a: Caller) -> None:
    a.invoice()
    a.stack.drain(only=("relay",), hurry=True)
    (found,) = enveloped(a.ok(200, "GET", "/v1/events"), paginated=True)
    assert has(found, "id", "event", "data", "timestamp", "sequence")["event"] == "invoice.created"


@row("Decisions", "GET", "/events/{id}")
def _(a: Caller) -> None:
    a.invoice()
    a.stack.drain(only=("relay",), hurry=True)
    (found,) = enveloped(a.ok(200, "GET", "/v1/events"), paginated=True)
    assert enveloped(a.ok(200, "GET", f"/v1/events/{found['id']}")) == found


RESCAN = ("id", "status", "fromBlock", "toBlock", "scannedTo")


@row("Decisions", "POST", "/networks/{network}/rescan")
def _(a: Caller) -> None:
    a.rich()
    has(a.admin(201, "POST", "/v1/networks/ethereum/rescan", {"fromBlock": 1, "toBlock": 5}), *RESCAN)


@row("Decisions", "GET", "/networks/{network}/rescan/{id}")
def _(a: Caller) -> None:
    a.rich()
    made = a.admin(201, "POST", "/v1/networks/ethereum/rescan", {"fromBlock": 1, "toBlock": 5})
    a.turn()
    shown = has(a.admin(200, "GET", f"/v1/networks/ethereum/rescan/{made['id']}"), *RESCAN)
    assert (shown["status"], shown["scannedTo"]) == ("completed", 5)


@row("Decisions", "POST", "/sandbox/deposits")
def _(a: Caller) -> None:
    has(a.pay(a.address()["address"]), "txid", "blockNumber")


@row("Decisions", "POST", "/sandbox/blocks")
def _(a: Caller) -> None:
    enveloped(a.ok(201, "POST", "/v1/sandbox/blocks", {"network": "ethereum", "count": 2}))


@row("Decisions", "POST", "/sandbox/reorg")
def _(a: Caller) -> None:
    paid = a.pay(a.address()["address"])
    shown = enveloped(a.ok(201, "POST", "/v1/sandbox/reorg", {"network": "ethereum", "depth": 1}))
    assert shown["dropped"] == [paid["txid"]]


@row("Decisions", "POST", "/sandbox/withdrawals/{id}")
def _(a: Caller) -> None:
    made = a.withdrawal()
    enveloped(a.ok(200, "POST", f"/v1/sandbox/withdrawals/{made['id']}", {"outcome": "fail"}))
    a.turn()
    a.ok(201, "POST", "/v1/sandbox/blocks", {"network": "ethereum", "count": 12})
    a.turn()
    assert enveloped(a.ok(200, "GET", f"/v1/withdrawals/{made['id']}"))["status"] == "failed"


@row("Decisions", "POST", "/sandbox/clock")
def _(a: Caller) -> None:
    made = a.invoice(expiresIn=60)
    a.turn()
    enveloped(a.ok(201, "POST", "/v1/sandbox/clock", {"advance": 120}))
    a.turn()
    assert a.ok(200, "GET", "/v1/invoices", id=made["id"])["status"] == "expired"


@row("Decisions", "POST", "/sandbox/rates")
def _(a: Caller) -> None:
    body = {"coin": "eth", "fiat": "EUR", "value": "1000"}
    assert enveloped(a.ok(201, "POST", "/v1/sandbox/rates", body)) == {**body, "stale": False, "own": True}


@row("Decisions", "POST", "/sandbox/tokens")
def _(a: Caller) -> None:
    assert a.token().startswith("0x")


REFUND = (
    "id", "invoiceId", "status", "mode", "amount", "coin", "network", "address", "reason", "claimUrl", "expiresAt", "withdrawalId",
    "createdAt",
)  # fmt: skip
PAYOUT_LINK = (
    "id", "status", "amount", "coin", "network", "address", "description", "claimUrl", "expiresAt", "withdrawalId", "createdAt",
)  # fmt: skip


def refundable(a: Caller) -> str:
    """A completed invoice."""
    a.rich()
    made = a.invoice()
    a.pay(made["address"], "0.5")
    a.ok(201, "POST", "/v1/sandbox/blocks", {"network": "ethereum", "count": 12})
    a.turn()
    return str(made["id"])


def link(a: Caller) -> Any:
    a.rich()
    return a.ok(201, "POST", "/v1/payout-links", {"network": "ethereum", "coin": "eth", "amount": "0.25"})


def page(made: Any) -> str:
    return "/v1/claim/" + str(made["claimUrl"]).rpartition("/")[2]


@row("Decisions", "POST", "/invoices/{id}/refunds")
def _(a: Caller) -> None:
    path = f"/v1/invoices/{refundable(a)}/refunds"
    assert has(a.ok(201, "POST", path, {"mode": "same", "amount": "0.25"}), *REFUND)["claimUrl"]
    assert has(a.ok(201, "POST", path, {"mode": "same", "address": PAYEE}), *REFUND)["status"] == "pending"


@row("Decisions", "GET", "/invoices/{id}/refunds")
def _(a: Caller) -> None:
    path = f"/v1/invoices/{refundable(a)}/refunds"
    a.ok(201, "POST", path, {"mode": "same"})
    (found,) = a.ok(200, "GET", path)
    assert has(found, *REFUND)["claimUrl"] is None


@row("Decisions", "GET", "/refunds")
def _(a: Caller) -> None:
    made = a.ok(201, "POST", f"/v1/invoices/{refundable(a)}/refunds", {"mode": "same"})
    (found,) = enveloped(a.ok(200, "GET", "/v1/refunds"), paginated=True)
    assert has(found, *REFUND) == {**made, "claimUrl": None}


@row("Decisions", "GET", "/refunds/{id}")
def _(a: Caller) -> None:
    made = a.ok(201, "POST", f"/v1/invoices/{refundable(a)}/refunds", {"mode": "same"})
    assert has(a.ok(200, "GET", f"/v1/refunds/{made['id']}"), *REFUND)["amount"] == "0.5"
    assert a.call("GET", "/v1/refunds/ref_0").status == 404


@row("Decisions", "DELETE", "/refunds/{id}")
def _(a: Caller) -> None:
    made = a.ok(201, "POST", f"/v1/invoices/{refundable(a)}/refunds", {"mode": "same"})
    assert has(a.ok(200, "DELETE", f"/v1/refunds/{made['id']}"), *REFUND)["status"] == "cancelled"


@row("Decisions", "POST", "/payout-links")
def _(a: Caller) -> None:
    assert has(link(a), *PAYOUT_LINK)["status"] == "awaiting_claim"


@row("Decisions", "GET", "/payout-links")
def _(a: Caller) -> None:
    made = link(a)
    (found,) = enveloped(a.ok(200, "GET", "/v1/payout-links"), paginated=True)
    assert has(found, *PAYOUT_LINK)["id"] == made["id"]


@row("Decisions", "GET", "/payout-links/{id}")
def _(a: Caller) -> None:
    assert has(a.ok(200, "GET", f"/v1/payout-links/{link(a)['id']}"), *PAYOUT_LINK)["claimUrl"] is None


@row("Decisions", "DELETE", "/payout-links/{id}")
def _(a: Caller) -> None:
    assert has(a.ok(200, "DELETE", f"/v1/payout-links/{link(a)['id']}"), *PAYOUT_LINK)["status"] == "cancelled"


@row("Decisions", "GET", "/claim/{token}/status")
def _(a: Caller) -> None:
    assert has(a.ok(200, "GET", page(link(a)) + "/status"), "status", "amount", "symbol", "expiresIn")["network"] == "ethereum"


@row("Decisions", "GET", "/claim/{token}")
def _(a: Caller) -> None:
    assert b"<form" in a.call("GET", page(link(a))).body


@row("Decisions", "POST", "/claim/{token}")
def _(a: Caller) -> None:
    path = page(link(a))
    word = has(a.ok(200, "POST", path, {"address": PAYEE}), "address", "confirm")["confirm"]
    assert a.ok(200, "POST", path, {"address": PAYEE, "confirm": word})["status"] == "pending"


# ---- The tests ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("one", ROWS, ids=lambda one: f"{one.table}: {one.method} {one.path}")
def test_row(one: Row, stack: Stack) -> None:
    """It answers as its table says, and what it changed is recorded: each change once, and nothing that was refused."""
    caller = Caller(stack)
    one.run(caller)
    recorded = Counter(record.request_id for record in services().store.every(Activity))
    done = set()
    for method, path, answer in caller.changes:
        made = answer.status < 400 and _changes(method, path)
        if made and (method, path) in done:
            continue  # the same again may change nothing
        assert recorded[answer.headers["x-request-id"]] == int(made), (method, path, answer.status)
        if made and method != "POST":
            done.add((method, path))


def _changes(method: str, path: str) -> bool:
    """Whether a request that succeeds is one with a key that changes something."""
    bare = path.partition("?")[0].removeprefix("/v1")
    for route in ROUTES:
        pattern = re.sub(r"\\?\{\w+\\?\}", "[^/]+", re.escape(route.path))
        if route.method == method and re.fullmatch(pattern, bare):
            return route.level != "public" and (method, route.path) not in UNCHANGING
    raise LookupError(f"{method} {path} is no route")


UNCHANGING = {
    ("POST", "/addresses/validate"),
    ("PUT", "/coins/precreate-token"),
    ("POST", "/webhooks/deliveries/{id}/redeliver"),  # in its row the delivery is on its way already
}
"""Routes that only look, or find nothing to change."""


def test_every_table_has_all_its_rows() -> None:
    """Counted in the published tables and lists by hand."""
    counted = Counter(one.table for one in ROWS)
    assert {name: count for name, count in counted.items() if name != "Decisions"} == {
        "Addresses": 9, "Addresses: guide": 6, "Addresses: overview": 1,
        "Coins": 5, "Coins: overview": 1,
        "Networks": 4, "Networks: overview": 2,
        "Withdrawals A": 2, "Withdrawals B": 5, "Withdrawals: overview": 3, "Withdrawals: demo explorer": 1,
        "Invoices": 8, "Other": 7,
    }  # fmt: skip


def test_every_route_is_in_a_row() -> None:
    """What is beyond the published tables is named here, so that nothing comes in unseen."""
    resources.load()
    beyond = {(route.method, route.path) for route in ROUTES} - {(one.method, one.path) for one in ROWS}
    assert beyond == {
        ("GET", "/api-keys/{id}"),
        ("GET", "/collections"),
        ("GET", "/collections/{id}"),
        ("PUT", "/collections/{id}"),
        ("GET", "/merchants"),
        ("POST", "/merchants"),
        ("GET", "/merchants/{id}"),
        ("PUT", "/merchants/{id}"),
        ("POST", "/merchants/{id}/keys"),
        ("GET", "/addresses/service-wallets"),
        ("GET", "/moves"),
        ("GET", "/networks/tron/stake"),
        ("GET", "/networks/{network}/rescan"),
        ("GET", "/openapi/{file}"),
        ("GET", "/"),
        ("GET", "/portal"),
        ("GET", "/console"),
        ("GET", "/reconciliation"),
        ("POST", "/reconciliation"),
        ("GET", "/stray-payments"),
        ("POST", "/stray-payments"),
        ("POST", "/stray-payments/{id}/credit"),
        ("POST", "/stray-payments/{id}/return"),
        ("GET", "/whitelist/addresses"),
        ("GET", "/whitelist/addresses/{id}"),
        ("PUT", "/whitelist/addresses/{id}"),
        ("DELETE", "/whitelist/addresses/{id}"),
        ("GET", "/webhooks/deliveries/{id}"),
        ("POST", "/webhooks/{id}/redeliver"),
        ("GET", "/webhooks/{id}/redeliveries"),
        ("GET", "/webhooks/redeliveries/{id}"),
        ("DELETE", "/webhooks/redeliveries/{id}"),
        ("GET", "/withdrawals/switch"),
        ("PUT", "/withdrawals/switch"),
    }
