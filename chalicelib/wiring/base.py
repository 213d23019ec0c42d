"""What every part of `Services` finds there, whichever part makes it. Builds nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chalicelib.chains.addresses import Rules
    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.domain.catalogue.rates import Rates
    from chalicelib.domain.ids import Realm
    from chalicelib.settings import Settings
    from chalicelib.store.dynamo import DynamoStore
    from chalicelib.usecases.base.message_chains import BoundedQueues
    from chalicelib.usecases.deposits.deposits import Deposits
    from chalicelib.usecases.ports.clock import Clock
    from chalicelib.usecases.ports.keys import Deriver
    from chalicelib.usecases.ports.signing import Signer
    from chalicelib.usecases.scanning.mempool import Looks
    from chalicelib.usecases.transactions.finality import Verdicts
    from chalicelib.usecases.withdrawals.withdrawals import Withdrawals


class Parts(ABC):
    """What is shared; `Services` has all of it, or it can not be made."""

    settings: Settings
    clock: Clock
    _chains: dict[tuple[str, str], Any]
    _looks: dict[str, Looks]

    @abstractmethod
    def _client(self, service: str) -> Any: ...

    @abstractmethod
    def _ahead_ms(self) -> int: ...

    @property
    @abstractmethod
    def store(self) -> DynamoStore: ...

    @property
    @abstractmethod
    def queues(self) -> BoundedQueues: ...

    @property
    @abstractmethod
    def rules(self) -> Rules: ...

    @property
    @abstractmethod
    def realm_clock(self) -> Clock: ...

    @abstractmethod
    def clock_of(self, realm: Realm) -> Clock: ...

    @abstractmethod
    def rates(self, realm: Realm) -> Rates: ...

    @abstractmethod
    def deposits(self, realm: Realm) -> Deposits: ...

    @property
    @abstractmethod
    def withdrawals(self) -> Withdrawals: ...

    @property
    @abstractmethod
    def deriver(self) -> Deriver: ...

    @property
    @abstractmethod
    def signer(self) -> Signer: ...

    @abstractmethod
    def verdicts(self, network: Network) -> Verdicts: ...
