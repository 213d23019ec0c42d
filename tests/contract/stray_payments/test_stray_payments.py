"""Payments to the right address on the wrong EVM network: read, credited or returned, each exactly once, whatever dies or races."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.addresses.addresses import Watched
from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.stray_payments import StrayPayment
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.stray_payments.reading import Reading, StrayReader
from chalicelib.wiring import services
from tests.faults.left_to_newer import Left
from tests.support.shop import PAYEE, Shop
from tests.support.stack import Response, Stack

LATE_TOKEN = "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb"  # EIP-55's own example
CUSTOMER = "0x52908400098527886E0F7030069857D2E4169EE7"


class Desk:
    """A merchant with an address for ethereum alone, and the operator. Payments come to it on polygon."""

    def __init__(self, stack: Stack) -> None:
        self.stack, self.shop = stack, Shop(stack, network="polygon")
        self.owner = Shop(stack, "admin_test", "polygon")
        self.address = self.make()

    def make(self) -> str:
        return str(self.shop.post("/v1/addresses", {"network": "ethereum", "mode": "common"}).json["address"])

    def call(self, method: str, path: str, body: Any = None, key: str = "admin_test", **headers: str) -> Response:
        return self.stack.call(method, f"/v1/stray-payments{path}", self.stack.keys[key], json=body, headers=headers)

    def pay(self, amount: str = "5", coin: str = "usdt") -> str:
        """A customer pays on the wrong network; the transaction, deep in the chain, and seen by the poll to be nobody's."""
        txid = str(self.shop.pay(self.address, amount, coin)["txid"])
        self.shop.mine(20)
        self.shop.turn()
        return txid

    def read(self, txid: str) -> Any:
        answer = self.call("POST", "", {"network": "polygon", "txid": txid})
        assert answer.status == 201, answer.body
        return answer.json["data"]

    def one(self, txid: str) -> Any:
        (payment,) = self.read(txid)["payments"]
        return payment

    def shown(self, payment: Any) -> Any:
        (shown,) = self.call("GET", f"?id={payment['id']}").json["data"]
        return shown

    def credit(self, payment: Any, **headers: str) -> Response:
        return self.call("POST", f"/{payment['id']}/credit", **headers)

    def send_back(self, payment: Any, address: str = CUSTOMER, **headers: str) -> Response:
        return self.call("POST", f"/{payment['id']}/return", {"address": address}, **headers)

    def run(self) -> None:
        """Polls until the rescan, the confirmation and what follows them are done."""
        for _ in range(3):
            self.shop.turn()

    def books(self) -> None:
        assert audit(services().store) == []
        assert not [w for w in services().store.every_work() if w.kind in ("rescan", "stray")]


@pytest.fixture
def desk(stack: Stack) -> Desk:
    return Desk(stack)


def refused(answer: Response, words: str, code: str = "VALIDATION_ERROR") -> None:
    assert (answer.status, answer.json["error"]["code"]) == (400, code), answer.body
    assert words in str(answer.json["error"]), answer.body


def test_it_is_told_and_shown_and_nothing_is_credited_by_that(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    txid = desk.pay()
    (alarm,) = {r.getMessage() for r in caplog.records if "which receives on" in r.getMessage()}
    assert alarm.startswith("ALARM test:polygon") and txid in alarm and "POST /v1/stray-payments" in alarm
    read = desk.read(txid)
    (payment,) = read["payments"]
    assert {name: read[name] for name in ("network", "txid", "internalTransfers")} == {
        "network": "polygon", "txid": txid, "internalTransfers": "read",
    }  # fmt: skip
    expected = {
        "status": "open", "network": "polygon", "txid": txid, "address": desk.address, "coin": "usdt", "symbol": "USDT",
        "amount": "5", "units": "5000000", "transactionId": None, "transactionStatus": None, "withdrawalId": None,
        "returnTo": None, "requiredConfirmations": 20,
    }  # fmt: skip
    assert {name: payment[name] for name in expected} == expected
    assert payment["confirmations"] >= 20
    assert desk.read(txid)["payments"] == [payment]  # read again, it is the same record
    listed = desk.call("GET", "").json
    assert (listed["success"], listed["data"], listed["meta"]["pagination"]["total"]) == (True, [payment], 1)
    for query in (f"?txid={txid}", f"?address={desk.address.lower()}", "?status=open", "?network=polygon", f"?id={payment['id']}"):
        assert desk.call("GET", query).json["data"] == [payment], query
    for query in ("?status=credit", "?network=bsc", "?txid=0x00"):
        assert desk.call("GET", query).json["data"] == [], query
    assert desk.shop.available("usdt") == "0"
    desk.books()


def test_credited_once_in_the_ordinary_way(desk: Desk) -> None:
    payment = desk.one(desk.pay())
    answer = desk.credit(payment)
    assert (answer.status, answer.json["data"]["status"]) == (201, "credit")
    desk.run()
    assert desk.shop.available("usdt") == "5"
    shown = desk.shown(payment)
    assert (shown["status"], shown["transactionStatus"], shown["transactionId"]) == ("credit", "confirmed", payment["id"])
    assert desk.shop.get(f"/v1/transactions/{payment['id']}")["data"]["amount"] == "5"
    assert desk.shop.told(payment["id"]) == {"transaction.detected": 1, "transaction.confirmed": 1}
    address = desk.shop.get(f"/v1/addresses/{desk.address}")
    assert address["affectedNetworks"] == ["ethereum", "polygon"]
    assert [b["balance"] for b in address["balances"] if (b["network"], b["coin"]) == ("polygon", "usdt")] == ["5"]
    # What comes there from now on needs nobody.
    desk.pay("2")
    assert desk.shop.available("usdt") == "7"
    refused(desk.credit(payment), "decided before: credit")
    refused(desk.send_back(payment), "decided before: credit")
    desk.run()
    assert desk.shop.available("usdt") == "7"
    desk.books()


def test_returned_to_the_customer(desk: Desk) -> None:
    payment = desk.one(desk.pay())
    answer = desk.send_back(payment)
    assert (answer.status, answer.json["data"]["status"], answer.json["data"]["returnTo"]) == (201, "return", CUSTOMER)
    desk.run()
    shown = desk.shown(payment)
    withdrawal = desk.owner.withdrawal(shown["withdrawalId"])
    assert (withdrawal["to_address"], withdrawal["amount"], withdrawal["coin"]) == (CUSTOMER, "5", "usdt")
    desk.shop.mine(20)
    desk.run()
    assert desk.owner.withdrawal(shown["withdrawalId"])["status"] == "confirmed"
    assert desk.shop.chain().balance(CUSTOMER, desk.shop.coin("usdt").contract) == 5_000_000
    assert (desk.owner.available("usdt"), desk.shop.available("usdt")) == ("0", "0")
    # The merchant sees nothing of it.
    assert desk.shop.told(payment["id"]) == {"transaction.detected": 1, "transaction.confirmed": 1}
    assert desk.shop.get("/v1/transactions")["data"] == []
    assert desk.stack.call("GET", f"/v1/transactions/{payment['id']}", desk.shop.key).status == 404
    assert desk.shop.get(f"/v1/addresses/{desk.address}")["affectedNetworks"] == ["ethereum"]
    refused(desk.credit(payment), "decided before: return")
    refused(desk.send_back(payment), "decided before: return")
    assert len(list(services().store.every(Withdrawal))) == 1
    desk.books()


def test_what_was_returned_is_never_the_merchants(desk: Desk) -> None:
    """Its address becomes watched there while the return is under way, by the credit of another payment in another block; then by
    all that looks at blocks again."""
    first, second = desk.pay("5"), desk.pay("3")
    returned, credited = desk.one(first), desk.one(second)
    assert desk.send_back(returned).status == 201
    assert desk.credit(credited).status == 201  # before any poll
    desk.run()
    tip = services().scanner(desk.shop.realm_network()).start().number
    body = {"fromBlock": 0, "toBlock": tip}
    asked = desk.stack.call("POST", "/v1/networks/polygon/rescan", desk.stack.keys["admin_test"], json=body)
    assert asked.status == 201
    desk.run()
    assert desk.shop.available("usdt") == "3"
    assert desk.owner.withdrawal(desk.shown(returned)["withdrawalId"])["amount"] == "5"
    assert sorted(d.amount for d in services().store.every(Deposit) if d.tenant is not None) == [3_000_000, 5_000_000]
    desk.shop.mine(20)
    desk.run()
    assert desk.owner.withdrawal(desk.shown(returned)["withdrawalId"])["status"] == "confirmed"
    desk.books()


def test_where_its_address_is_watched_it_is_its_merchants(desk: Desk) -> None:
    """A second payment after the first was credited: seen by itself, and neither credited again nor returned."""
    assert desk.credit(desk.one(desk.pay())).status == 201
    desk.run()
    txid = desk.pay("4")
    payment = desk.one(txid)
    assert (payment["status"], payment["transactionId"], payment["transactionStatus"]) == ("recorded", payment["id"], "confirmed")
    refused(desk.credit(payment), "is recorded already")
    refused(desk.send_back(payment), "is recorded already")
    desk.run()
    assert desk.shop.available("usdt") == "9"
    desk.books()


def test_one_that_the_scan_would_credit_is_credited_once(desk: Desk) -> None:
    """To an address that is watched everywhere, read before it has its confirmations."""
    address = desk.shop.post("/v1/addresses", {"network": "ethereum", "mode": "cross"}).json["address"]
    txid = desk.shop.pay(address, "5", "usdt")["txid"]
    desk.shop.turn()
    payment = desk.one(txid)
    assert (payment["status"], payment["transactionStatus"]) == ("recorded", "pending")
    desk.shop.mine(20)
    refused(desk.credit(payment), "confirmations")
    desk.shop.turn()
    refused(desk.credit(payment), "is recorded already")
    desk.run()
    assert desk.shop.available("usdt") == "5"
    desk.books()


def test_a_token_that_is_not_registered(desk: Desk) -> None:
    txid = desk.shop.chain().deposit(desk.address, LATE_TOKEN, 7_000_000).txid
    desk.shop.mine(20)
    desk.shop.turn()
    payment = desk.one(txid)
    assert {name: payment[name] for name in ("coin", "symbol", "amount", "units", "contractAddress")} == {
        "coin": None, "symbol": None, "amount": None, "units": "7000000", "contractAddress": LATE_TOKEN,
    }  # fmt: skip
    for answer in (desk.credit(payment), desk.send_back(payment)):
        refused(answer, "not registered on polygon: POST /v1/coins")
    services().store.commit([Save(Coin(desk.shop.realm_network().id, "late", "LATE", "Late Token", 6, LATE_TOKEN))])
    services().store.forget_catalogue()
    assert desk.shown(payment)["amount"] == "7"
    assert desk.credit(payment).status == 201
    desk.run()
    assert desk.shop.available("late") == "7"
    desk.books()


def test_native_coins(desk: Desk) -> None:
    credited, returned = desk.one(desk.pay("2", "matic")), desk.one(desk.pay("3", "matic"))
    assert desk.send_back(returned).status == 201
    assert desk.credit(credited).status == 201
    desk.run()
    assert desk.shop.available("matic") == "2"
    assert desk.owner.withdrawal(desk.shown(returned)["withdrawalId"])["amount"] == "3"
    desk.books()


def test_too_few_confirmations(desk: Desk) -> None:
    txid = desk.shop.pay(desk.address, "5", "usdt")["txid"]
    desk.shop.turn()
    payment = desk.one(txid)
    for _ in range(2):
        for answer in (desk.credit(payment), desk.send_back(payment)):
            refused(answer, "of 20 confirmations")
        desk.shop.mine(18)  # which nobody has scanned
    desk.shop.turn()
    assert desk.credit(payment).status == 201
    desk.run()
    assert desk.shop.available("usdt") == "5"


@pytest.mark.parametrize("remine", [False, True])
def test_a_reorganisation_before_the_decision(desk: Desk, remine: bool) -> None:
    """What the record says of the block is out of date: nothing is decided until the transaction is read again."""
    txid = desk.pay()
    payment = desk.one(txid)
    desk.shop.reorg(30, remine)
    desk.shop.turn()
    for answer in (desk.credit(payment), desk.send_back(payment)):
        refused(answer, "fell out of the chain")
    if not remine:
        refused(desk.call("POST", "", {"network": "polygon", "txid": txid}), "is in no block")
    else:
        again = desk.one(txid)
        assert again["id"] == payment["id"] and again["blockHash"] != payment["blockHash"]
        desk.shop.mine(20)
        desk.shop.turn()
        assert desk.credit(again).status == 201
        desk.run()
        assert desk.shop.available("usdt") == "5"
    desk.books()


@pytest.mark.parametrize("decision", ["credit", "send_back"])
@pytest.mark.parametrize("remine", [False, True])
def test_a_reorganisation_after_the_decision(desk: Desk, decision: str, remine: bool) -> None:
    """It falls out before any poll has looked: credited is what is in the chain, to whom it was decided, and nothing else."""
    payment = desk.one(desk.pay())
    decide: Callable[[Any], Response] = getattr(desk, decision)
    assert decide(payment).status == 201
    desk.shop.reorg(30, remine)
    desk.shop.mine(20)
    for _ in range(3):
        desk.shop.turn(failures=[])
    shown = desk.shown(payment)
    got = {"credit": (desk.shop, "5"), "send_back": (desk.owner, "0")}[decision]
    if not remine:
        assert (desk.shop.available("usdt"), desk.owner.available("usdt"), shown["withdrawalId"]) == ("0", "0", None)
    else:
        assert got[0].available("usdt") == got[1]
        assert (shown["withdrawalId"] is None) == (decision == "credit")
    assert audit(services().store) == []


def test_a_reorganisation_after_the_return_was_credited(desk: Desk) -> None:
    """In another block it is the operator's merchant's again, once; the withdrawal is not ordered twice."""
    payment = desk.one(desk.pay())
    assert desk.send_back(payment).status == 201
    desk.run()
    withdrawal = desk.shown(payment)["withdrawalId"]
    desk.shop.reorg(40, remine=True)
    desk.shop.mine(20)
    desk.run()
    desk.shop.mine(20)
    desk.run()
    assert desk.shown(payment)["withdrawalId"] == withdrawal
    assert [w.id for w in services().store.every(Withdrawal)] == [withdrawal]
    assert (desk.owner.available("usdt"), desk.shop.available("usdt")) == ("0", "0")
    assert audit(services().store) == []


def test_the_same_request_twice(desk: Desk) -> None:
    txid = desk.pay()
    read = [desk.call("POST", "", {"network": "polygon", "txid": txid}, **{"Idempotency-Key": "a"}) for _ in range(2)]
    assert read[0].body == read[1].body and read[1].headers["idempotency-replayed"] == "true"
    (payment,) = read[0].json["data"]["payments"]
    sent = [desk.send_back(payment, **{"Idempotency-Key": "b"}) for _ in range(2)]
    assert [answer.status for answer in sent] == [201, 201] and sent[0].body == sent[1].body
    refused(desk.send_back(payment, PAYEE, **{"Idempotency-Key": "b"}), "another request")
    desk.run()
    assert len(list(services().store.every(Withdrawal))) == 1


def test_a_return_goes_where_a_withdrawal_may_go(desk: Desk) -> None:
    """Refused at once, before anything is decided."""
    payment = desk.one(desk.pay())
    refused(desk.send_back(payment, "0x123"), "Not an address of polygon", "INVALID_ADDRESS")
    refused(desk.send_back(payment, desk.address), "not watched on polygon")
    refused(desk.send_back(payment, desk.shop.coin("usdt").contract or ""), "contract of a token")
    hot = desk.stack.call("GET", "/v1/addresses/hot-wallet/polygon", desk.stack.keys["admin_test"]).json["address"]
    refused(desk.send_back(payment, hot), "wallet of the service itself")
    small = desk.one(desk.pay("0.000001"))
    refused(desk.send_back(small), "must be at least")
    assert desk.shown(payment)["status"] == "open"
    assert desk.credit(payment).status == 201


def test_the_kill_switch_holds_it_and_approvals_do(desk: Desk) -> None:
    payment = desk.one(desk.pay())
    admin = desk.stack.keys["admin_test"]
    assert desk.stack.call("PUT", "/v1/withdrawals/switch", admin, json={"stopped": True, "reason": "test"}).status == 200
    assert desk.send_back(payment).status == 201
    desk.run()
    withdrawal = desk.shown(payment)["withdrawalId"]
    assert desk.owner.withdrawal(withdrawal)["pending_reason"] == "halted"
    assert desk.stack.call("PUT", "/v1/withdrawals/switch", admin, json={"stopped": False, "reason": "test"}).status == 200
    entry = {"network": "polygon", "address": CUSTOMER}
    assert desk.stack.call("POST", "/v1/addresses/grey-list", admin, json=entry).status == 201
    other = desk.one(desk.pay("6"))
    assert desk.send_back(other).status == 201
    desk.run()
    assert desk.owner.withdrawal(desk.shown(other)["withdrawalId"])["pending_reason"] == "approval"


def test_all_that_a_withdrawal_can_need_fits_into_one_transaction(desk: Desk) -> None:
    """A payee with a limit of its own, and on the grey list: its window, approval and obligation are stored beside the rest."""
    admin = desk.stack.keys["admin_test"]
    trusted = {"network": "polygon", "address": CUSTOMER, "label": "customer", "daily_limit": "100"}
    assert desk.stack.call("POST", "/v1/whitelist/addresses", admin, json=trusted).status == 201
    entry = {"network": "polygon", "address": CUSTOMER}
    assert desk.stack.call("POST", "/v1/addresses/grey-list", admin, json=entry).status == 201
    payment = desk.one(desk.pay())
    assert desk.send_back(payment).status == 201
    desk.run()
    assert desk.owner.withdrawal(desk.shown(payment)["withdrawalId"])["pending_reason"] == "approval"
    desk.books()


def test_what_is_in_the_way_of_its_withdrawal_is_told(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """A limit that is set after the decision: the payment is the operator's merchant's, and goes out once the limit is lifted."""
    admin = desk.stack.keys["admin_test"]
    payment = desk.one(desk.pay())
    assert desk.send_back(payment).status == 201
    for most in (1, 0):
        setting = {"coin": "usdt", "network": "polygon", "maxValue": most}
        assert desk.stack.call("PUT", "/v1/coins", admin, json=setting).status == 200
        services().store.forget_catalogue()
        desk.run()
        shown = desk.shown(payment)
        if most:
            assert shown["withdrawalId"] is None and "must be at most 1" in shown["detail"]
            assert desk.owner.available("usdt") == "5"
    told = [r.getMessage() for r in caplog.records if "can not be returned" in r.getMessage()]
    assert len(told) == 1 and told[0].startswith("ALARM test:polygon")
    assert shown["detail"] is None and desk.owner.withdrawal(shown["withdrawalId"])["amount"] == "5"
    desk.books()


def test_a_grey_listed_payer(desk: Desk) -> None:
    """What is returned is held as any deposit of theirs, until it is released."""
    admin = desk.stack.keys["admin_test"]
    sender = "0x8617E340B3D01FA5F11F306F4090FD50E238070D"
    listed = desk.stack.call("POST", "/v1/addresses/grey-list", admin, json={"network": "polygon", "address": sender})
    assert listed.status == 201
    coin = desk.shop.coin("usdt")
    txid = services().sandbox.deposit(coin.network, desk.address, coin, 5_000_000, sender)["txid"]
    desk.shop.mine(20)
    desk.shop.turn()
    payment = desk.one(txid)
    assert desk.send_back(payment).status == 201
    desk.run()
    shown = desk.shown(payment)
    waits = "waits for its release: the transaction is held or set aside, its flags say why"
    assert (shown["withdrawalId"], shown["detail"]) == (None, waits)
    assert desk.stack.call("POST", f"/v1/transactions/{payment['id']}/release", admin).status == 200
    desk.run()
    assert desk.shown(payment)["withdrawalId"] is not None
    desk.books()


def test_what_is_below_the_minimum_is_returned_whole(desk: Desk) -> None:
    admin = desk.stack.keys["admin_test"]
    payment = desk.one(desk.pay())
    setting = {"coin": "usdt", "network": "polygon", "minDepositAmount": 50}
    assert desk.stack.call("PUT", "/v1/coins", admin, json=setting).status == 200
    assert desk.send_back(payment).status == 201
    desk.run()
    assert desk.owner.withdrawal(desk.shown(payment)["withdrawalId"])["amount"] == "5"
    desk.books()


def test_what_can_not_be_read(desk: Desk) -> None:
    def look(network: str, txid: str) -> Response:
        return desk.call("POST", "", {"network": network, "txid": txid})

    nobodys = desk.shop.pay(PAYEE, "5", "usdt")["txid"]
    refused(look("polygon", nobodys), "brought nothing to a deposit address")
    refused(look("polygon", "0x" + "ab" * 32), "is in no block")
    refused(look("bitcoin", "0x" + "ab" * 32), "only EVM networks")
    refused(look("polygon", "0x12"), "64 hexadecimal digits", "INVALID_PARAMETER")
    network = desk.shop.realm_network()
    services().store.commit([Save(replace(network, status="inactive", version=network.version + 1))])
    services().store.forget_catalogue()
    refused(look("polygon", nobodys), "not active here")


def test_a_transaction_that_pays_many(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """More movements than one transaction of the store has room for: all are stored, and the answer with the last of them."""
    txid = desk.pay()
    real = StrayReader.read

    def many(self: StrayReader, txid: str) -> Reading:
        reading = real(self, txid)
        (one,) = reading.arrived
        return replace(reading, arrived=tuple(replace(one, deposit=f"tx_{n:026d}") for n in range(23)))

    monkeypatch.setattr(StrayReader, "read", many)
    body = {"network": "polygon", "txid": txid}
    first, again = (desk.call("POST", "", body, **{"Idempotency-Key": "many"}) for _ in range(2))
    assert [p["id"] for p in first.json["data"]["payments"]] == [f"tx_{n:026d}" for n in range(23)]
    assert (first.status, again.body) == (201, first.body)
    assert desk.read(txid)["payments"] == first.json["data"]["payments"]
    assert desk.call("GET", "?limit=5").json["meta"]["pagination"]["total"] == 23


def test_it_is_the_operators_alone(desk: Desk) -> None:
    payment = desk.one(desk.pay())
    for key, status in (("client_test", 403), ("admin_live", 404)):
        for method, path, body in (
            ("POST", f"/{payment['id']}/credit", None),
            ("POST", f"/{payment['id']}/return", {"address": CUSTOMER}),
        ):
            assert desk.call(method, path, body, key).status == status, (key, method, path)
    for query in ("", f"?id={payment['id']}", f"?txid={payment['txid']}"):
        assert desk.call("GET", query, key="admin_live").json["data"] == []
        assert desk.call("GET", query, key="client_test").status == 403
    assert desk.call("POST", "/tx_nothing/credit").status == 404
    assert desk.credit(payment).status == 201


def test_decided_twice_at_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between reading and storing one decision the other one is made: it stands, and this one is refused."""
    store = services().store
    real = type(store).commit
    for first, second in (("credit", "send_back"), ("send_back", "credit")):
        desk.address = desk.make()
        payment = desk.one(desk.pay())
        sooner: list[Response] = []

        def commit(self: Any, changes: Any, sooner: list[Response] = sooner, payment: Any = payment, first: str = first) -> None:
            if any(isinstance(getattr(change, "record", None), StrayPayment) for change in changes):
                monkeypatch.setattr(type(store), "commit", real)
                sooner.append(getattr(desk, first)(payment))
            real(self, changes)

        monkeypatch.setattr(type(store), "commit", commit)
        late = getattr(desk, second)(payment)
        assert [answer.status for answer in sooner] == [201]
        refused(late, "decided before")
        desk.run()
    assert desk.shop.available("usdt") == "5"
    assert len(list(store.every(Withdrawal))) == 1
    desk.books()


def test_watched_between_reading_and_returning(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address comes to be watched there by other means while a return is being decided: the return is refused."""
    payment = desk.one(desk.pay())
    store = services().store
    real = type(store).commit

    def commit(self: Any, changes: Any) -> None:
        if any(isinstance(getattr(c, "record", None), StrayPayment) for c in changes):
            monkeypatch.setattr(type(store), "commit", real)
            watched = store.get(Watched, realm="test", family="evm", address=desk.address.lower())
            assert watched is not None
            after = replace(watched, networks=("ethereum", "polygon"), version=watched.version + 1)
            store.commit([Save(after)])
        real(self, changes)

    monkeypatch.setattr(type(store), "commit", commit)
    refused(desk.send_back(payment), "so it is its merchant's")
    assert desk.credit(payment).status == 201
    desk.run()
    assert (desk.shop.available("usdt"), desk.owner.available("usdt")) == ("5", "0")
    desk.books()


def test_a_deposit_in_a_newer_form_keeps_no_other_from_the_list(desk: Desk) -> None:
    """Which it was can not be told here; the decision about it waits for the newer version."""
    first, second = desk.one(desk.pay("5")), desk.one(desk.pay("6"))
    assert desk.credit(first).status == 201
    desk.run()
    left = Left(services().store.get(Deposit, id=first["id"]), "status")
    left.put("confirmed")
    left.form(1)
    assert [each["id"] for each in desk.call("GET", "").json["data"]] == [second["id"]]
    left.unform()
    assert len(desk.call("GET", "").json["data"]) == 2


@pytest.mark.parametrize("asked", ["read", "credit", "return"])
def test_recorded_in_a_newer_form_before_the_answer(desk: Desk, monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    """A newer version records the payment between a request's decision and its answer: the caller is told to ask again, and nothing
    is decided yet."""
    first, txid = desk.one(desk.pay("5")), desk.pay("6")
    second = desk.one(txid)
    assert (desk.send_back if asked == "return" else desk.credit)(first).status == 201
    desk.run()
    store = services().store
    recorded = store.get(Deposit, id=first["id"])
    real, stored = type(store).get_many, list[Left]()

    def get_many(self: Any, wanted: Any, /) -> Any:
        if [kind for kind, _ in wanted] == [Deposit] and not stored:  # the answer's own read
            made = replace(recorded, id=second["id"], version=1)
            store.commit([Save(made)])
            stored.append(Left(made, "status"))
            stored[0].put("confirmed")
            stored[0].form(1)
        return real(self, wanted)

    asks: dict[str, Callable[[], Response]] = {
        "read": lambda: desk.call("POST", "", {"network": "polygon", "txid": txid}),
        "credit": lambda: desk.credit(second),
        "return": lambda: desk.send_back(second),
    }
    with monkeypatch.context() as patch:
        patch.setattr(type(store), "get_many", get_many)
        answer = asks[asked]()
    assert (answer.status, answer.headers.get("retry-after")) == (500, "120"), answer.body
    assert "send the request again" in answer.json["error"]["message"]
    (left,) = stored
    left.unform()
    store.remove(Deposit, id=second["id"])
    assert desk.shown(second)["status"] == "open"
    assert asks[asked]().status == 201
    desk.run()
    desk.books()
