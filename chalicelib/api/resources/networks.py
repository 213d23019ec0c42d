"""Networks of the caller's realm, and how far each is scanned."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.models import Query, known_network
from chalicelib.api.paging import MAX_LIMIT
from chalicelib.api.routes import endpoint
from chalicelib.domain.catalogue import Network
from chalicelib.domain.chain import Cursor
from chalicelib.usecases.views import iso

_FEATURES = {"evm": ["evm", "tokens"], "tron": ["tokens"], "utxo": []}


class NetworksQuery(Query):
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)] | None = None


@endpoint("GET", "/networks", family="object", permission="networks:read", query=NetworksQuery, summary="All networks")
def list_networks(ctx: Ctx, query: NetworksQuery) -> Answer:
    networks = list(ctx.catalogue.networks.values())[: query.limit]
    return Answer([listed(network, cursor) for network, cursor in zip(networks, cursors(ctx, networks), strict=True)])


@endpoint("GET", "/networks/{network}", family="object", permission="networks:read", summary="One network and its configuration")
def get_network(ctx: Ctx) -> Answer:
    """The URLs of the nodes are shown to admin keys only."""
    network = known_network(ctx.catalogue, ctx.path["network"])
    record = listed(network, cursors(ctx, [network])[0])
    record |= {
        "slug": network.slug,
        "chainId": network.chain_id,
        "confirmationBlocks": network.confirmations,
        "explorerUrl": network.explorer_url,
        "gasLimit": network.gas_limit,
        "features": _FEATURES[network.family],
    }
    if ctx.key.level == "admin":
        record |= {"rpcUrl": network.rpc_url, "wsUrl": network.ws_url}
    return Answer(record)


@endpoint(
    "GET", "/networks/last-number-block/{network}", family="object", permission="networks:read",
    summary="The last block that was scanned",
)  # fmt: skip
def last_number_block(ctx: Ctx) -> Answer:
    network = known_network(ctx.catalogue, ctx.path["network"])
    return Answer(block_info(network, cursors(ctx, [network])[0]))


@endpoint(
    "GET", "/networks/last-number-blocks", family="object", permission="networks:read",
    summary="The last block that was scanned, of each network",
)  # fmt: skip
def last_number_blocks(ctx: Ctx) -> Answer:
    networks = list(ctx.catalogue.networks.values())
    return Answer([block_info(network, cursor) for network, cursor in zip(networks, cursors(ctx, networks), strict=True)])


def cursors(ctx: Ctx, networks: list[Network]) -> list[Cursor | None]:
    """How far each is scanned, None where scanning has not begun."""
    return ctx.services.store.get_many([(Cursor, {"network": network.id}) for network in networks])


def block_info(network: Network, cursor: Cursor | None) -> dict[str, Any]:
    """Number and time are null while nothing has been scanned."""
    return {
        "network": network.slug,
        "lastBlockNumber": None if cursor is None else cursor.number,
        "timestamp": None if cursor is None else iso(cursor.block_time),
    }


def listed(network: Network, cursor: Cursor | None) -> dict[str, Any]:
    return {
        "id": network.slug,
        "network": network.slug,
        "name": network.name,
        "symbol": network.symbol,
        "isTestnet": network.realm == "test",
        "confirmations": network.confirmations,
        "blockTime": network.block_time,
        "status": network.status,
        "lastBlock": None if cursor is None else cursor.number,
    }
