"""Nonce gaps: an operator's remedy for nonces that the chain waits for and no transaction of ours has.

An address can begin with a nonce that nodes made up, or lose records that had one: whatever is signed behind such a gap is never
mined. Each missing nonce is used by a *filler* (`domain/treasury/moves.py`), one unit from the address to itself; a deposit
address gets the native coins for their fees as a top-up. Safe to repeat: what is there already is not made again.
"""

from __future__ import annotations

from chalicelib.domain.addresses.addresses import Address, Watched, watched_key
from chalicelib.domain.ids import AssetId
from chalicelib.domain.treasury.collections import topup_units
from chalicelib.domain.treasury.moves import Move, Origin, move_command, move_id, move_work
from chalicelib.domain.withdrawals.withdrawals import NonceCounter
from chalicelib.usecases.base.address_forms import form_of
from chalicelib.usecases.base.current_wallets import topup_wallet
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.ports.accounts import ChainPayer, Payment
from chalicelib.usecases.ports.changes import Open, Save
from chalicelib.usecases.transactions.first_nonce import agreed_nonce
from chalicelib.usecases.transactions.open_nonces import open_nonces
from chalicelib.usecases.treasury.moves.checks import MoveChecks
from chalicelib.usecases.treasury.topups import TopUps
from chalicelib.usecases.wallets.ledger_balances import ledger_balance
from chalicelib.usecases.wallets.signers import SIGN, signing_wallet

MOST = 10
"""Nonces that are filled at once: their fees are less than a top-up may be."""


class NonceFilling:
    """Of one network of accounts. Needs no key."""

    def __init__(self, context: NetworkContext, payer: ChainPayer, topups: TopUps) -> None:
        self._network, self._store, self._rules, self._clock = context.network, context.store, context.rules, context.clock
        self._payer, self._topups = payer, topups

    def accept(self, address: str) -> int:
        """Let an address that has none of our transactions begin with the nonce that every node says; that nonce.

        Raises LookupError for one that has started, NonceUnsure, Unavailable, Conflict.
        """
        source = self._rules.normalize(self._network.slug, address)
        self._path(source)
        if self._store.get(NonceCounter, network=self._network.id, wallet=source) is not None:
            raise LookupError(f"{source} has begun: its nonces are counted")
        first = agreed_nonce(self._network, self._payer, source)
        self._store.commit([Save(NonceCounter(self._network.id, source, first))])
        return first

    def fill(self, address: str) -> tuple[list[int], int]:
        """The nonces that are filled now, and how many are missing then. Raises LookupError, PayerShort, NoFreshRate,
        NonceUnsure, Unavailable, Conflict."""
        network = self._network
        source = self._rules.normalize(network.slug, address)
        path = self._path(source)
        counter = self._store.get(NonceCounter, network=network.id, wallet=source)
        if counter is None:
            raise LookupError(f"{source} has no transaction of ours")
        first = agreed_nonce(network, self._payer, source)
        held = set(open_nonces(self._store, network, source))
        missing = [nonce for nonce in range(first, counter.next) if nonce not in held]
        filled = missing[:MOST]
        if path is not None and filled:
            self._top_up(source, filled, waits=bool(held))
        for nonce in filled:
            news = News(self._clock.now_ms())
            filler = Move.fill(self._origin(source, nonce, news.at), self._native, source, path, nonce)
            news.command(move_command(filler))
            self._store.commit([Save(filler), Open(move_work(filler)), *news.emit()])
        return filled, len(missing) - len(filled)

    def _top_up(self, address: str, nonces: list[int], waits: bool) -> None:
        """For the fees of so many fillers. `waits`: something built or signed waits behind them, and what
        is there is for its fee."""
        network = self._network
        cost = self._payer.cost(Payment(address, address, None, 1, 0)).fee * len(nonces) + 1
        have = 0 if waits else ledger_balance(self._store, self._rules, network, address, self._native).units
        short = topup_units(cost, max(0, have))
        payer = topup_wallet(self._store, network.id)
        if not short:
            return
        if payer is None:
            raise LookupError(f"{network.id} has no hot wallet, which pays the fees")
        news = News(self._clock.now_ms())
        amount = min(short, MoveChecks(self._store, self._rules).most_topup(network))
        origin = self._origin(address, nonces[0], news.at)
        if self._store.get(Move, network=network.id, id=move_id(origin.owner, "topup", origin.number)) is None:
            topup = self._topups.plan(origin, payer, address, amount, begun=waits)
            self._store.commit([*topup.changes(news), *news.emit()])

    @property
    def _native(self) -> AssetId:
        return self._store.catalogue(self._network.realm).native(self._network.slug).asset

    def _origin(self, address: str, nonce: int, at: int) -> Origin:
        return Origin(self._network.id, f"gap:{self._network.id}:{address}", nonce, at)

    def _path(self, address: str) -> str | None:
        """How the key of a deposit address is derived; None for a service wallet. Raises LookupError for any other address."""
        if signing_wallet(self._store, self._network.id, address, SIGN) is not None:
            return None
        kind, key = watched_key(self._network, form_of(self._rules, self._network, address))
        watched: Watched | None = self._store.get(kind, **key)
        if watched is not None and watched.tenant is not None and watched.address_id is not None:
            owned = self._store.get(Address, tenant=watched.tenant, id=watched.address_id)
            if owned is not None and owned.path:
                return owned.path
        raise LookupError(f"{address} is no address of ours on {self._network.slug}")
