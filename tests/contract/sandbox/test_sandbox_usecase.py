"""What the sandbox's endpoints do, over a simulated network and the service's own records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from chalicelib.chains.addresses import Rules
from chalicelib.chains.sandbox.chain import SandboxChain
from chalicelib.domain.catalogue.catalogue import Catalogue, default_coins, default_networks
from chalicelib.domain.errors import BusinessRule, InvalidAddress, InvalidParameter, NotFound
from chalicelib.domain.ids import MerchantId, NetworkId, Realm, asset_id, network_id, tenant_id
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.ports.accounts import Payment
from chalicelib.usecases.sandbox.sandbox import Sandbox
from tests.support.sandbox import USDT, Lab, Wallet, lab_of

TENANT = tenant_id(MerchantId("mch_a"), "test")
NETWORK = network_id("test", "ethereum")
SHOP = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
CATALOGUE = Catalogue("test", default_networks("test"), default_coins("test"))
ETH, USD = CATALOGUE.coins["ethereum", "eth"], CATALOGUE.coins["ethereum", "usdt"]


@dataclass
class Records:
    """The two questions that the sandbox asks the store."""

    kept: dict[tuple[str, str], Withdrawal] = field(default_factory=dict)

    def get(self, kind: type[Any], /, **key: str) -> Any:
        assert kind is Withdrawal
        return self.kept.get((key["tenant"], key["id"]))

    def catalogue(self, realm: Realm, fresh: bool = False) -> Catalogue:
        assert realm == "test"
        return CATALOGUE


@dataclass
class House:
    lab: Lab
    records: Records
    sandbox: Sandbox
    hot: Wallet

    def withdrawal(self, **changes: Any) -> Withdrawal:
        made = Withdrawal("wd_1", TENANT, NETWORK, ETH.asset, 50, SHOP, ETH.asset, 1, 1, **changes)
        self.records.kept[made.tenant, made.id] = made
        return made

    def sign(self, nonce: int = 0, amount: int = 50) -> Any:
        """What the payout worker does up to the broadcast: the id is stored first."""
        unsigned = self.lab.payer.prepare(Payment(self.hot.address, SHOP, None, amount, nonce, reference="wd_1"))
        signed = self.lab.payer.assemble(unsigned, self.hot.sign(self.lab.payer.digest(unsigned)))
        made = self.records.kept[TENANT, "wd_1"]
        self.records.kept[TENANT, "wd_1"] = replace(made, status="broadcasting", txid=signed.txid)
        return signed


@pytest.fixture
def house() -> Iterator[House]:
    with lab_of("ethereum") as lab:
        records = Records()

        def chain_of(network: NetworkId) -> SandboxChain:
            assert network == NETWORK
            return lab.chain

        hot = lab.wallet(3)
        lab.chain.deposit(hot.address, None, 10**18)
        yield House(lab, records, Sandbox(records, chain_of, Rules()), hot)  # type: ignore[arg-type]


def wrong(error: InvalidParameter) -> dict[str, tuple[str, ...]]:
    return {problem.field: problem.constraints for problem in error.problems}


def test_a_deposit_says_where_it_is(house: House) -> None:
    answer = house.sandbox.deposit(NETWORK, SHOP.lower(), USD, 12_500_000, None)
    block = house.lab.all_blocks()[answer["blockNumber"]]
    assert answer["txid"] == block.transfers[0].txid
    assert answer["blockHash"] == block.hash
    assert block.transfers[0].contract == USDT
    shown = {name: answer[name] for name in ("network", "coin", "amount", "address")}
    assert shown == {"network": "ethereum", "coin": "usdt", "amount": "12.5", "address": SHOP}
    assert answer["from"].lower() == block.transfers[0].sender
    assert house.sandbox.deposit(NETWORK, SHOP, ETH, 1, sender=SHOP.lower())["from"] == SHOP


def test_wrong_deposits_name_the_field_and_what_is_allowed(house: House) -> None:
    for units in (0, -5, 10**38):
        with pytest.raises(InvalidParameter) as error:
            house.sandbox.deposit(NETWORK, SHOP, ETH, units, None)
        assert "amount" in wrong(error.value)
    with pytest.raises(InvalidParameter) as elsewhere:
        house.sandbox.deposit(NETWORK, SHOP, CATALOGUE.coins["bsc", "bnb"], 1, None)
    assert wrong(elsewhere.value) == {"coin": ("must be a coin of ethereum",)}
    with pytest.raises(InvalidAddress, match="address is no address of ethereum"):
        house.sandbox.deposit(NETWORK, SHOP[:-1] + "E", ETH, 1, None)
    with pytest.raises(InvalidAddress, match="from is no address of ethereum"):
        house.sandbox.deposit(NETWORK, SHOP, ETH, 1, sender="bc1q")
    assert house.lab.reader.balance(SHOP) == 0


def test_blocks_are_mined_as_many_as_asked(house: House) -> None:
    tip = house.lab.reader.tip()
    assert house.sandbox.blocks(NETWORK, 10_000) == {"network": "ethereum", "mined": 10_000, "blockNumber": tip + 10_000}
    for count in (0, -1, 10_001):
        with pytest.raises(InvalidParameter) as error:
            house.sandbox.blocks(NETWORK, count)
        assert wrong(error.value) == {"count": ("must be an integer from 1 to 10000",)}
    assert house.lab.reader.tip() == tip + 10_000


def test_a_reorganisation_tells_what_became_of_the_transactions(house: House) -> None:
    deposit = house.sandbox.deposit(NETWORK, SHOP, ETH, 5, None)
    again = house.sandbox.reorg(NETWORK, 1, remine=True)
    assert (again["fromBlock"], again["dropped"], again["remined"]) == (deposit["blockNumber"], [], [deposit["txid"]])
    gone = house.sandbox.reorg(NETWORK, 2)
    assert (gone["fromBlock"], gone["dropped"], gone["remined"]) == (deposit["blockNumber"], [deposit["txid"]], [])
    assert gone["blockNumber"] == house.lab.reader.tip()


def test_a_reorganisation_that_is_too_deep_says_how_deep_it_may_be(house: House) -> None:
    house.sandbox.blocks(NETWORK, 4)
    for depth, allowed in (
        (6, "must be an integer from 1 to 5"),
        (0, "must be an integer from 1 to 64"),
        (65, "must be an integer from 1 to 64"),
    ):
        with pytest.raises(InvalidParameter) as error:
            house.sandbox.reorg(NETWORK, depth)
        assert wrong(error.value) == {"depth": (allowed,)}


def test_live_networks_can_not_be_told_anything(house: House) -> None:
    live = network_id("live", "ethereum")
    coin = replace(ETH, network=live)
    for ask in (
        lambda: house.sandbox.deposit(live, SHOP, coin, 1, None),
        lambda: house.sandbox.blocks(live, 1),
        lambda: house.sandbox.reorg(live, 1),
    ):
        with pytest.raises(BusinessRule):
            ask()
    tenant = tenant_id(MerchantId("mch_a"), "live")
    house.records.kept[tenant, "wd_1"] = replace(house.withdrawal(), tenant=tenant, network=live, asset=asset_id(live, "eth"))
    with pytest.raises(NotFound):
        house.sandbox.outcome(tenant, "wd_1", "fail")


def test_an_unknown_outcome_or_withdrawal_and_one_of_another_merchant(house: House) -> None:
    house.withdrawal()
    with pytest.raises(InvalidParameter) as error:
        house.sandbox.outcome(TENANT, "wd_1", "explode")
    assert wrong(error.value) == {"outcome": ("must be one of: confirm, fail, stick",)}
    for tenant, withdrawal in ((TENANT, "wd_2"), (tenant_id(MerchantId("mch_b"), "test"), "wd_1")):
        with pytest.raises(NotFound):
            house.sandbox.outcome(tenant, withdrawal, "fail")


@pytest.mark.parametrize("status", ["confirmed", "failed", "cancelled"])
def test_a_withdrawal_that_is_over_can_not_be_decided(house: House, status: Any) -> None:
    house.withdrawal(status=status)
    with pytest.raises(BusinessRule, match=f"is {status} already"):
        house.sandbox.outcome(TENANT, "wd_1", "fail")


@pytest.mark.parametrize(("outcome", "success", "deep"), [("confirm", True, True), ("fail", False, True), ("stick", None, False)])
def test_an_outcome_before_anything_is_signed_applies_at_the_broadcast(
    house: House, outcome: str, success: bool | None, deep: bool
) -> None:
    house.withdrawal()
    assert house.sandbox.outcome(TENANT, "wd_1", outcome) == {"id": "wd_1", "outcome": outcome, "state": "planned", "txid": None}
    signed = house.sign()
    house.lab.payer.broadcast(signed.raw)
    receipt = house.lab.reader.receipt(signed.txid)
    assert (None if receipt is None else receipt.success) == success
    if receipt is not None:
        assert (house.lab.reader.tip() - receipt.block_number + 1 >= house.lab.network.confirmations) == deep


@pytest.mark.parametrize(("outcome", "state"), [("confirm", "succeeded"), ("fail", "failed"), ("stick", "stuck")])
def test_an_outcome_after_the_broadcast_applies_at_once(house: House, outcome: str, state: str) -> None:
    house.withdrawal()
    signed = house.sign()
    house.lab.payer.broadcast(signed.raw)
    answer = house.sandbox.outcome(TENANT, "wd_1", outcome)
    assert (answer["state"], answer["txid"]) == (state, signed.txid)
    receipt = house.lab.reader.receipt(signed.txid)
    assert (receipt is not None and receipt.success) == (outcome == "confirm")


def test_an_outcome_between_signing_and_broadcast_is_planned_for_that_payment_alone(house: House) -> None:
    house.withdrawal()
    signed = house.sign()
    assert house.sandbox.outcome(TENANT, "wd_1", "fail")["state"] == "planned"
    house.lab.payer.broadcast(signed.raw)
    receipt = house.lab.reader.receipt(signed.txid)
    assert receipt is not None
    assert not receipt.success


def test_an_outcome_that_races_with_the_payment_still_applies_and_leaves_no_plan_behind(house: House) -> None:
    house.withdrawal()
    plan = house.lab.chain.plan

    def too_late(*facts: Any) -> None:
        # The worker signs and broadcasts after the use case looked at the withdrawal, before its plan is stored.
        house.lab.payer.broadcast(house.sign().raw)
        plan(*facts)

    house.lab.chain.plan = too_late  # type: ignore[method-assign]
    answer = house.sandbox.outcome(TENANT, "wd_1", "fail")
    assert answer["state"] == "failed"
    next_one = house.sign(nonce=1)
    house.lab.payer.broadcast(next_one.raw)
    receipt = house.lab.reader.receipt(next_one.txid)
    assert receipt is not None
    assert receipt.success


def test_what_the_chain_says_no_to_is_told(house: House) -> None:
    house.withdrawal()
    house.lab.payer.broadcast(house.sign().raw)
    house.sandbox.outcome(TENANT, "wd_1", "confirm")
    with pytest.raises(BusinessRule, match="final"):
        house.sandbox.outcome(TENANT, "wd_1", "stick")
