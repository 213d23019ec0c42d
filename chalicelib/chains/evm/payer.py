"""Payments on an EVM network: simulate, build, explain, assemble, broadcast. Holds no key and signs nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from chalicelib.chains.abi import address_bytes, transfer_call
from chalicelib.chains.answers import Garbled, member
from chalicelib.chains.evm import refusals, transactions
from chalicelib.chains.evm.fees import PLAIN_GAS, Fees, credible, fees_for, gas_limit, is_rollup, most_gas, replacing
from chalicelib.chains.evm.quantities import data, quantity
from chalicelib.chains.providers import electorate
from chalicelib.chains.rpc import JsonRpc, Request, RpcError, Transport
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.withdrawals.fees import MOST_TIMES_PLAIN
from chalicelib.domain.withdrawals.withdrawals import Priority
from chalicelib.encoding.keccak import keccak256
from chalicelib.usecases.base.side_by_side import answers
from chalicelib.usecases.ports.accounts import Explained, FeeEstimate, Opened, Payment
from chalicelib.usecases.ports.failures import InsufficientFunds, Refused, TooMuchGas, Unavailable
from chalicelib.usecases.ports.signing import Signature, Signed

log = logging.getLogger(__name__)

T = TypeVar("T")

_HEAD: Request = ("eth_getBlockByNumber", ["latest", False])
_TIP: Request = ("eth_maxPriorityFeePerGas", [])


@dataclass(frozen=True, slots=True)
class _Plan:
    """A payment that the node has simulated: what it calls, and what it may cost. `gas` (the limit) and `takes` (the estimate)
    in gas, the rest in wei."""

    to: bytes
    value: int
    data: bytes
    gas: int
    takes: int
    fees: Fees

    @property
    def fee(self) -> int:
        return self.gas * self.fees.max_fee


class EvmPayer:
    """Implements `usecases.ports.accounts.ChainPayer` over one node, or several that stand in for each other: `each` is every one
    of them.

    Raises ValueError at once for a network without a chain id.
    """

    def __init__(self, network: Network, rpc: JsonRpc, each: Sequence[Transport] = ()) -> None:
        if network.chain_id is None:
            raise ValueError(f"{network.slug} has no chain id")
        self._network = network
        self._chain_id = network.chain_id
        self._rpc, self._each = rpc, each

    def next_nonce(self, address: str) -> int:
        """Transactions of `address` that are in blocks (not the mempool). Raises Unavailable."""
        return self._counted(self._rpc, address)

    def used_nonces(self, address: str) -> int:
        """The least number of used nonces that any voting node gives. Raises Unavailable, also where one does not answer."""
        return min(answers(lambda node: self._counted(node, address), electorate(self._each or (self._rpc,))))

    def told_nonces(self, address: str) -> tuple[int | None, ...]:
        """The number of used nonces by each node, None where it does not answer. Raises Unavailable where none does."""

        def ask(node: Transport) -> int | Unavailable:
            try:
                return self._counted(node, address)
            except Unavailable as error:
                return error

        told = answers(ask, self._each or (self._rpc,))
        silent = [answer for answer in told if isinstance(answer, Unavailable)]
        if len(silent) == len(told):
            raise silent[-1]
        return tuple(None if isinstance(answer, Unavailable) else answer for answer in told)

    def _counted(self, node: Transport, address: str) -> int:
        return self._sure(lambda: quantity(node.call("eth_getTransactionCount", [address, "latest"]), "a nonce"))

    def estimate(self, payment: Payment) -> FeeEstimate:
        """The most that the payment would cost now, in wei.

        A token's payment to the sender itself stands for one to an address that never had it, which is the dearest: it writes a
        word of storage that was zero (EIP-2200). Raises Refused when it would fail on the chain, Unavailable.
        """
        if payment.contract is not None and payment.recipient == payment.sender:
            payment = replace(payment, recipient=_unused(payment.sender))
        plan = self._sure(lambda: self._plan(payment))
        return FeeEstimate(plan.fee, plan.takes)

    def cost(self, payment: Payment) -> FeeEstimate:
        """As `estimate`, without asking whether the sender has the gas. Raises Refused, Unavailable."""
        plan = self._sure(lambda: self._plan(payment, pays=False))
        return FeeEstimate(plan.fee, plan.takes)

    def gas_bound(self, sender: str, contract: str | None, gas: int) -> int:
        """The most gas that a payment of this coin may take where no fee is reserved for more. Asks the node only where `gas`
        is more than three times that of the cheapest transaction, and a plain one's gas is not known without it. Raises
        Unavailable."""
        return self._sure(lambda: self._bound(sender, contract, gas, None))

    def _bound(self, sender: str, contract: str | None, gas: int, told: object) -> int:
        """`told`: the node's estimate of a plain payment, where it was asked with others."""
        least, slug = MOST_TIMES_PLAIN * PLAIN_GAS, self._network.slug
        if gas <= least or (contract is None and not is_rollup(slug)):
            return least
        most = most_gas(slug, contract is not None)
        plain = self._plain_gas(sender, contract, most) if told is None else quantity(told, "the gas estimate")
        return min(most, max(least, MOST_TIMES_PLAIN * plain))

    def _plain_gas(self, sender: str, contract: str | None, unknown: int) -> int:
        """What a plain payment takes now: to an address that has no code and no coins. Nobody can have its key.

        Asked of the node as the payment itself is. So on arbitrum both estimates have the gas for the parent chain's data in them,
        which moves with that chain's price (docs.arbitrum.io, "How to estimate gas": eth_estimateGas is the sum that
        NodeInterface.gasEstimateComponents tells the parts of). A token that takes no payment to such an address is asked about one
        to the sender itself. `unknown` where it refuses that, too.
        """
        unused = _unused(sender)
        if contract is None:
            return quantity(self._simulate("eth_estimateGas", {"from": sender, "to": unused, "value": "0x1"}), "the gas estimate")
        for recipient in (unused, sender):
            try:
                return quantity(self._simulate("eth_estimateGas", _plain(sender, contract, recipient)), "the gas estimate")
            except Refused as refused:
                log.info("%s: no plain payment of %s can be estimated: %s", self._network.id, contract, refused)
        return unknown

    def prepare(self, payment: Payment) -> str:
        """The unsigned transaction, as hex, with fees of now. Raises Refused, Unavailable."""
        plan = self._sure(lambda: self._plan(payment))
        unsigned = transactions.Unsigned(
            self._chain_id, payment.nonce, plan.gas, plan.fees.max_fee, plan.fees.tip, plan.to, plan.value, plan.data
        )
        return "0x" + unsigned.payload().hex()

    def explain(self, unsigned: str) -> Explained:
        """Decode `unsigned`; recipient and contract come in storage form (lower case).

        Raises ValueError for anything but a plain transfer of the native coin or of a token on this very chain, and for
        a fee that no transfer costs.
        """
        decoded = self._decoded(unsigned)
        return replace(decoded.explain(), fee=decoded.gas * decoded.max_fee, gas=decoded.gas)

    def digest(self, unsigned: str) -> bytes:
        """The 32 bytes to sign: Keccak-256 of the payload (EIP-1559, EIP-155). Raises ValueError as `explain` does."""
        return keccak256(self._decoded(unsigned).payload())

    def assemble(self, unsigned: str, signature: Signature) -> Signed:
        """The signed transaction and its id. Raises ValueError as `explain` does, and for an impossible or high-s (EIP-2) one."""
        return transactions.assemble(self._decoded(unsigned), signature)

    def signer(self, unsigned: str, signature: Signature) -> str:
        """The address (EIP-55) that would pay if `unsigned` were sent with `signature`. Raises ValueError as `assemble` does."""
        return transactions.signer(self._decoded(unsigned), signature)

    def opened(self, raw: str) -> Opened:
        """The parts of a transaction of `assemble`. Raises ValueError for any other."""
        unsigned, signature = transactions.disassemble(_bytes(raw))
        payload = "0x" + unsigned.payload().hex()
        return Opened(payload, transactions.transaction_id(_bytes(raw)), self.signer(payload, signature))

    def broadcast(self, raw: str) -> None:
        """Hand it to the node. Safe to repeat: what the node or the chain knows already is done.

        Raises Refused with the node's words, Unavailable. Refused says that this node does not take it now. It is no proof that it
        is not in a block, or never will be: only a receipt, or another transaction in a block with the same nonce, is.
        """
        txid = transactions.transaction_id(_bytes(raw))
        try:
            answer = self._rpc.call("eth_sendRawTransaction", ["0x" + _bytes(raw).hex()])
        except RpcError as error:
            if refusals.known_already(error) or self._sure(lambda: self._knows(txid)):
                return
            if refusals.not_taken(error):
                raise Refused(error.message) from error
            raise self._unavailable(error) from error
        if answer != txid:
            raise Unavailable(f"{self._network.slug}: the node answers with the id of another transaction")

    def renew(self, unsigned: str, priority: Priority, sender: str) -> str:
        """The same call with the same nonce, at fees that replace `unsigned` in a node's pool, as hex.

        The gas limit never shrinks. Where the node says that the call would fail by now, or takes more gas than it may
        (`gas_bound`), it stays what it was: the nonce has to be used, or every later payment of the wallet waits for it, and what
        then becomes of the payment the chain decides. Raises Refused (a fee that no transfer costs, too little in the wallet),
        Unavailable, ValueError.
        """
        old = self._decoded(unsigned)
        return "0x" + self._sure(lambda: self._renewed(old, priority, sender)).payload().hex()

    def renewable(self, unsigned: str, txid: str, every_node: bool = True) -> bool:
        """Always: two transactions with one nonce are never both in the chain."""
        return True

    def lifetime(self, raw: str, txid: str) -> None:
        """None: what has a nonce does not expire."""

    def _renewed(self, old: transactions.Unsigned, priority: Priority, sender: str) -> transactions.Unsigned:
        most = most_gas(self._network.slug, bool(old.data))
        request = {"from": sender, "to": "0x" + old.to.hex(), "value": hex(old.value), "data": "0x" + old.data.hex()}
        needed: dict[str, Request] = {"head": _HEAD, "funds": ("eth_getBalance", [sender, "latest"])}
        told = self._asked(needed, {"gas": ("eth_estimateGas", [request]), "tip": _TIP})
        head, funds = told["head"], told["funds"]
        try:
            estimate = quantity(self._simulate("eth_estimateGas", request, told.get("gas")), "the gas estimate")
            gas = max(old.gas, gas_limit(estimate, self._network.gas_limit, most))
        except Refused as refused:
            log.warning("%s: a payment that is being replaced would fail by now: %s", self._network.id, refused)
            gas = old.gas
        contract = "0x" + old.to.hex() if old.data else None
        if gas > old.gas and gas > min(most, self.gas_bound(sender, contract, gas)):
            gas = old.gas
        fees = replacing(Fees(old.max_fee, old.tip), self._fees(priority, head, told.get("tip")))
        renewed = replace(old, gas=gas, max_fee=fees.max_fee, tip=fees.tip)
        if not credible(self._network.slug, gas * fees.max_fee):
            raise Refused(f"a replacement may cost {gas * fees.max_fee} wei, which no transfer costs")
        if quantity(funds, "a balance") < old.value + gas * fees.max_fee:
            raise InsufficientFunds(f"insufficient funds: the sender has {quantity(funds, 'a balance')} wei for a replacement")
        return renewed

    def _plan(self, payment: Payment, *, pays: bool = True) -> _Plan:
        """`pays`: only where the sender has the fee. Without it no call can be simulated at its price."""
        if payment.amount <= 0 or payment.nonce < 0:
            raise ValueError("a payment moves something, and its nonce is not negative")
        if payment.contract is None:
            to, value, call = address_bytes(payment.recipient), payment.amount, b""
        else:
            to, value, call = address_bytes(payment.contract), 0, transfer_call(payment.recipient, payment.amount)
        request = {"from": payment.sender, "to": "0x" + to.hex(), "value": hex(value), "data": "0x" + call.hex()}
        told = self._asked(
            {
                "chain": ("eth_chainId", []),
                "head": _HEAD,
                "funds": ("eth_getBalance", [payment.sender, "latest"]),
                "code": ("eth_getCode", ["0x" + to.hex(), "latest"]),
            },
            _more(payment, request),
        )
        # Before anything that was simulated counts: a node on another chain would have refused the payment, or priced it.
        if quantity(told["chain"], "the chain id") != self._chain_id:
            raise Garbled("the node is on another chain")
        there, funds = data(told["code"], "a contract's code"), told["funds"]
        if payment.contract is not None and payment.gas != "used":
            self._simulate_token(request, there, told.get("call"))
        takes, gas = self._gas(payment, request, told)
        fees = self._fees(payment.priority, told["head"], told.get("tip"))
        for rival in map(self._decoded, payment.over):
            fees = replacing(Fees(rival.max_fee, rival.tip), fees)
        plan = _Plan(to, value, call, gas, takes, fees)
        if not credible(self._network.slug, plan.fee):
            raise Garbled(f"the node asks for a fee of {plan.fee} wei, which no transfer costs")
        # eth_estimateGas does not look at who pays for the gas, and on some nodes not even at the value.
        if quantity(funds, "a balance") < value + (plan.fee if pays else 0):
            raise InsufficientFunds(f"insufficient funds: the sender has {quantity(funds, 'a balance')} wei of {value + plan.fee}")
        if there and pays and payment.gas != "used":
            # Exactly as it will be sent: without a price, a contract knows that it is simulated, and fails on the chain alone.
            priced = {**request, "gas": hex(gas), **plan.fees.as_asked()}
            if payment.contract is None:
                self._simulate("eth_call", priced)
            else:
                self._simulate_token(priced, there)
        return plan

    def _asked(self, needed: Mapping[str, Request], more: Mapping[str, Request]) -> dict[str, Any]:
        """The answers of one node by the names of the requests, in one round trip: each of `needed`, and each of `more` or none.

        A batch does not tell which of its requests was refused, nor what the others were answered. So where one is (the payment
        would fail, the node lacks a method), `needed` is asked alone, and the caller asks for the rest one by one: then the first
        refusal that counts is the first in the caller's order.
        """
        try:
            return dict(zip([*needed, *more], self._rpc.batch([*needed.values(), *more.values()]), strict=True))
        except RpcError as error:
            log.info("%s: asked one by one: %s", self._network.id, error.message)
        return dict(zip(needed, self._rpc.batch(list(needed.values())), strict=True))

    def _gas(self, payment: Payment, request: dict[str, str], told: Mapping[str, Any]) -> tuple[int, int]:
        """What a payment takes, and its gas limit. Raises TooMuchGas."""
        most = most_gas(self._network.slug, payment.contract is not None)
        try:
            takes = quantity(self._simulate("eth_estimateGas", request, told.get("gas")), "the gas estimate")
        except InsufficientFunds:
            raise
        except Refused as refused:
            if payment.gas != "used":
                raise
            log.warning("%s: a payment whose nonce has to be used would fail: %s", self._network.id, refused)
            takes = most
        limit = gas_limit(takes, self._network.gas_limit, most)
        if payment.gas == "any":
            if limit > most:
                raise TooMuchGas(f"the transfer takes {limit} gas: the recipient or the token computes at the wallet's expense")
            return takes, limit
        bound = self._bound(payment.sender, payment.contract, limit, told.get("plain"))
        if takes > bound and payment.gas == "bounded":
            raise TooMuchGas(f"the transfer takes {takes} gas, and may take {bound}")
        return takes, min(limit, bound)

    def _simulate_token(self, request: dict[str, str], code: bytes, told: object = None) -> None:
        """eth_call of the transfer. USDT's returns nothing, others must return true: with false nothing moved."""
        if not code:
            raise Refused("there is no token contract at this address")
        answer = data(self._simulate("eth_call", request, told), "the answer of a token")
        if answer and (len(answer) != 32 or int.from_bytes(answer) != 1):
            raise Refused("the token's transfer does not return true")

    def _simulate(self, method: str, request: dict[str, str], told: object = None) -> Any:
        """`told`: the answer, where it was asked with others already."""
        if told is not None:
            return told
        try:
            # eth_estimateGas looks at the newest block by default, and some nodes take no second parameter there.
            return self._rpc.call(method, [request] if method == "eth_estimateGas" else [request, "latest"])
        except RpcError as error:
            if refusals.out_of_funds(error):
                raise InsufficientFunds(error.message) from error
            if refusals.would_fail(error):
                raise Refused(error.message) from error
            raise

    def _fees(self, priority: Priority, head: Any, told: object) -> Fees:
        """`told`: the tip, where it was asked with the head already."""
        base = member(head, "baseFeePerGas", "the newest block")
        if base is None:
            price = quantity(self._rpc.call("eth_gasPrice"), "the gas price")
            return fees_for(self._network.slug, priority, None, price)
        base_fee = quantity(base, "the base fee")
        try:
            tip = quantity(self._rpc.call(*_TIP) if told is None else told, "the tip")
        except RpcError:
            # Not every node has that method. The gas price is the base fee and a tip.
            tip = max(0, quantity(self._rpc.call("eth_gasPrice"), "the gas price") - base_fee)
        return fees_for(self._network.slug, priority, base_fee, tip)

    def _knows(self, txid: str) -> bool:
        """Whether the node has this transaction, in its pool or in a block."""
        found = self._rpc.batch([("eth_getTransactionByHash", [txid]), ("eth_getTransactionReceipt", [txid])])
        return any(
            member(answer or {}, "hash" if n == 0 else "transactionHash", "a transaction") == txid for n, answer in enumerate(found)
        )

    def _decoded(self, unsigned: str) -> transactions.Unsigned:
        decoded = transactions.decode_payload(_bytes(unsigned))
        if decoded.chain_id != self._chain_id:
            raise ValueError(f"the transaction is for chain {decoded.chain_id}, not {self._chain_id}")
        if not credible(self._network.slug, decoded.gas * decoded.max_fee):
            raise ValueError(f"the transaction may cost {decoded.gas * decoded.max_fee} wei, which no transfer costs")
        if decoded.gas > most_gas(self._network.slug, decoded.explain().contract is not None):
            raise ValueError(f"the transaction may take {decoded.gas} gas, which no transfer takes")
        return decoded

    def _sure(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except (RpcError, Garbled) as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: Exception) -> Unavailable:
        return Unavailable(f"{self._network.slug}: {error}")


def _more(payment: Payment, request: dict[str, str]) -> dict[str, Request]:
    """What a payment's plan asks beside the facts: nothing of it depends on an answer."""
    more: dict[str, Request] = {"gas": ("eth_estimateGas", [request]), "tip": _TIP}
    if payment.contract is not None and payment.gas != "used":
        more["call"] = ("eth_call", [request, "latest"])
    if payment.contract is not None and payment.gas != "any":
        # `_bound` needs it whenever the recipient never had the token.
        more["plain"] = ("eth_estimateGas", [_plain(payment.sender, payment.contract, _unused(payment.sender))])
    return more


def _plain(sender: str, contract: str, recipient: str) -> dict[str, str]:
    """The call of a token's plain payment."""
    return {"from": sender, "to": contract, "value": "0x0", "data": "0x" + transfer_call(recipient, 1).hex()}


def _unused(sender: str) -> str:
    """An address that nobody has used, nor can: it is a hash, so nobody has its key."""
    return "0x" + keccak256(f"unused|{sender}".encode())[-20:].hex()


def _bytes(text: str) -> bytes:
    """Hex with or without 0x. Raises ValueError."""
    return bytes.fromhex(text.removeprefix("0x"))
