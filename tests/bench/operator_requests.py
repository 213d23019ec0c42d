"""Small requests of the operator, one step each."""

from __future__ import annotations

import json
from dataclasses import replace

from chalicelib.domain.treasury.collections import Collection
from chalicelib.usecases.ports.queues import COMPARISON_VERSION
from chalicelib.wiring import services
from chalicelib.workers import compare
from tests.bench.further_steps import completed
from tests.bench.merchant_requests import step
from tests.bench.walk import Walk

ADMIN = "admin_test"
COLD = "0x52908400098527886E0F7030069857D2E4169EE7"  # EIP-55's example of an address in capitals alone


def merchants(walk: Walk) -> None:
    made = step(walk, "register a merchant", "POST", "/merchants", {"name": "a shop"}, ADMIN)
    path = f"/merchants/{made['id']}"
    step(walk, "list merchants", "GET", "/merchants", key=ADMIN)
    step(walk, "read a merchant", "GET", path, key=ADMIN)
    step(walk, "make a merchant's key", "POST", f"{path}/keys", {"name": "first", "permissions": ["full"]}, ADMIN)
    step(walk, "suspend a merchant", "PUT", path, {"suspended": True, "reason": "a test"}, ADMIN)


def catalogue(walk: Walk) -> None:
    token = {"network": walk.network, "symbol": f"TK{int(walk.counts)}", "name": "Token", "decimals": 8}
    contract = walk.ask("POST", "/sandbox/tokens", token)["data"]["contractAddress"]
    named = {"network": walk.network, "contractAddress": contract}
    step(walk, "read a token's contract", "PUT", "/coins/precreate-token", named, ADMIN)
    step(walk, "register a token", "POST", "/coins", named, ADMIN)
    step(walk, "change a coin", "PUT", f"/coins/{token['symbol'].lower()}", {"network": walk.network, "name": "The token"}, ADMIN)
    step(walk, "change a network", "PUT", "/networks", {"network": "fantom", "confirmationBlocks": 30}, ADMIN)
    step(walk, "list rescans", "GET", f"/networks/{walk.network}/rescan", key=ADMIN)


def wallets(walk: Walk) -> None:
    step(walk, "list service wallets", "GET", "/addresses/service-wallets", key=ADMIN)
    step(walk, "read the collector's wallet", "GET", f"/addresses/service-wallet/{walk.network}")
    step(walk, "read the cold wallet", "GET", f"/addresses/cold-wallet/{walk.network}")
    step(walk, "list moves", "GET", "/moves", key=ADMIN)
    step(walk, "read the reconciliation", "GET", "/reconciliation", key=ADMIN)
    step(walk, "read the kill switch", "GET", "/withdrawals/switch", key=ADMIN)
    for stopped in (True, False):
        name = "stop payments" if stopped else "let payments go on"
        step(walk, name, "PUT", "/withdrawals/switch", {"stopped": stopped}, ADMIN)
    step(walk, "list all merchants' withdrawals", "GET", "/withdraws?limit=20", key=ADMIN)


def compared(walk: Walk) -> None:
    """A comparison of every address of a network, from the order to the report. That of a day looks at a seventh of the hashes of
    addresses, which are random; this one at all."""
    walk.fire("reconciliation", "compare")
    walk.wait(60)
    step(walk, "order a reconciliation", "POST", "/reconciliation", {}, ADMIN)
    walk.step("reconciliation: every network is ordered", lambda: walk.fire("reconciliation"))
    about = json.dumps({"version": COMPARISON_VERSION, "realm": "test", "network": walk.network})
    walk.step("compare: every address of a network", lambda: compare.handle(about))
    told = step(walk, "read a network's reconciliation", "GET", f"/reconciliation?network={walk.network}", key=ADMIN)
    (report,) = told["networks"]
    assert report["complete"] and report["differences"] == 0, report
    walk.fire("compare")


def collections(walk: Walk) -> None:
    """A collection that waits for the operator, who refuses it."""
    settings = {"coin": "usdt", "network": walk.network, "collectThreshold": "0", "approveThreshold": "1"}
    walk.ask("PUT", "/coins", settings, ADMIN)
    services().store.forget_catalogue()
    invoice = walk.ask("POST", "/invoices", {"currency": "usdt", "network": walk.network, "amount": "500"})
    walk.pay(invoice["address"], "usdt", "500")
    walk.mine(walk.confirmations)
    walk.idle()
    (found,) = [one for one in services().store.every(Collection) if one.address == invoice["address"]]
    assert found.state == "waits_for_approval", found
    step(walk, "list collections", "GET", "/collections", key=ADMIN)
    step(walk, "read a collection", "GET", f"/collections/{found.id}", key=ADMIN)
    step(walk, "refuse a collection", "PUT", f"/collections/{found.id}", {"action": "reject"}, ADMIN)
    walk.ask("PUT", "/coins", {**settings, "collectThreshold": None, "approveThreshold": None}, ADMIN)
    services().store.forget_catalogue()
    walk.idle()


def grey_list(walk: Walk) -> None:
    """A payment from an address of the grey list is held, and released."""
    entry = {"network": walk.network, "address": walk.payee}
    step(walk, "put an address on the grey list", "POST", "/addresses/grey-list", entry, ADMIN)
    address = walk.ask("POST", "/addresses", {"network": walk.network})["address"]
    walk.ask(
        "POST",
        "/sandbox/deposits",
        {"address": address, "network": walk.network, "coin": walk.coin, "amount": "2", "from": walk.payee},
    )
    walk.mine(walk.confirmations)
    walk.idle()
    (held,) = walk.ask("GET", f"/transactions/address/{address}")["data"]
    step(walk, "release a held payment", "POST", f"/transactions/{held['id']}/release", key=ADMIN)
    step(walk, "take an address off the grey list", "DELETE", "/addresses/grey-list", entry, ADMIN)
    walk.idle()


def strays(walk: Walk) -> None:
    """A payment on a network that its address does not receive on is credited."""
    address = walk.ask("POST", "/addresses", {"network": "ethereum", "mode": "common"})["address"]
    there = replace(walk, network="polygon", coin="usdt", confirmations=20)
    body = {"address": address, "network": there.network, "coin": there.coin, "amount": "5"}
    txid = walk.ask("POST", "/sandbox/deposits", body)["data"]["txid"]
    there.mine(there.confirmations)
    there.idle()
    found = walk.ask("POST", "/stray-payments", {"network": there.network, "txid": txid}, ADMIN)["data"]
    (payment,) = found["payments"]
    step(walk, "list stray payments", "GET", "/stray-payments", key=ADMIN)
    step(walk, "credit a stray payment", "POST", f"/stray-payments/{payment['id']}/credit", {}, ADMIN)
    there.idle()


def stakes(walk: Walk) -> None:
    tron = replace(walk, network="tron", coin="trx", confirmations=19)
    tron.idle()
    step(tron, "stake", "POST", "/networks/tron/stake", {"amount": "10", "resource": "ENERGY"}, ADMIN)
    step(tron, "read the stake", "GET", "/networks/tron/stake", key=ADMIN)
    tron.idle()
    tron.mine(tron.confirmations)
    tron.idle()


def operators(walk: Walk) -> None:
    if not walk.counts:
        for body in ({"type": "collector"}, {"type": "cold", "address": COLD}):
            walk.ask("POST", "/addresses/service-wallets", {"network": walk.network, **body}, ADMIN)
    else:
        body = {"network": "bsc", "type": "collector"}
        step(walk, "register a service wallet", "POST", "/addresses/service-wallets", body, ADMIN)
    completed(walk)
    for group in (merchants, catalogue, compared, wallets, collections, grey_list, strays, stakes):
        group(walk)
