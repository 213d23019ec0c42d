"""UTXO attempts in flight, read from their signed bytes alone: a replacement may be signed only on this ground (money rules 5
and 7).

A replacement is signed because something with the same inputs was signed before. A record that says so may have been altered; our
own signatures can not have been. So the first attempt is taken apart: it spends coins of ours that are reserved, signed for by the
keys of their addresses, and it pays those whom the new one pays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from chalicelib.domain.addresses.addresses import RetiredWallet, Role
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.treasury.consolidations import CoinMove
from chalicelib.domain.treasury.hot_utxos import HeldCoin
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.usecases.base.current_wallets import wallet_of
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Still
from chalicelib.usecases.ports.coins import CoinPayer, Unspent
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.spelling import spelled


class SignedAttempt(Protocol):
    @property
    def raw(self) -> str | None: ...

    @property
    def txid(self) -> str | None: ...

    @property
    def fee(self) -> int: ...


class AttemptOfBundle(SignedAttempt, Protocol):
    @property
    def inputs(self) -> tuple[HeldCoin, ...]: ...


def move_unproved(payer: CoinPayer, rules: AddressRules, network: Network, move: CoinMove, attempt: SignedAttempt) -> list[str]:
    """In what an attempt of `move` is not what was signed; nothing where it is."""
    coins = [Unspent(c.outpoint, c.address, c.amount, c.height) for c in move.inputs]
    paid = _paid(payer, rules, network, attempt, coins)
    if paid is None:
        return ["what was signed"]
    allowed = [move.recipient, *([] if move.kind != "cold" or move.wallet is None else [move.wallet])]
    wrong = [] if [address for address, _ in paid] in (allowed, allowed[:1]) else ["whom the signed bytes pay"]
    return wrong if move.total - sum(amount for _, amount in paid) == attempt.fee else [*wrong, "the fee of what was signed"]


def bundle_unproved(
    payer: CoinPayer,
    rules: AddressRules,
    network: Network,
    bundle: Bundle,
    attempt: AttemptOfBundle,
    reserved: Sequence[HeldCoin],
) -> list[str]:
    """In what an attempt of `bundle` is not what was signed, with coins `reserved` for it; nothing where it is."""
    ours = {coin.outpoint: coin.amount for coin in reserved}
    if any(ours.get(coin.outpoint) != coin.amount for coin in attempt.inputs):
        return ["the reservation of what was signed"]
    coins = [Unspent(c.outpoint, bundle.wallet, c.amount, c.height) for c in attempt.inputs]
    paid = _paid(payer, rules, network, attempt, coins)
    if paid is None:
        return ["what was signed"]
    try:
        bundle.change_among(paid, bundle.wallet)
    except ValueError:
        return ["whom the signed bytes pay"]
    fee = sum(c.amount for c in coins) - sum(amount for _, amount in paid)
    return [] if fee == attempt.fee else ["the fee of what was signed"]


def _paid(
    payer: CoinPayer, rules: AddressRules, network: Network, attempt: SignedAttempt, coins: Sequence[Unspent]
) -> list[tuple[str, int]] | None:
    """Whom the signed bytes pay; None unless they spend exactly `coins`, by signature of their keys, and have the id on record."""
    try:
        found = payer.proved(attempt.raw or "", coins)
        return spelled(rules, network, found.outputs) if found.txid == attempt.txid else None
    except ValueError:
        return None


def begun_for(store: Store, move: CoinMove) -> list[Still] | None:
    """The conditions under which the recipient is one that what was begun may go on to: the service wallet of today, or one that
    was replaced since. None where it is neither. Raises Unavailable."""
    role: Role = "cold" if move.kind == "cold" else "hot"
    if move.recipient == move.wallet:
        return None
    wallet = wallet_of(store, move.network, role)
    if wallet is not None and wallet.address == move.recipient:
        return [Still(wallet)]
    retired = store.get(RetiredWallet, network=move.network, address=move.recipient)
    return [] if retired is not None and retired.role == role else None
