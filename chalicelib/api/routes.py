"""The route table: every endpoint with all the rules that the edge enforces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypedDict, TypeVar, Unpack, runtime_checkable

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
    """A model that is made at its first use: a list's has a hundred fields, and a cold start waits for none."""

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
    `failure` names the record that it answers with 500 by itself, beside INTERNAL_ERROR. `form`: takes a browser's form too,
    and `redirects` it to another page. `versioned`: it answers under `/v1` too, as all of the interface does; a page does not.
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
    form: bool = False
    redirects: bool = False
    versioned: bool = True

    @property
    def address(self) -> str:
        """The path with the version, where it has one."""
        return f"/v1{self.path}" if self.versioned else self.path

    @property
    def query(self) -> type[Any] | None:
        """The model of the route's query string."""
        return self.query_of.model if isinstance(self.query_of, ModelOf) else self.query_of


ROUTES: list[Route] = []


class Traits(TypedDict, total=False):
    """What an endpoint may have beside its place and its summary, in the words of `Route`; `query` is its `query_of`."""

    permission: str | None
    level: RouteLevel
    rate_class: RateClass | None
    body: type | None
    query: type | ModelOf | None
    status: int
    envelope: bool | None
    creates: bool
    realm: Realm | None
    answer: str | None
    errors: tuple[str, ...]
    shows: Mapping[str, Any]
    media: str
    failure: str | None
    form: bool
    redirects: bool
    versioned: bool


def endpoint(method: Method, path: str, *, family: Family, summary: str, **traits: Unpack[Traits]) -> Callable[[H], H]:
    """Put the decorated function in the table. `envelope` follows the family where it is not given.

    Raises ValueError for a permission that no key can have, for a code that no error has, and for a second function at the same
    place: mistakes that must not wait for a request.
    """
    given: dict[str, Any] = {"permission": None, "level": "client", "envelope": None, **traits}
    _check(method, path, given)
    if given["envelope"] is None:
        given["envelope"] = family == "envelope"
    given["rate_class"] = given.get("rate_class") or ("admin" if given["level"] == "admin" else "standard")
    given["query_of"] = given.pop("query", None)

    def add(handler: H) -> H:
        ROUTES.append(Route(method=method, path=path, family=family, handler=handler, summary=summary, **given))
        return handler

    return add


def _check(method: Method, path: str, given: Mapping[str, Any]) -> None:
    permission, errors = given["permission"], given.get("errors", ())
    if permission is not None and permission not in PERMISSIONS:
        raise ValueError(f"{method} {path}: unknown permission {permission}")
    if not STATUS.keys() >= set(errors):
        raise ValueError(f"{method} {path}: unknown codes in {errors}")
    if any(route.method == method and route.path == path for route in ROUTES):
        raise ValueError(f"{method} {path} is there twice")
