"""Protocol Buffers, as far as Tron's messages need them: encoding by a schema, and strict decoding.

Source: the encoding page of protobuf.dev (varints, length-delimited fields), tronprotocol/protocol for the schemas (`messages.py`).
Fields are written in the order of their numbers and defaults are left out, as Java's implementation does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

VARINT, LENGTH = 0, 2
MAX_VARINT = 10


class Malformed(ValueError):
    """These bytes are no such message, or are not spelt as Java would spell it."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field. `kind`: int, bool, enum, bytes, address, text, message or any; `of` names the enum or the message."""

    number: int
    name: str
    kind: str
    of: str = ""
    repeated: bool = False


Schema = Mapping[str, Sequence[Field]]
Enums = Mapping[str, Mapping[str, int]]
Message = dict[str, Any]


def encode_varint(value: int) -> bytes:
    """Seven bits a byte, lowest first; negative numbers as 64 bit two's complement."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number (signed, 64 bit) at `at`, and where the next field starts. Raises Malformed."""
    value = 0
    for index in range(MAX_VARINT):
        if at >= len(data):
            raise Malformed("ends within a number")
        value |= (data[at] & 0x7F) << (7 * index)
        at += 1
        if not data[at - 1] & 0x80:
            value &= (1 << 64) - 1
            return (value - (1 << 64) if value >> 63 else value), at
    raise Malformed("a number is longer than ten bytes")


class Codec:
    """Encodes and decodes the messages of one schema. Messages are dicts of field names; absent fields have their default."""

    def __init__(self, schema: Schema, enums: Enums, any_prefix: str) -> None:
        self._schema, self._enums, self._any_prefix = schema, enums, any_prefix
        self._names = {enum: {number: name for name, number in values.items()} for enum, values in enums.items()}

    def fields(self, of: str) -> Sequence[Field]:
        """The fields of a message. Raises Malformed for one that the schema does not have."""
        if of not in self._schema:
            raise Malformed(f"unknown message {of}")
        return self._schema[of]

    def enum(self, of: str, value: Any) -> str:
        """The name of an enum's value, given as name or number. Raises Malformed."""
        if isinstance(value, str) and value in self._enums[of]:
            return value
        if isinstance(value, int) and not isinstance(value, bool) and value in self._names[of]:
            return self._names[of][value]
        raise Malformed(f"{of} has no {value!r}")

    def encode(self, of: str, message: Message) -> bytes:
        """The bytes of `message`. Raises Malformed for fields that the message does not have."""
        fields = self.fields(of)
        if unknown := set(message) - {field.name for field in fields}:
            raise Malformed(f"{of} has no field {sorted(unknown)[0]}")
        return b"".join(self._encode_field(field, message[field.name]) for field in fields if field.name in message)

    def decode(self, of: str, data: bytes) -> Message:
        """The message in `data`. Raises Malformed, also when encoding it again would not give `data`."""
        message = self._decode(of, data)
        if self.encode(of, message) != data:
            raise Malformed(f"not the canonical encoding of a {of}")
        return message

    def _encode_field(self, field: Field, value: Any) -> bytes:
        if field.repeated:
            return b"".join(self._one(field, item) for item in value)
        if field.kind not in {"message", "any"} and (not value or (field.kind == "enum" and not self._number(field, value))):
            return b""
        return self._one(field, value)

    def _one(self, field: Field, value: Any) -> bytes:
        if field.kind in {"int", "bool", "enum"}:
            number = self._number(field, value) if field.kind == "enum" else int(value)
            return encode_varint(field.number << 3 | VARINT) + encode_varint(number)
        body = self._body(field, value)
        return encode_varint(field.number << 3 | LENGTH) + encode_varint(len(body)) + body

    def _body(self, field: Field, value: Any) -> bytes:
        match field.kind:
            case "message":
                return self.encode(field.of, value)
            case "any":
                inner = self.encode(self._inner(value["type_url"]), value["value"])
                return self.encode("Any", {"type_url": value["type_url"], "value": inner})
            case "text":
                return str(value).encode()
            case _:
                return bytes(value)

    def _number(self, field: Field, value: str | int) -> int:
        return self._enums[field.of][self.enum(field.of, value)]

    def _inner(self, type_url: str) -> str:
        if not type_url.startswith(self._any_prefix):
            raise Malformed(f"type_url does not start with {self._any_prefix}")
        return type_url.removeprefix(self._any_prefix)

    def _decode(self, of: str, data: bytes) -> Message:
        fields = {field.number: field for field in self.fields(of)}
        message: Message = {}
        for number, value in _parts(data):
            field = fields.get(number)
            if field is None:
                raise Malformed(f"{of} has no field {number}")
            if isinstance(value, int) is not (field.kind in {"int", "bool", "enum"}):
                raise Malformed(f"{of}.{field.name} has the wrong wire type")
            parsed = self._value(field, value)
            if field.repeated:
                message.setdefault(field.name, []).append(parsed)
            else:
                message[field.name] = parsed
        return message

    def _value(self, field: Field, value: Any) -> Any:
        match field.kind:
            case "enum":
                return self.enum(field.of, value)
            case "bool":
                return bool(value)
            case "message":
                return self._decode(field.of, value)
            case "any":
                wrapped = self._decode("Any", value)
                url = wrapped.get("type_url", "")
                return {"type_url": url, "value": self._decode(self._inner(url), wrapped.get("value", b""))}
            case "text":
                try:
                    return value.decode()
                except UnicodeDecodeError:
                    raise Malformed(f"{field.name} is not UTF-8") from None
            case _:
                return value


def _parts(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        number, wire = key >> 3, key & 7
        value, at = read_varint(data, at)
        if wire == VARINT:
            yield number, value
        elif wire == LENGTH:
            if value < 0 or at + value > len(data):
                raise Malformed("a field is longer than its message")
            yield number, data[at : at + value]
            at += value
        else:
            raise Malformed(f"wire type {wire} is used by no message of Tron's")
