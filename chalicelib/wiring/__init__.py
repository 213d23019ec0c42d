"""The one place that builds adapters and hands them to use cases. Everything is made at first use, and imported only then:
a Lambda pays for what it touches, and the API's never loads what speaks to chains or holds keys.
"""

from __future__ import annotations

import os
import threading
import time
from functools import cached_property
from typing import TYPE_CHECKING, Any

from chalicelib.settings import AWS_CONNECTIONS, USER_AGENT, Settings
from chalicelib.wiring.workers import WorkerServices

if TYPE_CHECKING:
    from chalicelib.chains.addresses import Rules
    from chalicelib.domain.catalogue.catalogue import Catalogue, Coin, Network
    from chalicelib.domain.catalogue.rates import Rates
    from chalicelib.domain.ids import Realm, TenantId
    from chalicelib.domain.ledger import Balance
    from chalicelib.store.access import Access
    from chalicelib.store.dynamo import DynamoStore
    from chalicelib.usecases.addresses.addresses import Addresses
    from chalicelib.usecases.base.clock import SandboxTime
    from chalicelib.usecases.base.health import StoreHealth
    from chalicelib.usecases.base.kill_switch import Switches
    from chalicelib.usecases.base.message_chains import BoundedQueues
    from chalicelib.usecases.catalogue.coins import Coins
    from chalicelib.usecases.catalogue.networks import Networks
    from chalicelib.usecases.deposits.deposits import Deposits
    from chalicelib.usecases.deposits.releases import Releases
    from chalicelib.usecases.invoices.checkout import Checkouts
    from chalicelib.usecases.invoices.invoices import Invoices
    from chalicelib.usecases.invoices.settings import InvoiceSettingsBook
    from chalicelib.usecases.merchants.api_keys import ApiKeys
    from chalicelib.usecases.merchants.settings import MerchantSettingsDesk
    from chalicelib.usecases.merchants.source_limits import SourceLimits
    from chalicelib.usecases.ports.clock import Clock
    from chalicelib.usecases.ports.keys import Deriver
    from chalicelib.usecases.ports.staking import StakingNode
    from chalicelib.usecases.reconciliation.reports import Reconciliations
    from chalicelib.usecases.sandbox.demo import DemoResets
    from chalicelib.usecases.sandbox.sandbox import Sandbox
    from chalicelib.usecases.scanning.mempool import Looks
    from chalicelib.usecases.scanning.rescans import Rescans
    from chalicelib.usecases.screening.grey_list import GreyList
    from chalicelib.usecases.stray_payments.decisions import StrayPayments
    from chalicelib.usecases.treasury.collection.decisions import CollectDecisions
    from chalicelib.usecases.treasury.tron.staking import Staking
    from chalicelib.usecases.wallets.service_wallets import Wallets
    from chalicelib.usecases.webhooks.endpoints import Webhooks
    from chalicelib.usecases.webhooks.redelivery import Redelivery
    from chalicelib.usecases.withdrawals.approvals import Approvals
    from chalicelib.usecases.withdrawals.batches import Expansion
    from chalicelib.usecases.withdrawals.whitelist import Whitelist
    from chalicelib.usecases.withdrawals.withdrawals import Withdrawals


DEMO_ADVANCE = 7 * 86_400
"""Seconds that the sandbox's clock can be moved by between two resets of the demo."""


class SystemClock:
    """The machine's clock; `shift_ms` lets tests live in another time."""

    def __init__(self) -> None:
        self.shift_ms = 0

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self.shift_ms


def _region() -> str:
    """Where this deployment is, as every AWS tool finds it. Raises LookupError: guessing would write into another region."""
    found = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not found:
        import botocore.session

        found = botocore.session.get_session().get_config_variable("region")
    if not found:
        raise LookupError("no AWS region is set: set AWS_REGION, or a region in the AWS configuration")
    return str(found)


class Services(WorkerServices):
    """Adapters and use cases of one deployment. Shared by all requests of a process."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.clock = SystemClock()
        self.region = _region()
        self._lock = threading.Lock()
        self._clients: dict[str, Any] = {}
        self._chains: dict[tuple[str, str], Any] = {}
        self._looks: dict[str, Looks] = {}

    def _client(self, service: str) -> Any:
        with self._lock:  # botocore's client creation is not thread-safe
            if service not in self._clients:
                import botocore.session
                from botocore.config import Config

                config = Config(
                    retries={"mode": "standard", "total_max_attempts": 3},
                    connect_timeout=3,
                    read_timeout=10,
                    max_pool_connections=AWS_CONNECTIONS,
                    user_agent=USER_AGENT,
                )
                session = botocore.session.get_session()
                self._clients[service] = session.create_client(service, region_name=self.region, config=config)
            return self._clients[service]

    @cached_property
    def queues(self) -> BoundedQueues:
        from chalicelib.store.queues import SqsQueues
        from chalicelib.usecases.base.message_chains import BoundedQueues

        return BoundedQueues(SqsQueues(self.settings, self._client("sqs"), self.clock))

    @cached_property
    def store(self) -> DynamoStore:
        from chalicelib.store.dynamo import DynamoStore

        return DynamoStore(self.settings, self.region, self._kick)

    def _kick(self, outbox_id: str, group: str | None) -> None:
        self.queues.kick(outbox_id, group)

    @cached_property
    def gate(self) -> Access:
        from chalicelib.store.access import Access

        client, table = self.store.models.connection.client, self.settings.table("tenants")
        return Access(client, table, self.settings.realms, by_source=self.settings.stage == "demo")

    @cached_property
    def health(self) -> StoreHealth:
        import botocore.session

        from chalicelib.store.probe import QUICK, TABLES, DynamoProbe
        from chalicelib.usecases.base.health import StoreHealth

        with self._lock:
            client = botocore.session.get_session().create_client("dynamodb", region_name=self.region, config=QUICK)
        return StoreHealth(DynamoProbe(client, [self.settings.table(name) for name in TABLES]))

    @cached_property
    def source_limits(self) -> SourceLimits:
        from chalicelib.usecases.merchants.source_limits import SourceLimits

        return SourceLimits()

    @cached_property
    def api_keys(self) -> ApiKeys:
        from chalicelib.usecases.merchants.api_keys import ApiKeys

        return ApiKeys(self.store, self.clock)

    @cached_property
    def rules(self) -> Rules:
        from chalicelib.chains.addresses import Rules

        return Rules(self.settings.chains)

    def catalogue(self, realm: Realm) -> Catalogue:
        return self.store.catalogue(realm)

    def rates(self, realm: Realm) -> Rates:
        """What coins of a realm are worth, at most 30 seconds old; in the sandbox always the same, and always fresh."""
        if realm == "test" or self.settings.rates_providers == ("fixed",):
            return self._fixed_rates
        return self.store.rates()

    @cached_property
    def _fixed_rates(self) -> Rates:
        from chalicelib.rates.fixed import PAIRS, Fixed
        from chalicelib.usecases.catalogue.rates import constant_rates

        return constant_rates(Fixed(), PAIRS, self.realm_clock.now_ms)

    def balances(self, tenant: TenantId) -> list[Balance]:
        """Every balance that the merchant ever had."""
        from chalicelib.domain.ledger import Balance

        return self.store.page(Balance, limit=1000, tenant=tenant).items

    @cached_property
    def addresses(self) -> Addresses:
        from chalicelib.custody.derive import pool_of
        from chalicelib.usecases.addresses.addresses import Addresses

        return Addresses(self.store, self.deriver, self.rules, self.realm_clock, pool_of, self.settings.addresses_per_day)

    @cached_property
    def deriver(self) -> Deriver:
        from chalicelib.custody.derive import XpubDeriver
        from chalicelib.domain.addresses.addresses import Xpub

        def xpub_of(realm: Realm, pool: str) -> str | None:
            found = self.store.get(Xpub, realm=realm, pool=pool)
            return None if found is None else found.xpub

        return XpubDeriver(xpub_of, self.settings.chains)

    @cached_property
    def wallets(self) -> Wallets:
        from chalicelib.custody.wallet_keys import Keys
        from chalicelib.usecases.wallets.service_wallets import Wallets

        return Wallets(self.store, Keys(self._client, self.settings), self.rules, self.realm_clock)

    @cached_property
    def grey_list(self) -> GreyList:
        from chalicelib.usecases.screening.grey_list import GreyList

        return GreyList(self.store, self.rules, self.realm_clock)

    def deposits(self, realm: Realm) -> Deposits:
        from chalicelib.usecases.deposits.deposits import Deposits

        return Deposits(self.store, self.rules, self.clock_of(realm), self.rates)

    @cached_property
    def collect_decisions(self) -> CollectDecisions:
        from chalicelib.usecases.treasury.collection.decisions import CollectDecisions

        return CollectDecisions(self.store, self.rules, self.realm_clock)

    def releases(self, realm: Realm) -> Releases:
        from chalicelib.usecases.deposits.releases import Releases

        return Releases(self.store, self.rules, self.clock_of(realm), self.rates)

    @cached_property
    def invoices(self) -> Invoices:
        from chalicelib.usecases.invoices.invoices import Invoices

        url = self.settings.public_url
        return Invoices(self.store, self.addresses, self.realm_clock, self.invoice_settings, self.rates, url)

    @cached_property
    def checkouts(self) -> Checkouts:
        from chalicelib.usecases.invoices.checkout import Checkouts

        return Checkouts(self.store, self.clock_of)

    @cached_property
    def invoice_settings(self) -> InvoiceSettingsBook:
        from chalicelib.usecases.invoices.settings import InvoiceSettingsBook

        return InvoiceSettingsBook(self.store, self.settings.default_expiry)

    @cached_property
    def withdrawals(self) -> Withdrawals:
        from chalicelib.usecases.withdrawals.withdrawals import Withdrawals

        return Withdrawals(self.store, self.rules, self.realm_clock, self.expansion, self.rates, self.settings.merchant_pays_fees)

    @cached_property
    def sandbox_time(self) -> SandboxTime:
        from chalicelib.usecases.base.clock import MOST_IN_ALL, SandboxTime

        return SandboxTime(self.store, DEMO_ADVANCE if self.settings.stage == "demo" else MOST_IN_ALL)

    def _ahead_ms(self) -> int:
        return self.sandbox_time.ahead_ms()

    @cached_property
    def realm_clock(self) -> Clock:
        """The time of the realm that is at work. `clock` is the machine's, for all that is not a realm's."""
        from chalicelib.usecases.base.realm_time import RealmClock

        return RealmClock(self.clock, self._ahead_ms)

    def clock_of(self, realm: Realm) -> Clock:
        """The time of one realm."""
        from chalicelib.usecases.base.realm_time import RealmClock

        return RealmClock(self.clock, self._ahead_ms, realm)

    @cached_property
    def networks(self) -> Networks:
        from chalicelib.usecases.catalogue.networks import Networks

        return Networks(self.store, deployed=self.settings.stage != "local", resolve=self._resolved)

    def _resolved(self, host: str) -> list[str]:
        """The addresses of a host's name as of now; none where it is not known here, or not in two seconds."""
        from chalicelib.delivery import resolve

        try:
            return resolve.lookup(host, 443, seconds=2.0)
        except resolve.NotFound:
            return []

    @cached_property
    def expansion(self) -> Expansion:
        from chalicelib.usecases.withdrawals.batches import Expansion

        return Expansion(self.store, self.realm_clock)

    @cached_property
    def approvals(self) -> Approvals:
        from chalicelib.usecases.withdrawals.approvals import Approvals

        return Approvals(self.store, self.rules, self.realm_clock, self.withdrawals, self.rates)

    @cached_property
    def switches(self) -> Switches:
        from chalicelib.usecases.base.kill_switch import Switches

        return Switches(self.store, self.realm_clock)

    @cached_property
    def whitelist(self) -> Whitelist:
        from chalicelib.usecases.withdrawals.whitelist import Whitelist

        return Whitelist(self.store, self.rules, self.realm_clock)

    @cached_property
    def merchant_settings(self) -> MerchantSettingsDesk:
        from chalicelib.usecases.merchants.settings import MerchantSettingsDesk

        return MerchantSettingsDesk(self.store, self.realm_clock)

    @cached_property
    def coins(self) -> Coins:
        from chalicelib.usecases.catalogue.coins import Coins

        def stocked(coin: Coin, wallet: str) -> None:
            self.sandbox.stock(coin, wallet)

        return Coins(self.store, self.rules, self.token_reader, stocked)

    @cached_property
    def webhooks(self) -> Webhooks:
        from chalicelib.delivery.secrets import KmsSealer
        from chalicelib.usecases.webhooks.endpoints import Webhooks

        sealer = KmsSealer(lambda: self._client("kms"), self.settings)
        return Webhooks(self.store, self.queues, self.clock, sealer, allow_private=self.settings.webhooks_private)

    @cached_property
    def redelivery(self) -> Redelivery:
        from chalicelib.usecases.webhooks.redelivery import Redelivery

        return Redelivery(self.store, self.queues, self.clock, self.realm_clock)

    @cached_property
    def sandbox(self) -> Sandbox:
        from chalicelib.usecases.sandbox.mining_budget import MiningBudget
        from chalicelib.usecases.sandbox.sandbox import Sandbox

        return Sandbox(self.store, self.simulated, self.rules, self.simulated_tokens, MiningBudget(self.store, self.clock))

    @cached_property
    def reconciliations(self) -> Reconciliations:
        from chalicelib.usecases.reconciliation.reports import Reconciliations

        return Reconciliations(self.store, self.clock)

    @cached_property
    def rescans(self) -> Rescans:
        from chalicelib.usecases.scanning.rescans import Rescans

        return Rescans(self.store, self.clock)

    @cached_property
    def stray_payments(self) -> StrayPayments:
        from chalicelib.usecases.stray_payments.decisions import StrayPayments

        return StrayPayments(self.store, self.rules, self.realm_clock, self.impatient_reader, self.withdrawals)

    @cached_property
    def staking(self) -> Staking:
        from chalicelib.usecases.treasury.tron.staking import Staking

        def node(network: Network) -> StakingNode:
            return self.staking_node(network, impatient=True)

        return Staking(self.store, self.rules, self.realm_clock, node)

    @cached_property
    def demo_resets(self) -> DemoResets:
        from chalicelib.usecases.sandbox.demo import DemoResets

        return DemoResets(self.store, self.clock)

    def wipe_demo(self) -> int:
        """Remove the demo's data. Raises ValueError on every other stage."""
        from chalicelib.store.wipe import wipe

        return wipe(self.store.models.connection.client, self.settings)


_services: Services | None = None
_services_lock = threading.Lock()


def services() -> Services:
    """The services of this process, made at first use from the environment."""
    global _services  # noqa: PLW0603 - one per process, that is the point
    if _services is None:
        with _services_lock:
            if _services is None:
                _services = Services(Settings.from_environment())
    return _services


def forget() -> None:
    """Drop what this process has built and cached: the next call starts like a fresh function. For tests and first starts."""
    global _services  # noqa: PLW0603
    _services = None
