"""Balances of addresses: one by one, and of many in one request.

Many are told by a program (`chains/balance_program`): a node simulates the deployment of a contract where a constant call names no
contract and has `data`, and `constant_result` is what its creation code returns
(https://developers.tron.network/reference/triggerconstantcontract). It runs 80 ms at most, and up to 100,000,000 energy
(java-tron's issues 6681 and 6682: a view of a token takes about a thousand).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from chalicelib.chains.abi import balance_call
from chalicelib.chains.answers import Garbled
from chalicelib.chains.balance_program import FEW, native_program, token_program, told
from chalicelib.chains.rpc import RpcError
from chalicelib.chains.tron.calls import Node, call_failed, constant_call, returned
from chalicelib.chains.tron.values import hex_address, row, whole

log = logging.getLogger(__name__)


def balance_of(node: Node, holder: str, contract: str | None, family: str = "wallet") -> int:
    """Units of TRX, or of the token `contract`; `family` is "wallet", or "walletsolidity" for the newest solid block."""
    if contract is None:
        account = row(node.call(f"{family}/getaccount", {"address": hex_address(holder), "visible": False}), "an account")
        return whole(account.get("balance"), "a balance")
    answer = constant_call(node, holder, contract, balance_call("0x" + hex_address(holder)[2:]), family)
    found = returned(answer)
    if call_failed(answer) is not None or len(found) != 32:
        raise Garbled("there is no token contract at this address, or it knows no balanceOf")
    return int.from_bytes(found)


def staked_by(node: Node, holder: str) -> int:
    """Sun that `holder` has staked, for whichever resource, at the newest solid block."""
    account = row(node.call("walletsolidity/getaccount", {"address": hex_address(holder), "visible": False}), "an account")
    parts = account.get("frozenV2", [])
    if not isinstance(parts, list):
        raise Garbled("what is staked is no list")
    return sum(whole(row(part, "a stake").get("amount"), "a stake") for part in parts)


def balances_of(node: Node, holders: Sequence[str], contract: str | None) -> list[int] | None:
    """As `balance_of` each at the newest solid block; None where the node does not run the program to its end, since it knows no
    such calls, since the time was over, or since the token does not answer."""
    if len(holders) <= FEW:
        return [balance_of(node, holder, contract, "walletsolidity") for holder in holders]
    addresses = [_body(holder) for holder in holders]
    program = native_program(addresses) if contract is None else token_program(_body(contract), addresses)
    request = {"owner_address": hex_address(holders[0]), "data": program.hex(), "visible": False}
    try:
        answer = row(node.call("walletsolidity/triggerconstantcontract", request), "a call's answer")
        why = call_failed(answer)
        if why is None:
            return told(returned(answer), len(holders))
    except (RpcError, Garbled) as error:
        why = str(error)
    log.info("%d balances are asked for one by one: %s", len(holders), why)
    return None


def _body(address: str) -> bytes:
    """Without the prefix of the network: the 20 bytes that Tron's machine knows an address by."""
    return bytes.fromhex(hex_address(address)[2:])
