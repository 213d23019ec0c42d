"""Staking TRX of the hot wallet: ordered by the operator, final by receipt.

The order is stored with its obligation. When its block has the network's confirmations it is booked: what the wallet holds and
what is staked stay two places of the ledger, and to whom the coins belong does not change. On a simulated Tron the poll hands the
order to the chain (here), which takes the same one once however often it comes. On the real one the order holds the transaction,
which the payout function signs (`stake_signing`) and the poll follows (`stake_following`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Protocol

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.catalogue import Coin, Network
from chalicelib.domain.catalogue.coin_settings import limit_units
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.errors import BusinessRule, InsufficientBalance
from chalicelib.domain.ids import TenantId, new_id
from chalicelib.domain.money import format_units
from chalicelib.domain.treasury.stakes import Resource, Stake, stake_command, stake_work
from chalicelib.domain.versions import next_version
from chalicelib.usecases.base.creation import Creation, Prepared
from chalicelib.usecases.base.current_wallets import wallet_of
from chalicelib.usecases.base.kill_switch import stopped
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import Each, until_settled
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Close, Open, Save, Still
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import InsufficientFunds, Refused, Unavailable
from chalicelib.usecases.ports.staking import StakingNode
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.finality import Finality
from chalicelib.usecases.treasury.tron.stake_booking import StakeBooking
from chalicelib.usecases.wallets.ledger_balances import ledger_balance

OPEN_AT_ONCE = 100
_PAGE = 1000


def no_node(network: Network) -> StakingNode:
    """Raises LookupError: there is nothing here that stakes on real networks."""
    raise LookupError(network.id)


class StakingChain(Protocol):
    """A simulated network on which coins can be staked."""

    def stake(self, txid: str, address: str, amount: int) -> None:
        """Freeze `amount` units of the native coin of `address`, once per `txid`. Raises Refused, Unavailable."""
        ...


class Staking:
    """What the operator asks for. `node_of` gives what builds stakes of a real network; it raises LookupError where nothing can."""

    def __init__(
        self,
        store: Store,
        rules: AddressRules,
        clock: Clock,
        rates_of: RatesOf,
        node_of: Callable[[Network], StakingNode] = no_node,
    ) -> None:
        self._store, self._rules, self._clock, self._rates_of, self._node_of = store, rules, clock, rates_of, node_of

    def ordering(self, tenant: TenantId, network: Network, coin: Coin, amount: int, resource: Resource) -> Creation[Stake]:
        """Prepare a stake of `amount` units of `coin`, the native one. A try raises BusinessRule, InsufficientBalance,
        Unavailable."""
        return Creation(self._store, partial(self._prepare, tenant, network, coin, amount, resource))

    def _prepare(self, tenant: TenantId, network: Network, coin: Coin, amount: int, resource: Resource) -> Prepared[Stake]:
        if network.status != "active":
            raise BusinessRule("network", f"{network.slug} is not active here")
        least = 10**coin.decimals
        if amount < least:
            raise BusinessRule("amount", f"{network.slug} stakes 1 {coin.symbol} at least")
        wallet = wallet_of(self._store, network.id, "hot")
        if wallet is None:
            raise BusinessRule("network", f"{network.slug} has no hot wallet yet")
        # A stake is new: it leaves the floor. One that is made anew does not ask.
        floor = limit_units(coin, "hotFloor", self._rates_of(network.realm), self._clock.now_ms()) or 0
        free = self._held(network, coin, wallet) - self._ordered(network) - floor
        if amount > free:
            requested, available = format_units(amount, coin.decimals), format_units(max(0, free), coin.decimals)
            details = {"requested": requested, "available": available, "coin": coin.slug}
            raise InsufficientBalance(f"The hot wallet has {available} {coin.symbol} that could be staked", details)
        now = self._clock.now_ms()
        made = Stake(new_id("stk", now), tenant, network.id, coin.asset, wallet.address, amount, resource, now, touched_at=now)
        news = News(now)
        if not network.simulated:
            made = self._built(network, made)
            news.command(stake_command(made))
        return Prepared(made, [Save(made), Open(stake_work(made)), Still(wallet), *news.emit()])

    def _built(self, network: Network, stake: Stake) -> Stake:
        """With the transaction that is to be signed: its id is in the answer. Nobody has signed it yet."""
        try:
            node = self._node_of(network)
            taken = {hash for other in self._open(network) for hash in other.txids}
            for sequence in range(stake.created_at % 1000, 1000 + stake.created_at % 1000):
                unsigned = node.prepare(stake.wallet, stake.amount, stake.resource, sequence)
                txid = node.explain(unsigned).txid
                if txid not in taken:
                    return replace(stake, unsigned=unsigned, hash=txid)
        except LookupError as error:
            raise BusinessRule("network", f"this deployment can not stake on {network.slug}") from error
        except InsufficientFunds as error:
            raise BusinessRule(
                "amount", f"the hot wallet has too little on the chain, for the amount or its fee: {error}"
            ) from error
        except Unavailable as error:
            # 503 is no status of the interface: the request is right, and can be sent again.
            raise BusinessRule("network", f"the node of {network.slug} does not answer now; send the request again") from error
        raise BusinessRule("network", f"too many equal stakes on {network.slug} at once")

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
        return ledger_balance(self._store, self._rules, network, wallet.address, coin.asset).units

    def _ordered(self, network: Network) -> int:
        """Units in orders that the ledger does not show yet."""
        return sum(stake.amount for stake in self._open(network) if stake.status == "pending")

    def _open(self, network: Network) -> list[Stake]:
        open_ = self._store.open_work("stake", network.id, limit=OPEN_AT_ONCE)
        if len(open_) >= OPEN_AT_ONCE:
            raise BusinessRule("network", f"{OPEN_AT_ONCE} stakes are not final yet")
        found = self._store.get_many([(Stake, {"network": network.id, "id": work.id}) for work in open_])
        return [stake for stake in found if stake is not None]


class Staker:
    """Brings the open stakes of a simulated network to their end, as part of its poll."""

    def __init__(self, context: NetworkContext, chain: StakingChain, finality: Finality) -> None:
        self._network, self._reader, self._store = context.network, context.reader, context.store
        self._chain, self._finality, self._booking = chain, finality, StakeBooking(context, finality)

    def work(self, more: Callable[[], bool]) -> None:
        """Raises Unavailable, Failures."""
        with Each(f"{self._network.id}: stakes") as each:
            each.take("those that are final", partial(self._booking.watch, more))
            for work in self._store.open_work("stake", self._network.id, limit=OPEN_AT_ONCE):
                if not more():
                    return
                each.take(work.id, partial(until_settled, partial(self._follow, work.id)))

    def _follow(self, stake_id: str) -> None:
        stake = self._store.get(Stake, network=self._network.id, id=stake_id)
        if stake is None or stake.status != "pending":
            return
        receipt = self._reader.receipt(stake.txid)
        if receipt is None:
            if stopped(self._store, self._network.realm):
                return
            try:
                self._chain.stake(stake.txid, stake.wallet, stake.amount)
            except Refused as error:
                self._refused(stake, str(error))
            return
        if self._reader.block_hash(receipt.block_number) == receipt.block_hash:
            self._booking.ripen(stake, receipt, self._finality.scanned())

    def _refused(self, before: Stake, reason: str) -> None:
        after = replace(next_version(before), status="failed", reason=reason[:300])
        self._store.commit([Save(after), Close(stake_work(after))])
