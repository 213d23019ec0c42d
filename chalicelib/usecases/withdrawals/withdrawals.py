"""Withdrawals as merchants see them: ordered, listed, cancelled. The folder `payouts` pays them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from chalicelib.domain import ledger
from chalicelib.domain.catalogue.catalogue import Catalogue, Coin
from chalicelib.domain.catalogue.rates import RatesOf, no_rates
from chalicelib.domain.errors import BusinessRule, InsufficientBalance, NotFound
from chalicelib.domain.ids import TenantId, group_id, network_parts, new_id
from chalicelib.domain.money import Amount
from chalicelib.domain.withdrawals.batches import BatchOutput, WithdrawalBatch, batch_of, batch_work
from chalicelib.domain.withdrawals.withdrawals import Priority, Withdrawal
from chalicelib.usecases.base.activity import aside
from chalicelib.usecases.base.creation import Creation, Prepared
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.base.views import views_now
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Conflict, Open, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.store import Page, Store
from chalicelib.usecases.withdrawals.batches import BatchMaker
from chalicelib.usecases.withdrawals.facts import Output
from chalicelib.usecases.withdrawals.new_record import Order, withdrawal_of
from chalicelib.usecases.withdrawals.rules import Rules
from chalicelib.usecases.withdrawals.steps import given_back, moved, purse_of, started

log = logging.getLogger(__name__)


class Withdrawals:
    def __init__(
        self,
        store: Store,
        rules: AddressRules,
        clock: Clock,
        expansion: BatchMaker,
        rates_of: RatesOf = no_rates,
        merchant_pays: bool = False,
    ) -> None:
        self._store, self._rules, self._clock = store, rules, clock
        self._expansion, self._rates_of, self._merchant_pays = expansion, rates_of, merchant_pays

    def create(self, tenant: TenantId, coin: Coin, output: Output) -> Withdrawal:
        """Reserve the units of `output`, and order their payment or the approval that it needs first. Raises what a try of
        `creating` raises."""
        return self.creating(tenant, coin, output).run()

    def creating(
        self,
        tenant: TenantId,
        coin: Coin,
        output: Output,
        *,
        priority: Priority = "normal",
        metadata: dict[str, Any] | None = None,
        from_address: str | None = None,
    ) -> Creation[Withdrawal]:
        """What `create` commits. `from_address` must be the hot wallet's.

        It or a try raises InvalidAddress, InvalidParameter, BusinessRule (inactive, outside of a limit or of the whitelist),
        DailyLimitExceeded, InsufficientBalance, Unavailable.
        """
        if output.amount <= 0:
            raise ValueError("a withdrawal pays more than nothing")
        catalogue = self._store.catalogue(network_parts(coin.network)[0])
        rules = self.rules(catalogue, coin)
        outputs = rules.recipients([output])
        asked_at = self._clock.now_ms()  # lists are in the order of ids: the record tells the same time
        withdrawal_id = new_id("wd", asked_at)

        def prepare() -> Prepared[Withdrawal]:
            now = self._clock.now_ms()
            ruling = rules.allow(tenant, outputs, priority, from_address, now)
            order = Order(withdrawal_id, tenant, outputs[0], asked_at, priority, metadata or {})
            withdrawal = withdrawal_of(rules, ruling, order, now)
            entry = ledger.withdrawal_reserved(withdrawal.id, now, tenant, Amount(coin.asset, withdrawal.reserved))
            views, news = views_now(catalogue, self._rates_of, now), News(now)
            changes = [
                *started(news, views, withdrawal),
                *moved(self._store, news, views, ruling.owned.balance, entry, ruling.owned.awaited),
            ]
            changes += [Save(ruling.spent), *map(Save, ruling.own)]

            def stored(conflict: Conflict) -> Withdrawal:
                if conflict.change == changes[0]:
                    return self.get(tenant, withdrawal_id)  # an earlier try of ours was committed after all
                raise conflict

            return Prepared(withdrawal, [*changes, *news.emit()], stored)

        return Creation(self._store, prepare)

    def rules(self, catalogue: Catalogue, coin: Coin) -> Rules:
        """The rules for payments of one coin."""
        return Rules(self._store, self._rules, self._rates_of, catalogue, coin, self._merchant_pays)

    def demand(self, tenant: TenantId, coin: Coin, amount: int, to_address: str, address_field: str = "to_address") -> str:
        """Raise what `create` would raise now, but for a balance that is too small; the address in its public spelling."""
        catalogue = self._store.catalogue(network_parts(coin.network)[0])
        rules = self.rules(catalogue, coin)
        outputs = rules.recipients([Output(to_address, amount, address_field)])
        try:
            rules.allow(tenant, outputs, "normal", None, self._clock.now_ms())
        except InsufficientBalance:
            log.info("%s: nothing but the balance is in the way of %s", tenant, coin.asset)  # all else was looked at before it
        return outputs[0].to_address

    def creating_batch(
        self, tenant: TenantId, coin: Coin, outputs: Sequence[Output], *, priority: Priority = "normal"
    ) -> Creation[WithdrawalBatch]:
        """Prepare to reserve the total of `outputs` and to order their payments: all of them, or none.

        The batch is accepted by one transaction; its withdrawals are stored after it, here, or by housekeeping where this
        function dies. Raises what `creating` raises.
        """
        catalogue = self._store.catalogue(network_parts(coin.network)[0])
        rules = self.rules(catalogue, coin)
        asked = rules.recipients(outputs)
        asked_at = self._clock.now_ms()
        batch_id = group_id("wdb", asked_at)

        def prepare() -> Prepared[WithdrawalBatch]:
            now = self._clock.now_ms()
            ruling = rules.allow(tenant, asked, priority, None, now)
            signed = any("multisig" in reasons for reasons in ruling.reasons)
            config = ruling.settings.multisig
            batch = WithdrawalBatch(
                id=batch_id,
                tenant=tenant,
                network=coin.network,
                asset=coin.asset,
                fee_asset=catalogue.native(rules.network.slug).asset,
                fee=ruling.fee,
                priority=priority,
                outputs=tuple(
                    BatchOutput(o.to_address, o.amount, reasons, limited, charge.units, charge.fixed)
                    for o, reasons, limited, charge in zip(asked, ruling.reasons, ruling.limited, ruling.charges, strict=True)
                ),
                created_at=asked_at,
                charge_rate=next((charge.rate for charge in ruling.charges if charge.rate is not None), None),
                required=config.required_signatures if signed else 0,
                signers=config.signers if signed else (),
            )
            entry = ledger.batch_reserved(batch.id, now, tenant, Amount(coin.asset, batch.reserved))
            news = News(now)
            changes = [
                Save(batch),
                Open(batch_work(batch)),
                *moved(
                    self._store, news, views_now(catalogue, self._rates_of, now), ruling.owned.balance, entry, ruling.owned.awaited
                ),
                Save(ruling.spent),
                *map(Save, ruling.own),
            ]

            def stored(conflict: Conflict) -> WithdrawalBatch:
                found = self._store.get(WithdrawalBatch, tenant=tenant, id=batch_id) if conflict.change == changes[0] else None
                if found is None:
                    raise conflict
                return found  # an earlier try of ours was committed after all

            return Prepared(batch, [*changes, *news.emit()], stored)

        return Creation(self._store, prepare, self._expand)

    def _expand(self, batch: WithdrawalBatch) -> None:
        try:
            self._expansion.expand(batch)
        except (Unavailable, Conflict) as error:
            log.warning("batch %s is accepted, and its withdrawals are made later: %s", batch.id, error)

    def get(self, tenant: TenantId, withdrawal_id: str) -> Withdrawal:
        """Raises NotFound, also for another merchant's withdrawal.

        A withdrawal of a batch is there as soon as the batch is, stored by itself or not.
        """
        found = self._store.get(Withdrawal, tenant=tenant, id=withdrawal_id)
        if found is None:
            batch = self._store.get(WithdrawalBatch, tenant=tenant, id=batch_of(withdrawal_id))
            found = None if batch is None else batch.member(withdrawal_id)
        if found is None:
            raise NotFound(f"No withdrawal {withdrawal_id[:80]}", {"id": withdrawal_id[:80]})
        return found

    def stored(self, tenant: TenantId, withdrawal_id: str) -> Withdrawal:
        """The same as `get`, for a caller that changes it: stored by itself from now on. Raises NotFound, Conflict."""
        found = self._store.get(Withdrawal, tenant=tenant, id=withdrawal_id)
        if found is None:
            self.get(tenant, withdrawal_id)
            batch = self._store.get(WithdrawalBatch, tenant=tenant, id=batch_of(withdrawal_id))
            if batch is not None:
                with aside():  # what the caller changes may be refused after it
                    self._expansion.expand(batch)
            found = self._store.get(Withdrawal, tenant=tenant, id=withdrawal_id)
        if found is None:
            raise LookupError(f"{withdrawal_id} is in its batch and was not made of it")
        return found

    def page(self, tenant: TenantId, limit: int, after: str | None = None, newest_first: bool = True) -> Page[Withdrawal]:
        return self._store.page(Withdrawal, limit=limit, after=after, newest_first=newest_first, tenant=tenant)

    def cancel(self, tenant: TenantId, withdrawal_id: str) -> Withdrawal:
        """Give the reserved money back, before a worker has started. Raises NotFound, BusinessRule (not pending any more)."""

        def decide() -> Withdrawal:
            before = self.stored(tenant, withdrawal_id)
            if before.status != "pending":
                raise BusinessRule("status", f"only pending withdrawals can be cancelled; this one is {before.status}")
            now = self._clock.now_ms()
            views = views_now(self._store.catalogue(network_parts(before.network)[0]), self._rates_of, now)
            purse = purse_of(self._store, before)
            after, changes = given_back(self._store, views, before, "cancelled", None, purse, now)
            self._store.commit(changes)
            return after

        return until_settled(decide)
