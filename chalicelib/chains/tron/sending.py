"""The common part of payments and stakes on Tron: the reference block, the expiration, the broadcast.

A transaction is valid until the chain's newest block is as old as its `expiration`. One that no block took can be replaced by
another only when it can never be taken any more: see `Sending.dead`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from chalicelib.chains.answers import Garbled, hash32
from chalicelib.chains.providers import electorate, has_no_vote
from chalicelib.chains.rpc import RpcError
from chalicelib.chains.tron import refusals, transactions
from chalicelib.chains.tron.calls import Node
from chalicelib.chains.tron.parsing import block_number, block_time
from chalicelib.chains.tron.reader import MAINNET, header_of
from chalicelib.chains.tron.values import row
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.usecases.ports.failures import InsufficientFunds, Refused, Unavailable

T = TypeVar("T")

LIFE_MS = 10 * 60_000
"""How long a transaction can be taken: long enough for a queue that is late and a node that restarts, and what is lost is made anew
soon. The chain allows a day."""
AFTERWARDS_MS = 60_000
"""How far the solid block must be past the expiration: questions may be answered by machines that are not all as far."""
_HEAD = {"detail": False}


class Sending:
    """One network and its node. `genesis` as in `TronReader`; `witnesses` are all nodes of the network, each by itself, where there
    are several."""

    def __init__(self, network: Network, node: Node, genesis: str | None = MAINNET, witnesses: Sequence[Node] = ()) -> None:
        self.network, self.node, self._genesis = network, node, genesis
        self._witnesses = witnesses or (node,)

    def reference(self, sequence: int) -> transactions.Reference:
        """A reference to the newest solid block, and the times of a transaction made now.

        `sequence` makes the ids of two equal payments of one second differ. The newest block's time counts, not this machine's.
        Raises Garbled, RpcError, Unavailable.
        """
        solid, head = self._heads()
        life = block_time(head)
        block_id = hash32(solid.get("blockID"), "a block's id")
        return transactions.reference_to(block_id, life + LIFE_MS, life // 1000 * 1000 + sequence % 1000)

    def dead(self, unsigned: transactions.Unsigned, txid: str, every_node: bool = True) -> bool:
        """Whether no block will ever have this transaction: the solid chain is past its expiration and does not have it, and the
        newest block's chain does not either.

        A block takes a transaction only while the block before it is older than the expiration (java-tron, Manager.validateCommon).
        So once a solid block is past it, all blocks that could have it are solid, too. No nonce keeps a second payment out of the
        chain: so every node of the network has to say so. With `every_node` one that does not answer is waited for until an
        operator takes it out: what a silenced node leaves is perhaps the one that lies. Without it those that have no vote are not.
        """
        silent: Unavailable | None = None
        heard = 0
        for node in self._witnesses if every_node else electorate(self._witnesses):
            try:
                if not self._dead_at(node, unsigned.reference.expiration, txid):
                    return False
            except Unavailable as error:
                if every_node or not has_no_vote(node):
                    raise
                silent = error
            else:
                heard += 1
        if not heard:
            raise silent or Unavailable(f"{self.network.slug}: no node answers")
        return True

    def _dead_at(self, node: Node, expiration: int, txid: str) -> bool:
        self._check_chain(node.call("wallet/getblock", header_of(0)))
        before = block_time(row(node.call("walletsolidity/getblock", _HEAD), "a block"))
        if before <= expiration + AFTERWARDS_MS:
            return False
        for path in ("walletsolidity/gettransactioninfobyid", "wallet/gettransactioninfobyid", "walletsolidity/gettransactionbyid"):
            if row(node.call(path, {"value": txid}), "an info"):
                return False
        # The node that answered last is as far as well.
        return block_time(row(node.call("walletsolidity/getblock", _HEAD), "a block")) >= before

    def broadcast(self, raw: str) -> None:
        """Hand signed bytes to the node. Safe to repeat: what the node or the chain knows already is done.

        Raises Refused (InsufficientFunds) with the node's words, Unavailable. Refused says that this node does not take it now.
        """
        unsigned, signature = transactions.disassemble(raw)
        txid = unsigned.txid
        answer = self.sure(lambda: row(self.node.call("wallet/broadcasttransaction", unsigned.json(signature)), "an answer"))
        outcome, said = refusals.outcome(answer)
        if outcome == "taken":
            if answer.get("txid", txid) != txid:
                raise Unavailable(f"{self.network.slug}: the node answers with the id of another transaction")
            return
        # One that is in a block long since is refused as expired, and for any other reason.
        if self.sure(lambda: bool(row(self.node.call("wallet/gettransactioninfobyid", {"value": txid}), "an info"))):
            return
        if outcome == "no funds":
            raise InsufficientFunds(said)
        if outcome == "refused":
            raise Refused(said)
        raise Unavailable(f"{self.network.slug}: the node does not take it: {said}")

    def sure(self, ask: Callable[[], T]) -> T:
        """Run `ask`; what the node garbles, and errors of which nothing is known, are no answer."""
        try:
            return ask()
        except (RpcError, Garbled) as error:
            raise Unavailable(f"{self.network.slug}: {error}") from error

    def _heads(self) -> tuple[dict[str, object], dict[str, object]]:
        genesis, solid, head = self.node.batch(
            [("wallet/getblock", header_of(0)), ("walletsolidity/getblock", _HEAD), ("wallet/getblock", _HEAD)]
        )
        self._check_chain(genesis)
        if block_number(solid) > block_number(head):
            raise Garbled("the solid block is newer than the newest")
        return solid, head

    def _check_chain(self, genesis: object) -> None:
        if self._genesis is not None and row(genesis, "a block").get("blockID") != self._genesis:
            raise Garbled("the node is on another chain")
