"""Payments, replacements and moves stand still where the second reader reads something else: before the key, and before they are
kept or sent. The chain is simulated, and so is the second reader, which simulated networks have not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.ports.second_reader import Built, Order, Reading
from chalicelib.usecases.transactions.errors import ReadersDiffer
from chalicelib.wiring import services
from chalicelib.wiring.second_readers import SecondReaders
from tests.support.shop import STUCK, Kms, Shop, open_shop
from tests.support.stack import Stack
from tests.support.treasury import move_of, paid_address, plan

UNITS = 12_500_000


class Library:
    """Reads as our payer does, but for what a test has it read otherwise."""

    def __init__(self) -> None:
        self.network: Network | None = None
        self.digest: bytes | None = None
        self.reads: dict[str, object] = {}
        self.orders: list[Order] = []

    def of(self, network: Network) -> Library:
        self.network = network
        return self

    def built(self, order: Order) -> Built:
        self.orders.append(order)
        return Built((self.digest or self._payer().digest(order.unsigned),), self._reading(order.unsigned, order.sender))

    def read(self, order: Order, raw: str) -> Reading:
        opened = self._payer().opened(raw)
        return {**self._reading(opened.unsigned, opened.signer), "txid": opened.txid, **self.reads}

    def _payer(self) -> Any:
        assert self.network is not None
        return services().wiring.chains.payer(self.network)

    def _reading(self, unsigned: str, signer: str) -> dict[str, object]:
        does = self._payer().explain(unsigned)
        return {"amount": does.amount, "recipient": does.recipient, "nonce": does.nonce, "signer": signer.lower()}


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    library = Library()
    monkeypatch.setattr(SecondReaders, "accounts", lambda _, network: library.of(network))
    return library


@pytest.fixture
def shop(library: Library, stack: Stack) -> Iterator[Shop]:
    with open_shop(stack, ("30", "usdt")) as opened:
        yield opened


@pytest.fixture
def kms(monkeypatch: pytest.MonkeyPatch) -> Kms:
    return Kms(monkeypatch)


def waiting(shop: Shop, kms: Kms) -> str:
    """A withdrawal whose order waits for its signature."""
    kms.away = True
    withdrawal = shop.withdraw("12.5", "usdt")
    shop.turn()
    assert shop.order(withdrawal).raw is None
    kms.away = False
    kms.calls.clear()
    return withdrawal


def refused(shop: Shop, withdrawal: str, match: str) -> None:
    with in_realm("test"), pytest.raises(ReadersDiffer, match=match):
        services().payouts.pay(shop.record(withdrawal).tenant, withdrawal)


def test_a_payment_that_is_read_otherwise_is_neither_signed_nor_sent(
    shop: Shop, kms: Kms, library: Library, caplog: pytest.LogCaptureFixture
) -> None:
    withdrawal = waiting(shop, kms)
    order = shop.order(withdrawal)
    library.digest = b"\x07" * 32
    refused(shop, withdrawal, "in digests$")
    assert (kms.calls["Sign"], shop.order(withdrawal)) == (0, order)
    assert any(record.message.startswith("ALARM ") and "07" * 32 in record.message for record in caplog.records)
    caplog.clear()
    library.digest, library.reads = None, {"amount": UNITS + 1}
    refused(shop, withdrawal, "in amount$")
    assert (kms.calls["Sign"], shop.order(withdrawal)) == (1, order)  # signed for, and dropped
    assert any(record.message.startswith("ALARM ") and str(UNITS + 1) in record.message for record in caplog.records)
    shop.mine()
    assert (shop.withdrawal(withdrawal)["status"], shop.paid(coin="usdt")) == ("processing", 0)
    library.reads = {}
    shop.nudge()
    shop.mine()
    shop.turn()
    assert (shop.withdrawal(withdrawal)["status"], shop.paid(coin="usdt")) == ("confirmed", UNITS)
    (last,) = {replace(each, unsigned="") for each in library.orders}
    assert (last.recipient, last.amount, last.nonce, last.kind) == (order.recipient, UNITS, order.nonce, "payment")
    assert (last.contract, last.sender, last.fee) == (order.contract, order.wallet, shop.order(withdrawal).fee)


def test_a_replacement_that_is_read_otherwise_is_neither_signed_nor_sent(shop: Shop, kms: Kms, library: Library) -> None:
    withdrawal = shop.withdraw("12.5", "usdt")
    assert shop.post(f"/v1/sandbox/withdrawals/{withdrawal}", {"outcome": "stick"}).status == 200
    shop.turn()
    shop.wait(STUCK)
    shop.stack.drain(only=(f"poll_{shop.network}",), rounds=1)
    order = shop.order(withdrawal)
    assert order.renew
    library.digest, before = b"\x07" * 32, kms.calls["Sign"]
    refused(shop, withdrawal, "in digests$")
    assert (kms.calls["Sign"], shop.order(withdrawal)) == (before, order)
    library.digest, library.reads = None, {"nonce": order.nonce + 1}
    refused(shop, withdrawal, "in nonce$")
    assert (kms.calls["Sign"], shop.order(withdrawal)) == (before + 1, order)
    library.reads = {}
    shop.turn()
    assert len(shop.order(withdrawal).earlier) == 1


@pytest.mark.parametrize("kind", ["sweep", "topup"])
def test_a_move_that_is_read_otherwise_is_neither_signed_nor_sent(kind: str, shop: Shop, kms: Kms, library: Library) -> None:
    address = paid_address(shop, "1", "eth")
    library.digest = b"\x07" * 32
    if kind == "sweep":
        name = plan(shop, "sweep", "eth", address, shop.hot().address, "0.5")
        signing = services().deposit_moves
    else:
        name = plan(shop, "topup", "eth", shop.hot().address, address.address, "0.01")
        signing = services().wallet_moves
    kms.calls.clear()
    shop.turn()
    built = move_of(shop, name)
    with pytest.raises(ReadersDiffer, match=r"in digests$"):
        signing.advance(built.network, name)
    assert (built.state, built.raw, kms.calls["Sign"]) == ("built", None, 0)
    library.digest, library.reads = None, {"signer": "0x" + "77" * 20}
    with pytest.raises(ReadersDiffer, match=r"in signer$"):
        signing.advance(built.network, name)
    assert move_of(shop, name) == built
    library.reads = {}
    signing.advance(built.network, name)
    assert move_of(shop, name).state == "signed"
    order = library.orders[-1]
    assert (order.sender, order.recipient, order.amount, order.nonce) == (built.source, built.recipient, built.amount, built.nonce)
