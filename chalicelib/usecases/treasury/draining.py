"""Rotation: a retired wallet's transactions in flight are finished first, then its balance moves to its successor.

The transaction that replaces a wallet opens the obligation `drain`. Each look at it is one decision, stored before the next:

* Payments, stakes and moves that name the old wallet keep what they need: its key signs them still, replacements too.
* Of the rest, tokens are moved first (with a top-up where there is too little for their fees), of the native coin what no fee
  will need, so that the new wallet can pay at once; when nothing of the old one is under way, everything but the last fee.
* Nothing is left that is worth its fee, and nothing under way: the obligation ends. What arrives later opens it again.

What is planned is in the wallet's record, and planned in its transaction: a look that dies plans nothing, or all of it. On networks
of coins it is a coin move (`cold_storage_utxo`); here its end is seen.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from chalicelib.domain.addresses.addresses import OnChain, RetiredWallet, Wallet
from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.catalogue.coin_settings import NoFreshRate, limit_units
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.chain import FeeQuote
from chalicelib.domain.ids import AssetId
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.treasury.collections import topup_units
from chalicelib.domain.treasury.moves import Move, Origin
from chalicelib.domain.versions import next_version, version_after
from chalicelib.domain.withdrawals.bundles import Bundle, bundle_work
from chalicelib.usecases.base.address_forms import form_of
from chalicelib.usecases.base.current_wallets import current_wallets, topup_wallet, wallet_of
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import Each, until_settled
from chalicelib.usecases.ports.changes import Change, Close, Open, Save, Still
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.treasury.collection.fees import MoveFees
from chalicelib.usecases.treasury.consolidation.parts import open_moves
from chalicelib.usecases.treasury.moves.planning import planned
from chalicelib.usecases.treasury.retired_wallets import Begun, UnderWay
from chalicelib.usecases.treasury.topups import PayerShort, TopUps
from chalicelib.usecases.wallets.lookup import retired_wallets
from chalicelib.usecases.wallets.utxos import coins_of, pays_from_coins

log = logging.getLogger(__name__)

AT_ONCE = 3
"""Moves planned in one transaction, which is kept to ten items (`FEW_ITEMS`)."""
FEES_EACH = 10
"""Fees that are left for each transaction under way: replacements cost up to ten times the first."""
DUST_FEES = 2
"""A balance worth no more quoted fees than this stays where it is."""
MOST_WAIT_SECONDS = 86_400


@dataclass(slots=True)
class Costs:
    """By token, in units: what moving it costs, of the native coin; how much is free. `refused`: why one can not be moved."""

    fees: dict[AssetId, int] = field(default_factory=dict)
    free: dict[AssetId, int] = field(default_factory=dict)
    refused: str | None = None


class Drains:
    """Rotation on one network. It plans moves, and needs no key: other functions sign them."""

    def __init__(
        self,
        context: NetworkContext,
        rates_of: RatesOf,
        fees: Callable[[], MoveFees],
        coins_pay: Callable[[Wallet], bool],
    ) -> None:
        """`fees`: for a network of accounts; `coins_pay`: whether a wallet's coins are worth their fee, for a network of coins."""
        self._network, self._reader, self._store = context.network, context.reader, context.store
        self._rules, self._clock, self._rates_of = context.rules, context.clock, rates_of
        self._fees, self._coins_pay, self._begun = fees, coins_pay, Begun(context.store, context.network)

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
        left = {remains.asset: remains.units for remains in old.remains}
        booked = self._booked(old.address)
        if any(booked[coin.asset].units > left.get(coin.asset, 0) for coin in self._worth_moving(old)):
            log.warning("%s: something arrived at the replaced wallet %s: it is drained again", self._network.id, old.address)
            self._store.commit([Save(replace(next_version(old), drained_at=None, remains=())), Open(old.drain)])

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
        place = form_of(self._rules, self._network, address)
        coins = self._store.catalogue(self._network.realm).coins_of(self._network.slug)
        keys = [(WalletBalance, {"network": self._network.id, "address": place, "asset": coin.asset}) for coin in coins]
        found: list[WalletBalance | None] = self._store.get_many(keys)
        return {balance.asset: balance for balance in found if balance is not None}

    def _quote(self) -> FeeQuote | None:
        """The fees of the hot wallet's payments, in units of the native coin; None where none is known."""
        quote = self._store.get(FeeQuote, network=self._network.id)
        native = self._store.catalogue(self._network.realm).native(self._network.slug)
        return None if quote is None or native.slug not in quote.fees else quote

    def _more_than_dust(self, native: Coin, units: int) -> bool:
        quote = self._quote()
        return quote is not None and units > DUST_FEES * max(1, quote.fees[native.slug])

    def _worth_moving(self, old: RetiredWallet, costs: Costs | None = None) -> list[Coin]:
        """The coins of which the ledger has more there than moving it costs, by `costs` where they are known, the native one last;
        without a fee quote none."""
        quote = self._quote()
        if quote is None:
            return []
        known = {} if costs is None else costs.fees
        catalogue, booked = self._store.catalogue(self._network.realm), self._booked(old.address)
        native = catalogue.native(self._network.slug)
        rates, now = self._rates_of(self._network.realm), self._clock.now_ms()
        found: list[Coin] = []
        for coin in catalogue.coins_of(self._network.slug):
            balance = booked.get(coin.asset)
            if balance is None or balance.units <= 0:
                continue
            fee = known.get(coin.asset, quote.fees.get(coin.slug, 0))
            if coin.contract is None:
                worth = self._more_than_dust(coin, balance.units)
            else:
                # With the top-up that may have to come before.
                whole = fee + quote.fees.get(native.slug, 0)
                there = rates.usd(coin.slug, balance.units, coin.decimals, now)
                burnt = rates.usd(native.slug, whole, native.decimals, now)
                unknown = there is None or burnt is None
                worth = self._unpriced(old, coin, balance.units) if unknown else (there or 0) > (burnt or 0)
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

    # Networks of accounts

    def _move_on(self, old: RetiredWallet) -> None:
        """Plan what can be moved now, or end the obligation. Raises Conflict, Unavailable."""
        now = self._clock.now_ms()
        mine = self._begun.moves(list(old.moves))
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
        under_way = self._begun.with_(old)
        if after.next_at <= now and target is not None:
            open_ones = [move for move in mine if not move.at_rest]
            costs = self._costs(old, target, worth, under_way, open_ones)
            worth = self._worth_moving(old, costs)
            moves = self._wanted(after, target, worth, under_way, open_ones, costs)
            if costs.refused and not moves:
                log.error("ALARM %s: draining %s: refused: %s", self._network.id, old.address, costs.refused)
                after = replace(after, tries=old.tries + 1, next_at=now + min(60 * 2**old.tries, MOST_WAIT_SECONDS) * 1000)
        if moves:
            after = replace(after, moves=(*after.moves, *(move.id for move in moves)), planned=old.planned + len(moves))
        elif not worth and not under_way.count and not after.moves and not self._pending(old):
            if self._quote() is None:
                return
            after = replace(after, drained_at=now, tries=0, next_at=0, remains=self._remains(old))
            log.info("%s: the replaced wallet %s is drained: %s", self._network.id, old.address, after.remains or "nothing is left")
        if after == old:
            return
        changes: list[Change] = [Save(replace(after, version=version_after(old)))]
        changes += [change for move in moves for change in planned(news, move)]
        # Nothing is sent to a wallet that is replaced itself by now, nor started with one.
        changes += [Still(wallet) for wallet in self._using(moves)]
        if after.drained_at is not None:
            changes.append(Close(old.drain))
        self._store.commit([*changes, *news.emit()])

    def _still(self, target: Wallet | None, move: Move) -> bool:
        return target is not None and move.recipient == target.address

    def _using(self, moves: list[Move]) -> list[Wallet]:
        used = {address for move in moves for address in (move.source, move.recipient)}
        found = current_wallets(self._store, self._network.id) if moves else []
        return [wallet for wallet in found if wallet.address in used]

    def _target(self, old: RetiredWallet) -> Wallet | None:
        """The wallet in its place; of a role that nobody has there any more, the hot one."""
        found = wallet_of(self._store, self._network.id, old.role, old.slot)
        return found or wallet_of(self._store, self._network.id, "hot")

    def _remains(self, old: RetiredWallet) -> tuple[OnChain, ...]:
        """What is not worth moving."""
        left = self._booked(old.address).values()
        return tuple(OnChain(old.address, balance.asset, balance.units) for balance in left if balance.units > 0)

    def _pending(self, old: RetiredWallet) -> bool:
        return any(balance.pending for balance in self._booked(old.address).values())

    def _wanted(
        self, old: RetiredWallet, target: Wallet, worth: list[Coin], under_way: UnderWay, open_ones: list[Move], costs: Costs
    ) -> list[Move]:
        quote = self._quote()
        if quote is None or any(move.kind == "topup" for move in open_ones):
            return []
        booked, mine = self._booked(old.address), {move.asset: move for move in open_ones}
        native = self._fees().native
        there = min(booked[native.asset].units, self._reader.balance(old.address)) if native.asset in booked else 0
        # What is signed pays its own; the rest is looked at anew, since its fee may have risen.
        there -= under_way.needed[native.asset] + sum(move.fee for move in open_ones)
        there -= sum(move.units for move in open_ones if move.asset == native.asset and move.state != "signed")
        tokens = [coin for coin in worth if coin.contract is not None]
        found: list[Move] = []
        missing = 0
        for coin in tokens:
            fee = costs.fees.get(coin.asset)
            move = mine.get(coin.asset)
            if fee is None or (move is not None and move.state == "signed"):
                continue
            if there < fee:
                missing = missing or topup_units(fee, max(0, there))
                continue
            there -= fee
            if move is None and len(found) < AT_ONCE:
                found.append(self._drain(old, len(found), coin, target, costs.free[coin.asset]))
        if found:
            return found
        if missing and (topup := self._topup(old, missing, costs)):
            return topup
        if native not in worth or native.asset in mine:
            return []
        if not under_way.count and not tokens and not open_ones:
            return [self._drain(old, 0, native, target, there, bare=True)] if self._more_than_dust(native, there) else []
        dearest = max([1, *quote.fees.values(), *costs.fees.values()])
        kept = FEES_EACH * dearest * (under_way.count + len(tokens) + 2)
        return [self._drain(old, 0, native, target, there - kept)] if there > 2 * kept else []

    def _costs(self, old: RetiredWallet, target: Wallet, worth: list[Coin], under_way: UnderWay, open_ones: list[Move]) -> Costs:
        """What moving each token costs now, whoever pays: the old wallet's energy and bandwidth count, not the hot one's. Raises
        Unavailable."""
        costs, booked = Costs(), self._booked(old.address)
        mine = {move.asset: move.amount for move in open_ones if move.kind == "drain"}
        for coin in worth:
            if coin.contract is None:
                continue
            free = booked[coin.asset].units - under_way.needed[coin.asset]
            free = mine.get(coin.asset) or (min(free, self._reader.balance(old.address, coin.contract)) if free > 0 else 0)
            if free <= 0:
                continue
            try:
                costs.fees[coin.asset] = self._fees().cost(coin, old.address, target.address, free)
                costs.free[coin.asset] = free
            except Refused as refused:
                # One that is signed has left, or is about to.
                costs.refused = costs.refused if coin.asset in mine else f"{coin.slug}: {refused}"
        return costs

    def _topup(self, old: RetiredWallet, units: int, costs: Costs) -> list[Move]:
        """Native coins for the fee of a token that shall leave; nothing while their payer has too few."""
        payer = topup_wallet(self._store, self._network.id)
        if payer is None:
            return []
        try:
            # On the condition that the wallets of all planned moves stay (`_using`).
            return [TopUps(self._fees()).plan(self._origin(old, 0), payer, old.address, units).move]
        except NoFreshRate as error:
            costs.refused = str(error)
        except PayerShort as short:
            costs.refused = f"the wallet that pays top-ups has {short.free} of {units} units for the fee of its tokens"
        return []

    def _drain(self, old: RetiredWallet, index: int, coin: Coin, target: Wallet, amount: int, bare: bool = False) -> Move:
        drained = Move.drain(self._origin(old, index), coin, old.address, target.address, amount, bare=bare)
        return replace(drained, seat=old.wallet.seat)

    def _origin(self, old: RetiredWallet, index: int) -> Origin:
        return Origin(old.network, f"drain:{old.network}:{old.address}", old.planned + index, self._clock.now_ms())

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
        if open_ones or moves or self._pending(old) or self._quote() is None:
            return
        if self._worth_moving(old) and self._coins_pay(old.wallet):
            return
        done = replace(next_version(old), drained_at=self._clock.now_ms(), remains=self._remains(old))
        # A booking of a coin there saves the same record of coins.
        kept = [Still(held)] if held.version else []
        self._store.commit([Save(done), *kept, Close(old.drain)])
