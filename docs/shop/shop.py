"""A shop's day, from an order to a refund, with Python's standard library alone.

    KEY=<client_test> python docs/shop/shop.py

API and PORT, where webhooks arrive, come from the environment too. The sandbox plays the customers: a shop leaves `Customer` out.
"""

from __future__ import annotations

import base64
import hmac
import http.server
import json
import os
import queue
import secrets
import threading
import time
import urllib.error
import urllib.request
from typing import Any, ClassVar

API = os.environ.get("API", "http://127.0.0.1:8000/api/v1")
KEY = os.environ["KEY"]
PORT = int(os.environ.get("PORT", "9000"))
SECRET = secrets.token_bytes(32)
"""Signs the webhooks. A shop keeps it with its other secrets."""
EVENTS = ["transaction.confirmed", "invoice.completed", "invoice.reverted", "refund.completed", "payout_link.completed"]
COIN = {"network": "ethereum", "coin": "usdt"}
PAYEE = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"


class Refused(Exception):
    """The answer to a request that is not done: the same request again is refused again."""


class Later(OSError):
    """The same request, sent again after `seconds`, may be done."""

    def __init__(self, words: str, seconds: int) -> None:
        super().__init__(words)
        self.seconds = seconds


def send(method: str, url: str, body: Any = None, **headers: str) -> Any:
    """One request. Raises Refused; OSError where another try may do."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **headers}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            found = json.load(answer)
    except urllib.error.HTTPError as error:
        words = error.read().decode()
        if error.code == 429 or error.code >= 500:
            raise Later(words, int(error.headers.get("Retry-After", "1"))) from None
        raise Refused(words) from None
    return found["data"] if isinstance(found, dict) and "data" in found else found


def call(method: str, path: str, body: Any = None, once: str | None = None) -> Any:
    """A request of the shop's, sent again when its answer got lost: with its Idempotency-Key it is done once. `once` names what
    must not be done again after a crash either: its answer is kept for 24 hours."""
    headers = {"X-Api-Key": KEY, "Idempotency-Key": once or secrets.token_hex(16)}
    for seconds in (1, 5):
        try:
            return send(method, API + path, body, **headers)
        except OSError as error:
            time.sleep(error.seconds if isinstance(error, Later) else seconds)
    return send(method, API + path, body, **headers)


class Hook(http.server.BaseHTTPRequestHandler):
    """Keeps each genuine event once, and answers at once. A shop keeps them in its database, under their unique id."""

    lock = threading.Lock()
    known: ClassVar[set[str]] = set()
    kept: ClassVar[queue.Queue[dict[str, Any]]] = queue.Queue()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        id, at = (self.headers.get(f"webhook-{name}", "") for name in ("id", "timestamp"))
        mine = b"v1," + base64.b64encode(hmac.digest(SECRET, f"{id}.{at}.".encode() + body, "sha256"))
        sent = self.headers.get("webhook-signature", "").encode().split()
        genuine = any(hmac.compare_digest(mine, one) for one in sent) and abs(time.time() - int(at)) <= 300
        with self.lock:  # one event may come twice at once
            if genuine and id not in self.known:
                self.known.add(id)
                self.kept.put(json.loads(body))
        self.send_response(204 if genuine else 401)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: the shop prints what matters."""


class Shop:
    """Orders by number: the invoice of each, what happened to it, and what it gives back."""

    def __init__(self) -> None:
        self.orders: dict[str, dict[str, Any]] = {}

    def order(self, number: str, price: str, **more: Any) -> str:
        """The id of its invoice, whose page the customer is sent to. The same order again is the same invoice."""
        wanted = {"fiatAmount": price, "fiatCurrency": "USD", "accept": [COIN], "latePayments": "manual", **more}
        wanted |= {"externalId": number, "metadata": {"order": number}}
        invoice = call("POST", "/invoices", wanted, once=f"order-{number}")
        self.orders[number] = {"invoice": invoice["id"], "done": set()}
        print(number, "ordered:", invoice["checkoutUrl"], flush=True)
        return str(invoice["id"])

    def handle(self, event: dict[str, Any]) -> None:
        """Safe to do twice: what pays has an Idempotency-Key, and nothing is shipped twice."""
        name, data = event["event"], event["data"]
        if name in ("transaction.confirmed", "refund.completed"):
            if data["invoiceId"] is None:
                return
            invoice = call("GET", f"/invoices/{data['invoiceId']}")
        else:
            invoice = data  # or a payout link: it has the order's metadata, too
        number = invoice.get("metadata", {}).get("order")
        if number not in self.orders:
            return
        if name == "transaction.confirmed":
            self.credited(number, invoice, data)
        else:
            said = {"invoice.completed": "shipped", "invoice.reverted": "stopped"}
            self.note(number, said.get(name, "paid back"))

    def credited(self, number: str, invoice: dict[str, Any], payment: dict[str, Any]) -> None:
        """Money came: what the order did not ask for goes back. What is refused is left to a person."""
        if "held" in payment["flags"]:
            return print(number, "look at this: a payment is held by the operator", flush=True)
        once = f"back-{invoice['id']}-{invoice['received']}"  # what is confirmed together goes back together
        came = [payment["hash"], payment["network"], payment["coin"]]  # one transaction may bring a right coin and a wrong one
        try:
            if came in ([one["txId"], one["network"], one["coin"]] for one in invoice.get("misdirected", [])):
                link = {name: payment[name] for name in ("network", "coin", "amount")}
                link |= {"description": f"Order {number}: not the coin we asked for", "metadata": invoice["metadata"]}
                self.give(number, call("POST", "/payout-links", link, once=payment["id"]))
            elif invoice["status"] in ("expired", "cancelled"):
                self.refund(number, "Paid too late", once)
            elif invoice.get("overpaid"):
                self.refund(number, "Paid too much", once)
        except Refused as words:
            print(number, "look at this:", words, flush=True)

    def refund(self, number: str, reason: str, once: str) -> None:
        """Without an amount: what was overpaid, else all that is credited and not refunded."""
        path = f"/invoices/{self.orders[number]['invoice']}/refunds"
        self.give(number, call("POST", path, {"mode": "same", "reason": reason}, once))

    def give(self, number: str, back: dict[str, Any]) -> None:
        """Tell the customer: `claimUrl` is in this answer alone."""
        self.orders[number]["back"] = back
        self.note(number, f"gives back {back['amount']} {back['coin']}")

    def note(self, number: str, what: str) -> None:
        if what not in self.orders[number]["done"]:
            self.orders[number]["done"].add(what)
            print(number, what, flush=True)

    def until(self, number: str, what: str) -> None:
        while what not in self.orders[number]["done"]:
            self.handle(Hook.kept.get(timeout=60))


class Customer:
    """Whom the sandbox plays."""

    def chooses(self, invoice: str) -> dict[str, str]:
        return dict(send("POST", f"{API}/pay/{invoice}/choice", COIN))

    def pays(self, choice: dict[str, str], amount: str, coin: str = COIN["coin"]) -> None:
        network = choice["network"]
        paid = {"network": network, "coin": coin, "amount": amount, "address": choice["address"]}
        call("POST", "/sandbox/deposits", paid)
        call("POST", "/sandbox/blocks", {"network": network, "count": 12})

    def claims(self, back: dict[str, Any]) -> None:
        """Names an address, sees it again, and confirms it."""
        shown = send("POST", back["claimUrl"], {"address": PAYEE})
        send("POST", back["claimUrl"], {"address": PAYEE, "confirm": shown["confirm"]})
        self.gets(("/refunds/" if "invoiceId" in back else "/payout-links/") + back["id"])

    def gets(self, path: str) -> None:
        """Has the sandbox mine the payment now."""
        call("POST", f"/sandbox/withdrawals/{call('GET', path)['withdrawalId']}", {"outcome": "confirm"})


def day(shop: Shop, customer: Customer, hook: str) -> None:
    exact, over, stray, late = (time.strftime(f"%j-%H%M%S-{n}") for n in (1, 2, 3, 4))

    choice = customer.chooses(shop.order(exact, "49.90"))
    customer.pays(choice, choice["missing"])
    shop.until(exact, "shipped")
    while not (sent := call("GET", f"/webhooks/{hook}/deliveries?event=invoice.completed&limit=1")):
        time.sleep(0.05)  # a delivery is listed once its first attempt is over
    call("POST", f"/webhooks/deliveries/{sent[0]['id']}/redeliver")  # comes again, and changes nothing

    choice = customer.chooses(shop.order(over, "20"))
    customer.pays(choice, "8")  # in two parts, and too much
    customer.pays(choice, "17")
    shop.until(over, "shipped")
    shop.until(over, "gives back 5 usdt")

    customer.pays(customer.chooses(shop.order(stray, "30")), "30", coin="usdc")
    shop.until(stray, "gives back 30 usdc")

    choice = customer.chooses(shop.order(late, "10", expiresIn=3600))
    call("POST", "/sandbox/clock", {"advance": 7200})
    customer.pays(choice, "10")
    shop.until(late, "gives back 10 usdt")

    for number in (over, stray, late):
        customer.claims(shop.orders[number]["back"])
        shop.until(number, "paid back")

    refunds = f"/invoices/{shop.orders[exact]['invoice']}/refunds"
    try:
        call("POST", refunds, {"mode": "fiat", "amount": "60", "address": PAYEE}, once=f"too-much-{exact}")
    except Refused as words:
        print(exact, "refused:", json.loads(str(words))["error"], flush=True)
    back = call("POST", refunds, {"mode": "fiat", "amount": "9.90", "address": PAYEE}, once=f"refund-{exact}")
    shop.give(exact, back)
    customer.gets(f"/refunds/{back['id']}")
    shop.until(exact, "paid back")


def main() -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    secret = "whsec_" + base64.b64encode(SECRET).decode()
    hook = call("POST", "/webhooks", {"url": f"http://127.0.0.1:{PORT}/hook", "events": EVENTS, "secret": secret})["id"]
    try:
        day(Shop(), Customer(), hook)
    finally:
        call("DELETE", f"/webhooks/{hook}")


if __name__ == "__main__":
    main()
