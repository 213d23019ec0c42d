"""Withdrawals as merchants see them: asked for, listed, cancelled. What pays them is `payouts`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chalicelib.domain import ledger
from chalicelib.domain.catalogue import Catalogue, Coin, Network
from chalicelib.domain.chain import FeeQuote
from chalicelib.domain.coin_settings import in_usd, limit_units
from chalicelib.domain.errors import BusinessRule, InsufficientBalance, InvalidAddress, NotFound
from chalicelib.domain.ids import TenantId, network_parts, new_id
from chalicelib.domain.ledger import Balance, JournalEntry
from chalicelib.domain.money import Amount, format_units
from chalicelib.domain.rates import Rates, RatesOf, no_rates
from chalicelib.domain.withdrawals import Priority, Withdrawal, may_follow
from chalicelib.domain.work import Command, Work
from chalicelib.usecases.addresses import Also, nothing_more
from chalicelib.usecases.changes import Change, Close, Conflict, Open, Post, Save
from chalicelib.usecases.outbox import News
from chalicelib.usecases.ports import AddressRules, Clock, Page, Store
from chalicelib.usecases.trying import until_settled
from chalicelib.usecases.views import Views

_SEPARATOR = "|"


def payout_work(withdrawal: Withdrawal) -> Work:
    """The obligation to bring a withdrawal to its end, in the lane of its network."""
    tail = f"{withdrawal.tenant}{_SEPARATOR}{withdrawal.id}"
    return Work("payout", withdrawal.network, f"{withdrawal.created_at:015d}", tail)


def sent_work(withdrawal: Withdrawal) -> Work:
    """The obligation to settle a payment that is signed: in a lane of its own, so that those who wait hold nobody up."""
    return replace(payout_work(withdrawal), kind="sent")


def settled_work(withdrawal: Withdrawal, block_number: int, block_hash: str) -> Work:
    """The obligation to watch the block that settled a payment until no reorganisation reaches it. Found by height."""
    tail = f"{withdrawal.tenant}{_SEPARATOR}{withdrawal.id}{_SEPARATOR}{block_hash}"
    return Work("settled", withdrawal.network, f"{block_number:015d}", tail)


def payout_parts(work: Work) -> tuple[TenantId, str]:
    tenant, withdrawal_id = work.id.split(_SEPARATOR)[:2]
    return TenantId(tenant), withdrawal_id


def payout_command(withdrawal: Withdrawal) -> Command:
    """Ask for it to be paid now. One group per wallet that pays, so that one at a time takes a nonce."""
    return Command("payouts", f"{withdrawal.network}", {"tenant": withdrawal.tenant, "id": withdrawal.id})


class Withdrawals:
    def __init__(self, store: Store, rules: AddressRules, clock: Clock, rates: RatesOf = no_rates) -> None:
        self._store, self._rules, self._clock, self._rates = store, rules, clock, rates

    def create(
        self,
        tenant: TenantId,
        coin: Coin,
        amount: int,
        to_address: str,
        *,
        priority: Priority = "normal",
        metadata: dict[str, Any] | None = None,
        also: Also = nothing_more,
    ) -> Withdrawal:
        """Reserve `amount` units of `coin` and order their payment.

        Raises InvalidAddress, BusinessRule (inactive, outside the coin's limits), InsufficientBalance, Unavailable.
        """
        if amount <= 0:
            raise ValueError("a withdrawal pays more than nothing")
        realm, slug = network_parts(coin.network)
        catalogue = self._store.catalogue(realm)
        network = catalogue.networks[slug]
        recipient = self._recipient(network, to_address)
        _check_rules(network, coin, amount, self._rates(realm) if in_usd(coin) else Rates(), self._clock.now_ms())

        withdrawal_id = new_id("wd", self._clock.now_ms())

        def decide() -> Withdrawal:
            now = self._clock.now_ms()
            balance, quote = self._store.get_many(
                [(Balance, {"tenant": tenant, "asset": coin.asset}), (FeeQuote, {"network": coin.network})]
            )
            balance = balance or Balance(tenant, coin.asset)
            if balance.available < amount:
                shown = {"requested": format_units(amount, coin.decimals), "coin": coin.slug}
                available = format_units(max(0, balance.available), coin.decimals)
                raise InsufficientBalance(f"The balance of {coin.slug} on {slug} is not enough", {**shown, "available": available})
            withdrawal = Withdrawal(
                id=withdrawal_id,
                tenant=tenant,
                network=network.id,
                asset=coin.asset,
                amount=amount,
                to_address=recipient,
                fee_asset=catalogue.native(slug).asset,
                created_at=now,
                updated_at=now,
                priority=priority,
                metadata=metadata or {},
                fee=quote.fees.get(coin.slug, 0) if quote is not None else 0,
                emitted=1,
            )
            entry = ledger.withdrawal_reserved(withdrawal.id, now, tenant, Amount(coin.asset, amount))
            views = Views(catalogue)
            news = News(now)
            news.tell(tenant, "withdrawal.created", withdrawal.id, 1, views.withdrawal(withdrawal))
            changes = [Save(withdrawal), Open(payout_work(withdrawal)), *moved(news, views, balance, entry)]
            news.command(payout_command(withdrawal))
            try:
                self._store.commit([*changes, *news.emit(), *also(withdrawal)])
            except Conflict as conflict:
                if conflict.change == changes[0]:
                    return self.get(tenant, withdrawal_id)  # an earlier try of ours was committed after all
                raise
            return withdrawal

        return until_settled(decide)

    def get(self, tenant: TenantId, withdrawal_id: str) -> Withdrawal:
        """Raises NotFound, also for another merchant's withdrawal."""
        found = self._store.get(Withdrawal, tenant=tenant, id=withdrawal_id)
        if found is None:
            raise NotFound(f"No withdrawal {withdrawal_id[:80]}", {"id": withdrawal_id[:80]})
        return found

    def page(self, tenant: TenantId, limit: int, after: str | None = None, newest_first: bool = True) -> Page[Withdrawal]:
        return self._store.page(Withdrawal, limit=limit, after=after, newest_first=newest_first, tenant=tenant)

    def cancel(self, tenant: TenantId, withdrawal_id: str) -> Withdrawal:
        """Give the money back before anything was done with it. Raises NotFound, BusinessRule (not pending any more)."""

        def decide() -> Withdrawal:
            before = self.get(tenant, withdrawal_id)
            if before.status != "pending":
                raise BusinessRule("status", f"only pending withdrawals can be cancelled; this one is {before.status}")
            catalogue = self._store.catalogue(network_parts(before.network)[0])
            balance = self._store.get(Balance, tenant=tenant, asset=before.asset) or Balance(tenant, before.asset)
            after, changes = given_back(Views(catalogue), before, "cancelled", None, balance, self._clock.now_ms())
            self._store.commit(changes)
            return after

        return until_settled(decide)

    def _recipient(self, network: Network, to_address: str) -> str:
        try:
            return self._rules.normalize(network.slug, to_address)
        except ValueError as error:
            details = {"address": to_address[:120], "network": network.slug}
            raise InvalidAddress(f"Not an address of {network.slug}: {error}", details) from error


def _check_rules(network: Network, coin: Coin, amount: int, rates: Rates, now: int) -> None:
    if network.status != "active":
        raise BusinessRule("network", f"{network.slug} is not active here")
    if coin.status != "ACTIVE":
        raise BusinessRule("coin", f"{coin.slug} on {network.slug} is not active")
    least, most = limit_units(coin, "minValue", rates, now), limit_units(coin, "maxValue", rates, now)
    if least is not None and amount < least:
        raise BusinessRule("amount", f"must be at least {format_units(least, coin.decimals)} {coin.symbol}")
    if most is not None and amount > most:
        raise BusinessRule("amount", f"must be at most {format_units(most, coin.decimals)} {coin.symbol}")


def moved(news: News, views: Views, balance: Balance, entry: JournalEntry) -> list[Change]:
    """The changes that post `entry` and keep the merchant's balance with it; tells when what is available changed."""
    after = balance.after(entry)
    if after.available != balance.available:
        after = replace(after, emitted=after.emitted + 1)
        news.tell(after.tenant, "balance.updated", f"{after.tenant}:{after.asset}", after.emitted, views.balance(after))
    return [Post(entry), Save(after)]


def stepped(news: News, views: Views, before: Withdrawal, after: Withdrawal) -> Withdrawal:
    """`after` with its next version, and the news of its change of status. Raises ValueError for a step that is not allowed."""
    if after.status == before.status:
        return replace(after, version=before.version + 1)
    if not may_follow(before.status, after.status):
        raise ValueError(f"a withdrawal can not go from {before.status} to {after.status}")
    told = replace(after, emitted=before.emitted + 1, version=before.version + 1)
    record = {**views.withdrawal(told), "previous_status": before.status}
    news.tell(told.tenant, "withdrawal.status_changed", told.id, told.emitted, record)
    if told.status == "confirmed":
        told = replace(told, emitted=told.emitted + 1)
        news.tell(told.tenant, "withdrawal.completed", told.id, told.emitted, views.withdrawal(told))
    return told


def given_back(
    views: Views, before: Withdrawal, status: Any, failure: str | None, balance: Balance, now: int
) -> tuple[Withdrawal, list[Change]]:
    """Cancelled or failed before anything was signed: the whole transaction that returns the reserved amount."""
    news = News(now)
    entry = ledger.withdrawal_released(before.id, now, before.tenant, Amount(before.asset, before.amount))
    after = stepped(news, views, before, replace(before, status=status, failure=failure, pending_reason=None, updated_at=now))
    changes = [Save(after), Close(payout_work(before)), *moved(news, views, balance, entry)]
    return after, [*changes, *news.emit()]


def catalogue_views(store: Store, withdrawal: Withdrawal) -> tuple[Catalogue, Views]:
    catalogue = store.catalogue(network_parts(withdrawal.network)[0])
    return catalogue, Views(catalogue)
