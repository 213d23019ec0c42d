"""Several nodes of bitcoin, litecoin and Tron, one of which lags, garbles, hangs or lies about a payment: with an honest one beside
it nothing is lost, and all is credited once. `test_providers` is about many more faults, on an EVM network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import pytest

from chalicelib.chains.node_comparison import NodeReader
from chalicelib.chains.providers import Health
from chalicelib.chains.quorum import QuorumReader
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.scanning.scanner import Scanner
from chalicelib.wiring import services
from infra.local.aws import LocalAws
from tests.nodes.grounds import Ground, ground_of
from tests.nodes.merchants import Merchant, open_shop
from tests.support.node_proxy import Fault, NodeProxy

pytestmark = pytest.mark.nodes

PATIENCE = 0.3
"""Seconds that a reader waits for a node that hangs."""


@dataclass
class Behind:
    """A merchant, and a proxy before the node."""

    merchant: Merchant
    ground: Ground
    proxy: NodeProxy

    def scanner(self, agreement_usd: int | None = None) -> Scanner:
        """Reads the proxy first, and the node itself beside it; every range of blocks is compared."""
        network: Network = replace(self.merchant.network, agreement_usd=agreement_usd)
        wired, honest = services(), self.ground.info.rpc_url
        login = urlsplit(honest).netloc.rpartition("@")[0]
        url = self.proxy.url.replace("//", f"//{login}@") if login else self.proxy.url
        patience = PATIENCE if self.proxy.fault.hang else 30.0
        transports = [wired.wiring.nodes.transport(network, url, patience), wired.wiring.nodes.transport(network, honest, 30.0)]
        seen = [
            NodeReader(wired.wiring.chains.reader_over(network, t), Health(number)) for number, t in enumerate(transports, start=1)
        ]
        reader = QuorumReader(network, seen, lambda: 0.0)
        return Scanner(NetworkContext(network, reader, wired.store, wired.rules, wired.clock_of("live")), wired.deposits("live"))

    def paid(self) -> Any:
        """An invoice that is paid, with its confirmations, read by nobody yet."""
        made = self.merchant.bill(7)
        self.ground.pay(made["address"], self.merchant.units(7))
        self.ground.mine(self.merchant.network.confirmations)
        return made


BITCOIN, TRON = (pytest.param(slug, marks=pytest.mark.sweep) for slug in ("bitcoin", "tron"))


@pytest.fixture(scope="module", params=[BITCOIN, "litecoin", "tron"])
def ground(request: pytest.FixtureRequest) -> Iterator[Ground]:
    made = ground_of(request.param)
    try:
        made.mine(20)
        yield made
    finally:
        made.stop()


@pytest.fixture
def behind(ground: Ground, aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> Iterator[Behind]:
    with NodeProxy(ground.info.rpc_url) as proxy:
        yield Behind(open_shop(aws, ground, monkeypatch), ground, proxy)
    assert audit(services().store) == []


def lags(behind: Behind, address: str) -> Fault:
    newest = behind.ground.height() - 15

    def change(method: str, params: Any, result: Any) -> Any:
        if method == "getblockcount":
            return newest
        if method == "wallet/getblock" and "block_header" in result:
            number = result["block_header"]["raw_data"].get("number", 0)
            return {} if number > newest and "id_or_num" in params else result
        return result

    return Fault(change)


def lies(behind: Behind, address: str) -> Fault:
    """Ten times the amount, on chains of coins; on Tron, that it failed."""

    def change(method: str, params: Any, result: Any) -> Any:
        if method == "getblock":
            for output in (o for tx in result["tx"] for o in tx["vout"]):
                if address in (output["scriptPubKey"].get("address"), *output["scriptPubKey"].get("addresses", ())):
                    output["value"] *= 10
        if method == "wallet/gettransactioninfobyblocknum":
            return [info | {"result": "FAILED"} for info in result]
        return result

    return Fault(change)


FAULTS: dict[str, Callable[[Behind, str], Fault]] = {
    "lags": lags,
    "answers garbage": lambda *_: Fault(raw=b"<html>502 Bad gateway</html>", status=502),
    "hangs": lambda *_: Fault(hang=True),
    "lies about a payment": lies,
}


def poll(scanner: Scanner, times: int = 3) -> None:
    for _ in range(times):
        try:
            scanner.poll(lambda: True)
        except Unavailable:
            continue


# The sweep: a node of an EVM network hangs in test_providers.py, before the same reader of several nodes, and stays.
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.sweep] * (name == "hangs")) for name in FAULTS])
def test_beside_an_honest_node_nothing_is_lost_and_all_is_credited_once(behind: Behind, name: str) -> None:
    merchant = behind.merchant
    made = behind.paid()
    behind.proxy.fault = FAULTS[name](behind, made["address"])
    poll(behind.scanner())
    assert behind.proxy.asked, "the bad one was asked"
    assert (merchant.invoice(made), merchant.available()) == (("completed", merchant.shown(7)), merchant.shown(7))
    behind.proxy.heal()
    poll(behind.scanner())
    assert merchant.available() == merchant.shown(7)
    assert len(merchant.deposits(made["address"])) == 1


# The sweep: agreement counts what readers say, whatever their chain, and Litecoin stays.
@pytest.mark.parametrize("ground", [BITCOIN, "litecoin", TRON], indirect=True)
def test_a_payment_waits_until_two_agree(behind: Behind) -> None:
    merchant = behind.merchant
    made = behind.paid()
    behind.proxy.fault = Fault(drop=True)
    poll(behind.scanner(agreement_usd=0))
    assert (merchant.invoice(made)[0], merchant.available()) == ("confirming", "0")
    behind.proxy.heal()
    poll(behind.scanner(agreement_usd=0), 1)
    assert (merchant.invoice(made)[0], merchant.available()) == ("completed", merchant.shown(7))
