"""Wallets that were replaced: what is left there is moved to the wallet in their place, and what they began is finished first.

The transaction that replaces a wallet opens the obligation `drain`. Each look at it is one decision, stored before the next:

* Payments, stakes and moves that name the old wallet keep what they need: its key signs them still, replacements too.
* Of the rest, tokens are moved first (with a top-up where there is too little for their fees), of the native coin what no fee
  will need, so that the new wallet can pay at once; when nothing of the old one is under way, everything but the last fee.
* Nothing is left that is worth its fee, and nothing under way: the obligation ends. What arrives later opens it again.

What is planned is in the wallet's record, and planned in its transaction: a look that dies plans nothing, or all of it. On networks
of coins it is a coin move (`coin_move_cold`); here its end is seen.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from chalicelib.domain.addresses import RetiredWallet, Wallet
from chalicelib.domain.bundles import Bundle
from chalicelib.domain.catalogue import Coin, Network
from chalicelib.domain.chain import FeeQuote
from chalicelib.domain.coin_settings import NoFreshRate, limit_units
from chalicelib.domain.ids import AssetId
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.moves import AT_REST, Move, MoveKind, move_id
from chalicelib.domain.rates import RatesOf
from chalicelib.domain.stakes import Stake
from chalicelib.domain.withdrawals import Withdrawal
from chalicelib.domain.work import WorkKind
from chalicelib.usecases.bundle_parts import bundle_work
from chalicelib.usecases.changes import Change, Close, Open, Save, Still
from chalicelib.usecases.coin_move_parts import open_moves
from chalicelib.usecases.hot_coins import coins_of, pays_from_coins
from chalicelib.usecases.move_planning import planned
from chalicelib.usecases.outbox import News
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.sweeping import pages_of
from chalicelib.usecases.trying import Each, until_settled
from chalicelib.usecases.wallet_lookup import ROLES, retired_wallets
from chalicelib.usecases.withdrawal_steps import payout_parts

log = logging.getLogger(__name__)

AT_ONCE = 3
"""Moves planned in one transaction, which has ten items at most."""
FEES_EACH = 10
"""Quoted fees that are left for each transaction under way: replacements cost up to ten times the first."""
DUST_FEES = 2
"""What is worth no more quoted fees than this stays where it is."""
TOPUP_FEES = 5
MOST_WAIT_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class UnderWay:
    """What names a replaced wallet and is not at its end: how many, and what of each asset they will still
    take from it by the ledger."""

    count: int
    needed: Counter[AssetId] = field(default_factory=Counter)


class Drains:
    """Of one network. Needs no key: it plans moves, and whoever has the key makes them."""

    def __init__(
        self,
        network: Network,
        reader: ChainReader,
        store: Store,
        rules: AddressRules,
        clock: Clock,
        rates_of: RatesOf,
    ) -> None:
        self._network, self._reader, self._store = network, reader, store
        self._rules, self._clock, self._rates_of = rules, clock, rates_of

    def work(self, more: Callable[[], bool]) -> None:
        """Bring every open drain a step on; open again where something arrived. Raises Unavailable, Failures."""
        retired = retired_wallets(self._store, self._network.id)
        with Each(f"{self._network.id}: replaced wallets") as each:
            for old in retired:
                if not more():
                    return
                if old.drained_at is None:
                    each.take(old.address, partial(until_settled, partial(self._advance, old.address)))
                elif old.role != "cold":
                    each.take(old.address, partial(self._reopen, old))

    def _reopen(self, old: RetiredWallet) -> None:
        if self._worth_moving(old):
            log.warning("%s: something arrived at the replaced wallet %s: it is drained again", self._network.id, old.address)
            self._store.commit([Save(replace(old, drained_at=None, version=old.version + 1)), Open(old.drain)])

    def _advance(self, address: str) -> None:
        old = self._store.get(RetiredWallet, network=self._network.id, address=address)
        if old is None or old.drained_at is not None:
            return
        if pays_from_coins(self._network):
            self._see_coins(old)
        else:
            self._move_on(old)

    # What is there

    def _booked(self, address: str) -> dict[AssetId, WalletBalance]:
        place = self._rules.storage_form(self._network.slug, address)
        coins = self._store.catalogue(self._network.realm).coins_of(self._network.slug)
        keys = [(WalletBalance, {"network": self._network.id, "address": place, "asset": coin.asset}) for coin in coins]
        found: list[WalletBalance | None] = self._store.get_many(keys)
        return {balance.asset: balance for balance in found if balance is not None}

    def _fee(self) -> int | None:
        """What the dearest plain payment costs, in units of the native coin; None where nobody knows."""
        quote = self._store.get(FeeQuote, network=self._network.id)
        native = self._store.catalogue(self._network.realm).native(self._network.slug)
        return None if quote is None or native.slug not in quote.fees else max([1, *quote.fees.values()])

    def _worth_moving(self, old: RetiredWallet) -> list[Coin]:
        """The coins of which the ledger has more there than moving it costs, the native one last; without a fee quote none."""
        quote = self._store.get(FeeQuote, network=self._network.id)
        if quote is None:
            return []
        catalogue, booked = self._store.catalogue(self._network.realm), self._booked(old.address)
        native = catalogue.native(self._network.slug)
        rates, now = self._rates_of(self._network.realm), self._clock.now_ms()
        found: list[Coin] = []
        for coin in catalogue.coins_of(self._network.slug):
            balance = booked.get(coin.asset)
            if balance is None or balance.units <= 0:
                continue
            fee = quote.fees.get(coin.slug, 0)
            if coin.contract is None:
                worth = balance.units > DUST_FEES * fee
            else:
                # With the top-up that may have to come before.
                whole = fee + quote.fees.get(native.slug, 0)
                there = rates.usd(coin.slug, balance.units, coin.decimals, now)
                costs = rates.usd(native.slug, whole, native.decimals, now)
                unknown = there is None or costs is None
                worth = self._unpriced(old, coin, balance.units) if unknown else (there or 0) > (costs or 0)
            if worth:
                found.append(coin)
        return sorted(found, key=lambda coin: coin.contract is None)

    def _unpriced(self, old: RetiredWallet, coin: Coin, units: int) -> bool:
        """Whether so much of a token is worth moving of which nobody knows what it is worth: anybody can send dust, each time for
        a top-up. The operator's thresholds say so; without one what was there is moved, and what came later is not."""
        rates, now = self._rates_of(self._network.realm), self._clock.now_ms()
        try:
            limits = [limit_units(coin, name, rates, now) for name in ("collectThreshold", "minDepositAmount")]
        except NoFreshRate:
            return False
        least = max((limit for limit in limits if limit is not None), default=None)
        return old.drained_at is None if least is None else units >= least

    # What is under way

    def _under_way(self, old: RetiredWallet) -> UnderWay:
        number, needed = 0, Counter[AssetId]()
        for withdrawal in self._withdrawals("payout"):
            if withdrawal.from_address == old.address and withdrawal.status == "processing":
                number += 1
                needed[withdrawal.asset] += withdrawal.amount
        number += sum(withdrawal.from_address == old.address for withdrawal in self._withdrawals("sent"))
        for works in pages_of(self._store, "stake", self._network.id):
            keys = [(Stake, {"network": self._network.id, "id": work.id}) for work in works]
            for stake in self._store.get_many(keys):
                if stake is not None and stake.wallet == old.address and stake.status == "pending":
                    number += 1
                    needed[stake.asset] += stake.amount
        for works in pages_of(self._store, "move", self._network.id):
            for move in self._moves([work.id for work in works]):
                if move.source == old.address and move.state not in AT_REST and move.id not in old.moves:
                    number += 1
                    needed[move.asset] += move.units if move.state != "signed" else 0
        return UnderWay(number, needed)

    def _withdrawals(self, kind: WorkKind) -> Iterator[Withdrawal]:
        for works in pages_of(self._store, kind, self._network.id):
            keys = [(Withdrawal, dict(zip(("tenant", "id"), payout_parts(work), strict=True))) for work in works]
            found: list[Withdrawal | None] = self._store.get_many(keys)
            yield from (withdrawal for withdrawal in found if withdrawal is not None)

    def _moves(self, ids: list[str]) -> list[Move]:
        found: list[Move | None] = (
            self._store.get_many([(Move, {"network": self._network.id, "id": id}) for id in ids]) if ids else []
        )
        return [move for move in found if move is not None]

    # Networks of accounts

    def _move_on(self, old: RetiredWallet) -> None:
        """Plan what can be moved now, or end the obligation. Raises Conflict, Unavailable."""
        now = self._clock.now_ms()
        mine = self._moves(list(old.moves))
        ended = [move for move in mine if move.at_rest]
        after = replace(old, moves=tuple(move.id for move in mine if not move.at_rest))
        target = self._target(old)
        # What was on its way to a wallet that is replaced itself by now is planned anew, at once.
        failed = [move for move in ended if move.state != "settled" and (move.kind == "topup" or self._still(target, move))]
        if failed:
            wrong = failed[0]
            wait = min(60 * 2**old.tries, MOST_WAIT_SECONDS)
            log.error("ALARM %s: draining %s: a move %s: %s", self._network.id, old.address, wrong.state, wrong.reason)
            after = replace(after, tries=old.tries + 1, next_at=now + wait * 1000)
        elif ended:
            after = replace(after, tries=0, next_at=0)
        news = News(now)
        moves: list[Move] = []
        worth = self._worth_moving(old)
        under_way = self._under_way(old)
        if after.next_at <= now and target is not None:
            moves = self._wanted(after, target, worth, under_way, [move for move in mine if not move.at_rest])
        if moves:
            after = replace(after, moves=(*after.moves, *(move.id for move in moves)), planned=old.planned + len(moves))
        elif not worth and not under_way.count and not after.moves and not self._pending(old):
            if self._fee() is None:
                return
            after = replace(after, drained_at=now, tries=0, next_at=0)
            log.info("%s: the replaced wallet %s is drained", self._network.id, old.address)
        if after == old:
            return
        changes: list[Change] = [Save(replace(after, version=old.version + 1))]
        changes += [change for move in moves for change in planned(news, move)]
        # Nothing is sent to a wallet that is replaced itself by now, nor begun with one.
        changes += [Still(wallet) for wallet in self._using(moves)]
        if after.drained_at is not None:
            changes.append(Close(old.drain))
        self._store.commit([*changes, *news.emit()])

    def _still(self, target: Wallet | None, move: Move) -> bool:
        return target is not None and move.recipient == target.address

    def _using(self, moves: list[Move]) -> list[Wallet]:
        used = {address for move in moves for address in (move.source, move.recipient)}
        keys = [(Wallet, {"network": self._network.id, "role": role}) for role in ROLES]
        found: list[Wallet | None] = self._store.get_many(keys) if moves else []
        return [wallet for wallet in found if wallet is not None and wallet.address in used]

    def _target(self, old: RetiredWallet) -> Wallet | None:
        """The wallet in its place; of a collector that the network has no more, the hot one."""
        found = self._store.get(Wallet, network=self._network.id, role=old.role)
        return found or self._store.get(Wallet, network=self._network.id, role="hot")

    def _pending(self, old: RetiredWallet) -> bool:
        return any(balance.pending for balance in self._booked(old.address).values())

    def _wanted(
        self, old: RetiredWallet, target: Wallet, worth: list[Coin], under_way: UnderWay, open_ones: list[Move]
    ) -> list[Move]:
        fee = self._fee()
        busy = {move.asset for move in open_ones}
        if fee is None or any(move.kind == "topup" for move in open_ones):
            return []
        booked = self._booked(old.address)
        tokens = [coin for coin in worth if coin.contract is not None]
        found: list[Move] = []
        for coin in tokens:
            free = booked[coin.asset].units - under_way.needed[coin.asset]
            free = min(free, self._reader.balance(old.address, coin.contract)) if free > 0 else 0
            if free > 0 and coin.asset not in busy and len(found) < AT_ONCE:
                found.append(self._move(old, len(found), "drain", coin, target, free))
        if found:
            return found if self._has_for_fees(old, fee * (len(found) + 1)) else self._topped_up(old, fee)
        for coin in worth:
            if coin.contract is not None or coin.asset in busy:
                continue
            free = min(booked[coin.asset].units, self._reader.balance(old.address)) - under_way.needed[coin.asset]
            if not under_way.count and not tokens and not open_ones:
                return [self._move(old, 0, "drain", coin, target, free, bare=True)] if free > DUST_FEES * fee else []
            kept = FEES_EACH * fee * (under_way.count + len(tokens) + 2)
            if free > 2 * kept:
                return [self._move(old, 0, "drain", coin, target, free - kept)]
        return []

    def _has_for_fees(self, old: RetiredWallet, fees: int) -> bool:
        native = self._store.catalogue(self._network.realm).native(self._network.slug)
        booked = self._booked(old.address).get(native.asset)
        return booked is not None and min(booked.units, self._reader.balance(old.address)) >= fees

    def _topped_up(self, old: RetiredWallet, fee: int) -> list[Move]:
        """Native coins from the hot wallet, for the fees of tokens that shall leave; well within what a top-up may be."""
        hot = self._store.get(Wallet, network=self._network.id, role="hot")
        native = self._store.catalogue(self._network.realm).native(self._network.slug)
        if hot is None:
            return []
        amount = TOPUP_FEES * fee
        return [replace(self._move(old, 0, "topup", native, hot, amount), source=hot.address, recipient=old.address)]

    def _move(
        self, old: RetiredWallet, index: int, kind: MoveKind, coin: Coin, target: Wallet, amount: int, bare: bool = False
    ) -> Move:
        now = self._clock.now_ms()
        owner = f"drain:{old.network}:{old.address}"
        return Move(
            id=move_id(owner, kind, old.planned + index), network=old.network, kind=kind, asset=coin.asset, contract=coin.contract,
            source=old.address, path=None, recipient=target.address, amount=amount, owner=owner, created_at=now, updated_at=now,
            bare=bare,
        )  # fmt: skip

    # Networks of coins

    def _see_coins(self, old: RetiredWallet) -> None:
        """End the obligation once no coin is left that is worth its fee, and nothing of the wallet is under way. Raises Conflict,
        Unavailable."""
        held = coins_of(self._store, self._network, old.address)
        open_ones = 0
        for works in pages_of(self._store, "bundle", self._network.id):
            found: list[Bundle | None] = self._store.get_many([(Bundle, {"id": work.id}) for work in works])
            for bundle in found:
                if bundle is None or bundle.wallet != old.address or bundle.state in ("settled", "dead"):
                    continue
                if bundle.state == "gathering" and not bundle.payouts and held.gathering == bundle.id:
                    # Nothing joins it any more: what left it is paid by the wallet in its place.
                    dead = replace(bundle, state="dead").next(self._clock.now_ms())
                    self._store.commit([Save(dead), Save(replace(held, gathering=None).next()), Close(bundle_work(bundle))])
                    return
                open_ones += 1
        moves = any(move.wallet == old.address and move.state != "settled" for move in open_moves(self._store, self._network.id))
        if open_ones or moves or self._pending(old) or self._worth_moving(old) or self._fee() is None:
            return
        done = replace(old, drained_at=self._clock.now_ms(), version=old.version + 1)
        # Whoever books a coin there saves the same record of coins.
        kept = [Still(held)] if held.version else []
        self._store.commit([Save(done), *kept, Close(old.drain)])
