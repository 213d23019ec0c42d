"""Every call to AWS that the functions make on the way of a payment and of a withdrawal, and for every GET route, is one that
their policies allow.

In the simulated realm; `test_rights_live` is about what functions do on real networks alone.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from chalicelib import wiring
from chalicelib.api.routes import ROUTES
from chalicelib.domain.addresses.addresses import Watched
from chalicelib.domain.chain import Cursor
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.times import iso
from chalicelib.encoding import base58check
from chalicelib.usecases.catalogue.rates import Quote
from chalicelib.usecases.scanning.sharing import Share
from chalicelib.usecases.scanning.ticks import Ticks
from chalicelib.wiring import services
from tests.deploy.declared import API, functions
from tests.deploy.rights import Recorder, allowed, needed, policies, recording, refused, refused_items
from tests.support.stack import Stack

ROUNDS = 3
"""Of each function in turn: what is left waits for the next turn. Rates never settle, since each round stores them anew."""


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    return recording(monkeypatch)


class Kraken:
    """A provider of rates that needs no network."""

    name = "kraken"

    def quotes(self, wanted: Any, now_ms: int) -> list[Quote]:
        return [Quote("eth", "USD", Decimal(3000), now_ms)]


class Journey:
    """Drives the stack and tells the recorder which function is at work."""

    def __init__(self, stack: Stack, recorder: Recorder) -> None:
        self.stack, self.recorder = stack, recorder
        self.key = stack.keys["client_test"]

    def api(self, method: str, path: str, body: Any = None, status: int = 200, key: str | None = None) -> Any:
        self.recorder.function = API
        answer = self.stack.call(method, path, key or self.key, body)
        assert answer.status == status, answer.body
        return answer.body if answer.json is None else answer.json

    def fall_behind(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        """A backlog that is shared out, with a payment in it; the invoice."""
        services().clock.shift_ms += 61_000  # requests are counted by the minute
        monkeypatch.setattr(services().wiring.scanning, "range_queue", lambda _: services().queues)
        monkeypatch.setattr("chalicelib.usecases.scanning.reorganisations.BATCH_BLOCKS", 5)
        monkeypatch.setattr("chalicelib.usecases.scanning.backlog.FAR", 1)
        invoice = self.api("POST", "/v1/invoices", {"currency": "eth", "amount": "1", "network": "ethereum"}, 201)
        paid = {"network": "ethereum", "coin": "eth", "address": invoice["address"], "amount": "1"}
        self.api("POST", "/v1/sandbox/deposits", paid, 201)
        self.api("POST", "/v1/sandbox/blocks", {"network": "ethereum", "count": 100}, 201)
        self.settle()
        assert self.api("GET", f"/v1/invoices?id={invoice['id']}")["status"] == "completed"
        return dict(invoice)

    def look_between_polls(self) -> None:
        """Somebody is given an address, and ticks see his payment and credit it."""
        services().wiring.scanning.__dict__["ticks"] = Ticks(services().store, services().clock, services().queues, 3_600_000)
        address = self.api("POST", "/v1/addresses", {"network": "ethereum", "mode": "common"}, 201)["address"]
        paid = {"address": address, "network": "ethereum", "coin": "eth", "amount": "2"}
        self.api("POST", "/v1/sandbox/deposits", paid, 201)
        for blocks in (1, 30):
            self.recorder.function = "poll_ethereum"
            services().wiring.scanning.ticks.plan(
                services().catalogue("test").networks["ethereum"], *[services().clock.now_ms()] * 2, None
            )
            self.api("POST", "/v1/sandbox/blocks", {"network": "ethereum", "count": blocks}, 201)
            services().clock.shift_ms += 30_000
            self.recorder.function = "tick"
            assert self.stack.drain(only=["tick"], hurry=True).calls["tick"] >= 29
        assert self.api("GET", f"/v1/transactions/address/{address}")["data"][0]["status"] == "confirmed"
        del services().wiring.scanning.__dict__["ticks"]

    def be_crowded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Payments that a message has recorded before the poll, and credited beside it."""
        services().clock.shift_ms += 61_000
        monkeypatch.setattr("chalicelib.usecases.scanning.sharing.FROM", 1)
        monkeypatch.setattr("chalicelib.usecases.scanning.confirming.CONFIRM_AT_ONCE", 1)
        network = services().catalogue("test").networks["ethereum"]
        made = []
        for _ in range(3):
            made.append(self.api("POST", "/v1/invoices", {"currency": "usdt", "amount": "1", "network": "ethereum"}, 201))
            paid = {"network": "ethereum", "coin": "usdt", "address": made[-1]["address"], "amount": "1"}
            told = self.api("POST", "/v1/sandbox/deposits", paid, 201)
            self.recorder.function = "poll_ethereum"
            chain, cursor = services().simulated(network.id), services().store.get(Cursor, network=network.id)
            assert cursor is not None
            txid = told.get("data", told)["txid"]
            share = Share(network.id, chain.tip(), str(services().reader(network).block_hash(chain.tip())), cursor.epoch, (txid,))
            services().queues.record(share.body())
        self.settle()
        self.api("POST", "/v1/sandbox/blocks", {"network": "ethereum", "count": 30}, 201)
        self.settle()
        assert {self.api("GET", f"/v1/invoices?id={invoice['id']}")["status"] for invoice in made} == {"completed"}

    def archive(self, invoice: Mapping[str, Any]) -> None:
        """A year later invoices leave the tables. One is asked for, paid late, and collected."""
        for minutes in (402 * 24 * 60, 5):  # what lists cover is said first
            services().clock.shift_ms += minutes * 60_000
            self.api("POST", "/v1/sandbox/blocks", {"network": "ethereum", "count": 1}, 201)
            self.settle()
        remembered = services().wiring.parts.archived._known
        remembered.clear()  # each function is a process of its own
        self.api("GET", f"/v1/invoices?id={invoice['id']}")
        self.api("GET", f"/v1/transactions/address/{invoice['address']}")
        remembered.clear()
        paid = {"network": "ethereum", "coin": "eth", "address": invoice["address"], "amount": "1"}
        self.api("POST", "/v1/sandbox/deposits", paid, 201)
        self.api("POST", "/v1/sandbox/blocks", {"network": "ethereum", "count": 30}, 201)
        self.settle()

    def read_everything(self, ids: Mapping[str, str]) -> None:
        """Every GET route; pages and files touch no AWS. `ids` is what stands in the place of a path's parameter, or follows the
        path, by the route's path."""
        reading = [route for route in ROUTES if route.method == "GET" and route.media == "application/json"]
        assert ids.keys() <= {route.path for route in reading}
        for route in reading:
            assert route.path in ids or "{" not in route.path, f"no id for {route.path}"
            found = ids.get(route.path, "")
            path = f"{route.path.partition('{')[0]}{found}"
            answer = self.api("GET", f"/v1{path}", key=self.stack.keys["admin_test"] if route.level == "admin" else None)
            assert answer

    def manage_webhook(self, id: str) -> tuple[str, str]:
        """A delivery and a job of redelivery."""
        self.api("PUT", f"/v1/webhooks/{id}", {"events": ["invoice.created"]})
        self.api("POST", f"/v1/webhooks/{id}/rotate-secret", {}, 201)
        sent = self.api("POST", f"/v1/webhooks/{id}/test", status=201)
        self.api("POST", f"/v1/webhooks/deliveries/{sent['data']['id']}/redeliver", status=201)
        self.api("PUT", f"/v1/webhooks/{id}", {"events": ["*"]})
        now = services().clock.now_ms()
        time = {"from": iso(now - 86_400_000), "to": iso(now), "which": "all"}
        late = self.api("POST", "/v1/webhooks", {"url": f"http://127.0.0.1:{closed_port()}/late", "events": ["*"]}, 201)["data"][
            "id"
        ]
        job = self.api("POST", f"/v1/webhooks/{late}/redeliver", time, 201)
        self.settle()
        assert self.api("GET", f"/v1/webhooks/redeliveries/{job['data']['id']}")["data"]["made"]
        job = self.api("POST", f"/v1/webhooks/{late}/redeliver", time, 201)
        self.api("DELETE", f"/v1/webhooks/redeliveries/{job['data']['id']}")
        return sent["data"]["id"], job["data"]["id"]

    def pay_astray(self, decision: str, body: Mapping[str, str]) -> None:
        """A payment on the wrong network, and what the operator does about it."""
        admin = self.stack.keys["admin_test"]
        address = self.api("POST", "/v1/addresses", {"network": "ethereum", "mode": "common"}, 201)["address"]
        paid = {"address": address, "network": "polygon", "coin": "usdt", "amount": "20"}
        txid = self.api("POST", "/v1/sandbox/deposits", paid, 201)["data"]["txid"]
        self.api("POST", "/v1/sandbox/blocks", {"network": "polygon", "count": 30}, 201)
        self.settle()
        read = self.api("POST", "/v1/stray-payments", {"network": "polygon", "txid": txid}, 201, admin)
        self.api("POST", f"/v1/stray-payments/{read['data']['payments'][0]['id']}/{decision}", body or None, 201, admin)
        self.settle()

    def give_back(self, invoice: str) -> dict[str, str]:
        """A refund, a link that is claimed, one that is cancelled, and one that expires. What stands for them in paths."""
        to = base58check.encode(b"\x41" + bytes(range(20)))
        refunds = f"/v1/invoices/{invoice}/refunds"
        made = self.api("POST", refunds, {"mode": "same", "amount": "4", "address": to}, 201)
        body = {"network": "tron", "coin": "usdt", "amount": "4"}
        link = self.api("POST", "/v1/payout-links", body, 201)
        token = link["claimUrl"].rpartition("/")[2]
        self.api("GET", f"/v1/claim/{token}")
        word = self.api("POST", f"/v1/claim/{token}", {"address": to})["confirm"]
        self.api("POST", f"/v1/claim/{token}", {"address": to, "confirm": word})
        gone = self.api("POST", refunds, {"mode": "same", "amount": "4"}, 201)
        self.api("DELETE", f"/v1/refunds/{gone['id']}")
        late = self.api("POST", "/v1/payout-links", body | {"expiresIn": 30}, 201)
        self.api("POST", "/v1/sandbox/clock", {"advance": 31}, 201)
        self.settle()
        assert self.api("GET", f"/v1/payout-links/{late['id']}")["status"] == "expired"
        return {
            "/invoices/{id}/refunds": f"{invoice}/refunds",
            "/refunds/{id}": made["id"],
            "/payout-links/{id}": link["id"],
            "/claim/{token}/status": f"{token}/status",
        }

    def manage_keys(self) -> None:
        made = self.api("POST", "/v1/api-keys", {"name": "n", "permissions": ["read-only"]}, 201)["data"]
        self.api("PUT", f"/v1/api-keys/{made['key_id']}", {"name": "m"})
        made = self.api("POST", f"/v1/api-keys/{made['key_id']}/rotate", {"overlap": 60}, 201)["data"]
        self.api("DELETE", f"/v1/api-keys/{made['key_id']}")

    def settle(self) -> None:
        """All functions in turn, until none finds anything to do."""
        for _ in range(12):
            handled = 0
            for function in functions():
                if function != API:
                    self.recorder.function = function
                    done = self.stack.drain(only=[function], hurry=True, rounds=ROUNDS)
                    handled += sum(done.calls.values()) - done.rounds * (
                        function.startswith("poll_") or function in ("housekeeping", "rates", "reconciliation", "archive")
                    )
            if handled == 0:
                return
        raise AssertionError("the service does not come to rest")


def closed_port() -> int:
    """Nobody listens there: the delivery fails and is tried again."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_calls_are_translated() -> None:
    transaction = {"TransactItems": [{"Put": {"TableName": "a"}}, {"Delete": {"TableName": "b"}}]}
    assert needed("dynamodb", "TransactWriteItems", transaction) == {
        ("dynamodb:PutItem", "arn:aws:dynamodb:r:1:table/a"),
        ("dynamodb:DeleteItem", "arn:aws:dynamodb:r:1:table/b"),
    }
    by_index = needed("dynamodb", "Query", {"TableName": "a", "IndexName": "i"})
    assert by_index == {("dynamodb:Query", "arn:aws:dynamodb:r:1:table/a/index/i")}
    sent = needed("sqs", "SendMessage", {"QueueUrl": "https://x/1/q.fifo"})
    assert sent == {("sqs:SendMessage", "arn:aws:sqs:r:1:q.fifo")}


def test_policies_are_read() -> None:
    api = policies()[API]
    assert allowed(api, "dynamodb:GetItem", "arn:aws:dynamodb:r:1:table/gateway-local-records")
    assert allowed(api, "dynamodb:Query", "arn:aws:dynamodb:r:1:table/gateway-local-records/index/listing")
    assert not allowed(api, "dynamodb:GetItem", "arn:aws:dynamodb:r:1:table/gateway-local-custody")
    assert not allowed(api, "dynamodb:GetItem", "arn:aws:dynamodb:r:1:table/gateway-prod-records")
    assert not allowed(api, "kms:Sign", "arn:aws:kms:r:1:key/k")


def test_conditions_on_partition_keys_are_read() -> None:
    deliver, work = policies()["deliver"], "arn:aws:dynamodb:r:1:table/gateway-local-work"
    for partition, expected in (("row#note_1", True), ("row#out_1", False), ("outbox#3", True), ("payout#live:ethereum", False)):
        assert allowed(deliver, "dynamodb:PutItem", work, partition) is expected, partition
    assert not allowed(policies()["collect"], "dynamodb:GetItem", "arn:aws:dynamodb:r:1:table/gateway-local-custody", "key#x")


@pytest.mark.slow
def test_every_call_is_allowed(stack: Stack, recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHIVE_AFTER_DAYS", "400")
    wiring.forget()
    journey = Journey(stack, recorder)
    services().wiring.catalogue.__dict__["rate_providers"] = [Kraken()]
    journey.api("GET", "/v1/auth/test")
    hook = journey.api("POST", "/v1/webhooks", {"url": f"http://127.0.0.1:{closed_port()}/hook", "events": ["*"]}, 201)
    admin = stack.keys["admin_test"]
    listed = {"network": "ethereum", "address": "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb"}
    journey.api("POST", "/v1/addresses/grey-list", listed, 201, admin)
    journey.api("POST", "/v1/addresses/service-wallets", {"network": "ethereum", "type": "collector"}, 201, admin)
    cold = {"network": "ethereum", "type": "cold", "address": "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"}
    journey.api("POST", "/v1/addresses", cold, 201, admin)
    journey.api(
        "PUT", "/v1/coins", {"coin": "eth", "network": "ethereum", "collectThreshold": 0, "hotCeiling": 9_000_000}, key=admin
    )
    for coin, network, amount in (("eth", "ethereum", "1.5"), ("usdt", "tron", "20")):
        asked = {"amount": amount, "externalId": f"order-{coin}"}
        invoice = journey.api("POST", "/v1/invoices", asked | {"currency": coin, "network": network}, 201)
        pay = {"address": invoice["address"], "network": network, "coin": coin, "amount": amount}
        pay |= {"from": listed["address"]} if network == "ethereum" else {}
        journey.api("POST", "/v1/sandbox/deposits", pay, 201)
        journey.settle()
        journey.api("POST", "/v1/sandbox/blocks", {"network": network, "count": 30}, 201)
        journey.settle()
    delivery, redelivery = journey.manage_webhook(hook["data"]["id"])
    journey.manage_keys()
    given_back = journey.give_back(invoice["id"])
    (held,) = (t for t in journey.api("GET", "/v1/transactions")["data"] if "held" in t["flags"])
    journey.api("POST", f"/v1/transactions/{held['id']}/release", key=admin)
    (collection,) = journey.api("GET", "/v1/collections?status=parked", key=admin)["data"]
    journey.api("PUT", f"/v1/collections/{collection['id']}", {"action": "retry"}, key=admin)
    to = "0x52908400098527886E0F7030069857D2E4169EE7"
    given_up = journey.api("POST", "/v1/invoices", {"currency": "eth", "amount": "1"}, 201)["id"]
    journey.api("POST", f"/v1/invoices/{given_up}/extend", {"expiresIn": 7200})
    journey.api("DELETE", f"/v1/invoices/{given_up}")
    link = journey.api("POST", "/v1/payment-links", {"name": "Shoes", "currency": "eth", "amount": "1", "stock": 9}, 201)["id"]
    opened = journey.api("POST", f"/v1/link/{link}", {}, 201)["invoiceId"]
    journey.api("DELETE", f"/v1/invoices/{opened}")
    journey.api("PUT", f"/v1/payment-links/{link}", {"stock": 5})
    unwanted = journey.api("POST", "/v1/payment-links", {"name": "Boots", "currency": "eth", "amount": "1"}, 201)["id"]
    journey.api("DELETE", f"/v1/payment-links/{unwanted}")
    journey.pay_astray("credit", {})
    journey.pay_astray("return", {"address": "0x52908400098527886E0F7030069857D2E4169EE7"})
    withdrawal = journey.api("POST", "/v1/withdraws", {"coin": "eth", "network": "ethereum", "amount": "0.5", "address": to}, 201)
    trusted = journey.api("POST", "/v1/whitelist/addresses", {"network": "ethereum", "address": to, "label": "x"}, 201)["data"]
    journey.api("PUT", "/v1/merchant/settings", {"whitelist_enforced": True})
    outputs = [{"to_address": to, "amount": "0.01"}] * 4
    batch = {"batch_withdrawal": {"coin": "eth", "network": "ethereum", "outputs": outputs}}
    journey.api("POST", "/v1/withdrawals", batch, 201)
    transaction = journey.api("GET", "/v1/transactions")["data"][0]
    admin = stack.keys["admin_test"]
    rescan = journey.api("POST", "/v1/networks/ethereum/rescan", {"fromBlock": 0, "toBlock": 5}, 201, key=admin)
    journey.api("PUT", "/v1/networks", {"network": "fantom", "gasLimit": 30_000}, key=admin)
    journey.api("POST", "/v1/sandbox/clock", {"advance": 60}, 201)
    journey.api("POST", "/v1/reconciliation", {}, 201, key=admin)
    journey.api("POST", "/v1/networks/tron/stake", {"amount": "5", "resource": "ENERGY"}, 201, key=admin)
    # Another minute of its key's hundred requests.
    services().clock.shift_ms += 60_000
    journey.read_everything(
        {
            "/invoices": f"?id={invoice['id']}",
            "/invoices/getByExternalId": "?externalId=order-usdt",
            "/invoices/{id}": invoice["id"],
            "/addresses/{address}": invoice["address"],
            "/addresses/{address}/balances": f"{invoice['address']}/balances",
            "/addresses/{address}/balances/{coin}": f"{invoice['address']}/balances/usdt",
            "/addresses/hot-wallet/{network}": "ethereum",
            "/addresses/service-wallet/{network}": "ethereum",
            "/addresses/cold-wallet/{network}": "ethereum",
            "/coins/{coin}": "usdt",
            "/collections/{id}": collection["id"],
            "/networks/{network}": "ethereum",
            "/networks/last-number-block/{network}": "ethereum",
            "/networks/{network}/rescan": "ethereum/rescan",
            "/networks/{network}/rescan/{id}": f"ethereum/rescan/{rescan['id']}",
            "/transactions/{txId}": transaction["id"],
            "/transactions/address/{address}": invoice["address"],
            "/addresses/{address}/transactions": f"{invoice['address']}/transactions",
            "/webhooks/{id}": hook["data"]["id"],
            "/webhooks/{id}/deliveries": f"{hook['data']['id']}/deliveries?status=dead",
            "/webhooks/{id}/redeliveries": f"{hook['data']['id']}/redeliveries",
            "/webhooks/deliveries/{id}": delivery,
            "/webhooks/redeliveries/{id}": redelivery,
            "/events/{id}": journey.api("GET", "/v1/events")["data"][0]["id"],
            "/api-keys/{id}": journey.api("GET", "/v1/auth/test")["data"]["key_id"],
            "/withdrawals/{id}": withdrawal["id"],
            "/withdrawals/fees": "?coin=eth",
            "/whitelist/addresses/{id}": trusted["id"],
            "/payment-links/{id}": link,
            "/merchants/{id}": journey.api("POST", "/v1/merchants", {"name": "Another"}, 201, key=admin)["data"]["id"],
            "/pay/{invoiceId}/status": f"{invoice['id']}/status",
            **given_back,
        }
    )
    journey.api("PUT", f"/v1/addresses/{invoice['address']}", {"label": "till 3"})
    journey.api("DELETE", f"/v1/addresses/{invoice['address']}")
    journey.api("DELETE", "/v1/addresses/grey-list", listed, key=admin)
    journey.settle()
    journey.api("POST", "/v1/sandbox/blocks", {"network": "ethereum", "count": 30}, 201)
    journey.settle()
    journey.look_between_polls()
    found_behind = journey.fall_behind(monkeypatch)
    # The way round all addresses, which is for live EVM networks.
    recorder.function = "compare"
    assert services().store.sweep(Watched, limit=10, realm="test", family="evm").next
    # What a daily run goes through besides; the one above was ordered, and looked at every address.
    assert services().store.sweep(WalletBalance, limit=10, network="test:ethereum").next

    journey.be_crowded(monkeypatch)
    journey.archive(found_behind)
    at_work = {function for function, _, _ in recorder.calls}
    assert at_work == set(functions())
    assert {function for function, action, _ in recorder.calls if action.startswith("s3:")} >= {API, "archive", "poll_ethereum"}
    assert {action for function, action, _ in recorder.calls if function == "payout" and action.startswith("kms:")} == {"kms:Sign"}
    secret = {(function, action) for function, action, _ in recorder.calls if action in ("kms:Encrypt", "kms:Decrypt")}
    opening = {(function, "kms:Decrypt") for function in ("collect", "deliver")}
    assert secret - {("deliver_slow", "kms:Decrypt")} == {(API, "kms:Encrypt"), *opening}
    # Ranges and payments are shared out of real networks alone: here the simulated one stands for the node.
    node = {call for call in recorder.calls if call[0] in ("scan_range", "record") and call[2].endswith("-sandbox")}
    assert refused(recorder.calls - node) == []
    assert refused_items({item for item in recorder.items if item[:3] not in node}) == []
