"""That every node denies a coin which waits to be collected ends nothing: absence proves nothing (money rule 13)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest

from chalicelib.domain.transactions.sightings import Sighting, input_subject
from chalicelib.domain.treasury.hot_utxos import MOST_INPUTS
from chalicelib.usecases.ports.changes import Delete
from chalicelib.usecases.ports.coins import Unspent
from chalicelib.usecases.treasury.consolidation import planning as coin_move_planning
from chalicelib.usecases.wallets.sweep_candidates import open_hint
from chalicelib.wiring import services
from tests.contract.treasury.coin_treasury import TOTAL, Treasury
from tests.support.bundles import COIN, NETWORK, REORG
from tests.support.fake_coins import FakeCoins

assert MOST_INPUTS > 9


def deny(chain: FakeCoins, outpoints: Collection[str], patch: pytest.MonkeyPatch) -> None:
    """Every node says that it does not know these outputs."""
    real = FakeCoins.unspent

    def unspent(self: FakeCoins, asked: Sequence[str], mempool: bool = True) -> list[Unspent | None]:
        return [None if name in outpoints else found for name, found in zip(asked, real(self, asked, mempool), strict=True)]

    patch.setattr(FakeCoins, "unspent", unspent)


def outpoints(treasury: Treasury) -> list[str]:
    """Of the deposits, the largest first."""
    coins = treasury.chain._coins(pool=False)
    ours = [(output.amount, name) for name, (output, _) in coins.items() if COIN // 2 <= output.amount < COIN // 2 + 9]
    return [name for _, name in sorted(ours, reverse=True)]


def deeper(treasury: Treasury) -> None:
    """No reorganisation reaches the deposits any more; nothing was planned meanwhile."""
    treasury.settle_for(collectThreshold="100")
    treasury.deepen()
    assert treasury.moves() == []
    treasury.settle_for(collectThreshold="1")


def settled(treasury: Treasury) -> None:
    treasury.confirm()
    assert {move.state for move in treasury.moves()} == {"settled"}
    assert treasury.booked(treasury.hot) == treasury.chain.balance_of(treasury.hot)
    treasury.whole()


def test_a_coin_that_every_node_denies_is_moved_once_they_know_it_again(
    treasury: Treasury, caplog: pytest.LogCaptureFixture
) -> None:
    deeper(treasury)
    denied = outpoints(treasury)[0]
    with pytest.MonkeyPatch.context() as patch:
        deny(treasury.chain, {denied}, patch)
        first = treasury.plan()
        assert denied not in first.outpoints and len(first.outpoints) == 8
        assert treasury.hints() == 9, "nobody was seen to spend it"
        assert f"no node knows {denied}" in caplog.text and "its key is known to others" not in caplog.text
        settled(treasury)
        for _ in range(3):
            assert treasury.plan().id == first.id, "what is denied is no reason for another one"
    treasury.settle_for(collectThreshold="0")
    second = treasury.plan()
    assert second.outpoints == (denied,)
    settled(treasury)
    assert sum(move.total for move in treasury.moves()) == TOTAL
    treasury.deepen()
    assert treasury.hints() == 0


def test_what_is_denied_takes_nobodys_place(treasury: Treasury, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coin_move_planning, "MOST_INPUTS", 3)
    deeper(treasury)
    every = outpoints(treasury)
    deny(treasury.chain, every[:4], monkeypatch)
    assert set(treasury.plan().outpoints) == set(every[4:7])
    settled(treasury)
    assert treasury.hints() == 9


@pytest.mark.parametrize("alone", [True, False])
def test_what_is_denied_counts_towards_no_threshold(treasury: Treasury, monkeypatch: pytest.MonkeyPatch, alone: bool) -> None:
    """Else each small deposit beside it were moved by itself, at a fee of its own."""
    deeper(treasury)
    deny(treasury.chain, outpoints(treasury)[0 if alone else 1 :], monkeypatch)
    treasury.later(6)
    treasury.run()
    assert treasury.moves() == [] and treasury.hints() == 9
    treasury.whole()


def test_a_stolen_one_ends_by_the_block_that_spends_it_once_that_is_deep(
    treasury: Treasury, caplog: pytest.LogCaptureFixture
) -> None:
    """A thief has a coin while our move of it waits for a block; the operator gives the move up. Not before the theft is deeper
    than reorganisations are followed does it end what was to be collected."""
    move = treasury.plan()
    stolen = move.inputs[4]
    treasury.chain.steal(stolen.outpoint)
    treasury.run()
    treasury.chain.mine(REORG // 2)
    treasury.run()
    network = services().catalogue("live").networks["litecoin"]
    met = services().store.get(Sighting, network=network.id, subject=input_subject(stolen.outpoint))
    assert met is not None and treasury.hints() == 9
    treasury.chain.mine(REORG // 2)
    for _ in range(3):
        treasury.run()
    assert treasury.moves()[0].state == "dead"
    second = treasury.plan()
    assert stolen.outpoint not in second.outpoints
    assert (treasury.hints(), "is spent, and not by us" in caplog.text) == (8, True)
    settled_but_dead(treasury)


def settled_but_dead(treasury: Treasury) -> None:
    treasury.confirm()
    assert sorted(move.state for move in treasury.moves()) == ["dead", "settled"]
    treasury.whole()


def test_a_late_hint_ends_by_the_books_where_no_sighting_is_left(treasury: Treasury, caplog: pytest.LogCaptureFixture) -> None:
    """One that was moved before there were sightings: the ledger has nothing at its address."""
    move = treasury.plan()
    settled(treasury)
    treasury.deepen()
    forget_sightings()
    treasury.settle_for(collectThreshold="0")
    open_hint(services().store, NETWORK, move.inputs[0].deposit or "")
    assert treasury.plan() == treasury.moves()[0] and treasury.hints() == 0
    assert "not by us" not in caplog.text


@pytest.mark.parametrize("sighted", [True, False])
def test_the_books_of_an_address_end_no_other_coin_of_it(
    treasury: Treasury, monkeypatch: pytest.MonkeyPatch, sighted: bool
) -> None:
    """Two deposits of one address: the first is moved and asked for late, and the second, which came after, every node denies."""
    move = treasury.plan()
    settled(treasury)
    treasury.deepen()
    assert treasury.hints() == 0
    if not sighted:
        forget_sightings()
    first = move.inputs[0]
    treasury.settle_for(collectThreshold="100")
    treasury.chain.pay(first.address, first.amount + 5)
    treasury.confirm()
    treasury.hint()
    treasury.deepen()
    open_hint(services().store, NETWORK, first.deposit or "")
    assert treasury.hints() == 2
    later = next(name for name, (output, _) in treasury.chain._coins(pool=False).items() if output.address == first.address)
    treasury.settle_for(collectThreshold="0")
    with pytest.MonkeyPatch.context() as patch:
        deny(treasury.chain, {later}, patch)
        assert treasury.plan().id == move.id
        assert treasury.hints() == (1 if sighted else 2), "what is not proved to be spent is kept"
    second = treasury.plan()
    assert second.outpoints == (later,)
    settled(treasury)


def forget_sightings() -> None:
    for each in list(services().store.every(Sighting)):
        services().store.commit([Delete(Sighting, {"network": each.network, "subject": each.subject})])
