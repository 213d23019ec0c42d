"""Managing API keys: making, changing, revoking and rotating them, by the operator or by another key.

By another key: nobody gets more by it than it has. A key that another one makes or widens has no permission, no address, no limit
and no life beyond its maker's. So a stolen key, or a junior's, can not be turned into a better one. A key
with a request limit of its own makes none at all: each would count from nothing. The key that makes or changes another is read once
more in the transaction that does it: what a revoked key had under way comes too late.

A production key reaches its merchant's test keys too, by the same rules: the sandbox has no money, and its keys are a part of what
the merchant's owner hands out. A test key reaches test keys alone: test keys lie in programs and on developers' machines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypedDict, cast

from chalicelib.domain.errors import BusinessRule, NotFound, ServiceError
from chalicelib.domain.ids import Realm, TenantId, environment, tenant_id
from chalicelib.domain.merchants.merchants import ApiKey, Level, Tally
from chalicelib.domain.times import iso
from chalicelib.domain.versions import next_version
from chalicelib.usecases.base.creation import Creation, Prepared
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.base.views import without_none
from chalicelib.usecases.merchants.access import alive, issue_key, limits_of, networks_of
from chalicelib.usecases.merchants.suspension import unless_suspended
from chalicelib.usecases.ports.changes import Change, Enforce, Save, Still
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store

MAX_KEYS = 100
"""Keys of one tenant that are neither revoked nor replaced."""
MAX_OVERLAP = 7 * 86_400
"""Seconds that a rotated key may stay valid beside its successor."""

Made = tuple[ApiKey, str]
"""A new key's record, and the key itself."""


class NotHeld(ServiceError):
    """The maker wants to hand out a permission or limit that it does not have."""

    code = "INSUFFICIENT_PERMISSIONS"

    def __init__(self, required: Sequence[str], available: Sequence[str]) -> None:
        super().__init__(
            "A key can not hand out what it does not hold", {"required": ", ".join(required), "available": list(available)}
        )


class NoLongerValid(ServiceError):
    """The asking key was revoked or expired while its request was under way."""

    code = "INVALID_API_KEY"

    def __init__(self, key: ApiKey) -> None:
        super().__init__("This API key is not valid any more", {"key_prefix": key.prefix})


class Terms(TypedDict, total=False):
    """The terms of a key in a request, in the words of `ApiKey`. A term left out is the maker's, or stays as it is."""

    name: str
    permissions: tuple[str, ...]
    ip_whitelist: tuple[str, ...]
    rate_limit: int | None
    daily_limit: int | None
    expires_at: int | None


class ApiKeys:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def get(self, tenant: TenantId, id: str) -> ApiKey:
        """Raises NotFound."""
        key = self._store.get(ApiKey, tenant=tenant, id=id)
        if key is None:
            raise NotFound("API key not found", {"id": id})
        return key

    def find(self, asker: ApiKey, id: str) -> ApiKey:
        """A key that `asker` reaches: its merchant's of its own realm, for a production key also of the sandbox. One round trip.

        Raises NotFound, also for another merchant's key and for a production key that a test key asks for.
        """
        reached = reached_by(asker)
        if len(reached) == 1:
            return self.get(reached[0], id)
        wanted = [(ApiKey, {"tenant": tenant, "id": id}) for tenant in reached]
        for key in self._store.get_many(wanted):
            if key is not None:
                return cast(ApiKey, key)
        raise NotFound("API key not found", {"id": id})

    def every(self, tenant: TenantId) -> Iterator[ApiKey]:
        """All keys of a tenant, revoked ones too, oldest first. Raises Unavailable."""
        after: str | None = None
        while True:
            page = self._store.page(ApiKey, limit=500, after=after, tenant=tenant)
            yield from page.items
            after = page.next
            if after is None:
                return

    def add(self, key: ApiKey) -> None:
        """Store a new key, as the operator does: no maximum, no maker. Raises Conflict when it exists, BusinessRule where its
        merchant is suspended, Unavailable."""

        def decide() -> None:
            unsuspended = unless_suspended(self._store, key.tenant)
            self._store.commit([*_saved(key), Save(self._tally(key.tenant).plus(1)), unsuspended])

        until_settled(decide)

    def creating(self, maker: ApiKey, terms: Terms, level: Level, realm: Realm | None = None) -> Creation[Made]:
        """Prepare a new key of the maker's merchant, with the maker's limits where `terms` name none. `realm` None: the maker's.

        Raises BusinessRule for a realm that the maker does not reach. A try raises NotHeld, BusinessRule, NoLongerValid.
        """
        owner = tenant_id(maker.merchant, realm or maker.realm)
        if owner not in reached_by(maker):
            raise BusinessRule("type", "a test key makes test keys only")

        def prepare() -> Prepared[Made]:
            now = self._clock.now_ms()
            by = self._standing(maker, now)
            _check_unlimited(by)
            inherited = Terms(ip_whitelist=by.ip_whitelist, expires_at=by.expires_at)
            asked: dict[str, Any] = {**inherited, **terms}
            made = issue_key(
                merchant=by.merchant, realm=realm or by.realm, level=level, now_ms=now, enterprise=by.enterprise, created_by=by.id,
                **asked,
            )  # fmt: skip
            _check_future(made[0], now)
            _check_level(by, made[0])
            _check_within(by, made[0])
            tally = self._tally(owner)
            if tally.count >= MAX_KEYS:
                raise BusinessRule("name", f"at most {MAX_KEYS} keys may be in use: revoke those that are not needed")
            unsuspended = unless_suspended(self._store, owner)
            return Prepared(made, [Still(by), *_saved(made[0]), Save(tally.plus(1)), unsuspended])

        return Creation(self._store, prepare)

    def update(self, changer: ApiKey, id: str, terms: Terms) -> ApiKey:
        """Change the given terms. Each wider term must be one that the changer could give to a key of its own.

        Raises NotFound, NotHeld, BusinessRule, NoLongerValid.
        """
        wanted: dict[str, Any] = {**terms}

        def decide() -> ApiKey:
            now = self._clock.now_ms()
            before = self.find(changer, id)
            by = before if id == changer.id else self._standing(changer, now)
            _check_level(by, before)
            _check_in_use(before, now)
            after = replace(next_version(before), **wanted)
            if "expires_at" in wanted:
                _check_future(after, now)
            if _wider(before, after):
                _check_within(by, after)
            if replace(after, version=before.version) == before:
                return before
            self._store.commit([*_unless_itself(by, before), *_saved(after)])
            return after

        return until_settled(decide)

    def revoke(self, tenant: TenantId, id: str, revoker: ApiKey | None = None) -> ApiKey:
        """Refuse the key from now on; one that was revoked before keeps its time. `revoker` None: the operator.

        Raises NotFound, NotHeld.
        """

        def decide() -> ApiKey:
            before = self.get(tenant, id) if revoker is None else self.find(revoker, id)
            if revoker is not None:
                _check_level(revoker, before)
            if before.revoked_at is not None:
                return before
            after = replace(next_version(before), revoked_at=self._clock.now_ms())
            # A replaced key has left the count already: its successor took its place.
            counted: list[Change] = [] if before.replaced_by else [Save(self._tally(before.tenant).plus(-1))]
            self._store.commit([*_saved(after), *counted])
            return after

        return until_settled(decide)

    def rotating(self, changer: ApiKey, id: str, overlap: int) -> Creation[Made]:
        """Prepare a successor with the same terms. The key itself stays valid for `overlap` seconds, without any it is revoked at
        once.

        A try raises NotFound, NotHeld, NoLongerValid, BusinessRule; that also where the key was rotated before: two would live.
        """

        def prepare() -> Prepared[Made]:
            now = self._clock.now_ms()
            before = self.find(changer, id)
            by = before if id == changer.id else self._standing(changer, now)
            _check_level(by, before)
            _check_in_use(before, now)
            _check_unlimited(by)
            _check_within(by, before)
            made = issue_key(
                merchant=before.merchant, realm=before.realm, level=before.level, name=before.name,
                permissions=before.permissions, now_ms=now, ip_whitelist=before.ip_whitelist, rate_limit=before.rate_limit,
                daily_limit=before.daily_limit, expires_at=before.expires_at, enterprise=before.enterprise, created_by=by.id,
            )  # fmt: skip
            until = now + overlap * 1000
            left = replace(next_version(before), replaced_by=made[0].id)
            # With no overlap it must not depend on whose clock is ahead.
            after = (
                replace(left, expires_at=min(until, before.expires_at or until)) if overlap > 0 else replace(left, revoked_at=now)
            )
            unsuspended = unless_suspended(self._store, before.tenant)
            return Prepared(made, [*_unless_itself(by, before), *_saved(after), *_saved(made[0]), unsuspended])

        return Creation(self._store, prepare)

    def _standing(self, key: ApiKey, now: int) -> ApiKey:
        """The key that asks, as it is now. Raises NoLongerValid."""
        found = self._store.get(ApiKey, tenant=key.tenant, id=key.id)
        if found is None or not alive(found, now):
            raise NoLongerValid(key)
        return found

    def _tally(self, tenant: TenantId) -> Tally:
        return self._store.get(Tally, tenant=tenant, of="keys") or Tally(tenant, "keys", 0, 0)


def reached_by(key: ApiKey) -> tuple[TenantId, ...]:
    """The tenants whose API keys `key` may know of: its own, and for a production key its merchant's sandbox."""
    return (key.tenant,) if key.realm == "test" else (key.tenant, tenant_id(key.merchant, "test"))


def _saved(key: ApiKey) -> list[Change]:
    return [Save(key), Enforce(key)]


def _check_future(key: ApiKey, now: int) -> None:
    if key.expires_at is not None and key.expires_at <= now:
        raise BusinessRule("expires_at", "must be in the future")


def _unless_itself(by: ApiKey, key: ApiKey) -> list[Change]:
    """That `by` is still what was looked at. Where it changes itself, the version of what is saved says so already."""
    return [] if by.id == key.id else [Still(by)]


def _check_unlimited(maker: ApiKey) -> None:
    """Each key has a count of its own, so a key that makes keys could ask as often as it likes."""
    if limits_of(maker) != limits_of(replace(maker, rate_limit=None, daily_limit=None)):
        raise BusinessRule("restrictions", "a key with a request limit of its own makes no other keys")


def _check_in_use(key: ApiKey, now: int) -> None:
    if key.revoked_at is not None:
        raise BusinessRule("id", "this key is revoked")
    if key.replaced_by is not None:
        raise BusinessRule("id", f"this key was replaced by {key.replaced_by}")
    if not alive(key, now):
        raise BusinessRule("id", "this key has expired")


def _check_level(changer: ApiKey, key: ApiKey) -> None:
    if key.level == "admin" and changer.level != "admin":
        raise NotHeld(["admin"], [changer.level, *changer.permissions])


def _wider(before: ApiKey, after: ApiKey) -> bool:
    """Whether `after` may do anything that `before` may not."""
    return (
        not set(after.permissions) <= set(before.permissions)
        or not _covers(before.ip_whitelist, after.ip_whitelist)
        or any(new.limit > old.limit for new, old in zip(limits_of(after), limits_of(before), strict=True))
        or not _no_later(after.expires_at, before.expires_at)
    )


def _check_within(giver: ApiKey, key: ApiKey) -> None:
    """Everything of `key` must be within what `giver` has itself. Raises NotHeld, BusinessRule."""
    missing = [p for p in key.permissions if p not in giver.permissions]
    if missing:
        raise NotHeld(missing, giver.permissions)
    if not _covers(giver.ip_whitelist, key.ip_whitelist):
        allowed = ", ".join(giver.ip_whitelist)
        raise BusinessRule("restrictions.ip_whitelist", f"must lie within the addresses of the key that asks for it: {allowed}")
    mine, wanted = limits_of(giver), limits_of(key)
    for place, field in ((0, "rate_limit"), (2, "daily_limit")):
        if wanted[place].limit > mine[place].limit:
            raise BusinessRule(f"restrictions.{field}", f"may be at most {mine[place].limit}, as that of the key that asks for it")
    if not _no_later(key.expires_at, giver.expires_at):
        raise BusinessRule("expires_at", f"must not be after {iso(giver.expires_at or 0)}, when the key that asks for it expires")


def _covers(outer: tuple[str, ...], inner: tuple[str, ...]) -> bool:
    """Whether every address of `inner` is one of `outer`. No list means every address."""
    if not outer:
        return True
    around = networks_of(outer)
    return bool(inner) and all(any(_inside(one, other) for other in around) for one in networks_of(inner))


def _inside(one: Any, other: Any) -> bool:
    return one.version == other.version and bool(one.subnet_of(other))


def _no_later(one: int | None, other: int | None) -> bool:
    return other is None or (one is not None and one <= other)


def key_view(key: ApiKey, now: int, used: int | None = None) -> dict[str, Any]:
    """The owner's view of a key, never the key itself: the published record and its status. `used`: the last use, if known.

    The limits are those that hold: a key's own may only lower its type's.
    """
    minute, _, day = limits_of(key)
    shown = without_none(
        {
            "key_id": key.id,
            "name": key.name,
            "key_prefix": key.prefix,
            "type": environment(key.realm),
            "level": key.level,
            "status": status_of(key, now),
            "permissions": list(key.permissions),
            "restrictions": {"ip_whitelist": list(key.ip_whitelist), "rate_limit": minute.limit, "daily_limit": day.limit},
            "created_at": iso(key.created_at),
            "created_by": key.created_by,
            "revoked_at": None if key.revoked_at is None else iso(key.revoked_at),
            "replaced_by": key.replaced_by,
            "last_used_at": None if used is None else iso(used),
        }
    )
    return {**shown, "expires_at": None if key.expires_at is None else iso(key.expires_at)}


def status_of(key: ApiKey, now: int) -> str:
    """`active`, `expired`, `suspended` or `revoked` at `now`, in milliseconds since 1970."""
    if key.revoked_at is not None:
        return "revoked"
    if key.suspended_at is not None:
        return "suspended"
    return "expired" if key.expires_at is not None and key.expires_at <= now else "active"
