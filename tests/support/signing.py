"""Signers of withdrawals, with keys made by another implementation (cryptography)."""

from __future__ import annotations

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
