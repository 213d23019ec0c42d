"""The list of a merchant's addresses."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from chalicelib.api.lists.common import by_id, id_of_network, slug_of
from chalicelib.api.lists.fields import ListField, Spelled, choice, coin, hash_text, network, text, time
from chalicelib.api.lists.listing import Listing
from chalicelib.domain.addresses.addresses import ROLE_OF, Address, Mode
from chalicelib.domain.errors import InvalidParameter, NotFound
from chalicelib.domain.ids import first_id

if TYPE_CHECKING:
    from chalicelib.api.context import Ctx


def _type_field() -> ListField:
    found = choice("type", lambda r, _: r.type, tuple(ROLE_OF), "The type, by any of its names.")

    def parse(sent: str, catalogue: Any) -> str:
        return ROLE_OF[found.parse(sent, catalogue)]

    return replace(found, parse=parse)


def _called(ctx: Ctx, sent: Spelled) -> list[Address] | None:
    try:
        found = ctx.services.addresses.find(ctx.tenant, sent.sent)
    except (NotFound, InvalidParameter):
        return []
    # A service wallet's text may be on several networks, each with a record of its own, and only one of them is found by it.
    return [found] if found.type == "user" else None


ADDRESSES = Listing(
    "addresses",
    (
        time("createdAt", lambda r, _: r.created_at, "When it was made.").known_as("created_at").indexed("time"),
        text("id", lambda r, _: r.id, "The address's id.", sortable=False),
        hash_text("address", lambda r, _: r.address, "The address itself."),
        network(lambda r, _: slug_of(r.network)).indexed("asset", id_of_network),
        _type_field(),
        choice("mode", lambda r, _: r.mode, get_args(Mode), "Its mode."),
        coin(lambda r, _: r.coin, "The coin that it was made for."),
        text("label", lambda r, _: r.label, "Its label."),
        text("invoiceId", lambda r, _: r.invoice_id, "The invoice that it was made for.", sortable=False),
    ),
    kind=Address,
    family="addr",
    indexes=frozenset({"time", "asset"}),
    position=lambda ms: first_id("addr", ms),
    visible=lambda r: not r.archived,
    keyed={"id": by_id(Address), "address": _called},
)
