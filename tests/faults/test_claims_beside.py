"""On a live network (anvil) token payments of an older version get their claims while the service runs: at a call of the migration
a reorganisation gives logs other numbers, payments come in, and money goes out. Everything is credited once, and claimed.

At four calls; with `SWEEP=full` also at each of the last twenty or so.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chalicelib.domain.deposits.claims import LogClaim
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ledger import WalletBalance
from chalicelib.usecases.ports.changes import Delete
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.recovery import deposit_migration
from chalicelib.usecases.recovery.deposit_migration import DepositMigration, Migration
from chalicelib.wiring import services
from infra.local.aws import LocalAws
from infra.local.nodes import dev_account, mine, mined
from infra.local.tokens import call_data
from tests.nodes.sending import send_token
from tests.nodes.shops import OUT, Shop, arbitrum_shop, hot_wallet
from tests.support.cuts import install
from tests.support.migrating import Meanwhile, as_before

pytestmark = [pytest.mark.nodes, pytest.mark.slow]

UNIT = 10**6


@pytest.fixture
def shop(aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    monkeypatch.setattr(deposit_migration, "PAGE", 10)
    with arbitrum_shop(aws) as made:
        yield made


class Payer:
    """Two accounts that pay in tokens by transactions that can be mined again in another block."""

    def __init__(self, shop: Shop) -> None:
        self._shop, self._rpc = shop, shop.node.rpc
        self._accounts = self._rpc.call("eth_accounts")[1:3]
        for account in self._accounts:
            send_token(self._rpc, shop.usdt, account, 1_000 * UNIT)
        self.bills: list[Any] = []

    def bill(self) -> str:
        """An invoice over 10 USDT, paid; the transaction's bytes."""
        self.bills.append(self._shop.post("/v1/invoices", currency="usdt", amount="10", network="arbitrum"))
        return self.pay(self.bills[-1]["address"], 10 * UNIT)

    def pay(self, to: str, units: int, who: int = 0) -> str:
        data = call_data("transfer(address,uint256)", to, units)
        txid = self._rpc.call("eth_sendTransaction", [{"from": self._accounts[who], "to": self._shop.usdt, "data": data}])
        mined(self._rpc, txid)
        return str(self._rpc.call("eth_getRawTransactionByHash", [txid]))

    def change_places(self, first: str, second: str) -> None:
        """The last two blocks, each with one of these, are replaced by one with both, the other way round."""
        other = {"from": dev_account(self._rpc), "to": "0x" + "ee" * 20, "value": "0x1"}
        self._rpc.call("anvil_reorg", [2, [[second, 0], [first, 0], [other, 0]]])
        mine(self._rpc)


def migrate() -> Migration:
    wired = services()
    network = wired.catalogue("live").networks["arbitrum"]
    return DepositMigration([network], wired.reader, wired.store, wired.clock).run()


def as_unclaimed() -> None:
    """Blocks have no rows, and what is not confirmed has no claims; other payments have theirs."""
    as_before()
    store = services().store
    for deposit in standing().values():
        if deposit.status == "pending":
            store.commit([Delete(LogClaim, {"network": deposit.network, "txid": deposit.txid})])


def standing() -> dict[str, Deposit]:
    """The deposits of tokens that stand, by their transactions: one each."""
    found = [d for d in services().store.every(Deposit) if d.asset == "live:arbitrum:usdt" and d.status != "orphaned"]
    assert len({d.txid for d in found}) == len(found)
    return {d.txid: d for d in found}


def traced(meanwhile: Meanwhile) -> list[str]:
    """The calls of a migration beside which nothing happens."""
    meanwhile.set(0, "error", "before")
    with meanwhile.arm():
        done = migrate()
    assert (done.claimed, dict(done.left)) == (2, {})
    as_unclaimed()
    return meanwhile.trace


def place(trace: list[str], where: str | int) -> int:
    """The number of a call: so many before the last, or by what it does."""
    if isinstance(where, int):
        return len(trace) - where
    asked = max(n for n, name in enumerate(trace, 1) if name.startswith("node "))
    return {"read deposits": trace.index("Scan") + 1, "ask for the last": asked, "store its claim": asked + 2, "end": len(trace)}[
        where
    ]


PLACES: list[str | int] = ["read deposits", "ask for the last", "store its claim", "end"]
FULL = os.environ.get("SWEEP") == "full"


def test_it_runs_while_logs_change_their_numbers(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    payer, meanwhile, out, moved = Payer(shop), Meanwhile(), 0, Counter[bool]()
    install(meanwhile, monkeypatch)

    def old() -> tuple[str, str]:
        payer.bill()
        paid, elsewhere = payer.bill(), payer.pay(OUT, UNIT, 1)
        shop.run()
        as_unclaimed()
        return paid, elsewhere

    def others() -> None:
        nonlocal out
        payer.change_places(*blocks)
        shop.run()
        payer.bill()
        shop.run()
        shop.post("/v1/withdraws", network="arbitrum", coin="usdt", address=OUT, amount="2")
        out += 1
        shop.run()

    payer.bill()
    shop.confirm()
    blocks = old()
    for where in [*PLACES, *range(1, len(traced(meanwhile)) if FULL else 1)]:
        at, before = place(traced(meanwhile), where), standing()
        meanwhile.set(at, "error", "before")
        meanwhile.happens(others)
        with meanwhile.arm():
            migrate()
        assert meanwhile.fired
        shop.confirm()
        shop.confirm()
        whole(shop, payer, out)
        moved[all(standing()[txid].id == deposit.id for txid, deposit in before.items())] += 1
        blocks = old()
    record_property("cut_points", moved.total())
    assert set(moved) == {False, True}, "where the migration was first, a payment stays the deposit that it was"


def whole(shop: Shop, payer: Payer, out: int) -> None:
    """Every token payment is credited once and has a claim, which says which deposit it is; all money is there."""
    claims = {claim.txid: claim for claim in services().store.every(LogClaim)}
    found = standing()
    assert {txid: deposit.id for txid, deposit in found.items()} == {txid: claims[txid].deposit(0) for txid in found}
    assert {deposit.status for deposit in found.values()} == {"confirmed"}
    for bill in payer.bills[-4:]:  # those since the last look: requests have a limit
        assert (shop.invoice(bill)["status"], shop.invoice(bill)["received"]) == ("completed", "10")
    assert shop.available()["usdt"] == str(10 * len(payer.bills) - 2 * out)
    held = sum(each.units for each in services().store.every(WalletBalance) if each.asset == "live:arbitrum:usdt")
    assert held == sum(shop.on_chain(address)[1] for address in (hot_wallet(), *(bill["address"] for bill in payer.bills)))
    assert audit(services().store) == []
