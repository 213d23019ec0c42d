"""Addresses: making, reading, labelling and archiving them; their balances; their validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from chalicelib.api.coins_by_name import chosen_coin
from chalicelib.api.context import Answer, Ctx
from chalicelib.api.errors import InsufficientPermissions
from chalicelib.api.fields import NOT_NULL, AddressText, CoinSlug, Label, Metadata, NetworkSlug
from chalicelib.api.fields import slug as understood
from chalicelib.api.lists import ListQuery
from chalicelib.api.lists.addresses import ADDRESSES
from chalicelib.api.lists.coverage import covered
from chalicelib.api.models import Query, Request
from chalicelib.api.problems import shown
from chalicelib.api.resources.wallets import wallet_problems
from chalicelib.api.routes import endpoint
from chalicelib.domain.addresses.addresses import ROLE_OF, Mode
from chalicelib.domain.catalogue.catalogue import Catalogue, Network
from chalicelib.domain.errors import BusinessRule, FieldProblem
from chalicelib.domain.ids import network_id, network_parts
from chalicelib.usecases.addresses.address_balances import CoinAsked, all_balances, balance_of_coin
from chalicelib.usecases.addresses.addresses import UNCHANGED
from chalicelib.usecases.base.balance_views import total_usd
from chalicelib.usecases.wallets.service_wallets import Listed, Registered

Kind = Literal[
    "user", "default", "hot", "hot-wallet", "cold", "cold-wallet", "collector", "tokens_collector", "token-collector",
    "topup",
]  # fmt: skip


class AddressCreate(Request):
    """An address that shall be made."""

    network: NetworkSlug
    coin: CoinSlug | None = None
    mode: (
        Annotated[
            Literal["single", "common", "universal", "cross"],
            Field(
                description="`universal` is another name for `common`. Without it, the deployment's own mode; where that is cross, "
                "addresses of networks that are not EVM are common. Where it is single, `coin` is required.",
                examples=["common"],
            ),
        ]
        | None
    ) = None
    type: Annotated[Kind, Field(description="Anything but `user` (or `default`) needs an admin key.")] = "user"
    address: Annotated[AddressText, Field(description="Of a cold wallet, whose key is not here; for no other type.")] | None = None
    label: Label | None = None
    metadata: Metadata | None = None

    @classmethod
    def cross(cls, sent: Mapping[str, Any], wrong: frozenset[str], catalogue: Catalogue) -> list[FieldProblem]:
        if sent.get("mode") == "single" and sent.get("coin") is None:
            return [FieldProblem("coin", None, ("is required when mode is single",))]
        network, coin = understood(sent.get("network")), understood(sent.get("coin"))
        if wrong & {"network", "coin"} or not isinstance(network, str) or not isinstance(coin, str):
            return []
        if catalogue.coin(network, coin) is None:
            known = ", ".join(c.slug for c in catalogue.coins_of(network))
            return [FieldProblem("coin", coin, (f"must be one of: {known} (on {network})",))]
        return []

    @classmethod
    def problems_of(cls, ctx: Ctx, sent: Mapping[str, Any], wrong: frozenset[str]) -> list[FieldProblem]:
        role = ROLE_OF.get(str(sent.get("type", "user")))
        address = sent.get("address")
        if "type" in wrong or role is None or (role != "user" and ctx.key.level != "admin"):
            return []
        if role == "user" and address is not None and "address" not in wrong:
            words = "is for cold wallets: a deposit address is made here"
            return [FieldProblem("address", shown("address", address), (words,))]
        return [] if role == "user" else wallet_problems(ctx, role, sent, wrong)


class AddressChange(Request):
    """What is not sent stays as it is; null takes it away."""

    selecting = frozenset()

    label: Label | None = None
    metadata: Metadata | None = None


MOST_VALIDATED = 100
_ANY_TEXT = Field(max_length=1000, description="Any text.", examples=["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"])


class AddressValidate(Request):
    """A text that may be an address, or up to 100 of them under `addresses`."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": ["address"]}, {"required": ["addresses"]}],
            "examples": [{"network": "ethereum", "address": "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"}],
        }
    )

    address: Annotated[str | None, NOT_NULL, _ANY_TEXT] = None
    addresses: Annotated[
        list[Annotated[str, _ANY_TEXT]] | None,
        NOT_NULL,
        Field(
            min_length=1,
            max_length=MOST_VALIDATED,
            description="Several texts, in the place of `address`.",
            examples=[["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD"]],
        ),
    ] = None
    network: NetworkSlug

    @classmethod
    def cross(cls, sent: Mapping[str, Any], wrong: frozenset[str], catalogue: Catalogue) -> list[FieldProblem]:
        problems = [
            FieldProblem(name, None, ("must not be null",))
            for name in ("address", "addresses")
            if name in sent and sent[name] is None and name not in wrong
        ]
        if problems or ("address" in sent) != ("addresses" in sent):
            return problems
        words = "must not be beside addresses" if "address" in sent else "is required, or addresses"
        return [FieldProblem("address", shown("address", sent.get("address")), (words,))]


class CoinBalanceQuery(Query):
    network: Annotated[
        NetworkSlug | None, Field(description="Where the address has the coin on several networks: which of them.")
    ] = None


@endpoint(
    "POST", "/addresses", family="object", permission="addresses:create", rate_class="addresses.create", body=AddressCreate,
    status=201, creates=True, answer="addresses.Address", summary="Make a deposit address",
)  # fmt: skip
def create_address(ctx: Ctx, body: AddressCreate) -> Answer:
    """The address receives all coins of its network (mode common), of all EVM networks (cross), or is made for one coin (single).

    The service watches it for every coin it knows, and for every one that it comes to know: another coin that arrives on a single
    address is recorded, credited and collected as any, in `GET /v1/balances` and `GET /v1/transactions`; only the balances of
    that address do not show it. Each request makes a new address, also for a coin that has one. The deployment's mode
    (ADDRESSES_MODE) is that of addresses whose request names none; those that there are keep theirs when it changes. What comes
    to a single or common address on another EVM network is not seen: ask for a cross address where payers may choose.

    With an admin key and another type than user it registers a service wallet, as `POST /v1/addresses/service-wallets` does. Its
    key is generated here, or elsewhere for a cold wallet, which is given by its `address`. It holds all coins of its network:
    its mode is common.
    """
    network = ctx.catalogue.networks[body.network]
    if ROLE_OF[body.type] != "user":
        return _service_wallet(ctx, body)
    coin = None if body.coin is None else chosen_coin(ctx.catalogue, "coin", body.coin, body.network)
    mode = _mode(ctx, body.mode, network)
    creating = ctx.services.addresses.creating(ctx.tenant, network, coin, mode, label=body.label, metadata=body.metadata)
    answer = ctx.create(creating, ctx.views.address)
    ctx.services.ticks.ask(network, ctx.now_ms, ctx.now_ms)
    return answer


def _service_wallet(ctx: Ctx, body: AddressCreate) -> Answer:
    if ctx.key.level != "admin":
        raise InsufficientPermissions(f"An address of type {body.type} needs an admin key", "admin", [ctx.key.level])
    if body.mode in ("single", "cross"):
        raise BusinessRule("mode", "a service wallet holds all coins of one network: its mode is common")
    registering = ctx.services.wallets.registering(
        Listed(ctx.tenant, body.label, body.metadata),
        ctx.catalogue.networks[body.network],
        ROLE_OF[body.type],
        by=ctx.key.id,
        address=body.address,
    )
    return ctx.create(registering, _address_of(ctx))


def _address_of(ctx: Ctx) -> Any:
    def render(made: Registered) -> dict[str, Any]:
        if made.address is None:
            raise LookupError("a wallet that is registered over HTTP has an address record")
        return ctx.views.address(made.address)

    return render


@endpoint(
    "GET", "/addresses", family="object", permission="addresses:read", query=ADDRESSES, envelope=True,
    answer="list[addresses.Address]", summary="The merchant's addresses, newest first",
)  # fmt: skip
def list_addresses(ctx: Ctx, query: ListQuery) -> Answer:
    """Archived ones are left out. Of type hot, cold and collector are those that the caller's own merchant registered."""

    found, pagination = ADDRESSES.page(ctx, query)
    pagination |= covered(ctx)
    holdings = ctx.services.addresses.holdings_of(found)
    return Answer([ctx.views.address(address, there) for address, there in zip(found, holdings, strict=True)], pagination)


@endpoint(
    "GET", "/addresses/{address}", family="object", permission="addresses:read", answer="addresses.AddressRead",
    summary="An address, by itself or by its id",
)  # fmt: skip
def get_address(ctx: Ctx) -> Answer:
    """400 for a text that is neither an id nor an address of any network. An archived address is there, with `archived: true`."""
    address, holdings = ctx.services.addresses.read(ctx.tenant, ctx.param("address"))
    record = ctx.views.address(address, holdings)
    return Answer({**record, "totalBalanceUSD": total_usd(record["balances"])})


@endpoint(
    "PUT", "/addresses/{address}", family="object", permission="addresses:write", body=AddressChange,
    answer="addresses.AddressRead", summary="Change an address's label and metadata",
)  # fmt: skip
def update_address(ctx: Ctx, body: AddressChange) -> Answer:
    """`metadata` replaces what was there as a whole."""
    address, holdings = ctx.services.addresses.change(
        ctx.tenant,
        ctx.param("address"),
        label=body.label if "label" in body.model_fields_set else UNCHANGED,
        metadata=body.metadata if "metadata" in body.model_fields_set else UNCHANGED,
    )
    record = ctx.views.address(address, holdings)
    return Answer({**record, "totalBalanceUSD": total_usd(record["balances"])})


@endpoint(
    "DELETE", "/addresses/{address}", family="object", permission="addresses:write", answer="addresses.AddressRead",
    summary="Archive an address",
    shows={"archived": True},
)  # fmt: skip
def archive_address(ctx: Ctx) -> Answer:
    """It is hidden from lists and can still be read. It is watched for ever, and what arrives still counts.

    Archiving it again changes nothing and is answered the same. A service wallet's address is refused (`VALIDATION_ERROR`) while
    the wallet is in use, or was replaced and is not empty yet.
    """
    address, holdings = ctx.services.addresses.change(ctx.tenant, ctx.param("address"), archived=True)
    record = ctx.views.address(address, holdings)
    return Answer({**record, "totalBalanceUSD": total_usd(record["balances"])})


@endpoint(
    "GET", "/addresses/{address}/balances", family="object", permission="addresses:read", answer="addresses.Balances",
    summary="What lies on an address, in parts",
)  # fmt: skip
def address_balances(ctx: Ctx) -> Answer:
    """One entry for each coin and network of the address, those without a balance too."""
    address, holdings = ctx.services.addresses.read(ctx.tenant, ctx.param("address"))
    balances = all_balances(ctx.views, ctx.catalogue, address, holdings)
    return Answer(
        {
            "id": address.id,
            "address": address.address,
            "network": network_parts(address.network)[1],
            "balances": balances,
            "totalBalanceUSD": total_usd(balances),
        }
    )


@endpoint(
    "GET", "/addresses/{address}/balances/{coin}", family="object", permission="addresses:read", query=CoinBalanceQuery,
    answer="addresses.HoldingInDetail", summary="What an address has of one coin, in parts",
)  # fmt: skip
def address_coin_balance(ctx: Ctx, query: CoinBalanceQuery) -> Answer:
    """Where the address has the coin on several networks and none is asked for, the first active one in the order of the
    catalogue counts. 404 for a coin that the address has no balance of: of another network, or of another coin (mode single).
    """
    wanted = CoinAsked(ctx.catalogue, understood(ctx.param("coin")), query.network)
    return Answer(balance_of_coin(ctx.views, wanted, *ctx.services.addresses.read(ctx.tenant, ctx.param("address"))))


@endpoint(
    "POST", "/addresses/validate", family="object", permission="addresses:read", body=AddressValidate,
    answer="addresses.Validated", summary="Whether a text is an address of a network",
)  # fmt: skip
def validate_address(ctx: Ctx, body: AddressValidate) -> Answer:
    """Status 200 either way; `reason` says why it is none. Nobody is asked: it may be an address that was never used.

    EVM: any case, but mixed case has to be right (EIP-55). Bitcoin and Litecoin: P2PKH, P2SH, P2WPKH, P2WSH, P2TR of the main
    network, or for live keys of the chain that the deployment is on. Tron: base58check. With `addresses` the answer is `{ network,
    results }`: one result for each, in their order.
    """
    if body.addresses is None:
        return Answer(_validated(ctx, body.network, body.address or ""))
    return Answer({"network": body.network, "results": [_validated(ctx, body.network, text) for text in body.addresses]})


def _validated(ctx: Ctx, slug: str, text: str) -> dict[str, Any]:
    rules, network = ctx.services.rules, network_id(ctx.realm, slug)
    try:
        normalized, kind, reason = rules.normalize(network, text), rules.address_type(network, text), None
    except ValueError as error:
        normalized, kind, reason = None, None, str(error)
    return {
        "valid": reason is None,
        "address": text,
        "network": slug,
        "normalized": normalized,
        "type": kind,
        "reason": reason,
    }


def _mode(ctx: Ctx, asked: str | None, network: Network) -> Mode:
    match asked:
        case None:
            # A default makes no request wrong: what it can not be here, it is not. Single is: its coin can be named.
            default = ctx.services.settings.addresses_mode
            return "common" if default == "cross" and network.family != "evm" else default
        case "single" | "cross":
            return asked
    return "common"
