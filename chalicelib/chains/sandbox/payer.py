"""The port ChainPayer over a simulated network, the same for every family.

Signatures are real ones: a payment moves nothing unless the key of the sender's address signed exactly its bytes.
"""

from __future__ import annotations

from dataclasses import replace

from chalicelib.chains.sandbox.chain import SandboxChain
from chalicelib.chains.sandbox.ledger import Tx
from chalicelib.chains.sandbox.payload import SignedPayment, Unsigned, digest_of, fee_of, recover, txid_of
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.withdrawals.withdrawals import Priority
from chalicelib.encoding.public_keys import address_of
from chalicelib.usecases.ports.accounts import Explained, FeeEstimate, Opened, Payment
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.ports.signing import Signature, Signed


class SandboxPayer:
    """The port ChainPayer over a simulated network."""

    def __init__(self, network: Network, chain: SandboxChain) -> None:
        if chain.network.id != network.id:
            raise ValueError(f"the chain is {chain.network.id}, not {network.id}")
        self._network, self._chain = network, chain

    def next_nonce(self, address: str) -> int:
        """Transactions of `address` that are in blocks. Raises Unavailable."""
        return self._chain.nonce(address)

    def used_nonces(self, address: str) -> int:
        """The same: there is one node."""
        return self.next_nonce(address)

    def told_nonces(self, address: str) -> tuple[int, ...]:
        """The same."""
        return (self.next_nonce(address),)

    def estimate(self, payment: Payment) -> FeeEstimate:
        """The fee in units of the native coin. Raises Refused when the sender has not enough, Unavailable."""
        return FeeEstimate(self._filled(payment).fee)

    def cost(self, payment: Payment) -> FeeEstimate:
        """The same, without asking whether the sender has the fee as well. Raises Refused, Unavailable."""
        contract, form = payment.contract, self._chain.form
        kind = None if contract is None else form(contract)
        self._chain.check(Tx("", form(payment.sender), form(payment.recipient), kind, payment.amount, 0, payment.nonce))
        return FeeEstimate(self._fee(payment))

    def gas_bound(self, sender: str, contract: str | None, gas: int) -> int:
        """0: transactions have no gas here."""
        return 0

    def prepare(self, payment: Payment) -> str:
        """The unsigned payment, as hex. Raises Refused when the sender has not enough, Unavailable."""
        return self._filled(payment).encode()

    def explain(self, unsigned: str) -> Explained:
        """The payment in `unsigned`; addresses in storage form. Raises ValueError for anything but a payment of this network."""
        does = Unsigned.decode(unsigned, self._network)
        return Explained(does.chain_id, does.nonce, does.recipient, does.contract, does.amount, does.sender, does.fee)

    def digest(self, unsigned: str) -> bytes:
        """The 32 bytes to sign."""
        return digest_of(unsigned)

    def assemble(self, unsigned: str, signature: Signature) -> Signed:
        """The signed payment and its id. Raises ValueError unless the key of the sender's address made the signature."""
        signed = SignedPayment(unsigned, signature)
        self._checked(signed)
        return Signed(signed.encode(), txid_of(self._network.family, signed))

    def opened(self, raw: str) -> Opened:
        """The parts of a transaction of `assemble`. Raises ValueError for any other."""
        signed = SignedPayment.decode(raw)
        return Opened(signed.unsigned, txid_of(self._network.family, signed), self._checked(signed).sender)

    def broadcast(self, raw: str) -> None:
        """Hand it to the network: mined at once, unless its nonce has to wait. Safe to repeat. Raises Refused, Unavailable."""
        try:
            signed = SignedPayment.decode(raw)
            does = self._checked(signed)
        except ValueError as error:
            raise Refused(f"invalid transaction: {error}") from error
        txid = txid_of(self._network.family, signed)
        tx = Tx(
            txid, does.sender, does.recipient, does.contract, does.amount, does.fee, does.nonce, reference=does.reference
        )  # fmt: skip
        self._chain.submit(tx)

    def renew(self, unsigned: str, priority: Priority, sender: str) -> str:
        """The same payment with the same nonce at a fee an eighth higher, which replaces it in the simulated pool (a tenth more is
        asked there), or at the priority's. Raises Refused when the sender has not enough, Unavailable, ValueError."""
        old = Unsigned.decode(unsigned, self._network)
        least = fee_of(self._network.family, old.contract is not None, priority)
        new = replace(old, fee=max(-(-old.fee * 9 // 8), least))
        self._chain.check(Tx("", new.sender, new.recipient, new.contract, new.amount, new.fee, new.nonce))
        return new.encode()

    def renewable(self, unsigned: str, txid: str, every_node: bool = True) -> bool:
        """Always: every simulated network has nonces, whatever its family has, and one of two with the same is mined."""
        return True

    def lifetime(self, raw: str, txid: str) -> None:
        """None: what has a nonce does not expire."""

    def _filled(self, payment: Payment) -> Unsigned:
        form = self._chain.form
        network = self._network
        does = Unsigned(
            amount=payment.amount,
            chain_id=network.chain_id,
            contract=None if payment.contract is None else form(payment.contract),
            fee=self._fee(payment),
            network=network.id,
            nonce=payment.nonce,
            recipient=form(payment.recipient),
            sender=form(payment.sender),
            reference=payment.reference,
        )
        self._chain.check(Tx("", does.sender, does.recipient, does.contract, does.amount, does.fee, does.nonce))
        return does

    def _fee(self, payment: Payment) -> int:
        least = fee_of(self._network.family, payment.contract is not None, payment.priority)
        return max([least, *(-(-Unsigned.decode(rival, self._network).fee * 9 // 8) for rival in payment.over)])

    def _checked(self, signed: SignedPayment) -> Unsigned:
        does = Unsigned.decode(signed.unsigned, self._network)
        if self._chain.form(address_of(self._network.slug, recover(signed))) != does.sender:
            raise ValueError("was not signed by the key of its sender")
        return does
