"""Payments of last year to a merchant's own addresses lie in the archive, and answer as they did; the address lives on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.addresses.addresses import Address
from chalicelib.domain.archive.closings import ClosingPosting
from chalicelib.domain.archive.payments import DAY_MS, SAID_MS, ArchiveRound
from chalicelib.domain.chain import BlockDeposits, DepositBlock
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import first_id
from chalicelib.domain.ledger import JournalEntry
from chalicelib.domain.merchants.suspensions import ListedMerchant
from chalicelib.domain.versions import next_version
from chalicelib.usecases.archive import rounds
from chalicelib.usecases.ports.changes import Delete, Save
from chalicelib.usecases.ports.store import Listed, Span
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from chalicelib.workers import archive as worker
from tests.support.archive import Attic, open_attic, run_archive
from tests.support.collected_deposits import settings


@pytest.fixture
def attic(stack: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Attic]:
    with open_attic(stack, monkeypatch) as found:
        yield found


def address(attic: Attic, **more: Any) -> dict[str, Any]:
    made = attic.post("/v1/addresses", {"network": attic.network, "coin": "usdt", **more})
    assert made.status == 201, made.body
    return dict(made.json)


def paid(attic: Attic, to: dict[str, Any], amount: str = "5") -> dict[str, Any]:
    """A credited payment to it."""
    before = {each["id"] for each in attic.get(f"/v1/transactions/address/{to['address']}")["data"]}
    attic.pay(to["address"], amount, "usdt")
    attic.mine()
    attic.turn()
    (found,) = (each for each in attic.get(f"/v1/transactions/address/{to['address']}")["data"] if each["id"] not in before)
    return dict(found)


def old(attic: Attic, *amounts: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """An address, and payments of last year to it."""
    to = address(attic)
    made = [paid(attic, to, amount) for amount in amounts or ("5",)]
    attic.out_of_reach()
    attic.a_year_later()
    return to, made


def test_by_id_and_by_hash_it_is_as_it_was(attic: Attic) -> None:
    to, (payment,) = old(attic)
    paths = [f"/v1/transactions/{payment['id']}", f"/v1/transactions/{payment['hash']}", f"/v1/addresses/{to['address']}"]
    before = attic.answers(paths)
    assert attic.archive() == 1
    assert attic.kept() == {payment["id"]}
    attic.in_a_new_process()
    assert attic.answers(paths) == before
    assert attic.archive() == 0, "it is there once"
    key = {"tenant": services().store.get(Deposit, id=payment["id"]).tenant, "id": to["id"]}  # type: ignore[union-attr]
    assert services().store.whole([(Address, key)]) == [True]


def test_less_than_half_a_kilobyte_stays(attic: Attic) -> None:
    _, (payment,) = old(attic)
    _, block = attic.block_of(payment["id"])
    assert attic.archive() == 1
    found = attic.bytes_of(payment["id"], payment["hash"], block)
    assert sum(n for place, n in found.items() if not place[0].startswith(("cursor#", "archived#"))) < 512


def test_the_address_takes_payments_still(attic: Attic) -> None:
    to, (first,) = old(attic)
    assert attic.archive() == 1
    second = paid(attic, to, "7")
    assert attic.available("usdt") == "12"
    attic.in_a_new_process()
    listed = attic.get(f"/v1/transactions/address/{to['address']}")
    assert [each["id"] for each in listed["data"]] == [second["id"]]
    assert listed["meta"]["pagination"]["covers_from"] > first["createdAt"][:10], "the list says from which day on it has all"
    assert listed["meta"]["pagination"]["total"] == 1
    assert attic.get(f"/v1/transactions/{first['hash']}")["data"]["id"] == first["id"]
    assert audit(services().store) == []


def test_a_rescan_credits_nothing(attic: Attic) -> None:
    _, (payment,) = old(attic)
    block = attic.block_of(payment["id"])
    assert attic.archive() == 1
    body = {"fromBlock": block[0], "toBlock": block[0]}
    assert attic.stack.call("POST", "/v1/networks/ethereum/rescan", attic.stack.keys["admin_test"], json=body).status == 201
    attic.turn()
    assert attic.available("usdt") == "5"
    assert attic.kept() == {payment["id"]}
    assert [r for kind in (BlockDeposits, DepositBlock) for r in services().store.every(kind) if r.hash == block[1]] == []


def test_closing_postings_are_proved_by_the_archive(attic: Attic) -> None:
    old(attic, "5", "6")
    invoice = attic.completed("500", "usdt")
    attic.a_year_later()
    assert attic.archive() > 0
    store = services().store
    closings = [closing for closing in store.every(ClosingPosting) if closing.destination == "wallet:test:ethereum"]
    assert (sum(c.units for c in closings), sum(c.count for c in closings)) == (511_000_000, 3)
    assert [entry for entry in store.every(JournalEntry) if entry.ref.get("deposit") in attic.kept()] == []
    assert attic.shown(invoice)["status"] == "completed"
    one = closings[0]
    store.commit([Save(one.grown(replace(one, units=1, count=0)))])
    (wrong,) = audit(store)
    assert "the archive says" in wrong
    store.commit([Delete(ClosingPosting, one.key)])
    store.commit([Save(replace(one, version=1))])


def test_one_that_falls_out_leaves_its_postings_closed(attic: Attic) -> None:
    """Nobody mined for a year. The audit finds its object by the deposit."""
    to = address(attic)
    payment = paid(attic, to)
    attic.a_year_later()
    assert attic.archive() == 1
    attic.reorg(services().reader(attic.realm_network()).tip() - attic.block_of(payment["id"])[0] + 1)
    attic.turn()
    assert attic.available("usdt") == "0"
    found = services().store.get(Deposit, id=payment["id"])
    assert found is not None
    assert (found.status, len(found.archives or ())) == ("orphaned", 1)
    assert services().store.whole([(Deposit, {"id": found.id})]) == [True]
    assert audit(services().store) == []
    attic.out_of_reach()
    attic.a_year_later()
    assert attic.archive() == 1
    found = services().store.get(Deposit, id=payment["id"])
    assert found is not None
    assert (found.status, len(found.archives or ())) == ("orphaned", 2)


def test_what_is_open_or_the_operators_stays(attic: Attic) -> None:
    """Below the minimum, of yesterday, to a hot wallet: none of them leaves."""
    settings(attic, "usdt", minDepositAmount="5")
    to = address(attic)
    payment = paid(attic, to)
    small = paid(attic, to, "1")
    attic.out_of_reach()
    attic.a_year_later()
    young = paid(attic, to, "8")
    own = [d.id for d in services().store.every(Deposit) if d.tenant is None]
    assert own
    assert attic.archive() == 1
    assert attic.kept() == {payment["id"]}
    listed = attic.get(f"/v1/transactions/address/{to['address']}")["data"]
    assert {each["id"] for each in listed} == {small["id"], young["id"]}


def test_a_round_that_is_cut_goes_on_where_it_was(attic: Attic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "_PAGE", 1)
    monkeypatch.setattr(worker, "SECONDS", 0.0)
    _, made = old(attic, "1", "2", "3")
    run_archive()
    store, seen = services().store, []
    known = store.get(ArchiveRound, realm="test")
    assert known is not None
    turns = iter(range(100))
    while attic.kept() != {each["id"] for each in made}:
        next(turns)
        one = iter([True])
        services().archive_rounds("test").work(lambda one=one: next(one, False))
        known = store.get(ArchiveRound, realm="test")
        assert known is not None
        seen.append((known.after == known.behind_invoices, known.deposits_after is not None))
    assert (True, True) in seen, "its place among the deposits is stored"
    assert audit(store) == []


def test_a_version_that_knows_no_deposits_goes_on_with_the_next_merchant(attic: Attic, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks for invoices behind `after`, finds none, and leaves what it does not know as it is. The next round has the rest."""
    monkeypatch.setattr(rounds, "_PAGE", 1)
    _, made = old(attic, "1", "2")
    invoice = attic.completed("9", "usdt")
    attic.a_year_later()
    store, archive = services().store, services().archive_rounds("test")

    def known() -> ArchiveRound:
        found = store.get(ArchiveRound, realm="test")
        assert found is not None
        return found

    archive.work(lambda: True)
    services().clock.shift_ms += SAID_MS
    while known().deposits_after is None:
        one = iter([True])
        archive.work(lambda one=one: next(one, False))
    stands = known()
    assert stands.after == stands.behind_invoices
    tenant = f"{stands.merchant}:test"
    assert store.places(Listed("inv", "time", tenant), limit=9, after=stands.after, span=Span(high=stands.after)).places == []
    behind = store.page(ListedMerchant, limit=1, after=stands.merchant).items
    if behind:
        store.commit([Save(replace(next_version(stands), merchant=behind[0].id, after=first_id("inv", 0)))])
    else:
        store.commit([Save(replace(next_version(stands), merchant=None, after=None, ended_at=services().clock.now_ms()))])
    archive.work(lambda: True)
    assert known().merchant is None
    run_archive()
    assert attic.kept() >= {each["id"] for each in made}
    assert attic.shown(invoice)["status"] == "completed"
    assert audit(store) == []


def test_a_walk_that_takes_more_than_a_day_goes_on(attic: Attic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three pages a day of what stays, small payments, before the one that leaves."""
    monkeypatch.setattr(rounds, "_PAGE", 1)
    settings(attic, "usdt", minDepositAmount="5")
    to = attic.post("/v1/addresses", {"network": attic.network, "coin": "usdt"}).json
    for amount in ("1", "1", "1", "7"):
        attic.pay(to["address"], amount, "usdt")
        attic.mine()
        attic.turn()
    attic.out_of_reach()
    attic.a_year_later()
    archive = services().archive_rounds("test")
    archive.work(lambda: True)
    services().clock.shift_ms += SAID_MS
    for _ in range(15):
        pages = iter([True] * 3)
        archive.work(lambda pages=pages: next(pages, False))
        services().clock.shift_ms += DAY_MS
        archive.work(lambda: False)
        services().clock.shift_ms += SAID_MS
    assert len(attic.kept()) == 1
