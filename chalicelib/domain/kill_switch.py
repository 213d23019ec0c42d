"""The operator's kill switch: whether a realm pays out."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.domain.ids import Realm


@dataclass(frozen=True, slots=True)
class PaymentSwitch:
    """One record of a realm; none while nobody ever touched it, which is as one that is not thrown. `changed_at` (in milliseconds
    since 1970, in the realm's time), `changed_by` the id of the key that did it, or `operator` for the command line. `stopped_at`
    (as `changed_at`) says since when payments are stopped, whatever reason was given later. `put_back` (the same): since when it is
    known that the tables were put back to an earlier second while the chains went on (`usecases.recovery.point_in_time`)."""

    realm: Realm
    stopped: bool = False
    reason: str | None = None
    changed_at: int | None = None
    changed_by: str | None = None
    stopped_at: int | None = None
    put_back: int | None = None
    version: int = 0
