"""Bandwidth and energy: what an account has, and paying with it first and with TRX for the rest.

Source: java-tron's BandwidthProcessor and EnergyProcessor. Used resources come back evenly over 24 hours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from infra.local.tron.state import TRX, Account, State

DAY = 86_400_000


class NoResources(Exception):
    """Neither bandwidth nor TRX enough."""


@dataclass(frozen=True, slots=True)
class Bill:
    """What was used of a resource, and the sun burned for what was lacking."""

    usage: int = 0
    fee: int = 0


def still_used(usage: int, then: int, now: int) -> int:
    """What of `usage` at `then` has not come back at `now` (milliseconds)."""
    elapsed = max(now - then, 0)
    return 0 if elapsed >= DAY else -(-usage * (DAY - elapsed) // DAY)


def net_limit(state: State, account: Account) -> int:
    """Bandwidth of the stake that the account uses, its own and what it was delegated; bytes a day."""
    stake = account.frozen_net + account.acquired_net
    return _share(stake, state.parameter("getTotalNetLimit"), state.weight("BANDWIDTH"))


def energy_limit(state: State, account: Account) -> int:
    """Energy of the stake that the account uses, its own and what it was delegated; a day."""
    return _share(
        account.frozen_energy + account.acquired_energy, state.parameter("getTotalEnergyCurrentLimit"), state.weight("ENERGY")
    )


def energy_left(state: State, account: Account, now: int) -> int:
    return max(energy_limit(state, account) - still_used(account.energy_usage, account.energy_time, now), 0)


def pay_bandwidth(state: State, account: Account, size: int, now: int, *, creates: bool) -> Bill:
    """Take `size` bytes from the stake, else from the free ones, else burn TRX. Creating an account knows no free ones.

    Raises NoResources.
    """
    used = still_used(account.net_usage, account.net_time, now)
    if size <= net_limit(state, account) - used:
        state.put_account(replace(account, net_usage=used + size, net_time=now, operated=now))
        return Bill(usage=size)
    if creates:
        return _burn(state, account, state.parameter("getCreateAccountFee"), now)
    free = still_used(account.free_usage, account.free_time, now)
    if size <= state.parameter("getFreeNetLimit") - free:
        state.put_account(replace(account, free_usage=free + size, free_time=now, operated=now))
        return Bill(usage=size)
    return _burn(state, account, size * state.parameter("getTransactionFee"), now)


def affordable_energy(state: State, account: Account, fee_limit: int, call_value: int, now: int) -> int:
    """The most energy that a call may use: of the stake and the balance together, and never above the fee limit."""
    price = state.parameter("getEnergyFee")
    return min(energy_left(state, account, now) + max(account.balance - call_value, 0) // price, fee_limit // price)


def pay_energy(state: State, account: Account, energy: int, now: int) -> Bill:
    """Take `energy` from the stake first and burn TRX for the rest. Raises NoResources."""
    staked = min(energy, energy_left(state, account, now))
    used = still_used(account.energy_usage, account.energy_time, now)
    fee = (energy - staked) * state.parameter("getEnergyFee")
    if fee > account.balance:
        raise NoResources
    paid = replace(account, balance=account.balance - fee, operated=now)
    state.put_account(replace(paid, energy_usage=used + staked, energy_time=now) if staked else paid)
    return Bill(usage=staked, fee=fee)


def _burn(state: State, account: Account, fee: int, now: int) -> Bill:
    if fee > account.balance:
        raise NoResources
    state.put_account(replace(account, balance=account.balance - fee, operated=now))
    return Bill(fee=fee)


def _share(frozen: int, limit: int, weight: int) -> int:
    return frozen // TRX * limit // weight if weight else 0
