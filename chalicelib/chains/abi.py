"""ABI encoding of a payment service: EIP-20 calls with their results, the Transfer log, the logs bloom.

Tron's contracts have the same. Pure. Addresses here are in storage form: `0x` and 40 lower-case hex digits.
"""

from __future__ import annotations

import re

from chalicelib.encoding.keccak import keccak256
from chalicelib.usecases.ports.tokens import NoToken

TRANSFER_TOPIC = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
"""keccak256("Transfer(address,address,uint256)"), the first topic of every EIP-20 transfer's log."""

TRANSFER_SELECTOR = bytes.fromhex("a9059cbb")
"""transfer(address,uint256) of EIP-20."""

SYMBOL_SELECTOR, NAME_SELECTOR, DECIMALS_SELECTOR = (bytes.fromhex(text) for text in ("95d89b41", "06fdde03", "313ce567"))
"""symbol(), name() and decimals() of EIP-20."""

BALANCE_SELECTOR = bytes.fromhex("70a08231")
"""balanceOf(address) of EIP-20."""

_MOST_BYTES = 4_096
"""Of one result. A symbol or a name that is longer is none."""

_ADDRESS = re.compile(r"0x[0-9a-f]{40}", re.ASCII)


def address_bytes(address: str) -> bytes:
    """The 20 bytes of an address in any spelling of its case. Raises ValueError; checksums are looked at elsewhere."""
    lower = address.lower()
    if not _ADDRESS.fullmatch(lower):
        raise ValueError("not an EVM address")
    return bytes.fromhex(lower[2:])


def transfer_call(recipient: str, amount: int) -> bytes:
    """Calldata of transfer(recipient, amount); `amount` in the token's units. Raises ValueError for what does not fit."""
    if not 0 <= amount < 2**256:
        raise ValueError("the amount does not fit in 256 bits")
    return TRANSFER_SELECTOR + address_bytes(recipient).rjust(32, b"\0") + amount.to_bytes(32)


def parse_transfer_call(data: bytes) -> tuple[str, int]:
    """Recipient and amount of calldata that is exactly transfer(address,uint256). Raises ValueError for anything else.

    Bits beyond the address are refused, although the EVM's compilers disagree on whether they count.
    """
    if len(data) != 68 or data[:4] != TRANSFER_SELECTOR or any(data[4:16]):
        raise ValueError("the call is not transfer(address,uint256)")
    return "0x" + data[16:36].hex(), int.from_bytes(data[36:])


def balance_call(holder: str) -> bytes:
    """Calldata of balanceOf(holder)."""
    return BALANCE_SELECTOR + address_bytes(holder).rjust(32, b"\0")


def text_of(answer: bytes, what: str) -> str:
    """The string in a call's result: as the ABI has it, or as bytes32 with zeros behind it. Raises NoToken.

    docs.soliditylang.org, "Contract ABI Specification": offset 32, length, bytes, zeros up to a multiple of 32.
    """
    if not answer:
        raise NoToken(f"it has no {what}")
    if len(answer) > _MOST_BYTES:
        raise NoToken(f"its {what} is too long")
    if len(answer) == 32:
        raw = answer.rstrip(b"\0")
    else:
        length = int.from_bytes(answer[32:64])
        if len(answer) < 64 or int.from_bytes(answer[:32]) != 32 or length > len(answer) - 64:
            raise NoToken(f"its {what} is no string")
        raw = answer[64 : 64 + length]
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NoToken(f"its {what} is no text") from error


def number_of(answer: bytes) -> int:
    """The number in a call's result. Raises NoToken."""
    if len(answer) != 32:
        raise NoToken("it has no decimals")
    return int.from_bytes(answer)


def bloom_mask(value: str) -> int:
    """The bits that `value` (an address or a topic, hex) sets in a 2048-bit logs bloom. Yellow paper, section 4.3.1 (M3:2048)."""
    digest = keccak256(bytes.fromhex(value[2:]))
    mask = 0
    for at in (0, 2, 4):
        mask |= 1 << (int.from_bytes(digest[at : at + 2]) & 2047)
    return mask
