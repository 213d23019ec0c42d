"""The rows of a block's list leave with its last archived payment; whoever reads them does without."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import boto3
import pytest

from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.chain import ArchivedBlock, Block, BlockDeposits, Cursor, DepositBlock, ScanEpoch, Transfer
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import NetworkId
from chalicelib.usecases.archive import archiving, block_rows
from chalicelib.usecases.archive.block_rows import leaving, noted
from chalicelib.usecases.ports.changes import Conflict, Delete, Save
from chalicelib.usecases.ports.failures import Halted, Unavailable
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.recovery.deposit_migration import DepositMigration
from chalicelib.usecases.scanning import block_lists
from chalicelib.usecases.scanning.block_lists import deposits_of, drop_list, list_deposits
from chalicelib.wiring import services
from tests.support.archive import Attic, open_attic
from tests.support.shop import bent_node, with_also

NETWORK = NetworkId("test:ethereum")
LATE_TOKEN = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"  # EIP-55's own example
BLOCK = Block(1, "0x" + "b1" * 32, "0x" + "b0" * 32, 0)


@pytest.fixture
def attic(stack: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Attic]:
    with open_attic(stack, monkeypatch) as found:
        yield found


def rows(number: int, hash_: str) -> tuple[BlockDeposits | None, DepositBlock | None]:
    store = services().store
    row = store.get(DepositBlock, network=NETWORK, number=str(number), hash=hash_)
    return store.get(BlockDeposits, network=NETWORK, hash=hash_), row


def deposit_in(attic: Attic, invoice: dict[str, Any]) -> tuple[str, tuple[int, str]]:
    (found,) = attic.get(f"/v1/transactions/address/{invoice['address']}")["data"]
    return found["id"], attic.block_of(found["id"])


def rescan(attic: Attic, block: int) -> None:
    body = {"fromBlock": block, "toBlock": block}
    assert attic.stack.call("POST", "/v1/networks/ethereum/rescan", attic.stack.keys["admin_test"], json=body).status == 201
    attic.turn()


@contextmanager
def lost_objects(attic: Attic) -> Iterator[None]:
    """The archive's objects are gone for a while, and nobody remembers one."""
    s3, bucket = boto3.client("s3"), services().settings.archive_bucket("123456789012", services().region)
    kept = {key: s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in attic.objects()}
    for key in kept:
        s3.delete_object(Bucket=bucket, Key=key)
    attic.in_a_new_process()
    try:
        yield
    finally:
        for key, content in kept.items():
            s3.put_object(Bucket=bucket, Key=key, Body=content)


# One payment, from its block to the archive.


def test_nothing_is_left_of_a_block_whose_payments_are_archived(attic: Attic) -> None:
    invoice = attic.completed("500", "usdt")
    _, block = deposit_in(attic, invoice)
    attic.out_of_reach()
    attic.a_year_later()
    assert None not in rows(*block)
    assert attic.archive() == 1
    assert rows(*block) == (None, None)
    assert services().store.get(ArchivedBlock, network=NETWORK) == ArchivedBlock(NETWORK, *block)


def test_a_block_that_a_reorganisation_may_reach_keeps_its_rows(attic: Attic) -> None:
    """Nobody mines on a sandbox chain for a year: what is paid there is old, and not deep."""
    invoice = attic.completed("500", "usdt")
    id_, block = deposit_in(attic, invoice)
    attic.a_year_later()
    assert attic.archive() == 1
    assert None not in rows(*block)
    height = services().reader(attic.realm_network()).tip()
    attic.reorg(height - block[0] + 1)
    attic.turn()
    assert attic.available("usdt") == "0"
    found = services().store.get(Deposit, id=id_)
    assert found is not None and found.status == "orphaned"
    assert audit(services().store) == []


def test_a_rescan_makes_no_list_of_what_is_archived(attic: Attic) -> None:
    invoice = attic.completed("500", "usdt")
    id_, block = deposit_in(attic, invoice)
    attic.out_of_reach()
    attic.a_year_later()
    assert attic.archive() == 1
    rescan(attic, block[0])
    assert attic.available("usdt") == "500"
    assert rows(*block) == (None, None)
    assert attic.kept() == {id_}


def test_a_rescan_finds_what_was_unknown_in_such_a_block(attic: Attic, monkeypatch: pytest.MonkeyPatch) -> None:
    """A coin is registered after the block's payment was archived. It begins a list, falls in no reorganisation's reach, and leaves
    with its list as the other did."""
    invoice = attic.completed("500", "usdt")
    attic.chain().deposit(invoice["address"], LATE_TOKEN, 5_000_000)
    attic.out_of_reach()
    attic.a_year_later()
    assert attic.archive() == 1
    services().store.commit([Save(Coin(NETWORK, "late", "LATE", "Late Token", 6, LATE_TOKEN))])
    services().store.forget_catalogue()
    rescan(attic, attic.block_of(next(iter(attic.kept())))[0] + 13)
    found = [d for d in services().store.every(Deposit) if d.asset.endswith(":late")]
    assert [(d.status, d.part) for d in found] == [("confirmed", 0)]
    assert attic.available("late") == "5"
    assert None not in rows(*found[0].block)
    assert audit(services().store) == []


def halted(attic: Attic) -> Any:
    """A network whose chain changed above the archived payment, deeper than is followed; the highest archived block."""
    invoice = attic.completed("500", "usdt")
    _, block = deposit_in(attic, invoice)
    attic.out_of_reach()
    attic.a_year_later()
    assert attic.archive() == 1
    attic.mine(20)
    attic.completed("1", "eth")
    attic.out_of_reach()
    attic.chain().reorganise(80, False)
    drained = attic.stack.drain(only=("poll_ethereum",), failures="count", rounds=1)
    ((_, error),) = drained.failures
    assert isinstance(error, ExceptionGroup) and error.subgroup(Halted) is not None
    return block


@pytest.mark.parametrize("objects", ["there", "lost"])
def test_a_network_resumes_behind_the_highest_archived_block(attic: Attic, objects: str) -> None:
    """Nothing but that says where the branches part: what was paid since fell out. No object of the archive is read for it, also
    where blocks may have no rows yet."""
    block = halted(attic)
    assert attic.available() == "1"
    with lost_objects(attic) if objects == "lost" else nullcontext():
        services().scanner(attic.realm_network()).resume()
    cursor = services().store.get(Cursor, network=NETWORK)
    assert cursor is not None and (cursor.number, cursor.hash) == block
    attic.turn()
    assert (attic.available(), attic.available("usdt")) == ("0", "500")
    assert audit(services().store) == []


def test_it_does_not_where_the_chain_lost_an_archived_block(attic: Attic) -> None:
    halted(attic)
    (known,) = services().store.every(ArchivedBlock)
    services().store.commit([Save(replace(known, hash="0x" + "ee" * 32, version=known.version + 1))])
    with pytest.raises(Unavailable, match="up to which payments are archived"):
        services().scanner(attic.realm_network()).resume()
    cursor = services().store.get(Cursor, network=NETWORK)
    assert cursor is not None and cursor.halted


@pytest.mark.parametrize("objects", ["there", "lost"])
def test_a_migration_brings_none_of_them_back(attic: Attic, objects: str) -> None:
    """It reads no object of the archive, and gives its row to a block whose payment is not archived."""
    invoice = attic.completed("500", "usdt")
    id_, block = deposit_in(attic, invoice)
    attic.out_of_reach()
    attic.a_year_later()
    assert attic.archive() == 1
    _, young = deposit_in(attic, attic.completed("1", "usdt"))
    store, network = services().store, attic.realm_network()
    row = {"network": str(NETWORK), "number": str(young[0]), "hash": young[1]}
    store.commit([Delete(DepositBlock, row)])
    with lost_objects(attic) if objects == "lost" else nullcontext():
        done = DepositMigration([network], lambda _: None, services().store, services().clock).run(again=True)
    assert done.blocks == 1
    assert rows(*block) == (None, None)
    assert services().store.get(DepositBlock, **row) == DepositBlock(NETWORK, *young)
    assert attic.kept() == {id_}


# Payments that share a list.


def paid(*names: str) -> list[Deposit]:
    """Deposits of BLOCK, on its list."""
    store = services().store
    epoch = store.get(ScanEpoch, network=NETWORK)
    parts = list_deposits(store, NETWORK, BLOCK, names, 0 if epoch is None else epoch.epoch)
    return [deposit(name, parts[name]) for name in names]


def deposit(name: str, part: int | None) -> Deposit:
    return Deposit(
        name, NETWORK, f"{NETWORK}:usdt", None, name, "log:0", "", "0x1", 1, BLOCK.number, BLOCK.hash, 0, 0, "confirmed", part=part,
    )  # type: ignore[arg-type]  # fmt: skip


def listed() -> list[tuple[str, ...]]:
    return [ids for _, ids in deposits_of(services().store, NETWORK, [BLOCK.hash])]


def leave(deposits: Sequence[Deposit]) -> bool:
    """They leave; whether nothing of the block's rows is left."""
    found = leaving(services().store, deposits)
    noted(services().store, [each.block for each in found if each.last])
    services().store.commit([change for each in found for change in each.changes])
    return rows(BLOCK.number, BLOCK.hash) == (None, None)


@pytest.fixture
def deep(attic: Attic, monkeypatch: pytest.MonkeyPatch) -> Attic:
    """The cursor is far above BLOCK; two deposits in a part."""
    monkeypatch.setattr(block_lists, "MOST", 2)
    attic.out_of_reach()
    return attic


def test_the_last_of_two_merchants_takes_the_list_with_it(deep: Attic) -> None:
    one, other = paid("tx_1", "tx_2")
    assert not leave([one])
    assert listed() == [("tx_2",)]
    assert leave([other])


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (4, 3, 2, 1, 0), (2, 0, 4, 1, 3)])
def test_a_list_of_several_parts_leaves_part_by_part(deep: Attic, order: tuple[int, ...]) -> None:
    deposits = paid(*(f"tx_{n}" for n in range(5)))
    for n in order[:-1]:
        assert not leave([deposits[n]])
    assert sorted(id for ids in listed() for id in ids) == [f"tx_{order[-1]}"]
    assert leave([deposits[order[-1]]])
    assert [part for part in services().store.every(BlockDeposits) if part.hash == BLOCK.hash] == []


def test_a_list_goes_on_when_some_have_left(deep: Attic) -> None:
    """A scan that knows nothing of the archive lists more: where there is room, and nothing twice."""
    deposits = paid(*(f"tx_{n}" for n in range(5)))
    assert not leave([deposits[4], deposits[1], deposits[2], deposits[3]])
    assert listed() == [("tx_0",)]
    more = paid("tx_5", "tx_6", "tx_0")
    assert sorted(id for ids in listed() for id in ids) == ["tx_0", "tx_5", "tx_6"]
    assert leave(more)


def test_of_two_at_once_one_reads_again(deep: Attic) -> None:
    one, other, third = paid("tx_1", "tx_2", "tx_3")
    store = services().store
    (first,) = leaving(store, [one])
    (second,) = leaving(store, [other])
    store.commit(first.changes)
    with pytest.raises(Conflict):
        store.commit(second.changes)
    assert not leave([other])
    (last,) = leaving(store, [third])
    paid("tx_4")
    with pytest.raises(Conflict):
        store.commit(last.changes)
    assert not leave([third])
    assert [ids for ids in listed() if ids] == [("tx_4",)]


@pytest.mark.parametrize("left", ["dropped", "uncounted", "without a part"])
def test_lists_that_stay(deep: Attic, left: str) -> None:
    store, (one,) = services().store, paid("tx_1")
    if left == "dropped":
        drop_list(store, NETWORK, BLOCK.hash, 0, 1)
    elif left == "uncounted":
        first = store.get(BlockDeposits, network=NETWORK, hash=BLOCK.hash)
        assert first is not None
        store.commit([Save(replace(first, parts=None, version=first.version + 1))])
    else:
        one = deposit("tx_1", None)
    assert not leave([one])


def test_a_long_list_keeps_empty_parts_that_it_has_no_room_to_remove(deep: Attic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_rows, "TAIL", 1)
    deposits = paid(*(f"tx_{n}" for n in range(6)))
    assert not leave(deposits[:4])
    assert not leave(deposits[4:])
    assert listed() == [(), ()]
    assert leave([]) is False
    store = services().store
    store.commit([Delete(DepositBlock, {"network": NETWORK, "number": str(BLOCK.number), "hash": BLOCK.hash})])


def test_the_highest_block_is_noted_and_never_a_lower_one(deep: Attic) -> None:
    store = services().store
    for number, highest in ((5, 5), (3, 5), (9, 9)):
        noted(store, [DepositBlock(NETWORK, number, f"0x{number}"), DepositBlock(NETWORK, 1, "0x1")])
        assert store.get(ArchivedBlock, network=NETWORK).number == highest  # type: ignore[union-attr]
    store.commit([Delete(ArchivedBlock, {"network": NETWORK})])


def test_many_payments_of_one_block_leave_nothing(attic: Attic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Payments that leave together have no room for all parts that are empty by then: these go behind them."""
    to = attic.post("/v1/addresses", {"network": attic.network, "coin": "usdt"}).json["address"]
    usdt = attic.coin("usdt")
    assert usdt.contract is not None
    many = [
        Transfer(f"0x{n:064x}", f"log:{100 + n}", usdt.contract.lower(), "0x" + "11" * 20, to.lower(), 5_000_000) for n in range(80)
    ]
    attic.turn()
    attic.pay(to, "5", "usdt")
    reader = services().reader(attic.realm_network())
    block = reader.block_hash(reader.tip())
    with_also(bent_node(attic, monkeypatch), many, block)
    attic.mine()
    for _ in range(3):
        attic.turn()
    own = [d for d in services().store.every(Deposit) if d.tenant is not None]
    assert {(d.status, d.block_hash) for d in own} == {("confirmed", block)} and len(own) == 1 + len(many)
    attic.out_of_reach()
    attic.a_year_later()
    monkeypatch.setattr(archiving, "MOST_ITEMS", 12)
    while attic.archive():
        pass
    assert len(attic.kept()) == len(own)
    assert [r for kind in (BlockDeposits, DepositBlock) for r in services().store.every(kind) if r.hash == block] == []
