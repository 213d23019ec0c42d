"""Rates that a test decides, in the place of the sandbox's fixed ones."""

from __future__ import annotations

import pytest

from chalicelib.domain.catalogue.rates import Rate, Rates
from chalicelib.wiring import services


def rates_are(patch: pytest.MonkeyPatch, *known: tuple[str, str, str]) -> None:
    """From now on these rates alone are known, each as of the sandbox's now: coin slug, currency, units of it for one coin."""
    now = services().clock_of("test").now_ms()
    made = Rates(Rate(coin, fiat, value, now, "test") for coin, fiat, value in known)
    for name in ("_fixed_rates", "_sandbox_rates"):
        patch.setitem(services().wiring.parts.__dict__, name, made)
