"""The deployment's choices for the risk rules (`risk`). Every function loads them with the settings, and few the rules."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RiskRules:
    """The deployment's risk rules. Below `usd` (US dollars) neither a new address nor an unusual amount counts; without a rate
    both always do. From a score of `threshold` on the operator has to approve. `per_hour`, `per_day`: payments of a coin to new
    addresses. `failures`: payments to an address that failed on the chain within a day."""

    usd: int = 1000
    threshold: int = 60
    per_hour: int = 100
    per_day: int = 300
    failures: int = 3
