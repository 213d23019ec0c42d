"""Tron's messages: their schema, and their JSON as java-tron's HTTP API spells it.

Source: tronprotocol/protocol core/Tron.proto and core/contract/*.proto (numbers and names); java-tron's JsonFormat for the JSON:
bytes in hexadecimal without 0x, addresses with 41 in front or, where `visible`, in base58, fields with their default left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from chalicelib.encoding import base58check
from infra.local.tron.protobuf import Codec, Field, Malformed, Message

TYPE_URL = "type.googleapis.com/protocol."

ENUMS = {
    "ContractType": {
        "AccountCreateContract": 0, "TransferContract": 1, "TransferAssetContract": 2, "WithdrawBalanceContract": 13,
        "TriggerSmartContract": 31, "FreezeBalanceV2Contract": 54, "UnfreezeBalanceV2Contract": 55,
        "WithdrawExpireUnfreezeContract": 56, "DelegateResourceContract": 57, "UnDelegateResourceContract": 58,
    },
    "ResourceCode": {"BANDWIDTH": 0, "ENERGY": 1, "TRON_POWER": 2},
    "code": {"SUCESS": 0, "FAILED": 1},
    "contractResult": {"DEFAULT": 0, "SUCCESS": 1, "REVERT": 2, "OUT_OF_ENERGY": 10, "OUT_OF_TIME": 11},
}  # fmt: skip
OWNER = Field(1, "owner_address", "address")
SCHEMA = {
    "Any": (Field(1, "type_url", "text"), Field(2, "value", "bytes")),
    "Transaction": (
        Field(1, "raw_data", "message", "raw"),
        Field(2, "signature", "bytes", repeated=True),
        Field(5, "ret", "message", "Result", repeated=True),
    ),
    "Result": (Field(1, "fee", "int"), Field(2, "ret", "enum", "code"), Field(3, "contractRet", "enum", "contractResult")),
    "raw": (
        Field(1, "ref_block_bytes", "bytes"),
        Field(3, "ref_block_num", "int"),
        Field(4, "ref_block_hash", "bytes"),
        Field(8, "expiration", "int"),
        Field(10, "data", "bytes"),
        Field(11, "contract", "message", "Contract", repeated=True),
        Field(12, "scripts", "bytes"),
        Field(14, "timestamp", "int"),
        Field(18, "fee_limit", "int"),
    ),
    "Contract": (
        Field(1, "type", "enum", "ContractType"),
        Field(2, "parameter", "any"),
        Field(3, "provider", "bytes"),
        Field(4, "ContractName", "bytes"),
        Field(5, "Permission_id", "int"),
    ),
    "AccountCreateContract": (OWNER, Field(2, "account_address", "address"), Field(3, "type", "int")),
    "TransferContract": (OWNER, Field(2, "to_address", "address"), Field(3, "amount", "int")),
    "TransferAssetContract": (
        Field(1, "asset_name", "bytes"),
        Field(2, "owner_address", "address"),
        Field(3, "to_address", "address"),
        Field(4, "amount", "int"),
    ),
    "WithdrawBalanceContract": (OWNER,),
    "TriggerSmartContract": (
        OWNER,
        Field(2, "contract_address", "address"),
        Field(3, "call_value", "int"),
        Field(4, "data", "bytes"),
        Field(5, "call_token_value", "int"),
        Field(6, "token_id", "int"),
    ),
    "FreezeBalanceV2Contract": (OWNER, Field(2, "frozen_balance", "int"), Field(3, "resource", "enum", "ResourceCode")),
    "UnfreezeBalanceV2Contract": (OWNER, Field(2, "unfreeze_balance", "int"), Field(3, "resource", "enum", "ResourceCode")),
    "WithdrawExpireUnfreezeContract": (OWNER,),
    "DelegateResourceContract": (
        OWNER,
        Field(2, "resource", "enum", "ResourceCode"),
        Field(3, "balance", "int"),
        Field(4, "receiver_address", "address"),
        Field(5, "lock", "bool"),
        Field(6, "lock_period", "int"),
    ),
    "UnDelegateResourceContract": (
        OWNER,
        Field(2, "resource", "enum", "ResourceCode"),
        Field(3, "balance", "int"),
        Field(4, "receiver_address", "address"),
    ),
    "BlockHeader": (
        Field(1, "timestamp", "int"),
        Field(2, "txTrieRoot", "bytes"),
        Field(3, "parentHash", "bytes"),
        Field(7, "number", "int"),
        Field(8, "witness_id", "int"),
        Field(9, "witness_address", "address"),
        Field(10, "version", "int"),
    ),
}
CODEC = Codec(SCHEMA, ENUMS, TYPE_URL)


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


@dataclass(frozen=True)
class Signed:
    """A transaction: its raw_data and the signatures of it."""

    raw: Message
    signatures: tuple[bytes, ...] = ()

    @cached_property
    def raw_bytes(self) -> bytes:
        return CODEC.encode("raw", self.raw)

    @cached_property
    def txid(self) -> bytes:
        """SHA-256 of the encoded raw_data, which is also what is signed."""
        return sha256(self.raw_bytes)

    @property
    def contract(self) -> Message:
        """The only contract. Raises IndexError."""
        contract: Message = self.raw["contract"][0]
        return contract

    def encoded(self, result: str = "") -> bytes:
        """The whole transaction, with its contractRet where it is in a block."""
        message: Message = {"raw_data": self.raw, "signature": list(self.signatures)}
        if result:
            message["ret"] = [{"contractRet": result}]
        return CODEC.encode("Transaction", message)


def show_address(address: bytes, visible: bool) -> str:
    return base58check.encode(address) if visible and len(address) == 21 else address.hex()


def read_address(text: str, visible: bool) -> bytes:
    """Raises Malformed: base58 is asked for where `visible`, hexadecimal otherwise."""
    try:
        return base58check.decode(text) if visible else bytes.fromhex(text)
    except (ValueError, TypeError):
        raise Malformed(f"INVALID {'base58' if visible else 'hex'} String") from None


def to_json(of: str, message: Message, visible: bool) -> dict[str, Any]:
    """`message` as java-tron prints it."""
    shown: dict[str, Any] = {}
    for field in CODEC.fields(of):
        value = message.get(field.name)
        if not value and value != {}:
            continue
        if field.kind == "enum" and not ENUMS[field.of][value]:
            continue
        shown[field.name] = [_show(field, one, visible) for one in value] if field.repeated else _show(field, value, visible)
    return shown


def _show(field: Field, value: Any, visible: bool) -> Any:
    match field.kind:
        case "address":
            return show_address(value, visible)
        case "bytes":
            return value.hex()
        case "message":
            return to_json(field.of, value, visible)
        case "any":
            of = value["type_url"].removeprefix(TYPE_URL)
            return {"value": to_json(of, value["value"], visible), "type_url": value["type_url"]}
        case _:
            return value


def from_json(of: str, shown: Any, visible: bool) -> Message:
    """The message that `shown` spells. Raises Malformed, also for fields that the message does not have (java-tron skips those)."""
    if not isinstance(shown, dict):
        raise Malformed(f"{of} is not an object")
    fields = {field.name: field for field in CODEC.fields(of)}
    message: Message = {}
    for name, value in shown.items():
        if name not in fields:
            raise Malformed(f"{of} has no field {name}")
        field = fields[name]
        if field.repeated:
            if not isinstance(value, list):
                raise Malformed(f"{name} is not a list")
            message[name] = [_read(field, one, visible) for one in value]
        else:
            message[name] = _read(field, value, visible)
    return message


def _read(field: Field, value: Any, visible: bool) -> Any:
    reader = _READERS.get(field.kind)
    return from_json(field.of, value, visible) if reader is None else reader(field, value, visible)


def _read_int(field: Field, value: Any, visible: bool) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << 63) <= value < 1 << 63:
        raise Malformed(f"{field.name} is not a 64 bit integer")
    return value


def _read_bool(field: Field, value: Any, visible: bool) -> bool:
    if not isinstance(value, bool):
        raise Malformed(f"{field.name} is not true or false")
    return value


def _read_any(field: Field, value: Any, visible: bool) -> Message:
    if not isinstance(value, dict) or set(value) != {"type_url", "value"}:
        raise Malformed("parameter is not {type_url, value}")
    url = str(value["type_url"])
    return {"type_url": url, "value": from_json(url.removeprefix(TYPE_URL), value["value"], visible)}


_READERS: dict[str, Callable[[Field, Any, bool], Any]] = {
    "int": _read_int,
    "bool": _read_bool,
    "enum": lambda field, value, visible: CODEC.enum(field.of, value),
    "text": lambda field, value, visible: str(value),
    "address": lambda field, value, visible: read_address(value, visible),
    "bytes": lambda field, value, visible: read_address(value, visible=False),
    "any": _read_any,
}
"""How a field's value is read, by its kind; a message of its own is none of these."""


def transaction_json(signed: Signed, visible: bool, result: str = "") -> dict[str, Any]:
    """A transaction as blocks, `gettransactionbyid` and the building calls show it."""
    shown: dict[str, Any] = {}
    if result:
        shown["ret"] = [{"contractRet": result}]
    if signed.signatures:
        shown["signature"] = [signature.hex() for signature in signed.signatures]
    else:
        shown["visible"] = visible
    raw = to_json("raw", signed.raw, visible)
    return {**shown, "txID": signed.txid.hex(), "raw_data": raw, "raw_data_hex": signed.raw_bytes.hex()}


def new_contract(kind: str, value: Message) -> Message:
    """A raw_data's contract of this type."""
    return {"type": kind, "parameter": {"type_url": TYPE_URL + kind, "value": value}}
