"""Coin moves as the engine of UTXO transactions signs them: coins of ours that are reserved, a wallet of ours that gets them, and a
fee within its share of them (money rule 7)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from chalicelib.domain import ledger
from chalicelib.domain.addresses.addresses import Address
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.treasury.collections import fee_share_exceeds
from chalicelib.domain.treasury.consolidations import CoinMove, MovedCoin
from chalicelib.domain.treasury.hot_utxos import HeldCoin
from chalicelib.usecases.base.kill_switch import PaymentsStopped, closed_to, put_back, rests_on_tables
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Change, Post, Save, Still
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.coins import CoinPayer
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.utxo.kinds import Grounds, InputSigner, Means
from chalicelib.usecases.treasury.consolidation.budget import ConsolidationBudget, Count
from chalicelib.usecases.treasury.consolidation.keys import CoinKeys
from chalicelib.usecases.treasury.consolidation.parts import (
    amounts_at,
    begun_for,
    deposits_of,
    outpoint_of,
    queue_of,
    recipient_of,
    spendable,
)
from chalicelib.usecases.wallets.utxos import coins_of

log = logging.getLogger(__name__)


class FeeShare:
    """The most that a coin move may pay as its fee: `percent` of its coins, and a consolidation what is left of the `budget`."""

    def __init__(
        self, payer_of: Callable[[Network], CoinPayer], renewals: RenewalRules, percent: int, budget: ConsolidationBudget
    ) -> None:
        self._payer_of, self._renewals, self._percent, self._budget = payer_of, renewals, percent, budget

    def exceeded(self, move: CoinMove, fee: int) -> bool:
        """Whether `fee` units are more than a replacement of `move` may cost."""
        return fee_share_exceeds(self._percent, fee, move.total)

    def exceeded_by_newest(self, network: Network, move: CoinMove) -> bool:
        """Whether its newest attempt would pay more than may be planned. A wallet is drained at any price of the day, however
        little it has, where nothing of the drain is signed yet. Raises Unavailable."""
        newest = move.latest
        if not self.exceeded(move, newest.fee):
            return False
        if move.earlier or move.kind != "drain":
            return True
        low = self._payer_of(network).fee_rate("low")
        return newest.fee > self._renewals.times * low * newest.vsize // 1000

    def counted(self, network: Network, move: CoinMove, more: int, now_ms: int) -> Count:
        """The count of the `more` units that a replacement of `move` costs. Hot wallets' coins are no stranger's to multiply: only
        consolidations have a budget. Raises Unavailable."""
        return self._budget.count(network, max(0, more), now_ms) if move.kind == "consolidation" else Count()


class SignedMove:
    """One coin move that is to be signed."""

    name = "coin move"

    def __init__(self, store: Store, clock: Clock, keys: CoinKeys, share: FeeShare, network: Network) -> None:
        self._store, self._clock, self._keys, self._share = store, clock, keys, share
        self.network = network

    def grounds(self, move: CoinMove) -> Grounds:
        conditions = rests_on_tables(self._store, self.network.realm)
        native = self._store.catalogue(self.network.realm).native(self.network.slug).asset
        facts = {
            "network": move.network == self.network.id,
            "coin": move.asset == native,
            "what is in flight": bool(move.earlier) or not move.booked,
        }
        unlike = [name for name, same in facts.items() if not same]
        recipient = begun_for(self._store, move) if move.earlier else self._planned_for(move)
        if recipient is None:
            unlike.append("recipient")
        unlike += self._not_ours(move)
        dear = ["fee's share"] if self._share.exceeded_by_newest(self.network, move) else []
        return Grounds([*conditions, *(recipient or [])], unlike, dear)

    def coins(self, move: CoinMove) -> list[HeldCoin]:
        return [coin.held for coin in move.inputs]

    def differs(self, move: CoinMove, names: str) -> None:
        log.error("ALARM %s: %s differs from what was planned in %s", self.network.id, move.id, names)

    def throw_away(self, move: CoinMove, leaving: Sequence[str]) -> None:
        """built → waiting: its following has it built anew, or frees its coins and plans anew."""
        anew = replace(move, state="waiting", newest=None, reason="its bytes were altered")
        self._store.commit([Save(anew.next(self._clock.now_ms()))])

    @contextmanager
    def keys(self, move: CoinMove) -> Iterator[InputSigner]:
        coins = {coin.outpoint: coin for coin in move.inputs}
        with self._keys(move) as key:
            yield lambda outpoint, digest: key(coins[outpoint], digest)

    def _planned_for(self, move: CoinMove) -> list[Change] | None:
        """The conditions under which a first attempt may pay its recipient; None where it is not the wallet of today."""
        wallet = recipient_of(self._store, move)
        if wallet is None:
            return None
        if closed_to(self._store, wallet):
            raise PaymentsStopped(f"payments are stopped, and {wallet.address} was registered after that")
        return [Still(wallet)]

    def _not_ours(self, move: CoinMove) -> list[str]:
        """The inputs that are no coins of ours which are reserved for this move. Of what was signed already, a block that
        fell out may have taken some back."""
        begun = bool(move.earlier)
        if move.wallet is not None:
            reserved = coins_of(self._store, self.network, move.wallet).reserved(move.id)
            held = {coin.outpoint: coin.amount for coin in reserved if begun or not coin.gone}
            found = [(held.get(coin.outpoint), coin.address, coin.path) for coin in move.inputs]
            wanted = [(coin.amount, move.wallet, None) for coin in move.inputs]
            return [coin.outpoint for coin, is_, ought in zip(move.inputs, found, wanted, strict=True) if is_ != ought]
        if move.id not in queue_of(self._store, self.network.id).holders:
            return ["the reservation"]
        deposits = deposits_of(self._store, move)
        keys = [("" if d is None else d.tenant or "", "" if d is None else d.address_id or "") for d in deposits]
        owners = self._store.get_many([(Address, {"tenant": tenant, "id": id}) for tenant, id in keys])
        each = zip(move.inputs, deposits, owners, strict=True)
        return [coin.outpoint for coin, deposit, owner in each if not self._arrived(move, coin, deposit, owner, begun)]

    def _arrived(self, move: CoinMove, coin: MovedCoin, deposit: Deposit | None, owner: Address | None, begun: bool) -> bool:
        """Whether `coin` is what `deposit` brought to the address `owner`."""
        if deposit is None or owner is None or not (begun or spendable(deposit)):
            return False
        known = (outpoint_of(deposit), deposit.amount, deposit.address, deposit.network, deposit.asset, owner.path)
        return known == (coin.outpoint, coin.amount, coin.address, self.network.id, move.asset, coin.path)


class ReplacedMove:
    """One coin move that may have to be replaced: of the same inputs, with less for its recipient or its change."""

    def __init__(self, network: Network, share: FeeShare, clock: Clock) -> None:
        self.network, self._share, self._clock = network, share, clock

    def means(self, move: CoinMove) -> Means:
        home = move.wallet if move.latest.change and move.wallet is not None else move.recipient
        return Means(home, "normal", [coin.held for coin in move.inputs])

    def forged(self, move: CoinMove, names: str) -> None:
        log.error("ALARM %s: %s differs from what was signed in %s", self.network.id, move.id, names)

    def affordable(self, move: CoinMove, fee: int) -> bool:
        more = fee - move.latest.fee
        if not self._share.exceeded(move, fee) and not self._share.counted(self.network, move, more, self._clock.now_ms()).over:
            return True
        log.warning("ALARM %s: %s is stuck, and a replacement would cost %d", self.network.id, move.id, fee)
        return False

    def taken(self, move: CoinMove) -> list[Change]:
        """The count of what it costs more. It has all of its coins from the first."""
        more = move.latest.fee - move.earlier[-1].fee
        return [*self._share.counted(self.network, move, more, self._clock.now_ms()).changes]


class SentMove:
    """One coin move that is signed."""

    def __init__(self, store: Store, rules: AddressRules, clock: Clock, network: Network) -> None:
        self._store, self._rules, self._clock, self.network = store, rules, clock, network

    def halted(self) -> bool:
        return put_back(self._store, self.network.realm) is not None

    def book(self, move: CoinMove) -> CoinMove:
        """From now on the coins can leave their places at any time: place by place they are in flight."""
        while part := move.next_part():
            now = self._clock.now_ms()
            entry = ledger.coins_signed(move.id, move.booked, now, amounts_at(self._rules, self.network, move, part))
            move = replace(move, booked=move.booked + len(part)).next(now)
            self._store.commit([Save(move), Post(entry)])
        return move
