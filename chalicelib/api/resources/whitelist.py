"""The merchant's whitelist of withdrawal addresses."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.fields import AddressText, Label, NetworkSlug, amount_schema, amount_text
from chalicelib.api.lists import Listing, ListQuery, hash_text, network, text, time
from chalicelib.api.lists.common import by_id
from chalicelib.api.models import ChangeSignature, Request
from chalicelib.api.routes import endpoint
from chalicelib.domain.ids import network_parts, place_in_time
from chalicelib.domain.money import format_units, parse_units
from chalicelib.domain.times import iso
from chalicelib.domain.withdrawals.whitelist import WhitelistEntry
from chalicelib.usecases.merchants.settings import MOST_SIGNERS


def plain_amount(value: Any) -> str:
    """An amount of whatever coin, zero allowed, without needless zeros. Raises PydanticCustomError."""
    text = amount_text(value)
    decimals = len(text.partition(".")[2])
    return format_units(parse_units(text, decimals), decimals)


PlainAmount = Annotated[str, BeforeValidator(plain_amount), amount_schema(positive=False)]
_DAILY = Field(description="At most this much in 24 hours, of each coin in its own units; 0 or null: no limit.", examples=["1000"])
_MONTHLY = Field(
    description="At most this much in 30 days, of each coin in its own units; 0 or null: no limit.", examples=["20000"]
)
_SIGNATURES: Any = Field(
    max_length=MOST_SIGNERS,
    description="Needed while multisig is enabled, where more money could go than before: the refusal shows the text to sign.",
    default_factory=list,
)
_LABEL = Field(description="What the merchant calls it.", examples=["Payroll"])


class WhitelistAdd(Request):
    """An address that shall be trusted."""

    address: Annotated[AddressText, Field(examples=["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"])]
    network: NetworkSlug
    label: Annotated[Label, _LABEL] = ""
    daily_limit: Annotated[PlainAmount | None, _DAILY] = None
    monthly_limit: Annotated[PlainAmount | None, _MONTHLY] = None
    signatures: Annotated[list[ChangeSignature], _SIGNATURES]


class WhitelistChange(Request):
    """What is not sent stays; a limit of null is taken away."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [{"required": [name]} for name in ("label", "daily_limit", "monthly_limit")],
            "examples": [{"label": "Payroll", "daily_limit": "500"}],
        }
    )
    selecting = frozenset({"signatures"})

    label: Annotated[Label, _LABEL] = ""
    daily_limit: Annotated[PlainAmount | None, _DAILY] = None
    monthly_limit: Annotated[PlainAmount | None, _MONTHLY] = None
    signatures: Annotated[list[ChangeSignature], _SIGNATURES]


WHITELIST = Listing(
    "whitelist",
    (
        time("created_at", lambda r, _: r.created_at, "When it was added.").known_as("createdAt").indexed("time"),
        text("id", lambda r, _: r.id, "The entry's id.", sortable=False),
        hash_text("address", lambda r, _: r.address, "The address."),
        network(lambda r, _: network_parts(r.network)[1]),
        text("label", lambda r, _: r.label, "Its label."),
        time("updated_at", lambda r, _: r.updated_at, "When it changed last.").known_as("updatedAt"),
    ),
    family="wl",
    indexes=frozenset({"time"}),
    position=lambda ms: place_in_time(ms, ""),
    visible=lambda r: r.removed_at is None,
    keyed={"id": by_id(WhitelistEntry)},
    place=lambda r: place_in_time(r.created_at, r.id),
)


def signed(signatures: list[ChangeSignature]) -> list[tuple[str, str]]:
    """As use cases take them."""
    return [(made.signer_id, made.signature) for made in signatures]


def entry_view(entry: WhitelistEntry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "address": entry.address,
        "network": network_parts(entry.network)[1],
        "label": entry.label,
        "daily_limit": entry.daily_limit,
        "monthly_limit": entry.monthly_limit,
        "created_at": iso(entry.created_at),
        "updated_at": iso(entry.updated_at),
    }


@endpoint(
    "POST", "/whitelist/addresses", family="envelope", permission="whitelist:write", body=WhitelistAdd, status=201, creates=True,
    answer="whitelist.WhitelistAddress", errors=("INVALID_ADDRESS",), summary="Trust an address",
)  # fmt: skip
def add_to_whitelist(ctx: Ctx, body: WhitelistAdd) -> Answer:
    """The limits count for every coin by itself, in its own units, over rolling 24 hours and 30 days, whether the whitelist is
    enforced or not; what was paid while an address had no limits does not count. Withdrawals over the daily limit are
    `DAILY_LIMIT_EXCEEDED`, over the monthly one `VALIDATION_ERROR`. An address that is there already is `VALIDATION_ERROR`.

    While multisig is enabled, `required_signatures` signers have to sign: send it without `signatures` first, the refusal shows the
    text. Otherwise a stolen key could make its thief somebody to be trusted."""
    adding = ctx.services.whitelist.adding(
        ctx.tenant,
        ctx.catalogue.networks[body.network],
        body.address,
        body.label,
        body.daily_limit,
        body.monthly_limit,
        signatures=signed(body.signatures),
    )
    return ctx.create(adding, entry_view)


@endpoint(
    "GET", "/whitelist/addresses", family="envelope", permission="whitelist:read", query=WHITELIST,
    answer="list[whitelist.WhitelistAddress]", summary="All trusted addresses",
)  # fmt: skip
def list_whitelist(ctx: Ctx, query: ListQuery) -> Answer:
    """Newest first. They count for all coins of their network."""
    found, pagination = WHITELIST.page(ctx, query)
    return Answer([entry_view(entry) for entry in found], pagination)


@endpoint(
    "GET", "/whitelist/addresses/{id}", family="envelope", permission="whitelist:read", answer="whitelist.WhitelistAddress",
    summary="One trusted address",
)  # fmt: skip
def get_whitelisted(ctx: Ctx) -> Answer:
    """With its limits: each counts for each coin by itself."""
    return Answer(entry_view(ctx.services.whitelist.get(ctx.tenant, ctx.param("id"))))


@endpoint(
    "PUT", "/whitelist/addresses/{id}", family="envelope", permission="whitelist:write", body=WhitelistChange,
    answer="whitelist.WhitelistAddress", summary="Change the label or the limits of a trusted address",
)  # fmt: skip
def change_whitelisted(ctx: Ctx, body: WhitelistChange) -> Answer:
    """What was withdrawn to the address before still counts towards changed limits, where it had limits then. While multisig is
    enabled, raising a limit or taking it away needs signatures, as adding does; lowering it, the label and DELETE need none."""
    changes = {name: getattr(body, name) for name in body.model_fields_set - {"signatures"}}
    return Answer(entry_view(ctx.services.whitelist.change(ctx.tenant, ctx.param("id"), signed(body.signatures), **changes)))


@endpoint(
    "DELETE", "/whitelist/addresses/{id}", family="envelope", permission="whitelist:write", answer="whitelist.WhitelistAddress",
    summary="Trust an address no more",
)  # fmt: skip
def remove_from_whitelist(ctx: Ctx) -> Answer:
    """Answers the entry as it was. Withdrawals that are accepted already are not touched."""
    return Answer(entry_view(ctx.services.whitelist.remove(ctx.tenant, ctx.param("id"))))
