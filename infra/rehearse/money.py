"""A merchant with a test key, and his customers: what is asked of the deployed API in a rehearsal."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from infra.rehearse.shop import Shop

NETWORK, COIN = "ethereum", "eth"
PAID, TAKEN_OUT = "0.05", "0.02"
PAYEE = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
SECONDS = 300.0
"""How long what was asked may take to come true."""


class Failed(Exception):
    """Something is not as it has to be."""


@dataclass
class Merchant:
    """Asks the API at `url`, which is AWS's, by way of the stand-in on `port`."""

    port: int
    url: str
    key: str
    invoices: list[str] = field(default_factory=list)
    payments: list[str] = field(default_factory=list)
    """Their ids, as they came to be."""

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """The answer's JSON. Raises Failed for one that is not 2xx."""
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Host": parts.netloc, "X-Api-Key": self.key, "Content-Type": "application/json"}
        try:
            sent = None if body is None else json.dumps(body)
            connection.request(method, parts.path.rstrip("/") + path, body=sent, headers=headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if not 200 <= answer.status < 300:
            raise Failed(f"{method} {path} answers {answer.status}: {text[:1000]}")
        return json.loads(text)

    def register(self, shop: Shop) -> None:
        """Have events sent to the shop."""
        made = self.ask("POST", "/v1/webhooks", {"url": shop.url, "events": ["*"]})
        shop.secret = made["data"]["secret"]

    def sell(self, shop: Shop, order: str) -> None:
        """An invoice that a customer pays: credited, and told to the shop. Raises Failed."""
        wanted = {"currency": COIN, "network": NETWORK, "amount": PAID, "externalId": order}
        invoice = self.ask("POST", "/v1/invoices", wanted)
        paid = {"network": NETWORK, "coin": COIN, "amount": PAID, "address": invoice["address"]}
        self.ask("POST", "/v1/sandbox/deposits", paid)
        self.mine()
        path = f"/v1/invoices/{invoice['id']}"
        until(lambda: self.ask("GET", path)["status"] == "completed", f"invoice {invoice['id']} is paid and not completed")
        self.told(shop, "invoice.completed", invoice["id"])
        self.invoices.append(invoice["id"])

    def take_out(self, shop: Shop) -> None:
        """A withdrawal, paid and confirmed. Raises Failed."""
        wanted = {"network": NETWORK, "coin": COIN, "amount": TAKEN_OUT, "to_address": PAYEE}
        made = self.ask("POST", "/v1/withdrawals", wanted)
        payment = str(made.get("data", made)["id"])

        def confirmed() -> bool:
            status = self.ask("GET", f"/v1/withdrawals/{payment}")["data"]["status"]
            if status == "confirming":
                self.mine()
            return bool(status == "confirmed")

        until(confirmed, f"withdrawal {payment} is not confirmed")
        self.told(shop, "withdrawal.completed", payment)
        self.payments.append(payment)

    def told(self, shop: Shop, event: str, object_id: str) -> None:
        """Wait until the shop has an event about an object. Raises Failed."""

        def came() -> bool:
            return any(each["event"] == event and object_id in json.dumps(each["data"]) for each in shop.events)

        until(came, f"the shop was not told {event} of {object_id}; refused: {shop.refused}")

    def mine(self) -> None:
        """Blocks, so that what is on the chain is confirmed."""
        self.ask("POST", "/v1/sandbox/blocks", {"network": NETWORK, "count": 12})

    def books(self) -> list[Any]:
        """What the merchant reads of his money: balances, and all invoices and payments of the rehearsal. How deep a transaction
        lies on its chain is left out: that grows."""
        found = self.ask("GET", "/v1/balances")["data"]
        balances = [[each[key] for key in ("network", "coin", "balance", "available", "frozen", "held")] for each in found]
        invoices = [self.ask("GET", f"/v1/invoices/{each}") for each in self.invoices]
        payments = [self.ask("GET", f"/v1/withdrawals/{each}")["data"] for each in self.payments]
        of_invoice, of_payment = ("id", "status", "amount", "received", "address"), ("id", "status", "amount", "fee", "to_address")
        return [
            *balances,
            *([each[key] for key in of_invoice] for each in invoices),
            *([each[key] for key in of_payment] for each in payments),
        ]

    def version(self) -> str:
        """The version that the API's document names."""
        return str(self.ask("GET", "/openapi/openapi.json")["info"]["version"])


def until(true: Callable[[], bool], otherwise: str, seconds: float = SECONDS) -> None:
    """Wait. Raises Failed with `otherwise` when it took too long."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            raise Failed(f"{otherwise}, after {seconds:.0f} seconds")
        time.sleep(0.5)
