"""Signs stakes on a real network, as part of the payout function, which alone has the key.

What a crash leaves is always one of these, and `sign` goes on from it: an order without signed bytes (the same unsigned bytes are
signed; of two workers one stores its signature); signed bytes stored (they alone are sent); an order to renew, whose bytes have
expired and will never be in a block (others are signed and stored). What is signed and not stored is never sent. Nothing is signed
or stored that the second reader reads otherwise than the order (`transactions.two_readers`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.ids import NetworkId, network_parts
from chalicelib.domain.transactions.given_up import GivenUp
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.treasury.stakes import Stake, stake_work
from chalicelib.domain.withdrawals.withdrawals import Attempt
from chalicelib.usecases.base.kill_switch import rests_on, stopped
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.changes import Close, Save
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.ports.second_reader import Order, SecondReader
from chalicelib.usecases.ports.signing import Signed, Signer
from chalicelib.usecases.ports.staking import StakingNode
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.usecases.transactions.expiry_votes import EveryNode
from chalicelib.usecases.transactions.finality import scanned_so_far
from chalicelib.usecases.transactions.given_up import LOST, watched_on
from chalicelib.usecases.transactions.losses import replaceable, stake_sent
from chalicelib.usecases.transactions.replacement_bounds import worn_out
from chalicelib.usecases.transactions.signed_bytes import unlike_signed
from chalicelib.usecases.transactions.two_readers import sign_read_twice
from chalicelib.usecases.wallets.signers import signing_wallet

log = logging.getLogger(__name__)


class StakeSigning:
    """Needs the signer."""

    def __init__(
        self,
        store: Store,
        context_of: Callable[[Network], NetworkContext],
        signer: Signer,
        node_of: Callable[[Network], StakingNode],
        second_of: Callable[[Network], SecondReader[Order] | None],
        renewals: RenewalRules,
        every_node: EveryNode,
    ) -> None:
        self._store, self._context_of, self._signer = store, context_of, signer
        self._node_of, self._second_of, self._renewals, self._every_node = node_of, second_of, renewals, every_node

    def sign(self, network: NetworkId, stake_id: str) -> None:
        """Bring a stake as far as its broadcast. Safe to call at any time, twice, at once.

        Raises Unavailable, OrderMismatch, Conflict: to be called again later.
        """
        until_settled(lambda: self._advance(network, stake_id))

    def _advance(self, network_id: NetworkId, stake_id: str) -> None:
        stake = self._store.get(Stake, network=network_id, id=stake_id)
        realm, slug = network_parts(network_id)
        if stake is None or stake.status != "pending" or stopped(self._store, realm):
            return
        network = self._store.catalogue(realm).networks[slug]
        node = self._node_of(network)
        if stake.raw is None:
            stake = self._signed(network, node, stake)
        elif stake.renew or stake.unsigned is None:
            renewed = self._renewed(network, node, stake)
            if renewed is None:
                return
            stake = renewed
        if stopped(self._store, realm):
            return  # the poll sends it once payments go on
        try:
            node.broadcast(stake.raw or "")
        except Refused as refused:
            # Only the chain decides what becomes of it. The poll sends it again.
            log.warning("%s: the node refuses stake %s for now: %s", network.id, stake.id, refused)

    def _renewed(self, network: Network, node: StakingNode, before: Stake) -> Stake | None:
        """With new bytes in place of those that have expired; None where they need none, or the chain would refuse them."""
        context = self._context_of(network)
        reader, rules = context.reader, context.rules
        if before.raw is None:
            return None
        unlike = unlike_signed(node, rules, network, before.raw, before.txid, before.unsigned or "", before.wallet)
        if unlike := [*unlike, *_unlike_order(node, before)]:
            log.error("ALARM %s: stake %s differs from what was signed in %s", network.id, before.id, ", ".join(unlike))
            raise OrderMismatch(f"stake {before.id} differs from what was signed in {', '.join(unlike)}")
        if before.unsigned is None or worn_out(network, self._renewals, before):
            return None
        # This alone keeps both from being mined: asked again here, right before the signature.
        every_node = self._every_node(network, self._store.catalogue(network.realm).native(network.slug).asset, before.amount)
        if not node.renewable(before.unsigned, before.txid, every_node):
            return None
        if any(reader.receipt(txid) is not None for txid in before.txids):
            return None
        if not replaceable(network, reader, self._store, stake_sent(network, rules, node, before)):
            return None
        try:
            unsigned = node.prepare(before.wallet, before.amount, before.resource, before.created_at % 1000)
        except Refused as refused:
            # Nothing that was signed can ever be mined, and nothing new is signed. It is watched on.
            why, height = str(refused)[:300], scanned_so_far(network, reader, self._store).height
            failed = replace(before, status="failed", reason=why, renew=False, version=before.version + 1)
            watch = GivenUp(
                before.id, network.id, "stake", "", LOST, why, self._context_of(network).clock.now_ms(), height, before.txids
            )
            self._store.commit([Save(failed), Close(stake_work(failed)), *watched_on(self._store, watch)])
            return None
        attempt = Attempt(before.raw, before.txid, 0, before.touched_at)
        txid = node.explain(unsigned).txid
        wanted = replace(before, unsigned=unsigned, hash=txid, raw=None, renew=False, earlier=(*before.earlier, attempt))
        return self._signed(network, node, wanted)

    def _signed(self, network: Network, node: StakingNode, stake: Stake) -> Stake:
        """Check the bytes against the order; sign what both readers read as the order; store the signed bytes."""
        wallet = signing_wallet(self._store, network.id, stake.wallet)  # it may have been replaced since
        wrong = _unlike_order(node, stake)
        if wallet is None or stake.unsigned is None or wrong:
            raise self._refused(network, stake, wrong or ["its wallet"])
        rests, clock = rests_on(self._store, network.realm), self._context_of(network).clock
        unsigned = stake.unsigned

        def sign(digests: Sequence[bytes]) -> Signed:
            return node.assemble(unsigned, self._signer.sign(wallet, digests[0]))

        order = Order("stake", wallet.address, wallet.address, None, stake.amount, None, 0, unsigned, stake.resource)
        second = self._second_of(network)
        signed = sign_read_twice(network, f"stake {stake.id}", second, order, [node.digest(unsigned)], sign)
        done = replace(stake, raw=signed.raw, touched_at=clock.now_ms(), version=stake.version + 1)
        self._store.commit([Save(done), *rests])
        return done

    def _refused(self, network: Network, stake: Stake, wrong: Sequence[str]) -> OrderMismatch:
        """What is raised for an altered order. Where nothing was signed for it, it ends: record and bytes contradict each other, so
        that nothing can be built anew, and a retired wallet would wait for it for ever. The operator orders again."""
        named = ", ".join(wrong)
        log.error("ALARM %s: stake %s differs from what was ordered in %s", network.id, stake.id, named)
        if stake.raw is None and not stake.earlier:
            why = f"it differs from what was ordered in {named}: nothing was signed"
            failed = replace(stake, status="failed", reason=why[:300], version=stake.version + 1)
            self._store.commit([Save(failed), Close(stake_work(failed))])
        return OrderMismatch(f"stake {stake.id} differs from the order in {named}")


def _unlike_order(node: StakingNode, stake: Stake) -> list[str]:
    """In what the newest unsigned bytes of a stake are not what its record orders."""
    try:
        does = node.explain(stake.unsigned or "")
    except ValueError as error:
        return [f"being no plain stake ({error})"]
    facts = {
        "wallet": (does.owner, stake.wallet),
        "amount": (does.amount, stake.amount),
        "resource": (does.resource, stake.resource),
        "transaction": (does.txid, stake.hash),
    }
    return [name for name, (found, ordered) in facts.items() if found != ordered]
