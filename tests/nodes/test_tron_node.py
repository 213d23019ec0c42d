"""The Tron test node: payments, resources, stakes, forks. What it refuses is in test_tron_node_refusals.py."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from urllib3.exceptions import HTTPError

from infra.local.tron.process import Http, TronNode
from tests.support.tron import TRX, USDT, Customer, head, info, word

pytestmark = pytest.mark.nodes


@pytest.fixture
def alice(tron_node: TronNode) -> Customer:
    """Has 1,000 TRX and 500 USDT."""
    customer = Customer(tron_node)
    tron_node.faucet(customer.address, 1000)
    tron_node.faucet(customer.address, 500, "USDT")
    return customer


@pytest.fixture
def bob(tron_node: TronNode) -> Customer:
    """Nobody has paid him yet."""
    return Customer(tron_node)


@pytest.fixture
def own_node() -> Iterator[TronNode]:
    with TronNode() as node:
        yield node


def test_a_new_account_costs_its_sender(alice: Customer, bob: Customer) -> None:
    assert bob.account == {} and bob.resources == {}
    unsigned = alice.unsigned(bob.address, 5 * TRX)
    paid = alice.pay(unsigned)
    # 1 TRX for the account, 0.1 TRX instead of bandwidth, as on mainnet.
    assert paid["fee"] == 1_100_000 and paid["receipt"] == {"net_fee": 100_000} and "result" not in paid
    assert (alice.balance, bob.balance) == (1000 * TRX - 5 * TRX - 1_100_000, 5 * TRX)
    assert bob.account["create_time"] == paid["blockTimeStamp"]


def test_bandwidth_is_free_until_it_is_used_up(alice: Customer, bob: Customer, tron_node: TronNode) -> None:
    tron_node.faucet(bob.address, 1)
    fees = [alice.pay(alice.unsigned(bob.address, TRX + nonce))["receipt"] for nonce in range(3)]
    size = fees[0]["net_usage"]
    assert fees == [{"net_usage": size}, {"net_usage": size}, {"net_fee": size * 1000}]
    assert alice.resources["freeNetUsed"] in (2 * size, 2 * size - 1)


def test_a_token_payment_as_on_mainnet(alice: Customer, bob: Customer) -> None:
    first = alice.pay(alice.payment(bob.address, 7_000_000))
    assert first["receipt"] == {"energy_fee": 13_028_500, "energy_usage_total": 130_285, "net_usage": 345, "result": "SUCCESS"}
    assert first["fee"] == 13_028_500
    # Tether's contract says false although it has paid: only the receipt and the log decide.
    assert first["contractResult"] == ["0" * 64]
    [log] = first["log"]
    assert log["address"] == "a614f803b6fd780986a42c78ec9c7f77e6ded13c"
    assert log["topics"] == [
        "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef", word(alice.address), word(bob.address)
    ]  # fmt: skip
    assert log["data"] == word(7_000_000)
    second = alice.pay(alice.payment(bob.address, 1))
    assert second["receipt"]["energy_usage_total"] == 64_285
    assert (alice.tokens(), bob.tokens()) == (493_000_000 - 1, 7_000_001)
    # Tokens alone make no account.
    assert bob.account == {}


def test_a_block_and_its_infos(alice: Customer, bob: Customer, tron_node: TronNode) -> None:
    one, two = alice.unsigned(bob.address, TRX), alice.payment(bob.address, 5)
    assert alice.send(one)["result"] and alice.send(two)["result"]
    assert tron_node.call("wallet/gettransactionbyid", value=one["txID"]) == {}
    assert {one["txID"], two["txID"]} == set(tron_node.call("wallet/gettransactionlistfrompending")["txId"])
    number = tron_node.mine()
    block = tron_node.call("wallet/getblockbynum", num=number)
    assert [transaction["txID"] for transaction in block["transactions"]] == [one["txID"], two["txID"]]
    assert [transaction["ret"] for transaction in block["transactions"]] == [[{"contractRet": "SUCCESS"}]] * 2
    assert int(block["blockID"][:16], 16) == number == block["block_header"]["raw_data"]["number"]
    infos = tron_node.call("wallet/gettransactioninfobyblocknum", num=number)
    assert [found["id"] for found in infos] == [one["txID"], two["txID"]] and infos[1] == info(tron_node, two["txID"])
    assert tron_node.call("wallet/getblockbyid", value=block["blockID"]) == block
    assert tron_node.call("wallet/getblock", id_or_num=str(number), detail=True) == block
    assert "transactions" not in tron_node.call("wallet/getblock", id_or_num=block["blockID"])
    span = tron_node.call("wallet/getblockbylimitnext", startNum=number - 1, endNum=number + 1)["block"]
    assert span[1] == block and span[0]["blockID"] == block["block_header"]["raw_data"]["parentHash"]
    assert tron_node.call("wallet/getblockbylatestnum", num=1)["block"][0] == block
    assert tron_node.call("wallet/getblockbynum", num=number + 1) == {}
    assert tron_node.call("wallet/gettransactioninfobyblocknum", num=number + 1) == []
    assert tron_node.call("wallet/getnodeinfo")["block"] == f"Num:{number},ID:{block['blockID']}"


def test_addresses_in_base58_where_asked_for(alice: Customer, bob: Customer, tron_node: TronNode) -> None:
    txid = alice.pay(alice.payment(bob.address, 5))["id"]
    shown = tron_node.call("wallet/gettransactioninfobyid", value=txid, visible=True)
    assert shown["contract_address"] == shown["log"][0]["address"] == USDT
    value = tron_node.call("wallet/gettransactionbyid", value=txid, visible=True)["raw_data"]["contract"][0]["parameter"]["value"]
    assert (value["owner_address"], value["contract_address"]) == (alice.address, USDT)


def test_the_solid_block_is_nineteenth(alice: Customer, bob: Customer, tron_node: TronNode) -> None:
    txid = alice.pay(alice.unsigned(bob.address, TRX))["id"]
    included = head(tron_node)["number"]
    tron_node.mine(17)
    assert head(tron_node, "walletsolidity")["number"] == included - 1
    solid = {"address": bob.address, "visible": True}
    assert tron_node.call("walletsolidity/getaccount", **solid) == {}
    assert tron_node.call("walletsolidity/gettransactioninfobyid", value=txid) == {}
    assert tron_node.call("walletsolidity/getblockbynum", num=included) == {}
    tron_node.mine()
    assert tron_node.call("walletsolidity/getaccount", **solid)["balance"] == TRX
    assert tron_node.call("walletsolidity/gettransactioninfobyid", value=txid)["id"] == txid
    assert tron_node.call("walletsolidity/getblockbynum", num=included)["blockID"]


def test_a_call_that_is_reverted_is_in_the_block_and_paid_for(alice: Customer, bob: Customer, tron_node: TronNode) -> None:
    failed = alice.pay(alice.payment(bob.address, 501_000_000))
    assert failed["result"] == "FAILED" and bytes.fromhex(failed["resMessage"]) == b"REVERT opcode executed"
    assert failed["receipt"]["result"] == "REVERT" and failed["fee"] == failed["receipt"]["energy_fee"] > 0 and "log" not in failed
    assert tron_node.call("wallet/gettransactionbyid", value=failed["id"])["ret"] == [{"contractRet": "REVERT"}]
    assert (alice.tokens(), bob.tokens()) == (500_000_000, 0)


def test_energy_above_the_fee_limit_burns_it(alice: Customer, bob: Customer) -> None:
    failed = alice.pay(alice.payment(bob.address, 5, fee_limit=12 * TRX))
    assert failed["receipt"]["result"] == "OUT_OF_ENERGY" and failed["result"] == "FAILED"
    assert failed["fee"] == failed["receipt"]["energy_fee"] == 12 * TRX and failed["receipt"]["energy_usage_total"] == 120_000
    assert (alice.balance, alice.tokens(), bob.tokens()) == (988 * TRX, 500_000_000, 0)


def test_a_poor_sender_runs_out_of_energy_too(tron_node: TronNode, bob: Customer) -> None:
    poor = Customer(tron_node)
    tron_node.faucet(poor.address, 2)
    tron_node.faucet(poor.address, 1, "USDT")
    failed = poor.pay(poor.payment(bob.address, 5))
    assert failed["receipt"]["result"] == "OUT_OF_ENERGY" and poor.balance == 0 and poor.tokens() == 1_000_000


def test_staked_energy_is_used_first(alice: Customer, bob: Customer, tron_node: TronNode) -> None:
    tron_node.faucet(alice.address, 20_000)
    before = alice.balance
    staked = alice.pay(alice.stake(10_000 * TRX, "ENERGY"))
    assert "fee" not in staked and staked["receipt"].keys() == {"net_usage"}
    assert alice.balance == before - 10_000 * TRX
    limit = alice.resources["EnergyLimit"]
    assert 64_285 < limit < 130_285
    assert alice.account["frozenV2"][1] == {"type": "ENERGY", "amount": 10_000 * TRX}
    first = alice.pay(alice.payment(bob.address, 5))
    assert first["receipt"]["energy_usage"] == limit
    assert first["receipt"]["energy_fee"] == (130_285 - limit) * 100
    assert alice.resources["EnergyUsed"] in (limit, limit - 1)
    dry = alice.pay(alice.payment(bob.address, 5))
    assert dry["receipt"]["energy_fee"] >= 64_280 * 100


def test_staked_bandwidth_is_used_before_the_free(alice: Customer, bob: Customer) -> None:
    alice.pay(alice.stake(900 * TRX, "BANDWIDTH"))
    free = alice.resources["freeNetUsed"]
    assert alice.resources["NetLimit"] > 1000
    made = alice.pay(alice.unsigned(bob.address, TRX))
    # With a stake, a new account takes bandwidth and no 0.1 TRX.
    assert made["receipt"]["net_usage"] and made["fee"] == 1_000_000
    assert alice.resources["NetUsed"] and alice.resources["freeNetUsed"] <= free


def test_a_stake_comes_back_after_a_fortnight(own_node: TronNode) -> None:
    owner = Customer(own_node)
    own_node.faucet(owner.address, 1000)
    owner.pay(owner.stake(500 * TRX, "ENERGY"))
    weight = owner.resources["TotalEnergyWeight"]
    owner.pay(owner.unstake(200 * TRX, "ENERGY"))
    assert owner.resources["TotalEnergyWeight"] == weight - 200
    [waiting] = owner.account["unfrozenV2"]
    assert (waiting["type"], waiting["unfreeze_amount"]) == ("ENERGY", 200 * TRX)
    before = owner.balance
    own_node.call("dev/time", shift_seconds=14 * 86_400 + 1)
    own_node.mine()
    unsigned = own_node.call("wallet/withdrawexpireunfreeze", owner_address=owner.address, visible=True)
    paid = owner.pay(unsigned)
    assert paid["withdraw_expire_amount"] == 200 * TRX and owner.balance == before + 200 * TRX
    # Free bandwidth is back too.
    assert owner.resources["freeNetUsed"] == paid["receipt"]["net_usage"]


def test_tokens_that_differ_from_the_standard(alice: Customer, bob: Customer, tron_node: TronNode) -> None:
    odd = tron_node.token(symbol="ODD", decimals=18, symbol_bytes32=True, returns="nothing")
    taxed = tron_node.token(symbol="TAX", fee_basis_points=100)
    assert bytes.fromhex(alice.view("symbol()", contract=odd)).rstrip(b"\0") == b"ODD"
    assert int(alice.view("decimals()", contract=odd), 16) == 18
    assert bytes.fromhex(alice.view("symbol()"))[64:68] == b"USDT" and int(alice.view("decimals()"), 16) == 6
    for contract in (odd, taxed):
        tron_node.faucet(alice.address, 100, contract)
    assert alice.pay(alice.payment(bob.address, 5, contract=odd))["contractResult"] == [""]
    paid = alice.pay(alice.payment(bob.address, 1_000_000, contract=taxed))
    assert [int(log["data"], 16) for log in paid["log"]] == [990_000, 10_000] and bob.tokens(taxed) == 990_000


def test_who_is_blacklisted_cannot_pay(alice: Customer, bob: Customer, tron_node: TronNode) -> None:
    tron_node.call("dev/blacklist", contract=USDT, address=alice.address)
    assert alice.pay(alice.payment(bob.address, 5))["receipt"]["result"] == "REVERT"
    tron_node.call("dev/blacklist", contract=USDT, address=alice.address, on=False)
    assert alice.pay(alice.payment(bob.address, 5))["receipt"]["result"] == "SUCCESS"


def test_allowances(alice: Customer, bob: Customer, tron_node: TronNode) -> None:
    tron_node.faucet(bob.address, 100)
    alice.pay(alice.call("approve(address,uint256)", word(bob.address) + word(9)))
    assert int(alice.view("allowance(address,address)", word(alice.address) + word(bob.address)), 16) == 9
    take = word(alice.address) + word(bob.address)
    assert bob.pay(bob.call("transferFrom(address,address,uint256)", take + word(10)))["receipt"]["result"] == "REVERT"
    assert bob.pay(bob.call("transferFrom(address,address,uint256)", take + word(8)))["receipt"]["result"] == "SUCCESS"
    assert bob.tokens() == 8


def test_a_contract_that_passes_trx_on(alice: Customer, bob: Customer, tron_node: TronNode) -> None:
    contract = tron_node.call("dev/passer")["contract"]
    paid = alice.pay(alice.call("pay(address)", word(bob.address), contract=contract, value=3 * TRX))
    [sent] = tron_node.call("wallet/gettransactioninfobyid", value=paid["id"], visible=True)["internal_transactions"]
    assert (sent["caller_address"], sent["transferTo_address"]) == (contract, bob.address)
    assert sent["callValueInfo"] == [{"callValue": 3 * TRX}] and bob.balance == 3 * TRX


def test_constant_calls_and_estimates(alice: Customer, bob: Customer, tron_node: TronNode) -> None:
    call = {
        "owner_address": alice.address,
        "contract_address": USDT,
        "visible": True,
        "function_selector": "transfer(address,uint256)",
    }
    good = tron_node.call("wallet/triggerconstantcontract", parameter=word(bob.address) + word(5), **call)
    assert good["result"] == {"result": True} and good["energy_used"] == 130_285 and bob.tokens() == 0
    bad = tron_node.call("wallet/triggerconstantcontract", parameter=word(bob.address) + word(10**9), **call)
    assert bad["result"] == {"result": True, "message": "REVERT opcode executed"}
    assert bad["transaction"]["ret"] == [{"ret": "FAILED"}]
    estimate = tron_node.call("wallet/estimateenergy", parameter=word(bob.address) + word(5), **call)
    assert estimate == {"result": {"result": True}, "energy_required": 130_285}
    nothing = tron_node.call("wallet/triggerconstantcontract", **{**call, "contract_address": bob.address})
    assert nothing["result"] == {"code": "CONTRACT_VALIDATE_ERROR", "message": "Smart contract is not exist."}
    assert tron_node.call("wallet/getcontract", value=USDT, visible=True)["contract_address"] == USDT
    assert tron_node.call("wallet/getcontract", value=bob.address, visible=True) == {}


def test_a_memo_costs_a_trx(alice: Customer, bob: Customer, tron_node: TronNode) -> None:
    tron_node.faucet(bob.address, 1)
    assert alice.pay(alice.unsigned(bob.address, TRX, extra_data="cafe"))["fee"] == 1_000_000


def test_a_fork_takes_payments_back(own_node: TronNode) -> None:
    customer, bob = Customer(own_node), Customer(own_node)
    own_node.faucet(customer.address, 100)
    own_node.faucet(customer.address, 100, "USDT")
    own_node.mine(20)
    paid = customer.pay(customer.payment(bob.address, 5))
    old = head(own_node)
    own_node.mine(2)
    assert own_node.reorg(3) == old["number"] + 3
    assert bob.tokens() == 0 and customer.balance == 100 * TRX
    assert info(own_node, paid["id"]) == {} and own_node.call("wallet/getblockbyid", value=old["id"]) == {}
    assert own_node.call("wallet/getblockbynum", num=old["number"])["blockID"] != old["id"]
    # Nothing hinders it from being sent again.
    again = customer.pay(customer.payment(bob.address, 6))
    included = head(own_node)["number"]
    assert own_node.reorg(1, remine=True) == included + 1
    assert bob.tokens() == 6 and info(own_node, again["id"])["blockNumber"] == included


def test_a_fork_keeps_who_refers_to_solid_blocks_only(own_node: TronNode) -> None:
    customer = Customer(own_node)
    own_node.faucet(customer.address, 100)
    own_node.mine(2)
    unsigned = customer.unsigned(Customer(own_node).address, TRX)
    own_node.reorg(2)
    assert customer.send(unsigned)["result"]


def test_parameters_are_those_of_the_network(own_node: TronNode) -> None:
    def parameters() -> dict[str, int]:
        return {one["key"]: one["value"] for one in own_node.call("wallet/getchainparameters")["chainParameter"]}

    known = parameters()
    assert (known["getEnergyFee"], known["getTransactionFee"], known["getMemoFee"]) == (100, 1000, 1_000_000)
    assert (known["getCreateNewAccountFeeInSystemContract"], known["getCreateAccountFee"]) == (1_000_000, 100_000)
    own_node.call("dev/parameter", key="getEnergyFee", value=210)
    assert parameters()["getEnergyFee"] == 210
    customer = Customer(own_node)
    own_node.faucet(customer.address, 100)
    own_node.faucet(customer.address, 1, "USDT")
    # As a real one of November 2024: 78572 energy at 210 sun were 16500120 sun.
    failed = customer.pay(customer.payment(Customer(own_node).address, 5, fee_limit=16_500_120))
    assert failed["receipt"] == {
        "energy_fee": 16_500_120,
        "energy_usage_total": 78_572,
        "net_usage": 345,
        "result": "OUT_OF_ENERGY",
    }


def test_many_at_once_on_open_connections(tron_node: TronNode) -> None:
    customers = [Customer(tron_node) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        txids = list(pool.map(lambda customer: tron_node.faucet(customer.address, 3), customers))
    assert len(set(txids)) == 8 and [customer.balance for customer in customers] == [3 * TRX] * 8


def test_mines_by_itself_until_held() -> None:
    with TronNode(block_seconds=0.05) as node:
        deadline = time.monotonic() + 5
        while head(node)["number"] < 3 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert head(node)["number"] >= 3
        node.call("dev/time", hold=True)
        held = head(node)["number"]
        customer = Customer(node)
        # Where blocks come by themselves, the faucet waits for the next.
        node.faucet(customer.address, 3)
        assert (head(node)["number"], customer.balance) == (held, 3 * TRX)


# The sweep: nobody cleans up after SIGKILL, which stays, and no more after SIGTERM.
@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.sweep)])
def test_dies_with_the_process_that_started_it(how: signal.Signals) -> None:
    program = "import time; from infra.local.tron.process import TronNode; n = TronNode(); print(n.url, flush=True); time.sleep(60)"
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=root) as starter:
        assert starter.stdout is not None
        node = Http(starter.stdout.readline().strip())
        assert node.call("wallet/getnowblock")["blockID"]
        os.kill(starter.pid, how)
    assert gone(node)


# The sweep: anvil and this node are stopped by the same keeper (test_evm_node.py), and anvil stays.
@pytest.mark.sweep
def test_stops_and_stops_again() -> None:
    node = TronNode()
    node.stop()
    assert gone(node.http)
    node.stop()


def gone(http: Http) -> bool:
    """Whether nothing answers there any more, within 3 seconds."""
    for _ in range(300):
        try:
            http.call("wallet/getnowblock")
        except (OSError, HTTPError):
            return True
        time.sleep(0.01)
    return False
