"""A live merchant on bitcoin or litecoin, whose node runs in regtest."""

from __future__ import annotations

from typing import Any

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.ids import network_id
from chalicelib.domain.treasury.hot_utxos import HeldCoins
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.wiring import services
from infra.local.nodes import UtxoNode
from infra.local.utxo import units_of
from tests.support.stack import Stack

COIN = 10**8
CONFIRMATIONS = 6


class Shop:
    """A live merchant with three coins of money, on a network whose hot wallet holds three outputs."""

    def __init__(self, stack: Stack, node: UtxoNode) -> None:
        self.stack, self.node, self.slug = stack, node, node.slug
        self.network = network_id("live", node.slug)
        self.key = stack.keys["client_live"]
        self.coin = {"bitcoin": "btc", "litecoin": "ltc"}[node.slug]
        self.minutes = 0

    @property
    def hot(self) -> str:
        wallet = services().store.get(Wallet, network=self.network, role="hot")
        assert wallet is not None
        return wallet.address

    def run(self) -> None:
        self.minutes += 1
        services().clock.shift_ms = self.minutes * 60_000
        done = self.stack.drain(only=(f"poll_{self.slug}", "relay", "payout", "housekeeping"))
        assert done.settled, done

    def confirm(self) -> None:
        self.node.mine(CONFIRMATIONS)
        self.run()

    def post(self, path: str, **body: Any) -> Any:
        answer = self.stack.call("POST", path, self.key, json=body)
        assert answer.status == 201, answer.body
        return answer.json

    def fund(self) -> None:
        made = self.post("/v1/invoices", currency=self.coin, amount="3", network=self.slug)
        self.node.send(made["address"], 3 * COIN)
        for units in (COIN, COIN // 2, COIN // 4):
            self.node.send(self.hot, units)
        self.confirm()

    def withdraw(self, amount: str, address: str) -> str:
        made = self.post("/v1/withdraws", network=self.slug, coin=self.coin, address=address, amount=amount)
        return str(made["id"])

    def status(self, withdrawal: str) -> str:
        return str(self.stack.call("GET", f"/v1/withdrawals/{withdrawal}", self.key).json["data"]["status"])

    def bundles(self) -> list[Bundle]:
        return sorted(services().store.every(Bundle), key=lambda bundle: bundle.id)

    def available(self) -> str:
        balances = self.stack.call("GET", "/v1/balances", self.key).json["data"]
        return str(next(b["available"] for b in balances if (b["network"], b["coin"]) == (self.slug, self.coin)))

    def held(self) -> list[int]:
        found = services().store.get(HeldCoins, network=self.network, wallet=self.hot)
        assert found is not None
        return [coin.amount for coin in found.free]

    def paid(self, txid: str) -> dict[str, int]:
        """What the node says that a transaction pays."""
        outputs = self.node.rpc.call("getrawtransaction", [txid, True])["vout"]
        scripts = [(out["scriptPubKey"], units_of(out["value"])) for out in outputs]
        return {script.get("address") or script["addresses"][0]: units for script, units in scripts}
