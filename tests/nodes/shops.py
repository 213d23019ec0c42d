"""A live merchant on arbitrum, whose node is anvil."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from chalicelib.chains.rpc import JsonRpc, RpcError
from chalicelib.domain.ids import NetworkId
from chalicelib.wiring import services
from infra.bootstrap import NodeInfo
from infra.local.aws import LocalAws
from infra.local.nodes import Anvil, deploy_token, mine
from tests.nodes.sending import send_native, send_token
from tests.support.stack import Stack, first_stack

ETHER = 10**18
OUT = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
HANDLERS = ("poll_arbitrum", "relay", "deliver", "payout")
CONFIRMATIONS = 10


class Shop:
    """A live merchant on arbitrum, whose node is anvil."""

    def __init__(self, stack: Stack, node: Anvil, usdt: str) -> None:
        self.stack, self.node, self.usdt = stack, node, usdt
        self.key = stack.keys["client_live"]

    def run(self) -> None:
        done = self.stack.drain(only=HANDLERS)
        assert done.settled, done

    def confirm(self) -> None:
        mine(self.node.rpc, CONFIRMATIONS)
        self.run()

    def post(self, path: str, **body: Any) -> Any:
        answer = self.stack.call("POST", path, self.key, json=body)
        assert answer.status == 201, answer.body
        return answer.json

    def get(self, path: str, **query: str) -> Any:
        answer = self.stack.call("GET", path, self.key, query=query)
        assert answer.status == 200, answer.body
        return answer.json

    def invoice(self, made: Any) -> Any:
        return self.get("/v1/invoices", id=made["id"])

    def available(self) -> dict[str, str]:
        return {entry["coin"]: entry["available"] for entry in self.get("/v1/balances")["data"]}

    def on_chain(self, address: str) -> tuple[int, int]:
        reader = services().reader(services().catalogue("live").networks["arbitrum"])
        return reader.balance(address), reader.balance(address, self.usdt)


class Kept:
    """A service and its anvil as they are when this is made. `back` makes them so again, as often as it is asked."""

    def __init__(self, stack: Stack, rpc: JsonRpc) -> None:
        self._stack, self._rpc = stack, rpc
        self._data, self._chain = stack.snapshot(), rpc.call("evm_snapshot")

    def back(self) -> bool:
        """False where that can not be: a reorganisation has replaced the block that the chain would go back to."""
        self._stack.restore(self._data)
        self._rpc.call("anvil_dropAllTransactions")
        self._rpc.call("evm_setAutomine", [True])
        try:
            gone_back = self._rpc.call("evm_revert", [self._chain])
        except RpcError:
            return False
        assert gone_back is True
        # Going back takes the node's clock back too, and a snapshot is good for one time.
        self._rpc.call("evm_setTime", [int(time.time())])
        self._chain = self._rpc.call("evm_snapshot")
        return True


def hot_wallet() -> str:
    from chalicelib.domain.addresses.addresses import Wallet

    wallet = services().store.get(Wallet, network=NetworkId("live:arbitrum"), role="hot")
    assert wallet is not None and wallet.custody == "kms"
    return wallet.address


@contextmanager
def arbitrum_shop(aws: LocalAws) -> Iterator[Shop]:
    """The merchant with a first start of its own; the hot wallet has 100 ETH and 1,000 USDT, which returns nothing."""
    # Blocks that `Kept.back` takes away count among the states that anvil remembers: by itself it forgets after 500.
    with Anvil(42161, history=10_000) as node:
        usdt = deploy_token(node.rpc, "USDT", "Tether USD", 6, returns_nothing=True)
        stack = first_stack(aws, {"arbitrum": NodeInfo(node.url, {"usdt": usdt})})
        made = Shop(stack, node, usdt)
        hot = hot_wallet()
        send_native(node.rpc, hot, 100 * ETHER)
        send_token(node.rpc, usdt, hot, 1_000_000_000)
        made.confirm()
        yield made
