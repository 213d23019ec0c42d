"""Scan progress of networks: the last block that was scanned, and for the operator the state of the scan and of each node."""

from __future__ import annotations

from typing import Any

from chalicelib.api.coins_by_name import known_network
from chalicelib.api.context import Answer, Ctx
from chalicelib.api.lists import Listing, time, whole
from chalicelib.api.lists import network as network_slug
from chalicelib.api.lists.query import PageQuery
from chalicelib.api.routes import endpoint
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Cursor
from chalicelib.domain.scanning.node_reports import NetworkReport, NodeReport
from chalicelib.domain.times import iso

Scanned = tuple[Network, Cursor | None]
"""A network and how far it is scanned; None where scanning has not started."""

BLOCKS = Listing(
    "last blocks",
    (
        network_slug(lambda r, _: r[0].slug),
        whole("lastBlockNumber", lambda r, _: None if r[1] is None else r[1].number, "The last block that was scanned."),
        time("timestamp", lambda r, _: None if r[1] is None else r[1].block_time, "That block's time."),
    ),
    bare=True,
)


@endpoint(
    "GET", "/networks/last-number-block/{network}", family="object", permission="networks:read",
    summary="The last block that was scanned", answer="networks.BlockInfo",
)  # fmt: skip
def last_number_block(ctx: Ctx) -> Answer:
    """With that block's own time. Both are null before the first block is scanned."""
    network = known_network(ctx.catalogue, ctx.path["network"])
    return Answer(block_info(network, cursors(ctx, [network])[0]))


@endpoint(
    "GET", "/networks/last-number-blocks", family="object", permission="networks:read", query=BLOCKS,
    summary="The last block that was scanned, of each network", answer="list[networks.BlockInfo]",
)  # fmt: skip
def last_number_blocks(ctx: Ctx, query: PageQuery) -> Answer:
    """Of every network, active or not. Number and time are null before the first block is scanned."""
    networks = list(ctx.catalogue.networks.values())
    scanned: list[Scanned] = list(zip(networks, cursors(ctx, networks), strict=True))
    return Answer([block_info(network, cursor) for network, cursor in BLOCKS.array(ctx, query, scanned)])


def progress(ctx: Ctx, networks: list[Network]) -> tuple[list[Cursor | None], dict[str, NetworkReport]]:
    """How far each is scanned; and for admin keys how its nodes did, by network, where a poll has told that."""
    wanted: list[tuple[type[Any], dict[str, str]]] = [(Cursor, {"network": network.id}) for network in networks]
    if ctx.key.level == "admin":
        wanted += [(NetworkReport, {"network": network.id}) for network in networks if not network.simulated]
    found: list[Any] = ctx.services.store.get_many(wanted)
    reports = [report for report in found[len(networks) :] if report is not None]
    return found[: len(networks)], {report.network: report for report in reports}


def scan_of(ctx: Ctx, cursor: Cursor | None, report: NetworkReport | None) -> dict[str, Any]:
    """What an operator is shown of a network's scan; nothing for other keys."""
    if ctx.key.level != "admin":
        return {}
    heights = [cursor.tip] if cursor is not None else []
    heights += [report.tip] if report is not None and report.tip is not None else []
    tip = max(heights, default=None)
    told = report is None or report.tip is not None  # else no node says now how high the chain is
    scan = {
        "tip": tip,
        "lagBlocks": None if tip is None or cursor is None or not told else max(0, tip - cursor.number),
        "lastBlockAt": None if cursor is None else iso(cursor.block_time),
        "halted": None if cursor is None else cursor.halted,
        "rewindingTo": None if cursor is None else cursor.rewind_to,
        "backlogTo": None if cursor is None else cursor.ranges_to,
        "polledAt": None if report is None else iso(report.at),
        "nodes": [] if report is None else [_node(node) for node in report.nodes],
    }
    return {"scan": scan}


def _node(node: NodeReport) -> dict[str, Any]:
    return {
        "number": node.number,
        "state": node.state,
        "height": node.height,
        "latencyMs": node.latency_ms,
        "error": node.trouble,
        "askedAt": None if node.asked_at is None else iso(node.asked_at),
    }


def cursors(ctx: Ctx, networks: list[Network]) -> list[Cursor | None]:
    """How far each is scanned, None where scanning has not started."""
    return ctx.services.store.get_many([(Cursor, {"network": network.id}) for network in networks])


def block_info(network: Network, cursor: Cursor | None) -> dict[str, Any]:
    """Number and time are null while nothing has been scanned."""
    return {
        "network": network.slug,
        "lastBlockNumber": None if cursor is None else cursor.number,
        "timestamp": None if cursor is None else iso(cursor.block_time),
    }
