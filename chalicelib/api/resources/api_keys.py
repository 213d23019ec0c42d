"""API keys of the merchant. A test key sees and makes test keys alone; a production key both kinds, within what it has itself."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.lists import Listing, ListQuery, choice, text, time
from chalicelib.api.lists.common import of_realms
from chalicelib.api.lists.fields import instant
from chalicelib.api.models import Request
from chalicelib.api.routes import endpoint
from chalicelib.domain.catalogue.catalogue import Catalogue
from chalicelib.domain.errors import FieldProblem, NotFound
from chalicelib.domain.ids import Realm, environment, first_id, tenant_id
from chalicelib.domain.merchants.merchants import PERMISSIONS, PRESETS, ApiKey
from chalicelib.usecases.merchants.access import canonical_range, permissions_of
from chalicelib.usecases.merchants.api_keys import MAX_OVERLAP, NotHeld, Terms, key_view, status_of

if TYPE_CHECKING:
    from chalicelib.usecases.base.creation import Creation
    from chalicelib.usecases.merchants.api_keys import Made

MAX_RANGES = 100
_MOST = 2**31 - 1


def _problem(text: str) -> PydanticCustomError:
    return PydanticCustomError("constraint", "{text}", {"text": text})


def _permission(value: Any) -> Any:
    if isinstance(value, str) and value not in PRESETS and value not in PERMISSIONS:
        raise _problem(f"must be one of: {', '.join((*PRESETS, *PERMISSIONS))}")
    return value


def _range(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return canonical_range(value)
    except ValueError as reason:
        raise _problem(str(reason)) from None


def _time(value: Any) -> Any:
    """ISO 8601. Without an offset it is UTC, as all times here; a day alone is its beginning."""
    if isinstance(value, str):
        try:
            instant(value)
        except ValueError as reason:
            raise _problem(str(reason)) from None
    return value


KeyName = Annotated[str, Field(min_length=1, max_length=100, description="What the merchant calls it.", examples=["Webshop"])]
Permission = Annotated[str, BeforeValidator(_permission)]
Permissions = Annotated[
    list[Permission],
    Field(
        min_length=1,
        max_length=100,
        description="Permissions `<resource>:<action>`, or presets: `read-only`, `write` (no payouts, no keys), `full`.",
        examples=[["addresses:read", "addresses:create"]],
    ),
]
Range = Annotated[str, BeforeValidator(_range)]
Ranges = Annotated[
    list[Range],
    Field(
        max_length=MAX_RANGES,
        description="IPv4 or IPv6 addresses or CIDR ranges. Empty: any address.",
        examples=[["203.0.113.7", "2001:db8::/32"]],
    ),
]
Limit = Annotated[int, Field(ge=1, le=_MOST)]
Expiry = Annotated[
    str,
    BeforeValidator(_time),
    Field(description="ISO 8601, in the future; without an offset it is UTC. null: never.", examples=["2027-01-31T12:00:00Z"]),
]


class RestrictionsSet(Request):
    """What is left out stays as it is, or as the key has it that makes another. `null` and `[]` take a restriction away."""

    ip_whitelist: Ranges | None = Field(default=None, description="IPv4 or IPv6 addresses or CIDR ranges. Empty: any address.")
    rate_limit: Limit | None = Field(
        default=None, description="Requests per minute; may only lower the limit of the key's type.", examples=[60]
    )
    daily_limit: Limit | None = Field(
        default=None, description="Requests per day; may only lower the limit of the key's type.", examples=[5000]
    )


class IpRestrictions(Request):
    """The other published form of `restrictions.ip_whitelist`."""

    enabled: bool = Field(description="Whether the list counts.", examples=[True])
    allowed_ips: Ranges = Field(default_factory=list)

    @property
    def whitelist(self) -> tuple[str, ...]:
        return tuple(self.allowed_ips) if self.enabled else ()


class KeyTerms(Request):
    """Restrictions and expiry of a key."""

    restrictions: RestrictionsSet | None = Field(default=None, description="What the key shall be limited to.")
    ip_restrictions: IpRestrictions | None = Field(default=None, description="In the place of `restrictions`.")
    expires_at: Expiry | None = Field(default=None)

    @classmethod
    def cross(cls, sent: Mapping[str, Any], wrong: frozenset[str], catalogue: Catalogue) -> list[FieldProblem]:
        if sent.get("restrictions") is not None and sent.get("ip_restrictions") is not None:
            return [FieldProblem("ip_restrictions", None, ("is another form of restrictions: send one of the two",))]
        other = sent.get("ip_restrictions")
        if isinstance(other, dict) and "ip_restrictions" not in wrong and other.get("enabled") and not other.get("allowed_ips"):
            return [FieldProblem("ip_restrictions.allowed_ips", other.get("allowed_ips"), ("must name an address when enabled",))]
        return []

    def terms(self) -> Terms:
        """What was sent, in the domain's words."""
        terms = Terms()
        if self.restrictions is not None:
            given = self.restrictions.model_fields_set
            if "ip_whitelist" in given:
                terms["ip_whitelist"] = tuple(dict.fromkeys(self.restrictions.ip_whitelist or ()))
            if "rate_limit" in given:
                terms["rate_limit"] = self.restrictions.rate_limit
            if "daily_limit" in given:
                terms["daily_limit"] = self.restrictions.daily_limit
        if self.ip_restrictions is not None:
            terms["ip_whitelist"] = tuple(dict.fromkeys(self.ip_restrictions.whitelist))
        if "expires_at" in self.model_fields_set:
            at = self.expires_at
            terms["expires_at"] = None if at is None else instant(at).low
        return terms


class KeyCreate(KeyTerms):
    """A key that shall be made."""

    name: KeyName
    type: Literal["production", "test"] | None = Field(
        default=None,
        description="That of the key that asks is the default. A production key may make a `test` key, never the other way.",
        examples=["test"],
    )
    level: Literal["client", "admin"] = Field(default="client", description="`admin` for admin keys only.")
    permissions: Permissions

    def terms(self) -> Terms:
        return {**super().terms(), "name": self.name, "permissions": permissions_of(self.permissions)}


class KeyUpdate(KeyTerms):
    """What is left out stays."""

    selecting = frozenset()

    name: KeyName | None = None
    permissions: Permissions | None = None

    def terms(self) -> Terms:
        terms = super().terms()
        if self.name is not None:
            terms["name"] = self.name
        if self.permissions is not None:
            terms["permissions"] = permissions_of(self.permissions)
        return terms


_now: ContextVar[int] = ContextVar("now")
"""The request's time in milliseconds since 1970: whether a key of the list has expired depends on it."""


def _known(ctx: Ctx, id: str) -> list[ApiKey]:
    """The key with this id, where the asking key may know of it."""
    try:
        return [ctx.services.api_keys.find(ctx.key, id)]
    except NotFound:
        return []


API_KEYS = Listing(
    "api-keys",
    (
        time("created_at", lambda r, _: r.created_at, "When it was made.").known_as("createdAt").indexed("time"),
        text("key_id", lambda r, _: r.id, "The key's id.", sortable=False),
        text("name", lambda r, _: r.name, "Its name."),
        choice(
            "type",
            lambda r, _: environment(r.realm),
            ("production", "test"),
            "Without it, that of the key that asks. A production key may ask for `test`; a test key finds no others.",
        ).indexed("tenant"),
        choice(
            "status",
            lambda r, _: status_of(r, _now.get()),
            ("active", "expired", "revoked", "suspended"),
            "What it is now.",
            sortable=False,
        ),
        choice("level", lambda r, _: r.level, ("client", "admin"), "Whose operations it may do."),
        time("expires_at", lambda r, _: r.expires_at, "When it ends by itself."),
        time("revoked_at", lambda r, _: r.revoked_at, "When it was revoked."),
    ),
    kind=ApiKey,
    position=lambda ms: first_id("key", ms),
    keyed={"key_id": _known},
)


class KeyRotate(Request):
    """How the old key ends."""

    overlap: Annotated[int, Field(ge=0, le=MAX_OVERLAP)] = Field(
        default=0, description="Seconds that the old key stays valid; 0 revokes it at once.", examples=[3600]
    )


@endpoint(
    "GET", "/api-keys", family="envelope", permission="keys:read", query=API_KEYS, answer="list[api_keys.ApiKey]",
    summary="The merchant's keys of one environment, newest first",
)  # fmt: skip
def list_api_keys(ctx: Ctx, query: ListQuery) -> Answer:
    """Revoked and expired keys are in it, with their `status`. `last_used_at` is exact to the minute, and in this list only.
    A production key lists its merchant's test keys with `type=test`, and both with `type[in]=production,test`.
    """
    tenants = [tenant_id(ctx.key.merchant, realm) for realm in of_realms(ctx, query)]
    token = _now.set(ctx.now_ms)
    try:
        found, pagination = API_KEYS.page(ctx, query, where=lambda key: key.tenant in tenants, tenants=tenants)
    finally:
        _now.reset(token)
    used = ctx.services.gate.last_used([key.hash for key in found])
    return Answer([key_view(key, ctx.now_ms, used.get(key.hash)) for key in found], pagination)


@endpoint(
    "POST", "/api-keys", family="envelope", permission="keys:write", body=KeyCreate, status=201, creates=True,
    answer="api_keys.NewApiKey", summary="Make a key",
)  # fmt: skip
def create_api_key(ctx: Ctx, body: KeyCreate) -> Answer:
    """`key` is in this answer and in none after it. A test key makes test keys; a production key makes production keys, and test
    keys of its merchant with `type: test`. Nobody hands out more than they have: permissions that the maker lacks are
    `INSUFFICIENT_PERMISSIONS`; addresses beyond the maker's own restriction, higher limits, and a later expiry are
    `VALIDATION_ERROR`. What is left out is the maker's. A key that has a `rate_limit` or `daily_limit` below its type's makes no
    keys: each would count from nothing. An `admin` key is made by an admin key that asks for it. At most 100 keys per environment
    are in use. An answer under an `Idempotency-Key` is kept encrypted, and repeated to the same API key alone.
    """
    realm: Realm | None = None if body.type is None else "test" if body.type == "test" else "live"
    if body.level == "admin" and ctx.key.level != "admin":
        raise NotHeld(["admin"], [ctx.key.level, *ctx.key.permissions])
    return _create(ctx, ctx.services.api_keys.creating(ctx.key, body.terms(), body.level, realm))


@endpoint(
    "GET", "/api-keys/{id}", family="envelope", permission="keys:read", answer="api_keys.ApiKey", summary="One key"
)  # fmt: skip
def get_api_key(ctx: Ctx) -> Answer:
    """Without the key itself, and without `last_used_at`, which the list has."""
    return Answer(key_view(ctx.services.api_keys.find(ctx.key, ctx.param("id")), ctx.now_ms))


@endpoint(
    "PUT", "/api-keys/{id}", family="envelope", permission="keys:write", body=KeyUpdate, answer="api_keys.ApiKey",
    summary="Change a key",
)  # fmt: skip
def update_api_key(ctx: Ctx, body: KeyUpdate) -> Answer:
    """Name, permissions, restrictions, expiry; what is left out stays. It counts from the next request on. A change that
    makes a key wider in anything (permissions, addresses, limits, expiry) must leave one that the changing key could make: within
    what it has itself, every permission of it. A key that is revoked, replaced or expired can not be changed, nor an admin key by a
    client key.
    """
    return Answer(key_view(ctx.services.api_keys.update(ctx.key, ctx.param("id"), body.terms()), ctx.now_ms))


@endpoint(
    "DELETE", "/api-keys/{id}", family="envelope", permission="keys:write", answer="api_keys.ApiKey", summary="Revoke a key",
    shows={"status": "revoked", "revoked_at": "2026-05-01T12:00:00.000Z"},
)  # fmt: skip
def revoke_api_key(ctx: Ctx) -> Answer:
    """It is refused from the next request on, and stays in the list. Revoking it again changes nothing. A key may revoke itself."""
    return Answer(key_view(ctx.services.api_keys.revoke(ctx.tenant, ctx.param("id"), ctx.key), ctx.now_ms))


@endpoint(
    "POST", "/api-keys/{id}/rotate", family="envelope", permission="keys:write", body=KeyRotate, status=201, creates=True,
    answer="api_keys.NewApiKey", summary="Put a new key in a key's place",
)  # fmt: skip
def rotate_api_key(ctx: Ctx, body: KeyRotate) -> Answer:
    """The answer is the new key, with the terms of the old one (its expiry too: a key can not prolong its own life). The old one
    stays valid for `overlap` seconds. Who rotates must hold all that the key holds, and have no request limit of its own. A key is
    rotated once. Without an overlap, a key that rotates itself can not have this answer repeated: it is revoked by then.
    """
    return _create(ctx, ctx.services.api_keys.rotating(ctx.key, ctx.param("id"), body.overlap))


def _create(ctx: Ctx, creation: Creation[Made]) -> Answer:
    return ctx.create(creation, lambda made: {**key_view(made[0], ctx.now_ms), "key": made[1]}, secret=True)
