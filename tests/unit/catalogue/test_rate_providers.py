"""CoinGecko and Kraken against a local server that answers what they publish, and all that they should not; the fixed provider."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from chalicelib.domain.catalogue.fiats import FIATS
from chalicelib.domain.catalogue.rates import STALE_MS, Rate
from chalicelib.rates.coingecko import CoinGecko
from chalicelib.rates.fixed import PAIRS, Fixed
from chalicelib.rates.http import MOST_BYTES, JsonGet
from chalicelib.rates.kraken import Kraken
from chalicelib.usecases.catalogue.rates import Quote, RateProvider, constant_rates
from chalicelib.usecases.ports.failures import Unavailable

NOW = 1_711_356_330_000

# https://docs.coingecko.com/reference/simple-price, the published example, with the currencies that we ask for.
GECKO = """{"bitcoin": {"usd": 67187.3358936566, "eur": 62053, "usd_market_cap": 1317802988326.25,
 "usd_24h_vol": 31260929299.5248, "usd_24h_change": 3.63727894677354, "last_updated_at": 1711356300}}"""
# https://docs.kraken.com/api/docs/rest-api/get-ticker-information, the published example.
KRAKEN = """{"error": [], "result": {"XXBTZUSD": {"a": ["30300.10000", "1", "1.000"], "b": ["30300.00000", "1", "1.000"],
 "c": ["30303.20000", "0.00067643"], "v": ["4083.67001100", "4412.73601799"], "p": ["30706.77771", "30689.13205"],
 "t": [34619, 38907], "l": ["29868.30000", "29868.30000"], "h": ["31631.00000", "31631.00000"], "o": "30502.80000"}}}"""


class Server:
    """Answers every request with what `reply` says of its path and query: status, headers, body."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str], dict[str, str]]] = []
        self.reply: Callable[[str, dict[str, str]], tuple[int, dict[str, str], bytes]] = lambda *_: (404, {}, b"")
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                query = {name: values[0] for name, values in parse_qs(parts.query).items()}
                outer.asked.append((parts.path, query, {n.lower(): v for n, v in self.headers.items()}))
                status, headers, body = outer.reply(parts.path, query)
                self.send_response(status)
                for name, value in ({"Content-Length": str(len(body))} | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                try:
                    self.wfile.write(body)
                except OSError:
                    return  # the client has had enough

            def log_message(self, *_: Any) -> None: ...

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    def says(self, body: str | bytes, status: int = 200, **headers: str) -> None:
        raw = body.encode() if isinstance(body, str) else body
        self.reply = lambda *_: (status, headers, raw)

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()


@pytest.fixture
def server(running: Server) -> Server:
    running.asked.clear()
    return running


WANTED = [("btc", "USD"), ("btc", "EUR"), ("btc", "GBP"), ("nobody", "USD")]


def test_coingecko_is_asked_once_and_read_to_the_last_digit(server: Server) -> None:
    server.says(GECKO)
    found = CoinGecko(server.url, key="CG-secret").quotes(WANTED, NOW)
    assert found == [
        Quote("btc", "EUR", Decimal(62053), 1_711_356_300_000),
        Quote("btc", "USD", Decimal("67187.3358936566"), 1_711_356_300_000),
    ]
    ((path, query, headers),) = server.asked
    assert (path, query["ids"], query["vs_currencies"]) == ("/simple/price", "bitcoin", "eur,gbp,usd")
    assert (query["include_last_updated_at"], query["precision"]) == ("true", "full")
    assert headers["x-cg-demo-api-key"] == "CG-secret"


def test_coingecko_needs_no_key_and_takes_further_names(server: Server) -> None:
    server.says('{"chainlink": {"usd": 15, "last_updated_at": 1711356400}}')
    found = CoinGecko(server.url, ids={"link": "chainlink"}).quotes([("link", "USD")], NOW)
    assert found == [Quote("link", "USD", Decimal(15), NOW)]  # a time that is still to come is now
    assert not any("api-key" in name for name in server.asked[0][2])


def test_who_knows_none_of_the_coins_is_not_asked(server: Server) -> None:
    assert CoinGecko(server.url).quotes([("nobody", "USD")], NOW) == []
    assert Kraken(server.url).quotes([("busd", "USD")], NOW) == []
    assert server.asked == []


def test_kraken_tells_the_last_trade(server: Server) -> None:
    server.says(KRAKEN)
    assert Kraken(server.url).quotes(WANTED, NOW) == [Quote("btc", "USD", Decimal("30303.2"), NOW)]
    ((path, query, _),) = server.asked
    assert (path, query["pair"]) == ("/0/public/Ticker", "XXBTZEUR,XXBTZGBP,XXBTZUSD")


def test_one_pair_that_kraken_no_longer_trades_does_not_spoil_the_others(server: Server) -> None:
    unknown = b'{"error": ["EQuery:Unknown asset pair"]}'
    server.reply = lambda _, query: (200, {}, unknown if query else KRAKEN.encode())
    assert Kraken(server.url).quotes(WANTED, NOW) == [Quote("btc", "USD", Decimal("30303.2"), NOW)]
    assert [bool(query) for _, query, _ in server.asked] == [True, False]


@pytest.mark.parametrize(
    "body",
    [
        "", "nonsense", "[]", "null", "7", '"x"', '{"bitcoin": {"usd": NaN, "last_updated_at": 1711356300}}', "\xff",
        '{"bitcoin": {"usd": Infinity, "last_updated_at": 1711356300}}', "[" * 100_000, '{"a": ' + "9" * 5000 + "}",
        '{"bitcoin": {"usd": 1e9999999999999999999, "last_updated_at": 1711356300}}',
    ],
    ids=lambda body: body[:30] or "empty",
)  # fmt: skip
def test_what_is_no_answer_raises_unavailable(server: Server, body: str) -> None:
    server.says(body.encode("latin-1"))
    with pytest.raises(Unavailable):
        CoinGecko(server.url).quotes(WANTED, NOW)
    with pytest.raises(Unavailable):
        Kraken(server.url).quotes(WANTED, NOW)


@pytest.mark.parametrize("value", ["-1", "0", "0.0000000000001", "1e13", "1." + "1" * 60, "1e400", "-0.0"])
def test_an_impossible_rate_is_read_but_not_plausible(server: Server, value: str) -> None:
    server.says(json.dumps({"bitcoin": {"usd": "V", "last_updated_at": 1711356300}}).replace('"V"', value))
    found = CoinGecko(server.url).quotes(WANTED, NOW)
    assert [quote.plausible for quote in found] == [False]


@pytest.mark.parametrize(
    "prices",
    [
        '"none"', "{}", '{"usd": null, "last_updated_at": 1}', '{"usd": "67000", "last_updated_at": 1711356300}',
        '{"usd": true, "last_updated_at": 1711356300}', '{"usd": 67000}', '{"usd": 67000, "last_updated_at": null}',
        '{"usd": 67000, "last_updated_at": 1e50}', '{"usd": 67000, "last_updated_at": -5}',
    ],
)  # fmt: skip
def test_a_coin_whose_price_is_garbled_is_missing(server: Server, prices: str) -> None:
    server.says(f'{{"bitcoin": {prices}}}')
    assert CoinGecko(server.url).quotes(WANTED, NOW) == []


@pytest.mark.parametrize("closed", ["null", "[]", "[1]", '["-1"]', '["NaN"]', '["1e5"]', '[""]', '"30303.2"', '["١"]'])
def test_a_pair_whose_ticker_is_garbled_is_missing(server: Server, closed: str) -> None:
    server.says(f'{{"error": [], "result": {{"XXBTZUSD": {{"c": {closed}}}, "XXBTZEUR": 5}}}}')
    assert Kraken(server.url).quotes(WANTED, NOW) == []


@pytest.mark.parametrize("body", ['{"error": ["EAPI:Rate limit exceeded"]}', '{"error": []}', '{"error": [], "result": []}'])
def test_an_error_of_kraken_raises_unavailable(server: Server, body: str) -> None:
    server.says(body)
    with pytest.raises(Unavailable):
        Kraken(server.url).quotes(WANTED, NOW)


@pytest.mark.parametrize("status", [204, 400, 401, 403, 429, 500, 503])
def test_a_status_that_is_not_200_raises_unavailable(server: Server, status: int) -> None:
    server.says(GECKO, status)
    with pytest.raises(Unavailable, match=str(status)):
        CoinGecko(server.url).quotes(WANTED, NOW)


def test_redirects_are_not_followed(server: Server) -> None:
    server.says("", 302, Location=f"{server.url}/elsewhere")
    with pytest.raises(Unavailable, match="302"):
        CoinGecko(server.url).quotes(WANTED, NOW)
    assert len(server.asked) == 1


@pytest.mark.parametrize("headers", [{}, {"Content-Length": str(10**12)}])
def test_no_more_is_read_than_an_answer_can_have(server: Server, headers: dict[str, str]) -> None:
    server.says(b" " * (MOST_BYTES + 2), **headers)
    with pytest.raises(Unavailable, match="bytes"):
        CoinGecko(server.url).quotes(WANTED, NOW)


def test_an_answer_that_ends_early_raises_unavailable(server: Server) -> None:
    """The server promises more than it sends, and then is silent."""
    server.says(GECKO[:40], **{"Content-Length": "5000", "Connection": "close"})
    with pytest.raises(Unavailable):
        JsonGet(server.url, seconds=0.2).get("/simple/price", {})


def test_nobody_there_raises_unavailable_and_tells_no_key() -> None:
    with pytest.raises(Unavailable) as refused:
        CoinGecko("http://127.0.0.1:1", key="CG-secret").quotes(WANTED, NOW)
    assert "CG-secret" not in str(refused.value)


def test_the_fixed_provider_knows_every_coin_of_the_catalogue_in_every_currency() -> None:
    from chalicelib.domain.catalogue.catalogue import default_coins

    wanted = {(coin.slug, fiat) for coin in default_coins("test") for fiat in FIATS}
    provider: RateProvider = Fixed()
    quotes = provider.quotes(wanted | {("pepe", "USD"), ("btc", "XAU")}, NOW)
    assert {quote.pair for quote in quotes} == wanted == PAIRS
    assert all(quote.plausible and quote.at == NOW for quote in quotes)
    values = {quote.pair: f"{quote.value:f}" for quote in quotes}
    assert values["usdt", "USD"] == "1" and values["btc", "EUR"] == "54000" and values["btc", "USD"] == "60000"


def test_constant_rates_are_the_providers_and_always_of_now() -> None:
    now = NOW
    rates = constant_rates(Fixed(), PAIRS, lambda: now)
    now = NOW + 100 * STALE_MS
    assert rates.constant and rates.get("btc", "XAU") is None
    assert rates.fresh("btc", now + STALE_MS, "EUR") == Rate("btc", "EUR", "54000", now + STALE_MS, "fixed")
    assert rates.get("trx") == Rate("trx", "USD", "0.15", now, "fixed")
