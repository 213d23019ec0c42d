"""Test tokens: deploying and sending them on a node that has unlocked accounts (anvil). For tests and the local stack only.

How they were compiled: `npm install solc@0.8.30` in any folder, then `node <this folder>/compile.js` there (evmVersion paris,
optimizer 200 runs). The sources, ABI and bytecode are committed, so that nobody needs a compiler to run anything.
"""

from __future__ import annotations

import json
import time
from functools import cache
from pathlib import Path
from typing import Any

from chalicelib.chains.rpc import JsonRpc
from chalicelib.encoding.keccak import keccak256

Argument = str | int | bytes
"""`str` for string, or for an address when it begins with 0x; `int` for uint256 and uint8; `bytes` for bytes32."""


@cache
def artifact(contract: str) -> dict[str, Any]:
    """ABI and bytecode of a contract of TestTokens.sol."""
    loaded: dict[str, Any] = json.loads((Path(__file__).parent / f"{contract}.json").read_text())
    return loaded


def encode(arguments: tuple[Argument, ...]) -> bytes:
    """Arguments as the Solidity ABI encodes them (docs.soliditylang.org, "Contract ABI Specification")."""
    head, tail = b"", b""
    for argument in arguments:
        if isinstance(argument, int):
            head += argument.to_bytes(32)
        elif isinstance(argument, bytes):
            head += argument.ljust(32, b"\0")
        elif argument.startswith("0x"):
            head += bytes.fromhex(argument[2:]).rjust(32, b"\0")
        else:
            text = argument.encode()
            head += (32 * len(arguments) + len(tail)).to_bytes(32)
            tail += len(text).to_bytes(32) + text.ljust(-(-len(text) // 32) * 32, b"\0")
    return head + tail


def call_data(signature: str, *arguments: Argument) -> str:
    """Calldata, as hex, of a function such as ``mint(address,uint256)``."""
    return "0x" + (keccak256(signature.encode())[:4] + encode(arguments)).hex()


def dev_account(rpc: JsonRpc) -> str:
    """The node's first unlocked account: rich, and the owner of every token deployed here."""
    account: str = rpc.call("eth_accounts")[0].lower()
    return account


def send(
    rpc: JsonRpc, to: str | None, *, data: str = "0x", value: int = 0, gas: int | None = None, sender: str | None = None
) -> str:
    """Send a transaction from an unlocked account, the first one unless told otherwise; its id.

    With `gas` nothing is simulated before, so that it may fail on the chain. Raises RpcError, Unavailable.
    """
    request = {"from": sender or dev_account(rpc), "data": data, "value": hex(value)}
    request |= {"to": to} if to is not None else {}
    request |= {"gas": hex(gas)} if gas is not None else {}
    txid: str = rpc.call("eth_sendTransaction", [request])
    return txid


def mined(rpc: JsonRpc, txid: str) -> dict[str, Any]:
    """The receipt of a transaction; a block is mined for it if it is in none yet. Raises RuntimeError when the node drops it."""
    for _ in range(3):
        # Also a node that mines at once does so a moment after it has answered.
        for _ in range(10):
            receipt: dict[str, Any] | None = rpc.call("eth_getTransactionReceipt", [txid])
            if receipt is not None:
                return receipt
            time.sleep(0.005)
        rpc.call("evm_mine")
    raise RuntimeError(f"the node does not mine {txid}")


def deploy(rpc: JsonRpc, contract: str, *arguments: Argument) -> str:
    """Deploy a contract of TestTokens.sol; its address in lower case, once it is mined. Raises RuntimeError when it fails."""
    receipt = mined(rpc, send(rpc, None, data=artifact(contract)["bytecode"] + encode(arguments).hex()))
    if receipt["status"] != "0x1":
        raise RuntimeError(f"{contract} was not deployed")
    address: str = receipt["contractAddress"].lower()
    return address


def deploy_token(rpc: JsonRpc, symbol: str, name: str, decimals: int, returns_nothing: bool = False) -> str:
    """Deploy a token, with USDT's missing return values if `returns_nothing`; its address in lower case, once it is mined."""
    return deploy(rpc, "TetherToken" if returns_nothing else "StandardToken", symbol, name, decimals)


def send_native(rpc: JsonRpc, to: str, wei: int) -> str:
    """Send `wei` from the dev account. The transaction's id; it may not be mined yet (see `mined`)."""
    return send(rpc, to, value=wei)


def send_token(rpc: JsonRpc, contract: str, to: str, units: int) -> str:
    """Make `units` of a token of ours for the dev account, and send them. The id of the sending transaction."""
    mined(rpc, send(rpc, contract, data=call_data("mint(address,uint256)", dev_account(rpc), units)))
    return send(rpc, contract, data=call_data("transfer(address,uint256)", to, units))
