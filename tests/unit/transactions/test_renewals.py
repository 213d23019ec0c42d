"""When a payment is stuck, how often it is replaced, and at what price."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chalicelib.domain.catalogue.catalogue import default_networks
from chalicelib.domain.ids import AssetId, NetworkId, TenantId
from chalicelib.domain.transactions.outgoing import Attempt
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.withdrawals.withdrawals import PRIORITIES, PaymentOrder
from chalicelib.settings import Settings

RULES = RenewalRules()
MINUTE = 60_000
AT = 1_000 * MINUTE
BLOCK_SECONDS = {network.slug: network.block_time for network in default_networks("live")}


def order(replaced: int = 0, fee: int = 100, signed_at: int = AT) -> PaymentOrder:
    earlier = tuple(Attempt(f"raw{n}", f"tx{n}", 10 + n, n) for n in range(replaced))
    network, tenant, asset = NetworkId("live:ethereum"), TenantId("mch:live"), AssetId("live:ethereum:eth")
    return PaymentOrder(
        "ord_1", network, "0xhot", 0, "wd_1", tenant, asset, None, "0xto", 1, "00", AT - MINUTE, "raw", "tx", "signed",
        fee=fee, signed_at=signed_at, earlier=earlier,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("slug", "minutes"),
    [
        ("ethereum", (20, 6, 3, 3)),
        ("polygon", (3, 3, 3, 3)),
        ("bsc", (3, 3, 3, 3)),
        ("tron", (5, 3, 3, 3)),
        ("bitcoin", (60, 30, 30, 30)),
    ],
)
def test_how_long_an_attempt_may_wait(slug: str, minutes: tuple[float, ...]) -> None:
    """As many blocks as the priority promises, at most the published minutes; never under three minutes, nor under three blocks."""
    found = [RULES.patience(priority, BLOCK_SECONDS[slug]) for priority in PRIORITIES]
    assert found == [round(m * MINUTE) for m in minutes]


def test_each_further_attempt_waits_longer_up_to_a_bound() -> None:
    waits = [RULES.patience("urgent", 12, replaced) // 1000 for replaced in range(8)]
    assert waits == [180, 270, 405, 607, 911, 1366, 1440, 1440]


def test_stuck_counts_from_the_signature_or_from_what_happened_since() -> None:
    due = AT + 3 * MINUTE
    assert not RULES.stuck(order(), "urgent", 0, 12, due - 1)
    assert RULES.stuck(order(), "urgent", 0, 12, due)
    # It fell out of its block a minute later: it has waited for another one since then.
    assert not RULES.stuck(order(), "urgent", AT + MINUTE, 12, due)
    assert RULES.stuck(order(), "urgent", AT + MINUTE, 12, due + MINUTE)
    # Replaced once already.
    assert not RULES.stuck(order(1), "urgent", 0, 12, due)
    # Signed by a version that did not note the time.
    assert RULES.stuck(order(signed_at=0), "urgent", 0, 12, due - MINUTE)


def test_how_often() -> None:
    assert [RULES.exhausted(order(n), expires=False) for n in (0, 4, 5, 6)] == [False, False, True, True]
    assert [RULES.exhausted(order(n), expires=True) for n in (5, 23, 24)] == [False, False, True]
    assert RenewalRules(most=0).exhausted(order(), expires=False)


def test_at_what_price() -> None:
    assert RULES.affordable(order(fee=100), 1_000)
    assert not RULES.affordable(order(fee=100), 1_001)
    # The first attempt is the measure, not the one that is replaced.
    assert RULES.affordable(order(3, fee=90), 100)
    assert not RULES.affordable(order(3, fee=90), 101)
    assert RULES.affordable(replace(order(), fee=0), 10**18)


def test_the_round_has_bounded_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings.from_environment().reconcile_page == 5000
    for text, page in (("0", 0), ("3500", 3500), ("99999", 5000)):
        monkeypatch.setenv("RECONCILE_PAGE", text)
        assert Settings.from_environment().reconcile_page == page


def test_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings.from_environment()
    defaults = (RULES.least_seconds, RULES.most, RULES.times)
    assert (settings.renewal_seconds, settings.renewals_most, settings.renewal_fee_times) == defaults
    monkeypatch.setenv("RENEWALS_MOST", "0")
    assert Settings.from_environment().renewals_most == 0
    for name, value in (("RENEWALS_MOST", "-1"), ("RENEWAL_SECONDS", "59"), ("RENEWAL_FEE_TIMES", "2.5")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            with pytest.raises(ValueError, match=name):
                Settings.from_environment()
