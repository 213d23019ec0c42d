"""Rescans: ranges of blocks that are looked at again."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from chalicelib.api.coins_by_name import known_network
from chalicelib.api.context import Answer, Ctx
from chalicelib.api.lists import Listing, ListQuery, choice, text, time, whole
from chalicelib.api.models import CamelRequest
from chalicelib.api.routes import endpoint
from chalicelib.domain.ids import first_id
from chalicelib.domain.scanning.rescans import Rescan
from chalicelib.domain.times import iso

MOST_HEIGHT = 10**12


class RescanRequest(CamelRequest):
    """A range of blocks to look at again."""

    from_block: Annotated[int, Field(ge=0, le=MOST_HEIGHT, description="The first block.", examples=[19_000_000])]
    to_block: Annotated[int, Field(ge=0, le=MOST_HEIGHT, description="The last block, included.", examples=[19_001_000])]


@endpoint(
    "POST", "/networks/{network}/rescan", family="object", level="admin", permission="networks:write", body=RescanRequest,
    status=201, creates=True, summary="Look again at a range of blocks", answer="networks.Rescan",
)  # fmt: skip
def order_rescan(ctx: Ctx, body: RescanRequest) -> Answer:
    """For what was not ours to see when the blocks were scanned: tokens that were paid before their coin was created here,
    addresses that were paid before the network's first scan. The poller does it, after what is new, in parts; what was credited
    once is never credited twice, and what is found is credited after the network's confirmations like any deposit.

    At most 100,000 blocks at once, up to the last one that was scanned.
    """
    network = known_network(ctx.catalogue, ctx.path["network"])
    return ctx.create(ctx.services.rescans.ordering(network, body.from_block, body.to_block), rescanned)


RESCANS = Listing(
    "rescans",
    (
        time("createdAt", lambda r, _: r.created_at, "When it was ordered.").known_as("created_at").indexed("time"),
        text("id", lambda r, _: r.id, "The rescan's id.", sortable=False),
        choice("status", lambda r, _: r.status, ("pending", "running", "completed"), "How far it is."),
        whole("fromBlock", lambda r, _: r.from_block, "Its first block."),
        whole("toBlock", lambda r, _: r.to_block, "Its last block."),
    ),
    kind=Rescan,
    partition=lambda ctx: {"network": known_network(ctx.catalogue, ctx.path["network"]).id},
    position=lambda ms: first_id("rsc", ms),
)


@endpoint(
    "GET", "/networks/{network}/rescan", family="object", level="admin", permission="networks:read", query=RESCANS, envelope=True,
    answer="list[networks.Rescan]", summary="Rescans of a network, newest first",
)  # fmt: skip
def list_rescans(ctx: Ctx, query: ListQuery) -> Answer:
    """Those that are done, too, and those that the service ordered itself."""
    found, pagination = RESCANS.page(ctx, query)
    return Answer([rescanned(each) for each in found], pagination)


@endpoint(
    "GET", "/networks/{network}/rescan/{id}", family="object", level="admin", permission="networks:read",
    summary="How far a rescan is", answer="networks.Rescan",
)  # fmt: skip
def get_rescan(ctx: Ctx) -> Answer:
    """`status` is `pending` (not started), `running`, or `completed`."""
    network = known_network(ctx.catalogue, ctx.path["network"])
    return Answer(rescanned(ctx.services.rescans.get(network.id, ctx.param("id"))))


def rescanned(rescan: Rescan) -> dict[str, Any]:
    return {
        "id": rescan.id,
        "status": rescan.status,
        "fromBlock": rescan.from_block,
        "toBlock": rescan.to_block,
        "scannedTo": rescan.scanned_to,
        "createdAt": iso(rescan.created_at),
    }
