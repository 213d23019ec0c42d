"""Builds the unsigned bytes of a move. It never sends more than the ledger has at its source, fee included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.ids import AssetId
from chalicelib.domain.treasury.moves import LOANS, Move
from chalicelib.usecases.ports.accounts import ChainPayer, Payment
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.failures import InsufficientFunds, Refused, Unavailable
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.rivals import rival_bytes
from chalicelib.usecases.wallets.ledger_balances import ledger_balance


class MoveBytes:
    def __init__(self, store: Store, rules: AddressRules, reader_of: Callable[[Network], ChainReader]) -> None:
        self._store, self._rules, self._reader_of = store, rules, reader_of

    def of(self, network: Network, payer: ChainPayer, move: Move, nonce: int) -> tuple[int, str]:
        """Amount and unsigned bytes. Raises Refused, InsufficientFunds (by the chain's word, or the ledger's), Unavailable."""
        native = self._store.catalogue(network.realm).native(network.slug).asset
        if move.kind in LOANS:
            return move.amount, self._loan(network, payer, move, nonce)
        reader = self._reader_of(network)
        have = min(self._booked(network, move, move.asset), reader.balance(move.source, move.contract))
        payment = Payment(
            sender=move.source, recipient=move.recipient, contract=move.contract, amount=1 if move.bare else move.amount,
            nonce=nonce, reference=move.id, over=() if move.over is None else rival_bytes(self._store, payer, move.over),
        )  # fmt: skip
        if have < payment.amount:
            raise InsufficientFunds(f"{have} of {payment.amount}")
        if move.bare:
            return self._everything(payer, payment, move.amount, have)
        fee = payer.estimate(payment).fee
        covered = have - move.amount if move.asset == native else self._booked(network, move, native)
        if covered < fee:
            # The chain may have it: what the ledger does not know is not spent.
            raise InsufficientFunds(f"{covered} of {fee} for the fee, by the ledger")
        return move.amount, payer.prepare(payment)

    def _loan(self, network: Network, payer: ChainPayer, move: Move, nonce: int) -> str:
        """No coin is needed but for its bytes. Raises as `_bytes` does."""
        unsigned = payer.prepare(Payment(move.source, move.recipient, None, move.amount, nonce, reference=move.id))
        fee, have = payer.explain(unsigned).fee, self._booked(network, move, move.asset)
        if have < fee:
            raise InsufficientFunds(f"{have} of {fee} for the fee, by the ledger")
        return unsigned

    def _everything(self, payer: ChainPayer, payment: Payment, asked: int, have: int) -> tuple[int, str]:
        """What was asked for, or everything less the most that the fee can be, which is known once there are bytes: on some chains
        a larger amount takes more of them (Tron), and burns more."""
        fee = payer.cost(payment).fee
        for _ in range(4):
            amount = min(asked, have - fee)
            if amount <= 0:
                raise Refused(f"nothing is left of {have} after a fee of {fee}")
            payment = replace(payment, amount=amount)
            try:
                unsigned = payer.prepare(payment)
            except InsufficientFunds:
                more = payer.cost(payment).fee
                if more <= fee:
                    raise  # what is missing is no fee
                fee = more
                continue
            does = payer.explain(unsigned)
            # Where bytes fix no fee (Tron), the most that any could cost would be left behind at every address: what it costs now
            # counts, and should it cost more when it gets there, the chain refuses it and it is made anew.
            most = does.fee if does.nonce is not None else min(does.fee, payer.cost(payment).fee)
            if amount + most <= have:
                return amount, unsigned
            fee = most
        raise Unavailable("fees rise faster than a transaction can be built")

    def _booked(self, network: Network, move: Move, asset: AssetId) -> int:
        return ledger_balance(self._store, self._rules, network, move.source, asset).units
