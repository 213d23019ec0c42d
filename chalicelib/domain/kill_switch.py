"""The operator's kill switch: whether a realm pays out."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.domain.ids import Realm


@dataclass(frozen=True, slots=True)
class PaymentSwitch:
    """One record of a realm; none while nobody ever touched the switch, which then is not thrown. Times are in milliseconds since
    1970, in the realm's time. `changed_by` is the id of the key that changed it, or `operator` for the command line. `stopped_at`
    says since when payments are stopped, whatever reason was given later. `put_back` is when a point-in-time restore of the tables
    became known: the chains went on meanwhile (`usecases.recovery.point_in_time`)."""

    realm: Realm
    stopped: bool = False
    reason: str | None = None
    changed_at: int | None = None
    changed_by: str | None = None
    stopped_at: int | None = None
    put_back: int | None = None
    version: int = 0
