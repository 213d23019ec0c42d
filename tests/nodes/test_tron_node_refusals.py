"""What the Tron test node refuses, with the codes and words of java-tron, and what that leaves behind: nothing."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import urllib3

from chalicelib.encoding import base58check
from infra.local.tron.messages import CODEC, from_json
from infra.local.tron.process import TronNode
from tests.support.tron import TRX, USDT, Customer, changed, head, info, word

pytestmark = pytest.mark.nodes
N = 115792089237316195423570985008687907852837564279074904382605163141518161494337


@pytest.fixture(scope="module")
def node() -> Iterator[TronNode]:
    """These tests move its clock and tell it to forget transactions."""
    with TronNode() as node:
        yield node


@pytest.fixture
def alice(node: TronNode) -> Customer:
    """Has 100 TRX and 100 USDT."""
    customer = Customer(node)
    node.faucet(customer.address, 100)
    node.faucet(customer.address, 100, "USDT")
    return customer


@pytest.fixture
def bob(node: TronNode) -> Customer:
    """Has 1 TRX."""
    customer = Customer(node)
    node.faucet(customer.address, 1)
    return customer


def refusal(answer: dict[str, Any]) -> tuple[str, str]:
    """Code and words; without `visible` the words are hexadecimal."""
    assert "result" not in answer, answer
    return answer["code"], answer["message"]


def test_a_signature_by_another(alice: Customer, bob: Customer, node: TronNode) -> None:
    unsigned = alice.unsigned(bob.address, TRX)
    answer = node.http.call("wallet/broadcasttransaction", bob.signed(unsigned))
    signature = bob.sign(unsigned["txID"])
    words = f"Validate signature error: {signature} is signed by {bob.address} but it is not contained of permission."
    assert refusal(answer) == ("SIGERROR", words) and answer["txid"] == unsigned["txID"]
    assert alice.send(unsigned)["result"]


def test_messages_are_hexadecimal_where_not_visible(alice: Customer, bob: Customer, node: TronNode) -> None:
    unsigned = node.call("wallet/createtransaction", **_hexadecimal(alice, bob))
    answer = node.http.call("wallet/broadcasttransaction", {**unsigned, "signature": []})
    assert answer["code"] == "SIGERROR" and bytes.fromhex(answer["message"]) == b"Validate signature error: miss sig or contract"


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda good: good[:128], "Signature size is 64"),
        (lambda good: good[:128] + "05", "Header byte out of range"),
        (lambda good: "00" * 65, "Could not recover public key"),
        (lambda good: good[2:] + "00", "Validate signature error"),
    ],
)
def test_signatures_that_are_none(alice: Customer, bob: Customer, node: TronNode, spoil: Callable[[str], str], why: str) -> None:
    good = alice.signed(alice.unsigned(bob.address, TRX))
    code, words = refusal(node.http.call("wallet/broadcasttransaction", {**good, "signature": [spoil(good["signature"][0])]}))
    assert code == "SIGERROR" and why in words


def test_two_signatures(alice: Customer, bob: Customer, node: TronNode) -> None:
    good = alice.signed(alice.unsigned(bob.address, TRX))
    answer = node.http.call("wallet/broadcasttransaction", {**good, "signature": good["signature"] * 2})
    assert refusal(answer)[0] == "SIGERROR"


def test_a_high_s_is_taken_as_java_tron_takes_it(alice: Customer, bob: Customer, node: TronNode) -> None:
    good = alice.signed(alice.unsigned(bob.address, TRX))
    raw = bytes.fromhex(good["signature"][0])
    high = raw[:32] + (N - int.from_bytes(raw[32:64])).to_bytes(32) + bytes([raw[64] ^ 1])
    assert node.http.call("wallet/broadcasttransaction", {**good, "signature": [high.hex()]})["result"]


@pytest.mark.parametrize("name", ["raw_data_hex", "txID"])
def test_spellings_that_differ(alice: Customer, bob: Customer, node: TronNode, name: str) -> None:
    one, other = alice.unsigned(bob.address, TRX), alice.unsigned(bob.address, 2 * TRX)
    answer = node.http.call("wallet/broadcasttransaction", {**alice.signed(one), name: other[name]})
    assert refusal(answer) == ("OTHER_ERROR", f"Error: {name} is not that of raw_data")
    without = {key: value for key, value in alice.signed(one).items() if key != name}
    assert node.http.call("wallet/broadcasttransaction", without)["result"]


def test_another_amount_than_signed(alice: Customer, bob: Customer, node: TronNode) -> None:
    good = alice.signed(alice.unsigned(bob.address, TRX))
    raw = copy.deepcopy(good["raw_data"])
    raw["contract"][0]["parameter"]["value"]["amount"] += 1
    spoilt = changed(good, **raw)
    assert refusal(node.http.call("wallet/broadcasttransaction", spoilt))[0] == "SIGERROR"


@pytest.mark.parametrize("raw", [{"ref_block_bytes": "ffff"}, {"ref_block_hash": "00" * 8}, {"ref_block_bytes": ""}], ids=str)
def test_a_reference_to_no_block(alice: Customer, bob: Customer, raw: dict[str, str]) -> None:
    assert refusal(alice.send(changed(alice.unsigned(bob.address, TRX), **raw))) == ("TAPOS_ERROR", "Tapos check error.")


def test_a_reference_to_an_abandoned_branch(alice: Customer, bob: Customer, node: TronNode) -> None:
    newest = head(node)
    unsigned = alice.unsigned(bob.address, TRX)
    lost = changed(unsigned, ref_block_bytes=newest["id"][12:16], ref_block_hash=newest["id"][16:32])
    node.mine()
    node.reorg(2, remine=True)
    assert refusal(alice.send(lost))[0] == "TAPOS_ERROR"


@pytest.mark.parametrize("offset", [-1, 0, 2_999, 24 * 3_600_000 + 1])
def test_expiry_past_or_too_far(alice: Customer, bob: Customer, node: TronNode, offset: int) -> None:
    expired = changed(alice.unsigned(bob.address, TRX), expiration=head(node)["timestamp"] + offset)
    assert refusal(alice.send(expired)) == ("TRANSACTION_EXPIRATION_ERROR", "Transaction expired")


def test_expiry_at_its_limits(alice: Customer, bob: Customer, node: TronNode) -> None:
    for offset in (3_000, 24 * 3_600_000):
        assert alice.send(changed(alice.unsigned(bob.address, TRX), expiration=head(node)["timestamp"] + offset))["result"]


def test_twice_pending_and_twice_in_the_chain(alice: Customer, bob: Customer, node: TronNode) -> None:
    unsigned = alice.unsigned(bob.address, TRX)
    assert alice.send(unsigned)["result"]
    assert refusal(alice.send(unsigned)) == ("DUP_TRANSACTION_ERROR", "Dup transaction.")
    node.mine()
    assert refusal(alice.send(unsigned)) == ("DUP_TRANSACTION_ERROR", "Dup transaction.")
    assert bob.balance == 2 * TRX


def test_too_big(alice: Customer, bob: Customer) -> None:
    big = changed(alice.unsigned(bob.address, TRX), data="00" * 512_000)
    code, words = refusal(alice.send(big))
    assert code == "TOO_BIG_TRANSACTION_ERROR" and "Too big transaction, the size is" in words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"amount": 0}, "Amount must be greater than 0."),
        ({"amount": -5}, "Amount must be greater than 0."),
        ({"amount": 100 * TRX + 1}, "Validate TransferContract error, balance is not sufficient."),
        ({"to_address": "alice"}, "Cannot transfer TRX to yourself."),
        ({"to_address": USDT}, "Cannot transfer TRX to a smartContract."),
        ({"to_address": "nobody", "amount": 99 * TRX + 1}, "Validate TransferContract error, balance is not sufficient."),
    ],
    ids=str,
)
def test_transfers_that_cannot_be(alice: Customer, bob: Customer, node: TronNode, value: dict[str, Any], words: str) -> None:
    names = {"alice": alice.address, "nobody": Customer(node).address}
    unsigned = alice.unsigned(bob.address, TRX)
    raw = copy.deepcopy(unsigned["raw_data"])
    inner = raw["contract"][0]["parameter"]["value"]
    inner.update(value)
    inner["to_address"] = names.get(inner["to_address"], inner["to_address"])
    assert refusal(alice.send(changed(unsigned, **raw))) == ("CONTRACT_VALIDATE_ERROR", f"Contract validate error : {words}")
    # The building call says the same, before anybody signs.
    built = node.call("wallet/createtransaction", visible=True, **inner)
    assert built == {"Error": f"class org.tron.core.exception.ContractValidateException : {words}"}
    assert alice.balance == 100 * TRX


def test_the_account_fee_of_the_network_comes_on_top(alice: Customer, node: TronNode) -> None:
    # Building knows of 1 TRX for the new account only; the 0.1 TRX instead of bandwidth shows when it is sent.
    unsigned = alice.unsigned(Customer(node).address, 99 * TRX)
    assert refusal(alice.send(unsigned))[1].endswith("balance is not sufficient.")
    assert alice.send(alice.unsigned(Customer(node).address, 98_900_000))["result"] and alice.balance == 0


def test_an_owner_that_does_not_exist(alice: Customer, node: TronNode) -> None:
    nobody = Customer(node)
    unsigned = alice.unsigned(nobody.address, TRX)
    raw = copy.deepcopy(unsigned["raw_data"])
    raw["contract"][0]["parameter"]["value"] |= {"owner_address": nobody.address, "to_address": alice.address}
    code, words = refusal(nobody.send(changed(unsigned, **raw)))
    assert (code, words) == ("CONTRACT_VALIDATE_ERROR", f"Contract validate error : account [{nobody.address}] does not exist")


def test_neither_bandwidth_nor_trx(node: TronNode) -> None:
    customer, other = Customer(node), Customer(node)
    for one in (customer, other):
        node.faucet(one.address, "0.3")
    for amount in (1, 2):
        customer.pay(customer.unsigned(other.address, amount))
    customer.pay(customer.unsigned(other.address, 20_000))
    code, words = refusal(customer.send(customer.unsigned(other.address, 1)))
    assert (code, words) == ("BANDWITH_ERROR", "Account resource insufficient error.")


@pytest.mark.parametrize("contracts", [0, 2])
def test_not_one_contract(alice: Customer, bob: Customer, contracts: int) -> None:
    unsigned = alice.unsigned(bob.address, TRX)
    answer = alice.send(changed(unsigned, contract=unsigned["raw_data"]["contract"] * contracts))
    assert refusal(answer)[0] == "CONTRACT_VALIDATE_ERROR"


def test_type_and_parameter_that_differ(alice: Customer, bob: Customer) -> None:
    unsigned = alice.unsigned(bob.address, TRX)
    raw = copy.deepcopy(unsigned["raw_data"])
    raw["contract"][0]["type"] = "TriggerSmartContract"
    code, words = refusal(alice.send(changed(unsigned, **raw)))
    assert code == "CONTRACT_VALIDATE_ERROR" and "contract type error" in words


def test_calls_that_cannot_be(alice: Customer, bob: Customer) -> None:
    for limit in (-1, 15_000 * TRX + 1):
        code, words = refusal(alice.send(changed(alice.payment(bob.address, 1), fee_limit=limit)))
        assert (code, words) == ("CONTRACT_VALIDATE_ERROR", "Contract validate error : feeLimit must be >= 0 and <= 15000000000")
    unsigned = alice.payment(bob.address, 1)
    raw = copy.deepcopy(unsigned["raw_data"])
    raw["contract"][0]["parameter"]["value"]["contract_address"] = bob.address
    assert refusal(alice.send(changed(unsigned, **raw)))[1].endswith("No contract or not a smart contract")
    raw = copy.deepcopy(unsigned["raw_data"])
    raw["contract"][0]["parameter"]["value"]["call_value"] = 200 * TRX
    assert refusal(alice.send(changed(unsigned, **raw)))[1].endswith("Validate InternalTransfer error, balance is not sufficient.")
    # No fee limit is no energy.
    assert alice.pay(alice.payment(bob.address, 1, fee_limit=0))["receipt"]["result"] == "OUT_OF_ENERGY"
    assert alice.balance == 100 * TRX and alice.tokens() == 100 * TRX


def test_stakes_that_cannot_be(alice: Customer, node: TronNode) -> None:
    def built(name: str, **params: Any) -> str:
        answer = node.call(f"wallet/{name}", owner_address=alice.address, visible=True, **params)
        return str(answer.get("Error", answer)).rpartition(" : ")[2]

    assert built("freezebalancev2", frozen_balance=0) == "frozenBalance must be positive"
    assert built("freezebalancev2", frozen_balance=TRX - 1) == "frozenBalance must be more than 1TRX"
    assert built("freezebalancev2", frozen_balance=101 * TRX) == "frozenBalance must be less than accountBalance"
    assert "has no" in built("freezebalancev2", frozen_balance=TRX, resource="CPU")
    assert built("unfreezebalancev2", unfreeze_balance=TRX, resource="ENERGY") == "no frozenBalance(Energy)"
    alice.pay(alice.stake(5 * TRX, "ENERGY"))
    assert built("unfreezebalancev2", unfreeze_balance=TRX) == "no frozenBalance(BANDWIDTH)"
    wrong = f"Invalid unfreeze_balance, [{6 * TRX}] is error"
    assert built("unfreezebalancev2", unfreeze_balance=6 * TRX, resource="ENERGY") == wrong
    early = changed(alice.unstake(TRX, "ENERGY"))
    early["raw_data"]["contract"][0] = {
        "type": "WithdrawExpireUnfreezeContract",
        "parameter": {
            "type_url": "type.googleapis.com/protocol.WithdrawExpireUnfreezeContract",
            "value": {"owner_address": alice.address},
        },
    }
    assert refusal(alice.send(changed(early)))[1].endswith("no unFreeze balance to withdraw ")


def test_a_busy_node_and_one_that_forgets(alice: Customer, bob: Customer, node: TronNode) -> None:
    unsigned = alice.unsigned(bob.address, TRX)
    node.call("dev/busy", count=1)
    assert refusal(alice.send(unsigned)) == ("SERVER_BUSY", "Server busy.")
    node.call("dev/drop", count=1)
    assert alice.send(unsigned)["result"]
    node.mine()
    assert info(node, unsigned["txID"]) == {} and alice.balance == 100 * TRX
    assert alice.pay(unsigned)["id"] == unsigned["txID"]


def test_what_expires_unseen_never_comes(alice: Customer, bob: Customer, node: TronNode) -> None:
    unsigned = alice.unsigned(bob.address, TRX)
    node.call("dev/drop", count=1)
    assert alice.send(unsigned)["result"]
    node.call("dev/time", shift_seconds=61)
    node.mine(19)
    assert head(node, "walletsolidity")["timestamp"] > unsigned["raw_data"]["expiration"]
    assert refusal(alice.send(unsigned))[0] == "TRANSACTION_EXPIRATION_ERROR"


def test_what_becomes_invalid_is_left_out_of_the_block(node: TronNode) -> None:
    customer, one, two = Customer(node), Customer(node), Customer(node)
    node.faucet(customer.address, 10)
    node.mine(20)
    first = customer.pay(customer.unsigned(one.address, 5 * TRX))
    # On another branch the money goes elsewhere first, and does not suffice for both.
    node.call("dev/reorg", depth=1)
    second = customer.pay(customer.unsigned(two.address, 6 * TRX))
    assert info(node, first["id"]) == {} and info(node, second["id"])["blockNumber"]


def test_hexadecimal_broadcasts(alice: Customer, bob: Customer, node: TronNode) -> None:
    unsigned = alice.unsigned(bob.address, TRX)
    message = {
        "raw_data": from_json("raw", unsigned["raw_data"], visible=True),
        "signature": [bytes.fromhex(alice.sign(unsigned["txID"]))],
    }
    spelt = CODEC.encode("Transaction", message).hex()
    answer = node.call("wallet/broadcasthex", transaction=spelt)
    assert (answer["result"], answer["code"], answer["txid"]) == (True, "SUCCESS", unsigned["txID"])
    again = node.call("wallet/broadcasthex", transaction=spelt)
    assert (again["result"], again["code"], again["message"]) == (False, "DUP_TRANSACTION_ERROR", "Dup transaction.")
    for garbage in ("zz", "0a", spelt + "3a00", ""):
        answer = node.call("wallet/broadcasthex", transaction=garbage)
        assert "ParseException" in answer.get("Error", "") or answer["code"] == "CONTRACT_VALIDATE_ERROR"


def test_sign_weight(alice: Customer, bob: Customer, node: TronNode) -> None:
    unsigned = alice.unsigned(bob.address, TRX)
    good = node.http.call("wallet/getsignweight", alice.signed(unsigned))
    assert (good["result"], good["current_weight"], good["approved_list"]) == ({}, 1, [alice.address])
    none = node.http.call("wallet/getsignweight", unsigned)
    assert (none["result"], none["current_weight"]) == ({"code": "NOT_ENOUGH_PERMISSION"}, 0)
    other = node.http.call("wallet/getsignweight", bob.signed(unsigned))
    assert other["result"]["code"] == "PERMISSION_ERROR"


def test_addresses_are_validated(alice: Customer, node: TronNode) -> None:
    def validated(text: str) -> tuple[bool, str]:
        answer = node.call("wallet/validateaddress", address=text)
        return answer["result"], answer["message"]

    assert validated(alice.address) == (True, "Base58check format")
    assert validated("41" + "00" * 20) == (True, "Hex string format")
    assert validated("42" + "00" * 20) == (False, "Invalid address")
    assert validated(alice.address[:-1]) == (False, "Length error")
    assert not validated(alice.address[:-1] + ("2" if alice.address[-1] == "1" else "1"))[0]


def test_requests_that_make_no_sense(node: TronNode) -> None:
    pool = urllib3.PoolManager()

    def post(path: str, body: bytes) -> tuple[int, Any]:
        answer = pool.request("POST", f"{node.url}/{path}", body=body)
        return answer.status, answer.json()

    assert post("wallet/getaccount", b"{")[1]["Error"].startswith("class org.tron.json.JSONException")
    assert post("wallet/getaccount", b"[]")[1]["Error"].startswith("class org.tron.json.JSONException")
    assert post("wallet/getaccount", b"") == (200, {})
    assert "ParseException" in post("wallet/getaccount", b'{"address": "zz"}')[1]["Error"]
    assert "NullPointerException" in post("wallet/broadcasttransaction", b'{"raw_data_hex": "0a02"}')[1]["Error"]
    assert "ParseException" in post("wallet/broadcasttransaction", b'{"raw_data": {"contract": [{}]}}')[1]["Error"]
    assert post("wallet/getnothing", b"{}")[0] == 404 and post("walletsolidity/createtransaction", b"{}")[0] == 404
    assert post("dev/nothing", b"{}")[0] == 404 and post("dev/faucet", b"{}")[0] == 400
    assert post("dev/faucet", b'{"address": "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", "amount": "1"}')[0] == 400
    assert post("dev/reorg", b'{"depth": 1000000}')[0] == 400
    got = pool.request("GET", f"{node.url}/wallet/getblockbynum?num=1&visible=true").json()
    assert got["block_header"]["raw_data"]["witness_address"].startswith("T")
    assert pool.request("GET", f"{node.url}/dev/mine").status == 405
    assert pool.request("GET", f"{node.url}/wallet/getblock?id_or_num=1&detail=false").json()["blockID"] == got["blockID"]
    assert node.call("wallet/getblock", id_or_num="xyz") == {"Error": "id must be legal block hash."}


def test_a_node_that_does_not_estimate(alice: Customer, node: TronNode) -> None:
    node.call("dev/estimates", on=False)
    call = {"owner_address": alice.address, "contract_address": USDT, "visible": True}
    answer = node.call("wallet/estimateenergy", function_selector="balanceOf(address)", parameter=word(alice.address), **call)
    assert answer == {"result": {"code": "CONTRACT_VALIDATE_ERROR", "message": "this node does not support estimate energy"}}


def _hexadecimal(alice: Customer, bob: Customer) -> dict[str, Any]:
    owner, to = (base58check.decode(one.address).hex() for one in (alice, bob))
    return {"owner_address": owner, "to_address": to, "amount": TRX}
