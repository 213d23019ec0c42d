"""Everything that a stranger can do to the service at once, for ten minutes; an honest merchant is served all the same.

The nodes are anvil and Litecoin Core, each behind a proxy that takes its time. Time is simulated: a node's answer moves the clocks
by what it would take. In a simulated minute each function begins at its start, as functions run beside each other, and ends by
itself; consumers of queues begin no message after the minute's end.

At once: 500 payments of a hostile merchant are out, and it orders more each minute; every block has 9,000 transfers of nothing;
20,000 transactions wait in the mempool; hundreds of its invoices end; and a stranger asks without a key. `make sweep` has
the time for it.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest

from chalicelib import wiring
from chalicelib.chains.rpc import JsonRpc
from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.bootstrap import NodeInfo, make_key, make_merchant
from infra.local.aws import LocalAws
from infra.local.nodes import deploy_token, mine
from infra.local.queues import consumers, schedules
from tests.nodes.grounds import CHAINS, EvmGround, UtxoGround
from tests.support.node_proxy import NodeProxy
from tests.support.stack import Response, Stack, first_stack

pytestmark = [pytest.mark.nodes, pytest.mark.slow, pytest.mark.sweep]

MINUTES = 10
OUT, MORE = 500, 100
"""Payments of the hostile merchant: out when it begins, and ordered each minute. A live key may order 100 in a minute."""
LOGS = 9_000
WAITING = 20_000
KEYLESS = 1_500
EXPIRING = 300
BLOCKS = 2
"""That ethereum mines in a simulated minute; litecoin mines one."""
CONFIRMATIONS = 6
ANSWER, BATCH = 0.1, 0.3
"""Seconds that a node takes for an answer, and for a batch of the mempool's transactions."""
PAYEE = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"  # EIP-55's own example
MINUTE = 60.0
TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
"""Topic of ERC-20's Transfer (EIP-20)."""
ATTACKER = "203.0.113.9"  # RFC 5737: for documentation


class SimulatedTime:
    """The process' clocks: `time.monotonic` and the service's own time move by what is waited for, and by CPU time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at = 0.0
        self._started = services().clock.now_ms()
        monkeypatch.setattr(time, "monotonic", lambda: 1_000_000.0 + self.at)
        monkeypatch.setattr(services().clock, "now_ms", lambda: self._started + round(self.at * 1000))

    def wait(self, seconds: float) -> None:
        self.at += seconds


@dataclass
class SlowNode(NodeProxy):
    """Each request takes `seconds` of simulated time, whatever is in it."""

    time: SimulatedTime | None = None
    requests: int = 0

    def _answer(self, asked: Any, path: str, headers: dict[str, str], pool: Any) -> Any:
        self.requests += 1
        if self.time is not None:
            self.time.wait(self.seconds(asked if isinstance(asked, list) else [asked]))
        return super()._answer(asked, path, headers, pool)

    def seconds(self, asked: list[dict[str, Any]]) -> float:
        return ANSWER


@dataclass
class FloodedEvm(SlowNode):
    """While `flood` is set, each block has so many logs of transfers of nothing, for which their sender paid."""

    contract: str = ""
    flood: int = 0

    def __post_init__(self) -> None:
        self._numbers: dict[str, str] = {}
        self.fault.change = self._with_logs

    def _with_logs(self, method: str, params: list[Any], result: Any) -> Any:
        if method == "eth_getLogs" and self.flood and self.contract in params[0].get("address", ()):
            return [*result, *self._logs(params[0]["blockHash"], len(result))]
        return result

    def _logs(self, block: str, before: int) -> list[dict[str, Any]]:
        topics = [TRANSFER, *("0x" + "00" * 12 + digits * 20 for digits in ("11", "22"))]
        if block not in self._numbers:
            self._numbers[block] = JsonRpc(self.target).call("eth_getBlockByHash", [block, False])["number"]
        number = self._numbers[block]
        return [
            {
                "address": self.contract, "topics": topics, "data": "0x" + "00" * 32, "blockHash": block, "blockNumber": number,
                "transactionHash": "0x" + hashlib.sha256(f"{block} {index}".encode()).hexdigest(), "transactionIndex": hex(index),
                "logIndex": hex(before + index), "removed": False,
            }
            for index in range(self.flood)
        ]  # fmt: skip


@dataclass
class FloodedMempool(SlowNode):
    """While `flood` is set, so many transactions of strangers wait, which the node knows and never mines."""

    flood: int = 0
    strangers: tuple[str, ...] = tuple(hashlib.sha256(str(n).encode()).hexdigest() for n in range(WAITING))

    def __post_init__(self) -> None:
        self._known = frozenset(self.strangers)
        self.fault.change = lambda method, params, result: (
            [*result, *self.strangers[: self.flood]] if method == "getrawmempool" else result
        )

    def seconds(self, asked: list[dict[str, Any]]) -> float:
        return BATCH if asked[0]["method"] == "getrawtransaction" else ANSWER

    def _answer(self, asked: Any, path: str, headers: dict[str, str], pool: Any) -> Any:
        strange = (
            [each for each in asked if each["params"][:1] and each["params"][0] in self._known] if isinstance(asked, list) else []
        )
        if not strange:
            return super()._answer(asked, path, headers, pool)
        told = {each["id"]: self._stranger(each) for each in strange}
        if rest := [each for each in asked if each["id"] not in told]:
            _, body = super()._answer(rest, path, headers, pool)
            told |= {each["id"]: each for each in json.loads(body)}
        elif self.time is not None:
            self.requests += 1
            self.time.wait(self.seconds(asked))
        return 200, json.dumps([told[each["id"]] for each in asked]).encode()

    def _stranger(self, asked: dict[str, Any]) -> dict[str, Any]:
        txid = asked["params"][0]
        result = {
            "txid": txid, "vin": [{"txid": txid[::-1], "vout": 0, "sequence": 0xFFFFFFFF}],
            "vout": [{"n": 0, "value": 0.001, "scriptPubKey": {"address": "rltc1" + txid[:40], "type": "witness_v0_keyhash"}}],
        }  # fmt: skip
        return {"jsonrpc": "2.0", "id": asked["id"], "result": result, "error": None}


@dataclass
class World:
    stack: Stack
    time: SimulatedTime
    evm: EvmGround
    coins: UtxoGround
    proxies: tuple[FloodedEvm, FloodedMempool]
    keys: dict[str, str]
    failures: list[tuple[str, Exception]] = field(default_factory=list)

    def call(self, who: str, method: str, path: str, status: int, **how: Any) -> Any:
        answer = self.stack.call(method, path, self.keys[who], **how)
        assert answer.status == status, answer.body
        return answer.json

    def minute(self, blocks: int = BLOCKS) -> None:
        """Blocks are mined, every schedule fires once, and what is in the queues is worked off until the minute's end."""
        begin = self.time.at
        mine(self.evm.node.rpc, blocks)
        self.coins.mine(min(blocks, 1))
        ends = [begin + MINUTE]
        for schedule in schedules(self.stack.app):
            if schedule.name in ("poll_ethereum", "poll_litecoin", "housekeeping", "rates"):
                self.time.at = begin
                try:
                    schedule.fire()
                except Exception as error:  # noqa: BLE001  # as on AWS: it fires again in a minute
                    self.failures.append((schedule.name, error))
                ends.append(self.time.at)
        for consumer in consumers(self.stack.app):
            self.time.at = begin
            consumer.hurry()
            while self.time.at < begin + MINUTE and (messages := consumer.receive(1)):
                failed = consumer.call(messages)
                consumer.delete(m for m in messages if m.id not in failed)
        self.time.at = max(ends)

    def put(self, path: str, **body: Any) -> None:
        self.call("admin", "PUT", path, 200, json=body)


def with_credentials(url: str, ground: UtxoGround) -> str:
    """The proxy hands on whatever credentials it is asked with."""
    node = urlsplit(ground.info.rpc_url)
    return url.replace("//", f"//{node.username}:{node.password}@") if node.username else url


@pytest.fixture
def world(aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("LIVE_CHAINS", CHAINS)
    monkeypatch.setenv("RATES_PROVIDERS", "fixed")
    monkeypatch.setenv("RISK_NEW_PER_HOUR", "5000")
    monkeypatch.setenv("RISK_NEW_PER_DAY", "5000")
    wiring.forget()
    evm, coins = EvmGround("ethereum"), UtxoGround("litecoin")
    try:
        usdt = deploy_token(evm.node.rpc, "USDT", "Tether USD", 6, returns_nothing=True)
        with FloodedEvm(evm.info.rpc_url, contract=usdt.lower()) as slow, FloodedMempool(coins.info.rpc_url) as full:
            infos = {"ethereum": NodeInfo(slow.url, {"usdt": usdt}), "litecoin": NodeInfo(with_credentials(full.url, coins))}
            stack = first_stack(aws, infos)
            keys = {"honest": stack.keys["client_live"], "admin": stack.keys["admin_live"]}
            keys["hostile"] = make_key(services(), make_merchant(services(), "Hostile"), "live", "client", ("full",), "hostile")
            for slug, ground in (("ethereum", evm), ("litecoin", coins)):
                hot = services().store.get(Wallet, network=f"live:{slug}", role="hot")
                assert hot is not None
                ground.fund(hot.address)
            made = World(stack, SimulatedTime(monkeypatch), evm, coins, (slow, full), keys)
            slow.time = full.time = made.time
            # A block in a minute, and half an hour until one is final, would be more than ten minutes.
            for slug, depth in (("ethereum", CONFIRMATIONS), ("litecoin", 2)):
                made.put("/v1/networks", network=slug, confirmationBlocks=depth)
            made.minute()
            yield made
    finally:
        evm.stop()
        coins.stop()


@dataclass
class Journey:
    """A customer pays a merchant's invoice on both networks, and the merchant withdraws what came. `done`: name to seconds."""

    world: World
    begun: float = 0.0
    invoices: dict[str, Any] = field(default_factory=dict)
    withdrawals: dict[str, str] = field(default_factory=dict)
    done: dict[str, float] = field(default_factory=dict)

    def begin(self) -> None:
        self.begun = self.world.time.at
        for slug, coin, amount in (("ethereum", "eth", "0.5"), ("litecoin", "ltc", "0.5")):
            made = self.world.call(
                "honest", "POST", "/v1/invoices", 201, json={"currency": coin, "amount": amount, "network": slug}
            )
            self.invoices[slug] = made
        self.world.evm.pay(self.invoices["ethereum"]["address"], 5 * 10**17)
        self.world.coins.pay(self.invoices["litecoin"]["address"], 5 * 10**7)

    def look(self) -> None:
        """What a merchant's shop does each minute."""
        for slug, made in self.invoices.items():
            found = self.world.call("honest", "GET", "/v1/invoices", 200, query={"id": made["id"]})
            if found["status"] == "completed" and slug not in self.withdrawals:
                self.done[f"{slug} credited"] = self.world.time.at - self.begun
                out = PAYEE if slug == "ethereum" else self.world.coins.node.new_address()
                body = {"network": slug, "coin": made["currency"], "address": out, "amount": "0.2"}
                self.withdrawals[slug] = self.world.call("honest", "POST", "/v1/withdraws", 201, json=body)["id"]
        for slug, name in self.withdrawals.items():
            found = self.world.call("honest", "GET", f"/v1/withdrawals/{name}", 200)["data"]
            if found["status"] == "confirmed" and f"{slug} paid" not in self.done:
                self.done[f"{slug} paid"] = self.world.time.at - self.begun

    @property
    def whole(self) -> bool:
        return len(self.done) == 4


class Hostile:
    def __init__(self, world: World) -> None:
        self.world, self.ordered, self.answers = world, 0, Counter[int]()

    def prepare(self) -> None:
        """Its payments are ordered and signed while no block comes and nodes answer at once. Then they are all in a block."""
        world = self.world
        made = world.call("hostile", "POST", "/v1/addresses", 201, json={"network": "ethereum"})
        world.evm.pay(made["address"], 5 * 10**18)
        for _ in range(CONFIRMATIONS // BLOCKS + 1):
            world.minute()
        for proxy in world.proxies:
            proxy.time = None
        world.evm.node.rpc.call("evm_setAutomine", [False])
        for _ in range(OUT // 100):
            self.order(100)
            self.invoices(EXPIRING * 100 // OUT)
            world.minute(blocks=0)
        assert statuses()["confirming"] == OUT, statuses()
        mine(world.evm.node.rpc)
        world.evm.node.rpc.call("evm_setAutomine", [True])
        for proxy in world.proxies:
            proxy.time = world.time

    def order(self, count: int) -> None:
        outputs = [{"to_address": PAYEE, "amount": "0.001"} for _ in range(count)]
        body = {"batch_withdrawal": {"network": "ethereum", "coin": "eth", "outputs": outputs}}
        self.world.call("hostile", "POST", "/v1/withdrawals", 201, json=body)
        self.ordered += count

    def invoices(self, count: int) -> None:
        """They end within the ten minutes, all at once. Made in the minutes before: a key may make 100 in one."""
        for _ in range(count):
            body = {"currency": "eth", "amount": "1", "network": "ethereum", "expiresIn": 240}
            self.world.call("hostile", "POST", "/v1/invoices", 201, json=body)

    def ask(self, count: int) -> None:
        """Without a key, with wrong ones, and for pages."""
        paths = itertools.cycle(["/v1/balances", "/v1/withdraws", "/pay/inv_0123456789abcdef0123456789", "/health"])
        for n, path in zip(range(count), paths, strict=False):
            answer: Response = self.world.stack.call("GET", path, f"sk_live_{n:032d}", source_ip=ATTACKER)
            self.answers[answer.status] += 1


def test_an_honest_merchant_is_served_in_time_whatever_strangers_do(world: World) -> None:
    alone = Journey(world)
    alone.begin()
    while not alone.whole and world.time.at < alone.begun + MINUTES * MINUTE:
        world.minute()
        alone.look()
    assert alone.whole, alone.done

    hostile = Hostile(world)
    hostile.prepare()
    world.proxies[0].flood, world.proxies[1].flood = LOGS, WAITING
    # A new process knows nothing of what waits.
    services().wiring.scanning.looks.clear()
    beside = Journey(world)
    beside.begin()
    while world.time.at < beside.begun + MINUTES * MINUTE:
        hostile.order(MORE)
        hostile.ask(KEYLESS)
        world.minute()
        beside.look()
    assert beside.whole, beside.done
    print(f"alone {alone.done}, beside {beside.done}; {statuses()}, {hostile.answers}, {world.failures}")
    late = {name: (seconds, alone.done[name]) for name, seconds in beside.done.items() if seconds > 2 * alone.done[name]}
    assert late == {}
    # The flood is refused, and everything comes to its end.
    assert hostile.answers[429] >= MINUTES * (KEYLESS - 600)
    assert expired() == EXPIRING
    assert audit(services().store) == []


def expired() -> int:
    return sum(invoice.status == "expired" for invoice in services().store.every(Invoice))


def statuses() -> Counter[str]:
    return Counter(each.status for each in services().store.every(Withdrawal))
