"""A reorganisation deeper than is remembered, and `resume`: the same token transfers, mined again at other places of other blocks,
are the deposits that they were. The ledger says what the chain says, whatever was credited before.
"""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from chalicelib.domain.chain import Cursor, DepositBlock
from chalicelib.domain.deposits.claims import LogClaim
from chalicelib.domain.deposits.deposits import Deposit, deposit_id
from chalicelib.domain.ledger import WalletBalance
from chalicelib.usecases.ports.changes import Delete
from chalicelib.usecases.ports.failures import Halted
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.commands.migrating import migrate
from infra.local.nodes import dev_account, mine, mined
from infra.local.tokens import call_data
from tests.nodes.sending import send_token
from tests.nodes.shops import CONFIRMATIONS, OUT, Shop, hot_wallet
from tests.support.cuts import Died

pytestmark = pytest.mark.nodes

REORG_DEPTH = 64
UNIT = 10**6


class Payers:
    """Two accounts whose transactions are known as bytes: they can be mined again, in any block. Each one's have an order."""

    def __init__(self, shop: Shop) -> None:
        self.shop, self.rpc = shop, shop.node.rpc
        self.accounts = self.rpc.call("eth_accounts")[1:3]
        for account in self.accounts:
            send_token(self.rpc, shop.usdt, account, 1_000 * UNIT)

    def pay(self, to: str, units: int, who: int = 0) -> str:
        """A payment of one of them, in a block when this returns, or waiting for the next one; its bytes."""
        data = call_data("transfer(address,uint256)", to, units)
        txid = self.rpc.call("eth_sendTransaction", [{"from": self.accounts[who], "to": self.shop.usdt, "data": data}])
        if self.rpc.call("anvil_getAutomine"):
            mined(self.rpc, txid)
        return str(self.rpc.call("eth_getRawTransactionByHash", [txid]))

    def reorganise(self, depth: int, blocks: list[list[str]]) -> None:
        """Replace the last `depth` blocks: the first ones of the new branch hold these transactions, in this order."""
        # Blocks that are mined again within the same second are the same blocks: another payment makes the branch a different one.
        elsewhere = {"from": dev_account(self.rpc), "to": "0x" + "ee" * 20, "value": "0x1"}
        again = [[raw, place] for place, block in enumerate(blocks) for raw in block]
        self.rpc.call("anvil_reorg", [depth, [*again, [elsewhere, 0]]])
        mine(self.rpc)


def network() -> Any:
    return services().catalogue("live").networks["arbitrum"]


def cursor() -> Cursor:
    found = services().store.get(Cursor, network=network().id)
    assert found is not None
    return found


def refuse(shop: Shop) -> None:
    with pytest.raises(ExceptionGroup) as failed:
        shop.run()
    assert failed.group_contains(Halted)


def deposits(address: str) -> list[Deposit]:
    found = (d for d in services().store.every(Deposit) if d.address == address)
    return sorted(found, key=lambda d: d.created_at)


def came_in() -> int:
    """Units of the token that the ledger has at places of ours."""
    return sum(wallet.units for wallet in services().store.every(WalletBalance) if wallet.asset == "live:arbitrum:usdt")


def on_chain(shop: Shop, *addresses: str) -> int:
    """What the chain says that they and the hot wallet have."""
    return sum(shop.on_chain(address)[1] for address in (hot_wallet(), *addresses))


@pytest.mark.parametrize("place", [0, pytest.param(40, marks=pytest.mark.sweep)], ids=["below-what-is-remembered", "within-it"])
def test_a_token_payment_is_credited_once(shop: Shop, place: int) -> None:
    """It was the first log of its block, and is the second one of another block."""
    payers = Payers(shop)
    made = shop.post("/v1/invoices", currency="usdt", amount="100", network="arbitrum")
    mine(shop.node.rpc)
    height = int(shop.node.rpc.call("eth_blockNumber"), 16)
    elsewhere = payers.pay(OUT, UNIT, 1)
    paid = payers.pay(made["address"], 100 * UNIT)
    shop.confirm()
    mine(shop.node.rpc, REORG_DEPTH + CONFIRMATIONS)
    shop.run()
    assert (shop.available()["usdt"], shop.invoice(made)["status"]) == ("100", "completed")
    (before,) = deposits(made["address"])
    depth = int(shop.node.rpc.call("eth_blockNumber"), 16) - height
    payers.reorganise(depth, [[] for _ in range(place)] + [[elsewhere, paid]])
    refuse(shop)
    assert shop.available()["usdt"] == "100"

    services().scanner(network()).resume()
    shop.run()
    shop.confirm()
    assert shop.available()["usdt"] == "100"
    (after,) = deposits(made["address"])
    assert (after.id, after.status, after.block_hash == before.block_hash) == (before.id, "confirmed", False)
    assert (shop.available()["usdt"], shop.invoice(made)["status"]) == ("100", "completed")
    assert came_in() == on_chain(shop, made["address"])
    assert audit(services().store) == []


def test_two_payments_change_places(shop: Shop) -> None:
    """Each is the deposit that it was, though its number in the block is the other's now. One that is lost is taken back."""
    payers = Payers(shop)
    bills = [shop.post("/v1/invoices", currency="usdt", amount=amount, network="arbitrum") for amount in ("10", "20", "30")]
    shop.node.rpc.call("evm_setAutomine", [False])
    paid = [payers.pay(bill["address"], units * UNIT, who) for bill, units, who in zip(bills, (10, 20, 30), (0, 1, 0), strict=True)]
    height = int(shop.node.rpc.call("eth_blockNumber"), 16)
    shop.confirm()
    shop.node.rpc.call("evm_setAutomine", [True])
    mine(shop.node.rpc, REORG_DEPTH + CONFIRMATIONS)
    shop.run()
    before = [deposits(bill["address"])[0] for bill in bills]
    assert [deposit.position for deposit in before] == ["log:0", "log:1", "log:2"]
    payers.reorganise(int(shop.node.rpc.call("eth_blockNumber"), 16) - height, [[paid[1], paid[0]]])
    refuse(shop)
    services().scanner(network()).resume()
    shop.run()
    shop.confirm()
    after = [deposits(bill["address"]) for bill in bills]
    assert [[(d.id, d.position, d.status) for d in found] for found in after] == [
        [(before[0].id, "log:1", "confirmed")],
        [(before[1].id, "log:0", "confirmed")],
        [(before[2].id, "log:2", "orphaned")],
    ]
    assert [shop.invoice(bill)["status"] for bill in bills] == ["completed", "completed", "pending"]
    assert shop.available()["usdt"] == "30"
    assert came_in() == on_chain(shop, *(bill["address"] for bill in bills))
    assert audit(services().store) == []
    # Looked at again, nothing is credited a second time.
    order = shop.stack.call(
        "POST", "/v1/networks/arbitrum/rescan", shop.stack.keys["admin_live"], json={"fromBlock": height, "toBlock": height + 5}
    )
    assert order.status == 201, order.body
    shop.run()
    assert [len(deposits(bill["address"])) for bill in bills] == [1, 1, 1]
    assert shop.available()["usdt"] == "30"


@pytest.mark.parametrize(
    "depth", [pytest.param(CONFIRMATIONS + 3, marks=pytest.mark.sweep), REORG_DEPTH + CONFIRMATIONS + 3], ids=["followed", "deeper"]
)
def test_what_was_let_go_of_stays_so(shop: Shop, depth: int) -> None:
    """A deposit of the grey list was released. At another place of another block it is the same one: nothing is held again."""
    payers = Payers(shop)
    admin = shop.stack.keys["admin_live"]
    listed = {"network": "arbitrum", "address": payers.accounts[0]}
    assert shop.stack.call("POST", "/v1/addresses/grey-list", admin, json=listed).status == 201
    made = shop.post("/v1/invoices", currency="usdt", amount="100", network="arbitrum")
    mine(shop.node.rpc)
    elsewhere = payers.pay(OUT, UNIT, 1)
    paid = payers.pay(made["address"], 100 * UNIT)
    height = int(shop.node.rpc.call("eth_blockNumber"), 16) - 2
    mine(shop.node.rpc, depth - 3)
    shop.run()
    shop.run()
    (held,) = deposits(made["address"])
    assert (held.held, shop.available()["usdt"], shop.invoice(made)["status"]) == (True, "0", "confirming")
    assert shop.stack.call("POST", f"/v1/transactions/{held.id}/release", admin).status == 200
    assert (shop.available()["usdt"], shop.invoice(made)["status"]) == ("100", "completed")

    payers.reorganise(int(shop.node.rpc.call("eth_blockNumber"), 16) - height, [[elsewhere, paid]])
    if depth > REORG_DEPTH:
        refuse(shop)
        services().scanner(network()).resume()
    shop.run()
    shop.confirm()
    assert shop.available()["usdt"] == "100"
    (after,) = deposits(made["address"])
    assert (after.id, after.position) == (held.id, "log:1")
    assert (after.status, after.held, after.released_at is not None) == ("confirmed", False, True)
    assert (shop.available()["usdt"], shop.invoice(made)["status"]) == ("100", "completed")
    assert came_in() == on_chain(shop, made["address"])
    assert audit(services().store) == []


@pytest.mark.parametrize("written", [0, *(pytest.param(n, marks=pytest.mark.sweep) for n in (1, 2, 3))])
def test_an_operator_whose_command_dies_starts_it_again(shop: Shop, monkeypatch: pytest.MonkeyPatch, written: int) -> None:
    """After any of its writes. Until it is through, a poll credits nothing."""
    payers = Payers(shop)
    bills = [shop.post("/v1/invoices", currency="usdt", amount="10", network="arbitrum") for _ in range(2)]
    mine(shop.node.rpc)
    height = int(shop.node.rpc.call("eth_blockNumber"), 16)
    elsewhere = payers.pay(OUT, UNIT, 1)
    paid = [payers.pay(bill["address"], 10 * UNIT) for bill in bills]
    shop.confirm()
    mine(shop.node.rpc, REORG_DEPTH + CONFIRMATIONS)
    shop.run()
    payers.reorganise(int(shop.node.rpc.call("eth_blockNumber"), 16) - height, [[], [elsewhere, *paid]])
    refuse(shop)
    store = services().store
    commit, done = store.commit, 0

    def dies(changes: Any) -> None:
        nonlocal done
        if done == written:
            raise Died
        done += 1
        commit(changes)

    with monkeypatch.context() as patch:
        patch.setattr(store, "commit", dies)
        with pytest.raises(Died):
            services().scanner(network()).resume()
    refuse(shop)
    services().scanner(network()).resume()
    shop.run()
    shop.confirm()
    assert [[d.status for d in deposits(bill["address"])] for bill in bills] == [["confirmed"], ["confirmed"]]
    assert shop.available()["usdt"] == "20"
    assert came_in() == on_chain(shop, *(bill["address"] for bill in bills))
    assert audit(services().store) == []


def test_where_the_scan_goes_on(shop: Shop) -> None:
    """Never above what is taken back. By default behind the highest block with deposits that the chain still has."""
    payers = Payers(shop)
    made = shop.post("/v1/invoices", currency="usdt", amount="10", network="arbitrum")
    mine(shop.node.rpc)
    height = int(shop.node.rpc.call("eth_blockNumber"), 16)
    stands = max(d.block_number or 0 for d in services().store.every(Deposit))
    elsewhere = payers.pay(OUT, UNIT, 1)
    paid = payers.pay(made["address"], 10 * UNIT)
    shop.confirm()
    mine(shop.node.rpc, REORG_DEPTH + CONFIRMATIONS)
    shop.run()
    payers.reorganise(int(shop.node.rpc.call("eth_blockNumber"), 16) - height, [[elsewhere], [paid]])
    refuse(shop)
    (fell,) = deposits(made["address"])
    scanner, oldest = services().scanner(network()), min(map(int, cursor().recent))
    with pytest.raises(ValueError, match=f"--from-block {oldest + 1} is too high: at most {fell.block[0] - 1}, the block before"):
        scanner.resume(oldest + 1)
    with pytest.raises(ValueError, match="whose deposits fell out"):
        scanner.resume(fell.block[0])
    (unchanged,) = deposits(made["address"])
    assert (unchanged, cursor().halted is not None) == (fell, True)
    assert scanner.resume().number == stands
    shop.run()
    shop.confirm()
    assert shop.available()["usdt"] == "10"
    assert audit(services().store) == []


@pytest.mark.parametrize("written", [1, *(pytest.param(n, marks=pytest.mark.sweep) for n in (2, 3, 4))])
def test_a_scan_that_dies_is_finished_by_the_next(shop: Shop, monkeypatch: pytest.MonkeyPatch, written: int) -> None:
    """Between the claim, the list of the block, the deposit and the cursor; and the block is another one when the next comes."""
    payers = Payers(shop)
    made = shop.post("/v1/invoices", currency="usdt", amount="10", network="arbitrum")
    mine(shop.node.rpc)
    elsewhere = payers.pay(OUT, UNIT, 1)
    shop.run()
    paid = payers.pay(made["address"], 10 * UNIT)
    store = services().store
    commit, done = store.commit, 0

    def dies(changes: Any) -> None:
        nonlocal done
        if done == written:
            raise Died
        done += 1
        commit(changes)

    with monkeypatch.context() as patch:
        patch.setattr(store, "commit", dies)
        if written < 4:
            with pytest.raises(Died):
                services().scanner(network()).poll(lambda: True)
        else:
            services().scanner(network()).poll(lambda: True)
    payers.reorganise(2, [[elsewhere, paid]])
    shop.run()
    shop.confirm()
    (found,) = deposits(made["address"])
    assert (found.position, found.status) == ("log:1", "confirmed")
    assert found.id == deposit_id(network().id, found.txid, "log:0")
    assert shop.available()["usdt"] == "10"
    assert audit(services().store) == []


@pytest.mark.parametrize("migrated", [pytest.param(True, marks=pytest.mark.sweep), False])
def test_deposits_of_an_older_version(shop: Shop, migrated: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """They have no claims, and no rows of their blocks. `resume` credits nothing twice all the same; `migrate` keeps the id."""
    payers = Payers(shop)
    made = shop.post("/v1/invoices", currency="usdt", amount="100", network="arbitrum")
    mine(shop.node.rpc)
    height = int(shop.node.rpc.call("eth_blockNumber"), 16)
    elsewhere = payers.pay(OUT, UNIT, 1)
    paid = payers.pay(made["address"], 100 * UNIT)
    shop.confirm()
    mine(shop.node.rpc, REORG_DEPTH + CONFIRMATIONS)
    shop.run()
    (before,) = deposits(made["address"])
    store = services().store
    for claim in list(store.every(LogClaim)):
        store.commit([Delete(LogClaim, {"network": claim.network, "txid": claim.txid})])
    for row in list(store.every(DepositBlock)):
        store.commit([Delete(DepositBlock, {"network": row.network, "number": str(row.number), "hash": row.hash})])
    if migrated:
        for written in ("claimed", "0 blocks listed by height, the logs of 0 transactions claimed"):
            assert migrate(argparse.Namespace(again=True)) == 0
            assert written in capsys.readouterr().out
        claim_of = store.get(LogClaim, network=network().id, txid=before.txid)
        assert claim_of is not None and claim_of.deposit(0) == before.id
    payers.reorganise(int(shop.node.rpc.call("eth_blockNumber"), 16) - height, [[]] * 40 + [[elsewhere, paid]])
    refuse(shop)
    services().scanner(network()).resume()
    shop.run()
    shop.confirm()
    assert shop.available()["usdt"] == "100"
    found = {d.id: d.status for d in deposits(made["address"])}
    assert found.pop(before.id) == ("confirmed" if migrated else "orphaned")
    assert list(found.values()) == ([] if migrated else ["confirmed"])
    assert came_in() == on_chain(shop, made["address"])
    assert audit(services().store) == []
