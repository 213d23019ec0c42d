"""Checks of a move before a nonce is allotted for it, and before its bytes are signed (money rule 7)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Literal

from chalicelib.domain.addresses.addresses import RetiredWallet, Role, Wallet, Watched, watched_key
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import FeeQuote
from chalicelib.domain.deposits.sums import MATTERS, NEAR
from chalicelib.domain.money import MOST_SUM
from chalicelib.domain.treasury.moves import LOANS, Move, MoveKind
from chalicelib.domain.withdrawals.withdrawals import NonceUse
from chalicelib.usecases.base.address_forms import form_or_none
from chalicelib.usecases.base.current_wallets import current_wallets
from chalicelib.usecases.base.kill_switch import PaymentsStopped, closed_to
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.ports.accounts import Explained
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Still
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.usecases.wallets.ledger_balances import ledger_balance

log = logging.getLogger(__name__)

TO: dict[MoveKind, tuple[Role, ...]] = {
    "sweep": ("collector", "hot"),
    "distribution": ("hot",),
    "cold": ("cold",),
    "drain": ("hot", "collector", "topup"),
    "topup": ("collector",),
    "delegation": (),
    "undelegation": (),
    "filler": (),
}
"""The service wallets that each kind may go to. A top-up may go to a merchant's deposit address as well, a
loan of energy to nothing else, and a filler back to where it comes from."""
TOPUP_TIMES = 10
"""A top-up is at most so many times what the dearest token transfer on its network costs now: who could plan moves at will could
not carry the hot wallet off in top-ups."""
TOPUP_LEAST = {"tron": 100 * 10**6}
"""At least this, in units of the native coin. What a transfer costs on Tron is quoted for a hot wallet that may have energy of its
stake; a deposit address has none and burns TRX."""

Cure = Literal["bytes", "drop", "nobody knows"]
"""Of a move that is built and may not be signed so: other `bytes` with its nonce may be; it may go nowhere, `drop` it; or two
witnesses disagree about whose nonce it is, or about its key, and somebody has to look."""


class MoveMismatch(OrderMismatch):
    """The bytes about to be signed do not do what a move may. Nothing is signed."""

    def __init__(self, words: str, cure: Cure) -> None:
        super().__init__(words, bytes_only=cure == "bytes")
        self.cure = cure


class MoveChecks:
    def __init__(self, store: Store, rules: AddressRules) -> None:
        self._store, self._rules = store, rules

    def destination(self, network: Network, move: Move) -> list[Still] | None:
        """The conditions under which the recipient is what a move of this kind may go to; None where it is not. Raises Unavailable;
        PaymentsStopped for a wallet that was registered after payments were stopped, as long as they are.

        Service wallets as they are registered now. To one that was replaced goes what is built already, since its nonce is taken,
        and what it needs for its own fees; it is drained again.
        """
        wanted = self._form(network, move.recipient)
        if move.kind == "filler":
            return [] if wanted == self._form(network, move.source) else None
        for wallet in current_wallets(self._store, network.id) if TO[move.kind] else ():
            if wallet.role in TO[move.kind] and self._form(network, wallet.address) == wanted:
                self._demand_open(wallet)
                return [Still(wallet)]
        retired = self._store.get(RetiredWallet, network=network.id, address=self._rules.normalize(network.slug, move.recipient))
        begun = retired is not None and move.state != "planned" and retired.role in TO[move.kind]
        if retired is not None and (begun or (move.kind == "topup" and retired.role != "cold")):
            self._demand_open(retired.wallet)
            return []
        if move.kind != "topup" and move.kind not in LOANS:
            return None
        kind, key = watched_key(network, wanted or "")
        watched: Watched | None = self._store.get(kind, **key)
        ours = watched is not None and watched.role == "user" and watched.holds_on(network.slug)
        return [] if ours else None

    def has_room(self, network: Network, move: Move) -> bool:
        """Whether what its recipient has, and what is on the way there, stays within MOST_SUM with it: what arrives is booked.

        Each deposit address may hold as much; the wallet that all of them are swept to could not. Raises Unavailable.
        """
        if move.amount < MATTERS:
            return True
        there = ledger_balance(self._store, self._rules, network, move.recipient, move.asset)
        units = move.amount + there.units + there.pending
        if units < NEAR:
            return True
        works = [work for page in pages_of(self._store, "move", network.id) for work in page]
        moves: list[Move | None] = self._store.get_many([(Move, {"network": network.id, "id": work.id}) for work in works])
        coming = [m for m in moves if m is not None and m.state in ("built", "signed") and m.id != move.id]
        same = [m for m in coming if m.asset == move.asset and self._form(network, m.recipient) == there.address]
        return units + sum(m.amount for m in same) <= MOST_SUM

    def demand(self, network: Network, move: Move, does: Explained) -> list[Still]:
        """The conditions under which bytes that do `does` may be signed. Raises MoveMismatch unless that is exactly what the move
        says and a move may do, Unavailable."""

        def form(address: str | None) -> str | None:
            return self._form(network, address)

        wrong, rests_on = self._record(network, move)
        done: dict[str, tuple[object, object]] = {
            "chain": (does.chain_id, network.chain_id),
            # Bytes without a nonce (Tron) name their sender. Those of EVM name none: the key that signs makes it.
            "nonce": (does.nonce, move.nonce if does.nonce is not None or does.sender is None else None),
            "sender": (form(does.sender), None if does.sender is None else form(move.source)),
            "recipient": (form(does.recipient), form(move.recipient)),
            "contract": (form(does.contract), form(move.contract)),
            "amount": (does.amount, move.amount),
        }
        if move.kind == "topup":
            # Twice what it may be when it is built: fees fall all the time.
            done["top-up"] = (move.amount <= 2 * self.most_topup(network), True)
        if move.kind != "filler":  # whose nonce was another move's, or nobody's; it moves nothing
            done["allotted nonce"] = (self._allotted(network, move), (network.id, form(move.source), move.nonce))
        differs = [*wrong, *_differing(done)]
        if differs:
            named = ", ".join(differs)
            log.error("ALARM %s: move %s differs from what may be signed in %s", network.id, move.id, named)
            raise MoveMismatch(f"move {move.id} differs from what may be signed in {named}", self._cure(wrong, differs))
        return rests_on

    def undecodable(self, network: Network, move: Move, why: str) -> MoveMismatch:
        """To be raised for bytes that are no plain transfer."""
        log.error("ALARM %s: move %s is no plain transfer: %s", network.id, move.id, why)
        wrong, _ = self._record(network, move)
        return MoveMismatch(f"move {move.id} is no plain transfer: {why}", self._cure(wrong, wrong))

    def lawful(self, network: Network, move: Move) -> list[Still]:
        """The conditions under which other bytes may be built for a move that has a nonce. Raises MoveMismatch, Unavailable."""
        wrong, rests_on = self._record(network, move)
        if wrong:
            named = ", ".join(wrong)
            log.error("ALARM %s: move %s is none that may be signed, by its %s", network.id, move.id, named)
            raise MoveMismatch(f"move {move.id} is none that may be signed, by its {named}", self._cure(wrong, wrong))
        return rests_on

    def _record(self, network: Network, move: Move) -> tuple[list[str], list[Still]]:
        """In what a move is none that may be signed, whatever its bytes do; and the conditions. Raises Unavailable."""
        coin = next((c for c in self._store.catalogue(network.realm).coins_of(network.slug) if c.asset == move.asset), None)
        rests_on = self.destination(network, move)
        form, filler = self._form, move.kind == "filler"
        facts: dict[str, tuple[object, object]] = {
            "network": (move.network, network.id),
            "coin": (form(network, move.contract), form(network, coin.contract) if coin is not None else "unknown"),
            "destination": (rests_on is not None, True),
            # A filler is made of any move, with its key.
            "key": (move.path is not None, move.kind == "sweep" or (filler and move.path is not None)),
            "way": (form(network, move.source) == form(network, move.recipient), filler),
        }
        if filler or move.kind == "topup":
            facts["kind"] = (move.contract, None)
        if filler:
            facts["size"] = (move.amount, 1)
        return _differing(facts), rests_on or []

    def _cure(self, wrong: list[str], differs: list[str]) -> Cure:
        """`wrong`: in the record; `differs`: that, and the bytes from it."""
        if {"network", "key", "nonce", "allotted nonce", "sender"} & set(differs):
            return "nobody knows"
        return "drop" if wrong else "bytes"

    def _demand_open(self, wallet: Wallet) -> None:
        if closed_to(self._store, wallet):
            raise PaymentsStopped(f"payments are stopped, and {wallet.address} was registered after that")

    def _allotted(self, network: Network, move: Move) -> tuple[str, str | None, int] | None:
        use = self._store.get(NonceUse, owner=move.id)
        return None if use is None else (use.network, self._form(network, use.wallet), use.nonce)

    def most_topup(self, network: Network) -> int:
        """The most that a top-up may be, in units of the native coin. Raises Unavailable while nobody knows."""
        quote = self._store.get(FeeQuote, network=network.id)
        dearest = 0 if quote is None else max(quote.fees.values(), default=0)
        most = max(TOPUP_TIMES * dearest, TOPUP_LEAST.get(network.family, 0))
        if not most:
            raise Unavailable(f"{network.id}: nobody knows yet what a transfer costs")
        return most

    def _form(self, network: Network, address: str | None) -> str | None:
        return form_or_none(self._rules, network, address)


def _differing(facts: Mapping[str, tuple[object, object]]) -> list[str]:
    return [name for name, (found, ordered) in facts.items() if found != ordered]
