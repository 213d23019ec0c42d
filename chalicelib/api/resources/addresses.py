"""Deposit addresses."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.errors import InsufficientPermissions
from chalicelib.api.models import CoinSlug, Label, Metadata, NetworkSlug, Request, chosen_coin
from chalicelib.api.paging import ListQuery, listed
from chalicelib.api.routes import endpoint
from chalicelib.domain.addresses import Address, Mode
from chalicelib.domain.errors import BusinessRule, FieldProblem
from chalicelib.domain.ids import asset_parts, network_id, network_parts
from chalicelib.domain.ledger import WalletBalance
from chalicelib.usecases.views import total_usd

Kind = Literal[
    "user", "default", "hot", "hot-wallet", "cold", "cold-wallet", "collector", "tokens_collector", "token-collector"
]  # fmt: skip
_USER = ("user", "default")


class AddressCreate(Request):
    network: NetworkSlug
    coin: CoinSlug | None = None
    mode: Literal["single", "common", "universal", "cross"] | None = None
    type: Kind = "user"
    label: Label | None = None
    metadata: Metadata | None = None

    @classmethod
    def cross(cls, sent: Any, wrong: frozenset[str], catalogue: Any) -> list[FieldProblem]:
        if sent.get("mode") == "single" and sent.get("coin") is None:
            return [FieldProblem("coin", None, ("is required when mode is single",))]
        network, coin = sent.get("network"), sent.get("coin")
        if not wrong & {"network", "coin"} and network is not None and coin is not None and catalogue.coin(network, coin) is None:
            known = ", ".join(c.slug for c in catalogue.coins_of(network))
            return [FieldProblem("coin", coin, (f"must be one of: {known} (on {network})",))]
        return []


class AddressValidate(Request):
    address: Annotated[str, Field(max_length=1000)]
    network: NetworkSlug


class AddressesQuery(ListQuery):
    network: NetworkSlug | None = None
    type: Kind | None = None


@endpoint(
    "POST", "/addresses", family="object", permission="addresses:create", rate_class="addresses.create", body=AddressCreate,
    status=201, creates=True, summary="Make a deposit address",
)  # fmt: skip
def create_address(ctx: Ctx, body: AddressCreate) -> Answer:
    """Without `mode`: the deployment's. Without `coin`: for all coins of the network."""
    if body.type not in _USER:
        if ctx.key.level != "admin":
            raise InsufficientPermissions(f"An address of type {body.type} needs an admin key", "admin", [ctx.key.level])
        raise BusinessRule("type", "wallets of the service are registered by the operator's command line")
    network = ctx.catalogue.networks[body.network]
    coin = None if body.coin is None else chosen_coin(ctx.catalogue, "coin", body.coin, body.network)
    answer = ctx.once(ctx.views.address)
    ctx.services.addresses.create(
        ctx.tenant, network, coin, _mode(ctx, body.mode), label=body.label, metadata=body.metadata, also=answer.also
    )
    return answer.answer


@endpoint(
    "GET", "/addresses", family="object", permission="addresses:read", query=AddressesQuery, envelope=True,
    summary="The merchant's addresses, newest first",
)  # fmt: skip
def list_addresses(ctx: Ctx, query: AddressesQuery) -> Answer:
    def wanted(address: Address) -> bool:
        if query.type is not None and query.type not in _USER:
            return False
        return not address.archived and query.network in (None, network_parts(address.network)[1])

    def fetch(limit: int, after: str | None, newest_first: bool) -> Any:
        return ctx.services.store.page(Address, limit=limit, after=after, newest_first=newest_first, tenant=ctx.tenant)

    found, pagination = listed(query, fetch, lambda address: address.id, wanted)
    return Answer(_with_balances(ctx, found), pagination)


@endpoint("GET", "/addresses/{address}", family="object", permission="addresses:read", summary="An address, by itself or by its id")
def get_address(ctx: Ctx) -> Answer:
    address = ctx.services.addresses.find(ctx.tenant, list(ctx.catalogue.networks), ctx.param("address"))
    record = _with_balances(ctx, [address])[0]
    return Answer({**record, "totalBalanceUSD": total_usd(record["balances"])})


@endpoint(
    "POST", "/addresses/validate", family="object", permission="addresses:read", body=AddressValidate,
    summary="Whether a text is an address of a network",
)  # fmt: skip
def validate_address(ctx: Ctx, body: AddressValidate) -> Answer:
    """Status 200 either way; `reason` says why it is none."""
    rules = ctx.services.rules
    try:
        normalized, kind, reason = rules.normalize(body.network, body.address), rules.address_type(body.network, body.address), None
    except ValueError as error:
        normalized, kind, reason = None, None, str(error)
    return Answer(
        {
            "valid": reason is None,
            "address": body.address,
            "network": body.network,
            "normalized": normalized,
            "type": kind,
            "reason": reason,
        }
    )


def _mode(ctx: Ctx, asked: str | None) -> Mode:
    match asked:
        case None:
            return ctx.services.settings.addresses_mode
        case "single" | "cross":
            return asked
    return "common"


def _with_balances(ctx: Ctx, addresses: list[Address]) -> list[dict[str, Any]]:
    """The public records, with what the ledger has on each address by network and coin."""
    rules, realm = ctx.services.rules, ctx.realm
    wanted: list[tuple[type[Any], dict[str, str]]] = []
    for address in addresses:
        for slug in address.networks:
            place = {"network": network_id(realm, slug), "address": rules.storage_form(slug, address.address)}
            wanted += [(WalletBalance, {**place, "asset": coin.asset}) for coin in ctx.catalogue.coins_of(slug)]
    units: dict[tuple[str, str], dict[tuple[str, str], int]] = {}
    for balance in ctx.services.store.get_many(wanted) if wanted else []:
        if balance is not None:
            network, coin = asset_parts(balance.asset)
            slug = network_parts(network)[1]
            units.setdefault((slug, balance.address), {})[slug, coin] = balance.units
    records = []
    for address in addresses:
        places = [(slug, rules.storage_form(slug, address.address)) for slug in address.networks]
        known = {key: value for place in places for key, value in units.get(place, {}).items()}
        records.append(ctx.views.address(address, known))
    return records
