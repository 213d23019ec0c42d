"""Approval of withdrawals: required and given approvals, and the exact text that a signer signs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from chalicelib.domain.ids import Realm, TenantId
from chalicelib.domain.money import ceil_units

ApprovalReason = Literal["multisig", "grey_list", "risk"]
OPERATORS: frozenset[ApprovalReason] = frozenset({"grey_list", "risk"})
"""The reasons that ask the operator; the others ask the merchant's signers."""
Verify = Callable[[str, str, str], bool]
"""Public key (hex), text, signature (hex): whether the signature is that key's over that text (Ed25519, RFC 8032)."""


@dataclass(frozen=True, slots=True)
class Signer:
    """A signer of a merchant's multisig. `public_key` is the 32 bytes of RFC 8032 as hex."""

    id: str
    public_key: str
    role: str = ""


@dataclass(frozen=True, slots=True)
class MultisigConfig:
    """`threshold_amount` is a plain decimal in coin units, whichever the coin: amounts at or over it need the signatures."""

    enabled: bool = False
    required_signatures: int = 0
    total_signers: int = 0
    threshold_amount: str = "0"
    signers: tuple[Signer, ...] = ()

    def covers(self, units: int, decimals: int) -> bool:
        """Whether a withdrawal of `units`, of a coin with `decimals`, needs the signatures."""
        return self.enabled and units >= ceil_units(self.threshold_amount, decimals)


@dataclass(frozen=True, slots=True)
class ApprovalSignature:
    """A valid signature of a signer, as hex. `at` in milliseconds since 1970."""

    signer_id: str
    signature: str
    at: int


@dataclass(frozen=True, slots=True)
class Approval:
    """The approval that a withdrawal needs, as it was configured when the withdrawal was created.

    `multisig` needs `required` signatures of different `signers`; `grey_list` and `risk` need the operator, whose key's id is
    `operator`. Both may come up later: `reopened` counts how often one did after all had agreed.
    """

    reasons: tuple[ApprovalReason, ...]
    required: int = 0
    signers: tuple[Signer, ...] = ()
    signatures: tuple[ApprovalSignature, ...] = ()
    operator: str | None = None
    rejected_by: str | None = None
    reopened: int = 0

    def signer(self, signer_id: str) -> Signer | None:
        return next((signer for signer in self.signers if signer.id == signer_id), None)

    def signed_by(self, signer_id: str) -> bool:
        return any(signature.signer_id == signer_id for signature in self.signatures)

    def has(self, signature: str) -> bool:
        """Whether these bytes (hex) are an accepted signature already, under any signer's name."""
        return any(stored.signature == signature for stored in self.signatures)

    @property
    def given(self) -> bool:
        """Whether all required approvals are given."""
        return self._signed and (not self.asks_operator or self.operator is not None)

    @property
    def _signed(self) -> bool:
        signed = len({signature.signer_id for signature in self.signatures})
        return "multisig" not in self.reasons or signed >= self.required

    @property
    def asks_operator(self) -> bool:
        return not OPERATORS.isdisjoint(self.reasons)

    @property
    def waits_for(self) -> Literal["approval", "risk"]:
        """The name of an open approval's state: `risk` where the operator's decision about the risk alone is missing."""
        return "risk" if self._signed and "risk" in self.reasons and "grey_list" not in self.reasons else "approval"

    def asking(self, reason: ApprovalReason) -> Approval:
        """The same approval with the operator asked about `reason`, whatever others were told before."""
        again = bool(self.reasons) and self.given
        reasons = self.reasons if reason in self.reasons else (*self.reasons, reason)
        return replace(self, reasons=reasons, operator=None, reopened=self.reopened + again)

    def proven(self, text: str, verify: Verify) -> bool:
        """`given`, with every signature verified again: the payment's signer relies on it."""
        valid = {
            found.id
            for signature in self.signatures
            if (found := self.signer(signature.signer_id)) is not None and verify(found.public_key, text, signature.signature)
        }
        return self.given and ("multisig" not in self.reasons or len(valid) >= self.required)


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """The merchant of a withdrawal that needs an approval: approvers know its id alone. Kept after the decision."""

    id: str
    tenant: TenantId
    realm: Realm
    open: bool = True
    version: int = 1


def withdrawal_text(withdrawal_id: str, network: str, coin: str, amount: str, to_address: str) -> str:
    """The text that a signer signs to accept: five lines joined by LF, none at the end, each as the withdrawal's record shows
    it."""
    return "\n".join((withdrawal_id, network, coin, amount, to_address))


def rejection_text(text: str) -> str:
    """The text that a signer signs to reject: a sixth line, so that a rejection can never be handed in as an acceptance."""
    return f"{text}\nreject"


def settings_text(tenant: TenantId, revision: int, settings: Mapping[str, Any]) -> str:
    """The text that signers sign to change guarded settings: merchant and realm, the replaced revision, and the new settings as
    JSON with sorted names and no blanks."""
    return _change_text("settings", tenant, revision, settings)


def whitelist_text(tenant: TenantId, revision: int, entry: Mapping[str, Any]) -> str:
    """The text that signers sign to trust an address, or to raise its limits: like the settings' text, with the entry's
    revision, which is 0 for an address that was never on the whitelist."""
    return _change_text("whitelist", tenant, revision, entry)


def _change_text(what: str, tenant: TenantId, revision: int, record: Mapping[str, Any]) -> str:
    body = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "\n".join((what, tenant, str(revision), body))
