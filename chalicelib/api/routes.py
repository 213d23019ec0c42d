"""The route table: every endpoint with all that the edge enforces. Whoever wants to know of endpoints reads it here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from chalicelib.api.errors import STATUS, Family
from chalicelib.domain.ids import Realm
from chalicelib.domain.merchants.merchants import PERMISSIONS
from chalicelib.usecases.merchants.access import RateClass

Method = Literal["GET", "POST", "PUT", "DELETE"]
RouteLevel = Literal["public", "client", "admin"]
Handler = Callable[..., Any]
H = TypeVar("H", bound=Handler)


@runtime_checkable
class ModelOf(Protocol):
    """Something whose model is made when it is first asked for: a list's has a hundred fields, and a cold start waits for none."""

    @property
    def model(self) -> type[Any]: ...


@dataclass(frozen=True, slots=True)
class Route:
    """One endpoint. `path` is without prefix and version; the handler gets the context, then body and query where it has models.

    `family` is the shape of errors, `envelope` whether a success is wrapped. `creates`: Idempotency-Key counts here.
    `realm`: keys of the other realm are refused. `status` is that of a success. `answer` names the record in it (`api.records`).
    `errors` are codes that it answers beyond those which every route of its kind does (`api.openapi.errors.codes`).
    `shows` are fields of the answer's example that are other than the record's own example has them.
    `media` is the content type of a success; what is not JSON is a page, or its file, and not in the document.
    `failure` names the record that it answers with 500 by itself, beside INTERNAL_ERROR.
    """

    method: Method
    path: str
    level: RouteLevel
    permission: str | None
    family: Family
    rate_class: RateClass
    handler: Handler
    summary: str
    body: type | None = None
    query_of: type[Any] | ModelOf | None = None
    status: int = 200
    envelope: bool = False
    creates: bool = False
    realm: Realm | None = None
    answer: str | None = None
    errors: tuple[str, ...] = ()
    shows: Mapping[str, Any] = field(default_factory=dict)
    media: str = "application/json"
    failure: str | None = None

    @property
    def query(self) -> type[Any] | None:
        """The model of its query string."""
        return self.query_of.model if isinstance(self.query_of, ModelOf) else self.query_of


ROUTES: list[Route] = []


def endpoint(
    method: Method,
    path: str,
    *,
    family: Family,
    permission: str | None = None,
    level: RouteLevel = "client",
    rate_class: RateClass | None = None,
    summary: str,
    body: type | None = None,
    query: type | ModelOf | None = None,
    status: int = 200,
    envelope: bool | None = None,
    creates: bool = False,
    realm: Realm | None = None,
    answer: str | None = None,
    errors: tuple[str, ...] = (),
    shows: Mapping[str, Any] | None = None,
    media: str = "application/json",
    failure: str | None = None,
) -> Callable[[H], H]:
    """Put the decorated function in the table. `envelope` follows the family where it is not given.

    Raises ValueError for a permission that no key can have, for a code that no error has, and for a second function at the same
    place: mistakes that must not wait for a request.
    """
    if permission is not None and permission not in PERMISSIONS:
        raise ValueError(f"{method} {path}: unknown permission {permission}")
    if not STATUS.keys() >= set(errors):
        raise ValueError(f"{method} {path}: unknown codes in {errors}")
    if any(route.method == method and route.path == path for route in ROUTES):
        raise ValueError(f"{method} {path} is there twice")

    def add(handler: H) -> H:
        ROUTES.append(
            Route(
                method=method,
                path=path,
                level=level,
                permission=permission,
                family=family,
                rate_class=rate_class or ("admin" if level == "admin" else "standard"),
                handler=handler,
                summary=summary,
                body=body,
                query_of=query,
                status=status,
                envelope=family == "envelope" if envelope is None else envelope,
                creates=creates,
                realm=realm,
                answer=answer,
                errors=errors,
                shows=shows or {},
                media=media,
                failure=failure,
            )
        )
        return handler

    return add
