"""The ledger against real nodes of every family: what is on its way never shows, what somebody else moves always does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest

from chalicelib.chains.answers import Garbled
from chalicelib.chains.evm.reader import EvmReader
from chalicelib.chains.node_comparison import NodeReader
from chalicelib.chains.providers import Health
from chalicelib.chains.quorum import QuorumReader
from chalicelib.chains.rpc import RpcError
from chalicelib.custody.derived import derived_signer
from chalicelib.custody.records import EncryptedSeed
from chalicelib.custody.seed import SEED_ID
from chalicelib.domain.addresses.addresses import Address
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.reconciliation import Comparison, ComparisonReport, Place
from chalicelib.usecases.ports.accounts import Payment
from chalicelib.usecases.ports.coins import Unspent
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.reconciliation.accounts import LooksAtABlock
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.local.aws import LocalAws
from tests.nodes.comparing import TokenGround, begun, compared
from tests.nodes.grounds import Ground, ground_of
from tests.nodes.merchants import Merchant, open_shop
from tests.nodes.sending import send_token

pytestmark = pytest.mark.nodes

USDT = 10**6


@pytest.fixture(scope="module", params=["ethereum", "litecoin", "tron"])
def ground(request: pytest.FixtureRequest) -> Iterator[Ground]:
    made = TokenGround("ethereum") if request.param == "ethereum" else ground_of(request.param)
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture
def merchant(ground: Ground, aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> Iterator[Merchant]:
    made = open_shop(aws, ground, monkeypatch)
    yield made
    assert audit(services().store) == []


def suspected(merchant: Merchant) -> list[Any]:
    """What one look at everything finds, by itself."""
    run = services().reconciliation_run(services().catalogue("live").networks[merchant.slug])
    state = Comparison(merchant.network.id, "rec_x", 0, 0, phase="walk")
    while state.phase == "walk":
        state = run._walked(state)
    return [(s.address, s.asset, s.difference) for s in state.suspects]


def steal(merchant: Merchant, address: str, units: int) -> None:
    """Whoever has the seed moves coins of a deposit address, and the service knows nothing of it."""
    store, network = services().store, services().catalogue("live").networks[merchant.slug]
    (owner,) = (known for known in store.every(Address) if known.address == address)
    seed = store.get(EncryptedSeed, id=SEED_ID)
    assert seed is not None
    with derived_signer(boto3.client("kms"), services().settings, seed) as signer:
        if network.family == "utxo":
            coins_payer = services().coin_payer(network)
            coins = [
                Unspent(f"{d.txid}:{d.position[4:]}", d.address, d.amount, d.block[0])
                for d in store.every(Deposit)
                if d.address == address
            ]
            plan = coins_payer.consolidate(merchant.ground.out, coins, coins_payer.fee_rate("normal")).unsigned
            signatures = [signer.sign(owner.path, digest) for digest in coins_payer.digests(plan)]
            coins_payer.broadcast(coins_payer.assemble(plan, signatures).raw)
        else:
            payer = services().payer(network)
            made = payer.prepare(Payment(address, merchant.ground.out, None, units, payer.next_nonce(address)))
            payer.broadcast(payer.assemble(made, signer.sign(owner.path, payer.digest(made))).raw)
    merchant.ground.mine()


def test_what_we_do_never_shows_and_what_others_do_does(
    merchant: Merchant, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground = merchant.ground
    bill = merchant.bill(30)
    ground.pay(bill["address"], merchant.units(30))
    ground.mine()
    merchant.run()
    assert suspected(merchant) == [], "seen, and not credited"
    settle(merchant)
    if isinstance(ground, TokenGround):
        send_token(ground.node.rpc, ground.usdt, bill["address"], 40 * USDT)
        merchant.confirm()
        asked_together(merchant, ground, bill["address"].lower())
    assert suspected(merchant) == []
    name = merchant.withdraw(12)
    merchant.run()
    assert merchant.withdrawal(name)["status"] == "confirming"
    assert suspected(merchant) == [], "signed"
    ground.mine()
    assert suspected(merchant) == [], "mined"
    ground.mine(merchant.network.confirmations - 2)
    assert suspected(merchant) == [], "deep, and not scanned"
    settle(merchant)
    assert merchant.withdrawal(name)["status"] == "confirmed"
    found = compared(merchant)
    assert found.clean and found.complete and found.looked
    owed = {sums.asset.rsplit(":", 1)[1]: (sums.owed, sums.assets) for sums in found.sums}
    assert owed[merchant.coin][0] == merchant.units(18)
    assert "usdt" not in owed or slug_of(ground) != "ethereum" or owed["usdt"] == (40 * USDT, 40 * USDT)

    if ground.network.family == "utxo":
        gathers(merchant)
        bill = merchant.bill(30)
        ground.pay(bill["address"], merchant.units(30))
        ground.mine()
        settle(merchant)
        assert suspected(merchant) == []
    steal(merchant, bill["address"], merchant.units(10))
    settle(merchant)
    (difference,) = compared(merchant).differences
    lost = difference.expected - difference.held
    assert difference.role == "user" and lost >= merchant.units(10)
    assert difference.address.lower() == bill["address"].lower()
    assert f"ALARM {merchant.network.id}: reconciliation found 1 places" in caplog.text

    def away(*_: Any, **__: Any) -> Any:
        raise Unavailable("no node answers")

    monkeypatch.setattr(services().reader(services().catalogue("live").networks[merchant.slug]), "block_hash", away)
    monkeypatch.setattr(services().reader(services().catalogue("live").networks[merchant.slug]), "balances_at", away, raising=False)
    run = begun(merchant)
    assert [run.step(1) for _ in range(2)][-1] == "waits"
    services().clock.shift_ms += 1000
    while run.step(1) != "idle":
        services().clock.shift_ms += 1000
    report = services().store.get(ComparisonReport, network=merchant.network.id)
    assert report is not None and not report.complete and not report.clean and "no node answers" in str(report.trouble)


class Liar:
    """One of two nodes, that says of each balance a unit more."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def balances_at(self, *asked: Any) -> list[int]:
        return [units + 1 for units in self._real.balances_at(*asked)]


def asked_together(merchant: Merchant, ground: TokenGround, address: str) -> None:
    """Units of a token of many addresses, by one program that the node runs. Two nodes have to say the same."""
    network = services().catalogue("live").networks[merchant.slug]
    reader, cursor = services().reader(network), merchant.cursor()
    assert isinstance(reader, EvmReader)
    number = cursor.number - network.confirmations + 1
    block = (number, cursor.recent[str(number)], ground.usdt.lower())
    others = [f"0x{n:040x}" for n in range(1, 600)]
    assert reader._together([*others, address], *block) == [0] * 599 + [40 * USDT]
    assert reader.balances_at([address], *block) == [40 * USDT]
    with pytest.raises((RpcError, Garbled)):
        reader._together([*others, address], *block[:2], "0x" + "ee" * 20)
    assert reader.balances_at(others, *block[:2], "0x" + "ee" * 20) == [0] * 599, "there is no contract"
    several = QuorumReader(network, [NodeReader(reader, Health(1)), NodeReader(Liar(reader), Health(2))])  # type: ignore[arg-type]
    looks = LooksAtABlock(replace(services().context(network), reader=several))
    with pytest.raises(Unavailable, match="no two nodes"):
        looks.look([Place(address, "user", services().catalogue("live").native(merchant.slug).asset)])


def settle(merchant: Merchant) -> None:
    """Confirmed, and on Tron solid as well."""
    merchant.confirm()
    merchant.ground.mine(30 if merchant.slug == "tron" else 1)
    merchant.run()


def gathers(merchant: Merchant) -> None:
    """What lies on deposit addresses is consolidated into the hot wallet, and compared at every step of that."""
    what = {"coin": merchant.coin, "network": merchant.slug, "collectThreshold": "0"}
    merchant.operator("PUT", "/v1/coins", 200, json=what)
    services().store.forget_catalogue()
    run = services().reconciliation_run(services().catalogue("live").networks[merchant.slug])
    assert run._walked(Comparison(merchant.network.id, "rec_x", 0, 0, phase="walk")).suspects == ()
    merchant.run("collect")
    assert any(work.kind == "coinmove" for work in services().store.every_work())
    assert suspected(merchant) == [], "signed"
    merchant.ground.mine()
    merchant.run("collect")
    assert suspected(merchant) == [], "mined"
    settle(merchant)
    assert not any(work.kind == "coinmove" for work in services().store.every_work())
    assert suspected(merchant) == [], "settled"
    merchant.operator("PUT", "/v1/coins", 200, json=what | {"collectThreshold": "1000000"})
    services().store.forget_catalogue()


def slug_of(ground: Ground) -> str:
    return ground.network.slug
