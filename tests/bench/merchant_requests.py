"""Small requests of merchants, one step each: what they read and change beside payments and withdrawals."""

from __future__ import annotations

from typing import Any

from chalicelib.domain.times import iso
from chalicelib.domain.webhooks.deliveries import Delivery
from chalicelib.wiring import services
from tests.bench.further_steps import completed
from tests.bench.walk import Walk


def step(walk: Walk, name: str, method: str, path: str, body: Any = None, key: str = "") -> Any:
    """One request; what it answers, without its envelope."""
    found = walk.step(name, lambda: walk.ask(method, path, body, key))
    return found["data"] if isinstance(found, dict) and found.get("success") is True else found


def addresses(walk: Walk) -> None:
    made = walk.ask("POST", "/addresses", {"network": walk.network, "mode": "common"})
    path = f"/addresses/{made['address']}"
    walk.pay(made["address"], walk.coin, "1")
    walk.idle()
    step(walk, "read an address", "GET", path)
    step(walk, "read an address by its id", "GET", f"/addresses/{made['id']}")
    step(walk, "name an address", "PUT", path, {"label": "till 3"})
    step(walk, "read an address's balances", "GET", f"{path}/balances")
    step(walk, "read an address's balance of a coin", "GET", f"{path}/balances/{walk.coin}")
    step(walk, "list an address's transactions", "GET", f"{path}/transactions")
    step(walk, "list transactions of an address", "GET", f"/transactions/address/{made['address']}")
    step(walk, "validate an address", "POST", "/addresses/validate", {"address": walk.payee, "network": walk.network})
    walk.mine(walk.confirmations)
    walk.idle()
    step(walk, "remove an address", "DELETE", path)
    (found,) = walk.ask("GET", f"/transactions/address/{made['address']}")["data"]
    step(walk, "read a transaction by its id", "GET", f"/transactions/{found['id']}")
    step(walk, "read a transaction by its hash", "GET", f"/transactions/{found['hash']}")
    step(walk, "list the grey list, as a merchant", "GET", "/addresses/grey-list")
    step(walk, "read the hot wallet", "GET", f"/addresses/hot-wallet/{walk.network}")


def catalogue(walk: Walk) -> None:
    step(walk, "list coins", "GET", "/coins")
    step(walk, "read a coin", "GET", f"/coins/{walk.coin}")
    step(walk, "list networks", "GET", "/networks")
    step(walk, "read a network", "GET", f"/networks/{walk.network}")
    step(walk, "read a network's last block", "GET", f"/networks/last-number-block/{walk.network}")
    step(walk, "read all networks' last blocks", "GET", "/networks/last-number-blocks")
    walk.step("ask for the service's health", lambda: walk.stack.call("GET", "/health"))


def account(walk: Walk) -> None:
    """The merchant itself, its keys, and what was done with them."""
    step(walk, "read the merchant", "GET", "/merchant")
    step(walk, "read the merchant's settings", "GET", "/merchant/settings")
    step(walk, "change the merchant's settings", "PUT", "/merchant/settings", {"whitelist_enforced": False})
    made = step(walk, "make a key", "POST", "/api-keys", {"name": "till", "permissions": ["addresses:read"]})
    path = f"/api-keys/{made['key_id']}"
    step(walk, "change a key", "PUT", path, {"name": "desk"})
    again = step(walk, "rotate a key", "POST", f"{path}/rotate", {"overlap": 0})
    step(walk, "remove a key", "DELETE", f"/api-keys/{again['key_id']}")
    step(walk, "list a key's activity", "GET", f"/activity?object_id={made['key_id']}")


def invoices(walk: Walk) -> None:
    name = f"order-{int(walk.counts)}"
    body = {"currency": walk.coin, "network": walk.network, "amount": walk.amount(), "externalId": name}
    made = step(walk, "create an invoice with a name of the shop's", "POST", "/invoices", body)
    step(walk, "read an invoice by its path", "GET", f"/invoices/{made['id']}")
    step(walk, "read an invoice by the shop's name", "GET", f"/invoices/getByExternalId?externalId={name}")
    step(walk, "read the sums of invoices", "GET", "/invoices/summary")
    settings = step(walk, "read the settings of invoices", "GET", "/invoices/configureSettings")["settings"]
    step(walk, "change the settings of invoices", "PUT", "/invoices/configureSettings", {"settings": settings})
    step(walk, "complete an invoice by hand", "PUT", "/invoices", {"invoiceId": made["id"], "status": "completed"})
    walk.step("open the pay page", lambda: walk.stack.call("GET", f"/pay/{made['id']}"))
    walk.wait(7_200)
    walk.idle()


def links(walk: Walk) -> None:
    """Payment links, payout links and refunds that nobody claims."""
    terms = {"name": "Two pairs of shoes", "currency": walk.coin, "network": walk.network, "amount": walk.amount()}
    path = f"/payment-links/{walk.ask('POST', '/payment-links', terms)['id']}"
    step(walk, "list payment links", "GET", "/payment-links")
    step(walk, "read a payment link", "GET", path)
    step(walk, "change a payment link", "PUT", path, {"amount": {"min": 1, "max": 5}})
    step(walk, "remove a payment link", "DELETE", path)
    invoice = completed(walk)
    asked = walk.ask("POST", f"/invoices/{invoice['id']}/refunds", {"mode": "same"})
    walk.idle()
    step(walk, "list an invoice's refunds", "GET", f"/invoices/{invoice['id']}/refunds")
    step(walk, "list refunds", "GET", "/refunds")
    step(walk, "cancel a refund", "DELETE", f"/refunds/{asked['id']}")
    walk.idle()
    body = {"network": walk.network, "coin": walk.coin, "amount": walk.amount("0.2")}
    link = step(walk, "create a payout link", "POST", "/payout-links", body)
    walk.idle()
    step(walk, "list payout links", "GET", "/payout-links")
    step(walk, "read a payout link", "GET", f"/payout-links/{link['id']}")
    token = str(link["claimUrl"]).rpartition("/")[2]
    walk.step("a payee asks for a claim link's state", lambda: walk.stack.call("GET", f"/v1/claim/{token}/status"))
    step(walk, "cancel a payout link", "DELETE", f"/payout-links/{link['id']}")
    walk.idle()


def hooks(walk: Walk) -> None:
    """An endpoint and what was sent to it. It is paused: its deliveries wait."""
    made = walk.ask("POST", "/webhooks", {"url": walk.hook, "events": ["invoice.created"]})["data"]
    path = f"/webhooks/{made['id']}"
    step(walk, "list endpoints", "GET", "/webhooks")
    step(walk, "read an endpoint", "GET", path)
    step(walk, "change an endpoint", "PUT", path, {"status": "paused"})
    step(walk, "rotate an endpoint's secret", "POST", f"{path}/rotate-secret")
    began = services().clock.now_ms()
    walk.ask("POST", "/invoices", {"currency": walk.coin, "network": walk.network, "amount": walk.amount()})
    walk.fire("relay")
    (waiting,) = [one for one in services().store.every(Delivery) if one.endpoint_id == made["id"]]
    step(walk, "read a delivery", "GET", f"/webhooks/deliveries/{waiting.id}")
    walk.ask("PUT", path, {"status": "active"})
    services().store.forget_listeners()
    walk.idle()
    step(walk, "send a delivery again", "POST", f"/webhooks/deliveries/{waiting.id}/redeliver")
    step(walk, "send a test event", "POST", f"{path}/test")
    walk.idle()
    body = {"from": iso(began), "to": iso(services().clock.now_ms()), "which": "all"}
    job = walk.ask("POST", f"{path}/redeliver", body)["data"]
    step(walk, "list an endpoint's redeliveries", "GET", f"{path}/redeliveries")
    step(walk, "read a redelivery", "GET", f"/webhooks/redeliveries/{job['id']}")
    step(walk, "stop a redelivery", "DELETE", f"/webhooks/redeliveries/{job['id']}")
    walk.idle()
    step(walk, "remove an endpoint", "DELETE", path)
    services().store.forget_listeners()
    walk.wait(7_200)
    walk.idle()


def money_out(walk: Walk) -> None:
    """What is read of withdrawals, and the list of places they may go to."""
    entry = {"address": walk.payee, "network": walk.network, "label": "supplier", "daily_limit": "1", "monthly_limit": "10"}
    path = f"/whitelist/addresses/{step(walk, 'allow an address', 'POST', '/whitelist/addresses', entry)['id']}"
    step(walk, "list allowed addresses", "GET", "/whitelist/addresses")
    step(walk, "read an allowed address", "GET", path)
    step(walk, "change an allowed address", "PUT", path, {"label": "the supplier"})
    step(walk, "remove an allowed address", "DELETE", path)
    completed(walk)
    body = {"network": walk.network, "coin": walk.coin, "to_address": walk.payee, "amount": walk.amount("0.2")}
    made = walk.ask("POST", "/withdrawals", body)["data"]
    step(walk, "read a withdrawal", "GET", f"/withdrawals/{made['id']}")
    step(walk, "list withdrawals", "GET", "/withdrawals?limit=20")
    step(walk, "read the fees of withdrawals", "GET", f"/withdrawals/fees?network={walk.network}&coin={walk.coin}")
    step(walk, "list withdrawals that wait to be signed", "GET", "/withdrawals/requests")
    walk.idle()
    walk.mine(walk.confirmations)
    walk.idle()


def merchants(walk: Walk) -> None:
    for group in (addresses, catalogue, account, invoices, links, hooks, money_out):
        group(walk)
