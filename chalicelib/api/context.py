"""The request context that each handler gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from chalicelib.api.idempotency import Once, Replay
from chalicelib.api.rendering import Answer, body_text
from chalicelib.api.routes import Route
from chalicelib.domain.catalogue.catalogue import Catalogue
from chalicelib.domain.errors import NotFound
from chalicelib.domain.ids import Realm, TenantId
from chalicelib.domain.merchants.merchants import ApiKey
from chalicelib.usecases.base import activity
from chalicelib.usecases.merchants.access import Usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from chalicelib.usecases.base.creation import Creation
    from chalicelib.usecases.base.views import Views
    from chalicelib.wiring import Services

MAX_PARAM = 200
"""Characters. Ids and addresses are shorter; DynamoDB refuses keys over 1,024 bytes."""

T = TypeVar("T")

__all__ = ["Answer", "Ctx", "Replay"]


@dataclass
class Ctx:
    """One request. `now_ms` in milliseconds since 1970; `caller` is missing on public routes alone."""

    services: Services
    route: Route
    request_id: str
    source_ip: str
    now_ms: int
    path: Mapping[str, str] = field(default_factory=dict)
    caller: ApiKey | None = None
    plain_key: str = field(default="", repr=False)
    """The API key as it was sent, where an answer may have to be sealed with it: on requests with an Idempotency-Key."""
    usage: Usage | None = None
    headers: dict[str, str] = field(default_factory=dict)
    """Headers of the answer, also of one that refuses."""
    idempotency_key: str | None = None
    request_hash: str = ""
    address: str = ""
    """The path as the caller sent it, the gateway's stage included."""
    domain: str = ""
    """The host that the gateway answers under; empty in the local stack."""
    gateway_url: str | None = None
    """What the API's paths begin with at the gateway's own domain; None where no gateway is before it."""
    accepts: str = ""
    """What the caller would like to read, as its Accept header says."""
    form: bool = False
    """Whether the body was a browser's form."""
    accept_language: str = ""
    """The languages that the reader wants, as the header says it."""
    expired_version: int = 0
    """Version of an expired answer that is stored under the idempotency key and may be overwritten; 0: there is none."""

    @property
    def key(self) -> ApiKey:
        if self.caller is None:
            raise LookupError(f"{self.route.path} is public: nobody has to say who is calling")
        return self.caller

    @property
    def tenant(self) -> TenantId:
        return self.key.tenant

    @property
    def realm(self) -> Realm:
        return self.key.realm

    @cached_property
    def catalogue(self) -> Catalogue:
        return self.services.catalogue(self.realm)

    @cached_property
    def views(self) -> Views:
        from chalicelib.usecases.base.views import Views

        return Views(self.catalogue, lambda: self.services.rates(self.realm), self.now_ms, valued=True)

    def param(self, name: str) -> str:
        """A variable part of the path. Raises NotFound for one that is longer than anything we name."""
        value = self.path[name]
        if not 1 <= len(value) <= MAX_PARAM:
            raise NotFound(f"There is nothing called {value[:80]}", {name: value[:80]})
        return value

    def text(self, answer: Answer) -> str:
        """The body of `answer` in its sent form."""
        return body_text(answer, envelope=self.route.envelope, now_ms=self.now_ms, request_id=self.request_id)

    def charge(self, requests: int) -> None:
        """Count so many more requests, for a request of that much work. Raises RateLimitExceeded, Unavailable."""
        from chalicelib.api.auth import charged

        if self.caller is not None:
            self.usage = charged(self.caller, self.source_ip, self.services.gate, self.now_ms, self.headers, requests)

    def weigh(self, weight: int) -> None:
        """Let this request count as `weight` in the minute window of a live key; for a test key it stays one. To be called before
        anything is done. Raises RateLimitExceeded, Unavailable."""
        if self.realm != "live" or weight <= 1:
            return
        weighed = self.services.gate.weigh(self.key, weight, self.now_ms)
        self.usage = weighed.usage
        if weighed.refused:
            from chalicelib.api.errors import RateLimitExceeded

            raise RateLimitExceeded(weighed.usage)

    def create(self, creation: Creation[T], render: Callable[[T], Any], *, secret: bool = False) -> Answer:
        """Commit what a POST creates, with the answer about it in the same transaction; that answer. `render` makes the public
        record of what was made.

        `secret`: the answer shows one, so it is stored encrypted, and replayed to the same API key alone.
        """
        return Once(self, lambda made: self._rendered(render(made)), secret=secret).create(creation)

    def done(self, record: Any) -> Answer:
        """The answer about what a POST made outside our transactions, stored by itself: `record` is public."""
        return Once(self, self._rendered).done(record)

    def note(self) -> None:
        """Store the activity record by itself, for a change outside our transactions that has no creation, after it."""
        activity.alone(self.services.store)

    def _rendered(self, record: Any) -> Answer:
        return Answer(record, status=self.route.status, text=self.text(Answer(record)))
