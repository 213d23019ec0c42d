"""The bytes of EVM transactions: EIP-1559 (type 2) and, for chains without a base fee, legacy with EIP-155.

Pure. Decoding is strict, because the signer signs what it decodes here (money rule 7): the bytes must be exactly the
canonical encoding of a plain transfer. `rlp` is imported when first used (it takes 0.2 s).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chalicelib.chains.abi import parse_transfer_call
from chalicelib.encoding.keccak import keccak256
from chalicelib.encoding.public_keys import evm_address
from chalicelib.usecases.ports.accounts import Explained
from chalicelib.usecases.ports.signing import Signature, Signed

_TYPE_2 = b"\x02"
_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
"""The order of secp256k1's group (SEC 2, section 2.4.1)."""


@dataclass(frozen=True, slots=True)
class Unsigned:
    """A transaction before its signature; fees in wei per gas. `tip` is None for a legacy one, whose gas price is `max_fee`."""

    chain_id: int
    nonce: int
    gas: int
    max_fee: int
    tip: int | None
    to: bytes
    value: int
    data: bytes

    def payload(self) -> bytes:
        """The exact bytes whose Keccak-256 is signed.

        EIP-1559: 0x02 || rlp([chain_id, nonce, tip, max_fee, gas, to, value, data, access_list]).
        EIP-155: rlp([nonce, gas_price, gas, to, value, data, chain_id, 0, 0]).
        """
        if self.tip is None:
            return _rlp([*self._legacy(), _int(self.chain_id), b"", b""])
        return _TYPE_2 + _rlp(self._typed())

    def signed(self, signature: Signature) -> bytes:
        """The bytes for the node. Raises ValueError for a signature that no node takes (EIP-2: s in the lower half)."""
        if not 0 < signature.r < _ORDER or not 0 < signature.s <= _ORDER // 2 or signature.parity not in (0, 1):
            raise ValueError("the signature is out of range, or its s is in the upper half")
        r, s = _int(signature.r), _int(signature.s)
        if self.tip is None:
            return _rlp([*self._legacy(), _int(self.chain_id * 2 + 35 + signature.parity), r, s])
        return _TYPE_2 + _rlp([*self._typed(), _int(signature.parity), r, s])

    def explain(self) -> Explained:
        """The transfer that it makes. Raises ValueError for anything but a transfer of the native coin or one of a token."""
        if len(self.to) != 20:
            raise ValueError("the transaction makes a contract")
        to = "0x" + self.to.hex()
        if not self.data:
            recipient, contract, amount = to, None, self.value
        else:
            if self.value:
                raise ValueError("the transaction moves the native coin and calls a contract")
            (recipient, amount), contract = parse_transfer_call(self.data), to
        if not amount:
            raise ValueError("the transaction moves nothing")
        return Explained(self.chain_id, self.nonce, recipient, contract, amount)

    def _typed(self) -> list[bytes | list[bytes]]:
        numbers = (self.chain_id, self.nonce, self.tip or 0, self.max_fee, self.gas)
        return [*map(_int, numbers), self.to, _int(self.value), self.data, []]

    def _legacy(self) -> list[bytes]:
        return [_int(self.nonce), _int(self.max_fee), _int(self.gas), self.to, _int(self.value), self.data]


def decode_payload(payload: bytes) -> Unsigned:
    """The transaction whose `payload()` is exactly these bytes. Raises ValueError for any other bytes."""
    import rlp

    typed = payload[:1] == _TYPE_2
    try:
        fields = rlp.decode(payload[1:] if typed else payload, strict=True)
    except rlp.DecodingError as error:
        raise ValueError(f"not an EVM transaction: {error}") from None
    if not isinstance(fields, list) or len(fields) != 9:
        raise ValueError("not an unsigned EVM transaction of type 2 or of EIP-155")
    *plain, last = fields
    if not all(isinstance(field, bytes) for field in plain) or last != ([] if typed else b""):
        raise ValueError("the transaction has an access list, a signature, or a field of the wrong kind")
    if typed:
        chain_id, nonce, tip, max_fee, gas, to, value, data = plain
        decoded = Unsigned(
            _number(chain_id), _number(nonce), _number(gas), _number(max_fee), _number(tip), to, _number(value), data
        )
    else:
        nonce, price, gas, to, value, data, chain_id, zero = plain
        if zero:
            raise ValueError("the transaction is signed already, or not of EIP-155")
        decoded = Unsigned(_number(chain_id), _number(nonce), _number(gas), _number(price), None, to, _number(value), data)
    if decoded.payload() != payload:
        raise ValueError("the transaction is not in its canonical encoding")
    return decoded


def terms(unsigned: str) -> dict[str, int]:
    """Of an unsigned transaction (hex) what no order states: gas, and its fee rates in wei, by the names of JSON-RPC. Raises
    ValueError as `decode_payload` does."""
    decoded = decode_payload(bytes.fromhex(unsigned.removeprefix("0x")))
    if decoded.tip is None:
        return {"gas": decoded.gas, "gasPrice": decoded.max_fee}
    return {"gas": decoded.gas, "maxFeePerGas": decoded.max_fee, "maxPriorityFeePerGas": decoded.tip}


def disassemble(raw: bytes) -> tuple[Unsigned, Signature]:
    """The transaction and the signature whose `signed` is exactly these bytes. Raises ValueError for any other bytes."""
    import rlp

    typed = raw[:1] == _TYPE_2
    try:
        fields = rlp.decode(raw[1:] if typed else raw, strict=True)
    except rlp.DecodingError as error:
        raise ValueError(f"not an EVM transaction: {error}") from None
    if not isinstance(fields, list) or len(fields) != (12 if typed else 9):
        raise ValueError("not a signed EVM transaction of type 2 or of EIP-155")
    *plain, v, r, s = fields
    if not all(isinstance(field, bytes) for field in (*plain[:8], v, r, s)):
        raise ValueError("a field of the transaction is of the wrong kind")
    if typed:
        payload, parity = _TYPE_2 + _rlp(plain), _number(v)
    else:
        chain_id, parity = divmod(_number(v) - 35, 2)
        if chain_id < 1:
            raise ValueError("the transaction is not of EIP-155")
        payload = _rlp([*plain, _int(chain_id), b"", b""])
    unsigned, signature = decode_payload(payload), Signature(_number(r), _number(s), parity)
    if unsigned.signed(signature) != raw:
        raise ValueError("the transaction is not in its canonical encoding")
    return unsigned, signature


def assemble(unsigned: Unsigned, signature: Signature) -> Signed:
    """The signed bytes and their id. Raises ValueError for a signature that is out of range or that no key can have made."""
    signer(unsigned, signature)
    raw = unsigned.signed(signature)
    return Signed("0x" + raw.hex(), transaction_id(raw))


def signer(unsigned: Unsigned, signature: Signature) -> str:
    """The address (EIP-55) whose account the chain would debit. Raises ValueError where there is none."""
    from coincurve import PublicKey

    if not 0 < signature.r < _ORDER or not 0 < signature.s < _ORDER or signature.parity not in (0, 1):
        raise ValueError("the signature is out of range")
    compact = signature.r.to_bytes(32) + signature.s.to_bytes(32) + bytes([signature.parity])
    try:
        key = PublicKey.from_signature_and_message(compact, keccak256(unsigned.payload()), hasher=None)
    except Exception as error:
        # coincurve raises a bare Exception for a point that is not on the curve.
        raise ValueError("no key can have made this signature") from error
    return evm_address(key.format(compressed=False)[1:])


def transaction_id(raw: bytes) -> str:
    """The id of a signed transaction: Keccak-256 of its bytes (EIP-2718 for typed ones)."""
    return "0x" + keccak256(raw).hex()


def _rlp(fields: Sequence[bytes | list[bytes]]) -> bytes:
    import rlp

    return bytes(rlp.encode(fields))


def _int(value: int) -> bytes:
    """RLP's scalar: big-endian without leading zeros (yellow paper, appendix B)."""
    return value.to_bytes((value.bit_length() + 7) // 8)


def _number(field: bytes) -> int:
    if field[:1] == b"\0" or len(field) > 32:
        raise ValueError("a number of the transaction is not in its canonical form")
    return int.from_bytes(field)
