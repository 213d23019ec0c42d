"""Every event of decisions §10: told by the transaction that makes the change, with the public record of that moment.

A witness looks at every transaction that the service commits, and asks the API for what it tells of, right behind it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from chalicelib.api.openapi import document
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.ledger import Balance
from chalicelib.domain.money import parse_units
from chalicelib.domain.refunds.refunds import Refund, event_family
from chalicelib.domain.refunds.status import ending
from chalicelib.domain.webhooks.endpoints import EventRecord
from chalicelib.domain.webhooks.events import EVENT_NAMES, Event, balance_object
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.domain.work import OutboxRow, Work
from chalicelib.store.dynamo import DynamoStore
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.views import Views
from chalicelib.usecases.invoices.status import changed, set_by_hand
from chalicelib.usecases.ports.changes import Change, Close, Conflict, Emit, Save
from chalicelib.wiring import services
from tests.support.mempools import SATOSHIS, Coins
from tests.support.openapi import validator_of
from tests.support.refunds import claimed, paid_invoice, payout_link, refund
from tests.support.shop import CONFIRMATIONS, PAYEE, Shop, open_shop
from tests.support.stack import Stack

THIEF = "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb"  # EIP-55's own example
ELSEWHERE = {"webhook.test", "webhook.failing", "webhook.disabled"}
"""What deliveries tell of themselves."""
GIVEN_BACK = {"ref_", "pol_"}
"""Refunds and payout links: each of their states has an event of its own, which names no earlier one."""
BY_HAND = {"cancelled", "refunded"}
"""Statuses that a merchant sets here, and that are not told: no event is named after them, or one that is told of the act alone."""

Told = Invoice | Withdrawal | Deposit | Balance | Refund


class Witness:
    """What was committed for one merchant, in order. `events` in the order of the commits."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.known: dict[str, Told] = {}
        self.paying: dict[str, Withdrawal] = {}
        """Those that pay refunds and payout links, as they were last."""
        self.events: list[Event] = []
        self.by_hand: set[str] = set()
        """Invoices whose status was set to what nothing is told of."""
        self._asking = False

    @property
    def tenant(self) -> str:
        return self.events[0].tenant

    def saw(self, changes: Sequence[Change]) -> None:
        """One transaction, right after it was committed."""
        if self._asking:
            return
        told: dict[str, list[Event]] = defaultdict(list)
        for change in changes:
            for event in change.row.events if isinstance(change, Emit) else ():
                told[event.object_id].append(event)
        for change in changes:
            if isinstance(change, Save) and isinstance(change.record, Told) and change.record.tenant is not None:
                self._judge(change.record, told.pop(_name(change.record), []))
        for change in changes:
            if isinstance(change, Save) and isinstance(change.record, Withdrawal) and change.record.repays is not None:
                self._judge_end(change.record, told.pop(change.record.repays.id, []))
        assert not told, f"told without a change: {told}"

    def _judge(self, record: Told, events: list[Event]) -> None:
        before = self.known.get(_name(record))
        self.known[_name(record)] = record
        names = [event.name for event in events]
        first = 0 if before is None else before.emitted
        assert [event.sequence for event in events] == list(range(first + 1, record.emitted + 1)), names
        if isinstance(record, Balance):
            changed = record.available != (0 if before is None else before.available)  # type: ignore[union-attr]
            assert names == (["balance.updated"] if changed else [])
        else:
            was = None if before is None else before.status  # type: ignore[union-attr]
            names = [name for name in names if name != "invoice.late_payment"]
            assert tuple(names) in _expected(record, was), (was, record.status, names)
            for event in events:
                changes = event.name != "invoice.late_payment" and was is not None and not isinstance(record, Refund)
                assert event.data.get("previous_status") == (was if changes else None), event
        self.events += events
        for event in events:
            self._compare(event, exact=False)

    def _judge_end(self, withdrawal: Withdrawal, events: list[Event]) -> None:
        """The refund or payout link that it pays has no change of its own when it ends."""
        repays, before = withdrawal.repays, self.paying.get(withdrawal.id)
        assert repays is not None
        self.paying[withdrawal.id] = withdrawal
        end = ending(withdrawal.status)
        if before is None or before.status == withdrawal.status or end is None:
            assert events == []
            return
        assert [(event.name, event.sequence) for event in events] == [(f"{event_family(repays.id)}.{end}", repays.told)]
        assert before.repays is not None and repays.told == before.repays.told + 1
        self.events += events
        for event in events:
            self._compare(event, exact=False)

    def _compare(self, event: Event, exact: bool) -> None:
        told = json.loads(json.dumps(event.data))
        for more in ("txId", "previous_status"):
            told.pop(more, None)
        if event.name == "withdrawal.status_changed" and told["transaction_hash"] is None:
            del told["transaction_hash"]  # the record has none before the broadcast
        self._asking = True
        try:
            shown = _as_in_events(self._shown(event.object_id))
        finally:
            self._asking = False
        if not exact:
            # The cursor passes a block once everything in it is told: till then answers count from the block before.
            counted, since = _confirmations(told), _confirmations(shown)
            assert all(a >= b for a, b in zip(counted, since, strict=True)), (event, shown)
        assert told == shown, event

    def _shown(self, object_id: str) -> Any:
        if object_id.startswith("inv_"):
            return self.shop.get("/v1/invoices", id=object_id)
        if object_id.startswith("wd_"):
            return self.shop.get(f"/v1/withdrawals/{object_id}")["data"]
        if object_id[:4] in GIVEN_BACK:
            return self.shop.get(f"/v1/{'refunds' if object_id.startswith('ref_') else 'payout-links'}/{object_id}")
        if object_id.startswith("tx_"):
            return self.shop.get(f"/v1/transactions/{object_id}")["data"]
        (found,) = (b for b in self.shop.get("/v1/balances")["data"] if f"{b['network']}:{b['coin']}" == object_id)
        return found

    def settled(self, *names: str) -> None:
        """A step is over: what was told last of these objects is what the API shows."""
        last = {event.object_id: event for event in self.events}
        for name in names:
            self._compare(last[name], exact=True)
        self.shop.wait(61)  # requests are counted by the minute


def _as_in_events(shown: Any) -> Any:
    """The record without what payments were worth when they were made: answers alone say that."""
    for record in (shown, *shown.get("transactions", ())):
        for name in ("fiatValue", "fiat_value"):
            record.pop(name, None)
    return shown


def _name(record: Told) -> str:
    return balance_object(record.asset) if isinstance(record, Balance) else record.id


def _expected(record: Invoice | Withdrawal | Deposit | Refund, was: str | None) -> list[tuple[str, ...]]:
    """What may be told of a record that went from `was` to what it is."""
    now = record.status
    if isinstance(record, Deposit):
        name = {"pending": "detected", "confirmed": "confirmed", "orphaned": "orphaned"}[now]
        return [() if now == was else (f"transaction.{name}",)]
    if isinstance(record, Withdrawal):
        if was is None:
            return [("withdrawal.created",)]
        changed = ("withdrawal.status_changed",) if now != was else ()
        return [(*changed, "withdrawal.completed") if changed and now == "confirmed" else changed]
    if isinstance(record, Refund):
        family = event_family(record.id)
        return [(f"{family}.created",) if was is None else () if was in (now, "ordered") else (f"{family}.{now}",)]
    if was is None:
        return [("invoice.created",)]
    if now == was or (now in BY_HAND and record.manual_status == now):
        return [()]
    return [(f"invoice.{now}",), ("invoice.reverted",)] if record.manual_status is None else [(f"invoice.{now}",)]


def _confirmations(shown: Any) -> list[int]:
    """Takes them out of a record that is not final in its chain."""
    if "transactions" in shown:
        return [payment.pop("confirmations") for payment in shown["transactions"]]
    return [shown.pop("confirmations")] if shown.get("type") == "deposit" else []


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Witness]]:
    """Whoever is put in here sees what is committed."""
    witnesses: list[Witness] = []
    real = DynamoStore.commit

    def commit(store: DynamoStore, changes: Sequence[Change], /) -> None:
        real(store, changes)
        for witness in witnesses:
            witness.saw(changes)

    monkeypatch.setattr(DynamoStore, "commit", commit)
    yield witnesses


class Operator:
    """Asks with the operator's key."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack

    def do(self, method: str, path: str, **body: Any) -> Any:
        reply = self.stack.call(method, path, self.stack.keys["admin_test"], json=body or None)
        assert reply.status in (200, 201), reply.body
        return reply.json


def paid_in_parts(shop: Shop, witness: Witness) -> dict[str, Any]:
    """partial, confirming, completed; and the balance."""
    invoice = shop.invoice("1")
    shop.pay(invoice["address"], "0.4")
    shop.mine(3)
    shop.turn()
    witness.settled(invoice["id"])
    shop.pay(invoice["address"], "0.6")
    shop.turn()
    witness.settled(invoice["id"])
    shop.mine()
    shop.turn()
    witness.settled(invoice["id"], "ethereum:eth")
    return invoice


def late_and_small(shop: Shop, witness: Witness) -> None:
    """Expired, paid too late; and where there is no open invoice, too little to be the merchant's."""
    late, small = shop.invoice("1", expiresIn=60), shop.post("/v1/addresses", {"network": "ethereum"}).json
    shop.wait(61)
    shop.turn("housekeeping")
    witness.settled(late["id"])
    shop.pay(late["address"], "1")
    Operator(shop.stack).do("PUT", "/v1/coins", coin="eth", network="ethereum", minDepositAmount="0.1")
    shop.pay(small["address"], "0.01")
    shop.turn()
    witness.settled(late["id"])
    shop.mine()
    shop.turn()
    Operator(shop.stack).do("PUT", "/v1/coins", coin="eth", network="ethereum", minDepositAmount=0)
    (below,) = shop.get("/v1/transactions", address=small["address"])["data"]
    assert below["flags"] == ["below_minimum"]
    witness.settled(below["id"], "ethereum:eth")


def held_and_released(shop: Shop, witness: Witness) -> None:
    """From the grey list: nothing is available until the operator says so."""
    operator = Operator(shop.stack)
    operator.do("POST", "/v1/addresses/grey-list", network="ethereum", address=THIEF)
    invoice, coin = shop.invoice("1"), shop.coin("eth")
    services().sandbox.deposit(coin.network, invoice["address"], coin, parse_units("1", coin.decimals), THIEF)
    shop.mine()
    shop.turn()
    (deposit,) = shop.get("/v1/transactions", invoiceId=invoice["id"])["data"]
    assert deposit["flags"] == ["grey_listed", "held"]
    witness.settled(deposit["id"], invoice["id"])
    operator.do("POST", f"/v1/transactions/{deposit['id']}/release")
    shop.turn()
    witness.settled(invoice["id"], "ethereum:eth")


def cancelled_and_paid(shop: Shop, witness: Witness) -> None:
    """A part, a cancellation, and the rest."""
    invoice = shop.invoice("1")
    shop.pay(invoice["address"], "0.4")
    shop.turn()
    assert shop.stack.call("DELETE", f"/v1/invoices/{invoice['id']}", shop.key).status == 200
    witness.settled(invoice["id"])
    shop.pay(invoice["address"], "0.6")
    shop.turn()
    witness.settled(invoice["id"])
    shop.mine()
    shop.turn()
    witness.settled("ethereum:eth")


def by_hand(shop: Shop, witness: Witness) -> None:
    """What a merchant sets is told where an event has its name."""
    invoice = shop.invoice("1")
    witness.by_hand.add(invoice["id"])
    for status in ("refunded", "completed", "cancelled"):
        assert shop.stack.call("PUT", "/v1/invoices", shop.key, json={"invoiceId": invoice["id"], "status": status}).status == 201
    shop.pay(invoice["address"], "1")
    shop.mine()
    shop.turn()
    assert shop.told(invoice["id"]) == {"invoice.created": 1, "invoice.completed": 1}
    witness.settled("ethereum:eth")


def paid_out(shop: Shop, witness: Witness) -> None:
    """Confirmed, cancelled, rejected, accepted, failed on the chain, and two in a batch."""
    operator = Operator(shop.stack)
    done, gone = shop.withdraw("0.1"), shop.withdraw("0.2")
    witness.settled(done, "ethereum:eth")
    assert shop.stack.call("DELETE", f"/v1/withdrawals/{gone}", shop.key).status == 200
    witness.settled(gone, "ethereum:eth")
    asked, agreed = shop.withdraw("0.1", address=THIEF), shop.withdraw("0.11", address=THIEF)
    operator.do("PUT", "/v1/withdrawals/request/reject", id=asked, reason="no")
    operator.do("PUT", "/v1/withdrawals/request/accept", id=agreed)
    witness.settled(asked, "ethereum:eth")
    broken = shop.withdraw("0.3")
    assert shop.post(f"/v1/sandbox/withdrawals/{broken}", {"outcome": "fail"}).status == 200
    outputs = [{"to_address": PAYEE, "amount": amount} for amount in ("0.01", "0.02")]
    batch = shop.post("/v1/withdrawals", {"batch_withdrawal": {"network": "ethereum", "coin": "eth", "outputs": outputs}})
    assert batch.status == 201, batch.body
    shop.turn()
    witness.settled("ethereum:eth")
    shop.mine()
    shop.turn()
    assert [shop.withdrawal(w)["status"] for w in (done, gone, asked, agreed, broken)] == [
        "confirmed", "cancelled", "failed", "confirmed", "failed",
    ]  # fmt: skip
    witness.settled(done, agreed, broken, *(w["id"] for w in batch.json["data"]["withdrawals"]))


def given_back(shop: Shop, witness: Witness) -> None:
    """A refund and a payout link each: claimed and paid, claimed and failed on the chain, cancelled, and never claimed."""
    invoice = paid_invoice(shop, "2")
    stories = [
        [refund(shop, invoice, amount=amount, **more), payout_link(shop, amount, **more)]
        for amount, more in (("0.1", {}), ("0.11", {}), ("0.12", {}), ("0.13", {"expiresIn": 30}))
    ]
    done, failing, gone, late = ([link["id"] for link in story] for story in stories)
    witness.settled(*done, *failing, *gone, *late, "ethereum:eth")
    for link in (*stories[0], *stories[1]):
        assert claimed(shop, link, PAYEE).status == 200
    shop.wait(61)
    for link in stories[1]:
        paying = witness._shown(link["id"])["withdrawalId"]
        assert shop.post(f"/v1/sandbox/withdrawals/{paying}", {"outcome": "fail"}).status == 200
    for id in gone:
        path = f"/v1/refunds/{id}" if id.startswith("ref_") else f"/v1/payout-links/{id}"
        assert shop.stack.call("DELETE", path, shop.key).status == 200
    witness.settled(*done, *gone, "ethereum:eth")
    shop.turn("housekeeping")
    witness.settled(*late, "ethereum:eth")
    shop.mine()
    shop.turn()
    witness.settled(*done, *failing, "ethereum:eth")
    told = {"completed": (done, ["claimed"]), "failed": (failing, ["claimed"]), "cancelled": (gone, []), "expired": (late, [])}
    for end, (ids, before) in told.items():
        for id in ids:
            assert shop.told(id) == {f"{event_family(id)}.{name}": 1 for name in ("created", *before, end)}


def taken_back(shop: Shop, witness: Witness) -> None:
    """What was completed and spent falls out of the chain and comes back; so does the payment that spent it."""
    invoice = shop.invoice("50", "usdt")
    paid = shop.pay(invoice["address"], "50", "usdt")
    shop.mine()
    shop.turn()
    spent = shop.withdraw("50", "usdt")
    shop.turn()
    shop.mine()
    shop.turn()
    witness.settled(spent)
    shop.reorg(2 * CONFIRMATIONS + 4, remine=True)
    shop.turn()
    key = next(e.object_id for e in witness.events if e.name.startswith("transaction.") and e.data["hash"] == paid["txid"])
    assert shop.told(key)["transaction.orphaned"] == 1
    witness.settled(key, spent)
    shop.mine(2 * CONFIRMATIONS)
    for _ in range(3):
        shop.turn()
    witness.settled(key, spent, invoice["id"])
    assert (shop.status(invoice), shop.withdrawal(spent)["status"], shop.available("usdt")) == ("completed", "confirmed", "0")
    lost = next(e for e in witness.events if e.object_id == "ethereum:usdt" and e.data["available"].startswith("-"))
    assert lost.data["available"] == "-50"


def test_every_event_is_told_with_its_change(stack: Stack, commits: list[Witness]) -> None:
    with open_shop(stack) as shop:
        witness = Witness(shop)
        commits.append(witness)
        paid_in_parts(shop, witness)
        late_and_small(shop, witness)
        held_and_released(shop, witness)
        cancelled_and_paid(shop, witness)
        by_hand(shop, witness)
        paid_out(shop, witness)
        taken_back(shop, witness)
        given_back(shop, witness)
        assert {event.name for event in witness.events} == set(EVENT_NAMES) - ELSEWHERE
        check_what_is_stored(witness)


def check_what_is_stored(witness: Witness) -> None:
    """Lists and single reads give what was committed: complete, in order, as documented, once."""
    shop = witness.shop
    bodies = [json.loads(record.body) for record in services().store.every(EventRecord) if record.tenant == witness.tenant]
    told = {body["id"]: body for body in bodies}
    assert len(told) == len(bodies) == len(witness.events)
    made = document.document()
    validators = {
        name: validator_of(said["post"]["requestBody"]["content"]["application/json"]["schema"], made["components"]["schemas"])
        for name, said in made["webhooks"].items()
    }
    objects: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for event in witness.events:
        body = told[event.id]
        assert (body["event"], body["sequence"], body["data"]) == (event.name, event.sequence, json.loads(json.dumps(event.data)))
        validators[event.name].validate(body)
        objects[event.object_id].append(body)
    for object_id, events in objects.items():
        assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
        assert [event["id"] for event in events] == sorted(event["id"] for event in events)
        if (
            object_id not in witness.by_hand
            and not object_id.endswith((":eth", ":usdt", ":btc"))
            and object_id[:4] not in GIVEN_BACK
        ):
            _check_statuses(events)
        assert shop.get("/v1/events", objectId=object_id, order="asc", limit="100")["data"] == events
        shop.wait(2)


def _check_statuses(events: Sequence[Mapping[str, Any]]) -> None:
    """`previous_status` is what was told last: a receiver that has seen one event before the other can check that none is
    missing."""
    last: str | None = None
    for event in events:
        data = event["data"]
        if event["event"] == "withdrawal.completed":
            assert data["previous_status"] != data["status"] == last  # the same change once more
        elif data.get("status") != last:
            assert data.get("previous_status") == last
        else:
            assert (event["event"], "previous_status" in data) == ("invoice.late_payment", False)
        last = data.get("status")


def test_a_payment_that_comes_and_goes_before_it_is_in_a_block(coins: Coins, commits: list[Witness]) -> None:
    witness = Witness(coins.shop)
    commits.append(witness)
    invoice = coins.shop.invoice("1", "btc")
    sent = coins.send(invoice["address"], SATOSHIS, spends=("cd" * 32 + ":0",))
    coins.look()
    witness.settled(coins.id(sent), invoice["id"])
    waiting = dict(coins.pool.held)
    coins.pool.held.clear()
    coins.pool.spent.add("cd" * 32 + ":0")
    coins.look()
    witness.settled(coins.id(sent), invoice["id"])
    coins.pool.spent.clear()
    coins.pool.held.update(waiting)
    coins.look()
    witness.settled(coins.id(sent), invoice["id"])
    coins.mine(sent)
    coins.look()
    coins.confirm()
    witness.settled(coins.id(sent), invoice["id"], "bitcoin:btc")
    told = [(e.name, e.data.get("previous_status")) for e in witness.events if e.object_id == coins.id(sent)]
    assert told == [
        ("transaction.detected", None), ("transaction.orphaned", "pending"),
        ("transaction.detected", "orphaned"), ("transaction.confirmed", "pending"),
    ]  # fmt: skip
    check_what_is_stored(witness)


def test_a_change_that_is_not_committed_is_not_told(stack: Stack) -> None:
    """The same in one transaction, cut at every call of AWS: `tests/faults/test_sweep.py`, whose audit misses every event that a
    record says it emitted, and finds every one that it did not."""
    store, shop = services().store, Shop(stack)
    invoice = shop.invoice("1")
    (stored,) = (i for i in store.every(Invoice) if i.id == invoice["id"])
    rows = {row.id for row in store.every(OutboxRow)}
    news = News(0)
    after = set_by_hand(news, stored, "completed", "key_1", 0, Views(store.catalogue("test")), None)
    with pytest.raises(Conflict):
        store.commit([*changed(stored, after), *news.emit(), Close(Work("expiry", "nowhere", "0", invoice["id"]))])
    assert ({row.id for row in store.every(OutboxRow)}, shop.status(invoice)) == (rows, "pending")
