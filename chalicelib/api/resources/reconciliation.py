"""Reconciliation of the chains with the ledger: for the operator."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from pydantic import Field

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.fields import NetworkSlug
from chalicelib.api.models import Query, Request
from chalicelib.api.routes import endpoint
from chalicelib.domain.errors import InvalidParameter
from chalicelib.domain.reconciliation import ReconciliationOrder
from chalicelib.domain.times import iso
from chalicelib.usecases.reconciliation.reports import comparable
from chalicelib.usecases.reconciliation.views import whole_view


class ReconciliationQuery(Query):
    network: Annotated[NetworkSlug | None, Field(description="This network alone.", examples=["ethereum"])] = None
    part: Annotated[int, Field(ge=1, le=99_999, description="Further differences of that network.", examples=[2])] | None = None


class ReconciliationStart(Request):
    """Nothing has to be said."""


@endpoint(
    "GET", "/reconciliation", family="object", level="admin", permission="networks:read", query=ReconciliationQuery,
    answer="reconciliation.Reconciliation", summary="Compare the ledger with the chains: what the last runs found",
)  # fmt: skip
def reconciliation(ctx: Ctx, query: ReconciliationQuery) -> Answer:
    """Of every network the last finished run, and how far the open one has come. A run compares, coin by coin, what the ledger has
    at every address of ours with what is there on the chain, and what the chain holds in all with what merchants have. One begins
    every day, and by `POST /v1/reconciliation`.

    Where a network has more than 200 differences they are in `parts` parts: `?network=…&part=2` gives the next ones (800 in each);
    a part that there is not has none. A place that can not be read (a token that does not answer, an address with more deposits
    than can be asked for) is named as not compared, and all others are compared.

    Both calls are about networks and need the permissions of those: no merchant's balance is shown.

    What is on its way is taken into account, and an address is listed only after two looks at different blocks. Networks that were
    never compared are not listed: nothing is known of them, and `solvent` is null; so it is once a report is older than two days.
    Of a network that is out of service, and not scanned, what has come since shows as more than the ledger has.
    """
    reconciliations, rules = ctx.services.reconciliations, ctx.services.rules
    whole = reconciliations.read(ctx.catalogue)
    if query.part is None:
        return Answer(whole_view(whole, ctx.catalogue, rules, query.network))
    if query.network is None:
        raise InvalidParameter.one("part", str(query.part), "it is a part of the differences of one network: name that, too")
    return Answer(whole_view(whole, ctx.catalogue, rules, query.network, reconciliations.part(whole, query.network, query.part)))


@endpoint(
    "POST", "/reconciliation", family="object", level="admin", permission="networks:write", body=ReconciliationStart, status=201,
    creates=True, answer="reconciliation.Ordered", summary="Compare the ledger with the chains now",
)  # fmt: skip
def reconcile(ctx: Ctx, body: ReconciliationStart) -> Answer:
    """A run of every network begins within five minutes; where one is open, when that has ended. `GET /v1/reconciliation` tells how
    far they have come, and what they found. Networks that are out of service are compared, too; `notCompared` names those that can
    not be, because they have no node."""
    left = sorted(network.slug for network in ctx.catalogue.networks.values() if not comparable(network))
    return ctx.create(ctx.services.reconciliations.ordering(ctx.realm, ctx.key.id), partial(_ordered, left))


def _ordered(left: list[str], order: ReconciliationOrder) -> dict[str, Any]:
    message = f"compared now is every network but {', '.join(left)}" if left else "every network is compared now"
    return {"orderedAt": iso(order.at), "message": message, "notCompared": left}
