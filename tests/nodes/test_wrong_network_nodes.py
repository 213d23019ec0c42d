"""Two EVM networks, each on its node: a customer pays the right address on the wrong one. An invoice's address is watched there;
what came to an address that is not is read, credited to the merchant, or returned to the customer. In the end the ledger has
what both chains have, and the customer has what was returned.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.local.aws import LocalAws
from infra.local.nodes import deploy_token
from infra.local.tokens import call_data, deploy
from tests.nodes.comparing import TokenGround, compared
from tests.nodes.grounds import EvmGround
from tests.nodes.merchants import Merchant
from tests.nodes.sending import send, send_native, send_token
from tests.support.stack import first_stack

pytestmark = pytest.mark.nodes

ETHER = 10**18
CUSTOMER = "0x52908400098527886E0F7030069857D2E4169EE7"  # EIP-55's own example
HANDLERS = ("poll_ethereum", "poll_polygon", "relay", "payout", "collect")


class Shop:
    """A merchant who does business on ethereum, and whose customers pay on polygon."""

    def __init__(self, right: Merchant, wrong: Merchant, polygon: TokenGround) -> None:
        self.right, self.wrong, self.polygon = right, wrong, polygon

    def step(self) -> None:
        self.right.ground.mine(self.right.network.confirmations)
        self.polygon.mine(self.wrong.network.confirmations)
        self.right.stack.drain(only=HANDLERS, hurry=True, rounds=3)

    def steps(self, count: int) -> None:
        for _ in range(count):
            services().clock.shift_ms += 130_000  # what waits for liquidity is asked again
            self.right.stack.drain(only=("housekeeping",), rounds=1)
            self.step()

    def read(self, txid: str) -> list[Any]:
        body = {"network": "polygon", "txid": txid}
        read = self.wrong.operator("POST", "/v1/stray-payments", 201, json=body)["data"]
        assert read["internalTransfers"] == "read"
        return list(read["payments"])

    def decide(self, txid: str, decision: str, **body: str) -> Any:
        (payment,) = self.read(txid)
        return self.wrong.operator("POST", f"/v1/stray-payments/{payment['id']}/{decision}", 201, json=body or None)["data"]

    def shown(self, payment: Any) -> Any:
        (found,) = self.wrong.operator("GET", "/v1/stray-payments", 200, query={"id": payment["id"]})["data"]
        return found

    def withdrawal(self, payment: Any) -> Any:
        return self.wrong.operator("GET", f"/v1/withdrawals/{self.shown(payment)['withdrawalId']}", 200)["data"]

    def has(self, coin: str) -> str:
        found = [b for b in self.right.call("GET", "/v1/balances", 200)["data"] if (b["network"], b["coin"]) == ("polygon", coin)]
        return str(found[0]["available"]) if found else "0"

    def whole(self) -> None:
        """Both chains hold what the ledger says."""
        for merchant in (self.right, self.wrong):
            report = compared(merchant)
            assert report.clean, report
        assert audit(services().store) == []


@pytest.fixture
def shop(aws: LocalAws) -> Iterator[Shop]:
    ethereum, polygon = EvmGround("ethereum"), TokenGround("polygon")
    try:
        stack = first_stack(aws, {"ethereum": ethereum.info, "polygon": polygon.info})
        made = Shop(Merchant(stack, ethereum), Merchant(stack, polygon), polygon)
        for ground in (ethereum, polygon):
            hot = services().store.get(Wallet, network=ground.network.id, role="hot")
            assert hot is not None
            ground.fund(hot.address)
        made.step()
        yield made
    finally:
        ethereum.stop()
        polygon.stop()


# The sweep: contract/stray_payments/test_wrong_network.py pays such an invoice on both networks, and stays.
@pytest.mark.sweep
def test_an_invoice_is_watched_on_both(shop: Shop) -> None:
    invoice = shop.right.bill(10)
    send_native(shop.polygon.node.rpc, invoice["address"], 2 * ETHER)
    send_token(shop.polygon.node.rpc, shop.polygon.usdt, invoice["address"], 30_000_000)
    shop.step(), shop.step()
    assert (shop.has("matic"), shop.has("usdt")) == ("2", "30")
    assert shop.right.invoice(invoice) == ("pending", "0")
    shop.right.ground.pay(invoice["address"], shop.right.units(10))
    shop.step(), shop.step()
    assert shop.right.invoice(invoice)[0] == "completed"
    shop.whole()


# The sweep: the next test credits and the last one returns, on the same nodes; the contract tests have each coin. They stay.
@pytest.mark.sweep
def test_credited_and_returned(shop: Shop) -> None:
    """Native coins and tokens to one address that is watched on the other network alone."""
    rpc, usdt = shop.polygon.node.rpc, shop.polygon.usdt
    address = shop.right.call("POST", "/v1/addresses", 201, json={"network": "ethereum", "mode": "common"})["address"]
    for coin in ("usdt", "matic"):
        settings = {"coin": coin, "network": "polygon", "collectThreshold": 0.1}
        shop.wrong.operator("PUT", "/v1/coins", 200, json=settings)
    late = deploy_token(rpc, "LATE", "Late Token", 6)
    kept, back = send_native(rpc, address, 1 * ETHER), send_native(rpc, address, 2 * ETHER)
    tokens, unknown = send_token(rpc, usdt, address, 30_000_000), send_token(rpc, late, address, 7_000_000)
    shop.step(), shop.step()
    assert (shop.has("matic"), shop.has("usdt")) == ("0", "0")  # nobody's so far, and an alarm
    assert [payment["status"] for txid in (kept, back, tokens) for payment in shop.read(txid)] == ["open"] * 3
    (strange,) = shop.read(unknown)
    assert (strange["coin"], strange["contractAddress"].lower(), strange["units"]) == (None, late, "7000000")

    # Returned: while nothing is collected, the hot wallet has no token to pay with.
    returned = [shop.decide(tokens, "return", address=CUSTOMER), shop.decide(back, "return", address=CUSTOMER)]
    shop.steps(2)
    assert shop.withdrawal(returned[0])["amount"] == "30"
    # What nobody has decided about is more than the ledger has, now that the address is looked at.
    assert [d.held - d.expected for d in compared(shop.wrong).worst] == [1 * ETHER]
    # Credited: the address is watched there from now on, which changes nothing about what is returned.
    shop.decide(kept, "credit")
    shop.wrong.operator("POST", "/v1/coins", 201, json={"network": "polygon", "contractAddress": strange["contractAddress"]})
    shop.decide(unknown, "credit")
    shop.steps(8)
    assert (shop.has("matic"), shop.has("late"), shop.has("usdt")) == ("1", "7", "0")
    assert [shop.withdrawal(each)["status"] for each in returned] == ["confirmed", "confirmed"]
    reader = services().reader(services().catalogue("live").networks["polygon"])
    assert (reader.balance(CUSTOMER), reader.balance(CUSTOMER, usdt)) == (2 * ETHER, 30_000_000)
    assert [status for txid in (kept, unknown) for status in [shop.read(txid)[0]["transactionStatus"]]] == ["confirmed"] * 2
    shop.whole()


def test_what_a_contract_sent_and_what_two_nodes_say(shop: Shop) -> None:
    """Inside of a transaction, with a node that traces and without; then with a second node that is away, and one that answers."""
    rpc = shop.polygon.node.rpc
    address = shop.right.call("POST", "/v1/addresses", 201, json={"network": "ethereum", "mode": "common"})["address"]
    relay = deploy(rpc, "Relay")
    txid = send(rpc, relay, call_data("forward(address)", address.lower()), value=ETHER, gas=200_000)
    shop.step()

    def configured(**more: Any) -> None:
        shop.wrong.operator("PUT", "/v1/networks", 200, json={"network": "polygon", **more})

    def refused() -> str:
        answer = shop.wrong.operator("POST", "/v1/stray-payments", 400, json={"network": "polygon", "txid": txid})
        assert answer["error"]["code"] == "VALIDATION_ERROR"
        return str(answer["error"]["details"]["reason"])

    configured(tracing="off")
    assert "what contracts sent inside was not read" in refused()
    configured(tracing="auto", rpcUrls=[shop.polygon.node.url, "http://127.0.0.1:9/away"])
    assert "no two nodes vouch" in refused()
    configured(rpcUrls=[shop.polygon.node.url, f"{shop.polygon.node.url}/?second"])
    (payment,) = shop.read(txid)
    assert (payment["position"], payment["amount"]) == (f"trace:{address.lower()}:0", "1")
    shop.decide(txid, "credit")
    shop.steps(2)
    assert shop.has("matic") == "1"
    shop.whole()


def test_a_returned_token_at_another_place_of_another_block(shop: Shop) -> None:
    """Its log has another number after a reorganisation: it is the same payment, and returned once."""
    rpc, usdt = shop.polygon.node.rpc, shop.polygon.usdt
    address = shop.right.call("POST", "/v1/addresses", 201, json={"network": "ethereum", "mode": "common"})["address"]
    payers = rpc.call("eth_accounts")[1:3]
    for payer in payers:
        send_token(rpc, usdt, payer, 100_000_000)

    def paid(payer: str, to: str) -> tuple[str, str]:
        data = call_data("transfer(address,uint256)", to.lower(), 30_000_000)
        txid = str(rpc.call("eth_sendTransaction", [{"from": payer, "to": usdt, "data": data}]))
        return txid, str(rpc.call("eth_getRawTransactionByHash", [txid]))

    height = shop.polygon.height()
    elsewhere, mine = paid(payers[1], "0x" + "ee" * 20), paid(payers[0], address)
    shop.step()
    (payment,) = shop.read(mine[0])
    decided = shop.decide(mine[0], "return", address=CUSTOMER)
    rpc.call("anvil_reorg", [shop.polygon.height() - height, [[elsewhere[1], 3], [mine[1], 3]]])
    shop.polygon.mine()
    shop.steps(2)
    receipt = rpc.call("eth_getTransactionReceipt", [mine[0]])
    assert (payment["position"], int(receipt["logs"][0]["logIndex"], 16)) == ("log:0", 1)
    shown = shop.shown(decided)
    assert (shown["transactionId"], shown["transactionStatus"]) == (payment["id"], "confirmed")
    assert shop.withdrawal(decided)["amount"] == "30"
    (again,) = shop.read(mine[0])
    assert (again["id"], again["status"]) == (payment["id"], "return")
    assert shop.has("usdt") == "0"
    shop.whole()
