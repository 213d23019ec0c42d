"""Deposits on bitcoin's and litecoin's real nodes become one coin of the hot wallet: schedules, queues, the seed under KMS."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from chalicelib import wiring
from chalicelib.domain.addresses.addresses import Wallet, Watched
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import asset_id
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.reconciliation import Comparison
from chalicelib.domain.treasury.consolidations import CoinMove, MovedCoin
from chalicelib.encoding.public_keys import p2wpkh_address, spelling
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.coins import Unspent
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.bootstrap import NodeInfo
from infra.local.aws import LocalAws
from infra.local.nodes import UtxoNode
from tests.nodes.utxo_shops import COIN, CONFIRMATIONS, Shop
from tests.support.stack import first_stack

pytestmark = pytest.mark.nodes

REORG = 64
AMOUNTS = [COIN // 10 + n for n in range(9)]


class Treasury(Shop):
    """A merchant's shop whose coin is collected."""

    def run(self, *only: str) -> None:
        self.minutes += 6
        services().clock.shift_ms = self.minutes * 60_000
        done = self.stack.drain(only=only or (f"poll_{self.slug}", "relay", "payout", "collect"))
        assert done.settled, done

    def settle_for(self, **settings: str) -> None:
        store = services().store
        coin = store.catalogue("live", fresh=True).native(self.slug)
        store.commit([Save(replace(coin, settings={**coin.settings, **settings}, version=coin.version + 1))])
        store.forget_catalogue()

    def receive(self, amounts: list[int]) -> list[str]:
        made = [self.post("/v1/invoices", currency=self.coin, amount="1", network=self.slug)["address"] for _ in amounts]
        for address, units in zip(made, amounts, strict=True):
            self.node.send(address, units)
        self.node.mine(CONFIRMATIONS)
        self.run(f"poll_{self.slug}", "relay")
        return made

    def suspected(self) -> list[tuple[str, int]]:
        """What one look at every place finds that the chain has otherwise than the ledger."""
        run = services().reconciliation_run(services().catalogue("live").networks[self.slug])
        state = Comparison(self.network, "rec_x", 0, 0, phase="walk")
        while state.phase == "walk":
            state = run._walked(state)
        return [(s.address, s.difference) for s in state.suspects]

    def moves(self) -> list[CoinMove]:
        return sorted(services().store.every(CoinMove), key=lambda move: move.id)

    def booked(self, address: str) -> int:
        key = {"network": self.network, "address": address, "asset": asset_id(self.network, self.coin)}
        found = services().store.get(WalletBalance, **key)
        return 0 if found is None else found.units


@pytest.fixture
def shop(aws: LocalAws, utxo_node: UtxoNode, monkeypatch: pytest.MonkeyPatch) -> Iterator[Treasury]:
    monkeypatch.setenv("LIVE_CHAINS", "bitcoin=regtest,litecoin=regtest")
    wiring.forget()
    made = Treasury(first_stack(aws, {utxo_node.slug: NodeInfo(utxo_node.url)}), utxo_node)
    made.settle_for(collectThreshold="0.5")
    yield made
    assert audit(services().store) == []
    wiring.forget()


@pytest.mark.sweep
@pytest.mark.parametrize("utxo_node", ["litecoin", "bitcoin"], indirect=True)
def test_deposits_become_one_coin_whatever_the_chain_does(shop: Treasury) -> None:
    addresses = shop.receive(AMOUNTS)
    merchants = shop.available()
    shop.run()
    (move,) = shop.moves()
    assert move.state == "signed" and move.newest is not None and len(move.inputs) == len(AMOUNTS)
    assert shop.node.mempool() == [move.newest.txid] and shop.paid(str(move.txid)) == {shop.hot: sum(AMOUNTS) - move.newest.fee}
    assert shop.suspected() == []
    if shop.slug == "litecoin":  # bcoin replaces nothing
        shop.minutes += 3 * 24 * 60
        shop.run()
        (move,) = shop.moves()
        assert len(move.earlier) == 1 and shop.node.mempool() == [move.txid]
    shop.node.mine()
    shop.run()
    assert shop.moves()[0].state == "signed" and shop.suspected() == []
    shop.node.mine(CONFIRMATIONS - 1)
    shop.run()
    (move,) = shop.moves()
    assert move.state == "settled" and move.newest is not None and shop.suspected() == []
    assert shop.held() == [sum(AMOUNTS) - move.newest.fee] == [shop.booked(shop.hot)]
    assert [shop.booked(address) for address in addresses] == [0] * len(AMOUNTS) and shop.available() == merchants
    assert not [d for d in services().store.every(Deposit) if d.tenant is None and d.network == shop.network]
    assert audit(services().store) == []
    shop.node.reorg(CONFIRMATIONS)
    shop.run()
    assert shop.moves()[0].state == "signed" and shop.held() == []
    assert audit(services().store) == []
    shop.confirm()
    assert shop.moves()[0].state == "settled" and shop.held() == [shop.booked(shop.hot)]
    if shop.slug == "litecoin":
        _above_the_ceiling(shop, _somebody_has_the_seed(shop))


def _somebody_has_the_seed(shop: Treasury) -> MovedCoin:
    """A coin is spent with the seed before ours is mined: ours dies, the other coins go with the next."""
    shop.receive([COIN, COIN // 2])
    shop.run()
    move = shop.moves()[-1]
    stolen = max(move.inputs, key=lambda coin: coin.amount)
    had = shop.booked(shop.hot)
    shop.node.mine_block([_spent_with_the_seed(shop, move, stolen.outpoint)])
    shop.run()
    assert shop.moves()[-1].doubtful_since is not None
    shop.node.mine(REORG)
    shop.run()
    shop.run()
    dead = next(other for other in shop.moves() if other.id == move.id)
    assert dead.state == "dead" and shop.booked(stolen.address) == stolen.amount
    shop.run()
    assert [coin.outpoint for coin in shop.moves()[-1].inputs] == sorted(set(move.outpoints) - {stolen.outpoint})
    shop.confirm()
    last = shop.moves()[-1]
    assert last.state == "settled" and last.newest is not None and shop.booked(shop.hot) == had + COIN // 2 - last.newest.fee
    return stolen


def _spent_with_the_seed(shop: Treasury, move: CoinMove, outpoint: str) -> str:
    """The raw transaction of a thief who has the seed."""
    network = services().catalogue("live").networks[shop.slug]
    payer = services().coin_payer(network)
    (coin,) = [coin for coin in move.inputs if coin.outpoint == outpoint]
    plan = payer.consolidate(shop.node.new_address(), [Unspent(outpoint, coin.address, coin.amount, 1)], 20_000)
    with services().deposit_keys.opened() as seed:
        signatures = [seed.sign_as(network.id, coin.address, str(coin.path), digest) for digest in payer.digests(plan.unsigned)]
    return payer.assemble(plan.unsigned, signatures).raw


def _above_the_ceiling(shop: Treasury, stolen: MovedCoin) -> None:
    cold = p2wpkh_address(spelling(shop.slug, "regtest").segwit, os.urandom(33))
    wallet = Wallet(shop.network, "cold", cold, "none", "", "", 1)
    services().store.commit([Save(wallet), Save(Watched("live", "utxo", cold, "cold", (shop.slug,)))])
    shop.settle_for(hotCeiling="0.3", collectServiceToColdThreshold="0.1")
    shop.run()
    shop.run()
    move = shop.moves()[-1]
    assert (move.kind, move.state) == ("cold", "signed") and shop.paid(str(move.txid))[cold] == move.amount
    shop.confirm()
    assert shop.moves()[-1].state == "settled" and shop.booked(cold) == move.amount
    assert sum(shop.held()) == shop.booked(shop.hot) < COIN * 3 // 10
    assert not [deposit for deposit in services().store.every(Deposit) if deposit.address == cold]
    assert shop.suspected() == [(stolen.address, -stolen.amount)], "the thief's, and nothing of ours"
