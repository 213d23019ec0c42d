"""What blocks say of who sent their transactions, and what these spend, in every family's form (money rule 13)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.chains.answers import Garbled
from chalicelib.chains.evm import columns
from chalicelib.chains.evm.parsing import careful_senders, parse_block
from chalicelib.chains.tron import parsing as tron
from chalicelib.chains.utxo.parsing import spent_by
from chalicelib.domain.chain import EVERYBODY, Block, Sent

FIRST, SECOND, HOT, OTHER = "0x" + "01" * 32, "0x" + "02" * 32, "0x" + "aa" * 20, "0x" + "bb" * 20


def evm(**more: Any) -> dict[str, Any]:
    return {"hash": FIRST, "from": HOT, "to": OTHER, "value": "0x0", "nonce": "0x7", "blockHash": "0x" + "0b" * 32} | more


def test_evm_tells_senders_and_nonces_of_calls_without_value_too() -> None:
    rows = [evm(), evm(hash=SECOND, nonce="0x8", to=None)]
    quick = columns.senders(rows)
    assert quick is not None
    assert list(quick.by({HOT})) == list(careful_senders(rows).by({HOT})) == [(FIRST, HOT, 7), (SECOND, HOT, 8)]
    assert list(quick.by({OTHER})) == []
    header = {"number": "0x5", "hash": "0x" + "0b" * 32, "parentHash": "0x" + "0a" * 32, "timestamp": "0x1", "transactions": rows}
    assert list(parse_block(header, 5).sent.by({HOT})) == [(FIRST, HOT, 7), (SECOND, HOT, 8)]
    assert columns.senders([]) == careful_senders([]) == Sent()


def test_evm_rows_of_another_spelling_go_the_careful_way() -> None:
    spelled = evm(**{"from": "0x" + "AA" * 20})
    assert columns.senders([spelled]) is None
    assert list(careful_senders([spelled]).by({HOT})) == [(FIRST, HOT, 7)]
    for wrong in ({"nonce": None}, {"nonce": "seven"}):
        assert columns.senders([evm(**wrong)]) is None
        assert list(careful_senders([evm(**wrong)]).by({HOT})) == [(FIRST, HOT, None)]
    assert careful_senders([evm(**{"from": None}), evm(hash="0x1")]) == Sent()


def test_ids_in_capitals_are_the_same_ids() -> None:
    """Else our own transaction would look like another's on its nonce or coin, or on Tron like one that no block has."""
    shouted = "0x" + "AB" * 32
    assert columns.senders([evm(hash=shouted)]) is None
    assert list(careful_senders([evm(hash=shouted)]).by({HOT})) == [("0x" + "ab" * 32, HOT, 7)]
    row = {"txID": "AB" * 32, "raw_data": {"contract": [{"parameter": {"value": {"owner_address": "THot"}}}]}}
    assert list(tron.senders([row]).by({"THot"})) == [("ab" * 32, "THot", None)]
    assert spent_by([{"txid": "AB" * 32, "vin": [{"txid": "CD" * 32, "vout": 1}]}]) == {"cd" * 32 + ":1": "ab" * 32}


def test_tron_tells_owners_of_every_kind_of_contract() -> None:
    def row(**value: Any) -> dict[str, Any]:
        return {"txID": "01" * 32, "raw_data": {"contract": [{"parameter": {"value": value}}]}}

    assert list(tron.senders([row(owner_address="THot"), row()]).by({"THot"})) == [("01" * 32, "THot", None)]


STRANGE: list[Any] = [
    {},
    {"raw_data": {}},
    {"raw_data": {"contract": []}},
    {"raw_data": {"contract": [{"type": "NewContract", "parameter": {"type_url": "type.googleapis.com/protocol.NewContract"}}]}},
    {"raw_data": {"contract": [{"type": "NewContract", "parameter": {"value": None}}]}},
]


@pytest.mark.parametrize("strange", STRANGE)
def test_a_strange_transaction_on_tron_stops_no_network_and_may_be_anybodys(strange: dict[str, Any]) -> None:
    """java-tron leaves out a contract that it can not unpack. That no block has a transaction of ours is what pays it anew: so one
    that the node does not tell the sender of is noted as if it were ours."""
    plain = {"txID": "01" * 32, "raw_data": {"contract": [{"parameter": {"value": {"owner_address": "THot"}}}]}}
    told = tron.senders([plain, {"txID": "02" * 32, **strange}])
    assert list(told.by({"THot"})) == [("01" * 32, "THot", None), ("02" * 32, EVERYBODY, None)]
    assert list(told.by(set())) == [("02" * 32, EVERYBODY, None)]


def test_a_node_that_tells_few_contracts_of_a_block_is_of_no_use() -> None:
    with pytest.raises(Garbled, match="51 transactions of a block lack their contract"):
        tron.senders([{"txID": f"{n:064x}"} for n in range(51)])
    with pytest.raises(Garbled, match="lacks its id"):
        tron.senders([{"raw_data": {}}])


@pytest.mark.parametrize("strange", STRANGE)
def test_payments_beside_a_strange_transaction_are_found(strange: dict[str, Any]) -> None:
    block = Block(5, "0b" * 32, "0a" * 32, 1, [])
    value = {"owner_address": "T" + "a" * 33, "to_address": "T" + "b" * 33, "amount": 7}
    first = {
        "txID": "01" * 32,
        "ret": [{"contractRet": "SUCCESS"}],
        "raw_data": {"contract": [{"type": "TransferContract", "parameter": {"value": value}}]},
    }
    second = {"txID": "02" * 32, "ret": [{"contractRet": "SUCCESS"}], **strange}
    infos = [{"id": each["txID"], "blockNumber": 5} for each in (first, second)]
    found = tron.transfers_in(block, [first, second], infos, {})
    assert [(t.txid, t.recipient, t.amount) for t in found] == [("01" * 32, "T" + "b" * 33, 7)]
    # A payment of TRX that is not told whole is no strange transaction: the node hides it.
    hidden = {**second, "raw_data": {"contract": [{"type": "TransferContract", "parameter": {}}]}}
    with pytest.raises(Garbled, match="lacks a field"):
        tron.transfers_in(block, [first, hidden], infos, {})


def test_coins_tell_which_transaction_spends_an_output() -> None:
    rows = [
        {"txid": "aa", "vin": [{"coinbase": "00"}]},
        {"txid": "bb", "vin": [{"txid": "cc", "vout": 0}, {"txid": "cc", "vout": 3}, {"ismweb": True, "output_id": "00"}]},
    ]
    assert spent_by(rows) == {"cc:0": "bb", "cc:3": "bb"}
    for wrong in ([{"txid": "aa"}], [{"txid": "aa", "vin": [{"txid": "cc"}]}], [{"txid": "aa", "vin": ["cc:0"]}]):
        with pytest.raises(Garbled):
            spent_by(wrong)
