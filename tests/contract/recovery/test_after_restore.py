"""The tables were put back to an earlier second, and the chain went on: nothing is paid twice, credited or given back wrongly, and
`after-restore` books what happened."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import boto3
import pytest

from chalicelib import wiring
from chalicelib.domain.addresses.addresses import Watched
from chalicelib.domain.addresses.index_pools import STEP, IndexPool
from chalicelib.domain.kill_switch import PaymentSwitch
from chalicelib.domain.merchants.merchants import Merchant
from chalicelib.domain.recovery.point_in_time import Trace
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.cli import main
from tests.support import bundles
from tests.support.collected_deposits import go, moves, pay, settings, settle
from tests.support.index_pools import forget, recorded, row, shrink
from tests.support.shop import ETHER, STUCK, Shop, decide
from tests.support.treasury import same

CEILING = 110
"""Above two ranges of indexes; each command asks about every index below it, on each network."""
ELSEWHERE = ("-sandbox", "-custody", "-tenants")


def tables() -> list[Any]:
    """What is put back: all but the simulated chains themselves, and what does not change here."""
    db = boto3.resource("dynamodb")
    names = boto3.client("dynamodb").list_tables()["TableNames"]
    return [db.Table(name) for name in names if not name.endswith(ELSEWHERE)]


def rows(table: Any) -> list[Any]:
    found, more = [], {}
    while True:
        page = table.scan(**more)
        found += page["Items"]
        if "LastEvaluatedKey" not in page:
            return found
        more = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def kept() -> dict[str, list[Any]]:
    return {table.name: rows(table) for table in tables()}


def put_back(before: dict[str, list[Any]]) -> None:
    for table in tables():
        keys = [key["AttributeName"] for key in table.key_schema]
        with table.batch_writer() as batch:
            for row in rows(table):
                batch.delete_item(Key={key: row[key] for key in keys})
        with table.batch_writer() as batch:
            for row in before[table.name]:
                batch.put_item(Item=row)
    wiring.forget()


def command(*words: str) -> int:
    return main(["--stage", "local", "after-restore", "--realm", "test", *words])


def watch_again() -> None:
    """What was given out after the second is watched again, which comes before everything else."""
    assert command() == 1
    owner = next(iter(services().store.every(Merchant))).id
    wiring.forget()
    assert main(["--stage", "local", "restore", "--realm", "test", "--merchant", owner, "--gap", "5"]) == 0


def over(*words: str) -> None:
    """Everything is deep enough, and the restore ends."""
    assert command("--done", *words) == 0
    assert main(["--stage", "local", "resume-payments", "--realm", "test"]) == 0
    assert audit(services().store) == []


@pytest.fixture
def shop(stack) -> Shop:
    shrink(CEILING)
    found = Shop(stack)
    found.turn()
    return found


def test_an_address_of_after_the_second_is_nobody_elses(shop: Shop, capsys: pytest.CaptureFixture[str]):
    """The row counts from before again, and its ceiling is the same: what is recorded outside the tables is above both."""
    first = shop.invoice("1", "usdt")["address"]
    before, count = kept(), row("evm").count
    wiring.forget()  # another process: it takes a range of its own
    late = [shop.invoice("1", "usdt")["address"] for _ in range(2)]
    shop.pay(late[-1], "1", "usdt")
    assert row("evm").count == 2 * count
    put_back(before)
    assert row("evm").count == count
    assert command() == 1
    told = capsys.readouterr().out
    assert "ethereum: addresses given out after that second are not watched: restore --realm test --network ethereum" in told
    assert row("evm") == IndexPool(CEILING, CEILING + STEP, CEILING, reopened=row("evm").reopened)
    assert recorded("evm") == CEILING + STEP
    watch_again()
    known = {w.address for w in services().store.every(Watched) if w.realm == "test" and w.family == "evm" and w.role == "user"}
    assert {each.lower() for each in (first, *late)} <= known
    assert row("evm").count == CEILING  # neither again skipped it further
    assert shop.invoice("1", "usdt")["address"].lower() not in known
    capsys.readouterr()
    assert command() == 0, capsys.readouterr().out


def test_without_the_parameter_it_stops(shop: Shop, capsys: pytest.CaptureFixture[str]):
    put_back(kept())
    forget("tron")
    assert command() == 1
    assert "test:tron has no recorded ceiling" in capsys.readouterr().err
    assert row("tron").reopened == 0
    assert command("--below", str(CEILING)) == 1
    assert "tron: addresses given out" in capsys.readouterr().out
    assert row("tron").count == CEILING


def test_a_withdrawal_that_was_paid_after_the_second_is_not_paid_again(shop: Shop, capsys: pytest.CaptureFixture[str]):
    shop.credit("3")
    paid = shop.withdraw("1")
    before = kept()
    shop.withdraw("0.5")
    shop.turn()
    shop.mine()
    shop.turn()
    assert shop.paid() == 15 * ETHER // 10
    put_back(before)
    watch_again()
    assert command("--done") == 1  # nothing of it is deep yet
    assert "nothing asked for" in capsys.readouterr().out
    assert shop.withdrawal(paid)["status"] == "confirmed"
    shop.nudge(600)
    assert shop.paid() == 15 * ETHER // 10
    assert main(["--stage", "local", "resume-payments", "--realm", "test"]) == 1
    shop.mine(70)
    over("--book-unmatched")
    assert shop.available() == "2"  # of the other one nothing is known: it is the operator's loss
    assert same(shop, shop.hot().address, "eth")
    shop.withdraw("0.25")
    shop.turn()
    assert shop.paid() == 175 * ETHER // 100


def test_a_withdrawal_that_was_replaced_after_the_second_is_waited_for(shop: Shop, capsys: pytest.CaptureFixture[str]):
    """It was signed before, and what has paid it after: the restore is not over before that is as deep as it has to be."""
    shop.credit("3")
    withdrawal = shop.withdraw("1")
    decide(shop, withdrawal, "stick")
    shop.turn()
    before, first = kept(), shop.order(withdrawal)
    shop.wait(STUCK)
    shop.turn()
    second = shop.order(withdrawal)
    assert second.txids == (second.txid, first.txid)
    decide(shop, withdrawal, "confirm")
    put_back(before)
    watch_again()
    capsys.readouterr()
    assert command("--done") == 1
    assert shop.order(withdrawal).txids == second.txids
    told = capsys.readouterr().out
    assert f"ethereum: {second.txid} is not settled yet" in told or f"{second.txid} is not as deep" in told, told
    shop.mine(70)
    over()
    assert (shop.withdrawal(withdrawal)["status"], shop.paid(), shop.available()) == ("confirmed", ETHER, "2")


def test_what_went_between_our_own_places_is_credited_to_nobody(shop: Shop):
    """Also where the polls went on before anybody noticed: then it is taken back."""
    address = pay(shop, "5000")
    before, eth = kept(), shop.balance("eth")
    stood = services().reader(shop.realm_network()).tip()
    settings(shop, "usdt", collectThreshold="1")
    assert main(["--stage", "local", "collect", "--realm", "test", "--network", "ethereum", "--coin", "usdt"]) == 0
    go(shop, 2)
    settle(shop, 3)
    put_back(before)
    shop.mine()
    shop.turn()
    assert shop.balance("eth") != eth
    shop.mine(70)
    watch_again()
    over("--from-block", f"ethereum:{stood}")
    assert shop.balance("eth") == eth
    assert same(shop, address, "usdt") == 0
    same(shop, address, "eth")
    same(shop, shop.hot().address, "usdt")
    assert [move.state for move in (*moves("topup"), *moves("sweep"))] == ["settled", "settled"]


def test_blocks_to_begin_at_are_no_address_indexes(shop: Shop):
    """Pools of indexes bear the names of networks: where the indexes of tron end says nothing of its blocks."""
    networks = services().catalogue("test").networks
    for slug in ("ethereum", "tron"):
        services().simulated(networks[slug].id).mine(3 * CEILING)
    shop.turn("poll_tron")
    put_back(kept())
    watch_again()
    command("--from-block", "ethereum:7")
    ethereum, tron = (services().store.get(Trace, network=networks[slug].id) for slug in ("ethereum", "tron"))
    assert ethereum is not None
    assert ethereum.first == 7
    assert tron is not None
    assert tron.first > row("tron").count >= CEILING


def test_a_wallet_whose_chain_is_ahead_signs_nothing(shop: Shop, caplog: pytest.LogCaptureFixture):
    """Nobody has run the command: what was paid is neither paid again nor given back."""
    shop.credit("5")
    shop.withdraw("0.5")
    shop.turn()
    shop.mine()
    shop.turn()
    paid = shop.withdraw("1")
    before = kept()
    shop.turn()
    shop.mine()
    shop.turn()
    put_back(before)
    caplog.set_level(logging.WARNING)
    shop.mine(70)
    shop.nudge(600)
    shop.nudge(600)
    assert shop.paid() == 15 * ETHER // 10
    assert shop.withdrawal(paid)["status"] == "pending"
    assert "has sent 1 transactions that are not known here" in caplog.text
    assert services().store.get(PaymentSwitch, realm="test") is None


# In the sweep: a service with litecoin live takes five seconds to begin, and looking for addresses in its blocks a minute.
@pytest.mark.sweep
def test_a_network_of_coins_is_put_right_by_hand(begin: Callable[[], bundles.Shop], capsys: pytest.CaptureFixture[str]):
    begin()
    shrink(CEILING)
    words = ["--stage", "local", "after-restore", "--realm", "live"]
    assert main(words) == 1
    assert "addresses given out after that second are not watched" in capsys.readouterr().out
    owner = next(iter(services().store.every(Merchant))).id
    wiring.forget()
    restore = ["restore", "--realm", "live", "--merchant", owner, "--network", "litecoin", "--gap", "5", "--from-block", "1"]
    assert main(["--stage", "local", *restore]) == 0, capsys.readouterr().err
    capsys.readouterr()
    assert main(words) == 1
    assert capsys.readouterr().out == "litecoin: a network of coins: put it right by hand, then say --by-hand litecoin\n"
    by_hand = [*words, "--by-hand", "bitcoin", "--by-hand", "litecoin"]
    assert main(by_hand) == 0
    assert "run it with --done" in capsys.readouterr().out
    assert main([*words, "--done"]) == 1
    assert main([*by_hand, "--done"]) == 0
    assert main(["--stage", "local", "resume-payments", "--realm", "live"]) == 0
