"""Small index pools: a restore asks about every index below a pool's ceiling, which is 50,000 on each network as it is made."""

from __future__ import annotations

from dataclasses import replace

import boto3

from chalicelib import wiring
from chalicelib.custody.derive import POOLS
from chalicelib.domain.addresses.index_pools import IndexPool
from chalicelib.wiring import services


def parameter(pool: str) -> str:
    """What the ceiling of a pool is called in AWS Systems Manager."""
    return services().settings.ceiling_parameter(f"test:{pool}")


def recorded(pool: str) -> int:
    """The ceiling that is recorded outside the tables."""
    return int(boto3.client("ssm").get_parameter(Name=parameter(pool))["Parameter"]["Value"])


def forget(pool: str) -> None:
    """The parameter is gone, its history with it."""
    boto3.client("ssm").delete_parameter(Name=parameter(pool))


def row(pool: str) -> IndexPool:
    found = services().store.index_pool(f"test:{pool}")
    assert found is not None
    return found


def shrink(ceiling: int, *pools: str) -> None:
    """Let the pools of the test realm end at `ceiling`, as if they had been made so."""
    store = services().store
    for pool in pools or POOLS:
        forget(pool)
        boto3.client("ssm").put_parameter(Name=parameter(pool), Value=str(ceiling), Type="String")
        before = row(pool)
        store.change_index_pool(f"test:{pool}", before, replace(before, ceiling=ceiling))
    wiring.forget()
