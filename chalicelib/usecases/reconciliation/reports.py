"""Operators' requests to reconciliation: order a run, and read the last reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from chalicelib.domain.catalogue.catalogue import Catalogue, Network
from chalicelib.domain.ids import Realm, network_parts
from chalicelib.domain.reconciliation import (
    Comparison,
    ComparisonReport,
    Difference,
    DifferencesPart,
    ReconciliationOrder,
    Whole,
    run_due,
)
from chalicelib.domain.versions import version_after
from chalicelib.usecases.base.creation import Creation, Prepared
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store


def parts_of(store: Store, report: ComparisonReport, numbers: Iterable[int]) -> list[DifferencesPart]:
    """The parts (2 and on) that belong to a report: the report after the next one writes over them. Raises Unavailable."""
    keys: list[tuple[type[Any], dict[str, str]]] = [
        (DifferencesPart, {"network": report.network, "generation": str(report.generation), "part": str(number)})
        for number in numbers
    ]
    found: list[DifferencesPart | None] = store.get_many(keys) if keys else []
    return [part for part in found if part is not None and part.run == report.run]


def comparable(network: Network) -> bool:
    """Whether a network can be compared: one that is out of service can be while it has a node."""
    return network.status == "active" or network.simulated or network.rpc_url is not None


class Reconciliations:
    """Reads reports and orders runs. `reconciliation/run` compares."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def order(self, realm: Realm, by: str | None) -> ReconciliationOrder:
        """Every network of `realm` that can be is compared as soon as the schedule comes;
        one whose run is open already, once that has ended.

        `by` is the id of the operator's key, None for the command line. Raises Unavailable.
        """
        return self.ordering(realm, by).run()

    def ordering(self, realm: Realm, by: str | None) -> Creation[ReconciliationOrder]:
        """What `order` commits."""

        def prepare() -> Prepared[ReconciliationOrder]:
            before = self._store.get(ReconciliationOrder, realm=realm)
            order = ReconciliationOrder(realm, self._clock.now_ms(), by, version_after(before))
            return Prepared(order, [Save(order)])

        return Creation(self._store, prepare)

    def due(self, realm: Realm, networks: Sequence[Network]) -> list[Network]:
        """The networks of `realm` whose run is open, or has to begin. Raises Unavailable."""
        keys: list[tuple[type[Any], dict[str, str]]] = [(ReconciliationOrder, {"realm": realm})]
        keys += [(Comparison, {"network": network.id}) for network in networks]
        order, *states = self._store.get_many(keys)
        now = self._clock.now_ms()
        return [network for network, state in zip(networks, states, strict=True) if run_due(state, order, now)]

    def read(self, catalogue: Catalogue) -> Whole:
        """The reports of a realm, in one call. Raises Unavailable."""
        networks = [network.id for network in catalogue.networks.values()]
        kinds: tuple[type[Any], ...] = (Comparison, ComparisonReport)
        keys: list[tuple[type[Any], dict[str, str]]] = [(ReconciliationOrder, {"realm": catalogue.realm})]
        keys += [(kind, {"network": id_}) for kind in kinds for id_ in networks]
        order, *found = self._store.get_many(keys)
        return Whole(
            order=order,
            running=[state for state in found[: len(networks)] if state is not None and state.open],
            reports=[report for report in found[len(networks) :] if report is not None],
            at=self._clock.now_ms(),
        )

    def part(self, whole: Whole, slug: str, number: int) -> Sequence[Difference]:
        """Part `number` of the differences of a network's last report: 1 are those of the report itself. Raises Unavailable."""
        report = next((report for report in whole.reports if network_parts(report.network)[1] == slug), None)
        if report is None or number == 1:
            return () if report is None else report.differences
        found = parts_of(self._store, report, [number]) if number <= report.parts + 1 else []
        return found[0].differences if found else ()
