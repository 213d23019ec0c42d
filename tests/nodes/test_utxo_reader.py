"""What the reader and the mempool see of bitcoin's and litecoin's nodes: payments, first sight, forks, replaced payments."""

from __future__ import annotations

import pytest

from chalicelib.chains.rpc import JsonRpc
from chalicelib.chains.utxo.mempool import UtxoMempool
from chalicelib.chains.utxo.reader import UtxoReader
from chalicelib.domain.chain import Block, Transfer, Unmined
from chalicelib.usecases.ports.failures import Unavailable
from infra.local.nodes import Litecoin, UtxoNode
from tests.nodes.utxo import mempool_of, network_of, reader_of, seen, stranger

pytestmark = pytest.mark.nodes


def to(address: str, waiting: list[Unmined]) -> list[Transfer]:
    return [transfer for each in waiting for transfer in each.transfers if transfer.recipient == address]


def test_payments_are_seen_waiting_and_in_their_block(utxo_node: UtxoNode) -> None:
    address, reader, mempool = stranger(utxo_node), reader_of(utxo_node), mempool_of(utxo_node)
    height = reader.tip()
    txids = [utxo_node.send(address, amount) for amount in (123_456_789, 10_001, 10**8)]
    assert set(txids) <= mempool.waiting()
    waiting = to(address, mempool.transactions([*txids, "ab" * 32]))
    assert sorted((t.txid, t.amount) for t in waiting) == sorted(zip(txids, (123_456_789, 10_001, 10**8), strict=True))
    assert [reader.receipt(txid) for txid in txids] == [None] * 3
    assert mempool.transactions([]) == []
    (hash_,) = utxo_node.mine()
    found = seen(utxo_node, address, height)
    # The same words for the same output, so that nothing is taken for another payment.
    assert sorted(found) == sorted(waiting)
    assert all((t.contract, t.sender, t.position[:4]) == (None, "", "out:") for t in found)
    assert not set(txids) & mempool.waiting()
    assert mempool.transactions(txids) == []
    receipt = reader.receipt(txids[0])
    assert receipt is not None
    assert (receipt.success, receipt.block_number, receipt.block_hash, receipt.fee) == (True, height + 1, hash_, None)
    assert reader.receipt("ab" * 32) is None


def test_blocks_are_in_order_and_end_with_the_chain(utxo_node: UtxoNode) -> None:
    hashes, reader = utxo_node.mine(7), reader_of(utxo_node)
    tip = reader.tip()
    blocks = reader.blocks(tip - 5, tip + 10, ())
    assert [block.number for block in blocks] == list(range(tip - 5, tip + 1))
    assert [block.hash for block in blocks] == hashes[1:]
    assert [block.parent_hash for block in blocks] == hashes[:-1]
    # Coinbases count for nothing.
    assert all(block.transfers == [] for block in blocks)
    assert reader.block_hash(tip) == hashes[-1]
    assert reader.block_hash(tip + 1) is None
    headers = reader.headers(tip - 5, tip + 10)
    assert [
        Block(h.number, h.hash, h.parent_hash, h.time, rewards=b.rewards) for h, b in zip(headers, blocks, strict=True)
    ] == blocks
    assert reader.headers(tip + 1, tip + 3) == reader.headers(tip, tip - 1) == []
    assert reader.blocks(tip + 1, tip + 3, ()) == reader.blocks(tip, tip - 1, ()) == []
    assert utxo_node.rpc.call("getblock", [hashes[-1], 2])["time"] * 1000 == blocks[-1].time
    (first,) = reader.blocks(0, 0, ())
    assert [h.parent_hash for h in reader.headers(0, 0)] == [first.parent_hash] == ["0" * 64]


def test_several_outputs_of_one_transaction(utxo_node: UtxoNode) -> None:
    address, other, height = stranger(utxo_node), stranger(utxo_node), reader_of(utxo_node).tip()
    mine = utxo_node.new_address()
    funding = utxo_node.send(mine, 10**8)
    utxo_node.mine()
    index = next(t.position[4:] for t in seen(utxo_node, mine, height) if t.txid == funding)
    raw = utxo_node.signed([(funding, int(index))], {address: 10**7, other: 2 * 10**7, mine: 10**8 - 3 * 10**7 - 10_000})
    txid = utxo_node.rpc.call("sendrawtransaction", [raw])
    utxo_node.mine()
    found = seen(utxo_node, address, height) + seen(utxo_node, other, height)
    assert [(t.txid, t.amount) for t in found] == [(txid, 10**7), (txid, 2 * 10**7)]
    assert len({t.position for t in found}) == 2


def test_what_a_fork_drops_is_proven_no_more(utxo_node: UtxoNode) -> None:
    address, reader = stranger(utxo_node), reader_of(utxo_node)
    height = reader.tip()
    txid = utxo_node.send(address, 10**8)
    utxo_node.mine(2)
    (before, _) = reader.blocks(height + 1, height + 2, ())
    ours = [t for t in before.transfers if t.recipient == address]
    assert reader.proven(before, ours) == ours
    utxo_node.reorg(2)
    with pytest.raises(Unavailable, match="fell out"):
        reader.proven(before, ours)
    assert reader.block_hash(height + 1) != before.hash
    assert reader.receipt(txid) is None
    assert [t.amount for t in to(address, mempool_of(utxo_node).transactions([txid]))] == [10**8]
    utxo_node.mine()
    assert [t.txid for t in seen(utxo_node, address, height)] == [txid]
    receipt = reader.receipt(txid)
    assert receipt is not None
    assert receipt.block_number == height + 4


def test_a_spend_in_the_other_branch_leaves_nothing(utxo_node: UtxoNode) -> None:
    address, reader = stranger(utxo_node), reader_of(utxo_node)
    height = reader.tip()
    txid = utxo_node.send(address, 10**8)
    other = utxo_node.conflict(txid)
    utxo_node.mine()
    utxo_node.reorg(1, instead=[other])
    assert reader.receipt(txid) is None
    assert seen(utxo_node, address, height) == mempool_of(utxo_node).transactions([txid]) == []
    assert txid not in mempool_of(utxo_node).waiting()


def test_a_replaced_payment_leaves_the_mempool(litecoin: Litecoin) -> None:
    address, mempool = stranger(litecoin), mempool_of(litecoin)
    old = litecoin.send(address, 10**8)
    (first,) = mempool.transactions([old])
    assert first.replaceable
    assert mempool.ousted({old: first.spends}) == set()  # what spends them is that one itself
    new = litecoin.bump_fee(old)
    assert mempool.ousted({old: first.spends, new: first.spends}) == {old}
    assert mempool.waiting() >= {new}
    assert old not in mempool.waiting()
    assert [(t.txid, t.amount) for t in to(address, mempool.transactions([old, new]))] == [(new, 10**8)]
    litecoin.mine()
    assert mempool.ousted({old: first.spends}) == {old}
    free = litecoin.rpc.call("listunspent")[0]
    assert mempool.ousted({old: [f"{free['txid']}:{free['vout']}"]}) == mempool.ousted({}) == set()


def test_every_kind_of_address_is_seen_in_its_public_spelling(litecoin: Litecoin) -> None:
    reader = reader_of(litecoin)
    height = reader.tip()
    addresses = [litecoin.rpc.call("getnewaddress", ["", kind]) for kind in ("legacy", "p2sh-segwit", "bech32")]
    for address in addresses:
        litecoin.send(address, 10**6)
    litecoin.mine()
    assert [[t.amount for t in seen(litecoin, address, height)] for address in addresses] == [[10**6]] * 3


def test_a_node_of_another_chain_is_not_believed(utxo_node: UtxoNode) -> None:
    network = network_of(utxo_node)
    with pytest.raises(Unavailable, match="another chain"):
        UtxoReader(network, utxo_node.rpc).blocks(1, 1, ())
    with pytest.raises(Unavailable, match="another chain"):
        UtxoMempool(network, utxo_node.rpc).waiting()
    with pytest.raises(Unavailable, match="no balances"):
        reader_of(utxo_node).balance(stranger(utxo_node))
    nowhere = UtxoReader(network, JsonRpc("http://127.0.0.1:1"), "regtest")
    with pytest.raises(Unavailable):
        nowhere.tip()
