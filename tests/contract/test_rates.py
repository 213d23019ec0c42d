"""How stored rates come about: providers in order, doubts, what is kept when nobody answers, and what is told of it."""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal

import pytest

from chalicelib import wiring
from chalicelib.domain.rates import STALE_MS, Rate
from chalicelib.settings import Settings
from chalicelib.usecases.changes import Save
from chalicelib.usecases.ports import Unavailable
from chalicelib.usecases.rates import ALARM_AFTER_MS, BELIEVED_AFTER_MS, Pair, Quote, RateKeeper
from infra.local.aws import LocalAws
from tests.support.sandbox import HandClock

NOW = 1_800_000_000_000


class Provider:
    """Says what it is told to say. `at` is how old its rates are, in milliseconds."""

    def __init__(self, name: str, **usd: str) -> None:
        self.name, self.usd, self.old, self.down = name, usd, 0, False
        self.asked: list[set[Pair]] = []

    def quotes(self, wanted: Collection[Pair], now_ms: int) -> list[Quote]:
        self.asked.append(set(wanted))
        if self.down:
            raise Unavailable("answers HTTP 429")
        return [Quote(coin, "USD", Decimal(value), now_ms - self.old) for coin, value in self.usd.items()]


class Bench:
    def __init__(self, *providers: Provider) -> None:
        self.clock = HandClock(NOW)
        self.store = wiring.services().store
        self.providers = providers
        self.keeper = RateKeeper(self.store, providers, self.clock)

    def refresh(self) -> int:
        done = self.keeper.refresh(["btc", "eth"])
        self.store.forget_rates()
        return done

    def rate(self, coin: str = "btc") -> Rate:
        found = self.store.rates().get(coin)
        assert found is not None
        return found

    def usd(self, coin: str = "btc") -> tuple[str, str]:
        return self.rate(coin).value, self.rate(coin).source


@pytest.fixture
def pair(aws: LocalAws) -> Bench:
    return Bench(Provider("first", btc="60000.12345678901234567890"), Provider("second", btc="60100", eth="3000"))


def test_the_first_answer_for_a_coin_wins_and_is_kept_exactly(pair: Bench) -> None:
    assert pair.refresh() == 2
    assert pair.usd() == ("60000.12345678901234567890", "first")
    assert pair.usd("eth") == ("3000", "second")
    assert pair.rate().at == NOW
    assert ("btc", "USD") not in pair.providers[1].asked[0]
    pair.clock.pass_seconds(60)
    pair.refresh()
    assert (pair.rate().at, pair.rate().version) == (NOW + 60_000, 2)


def test_a_provider_that_fails_leaves_it_to_the_next(pair: Bench, caplog: pytest.LogCaptureFixture) -> None:
    pair.providers[0].down = True
    pair.refresh()
    assert pair.usd() == ("60100", "second")
    assert "first: answers HTTP 429" in caplog.text


def test_a_stale_answer_is_none(pair: Bench) -> None:
    pair.providers[0].old = STALE_MS + 1
    pair.refresh()
    assert pair.usd() == ("60100", "second")


def test_a_quote_is_as_old_as_its_provider_says(pair: Bench) -> None:
    pair.providers[0].old = 100_000
    pair.refresh()
    assert pair.rate().at == NOW - 100_000


def test_nobody_answers_so_the_rates_grow_stale_and_it_is_told(pair: Bench, caplog: pytest.LogCaptureFixture) -> None:
    pair.refresh()
    for provider in pair.providers:
        provider.down = True
    pair.clock.pass_seconds(STALE_MS / 1000 + 1)
    with pytest.raises(Unavailable):
        pair.refresh()
    now = pair.clock.now_ms()
    pair.store.forget_rates()
    assert pair.store.rates().fresh("btc", now) is None and pair.rate().stale(now)
    assert pair.store.rates().usd("btc", 1, 8, now) is None
    assert "ALARM" not in caplog.text
    pair.clock.pass_seconds((ALARM_AFTER_MS - STALE_MS) / 1000)
    with pytest.raises(Unavailable):
        pair.refresh()
    assert "ALARM rates: no fresh rate for half an hour: btc/USD, eth/USD" in caplog.text


@pytest.mark.parametrize("value", ["NaN", "-1", "0", "1e13", "1e-13"])
def test_impossible_rates_are_passed_over(pair: Bench, value: str) -> None:
    pair.providers[0].usd["btc"] = value
    pair.refresh()
    assert pair.usd() == ("60100", "second")


def test_a_jump_that_the_other_contradicts_is_refused(pair: Bench, caplog: pytest.LogCaptureFixture) -> None:
    pair.refresh()
    pair.providers[0].usd["btc"] = "6"
    pair.refresh()
    assert pair.usd() == ("60100", "second")
    assert "ALARM rates: first says 6 for btc/USD" in caplog.text


def test_a_jump_that_the_other_confirms_is_taken(pair: Bench, caplog: pytest.LogCaptureFixture) -> None:
    pair.refresh()
    pair.providers[0].usd["btc"], pair.providers[1].usd["btc"] = "20000", "20100"
    pair.refresh()
    assert pair.usd() == ("20000", "first")
    assert "ALARM" not in caplog.text


def test_a_jump_that_nobody_confirms_is_refused_for_six_hours(pair: Bench, caplog: pytest.LogCaptureFixture) -> None:
    pair.refresh()
    pair.providers[1].down = True
    pair.providers[0].usd["btc"] = "120000"
    pair.clock.pass_seconds(60)
    pair.refresh()
    assert pair.usd()[0].startswith("60000") and pair.rate().at == NOW
    assert "ALARM rates: first says 120000 for btc/USD" in caplog.text
    pair.clock.pass_seconds(BELIEVED_AFTER_MS / 1000)
    pair.refresh()
    assert pair.usd() == ("120000", "first")


def test_half_more_is_no_jump(pair: Bench) -> None:
    pair.providers[0].usd["btc"] = "60000"
    pair.refresh()
    pair.providers[0].usd["btc"] = "90000"
    pair.refresh()
    assert pair.usd() == ("90000", "first")


def test_two_refreshes_at_once_harm_nothing(pair: Bench) -> None:
    pair.refresh()
    late = pair.keeper._stored()
    pair.refresh()
    pair.keeper._stored = lambda: late  # type: ignore[method-assign]
    assert pair.refresh() == 0
    assert pair.rate().version == 2


def test_the_sandbox_has_rates_of_its_own_without_being_asked(aws: LocalAws) -> None:
    wired = wiring.services()
    now = wired.clock.now_ms()
    wired.store.commit([Save(Rate("eth", "USD", "1", now, "kraken"))])
    assert wired.rates("test").usd("eth", 10**18, 18, now + 100 * STALE_MS) == 3000.0
    assert wired.rates("live").usd("eth", 10**18, 18, now) == 1.0


def test_without_providers_nobody_is_asked_and_nothing_is_known(aws: LocalAws) -> None:
    from chalicelib.workers import rates

    rates.run()
    assert wiring.services().rate_providers == []
    assert wiring.services().rates("live").get("btc") is None


def test_a_local_stack_with_nodes_has_fixed_rates_for_the_live_realm_too(aws: LocalAws) -> None:
    wired = wiring.Services(Settings(rates_providers=("fixed",)))
    assert wired.rate_providers == []
    assert wired.rates("live").usd("btc", 10**8, 8, NOW) == 60000.0


@pytest.mark.parametrize("text", ["coingeko", "fixed,kraken", "kraken,kraken"])
def test_a_typo_in_the_providers_stops_the_deployment(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("RATES_PROVIDERS", text)
    with pytest.raises(ValueError, match="RATES_PROVIDERS"):
        Settings.from_environment()


def test_providers_are_made_as_the_settings_say(aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RATES_PROVIDERS", "kraken, coingecko")
    monkeypatch.setenv("COINGECKO_IDS", "link=chainlink, uni=uniswap")
    settings = Settings.from_environment()
    assert settings.coingecko_ids == {"link": "chainlink", "uni": "uniswap"}
    assert [provider.name for provider in wiring.Services(settings).rate_providers] == ["kraken", "coingecko"]
    monkeypatch.setenv("COINGECKO_IDS", "link")
    with pytest.raises(ValueError, match="COINGECKO_IDS"):
        Settings.from_environment()
