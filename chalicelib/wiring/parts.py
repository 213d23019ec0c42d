"""The shared parts of one deployment: settings, clocks, AWS clients, the store, the queues, address rules, rates.

Each is made at first use and imported only then.
"""

from __future__ import annotations

import os
import threading
import time
from functools import cached_property
from typing import TYPE_CHECKING, Any

from chalicelib.settings import AWS_CONNECTIONS, USER_AGENT, Settings

if TYPE_CHECKING:
    from chalicelib.chains.addresses import Rules
    from chalicelib.domain.catalogue.catalogue import Catalogue
    from chalicelib.domain.catalogue.rates import Rates
    from chalicelib.domain.ids import Realm
    from chalicelib.store.archive import Archived
    from chalicelib.store.dynamo import DynamoStore
    from chalicelib.usecases.base.message_chains import BoundedQueues
    from chalicelib.usecases.ports.clock import Clock
    from chalicelib.usecases.sandbox.clock import SandboxTime

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


class Parts:
    """Shared parts of every capability's wiring."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.clock = SystemClock()
        self.region = _region()
        self.clients: dict[str, Any] = {}
        self._lock = threading.Lock()

    def client(self, service: str) -> Any:
        """The client of an AWS service, one per process."""
        with self._lock:  # botocore's client creation is not thread-safe
            if service not in self.clients:
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
                self.clients[service] = session.create_client(service, region_name=self.region, config=config)
            return self.clients[service]

    def quick_client(self, service: str, config: Any) -> Any:
        """A client of its own, with its own time limits."""
        import botocore.session

        with self._lock:
            return botocore.session.get_session().create_client(service, region_name=self.region, config=config)

    @cached_property
    def queues(self) -> BoundedQueues:
        from chalicelib.store.queues import SqsQueues
        from chalicelib.usecases.base.message_chains import BoundedQueues

        return BoundedQueues(SqsQueues(self.settings, self.client("sqs"), self.clock))

    @cached_property
    def store(self) -> DynamoStore:
        from chalicelib.store.dynamo import DynamoStore

        return DynamoStore(self.settings, self.region, self._kick, lambda: self.archived, self.clock)

    @cached_property
    def archived(self) -> Archived:
        """Loaded when a stub is met, or a payment leaves: no cold start pays for S3."""
        from chalicelib.store.archive import Archived

        return Archived(self.settings, self.region, self.store.models, self.client)

    def _kick(self, outbox_id: str, group: str | None) -> None:
        self.queues.kick(outbox_id, group)

    @cached_property
    def rules(self) -> Rules:
        from chalicelib.chains.addresses import Rules

        return Rules(self.settings.chains)

    def catalogue(self, realm: Realm) -> Catalogue:
        return self.store.catalogue(realm)

    def rates(self, realm: Realm) -> Rates:
        """The rates of a realm's coins, at most 30 seconds old; in the sandbox always the same, and always fresh, unless a
        merchant sets its own."""
        if realm == "test":
            return self._sandbox_rates
        if self.settings.rates_providers == ("fixed",):
            return self._fixed_rates
        return self.store.rates()

    @cached_property
    def _sandbox_rates(self) -> Rates:
        from chalicelib.usecases.sandbox.rates import OverridableRates

        return OverridableRates(self._fixed_rates, lambda: self.store)

    @cached_property
    def _fixed_rates(self) -> Rates:
        from chalicelib.rates.fixed import PAIRS, Fixed
        from chalicelib.usecases.catalogue.rates import constant_rates

        return constant_rates(Fixed(), PAIRS, self.realm_clock.now_ms)

    @cached_property
    def sandbox_time(self) -> SandboxTime:
        from chalicelib.usecases.sandbox.clock import MOST_IN_ALL, SandboxTime

        return SandboxTime(self.store, DEMO_ADVANCE if self.settings.stage == "demo" else MOST_IN_ALL)

    def ahead_ms(self) -> int:
        """How far the test realm's clock is ahead of the machine's, in milliseconds."""
        return self.sandbox_time.ahead_ms()

    @cached_property
    def realm_clock(self) -> Clock:
        """The time of the realm set by `in_realm`. `clock` is the machine's, for everything that belongs to no realm."""
        from chalicelib.usecases.base.clock import RealmClock

        return RealmClock(self.clock, self.ahead_ms)

    def clock_of(self, realm: Realm) -> Clock:
        """The time of one realm."""
        from chalicelib.usecases.base.clock import RealmClock

        return RealmClock(self.clock, self.ahead_ms, realm)
