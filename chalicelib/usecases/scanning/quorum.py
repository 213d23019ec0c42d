"""The quorum for large payments beside confirmations: two nodes that vouch for the payment, a block that the chain itself calls
final, and on EVM networks a block whose logs are those of its receipts.

All are asked when the payment is about to be credited, and none is ever taken for granted. A payment waits while its coin has no
fresh rate, while only one node answers, or where the deployment has no way of asking (money rule 11).
"""

from __future__ import annotations

import logging
from fractions import Fraction

from chalicelib.domain.catalogue.catalogue import AUDIT_USD, Coin
from chalicelib.domain.catalogue.rates import Rates, RatesOf
from chalicelib.domain.chain import Block, Transfer
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.deposits.claims import Claims
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.readers import Auditor, Finality, Witness
from chalicelib.usecases.scanning.matching import Matcher

log = logging.getLogger(__name__)

_NONE = -1
"""The final block where nobody says which one it is."""


def worth_more(limit: int | None, coin: Coin | None, units: int, rates: Rates, now_ms: int) -> bool:
    """Whether `units` are worth more than `limit` US dollars; never without a limit. An amount without a rate is worth more than
    any limit."""
    if limit is None:
        return False
    rate = None if coin is None else rates.fresh(coin.slug, now_ms)
    if rate is None or coin is None:
        return True
    return bool(units * Fraction(rate.decimal) > limit * 10**coin.decimals)


class LargePayments:
    def __init__(self, context: NetworkContext, rates: RatesOf) -> None:
        self._context, self._network, self._reader, self._store = context, context.network, context.reader, context.store
        self._rates, self._clock = rates, context.clock
        self._audited_blocks: set[str] = set()
        self._final_block: int | None = None
        """As this run was told; None before it has asked."""

    def begin(self) -> None:
        """A run begins: it asks once which blocks are final."""
        self._final_block = None

    def may_credit(self, deposit: Deposit) -> bool:
        """Whether a deposit whose block has its confirmations may be credited. A node's fault never raises."""
        network = self._network
        audits = isinstance(self._reader, Auditor) and network.family == "evm"
        if network.agreement_usd is None and network.finality_usd is None and not audits:
            return True
        coin = next((c for c in self._context.coins() if c.asset == deposit.asset), None)
        if self._above(network.finality_usd, deposit, coin) and not self._final(deposit):
            return False
        audited = AUDIT_USD if network.audit_usd is None else network.audit_usd
        if audits and self._above(audited, deposit, coin) and not self._audited(deposit):
            return False
        return not self._above(network.agreement_usd, deposit, coin) or self._vouched(deposit, coin)

    def _above(self, limit: int | None, deposit: Deposit, coin: Coin | None) -> bool:
        return worth_more(limit, coin, deposit.amount, self._rates(self._network.realm), self._clock.now_ms())

    def _final(self, deposit: Deposit) -> bool:
        tag = self._network.finality_tag
        if tag is None or not isinstance(self._reader, Finality):
            log.error("ALARM %s: %s waits for finality, which nothing here can tell", self._network.id, deposit.id)
            return False
        if self._final_block is None:
            try:
                self._final_block = self._reader.final(tag)
            except Unavailable as error:
                log.warning("%s: payments wait, since nobody says which blocks are %s: %s", self._network.id, tag, error)
                self._final_block = _NONE
        return deposit.block[0] <= self._final_block

    def _audited(self, deposit: Deposit) -> bool:
        """Whether the logs of its block are those of all its receipts. An ALARM tells of payments that the scan did not read."""
        number, hash_ = deposit.block
        if hash_ in self._audited_blocks or not isinstance(self._reader, Auditor):
            return True
        matcher = Matcher(self._context)
        block = Block(number, hash_, "", deposit.block_time, [])
        try:
            there = self._reader.audited(block, matcher.contracts().keys())
            watched = matcher.ours(there)
            ours = [t for t in there if t.amount and t.recipient in watched and watched[t.recipient].tenant is not None]
            ids = Claims(self._network, self._reader, self._store).ids(block, ours)
        except Unavailable as error:
            log.warning("%s: %s waits until the receipts of its block are read: %s", self._network.id, deposit.id, error)
            return False
        missed = sum(found is None for found in self._store.get_many([(Deposit, {"id": id_}) for id_ in ids]))
        if missed:
            log.error("ALARM %s: %d payments to us in block %d were not read when it was scanned", self._network.id, missed, number)
        self._audited_blocks.add(hash_)
        return True

    def _vouched(self, deposit: Deposit, coin: Coin | None) -> bool:
        if coin is None or not isinstance(self._reader, Witness):
            log.error("ALARM %s: %s waits for a second node, which nobody has configured", self._network.id, deposit.id)
            return False
        transfer = Transfer(
            txid=deposit.txid,
            position=deposit.position,
            contract=self._context.contract_form(coin.contract),
            sender=self._form(deposit.sender),
            recipient=self._context.form(deposit.address),
            amount=deposit.amount,
        )
        block = Block(*deposit.block, "", deposit.block_time, [transfer])
        try:
            agreed = self._reader.agreed(block, [transfer])
        except Unavailable:
            agreed = False
        if not agreed:
            log.warning("%s: %s waits until two nodes vouch for it", self._network.id, deposit.id)
        return agreed

    def _form(self, sender: str) -> str:
        """A sender may be what nobody can pay to, and is kept as the chain has it then."""
        try:
            return self._context.form(sender)
        except ValueError:
            return sender
