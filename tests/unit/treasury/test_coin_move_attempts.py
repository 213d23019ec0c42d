"""What a UTXO move takes for an attempt of its own, by the contents of a transaction alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chalicelib.domain.ids import AssetId, NetworkId
from chalicelib.domain.transactions.utxo_attempts import Contents
from chalicelib.domain.treasury.consolidations import CoinMove, MovedCoin
from chalicelib.domain.treasury.hot_utxos import HeldCoin

NETWORK, LTC = NetworkId("live:litecoin"), AssetId("live:litecoin:ltc")
COINS = tuple(MovedCoin(f"{n:064x}:0", 50, 7, "hot") for n in range(2))
COLD = CoinMove("cmv_x", NETWORK, "cold", LTC, "hot", "cold", COINS, 60, "hot", 1, 1)
DRAIN = replace(COLD, kind="drain", recipient="new")


def contents(*outputs: tuple[str, int], coins: tuple[MovedCoin, ...] = COINS) -> Contents:
    inputs = tuple(HeldCoin(coin.outpoint, coin.amount, coin.height) for coin in coins)
    return Contents("00", inputs, outputs, 100 - sum(amount for _, amount in outputs), 200)


def test_an_attempt_pays_its_recipient_and_the_change() -> None:
    made = COLD.attempt_of(contents(("cold", 60), ("hot", 30)))
    assert (made.amount, made.change, made.fee, made.positions) == (60, 30, 10, ("out:0", "out:1"))
    assert COLD.pays(made) == (("cold", 60), ("hot", 30))
    assert [coin.outpoint for coin in COLD.spends(made)] == [coin.outpoint for coin in COINS]
    drained = DRAIN.attempt_of(contents(("new", 90)))
    assert (drained.amount, drained.change, DRAIN.pays(drained)) == (90, 0, (("new", 90),))


@pytest.mark.parametrize(
    ("move", "found"),
    [
        (COLD, contents(("hot", 30), ("cold", 60))),
        (COLD, contents(("cold", 60), ("stranger", 30))),
        (COLD, contents(("cold", 60), ("hot", 20), ("hot", 10))),
        (COLD, contents()),
        (DRAIN, contents(("new", 60), ("hot", 30))),
        (DRAIN, contents(("hot", 90))),
    ],
)
def test_what_pays_anybody_else_is_none(move: CoinMove, found: Contents) -> None:
    with pytest.raises(ValueError, match="pay somebody"):
        move.attempt_of(found)


@pytest.mark.parametrize("coins", [COINS[:1], (*COINS, COINS[0]), (COINS[0], replace(COINS[1], outpoint="ff:0"))])
def test_what_spends_other_coins_is_none(coins: tuple[MovedCoin, ...]) -> None:
    with pytest.raises(ValueError, match="spend other"):
        COLD.attempt_of(contents(("cold", 60), ("hot", 30), coins=coins))


def test_without_an_attempt_there_is_nothing_to_sign() -> None:
    with pytest.raises(LookupError, match="nothing to sign"):
        _ = COLD.latest
