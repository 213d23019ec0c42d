"""What java-tron's HTTP API answers, as JSON: accounts, resources, blocks, transaction infos. Zeros are left out."""

from __future__ import annotations

from typing import Any

from infra.local.tron.chain import Block, Included
from infra.local.tron.messages import show_address, to_json, transaction_json
from infra.local.tron.resources import energy_limit, net_limit, still_used
from infra.local.tron.state import TRX, Account, State
from infra.local.tron.tokens import CALLS, VIEWS, Internal, Passer, Token

Json = dict[str, Any]
OPERATIONS = "7fff1fc0033efb0f000000000000000000000000000000000000000000000000"
WINDOW = 28_800_000


def present(shown: Json) -> Json:
    """Without the fields that have their default, as protobuf's JSON leaves them out."""
    return {name: value for name, value in shown.items() if value not in (0, "", None, False)}


def account(account: Account, now: int, visible: bool) -> Json:
    """protocol.Account."""
    shown = show_address(account.address, visible)
    if account.contract:
        return present({"address": shown, "balance": account.balance, "create_time": account.created, "type": "Contract"})
    key = {"keys": [{"address": shown, "weight": 1}], "threshold": 1}
    resource = present(
        {
            "energy_usage": still_used(account.energy_usage, account.energy_time, now),
            "latest_consume_time_for_energy": account.energy_time,
            "energy_window_size": WINDOW,
            "energy_window_optimized": True,
            "delegated_frozenV2_balance_for_energy": account.delegated_energy,
            "acquired_delegated_frozenV2_balance_for_energy": account.acquired_energy,
        }
    )
    return present(
        {
            "address": shown,
            "balance": account.balance,
            "create_time": account.created,
            "latest_opration_time": account.operated,
            "net_usage": still_used(account.net_usage, account.net_time, now),
            "free_net_usage": still_used(account.free_usage, account.free_time, now),
            "latest_consume_time": account.net_time,
            "latest_consume_free_time": account.free_time,
            "net_window_size": WINDOW,
            "net_window_optimized": True,
            "account_resource": resource,
            "delegated_frozenV2_balance_for_bandwidth": account.delegated_net,
            "acquired_delegated_frozenV2_balance_for_bandwidth": account.acquired_net,
            "owner_permission": {"permission_name": "owner", **key},
            "active_permission": [{"type": "Active", "id": 2, "permission_name": "active", "operations": OPERATIONS, **key}],
            "frozenV2": [
                present({"amount": account.frozen_net}),
                present({"type": "ENERGY", "amount": account.frozen_energy}),
                {"type": "TRON_POWER"},
            ],
            "unfrozenV2": [
                present({"type": kind if kind != "BANDWIDTH" else "", "unfreeze_amount": amount, "unfreeze_expire_time": when})
                for kind, amount, when in account.unfrozen
            ]
            or None,
            "asset_optimized": True,
        }
    )


def resources(state: State, account: Account, now: int, *, energy: bool = True) -> Json:
    """api.AccountResourceMessage, or without `energy` api.AccountNetMessage."""
    net = {
        "freeNetUsed": still_used(account.free_usage, account.free_time, now),
        "freeNetLimit": state.parameter("getFreeNetLimit"),
        "NetUsed": still_used(account.net_usage, account.net_time, now),
        "NetLimit": net_limit(state, account),
        "TotalNetLimit": state.parameter("getTotalNetLimit"),
        "TotalNetWeight": state.weight("BANDWIDTH"),
    }
    if not energy:
        return present(net)
    more = {
        "tronPowerLimit": (account.frozen_net + account.frozen_energy + account.delegated_net + account.delegated_energy) // TRX,
        "EnergyUsed": still_used(account.energy_usage, account.energy_time, now),
        "EnergyLimit": energy_limit(state, account),
        "TotalEnergyLimit": state.parameter("getTotalEnergyCurrentLimit"),
        "TotalEnergyWeight": state.weight("ENERGY"),
    }
    return present({**net, **more})


def block(block: Block, visible: bool, *, detail: bool = True) -> Json:
    """protocol.Block with its id. The header's number is left out in the first block, where it is zero."""
    header = to_json("BlockHeader", block.header, visible)
    shown: Json = {
        "blockID": block.id.hex(),
        "block_header": {"raw_data": header, "witness_signature": block.signature.hex()},
    }
    if detail and block.included:
        shown["transactions"] = [transaction_json(one.signed, visible, one.outcome.contract_ret) for one in block.included]
    return shown


def info(block: Block, one: Included, visible: bool) -> Json:
    """protocol.TransactionInfo."""
    outcome = one.outcome
    called = bool(outcome.contract_address)
    receipt = present(
        {
            "energy_usage": outcome.energy.usage,
            "energy_fee": outcome.energy.fee,
            "energy_usage_total": outcome.energy_total,
            "net_usage": outcome.net.usage,
            "net_fee": outcome.net.fee,
            "result": outcome.contract_ret if called else "",
        }
    )
    shown = present(
        {
            "id": one.signed.txid.hex(),
            "fee": outcome.fee,
            "blockNumber": block.number,
            "blockTimeStamp": block.time,
            "contract_address": show_address(outcome.contract_address, visible) if called else "",
            "result": "FAILED" if outcome.failed else "",
            "resMessage": outcome.message.encode().hex(),
            "withdraw_expire_amount": outcome.withdrawn,
        }
    )
    shown |= {"contractResult": [outcome.returned.hex()], "receipt": receipt}
    if outcome.logs:
        shown["log"] = [
            {
                # Without 41 in front, except where the whole answer is in base58.
                "address": show_address(b"\x41" + log.address, visible) if visible else log.address.hex(),
                "topics": [topic.hex() for topic in log.topics],
                "data": log.data.hex(),
            }
            for log in outcome.logs
        ]
    if outcome.internal:
        shown["internal_transactions"] = [_internal(one.signed.txid, part, visible) for part in outcome.internal]
    return shown


def contract(found: Token | Passer, visible: bool) -> Json:
    """protocol.SmartContract."""
    return {
        "origin_address": show_address(found.owner, visible),
        "contract_address": show_address(found.address, visible),
        "abi": {"entrys": [_entry(signature) for signature in (*VIEWS, *CALLS)]} if isinstance(found, Token) else {},
        "bytecode": "60806040",
        "consume_user_resource_percent": 100,
        "name": found.name,
        "origin_energy_limit": 10_000_000,
    }


def _internal(txid: bytes, part: Internal, visible: bool) -> Json:
    return {
        "hash": txid.hex(),
        "caller_address": show_address(part.sender, visible),
        "transferTo_address": show_address(part.recipient, visible),
        "callValueInfo": [{"callValue": part.amount}],
        "note": b"call".hex(),
    }


def _entry(signature: str) -> Json:
    name, _, types = signature.rstrip(")").partition("(")
    outputs = {"symbol": "string", "name": "string", "decimals": "uint8"}.get(name, "bool" if signature in CALLS else "uint256")
    view = signature in VIEWS
    return {
        **({"constant": True} if view else {}),
        "name": name,
        "inputs": [{"name": f"_{index}", "type": kind} for index, kind in enumerate(types.split(",")) if kind],
        "outputs": [{"type": outputs}],
        "type": "Function",
        "stateMutability": "View" if view else "Nonpayable",
    }
