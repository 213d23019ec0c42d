"""Signing with keys that never leave KMS (ECC_SECG_P256K1)."""

from __future__ import annotations

from typing import Any

from chalicelib.custody.aws import call
from chalicelib.custody.signatures import NotSigned, check_digest, finish, parse_der
from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.signing import Signature

# SubjectPublicKeyInfo of an uncompressed secp256k1 point: SEQUENCE { SEQUENCE { id-ecPublicKey, secp256k1 }, BIT STRING 04... }
# (RFC 5480). The whole head is fixed, so comparing it is a complete parser.
_SPKI_HEAD = bytes.fromhex("3056301006072a8648ce3d020106052b8104000a03420004")


class KmsSigner:
    """The port Signer for wallets whose `custody` is ``kms``; `wallet.key` is the KMS key."""

    def __init__(self, kms: Any) -> None:
        self._kms = kms

    def sign(self, wallet: Wallet, digest: bytes) -> Signature:
        """Sign 32 bytes. The answer is checked against the wallet's public key before it is handed out.

        Raises Unavailable, also where KMS answers something that is no signature by this wallet's key; ValueError for a
        digest that has not 32 bytes. Source: AWS KMS API reference, Sign, MessageType DIGEST.
        """
        check_digest(digest)
        answer = call(
            self._kms,
            "sign",
            f"wallet {wallet.address}",
            KeyId=wallet.key,
            Message=digest,
            MessageType="DIGEST",
            SigningAlgorithm="ECDSA_SHA_256",
        )
        try:
            r, s = parse_der(answer["Signature"])
            return finish(r, s, digest, bytes.fromhex(wallet.public_key))
        except (ValueError, NotSigned) as error:
            raise Unavailable(f"KMS answered no signature by the key of wallet {wallet.address}: {error}") from None


def public_key(kms: Any, key_id: str) -> str:
    """The public key of a KMS key (id, ARN or alias): x and y as hex, 64 bytes.

    Raises Unavailable; ValueError for a key that does not sign over secp256k1.
    """
    return describe_key(kms, key_id)[1]


def describe_key(kms: Any, key_id: str) -> tuple[str, str]:
    """The key's own name (an alias may later point elsewhere), and its public key as `public_key` gives it.

    Raises Unavailable, ValueError.
    """
    from coincurve import PublicKey

    answer = call(kms, "get_public_key", f"key {key_id}", KeyId=key_id)
    der = answer["PublicKey"]
    if answer.get("KeyUsage") != "SIGN_VERIFY" or len(der) != 88 or not der.startswith(_SPKI_HEAD):
        raise ValueError(f"the KMS key {key_id} is not an ECC_SECG_P256K1 key for signing")
    # Refuses a point that is not on the curve.
    return str(answer["KeyId"]), PublicKey(bytes(der[23:])).format(compressed=False)[1:].hex()
