"""Withdrawals on an anvil that mines only when asked: their fees, and the transactions that replace others."""

from __future__ import annotations

from chalicelib.domain.withdrawals.withdrawals import PaymentOrder
from chalicelib.wiring import services
from infra.local.nodes import mine
from tests.nodes.shops import ETHER, OUT, Shop

GWEI = 10**9
QUARTER = ETHER // 4
STUCK_MS = 185_000
REORG_DEPTH = 64


def block_at(shop: Shop, gwei: int) -> None:
    """A block whose base fee is this; the next one's is an eighth lower where it is empty (EIP-1559)."""
    shop.node.rpc.call("anvil_setNextBlockBaseFeePerGas", [hex(gwei * GWEI)])
    mine(shop.node.rpc)


def withdraw(shop: Shop, coin: str = "eth", amount: str = "0.25") -> str:
    made = shop.post("/v1/withdraws", network="arbitrum", coin=coin, address=OUT, amount=amount)
    shop.run()
    return str(made["id"])


def shown(shop: Shop, withdrawal: str) -> tuple[str, str]:
    record = shop.get(f"/v1/withdrawals/{withdrawal}")["data"]
    return record["status"], record["transaction_hash"]


def order_of(withdrawal: str) -> PaymentOrder:
    (found,) = (order for order in services().store.every(PaymentOrder) if order.withdrawal_id == withdrawal)
    return found


def replaced(shop: Shop, withdrawal: str) -> PaymentOrder:
    """Time passes until it counts as stuck, and its replacement is out."""
    services().clock.shift_ms += STUCK_MS
    shop.run()
    order = order_of(withdrawal)
    assert (len(order.earlier), order.renew, shown(shop, withdrawal)) == (1, False, ("confirming", order.txid))
    return order


def known(shop: Shop, txid: str | None) -> bool:
    return shop.node.rpc.call("eth_getTransactionByHash", [txid]) is not None
