"""Audit rules of moves between our own addresses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from chalicelib.domain.treasury.hot_utxos import OwnTransaction
from chalicelib.domain.treasury.moves import WHOLE_TRANSACTION, Move


def moves_agree(moves: Sequence[Move], own: Sequence[OwnTransaction], given_up: Collection[str] = ()) -> Iterable[str]:
    """Every violation, one sentence each. `given_up` are the ids of moves that an operator gave up: they may fail in no block."""
    credits_nobody = {(each.network, each.txid) for each in own if WHOLE_TRANSACTION in each.positions}
    for move in moves:
        name = f"move {move.id}"
        signed = move.state in ("signed", "settled", "failed")
        allotted = signed or move.state == "built"
        if (move.unsigned is not None) != allotted or (move.nonce is not None) != allotted:
            yield f"{name} is {move.state}, and its bytes or its nonce say otherwise"
        if (move.raw is not None) != signed or (move.txid is not None) != signed or (move.earlier and not signed):
            yield f"{name} is {move.state}, and its signed bytes say otherwise"
        if move.renew and move.state != "signed":
            yield f"{name} is {move.state} and to be replaced"
        in_no_block = move.usurped is not None or (move.state == "failed" and move.mined is None and move.id in given_up)
        final = move.state in ("settled", "failed") and not in_no_block
        if (move.mined is not None) != final or (move.block_hash is not None) != final or (final and move.arrived is None):
            yield f"{name} is {move.state}, and its block says otherwise"
        if final and move.mined not in move.txids:
            yield f"{name} was settled by {move.mined}, which is no attempt of it"
        if move.arrived is not None and bool(move.arrived) != (move.state == "settled"):
            yield f"{name} is {move.state} and {move.arrived} arrived"
        for txid in move.txids:
            if (move.network, txid) not in credits_nobody:
                yield f"{name} has the attempt {txid}, which a scanner could take for a deposit"
