"""Who signed a transaction, and whether that is enough: the owner's key alone, as for accounts without multi-signature."""

from __future__ import annotations

from coincurve import PublicKey

from chalicelib.encoding import base58check
from chalicelib.encoding.public_keys import tron_address
from infra.local.tron.messages import Signed, show_address

PERMISSIONS = (0, 2)
"""Owner, and the active permission that every account has. (1 is a witness's.)"""


class BadSignature(ValueError):
    """SIGERROR. The message is java-tron's."""


def signer(digest: bytes, signature: bytes) -> bytes:
    """The address whose key signed `digest`; v counts from 0 or from 27. Raises BadSignature."""
    recovery = signature[64] - 27 if signature[64] >= 27 else signature[64]
    if recovery not in {0, 1}:
        raise BadSignature("Header byte out of range")
    try:
        key = PublicKey.from_signature_and_message(signature[:64] + bytes([recovery]), digest, hasher=None)
    except Exception:  # noqa: BLE001 - libsecp256k1 says only that it failed, as a bare Exception
        raise BadSignature("Could not recover public key from signature") from None
    return base58check.decode(tron_address(key.format(compressed=False)[1:]))


def check_signatures(signed: Signed) -> None:
    """Raises BadSignature unless the owner of the contract, and nobody else, has signed."""
    contract = signed.contract
    if not signed.signatures:
        raise BadSignature("miss sig or contract")
    if contract.get("Permission_id", 0) not in PERMISSIONS:
        raise BadSignature("permission isn't exit")
    if len(signed.signatures) > 1:
        raise BadSignature(f"Signature count is {len(signed.signatures)} more than key counts of permission : 1")
    owner = contract["parameter"]["value"].get("owner_address", b"")
    found = signer(signed.txid, signed.signatures[0])
    if found != owner:
        raise BadSignature(
            f"{signed.signatures[0].hex()} is signed by {show_address(found, visible=True)} but it is not contained of permission."
        )
