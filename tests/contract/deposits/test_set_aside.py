"""What would take a sum past 10^37 units is recorded and set aside; the block passes, and an operator may release it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.chain import Transfer
from chalicelib.domain.deposits import sums
from chalicelib.domain.deposits.deposits import Deposit, deposit_work
from chalicelib.domain.ledger import Balance, WalletBalance
from chalicelib.domain.money import MOST_SUM, format_units
from chalicelib.domain.reconciliation import Place, Unread
from chalicelib.domain.treasury.moves import Move, Origin
from chalicelib.usecases.deposits import groups as deposit_groups
from chalicelib.usecases.deposits import posting as deposit_book
from chalicelib.usecases.ports.changes import Beside, Change, Open, Save
from chalicelib.usecases.reconciliation.accounts import _seen
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.reconciliation.in_flight import Effects
from chalicelib.usecases.treasury.moves import checks as move_checks
from chalicelib.usecases.treasury.moves.checks import MoveChecks
from chalicelib.wiring import services
from tests.support.shop import CONFIRMATIONS, PAYEE, bent_node, open_shop, with_also
from tests.support.stack import Response, Stack
from tests.support.till import Till

USDT = 10**6
ASIDE = "set_aside"
DEEP = CONFIRMATIONS + 2


class Vault(Till):
    def at(self, address: str) -> Deposit:
        (found,) = (d for d in services().store.every(Deposit) if d.address == address)
        return found

    def vast(self, address: str, units: int, mark: str = "aa") -> Transfer:
        contract = self.coin("usdt").contract
        assert contract is not None
        return Transfer("0x" + mark * 32, "log:0", contract.lower(), PAYEE.lower(), address.lower(), units)

    def released(self, address: str) -> Response:
        return self.operate("POST", f"/v1/transactions/{self.at(address).id}/release")

    def entries(self, address: str) -> list[str]:
        ours = self.at(address).id
        kinds = ("deposit_credited", "deposit_reversed", "deposit_admitted", "deposit_released")
        return [kind for kind in kinds for entry in self.journal(kind) if entry.ref["deposit"] == ours]

    def pending(self) -> tuple[str, str]:
        shown = self.balance("usdt")
        return shown["available"], shown["pending"]


def _recorded(deposit: Deposit, balance: Balance) -> list[Change]:
    """What another process stores when it sees a deposit."""
    return [
        Save(deposit),
        Open(deposit_work(deposit)),
        Save(replace(balance, pending=balance.pending + deposit.amount, version=balance.version + 1)),
        Beside(deposit.network, deposit.address.lower(), deposit.asset, pending=deposit.amount),
    ]


@pytest.fixture
def vault(stack: Stack) -> Iterator[Vault]:
    with open_shop(stack) as opened:
        yield Vault(opened.stack)


def bound(patch: pytest.MonkeyPatch, usdt: int) -> None:
    """Sums take so many USDT, and every amount matters: as with amounts that nobody has."""
    patch.setattr(sums, "MOST_SUM", usdt * USDT)
    for module in (deposit_book, deposit_groups, move_checks):
        patch.setattr(module, "MATTERS", 0)
        patch.setattr(module, "NEAR", 0)


@pytest.mark.parametrize("units", [MOST_SUM + 1, 10**38, 2**256 - 1])
def test_a_payment_of_more_than_any_sum_takes(
    vault: Vault, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, units: int
) -> None:
    """A token may log any number. It was left out, and nobody could ever see it; the rest of the block counted, and does."""
    invoice, other = vault.invoice("1", "usdt"), vault.invoice("1", "usdt")
    vault.pay(invoice["address"], "1", "usdt")
    node = bent_node(vault, monkeypatch)
    (block,) = node._real.blocks(node._real.tip(), node._real.tip(), {})
    with_also(node, [vault.vast(other["address"], units)], block.hash)
    vault.turn()
    shown = vault.deposit(other["address"])
    assert (shown["status"], shown["flags"], shown["invoiceId"]) == ("pending", [ASIDE], other["id"])
    assert shown["amount"] == format_units(units, 6)
    assert vault.pending() == ("0", "1")
    vault.settle()
    assert (vault.status(invoice), vault.status(other), vault.pending()) == ("completed", "pending", ("1", "0"))
    assert vault.deposit(other["address"])["status"] == "confirmed"
    assert (vault.shown(other)["received"], vault.entries(other["address"])) == ("0", [])
    assert [r.levelno for r in caplog.records if "ALARM" in r.message and "set aside" in r.message] == [logging.ERROR]
    refused = vault.released(other["address"])
    assert (refused.status, refused.json["error"]["code"]) == (400, "VALIDATION_ERROR")
    assert "10^37" in refused.json["error"]["message"]
    assert vault.told(shown["id"]) == {"transaction.detected": 1, "transaction.confirmed": 1}
    vault.whole()


def test_many_that_fit_alone_and_not_together(vault: Vault, caplog: pytest.LogCaptureFixture) -> None:
    """Eleven payments of 10^36 units to as many addresses of one merchant, on the way that sandboxes have."""
    addresses = [vault.address() for _ in range(11)]
    for address in addresses:
        vault.pay(address, f"{10**30}", "usdt")
    vault.settle()
    aside = [address for address in addresses if vault.flags(address) == [[ASIDE]]]
    assert (len(aside), vault.pending()) == (1, (f"{10**31}", "0"))
    vault.pay(vault.address(), "1", "usdc")
    vault.settle()
    assert vault.available("usdc") == "1"
    vault.whole()


def test_it_is_booked_once_there_is_room(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    """Like a payment that comes now: entry, balance, invoice and addresses, once."""
    bound(monkeypatch, 100)
    first, second = vault.invoice("60", "usdt"), vault.invoice("60", "usdt")
    vault.pay(first["address"], "60", "usdt")
    vault.settle()
    vault.pay(second["address"], "60", "usdt")
    vault.settle()
    assert (vault.pending(), vault.flags(second["address"]), vault.status(second)) == (("60", "0"), [[ASIDE]], "pending")
    assert vault.released(second["address"]).status == 400
    vault.withdraw("60", "usdt")
    vault.turn()
    vault.settle()
    assert vault.pending() == ("0", "0")
    released = vault.released(second["address"])
    assert (released.status, released.json["data"]["flags"]) == (200, [])
    assert (vault.pending(), vault.status(second), vault.entries(second["address"])) == (
        ("60", "0"), "completed", ["deposit_credited"],
    )  # fmt: skip
    assert vault.at(second["address"]).admitted_by is not None
    again = vault.released(second["address"])
    assert (again.status, "released before" in again.json["error"]["message"]) == (400, True)
    assert vault.pending() == ("60", "0")
    vault.whole()


def test_released_before_its_confirmations(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    bound(monkeypatch, 100)
    invoice = vault.invoice("101", "usdt")
    vault.pay(invoice["address"], "101", "usdt")
    vault.seen()
    assert (vault.pending(), vault.status(invoice)) == (("0", "0"), "pending")
    bound(monkeypatch, 101)
    assert vault.released(invoice["address"]).status == 200
    assert (vault.pending(), vault.status(invoice), vault.entries(invoice["address"])) == (("0", "101"), "confirming", [])
    vault.whole()
    vault.settle()
    assert (vault.pending(), vault.status(invoice)) == (("101", "0"), "completed")
    assert vault.entries(invoice["address"]) == ["deposit_credited"]
    vault.whole()


def test_what_fitted_and_does_not_when_it_is_credited(
    vault: Vault, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What a reorganisation brought back has filled the sum meanwhile."""
    invoice = vault.invoice("60", "usdt")
    vault.pay(invoice["address"], "60", "usdt")
    vault.seen()
    assert (vault.pending(), vault.status(invoice)) == (("0", "60"), "confirming")
    bound(monkeypatch, 59)
    vault.settle()
    assert (vault.pending(), vault.status(invoice), vault.entries(invoice["address"])) == (("0", "0"), "pending", [])
    assert (vault.deposit(invoice["address"])["status"], vault.flags(invoice["address"])) == ("confirmed", [[ASIDE]])
    assert len([r for r in caplog.records if "ALARM" in r.message and "set aside" in r.message]) == 1
    vault.whole()
    bound(monkeypatch, 60)
    assert vault.released(invoice["address"]).status == 200
    assert (vault.pending(), vault.status(invoice)) == (("60", "0"), "completed")
    vault.whole()


@pytest.mark.parametrize("confirmed", [False, True])
@pytest.mark.parametrize("remine", [False, True])
def test_a_reorganisation_reverses_nothing_that_was_not_posted(
    vault: Vault, monkeypatch: pytest.MonkeyPatch, confirmed: bool, remine: bool
) -> None:
    bound(monkeypatch, 50)
    address = vault.address()
    vault.pay(address, "60", "usdt")
    (vault.settle if confirmed else vault.seen)()
    assert vault.flags(address) == [[ASIDE]]
    bound(monkeypatch, 100)
    vault.reorg(DEEP if confirmed else 2, remine)
    vault.turn()
    assert "deposit_reversed" not in vault.entries(address)
    if remine:
        vault.settle()
        # Judged anew: by now there is room.
        assert (vault.pending(), vault.flags(address)) == (("60", "0"), [[]])
    else:
        assert (vault.pending(), vault.at(address).status, vault.flags(address)) == (("0", "0"), "orphaned", [[]])
        assert vault.released(address).status == 400
    vault.whole()


def test_a_released_one_falls_out_and_comes_back(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    bound(monkeypatch, 50)
    address = vault.address()
    vault.pay(address, "60", "usdt")
    vault.settle()
    bound(monkeypatch, 60)
    assert vault.released(address).status == 200
    vault.reorg(DEEP)
    vault.turn()
    assert (vault.pending(), vault.entries(address)) == (("0", "0"), ["deposit_credited", "deposit_reversed"])
    vault.whole()


def test_two_that_race_for_the_same_room(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another payment is recorded between the reading of the sums and the commit: the second one looks again."""
    bound(monkeypatch, 100)
    first, second = vault.address(), vault.address()
    vault.pay(first, "60", "usdt")
    vault.pay(second, "60", "usdt")
    wired = services()
    commit, rivals = wired.store.commit, [True]

    def between(changes: Any) -> None:
        saved = next((c.record for c in changes if isinstance(getattr(c, "record", None), Deposit)), None)
        if saved is not None and saved.address == first and rivals:
            rivals.clear()
            balance = wired.store.get(Balance, tenant=saved.tenant, asset=saved.asset) or Balance(saved.tenant, saved.asset)
            rival = replace(saved, id="tx_rival", address=second, txid="0x" + "cc" * 32, emitted=0)
            commit(_recorded(rival, balance))
        commit(changes)

    monkeypatch.setattr(wired.store, "commit", between)
    vault.mine(1)
    vault.stack.drain(only=(f"poll_{vault.network}",), rounds=1, failures="count")
    assert not rivals
    assert [ASIDE] in vault.flags(first)
    (balance,) = (b for b in wired.store.every(Balance) if b.asset == vault.coin("usdt").asset)
    assert balance.pending <= 100 * USDT


def test_what_was_too_little_is_not_released_into_a_full_sum(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    vault.minimum(5)
    address, other = vault.address(), vault.address()
    vault.pay(address, "4", "usdt")
    vault.pay(other, "97", "usdt")
    vault.settle()
    assert (vault.flags(address), vault.available("usdt")) == ([["below_minimum"]], "97")
    bound(monkeypatch, 100)
    refused = vault.released(address)
    assert (refused.status, refused.json["error"]["code"]) == (400, "VALIDATION_ERROR")
    bound(monkeypatch, 101)
    assert (vault.released(address).status, vault.available("usdt")) == (200, "101")
    vault.whole()


def test_too_little_and_too_much_at_its_address(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    """One release takes both flags."""
    vault.minimum(50)
    bound(monkeypatch, 10)
    address = vault.address()
    vault.pay(address, "20", "usdt")
    vault.settle()
    assert sorted(vault.flags(address)[0]) == ["below_minimum", ASIDE]
    assert vault.operators() == 0
    bound(monkeypatch, 20)
    assert vault.released(address).json["data"]["flags"] == []
    assert (vault.available("usdt"), vault.entries(address)) == ("20", ["deposit_credited"])
    vault.whole()


def test_from_the_grey_list_and_set_aside(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    """The release is for the sender, too."""
    sender = "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb"
    listed = vault.operate("POST", "/v1/addresses/grey-list", network=vault.network, address=sender)
    assert listed.status == 201, listed.body
    bound(monkeypatch, 10)
    address = vault.address()
    vault.paid_by(sender, address, "20")
    vault.settle()
    assert sorted(vault.flags(address)[0]) == ["grey_listed", ASIDE]
    bound(monkeypatch, 20)
    assert vault.released(address).status == 200
    assert (vault.flags(address), vault.available("usdt")) == ([["grey_listed"]], "20")
    vault.whole()


def test_what_comes_to_the_operators_own_wallet(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    store, wallet, asset = services().store, vault.hot().address, vault.coin("usdt").asset
    before = {d.id for d in store.every(Deposit)}
    place = {"network": vault.realm_network().id, "address": wallet.lower(), "asset": asset}
    had = store.get(WalletBalance, **place)
    bound(monkeypatch, 1_000_000)
    vault.pay(wallet, "7", "usdt")
    vault.settle()
    (own,) = (d for d in store.every(Deposit) if d.id not in before)
    now = store.get(WalletBalance, **place)
    assert (own.tenant, own.flags, now.units, now.aside) == (None, (ASIDE,), had.units, 1)
    monkeypatch.setattr(sums, "MOST_SUM", MOST_SUM)
    assert vault.operate("POST", f"/v1/transactions/{own.id}/release").status == 200
    now = store.get(WalletBalance, **place)
    assert (now.units, now.aside) == (had.units + 7 * USDT, 0)
    vault.whole()


def test_nothing_is_swept_to_a_wallet_that_could_not_book_it(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each deposit address may hold as much as a sum takes; the hot wallet of all of them could not."""
    network, store = vault.realm_network(), services().store
    hot = vault.hot().address
    has = store.get(WalletBalance, network=network.id, address=hot.lower(), asset=vault.coin("usdt").asset)
    checks = MoveChecks(store, services().rules)

    def sweep(units: int) -> Move:
        return Move.sweep(Origin(network.id, "col_1", 1, 0), vault.coin("usdt"), PAYEE, "m/1", hot, units)

    assert checks.has_room(network, sweep(MOST_SUM - has.units))
    assert not checks.has_room(network, sweep(MOST_SUM - has.units + 1))


def test_a_place_with_something_set_aside_is_told_and_not_compared(vault: Vault) -> None:
    """What the chain has more there is recorded, so it is no loss of ours."""
    asset = vault.coin("usdt").asset
    place = Place(PAYEE, "user", asset, None)
    nothing = Effects()
    full = WalletBalance(vault.realm_network().id, PAYEE, asset, units=5, aside=2)
    seen = _seen(place, full, 0, nothing, 10**40, 7)
    assert isinstance(seen, Unread) and seen.lasting and "2 deposits are set aside" in seen.why
    assert not isinstance(_seen(place, full, 0, nothing, 5, 7), Unread)
    assert audit(services().store) == []
