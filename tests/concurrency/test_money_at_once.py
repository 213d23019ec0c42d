"""Many at once for the same money, nonce, deposit or approval, on a store that lets them meet: each thing happens once."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest

from chalicelib.domain.stray_payments import StrayPayment
from chalicelib.domain.treasury.collections import Collection
from chalicelib.domain.treasury.hot_utxos import OwnTransaction
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.withdrawals.approvals import rejection_text
from chalicelib.domain.withdrawals.withdrawals import NonceCounter, PaymentOrder, Withdrawal
from chalicelib.encoding import base58check
from chalicelib.wiring import services
from tests.concurrency.conftest import Crowd, at_once
from tests.support.shop import ETHER, PAYEE
from tests.support.signing import ALICE, BOB, CAROL, Signer, enabled
from tests.support.stack import Response, Stack

pytestmark = pytest.mark.nodes

MANY = 200 if os.environ.get("SWEEP") == "full" else 40
"""Who ask at once: two and a half times as many as the threads that ask, and more of them in `make sweep`."""
TRON_PAYEE = base58check.encode(b"\x41" + bytes(range(20)))
OTHER_PAYEE = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"
LITECOIN_PAYEE = "ltc1qw508d6qejxtdg4y5r3zarvary0c5xw7kgmn4n9"  # BIP-173's program


def crowd(stack: Stack, network: str, coin: str = "eth", amount: str = "1") -> Crowd:
    made = Crowd(stack, network)
    made.turn()
    made.credit(amount, coin)
    return made


def ask(crowd: Crowd, key: str, amount: str, coin: str = "eth", **headers: str) -> Response:
    body = {"network": crowd.network, "coin": coin, "address": crowd.payees[0], "amount": amount}
    return crowd.stack.call("POST", "/v1/withdraws", key, json=body, headers=headers)


def statuses(answers: list[Response | BaseException]) -> Counter[int]:
    assert all(isinstance(answer, Response) for answer in answers), answers
    return Counter(answer.status for answer in answers if isinstance(answer, Response))


def orders(*crowds: Crowd) -> list[PaymentOrder]:
    """Those of these merchants: other tests pay out of the same wallets."""
    theirs = {crowd.tenant for crowd in crowds}
    return sorted((o for o in services().store.every(PaymentOrder) if o.tenant in theirs), key=lambda o: o.nonce)


def nonces(found: list[PaymentOrder]) -> list[int]:
    """From the first of them on."""
    return [order.nonce - found[0].nonce for order in found]


def test_many_want_the_money_of_one(on_dynamodb: Stack) -> None:
    shop = crowd(on_dynamodb, "ethereum")
    answers = at_once([partial(ask, shop, shop.keys[n % len(shop.keys)], "0.6") for n in range(MANY)])
    assert statuses(answers) == {201: 1, 400: MANY - 1}
    refused = {a.json["error"]["code"] for a in answers if isinstance(a, Response) and a.status == 400}
    assert refused == {"INSUFFICIENT_BALANCE"}
    assert shop.balance() == {"available": "0.4", "frozen": "0.6", "pending": "0"}
    for _ in range(3):  # what other tests left to do on this network may come first
        shop.turn()
        shop.mine()
    shop.turn()
    assert (shop.paid(shop.payees[0]), shop.balance()) == (6 * ETHER // 10, {"available": "0.4", "frozen": "0", "pending": "0"})


def test_many_times_one_idempotency_key(on_dynamodb: Stack) -> None:
    shop = crowd(on_dynamodb, "arbitrum")
    answers = at_once([partial(ask, shop, shop.key, "0.01", **{"Idempotency-Key": "once"}) for _ in range(MANY // 4)])
    found = statuses(answers)
    assert set(found) <= {201, 409} and found[201] >= 1, "whoever comes while it is under way is told so"
    assert len({a.json["id"] for a in answers if isinstance(a, Response) and a.status == 201}) == 1
    assert shop.balance()["frozen"] == "0.01"
    shop.turn()
    assert len(orders(shop)) == 1


def test_many_functions_at_one_nonce(on_dynamodb: Stack) -> None:
    """The queue lets one at a time through for a wallet; nothing rests on that."""
    shop = crowd(on_dynamodb, "fantom", "ftm")
    made = [ask(shop, shop.key, "0.01", "ftm").json["id"] for _ in range(4)]
    at_once([partial(shop.pay_out, withdrawal) for withdrawal in made for _ in range(2)])
    for withdrawal in made:
        shop.pay_out(withdrawal)  # what gave up is asked for again
    assert nonces(orders(shop)) == list(range(4))
    assert {order.state for order in orders(shop)} == {"signed"}
    shop.mine()
    shop.turn()
    assert {shop.withdrawal(withdrawal)["status"] for withdrawal in made} == {"confirmed"}
    assert shop.paid(shop.payees[0], "ftm") == 4 * ETHER // 100


@pytest.mark.sweep
def test_many_functions_at_one_line(on_dynamodb: Stack) -> None:
    """Two merchants' messages at once, more of them than payments: each is begun once, and the nonces have no gap."""
    one, other = crowd(on_dynamodb, "bsc", "bnb"), crowd(on_dynamodb, "bsc", "bnb")
    made = [ask(each, each.key, "0.01", "bnb").json["id"] for each in (one, one, one, other, other)]
    line = one.realm_network().id
    at_once([partial(one.message, "payout", line=line, tenant="whoever", id="whatever")] * 10)
    for withdrawal in made:
        one.pay_out(withdrawal)  # what gave up is asked for again
    found = orders(one, other)
    assert nonces(found) == list(range(5))
    assert {order.withdrawal_id for order in found} == set(made)
    assert {order.state for order in found} == {"signed"}
    one.mine()
    one.turn()
    assert {one.withdrawal(withdrawal)["status"] for withdrawal in made[:3]} == {"confirmed"}
    assert {other.withdrawal(withdrawal)["status"] for withdrawal in made[3:]} == {"confirmed"}


def test_polls_at_once_credit_a_deposit_once(on_dynamodb: Stack) -> None:
    shop = Crowd(on_dynamodb, "bsc")
    shop.turn()
    made = [shop.invoice("0.5", "bnb") for _ in range(3)]
    for invoice in made:
        shop.pay(invoice["address"], "0.5", "bnb")
    at_once([shop.poll] * 3)
    shop.mine()
    for _ in range(2):
        at_once([shop.poll] * 3)
    shop.turn()
    assert {shop.status(invoice) for invoice in made} == {"completed"}
    assert shop.balance("bnb") == {"available": "1.5", "frozen": "0", "pending": "0"}
    assert all(shop.told(invoice["id"])["invoice.completed"] == 1 for invoice in made)


@pytest.mark.sweep
def test_polls_and_functions_at_once_collect_once(on_dynamodb: Stack) -> None:
    """One plan of many polls, one nonce each for a top-up and a payment, one signature of many, for whoever has the seed."""
    shop = crowd(on_dynamodb, "ethereum")
    settings = {"coin": "usdt", "network": "ethereum", "collectThreshold": "0"}
    assert on_dynamodb.call("PUT", "/v1/coins", on_dynamodb.keys["admin_test"], json=settings).status == 200
    network = shop.realm_network().id
    address = shop.invoice("500", "usdt")["address"]

    def moves(*kinds: str) -> list[Move]:
        found = [m for m in services().store.every(Move) if address in (m.source, m.recipient)]
        return [move for move in found if move.kind in kinds and move.network == network]

    shop.pay(address, "500", "usdt")
    shop.mine()
    shop.poll()
    on_dynamodb.drain(only=("relay",), rounds=1)
    assert [w.kind for w in services().store.open_work("collectable", network)] == ["collectable"]
    at_once([shop.poll] * 3)
    assert [c.address for c in services().store.every(Collection)] == [address]
    (topup,) = moves("topup")
    withdrawal = on_dynamodb.call(
        "POST", "/v1/withdraws", shop.key, json={"network": "ethereum", "coin": "eth", "address": OTHER_PAYEE, "amount": "0.5"}
    ).json["id"]
    pay, top_up = partial(shop.pay_out, withdrawal), partial(shop.message, "payout", move=topup.id, network=network)
    for _ in range(2):
        at_once([pay, top_up] * 3)
    (topup,) = moves("topup")
    order = shop.order(withdrawal)
    assert (topup.state, order.state) == ("signed", "signed") and topup.nonce is not None
    counter = services().store.get(NonceCounter, network=network, wallet=order.wallet)
    assert counter is not None and sorted((topup.nonce, order.nonce)) == [counter.next - 2, counter.next - 1]
    shop.mine()
    at_once([shop.poll] * 2)
    shop.poll()
    (sweep,) = moves("sweep")
    at_once([partial(shop.message, "collect", move=sweep.id, network=network)] * 4)
    (sweep,) = moves("sweep")
    own = [t.txid for t in services().store.every(OwnTransaction)]
    assert (sweep.state, sweep.earlier, own.count(sweep.txid or "")) == ("signed", (), 1)
    shop.mine()
    shop.turn("collect")
    assert [c.state for c in services().store.every(Collection)] == ["swept"]
    assert (shop.paid(OTHER_PAYEE), shop.paid(address, "usdt")) == (ETHER // 2, 0)
    assert len(moves("topup", "sweep")) == 2 and len(shop.journal("move_signed")) == 2


@pytest.mark.sweep
def test_signatures_at_once_open_one_payout(on_dynamodb: Stack) -> None:
    shop = crowd(on_dynamodb, "tron", "trx", "90")
    enabled(lambda body: on_dynamodb.call("PUT", "/v1/merchant/settings", shop.key, json=body))
    body = {"network": "tron", "coin": "trx", "address": TRON_PAYEE, "amount": "50"}
    answer = on_dynamodb.call("POST", "/v1/withdraws", shop.key, json=body)
    assert answer.status == 201, answer.body
    made = answer.json["id"]
    text = shop.withdrawal(made)["approval"]["signing_text"]

    def sign(signer: Signer, what: str) -> Response:
        signature = signer.sign(text if what == "accept" else rejection_text(text))
        sent = {"id": made, "signer_id": signer.name, "signature": signature}
        return on_dynamodb.call("PUT", f"/v1/withdrawals/request/{what}", shop.key, json=sent)

    answers = at_once([partial(sign, signer, "accept") for signer in (ALICE, BOB, CAROL) * 2])
    assert set(statuses(answers)) <= {200, 400, 409}
    shop.turn()
    shop.mine()
    shop.turn()
    assert (shop.withdrawal(made)["status"], shop.paid(TRON_PAYEE, "trx")) == ("confirmed", 50_000_000)
    assert len(orders(shop)) == 1


def test_cancelled_or_paid_and_never_both(on_dynamodb: Stack) -> None:
    shop = crowd(on_dynamodb, "polygon", "matic")
    made = [ask(shop, shop.key, "0.1", "matic").json["id"] for _ in range(3)]
    acts: list[Callable[[], object]] = []
    for withdrawal in made:
        cancel = partial(on_dynamodb.call, "POST", f"/v1/withdrawals/{withdrawal}/cancel", shop.key)
        acts += [partial(shop.pay_out, withdrawal), cancel, partial(shop.pay_out, withdrawal)]
    at_once(acts)
    for _ in range(2):
        at_once([partial(shop.pay_out, withdrawal) for withdrawal in made])
    shop.mine()
    shop.turn()
    ended = Counter(shop.withdrawal(withdrawal)["status"] for withdrawal in made)
    assert set(ended) <= {"confirmed", "cancelled"}
    assert (shop.paid(shop.payees[0], "matic"), len(orders(shop))) == (ended["confirmed"] * ETHER // 10, ended["confirmed"])
    assert shop.balance("matic")["frozen"] == "0"


@pytest.mark.sweep
def test_batches_and_single_ones_share_a_balance(on_dynamodb: Stack) -> None:
    shop = crowd(on_dynamodb, "litecoin", "ltc", "10")

    def batch() -> Response:
        outputs = [{"to_address": LITECOIN_PAYEE, "amount": "2"}] * 3
        return on_dynamodb.call(
            "POST",
            "/v1/withdrawals",
            shop.keys[1],
            json={"batch_withdrawal": {"network": "litecoin", "coin": "ltc", "outputs": outputs}},
        )

    def single() -> Response:
        body = {"network": "litecoin", "coin": "ltc", "address": LITECOIN_PAYEE, "amount": "3"}
        return on_dynamodb.call("POST", "/v1/withdraws", shop.keys[2], json=body)

    answers = at_once([batch, single] * 3)
    assert set(statuses(answers)) == {201, 400}
    batches = sum(a.status == 201 for a in answers[::2] if isinstance(a, Response))
    singles = sum(a.status == 201 for a in answers[1::2] if isinstance(a, Response))
    reserved = 6 * batches + 3 * singles
    assert 7 < reserved <= 10, "nothing that fits was refused"
    assert shop.balance("ltc") == {"available": str(10 - reserved), "frozen": str(reserved), "pending": "0"}
    shop.turn()
    shop.mine()
    shop.turn()
    assert shop.paid(LITECOIN_PAYEE, "ltc") == reserved * 10**8


@pytest.mark.sweep
def test_credited_or_returned_and_never_both(on_dynamodb: Stack) -> None:
    """Operators who decide about one payment on the wrong network at once, while polls go on."""
    shop = crowd(on_dynamodb, "polygon", "matic")
    admin = on_dynamodb.keys["admin_test"]
    for _ in range(3):
        address = shop.post("/v1/addresses", {"network": "ethereum", "mode": "common"}).json["address"]
        txid = shop.pay(address, "5", "usdt")["txid"]
        shop.mine(20)
        shop.turn()
        read = on_dynamodb.call("POST", "/v1/stray-payments", admin, json={"network": "polygon", "txid": txid})
        path = f"/v1/stray-payments/{read.json['data']['payments'][0]['id']}"
        credit = partial(on_dynamodb.call, "POST", f"{path}/credit", admin)
        give_back = partial(on_dynamodb.call, "POST", f"{path}/return", admin, json={"address": PAYEE})
        assert statuses(at_once([credit, give_back] * 6)) == {201: 1, 400: 11}
        at_once([lambda: shop.turn(failures=[])] * 3)
        shop.turn()
        shop.turn()
    decided = Counter(stray.status for stray in services().store.every(StrayPayment))
    assert sum(decided.values()) == 3 and shop.available("usdt") == str(5 * decided["credit"])
    returned = [w for w in services().store.every(Withdrawal) if "strayPayment" in (w.metadata or {})]
    assert [w.amount for w in returned] == [5_000_000] * decided["return"]
