"""Adjustments for payments by the owner of a cold wallet: its key is not here, so only an operator can have them recorded.

An operator names the transaction and the amount. Where blocks tell what the transaction took from the wallet, the amount has to be
that. Where they do not (UTXO networks; a contract that was not traced; the fee of a call) the operator's word counts, for no more
than the chain has less at the wallet than the ledger. One transaction is posted once for each coin.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass

from chalicelib.domain import ledger
from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.chain import Cursor, Receipt
from chalicelib.domain.ledger import JournalEntry
from chalicelib.domain.money import Amount, format_units
from chalicelib.domain.reconciliation import Place, Unread
from chalicelib.usecases.base.current_wallets import wallet_of
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.ports.changes import Beside, Post
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.reconciliation.comparisons import Looks
from chalicelib.usecases.wallets.ledger_balances import ledger_balance
from chalicelib.usecases.wallets.lookup import wallet_at
from chalicelib.usecases.wallets.utxos import pays_from_coins

log = logging.getLogger(__name__)

_TXID = re.compile(r"(0x)?[0-9a-f]{64}")
_SENT_BY_ITSELF = ("native", "out:")
"""Positions of what the wallet's own key sent, which pays the fee of it, too."""


class NotBooked(Exception):
    """The payment can not be recorded as the operator said it. The message tells the reason."""


@dataclass(frozen=True, slots=True)
class Adjusted:
    """The recorded entry, or an earlier one (`again`); `word`: the part that rests on the operator's word alone. `left` in
    units."""

    entry: JournalEntry
    left: int
    again: bool = False
    word: str | None = None


class ColdAdjusting:
    """Records payments of one network. `looks` gives the comparison of a place with the chain."""

    def __init__(self, context: NetworkContext, looks: Callable[[], Looks]) -> None:
        self._network, self._reader, self._looks = context.network, context.reader, looks
        self._context, self._store, self._clock = context, context.store, context.clock

    def book(self, coin: Coin, amount: int, reference: str, reason: str, address: str | None = None) -> Adjusted:
        """Record that the transaction `reference` took `amount` units of `coin` from the cold wallet, or from a retired one.

        Raises NotBooked, Unavailable; Conflict where something arrived there meanwhile.
        """
        wallet, txid = self._wallet(address), reference.strip().lower()
        if amount <= 0 or not _TXID.fullmatch(txid):
            raise NotBooked("an amount above zero and the id of a transaction are needed")
        place = self._context.form(wallet.address)
        entry = ledger.cold_spent(
            self._clock.now_ms(), self._network.realm, self._network.id, place, Amount(coin.asset, amount), txid, reason
        )
        held = ledger_balance(self._store, self._context.rules, self._network, wallet.address, coin.asset)
        before = self._store.get(JournalEntry, id=entry.id)
        if before is not None:
            if before.postings != entry.postings:
                raise NotBooked(f"{txid} is booked already, with another amount")
            return Adjusted(before, held.units, again=True)
        if amount > held.units:
            raise NotBooked(f"the ledger has {self._text(coin, held.units)} there")
        word = self._proven(coin, place, amount, txid)
        as_read = Beside(self._network.id, place, coin.asset, only_if=(held.units, held.pending))
        self._store.commit([Post(entry), as_read])
        log.warning("%s: %d units of %s left the cold wallet by %s: %s", self._network.id, amount, coin.slug, txid, reason)
        return Adjusted(entry, held.units - amount, word=word)

    def _wallet(self, address: str | None) -> Wallet:
        if address is None:
            wallet = wallet_of(self._store, self._network.id, "cold")
        else:
            wallet = wallet_at(self._store, self._network.id, self._context.rules.normalize(self._network.slug, address))
        if wallet is None or wallet.role != "cold":
            raise NotBooked(f"{self._network.slug} has no such cold wallet")
        return wallet

    def _proven(self, coin: Coin, place: str, amount: int, txid: str) -> str | None:
        """The part that rests on the operator's word; None where the chain says all of it. Raises NotBooked, Unavailable."""
        from_coins = pays_from_coins(self._network)
        try:
            receipt = self._reader.receipt(txid)
        except Unavailable:
            if not from_coins:
                raise
            receipt = None  # a node without an index finds no transaction
        if receipt is not None:
            self._deep(receipt)
        elif not from_coins:
            raise NotBooked(f"{txid} is in no block")
        if receipt is not None and not from_coins:
            taken = self._taken(coin, place, receipt)
            if taken == amount:
                return None
            if taken or coin.contract is not None:
                raise NotBooked(f"{txid} took {self._text(coin, taken)} from there, by the chain")
        (seen,) = self._looks().look([Place(place, "cold", coin.asset, self._context.contract_form(coin.contract))])
        if isinstance(seen, Unread):
            raise Unavailable(f"{place} can not be compared: {seen.why}")
        if amount > -seen.difference:
            raise NotBooked(f"the chain has only {self._text(coin, max(0, -seen.difference))} less than the ledger there")
        return f"that {txid} is what took it" if receipt is not None else f"that {txid} took it, and is in the chain for good"

    def _deep(self, receipt: Receipt) -> None:
        """An adjustment is never undone, so no reorganisation may reach its block."""
        cursor = self._store.get(Cursor, network=self._network.id)
        depth = 0 if cursor is None else cursor.number - receipt.block_number + 1
        if depth < self._network.reorg_depth or self._reader.block_hash(receipt.block_number) != receipt.block_hash:
            raise NotBooked(f"it is {max(0, depth)} blocks deep, and has to be {self._network.reorg_depth}: try again later")

    def _taken(self, coin: Coin, place: str, receipt: Receipt) -> int:
        """Units of the coin that left the place by a transaction, with the fee where the wallet's own key sent native coins."""
        if coin.contract is not None:
            contract = self._context.contract_form(coin.contract)
            logged = zip(receipt.moved, receipt.amounts, strict=True)
            return sum(units for (token, sender, _), units in logged if (token, sender) == (contract, place)) * receipt.success
        (block,) = self._reader.blocks(receipt.block_number, receipt.block_number, ())
        sent = [t for t in block.transfers if (t.txid, t.sender, t.contract) == (receipt.txid, place, None)]
        sent = self._reader.proven(block, sent) if sent else []
        own = any(transfer.position.startswith(_SENT_BY_ITSELF) for transfer in sent)
        return sum(transfer.amount for transfer in sent) + ((receipt.fee or 0) if own else 0)

    def _text(self, coin: Coin, units: int) -> str:
        return f"{format_units(units, coin.decimals)} {coin.slug}"
