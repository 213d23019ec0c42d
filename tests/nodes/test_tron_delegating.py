"""Energy lent to an address for one transfer, on the strict node: lent, used, taken back, and refused in java-tron's words."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.domain.chain import Receipt
from chalicelib.domain.treasury.stakes import Resource
from chalicelib.usecases.ports.delegating import Direction
from chalicelib.usecases.ports.failures import Refused, Unavailable
from infra.local.tron.process import TronNode
from tests.support.tron_chain import TRX, USDT, TronChain, TronKey, stranger

pytestmark = pytest.mark.nodes

ENERGY = 78_000
"""A transfer of USDT takes 64,285; with a fifth more."""


@pytest.fixture(scope="module")
def chain(tron_node: TronNode) -> TronChain:
    return TronChain(tron_node)


def staked(chain: TronChain, trx: int = 20_000, resource: Resource = "ENERGY") -> TronKey:
    key = chain.funded(trx=trx + 10)
    staking = chain.staking
    unsigned = staking.prepare(key.address, trx * TRX, resource, 0)
    staking.broadcast(staking.assemble(unsigned, key.sign(staking.digest(unsigned))).raw)
    chain.node.mine()
    return key


def lend(
    chain: TronChain, key: TronKey, direction: Direction, receiver: str, amount: int, resource: Resource = "ENERGY"
) -> Receipt:
    node = chain.delegating
    unsigned = node.prepare(direction, key.address, receiver, amount, resource, 0)
    does = node.explain(unsigned)
    assert (does.direction, does.owner, does.receiver, does.amount) == (direction, key.address, receiver, amount)
    signed = node.assemble(unsigned, key.sign(node.digest(unsigned)))
    node.broadcast(signed.raw)
    node.broadcast(signed.raw)  # safe to repeat
    chain.node.mine()
    receipt = chain.reader.receipt(signed.txid)
    assert receipt is not None
    return receipt


def shown(chain: TronChain, path: str, **params: Any) -> Any:
    return chain.node.call(path, **params, visible=True)


def test_a_transfer_on_lent_energy_burns_nothing_and_the_stake_comes_back(chain: TronChain) -> None:
    hot, deposit = staked(chain), chain.funded(trx=1, usdt=50)
    node = chain.delegating
    before = node.lendable(hot.address, deposit.address, "ENERGY")
    assert (before.stake, before.active) == (20_000 * TRX, True)
    stake = before.for_(ENERGY)
    assert before.covers(ENERGY)
    lent = lend(chain, hot, "delegation", deposit.address, stake)
    assert (lent.success, lent.fee) == (True, 0)  # 600 free bytes a day pay for it
    assert node.lent(hot.address, deposit.address, "ENERGY") == stake
    assert node.lendable(hot.address, deposit.address, "ENERGY").stake == before.stake - stake
    resources = shown(chain, "wallet/getaccountresource", address=deposit.address)
    assert ENERGY <= resources["EnergyLimit"] < ENERGY + 10
    account = shown(chain, "wallet/getaccount", address=deposit.address)
    assert account["account_resource"]["acquired_delegated_frozenV2_balance_for_energy"] == stake
    owner = shown(chain, "wallet/getaccount", address=hot.address)
    assert owner["account_resource"]["delegated_frozenV2_balance_for_energy"] == stake
    assert {"type": "ENERGY", "amount": 20_000 * TRX - stake} in owner["frozenV2"]

    holder = chain.funded(trx=0, usdt=1)
    assert chain.payer.estimate(chain.payment(deposit, holder.address, 10**6, USDT)).fee == 0
    paid = chain.pay(deposit, holder.address, 50 * 10**6, USDT)
    assert (paid.success, paid.fee) == (True, 0)
    assert chain.reader.balance(deposit.address) == TRX

    back = lend(chain, hot, "undelegation", deposit.address, stake)
    assert back.success
    assert 0 < (back.fee or 0) < TRX // 2  # the third transaction of the day: its bytes are burnt
    assert node.lent(hot.address, deposit.address, "ENERGY") == 0
    # What was used came back with the stake: it is the owner's use now, and is there again after a day.
    used = shown(chain, "wallet/getaccountresource", address=hot.address)["EnergyUsed"]
    assert 64_000 < used < 65_000
    assert before.stake - stake < node.lendable(hot.address, deposit.address, "ENERGY").stake < before.stake
    assert shown(chain, "wallet/getdelegatedresourcev2", fromAddress=hot.address, toAddress=deposit.address) == {}
    chain.node.call("dev/time", shift_seconds=86_400)
    chain.node.mine()
    assert node.lendable(hot.address, deposit.address, "ENERGY").stake == before.stake


def test_bandwidth_is_lent_the_same_way(chain: TronChain) -> None:
    hot, deposit = staked(chain, 2_000, "BANDWIDTH"), chain.funded(trx=1)
    lend(chain, hot, "delegation", deposit.address, 500 * TRX, "BANDWIDTH")
    assert chain.delegating.lent(hot.address, deposit.address, "BANDWIDTH") == 500 * TRX
    assert chain.delegating.lent(hot.address, deposit.address, "ENERGY") == 0
    assert shown(chain, "wallet/getaccountresource", address=deposit.address)["NetLimit"] == 500 * 43_200_000_000 // 26_600_000_000
    lend(chain, hot, "undelegation", deposit.address, 200 * TRX, "BANDWIDTH")
    there = shown(chain, "wallet/getdelegatedresourcev2", fromAddress=hot.address, toAddress=deposit.address)
    assert there == {"delegatedResource": [{"from": hot.address, "to": deposit.address, "frozen_balance_for_bandwidth": 300 * TRX}]}


def test_what_the_adapter_refuses_before_anything_is_signed(chain: TronChain) -> None:
    hot, nobody, deposit = staked(chain, 100), stranger(), chain.funded(trx=1)
    node = chain.delegating
    assert node.lendable(hot.address, nobody, "ENERGY").active is False
    with pytest.raises(Refused, match="does not exist"):
        node.prepare("delegation", hot.address, nobody, TRX, "ENERGY", 0)
    with pytest.raises(Refused, match="are free"):
        node.prepare("delegation", hot.address, deposit.address, 101 * TRX, "ENERGY", 0)
    with pytest.raises(Refused, match="0 sun are lent"):
        node.prepare("undelegation", hot.address, deposit.address, TRX, "ENERGY", 0)
    for path, change in (
        ("wallet/getcandelegatedmaxsize", lambda _: {"max_size": "many"}),
        ("wallet/getaccountresource", lambda told: {**told, "TotalEnergyWeight": 0}),
        ("wallet/getaccount", lambda _: []),
    ):
        lying = type(node)(chain.network, chain.lying(path, change), None)
        with pytest.raises(Unavailable):
            lying.prepare("delegation", hot.address, deposit.address, TRX, "ENERGY", 0)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"balance": 999_999}, "delegateBalance must be greater than or equal to 1 TRX"),
        ({"balance": 101 * TRX}, "delegateBalance must be less than or equal to available FreezeEnergyV2 balance"),
        ({"resource": "BANDWIDTH"}, "delegateBalance must be less than or equal to available FreezeBandwidthV2 balance"),
        ({"resource": "TRON_POWER"}, "ResourceCode error, valid ResourceCode[BANDWIDTH、ENERGY]"),
        ({"receiver_address": "hot"}, "receiverAddress must not be the same as ownerAddress"),
        ({"receiver_address": USDT}, "Do not allow delegate resources to contract addresses"),
        ({"receiver_address": "nobody"}, "] not exists"),
        ({"lock": True}, "this test node does not carry out locked delegations"),
    ],
)
def test_the_nodes_words(chain: TronChain, lent: tuple[TronKey, TronKey], asked: dict[str, Any], words: str) -> None:
    hot, deposit = lent
    named = {"hot": hot.address, "nobody": stranger()}
    body = {"owner_address": hot.address, "receiver_address": deposit.address, "balance": TRX, "resource": "ENERGY"} | asked
    body["receiver_address"] = named.get(str(body["receiver_address"]), body["receiver_address"])
    answer = shown(chain, "wallet/delegateresource", **body)
    assert words in answer["Error"]
    assert answer["Error"].startswith("class org.tron.core.exception.ContractValidateException : ")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"balance": 0}, "unDelegateBalance must be more than 0 TRX"),
        ({"balance": 51 * TRX}, f"insufficient delegateFrozenBalance(Energy), request={51 * TRX}, unlock_balance={50 * TRX}"),
        ({"resource": "BANDWIDTH"}, "insufficient delegatedFrozenBalance(BANDWIDTH), request=1000000, unlock_balance=0"),
        ({"receiver_address": USDT}, "delegated Resource does not exist"),
        ({"owner_address": "nobody"}, "] does not exist"),
    ],
)
def test_the_nodes_words_for_what_comes_back(
    chain: TronChain, lent: tuple[TronKey, TronKey], asked: dict[str, Any], words: str
) -> None:
    hot, deposit = lent
    body = {"owner_address": hot.address, "receiver_address": deposit.address, "balance": TRX, "resource": "ENERGY"} | asked
    body["owner_address"] = stranger() if body["owner_address"] == "nobody" else body["owner_address"]
    assert words in shown(chain, "wallet/undelegateresource", **body)["Error"]


@pytest.fixture(scope="module")
def lent(chain: TronChain) -> tuple[TronKey, TronKey]:
    hot, deposit = staked(chain, 100), chain.funded(trx=1)
    lend(chain, hot, "delegation", deposit.address, 50 * TRX)
    return hot, deposit


def test_what_is_lent_can_not_be_unfrozen(chain: TronChain, lent: tuple[TronKey, TronKey]) -> None:
    hot, _ = lent
    asked = {"owner_address": hot.address, "unfreeze_balance": 51 * TRX, "resource": "ENERGY"}
    assert "Invalid unfreeze_balance" in shown(chain, "wallet/unfreezebalancev2", **asked)["Error"]
