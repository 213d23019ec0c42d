"""The API on an AWS with a catalogue, a seed, two merchants and keys: what tests of the edge need, and no chain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import boto3

from chalicelib import wiring
from chalicelib.domain.ids import MerchantId, Realm
from chalicelib.domain.ledger import Balance, deposit_credited, merchant
from chalicelib.domain.merchants.merchants import Level
from chalicelib.domain.money import Amount
from chalicelib.usecases.ports.changes import Post, Save
from chalicelib.usecases.reconciliation.audit import audit
from infra.bootstrap import make_catalogue, make_key, make_merchant, make_seed
from infra.local.aws import LocalAws, Snapshot
from tests.support.stack import Client, Response


class Calls:
    """Counts what goes to AWS through every botocore client, by "service.operation"."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def attach(self, client: Any) -> None:
        client.meta.events.register("before-call", lambda model, **_: self.made.append(model.name), unique_id=f"count-{id(self)}")


@dataclass
class Edge:
    """`call` is a request with a client's test key unless told otherwise."""

    client: Client
    shop: MerchantId
    other: MerchantId
    keys: dict[str, str] = field(default_factory=dict)

    @property
    def services(self) -> wiring.Services:
        return wiring.services()

    def call(self, method: str, path: str, *args: Any, key: str | None = "client", **kwargs: Any) -> Response:
        """`key` is the name of one of `keys`, a key itself, or None."""
        return self.client.call(method, path, self.keys.get(key, key) if key is not None else None, *args, **kwargs)

    def new_key(self, *permissions: str, realm: Realm = "test", level: Level = "client", **limits: Any) -> str:
        return make_key(self.services, self.shop, realm, level, permissions or ("full",), "made by a test", **limits)

    def credit(self, network: str, coin_slug: str, units: int) -> None:
        """Give the shop `units` in its test realm, as a confirmed deposit would."""
        store = self.services.store
        coin = store.catalogue("test").coin(network, coin_slug)
        assert coin is not None
        tenant = f"{self.shop}:test"
        balance = store.get(Balance, tenant=tenant, asset=coin.asset) or Balance(tenant, coin.asset)  # type: ignore[arg-type]
        entry = deposit_credited(
            f"tx_{coin.slug}_{balance.version}",
            0,
            0,
            "wallet:test:x",
            merchant(balance.tenant, "available"),
            Amount(coin.asset, units),
        )
        store.commit([Post(entry), Save(balance.after(entry))])

    def violations(self) -> list[str]:
        """What the audit says, but of what `credit` made up: money that came from no chain."""
        made_up = ("the places hold", "wallet x ", "wallet:test:x ", "there is no such deposit")
        return [said for said in audit(self.services.store) if not any(words in said for words in made_up)]

    def calls(self) -> Calls:
        counter = Calls()
        counter.attach(self.services.store.models.connection.client)
        counter.attach(self.services.wiring.parts.client("sqs"))
        return counter


class Prepared:
    """The first state, made once and restored before each test."""

    def __init__(self) -> None:
        self._made: tuple[Edge, Snapshot] | None = None

    def edge(self, aws: LocalAws) -> Edge:
        if self._made is None:
            self._made = _first(aws)
        edge, snapshot = self._made
        aws.restore(snapshot)
        wiring.forget()
        return edge


def _first(aws: LocalAws) -> tuple[Edge, Snapshot]:
    from app import app

    aws.reset_data()  # whoever asks first may come after a test that left its data
    wiring.forget()
    wired = wiring.services()
    make_catalogue(wired)
    make_seed(wired, boto3.client("kms"))
    shop, other = make_merchant(wired, "Shop"), make_merchant(wired, "Other")
    operator = make_merchant(wired, "Operator")
    wanted: Sequence[tuple[str, MerchantId, Realm, Level, str]] = (
        ("client", shop, "test", "client", "full"),
        ("live", shop, "live", "client", "full"),
        ("admin", operator, "test", "admin", "full"),
        ("other", other, "test", "client", "full"),
        ("reader", shop, "test", "client", "read-only"),
    )
    keys = {name: make_key(wired, who, realm, level, (preset,), name) for name, who, realm, level, preset in wanted}
    return Edge(Client(app), shop, other, keys), aws.snapshot()


PREPARED = Prepared()
