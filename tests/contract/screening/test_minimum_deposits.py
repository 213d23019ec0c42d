"""`minDepositAmount`: an open invoice takes every amount; elsewhere less is the operator's until an operator releases it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.catalogue.rates import ConstantRates, Rate, Rates
from chalicelib.domain.chain import Transfer
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.ledger import Book, WalletBalance, operator
from chalicelib.usecases.ports.changes import Post
from chalicelib.wiring import services
from tests.support.cuts import Died
from tests.support.shop import CONFIRMATIONS, PAYEE, bent_node, open_shop, with_also
from tests.support.stack import Response, Stack
from tests.support.till import Till

THIEF = "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb"  # EIP-55's own example
MINIMUM = "below_minimum"
DEEP = CONFIRMATIONS + 2


@pytest.fixture
def till(stack: Stack) -> Iterator[Till]:
    with open_shop(stack) as opened:
        yield Till(opened.stack)


def test_the_rest_of_an_invoice_counts_however_little_it_is(till: Till) -> None:
    """12 paid as 11 and 1, with a minimum of 5."""
    till.minimum()
    invoice = till.invoice("12", "usdt")
    till.pay(invoice["address"], "11", "usdt")
    till.settle()
    assert till.status(invoice) == "partial"
    till.pay(invoice["address"], "1", "usdt")
    till.settle()
    assert (till.status(invoice), till.available("usdt"), till.flags(invoice["address"])) == ("completed", "12", [[], []])
    assert (till.of(invoice).confirmed, till.operators()) == (12 * 10**6, 0)


def test_the_first_payment_of_an_invoice_makes_it_partial(till: Till) -> None:
    till.minimum()
    invoice = till.invoice("12", "usdt")
    till.pay(invoice["address"], "0.5", "usdt")
    till.seen()
    assert (till.status(invoice), till.balance("usdt")["pending"]) == ("partial", "0.5")
    till.settle()
    assert (till.status(invoice), till.available("usdt")) == ("partial", "0.5")


def test_two_in_one_block_both_too_little(till: Till, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of them completes the invoice at once; the other was seen with it. What comes in a later block was not."""
    settings = {"settings": {"autoConfirmThreshold": 100}}
    assert till.stack.call("PUT", "/v1/invoices/configureSettings", till.key, json=settings).status == 201
    invoice = till.invoice("3", "usdt")
    till.minimum()
    node = bent_node(till, monkeypatch)
    till.mine(1)
    contract = till.coin("usdt").contract
    assert contract is not None
    both = [
        Transfer("0x" + mark * 32, "log:0", contract.lower(), PAYEE.lower(), invoice["address"].lower(), units)
        for mark, units in (("aa", 3 * 10**6), ("bb", 2 * 10**6))
    ]
    (block,) = node._real.blocks(node._real.tip(), node._real.tip(), {})
    with_also(node, both, block.hash)
    till.turn()
    assert (till.status(invoice), till.flags(invoice["address"])) == ("completed", [[], []])
    assert till.balance("usdt")["pending"] == "5"
    till.pay(invoice["address"], "1", "usdt")
    till.turn()
    assert sorted(till.flags(invoice["address"])) == [[], [], [MINIMUM]]
    till.settle()
    assert (till.available("usdt"), till.shown(invoice)["overpaid"]) == ("5", "2")


def test_another_coin_at_the_address_of_an_open_invoice(till: Till) -> None:
    """It counts for no invoice, and is the merchant's."""
    till.minimum(coin="usdc")
    invoice = till.invoice("12", "usdt")
    till.pay(invoice["address"], "1", "usdc")
    till.settle()
    assert (till.available("usdc"), till.status(invoice), till.flags(invoice["address"])) == ("1", "pending", [[]])


def expired(till: Till, invoice: dict[str, Any]) -> None:
    till.wait(4000)
    till.seen()
    till.turn("housekeeping")
    assert till.status(invoice) == "expired"


def completed(till: Till, invoice: dict[str, Any]) -> None:
    till.pay(invoice["address"], "12", "usdt")
    till.settle()
    assert till.status(invoice) == "completed"


def by_hand(till: Till, invoice: dict[str, Any]) -> None:
    answer = till.stack.call("PUT", "/v1/invoices", till.key, json={"invoiceId": invoice["id"], "status": "shipped"})
    assert answer.status == 201, answer.body


@pytest.mark.parametrize("closed", [expired, completed, by_hand])
def test_an_invoice_that_is_no_longer_open_has_the_minimum(till: Till, closed: Any) -> None:
    till.minimum()
    invoice = till.invoice("12", "usdt")
    closed(till, invoice)
    had = till.available("usdt")
    till.pay(invoice["address"], "4.999999", "usdt")
    till.settle()
    assert (till.available("usdt"), [MINIMUM] in till.flags(invoice["address"])) == (had, True)
    assert till.operators() == 4_999_999
    till.pay(invoice["address"], "5", "usdt")
    till.settle()
    assert float(till.available("usdt")) == float(had) + 5


@pytest.mark.parametrize("closed", [expired, by_hand])
def test_what_was_seen_while_it_was_open_stays_the_merchants(till: Till, closed: Any) -> None:
    """Through a status by hand or the end of its time, a rescan, and a reorganisation that takes it out and brings it back."""
    till.minimum()
    invoice = till.invoice("12", "usdt")
    till.pay(invoice["address"], "1", "usdt")
    till.seen()
    closed(till, invoice)
    till.settle()
    assert till.available("usdt") == "1"
    chain = till.chain()
    tip = int(services().reader(till.realm_network()).tip())
    answer = till.operate("POST", f"/v1/networks/{till.network}/rescan", fromBlock=max(1, tip - 20), toBlock=tip - 1)
    assert answer.status == 201, answer.body
    till.turn()
    till.reorg(tip - 1, remine=True)
    chain.mine(1)
    till.turn()
    till.settle()
    assert (till.available("usdt"), till.flags(invoice["address"]), till.operators()) == ("1", [[]], 0)
    (deposit,) = (d for d in services().store.every(Deposit) if d.address == invoice["address"])
    assert (deposit.invoice_id, deposit.status, deposit.round) == (invoice["id"], "confirmed", 1)


def test_what_was_too_little_when_it_was_seen_stays_so(till: Till) -> None:
    """The payment before it falls out, so that the invoice is open again; what was decided is decided."""
    till.minimum()
    invoice = till.invoice("12", "usdt")
    till.pay(invoice["address"], "12", "usdt")
    till.settle()
    till.pay(invoice["address"], "1", "usdt")
    till.settle()
    tip = int(services().reader(till.realm_network()).tip())
    till.reorg(tip - 1)
    till.turn()
    assert till.status(invoice) == "pending"
    till.chain().mine(1)
    assert {d.below_minimum for d in services().store.every(Deposit) if d.address == invoice["address"] and d.amount == 10**6} == {
        True
    }


# Released.


def test_a_release_credits_what_was_too_little(till: Till) -> None:
    till.minimum()
    address = till.address()
    till.pay(address, "4", "usdt")
    till.settle()
    assert (till.available("usdt"), till.operators()) == ("0", 4 * 10**6)
    key = till.deposit(address)["id"]
    released = till.release(address)
    assert (released.status, released.json["data"]["flags"]) == (200, [])
    till.turn()
    assert (till.available("usdt"), till.operators()) == ("4", 0)
    (entry,) = till.journal("deposit_admitted")
    assert [(p.book, p.source, p.destination.rsplit(":", 1)[1], p.amount.units) for p in entry.postings] == [
        (Book.WHOSE, operator("test"), "available", 4 * 10**6)
    ]
    wallet = services().store.get(
        WalletBalance, network=till.realm_network().id, address=address.lower(), asset=till.coin("usdt").asset
    )
    assert wallet is not None
    assert (wallet.units, wallet.small) == (4 * 10**6, 0)
    assert till.told(key) == {"transaction.detected": 1, "transaction.confirmed": 1}
    assert till.told(f"{till.network}:usdt") == {"balance.updated": 1}
    again = till.release(address)
    assert (again.status, again.json["error"]["details"]["reason"]) == (400, "it was released before")


def test_a_release_before_its_confirmations(till: Till) -> None:
    till.minimum()
    address = till.address()
    till.pay(address, "4", "usdt")
    till.seen()
    assert till.balance("usdt")["pending"] == "0"
    assert till.release(address).status == 200
    till.whole()
    assert till.balance("usdt") == {"available": "0", "frozen": "0", "pending": "4"}
    assert till.release(address).status == 400
    till.settle()
    assert (till.balance("usdt")["available"], till.flags(address), till.operators()) == ("4", [[]], 0)
    assert till.journal("deposit_admitted") == []


def test_a_release_of_a_late_payment_is_recorded_on_its_invoice(till: Till) -> None:
    till.minimum()
    invoice = till.invoice("12", "usdt")
    expired(till, invoice)
    till.pay(invoice["address"], "1", "usdt")
    till.settle()
    assert (till.deposit(invoice["address"])["invoiceId"], till.of(invoice).late) == (None, 0)
    assert till.release(invoice["address"]).status == 200
    till.turn()
    assert (till.of(invoice).late, till.status(invoice), till.available("usdt")) == (10**6, "expired", "1")
    assert till.deposit(invoice["address"])["invoiceId"] == invoice["id"]
    assert [p["amount"] for p in till.shown(invoice)["transactions"]] == ["1"]
    assert till.told(invoice["id"])["invoice.late_payment"] == 1


def test_a_release_overpays_an_invoice_that_is_completed(till: Till) -> None:
    till.minimum()
    invoice = till.invoice("12", "usdt")
    completed(till, invoice)
    till.pay(invoice["address"], "1", "usdt")
    till.seen()
    (small,) = (d for d in services().store.every(Deposit) if d.amount == 10**6 and d.tenant is not None)
    assert till.operate("POST", f"/v1/transactions/{small.id}/release").status == 200
    till.settle()
    assert (till.status(invoice), till.shown(invoice)["overpaid"], till.available("usdt")) == ("completed", "1", "13")


def test_a_release_completes_an_invoice_whose_rest_was_confiscated(till: Till, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is in stores of before: a payment to an open invoice that was flagged, and is for no invoice."""
    till.minimum()
    invoice = till.invoice("12", "usdt")
    with monkeypatch.context() as patch:
        patch.setattr(Invoice, "takes_any", lambda *_: False)
        till.pay(invoice["address"], "1", "usdt")
        till.seen()
    till.pay(invoice["address"], "11", "usdt")
    till.settle()
    assert till.status(invoice) == "partial"
    (small,) = (d for d in services().store.every(Deposit) if d.amount == 10**6 and d.tenant is not None)
    assert small.below_minimum
    assert till.operate("POST", f"/v1/transactions/{small.id}/release").status == 200
    assert (till.status(invoice), till.available("usdt")) == ("completed", "12")


@pytest.mark.parametrize("when", ["pending", "confirmed"])
def test_a_release_of_what_is_too_little_and_from_the_grey_list(till: Till, when: str) -> None:
    assert till.operate("POST", "/v1/addresses/grey-list", network=till.network, address=THIEF).status == 201
    till.minimum()
    address = till.address()
    till.paid_by(THIEF, address, "4")
    till.seen()
    if when == "confirmed":
        till.settle()
    assert sorted(till.flags(address)[0]) == [MINIMUM, "grey_listed"]
    assert till.release(address).status == 200
    till.settle()
    assert (till.flags(address), till.available("usdt"), till.operators()) == ([["grey_listed"]], "4", 0)


def test_a_sender_that_is_listed_after_the_release_is_held(till: Till) -> None:
    """The operator's word was for the amount: nobody has judged the sender."""
    till.minimum()
    address = till.address()
    till.paid_by(THIEF, address, "4")
    till.seen()
    assert till.release(address).status == 200
    assert till.operate("POST", "/v1/addresses/grey-list", network=till.network, address=THIEF).status == 201
    till.settle()
    assert (sorted(till.flags(address)[0]), till.available("usdt")) == (["grey_listed", "held"], "0")
    assert till.release(address).status == 200
    assert till.available("usdt") == "4"


@pytest.mark.parametrize("remine", [False, True], ids=["gone", "back"])
def test_what_was_released_and_falls_out_of_the_chain(till: Till, remine: bool) -> None:
    till.minimum()
    address = till.address()
    till.pay(address, "4", "usdt")
    till.settle()
    assert till.release(address).status == 200
    till.reorg(DEEP, remine=remine)
    till.turn()
    till.whole()
    till.settle()
    assert (till.available("usdt"), till.operators()) == (("4" if remine else "0"), 0)
    assert till.flags(address) == [[]]
    assert till.release(address).status == 400


def test_what_fell_out_can_not_be_released(till: Till) -> None:
    till.minimum()
    address = till.address()
    till.pay(address, "4", "usdt")
    till.settle()
    till.reorg(DEEP)
    till.turn()
    refused = till.release(address)
    assert (refused.status, refused.json["error"]["details"]["reason"]) == (400, "it is not in the chain")


def test_of_releases_at_once_one_counts(till: Till) -> None:
    till.minimum()
    address = till.address()
    till.pay(address, "4", "usdt")
    till.settle()
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: till.release(address).status, range(4)))
    assert (sorted(answers), till.available("usdt")) == ([200, 400, 400, 400], "4")


def test_a_release_that_dies_has_done_all_or_nothing(till: Till, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before its one commit, and after it with the answer lost."""
    till.minimum()
    address = till.address()
    till.pay(address, "4", "usdt")
    till.settle()
    store = services().store
    real = store.commit
    for after in (False, True):

        def dies(changes: Any, after: bool = after) -> None:
            changes = list(changes)
            assert len(changes) <= 10
            if any(isinstance(change, Post) and change.entry.kind == "deposit_admitted" for change in changes):
                if after:
                    real(changes)
                raise Died
            real(changes)

        with monkeypatch.context() as patch:
            patch.setattr(store, "commit", dies)
            with pytest.raises(Died):
                services().releases("test").release("test", till.deposit(address)["id"], "key")
        till.whole()
        assert till.available("usdt") == ("4" if after else "0")
    assert till.release(address).status == 400


def test_what_is_released_can_be_paid_out(till: Till) -> None:
    till.minimum()
    address = till.address()
    till.pay(address, "4", "usdt")
    till.settle()
    assert till.ask("4", "usdt").status == 400
    assert till.release(address).status == 200
    withdrawal = till.withdraw("4", "usdt", PAYEE)
    till.turn()
    till.settle()
    assert till.withdrawal(withdrawal)["status"] == "confirmed"


def test_another_payment_under_the_same_id_is_judged_anew(till: Till, monkeypatch: pytest.MonkeyPatch) -> None:
    """The release was for what was released."""
    till.minimum()
    address = till.address()
    till.pay(address, "4", "usdt")
    till.settle()
    assert till.release(address).status == 200
    node = bent_node(till, monkeypatch)

    def less(real: list[Any], *_: Any) -> list[Any]:
        return [
            replace(b, transfers=[t._replace(amount=3 * 10**6) if t.recipient == address.lower() else t for t in b.transfers])
            for b in real
        ]

    node.bend(blocks=less, proven=lambda real, block, asked: list(asked))
    till.reorg(DEEP, remine=True)
    till.turn()
    till.settle()
    (deposit,) = (d for d in services().store.every(Deposit) if d.address == address)
    assert (deposit.amount, deposit.flags, till.available("usdt")) == (3 * 10**6, (MINIMUM,), "0")


# Creation.


def refusal(answer: Response) -> tuple[str, str]:
    """Code and field of a refusal in the flat family."""
    assert answer.status == 400, answer.body
    return answer.json["code"], answer.json["details"].split(";")[0].removeprefix("field: ")


def test_no_invoice_is_made_over_less_than_the_minimum(till: Till) -> None:
    till.minimum()
    make = {"currency": "usdt", "network": till.network}
    refused = till.post("/v1/invoices", {**make, "amount": "4.999999"})
    assert refusal(refused) == ("VALIDATION_ERROR", "amount")
    assert "is less than 5 usdt" in refused.json["details"]
    assert till.post("/v1/invoices", {**make, "amount": "5"}).status == 201
    refused = till.post("/v1/invoices", {**make, "fiatAmount": "4.99", "fiatCurrency": "USD"})
    assert refusal(refused) == ("VALIDATION_ERROR", "fiatAmount")
    assert till.post("/v1/invoices", {**make, "fiatAmount": "5", "fiatCurrency": "USD"}).status == 201


def test_a_minimum_in_usd_at_creation(till: Till, monkeypatch: pytest.MonkeyPatch) -> None:
    till.settle_for("eth", useUsdLimits=True, minDepositAmount=30)
    make = {"currency": "eth", "network": till.network}
    assert refusal(till.post("/v1/invoices", {**make, "amount": "0.009999"})) == ("VALIDATION_ERROR", "amount")
    assert till.post("/v1/invoices", {**make, "amount": "0.01"}).status == 201
    priced = {**make, "fiatCurrency": "USD"}
    assert refusal(till.post("/v1/invoices", {**priced, "fiatAmount": "29.99"})) == ("VALIDATION_ERROR", "fiatAmount")
    assert till.post("/v1/invoices", {**priced, "fiatAmount": "30"}).status == 201
    now = services().clock_of("test").now_ms()
    # A rate that somebody outside says refuses as well: an invoice that is not made takes nothing from anybody.
    for rates, status in (
        (Rates([Rate("eth", "USD", "3000", now, "market")]), 400),
        (Rates([Rate("eth", "USD", "3000", now - 3_600_000, "market")]), 201),
        (ConstantRates({}, lambda: now), 201),
    ):
        monkeypatch.setattr(services().invoices, "_rates", lambda _, rates=rates: rates)
        assert till.post("/v1/invoices", {**make, "amount": "0.001"}).status == status


# The unit of the amounts.


def test_an_amount_never_changes_its_unit_unasked(till: Till) -> None:
    till.settle_for("eth", useUsdLimits=True, minDepositAmount=5, maxValue=1000, collectPercentageHot=20)
    for path in ("/v1/coins", "/v1/coins/eth"):
        for sent in ({}, {"minDepositAmount": "0.002"}):
            refused = till.operate("PUT", path, coin="eth", network=till.network, useUsdLimits=False, **sent)
            assert refusal(refused) == ("VALIDATION_ERROR", "useUsdLimits")
            reason = refused.json["details"]
            assert ("minDepositAmount" in reason, "maxValue" in reason) == (not sent, True)
            assert "collectPercentageHot" not in reason
    shown = till.get("/v1/coins/eth", network=till.network)["settings"]
    assert (shown["useUsdLimits"], shown["minDepositAmountUSD"], shown["maxValueUSD"]) == (True, 5, 1000)
    till.settle_for("eth", useUsdLimits=True, minValue=1)
    till.settle_for("eth", useUsdLimits=False, minDepositAmount="0.002", maxValue=0, minValue="0.001")
    shown = till.get("/v1/coins/eth", network=till.network)["settings"]
    assert (shown["useUsdLimits"], shown["minDepositAmount"], shown["maxValue"]) == (False, 0.002, 0)
    refused = till.operate("PUT", "/v1/coins", coin="eth", network=till.network, useUsdLimits=True)
    assert refusal(refused) == ("VALIDATION_ERROR", "useUsdLimits")
