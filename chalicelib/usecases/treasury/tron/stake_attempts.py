"""The attempts of a stake: how its bytes are proved against the operator's order, and stored.

The engine (`transactions.accounts.signing`) signs and sends them. A stake can be lost in no other way than by its end: its bytes
expire, and others are made of the record, so the record has to be what was signed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.transactions.given_up import GivenUp
from chalicelib.domain.transactions.outgoing import Attempt
from chalicelib.domain.treasury.stakes import Stake, stake_work
from chalicelib.domain.versions import next_version
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.ports.changes import Change, Close, Save
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.ports.second_reader import Order
from chalicelib.usecases.ports.signing import Signature, Signed, Signer
from chalicelib.usecases.ports.staking import StakingNode
from chalicelib.usecases.transactions.accounts.signing import Proved
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.usecases.transactions.finality import scanned_so_far
from chalicelib.usecases.transactions.first_signatures import first_signature
from chalicelib.usecases.transactions.given_up import LOST, watched_on
from chalicelib.usecases.treasury.tron.stake_bytes import unlike_bytes
from chalicelib.usecases.wallets.signers import signing_wallet

log = logging.getLogger(__name__)


class StakeAttempts:
    """Implements `Attempts` for one stake. Its money leaves the hot wallet, and the kill switch stops it."""

    others = True

    def __init__(self, context: NetworkContext, payer: StakingNode, signer: Signer, stake_id: str) -> None:
        self._context, self.network, self.payer = context, context.network, payer
        self._store, self._signer, self.name = context.store, signer, f"stake {stake_id}"
        self._wallet: Wallet | None = None

    def facts(self, record: Stake) -> Order:
        return Order("stake", record.wallet, record.wallet, None, record.amount, None, 0, record.unsigned or "", record.resource)

    def proved(self, record: Stake) -> Proved:
        self._wallet = signing_wallet(self._store, self.network.id, record.wallet)  # it may have been replaced since
        wrong = self._wrong(record)
        if wrong:
            log.error("ALARM %s: stake %s differs from what was ordered in %s", self.network.id, record.id, ", ".join(wrong))
            raise OrderMismatch(f"stake {record.id} differs from the order in {', '.join(wrong)}")
        return Proved(0)  # an attempt burns bandwidth, or TRX for it: the bytes bound no fee

    def quoted(self, record: Stake) -> None:
        return None

    def cure(self, record: Stake, mismatch: OrderMismatch) -> None:
        """It ends, since nothing was signed: record and bytes contradict each other, so that nothing can be built anew, and a
        retired wallet would wait for it for ever. The operator orders again."""
        why = f"it differs from what was ordered in {', '.join(self._wrong(record))}: nothing was signed"
        failed = replace(next_version(record), status="failed", reason=why[:300])
        self._store.commit([Save(failed), Close(stake_work(failed))])

    def altered(self, before: Stake) -> list[str]:
        return unlike_bytes(self._context, self.payer, before, before.unsigned or "", before.hash)

    def differs(self, before: Stake, named: str) -> None:
        log.error("ALARM %s: stake %s differs from what was signed in %s", self.network.id, before.id, named)

    def renewed(self, before: Stake) -> Stake | None:
        """Where the chain refuses another one it has failed: nothing that was signed can ever be mined. It is watched on."""
        try:
            unsigned = self.payer.prepare(before.wallet, before.amount, before.resource, before.created_at % 1000)
        except Refused as refused:
            self._fail(before, str(refused)[:300])
            return None
        return before.rebuilt(unsigned, self.payer.explain(unsigned).txid)

    def proved_again(self, before: Stake, wanted: Stake) -> Proved | None:
        return self.proved(wanted)

    def signature(self, record: Stake, digest: bytes) -> Signature:
        if self._wallet is None:
            raise OrderMismatch(f"stake {record.id} leaves {record.wallet}, which is no wallet that pays")
        return self._signer.sign(self._wallet, digest)

    def store(self, record: Stake, signed: Signed, proved: Proved, rests_on: Sequence[Change]) -> Stake:
        """Nothing is posted before it is final: its coins stay where they are."""
        done = self._kept(record, signed)
        self._store.commit([Save(done), first_signature(done.id, signed.txid, done.touched_at), *rests_on])
        return done

    def store_again(self, before: Stake, wanted: Stake, signed: Signed, proved: Proved, rests_on: Sequence[Change]) -> Stake:
        done = self._kept(wanted, signed)
        self._store.commit([Save(done), *rests_on])
        return done

    def _kept(self, record: Stake, signed: Signed) -> Stake:
        return record.signed_as(Attempt(signed.raw, signed.txid, 0, self._context.clock.now_ms()))

    def _wrong(self, stake: Stake) -> list[str]:
        return self.altered(stake) or ([] if self._wallet is not None else ["its wallet"])

    def _fail(self, before: Stake, why: str) -> None:
        failed = replace(next_version(before), status="failed", reason=why, renew=False)
        height, now = scanned_so_far(self.network, self._context.reader, self._store).height, self._context.clock.now_ms()
        watch = GivenUp(before.id, self.network.id, "stake", "", LOST, why, now, height, before.txids)
        self._store.commit([Save(failed), Close(stake_work(failed)), *watched_on(self._store, watch)])
