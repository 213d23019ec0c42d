"""A node that does not answer holds up nobody's line for ever, and leaves the last word about much money to no single other one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.catalogue.rates import no_rates
from chalicelib.domain.transactions.node_silence import NodeSilence
from chalicelib.domain.transactions.sightings import Sighting
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.ports.changes import Delete
from chalicelib.usecases.transactions.finality import Finality
from chalicelib.wiring import services
from tests.support.lying_nodes import Nodes, behind, failing
from tests.support.shop import Shop, open_shop
from tests.support.stack import Stack

MINUTES = 30
SMALL, LARGE = "0.1", "5"
"""Ether at the sandbox's rate: below and above 1,000 dollars."""


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack, ("20", "eth")) as opened:
        yield opened


def fails(shop: Shop, amount: str) -> str:
    """A withdrawal whose transaction fails on the chain."""
    withdrawal = shop.withdraw(amount)
    decided = shop.post(f"/v1/sandbox/withdrawals/{withdrawal}", {"outcome": "fail"})
    assert decided.status == 200, decided.body
    return withdrawal


def turns(shop: Shop, minutes: int = MINUTES) -> None:
    """So many minutes pass, with polls at their beginning and their end, and one between them."""
    shop.turn(failures="count")
    for part in (minutes // 2, minutes - minutes // 2):
        shop.wait(60 * part)
        shop.turn(failures="count")


def status(shop: Shop, withdrawal: str) -> str:
    return str(shop.withdrawal(withdrawal)["status"])


def silence(shop: Shop, nodes: Nodes, *numbers: int) -> None:
    for number in numbers:
        nodes.all[number].gone = True
    shop.turn(failures="count")


# The sweep: the last three of four stay, and the second of two; the first of two falls silent alike.
@pytest.mark.parametrize(("count", "silent"), [(2, (1,)), pytest.param(2, (0,), marks=pytest.mark.sweep), (4, (0, 1, 2))])
def test_a_small_failure_is_settled_half_an_hour_after_the_others_fell_silent(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, count: int, silent: tuple[int, ...]
) -> None:
    nodes = behind(shop, monkeypatch, count)
    before = shop.available()
    withdrawal = fails(shop, SMALL)
    silence(shop, nodes, *silent)
    shop.mine()
    turns(shop, MINUTES - 1)
    assert status(shop, withdrawal) == "confirming"
    assert "is not settled: 1 of" in caplog.text
    assert "has no vote" not in caplog.text
    turns(shop, 1)
    assert (status(shop, withdrawal), shop.available(), shop.paid()) == ("failed", before, 0)
    assert f"node {silent[0] + 1} has not answered for 30 minutes and has no vote" in caplog.text
    assert len(shop.journal("withdrawal_bounced")) == 1


@pytest.mark.parametrize("agreement", [1_000, None])
def test_a_large_failure_waits_for_the_operator(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, agreement: int | None
) -> None:
    nodes = behind(shop, monkeypatch, 2, agreement)
    withdrawal = fails(shop, LARGE)
    silence(shop, nodes, 1)
    shop.mine()
    turns(shop)
    turns(shop)
    assert (status(shop, withdrawal), shop.available()) == ("confirming", "15")
    assert "the operator has to bring them back, or to take them out" in caplog.text
    monkeypatch.undo()  # he takes the silent one out
    shop.turn()
    assert (status(shop, withdrawal), shop.available()) == ("failed", "20")


def test_a_large_payment_waits_for_the_operator_and_holds_up_nobody(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hot wallet's line: one that waits for a second word, and small ones in front of it and behind it, paid and failed."""
    nodes = behind(shop, monkeypatch, 2)
    first, large, paid, failed = shop.withdraw(SMALL), shop.withdraw(LARGE), shop.withdraw(SMALL), fails(shop, SMALL)
    silence(shop, nodes, 1)
    shop.mine()
    turns(shop)
    assert [status(shop, each) for each in (first, large, paid, failed)] == ["confirmed", "confirming", "confirmed", "failed"]
    nodes.all[1].gone = False
    shop.turn(failures="count")
    assert status(shop, large) == "confirmed"


def test_without_a_fresh_rate_everything_is_large(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = behind(shop, monkeypatch, 2)
    withdrawal = fails(shop, SMALL)
    silence(shop, nodes, 1)
    shop.mine()
    monkeypatch.setattr(services().wiring.transactions, "finality", rateless(services()))
    turns(shop)
    assert status(shop, withdrawal) == "confirming"


def rateless(wired: Any) -> Callable[[Network], Finality]:
    """Finality of somebody who knows no rate."""

    def finality(asked: Network) -> Finality:
        watched = replace(asked, agreement_usd=1_000)
        return Finality(NetworkContext(watched, wired.reader(asked), wired.store, wired.rules, wired.clock), no_rates)

    return finality


def test_what_the_scanner_did_not_meet_waits(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """One node is left, which tells of a failure in a block where no transaction of ours was."""
    nodes = behind(shop, monkeypatch, 2)
    withdrawal = shop.withdraw(SMALL)
    silence(shop, nodes, 0)
    nodes.all[1].says = failing(nodes)
    turns(shop)
    assert (status(shop, withdrawal), shop.journal("withdrawal_bounced")) == ("confirming", [])
    nodes.all[1].says, nodes.all[0].gone = None, False
    shop.mine()
    shop.turn(failures="count")
    assert status(shop, withdrawal) == "confirmed"


def test_what_was_noted_and_forgotten_waits(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = behind(shop, monkeypatch, 2)
    withdrawal = fails(shop, SMALL)
    silence(shop, nodes, 1)
    shop.mine()
    shop.turn(failures="count")
    for each in list(services().store.every(Sighting)):
        services().store.commit([Delete(Sighting, {"network": each.network, "subject": each.subject})])
    turns(shop)
    assert status(shop, withdrawal) == "confirming"
    nodes.all[1].gone = False
    shop.turn(failures="count")
    assert status(shop, withdrawal) == "failed"


def test_a_node_that_answers_otherwise_has_its_vote(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says that the payment is in no block: a lie, and an answer. Nothing is settled, however long that goes on."""
    nodes = behind(shop, monkeypatch, 2)
    withdrawal = fails(shop, SMALL)
    nodes.all[1].says = lambda txid, real: None
    shop.turn(failures="count")
    shop.mine()
    turns(shop)
    turns(shop)
    assert status(shop, withdrawal) == "confirming"
    assert services().store.get(NodeSilence, network=shop.realm_network().id) is None


def test_the_one_that_comes_back_is_heard_at_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The liar is left alone for half an hour; then the honest node answers, in the very poll that would have settled."""
    nodes = behind(shop, monkeypatch, 2)
    withdrawal = shop.withdraw(SMALL)
    silence(shop, nodes, 0)
    shop.mine()
    nodes.all[1].says = lambda txid, real: None if real is None else replace(real, success=False)
    turns(shop, MINUTES - 1)
    assert status(shop, withdrawal) == "confirming"
    nodes.all[0].gone = False
    turns(shop, 1)
    assert status(shop, withdrawal) == "confirming"
    nodes.all[1].says = None
    shop.turn(failures="count")
    assert status(shop, withdrawal) == "confirmed"
