"""What recording and crediting a block's payments costs one by one and in groups: calls and write units of DynamoDB, and CPU.

Run as a script: ``python tests/bench/bench_groups.py``. All payments are one merchant's, in one token, each for an invoice of its
own: the use cases alone, in one thread, without blocks, nodes, relay and deliveries. CPU is ours and botocore's, without moto's.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.update({"STAGE": "local", "SANDBOX_BLOCK_SECONDS": "0"})

from tests.bench.accounting import accounted
from tests.bench.bench_requests import started
from tests.support.shop import Shop
from tests.support.stack import Stack

PAYMENTS = 48
ROUNDS = 3


def paid(stack: Stack, together: bool, units: bool) -> tuple[float, float, float]:
    """Calls, write units and CPU seconds of one payment. With `units` the CPU means nothing."""
    from chalicelib.domain.addresses.addresses import Watched
    from chalicelib.domain.chain import Block, Cursor, Transfer
    from chalicelib.domain.deposits.deposits import deposit_id
    from chalicelib.usecases.base.clock import in_realm
    from chalicelib.usecases.deposits.first_sight import Scanned
    from chalicelib.usecases.deposits.groups import Member, grouped
    from chalicelib.usecases.scanning.block_lists import list_deposits
    from chalicelib.wiring import services

    stack.reset()
    shop, store = Shop(stack), services().store
    shop.mine(1)
    stack.drain(only=("poll_ethereum",), rounds=1)
    network, coin, deposits = shop.realm_network(), shop.coin("usdt"), services().deposits("test")
    cursor = store.get(Cursor, network=network.id)
    assert cursor is not None and coin.contract is not None
    block = Block(cursor.number + 1, "0x" + "ab" * 32, "0x" + "00" * 32, services().clock.now_ms())
    members = []
    for number in range(PAYMENTS):
        address = shop.invoice("20", "usdt")["address"].lower()
        watched = store.get(Watched, realm="test", family="evm", address=address)
        assert watched is not None
        txid, position = f"0x{number:064x}", f"log:{number}"
        transfer = Transfer(txid, position, coin.contract.lower(), "0x" + "0c" * 20, address, 20 * 10**6)
        members.append(Member(transfer, deposit_id(network.id, txid, position), watched))
        shop.wait(1)
    with accounted(units=units) as account, in_realm("test"):
        began = time.thread_time()
        parts = list_deposits(store, network.id, block, [member.id for member in members], cursor.epoch)
        for group in grouped(members, parts) if together else [[member] for member in members]:
            seen = Scanned(block, cursor.epoch, None, block.number + 20, parts[group[0].id])
            left = deposits.detect_together(network, coin, seen, group) if together else group
            for transfer, key, owner in left:
                deposits.detect(network, coin, seen, transfer, owner, key)
        for group in grouped(members, parts) if together else [[member] for member in members]:
            keys = [member.id for member in group]
            at = block.hash, block.number + 20, cursor.epoch
            for key in deposits.confirm_together(network, keys, *at) if together else keys:
                deposits.confirm(network, key, *at)
        spent = time.thread_time() - began - account.moto
    calls = sum(count for name, count in account.calls.items() if name.startswith("dynamodb:"))
    return calls / PAYMENTS, sum(account.writes.values()) / PAYMENTS, spent / PAYMENTS


def main() -> None:
    from infra.local.repairs import direct

    stack, _ = started()
    direct.end()  # botocore's own work counts
    print("| | calls | write units | CPU, ms |\n|---|---|---|---|")
    for name, together in (("one by one", False), ("in groups of 12", True)):
        calls, units, _ = paid(stack, together, units=True)
        seconds = min(paid(stack, together, units=False)[2] for _ in range(ROUNDS))
        print(f"| {name} | {calls:.1f} | {units:.1f} | {seconds * 1000:.2f} |")


if __name__ == "__main__":
    main()
