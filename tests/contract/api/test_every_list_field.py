"""Every list, every field that it declares, every operator that the field takes: what HTTP answers is what is left of the whole
list when it is filtered here, by a reference that knows only what records show. The same for sorting.

The cases are made from the routes: a list or a field that is added is asked about without a line here, unless its records show
the field under another name or not at all. Then `SHOWN` says where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, cast

import pytest

from chalicelib.api import resources
from chalicelib.api.lists import ListField
from chalicelib.api.lists.fields import OPERATORS
from chalicelib.api.lists.query import PageQuery
from chalicelib.api.routes import ROUTES, Route
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.ids import AssetId
from chalicelib.domain.treasury.moves import Move, Origin, move_work
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.domain.webhooks.deliveries import Delivery
from chalicelib.domain.webhooks.endpoints import EventRecord
from chalicelib.usecases.ports.changes import Open, Save
from chalicelib.wiring import services
from tests.support.receiver import Receiver, answer
from tests.support.refunds import claimed, paid_invoice, payout_link, refund
from tests.support.shop import Shop
from tests.support.stack import Stack

GREY = "0x52908400098527886E0F7030069857D2E4169EE7"  # EIP-55's own example
AT_ONCE, APART_MS = 90, 360_000
"""So many requests, and then the clock moves on: what a key may make in a minute and in an hour is a few more."""
Record = dict[str, Any]
Read = Callable[[Record], Any]

resources.load()
LISTS = sorted(
    (route for route in ROUTES if route.query is not None and issubclass(route.query, PageQuery)),
    key=lambda route: (len(route.path.split("/")), route.level == "admin"),
)
"""Those of everything before those of a part."""


# ---- What is in the lists -----------------------------------------------------------------------------------------------------


def done(shop: Shop, status: int, method: str, path: str, body: Any = None, key: str = "client_test") -> Any:
    reply = shop.stack.call(method, path, shop.stack.keys[key], json=body)
    assert reply.status == status, (method, path, reply.body)
    return reply.json


def settings(shop: Shop) -> None:
    """What a merchant and its operator enter by hand."""
    for more in ({"label": "Till 3"}, {"coin": "usdt", "mode": "single"}, {"network": "tron", "label": "till 4"}):
        done(shop, 201, "POST", "/v1/addresses", {"network": "ethereum", **more})
    for grey in ({"address": GREY, "reason": "A Test"}, {"address": "0x" + "0" * 39 + "7"}):
        done(shop, 201, "POST", "/v1/addresses/grey-list", {"network": "ethereum", **grey}, "admin_test")
    entries = [
        done(shop, 201, "POST", "/v1/whitelist/addresses", {"address": GREY, "network": network, "label": f"Payee {network}"})
        for network in ("ethereum", "polygon", "bsc")
    ]
    shop.wait(1)
    done(shop, 200, "PUT", f"/v1/whitelist/addresses/{entries[1]['data']['id']}", {"label": "Supplier"})
    done(shop, 200, "DELETE", f"/v1/whitelist/addresses/{entries[2]['data']['id']}")
    for more in ({"name": "Till"}, {"name": "desk", "expires_at": "2035-01-01T00:00:00Z"}):
        done(shop, 201, "POST", "/v1/api-keys", {"permissions": ["addresses:read"], **more})
    key = done(shop, 201, "POST", "/v1/api-keys", {"permissions": ["addresses:read"], "name": "gone"})
    done(shop, 200, "DELETE", f"/v1/api-keys/{key['data']['key_id']}")


def business(shop: Shop) -> str:
    """Invoices, withdrawals and stakes in several states. The address with two payments."""
    shop.credit("3")
    shop.credit("60.5", "usdt")
    shop.wait(1)
    asked = (("1", "eth"), ("0.5", "eth"), ("7", "usdt"), ("0.25", "eth"))
    made = [shop.invoice(amount, coin, externalId=f"Order-{n}") for n, (amount, coin) in enumerate(asked)]
    cancelled, partial, seen, _ = made
    done(shop, 201, "PUT", "/v1/invoices", {"invoiceId": cancelled["id"], "status": "cancelled"})
    for amount in ("0.2", "0.1"):
        shop.pay(partial["address"], amount)
    shop.withdraw("0.1")
    shop.turn()
    shop.mine()
    shop.turn()
    shop.pay(seen["address"], "1", "usdt")
    shop.wait(1)
    for amount, coin in (("0.2", "eth"), ("12.5", "usdt"), ("0.07", "eth")):
        shop.withdraw(amount, coin, GREY)
    done(shop, 200, "DELETE", "/v1/withdrawals/" + shop.withdraw("0.05", address=GREY))
    shop.withdraw("12", "usdt")
    shop.turn()
    collections(Shop(shop.stack, network="polygon"))
    strays(Shop(shop.stack, network="polygon"))
    tron = Shop(shop.stack, network="tron")
    tron.turn()
    for amount, resource in (("10", "ENERGY"), ("2.5", "BANDWIDTH")):
        done(shop, 201, "POST", "/v1/networks/tron/stake", {"amount": amount, "resource": resource}, "admin_test")
        tron.wait(1)
        tron.turn()
        if resource == "ENERGY":
            tron.mine(19)
    tron.turn()
    for move in moves(services().catalogue("test").networks["fantom"]):
        services().store.commit([Save(move), Open(move_work(move))])
    for number in range(2):
        done(shop, 201, "POST", "/v1/networks/ethereum/rescan", {"fromBlock": number, "toBlock": 3 + number}, "admin_test")
        shop.wait(1)
    return str(partial["address"])


def moves(network: Network) -> list[Any]:
    """A move that is signed, and one that was refused before; with their work, which finds them."""
    native = AssetId(f"{network.id}:ftm")
    origins = [Origin(network.id, f"col_{n}", 1, 1_767_225_600_000 + n) for n in range(2)]
    planned = [Move.topup(origin, native, GREY, GREY, 10**18 + origin.at) for origin in origins]
    signed = replace(planned[0], state="signed", nonce=1, raw="00", txid="0x" + "5c" * 32, updated_at=1_767_225_700_000)
    return [signed, replace(planned[1], reason="the node refuses it")]


def money_back(shop: Shop) -> str:
    """Refunds and payout links in several states. The invoice that was refunded."""
    invoice = paid_invoice(shop)
    for more in ({"amount": "0.1"}, {"amount": "0.2", "address": GREY}):
        refund(shop, invoice, **more)
        shop.wait(1)
    payout_link(shop, "5", coin="usdt", expiresIn=900)
    for more in ({"name": "Boots"}, {"name": "shoes", "expiresAt": "2035-01-01T00:00:00Z"}):
        done(shop, 201, "POST", "/v1/payment-links", {"currency": "eth", "network": "ethereum", "amount": "1", **more})
        shop.wait(1)
    claimed(shop, payout_link(shop, "0.02"), GREY)
    return str(invoice["id"])


def collections(shop: Shop) -> None:
    """One that is done, one under way, one that is not worth its fee, and one that somebody has to agree to."""
    for coin, more in (("usdt", {"approveThreshold": 100}), ("matic", {"collectThreshold": 1})):
        body = {"coin": coin, "network": shop.network, **more}
        done(shop, 200, "PUT", "/v1/coins", body, "admin_test")
    for amount, coin in (("7.5", "matic"), ("60.5", "usdt"), ("0.01", "usdt"), ("200", "usdt")):
        shop.pay(shop.invoice(amount, coin)["address"], amount, coin)
        shop.mine(20)
        shop.wait(1)
        shop.turn()


def strays(shop: Shop) -> None:
    """Payments on the wrong network: one read only, one credited, one returned."""
    for amount, decision in (("4", None), ("5", "credit"), ("6", "return")):
        address = done(shop, 201, "POST", "/v1/addresses", {"network": "ethereum", "mode": "common"})["address"]
        txid = shop.pay(address, amount, "usdt")["txid"]
        shop.mine(20)
        shop.turn()
        read = done(shop, 201, "POST", "/v1/stray-payments", {"network": shop.network, "txid": txid}, "admin_test")
        shop.wait(1)
        if decision is not None:
            path = f"/v1/stray-payments/{read['data']['payments'][0]['id']}/{decision}"
            done(shop, 201, "POST", path, {"address": GREY} if decision == "return" else None, "admin_test")


def days_ago(count: int) -> str:
    return (datetime.fromtimestamp(services().clock.now_ms() / 1000, UTC) - timedelta(days=count)).isoformat()


def filled(stack: Stack) -> dict[str, str]:
    """Fill the lists. What stands for the parameters of paths."""
    shop = Shop(stack)
    shop.turn()
    with Receiver([answer(200), answer(204), answer(500)]) as receiver:
        hooks = [
            done(shop, 201, "POST", "/v1/webhooks", {"url": receiver.url(f"/{n}"), "events": events})["data"]
            for n, events in enumerate((["invoice.completed", "withdrawal.status_changed", "invoice.partial"], ["invoice.created"]))
        ]
        done(shop, 200, "PUT", f"/v1/webhooks/{hooks[1]['id']}", {"enabled": False})
        settings(shop)
        for ended in (True, False):
            time = {"from": days_ago(3), "to": days_ago(2)}
            job = done(shop, 201, "POST", f"/v1/webhooks/{hooks[0]['id']}/redeliver", time)
            if ended:
                done(shop, 200, "DELETE", f"/v1/webhooks/redeliveries/{job['data']['id']}")
            services().clock.shift_ms += 1
        address, invoice = business(shop), money_back(shop)
        stack.drain(only=("relay", "deliver"), rounds=1)
        done(shop, 200, "PUT", f"/v1/webhooks/{hooks[0]['id']}", {"status": "paused"})
        done(shop, 201, "POST", f"/v1/webhooks/{hooks[0]['id']}/redeliver", {"from": days_ago(1), "which": "all"})
        stack.drain(only=("relay",), rounds=1)
    return {"id": hooks[0]["id"], "address": address, "invoice": invoice, "network": "ethereum"}


# ---- The reference ------------------------------------------------------------------------------------------------------------


def payers(stack: Stack) -> Read:
    """The invoice that an address was made for."""
    invoices = {invoice["address"]: invoice["id"] for invoice in Shop(stack).get("/v1/invoices/getAll", limit="100")["data"]}
    return lambda record: invoices.get(record["address"])


def stored(kind: type[Any], key: str, name: str, attribute: str) -> Callable[[Stack], Read]:
    """What the list does not show: an attribute of the record whose `key` it shows as `name`."""

    def look(_: Stack) -> Read:
        found = {getattr(record, key): getattr(record, attribute) for record in services().store.every(kind)}
        return lambda record: found[record[name]] if attribute == "object_id" else iso(found[record[name]])

    return look


def iso(at: int | None) -> str | None:
    return None if at is None else (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)).isoformat()


SHOWN: dict[tuple[str, str], Callable[[Stack], Read]] = {
    ("/addresses", "invoiceId"): payers,
    ("/coins", "network"): lambda _: lambda record: record["network"]["network"],
    ("/events", "objectId"): stored(EventRecord, "id", "id", "object_id"),
    ("/networks/tron/stake", "createdAt"): stored(Stake, "txid", "transactionId", "created_at"),
    **{
        (path, "releasable"): lambda _: lambda record: bool({"held", "below_minimum", "set_aside"} & set(record["flags"]))
        for path in ("/transactions", "/transactions/address/{address}", "/addresses/{address}/transactions")
    },
    ("/webhooks/{id}/deliveries", "finishedAt"): stored(Delivery, "id", "id", "finished_at"),
    ("/webhooks/{id}/deliveries", "held"): lambda _: lambda record: record.get("held", False),
    ("/webhooks/{id}/deliveries", "waitsForEarlier"): lambda _: lambda record: record.get("waitsForEarlier", False),
}
"""Where a field is that the records of a list show under another name, or not at all."""


def known(field: ListField, value: Any) -> Any:
    """A shown value as something that Python compares."""
    if value is None:
        return None
    if field.kind == "time":
        return datetime.fromisoformat(value)
    if field.kind == "amount":
        return Decimal(str(value))
    return value.lower() if field.folded else value


def written(field: ListField, value: Any) -> str:
    """A shown value as a query has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return format(Decimal(str(value)), "f") if field.kind == "amount" else str(value)


@dataclass(frozen=True, slots=True)
class Question:
    """Operators with what is sent for them; `holds` says of a known value, None included, whether its record is asked for."""

    sent: dict[str, str]
    holds: Callable[[Any], bool]


def questions(field: ListField, values: Sequence[Any]) -> Iterator[Question]:
    """What is asked about a field of which the list shows these values, in order. Every operator that it takes comes up."""
    if not values:
        # Only `ne` finds a record without a value; which one is made up.
        made_up = (*field.values, *field.examples, GREY)[0]
        yield Question({"eq": made_up}, lambda have: False)
        yield Question({"ne": made_up}, lambda have: True)
        return
    texts = [written(field, value) for value in values]
    found = [known(field, value) for value in values]
    last, middle = len(texts) - 1, len(texts) // 2
    yield Question({"eq": texts[middle]}, lambda have: have == found[middle])
    yield Question({"ne": texts[middle]}, lambda have: have != found[middle])
    some = [place for place in (0, last) if "," not in texts[place]]
    yield Question({"in": ",".join(texts[place] for place in some)}, lambda have: have in [found[place] for place in some])
    if "like" in field.operators:
        yield like(field, str(values[middle]).lower())
    if "gt" in field.operators:
        # Each end of a range is a value that is there: taking it in, or leaving it out, makes a difference.
        end = max(last - 1, 0)
        yield Question(
            {"gt": texts[0], "lte": texts[-(-last // 2)]}, lambda have: have is not None and found[0] < have <= found[-(-last // 2)]
        )
        yield Question({"gte": texts[end], "lt": texts[last]}, lambda have: have is not None and found[end] <= have < found[last])
    if field.kind == "time":
        day = found[middle].date()
        yield Question({"eq": day.isoformat()}, lambda have: have is not None and have.date() == day)


def like(field: ListField, text: str) -> Question:
    """The ends of a choice; of any other text what is between them. In the other case."""
    if field.kind == "choice":
        first, last = text[:2], text[-1]
        return Question(
            {"like": f"{first}%{last}".upper()},
            lambda have: have is not None and have.lower().startswith(first) and have.lower().endswith(last),
        )
    return Question({"like": text[1:-1].upper()}, lambda have: have is not None and text[1:-1] in have.lower())


# ---- The questions ------------------------------------------------------------------------------------------------------------


def named(record: Record) -> tuple[Any, ...]:
    """What tells a record from the others of its list."""
    for names in (("id",), ("key_id",), ("transactionId",), ("network", "address"), ("network", "coin"), ("network",)):
        if all(name in record for name in names):
            return tuple(str(record[name]) for name in names)
    raise LookupError(record)


class List:
    """One route, and what it shows unasked, in its own order. `wrong` is what was answered otherwise than expected."""

    asked = 0
    """Of all lists together: keys are counted for, not lists."""

    def __init__(self, stack: Stack, route: Route, names: dict[str, str]) -> None:
        self.stack, self.route, self.query = stack, route, cast(type[PageQuery], route.query)
        if route.path.startswith("/invoices/{id}"):
            names = {**names, "id": names["invoice"]}
        self.path = f"/v1{route.path}".format_map(names)
        self.key = stack.keys["admin_test" if route.level == "admin" else "client_test"]
        self.wrong: list[Any] = []
        self.everything = self.ask()
        self.places = {named(record): place for place, record in enumerate(self.everything)}
        assert self.everything and len(self.places) == len(self.everything), route.path

    def ask(self, **query: str) -> list[Record]:
        if List.asked % AT_ONCE == 0:
            services().clock.shift_ms += APART_MS
        List.asked += 1
        reply = self.stack.call("GET", self.path, self.key, query={"limit": "100", **query})
        assert reply.status == 200, (self.path, query, reply.body)
        found = reply.json if isinstance(reply.json, list) else reply.json["data"]
        return cast(list[Record], found)

    def shown(self, field: ListField) -> list[Any]:
        """The field's value in every record of the list."""
        found = SHOWN.get((self.route.path, field.name))
        read: Read = found(self.stack) if found is not None else lambda record: record.get(field.name)
        return [read(record) for record in self.everything]

    def expect(self, wanted: Sequence[int], **query: str) -> None:
        """These places of the whole list, in this order."""
        found = [self.places.get(named(record)) for record in self.ask(**query)]
        if found != list(wanted):
            self.wrong.append((self.route.path, query, "found", found, "wanted", wanted))

    def check(self, operators: Container[str] = OPERATORS) -> dict[str, int]:
        """Ask all there is to ask with these operators. How many values each field has."""
        counts = {}
        for field in {field.name: field for field, _ in self.query.filters.values()}.values():
            shown = self.shown(field)
            have = [known(field, value) for value in shown]
            values = sorted({value for value in shown if value is not None}, key=lambda value: known(field, value))
            counts[field.name] = len(values)
            chosen = values if len(values) <= 3 else [values[0], values[len(values) // 2], values[-1]]
            descending = self.descending(have)
            sortable = field.name in self.query.sorts and "ne" in operators
            for question in questions(field, chosen):
                if not all(operator in operators for operator in question.sent):
                    continue
                query = {field.name if name == "eq" else f"{field.name}[{name}]": text for name, text in question.sent.items()}
                fit = [place for place, value in enumerate(have) if question.holds(value)]
                if "ne" in question.sent and sortable:
                    query |= {"sort": field.name, "order": "desc"}
                    fit = [place for place in descending if place in fit]
                self.expect(fit, **query)
            if sortable:
                self.expect(descending[::-1], sort=field.name, order="asc")
            for alias in field.aliases if values else ():
                first = known(field, values[0])
                self.expect([n for n, value in enumerate(have) if value == first], **{alias: written(field, values[0])})
        return counts

    def descending(self, have: Sequence[Any]) -> list[int]:
        """The places by these values. What has none comes first; where they are the same, the list's own order counts."""
        places = range(len(have)) if self.query.model_fields["order"].default == "desc" else range(len(have))[::-1]
        # Sorting keeps the order of what is the same, with `reverse` too.
        return sorted(places, key=lambda n: (have[n] is None, 0 if have[n] is None else have[n]), reverse=True)


@pytest.mark.slow
def test_every_field_of_every_list_takes_its_operators(stack: Stack) -> None:
    names = filled(stack)
    wrong: list[Any] = []
    most: dict[tuple[tuple[str, ...], str], int] = {}
    for route in LISTS:
        found = List(stack, route, names)
        fields = tuple(sorted(found.query.names))
        # Other routes of the same list only have other candidates: `eq` says whether a field is looked up among them.
        again = any(asked == fields for asked, _ in most)
        for name, count in found.check(("eq",) if again else OPERATORS).items():
            most[fields, name] = max(count, most.get((fields, name), 0))
        wrong += found.wrong
    assert not wrong, "\n".join(map(str, wrong))
    assert [at for at, count in most.items() if not count] == [], "nothing to ask for"
