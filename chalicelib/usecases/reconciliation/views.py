"""Public views of reconciliation reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chalicelib.domain.catalogue.catalogue import Catalogue
from chalicelib.domain.ids import AssetId, NetworkId, asset_parts, network_parts
from chalicelib.domain.money import format_units
from chalicelib.domain.reconciliation import CoinSums, Comparison, ComparisonReport, Difference, Whole
from chalicelib.domain.times import iso
from chalicelib.usecases.ports.addresses import AddressRules


def whole_view(
    whole: Whole, catalogue: Catalogue, rules: AddressRules, only: str | None = None, part: Sequence[Difference] | None = None
) -> dict[str, Any]:
    """The reports of a realm, or of the network `only`; with the differences `part` in place of the first ones."""

    def wanted(network: NetworkId) -> bool:
        return only in (None, network_parts(network)[1])

    reports = [report for report in whole.reports if wanted(report.network)]
    known = {report.network for report in reports}
    active = {n.id for n in catalogue.networks.values() if n.status == "active" and wanted(n.id)}
    solvent = _solvent([_network_solvent(report, whole.at) for report in reports]) if active <= known else None
    return {
        "solvent": solvent,
        "orderedAt": None if whole.order is None else iso(whole.order.at),
        "networks": [_report(report, catalogue, rules, whole.at) for report in reports],
        "differences": [
            difference_view(difference, catalogue, rules)
            for report in reports
            for difference in (report.differences if part is None else part)
        ],
        "running": [_running(state) for state in whole.running if wanted(state.network)],
    }


def difference_view(difference: Difference, catalogue: Catalogue, rules: AddressRules) -> dict[str, Any]:
    network, coin = asset_parts(difference.asset)
    return {
        "network": network_parts(network)[1],
        "coin": coin,
        "address": rules.normalize(network, difference.address),
        "role": difference.role,
        "staked": difference.staked,
        "expected": _amount(catalogue, difference.asset, difference.expected),
        "chain": _amount(catalogue, difference.asset, difference.held),
        "difference": _amount(catalogue, difference.asset, difference.held - difference.expected),
        "block": difference.block,
        "firstSeen": iso(difference.first_seen),
    }


def _report(report: ComparisonReport, catalogue: Catalogue, rules: AddressRules, now: int) -> dict[str, Any]:
    return {
        "network": network_parts(report.network)[1],
        "run": report.run,
        "startedAt": iso(report.started_at),
        "finishedAt": iso(report.finished_at),
        "firstBlock": report.first_block,
        "lastBlock": report.last_block,
        "complete": report.complete,
        "trouble": report.trouble,
        "places": report.looked,
        "differences": report.found,
        "parts": report.parts + 1,
        "notCompared": report.unread,
        "skipped": [
            {
                "coin": asset_parts(place.asset)[1],
                "address": rules.normalize(report.network, place.address),
                "role": place.role,
                "staked": place.staked,
                "why": place.why,
            }
            for place in report.skipped
        ],
        "worst": [difference_view(difference, catalogue, rules) for difference in report.worst],
        "solvent": _network_solvent(report, now),
        "coins": [_coin(sums, report.complete, catalogue) for sums in report.sums],
    }


def _coin(sums: CoinSums, complete: bool, catalogue: Catalogue) -> dict[str, Any]:
    def amount(units: int) -> str:
        return _amount(catalogue, sums.asset, units)

    return {
        "coin": asset_parts(sums.asset)[1],
        "places": sums.places,
        "ledger": amount(sums.ledger),
        "expected": amount(sums.expected),
        "chain": amount(sums.held),
        "difference": amount(sums.held - sums.expected),
        "leaving": amount(sums.leaving),
        "liabilities": amount(sums.liabilities),
        "overdrawn": amount(sums.overdrawn),
        "operator": amount(sums.operator),
        "solvent": sums.solvent if complete else None,
    }


def _running(state: Comparison) -> dict[str, Any]:
    return {
        "network": network_parts(state.network)[1],
        "run": state.run,
        "startedAt": iso(state.started_at),
        "updatedAt": iso(state.updated_at),
        "phase": state.phase,
        "places": state.looked,
        "suspects": len(state.suspects),
        "differences": state.found,
        "trouble": state.trouble,
    }


def _network_solvent(report: ComparisonReport, now: int) -> bool | None:
    """An old report proves nothing good of now."""
    found = _solvent([sums.solvent for sums in report.sums]) if report.complete else None
    return None if found and report.stale(now) else found


def _solvent(each: list[bool | None]) -> bool | None:
    """One that is not makes the whole not solvent, whatever is not known of others."""
    return False if False in each else None if None in each else True


def _amount(catalogue: Catalogue, asset: AssetId, units: int) -> str:
    network, coin = asset_parts(asset)
    return format_units(units, catalogue.coins[network_parts(network)[1], coin].decimals)
