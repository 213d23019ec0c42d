"""Native top-ups: coins for the fees of another address. They are planned here and nowhere else.

The wallet of the role `topup` pays them, so that they take no nonce of the wallet that pays withdrawals; where none is registered
the hot wallet does (`base/current_wallets.topup_wallet`). One rule says what the payer keeps. A top-up is planned where it has its
amount and its own fee, by the ledger and by the chain, beside

* what moves that are not signed yet will take from it, so that two top-ups never count on the same coins, and
* of the hot wallet its `hotFloor`, which is there for withdrawals. A top-up for what has its nonce already may go below: it holds
  up what is behind it, and its fee is bounded.

It is stored on the condition that the wallet still has its role. How much the address lacks, how many top-ups there may be and
what happens while one can not be planned, the caller decides. `moves/checks` bounds the amount again before it is built and signed.
"""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.treasury.moves import Move, Origin
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.ports.changes import Change, Still
from chalicelib.usecases.ports.failures import InsufficientFunds
from chalicelib.usecases.treasury.collection.fees import MoveFees
from chalicelib.usecases.treasury.moves.planning import planned


class PayerShort(Exception):
    """The wallet that pays top-ups can not give a top-up of `units` now: `free` units are what it has for it."""

    def __init__(self, free: int, units: int) -> None:
        super().__init__(f"the wallet that pays top-ups has {free} of {units} units of the native coin")
        self.free, self.units = free, units


@dataclass(frozen=True, slots=True)
class TopUp:
    """The move, and the wallet that pays it."""

    move: Move
    payer: Wallet

    def changes(self, news: News) -> list[Change]:
        """The changes that plan it: three items, and an outbox row. A Conflict where the wallet was replaced meanwhile."""
        return [*planned(news, self.move), Still(self.payer)]


class TopUps:
    """Of one account network."""

    def __init__(self, fees: MoveFees) -> None:
        self._fees = fees

    def plan(
        self, origin: Origin, payer: Wallet, recipient: str, units: int, fee: int | None = None, *, begun: bool = False
    ) -> TopUp:
        """A top-up of `units` of the native coin. `fee`: what sending it costs, asked for where None. `begun`: it pays for
        what has its nonce already. Raises PayerShort, Refused, Unavailable; NoFreshRate for a floor whose units nobody knows.
        """
        fees, native = self._fees, self._fees.native
        floor = 0 if begun or payer.role == "topup" else fees.floor(native)
        free = fees.on_hand(payer.address, native) - fees.spoken_for(payer, native) - floor
        if free < units or free < units + (self._sending(payer, recipient, units) if fee is None else fee):
            raise PayerShort(free, units)
        return TopUp(Move.topup(origin, native.asset, payer.address, recipient, units, payer.seat), payer)

    def _sending(self, payer: Wallet, recipient: str, units: int) -> int:
        try:
            return self._fees.cost(self._fees.native, payer.address, recipient, units)
        except InsufficientFunds as error:
            raise PayerShort(0, units) from error
