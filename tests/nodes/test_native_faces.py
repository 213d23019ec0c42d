"""The network's own coin under the face of a token, on a real node: it can not be registered, and pays once where it was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from chalicelib import wiring
from chalicelib.chains.evm.faces import is_face
from chalicelib.chains.evm.tokens import EvmTokens
from chalicelib.domain.catalogue.catalogue import Coin, TokenContract
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.tokens import NoToken
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.bootstrap import NodeInfo
from infra.local.aws import LocalAws
from infra.local.nodes import Anvil, mine
from infra.local.tokens import call_data, deploy
from tests.nodes.conftest import Chain, start
from tests.nodes.sending import send, send_native
from tests.support.stack import Stack, first_stack

pytestmark = pytest.mark.nodes

ETHER = 10**18
DEPTH = 12


def tokens(chain: Chain) -> EvmTokens:
    return EvmTokens(chain.network, chain.rpc)


@pytest.mark.parametrize("decimals", [18, 6])
def test_a_face_is_told_from_tokens(chain: Chain, decimals: int) -> None:
    face = deploy(chain.rpc, "NativeFace", decimals)
    assert tokens(chain).facts(face).decimals == decimals
    keys = [chain.funded(wei=wei) for wei in (3 * ETHER, 5 * ETHER)]
    assert tokens(chain).is_native_face(face, decimals, [key.address for key in keys]) is True
    assert tokens(chain).is_native_face(face, decimals, []) is True, "who sent in the newest blocks is enough"
    assert tokens(chain).is_native_face(chain.usdt, 6, []) is False
    assert tokens(chain).is_native_face(chain.usdc, 6, [key.address for key in keys]) is False


def test_what_the_own_coin_is_changed_into_is_a_token(chain: Chain) -> None:
    wrapped = deploy(chain.rpc, "WrappedNative")
    for _ in range(3):
        send(chain.rpc, wrapped, value=2 * ETHER)
    chain.funded(wei=2 * ETHER)
    assert tokens(chain).is_native_face(wrapped, 18, []) is False


def test_what_tells_no_balances_is_no_token(chain: Chain) -> None:
    relay = deploy(chain.rpc, "Relay")
    chain.funded()
    with pytest.raises(NoToken, match="does not tell balances"):
        tokens(chain).is_native_face(relay, 18, [])


def test_a_quiet_chain_tells_nothing() -> None:
    with Anvil(1) as node:
        fresh = start(node, "ethereum")
        mine(node.rpc, 70)
        face = "0x" + "11" * 20
        node.rpc.call("anvil_setCode", [face, node.rpc.call("eth_getCode", [fresh.usdc, "latest"])])
        assert tokens(fresh).is_native_face(face, 6, []) is None
        assert tokens(fresh).is_native_face(face, 6, ["0x" + "22" * 20]) is None
        rich = node.rpc.call("eth_accounts")
        assert tokens(fresh).is_native_face(face, 6, rich[:2]) is False


def test_a_node_that_fails_says_nothing(chain: Chain) -> None:
    chain.funded()

    class Away:
        def call(self, method: str, params: Any = ()) -> Any:
            return chain.rpc.call(method, params)

        def batch(self, requests: Any) -> Any:
            raise Unavailable("away")

    with pytest.raises(Unavailable):
        is_face(Away(), chain.usdt, 6, 18, [])
    gone = EvmTokens(chain.network, Away())
    with pytest.raises(Unavailable):
        gone.is_native_face(chain.usdt, 6, [])


@dataclass(frozen=True)
class Registered:
    """A live merchant on polygon, and a token that is the network's own coin."""

    stack: Stack
    node: Anvil
    face: str

    def call(self, method: str, path: str, status: int, body: Any = None, key: str = "client_live") -> Any:
        answer = self.stack.call(method, path, self.stack.keys[key], body)
        assert answer.status == status, answer.body
        return answer.json

    def address(self) -> str:
        made = self.call("POST", "/v1/addresses", 201, {"network": "polygon"})
        return str(made.get("data", made)["address"])

    def settle(self) -> None:
        mine(self.node.rpc, 30)
        for _ in range(2):
            self.stack.drain(only=("poll_polygon", "relay"))

    def balances(self) -> dict[str, str]:
        found = self.call("GET", "/v1/balances", 200)["data"]
        return {entry["coin"]: entry["available"] for entry in found if entry["network"] == "polygon" and entry["available"] != "0"}

    def pay(self, address: str, units: int = ETHER) -> None:
        send(self.node.rpc, self.face, call_data("transfer(address,uint256)", address, units), value=units, gas=200_000)

    def register(self, contract: str) -> None:
        """As it is where it was registered before anybody looked."""
        store = services().store
        network = services().catalogue("live").networks["polygon"]
        store.commit(
            [
                Save(Coin(network.id, "face", "FACE", "Own Coin", 18, services().rules.normalize(network.id, contract))),
                Save(TokenContract(network.id, contract, "face")),
            ]
        )
        store.forget_catalogue()


@pytest.fixture
def polygon(aws: LocalAws) -> Iterator[Registered]:
    with Anvil(137) as node:
        stack = first_stack(aws, {"polygon": NodeInfo(node.url)})
        made = Registered(stack, node, deploy(node.rpc, "NativeFace", 18))
        for wei in (3 * ETHER, 5 * ETHER):
            send_native(node.rpc, "0x" + wei.to_bytes(20).hex(), wei)
        made.settle()
        yield made
        assert audit(services().store) == []
    wiring.forget()


def test_it_is_refused_and_a_token_is_not(polygon: Registered) -> None:
    body = {"network": "polygon", "contractAddress": polygon.face}
    for method, path in (("POST", "/v1/coins"), ("PUT", "/v1/coins/precreate-token")):
        refused = polygon.call(method, path, 400, body, key="admin_live")
        assert refused["code"] == "VALIDATION_ERROR"
        assert "matic, the own coin of polygon, its balances say" in str(refused)
    wrapped = {"network": "polygon", "contractAddress": deploy(polygon.node.rpc, "WrappedNative")}
    polygon.call("POST", "/v1/coins", 201, wrapped, key="admin_live")


def test_a_face_of_the_list_that_was_registered_credits_nothing(polygon: Registered, caplog: pytest.LogCaptureFixture) -> None:
    known = "0x0000000000000000000000000000000000001010"
    polygon.node.rpc.call("anvil_setCode", [known, polygon.node.rpc.call("eth_getCode", [polygon.face, "latest"])])
    polygon.register(known)
    address = polygon.address()
    send(polygon.node.rpc, known, call_data("transfer(address,uint256)", address, ETHER), value=ETHER, gas=200_000)
    polygon.settle()
    assert polygon.balances() == {"matic": "1"}
    assert any("ALARM" in line and "face" in line and "matic" in line for line in map(str, caplog.messages))


def test_a_face_that_nobody_knew_credits_once(polygon: Registered, caplog: pytest.LogCaptureFixture) -> None:
    """It was registered before: the native coin is credited, and the token waits for the operator."""
    polygon.register(polygon.face)
    address = polygon.address()
    polygon.pay(address)
    polygon.settle()
    assert polygon.balances() == {"matic": "1"}
    held = [d for d in services().store.every(Deposit) if d.address == address and d.held]
    assert [(d.asset.rsplit(":", 1)[1], d.flags) for d in held] == [("face", ("native_twin", "held"))]
    assert sum("ALARM" in line and held[0].txid in line for line in caplog.messages) >= 1
    polygon.call("POST", f"/v1/transactions/{held[0].id}/release", 200, key="admin_live")
    assert polygon.balances() == {"matic": "1", "face": "1"}


def test_the_native_coin_that_is_seen_later_waits(polygon: Registered) -> None:
    """The token was recorded while nobody traced; a rescan with a node that traces finds the native movement beside it."""
    polygon.register(polygon.face)
    address = polygon.address()
    polygon.call("PUT", "/v1/networks", 200, {"network": "polygon", "tracing": "off"}, key="admin_live")
    wiring.forget()
    first = int(polygon.node.rpc.call("eth_blockNumber"), 16) + 1
    polygon.pay(address)
    mine(polygon.node.rpc, 2)
    polygon.stack.drain(only=("poll_polygon", "relay"), rounds=1)
    polygon.call("PUT", "/v1/networks", 200, {"network": "polygon", "tracing": "auto"}, key="admin_live")
    wiring.forget()
    asked = {"fromBlock": first, "toBlock": first + 1}
    for _ in range(2):
        polygon.call("POST", "/v1/networks/polygon/rescan", 201, asked, key="admin_live")
        polygon.settle()
    assert polygon.balances() == {"face": "1"}
    (held,) = [d for d in services().store.every(Deposit) if d.address == address and d.held]
    assert (held.asset.rsplit(":", 1)[1], held.flags) == ("matic", ("native_twin", "held"))
