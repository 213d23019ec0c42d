"""What ends a UTXO transaction in flight, and what does not: each answer that says "perhaps" gives no coin back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from chalicelib.domain.chain import Receipt
from chalicelib.domain.ids import AssetId
from chalicelib.domain.transactions.given_up import GivenUp
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.transactions.rounds import AskingRound
from chalicelib.domain.transactions.sightings import Ours
from chalicelib.domain.work import Work
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.ports.changes import Change, Save
from chalicelib.usecases.ports.coins import Output, ProvedCoins, Unspent
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.transactions.finality import Scanned
from chalicelib.usecases.transactions.utxo.following import UtxoFollowing
from tests.support.utxo_engine import COINS, KINDS, LTC, NETWORK, OTHERS, PAID, in_flight, replacing, signed

BOTH = pytest.mark.parametrize("kind", list(KINDS))
HEIGHT, DEPTH = 1_000, NETWORK.reorg_depth
NEEDED = [coin.outpoint for coin in COINS]
FEES = {"raw first": 1_000, "raw second": 2_000}
LATER = 10**9
"""A time at which everything has waited too long."""


@dataclass
class World:
    """What the store, the blocks and the nodes say."""

    mined: Sequence[str] = ()
    forked: Sequence[str] = ()
    number: int = 1
    all_agree: bool = True
    noted: bool = False
    decided: bool = False
    refused: bool = False
    spent: Sequence[bool] = (False, False)
    """Whether the node denies a coin of its first attempt with its mempool, and without."""
    lost_by_blocks: bool = False
    all_deny: bool = True
    all_deny_coins: bool = True
    block: str | None = "hash"
    forged: bool = False
    """Whether the bytes on record were signed by other keys."""
    now: int = 0
    events: list[str] = field(default_factory=list)

    # Store and clock

    def open_work(self, kind: str, lane: str, **page: Any) -> list[Work]:
        return [Work("coinmove", NETWORK.id, "1", "record")]

    def get(self, record: type, /, **key: str) -> object | None:
        assert record in (AskingRound, GivenUp)
        return object() if self.decided and record is GivenUp else None

    def get_many(self, keys: Sequence[Any]) -> list[None]:
        return [None for _ in keys]

    def commit(self, changes: Sequence[Change]) -> None:
        saved = [change.record for change in changes if isinstance(change, Save)]
        self.events += [f"doubtful since {record.doubtful_since}" for record in saved if not isinstance(record, AskingRound)]

    def now_ms(self) -> int:
        return self.now

    # Nodes

    def receipt(self, txid: str) -> Receipt | None:
        return Receipt(txid, True, self.number, "hash", None) if txid in (*self.mined, *self.forked) else None

    def in_chain(self, receipt: Receipt, scanned: Scanned) -> bool:
        return receipt.txid not in self.forked

    def hash_at(self, number: int, scanned: Scanned) -> str | None:
        return self.block

    def broadcast(self, raw: str) -> None:
        if self.refused:
            raise Refused("not now")
        self.events.append(f"sent {raw}")

    def unspent(self, outpoints: Sequence[str], mempool: bool = True) -> list[Unspent | None]:
        assert set(outpoints) <= set(NEEDED)
        coin = Unspent(NEEDED[0], "hot", 1, 1)
        return [None if self.spent[0 if mempool else 1] and each == NEEDED[0] else coin for each in outpoints]

    # Bytes

    def normalize(self, network: str, text: str) -> str:
        return text

    def proved(self, raw: str, coins: Sequence[Unspent]) -> ProvedCoins:
        if self.forged:
            raise ValueError("not signed by our keys")
        name, change = raw.removeprefix("raw "), sum(coin.amount for coin in coins) - PAID - FEES[raw]
        paid = Output("payee", PAID), Output("hot", change)
        return ProvedCoins(f"id {name}", tuple(coin.outpoint for coin in coins), paid)

    # Finality, losses and decisions

    def scanned(self) -> Scanned:
        return Scanned(HEIGHT, HEIGHT, {})

    def believed(self, receipt: Receipt, scanned: Scanned, asset: AssetId, units: int) -> Receipt | None:
        assert asset == LTC and units >= 60_000
        return receipt if self.all_agree else None

    def denied(self, asked: Sequence[str], *at_stake: Any) -> bool:
        """As `Finality`, of transactions, and as `CoinPayer`, of coins."""
        if at_stake:
            assert "id first" in asked
            return self.all_deny
        assert list(asked) == NEEDED
        return self.all_deny_coins

    def untold(self, txids: Sequence[str]) -> bool:
        assert "id first" in txids
        return self.all_deny

    def met(self, id: str, ours: Ours, scanned: Scanned) -> bool:
        return self.noted

    def lost(self, ours: Ours, scanned: Scanned) -> bool:
        return self.lost_by_blocks

    def standing(self, id: str, ours: Ours, scanned: Scanned) -> object | None:
        return object() if self.decided else None

    def close_since(self, at: int, scanned: Scanned, now: int) -> None:
        self.events.append("blocks are to be noted")


@dataclass
class Followed:
    """A kind of one record, which writes down in `world` what it is asked."""

    world: World
    record: Any
    flies: bool = True
    is_halted: bool = False
    buried: bool = True
    owing: bool = False
    name: str = "records"

    def records(self, works: Sequence[Work]) -> Sequence[Any]:
        return [self.record for _ in works]

    def due(self, record: Any) -> str:
        return "always"

    def followed(self, id: str) -> Any:
        return self.record

    def priority(self, record: Any) -> str:
        return "normal"

    def in_flight(self, record: Any) -> bool:
        return self.flies

    def halted(self) -> bool:
        return self.is_halted

    def ask(self, record: Any, changes: Sequence[Change]) -> None:
        renews = any(isinstance(change, Save) and change.record.renew for change in changes)
        self.world.events.append("asked for a replacement" if renews else "asked again")

    def settle(self, record: Any, txid: str, receipt: Receipt) -> None:
        self.world.events.append(f"settled by {txid} in {receipt.block_number}")

    def unsettle(self, record: Any) -> None:
        self.world.events.append("unsettled")

    def finish(self, record: Any) -> None:
        self.world.events.append("finished")

    def die(self, record: Any) -> None:
        self.world.events.append("dead")

    def owes(self, record: Any) -> bool:
        return self.owing

    def bury(self, record: Any) -> bool:
        self.world.events.append("buried")
        return self.buried

    def forget(self, record: Any) -> None:
        self.world.events.append("forgotten")


def followed(world: World, record: Any, most: int = 5, **said: Any) -> list[str]:
    """What a poll does."""
    ports: Any = world
    world.events = []
    context = NetworkContext(NETWORK, ports, ports, ports, ports)
    kind: Any = Followed(world, record, **said)
    following: UtxoFollowing[Any] = UtxoFollowing(context, ports, RenewalRules(most=most), ports, world.broadcast, ports, kind)
    attempts: Any = following._attempts
    attempts._losses = attempts._given_ups = attempts._gaps = world
    looks = following.follow(["coinmove"], lambda: True)
    return world.events if looks else ["no look"]


def replaced(kind: str) -> Any:
    record = replacing(kind)
    return replace(record, newest=signed(record.newest))


@BOTH
def test_whichever_attempt_is_mined_settles_it(kind: str) -> None:
    assert followed(World(mined=["id second"]), replaced(kind)) == ["settled by id second in 1"]
    assert followed(World(mined=["id first"]), replaced(kind)) == ["settled by id first in 1"]


@BOTH
def test_two_mined_attempts_are_an_alarm(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    assert followed(World(mined=["id second", "id first"]), replaced(kind)) == ["settled by id second in 1"]
    assert "ALARM live:litecoin: id second and id first are both in the chain for record" in caplog.text


ENDS: dict[str, Any] = {"decided": True, "refused": True, "spent": (True, True), "lost_by_blocks": True}
"""Everything else says that it is dead."""


@BOTH
@pytest.mark.parametrize(
    ("world", "said"),
    [
        (World(mined=["id first"], number=HEIGHT - NETWORK.confirmations + 2, **ENDS), {}),
        (World(mined=["id first"], all_agree=False, **ENDS), {}),
        (World(mined=["id first"], **ENDS), {"flies": False}),
        (World(forked=["id first"], **ENDS), {}),
        (World(noted=True, **ENDS), {}),
        (World(**ENDS), {"flies": False}),
        (World(**ENDS), {"is_halted": True}),
        (World(mined=["id first"], forged=True, **ENDS), {}),
        (World(forged=True, **ENDS), {}),
    ],
    ids=[
        "not deep enough", "nodes differ", "mined and not booked", "its block fell out", "met in a block", "not booked", "halted",
        "mined, and not as the record says", "not as the record says",
    ],
)  # fmt: skip
def test_each_guard_alone_neither_settles_nor_ends_it(kind: str, world: World, said: dict[str, Any]) -> None:
    assert followed(world, in_flight(kind, doubtful_since=3), **said) in ([], ["doubtful since None"])


@BOTH
@pytest.mark.parametrize(
    ("world", "since", "events", "alarm"),
    [
        (World(decided=True, spent=(True, True)), None, ["dead"], ""),
        (World(decided=True), None, ["sent raw first"], ""),
        (World(decided=True, refused=True, spent=(True, False)), None, [], ""),
        (World(refused=True, spent=(True, True), lost_by_blocks=True), 3, ["dead"], ""),
        (World(spent=(True, True), lost_by_blocks=True), 3, ["sent raw first", "doubtful since None"], ""),
        (World(refused=True, lost_by_blocks=True), 3, ["doubtful since None"], ""),
        (World(refused=True, spent=(True, False), lost_by_blocks=True), 3, ["doubtful since None"], ""),
        (World(refused=True, spent=(True, True), lost_by_blocks=True), None, [f"doubtful since {HEIGHT}"], "spent or gone"),
        (World(refused=True, spent=(True, True)), HEIGHT - DEPTH + 1, [], ""),
        (World(refused=True, spent=(True, True)), HEIGHT - DEPTH, ["blocks are to be noted"], ""),
        (World(refused=True, spent=(True, True), lost_by_blocks=True, all_deny=False), 3, [], "not every node says so"),
        (World(refused=True, spent=(True, True), lost_by_blocks=True, all_deny_coins=False), 3, [], "not every node says so"),
    ],
    ids=[
        "given up", "given up, its coins are there", "given up, spent in the mempool alone", "lost",
        "a node takes it", "its coins are there", "spent in the mempool alone", "doubted first", "not met",
        "not met for long", "a node has it", "a node has its coins",
    ],
)  # fmt: skip
def test_what_has_to_come_together_for_a_death(
    kind: str, world: World, since: int | None, events: list[str], alarm: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert followed(world, in_flight(kind, doubtful_since=since)) == events
    alarms = [each.message for each in caplog.records if each.message.startswith("ALARM")]
    assert len(alarms) == bool(alarm) and all(alarm in each for each in alarms)


def test_a_bundle_is_dead_by_the_coins_of_its_first_attempt_alone() -> None:
    """Those that only a later attempt spends decide nothing about the first one."""
    record = replacing("bundle", coins=(*COINS, *OTHERS))
    newest = replace(signed(record.newest), change_amount=200_000 - PAID - FEES["raw second"])
    assert followed(World(**ENDS | {"decided": False}), replace(record, newest=newest, doubtful_since=3)) == ["dead"]


@BOTH
def test_earlier_bytes_are_sent_where_the_newest_are_refused(kind: str) -> None:
    class Picky(World):
        def broadcast(self, raw: str) -> None:
            if raw == "raw second":
                raise Refused("not now")
            super().broadcast(raw)

    assert followed(World(), replaced(kind)) == ["sent raw second"]
    assert followed(Picky(), replaced(kind)) == ["sent raw first"]
    assert followed(World(), replacing(kind))[0] == "sent raw first", "one that is not signed is not sent"


@BOTH
@pytest.mark.parametrize(
    ("record", "now", "most", "events"),
    [
        (in_flight, 1, 5, ["sent raw first"]),
        (in_flight, LATER, 5, ["sent raw first", "asked for a replacement"]),
        (in_flight, LATER, 0, ["sent raw first"]),
        (replaced, LATER, 1, ["sent raw second"]),
        (replacing, 1, 1, ["sent raw first", "asked again"]),
        (lambda kind: in_flight(kind, renew=True), 1, 0, ["sent raw first", "asked again"]),
    ],
    ids=["young", "stuck", "never", "too often", "not signed yet", "asked before"],
)
def test_how_often_a_replacement_is_asked_for(kind: str, record: Any, now: int, most: int, events: list[str]) -> None:
    assert followed(World(now=now), record(kind), most) == events


@BOTH
@pytest.mark.parametrize(
    ("block", "number", "events"),
    [
        ("other", HEIGHT - DEPTH, ["unsettled"]),
        (None, HEIGHT - DEPTH, []),
        ("hash", HEIGHT - DEPTH, ["finished"]),
        ("other", HEIGHT - DEPTH + 1, ["unsettled"]),
    ],
    ids=["fell out", "the node is behind", "deep", "shallow, fell out"],
)
def test_a_settled_one_is_watched_as_deep_as_reorganisations_are_followed(
    kind: str, block: str | None, number: int, events: list[str]
) -> None:
    record = in_flight(kind, state="settled", block_number=number, block_hash="hash", mined="id first")
    assert followed(World(block=block), record) == events


@BOTH
def test_a_node_that_changes_its_mind_finishes_nothing_that_is_shallow(kind: str) -> None:
    class Wavering(World):
        def hash_at(self, number: int, scanned: Scanned) -> str | None:
            self.block, found = "hash", self.block
            return found

    record = in_flight(kind, state="settled", block_number=HEIGHT - DEPTH + 1, block_hash="hash", mined="id first")
    assert followed(Wavering(block="other"), record) == []


def test_a_settled_one_that_stands_asks_nothing() -> None:
    for kind in KINDS:
        record = in_flight(kind, state="settled", block_number=HEIGHT - DEPTH + 1, block_hash="hash", mined="id first")
        assert followed(World(), record) == ["no look"]


@BOTH
@pytest.mark.parametrize(
    ("world", "since", "buried", "events"),
    [
        (World(), HEIGHT - 2 * DEPTH + 1, True, ["buried"]),
        (World(), HEIGHT - 2 * DEPTH, True, ["buried", "forgotten"]),
        (World(), HEIGHT - 2 * DEPTH, False, ["buried"]),
        (World(forked=["id first"]), HEIGHT - 2 * DEPTH + 1, True, ["buried"]),
        (World(mined=["id first"], number=HEIGHT), HEIGHT - 2 * DEPTH, True, ["buried"]),
    ],
    ids=["young", "watched enough", "something is left to give back", "fell out", "mined, not deep"],
)
def test_a_dead_one_is_watched_on(kind: str, world: World, since: int, buried: bool, events: list[str]) -> None:
    assert followed(world, in_flight(kind, state="dead", doubtful_since=since), buried=buried) == events


@BOTH
@pytest.mark.parametrize(
    ("world", "events", "alarm"),
    [
        (World(decided=True, spent=(True, True)), ["buried"], ""),
        (World(lost_by_blocks=True, spent=(True, True)), ["buried"], ""),
        (World(spent=(True, True)), [], "differs from what was signed in its state"),
        (World(**ENDS | {"spent": (False, False)}), [], "differs from what was signed in its state"),
        (World(**ENDS | {"spent": (True, False)}), [], "differs from what was signed in its state"),
        (World(all_deny=False, **ENDS), [], "differs from what was signed in its state"),
        (World(forged=True, **ENDS), [], "differs from what was signed in"),
    ],
    ids=[
        "given up",
        "lost",
        "neither",
        "its coins are there",
        "spent in the mempool alone",
        "a node has it",
        "not as the record says",
    ],
)
def test_one_that_says_that_it_is_dead_gives_back_what_it_owes_where_that_is_proved(
    kind: str, world: World, events: list[str], alarm: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its state may have been altered while its bytes were out."""
    assert followed(world, in_flight(kind, state="dead", doubtful_since=HEIGHT), owing=True) == events
    alarms = [each.message for each in caplog.records if each.message.startswith("ALARM")]
    assert len(alarms) == bool(alarm) and all(alarm in each for each in alarms)


@BOTH
def test_a_dead_one_that_is_mined_is_an_alarm(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    assert followed(World(mined=["id first"]), in_flight(kind, state="dead", doubtful_since=HEIGHT)) == ["buried", "forgotten"]
    assert "its transaction id first is in block 1" in caplog.text
