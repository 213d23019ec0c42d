"""Signers of withdrawals, with keys made by another implementation (cryptography)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


class Signer:
    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self._key = Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)

    @property
    def public_key(self) -> str:
        return self._key.public_key().public_bytes_raw().hex()

    def sign(self, text: str) -> str:
        return self._key.sign(text.encode()).hex()

    @property
    def config(self) -> dict[str, str]:
        return {"id": self.name, "public_key": self.public_key, "role": "finance"}


ALICE, BOB, CAROL, MALLORY = (Signer(name, seed) for seed, name in enumerate(("alice", "bob", "carol", "mallory"), 1))


def multisig(threshold: str = "1", required: int = 2) -> dict[str, object]:
    """Alice, Bob and Carol, `required` of whom have to sign."""
    signers = [signer.config for signer in (ALICE, BOB, CAROL)]
    return {
        "enabled": True,
        "required_signatures": required,
        "total_signers": 3,
        "threshold_amount": threshold,
        "signers": signers,
    }


def agreed(send: Callable[[dict[str, Any]], Any], body: dict[str, Any], *signers: Signer) -> Any:
    """The answer to a guarded change, as a merchant makes it: sent without signatures, and again with those of `signers` over the
    text that the refusal shows."""
    refusal = send(body)
    assert refusal.status == 400, refusal.body
    details = refusal.json["error"]["details"]
    assert details["field"] == "signatures", details
    text = details["reason"].partition(": ")[2]
    return send({**body, "signatures": [{"signer_id": s.name, "signature": s.sign(text)} for s in signers]})


def enabled(send: Callable[[dict[str, Any]], Any], threshold: str = "1", required: int = 2) -> Any:
    """Alice, Bob and Carol agree to be the signers; `send` puts the merchant's settings."""
    answer = agreed(send, {"multisig_config": multisig(threshold, required)}, ALICE, BOB, CAROL)
    assert answer.status == 200, answer.body
    return answer
