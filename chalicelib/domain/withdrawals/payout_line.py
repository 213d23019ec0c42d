"""The queue of payouts at one hot wallet: the position of each open payout, and the merchant that was served last.

Open work of the kind `payout` lies in the lane of its network. Its `order` is one of four, so that each part is read by itself:

* `line<merchant>@<time>`: ready to be started or resumed. A page reads one merchant's, and the next merchant's is one more page.
* `wait<merchant>@<time>`: no worker takes it before that time, whatever the reason.
* `work<merchant>@<time of creation>`: in flight, and cut short. It is asked for by name: its nonce holds up all others.
* digits alone: from before there was a line. The sweep puts it in.

A payout in flight moves at most once, and to the last part: a reader of the whole lane, from beginning to end, meets every payment
that has a nonce, though others move meanwhile.

Times are milliseconds since 1970. The id of such work tells what it takes, so that sums need no records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from chalicelib.domain.ids import NetworkId, TenantId
from chalicelib.domain.withdrawals.withdrawals import Priority, Withdrawal, fee_at
from chalicelib.domain.work import Work, time_order

READY, WAITING, BEGUN = "line", "wait", "work"  # in this order, and of one length
BEFORE_LINES = "9~"
"""Behind every `order` from before there was a line, and before all others."""
IDLE_MS = 30_000
"""A payment that was tried and stopped without a stored reason is retried after so long."""
RETRY_MS = 120_000
"""The same for one that waits for liquidity, for lower fees, or for its merchant's balance to be no longer negative."""
_SEPARATOR = "|"


@dataclass(frozen=True, slots=True)
class PayoutLine:
    """The round robin at a hot wallet: that of slot 0 is under the name of its `network`, that of another slot under its group's
    (`domain.addresses.group_of`). The merchant that was served `last`, the payout in `hand` by its place
    and id (`order#id`), and how often that was taken up there (`tries`): a payout left there was cut short by a crash."""

    network: NetworkId
    last: str = ""
    hand: str = ""
    tries: int = 0
    version: int = 1


@dataclass(frozen=True, slots=True)
class Taken:
    """The resources that an open payout needs of the hot wallet: `units` of the coin `slug`, and a fee at `priority`."""

    slug: str
    units: int
    priority: Priority

    def fee(self, quoted: int) -> int:
        """The fee in units of the native coin, where a payment of the coin costs `quoted` at the priority normal."""
        return fee_at(quoted, self.priority)


def ready_order(tenant: TenantId, at: int) -> str:
    """The place in line of a payout that is ready since `at`."""
    return f"{READY}{tenant}@{time_order(at)}"


def waiting_order(tenant: TenantId, due: int) -> str:
    """The place of a payout that is due again at `due`."""
    return f"{WAITING}{tenant}@{time_order(due)}"


def aside_order(withdrawal: Withdrawal, due: int) -> str:
    """The place of a parked payout: for good where it is in flight, else until `due`."""
    if withdrawal.status != "processing":
        return waiting_order(withdrawal.tenant, due)
    return f"{BEGUN}{withdrawal.tenant}@{time_order(withdrawal.created_at)}"


def merchant_in(work: Work) -> str:
    """The merchant of the payout at a place."""
    return work.order[len(READY) :].rpartition("@")[0]


def time_in(work: Work) -> int:
    """The time of a place: since when it is ready, or when it is due."""
    return int(work.order.rpartition("@")[2])


def behind(part: str, tenant: str) -> str:
    """An `order` behind all of one merchant's in a part of the lane (READY, WAITING or BEGUN), before all others'."""
    return f"{part}{tenant}~"


def payout_work(withdrawal: Withdrawal) -> Work:
    """Open work: settle a withdrawal. In the lane of its network, at its place in line."""
    tail = f"{withdrawal.tenant}{_SEPARATOR}{withdrawal.id}"
    if withdrawal.line is None:
        return Work("payout", withdrawal.network, time_order(withdrawal.created_at), tail)
    slug = withdrawal.asset.rsplit(":", 1)[1]
    told = _SEPARATOR.join((tail, slug, str(withdrawal.amount), withdrawal.priority))
    return Work("payout", withdrawal.network, withdrawal.line, told)


def taken_by(work: Work) -> Taken | None:
    """The resources that an open payout needs; None for one from before there was a line, whose record has to be read."""
    parts = work.id.split(_SEPARATOR)
    return None if len(parts) < 5 else Taken(parts[2], int(parts[3]), cast(Priority, parts[4]))
