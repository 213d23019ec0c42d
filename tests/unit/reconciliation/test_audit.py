"""The audit finds every kind of damage: each case breaks whole books in one way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from chalicelib.domain import ledger
from chalicelib.domain.audit.books import Books
from chalicelib.domain.audit.rules import violations
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import MerchantId, NetworkId, asset_id, tenant_id
from chalicelib.domain.invoices.invoices import Invoice, Payment
from chalicelib.domain.invoices.totals import InvoiceTotals, deltas, shard_key
from chalicelib.domain.ledger import Balance, WalletBalance
from chalicelib.domain.money import Amount
from chalicelib.domain.transactions.outgoing import Attempt
from chalicelib.domain.treasury.consolidations import CoinAttempt, CoinMove, MovedCoin
from chalicelib.domain.treasury.hot_utxos import HeldCoin, HeldCoins
from chalicelib.domain.withdrawals.approvals import Approval
from chalicelib.domain.withdrawals.batches import BatchOutput, WithdrawalBatch, batch_work
from chalicelib.domain.withdrawals.bundles import Built, Bundle, BundledPayout
from chalicelib.domain.withdrawals.payout_line import payout_work
from chalicelib.domain.withdrawals.withdrawals import NonceCounter, PaymentOrder, Withdrawal
from chalicelib.domain.work import Work

NETWORK = NetworkId("live:ethereum")
ETH = asset_id(NETWORK, "eth")
SHOP = tenant_id(MerchantId("mch_shop"), "live")
HOT, USER = ledger.wallet(NETWORK, "0xhot"), ledger.wallet(NETWORK, "0xuser")


def whole() -> Books:
    """A paid invoice, a funded hot wallet, a payment that is out."""
    amount = Amount(ETH, 40)
    deposit = Deposit(
        "tx_1",
        NETWORK,
        ETH,
        SHOP,
        "0xt",
        "native",
        "0xs",
        "0xuser",
        100,
        5,
        "0xb",
        0,
        0,
        "confirmed",
        invoice_id="inv_1",
        emitted=2,
    )
    invoice = Invoice(
        "inv_1", SHOP, NETWORK, ETH, "0xuser", "addr_1", 100, 0, 9, "completed", confirmed=100, emitted=3,
        payments=(Payment("tx_1", "0xt", 100, 5, confirmed=True),),
    )  # fmt: skip
    return Books(
        journal=[
            ledger.deposit_credited("tx_1", 0, 1, USER, ledger.merchant(SHOP, "available"), Amount(ETH, 100)),
            ledger.deposit_credited("tx_2", 0, 1, HOT, ledger.operator("live"), Amount(ETH, 500)),
            ledger.withdrawal_reserved("wd_1", 2, SHOP, amount),
            ledger.payment_signed("ord_1", 3, HOT, amount),
        ],
        balances=[Balance(SHOP, ETH, available=60, frozen=40, emitted=2, version=2)],
        wallets=[WalletBalance(NETWORK, "0xhot", ETH, 460), WalletBalance(NETWORK, "0xuser", ETH, 100)],
        deposits=[
            deposit,
            Deposit("tx_2", NETWORK, ETH, None, "0xf", "native", "0xs", "0xhot", 500, 5, "0xb", 0, 0, "confirmed"),
        ],
        invoices=[invoice],
        totals=[InvoiceTotals(**shard_key(invoice), **deltas(None, invoice))],  # type: ignore[arg-type]
        withdrawals=[
            Withdrawal(
                "wd_1", SHOP, NETWORK, ETH, 40, "0xto", ETH, 0, 0, status="confirming", order_id="ord_1", txid="0xw", emitted=4
            )
        ],
        orders=[PaymentOrder("ord_1", NETWORK, "0xhot", 0, "wd_1", SHOP, ETH, None, "0xto", 40, "00", 0, "01", "0xw", "signed")],
        counters=[NonceCounter(NETWORK, "0xhot", 1)],
        work=[Work("sent", NETWORK, "0", f"{SHOP}|wd_1"), Work("expiry", NETWORK, "9", f"{SHOP}|inv_1")],
        sequences={
            f"{SHOP} wd_1": [1, 2, 3, 4],
            f"{SHOP} tx_1": [1, 2],
            f"{SHOP} inv_1": [3, 1, 2],
            f"{SHOP} ethereum:eth": [1, 2],
        },
    )


def test_whole_books_are_whole() -> None:
    assert violations(whole()) == []


def _drop(name: str, place: int = 0) -> Callable[[Books], None]:
    return lambda books: getattr(books, name).pop(place)


def _change(name: str, **fields: object) -> Callable[[Books], None]:
    def damage(books: Books) -> None:
        rows = getattr(books, name)
        rows[0] = replace(rows[0], **fields)

    return damage


def _batch(*made: int) -> Callable[[Books], None]:
    """A batch over two withdrawals of 15, those of `made` stored, whose total is reserved."""

    def add(books: Books) -> None:
        outputs = (BatchOutput("0xto", 15), BatchOutput("0xto", 15))
        batch = WithdrawalBatch("wdb_100", SHOP, NETWORK, ETH, ETH, 0, "normal", outputs, 0)
        books.batches.append(batch)
        books.journal.append(ledger.batch_reserved(batch.id, 3, SHOP, Amount(ETH, 30)))
        books.balances[0] = replace(books.balances[0], available=30, frozen=70)
        for number in made:
            member = batch.members()[number]
            books.withdrawals.append(member)
            books.work.append(payout_work(member))
            books.sequences[f"{SHOP} {member.id}"] = [1]
        if len(made) < 2:
            books.work.append(batch_work(batch))

    return add


def _also(*damages: Callable[[Books], None]) -> Callable[[Books], None]:
    def damage(books: Books) -> None:
        for one in damages:
            one(books)

    return damage


@pytest.mark.parametrize("made", [(), (0,), (1,), (0, 1)])
def test_a_batch_is_whole_at_every_step(made: tuple[int, ...]) -> None:
    books = whole()
    _batch(*made)(books)
    assert violations(books) == []


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (_also(_batch(0), _drop("work", -1)), "batch mch_shop:live|wdb_100 is unfinished and nobody"),
        (_also(_batch(0), lambda b: b.batches.clear()), "frozen is 70"),
        (_also(_batch(0, 1), lambda b: b.work.append(batch_work(b.batches[0]))), "is finished and still open"),
        (_change("withdrawals", approval=Approval(("grey_list",))), "nobody approved it"),
        (
            _change("withdrawals", status="pending", order_id=None, approval=Approval(("multisig",), 1)),
            "approval mch_shop:live|wd_1",
        ),
        (_drop("journal", 0), "the journal says"),
        (_drop("journal", 3), "0 is in flight, not 40"),
        (_change("balances", available=61), "available is 61"),
        (_change("balances", pending=1), "pending is 1"),
        (_drop("balances"), "no balance"),
        (_change("wallets", units=461), "461, the journal says 460"),
        (_drop("wallets"), "no stored balance"),
        (_change("deposits", status="orphaned"), "stands credited 1 times"),
        (_change("deposits", amount=99), "booked with another amount"),
        (_drop("deposits", 1), "no such deposit"),
        (lambda b: b.deposits.append(replace(b.deposits[0], id="tx_9")), "is 2 deposits"),
        (_change("invoices", confirmed=99), "confirmed is 99"),
        (_change("invoices", status="pending"), "its payments say completed"),
        (_change("withdrawals", amount=41), "frozen is 40"),
        (_change("withdrawals", status="confirmed"), "its order is signed"),
        (_change("orders", nonce=1), "holes or twins"),
        (lambda b: b.orders.append(replace(b.orders[0], id="ord_2", nonce=1)), "has 2 orders"),
        (_change("orders", raw=None), "its signed bytes say otherwise"),
        (_change("orders", txid=None), "its signed bytes say otherwise"),
        (_change("orders", state="built"), "its signed bytes say otherwise"),
        (_change("orders", state="settled", renew=True), "is settled and to be replaced"),
        (_change("orders", earlier=(Attempt("00", "0xw", 1, 1),)), "is an attempt of order ord_1 twice"),
        (
            lambda b: b.orders.append(replace(b.orders[0], id="ord_2", withdrawal_id="wd_2")),
            "is an attempt of order ord_2 twice, or of",
        ),
        (_change("orders", bundle="bnd_1"), "is paid by bnd_1 and has bytes of its own"),
        (_change("withdrawals", txid="0xother"), "shows 0xother, which is no attempt"),
        (_change("invoices", payments=(Payment("tx_1", "0xt", 100, 6, confirmed=True),)), "which is another or none"),
        (_change("totals", completed=0), "the totals of"),
        (_change("totals", amount_low=99), "the totals of"),
        (_change("totals", awaited=1), "pending is 1"),
        (_drop("totals"), "the totals of"),
        (_drop("work"), "nobody will look at it again"),
        (lambda b: b.work.append(Work("deposit", NETWORK, "0", "tx_1")), "finished and still open"),
        (_drop("work", 1), "will never expire"),
        (lambda b: b.sequences.update({f"{SHOP} wd_1": [1, 2, 4]}), "one is lost or invented"),
        (lambda b: b.sequences.update({f"{SHOP} wd_1": [1, 2, 3]}), "one is lost or invented"),
        (lambda b: b.sequences.update({f"{SHOP} wd_1": [2, 3, 4]}), "one is lost or invented"),
        (lambda b: b.sequences.pop(f"{SHOP} tx_1"), "one is lost or invented"),
        (lambda b: b.sequences.update({f"{SHOP} ethereum:eth": [1, 2, 3]}), "one is lost or invented"),
        (lambda b: b.sequences.update({f"{SHOP} inv_1": [1, 1, 2, 3]}), "told twice"),
        (lambda b: b.outbox.append("out_1"), "nobody will look at it again"),
    ],
)
def test_damage_is_found(damage: Callable[[Books], None], says: str) -> None:
    books = whole()
    damage(books)
    found = violations(books)
    assert any(says in sentence for sentence in found), found


def test_any_attempt_may_have_paid() -> None:
    books = whole()
    _change("orders", earlier=(Attempt("00", "0xv", 1, 1),))(books)
    assert violations(books) == []
    _change("withdrawals", txid="0xv")(books)
    assert violations(books) == []


def test_what_is_settled_names_a_transaction_of_its_own() -> None:
    books, network, coin = Books(), NetworkId("live:litecoin"), HeldCoin("aa:0", 50, 1)
    ltc, built = asset_id(network, "ltc"), Built("00", (coin,), None, 0, 5, 100, "01", "bb", 2)
    paid = BundledPayout("wd_1", SHOP, "ltc1payee", 45)
    books.bundles = [Bundle("bun_1", network, "ltc1hot", ltc, 1, 1, payouts=(paid,), state="settled", newest=built, mined="bb")]
    books.coin_moves = [
        CoinMove("cmv_1", network, "cold", ltc, "ltc1hot", "ltc1cold", (MovedCoin("cc:0", 60, 1, "ltc1hot"),), 60, "hot", 1, 1,
                 "settled", CoinAttempt("00", 55, 0, 5, 100, "01", "dd", 2), mined="dd", booked=1),
    ]  # fmt: skip
    books.held = [HeldCoins(network, "ltc1hot")]
    assert not any("is no transaction of it" in sentence for sentence in violations(books))
    for mined, named in (("ee", "ee"), (None, "nothing")):
        books.bundles[0] = replace(books.bundles[0], mined=mined)
        books.coin_moves[0] = replace(books.coin_moves[0], mined=mined)
        found = violations(books)
        assert {f"{id} is settled, and {named} is no transaction of it" for id in ("bun_1", "cmv_1")} <= set(found), found


def test_a_one_sided_entry_is_found() -> None:
    books = whole()
    lost = ledger.JournalEntry("x", "x", 1, (ledger.Posting(ledger.Book.WHERE, ledger.OUTSIDE, HOT, Amount(ETH, 1)),))
    books.journal.append(lost)
    assert any("the places hold" in sentence for sentence in violations(books))


def test_events_that_were_forgotten_by_age_are_not_missed() -> None:
    books = whole()
    books.sequences, books.events_since, books.aged = {f"{SHOP} wd_1": [3]}, 1, True
    assert violations(books) == []
