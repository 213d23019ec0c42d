"""Signatures under changes that a merchant's signers guard: its settings and its whitelist.

A key alone must not be able to switch off what protects from stolen keys, nor to switch on what only its thief can fulfil.
"""

from __future__ import annotations

from collections.abc import Sequence

from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.withdrawals.approvals import MultisigConfig, Signer
from chalicelib.encoding.ed25519 import read_bytes, verify

Signatures = Sequence[tuple[str, str]]
"""Pairs of a signer's id and its signature (64 bytes, hex or base64)."""


def check_signed(text: str, present: MultisigConfig, new: Sequence[Signer], signatures: Signatures) -> None:
    """Raises BusinessRule unless `signatures` over `text` are by `required_signatures` of the present signers, where multisig is
    enabled, and by each of `new`. The refusal shows the text."""
    guards = present.signers if present.enabled else ()
    needed = present.required_signatures if present.enabled else 0
    known = list(dict.fromkeys([*guards, *new]))
    valid: set[Signer] = set()
    for place, (signer_id, signature) in enumerate(signatures):
        candidates = [signer for signer in known if signer.id == signer_id]
        if not candidates:
            raise BusinessRule(f"signatures.{place}.signer_id", "is none of the signers")
        try:
            found = read_bytes(signature, 64).hex()
        except ValueError as error:
            raise BusinessRule(f"signatures.{place}.signature", str(error)) from error
        right = [signer for signer in candidates if verify(signer.public_key, text, found)]
        if not right:
            raise BusinessRule(f"signatures.{place}.signature", f"is not {signer_id}'s signature over: {text}")
        valid.update(right)
    missing = [signer.id for signer in new if signer not in valid]
    if missing:
        raise BusinessRule("signatures", f"each new signer has to sign this change, {', '.join(missing)} did not: {text}")
    if len({signer.id for signer in valid.intersection(guards)}) < needed:
        raise BusinessRule("signatures", f"while multisig is enabled, {needed} signers have to sign this change: {text}")
