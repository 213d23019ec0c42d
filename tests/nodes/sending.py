"""Payments of anvil's dev account, in a block when the call returns."""

from __future__ import annotations

from chalicelib.chains.rpc import JsonRpc
from infra.local import nodes, tokens
from infra.local.nodes import mined


def send_native(rpc: JsonRpc, to: str, wei: int) -> str:
    """Pay from the dev account, in a block when this returns; the transaction's id."""
    return str(mined(rpc, nodes.send_native(rpc, to, wei))["transactionHash"])


def send_token(rpc: JsonRpc, contract: str, to: str, units: int) -> str:
    """The same in a token."""
    return str(mined(rpc, nodes.send_token(rpc, contract, to, units))["transactionHash"])


def send(rpc: JsonRpc, to: str, data: str = "0x", *, value: int = 0, gas: int | None = None) -> str:
    """A transaction of the dev account, in a block (and perhaps failed) when this returns; its id."""
    return str(mined(rpc, tokens.send(rpc, to, data=data, value=value, gas=gas))["transactionHash"])
