"""Recording what came of a batch: by the worker that sent it, or by its successor where it died.

Failures are recorded as they come, and first attempts that the receiver took at the end, in one transaction. That closes the
parcels of the batch, and where nothing is left to do it gives the lease back as well. Touches webhooks, events and work only.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from chalicelib.domain.webhooks.deliveries import Delivery, due_of
from chalicelib.domain.webhooks.endpoints import EventRecord
from chalicelib.domain.webhooks.leases import Turn
from chalicelib.domain.webhooks.parcels import Parcel, is_parcel, parcel_of
from chalicelib.usecases.base.newer_states import each_of
from chalicelib.usecases.ports.changes import Change, Close, Save
from chalicelib.usecases.ports.failures import TooNew
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.webhooks.delivery_attempts import Accepted, Deliveries, Sent
from chalicelib.usecases.webhooks.due_deliveries import Look

log = logging.getLogger(__name__)

Tried = Sent | Exception
Made = Sent | Accepted | Exception


@dataclass(frozen=True, slots=True)
class Recorded:
    """What came of a batch, in its order; `released`: the lease was given back with it."""

    tried: list[Tried]
    released: bool = False


class Recording:
    def __init__(self, store: Store, deliveries: Deliveries) -> None:
        self._store, self._deliveries = store, deliveries

    def of(self, look: Look, made: Sequence[Made], over: Turn | None) -> Recorded:
        """Record what is not recorded yet; `over` is the lease given back, None where its holder goes on."""
        accepted = [one for one in made if isinstance(one, Accepted)]
        unknown = {delivery.id for (delivery, _), one in zip(look.batch, made, strict=True) if isinstance(one, Exception)}
        parcels = [parcel for parcel in look.parcels if unknown.isdisjoint(parcel.delivery_ids)]
        told = self._together(accepted, parcels, over)
        released = over is not None and told is not None and not _unknown(told)
        if told is None and over is not None:
            told = self._together(accepted, parcels, None)
        if told is None:
            log.info("a delivery of a batch was settled by another worker: each is recorded by itself")
            told = [self._deliveries.recorded_alone(one) for one in accepted]
            if not _unknown(told):
                self._close(parcels)
        return Recorded(_merged(made, iter(told)), released)

    def _together(self, accepted: Sequence[Accepted], parcels: Sequence[Parcel], over: Turn | None) -> list[Tried] | None:
        """What came of the attempts, in one transaction; None where it could not be so."""
        if not accepted:
            self._close(parcels)
            return []
        beside: list[Change] = [Close(parcel.work) for parcel in parcels]
        if over is not None:
            beside.append(Save(over))
        try:
            told = self._deliveries.recorded(accepted, beside)
        except Exception as error:  # noqa: BLE001 - raised again when the failures are known
            return [error] * len(accepted)
        return None if told is None else list(told)

    def _close(self, parcels: Sequence[Parcel]) -> None:
        """Close parcels all of whose deliveries are stored."""
        for parcel in parcels:
            self._store.close(parcel.work)

    def interrupted(self, dead: Turn) -> tuple[list[Sent], list[Delivery]]:
        """Record the attempts of a dead worker as interrupted, and say which deliveries it had, as they are stored then. Without
        those in a form that only a newer version knows, which has recorded what came of them: the rest of the line goes on.

        Raises Unavailable, Conflict, and TooNew for an event: nobody knows what a parcel has without it.
        """
        hand = [due_of(id) for id in dead.hand if not is_parcel(id)]
        found = each_of(self._store, [(Delivery, {"tenant": dead.tenant, "id": one.delivery_id}) for one in hand])
        begun = [
            delivery
            for one, delivery in zip(hand, found, strict=True)
            if isinstance(delivery, Delivery) and delivery.status == "pending" and len(delivery.attempts) == one.attempts
        ]
        parcels = [parcel_of(dead.tenant, dead.endpoint_id, id) for id in dead.hand if is_parcel(id)]
        there, unsent = self._in(parcels)
        sent = [self._deliveries.interrupted(delivery, dead.began) for delivery in (*begun, *unsent)]
        self._close(parcels)
        known = {one.id: one for one in (*found, *there) if isinstance(one, Delivery)} | {
            one.delivery.id: one.delivery for one in sent
        }
        return sent, list(known.values())

    def _in(self, parcels: Sequence[Parcel]) -> tuple[list[Delivery], list[Delivery]]:
        """The stored deliveries of parcels, and those of which no attempt is recorded."""
        ids = list(chain.from_iterable(parcel.events for parcel in parcels))
        keys: list[tuple[type[Any], dict[str, str]]]
        keys = [(EventRecord, {"tenant": parcel.tenant, "id": id}) for parcel in parcels for id in parcel.events]
        keys += [(Delivery, {"tenant": parcel.tenant, "id": id}) for parcel in parcels for id in parcel.delivery_ids]
        found = each_of(self._store, keys) if keys else []
        left = {key["id"] for (_, key), one in zip(keys, found, strict=True) if isinstance(one, TooNew)}
        if unread := next((event for event in found[: len(ids)] if isinstance(event, TooNew)), None):
            raise unread
        stored = {one.id: one for one in found[len(ids) :] if isinstance(one, Delivery)}
        events = [event for event in found[: len(ids)] if event is not None]
        first = [stored.get(one.id, one) for parcel in parcels for one in parcel.deliveries(events)]
        return list(stored.values()), [one for one in first if one.status == "pending" and not one.attempts and one.id not in left]


def _unknown(told: Sequence[Tried]) -> bool:
    """Whether it is not known of some attempts whether they are recorded."""
    return any(isinstance(one, Exception) for one in told)


def _merged(made: Sequence[Made], told: Iterator[Tried]) -> list[Tried]:
    return [next(told) if isinstance(one, Accepted) else one for one in made]
