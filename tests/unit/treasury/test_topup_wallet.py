"""The wallet of the role `topup`: it pays what the hot wallet pays where there is none. On books in memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import FeeQuote
from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.ids import network_id
from chalicelib.domain.treasury.moves import Move, Origin, move_command
from chalicelib.domain.withdrawals.withdrawals import NonceCounter
from chalicelib.usecases.base.current_wallets import topup_wallet
from chalicelib.usecases.treasury.nonce_gaps import NonceFilling
from chalicelib.usecases.treasury.topups import PayerShort
from chalicelib.usecases.wallets.service_wallets import Wallets
from chalicelib.usecases.wallets.signers import PAY, SIGN, signing_wallet
from tests.support.collecting import COLD, ETHER, FEE, HOT, NETWORK, USDT, USER, Treasury

PAYER = "0x27b1fdb04752bbc536007a920d24acb045561c26"
COLLECTOR = "0x52908400098527886E0F7030069857D2E4169EE7"  # EIP-55's own example


def with_payer(units: int = ETHER) -> Treasury:
    world = Treasury()
    world.wallet("topup", PAYER)
    world.put(PAYER, "eth", units)
    return world


def payer(world: Treasury) -> Wallet:
    found = topup_wallet(world.store, NETWORK)
    assert found is not None
    return found


def test_where_none_is_registered_the_hot_wallet_pays() -> None:
    assert payer(Treasury()).address == HOT
    assert payer(with_payer()).address == PAYER


def test_it_tops_up_what_is_collected_and_the_hot_wallet_keeps_its_nonces() -> None:
    world = with_payer()
    world.deposit(500 * USDT)
    world.poll()
    world.go_on("topup", "sweep")
    ((topup,), (sweep,)) = world.moves("topup"), world.moves("sweep")
    assert (topup.source, topup.recipient, sweep.recipient) == (PAYER, USER, HOT)
    assert (world.there(HOT, "eth"), world.last.state) == (100 * ETHER, "swept")


def test_it_tops_up_the_collector() -> None:
    world = with_payer()
    world.wallet("collector", COLLECTOR), world.wallet("cold", COLD)
    world.settle_for("usdt", collectThreshold="0", collectPercentageHot="50")
    world.put(COLLECTOR, "usdt", 40 * USDT)
    world.distribute()
    assert [(move.source, move.recipient) for move in world.moves("topup")] == [(PAYER, COLLECTOR)]


def test_it_pays_the_fees_of_fillers() -> None:
    world = with_payer()
    world.put(HOT, "eth", 0)
    fees: Any = SimpleNamespace(cost=world.chain.cost, told_nonces=lambda address: (0,), next_nonce=lambda address: 0)
    for record in (NonceCounter(NETWORK, USER, 2), FeeQuote(NETWORK, {"eth": FEE, "usdt": FEE}, 0)):
        world.store.records[world.store._key_of(record)] = record
    assert NonceFilling(world.context, fees, world.topups).fill(USER) == ([0, 1], 0)
    assert [move.source for move in world.moves("topup")] == [PAYER]


def test_an_empty_one_makes_sweeps_wait_and_takes_nothing_of_the_hot_wallet() -> None:
    world = with_payer(0)
    world.deposit(500 * USDT)
    world.poll()
    assert (world.state, world.moves("topup")) == (("waiting", "liquidity"), [])
    world.put(PAYER, "eth", ETHER)
    world.poll(3_600)
    assert [move.source for move in world.moves("topup")] == [PAYER]


def test_the_floor_is_the_hot_wallets_alone() -> None:
    world = with_payer()
    world.settle_for("eth", hotFloor="1000")
    origin = Origin(NETWORK, "owner", 1, 0)
    assert world.topups.plan(origin, payer(world), USER, ETHER - FEE)
    with pytest.raises(PayerShort):
        world.topups.plan(origin, payer(world), USER, ETHER - FEE + 1)


def test_its_commands_have_a_group_of_their_own_and_older_records_the_networks() -> None:
    world = with_payer()
    origin = Origin(NETWORK, "owner", 1, 0)
    assert move_command(world.topups.plan(origin, payer(world), USER, 1).move).group == f"{NETWORK}#topup"
    assert move_command(Move.topup(origin, f"{NETWORK}:eth", HOT, USER, 1)).group == NETWORK


def test_it_signs_moves_and_no_payment() -> None:
    """A withdrawal's order that names it was altered."""
    world = with_payer()
    signs = [signing_wallet(world.store, NETWORK, PAYER, roles) is not None for roles in (SIGN, PAY)]
    assert signs == [True, False]


def test_an_older_version_beside_us_refuses_to_sign_with_it() -> None:
    """It knows three roles, and finds no wallet with the address that the move names."""
    world = with_payer()
    real = world.store.get_many

    def known(wanted: Any) -> Any:
        return real([(kind, key) for kind, key in wanted if key.get("role") != "topup"])

    world.store.get_many = known
    assert signing_wallet(world.store, NETWORK, PAYER, ("hot", "collector")) is None


def test_networks_of_coins_have_none() -> None:
    bitcoin = Network(network_id("live", "bitcoin"), "Bitcoin", "BTC", "utxo", None, 3, 3, 8, status="active")
    world = Treasury()
    keys: Any = SimpleNamespace(native=True)
    with pytest.raises(BusinessRule, match="no top-ups"):
        Wallets(world.store, keys, world.rules, world.clock).registering(None, bitcoin, "topup", by="a test")
