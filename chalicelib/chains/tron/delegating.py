"""Delegation of a stake's bandwidth or energy on Tron (Stake 2.0), and its return: built and encoded here, signed elsewhere. Never
locked: a delegation can be taken back in the next block.

No Tron library is imported here. Source: developers.tron.network, "Resource Delegation"; java-tron's DelegateResourceActuator.
"""

from __future__ import annotations

from chalicelib.chains.answers import Garbled
from chalicelib.chains.tron import fees, transactions
from chalicelib.chains.tron.system_contract import SystemContract
from chalicelib.chains.tron.values import hex_address, row, whole
from chalicelib.domain.treasury.energy_loans import Lendable
from chalicelib.domain.treasury.stakes import Resource
from chalicelib.usecases.ports.delegating import Direction, ExplainedDelegation
from chalicelib.usecases.ports.failures import Refused

_KINDS: dict[Direction, transactions.Kind] = {
    "delegation": "DelegateResourceContract",
    "undelegation": "UnDelegateResourceContract",
}
_DIRECTIONS = {kind: direction for direction, kind in _KINDS.items()}
_TYPES: dict[Resource, int] = {"BANDWIDTH": 0, "ENERGY": 1}
_TOTALS: dict[Resource, tuple[str, str]] = {
    "BANDWIDTH": ("TotalNetLimit", "TotalNetWeight"),
    "ENERGY": ("TotalEnergyLimit", "TotalEnergyWeight"),
}
_LENT: dict[Resource, str] = {"BANDWIDTH": "frozen_balance_for_bandwidth", "ENERGY": "frozen_balance_for_energy"}
_TRX = 1_000_000


class TronDelegating(SystemContract):
    """Implements `usecases.ports.delegating.DelegationNode`."""

    kinds = _DIRECTIONS
    name = "delegation"

    def lendable(self, wallet: str, receiver: str, resource: Resource) -> Lendable:
        """The resources that `wallet` could delegate to `receiver` now. Raises Unavailable."""

        def ask() -> Lendable:
            asked = {"address": hex_address(wallet), "visible": False}
            size, resources, owner, account, parameters = self._node.batch(
                [
                    ("wallet/getcandelegatedmaxsize", {"owner_address": hex_address(wallet), "type": _TYPES[resource]}),
                    ("wallet/getaccountresource", asked),
                    ("wallet/getaccount", asked),
                    ("wallet/getaccount", {"address": hex_address(receiver), "visible": False}),
                    ("wallet/getchainparameters", {}),
                ]
            )
            exists, prices = bool(row(account, "an account")), fees.prices_of(parameters)
            if not row(owner, "an account"):
                # Of a wallet that nobody has used yet the node tells nothing, and it has no stake.
                return Lendable(0, 1, 1, exists, 0, prices.energy, prices.byte)
            limit, weight = (whole(row(resources, "an account's resources").get(name), "a total") for name in _TOTALS[resource])
            if not limit or not weight:
                raise Garbled("the node does not tell what a stake gives")
            free = whole(row(size, "a size").get("max_size"), "a size")
            return Lendable(free, limit, weight * _TRX, exists, _staked(owner, resource), prices.energy, prices.byte)

        return self._sending.sure(ask)

    def lent(self, wallet: str, receiver: str, resource: Resource) -> int:
        """Sun whose stake `wallet` delegates to `receiver`. Raises Unavailable."""

        def ask() -> int:
            asked = {"fromAddress": hex_address(wallet), "toAddress": hex_address(receiver), "visible": False}
            found = row(self._node.call("wallet/getdelegatedresourcev2", asked), "delegations").get("delegatedResource", [])
            if not isinstance(found, list):
                raise Garbled("the delegations are no list")
            return sum(whole(row(each, "a delegation").get(_LENT[resource]), "a stake") for each in found)

        return self._sending.sure(ask)

    def prepare(self, direction: Direction, wallet: str, receiver: str, amount: int, resource: Resource, sequence: int) -> str:
        """The unsigned transaction (raw_data, as hex) that lends the stake of `amount` sun, or takes it back.

        Raises InsufficientFunds where its bytes can not be paid, Refused where the chain would not carry it out now, Unavailable.
        """

        def build() -> str:
            reference = self._sending.reference(sequence)
            unsigned = transactions.Unsigned(_KINDS[direction], wallet, amount, reference, receiver, resource=resource)
            return self._paid(wallet, unsigned.encode(), 0)

        if direction == "delegation":
            there = self.lendable(wallet, receiver, resource)
            if not there.active:
                raise Refused("the receiver does not exist on the chain yet")
            if there.stake < amount:
                raise Refused(f"of the stake {there.stake} sun are free, not {amount}")
        elif (lent := self.lent(wallet, receiver, resource)) < amount:
            raise Refused(f"{lent} sun are lent, not {amount}")
        return self._sending.sure(build)

    def renewed(self, unsigned: str) -> str:
        """The same with a new expiry. Raises as `prepare` and `explain` do."""
        does = self.explain(unsigned)
        sequence = self._decoded(unsigned).reference.timestamp % 1000
        return self.prepare(does.direction, does.owner, does.receiver, does.amount, does.resource, sequence)

    def explain(self, unsigned: str) -> ExplainedDelegation:
        """Decode `unsigned`. Raises ValueError for anything but what this module builds."""
        decoded = self._decoded(unsigned)
        if decoded.recipient is None or decoded.resource is None or decoded.recipient == decoded.owner:
            raise ValueError("the transaction lends nothing to anybody")
        direction = _DIRECTIONS[decoded.kind]
        fee = fees.most_cost(fees.size_of(bytes.fromhex(unsigned)), 0, makes_account=False)
        return ExplainedDelegation(direction, decoded.owner, decoded.recipient, decoded.amount, decoded.resource, decoded.txid, fee)


def _staked(answer: object, resource: Resource) -> int:
    """Sun that an account has staked for a resource: free, in use, and lent."""
    account = row(answer, "an account")
    frozen = account.get("frozenV2", [])
    if not isinstance(frozen, list):
        raise Garbled("the stakes are no list")
    parts = [row(each, "a stake") for each in frozen]
    # BANDWIDTH is the type that is left out.
    own = sum(whole(part.get("amount"), "a stake") for part in parts if part.get("type", "BANDWIDTH") == resource)
    if resource == "BANDWIDTH":
        return own + whole(account.get("delegated_frozenV2_balance_for_bandwidth"), "a stake")
    inner = row(account.get("account_resource", {}), "an account's resources")
    return own + whole(inner.get("delegated_frozenV2_balance_for_energy"), "a stake")
