"""The part of protobuf's wire format that Tron's transactions need: varints and length-delimited fields.

Source: protobuf.dev, "Encoding". `fields` reads what anybody may have written, `only` what we write; that the bytes are exactly
ours, encoding again shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

Value = int | bytes

_FIXED = {1: 8, 5: 4}
"""Wire types of numbers of fixed length, in bytes. Tron has none, but strangers may add fields."""


def varint(number: int) -> bytes:
    """A non-negative integer, seven bits a byte, least first."""
    if number < 0:
        raise ValueError("negative numbers are not encoded here")
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def message(*fields: tuple[int, Value]) -> bytes:
    """The encoding of fields (number, value) in the order given. As proto3 has it, zero and empty are left out."""
    out = bytearray()
    for number, value in fields:
        if not value:
            continue
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            out += varint(number << 3 | 2) + varint(len(value)) + value
    return bytes(out)


def fields(encoded: bytes) -> Iterator[tuple[int, Value]]:
    """The fields of a message in their order. Raises ValueError for what is cut off."""
    at = 0
    while at < len(encoded):
        key, at = _varint(encoded, at)
        number, wire = key >> 3, key & 7
        if not number:
            raise ValueError("a field has no number")
        if wire == 0:
            value, at = _varint(encoded, at)
            yield number, value
        elif wire == 2:
            length, at = _varint(encoded, at)
            if at + length > len(encoded):
                raise ValueError("a field is cut off")
            yield number, encoded[at : at + length]
            at += length
        elif wire in _FIXED:
            if at + _FIXED[wire] > len(encoded):
                raise ValueError("a field is cut off")
            yield number, encoded[at : at + _FIXED[wire]]
            at += _FIXED[wire]
        else:
            raise ValueError("a field is of a wire type that is out of use")


def only(encoded: bytes, kinds: dict[int, type]) -> dict[int, Value]:
    """The fields of a message, each at most once and of the kind in `kinds`. Raises ValueError for any other field."""
    found: dict[int, Value] = {}
    for number, value in fields(encoded):
        if number not in kinds:
            raise ValueError(f"field {number} has no place in a transaction of ours")
        if number in found or type(value) is not kinds[number]:
            raise ValueError(f"field {number} is there twice, or of another kind")
        found[number] = value
    return found


def number_in(found: dict[int, Value], field: int) -> int:
    """A numeric field of what `only` found, 0 where it is left out."""
    value = found.get(field, 0)
    if not isinstance(value, int):
        raise ValueError(f"field {field} is no number")
    return value


def bytes_in(found: dict[int, Value], field: int) -> bytes:
    """A field of bytes of what `only` found, empty where it is left out."""
    value = found.get(field, b"")
    if not isinstance(value, bytes):
        raise ValueError(f"field {field} is no bytes")
    return value


def repeated(encoded: bytes, field: int) -> Sequence[bytes]:
    """Every value of one field of messages or bytes. Raises ValueError."""
    found = [value for number, value in fields(encoded) if number == field]
    if not all(isinstance(value, bytes) for value in found):
        raise ValueError(f"field {field} is no message")
    return [value for value in found if isinstance(value, bytes)]


def _varint(encoded: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(encoded) or shift > 63:
            raise ValueError("a number is cut off or too long")
        byte = encoded[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
