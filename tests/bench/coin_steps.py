"""Further steps on the litecoin in memory (live_steps.py): its mempool, a backlog, and coins between our own addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chalicelib.domain.addresses.addresses import Wallet, Watched
from chalicelib.domain.chain import Transfer
from chalicelib.domain.ids import NetworkId
from chalicelib.domain.scanning.ranges import ScanRange
from chalicelib.domain.treasury.consolidations import CoinMove
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.scanning import backlog
from chalicelib.usecases.scanning.reorganisations import batch_blocks
from chalicelib.wiring import services
from tests.bench.walk import SETTLED

if TYPE_CHECKING:
    from tests.bench.live_steps import Litecoin

COIN = 10**8
DEPOSITS = 9
COLD = "ltc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qmu8tk5"  # BIP-173's script hash
RANGES = 4
"""Of a backlog: the fewest that are shared out."""


def behind(walk: Litecoin) -> None:
    """A poll stood still for so long that its blocks are shared out."""
    network = services().catalogue("live").networks[walk.network]
    walk.mine(network.reorg_depth + RANGES * backlog.BATCHES * batch_blocks(network))
    walk.poll("a backlog is shared out")
    out = [each for each in services().store.every(ScanRange) if each.network == network.id]
    assert len(out) == RANGES, out
    walk.step(f"scan_range: {RANGES} ranges", lambda: walk.fire("scan_range"))
    walk.poll(f"{RANGES} ranges were scanned")
    walk.idle()


def glimpsed(walk: Litecoin) -> None:
    """A payment is seen in the mempool, waits there, and gets its block."""
    assert walk.pool is not None
    made = walk.ask("POST", "/invoices", {"currency": walk.coin, "network": walk.network, "amount": walk.amount()})
    units = round(float(walk.amount()) * COIN)
    txid = walk.coins.pay(made["address"], units)
    walk.pool.held[txid] = [Transfer(txid, "out:0", None, "", made["address"], units)]
    walk.poll("a payment is seen in the mempool")
    walk.poll("a payment waits in the mempool")
    walk.mine(1)
    del walk.pool.held[txid]
    walk.poll("a payment of the mempool gets its block")
    walk.mine(walk.confirmations)
    walk.poll("a payment of the mempool is confirmed")
    assert walk.ask("GET", f"/invoices?id={made['id']}")["status"] == "completed"
    walk.idle()


def treasury(walk: Litecoin) -> None:
    """Deposits are consolidated; what the hot wallet has above its ceiling goes to the cold one."""
    kept = {"collectThreshold": "1", "hotCeiling": "1000000", "collectServiceToColdThreshold": "1"}
    coin = {"coin": walk.coin, "network": walk.network}

    def settle(**settings: str) -> None:
        walk.ask("PUT", "/coins", {**coin, **kept, **settings}, "admin_live")
        services().store.forget_catalogue()

    network = NetworkId(f"live:{walk.network}")
    if services().store.get(Wallet, network=network, role="cold") is None:
        cold = Wallet(network, "cold", COLD, "none", "", "", 1)
        services().store.commit([Save(cold), Save(Watched("live", walk.network, COLD, "cold", (walk.network,)))])
    settle()
    body = {"currency": walk.coin, "network": walk.network, "amount": "0.5"}
    for made in [walk.ask("POST", "/invoices", body) for _ in range(DEPOSITS)]:
        walk.pay(made["address"], walk.coin, "0.5")
    walk.mine(walk.confirmations)
    moves(walk, f"a consolidation of {DEPOSITS}")
    hot = services().store.get(Wallet, network=network, role="hot")
    assert hot is not None
    walk.pay(hot.address, walk.coin, "10")
    walk.mine(walk.confirmations)
    walk.idle()
    settle(hotCeiling="6")
    moves(walk, "a move to the cold wallet")
    settle()
    walk.idle()


def moves(walk: Litecoin, name: str) -> None:
    """Coins move between our own addresses, from the plan until no reorganisation undoes it."""
    before = len(list(services().store.every(CoinMove)))
    walk.fire("poll_litecoin", "relay")
    walk.wait(360)
    walk.poll(f"{name} is planned")
    assert len(list(services().store.every(CoinMove))) == before + 1, list(services().store.every(CoinMove))
    walk.told(f"{name} is planned")
    walk.step(f"payout and collect: {name}", lambda: walk.fire("payout", "collect"))
    walk.poll(f"{name} is in no block")
    walk.mine(walk.confirmations)
    walk.poll(f"{name} is settled")
    walk.mine(SETTLED)
    walk.poll(f"{name} is final")
    walk.idle()
