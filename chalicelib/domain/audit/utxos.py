"""Audit rules of hot wallets' UTXOs, and of the bundles and moves that spend them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence

from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.treasury.consolidations import CoinMove
from chalicelib.domain.treasury.hot_utxos import MOST_COINS, HeldCoins
from chalicelib.domain.versions import newer_state
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Withdrawal
from chalicelib.domain.work import Work

_AT_WORK = ("built", "signed")
"""The states in which a bundle, or a move of coins, spends the coins that it names."""
_ORDERS = {
    "gathering": {"built"},
    "built": {"built"},
    "signed": {"built", "signed", "settled"},
    "settled": {"signed", "settled"},
    "dead": {"built", "signed", "bounced"},
}


def coins_agree(
    held: Sequence[HeldCoins],
    bundles: Sequence[Bundle],
    orders: Sequence[PaymentOrder],
    withdrawals: Sequence[Withdrawal],
    deposits: Sequence[Deposit],
    wallets: Sequence[WalletBalance],
    work: Sequence[Work],
    moves: Sequence[CoinMove] = (),
) -> Iterable[str]:
    """Every violation, one sentence each."""
    by_id = {bundle.id: bundle for bundle in bundles}
    open_ids = {w.id for w in work if w.kind == "bundle"}
    yield from _bundles(by_id, orders, withdrawals, open_ids)
    records: list[Bundle | CoinMove] = [*bundles, *moves]
    for record in records:
        if record.state == "settled" and record.settled_attempt() is None:
            yield f"{record.id} is settled, and {record.mined or 'nothing'} is no transaction of it"
    fees = {w.id: w.fee for w in withdrawals}
    booked = {(w.network, w.address.lower(), w.asset): w.units for w in wallets}
    for wallet in held:
        mine = [bundle for bundle in bundles if (bundle.network, bundle.wallet) == (wallet.network, wallet.wallet)]
        moving = [move for move in moves if move.network == wallet.network and wallet.wallet in (move.wallet, move.recipient)]
        expected = _expected(wallet, mine, deposits, moving)
        yield from _held(wallet, expected)
        yield from _reserved(wallet, mine, open_ids, moving)
        if not mine and not moving:
            continue
        units = sum(expected.values()) - sum(move.in_flight for move in moving if move.wallet == wallet.wallet)
        for bundle in mine:
            if (attempt := bundle.settled_attempt()) is not None:
                units += bundle.total + attempt.fee
        for order in orders:
            if order.bundle in {bundle.id for bundle in mine} and order.state in ("signed", "settled"):
                units -= order.amount + (fees.get(order.withdrawal_id, 0) if order.state == "settled" else 0)
        asset = mine[0].asset if mine else moving[0].asset
        found = booked.get((wallet.network, wallet.wallet.lower(), asset), 0)
        if found != units:
            yield f"wallet {wallet.wallet} on {wallet.network} has {found} by the ledger and {units} by its coins"


def _expected(
    wallet: HeldCoins, bundles: Sequence[Bundle], deposits: Sequence[Deposit], moves: Sequence[CoinMove]
) -> dict[str, int]:
    """The coins that the wallet has by its deposits and by its own transactions, units by outpoint."""
    coins = {
        f"{d.txid}:{d.position.removeprefix('out:')}": d.amount
        for d in deposits
        if (d.network, d.address, d.status) == (wallet.network, wallet.wallet, "confirmed") and d.tenant is None and not d.set_aside
    }
    mined = [attempt for bundle in bundles if (attempt := bundle.settled_attempt()) is not None]
    for attempt in mined:
        change = attempt.change_coin(0)
        if change is not None:
            coins[change.outpoint] = change.amount
    for move in moves:
        moved = move.settled_attempt()
        for coin in () if moved is None else move.received(moved, wallet.wallet):
            coins[coin.outpoint] = coin.amount
    for attempt in mined:
        for coin in attempt.inputs:
            coins.pop(coin.outpoint, None)
    for move in moves:
        for outpoint in move.outpoints if move.state == "settled" else ():
            coins.pop(outpoint, None)
    return coins


def _held(wallet: HeldCoins, expected: dict[str, int]) -> Iterable[str]:
    name = _name(wallet)
    for outpoint, count in Counter(coin.outpoint for coin in wallet.coins).items():
        if count > 1:
            yield f"{name} holds {outpoint} {count} times"
    for coin in wallet.coins:
        if expected.get(coin.outpoint) != (None if coin.gone else coin.amount):
            yield f"{name} holds {coin.outpoint} of {coin.amount}, gone: {coin.gone}; it should be {expected.get(coin.outpoint)}"
        if coin.gone and coin.reserved_by is None:
            yield f"{name} holds {coin.outpoint}, which is gone and free"
    missing = set(expected) - {coin.outpoint for coin in wallet.coins}
    if missing and len(wallet.coins) < MOST_COINS:
        yield f"{name} lacks {', '.join(sorted(missing)[:5])}"


def _reserved(wallet: HeldCoins, bundles: Sequence[Bundle], open_ids: set[str], moves: Sequence[CoinMove]) -> Iterable[str]:
    """A UTXO is reserved by the bundle or move that spends it, and each of these has all of its UTXOs reserved."""
    yield from _reserved_by_the_living(wallet, bundles, open_ids, moves)
    reserved = {(coin.outpoint, coin.reserved_by) for coin in wallet.coins}
    for bundle in bundles:
        if bundle.state in _AT_WORK:
            yield from _not_reserved(f"bundle {bundle.id}", bundle.id, bundle.coins, reserved)
    for move in moves:
        if move.wallet == wallet.wallet and move.state in _AT_WORK:
            yield from _not_reserved(f"coin move {move.id}", move.id, move.outpoints, reserved)
    gathering = [bundle.id for bundle in bundles if bundle.state == "gathering"]
    if gathering != ([wallet.gathering] if wallet.gathering else []):
        yield f"{_name(wallet)} gathers {wallet.gathering}, and its bundles {', '.join(gathering) or 'nothing'}"


def _reserved_by_the_living(
    wallet: HeldCoins, bundles: Sequence[Bundle], open_ids: set[str], moves: Sequence[CoinMove]
) -> Iterable[str]:
    """No coin stays reserved by a bundle or a move that is over: it could never be spent again."""
    by_id = {bundle.id: bundle for bundle in bundles}
    moving = {(outpoint, move.id) for move in moves if move.state in _AT_WORK for outpoint in move.outpoints}
    for coin in wallet.coins:
        if coin.reserved_by is None or (coin.outpoint, coin.reserved_by) in moving:
            continue
        bundle = by_id.get(coin.reserved_by)
        live = bundle is not None and (bundle.state in _AT_WORK or bundle.id in open_ids)
        if bundle is None or not live or coin.outpoint not in bundle.coins:
            yield f"{_name(wallet)}: {coin.outpoint} is reserved by {coin.reserved_by}, which is not at work on it"


def _not_reserved(name: str, id_: str, outpoints: Iterable[str], reserved: Container[tuple[str, str | None]]) -> Iterable[str]:
    for outpoint in outpoints:
        if (outpoint, id_) not in reserved:
            yield f"{name} spends {outpoint}, which is not reserved for it"


def _name(wallet: HeldCoins) -> str:
    return f"wallet {wallet.wallet} on {wallet.network}"


def _bundles(
    bundles: Mapping[str, Bundle], orders: Sequence[PaymentOrder], withdrawals: Sequence[Withdrawal], open_ids: set[str]
) -> Iterable[str]:
    """Orders and bundles name each other, and each bundle is as far as its orders are."""
    named = {(b.id, p.withdrawal): p for b in bundles.values() for p in b.payouts}
    amounts = {w.id: (w.tenant, w.amount) for w in withdrawals}
    states: dict[str, set[str]] = {bundle_id: set() for bundle_id in bundles}
    for order in orders:
        if order.bundle is None:
            yield from _without_bytes(order)
            continue
        payout = named.pop((order.bundle, order.withdrawal_id), None)
        if payout is None:
            yield f"order {order.id} is not in its bundle {order.bundle}"
            continue
        if newer_state(order) is None:
            states[order.bundle].add(order.state)
        told = (payout.tenant, payout.amount)
        if told != (order.tenant, order.amount) or told != amounts.get(order.withdrawal_id):
            yield f"bundle {order.bundle} pays {payout.amount} for {order.withdrawal_id}, which is another amount"
    for bundle_id, withdrawal_id in named:
        yield f"bundle {bundle_id} pays {withdrawal_id}, which has no order in it"
    for bundle in bundles.values():
        if newer_state(bundle) is None:
            yield from _as_far_as_its_orders(bundle, states[bundle.id], open_ids)
    for bundle_id in sorted(open_ids - set(bundles)):
        yield f"bundle {bundle_id} is to be looked at and is not there"


def _without_bytes(order: PaymentOrder) -> Iterable[str]:
    """Payments of a bundle are signed with the bundle: an order that is out of its bundle can pay nothing by itself."""
    if order.unbundled and (order.state != "built" or order.unsigned or order.raw or order.txid or order.earlier):
        yield f"order {order.id} is in no bundle and is {order.state}, or has bytes"


def _as_far_as_its_orders(bundle: Bundle, states: set[str], open_ids: Container[str]) -> Iterable[str]:
    """A bundle pays somebody, its orders' `states` fit its own, and it is open work until all of them are over."""
    if not bundle.payouts and bundle.state not in ("gathering", "dead"):
        yield f"bundle {bundle.id} is {bundle.state} and pays nobody"
    if wrong := states - _ORDERS[bundle.state]:
        yield f"bundle {bundle.id} is {bundle.state} and has orders that are {', '.join(sorted(wrong))}"
    unfinished = bundle.state in ("gathering", "built", "signed") or (bundle.state == "dead" and not states <= {"bounced"})
    if unfinished and bundle.id not in open_ids:
        yield f"bundle {bundle.id} is {bundle.state} and nobody will look at it again"
