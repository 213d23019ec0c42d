"""One signer for all wallets: dispatches by the wallet's kind of key."""

from __future__ import annotations

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.usecases.ports.signing import Signature, Signer


class WalletSigner:
    """The port Signer. `kms` signs for wallets in KMS, `envelope` for imported ones."""

    def __init__(self, kms: Signer, envelope: Signer) -> None:
        self._signers = {"kms": kms, "envelope": envelope}

    def sign(self, wallet: Wallet, digest: bytes) -> Signature:
        """Sign 32 bytes with the wallet's key. The caller has checked what it signs (money rule 7).

        Raises what the two signers raise, and ValueError for a wallet whose key is not here (a cold one).
        """
        signer = self._signers.get(wallet.custody)
        if signer is None:
            raise ValueError(f"the key of wallet {wallet.address} is not here: it can not sign")
        return signer.sign(wallet, digest)
