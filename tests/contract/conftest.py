"""What several folders of these tests share: a live litecoin, a bitcoin whose node has a mempool, the rights of commands."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.scanning import mempool as module
from chalicelib.wiring import services
from chalicelib.wiring.chains import ChainWiring
from chalicelib.wiring.custody import CustodyWiring
from chalicelib.wiring.second_readers import SecondReaders
from infra.bootstrap import NodeInfo
from infra.local.aws import LocalAws
from tests.support import bundles
from tests.support.bundles import COIN
from tests.support.fake_coins import DigestSigner, FakeCoins, FakeLibrary, Reader
from tests.support.mempools import Coins, Pool
from tests.support.operators_rights import hold
from tests.support.shop import Shop, bent_node
from tests.support.stack import Stack, first_stack


@pytest.fixture(autouse=True, scope="session")
def operators_rights() -> Iterator[None]:
    """Whatever a test has the operator's commands do, their role has the rights for."""
    with pytest.MonkeyPatch.context() as patch:
        hold(patch)
        yield


@pytest.fixture(scope="module")
def live_litecoin(running_aws: LocalAws) -> Iterator[tuple[Stack, Any, FakeCoins]]:
    """The service with litecoin live, a funded merchant and a funded hot wallet, to go back to."""
    at_work: dict[str, FakeCoins] = {"chain": FakeCoins()}

    class Now:
        """Whichever chain is at work."""

        def __getattr__(self, name: str) -> Any:
            return getattr(at_work["chain"], name)

    with pytest.MonkeyPatch.context() as patch, running_aws.active():
        patch.setattr(ChainWiring, "live_reader", lambda self, network: Reader(Now()))  # type: ignore[arg-type]
        patch.setattr(ChainWiring, "live_coin_payer", lambda self, network: Now())
        patch.setattr(SecondReaders, "coins", lambda self, network: FakeLibrary())
        patch.setattr(CustodyWiring, "signer", DigestSigner())
        at_work["chain"].mine(70)
        stack = first_stack(running_aws, {"litecoin": NodeInfo("http://127.0.0.1:9")})
        shop = bundles.Shop(stack, at_work["chain"])
        shop.fund()
        shop.whole()
        assert [coin.amount for coin in shop.held().free] == [10 * COIN, 5 * COIN, 2 * COIN]
        snapshot = stack.snapshot()
        yield stack, (snapshot, at_work), copy.deepcopy(at_work["chain"])


@pytest.fixture
def begin(live_litecoin: tuple[Stack, Any, FakeCoins]) -> Iterator[Callable[[], bundles.Shop]]:
    """A shop of the bundles as it was when it was funded, as often as it is asked for."""
    stack, (snapshot, at_work), chain = live_litecoin

    def anew() -> bundles.Shop:
        at_work["chain"] = copy.deepcopy(chain)
        stack.restore(snapshot)
        return bundles.Shop(stack, at_work["chain"])

    yield anew


@pytest.fixture
def coins(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Iterator[Coins]:
    """A merchant on a simulated bitcoin whose node has a mempool; the books are whole at the end."""
    shop = Shop(stack, network="bitcoin")
    shop.open()
    pool = Pool()
    wired, looks = services(), {"poll": module.Looks(), "tick": module.Looks()}

    def mempool_scan(network: Network, of: str = "poll") -> module.MempoolScan | None:
        if network.slug != "bitcoin":
            return None
        return module.MempoolScan(wired.context(network), pool, wired.deposits(network.realm), looks[of])

    monkeypatch.setattr(wired, "mempool_scan", mempool_scan)
    yield Coins(shop, bent_node(shop, monkeypatch), pool)
    assert audit(services().store) == []
