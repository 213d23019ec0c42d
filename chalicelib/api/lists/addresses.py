"""The list of a merchant's addresses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

from chalicelib.api.lists.common import id_of_network, slug_of
from chalicelib.api.lists.fields import ListField, choice, coin, hash_text, network, text, time
from chalicelib.api.lists.listing import Listing
from chalicelib.domain.addresses import ROLE_OF, Address, Mode
from chalicelib.domain.ids import first_id


def _type_field() -> ListField:
    found = choice("type", lambda r, _: r.type, tuple(ROLE_OF), "The type, by any of its names.")

    def parse(sent: str, catalogue: Any) -> str:
        return ROLE_OF[found.parse(sent, catalogue)]

    return replace(found, parse=parse)


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
)
