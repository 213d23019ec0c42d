"""Merchants: the operator lists, makes, suspends and resumes them, and makes each one's first API key."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StrictBool, StringConstraints

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.lists import Listing, ListQuery, choice, text, time
from chalicelib.api.models import Request
from chalicelib.api.resources.api_keys import KeyName, KeyTerms, Permissions
from chalicelib.api.routes import endpoint
from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.ids import MerchantId, Realm, environment, first_id, tenant_id
from chalicelib.domain.merchants.merchants import Merchant
from chalicelib.domain.merchants.suspensions import ListedMerchant, standing_of
from chalicelib.domain.times import iso
from chalicelib.usecases.merchants.access import permissions_of
from chalicelib.usecases.merchants.api_keys import Terms, key_view

MOST_NAME = 100


class MerchantCreate(Request):
    """A merchant that shall be made."""

    name: Annotated[
        str,
        StringConstraints(strip_whitespace=True),
        Field(min_length=1, max_length=MOST_NAME, description="What the operator calls it.", examples=["Acme Shoes"]),
    ]


class MerchantChange(Request):
    """Whether it is suspended."""

    suspended: Annotated[
        StrictBool, Field(description="True: its keys are refused, and its withdrawals wait. False: resumed.", examples=[True])
    ]
    reason: (
        Annotated[
            str, Field(min_length=1, max_length=200, description="Why; for other operators.", examples=["documents are missing"])
        ]
        | None
    ) = None


class FirstKey(KeyTerms):
    """The first API key of a merchant."""

    name: KeyName = "first key"
    permissions: Permissions = Field(default=["full"])

    def terms(self) -> Terms:
        return {**super().terms(), "name": self.name, "permissions": permissions_of(self.permissions)}


def _status(merchant: ListedMerchant, realm: Realm) -> str:
    return "suspended" if realm in merchant.suspended else "active"


def _by_id(ctx: Ctx, id: str) -> list[ListedMerchant]:
    found = ctx.services.store.get(ListedMerchant, id=id)
    return [] if found is None else [found]


MERCHANTS = Listing(
    "merchants",
    (
        time("created_at", lambda r, _: r.created_at, "When it was made.").known_as("createdAt").indexed("time"),
        text("id", lambda r, _: r.id, "The merchant's id.", sortable=False),
        text("name", lambda r, _: r.name, "Its name."),
        choice("status", lambda r, c: _status(r, c.realm), ("active", "suspended"), "Whether it is suspended."),
    ),
    kind=ListedMerchant,
    partition=lambda _: {},
    position=lambda ms: first_id("mch", ms),
    keyed={"id": _by_id},
)


@endpoint(
    "GET", "/merchants", family="envelope", level="admin", permission="merchant:read", query=MERCHANTS,
    answer="list[merchants.ListedMerchant]", summary="All merchants, newest first",
)  # fmt: skip
def list_merchants(ctx: Ctx, query: ListQuery) -> Answer:
    """The operator's own one among them. `status` is that of the environment of the key that asks."""
    found, pagination = MERCHANTS.page(ctx, query)
    shown = [{"id": m.id, "name": m.name, "status": _status(m, ctx.realm), "created_at": iso(m.created_at)} for m in found]
    return Answer(shown, pagination)


@endpoint(
    "POST", "/merchants", family="envelope", level="admin", permission="merchant:write", body=MerchantCreate, status=201,
    creates=True, answer="merchants.MerchantDetails", summary="Make a merchant",
)  # fmt: skip
def create_merchant(ctx: Ctx, body: MerchantCreate) -> Answer:
    """It has no API key yet: `POST /merchants/{id}/keys` makes its first one. Names need not be unique."""
    _check_stage(ctx)
    return ctx.create(ctx.services.directory.creating(body.name), lambda made: _view(ctx, made))


@endpoint(
    "GET", "/merchants/{id}", family="envelope", level="admin", permission="merchant:read", answer="merchants.MerchantDetails",
    summary="One merchant",
)  # fmt: skip
def get_merchant(ctx: Ctx) -> Answer:
    """Its name, and whether it is suspended. Nothing of its business: balances, invoices and payments are its own keys' to see."""
    return Answer(_view(ctx, ctx.services.directory.get(ctx.param("id"))))


@endpoint(
    "PUT", "/merchants/{id}", family="envelope", level="admin", permission="merchant:write", body=MerchantChange,
    answer="merchants.MerchantDetails", summary="Suspend a merchant, or resume it",
)  # fmt: skip
def change_merchant(ctx: Ctx, body: MerchantChange) -> Answer:
    """While a merchant is suspended its API keys are refused (`INSUFFICIENT_PERMISSIONS`, with a message that says so), nobody
    makes keys for it, and its withdrawals wait as `pending` with `pending_reason: suspended`. Money that arrives is credited, its
    webhooks are sent, and what was started goes on to its end. Resumed, its keys are let in again, and its withdrawals go on within
    a few minutes.

    A production key suspends the merchant in both environments, and resumes it in both; a test key in its sandbox alone. The same
    again changes nothing but the reason. A merchant with admin keys, which is the operator's own, is a VALIDATION_ERROR.
    """
    _check_stage(ctx)
    directory, id = ctx.services.directory, ctx.param("id")
    ctx.services.suspensions.put(MerchantId(id), _realms(ctx), body.suspended, ctx.key.id, body.reason)
    return Answer(_view(ctx, directory.get(id)))


@endpoint(
    "POST", "/merchants/{id}/keys", family="envelope", level="admin", permission="keys:write", body=FirstKey, status=201,
    creates=True, answer="api_keys.NewApiKey", summary="Make a merchant's first API key",
)  # fmt: skip
def create_first_key(ctx: Ctx, body: FirstKey) -> Answer:
    """`key` is in this answer and in none after it; hand it to the merchant. It is of the environment of the key that makes it.
    Without `permissions` it may do all that a client key can, `keys:write` included, so that the merchant makes others with it;
    what the asking key lacks is `INSUFFICIENT_PERMISSIONS`. A merchant that has, or had, an API key there is a VALIDATION_ERROR:
    one that has lost all of them gets another by the operator's command line (`key`). An answer under an `Idempotency-Key` is kept
    encrypted, and repeated to the same API key alone.
    """
    _check_stage(ctx)
    first = ctx.services.first_keys.creating(ctx.key, ctx.param("id"), body.terms())
    return ctx.create(first, lambda made: {**key_view(made[0], ctx.now_ms), "key": made[1]}, secret=True)


def _realms(ctx: Ctx) -> list[Realm]:
    """The environments that the caller's word counts in: nobody in a sandbox decides about real money."""
    return [realm for realm in ctx.services.settings.realms if ctx.realm == "live" or realm == "test"]


def _view(ctx: Ctx, merchant: Merchant) -> dict[str, Any]:
    realms = _realms(ctx)
    environments = []
    for realm, found in zip(realms, ctx.services.suspensions.of(merchant.id, realms), strict=True):
        environments.append(
            {
                "type": environment(realm),
                "status": standing_of(found),
                "since": None if found is None else iso(found.since),
                "reason": None if found is None else found.reason,
                "changed_by": None if found is None else found.by,
                "has_keys": ctx.services.first_keys.has_keys(tenant_id(merchant.id, realm)),
            }
        )
    created = iso(merchant.created_at)
    return {"id": merchant.id, "name": merchant.name, "created_at": created, "environments": environments}


def _check_stage(ctx: Ctx) -> None:
    """The demo's admin key is published: with it anybody could shut out everybody."""
    if ctx.services.settings.stage == "demo":
        raise BusinessRule("id", "the demo's merchants stay as they are")
