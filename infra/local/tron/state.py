"""What the chain knows after a block: accounts, tokens, totals. Every change can be undone, for pending transactions and forks."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Hashable, Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any

Journal = dict[Hashable, Any]
"""What the changed values were before."""
MISSING: Any = None

TRX = 1_000_000
"""Sun in a TRX."""
PARAMETERS = {
    "getMaintenanceTimeInterval": 21_600_000,
    "getCreateAccountFee": 100_000,
    "getTransactionFee": 1_000,
    "getCreateNewAccountFeeInSystemContract": 1_000_000,
    "getCreateNewAccountBandwidthRate": 1,
    "getEnergyFee": 100,
    "getMaxCpuTimeOfOneTx": 80,
    "getAllowSameTokenName": 1,
    "getAllowDelegateResource": 1,
    "getTotalEnergyLimit": 180_000_000_000,
    "getTotalEnergyCurrentLimit": 180_000_000_000,
    "getAllowMultiSign": 1,
    "getUpdateAccountPermissionFee": 100_000_000,
    "getMultiSignFee": 1_000_000,
    "getForbidTransferToContract": 1,
    "getFreeNetLimit": 600,
    "getTotalNetLimit": 43_200_000_000,
    "getMaxFeeLimit": 15_000_000_000,
    "getMemoFee": 1_000_000,
    "getUnfreezeDelayDays": 14,
}
"""The committee's parameters with mainnet's values of 2026, in sun where they are fees. Energy costs 100 sun since August 2025."""
NET_WEIGHT, ENERGY_WEIGHT = 26_600_000_000, 19_500_000_000
"""Whole TRX staked in the network by others, about as on mainnet: they set what a stake is worth."""


@dataclass(frozen=True, slots=True)
class Account:
    """An account. Amounts in sun, times in milliseconds. `unfrozen`: resource, amount, when it can be withdrawn.

    `delegated_*`: of its own stake, what others use now (no part of `frozen_*` then); `acquired_*`: what it uses of others' stakes.
    """

    address: bytes
    balance: int = 0
    created: int = 0
    contract: bool = False
    frozen_net: int = 0
    frozen_energy: int = 0
    unfrozen: tuple[tuple[str, int, int], ...] = ()
    net_usage: int = 0
    net_time: int = 0
    free_usage: int = 0
    free_time: int = 0
    energy_usage: int = 0
    energy_time: int = 0
    operated: int = 0
    delegated_net: int = 0
    delegated_energy: int = 0
    acquired_net: int = 0
    acquired_energy: int = 0


class State:
    """Values by key, with journals: `begin`, then `commit` or `rollback`."""

    def __init__(self, values: MutableMapping[Hashable, Any] | None = None) -> None:
        self._values: MutableMapping[Hashable, Any] = {} if values is None else values
        self._journals: list[Journal] = []

    def get(self, key: Hashable, default: Any = None) -> Any:
        value = self._values.get(key, MISSING)
        return default if value is MISSING else value

    def put(self, key: Hashable, value: Any) -> None:
        if self._journals:
            self._journals[-1].setdefault(key, self._values.get(key, MISSING))
        self._values[key] = value

    def begin(self) -> None:
        self._journals.append({})

    def commit(self) -> Journal:
        """Keep the changes since `begin`; the journal that undoes them."""
        journal = self._journals.pop()
        if self._journals:
            for key, value in journal.items():
                self._journals[-1].setdefault(key, value)
        return journal

    def rollback(self) -> None:
        """Undo the changes since `begin`."""
        self.undo(self._journals.pop())

    def undo(self, journal: Journal) -> None:
        self._values.update(journal)

    def before(self, journals: Iterable[Journal]) -> State:
        """The state before these changes, given newest first. A view: it changes nothing here."""
        overlay: Journal = {}
        for journal in journals:
            overlay.update(journal)
        return State(ChainMap(overlay, self._values))

    @property
    def pending(self) -> Journal:
        """What undoes the changes of the outermost `begin`."""
        return self._journals[0] if self._journals else {}

    def account(self, address: bytes) -> Account | None:
        found: Account | None = self.get(("account", address))
        return found

    def put_account(self, account: Account) -> None:
        self.put(("account", account.address), account)

    def parameter(self, key: str) -> int:
        value: int = self.get(("parameter", key), PARAMETERS[key])
        return value

    def weight(self, resource: str) -> int:
        """Whole TRX staked for BANDWIDTH or ENERGY."""
        value: int = self.get(("weight", resource), NET_WEIGHT if resource == "BANDWIDTH" else ENERGY_WEIGHT)
        return value
