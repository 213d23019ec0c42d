"""Service wallets: registered by the operator, read with the permission to read addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from chalicelib.api.coins_by_name import chosen_coin, known_network, misspelled
from chalicelib.api.context import Answer, Ctx
from chalicelib.api.fields import AddressText, CoinSlug, NetworkSlug
from chalicelib.api.lists import Listing, choice, hash_text, network, time
from chalicelib.api.lists.query import PageQuery
from chalicelib.api.models import CamelRequest, Query
from chalicelib.api.problems import shown
from chalicelib.api.routes import endpoint
from chalicelib.domain.addresses.addresses import CUSTODY_SHOWN, ROLE_OF, SERVICE_TYPE, Role
from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.errors import FieldProblem
from chalicelib.domain.ids import network_parts
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.money import format_units
from chalicelib.domain.times import iso
from chalicelib.usecases.wallets.service_wallets import Listed, Registered
from chalicelib.usecases.wallets.wallet_reads import WalletRead

ServiceKind = Literal["hot", "hot-wallet", "cold", "cold-wallet", "collector", "tokens_collector", "token-collector", "topup"]


class ServiceWalletCreate(CamelRequest):
    """A wallet that the service shall use."""

    network: NetworkSlug
    type: Annotated[ServiceKind, Field(description="What the wallet is for; several names are published for each kind.")]
    address: (
        Annotated[
            AddressText,
            Field(
                description="Required for a cold wallet. For the others it may stand beside its `privateKey`, and has to fit it."
            ),
        ]
        | None
    ) = None
    private_key: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=128,
            repr=False,
            description="64 hexadecimal digits; for bitcoin and litecoin also WIF of a compressed key. Generated without it.",
            examples=["0000000000000000000000000000000000000000000000000000000000000001"],
        ),
    ] = None

    @classmethod
    def problems_of(cls, ctx: Ctx, sent: Mapping[str, Any], wrong: frozenset[str]) -> list[FieldProblem]:
        role = ROLE_OF.get(str(sent.get("type")))
        return [] if role is None or "type" in wrong else wallet_problems(ctx, role, sent, wrong)


def wallet_problems(ctx: Ctx, role: Role, sent: Mapping[str, Any], wrong: frozenset[str]) -> list[FieldProblem]:
    """What is wrong with the address and the key of a service wallet, as far as can be seen without using the key."""
    address, key = sent.get("address"), sent.get("privateKey")
    found: list[FieldProblem] = []
    if role == "cold" and key is not None and "privateKey" not in wrong:
        found.append(FieldProblem("privateKey", "(not shown)", ("is never given for a cold wallet: its key stays with you",)))
    if role == "cold" and address is None and "address" not in wrong:
        found.append(FieldProblem("address", None, ("is required for a cold wallet",)))
    if role != "cold" and address is not None and key is None and "address" not in wrong:
        words = "is given for cold wallets, or together with its privateKey"
        found.append(FieldProblem("address", shown("address", address), (words,)))
    return [*found, *misspelled(ctx, sent, wrong | {problem.field for problem in found})]


class ColdWalletQuery(Query):
    coin: Annotated[CoinSlug | None, Field(description="Show this coin alone.")] = None


@endpoint(
    "POST", "/addresses/service-wallets", family="object", level="admin", permission="addresses:create", body=ServiceWalletCreate,
    status=201, creates=True, answer="wallets.ServiceWallet", summary="Register a service wallet",
)  # fmt: skip
def create_service_wallet(ctx: Ctx, body: ServiceWalletCreate) -> Answer:
    """One wallet for each network and type; with a live key a second one is a VALIDATION_ERROR. It is watched from now on: what
    arrives is the operator's. It is also an address of the operator's merchant, listed by `GET /v1/addresses?type=…`. Each
    registration raises an alarm that names the key it was done with.

    A `topup` wallet takes the place of the hot wallet as the payer of other addresses' fees, and is filled by you. It is for
    networks of accounts.

    `custody` says how the deployment keeps its key. `native`: it is made in KMS and never leaves it, so no answer has a
    `privateKey`, and one that is sent is a VALIDATION_ERROR. `envelope`: a private key, sent or generated, is encrypted at once;
    this interface can not decrypt it, only the payouts can. A generated one is in this answer and in none after it, and in none at
    all where the deployment says so. An answer under an `Idempotency-Key` is kept encrypted, and repeated to the same API
    key alone.

    With a test key it takes the place of the network's wallet of that type, 50 times for each network: what the old one
    began is finished, and what it holds is moved to the new one (a cold wallet's by its owner). An address that was replaced is not
    used again. In the live realm the operator's command line alone replaces a wallet (`rotate`): no API key may decide where money
    goes.
    """
    reveal = ctx.services.settings.reveal_private_keys
    registering = ctx.services.wallets.registering(
        Listed(ctx.tenant),
        ctx.catalogue.networks[body.network],
        ROLE_OF[body.type],
        address=body.address,
        private_key=body.private_key,
        replace="sandbox",
        by=ctx.key.id,
    )
    return ctx.create(registering, lambda made: _service_wallet(made, reveal), secret=True)


def _service_wallet(made: Registered, reveal: bool) -> dict[str, Any]:
    shown = {
        "address": made.wallet.address,
        "network": network_parts(made.wallet.network)[1],
        "type": SERVICE_TYPE[made.wallet.role],
        "custody": CUSTODY_SHOWN[made.wallet.custody],
    }
    return shown if made.generated is None or not reveal else {**shown, "privateKey": made.generated}


WALLETS = Listing(
    "service-wallets",
    (
        network(lambda r, _: network_parts(r.wallet.network)[1]),
        choice("walletType", lambda r, _: SERVICE_TYPE[r.wallet.role], tuple(SERVICE_TYPE.values()), "What it is for."),
        hash_text("address", lambda r, _: r.wallet.address, "The address."),
        time("observedAt", lambda r, _: None if r.observed is None else r.observed.at, "When the chain was looked at."),
    ),
    bare=True,
)


@endpoint(
    "GET", "/addresses/service-wallets", family="object", level="admin", permission="addresses:read", query=WALLETS,
    answer="list[wallets.WalletBalance]", summary="All service wallets, with ledger and chain side by side",
)  # fmt: skip
def list_service_wallets(ctx: Ctx, query: PageQuery) -> Answer:
    """Those that are in use, network by network, each as the reads of one wallet show it."""
    catalogue = ctx.catalogue
    every = ctx.services.wallets.reads.every(list(catalogue.networks.values()), lambda found: catalogue.coins_of(found.slug))
    shown = []
    for read in WALLETS.array(ctx, query, every):
        shown.append(_view(ctx, read, catalogue.coins_of(network_parts(read.wallet.network)[1])))
    return Answer(shown)


@endpoint(
    "GET", "/addresses/hot-wallet/{network}", family="object", permission="addresses:read", answer="wallets.WalletBalance",
    summary="The hot wallet of a network and what it holds",
)  # fmt: skip
def hot_wallet(ctx: Ctx) -> Answer:
    """Withdrawals are paid from it. What is signed and not settled yet is not in the balances. 404 where none is registered.

    A network may have several hot wallets, each in a slot: `address` is that of slot 0, `balances` are the sums of all, and
    `wallets` has them one by one.

    `onChainBalance` is what the network's node said at `observedAt`, which is asked every minute: of bitcoin and litecoin it is
    what the node has of the coins that the ledger knows. It differs from `balance` while payments are on their way.
    """
    return _read(ctx, "hot")


@endpoint(
    "GET", "/addresses/service-wallet/{network}", family="object", permission="addresses:read", answer="wallets.WalletBalance",
    summary="The token collector of a network and what it holds",
    shows={"walletType": "tokens_collector"},
)  # fmt: skip
def service_wallet(ctx: Ctx) -> Answer:
    """404 where none is registered."""
    return _read(ctx, "collector")


@endpoint(
    "GET", "/addresses/cold-wallet/{network}", family="object", permission="addresses:read", query=ColdWalletQuery,
    answer="wallets.WalletBalance", summary="The cold wallet of a network and what was paid to it",
    shows={"walletType": "cold"},
)  # fmt: skip
def cold_wallet(ctx: Ctx, query: ColdWalletQuery) -> Answer:
    """Its key is not here, so what its owner spends is not seen here: the balances are what has arrived since it is registered.
    `onChainBalance` is what its owner left there; of bitcoin and litecoin nobody can tell.

    404 where none is registered.
    """
    network = known_network(ctx.catalogue, ctx.path["network"])
    return _read(ctx, "cold", None if query.coin is None else chosen_coin(ctx.catalogue, "coin", query.coin, network.slug))


def _read(ctx: Ctx, role: Role, only: Coin | None = None) -> Answer:
    network = known_network(ctx.catalogue, ctx.path["network"])
    coins = ctx.catalogue.coins_of(network.slug) if only is None else [only]
    operator = ctx.key.level == "admin"
    return Answer(_view(ctx, ctx.services.wallets.reads.read(network, role, coins, waits=operator and role != "cold"), coins))


def _view(ctx: Ctx, read: WalletRead, coins: Sequence[Coin]) -> dict[str, Any]:
    shown = {
        "network": network_parts(read.wallet.network)[1],
        "walletType": SERVICE_TYPE[read.wallet.role],
        "address": read.wallet.address,
        "custody": CUSTODY_SHOWN[read.wallet.custody],
        "balances": _balances(ctx, read, coins),
        "observedAt": None if read.observed is None else iso(read.observed.at),
    }
    if read.wallet.role != "hot":
        return shown
    return shown | {
        "wallets": [
            {
                "slot": each.wallet.slot,
                "address": each.wallet.address,
                "custody": CUSTODY_SHOWN[each.wallet.custody],
                "balances": _balances(ctx, each, coins),
            }
            for each in read.slots
        ]
    }


def _balances(ctx: Ctx, read: WalletRead, coins: Sequence[Coin]) -> list[dict[str, Any]]:
    operator = ctx.key.level == "admin"
    return [
        {
            **ctx.views.holding(coin, WalletBalance(coin.network, read.wallet.address, coin.asset, read.units(coin))),
            "onChainBalance": _units(coin, read.on_chain(coin)),
            **({"waits": read.waits.get(coin.asset)} if operator else {}),
        }
        for coin in coins
    ]


def _units(coin: Coin, units: int | None) -> str | None:
    return None if units is None else format_units(units, coin.decimals)
