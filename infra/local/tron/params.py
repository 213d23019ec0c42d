"""Reading the parameters of a request, and errors as java-tron words them."""

from __future__ import annotations

from infra.local.tron.messages import read_address
from infra.local.tron.protobuf import Malformed
from infra.local.tron.views import Json


class Failed(Exception):
    """An answer {"Error": ...}, which java-tron gives with status 200."""


def is_visible(params: Json) -> bool:
    return is_true(params, "visible")


def is_true(params: Json, name: str) -> bool:
    # In a query it is a word.
    return str(params.get(name, False)).lower() == "true"


def spelt(words: str, visible: bool) -> str:
    return words if visible else words.encode().hex()


def a_number(params: Json, name: str) -> int:
    try:
        return int(params.get(name, 0))
    except (TypeError, ValueError):
        raise Malformed(f"{name} is not a number") from None


def a_hex(params: Json, name: str) -> bytes:
    return read_address(str(params.get(name, "")).removeprefix("0x"), visible=False)


def an_address(params: Json, name: str) -> bytes:
    text = params.get(name)
    return read_address(str(text), is_visible(params)) if text else b""
