"""The operator's grey list, and the release of deposits held because of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from chalicelib.api.coins_by_name import misspelled
from chalicelib.api.context import Answer, Ctx
from chalicelib.api.fields import AddressText, NetworkSlug
from chalicelib.api.lists import Listing, hash_text, network, text, time
from chalicelib.api.lists.query import PageQuery
from chalicelib.api.models import Query, Request
from chalicelib.api.problems import shown
from chalicelib.api.routes import endpoint
from chalicelib.domain.errors import FieldProblem, InvalidParameter
from chalicelib.domain.screening.grey_list import GreyListEntry
from chalicelib.domain.times import iso
from chalicelib.usecases.base.views import without_none

Reason = Annotated[str, Field(max_length=500, description="Shown to merchants too.", examples=["reported as stolen"])]


GREY_LIST = Listing(
    "grey-list",
    (
        network(lambda r, _: r.network),
        hash_text("address", lambda r, _: r.shown, "The address."),
        text("reason", lambda r, _: r.reason, "Why it is on the list."),
        time("createdAt", lambda r, _: r.created_at, "When it was put there.").known_as("created_at"),
    ),
    bare=True,
)


class GreyListAdd(Request):
    """An address that shall be on the grey list."""

    network: NetworkSlug
    address: AddressText
    reason: Reason | None = None

    @classmethod
    def problems_of(cls, ctx: Ctx, sent: Mapping[str, Any], wrong: frozenset[str]) -> list[FieldProblem]:
        return misspelled(ctx, sent, wrong)


class GreyListRemove(Request):
    """Here or in the query string."""

    network: NetworkSlug | None = None
    address: AddressText | None = None

    @classmethod
    def problems_of(cls, ctx: Ctx, sent: Mapping[str, Any], wrong: frozenset[str]) -> list[FieldProblem]:
        return misspelled(ctx, sent, wrong)


class GreyListRemoveQuery(Query):
    network: Annotated[NetworkSlug | None, Field(description="Here or in the body.")] = None
    address: Annotated[AddressText | None, Field(description="Here or in the body.")] = None


@endpoint(
    "GET", "/addresses/grey-list", family="object", permission="addresses:read", query=GREY_LIST,
    answer="list[grey_list.Entry]", summary="All addresses of the grey list",
)  # fmt: skip
def grey_list(ctx: Ctx, query: PageQuery) -> Answer:
    """One list for all merchants, by network and address. Every key that may read addresses sees all of it."""
    entries = ctx.services.grey_list.entries(ctx.realm)
    return Answer([_entry(entry) for entry in GREY_LIST.array(ctx, query, entries)])


@endpoint(
    "POST", "/addresses/grey-list", family="object", level="admin", permission="addresses:write", body=GreyListAdd, status=201,
    creates=True, answer="grey_list.Entry", summary="Put an address on the grey list",
)  # fmt: skip
def add_to_grey_list(ctx: Ctx, body: GreyListAdd) -> Answer:
    """What it pays to a deposit address from now on is credited and held, until `POST /v1/transactions/{txId}/release`; payments
    that are seen and not confirmed yet too. A withdrawal to it waits for approval. An address that is on the list already is a
    VALIDATION_ERROR. On EVM networks an address is listed for each network by itself.
    """
    adding = ctx.services.grey_list.adding(ctx.realm, body.network, body.address, body.reason, ctx.key.id)
    return ctx.create(adding, _entry)


@endpoint(
    "DELETE", "/addresses/grey-list", family="object", level="admin", permission="addresses:write", body=GreyListRemove,
    query=GreyListRemoveQuery, answer="grey_list.Removed", errors=("NOT_FOUND",),
    summary="Take an address off the grey list",
)  # fmt: skip
def remove_from_grey_list(ctx: Ctx, body: GreyListRemove, query: GreyListRemoveQuery) -> Answer:
    """`network` and `address` are required, in the query string or in the body; where they are in both they have to be the same.

    What is held stays held until it is released. 404 for an address that is not on the list.
    """
    problems: list[FieldProblem] = []
    network = _either("network", query.network, body.network, problems)
    address = _either("address", query.address, body.address, problems)
    if problems:
        raise InvalidParameter(problems)
    entry = ctx.services.grey_list.remove(ctx.realm, network, address)
    return Answer({"address": entry.shown, "network": entry.network, "message": "removed from the grey list"})


@endpoint(
    "POST", "/transactions/{txId}/release", family="envelope", level="admin", permission="addresses:write",
    answer="transactions.Transaction", summary="Release a deposit that is held, below the minimum, or set aside",
)  # fmt: skip
def release_transaction(ctx: Ctx) -> Answer:
    """For a deposit of any merchant of the key's realm, by its id (`tx_…`) or by the chain's hash: its money becomes available and
    counts for its invoice. Where several movements to its merchant share the hash, or several that were held back, the
    VALIDATION_ERROR names their ids, and what can be released. A hash of which nothing was ever held back is a NOT_FOUND.

    A deposit from the grey list is held from its confirmation on; one that is pending, was released before, or was never held is a
    VALIDATION_ERROR. Should a reorganisation take it out of the chain and bring it back, it is not held again.

    A deposit with the flag `below_minimum` can be released at any time while it is in the chain or waits to be: the flag goes, it
    is credited with its confirmations (at once where it has them), and it counts for the invoice of its address like any payment of
    its time: late after the invoice's end, `overpaid` where the invoice is completed.

    A deposit with the flag `set_aside` can be released at any time while it is in the chain or waits to be, and is booked like one
    that comes now: pending before its confirmations, else credited at once. A VALIDATION_ERROR while what has been received of the
    coin (of its merchant, its invoice or its address) would come to more than 10^37 units with it.
    """
    released = ctx.services.releases(ctx.realm).release(ctx.realm, ctx.param("txId"), ctx.key.id)
    return Answer(ctx.views.deposit(released))


def _entry(entry: GreyListEntry) -> dict[str, Any]:
    return without_none(
        {"address": entry.shown, "network": entry.network, "reason": entry.reason, "createdAt": iso(entry.created_at)}
    )


def _either(name: str, first: str | None, second: str | None, problems: list[FieldProblem]) -> str:
    """The value that was sent in the query, the body, or alike in both."""
    sent = {value for value in (first, second) if value is not None}
    if len(sent) == 1:
        return sent.pop()
    constraint = "is required, in the query string or in the body" if not sent else "is another one in the body than in the query"
    problems.append(FieldProblem(name, shown(name, first), (constraint,)))
    return ""
