"""Block times of the catalogue, and what is counted in blocks because of them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from chalicelib.chains.node_comparison import TOLERATED_SECONDS, tolerated
from chalicelib.domain.catalogue.catalogue import Network, corrected, default_networks
from chalicelib.usecases.scanning.scanner import STARTED_AGO

# What the networks promise in 2026: seconds between blocks. bsc: BEP-619 (docs.bnbchain.org/announce/fermi-bsc); polygon: PIP-86.
REAL = {
    "bitcoin": 600, "ethereum": 12, "tron": 3, "bsc": 0.45, "polygon": 1.75, "arbitrum": 0.25, "fantom": 1, "litecoin": 150,
}  # fmt: skip
NETWORKS = default_networks("live")


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.slug)
def test_what_is_counted_in_blocks_lasts_as_long_as_it_says(network: Network) -> None:
    real = REAL[network.slug]
    assert tolerated(network) * real >= TOLERATED_SECONDS
    assert math.ceil(STARTED_AGO / network.block_time) * real >= STARTED_AGO


def test_a_reorganisation_of_bsc_is_followed_past_what_its_validators_can_undo() -> None:
    """Without votes a block stands once 11 of 21 validators built on it, each with 16 blocks in turn (BEP-524)."""
    depth = {network.slug: network.reorg_depth for network in NETWORKS}
    assert depth["bsc"] > 11 * 16
    assert depth == {**dict.fromkeys(depth, 64), "bsc": 256, "polygon": 256}


def test_confirmations_are_as_published() -> None:
    assert {n.slug: n.confirmations for n in NETWORKS} == {
        "bitcoin": 6, "ethereum": 12, "tron": 19, "bsc": 15, "polygon": 20, "arbitrum": 10, "fantom": 12, "litecoin": 6,
    }  # fmt: skip


@pytest.mark.parametrize(("slug", "former"), [("bsc", 3), ("polygon", 2)])
def test_a_stored_network_gets_the_time_of_today(slug: str, former: float) -> None:
    today = next(network for network in NETWORKS if network.slug == slug)
    stored = replace(today, block_time=former, status="active", rpc_url="https://node.example", version=7)
    assert corrected(stored) == replace(stored, block_time=today.block_time, version=8)
    assert corrected(today) is None
    assert all(corrected(network) is None for network in NETWORKS)
