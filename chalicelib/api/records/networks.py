"""Answers about networks."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from chalicelib.api.records.base import HASH, CamelRecord, Money, Time
from chalicelib.domain.scanning.node_reports import NodeState

Slug = Annotated[str, Field(description="The network's slug.", examples=["ethereum"])]
Status = Annotated[
    Literal["active", "inactive"],
    Field(description="Whether payments on it are made and seen.", examples=["active"]),
]
Height = Annotated[int, Field(ge=0, description="A block's number.", examples=[19_000_000])]


class Node(CamelRecord):
    """One of a network's nodes, as the last poll left it. Its URL is in the network's configuration."""

    number: Annotated[int, Field(ge=1, description="Its position among `rpcUrls`, from 1 on.", examples=[1])]
    state: Annotated[
        NodeState,
        Field(
            description="`well`; `failing`: some requests failed; `resting`: left alone for a while after failures; `silent`: no "
            "answer of any kind; `unasked`: another one answers.",
            examples=["well"],
        ),
    ]
    height: Annotated[Height | None, Field(description="The last block that it has; null where it did not say.")]
    latency_ms: Annotated[int | None, Field(ge=0, description="Milliseconds of a request, on average.", examples=[84])]
    error: Annotated[str | None, Field(description="Its last failure in that poll.", examples=["the node answers HTTP 502"])]
    asked_at: Annotated[Time | None, Field(description="When it was last asked.")]


class Scan(CamelRecord):
    """How far a network's scan is, and how its nodes do: as the polls stored it, at most once a minute."""

    tip: Annotated[Height | None, Field(description="The chain's height when it was last seen.")]
    lag_blocks: Annotated[
        int | None, Field(ge=0, description="Blocks that are not scanned yet; null while no node tells the height.", examples=[0])
    ]
    last_block_at: Annotated[Time | None, Field(description="The own time of `lastBlock`.")]
    halted: Annotated[
        str | None,
        Field(
            description="Why nothing is credited on it until an operator takes it up (`resume`); null where it goes on.",
            examples=["a fork deeper than what is remembered"],
        ),
    ]
    rewinding_to: Annotated[
        Height | None, Field(description="The block that a reorganisation is being undone to; null without one.")
    ]
    backlog_to: Annotated[
        Height | None, Field(description="The last block of a backlog that several functions scan; null without.")
    ]
    polled_at: Annotated[
        Time | None, Field(description="When a poll last reported. Null for simulated networks, which have no nodes.")
    ]
    nodes: Annotated[list[Node], Field(description="In the order of `rpcUrls`; none of a simulated network.")]


class Network(CamelRecord):
    """A network as lists show it."""

    id: Slug
    network: Slug
    name: Annotated[str, Field(description="What people call it.", examples=["Ethereum"])]
    symbol: Annotated[str, Field(description="The native coin's symbol.", examples=["ETH"])]
    is_testnet: Annotated[bool, Field(description="Simulated: nothing on it is worth anything.")]
    confirmations: Annotated[int, Field(ge=1, description="Confirmations before a payment is credited.", examples=[12])]
    block_time: Annotated[float, Field(description="Seconds between blocks.", examples=[12])]
    status: Status
    last_block: Annotated[Height | None, Field(description="The last block that was scanned; null before the first.")]
    scan: Annotated[Scan, Field(description="Shown to admin keys only.")] = None  # type: ignore[assignment]


class NetworkDetails(Network):
    """A network and its configuration. `rpcUrl` and everything behind it are there for admin keys only."""

    slug: Slug
    chain_id: Annotated[int | None, Field(description="EIP-155; null where a network has none.", examples=[1])]
    confirmation_blocks: Annotated[int, Field(ge=1, description="The same as `confirmations`.", examples=[12])]
    explorer_url: Annotated[
        str | None, Field(description="Where people look at the chain; null where nowhere.", examples=["https://etherscan.io"])
    ]
    gas_limit: Annotated[int | None, Field(description="Of a transfer; EVM networks only.", examples=[21_000])]
    features: Annotated[list[str], Field(description="What it can: `evm`, `tokens`.", examples=[["evm", "tokens"]])]
    rpc_url: Annotated[str | None, Field(description="The node; null where there is none.", examples=["https://node.example"])] = (
        None
    )
    ws_url: Annotated[
        str | None, Field(description="The node's events; null where there are none.", examples=["wss://node.example"])
    ] = None
    rpc_urls: Annotated[
        list[str], Field(description="All nodes, in the order in which they are asked.", examples=[["https://node.example"]])
    ] = None  # type: ignore[assignment]
    agreement_usd: Annotated[
        int | None,
        Field(description="A payment worth more is credited only when two nodes vouch for it; null: none is.", examples=[1000]),
    ] = None
    finality_tag: Annotated[
        Literal["safe", "finalized"] | None,
        Field(description="What a node has to call the block of a payment worth more than `finalityUsd`; null: nothing."),
    ] = None
    finality_usd: Annotated[int | None, Field(description="The value above which `finalityTag` counts.", examples=[10_000])] = None
    tracing: Annotated[
        Literal["auto", "on", "off"],
        Field(description="Whether nodes are asked what contracts sent: those that can, every one, or none."),
    ] = None  # type: ignore[assignment]
    audit_usd: Annotated[
        int | None,
        Field(description="Above which value logs are always compared with receipts; null: above 1000.", examples=[1000]),
    ] = None


class BlockInfo(CamelRecord):
    """How far a network is scanned."""

    network: Slug
    last_block_number: Annotated[Height | None, Field(description="Null while nothing has been scanned.")]
    timestamp: Annotated[Time | None, Field(description="That block's own time.")]


class Rescan(CamelRecord):
    """A range of blocks that is looked at again."""

    id: Annotated[str, Field(description="Names the rescan.", examples=["rsc_01hv5v0q6k3m8n2p4r6t8w0y2a"])]
    status: Annotated[
        Literal["pending", "running", "completed"],
        Field(description="Not begun yet, begun, or every block looked at."),
    ]
    from_block: Annotated[Height, Field(description="The first block of the range.")]
    to_block: Annotated[Height, Field(description="The last block of the range.", examples=[19_001_000])]
    scanned_to: Annotated[Height | None, Field(description="The last block that was looked at; null before the first.")]
    created_at: Time


class Stake(CamelRecord):
    """TRX that are staked for bandwidth or energy."""

    transaction_id: Annotated[str, Field(description="The transaction's hash on the chain.", examples=[HASH.removeprefix("0x")])]
    amount: Annotated[Money, Field(description="TRX.", examples=["1000"])]
    resource: Annotated[Literal["BANDWIDTH", "ENERGY"], Field(description="What it is staked for.")]
    status: Annotated[
        Literal["pending", "confirmed", "failed"],
        Field(description="Ordered, final on the chain, or refused by the chain (nothing was staked)."),
    ]
