"""Networks of the caller's realm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from chalicelib.api.coins_by_name import known_network
from chalicelib.api.context import Answer, Ctx
from chalicelib.api.fields import NOT_NULL, NetworkSlug
from chalicelib.api.lists import Listing, amount, choice, flag, text, whole
from chalicelib.api.lists import network as network_slug
from chalicelib.api.lists.query import PageQuery
from chalicelib.api.models import CamelRequest
from chalicelib.api.resources.scan_progress import Scanned, progress, scan_of
from chalicelib.api.routes import endpoint
from chalicelib.domain.catalogue.catalogue import MOST_CONFIRMATIONS, Catalogue, Network
from chalicelib.domain.chain import Cursor
from chalicelib.domain.errors import FieldProblem
from chalicelib.usecases.catalogue.networks import MOST_NODES, MOST_USD
from chalicelib.usecases.catalogue.node_urls import MAX_URL, url_problem

_FEATURES = {"evm": ["evm", "tokens"], "tron": ["tokens"], "utxo": []}


NETWORKS = Listing(
    "networks",
    (
        network_slug(lambda r, _: r[0].slug).known_as("id"),
        text("name", lambda r, _: r[0].name, "The name."),
        text("symbol", lambda r, _: r[0].symbol, "The native coin's symbol."),
        choice("status", lambda r, _: r[0].status, ("active", "inactive"), "Whether it is in use."),
        flag("isTestnet", lambda r, _: r[0].realm == "test", "Whether it is a simulated one."),
        whole("confirmations", lambda r, _: r[0].confirmations, "Confirmations before a payment is credited."),
        amount("blockTime", lambda r, _: r[0].block_time, "Seconds between blocks."),
        whole("lastBlock", lambda r, _: None if r[1] is None else r[1].number, "The last block that was scanned."),
    ),
    bare=True,
)


def _url(*schemes: str, credentials: bool = True) -> AfterValidator:
    def check(value: str) -> str:
        problem = url_problem(value, schemes, credentials=credentials)
        if problem is not None:
            raise PydanticCustomError("constraint", "{text}", {"text": problem})
        return value

    return AfterValidator(check)


_UrlText = Annotated[str, Field(min_length=1, max_length=MAX_URL)]


class NetworkChange(CamelRequest):
    """What is not sent stays as it is; null takes a URL or the gas limit away."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"network": "ethereum", "confirmationBlocks": 12}]})

    selecting = frozenset({"network"})

    network: NetworkSlug
    name: Annotated[
        Annotated[str, Field(min_length=1, max_length=100, description="What people call it.", examples=["Ethereum"])] | None,
        NOT_NULL,
    ] = None
    status: Annotated[
        Literal["active", "inactive"] | None, Field(description="Whether payments on it are made and seen."), NOT_NULL
    ] = None
    confirmation_blocks: Annotated[
        Annotated[int, Field(ge=1, le=MOST_CONFIRMATIONS, description="Confirmations before a payment is credited.", examples=[12])]
        | None,
        NOT_NULL,
    ] = None
    rpc_url: (
        Annotated[
            _UrlText,
            _url("http", "https"),
            Field(
                description="The node. Shown to admin keys only. `{secret:NAME}` stands for a secret of nodes, which goes to its "
                "own hosts alone.",
                examples=["https://node.example"],
            ),
        ]
        | None
    ) = None
    ws_url: (
        Annotated[
            _UrlText,
            _url("ws", "wss"),
            Field(description="The node's events. Shown to admin keys only.", examples=["wss://node.example"]),
        ]
        | None
    ) = None
    explorer_url: (
        Annotated[
            _UrlText,
            _url("https", "http", credentials=False),
            Field(description="Where people look at the chain.", examples=["https://etherscan.io"]),
        ]
        | None
    ) = None
    rpc_urls: (
        Annotated[
            list[Annotated[_UrlText, _url("http", "https")]],
            Field(
                min_length=1,
                max_length=MOST_NODES,
                description="All nodes, in the order in which they are asked; `rpcUrl` is the first. Shown to admin keys only.",
                examples=[["https://node.example", "https://other.example"]],
            ),
        ]
        | None
    ) = None
    agreement_usd: (
        Annotated[
            int,
            Field(ge=0, le=MOST_USD, description="A payment worth more is credited when two nodes vouch for it.", examples=[1000]),
        ]
        | None
    ) = None
    finality_tag: (
        Annotated[
            Literal["safe", "finalized"],
            Field(description="What an EVM node has to call the block of a payment that is worth more than `finalityUsd`."),
        ]
        | None
    ) = None
    finality_usd: (
        Annotated[int, Field(ge=0, le=MOST_USD, description="Above which value `finalityTag` counts.", examples=[10_000])] | None
    ) = None
    tracing: Annotated[
        Annotated[
            Literal["auto", "on", "off"],
            Field(description="Whether nodes are asked what contracts sent: those that can (`auto`), every one, or none."),
        ]
        | None,
        NOT_NULL,
    ] = None
    audit_usd: (
        Annotated[
            int,
            Field(
                ge=0,
                le=MOST_USD,
                description="Before a payment worth more is credited on an EVM network, its block's logs are compared with the "
                "receipts; null: above 1000.",
                examples=[1000],
            ),
        ]
        | None
    ) = None
    gas_limit: (
        Annotated[int, Field(ge=21_000, le=100_000_000, description="Of a transfer; EVM networks only.", examples=[21_000])] | None
    ) = None

    @classmethod
    def cross(cls, sent: Mapping[str, Any], wrong: frozenset[str], catalogue: Catalogue) -> list[FieldProblem]:
        never_null = ("name", "status", "confirmationBlocks", "tracing")
        return [FieldProblem(name, None, ("must not be null",)) for name in never_null if name in sent and sent[name] is None]


@endpoint(
    "GET", "/networks", family="object", permission="networks:read", query=NETWORKS, summary="All networks",
    answer="list[networks.Network]",
)  # fmt: skip
def list_networks(ctx: Ctx, query: PageQuery) -> Answer:
    """All of them, also those that are inactive, with the last block that was scanned. Test keys see the simulated ones. `scan` is
    shown to admin keys only: how far the scan is behind the chain, whether it is halted, and how its nodes did in the last poll."""
    networks = list(ctx.catalogue.networks.values())
    found, reports = progress(ctx, networks)
    scanned: list[Scanned] = list(zip(networks, found, strict=True))
    shown = [
        {**listed(network, cursor), **scan_of(ctx, cursor, reports.get(network.id))}
        for network, cursor in NETWORKS.array(ctx, query, scanned)
    ]
    return Answer(shown)


@endpoint(
    "GET", "/networks/{network}", family="object", permission="networks:read", summary="One network and its configuration",
    answer="networks.NetworkDetails",
)  # fmt: skip
def get_network(ctx: Ctx) -> Answer:
    """URLs of nodes and what is asked of them are shown to admin keys only: URLs often carry a provider's secret."""
    return Answer(detailed(ctx, known_network(ctx.catalogue, ctx.path["network"])))


@endpoint(
    "PUT", "/networks", family="object", level="admin", permission="networks:write", body=NetworkChange,
    summary="Change a network's settings", answer="networks.NetworkDetails",
)  # fmt: skip
def change_network(ctx: Ctx, body: NetworkChange) -> Answer:
    """Everything that is sent changes at once, or nothing does; the pollers follow within half a minute.

    `confirmationBlocks` decides after how many blocks payments are credited: lowering it credits sooner what is waiting now,
    and every payment with fewer blocks on top can still be taken back by the chain. At most 2,000: reorganisations are followed
    twice as deep, and more hashes of blocks can not be remembered.

    A live network can only be active with an `rpcUrl`; the service does not call the URL here. Its first scan begins five minutes
    of blocks before the node's tip, so that nothing is missed that was paid after this answer. Scanning an inactive network stands
    still and goes on where it stood. A simulated network takes no URLs of nodes.

    `rpcUrl` alone replaces the first of `rpcUrls` and leaves the others; null takes the only one away. A second node sets
    `agreementUsd` to 1000 unless it is sent or set (null turns it off). `agreementUsd` needs two nodes; without a fresh rate
    every payment counts as worth more. `finalityTag` and `finalityUsd` go together, on EVM networks.
    """
    names = {"confirmation_blocks": "confirmations"}
    wanted = {names.get(name, name): getattr(body, name) for name in body.model_fields_set if name != "network"}
    changed = ctx.services.networks.change(ctx.catalogue.networks[body.network].id, wanted)
    return Answer(detailed(ctx, changed))


def detailed(ctx: Ctx, network: Network) -> dict[str, Any]:
    """A network with its configuration, as the caller may see it."""
    (cursor,), reports = progress(ctx, [network])
    record = listed(network, cursor) | scan_of(ctx, cursor, reports.get(network.id))
    record |= {
        "slug": network.slug,
        "chainId": network.chain_id,
        "confirmationBlocks": network.confirmations,
        "explorerUrl": network.explorer_url,
        "gasLimit": network.gas_limit,
        "features": _FEATURES[network.family],
    }
    if ctx.key.level == "admin":
        record |= {
            "rpcUrl": network.rpc_url,
            "wsUrl": network.ws_url,
            "rpcUrls": [url for url in (network.rpc_url, *network.more_rpc_urls) if url is not None],
            "agreementUsd": network.agreement_usd,
            "finalityTag": network.finality_tag,
            "finalityUsd": network.finality_usd,
            "tracing": network.tracing,
            "auditUsd": network.audit_usd,
        }
    return record


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
