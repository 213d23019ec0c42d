"""Staking TRX on the real Tron (Stake 2.0): FreezeBalanceV2, built and encoded by ourselves, signed by whoever holds the key.

No Tron library is imported here. Source: TIP-467; developers.tron.network, "Stake 2.0".
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from chalicelib.chains.tron import fees, transactions
from chalicelib.chains.tron.reader import MAINNET, Node
from chalicelib.chains.tron.sending import Sending
from chalicelib.chains.tron.values import hex_address, row, whole
from chalicelib.domain.catalogue import Network
from chalicelib.domain.stakes import Resource
from chalicelib.usecases.ports.failures import InsufficientFunds
from chalicelib.usecases.ports.signing import Signature, Signed
from chalicelib.usecases.ports.staking import ExplainedStake


class TronStaking:
    """Implements `usecases.ports.StakingNode`. `genesis` as in `TronReader`."""

    def __init__(self, network: Network, node: Node, genesis: str | None = MAINNET, witnesses: Sequence[Node] = ()) -> None:
        self._network, self._node = network, node
        self._sending = Sending(network, node, genesis, witnesses)

    def prepare(self, wallet: str, amount: int, resource: Resource, sequence: int) -> str:
        """The unsigned transaction (raw_data, as hex) that freezes `amount` sun. `sequence` makes equal ones differ.

        Raises InsufficientFunds, Unavailable.
        """

        def build() -> str:
            reference = self._sending.reference(sequence)
            unsigned = transactions.Unsigned("FreezeBalanceV2Contract", wallet, amount, reference, resource=resource)
            raw = unsigned.encode()
            asked = {"address": hex_address(wallet), "visible": False}
            parameters, resources, account = self._node.batch(
                [("wallet/getchainparameters", {}), ("wallet/getaccountresource", asked), ("wallet/getaccount", asked)]
            )
            fee = fees.bytes_fee(fees.prices_of(parameters), fees.resources_of(resources), fees.size_of(raw))
            funds = whole(row(account, "an account").get("balance"), "a balance")
            if funds < amount + fee:
                raise InsufficientFunds(f"insufficient funds: the wallet has {funds} sun of {amount + fee}")
            return raw.hex()

        return self._sending.sure(build)

    def explain(self, unsigned: str) -> ExplainedStake:
        """Decode `unsigned`. Raises ValueError for anything but a stake as this module builds it."""
        decoded = self._decoded(unsigned)
        if decoded.resource is None:
            raise ValueError("the transaction is no stake")
        return ExplainedStake(decoded.owner, decoded.amount, decoded.resource, decoded.txid)

    def digest(self, unsigned: str) -> bytes:
        """The 32 bytes to sign: the id. Raises ValueError as `explain` does."""
        self._decoded(unsigned)
        return sha256(bytes.fromhex(unsigned)).digest()

    def assemble(self, unsigned: str, signature: Signature) -> Signed:
        """The signed transaction. Raises ValueError as `explain` does, and unless the wallet's key signed."""
        self._decoded(unsigned)
        return transactions.assemble(bytes.fromhex(unsigned), signature)

    def broadcast(self, raw: str) -> None:
        """As `ChainPayer.broadcast`."""
        self._sending.broadcast(raw)

    def renewable(self, unsigned: str, txid: str) -> bool:
        """As `ChainPayer.renewable`: no block will ever have it."""
        return self._sending.sure(lambda: self._sending.dead(self._decoded(unsigned), txid))

    def _decoded(self, unsigned: str) -> transactions.Unsigned:
        decoded = transactions.decode(bytes.fromhex(unsigned))
        if decoded.kind != "FreezeBalanceV2Contract":
            raise ValueError("the transaction is no stake")
        return decoded
