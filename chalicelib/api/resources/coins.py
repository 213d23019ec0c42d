"""Coins of the caller's realm: read with any key, registered and changed by the operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from chalicelib.api.coins_by_name import chosen_coin, coin_network, misspelled
from chalicelib.api.context import Answer, Ctx
from chalicelib.api.fields import NetworkSlug, amount_text, matching, slug
from chalicelib.api.lists import Listing, choice, coin, hash_text, network, text, whole
from chalicelib.api.lists.query import PageQuery
from chalicelib.api.models import CamelRequest, Query
from chalicelib.api.numbers import JsonNumber
from chalicelib.api.routes import endpoint
from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.catalogue.coin_settings import AMOUNTS, MEANING, PERCENTAGE, PUBLISHED, coin_and_usd, in_usd
from chalicelib.domain.catalogue.coin_settings import amount_text as set_amount
from chalicelib.domain.errors import FieldProblem, InvalidParameter
from chalicelib.domain.times import iso
from chalicelib.usecases.catalogue.coins import MOST_NAME, RESERVED, SLUG


def _setting(value: Any) -> str:
    """A negative number is well-formed, and refused as a rule of the business (decisions §3)."""
    if isinstance(value, JsonNumber) and value.text.startswith("-"):
        return "-" + amount_text(value.text[1:])
    if isinstance(value, (str, int)) and not isinstance(value, bool) and str(value).startswith("-"):
        return "-" + amount_text(str(value)[1:])
    return amount_text(value)


_SETTING_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "number", "minimum": 0},
        {"type": "string", "pattern": r"^(0|[1-9][0-9]*)(\.[0-9]+)?$", "maxLength": 80},
    ],
    "examples": [0.5],
}
Setting = Annotated[str, BeforeValidator(_setting), WithJsonSchema(_SETTING_SCHEMA)]
_Percent = Annotated[
    str,
    BeforeValidator(_setting),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 0, "maximum": 100},
                {"type": "string", "pattern": r"^(0|[1-9][0-9]?|100)(\.[0-9]{1,2})?$"},
            ],
            "examples": [20],
        }
    ),
]


def _name(value: Any) -> Any:
    if isinstance(value, str) and (not value.isprintable() or value != value.strip()):
        raise PydanticCustomError(
            "constraint", "{text}", {"text": "must have no blanks at its ends and nothing that can not be shown"}
        )
    return value


def _not_reserved(value: Any) -> Any:
    if isinstance(value, str) and value in RESERVED:
        raise PydanticCustomError("constraint", "{text}", {"text": "must be another word: this one is a path"})
    return value


NewSlug = Annotated[
    str,
    matching(SLUG, "must have 1 to 32 characters of a-z, 0-9, dot, hyphen and underscore, the first one a letter or a digit"),
    BeforeValidator(_not_reserved),
    BeforeValidator(slug),
    Field(description="In any case; the slug is its lower case. Without it: the symbol's.", examples=["link"]),
]
ContractAddress = Annotated[
    str,
    Field(
        min_length=1, max_length=128, description="The token's contract.", examples=["0xdAC17F958D2ee523a2206206994597C13D831ec7"]
    ),
]
CoinName = Annotated[
    str,
    Field(min_length=1, max_length=MOST_NAME, description="What people call it.", examples=["Tether USD"]),
    BeforeValidator(_name),
]


_NEW_UNIT = "A change of it has to name every amount that is not 0, in its new unit."


def _set(name: str) -> Any:
    unit = "In coin units, or in USD (at most two decimals) where `useUsdLimits` is true; exact. 0: no limit."
    return Field(description=f"{MEANING[name]} {unit}")


class CoinSettings(CamelRequest):
    """null is the same as not sent."""

    use_usd_limits: Annotated[bool, Field(description=f"{MEANING['useUsdLimits']} {_NEW_UNIT}", examples=[False])] | None = None
    collect_threshold: Annotated[Setting | None, _set("collectThreshold")] = None
    collect_service_to_cold_threshold: Annotated[Setting | None, _set("collectServiceToColdThreshold")] = None
    collect_percentage_hot: Annotated[
        _Percent | None, Field(description=f"{MEANING[PERCENTAGE]} 0 to 100, at most two decimals.")
    ] = None
    approve_threshold: Annotated[Setting | None, _set("approveThreshold")] = None
    min_value: Annotated[Setting | None, _set("minValue")] = None
    max_value: Annotated[Setting | None, _set("maxValue")] = None
    max_value_daily: Annotated[Setting | None, _set("maxValueDaily")] = None
    min_deposit_amount: Annotated[Setting | None, _set("minDepositAmount")] = None
    hot_ceiling: Annotated[Setting | None, _set("hotCeiling")] = None
    hot_floor: Annotated[Setting | None, _set("hotFloor")] = None

    @property
    def settings(self) -> dict[str, str | bool]:
        """What was sent, by its published names."""
        sent = self.model_dump(by_alias=True, exclude_none=True)
        return {name: sent[name] for name in ("useUsdLimits", PERCENTAGE, *AMOUNTS) if name in sent}


class CoinCreate(CoinSettings):
    """A coin that shall be known from now on."""

    network: NetworkSlug
    coin: NewSlug | None = None
    name: CoinName | None = None
    contract_address: ContractAddress | None = None

    @classmethod
    def problems_of(cls, ctx: Ctx, sent: Mapping[str, Any], wrong: frozenset[str]) -> list[FieldProblem]:
        return _no_contract(ctx, sent, wrong)


class CoinPrecreate(CamelRequest):
    """A token contract to look at."""

    contract_address: ContractAddress
    network: NetworkSlug

    @classmethod
    def problems_of(cls, ctx: Ctx, sent: Mapping[str, Any], wrong: frozenset[str]) -> list[FieldProblem]:
        return _no_contract(ctx, sent, wrong)


def _no_contract(ctx: Ctx, sent: Mapping[str, Any], wrong: frozenset[str]) -> list[FieldProblem]:
    network = ctx.catalogue.network(str(slug(sent.get("network"))))
    if network is None or network.family == "utxo":  # which has no tokens at all: a rule of the business
        return []
    return misspelled(ctx, sent, wrong, "contractAddress", "is no address of {network}: {reason}")


_Known = Annotated[
    str,
    BeforeValidator(slug),
    Field(min_length=1, max_length=100, description="The coin's slug, in any case.", examples=["usdt"]),
]


class CoinChange(CoinSettings):
    """What is not sent stays as it is."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"coin": "usdt", "network": "ethereum", "minValue": 5, "maxValue": 1000}]}
    )
    selecting = frozenset({"coin", "network"})

    coin: _Known | None = None
    network: NetworkSlug | None = None
    name: CoinName | None = None
    status: (
        Annotated[
            Literal["ACTIVE", "INACTIVE"],
            Field(description="An inactive coin takes no new invoices and withdrawals.", examples=["ACTIVE"]),
        ]
        | None
    ) = None


class CoinChangeByBody(CoinChange):
    """As `CoinChange`, with the coin in the body."""

    coin: _Known


COINS = Listing(
    "coins",
    (
        coin(lambda r, _: r.slug),
        network(lambda r, _: coin_network(r)),
        text("symbol", lambda r, _: r.symbol, "The symbol."),
        text("name", lambda r, _: r.name, "The name."),
        choice("type", lambda r, _: r.type, ("NATIVE", "TOKEN"), "The network's own coin, or a token."),
        choice("status", lambda r, _: r.status, ("ACTIVE", "INACTIVE"), "Whether it is in use."),
        whole("decimals", lambda r, _: r.decimals, "Its decimals."),
        hash_text("contractAddress", lambda r, _: r.contract, "A token's contract."),
    ),
    bare=True,
)


class CoinQuery(Query):
    network: NetworkSlug | None = None


@endpoint(
    "GET", "/coins", family="flat", permission="coins:read", query=COINS, summary="All coins, or those of one network",
    answer="list[coins.Coin]",
)  # fmt: skip
def list_coins(ctx: Ctx, query: PageQuery) -> Answer:
    """In order of the networks, each with its native coin first. Settings are shown as they were set: in USD where
    `useUsdLimits` is true."""
    return Answer([shown(found) for found in COINS.array(ctx, query, ctx.catalogue.coins.values())])


@endpoint(
    "GET", "/coins/{coin}", family="flat", permission="coins:read", query=CoinQuery,
    summary="One coin, its settings in USD as well", answer="coins.CoinDetails",
)  # fmt: skip
def get_coin(ctx: Ctx, query: CoinQuery) -> Answer:
    """Without `network`: the coin on its first active network.

    Every threshold and limit is there in coin units and in USD. The one that was set is exact; the other follows from the
    fresh rate (coin units to the last unit, USD to the cent) and is null where there is none. `rate` is the last known one,
    and says whether it is stale: a stale rate prices nothing.
    """
    coin = chosen_coin(ctx.catalogue, "coin", ctx.param("coin"), query.network)
    rates = ctx.services.rates(ctx.realm)
    settings: dict[str, Any] = {"useUsdLimits": in_usd(coin), PERCENTAGE: _percentage(coin)}
    for name in AMOUNTS:
        in_coin, usd = coin_and_usd(coin, name, rates, ctx.now_ms)
        settings[name] = None if in_coin is None else JsonNumber(in_coin)
        settings[f"{name}USD"] = None if usd is None else JsonNumber(usd)
    rate = rates.get(coin.slug)
    record: dict[str, Any] = {**shown(coin), "settings": settings, "rate": None}
    if rate is not None:
        record["rate"] = {
            "usd": JsonNumber(rate.value),
            "at": iso(rate.at),
            "source": rate.source,
            "stale": rates.fresh(coin.slug, ctx.now_ms) is None,
        }
    return Answer(record)


@endpoint(
    "POST", "/coins", family="flat", level="admin", permission="coins:write", body=CoinCreate, status=201, creates=True,
    summary="Register a token, or a network's native coin", answer="coins.Created",
    shows={"message": "Coin usdt on ethereum was created"},
)  # fmt: skip
def create_coin(ctx: Ctx, body: CoinCreate) -> Answer:
    """With `contractAddress` a token: symbol and decimals are what the contract says, and so is the name unless one is sent.
    Without it the network's native coin, where that is not there yet. The coin starts ACTIVE, addresses of the network show it at
    once, and what arrives from now on is credited.

    Without `coin`, the slug is the symbol in lower case; a symbol that makes no slug gives `token-` and the last eight characters
    of the contract. `VALIDATION_ERROR`: the slug or the contract is taken on that network, the address is no token contract (none
    there, it does not answer, or answers what can not be shown or counted with: a symbol of more than 32 characters, more than
    36 decimals), the network is not active, or its node does not answer now; or the contract is the network's own coin under
    another face (Polygon's 0x…1010, or balances that follow the native ones), so that one payment would be credited twice. Other
    processes of the service know the coin within half a minute.

    Rates are known by slug: a slug that a rate provider knows gets its rate.
    """
    network = ctx.catalogue.networks[body.network]
    return ctx.create(
        ctx.services.coins.creating(network, body.coin, body.name, body.contract_address, body.settings),
        lambda coin: {"message": f"Coin {coin.slug} was created on {body.network}", "coin": coin.slug, "network": body.network},
    )


@endpoint(
    "PUT", "/coins/precreate-token", family="flat", level="admin", permission="coins:write", body=CoinPrecreate, status=201,
    summary="What registering a token contract would make", answer="coins.Precreated",
)  # fmt: skip
def precreate_token(ctx: Ctx, body: CoinPrecreate) -> Answer:
    """Reads symbol (string or bytes32), name and decimals from the contract. Nothing is stored. What `POST /v1/coins` refuses, this
    refuses, too."""
    coin = ctx.services.coins.precreate(ctx.catalogue.networks[body.network], body.contract_address)
    return Answer({"coin": coin.slug, "symbol": coin.symbol, "name": coin.name, "decimals": coin.decimals})


@endpoint(
    "PUT", "/coins", family="flat", level="admin", permission="coins:write", body=CoinChangeByBody, summary="Change a coin",
    answer="base.Message",
)  # fmt: skip
def change_coin(ctx: Ctx, body: CoinChangeByBody) -> Answer:
    """What is not sent stays as it is. Where the slug is on several networks, `network` is required.

    An INACTIVE coin takes no new invoices and withdrawals; what arrives is still credited. When `useUsdLimits` changes, every
    amount that is not 0 has to be sent with it, in its new unit: `VALIDATION_ERROR` names those that are missing. Other processes
    of the service follow within half a minute.
    """
    return _changed(ctx, body.coin, body)


@endpoint(
    "PUT", "/coins/{coin}", family="flat", level="admin", permission="coins:write", body=CoinChange,
    summary="Change a coin, named by the path", answer="base.Message",
)  # fmt: skip
def change_coin_by_path(ctx: Ctx, body: CoinChange) -> Answer:
    """As `PUT /v1/coins`. `coin` in the body, where it is sent, must be the same."""
    named = slug(ctx.param("coin"))
    if body.coin not in (None, named):
        raise InvalidParameter.one("coin", body.coin, f"must be the same as in the path ({named[:80]}), or absent")
    return _changed(ctx, named, body)


def _changed(ctx: Ctx, named: str, body: CoinChange) -> Answer:
    wanted = {name: value for name, value in (("name", body.name), ("status", body.status)) if value is not None}
    coin = ctx.services.coins.change(ctx.realm, named, body.network, wanted, body.settings)
    return Answer({"message": f"Coin {coin.slug} on {coin_network(coin)} was updated"})


def shown(coin: Coin) -> dict[str, Any]:
    """The public record of a coin; its settings as they were set, as exact numbers."""
    return {
        "coin": coin.slug,
        "symbol": coin.symbol,
        "name": coin.name,
        "type": coin.type,
        "decimals": coin.decimals,
        "contractAddress": coin.contract,
        "status": coin.status,
        "settings": {
            "useUsdLimits": in_usd(coin),
            PERCENTAGE: _percentage(coin),
            **{name: JsonNumber(set_amount(coin, name)) for name in PUBLISHED},
        },
        "network": {"network": coin_network(coin)},
    }


def _percentage(coin: Coin) -> JsonNumber:
    return JsonNumber(str(coin.settings.get(PERCENTAGE, "0")))
