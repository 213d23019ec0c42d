"""Payments on Tron: simulate, build, explain, assemble, broadcast. Holds no key and signs nothing.

No Tron library is imported here. tronpy makes the same id of the order right before a key signs (`second_reader`), and only there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from chalicelib.chains.abi import transfer_call
from chalicelib.chains.answers import Garbled
from chalicelib.chains.tron import fees, refusals, transactions
from chalicelib.chains.tron.balances import balance_of
from chalicelib.chains.tron.calls import Node, call_failed, constant_call
from chalicelib.chains.tron.reader import MAINNET
from chalicelib.chains.tron.sending import Sending
from chalicelib.chains.tron.values import hex_address, row, text_address, whole
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.transactions.sightings import Lifetime
from chalicelib.domain.withdrawals.withdrawals import Priority
from chalicelib.usecases.ports.accounts import Explained, FeeEstimate, Opened, Payment
from chalicelib.usecases.ports.failures import InsufficientFunds, Refused
from chalicelib.usecases.ports.signing import Signature, Signed

_SOME_REFERENCE = transactions.Reference(b"\xff\xff", b"\xff" * 8, 2**42, 2**42)
"""For the size of a transaction before it is built: as long as any until the year 2109."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """A payment that the node has simulated. `fee` is what it burns now, `fee_limit` what a call may burn for energy, `most` what
    its bytes could burn; in sun."""

    fee: int
    fee_limit: int
    most: int


class TronPayer:
    """Implements `usecases.ports.accounts.ChainPayer`. Tron knows no nonces and no priorities: the nonce of an order is a sequence
    number that makes equal payments differ, and every priority costs the same."""

    def __init__(self, network: Network, node: Node, genesis: str | None = MAINNET, witnesses: Sequence[Node] = ()) -> None:
        self._network, self._node = network, node
        self._sending = Sending(network, node, genesis, witnesses)

    def next_nonce(self, address: str) -> int:
        """0: the chain counts nothing, and our own counter begins there."""
        return 0

    def used_nonces(self, address: str) -> int:
        """0 for the same reason: no other transaction can use one of ours."""
        return 0

    def told_nonces(self, address: str) -> tuple[int, ...]:
        """The same: no node is asked."""
        return (0,)

    def estimate(self, payment: Payment) -> FeeEstimate:
        """The most that the payment would burn now, in sun, after what the sender has of bandwidth and energy.

        A payment to the sender itself stands for one to an address that nobody has used, which is the dearest: who asks so does
        not know yet who will be paid. Raises Refused when it would fail on the chain, Unavailable.
        """
        if payment.recipient != payment.sender:
            return FeeEstimate(self._sending.sure(lambda: self._plan(payment)).fee)
        unused = sha256(f"unused|{payment.sender}".encode()).digest()[:20]
        dearest = replace(payment, recipient=text_address(b"\x41" + unused))
        bare = self._sending.sure(lambda: self._plan(payment, pays=False, bare=True)).fee
        return FeeEstimate(self._sending.sure(lambda: self._plan(dearest)).fee, bare=bare)

    def cost(self, payment: Payment) -> FeeEstimate:
        """As `estimate`, without asking whether the sender has the TRX to burn. Raises Refused, Unavailable."""
        plan = self._sending.sure(lambda: self._plan(payment, pays=False))
        return FeeEstimate(plan.fee, stated=plan.most)

    def gas_bound(self, sender: str, contract: str | None, gas: int) -> int:
        """0: transactions have no gas here."""
        return 0

    def prepare(self, payment: Payment) -> str:
        """The unsigned transaction (raw_data, as hex), valid for ten minutes from the chain's newest block. Raises Refused,
        Unavailable."""

        def build() -> str:
            if payment.contract is None and payment.recipient == payment.sender:
                raise Refused("Tron makes no transfer to the sender itself")
            # One after the other: a payout makes 19 requests, and TronGrid gives a key 15 a second.
            plan = self._plan(payment)
            return self._built(payment, plan.fee_limit).encode().hex()

        return self._sending.sure(build)

    def explain(self, unsigned: str) -> Explained:
        """Decode `unsigned`. Raises ValueError for anything but a plain transfer of TRX or of a token, as this module builds it,
        and for a fee limit that no transfer needs."""
        decoded = self._decoded(unsigned)
        size = fees.size_of(bytes.fromhex(unsigned))
        return Explained(
            chain_id=self._network.chain_id,
            nonce=None,
            recipient=decoded.recipient or "",
            contract=decoded.contract,
            amount=decoded.amount,
            sender=decoded.owner,
            fee=fees.most_cost(size, decoded.fee_limit, makes_account=decoded.contract is None),
        )

    def digest(self, unsigned: str) -> bytes:
        """The 32 bytes to sign: the id. Raises ValueError as `explain` does."""
        self._decoded(unsigned)
        return sha256(bytes.fromhex(unsigned)).digest()

    def assemble(self, unsigned: str, signature: Signature) -> Signed:
        """The signed transaction and its id. Raises ValueError as `explain` does, and unless the sender's key signed."""
        self._decoded(unsigned)
        return transactions.assemble(bytes.fromhex(unsigned), signature)

    def opened(self, raw: str) -> Opened:
        """The parts of a transaction of `assemble`. Raises ValueError for any other."""
        return transactions.opened(raw)

    def broadcast(self, raw: str) -> None:
        """Hand it to the node. Safe to repeat: what the node or the chain knows already is done. Raises Refused (the node's words;
        it is no proof that no block has it), Unavailable."""
        self._sending.broadcast(raw)

    def renew(self, unsigned: str, priority: Priority, sender: str) -> str:
        """The same payment with a new reference block and end. Raises Refused, InsufficientFunds, Unavailable.

        Only for one that is `renewable`: on Tron nothing else keeps both from being taken.
        """
        before = self._decoded(unsigned)
        if before.owner != sender:
            raise ValueError("the payment is another wallet's")
        sequence = before.reference.timestamp % 1000
        return self.prepare(Payment(before.owner, before.recipient or "", before.contract, before.amount, sequence, priority))

    def renewable(self, unsigned: str, txid: str, every_node: bool = True) -> bool:
        """Whether the nodes say that no block will ever have it: `Sending.dead`. Raises Unavailable."""
        return self._sending.sure(lambda: self._sending.dead(self._decoded(unsigned), txid, every_node))

    def lifetime(self, raw: str, txid: str) -> Lifetime:
        """The blocks that can hold the signed bytes `raw`. Raises ValueError unless their id is `txid`."""
        return transactions.lifetime(raw, txid)

    def _plan(self, payment: Payment, *, pays: bool = True, bare: bool = False) -> _Plan:
        """`pays`: only where the sender has what it would burn. `bare`: as if it had neither energy nor bandwidth."""
        if payment.amount <= 0 or payment.nonce < 0:
            raise ValueError("a payment moves something, and its nonce is not negative")
        requests: list[tuple[str, Any]] = [
            ("wallet/getchainparameters", {}),
            ("wallet/getaccountresource", {"address": hex_address(payment.sender), "visible": False}),
            ("wallet/getaccount", {"address": hex_address(payment.sender), "visible": False}),
        ]
        if payment.contract is None:
            requests.append(("wallet/getaccount", {"address": hex_address(payment.recipient), "visible": False}))
        answers = self._node.batch(requests)
        prices, have = fees.prices_of(answers[0]), fees.NOTHING if bare else fees.resources_of(answers[1])
        funds = whole(row(answers[2], "an account").get("balance"), "a balance")
        draft = transactions.Unsigned(
            "TransferContract" if payment.contract is None else "TriggerSmartContract",
            payment.sender, payment.amount, _SOME_REFERENCE, payment.recipient, payment.contract,
            fee_limit=0 if payment.contract is None else fees.MOST_FEE_LIMIT,
        )  # fmt: skip
        size = fees.size_of(draft.encode())
        if payment.contract is None:
            if payment.amount >= 2**63:
                raise Refused("there is not so much TRX")
            recipient = row(answers[3], "an account")
            if recipient.get("type") == "Contract":
                raise Refused("Tron makes no transfer of TRX to a contract")
            fee = fees.bytes_fee(prices, have, size) if recipient else fees.activation_fee(prices, have, size)
            plan, needed = _Plan(fee, 0, fees.most_cost(size, 0, makes_account=True)), payment.amount + fee
        else:
            energy = fees.with_margin(self._energy(payment, payment.contract))
            limit = fees.fee_limit(prices, energy)
            burns = fees.bytes_fee(prices, have, size) + fees.energy_fee(prices, have, energy)
            plan = _Plan(burns, limit, fees.most_cost(size, limit, makes_account=False))
            if energy > fees.MOST_ENERGY:
                raise Refused(f"the transfer takes {energy} energy: the token computes at the wallet's expense")
            if plan.fee_limit > fees.MOST_FEE_LIMIT:
                raise Garbled(f"the node asks for {plan.fee_limit} sun, which no transfer costs")
            needed = plan.fee
        if funds < (needed if pays else needed - plan.fee):
            raise InsufficientFunds(f"insufficient funds: the sender has {funds} sun of {needed}")
        return plan

    def _energy(self, payment: Payment, contract: str) -> int:
        """What the transfer uses now. Whether it returns true does not count: Tron's USDT has returned false and moved. What
        really moved, its log decides."""
        call = transfer_call("0x" + hex_address(payment.recipient)[2:], payment.amount)
        answer = constant_call(self._node, payment.sender, contract, call)
        said = call_failed(answer)
        if said is None:
            energy = whole(answer.get("energy_used"), "the energy used")
            if not energy:
                raise Garbled("the node says that a call uses no energy")
            return energy
        if refusals.no_contract(said):
            raise Refused("there is no token contract at this address")
        if balance_of(self._node, payment.sender, contract) < payment.amount:
            raise InsufficientFunds("the sender has too little of the token")
        raise Refused(said)

    def _built(self, payment: Payment, fee_limit: int) -> transactions.Unsigned:
        reference = self._sending.reference(payment.nonce)
        kind: transactions.Kind = "TransferContract" if payment.contract is None else "TriggerSmartContract"
        return transactions.Unsigned(
            kind, payment.sender, payment.amount, reference, payment.recipient, payment.contract, fee_limit=fee_limit
        )

    def _decoded(self, unsigned: str) -> transactions.Unsigned:
        decoded = transactions.decode(bytes.fromhex(unsigned))
        if decoded.kind not in ("TransferContract", "TriggerSmartContract"):
            raise ValueError("the transaction is a stake or lends one, no payment")
        if decoded.fee_limit > fees.MOST_FEE_LIMIT:
            raise ValueError(f"the transaction may burn {decoded.fee_limit} sun, which no transfer costs")
        return decoded
