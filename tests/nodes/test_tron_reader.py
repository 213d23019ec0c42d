"""Scanning Tron, against the strict node, and against one that lies."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.chains.tron.reader import MAINNET, TronReader
from chalicelib.chains.tron.values import hex_address
from chalicelib.domain.chain import NOBODY, Block, Transfer
from chalicelib.usecases.ports.failures import Contradiction, Unavailable
from infra.local.tron.tokens import selector
from tests.support.tron_chain import TRX, USDT, TronChain, stranger

pytestmark = pytest.mark.nodes


def lying(tron: TronChain, path: str, change: Callable[[Any], Any]) -> TronReader:
    return TronReader(tron.network, tron.lying(path, change), None)


def test_trx_and_tokens_are_seen_and_proven(tron: TronChain):
    height, to = tron.reader.tip(), stranger()
    native = tron.node.faucet(to, "1.5")
    token = tron.node.faucet(to, "2", "USDT")
    found = tron.to(to, height)
    dev = found[0].sender
    assert found == [Transfer(native, "native", None, dev, to, 1_500_000), Transfer(token, "log:0", USDT, dev, to, 2_000_000)]
    assert tron.proven_to(to, height) == found
    assert tron.reader.balance(to) == 1_500_000
    assert tron.reader.balance(to, USDT) == 2_000_000
    assert tron.reader.has_code(USDT) and not tron.reader.has_code(to)
    assert tron.reader.balance(stranger()) == 0


def test_blocks_link_and_end_with_the_chain(tron: TronChain):
    tip = tron.node.mine(12)
    blocks = tron.reader.blocks(tip - 11, tip + 50, set())
    assert [block.number for block in blocks] == list(range(tip - 11, tip + 1))
    assert [after.parent_hash for after in blocks[1:]] == [before.hash for before in blocks[:-1]]
    assert tron.reader.tip() == tip
    assert tron.reader.block_hash(tip) == blocks[-1].hash
    assert tron.reader.block_hash(tip + 1) is None
    assert tron.reader.blocks(tip + 1, tip + 1, set()) == []
    headers = tron.reader.headers(tip - 11, tip + 50)
    assert [Block(h.number, h.hash, h.parent_hash, h.time, []) for h in headers] == [
        replace(b, transfers=[], sent=NOBODY) for b in blocks
    ]
    assert tron.reader.headers(tip + 1, tip + 1) == tron.reader.headers(tip, tip - 1) == []
    (genesis,) = tron.reader.blocks(0, 0, set())
    assert (genesis.hash, genesis.transfers) == (tron.reader.block_hash(0), [])


def test_another_chain_is_not_read(tron: TronChain):
    reader = TronReader(tron.network, tron.http, MAINNET)
    with pytest.raises(Unavailable, match="another chain"):
        reader.blocks(1, 1, set())
    with pytest.raises(Unavailable, match="another chain"):
        reader.headers(1, 1)
    ours = tron.reader.block_hash(0)
    assert TronReader(tron.network, tron.http, ours).blocks(1, 1, set())


def test_tokens_that_nobody_has_registered_count_nothing(tron: TronChain):
    other, to, height = tron.node.token(symbol="OTH"), stranger(), tron.reader.tip()
    tron.node.faucet(to, "3", other)
    assert tron.to(to, height) == []
    assert [t.contract for t in tron.to(to, height, other)] == [other]


def test_fee_on_transfer_credits_what_arrived(tron: TronChain):
    taxed, to, height = tron.node.token(symbol="TAX", fee_basis_points=100), stranger(), tron.reader.tip()
    tron.node.faucet(to, "100", taxed)
    (arrived,) = tron.proven_to(to, height, taxed)
    assert arrived.amount == 99_000_000 == tron.reader.balance(to, taxed)


def test_a_reverted_transfer_counts_nothing(tron: TronChain):
    """Blacklisted between the simulation and the block."""
    key, to = tron.funded(usdt=5), stranger()
    _, signed = tron.signed(key, tron.payment(key, to, 5 * TRX, USDT))
    height = tron.reader.tip()
    tron.node.call("dev/blacklist", contract=USDT, address=key.address)
    tron.payer.broadcast(signed.raw)
    tron.node.mine()
    receipt = tron.reader.receipt(signed.txid)
    assert receipt is not None
    assert (receipt.success, receipt.moved, receipt.fee > 0) == (False, (), True)
    assert tron.to(to, height) == []
    (block,) = tron.reader.blocks(receipt.block_number, receipt.block_number, {USDT})
    assert tron.reader.proven(block, [Transfer(signed.txid, "log:0", USDT, key.address, to, 5 * TRX)]) == []


def internal(tron: TronChain, **changed: Any) -> Callable[[Any], Any]:
    """The infos of a block with an internal transaction added to each call that has a log."""

    def change(infos: Any) -> Any:
        infos = deepcopy(infos)
        for info in infos if isinstance(infos, list) else [infos]:
            if "log" in info:
                inner = {
                    "hash": "0" * 64, "caller_address": "41" + "11" * 20, "transferTo_address": "41" + "22" * 20,
                    "callValueInfo": [{"callValue": 7}], "note": b"call".hex(),
                }  # fmt: skip
                info["internal_transactions"] = [inner | changed]
        return infos

    return change


@pytest.mark.parametrize(
    ("changed", "counts"),
    [
        ({}, True),
        ({"note": b"suicide".hex()}, True),
        ({"rejected": True}, False),
        ({"callValueInfo": [{}]}, False),
        ({"callValueInfo": [{"callValue": 7, "tokenId": "1000001"}]}, False),
        ({"note": b"delegateResourceOfEnergy".hex()}, False),
        ({"note": b"freezeBalanceV2ForEnergy".hex()}, False),
    ],
)
def test_which_internal_transactions_move_trx(tron: TronChain, changed, counts):
    """A contract that delegates energy or freezes also names an amount, and a receiver who gets nothing of it."""
    tron.node.faucet(stranger(), "1", "USDT")
    tip = tron.reader.tip()
    reader = lying(tron, "wallet/gettransactioninfobyblocknum", internal(tron, **changed))
    (block,) = reader.blocks(tip, tip, set())
    assert [(t.position, t.contract, t.amount) for t in block.transfers] == ([("int:0", None, 7)] if counts else [])
    prover = lying(tron, "wallet/gettransactioninfobyid", internal(tron, **changed))
    assert prover.proven(block, block.transfers) == block.transfers


def test_trx_from_a_contract_is_a_deposit(tron: TronChain):
    passer, to = tron.node.call("dev/passer")["contract"], stranger()
    key, height = tron.funded(), tron.reader.tip()
    call = (selector("pay(address)") + bytes(12)).hex() + hex_address(to)[2:]
    request = {"owner_address": hex_address(key.address), "contract_address": hex_address(passer), "data": call}
    built = tron.node.call("wallet/triggersmartcontract", **request, call_value=3 * TRX, fee_limit=100 * TRX)["transaction"]
    sent = tron.node.call("wallet/broadcasttransaction", **built, signature=[key.raw_signature(bytes.fromhex(built["txID"]))])
    assert sent["result"]
    tron.node.mine()
    found = tron.proven_to(to, height)
    assert [(t.txid, t.position, t.sender, t.amount) for t in found] == [(sent["txid"], "int:0", passer, 3 * TRX)]


INFOS, BLOCKS = "wallet/gettransactioninfobyblocknum", "wallet/getblockbylimitnext"
LIES = [
    ("an info is missing", INFOS, lambda infos: infos[:-1]),
    ("no infos", INFOS, lambda infos: []),
    ("one told twice", INFOS, lambda infos: infos[:-1] + infos[:1] if len(infos) > 1 else infos * 2),
    ("of another transaction", INFOS, lambda infos: [{**i, "id": "0" * 64} for i in infos]),
    ("of another block", INFOS, lambda infos: [{**i, "blockNumber": 1} for i in infos]),
    ("no list", INFOS, lambda infos: "none"),
    ("a hidden transaction", BLOCKS,
     lambda answer: {"block": [{**b, "transactions": []} for b in answer["block"]]}),
    ("another block", BLOCKS, lambda answer: {"block": [{**b, "blockID": "0" * 64} for b in answer["block"]]}),
    ("a wrong amount", BLOCKS, lambda answer: spoiled(answer, amount="5")),
    ("a negative amount", BLOCKS, lambda answer: spoiled(answer, amount=-5)),
    ("no address", BLOCKS, lambda answer: spoiled(answer, to_address="41")),
    ("nothing", BLOCKS, lambda answer: []),
]  # fmt: skip


def spoiled(answer: Any, **changed: Any) -> Any:
    answer = deepcopy(answer)
    for block in answer["block"]:
        for transaction in block["transactions"]:
            transaction["raw_data"]["contract"][0]["parameter"]["value"] |= changed
    return answer


@pytest.mark.parametrize(("path", "change"), [lie[1:] for lie in LIES], ids=[lie[0] for lie in LIES])
def test_a_block_that_contradicts_itself_is_not_passed(tron: TronChain, path, change):
    tron.node.faucet(stranger(), "1")
    tip = tron.reader.tip()
    with pytest.raises(Unavailable):
        lying(tron, path, change).blocks(tip, tip, {USDT})


def test_a_forged_amount_is_not_proven(tron: TronChain, caplog: pytest.LogCaptureFixture):
    """The transaction's own bytes say what it moved; their hash is its id."""
    to = stranger()
    tron.node.faucet(to, "1")
    tip = tron.reader.tip()
    reader = lying(tron, "wallet/getblockbylimitnext", lambda answer: spoiled(answer, amount=10**12))
    (block,) = reader.blocks(tip, tip, set())
    assert block.transfers[0].amount == 10**12
    with pytest.raises(Contradiction):
        reader.proven(block, block.transfers)
    assert "did not do what the block tells" in caplog.text
    forged = lying(
        tron, "wallet/gettransactionbyid", lambda t: {**t, "raw_data_hex": t["raw_data_hex"].replace("c0843d", "c0843e")}
    )
    with pytest.raises(Unavailable, match="bytes"):
        forged.proven(block, block.transfers)


def test_what_the_infos_do_not_say_is_not_proven(tron: TronChain):
    to, height = stranger(), tron.reader.tip()
    tron.node.faucet(to, "1")
    tron.node.faucet(to, "1", "USDT")
    blocks = tron.since(height)
    for block in blocks:
        assert block.transfers
        for path, change in (
            ("wallet/gettransactioninfobyid", lambda info: {}),
            ("wallet/gettransactioninfobyid", lambda info: {**info, "blockNumber": 1}),
            ("wallet/gettransactioninfobyid", lambda info: {**info, "blockTimeStamp": 1}),
            ("wallet/getblock", lambda answer: {}),
        ):
            with pytest.raises(Unavailable):
                lying(tron, path, change).proven(block, block.transfers)
        failed = lying(tron, "wallet/gettransactioninfobyid", lambda info: {**info, "result": "FAILED"})
        assert failed.proven(block, block.transfers) == []
        (transfer,) = block.transfers
        for wrong in (replace_(transfer, amount=transfer.amount + 1), replace_(transfer, recipient=stranger())):
            with pytest.raises(Contradiction):
                tron.reader.proven(block, [wrong])
        with pytest.raises(Unavailable, match="fell out"):
            tron.reader.proven(replace(block, hash=block.hash[:16] + "0" * 48), block.transfers)


def replace_(transfer: Transfer, **changed: Any) -> Transfer:
    return transfer._replace(**changed)


def test_receipts(tron: TronChain):
    to = stranger()
    key = tron.funded(trx=50, usdt=5)
    paid = tron.pay(key, to, TRX)
    assert (paid.success, paid.moved, paid.fee) == (True, (), 1_100_000)
    assert paid.block_hash == tron.reader.block_hash(paid.block_number)
    token = tron.pay(key, to, TRX, USDT)
    assert (token.success, token.moved) == (True, ((USDT, key.address, to),))
    assert tron.reader.receipt("0" * 64) is None
    with pytest.raises(Unavailable, match="another transaction"):
        lying(tron, "wallet/gettransactioninfobyid", lambda info: {**info, "id": "1" * 64}).receipt(token.txid)


def test_a_reorganisation_changes_the_hashes(tron: TronChain):
    to, height = stranger(), tron.node.mine()
    tron.node.faucet(to, "1")
    before = tron.reader.blocks(height + 1, height + 1, set())
    tron.node.reorg(1)
    after = tron.reader.blocks(height + 1, height + 1, set())
    assert before[0].hash != after[0].hash
    assert (len(before[0].transfers), after[0].transfers) == (1, [])
    with pytest.raises(Unavailable):
        tron.reader.proven(before[0], before[0].transfers)


def test_balances_of_what_is_no_token(tron: TronChain):
    with pytest.raises(Unavailable):
        tron.reader.balance(stranger(), stranger())
