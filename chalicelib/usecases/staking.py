"""Staking TRX of the hot wallet on a simulated Tron: ordered by the operator, done by the poll, final by receipt.

The order is stored with its obligation. The poll hands it to the chain, which takes the same one once however often it comes,
and books it when its block has the network's confirmations: what the wallet holds and what is staked stay two places of the
ledger, and to whom the coins belong does not change. Staking on the real Tron needs the wallet's signature: not in this version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from chalicelib.domain import ledger
from chalicelib.domain.addresses import Wallet
from chalicelib.domain.catalogue import Coin, Network
from chalicelib.domain.errors import BusinessRule, InsufficientBalance
from chalicelib.domain.ids import new_id
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.money import Amount, format_units
from chalicelib.domain.stakes import Resource, Stake, stake_work
from chalicelib.usecases.addresses import Also, nothing_more
from chalicelib.usecases.changes import Close, Open, Post, Save
from chalicelib.usecases.ports import AddressRules, ChainReader, Clock, Refused, Store
from chalicelib.usecases.trying import until_settled

OPEN_AT_ONCE = 100
_PAGE = 1000


class StakingChain(Protocol):
    """A simulated network on which coins can be staked."""

    def stake(self, txid: str, address: str, amount: int) -> None:
        """Freeze `amount` units of the native coin of `address`, once per `txid`. Raises Refused, Unavailable."""
        ...


class Staking:
    """What the operator asks for."""

    def __init__(self, store: Store, rules: AddressRules, clock: Clock) -> None:
        self._store, self._rules, self._clock = store, rules, clock

    def order(self, network: Network, coin: Coin, amount: int, resource: Resource, also: Also = nothing_more) -> Stake:
        """Stake `amount` units of `coin`, the native one. Raises BusinessRule, InsufficientBalance, Unavailable."""
        if network.status != "active":
            raise BusinessRule("network", f"{network.slug} is not active here")
        if not network.simulated:
            raise BusinessRule("network", f"this version stakes on the simulated {network.slug} only")
        least = 10**coin.decimals
        if amount < least:
            raise BusinessRule("amount", f"{network.slug} stakes 1 {coin.symbol} at least")
        wallet = self._store.get(Wallet, network=network.id, role="hot")
        if wallet is None:
            raise BusinessRule("network", f"{network.slug} has no hot wallet yet")
        free = self._held(network, coin, wallet) - self._ordered(network)
        if amount > free:
            requested, available = format_units(amount, coin.decimals), format_units(max(0, free), coin.decimals)
            details = {"requested": requested, "available": available, "coin": coin.slug}
            raise InsufficientBalance(f"The hot wallet has {available} {coin.symbol} that could be staked", details)
        now = self._clock.now_ms()
        made = Stake(new_id("stk", now), network.id, wallet.address, amount, resource, now)
        self._store.commit([Save(made), Open(stake_work(made)), *also(made)])
        return made

    def all(self, network: Network) -> list[Stake]:
        """All stakes of a network, oldest first: only the operator makes them, one by one. Raises Unavailable."""
        found: list[Stake] = []
        after: str | None = None
        while True:
            page = self._store.page(Stake, limit=_PAGE, after=after, network=network.id)
            found += page.items
            after = page.next
            if after is None:
                return found

    def _held(self, network: Network, coin: Coin, wallet: Wallet) -> int:
        place = self._rules.storage_form(network.slug, wallet.address)
        found = self._store.get(WalletBalance, network=network.id, address=place, asset=coin.asset)
        return 0 if found is None else found.units

    def _ordered(self, network: Network) -> int:
        """Units in orders that the ledger does not show yet."""
        open_ = self._store.open_work("stake", network.id, limit=OPEN_AT_ONCE)
        if len(open_) >= OPEN_AT_ONCE:
            raise BusinessRule("network", f"{OPEN_AT_ONCE} stakes are not final yet")
        found = self._store.get_many([(Stake, {"network": network.id, "id": work.id}) for work in open_])
        return sum(stake.amount for stake in found if stake is not None and stake.status == "pending")


class Staker:
    """Brings the open stakes of one network to their end, as part of its poll."""

    def __init__(
        self, network: Network, reader: ChainReader, chain: StakingChain, store: Store, rules: AddressRules, clock: Clock
    ) -> None:
        self._network, self._reader, self._chain = network, reader, chain
        self._store, self._rules, self._clock = store, rules, clock

    def work(self, more: Callable[[], bool]) -> None:
        """Raises Conflict, Unavailable."""
        for work in self._store.open_work("stake", self._network.id, limit=OPEN_AT_ONCE):
            if not more():
                return
            stake = self._store.get(Stake, network=self._network.id, id=work.id)
            if stake is not None and stake.status == "pending":
                self._follow(stake)

    def _follow(self, stake: Stake) -> None:
        receipt = self._reader.receipt(stake.txid)
        if receipt is None:
            try:
                self._chain.stake(stake.txid, stake.wallet, stake.amount)
            except Refused as error:
                self._end(replace(stake, status="failed", reason=str(error)[:300]))
            return
        if self._reader.tip() - receipt.block_number + 1 < self._network.confirmations:
            return
        if self._reader.block_hash(receipt.block_number) == receipt.block_hash:
            self._end(replace(stake, status="confirmed"))

    def _end(self, after: Stake) -> None:
        def decide() -> None:
            before = self._store.get(Stake, network=after.network, id=after.id)
            if before is None or before.status != "pending":
                return
            post = []
            if after.status == "confirmed":
                asset = self._store.catalogue(self._network.realm).native(self._network.slug).asset
                address = self._rules.storage_form(self._network.slug, after.wallet)
                entry = ledger.staked(after.id, self._clock.now_ms(), after.network, address, Amount(asset, after.amount))
                post.append(Post(entry))
            self._store.commit([Save(replace(after, version=before.version + 1)), Close(stake_work(after)), *post])

        until_settled(decide)
