"""Payments out of an imported hot wallet, whose key is in the store under envelope encryption; and what happens when its row is
not what was stored: nothing is signed, an operator is called, and with the right row the payment is made, once.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import boto3
import pytest

from chalicelib.custody.records import EncryptedKey
from chalicelib.custody.wallets import import_wallet, new_private_key
from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder
from chalicelib.usecases.ports.changes import Delete, Save
from chalicelib.wiring import services
from infra.bootstrap import watch
from tests.support.shop import ETHER, Kms, Shop, open_shop
from tests.support.stack import Stack


@dataclass(frozen=True)
class Imported:
    """A shop that pays out of an imported wallet, funded with 5 ETH and credited."""

    shop: Shop
    wallet: Wallet
    key: EncryptedKey
    secret: str


@pytest.fixture
def imported(stack: Stack) -> Iterator[Imported]:
    with open_shop(stack) as shop:
        wired, network, before = services(), shop.realm_network(), shop.hot()
        secret = new_private_key()
        wallet, key = import_wallet(boto3.client("kms"), wired.settings, network.id, "hot", secret, wired.clock.now_ms())
        wired.store.commit([Save(key), Save(replace(wallet, version=before.version + 1))])
        watch(wired, network, wallet)
        shop.pay(wallet.address, "5")
        shop.credit("1")
        yield Imported(shop, wallet, key, secret)


@pytest.fixture
def kms(monkeypatch: pytest.MonkeyPatch) -> Kms:
    return Kms(monkeypatch)


def test_an_imported_wallet_pays(imported: Imported, kms: Kms, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="chalicelib")
    shop = imported.shop
    withdrawal = shop.withdraw("0.75")
    shop.turn()
    shop.mine()
    shop.turn()
    shown = shop.withdrawal(withdrawal)
    assert (shown["status"], shown["from_address"]) == ("confirmed", imported.wallet.address)
    assert (shop.paid(), shop.available()) == (3 * ETHER // 4, "0.25")
    assert shop.paid(imported.wallet.address) == 5 * ETHER - 3 * ETHER // 4 - shop.record(withdrawal).fee
    assert (kms.calls["Sign"], kms.calls["Decrypt"]) == (0, 1)
    assert imported.secret not in caplog.text


def flipped(text: str) -> str:
    raw = bytearray(base64.b64decode(text))
    raw[-1] ^= 1
    return base64.b64encode(raw).decode()


def another(imported: Imported) -> EncryptedKey:
    """A good row, of another wallet of ours on the same network."""
    wired = services()
    network = imported.shop.realm_network().id
    return import_wallet(boto3.client("kms"), wired.settings, network, "hot", new_private_key(), wired.clock.now_ms())[1]


TAMPERED: dict[str, Callable[[Imported], EncryptedKey]] = {
    "ciphertext": lambda i: replace(i.key, ciphertext_b64=flipped(i.key.ciphertext_b64)),
    "nonce": lambda i: replace(i.key, nonce_b64=flipped(i.key.nonce_b64)),
    "data-key": lambda i: replace(i.key, data_key_b64=flipped(i.key.data_key_b64)),
    "swapped": lambda i: replace(another(i), id=i.key.id),
    "swapped-ciphertext": lambda i: replace(i.key, ciphertext_b64=another(i).ciphertext_b64),
}


def refuses_until_put_right(imported: Imported, caplog: pytest.LogCaptureFixture, version: int) -> None:
    """`version` is what the stored row has; 0 where there is none."""
    shop = imported.shop
    caplog.set_level(logging.DEBUG, logger="chalicelib")
    withdrawal = shop.withdraw("0.75")
    shop.turn()
    shop.nudge()
    order = shop.order(withdrawal)
    assert (order.raw, order.txid, order.state, shop.withdrawal(withdrawal)["status"]) == (None, None, "built", "processing")
    assert len([r for r in caplog.records if "ALARM" in r.message and withdrawal in r.message]) >= 2
    assert imported.secret not in caplog.text
    assert shop.paid() == 0
    services().store.commit([Save(replace(imported.key, version=version + 1))])
    shop.nudge()
    shop.mine()
    shop.turn()
    assert (shop.withdrawal(withdrawal)["status"], shop.paid()) == ("confirmed", 3 * ETHER // 4)
    assert [o.id for o in services().store.every(PaymentOrder)] == [order.id]


@pytest.mark.parametrize("name", TAMPERED)
def test_a_tampered_key_signs_nothing(name: str, imported: Imported, caplog: pytest.LogCaptureFixture) -> None:
    services().store.commit([Save(replace(TAMPERED[name](imported), version=2))])
    refuses_until_put_right(imported, caplog, 2)


def test_a_missing_key_signs_nothing(imported: Imported, caplog: pytest.LogCaptureFixture) -> None:
    services().store.commit([Delete(EncryptedKey, {"id": imported.key.id})])
    refuses_until_put_right(imported, caplog, 0)


def test_a_wallet_record_that_names_another_address_signs_nothing(imported: Imported, caplog: pytest.LogCaptureFixture) -> None:
    """The record of the hot wallet is replaced while an order waits for its signature: the order was approved for the other."""
    shop = imported.shop
    withdrawal = shop.withdraw("0.75")
    with pytest.MonkeyPatch.context() as patch:
        Kms(patch).away = True
        shop.turn()
    assert shop.order(withdrawal).raw is None
    stored = shop.hot()
    wired = services()
    other, key = import_wallet(boto3.client("kms"), wired.settings, stored.network, "hot", new_private_key(), wired.clock.now_ms())
    wired.store.commit([Save(key), Save(replace(other, version=stored.version + 1))])
    shop.nudge()
    assert shop.order(withdrawal).raw is None
    assert any("ALARM" in r.message and "wallet" in r.message for r in caplog.records)
    wired.store.commit([Save(replace(stored, version=stored.version + 2))])
    shop.nudge()
    shop.mine()
    shop.turn()
    assert (shop.withdrawal(withdrawal)["status"], shop.paid()) == ("confirmed", 3 * ETHER // 4)
