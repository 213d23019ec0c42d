"""A UTXO move that the second reader reads otherwise is not signed, or not sent; first attempts and replacements alike."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from chalicelib.domain.addresses.addresses import Wallet, Watched
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.transactions.errors import ReadersDiffer
from chalicelib.wiring import services
from chalicelib.wiring.second_readers import SecondReaders
from tests.contract.treasury.coin_treasury import Treasury
from tests.support.bundles import NETWORK
from tests.support.fake_coins import Differs

COLD = "ltc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qmu8tk5"


def begun(treasury: Treasury, kind: str) -> None:
    """A consolidation, or a cold move with change, that is built and not signed."""
    if kind == "consolidation":
        treasury.plan_only()
        return
    cold = Wallet(NETWORK, "cold", COLD, "none", "", "", 1)
    services().store.commit([Save(cold), Save(Watched("live", "litecoin", COLD, "cold", ("litecoin",)))])
    treasury.settle_for(collectThreshold="100", hotCeiling="6", collectServiceToColdThreshold="1")
    treasury.look_cold()


IN_A_CHECK = [
    ("consolidation", "first", "order"), ("consolidation", "replacement", "bytes"),
    ("cold", "first", "bytes"), ("cold", "replacement", "order"),
]  # fmt: skip
EVERY = list(product(("consolidation", "cold"), ("first", "replacement"), ("order", "bytes")))


# The sweep: each two of kind, attempt and reading meet in one of the four that stay.
@pytest.mark.parametrize(
    ("kind", "attempt", "what"), [pytest.param(*case, marks=[pytest.mark.sweep] * (case not in IN_A_CHECK)) for case in EVERY]
)
def test_what_two_readers_read_differently_is_not_sent(
    anew: Callable[[], Treasury], kind: str, attempt: str, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    treasury = anew()
    begun(treasury, kind)
    if attempt == "replacement":
        treasury.sign()
        treasury.chain.mine(2, take=False)
        treasury.chain.rate = 9_000
        treasury.later(30 * 24 * 60)
    sent = set(treasury.chain.sent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SecondReaders, "coins", lambda self, network: Differs(what))
        treasury.reborn()
        for _ in range(2):
            with pytest.raises(ReadersDiffer):
                treasury.run()
    (move,) = treasury.moves()
    assert (move.kind, move.state, len(move.earlier)) == (kind, *(("built", 0) if attempt == "first" else ("signed", 1)))
    assert move.newest is not None and move.newest.raw is None and set(treasury.chain.sent) == sent
    assert f"ALARM live:litecoin: two readers differ about coin move {move.id} in " in caplog.text
    treasury.whole()
    treasury.reborn()
    treasury.run()
    (move,) = treasury.moves()
    assert move.newest is not None and list(treasury.chain.pool) == [move.newest.txid]
    treasury.confirm()
    (move,) = treasury.moves()
    assert move.state == "settled" and move.mined == move.newest.txid  # type: ignore[union-attr]
    treasury.whole()
