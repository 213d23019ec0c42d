"""What an attempt has to prove whose bytes a point-in-time restore has forgotten, before anything is booked by it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chalicelib.chains.addresses import Rules
from chalicelib.domain.catalogue.catalogue import default_networks
from chalicelib.domain.ids import AssetId, MerchantId, tenant_id
from chalicelib.domain.transactions.outgoing import FORGOTTEN
from chalicelib.domain.transactions.sightings import Seen, Sighting, nonce_subject, txid_subject
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.withdrawals.withdrawals import NonceUse, PaymentOrder
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.transactions.forgotten import unlike_met
from tests.support.memory_store import MemoryStore

NETWORKS = {network.slug: network for network in default_networks("live")}
ETHEREUM, TRON = NETWORKS["ethereum"], NETWORKS["tron"]
HOT, OTHER = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
MINE, THEIRS = "0x" + "11" * 32, "0x" + "77" * 32
SHOP, ETH = tenant_id(MerchantId("mch_shop"), "live"), AssetId("live:ethereum:eth")
ORDER = PaymentOrder(
    "ord_1", ETHEREUM.id, HOT, 5, "wd_1", SHOP, ETH, None, OTHER, 40, "", 0, raw=FORGOTTEN, txid=MINE, state="signed"
)
MOVE = Move(
    "ord_1", ETHEREUM.id, "topup", ETH, None, HOT, None, OTHER, 40, "owner", 0, 0, "signed", nonce=5, raw=FORGOTTEN, txid=MINE
)


def store(*allotted: NonceUse) -> MemoryStore:
    """A block held `MINE` with the nonce 5 of the hot wallet, and `THEIRS` with the nonce 6."""
    kept = MemoryStore()
    for nonce, txid in ((5, MINE), (6, THEIRS)):
        kept.commit([Save(Sighting(ETHEREUM.id, nonce_subject(HOT.lower(), nonce), (Seen(txid, 9, "hash"),), version=1))])
    for use in allotted:
        kept.commit([Save(use)])
    return kept


def found(kept: MemoryStore, record: PaymentOrder | Move) -> list[str]:
    newest = record.newest
    assert newest is not None
    return unlike_met(ETHEREUM, Rules(), kept, record, HOT, newest)


@pytest.mark.parametrize("record", [ORDER, MOVE])
def test_the_blocks_have_to_have_it_with_the_nonce_of_its_record(record: PaymentOrder | Move) -> None:
    assert found(store(), record) == []
    assert found(store(NonceUse("ord_1", ETHEREUM.id, HOT, 5)), record) == []
    assert found(store(), replace(record, txid=THEIRS)) == ["forgotten id"]
    assert found(store(), replace(record, nonce=6)) == ["forgotten id"]
    assert found(MemoryStore(), record) == ["forgotten id"]


@pytest.mark.parametrize("record", [ORDER, MOVE])
def test_nobody_claims_the_nonce_and_the_transaction_of_another_record(record: PaymentOrder | Move) -> None:
    anothers = replace(record, txid=THEIRS, nonce=6)
    assert found(store(NonceUse("ord_1", ETHEREUM.id, HOT, 5)), anothers) == ["allotted nonce"]
    assert found(store(NonceUse("ord_1", ETHEREUM.id, OTHER, 6)), anothers) == ["allotted nonce"]


def test_bytes_that_are_known_prove_it_themselves() -> None:
    assert found(MemoryStore(), replace(ORDER, raw="00", txid=THEIRS)) == []


def test_without_nonces_the_blocks_have_to_have_its_id() -> None:
    wallet, payee = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8", "TLsV52sRDL79HXGGm9yzwKibb6BeruhUzy"
    paid = replace(ORDER, network=TRON.id, wallet=wallet, recipient=payee, nonce=0, txid="11" * 32)
    kept, newest = MemoryStore(), paid.newest
    assert newest is not None
    assert unlike_met(TRON, Rules(), kept, paid, wallet, newest) == ["forgotten id"]
    kept.commit([Save(Sighting(TRON.id, txid_subject("11" * 32), (Seen("11" * 32, 9, "hash"),), version=1))])
    assert unlike_met(TRON, Rules(), kept, paid, wallet, newest) == []
