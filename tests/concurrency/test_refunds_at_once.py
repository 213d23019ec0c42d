"""Many refunds of one invoice, many clicks on one link, claims against expiry and cancellation: each ends in one story."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import cycle
from typing import Any

import pytest

from chalicelib.domain.refunds.refunds import PayoutLink, Refund
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.base.retries import Failures
from chalicelib.usecases.refunds.open_refunds import OpenRefunds
from chalicelib.wiring import services
from tests.concurrency.conftest import Crowd, at_once
from tests.support.refunds import ask_refund, claim, page_of, paid_invoice, payout_link
from tests.support.sandbox import HandClock
from tests.support.shop import ETHER
from tests.support.stack import Response, Stack

pytestmark = pytest.mark.nodes

FULL = os.environ.get("SWEEP") == "full"
RACES, AT_ONCE = (500, 10) if FULL else (5, 5)
MANY = 50 if FULL else 16
LIFE = 3600


def statuses(answers: list[Response | BaseException]) -> Counter[int]:
    assert all(isinstance(answer, Response) for answer in answers), answers
    return Counter(answer.status for answer in answers if isinstance(answer, Response))


def test_many_refunds_of_one_invoice_are_never_more_than_it(on_dynamodb: Stack) -> None:
    shop = Crowd(on_dynamodb, "ethereum")
    shop.turn()
    invoice = paid_invoice(shop)
    shop.credit("5")
    asked = [
        partial(ask_refund, shop, invoice, amount="0.3", **({"address": shop.payees[0]} if n % 2 else {})) for n in range(MANY)
    ]
    answers = at_once(asked)
    assert statuses(answers) <= Counter({201: 3, 400: MANY, 409: MANY})
    made = [r for r in services().store.every(Refund) if r.terms.invoice_id == invoice["id"]]
    assert 1 <= len(made) <= 3
    assert statuses(answers)[201] == len(made)


def test_many_clicks_on_one_link(on_dynamodb: Stack) -> None:
    shop = Crowd(on_dynamodb, "fantom")
    shop.turn()
    shop.credit("1", "ftm")
    link = payout_link(shop, "0.4", coin="ftm")
    words = {address: claim(shop, link, address=address).json["confirm"] for address in shop.payees}
    clicks = [partial(claim, shop, link, address=a, confirm=words[a]) for a in shop.payees for _ in range(MANY // 2)]
    answers = at_once(clicks)
    assert statuses(answers)[200] == 1, statuses(answers)
    shop.turn()
    shop.mine()
    shop.turn()
    assert sum(shop.paid(payee, "ftm") for payee in shop.payees) == 4 * ETHER // 10
    assert shop.balance("ftm") == {"available": "0.6", "frozen": "0", "pending": "0"}


class Late:
    """The expiry of another process, whose clock is past the end of every link while the payee's is before it."""

    def __init__(self, shop: Crowd) -> None:
        wired = services()
        clock = HandClock(wired.clock_of("test").now_ms() + 2 * LIFE * 1000)
        ordering = wired.open_refunds._ordering
        self._network, self._open = shop.realm_network().id, OpenRefunds(wired.store, clock, ordering, wired.rates)

    def __call__(self) -> None:
        with in_realm("test"):
            self._open.work(self._network)


def test_claims_against_expiry_and_cancellation(on_dynamodb: Stack) -> None:
    """Each link is claimed, expired or cancelled, and its money is paid or given back, once."""
    shop = Crowd(on_dynamodb, "polygon")
    payee = shop.payees[0]
    shop.turn()
    shop.credit("10", "matic")
    ended: Counter[str] = Counter()
    keys = cycle([*shop.keys, *(shop.new_key() for _ in shop.keys)])  # none comes to its hundred a minute, were it all in one
    for _ in range(RACES // AT_ONCE):
        shop.key = next(keys)
        links = [payout_link(shop, "0.01", coin="matic", expiresIn=LIFE) for _ in range(AT_ONCE)]
        words = [claim(shop, link, address=payee).json["confirm"] for link in links]
        late, acts = Late(shop), []
        for number, (link, word) in enumerate(zip(links, words, strict=True)):
            rivals: list[Callable[[], Any]] = [partial(claim, shop, link, address=payee, confirm=word), late]
            if number % 3 == 0:
                rivals.append(partial(shop.stack.call, "DELETE", f"/v1/payout-links/{link['id']}", shop.key))
            acts += rivals if number % 2 else rivals[::-1]
        for answer in at_once(acts):
            assert answer is None or isinstance(answer, Response | Failures), answer
            assert not isinstance(answer, Response) or answer.status not in (401, 429), "a limit took a rival out of the race"
        late()
        ended.update(ends_of(links))
        shop.turn()  # what is paid leaves the open work, which each late expiry reads whole
        shop.mine()
    assert sum(ended.values()) == RACES
    assert set(ended) <= {"claimed", "expired", "cancelled"}, ended
    assert not FULL or (ended["expired"] and ended["claimed"]), ended
    settle(shop, payee)
    paid = shop.paid(payee, "matic")
    assert paid <= ended["claimed"] * ETHER // 100
    assert float(shop.balance("matic")["available"]) == pytest.approx(10 - paid / ETHER - float(shop.balance("matic")["frozen"]))


def settle(shop: Crowd, payee: str) -> None:
    """Until two rounds change nothing: what is paid and not confirmed yet is on the chain, and in the books still frozen."""
    seen: list[tuple[int, str, str]] = []
    while len(seen) < 3 or seen[-1] != seen[-3]:
        assert len(seen) < 200
        shop.turn()
        shop.mine()
        balance = shop.balance("matic")
        seen.append((shop.paid(payee, "matic"), balance["available"], balance["frozen"]))


def ends_of(links: list[dict[str, Any]]) -> list[str]:
    """How each link ended; its withdrawal is there if it was claimed, and only then."""
    store = services().store
    ids = {link["id"]: link for link in links}
    found = {each.id: each.status for each in store.every(PayoutLink) if each.id in ids}
    assert set(found) == set(ids)
    paying = Counter(w.repays.id for w in store.every(Withdrawal) if w.repays is not None)
    open_work = [work.id for work in store.every_work() if work.kind == "refund"]
    for id, status in found.items():
        assert paying[id] == (status == "claimed"), (id, status, paying[id])
        assert not any(work.endswith(id) for work in open_work), page_of(ids[id])
    return list(found.values())
