"""Lending the bandwidth or energy of a stake to another account, and taking it back (Stake 2.0).

Source: java-tron's DelegateResourceActuator, UnDelegateResourceActuator and FreezeV2Util, in their words. Locked delegations are
not carried out here: a service that lends for one transfer never locks.
"""

from __future__ import annotations

from dataclasses import replace

from infra.local.tron.protobuf import Message
from infra.local.tron.resources import still_used
from infra.local.tron.state import TRX, Account, State

RESOURCES = ("BANDWIDTH", "ENERGY")


class Invalid(Exception):
    """CONTRACT_VALIDATE_ERROR: such a transaction gets into no block."""


def is_address(address: bytes) -> bool:
    return len(address) == 21 and address[0] == 0x41


def delegated(state: State, owner: bytes, receiver: bytes) -> tuple[int, int]:
    """What `owner` has lent to `receiver`, in sun staked for bandwidth and for energy."""
    found: tuple[int, int] = state.get(("delegated", owner, receiver), (0, 0))
    return found


def most(state: State, account: Account, resource: str, now: int) -> int:
    """Sun of the account's own stake that can be lent: what it has used in the last day stays until it has come back.

    Source: Wallet.calcCanDelegatedBandWidthMaxSize, calcCanDelegatedEnergyMaxSize.
    """
    if resource == "BANDWIDTH":
        limit, own, acquired = state.parameter("getTotalNetLimit"), account.frozen_net, account.acquired_net
        used = still_used(account.net_usage, account.net_time, now)
    else:
        limit, own, acquired = state.parameter("getTotalEnergyCurrentLimit"), account.frozen_energy, account.acquired_energy
        used = still_used(account.energy_usage, account.energy_time, now)
    in_sun = int(used * TRX * (state.weight(resource) / limit))
    return max(0, own - max(0, in_sun - acquired))


def validate(state: State, owner: Account, value: Message, now: int) -> None:
    """Raises Invalid."""
    resource, balance = value.get("resource", "BANDWIDTH"), value.get("balance", 0)
    if balance < TRX:
        raise Invalid("delegateBalance must be greater than or equal to 1 TRX")
    if resource not in RESOURCES:
        raise Invalid("ResourceCode error, valid ResourceCode[BANDWIDTH、ENERGY]")
    if most(state, owner, resource, now) < balance:
        kind = "Bandwidth" if resource == "BANDWIDTH" else "Energy"
        raise Invalid(f"delegateBalance must be less than or equal to available Freeze{kind}V2 balance")
    address = _receiver(owner, value)
    receiver = state.account(address)
    if receiver is None:
        raise Invalid(f"Account[{address.hex()}] not exists")
    if value.get("lock") or value.get("lock_period"):
        raise Invalid("this test node does not carry out locked delegations")
    if receiver.contract:
        raise Invalid("Do not allow delegate resources to contract addresses")


def validate_return(state: State, owner: Account, value: Message) -> None:
    """Raises Invalid."""
    resource, balance = value.get("resource", "BANDWIDTH"), value.get("balance", 0)
    there = delegated(state, owner.address, _receiver(owner, value))
    if not any(there):
        raise Invalid("delegated Resource does not exist")
    if balance <= 0:
        raise Invalid("unDelegateBalance must be more than 0 TRX")
    if resource not in RESOURCES:
        raise Invalid("ResourceCode error.valid ResourceCode[BANDWIDTH、Energy]")
    lent = there[RESOURCES.index(resource)]
    if lent < balance:
        what = "delegatedFrozenBalance(BANDWIDTH)" if resource == "BANDWIDTH" else "delegateFrozenBalance(Energy)"
        raise Invalid(f"insufficient {what}, request={balance}, unlock_balance={lent}")


def delegate(state: State, owner: Account, value: Message) -> None:
    """Carry out a delegation that was validated."""
    _lend(state, owner, value["receiver_address"], value.get("resource", "BANDWIDTH"), value["balance"])


def take_back(state: State, owner: Account, value: Message, now: int) -> None:
    """Carry out an undelegation: with the stake comes the receiver's use of it, in proportion, at most what the stake gives."""
    resource, balance, address = value.get("resource", "BANDWIDTH"), value["balance"], value["receiver_address"]
    receiver = state.account(address)
    moved = 0
    if receiver is not None:
        if resource == "BANDWIDTH":
            limit, whole = state.parameter("getTotalNetLimit"), receiver.frozen_net + receiver.acquired_net
            used = still_used(receiver.net_usage, receiver.net_time, now)
        else:
            limit, whole = state.parameter("getTotalEnergyCurrentLimit"), receiver.frozen_energy + receiver.acquired_energy
            used = still_used(receiver.energy_usage, receiver.energy_time, now)
        moved = min(int(balance / TRX * (limit / state.weight(resource))), int(used * (balance / whole)))
        state.put_account(_using(receiver, resource, used - moved, now))
    _lend(state, owner, address, resource, -balance)
    owner = state.account(owner.address) or owner
    then, at = (owner.net_usage, owner.net_time) if resource == "BANDWIDTH" else (owner.energy_usage, owner.energy_time)
    state.put_account(_using(owner, resource, still_used(then, at, now) + moved, now))


def _lend(state: State, owner: Account, address: bytes, resource: str, balance: int) -> None:
    receiver = state.account(address)
    net, energy = delegated(state, owner.address, address)
    if resource == "BANDWIDTH":
        net += balance
        owner = replace(owner, frozen_net=owner.frozen_net - balance, delegated_net=owner.delegated_net + balance)
        receiver = receiver and replace(receiver, acquired_net=receiver.acquired_net + balance)
    else:
        energy += balance
        owner = replace(owner, frozen_energy=owner.frozen_energy - balance, delegated_energy=owner.delegated_energy + balance)
        receiver = receiver and replace(receiver, acquired_energy=receiver.acquired_energy + balance)
    state.put_account(owner)
    if receiver is not None:
        state.put_account(receiver)
    state.put(("delegated", owner.address, address), (net, energy))


def _using(account: Account, resource: str, usage: int, now: int) -> Account:
    if resource == "BANDWIDTH":
        return replace(account, net_usage=usage, net_time=now)
    return replace(account, energy_usage=usage, energy_time=now)


def _receiver(owner: Account, value: Message) -> bytes:
    address: bytes = value.get("receiver_address", b"")
    if not is_address(address):
        raise Invalid("Invalid receiverAddress")
    if address == owner.address:
        raise Invalid("receiverAddress must not be the same as ownerAddress")
    return address
