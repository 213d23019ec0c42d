"""Shared parts of a coin move's steps: UTXOs taken by others, reading its bytes, the names of its places."""

from __future__ import annotations

from collections.abc import Sequence

from chalicelib.domain import ledger
from chalicelib.domain.addresses.addresses import RetiredWallet, Role, Wallet
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import NetworkId
from chalicelib.domain.ledger import JournalEntry
from chalicelib.domain.money import Amount
from chalicelib.domain.treasury.consolidations import UNSIGNED, CoinAttempt, CoinMove, ConsolidationQueue, MovedCoin, by_place
from chalicelib.domain.treasury.hot_utxos import HeldCoins
from chalicelib.usecases.base.address_forms import account_at
from chalicelib.usecases.base.current_wallets import wallet_of
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Change, Save, Still
from chalicelib.usecases.ports.coins import CoinPayer, Unspent
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.utxo.reading import attempt_of
from chalicelib.usecases.wallets.utxos import coins_of


def open_moves(store: Store, network: NetworkId) -> list[CoinMove]:
    """Every coin move whose coins nobody else may spend: not at its end, or settled and still watched. Raises Unavailable, and
    TooNew for one in a form that only a newer version knows: its coins are taken, and nobody knows which. The operator's own coins
    wait for that version; no payment to or from a merchant does."""
    found: list[CoinMove] = []
    for kind in ("coinmove", "coinmoved"):
        for works in pages_of(store, kind, network):
            keys = [(CoinMove, {"network": network, "id": work.id}) for work in works]
            moves: list[CoinMove | None] = store.get_many(keys)
            found += [move for move in moves if move is not None and (kind == "coinmove" or move.state != "dead")]
    return found


def at_odds(store: Store, move: CoinMove) -> str | None:
    """The field of an open coin move that can not be as it was stored: nothing may be decided by it. None where all agree. One read
    for one whose places are not all in flight yet. Raises Unavailable."""
    begun = move.booked > 0 or bool(move.signed)
    if move.state == "dropped" or (move.state in UNSIGNED and begun) or (move.state == "dead" and not move.signed):
        return "its state"  # what is dropped is closed in the same commit, and dead is what was signed
    if move.booked > len(move.inputs):
        return "its inputs"
    again = move.state == "signed" and move.booked < len(move.inputs)
    if again and store.get(JournalEntry, id=ledger.coins_signed_id(move.id, move.booked)) is not None:
        return "what is in flight of it"
    return None


def queue_of(store: Store, network: NetworkId) -> ConsolidationQueue:
    """Raises Unavailable."""
    return store.get(ConsolidationQueue, network=network) or ConsolidationQueue(network)


def recipient_of(store: Store, move: CoinMove) -> Wallet | None:
    """The service wallet that a move goes to, where it is the one that is registered now; else None. Raises Unavailable."""
    wallet = wallet_of(store, move.network, "cold" if move.kind == "cold" else "hot")
    return wallet if wallet is not None and wallet.address == move.recipient != move.wallet else None


def begun_for(store: Store, move: CoinMove) -> list[Still] | None:
    """The conditions under which the recipient is one that what was started may go on to: the service wallet of today, or one that
    was replaced since. None where it is neither. Raises Unavailable."""
    role: Role = "cold" if move.kind == "cold" else "hot"
    if move.recipient == move.wallet:
        return None
    wallet = wallet_of(store, move.network, role)
    if wallet is not None and wallet.address == move.recipient:
        return [Still(wallet)]
    retired = store.get(RetiredWallet, network=move.network, address=move.recipient)
    return [] if retired is not None and retired.role == role else None


def deposits_of(store: Store, move: CoinMove) -> list[Deposit | None]:
    """The deposits that a consolidation spends, in the order of its inputs. Raises Unavailable."""
    return store.get_many([(Deposit, {"id": coin.deposit or ""}) for coin in move.inputs])


def spendable(deposit: Deposit | None) -> bool:
    """Whether what arrived may be moved: credited for good, and nobody has to look into it first."""
    return deposit is not None and deposit.posted and not deposit.held and not deposit.below_minimum


def outpoint_of(deposit: Deposit) -> str:
    return f"{deposit.txid}:{deposit.position.removeprefix('out:')}"


def unspent_of(coins: Sequence[MovedCoin]) -> list[Unspent]:
    return [Unspent(coin.outpoint, coin.address, coin.amount, coin.height) for coin in coins]


def built(payer: CoinPayer, rules: AddressRules, network: Network, move: CoinMove, unsigned: str) -> CoinAttempt:
    """The attempt of `move` that `unsigned` is, told from its bytes alone. Raises OrderMismatch unless it spends exactly its inputs
    and does what it orders."""
    return attempt_of(payer, rules, network, move, unsigned, [coin.held for coin in move.inputs])


def amounts_at(rules: AddressRules, network: Network, move: CoinMove, coins: Sequence[MovedCoin]) -> dict[str, Amount]:
    """The sum at each account of the ledger."""
    sums = by_place(coins)
    return {account_at(rules, network, address): Amount(move.asset, units) for address, units in sums.items()}


def freed(store: Store, network: Network, move: CoinMove) -> list[Change]:
    """The changes that free the coins of a move that ends without having spent them. Raises Unavailable."""
    if move.wallet is not None:
        held = coins_of(store, network, move.wallet)
        return [Save(held.released(move.id).next())] if held.reserved(move.id) else []
    return ended(store, move)


def ended(store: Store, move: CoinMove) -> list[Change]:
    """The changes that let the next consolidation begin. Raises Unavailable."""
    queue = queue_of(store, move.network)
    return [Save(queue.without(move.id).next())] if move.id in queue.holders else []


def held_after(store: Store, network: Network, addresses: Sequence[str | None]) -> dict[str, HeldCoins]:
    """The coins of the hot wallets among `addresses`, by address. Raises Unavailable."""
    return {address: coins_of(store, network, address) for address in addresses if address is not None}
