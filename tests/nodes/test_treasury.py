"""A day of the treasury on eight networks, each on its node: 1,000 deposits on 200 addresses are credited and swept, 300
withdrawals go out, two reorganisations take blocks away in between, and one provider dies. In the end everything is where it
should be, once: the books are whole, and reconciled with the chains to the last unit. By the HTTP interface, schedules and queues.

Four minutes of one core: `make sweep` has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from chalicelib import wiring
from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.catalogue import NETWORK_ORDER
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import network_parts
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.money import format_units, parse_units
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.withdrawals.withdrawals import FINAL, Withdrawal
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.local.aws import LocalAws
from tests.nodes.crowds import Crowd, Payment
from tests.nodes.grounds import CHAINS, UtxoGround, ground_of
from tests.support.node_proxy import NodeProxy
from tests.support.stack import Stack, first_stack

pytestmark = [pytest.mark.nodes, pytest.mark.slow, pytest.mark.sweep]

ADDRESSES = 25
"""On each of the eight networks: 200 in all."""
DEPOSITS = 5 * ADDRESSES
"""On each network: 1,000 in all."""
WITHDRAWALS = {slug: 38 if slug in NETWORK_ORDER[:4] else 37 for slug in NETWORK_ORDER}
MINUTE_MS = 60_000
SILENCE = 5
"""Minutes after which a provider that died has no vote."""
WORK = ("deposit", "payout", "sent", "collectable", "collection", "move", "coinmove")
"""What has to be done with when all is at rest."""
COLD = {
    "evm": "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
    "tron": "TLsV52sRDL79HXGGm9yzwKibb6BeruhUzy",
}


@dataclass
class Day:
    stack: Stack
    crowds: dict[str, Crowd]
    paid: dict[tuple[str, str], int] = field(default_factory=dict)
    """What strangers paid, by network and coin, in units."""

    def call(self, key: str, method: str, path: str, status: int, **how: Any) -> Any:
        answer = self.stack.call(method, path, self.stack.keys[key], **how)
        assert answer.status == status, answer.body
        return answer.json

    def run(self, *slugs: str) -> None:
        """Two rounds of the schedules of these networks (of all where none is named), and all that they put into the queues."""
        polls = [f"poll_{slug}" for slug in slugs or self.crowds]
        for _ in range(2):
            self.stack.drain(only=(*polls, "relay", "payout", "collect", "housekeeping"), rounds=1)

    def confirm(self, *slugs: str) -> None:
        """Blocks enough that what is in the chain is final, and a minute passes."""
        for slug in slugs or self.crowds:
            ground = self.crowds[slug].ground
            ground.mine(ground.network.confirmations)
        services().clock.shift_ms += MINUTE_MS
        self.run(*slugs)

    def open(self, but: str = "") -> dict[str, int]:
        """What is not at rest, on all networks `but` one.

        On networks of coins the hint of a deposit stays until no reorganisation brings its coin back."""
        counted = dict.fromkeys(WORK, 0)
        for work in services().store.every_work():
            ground = self.crowds[work.lane.removeprefix("live:")].ground if work.lane.startswith("live:") else None
            if (
                work.kind in counted
                and ground is not None
                and work.lane != f"live:{but}"
                and not (work.kind == "collectable" and isinstance(ground, UtxoGround))
            ):
                counted[work.kind] += 1
        return {kind: count for kind, count in counted.items() if count}


@pytest.fixture
def day(aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> Iterator[Day]:
    monkeypatch.setenv("LIVE_CHAINS", CHAINS)
    monkeypatch.setenv("RATES_PROVIDERS", "fixed")
    monkeypatch.setenv("RISK_NEW_PER_HOUR", "1000")
    # Else the round through all addresses takes several steps, and there is always another one to take.
    monkeypatch.setenv("RECONCILE_PAGE", "5000")
    monkeypatch.setenv("NODE_SILENCE_MINUTES", str(SILENCE))
    wiring.forget()
    with ThreadPoolExecutor(4) as pool:
        crowds = {crowd.slug: crowd for crowd in pool.map(lambda slug: Crowd(ground_of(slug)), NETWORK_ORDER)}
    try:
        yield Day(first_stack(aws, {slug: crowd.info for slug, crowd in crowds.items()}), crowds)
    finally:
        for crowd in crowds.values():
            crowd.ground.stop()


def test_a_thousand_deposits_are_swept_and_three_hundred_withdrawals_paid(day: Day, caplog: pytest.LogCaptureFixture) -> None:
    furnish(day)
    addresses = {slug: [bill_address(day, slug) for _ in range(ADDRESSES)] for slug in day.crowds}
    with NodeProxy(day.crowds["bsc"].ground.info.rpc_url) as provider:
        # Two providers, of which one dies in the middle of everything.
        both = [provider.url, day.crowds["bsc"].ground.info.rpc_url]
        day.call("admin_live", "PUT", "/v1/networks", 200, json={"network": "bsc", "rpcUrls": both})
        for slug, crowd in day.crowds.items():
            pay_all(day, crowd, addresses[slug])
        day.run()
        # The first reorganisation: payments fall out before they are credited, and come back.
        day.crowds["litecoin"].ground.reorganise(1)
        day.run("litecoin")
        day.confirm()
        assert sum(credited(day).values()) == len(day.crowds) * DEPOSITS
        provider.fault.drop = True
        # Sweeps are out, and withdrawals between them.
        withdrawn = [withdraw(day, slug, n) for slug, count in WITHDRAWALS.items() for n in range(count)]
        day.run()
        # The second one: sweeps, top-ups and withdrawals that are in blocks fall out of them.
        day.crowds["ethereum"].ground.reorganise(2)
        day.run("ethereum")
        for minute in range(30):
            if minute > SILENCE and not day.open(but="bsc"):
                break
            day.confirm()
        # What two nodes have to vouch for waits for the operator, and what it shall pay with it; the other lines are done.
        assert_waits_for_the_operator(day, caplog)
        # He heeds the alarm: where two nodes are configured both have to tell what is there, so the dead one is taken out.
        day.call("admin_live", "PUT", "/v1/networks", 200, json={"network": "bsc", "rpcUrls": both[1:]})
        for _ in range(30):
            if not day.open():
                break
            day.confirm()
        assert day.open() == {}
    states = [day.call("client_live", "GET", f"/v1/withdrawals/{name}", 200)["data"]["status"] for name in withdrawn]
    assert states == ["confirmed"] * sum(WITHDRAWALS.values())
    for slug, crowd in day.crowds.items():
        if not isinstance(crowd.ground, UtxoGround):
            assert_swept(crowd, addresses[slug])
    assert_conserved(day)
    assert audit(services().store) == []
    assert_reconciled(day)


def assert_waits_for_the_operator(day: Day, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing but moves worth more than bsc's agreementUsd, and withdrawals of the token that they bring to its hot wallet."""
    assert f"ALARM live:bsc: node 1 has not answered for {SILENCE} minutes and has no vote" in caplog.text
    bsc = day.crowds["bsc"].ground.network.id
    usdt = f"{bsc}:usdt"
    large = [move for move in services().store.every(Move) if not move.at_rest]
    assert all((move.network, move.asset) == (bsc, usdt) and move.amount > 1_000 * 10**18 for move in large), large
    waiting = [each for each in services().store.every(Withdrawal) if each.status not in FINAL]
    assert all((each.asset, each.pending_reason) == (usdt, "liquidity") for each in waiting), waiting
    assert large and waiting
    assert {work.lane for work in services().store.every_work() if work.kind in ("payout", "sent", "move")} <= {bsc}


def furnish(day: Day) -> None:
    """Wallets and settings as an operator makes them: a collector where there are tokens, a cold wallet, hot wallets with money."""
    for slug, crowd in day.crowds.items():
        ground = crowd.ground
        hot = services().store.get(Wallet, network=ground.network.id, role="hot")
        assert hot is not None
        ground.fund(hot.address)
        cold = COLD.get(ground.network.family) or ground.out
        if isinstance(ground, UtxoGround):
            cold = ground.node.new_address()
        wanted: list[dict[str, Any]] = [{"network": slug, "type": "cold", "address": cold}]
        if crowd.token is not None:
            wanted.append({"network": slug, "type": "collector"})
        for body in wanted:
            day.call("admin_live", "POST", "/v1/addresses/service-wallets", 201, json=body)
        native = {"coin": ground.network.symbol.lower(), "network": slug, "collectThreshold": "0"}
        day.call("admin_live", "PUT", "/v1/coins", 200, json=native)
        if crowd.token is not None:
            split = {"coin": crowd.token, "network": slug, "collectThreshold": "0", "collectPercentageHot": "60"}
            day.call("admin_live", "PUT", "/v1/coins", 200, json=split)
    day.confirm()


def bill_address(day: Day, slug: str) -> str:
    return str(day.call("client_live", "POST", "/v1/addresses", 201, json={"network": slug})["address"])


def one(crowd: Crowd, coin: str) -> int:
    """What each stranger pays: a tenth of a native coin (of TRX, BNB and the like more), or a hundred dollars."""
    if coin == "usdt":
        return 100 * 10 ** (18 if crowd.slug == "bsc" else 6)
    return 10**crowd.ground.network.decimals * (200 if crowd.slug == "tron" else 1) // (1 if crowd.slug == "tron" else 10)


def pay_all(day: Day, crowd: Crowd, addresses: list[str]) -> None:
    """Five payments to each address: where there is a token, every fourth address gets tokens alone, every other coins."""
    native = crowd.ground.network.symbol.lower()
    in_tokens = set(addresses[::4]) if crowd.token is not None else set()
    natives: list[Payment] = [(a, one(crowd, native)) for a in addresses if a not in in_tokens for _ in range(5)]
    tokens: list[Payment] = [(a, one(crowd, "usdt")) for a in addresses if a in in_tokens for _ in range(5)]
    crowd.pay(natives, tokens)
    day.paid[crowd.slug, native] = sum(units for _, units in natives)
    day.paid[crowd.slug, "usdt"] = sum(units for _, units in tokens)


def withdrawn_coin(crowd: Crowd, number: int) -> str:
    return "usdt" if crowd.token is not None and number % 5 == 0 else crowd.ground.network.symbol.lower()


def withdraw(day: Day, slug: str, number: int) -> str:
    """To an address of its own each; every fifth of a token where there is one."""
    crowd = day.crowds[slug]
    coin = withdrawn_coin(crowd, number)
    decimals = next(c.decimals for c in services().catalogue("live").coins_of(slug) if c.slug == coin)
    amount = format_units(one(crowd, coin) // 5, decimals)
    body = {"network": slug, "coin": coin, "address": crowd.ground.out, "amount": amount}
    return str(day.call("client_live", "POST", "/v1/withdraws", 201, json=body)["id"])


def credited(day: Day) -> dict[str, int]:
    """How many deposits of merchants are credited, by network."""
    counted = dict.fromkeys(day.crowds, 0)
    for deposit in services().store.every(Deposit):
        if deposit.tenant is not None and deposit.status == "confirmed":
            counted[network_parts(deposit.network)[1]] += 1
    return counted


def assert_swept(crowd: Crowd, addresses: list[str]) -> None:
    """By the chain's word nothing is left at any of them but what top-ups and fees have left over, which is less than a sweep is
    worth; and each sweep is there once."""
    reader, network = services().reader(crowd.ground.network), crowd.ground.network
    store = services().store
    for address in addresses:
        place = services().rules.storage_form(crowd.slug, address)
        for coin in services().catalogue("live").coins_of(crowd.slug):
            there = reader.balance(address, coin.contract) if coin.status == "ACTIVE" else 0
            booked = store.get(WalletBalance, network=network.id, address=place, asset=coin.asset)
            assert there == (booked.units if booked is not None else 0), (address, coin.slug)
            assert there < one(crowd, coin.slug) if coin.contract is None else there == 0, (address, coin.slug)


def assert_conserved(day: Day) -> None:
    """What merchants have is what strangers paid less what went out, to the unit, whatever it cost the operator."""
    for entry in day.call("client_live", "GET", "/v1/balances", 200)["data"]:
        slug, coin = entry["network"], entry["coin"]
        decimals = next(c.decimals for c in services().catalogue("live").coins_of(slug) if c.slug == coin)
        share = one(day.crowds[slug], coin) // 5
        out = sum(share for n in range(WITHDRAWALS[slug]) if withdrawn_coin(day.crowds[slug], n) == coin)
        assert parse_units(entry["available"], decimals) == day.paid[slug, coin] - out, entry
        assert entry["frozen"] == entry["pending"] == "0"


def assert_reconciled(day: Day) -> None:
    """Every coin of every network is on the chain to the last unit, and covers what merchants have."""
    day.call("admin_live", "POST", "/v1/reconciliation", 201, json={})
    for _ in range(6):
        day.stack.drain(only=("reconciliation", "compare"), rounds=5)
        for crowd in day.crowds.values():
            crowd.ground.mine()
        services().clock.shift_ms += 10 * MINUTE_MS
        day.run()
    found = day.call("admin_live", "GET", "/v1/reconciliation", 200)
    assert found["solvent"] is True and found["differences"] == []
    networks = {each["network"]: each for each in found["networks"]}
    assert networks.keys() == day.crowds.keys()
    for network in networks.values():
        assert (network["complete"], network["notCompared"], network["trouble"]) == (True, 0, None)
        for coin in network["coins"]:
            assert coin["ledger"] == coin["expected"] == coin["chain"] and coin["solvent"], coin
