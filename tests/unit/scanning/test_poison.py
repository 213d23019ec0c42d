"""What is read of a block's payments beside one that can not be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from chalicelib.domain.catalogue.catalogue import default_networks
from chalicelib.domain.chain import Block, Transfer
from chalicelib.domain.deposits.claims import LogClaim
from chalicelib.domain.deposits.deposits import Deposit, deposit_id
from chalicelib.usecases.deposits.claims import Claims
from chalicelib.usecases.ports.archive import NotKept
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.failures import TooNew, Unavailable
from chalicelib.usecases.scanning.poison import Poison
from tests.support.memory_store import MemoryStore

(ETHEREUM,) = (network for network in default_networks("live") if network.slug == "ethereum")
BLOCK = Block(7, "0xb7", "0xb6", 1_000)
PAID = [Transfer(f"0x{n}", f"log:{10 * n + 1}", "0xc", "0xa", "0xb", 5) for n in range(9)]


class WithLost(MemoryStore):
    """Some deposits can not be read."""

    def __init__(self, *lost: str, error: Exception) -> None:
        super().__init__()
        self.lost, self.error, self.reads = lost, error, 0

    def get_many(self, wanted: Sequence[tuple[type[Any], Mapping[str, str]]], /) -> list[Any]:
        self.reads += 1
        if any(kind is Deposit and fields["id"] in self.lost for kind, fields in wanted):
            raise self.error
        return super().get_many(wanted)


class Reader:
    """The first logs of each transaction in another block than the one where it was first seen."""

    def first_logs(self, block: Block, txids: Sequence[str]) -> dict[str, int]:
        return {txid: 10 * int(txid, 16) for txid in txids}


def claimed(transfer: Transfer) -> str:
    """Its id by the claim: one log further on."""
    return deposit_id(ETHEREUM.id, transfer.txid, f"log:{10 * int(transfer.txid, 16) + 2}")


@pytest.mark.parametrize("error", [NotKept("it is gone"), LookupError("it is another one"), TooNew("a newer one's")])
def test_the_ids_of_the_others_are_told(error: Exception) -> None:
    """The claim of a transaction gives its deposit another id than the block does, so both deposits are read."""
    lost = [PAID[3], PAID[8]]
    store = WithLost(*map(claimed, lost), error=error)
    for transfer in PAID:
        store.commit([Save(LogClaim(ETHEREUM.id, transfer.txid, 10 * int(transfer.txid, 16) + 1))])
    poison, claims = Poison(ETHEREUM.id, BLOCK), Claims(ETHEREUM, Reader(), store)  # type: ignore[arg-type]
    told = poison.each(PAID, lambda some: claims.ids(BLOCK, some))
    assert told == {transfer: claimed(transfer) for transfer in PAID if transfer not in lost}
    assert (poison.left, poison.failures) == (set(lost), [error, error])


def test_an_outage_is_no_payments_fault() -> None:
    store = WithLost("one", error=Unavailable("S3 is away"))
    poison = Poison(ETHEREUM.id, BLOCK)
    with pytest.raises(Unavailable):
        poison.each(PAID, lambda some: store.get_many([(Deposit, {"id": "one"}) for _ in some]))
    assert (poison.left, poison.failures, store.reads) == (set(), [], 1)


def test_nothing_is_read_twice_where_all_can_be_read() -> None:
    store = WithLost(error=NotKept("none"))
    poison = Poison(ETHEREUM.id, BLOCK)
    assert poison.each(PAID, lambda some: store.get_many([(Deposit, {"id": t.txid}) for t in some])) == dict.fromkeys(PAID)
    assert store.reads == 1
    assert poison.each([], lambda some: store.get_many([])) == {}
