"""Two transactions of ours with one nonce: an open payment, and the filler that an operator put over it (`filling_over`).

The chain takes one of them at most. Which one, receipts and sightings say, as with a transaction of somebody else. What is here
says no more than whose the other one is, for alarms, and that the payment is not replaced beside the filler.
"""

from __future__ import annotations

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.ids import NetworkId
from chalicelib.domain.treasury.moves import Move, move_id
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder
from chalicelib.usecases.ports.accounts import ChainPayer, Opened
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.ports.store import Store


def filler_id(order: PaymentOrder) -> str:
    """The id of the one filler that may be put over an order."""
    return move_id(order.id, "filler", 1)


def filler_over(store: Store, order: PaymentOrder) -> Move | None:
    """Raises Unavailable."""
    return store.get(Move, network=order.network, id=filler_id(order))


def outbid(store: Store, order: PaymentOrder) -> bool:
    """Whether a filler that is not mined yet stands over it: two that outbid each other would burn fees for nothing."""
    filler = None if order.bundle is not None else filler_over(store, order)
    return filler is not None and filler.state in ("built", "signed")


def settled(store: Store, order_id: str) -> bool:
    """Whether the payment was mined, and that is final: nothing needs to be signed over it any more."""
    order = store.get(PaymentOrder, id=order_id)
    return order is not None and order.state == "settled"


def rival_bytes(store: Store, payer: ChainPayer, order_id: str) -> tuple[str, ...]:
    """The unsigned bytes of every attempt of an order, as they were signed. Raises as `rivals_of`."""
    return tuple(rival.unsigned for rival in rivals_of(store, payer, order_id))


def rivals_of(store: Store, payer: ChainPayer, order_id: str) -> tuple[Opened, ...]:
    """Every attempt of an order, decoded from its bytes. Raises Refused for what is none, Unavailable."""
    order = store.get(PaymentOrder, id=order_id)
    if order is None or order.newest is None:
        raise Refused(f"order {order_id} has no signed bytes")
    try:
        return tuple(payer.opened(attempt.raw) for attempt in order.attempts)
    except ValueError as error:
        raise Refused(f"the signed bytes of {order_id} can not be read: {error}") from error


def mined_beside(store: Store, reader: ChainReader, network: Network, record: object) -> str | None:
    """The name of the other one of ours with the nonce of `record`, where a node has it in a block. Raises Unavailable."""
    other = _other(store, network.id, record)
    if other is None or all(reader.receipt(txid) is None for txid in other.txids):
        return None
    return other.id


def by_whom(store: Store, reader: ChainReader, network: Network, record: PaymentOrder | Move) -> str:
    """The user of the nonce of `record`, which failed for that, in the words of an alarm. Raises Unavailable."""
    ours = mined_beside(store, reader, network, record)
    if ours is not None:
        return f"our own {ours}: it has failed"
    wallet = record.wallet if isinstance(record, PaymentOrder) else record.source
    return f"others: it has failed, and somebody has the key of {wallet}"


def _other(store: Store, network: NetworkId, record: object) -> PaymentOrder | Move | None:
    if isinstance(record, PaymentOrder):
        return store.get(Move, network=network, id=filler_id(record))
    if isinstance(record, Move) and record.over is not None:
        return store.get(PaymentOrder, id=record.over)
    return None
