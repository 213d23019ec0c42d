"""An operator's decision to give up what was never signed: a bundle, a move or a coin move that both readers, or a proof, refuse
for good, and that holds up what waits behind it.

It can not reach the chain, so nobody watches it: the decision is `over` at once. It commits with the end of the record, on the
record's version and on the absence of its first signature (`first_signatures`). A signature that is under way commits on the same
version: one of the two is stored, and a signature that is not stored is never sent.
"""

from __future__ import annotations

from collections.abc import Sequence

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.transactions.given_up import GivenKind, GivenUp
from chalicelib.usecases.base.kill_switch import put_back
from chalicelib.usecases.ports.changes import Change, Save
from chalicelib.usecases.ports.coins import CoinPayer
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.first_signatures import never_signed, signed_before
from chalicelib.usecases.transactions.give_up import NotGivenUp, demand_new, demand_reason


def demand_unsigned(store: Store, network: Network, id: str) -> None:
    """Raises NotGivenUp where `id` may be signed, whatever its record says, or was given up before; Unavailable."""
    if demand_new(store, id) is not None or signed_before(store, id):
        raise NotGivenUp(f"{id} was signed, whatever its record says now: restore that")
    if put_back(store, network.realm) is not None:
        raise NotGivenUp("the tables were put back, and after-restore is not done")


def demand_unspent(payer: CoinPayer, id: str, outpoints: Sequence[str]) -> None:
    """Raises NotGivenUp where the node says that a coin reserved for `id` is spent, in its mempool or in a block: a signature that
    a restore has forgotten may be out. Unavailable."""
    if None in payer.unspent(outpoints):
        raise NotGivenUp(f"a coin that {id} spends is spent, or the node does not know it: it may be signed and sent")


def decided(network: Network, id: str, kind: GivenKind, by: str, reason: str, now: int, without: str = "") -> list[Change]:
    """Three items that commit with the end of the record. `now` in milliseconds since 1970. Raises NotGivenUp for the reason."""
    demand_reason(reason)
    return [Save(GivenUp(id, network.id, kind, "", by, reason, now, 0, (), "over", without=without)), *never_signed(id)]
