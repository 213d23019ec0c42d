"""What the reader sees of a real node: transfers, failures, other people's contracts, odd tokens, forks."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from chalicelib.chains.abi import TRANSFER_TOPIC, bloom_mask
from chalicelib.chains.evm.parsing import careful_native, careful_tokens
from chalicelib.chains.evm.reader import EvmReader
from chalicelib.domain.catalogue.catalogue import default_networks
from chalicelib.domain.chain import Block
from chalicelib.usecases.ports.accounts import Payment
from chalicelib.usecases.ports.failures import Unavailable
from infra.local import tokens
from infra.local.nodes import Anvil, mine, mined
from infra.local.tokens import call_data, deploy
from tests.nodes.conftest import Chain
from tests.nodes.sending import send, send_native, send_token

pytestmark = pytest.mark.nodes


def test_native_and_both_kinds_of_token_are_seen_and_proven(chain: Chain, stranger: str) -> None:
    height = chain.reader.tip()
    native = send_native(chain.rpc, stranger, 123_456_789_012_345_678)
    usdt = send_token(chain.rpc, chain.usdt, stranger, 25_000_001)
    usdc = send_token(chain.rpc, chain.usdc, stranger, 1)
    seen = chain.to(stranger, height)
    assert [(t.txid, t.contract, t.sender, t.amount) for t in seen] == [
        (native, None, chain.dev, 123_456_789_012_345_678),
        (usdt, chain.usdt, chain.dev, 25_000_001),
        (usdc, chain.usdc, chain.dev, 1),
    ]
    assert seen[0].position == "native"
    assert seen[1].position == "log:0"
    assert chain.proven_to(stranger, height) == seen


def test_blocks_are_in_order_and_end_with_the_chain(chain: Chain) -> None:
    mine(chain.rpc, 5)
    tip = chain.reader.tip()
    blocks = chain.reader.blocks(tip - 3, tip + 10, {chain.usdt})
    assert [block.number for block in blocks] == [tip - 3, tip - 2, tip - 1, tip]
    assert [block.parent_hash for block in blocks[1:]] == [block.hash for block in blocks[:-1]]
    told = chain.rpc.call("eth_getBlockByNumber", [hex(tip), False])
    assert (blocks[-1].hash, blocks[-1].time) == (told["hash"], int(told["timestamp"], 16) * 1000)
    assert chain.reader.block_hash(tip) == told["hash"]
    assert chain.reader.blocks(tip + 1, tip + 3, {chain.usdt}) == []
    assert chain.reader.blocks(tip, tip - 1, {chain.usdt}) == []
    assert chain.reader.block_hash(tip + 1) is None
    headers = chain.reader.headers(tip - 3, tip + 10)
    bare = [replace(b, transfers=[], rewards=()) for b in blocks]
    assert [Block(h.number, h.hash, h.parent_hash, h.time) for h in headers] == bare
    assert chain.reader.headers(tip + 1, tip + 3) == chain.reader.headers(tip, tip - 1) == []


def test_several_transfers_in_one_block_keep_their_log_indexes(chain: Chain, stranger: str) -> None:
    send_token(chain.rpc, chain.usdc, chain.dev, 100)
    height = chain.reader.tip()
    chain.rpc.call("evm_setAutomine", [False])
    try:
        for units in (10, 20, 30):
            tokens.send(chain.rpc, chain.usdc, data=call_data("transfer(address,uint256)", stranger, units), gas=100_000)
        mine(chain.rpc)
    finally:
        chain.rpc.call("evm_setAutomine", [True])
    assert [(t.position, t.amount) for t in chain.proven_to(stranger, height)] == [("log:0", 10), ("log:1", 20), ("log:2", 30)]


def test_failed_native_transfer_is_seen_and_not_proven(chain: Chain) -> None:
    height = chain.reader.tip()
    # The token contract takes no coins: the transaction is in a block, with its value, and failed.
    txid = send(chain.rpc, chain.usdc, value=5, gas=100_000)
    assert [(t.txid, t.amount) for t in chain.to(chain.usdc, height)] == [(txid, 5)]
    assert chain.proven_to(chain.usdc, height) == []
    receipt = chain.reader.receipt(txid)
    assert receipt is not None
    assert not receipt.success
    assert receipt.fee > 0


def test_payment_undone_by_the_contract_that_made_it_is_not_there(chain: Chain, stranger: str) -> None:
    relay = deploy(chain.rpc, "Relay")
    send_token(chain.rpc, chain.usdc, relay, 1000)
    height = chain.reader.tip()
    arguments = (chain.usdc, stranger, 100)
    reverted = send(chain.rpc, relay, call_data("payAndRevert(address,address,uint256)", *arguments), gas=200_000)
    caught = send(chain.rpc, relay, call_data("payAndCatch(address,address,uint256)", *arguments), gas=200_000)
    receipts = [chain.reader.receipt(txid) for txid in (reverted, caught)]
    assert [receipt is not None and receipt.success for receipt in receipts] == [False, True]
    assert chain.to(stranger, height) == []
    paid = send(chain.rpc, relay, call_data("pay(address,address,uint256)", *arguments), gas=200_000)
    assert [(t.txid, t.sender, t.amount) for t in chain.proven_to(stranger, height)] == [(paid, relay, 100)]


def test_zero_transfers_and_contract_creations_are_nothing(chain: Chain, stranger: str) -> None:
    height = chain.reader.tip()
    send_native(chain.rpc, stranger, 0)
    send(chain.rpc, chain.usdc, call_data("transfer(address,uint256)", stranger, 0))
    deploy(chain.rpc, "Relay")
    assert [block.transfers for block in chain.since(height)] == [[], [], []]


def test_only_contracts_that_were_asked_for(chain: Chain, stranger: str) -> None:
    other = deploy(chain.rpc, "StandardToken", "USDT", "Tether USD", 6)
    height = chain.reader.tip()
    send_token(chain.rpc, other, stranger, 10**12)
    assert chain.to(stranger, height) == []
    assert len(chain.to(stranger, height, other)) == 1
    assert [t for block in chain.reader.blocks(height + 1, height + 2, ()) for t in block.transfers] == []


def test_token_that_takes_a_fee_counts_what_arrives(chain: Chain, stranger: str) -> None:
    token = deploy(chain.rpc, "FeeToken", "FEE", "Fee on transfer", 6)
    height = chain.reader.tip()
    send_token(chain.rpc, token, stranger, 1000)
    assert [t.amount for t in chain.proven_to(stranger, height, token)] == [990]
    assert chain.reader.balance(stranger, token) == 990


def test_logs_that_are_no_eip20_transfers_are_left_out(chain: Chain, stranger: str, caplog: pytest.LogCaptureFixture) -> None:
    odd = deploy(chain.rpc, "OddLogs")
    height = chain.reader.tip()
    for call in (
        call_data("collectible(address,uint256)", stranger, 7),
        call_data("sized(address,uint256)", stranger, 0),
        call_data("sized(address,uint256)", stranger, 64),
    ):
        send(chain.rpc, odd, call)
    most = send(chain.rpc, odd, call_data("huge(address,uint256)", stranger, 2**256 - 1))
    with caplog.at_level(logging.WARNING):
        seen = chain.proven_to(stranger, height, odd)
    # Any amount is the chain's word: what sums can not take is set aside when it is recorded.
    assert [(t.txid, t.amount) for t in seen] == [(most, 2**256 - 1)]
    # An EIP-721 log is nobody's mistake; the two sizes are told, again where an answer is asked for twice.
    told = [record.message for record in caplog.records if "left out" in record.message]
    assert set(told) == {"left out: a Transfer log that is not EIP-20's"} and len(told) >= 2


def test_the_quick_way_and_the_careful_way_give_the_same(chain: Chain, stranger: str) -> None:
    height = chain.reader.tip()
    send_native(chain.rpc, stranger, 3)
    send_token(chain.rpc, chain.usdt, stranger, 4)
    send_token(chain.rpc, chain.usdc, stranger, 5)
    contracts = {chain.usdt, chain.usdc}
    seen = 0
    for block in chain.since(height):
        answer = chain.rpc.call("eth_getBlockByNumber", [hex(block.number), True])
        logs = chain.rpc.call("eth_getLogs", [{"blockHash": block.hash, "address": sorted(contracts)}])
        careful = careful_native(answer["transactions"], block.hash) + careful_tokens(logs, block, contracts)
        assert careful == block.transfers
        seen += sum(transfer.recipient == stranger for transfer in careful)
    assert seen == 3, "an empty block between them is no fault: a slow machine has some"


def test_reorganisation_changes_hashes_and_drops_what_was_in_it(chain: Chain, stranger: str) -> None:
    mine(chain.rpc, 3)
    height = chain.reader.tip()
    txid = send_native(chain.rpc, stranger, 777)
    mine(chain.rpc, 2)
    before = chain.since(height)
    assert [t.txid for t in before[0].transfers] == [txid]
    chain.rpc.call("anvil_reorg", [3, []])
    after = chain.since(height)
    assert [block.number for block in after] == [block.number for block in before]
    assert after[0].parent_hash == before[0].parent_hash
    assert all(new.hash != old.hash for new, old in zip(after, before, strict=True))
    assert chain.to(stranger, height) == []
    assert chain.reader.block_hash(height + 1) == after[0].hash
    # What was read of the branch that is gone can not be proven any more; nor is it disproven.
    with pytest.raises(Unavailable):
        chain.reader.proven(before[0], before[0].transfers)
    assert chain.reader.receipt(txid) is None


def test_moved_to_another_block_by_a_reorganisation_is_not_proven_for_the_old_one(chain: Chain, stranger: str) -> None:
    height = chain.reader.tip()
    snapshot = chain.rpc.call("evm_snapshot")
    raw_sender = chain.funded()
    payment = {"from": raw_sender.address, "to": stranger, "value": "0x5", "gas": "0x5208"}
    chain.rpc.call("anvil_impersonateAccount", [raw_sender.address])
    txid = chain.rpc.call("eth_sendTransaction", [payment])
    mined(chain.rpc, txid)
    block = chain.since(height)[-1]
    assert [t.txid for t in block.transfers] == [txid]
    raw = chain.rpc.call("eth_getTransactionByHash", [txid])
    assert chain.rpc.call("evm_revert", [snapshot]) is True
    mine(chain.rpc, 4)
    send_native(chain.rpc, raw_sender.address, 10**18)
    chain.rpc.call("anvil_impersonateAccount", [raw_sender.address])
    fees = {name: raw[name] for name in ("maxFeePerGas", "maxPriorityFeePerGas")}
    assert chain.rpc.call("eth_sendTransaction", [payment | fees | {"nonce": "0x0"}]) == txid
    mined(chain.rpc, txid)
    with pytest.raises(Unavailable):
        chain.reader.proven(block, block.transfers)
    assert [t.txid for t in chain.proven_to(stranger, height)] == [txid]


def test_receipt_fee_is_what_the_sender_lost(chain: Chain, stranger: str) -> None:
    key = chain.funded(wei=10**18)
    unsigned = chain.payer.prepare(Payment(key.address, stranger, None, 1000, nonce=0))
    signed = chain.payer.assemble(unsigned, key.sign(chain.payer.digest(unsigned)))
    chain.payer.broadcast(signed.raw)
    mined(chain.rpc, signed.txid)
    receipt = chain.reader.receipt(signed.txid)
    assert receipt is not None
    assert receipt.success
    assert chain.reader.balance(key.address) == 10**18 - 1000 - receipt.fee
    assert receipt.block_hash == chain.reader.block_hash(receipt.block_number)


def test_receipt_of_nothing(chain: Chain) -> None:
    assert chain.reader.receipt("0x" + "ab" * 32) is None


def test_balances(chain: Chain, stranger: str) -> None:
    assert chain.reader.balance(stranger) == chain.reader.balance(stranger, chain.usdt) == 0
    send_native(chain.rpc, stranger, 10**18 + 1)
    send_token(chain.rpc, chain.usdt, stranger, 42)
    assert chain.reader.balance(stranger) == 10**18 + 1
    assert chain.reader.balance(stranger, chain.usdt) == 42
    assert chain.reader.has_code(chain.usdt) and not chain.reader.has_code(stranger)
    with pytest.raises(Unavailable):
        chain.reader.balance(stranger, stranger)


def test_bloom_bits_are_the_nodes(chain: Chain, stranger: str) -> None:
    """A block with one log: its bloom is the address and the three topics, to the bit."""
    height = chain.reader.tip()
    send(chain.rpc, chain.usdc, call_data("mint(address,uint256)", stranger, 5))
    header = chain.rpc.call("eth_getBlockByNumber", [hex(height + 1), False])
    topics = [TRANSFER_TOPIC, "0x" + "0" * 64, "0x" + "0" * 24 + stranger[2:]]
    expected = 0
    for value in (chain.usdc, *topics):
        expected |= bloom_mask(value)
    assert int(header["logsBloom"], 16) == expected


def test_several_blocks_a_second_and_more_than_one_batch(chain: Chain, stranger: str) -> None:
    height = chain.reader.tip()
    mine(chain.rpc, 60)
    txid = send_token(chain.rpc, chain.usdt, stranger, 9)
    mine(chain.rpc, 60)
    blocks = chain.since(height)
    assert [block.number for block in blocks] == list(range(height + 1, height + 1 + len(blocks)))
    assert len(blocks) == 122
    assert [t.txid for block in blocks for t in block.transfers if t.recipient == stranger] == [txid]


def test_node_of_another_chain_is_not_believed(chain: Chain) -> None:
    bsc = next(network for network in default_networks("live") if network.slug == "bsc")
    with pytest.raises(Unavailable, match="another chain"):
        EvmReader(bsc, chain.rpc).blocks(0, 1, ())
    with pytest.raises(Unavailable, match="another chain"):
        EvmReader(bsc, chain.rpc).headers(0, 1)


def test_node_that_mines_by_itself_and_when_asked() -> None:
    with Anvil(42161, block_time=30) as node:
        reader = EvmReader(next(n for n in default_networks("live") if n.slug == "arbitrum"), node.rpc)
        txid = tokens.send_native(node.rpc, "0x" + "12" * 20, 5)
        assert reader.receipt(txid) is None
        mine(node.rpc)
        receipt = reader.receipt(txid)
        assert receipt is not None
        assert receipt.success
