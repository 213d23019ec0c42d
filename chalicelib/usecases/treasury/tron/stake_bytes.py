"""Stakes read from their bytes alone: a record may have been altered, what the wallet's own key signed can not have been."""

from __future__ import annotations

from chalicelib.domain.transactions.outgoing import Attempt
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.usecases.base.address_forms import same_place
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.ports.staking import StakingNode


def unlike_bytes(context: NetworkContext, node: StakingNode, stake: Stake, unsigned: str, txid: str | None) -> list[str]:
    """In what `stake` is not what `unsigned` does, whose id should be `txid`. On Tron the signature is no part of the id."""
    try:
        does = node.explain(unsigned)
    except ValueError as error:
        return [f"being no plain stake ({error})"]
    facts = {
        "wallet": (does.owner, stake.wallet),
        "amount": (does.amount, stake.amount),
        "resource": (does.resource, stake.resource),
        "transaction": (does.txid, txid),
        "coin": (context.native().asset, stake.asset),
    }
    return [name for name, (found, ordered) in facts.items() if found != ordered]


def unlike_signed_stake(context: NetworkContext, node: StakingNode, stake: Stake, attempt: Attempt) -> list[str]:
    """In what `stake` is not what the signed bytes of its `attempt` do. Of one whose signed bytes a restore has forgotten the
    unsigned ones tell: they have the same id."""
    if attempt.forgotten:
        return unlike_bytes(context, node, stake, stake.unsigned or "", attempt.txid)
    try:
        found = node.opened(attempt.raw)
    except ValueError:
        return ["signed bytes"]
    own = same_place(context.rules, context.network, found.signer, stake.wallet)
    return [*unlike_bytes(context, node, stake, found.unsigned, attempt.txid), *([] if own else ["who signed"])]
