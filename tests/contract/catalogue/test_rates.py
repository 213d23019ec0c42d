"""How stored rates come about: providers in order, doubts, what is kept when nobody answers, and what is told of it."""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal

import pytest

from chalicelib import wiring
from chalicelib.domain.catalogue.rates import STALE_MS, Rate
from chalicelib.settings import Settings
from chalicelib.usecases.catalogue.rates import ALARM_AFTER_MS, Pair, Quote, RateKeeper
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.failures import Unavailable
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


def test_what_two_say_is_kept_exactly_as_the_first_said_it(pair: Bench) -> None:
    assert pair.refresh() == 2
    assert pair.usd() == ("60000.12345678901234567890", "first")
    assert pair.usd("eth") == ("3000", "second")
    assert pair.rate().at == NOW
    pair.clock.pass_seconds(60)
    pair.refresh()
    assert (pair.rate().at, pair.rate().version) == (NOW + 60_000, 2)
    assert ("btc", "USD") in pair.providers[1].asked[0] and ("btc", "USD") not in pair.providers[1].asked[1]


def test_a_provider_that_fails_leaves_it_to_the_next(pair: Bench, caplog: pytest.LogCaptureFixture) -> None:
    pair.refresh()
    pair.providers[0].down = True
    pair.refresh()
    assert pair.usd() == ("60100", "second")
    assert "first: answers HTTP 429" in caplog.text


def test_a_stale_answer_is_none(pair: Bench) -> None:
    pair.refresh()
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
    assert pair.refresh() == 1, "one provider alone does not say what a coin is worth"
    pair.providers[0].usd["btc"] = "60000"
    pair.refresh()
    pair.providers[0].usd["btc"] = value
    pair.refresh()
    assert pair.usd() == ("60100", "second")


def test_the_first_rate_of_all_is_what_two_agree_on(pair: Bench, caplog: pytest.LogCaptureFixture) -> None:
    pair.providers[0].usd["btc"] = "1"
    pair.refresh()
    assert pair.store.rates().get("btc") is None
    assert "ALARM rates: first says 1 for btc/USD, was never known: refused" in caplog.text
    pair.providers[0].down = True
    pair.refresh()
    assert pair.store.rates().get("btc") is None, "nor is the other one believed alone"
    pair.providers[0].down, pair.providers[0].usd["btc"] = False, "60000"
    pair.refresh()
    assert pair.usd() == ("60000", "first")


@pytest.mark.parametrize("step", ["1.5", "1.049", "0.96"])
def test_a_lying_provider_moves_nothing_far_however_slowly(pair: Bench, caplog: pytest.LogCaptureFixture, step: str) -> None:
    pair.refresh()
    for _ in range(180):
        pair.clock.pass_seconds(60)
        pair.providers[0].usd["btc"] = str(Decimal(pair.rate().value) * Decimal(step))
        pair.refresh()
        assert Decimal(60000) / Decimal("1.21") <= Decimal(pair.rate().value) <= Decimal(60000) * Decimal("1.21")
    assert "ALARM rates: first says" in caplog.text


def test_where_they_part_for_an_hour_the_rate_grows_stale(pair: Bench, caplog: pytest.LogCaptureFixture) -> None:
    pair.refresh()
    pair.providers[0].usd["btc"] = "62900"
    pair.refresh()
    pair.providers[0].usd["btc"] = "64000"
    for _ in range(80):
        pair.clock.pass_seconds(60)
        pair.refresh()
    assert pair.usd() == ("64000", "first") and pair.rate().stale(pair.clock.now_ms())
    assert "ALARM rates: first says 64000" in caplog.text and "ALARM rates: second says 60100" in caplog.text
    pair.providers[1].usd["btc"] = "64100"
    pair.refresh()
    assert not pair.rate().stale(pair.clock.now_ms())


def test_one_that_is_left_alone_goes_on_within_a_fifth_of_what_both_said(pair: Bench) -> None:
    pair.refresh()
    pair.providers[1].down = True
    for value in ("62000", "64000", "66000", "68000", "70000", "71900"):
        pair.clock.pass_seconds(1_800)
        pair.providers[0].usd["btc"] = value
        pair.refresh()
        assert pair.usd()[0] == value
    pair.providers[0].usd["btc"] = "72100"
    for _ in range(100):
        pair.clock.pass_seconds(1_800)
        pair.refresh()
    assert pair.usd()[0] == "71900" and pair.rate().stale(pair.clock.now_ms())


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


def test_a_coin_that_one_provider_alone_knows(pair: Bench, caplog: pytest.LogCaptureFixture) -> None:
    pair.refresh()
    assert pair.usd("eth") == ("3000", "second")
    assert "eth/USD is taken from second alone, unconfirmed: 3000" in caplog.text
    pair.providers[1].usd["eth"] = "4000"
    pair.clock.pass_seconds(60)
    pair.refresh()
    assert pair.usd("eth")[0] == "3000"
    # Whoever does not answer may know it.
    pair.providers[0].down = True
    pair.providers[1].usd["eth"] = "3100"
    pair.refresh()
    assert pair.usd("eth")[0] == "3000"


def test_one_provider_alone_is_believed_in_steps(aws: LocalAws, caplog: pytest.LogCaptureFixture) -> None:
    alone = Bench(Provider("only", btc="60000"))
    alone.refresh()
    assert alone.usd() == ("60000", "only")
    assert "unconfirmed" in caplog.text
    highest = Decimal(60000)
    for minute in range(1, 121):
        alone.clock.pass_seconds(60)
        alone.providers[0].usd["btc"] = str(Decimal(alone.rate().value) * Decimal("1.02"))
        alone.refresh()
        highest = Decimal(alone.rate().value)
        assert highest <= 60000 * Decimal("1.2") * Decimal("1.2") ** (Decimal(minute) / 60) * Decimal("1.0001")
    assert highest > 80_000
    assert "ALARM rates: only says" in caplog.text


def test_one_provider_alone_is_believed_a_jump_when_so_many_hours_are_over(aws: LocalAws) -> None:
    alone = Bench(Provider("only", btc="60000"))
    alone.refresh()
    alone.providers[0].usd["btc"] = "120000"  # 1.2 ** 3.8 = 2
    for _ in range(3):
        alone.clock.pass_seconds(3_600)
        alone.refresh()
        assert alone.usd()[0] == "60000"
    alone.clock.pass_seconds(3_600)
    alone.refresh()
    assert alone.usd()[0] == "120000"


def test_a_rate_that_was_stored_before_there_were_anchors(pair: Bench) -> None:
    pair.store.commit([Save(Rate("btc", "USD", "59000", NOW - 60_000, "first"))])
    pair.refresh()
    assert (pair.rate().anchored, pair.rate().agreed) == ((Decimal("60000.12345678901234567890"), NOW), True)


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


class Exchange(Provider):
    """Quotes bitcoin in further currencies too: what it is asked for and knows."""

    def __init__(self, name: str, others: dict[str, str], **usd: str) -> None:
        super().__init__(name, **usd)
        self.others = others

    def quotes(self, wanted: Collection[Pair], now_ms: int) -> list[Quote]:
        found = super().quotes(wanted, now_ms)
        told = [Quote("btc", fiat, Decimal(value), now_ms - self.old) for fiat, value in self.others.items()]
        return found + [quote for quote in told if quote.pair in wanted]


def test_a_coin_is_worth_in_any_currency_what_its_dollars_are(aws: LocalAws) -> None:
    first = Exchange("first", {"JPY": "9000000", "KWD": "18000", "XAU": "30"}, btc="60000", eth="3000")
    bench = Bench(first, Exchange("second", {"JPY": "9100000"}, btc="60100", eth="3001"))
    bench.refresh()
    rates = bench.store.rates()
    yen, dinar = rates.get("eth", "JPY"), rates.get("eth", "KWD")
    assert yen is not None and dinar is not None
    assert (Decimal(yen.value), Decimal(dinar.value), yen.source) == (450_000, 900, "first")
    assert rates.fresh("btc", NOW, "JPY") and not rates.fresh("btc", NOW + STALE_MS + 1, "JPY")
    assert rates.get("eth", "XAU") is None and rates.get("ltc", "JPY") is None and rates.get("eth", "EUR") is None


def test_other_currencies_cost_a_provider_no_request_and_are_asked_for_every_five_minutes(aws: LocalAws) -> None:
    first = Exchange("first", {"JPY": "9000000"}, btc="60000", eth="3000")
    bench = Bench(first, Exchange("second", {"JPY": "9000000"}, btc="60000", eth="3000"))
    for _ in range(11):
        bench.refresh()
        bench.clock.pass_seconds(60)
    assert len(first.asked) == 11
    assert [n for n, wanted in enumerate(first.asked) if ("btc", "JPY") in wanted] == [0, 5, 10]
    stored = [rate for rate in bench.store.stored_rates() if rate.coin == "$"]
    assert [(rate.fiat, rate.value, rate.version) for rate in stored] == [("JPY", "150", 3)]


def test_a_provider_that_errs_in_one_currency_prices_nothing_there(aws: LocalAws, caplog: pytest.LogCaptureFixture) -> None:
    first = Exchange("first", {"JPY": "9000000"}, btc="60000", eth="3000")
    bench = Bench(first, Exchange("second", {"JPY": "9000000"}, btc="60000", eth="3000"))
    bench.refresh()
    first.others = {"JPY": "90000"}
    bench.clock.pass_seconds(300)
    bench.refresh()
    assert bench.store.rates().get("btc", "JPY") == Rate("btc", "JPY", "9000000", NOW + 300_000, "first, second")
    assert bench.usd() == ("60000", "first"), "other currencies go on"
    assert "ALARM rates: first says 1.5 for $/JPY, was 150: refused" in caplog.text


def test_all_rates_together_are_small_and_read_in_one_page(aws: LocalAws) -> None:
    """4 units to write every minute and 90 more every five; 44 rows are 11 KB to read."""
    from chalicelib.domain.catalogue.fiats import CROSSED

    bench = Bench(Exchange("first", dict.fromkeys(CROSSED, "12345678.9"), btc="60000"))
    assert bench.refresh() == 1 + len(CROSSED)
    assert sum(len(str(rate)) for rate in bench.store.stored_rates()) < 16_000
