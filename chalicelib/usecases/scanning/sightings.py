"""Sightings: the blocks where the scanner meets our transactions, noted before the cursor passes them (money rule 13).

The wallets and signed transactions are read after the blocks: every transaction in a block was signed, and stored, before. So none
of them is missing, and what is signed later can not be in these blocks.

* Chains of accounts: every transaction that the hot, the collector or a replaced wallet sent, by any signer; and those of
  deposit addresses that have a signed move in flight, or one that a reorganisation may put in flight again (`moved`).
* UTXO chains: every transaction that spends a UTXO of a hot wallet, in place or replaced, or an input of a bundle or a UTXO move
  in flight.

A note names the block by its hash: where that falls out of the chain, the note says nothing any more (`losses`). Every scan of a
block stores it once: the poll, a rescan, a range ahead of the cursor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.chain import Block
from chalicelib.domain.transactions.sightings import Seen, Sighting, input_subject, nonce_subject, txid_subject
from chalicelib.domain.treasury.consolidations import CoinMove
from chalicelib.domain.treasury.hot_utxos import HeldCoins
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.versions import version_after
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.withdrawals.withdrawals import NonceUse
from chalicelib.domain.work import WorkKind
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.newer_states import each_of
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.failures import TooNew
from chalicelib.usecases.wallets.signers import signing_wallets
from chalicelib.usecases.wallets.utxos import pays_from_coins

_TOGETHER = 10


class SightingNotes:
    """Notes the sightings of one network. Every method raises Unavailable."""

    def __init__(self, context: NetworkContext) -> None:
        self._context, self._network, self._store = context, context.network, context.store

    def note(self, blocks: Sequence[Block]) -> None:
        """Store the sightings in `blocks`, which were read before. Safe to repeat."""
        found = self._of_coins(blocks) if pays_from_coins(self._network) else self._of_accounts(blocks)
        for start in range(0, len(found), _TOGETHER):
            some = dict(found[start : start + _TOGETHER])
            until_settled(partial(self._store_new, some))

    def _store_new(self, found: dict[str, list[Seen]]) -> None:
        keys = [(Sighting, {"network": self._network.id, "subject": subject}) for subject in found]
        before: list[Sighting | None] = self._store.get_many(keys)
        changes = []
        for (subject, seen), known in zip(found.items(), before, strict=True):
            after = known or Sighting(self._network.id, subject)
            for each in seen:
                after = after.noting(each)
            if after is not known:  # one version further, however much was noted
                changes.append(Save(replace(after, version=version_after(known))))
        if changes:
            self._store.commit(changes)

    def _of_accounts(self, blocks: Sequence[Block]) -> list[tuple[str, list[Seen]]]:
        if not any(block.sent.txids for block in blocks):
            return []
        ours = self._senders()
        found: dict[str, list[Seen]] = {}
        for block in blocks:
            for txid, sender, nonce in block.sent.by(ours):
                subject = txid_subject(txid) if nonce is None else nonce_subject(sender, nonce)
                found.setdefault(subject, []).append(Seen(txid, block.number, block.hash))
        return list(found.items())

    def _of_coins(self, blocks: Sequence[Block]) -> list[tuple[str, list[Seen]]]:
        if not any(block.spent for block in blocks):
            return []
        ours = self._coins()
        found: dict[str, list[Seen]] = {}
        for block in blocks:
            for outpoint in ours & block.spent.keys():
                found.setdefault(input_subject(outpoint), []).append(Seen(block.spent[outpoint], block.number, block.hash))
        return list(found.items())

    def _senders(self) -> set[str]:
        """In storage form."""
        addresses = {wallet.address for wallet in self._wallets()}
        # "move" is read twice: a reorganisation may take a move from "moved" back to it between the two reads.
        for id, move in self._open(Move, ("move", "moved", "move", "givenup")):
            # No bytes are signed without an allotted nonce, but a filler's, whose end no absence of a sighting tells.
            use = self._store.get(NonceUse, owner=id) if isinstance(move, TooNew) else None
            if use is not None:
                addresses.add(use.wallet)
            elif not isinstance(move, TooNew) and move.txid is not None:
                addresses.add(move.source)
        return {self._context.form(address) for address in addresses}

    def _coins(self) -> set[str]:
        wallets = [wallet for wallet in self._wallets() if wallet.role == "hot"]
        wanted: list[tuple[type[Any], dict[str, str]]] = [
            (HeldCoins, {"network": self._network.id, "wallet": wallet.address}) for wallet in wallets
        ]
        held: list[HeldCoins | None] = self._store.get_many(wanted) if wanted else []
        found = {coin.outpoint for coins in held if coins is not None for coin in coins.coins}
        for bundle in self._known(Bundle, ("bundle",)):
            found.update(coin.outpoint for attempt in bundle.signed for coin in attempt.inputs)
        for move in self._known(CoinMove, ("coinmove", "coinmoved")):
            found.update(move.outpoints)
        return found

    def _known(self, kind: type[Any], lanes: Iterable[WorkKind]) -> Iterator[Any]:
        """Without those in a form that only a newer version knows: that nothing was seen of a coin proves nothing (`losses`), and
        the payments of everybody in the blocks are not to wait for that version."""
        return (found for _, found in self._open(kind, lanes) if not isinstance(found, TooNew))

    def _wallets(self) -> list[Wallet]:
        """Every wallet that has, or had, a key here."""
        return signing_wallets(self._store, self._network.id)

    def _open(self, kind: type[Any], lanes: Iterable[WorkKind]) -> Iterator[tuple[str, Any]]:
        """Records by their ids, as `each_of` reads them."""
        by_network = kind is not Bundle
        for lane in lanes:
            for works in pages_of(self._store, lane, self._network.id):
                ids = dict.fromkeys(work.id.rsplit("|", 1)[0] for work in works)
                keys = [(kind, {"network": self._network.id, "id": id} if by_network else {"id": id}) for id in ids]
                yield from ((id, found) for id, found in zip(ids, each_of(self._store, keys), strict=True) if found is not None)
