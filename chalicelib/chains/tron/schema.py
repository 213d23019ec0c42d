"""Tron's stakes and loans in protobuf, for the second reader: message classes made at run time from the published field numbers.

Shares no code with `protobuf`, which encodes what is signed. Source: tronprotocol/java-tron, protocol/src/main/protos:
core/Tron.proto (Transaction, ContractType), core/contract/balance_contract.proto (the three contracts), core/contract/common.proto
(ResourceCode). A field that is not named here is an unknown field, and a difference.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

_ANY = "google.protobuf.Any"
_RESOURCES = {"BANDWIDTH": 0, "ENERGY": 1, "TRON_POWER": 2}
_KINDS = {
    "AccountCreateContract": 0, "FreezeBalanceV2Contract": 54, "DelegateResourceContract": 57, "UnDelegateResourceContract": 58,
}  # fmt: skip
_MESSAGES: dict[str, tuple[tuple[int, str, str], ...]] = {
    "Transaction": ((1, "raw_data", "raw"), (2, "signature", "bytes*")),
    "raw": (
        (1, "ref_block_bytes", "bytes"), (3, "ref_block_num", "int64"), (4, "ref_block_hash", "bytes"), (8, "expiration", "int64"),
        (10, "data", "bytes"), (11, "contract", "Contract*"), (12, "scripts", "bytes"), (14, "timestamp", "int64"),
        (18, "fee_limit", "int64"),
    ),
    "Contract": (
        (1, "type", "Contract.ContractType"), (2, "parameter", _ANY), (3, "provider", "bytes"), (4, "ContractName", "bytes"),
        (5, "Permission_id", "int32"),
    ),
    "FreezeBalanceV2Contract": ((1, "owner_address", "bytes"), (2, "frozen_balance", "int64"), (3, "resource", "ResourceCode")),
    "DelegateResourceContract": (
        (1, "owner_address", "bytes"), (2, "resource", "ResourceCode"), (3, "balance", "int64"), (4, "receiver_address", "bytes"),
        (5, "lock", "bool"), (6, "lock_period", "int64"),
    ),
    "UnDelegateResourceContract": (
        (1, "owner_address", "bytes"), (2, "resource", "ResourceCode"), (3, "balance", "int64"), (4, "receiver_address", "bytes"),
    ),
}  # fmt: skip
"""Number, name and type of each field; `*` where it is repeated."""


@lru_cache(maxsize=1)
def published() -> dict[str, Any]:
    """The class of each message, by its name. In a pool of their own: tronpy's have the same package."""
    from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(
        name="stakes.proto", package="protocol", syntax="proto3", dependency=["google/protobuf/any.proto"]
    )
    _add_enum(file, "ResourceCode", _RESOURCES)
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        if name == "Contract":  # within it, as published: these numbers are named as the contracts are
            _add_enum(message, "ContractType", _KINDS)
        for number, called, kind in fields:
            _add_field(message, number, called, kind)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(any_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(file.SerializeToString())
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"protocol.{name}")) for name in _MESSAGES}


def _add_enum(within: Any, name: str, numbers: dict[str, int]) -> None:
    enum = within.enum_type.add(name=name)
    for value, number in numbers.items():
        enum.value.add(name=value, number=number)


def _add_field(message: Any, number: int, name: str, kind: str) -> None:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

    one = kind.removesuffix("*")
    field = message.field.add(number=number, name=name, label=Field.LABEL_OPTIONAL if one == kind else Field.LABEL_REPEATED)
    if one in ("ResourceCode", "Contract.ContractType"):
        field.type, field.type_name = Field.TYPE_ENUM, f".protocol.{one}"
    elif one in _MESSAGES:
        field.type, field.type_name = Field.TYPE_MESSAGE, f".protocol.{one}"
    elif one == _ANY:
        field.type, field.type_name = Field.TYPE_MESSAGE, f".{one}"
    else:
        field.type = Field.Type.Value(f"TYPE_{one.upper()}")
