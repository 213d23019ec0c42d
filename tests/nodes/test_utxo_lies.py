"""A node that lies about one payment, garbles, lags or is busy: nothing is credited that is not in the chain, nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from chalicelib.chains.rpc import JsonRpc, Request, RpcError
from chalicelib.chains.utxo.mempool import UtxoMempool
from chalicelib.chains.utxo.payer import UtxoPayer
from chalicelib.chains.utxo.reader import UtxoReader
from chalicelib.usecases.ports.failures import Unavailable
from infra.local.nodes import Litecoin, UtxoNode
from tests.nodes.utxo import network_of, reader_of, stranger

pytestmark = pytest.mark.nodes


class Liar:
    """In front of a real node: `lie` changes what one method answers, or raises in its place."""

    def __init__(self, rpc: JsonRpc, method: str, lie: Callable[[Any], Any]) -> None:
        self._rpc, self._method, self._lie = rpc, method, lie

    def call(self, method: str, params: Sequence[Any] = ()) -> Any:
        answer = self._rpc.call(method, params)
        return self._lie(answer) if method == self._method else answer

    def batch(self, requests: Sequence[Request]) -> list[Any]:
        return [self.call(*request) for request in requests]


def lying(node: UtxoNode, method: str, lie: Callable[[Any], Any]) -> UtxoReader:
    return UtxoReader(network_of(node), Liar(node.rpc, method, lie), "regtest")  # type: ignore[arg-type]


def raising(error: Exception) -> Callable[[Any], Any]:
    def raise_it(_: Any) -> Any:
        raise error

    return raise_it


def test_a_payment_that_is_not_in_its_transaction_is_not_proven(utxo_node: UtxoNode) -> None:
    address, other = stranger(utxo_node), stranger(utxo_node)
    txid = utxo_node.send(address, 10**7)
    utxo_node.mine()
    reader = reader_of(utxo_node)
    tip = reader.tip()
    (honest,) = reader.blocks(tip, tip, ())
    (ours,) = [t for t in honest.transfers if t.recipient == address]
    assert reader.proven(honest, [ours]) == [ours]

    def change(field: str, value: Any) -> Callable[[Any], Any]:
        def lie(block: Any) -> Any:
            for transaction in block["tx"]:
                for output in transaction["vout"]:
                    script = output["scriptPubKey"]
                    if address in (script.get("address"), *script.get("addresses", [])):
                        if field == "address":
                            script["address"] = value
                        else:
                            output[field] = value
            return block

        return lie

    for field, value in (("value", 1.1), ("value", 0.09999999), ("n", 5), ("address", other)):
        liar = lying(utxo_node, "getblock", change(field, value))
        (block,) = liar.blocks(tip, tip, ())
        told = [t for t in block.transfers if t not in honest.transfers]
        assert told, field
        with pytest.raises(Unavailable):
            liar.proven(block, told)
    # Nor where the bytes are another transaction's, or none.
    for lie in (lambda raw: raw[:-2] + "11", lambda raw: raw[:40], lambda _: None, lambda _: "x", raising(RpcError(-5, "No such"))):
        with pytest.raises(Unavailable):
            lying(utxo_node, "getrawtransaction", lie).proven(honest, [ours])
    receipt = reader.receipt(txid)
    assert receipt is not None
    assert receipt.block_hash == honest.hash


@pytest.mark.parametrize(
    ("method", "lie"),
    [
        ("getblock", lambda block: {**block, "tx": block["tx"][:-1], "nTx": len(block["tx"])}),
        ("getblock", lambda block: {**block, "tx": block["tx"] * 2, "nTx": 2 * len(block["tx"])}),
        ("getblock", lambda block: {**block, "tx": [{**tx, "txid": "ab" * 32} for tx in block["tx"]]}),
        ("getblock", lambda block: {**block, "time": block["time"] + 1}),
        ("getblock", lambda block: {**block, "height": block["height"] + 1}),
        ("getblock", lambda block: {**block, "hash": "00" * 32}),
        ("getblock", lambda block: {**block, "previousblockhash": "00" * 32}),
        ("getblock", lambda block: {**block, "confirmations": -1}),
        ("getblock", lambda block: {**block, "tx": [tx["txid"] for tx in block["tx"]]}),
        ("getblock", lambda _: None),
        ("getblockhash", lambda _: "00" * 32),
        ("getblockhash", lambda _: None),
        ("getblockcount", lambda _: "5"),
        ("getblockcount", lambda _: -1),
        ("getblock", raising(RpcError(-1, "JSON value is not an object"))),
    ],
)
def test_garbled_blocks_are_no_blocks(litecoin: Litecoin, method: str, lie: Callable[[Any], Any]) -> None:
    tip = litecoin.height
    with pytest.raises(Unavailable):
        lying(litecoin, method, lie).blocks(tip - 2, tip, ())


def test_a_node_that_lags_shows_less_and_nothing_wrong(litecoin: Litecoin) -> None:
    tip = litecoin.height
    behind = lying(litecoin, "getblockcount", lambda height: height - 2)
    assert behind.tip() == tip - 2
    assert [block.number for block in behind.blocks(tip - 3, tip, ())] == [tip - 3, tip - 2]


def test_receipts_are_of_the_chain_or_none(litecoin: Litecoin) -> None:
    txid = litecoin.send(stranger(litecoin), 10**7)
    litecoin.mine()
    for method, lie in (
        ("getrawtransaction", lambda found: {**found, "txid": "ab" * 32}),
        ("getrawtransaction", lambda found: {**found, "blockhash": "x"}),
        ("getblockheader", lambda header: {**header, "hash": "00" * 32}),
        ("getblockheader", lambda header: {**header, "height": None}),
        (
            "getrawtransaction",
            raising(
                RpcError(-5, "No such mempool transaction. Use -txindex or provide a block hash to enable blockchain queries.")
            ),
        ),
    ):
        with pytest.raises(Unavailable):
            lying(litecoin, method, lie).receipt(txid)
    # Whoever names another block of the chain than the one at that height is behind, or lies: it is in no block then.
    assert lying(litecoin, "getblockheader", lambda header: {**header, "height": header["height"] - 1}).receipt(txid) is None


def test_what_the_mempool_and_the_outputs_are_not(litecoin: Litecoin) -> None:
    network = network_of(litecoin)
    txid = litecoin.send(stranger(litecoin), 10**7)
    for method, lie in (
        ("getrawmempool", lambda _: {"txid": {}}),
        ("getrawmempool", lambda _: [1]),
        ("getrawtransaction", lambda found: {**found, "txid": "ab" * 32}),
        ("getrawtransaction", lambda found: {**found, "vout": [{}]}),
        ("getrawtransaction", lambda found: {**found, "vin": [{"txid": "ab" * 32, "sequence": 0}]}),
        ("getrawtransaction", lambda found: {**found, "vin": [{**found["vin"][0], "txid": "ab"}]}),
        ("gettxout", raising(RpcError(-28, "Loading block index..."))),
        ("getrawtransaction", raising(RpcError(-28, "Loading block index..."))),
    ):
        mempool = UtxoMempool(network, Liar(litecoin.rpc, method, lie), "regtest")  # type: ignore[arg-type]
        asked = {
            "getrawmempool": mempool.waiting,
            "getrawtransaction": partial(mempool.transactions, [txid]),
            "gettxout": partial(mempool.ousted, {txid: ["ab" * 32 + ":0"]}),
        }
        with pytest.raises(Unavailable):
            asked[method]()
    litecoin.mine()
    for method, lie in (
        ("gettxout", lambda found: {**found, "bestblock": "00" * 32}),
        ("gettxout", lambda found: {**found, "value": "1"}),
        ("gettxout", lambda found: {**found, "scriptPubKey": {"hex": "6a"}}),
        ("gettxout", lambda found: {**found, "confirmations": None}),
        ("getblockchaininfo", lambda _: None),
    ):
        payer = UtxoPayer(network, Liar(litecoin.rpc, method, lie), "regtest")  # type: ignore[arg-type]
        with pytest.raises(Unavailable):
            payer.unspent([f"{txid}:0", f"{txid}:1"])
