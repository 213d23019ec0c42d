"""Fee rates: the rate at which a transaction is mined in time, and its limit. Pure: reads answers of the node, asks none.

All rates in units per 1,000 vbytes.
"""

from __future__ import annotations

from typing import Any

from chalicelib.chains.answers import Garbled, member
from chalicelib.chains.utxo.answers import units
from chalicelib.chains.utxo.facts import Policy
from chalicelib.domain.withdrawals.withdrawals import FEE_TENTHS, Priority

TARGETS: dict[Priority, int] = {"low": 12, "normal": 6, "high": 3, "urgent": 2}
"""Within how many blocks an estimate is asked for. Core knows none below two."""


def rate_for(policy: Policy, priority: Priority, normal: Any, own: Any, pool: Any) -> int:
    """The rate at `priority`: the published multiple of what the priority normal costs, or what the node says that its own number
    of blocks costs, whichever is more; not below what the node relays, and within the policy's bounds.

    `normal` and `own` are answers of estimatesmartfee, `pool` of getmempoolinfo. A node that can not estimate (a new one, or one
    that saw few transactions) leaves the policy's rate.
    """
    base = estimate(normal) or policy.unknown
    rate = max(-(-base * FEE_TENTHS[priority] // 10), estimate(own) or 0)
    relayed = [_rate(member(pool, name, "the mempool")) for name in ("mempoolminfee", "minrelaytxfee")]
    # The bound above comes last: what a node says never moves it.
    return min(max(rate, policy.least, *relayed), policy.most)


def estimate(answer: Any) -> int | None:
    """The rate in an answer of estimatesmartfee, None where the node does not know (`errors`, or -1; bcoin calls it `fee`)."""
    said = member(answer, "feerate", "an estimate")
    return _rate(answer.get("fee") if said is None else said) or None


def _rate(said: Any) -> int:
    if said is None or (type(said) in (int, float) and said < 0):
        return 0
    if type(said) is float:
        # A rate is no amount: what a node writes beyond eight decimals is rounded.
        said = round(said, 8)
    try:
        return units(said)
    except Garbled:
        raise Garbled("a fee rate is no number, or more than there can be") from None
