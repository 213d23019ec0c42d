"""Audit rules of UTXO moves, and of the deposits that they spend."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.treasury.consolidations import UNSIGNED, CoinMove, ConsolidationQueue
from chalicelib.domain.treasury.hot_utxos import OwnTransaction
from chalicelib.domain.work import Work


def coin_moves_agree(
    moves: Sequence[CoinMove],
    collections: Sequence[ConsolidationQueue],
    own: Sequence[OwnTransaction],
    deposits: Sequence[Deposit],
    wallets: Sequence[WalletBalance],
    work: Sequence[Work],
    told: bool,
) -> Iterable[str]:
    """Every violation, one sentence each. `told`: the outbox is empty, so every requested step is open work."""
    named: dict[tuple[str, str], tuple[str, ...]] = {(each.network, each.txid): each.positions for each in own}
    open_ids: dict[str, set[str]] = defaultdict(set)
    for each in work:
        open_ids[each.kind].add(each.id)
    for move in moves:
        yield from _attempts(move, named)
        yield from _obligations(move, open_ids)
    for leftover in sorted((open_ids["coinmove"] | open_ids["coinmoved"]) - {move.id for move in moves}):
        yield f"coin move {leftover} is to be looked at and is not there"
    yield from _spent_once(moves)
    yield from _named(moves, collections)
    by_id = {deposit.id: deposit for deposit in deposits}
    yield from _places(moves, deposits, wallets)
    for move in moves:
        for coin in move.inputs if told and move.wallet is None and move.state in (*UNSIGNED, "signed") else ():
            deposit = by_id.get(coin.deposit or "")
            if deposit is not None and deposit.posted and not deposit.held and deposit.id not in open_ids["collectable"]:
                yield f"coin move {move.id} may fail to spend {coin.outpoint}, and nobody would look at it again"


def _attempts(move: CoinMove, named: dict[tuple[str, str], tuple[str, ...]]) -> Iterable[str]:
    name = f"coin move {move.id}"
    signed = move.state in ("signed", "settled", "dead")
    if bool(move.txids) != signed or (move.newest is None) != (move.state == "waiting" or move.unmade):
        yield f"{name} is {move.state}, and its bytes say otherwise"
    if move.renew and move.state != "signed":
        yield f"{name} is {move.state} and to be replaced"
    if (move.mined is not None) != (move.state == "settled") or (move.block_hash is not None) != (move.state == "settled"):
        yield f"{name} is {move.state}, and its block says otherwise"
    if move.booked != len(move.inputs) and move.state == "settled":
        yield f"{name} is settled, and {move.booked} of its {len(move.inputs)} inputs were booked"
    if move.booked and not signed:
        yield f"{name} is {move.state}, and {move.booked} of its inputs are booked"
    for attempt in move.signed:
        if attempt.txid is None or named.get((move.network, attempt.txid)) != attempt.positions:
            yield f"{name} has the attempt {attempt.txid}, whose outputs a scanner could take for deposits"
        if attempt.amount + attempt.change + attempt.fee != move.total:
            yield f"{name} has the attempt {attempt.txid}, which spends another sum than its inputs have"


def _obligations(move: CoinMove, open_ids: dict[str, set[str]]) -> Iterable[str]:
    unfinished = move.state in (*UNSIGNED, "signed") or (move.state == "dead" and move.booked > 0)
    if unfinished and move.id not in open_ids["coinmove"]:
        yield f"coin move {move.id} is {move.state} and nobody will look at it again"
    if not unfinished and move.id in open_ids["coinmove"]:
        yield f"coin move {move.id} is {move.state} and still open"
    if move.state not in ("settled", "dead") and move.id in open_ids["coinmoved"]:
        yield f"coin move {move.id} is watched as settled and is {move.state}"


def _spent_once(moves: Sequence[CoinMove]) -> Iterable[str]:
    alive = [move for move in moves if move.state not in ("dead", "dropped")]
    for (network, outpoint), count in Counter((m.network, name) for m in alive for name in m.outpoints).items():
        if count > 1:
            yield f"{outpoint} on {network} is spent by {count} coin moves"
    for txid, count in Counter(txid for move in moves for txid in move.txids).items():
        if count > 1:
            yield f"{txid} is an attempt of {count} coin moves, or of one twice"


def _named(moves: Sequence[CoinMove], collections: Sequence[ConsolidationQueue]) -> Iterable[str]:
    """A consolidation that is not signed yet has its coins by its network's record alone."""
    named = {queue.network: queue.holders for queue in collections}
    states = {move.id: move.state for move in moves}
    for move in moves:
        if move.wallet is None and move.state in UNSIGNED and move.id not in named.get(move.network, ()):
            yield f"coin move {move.id} is {move.state}, and its coins are reserved for {named.get(move.network)}"
    for network, holders in named.items():
        for holder in holders:
            if states.get(holder) not in (*UNSIGNED, "signed"):
                yield f"the deposits of {network} are reserved for {holder}, which is {states.get(holder)}"


def _places(moves: Sequence[CoinMove], deposits: Sequence[Deposit], wallets: Sequence[WalletBalance]) -> Iterable[str]:
    """At each address that was collected from lies what was confirmed there, less what left."""
    left: dict[tuple[str, str, str], int] = defaultdict(int)
    for move in moves:
        booked = move.inputs[: move.booked] if move.state in ("signed", "dead", "settled") else ()
        for coin in move.inputs if move.wallet is None else ():
            left[move.network, coin.address.lower(), move.asset] += coin.amount if coin in booked else 0
    came: dict[tuple[str, str, str], int] = defaultdict(int)
    for deposit in deposits:
        if deposit.posted:
            came[deposit.network, deposit.address.lower(), deposit.asset] += deposit.amount
    found: dict[tuple[str, str, str], int] = {(w.network, w.address.lower(), w.asset): w.units for w in wallets}
    for place, units in left.items():
        if found.get(place, 0) != came[place] - units:
            is_, due = found.get(place, 0), came[place] - units
            yield f"{place[1]} on {place[0]} has {is_} by the ledger; its deposits less its moves are {due}"
