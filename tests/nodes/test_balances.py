"""What contracts send is credited, and never twice: by traces, by comparing balances, and by both in any order.

Two networks with a node each, the whole service before them. What a payment is worth is counted in the merchant's balance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from chalicelib import wiring
from chalicelib.chains.evm.reader import EvmReader
from chalicelib.chains.rpc import JsonRpc, Request
from chalicelib.domain.addresses.addresses import Wallet, Watched
from chalicelib.domain.catalogue.catalogue import Coin, Network
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.scanning.internal_transfers import BalanceBooking, ReconcileRound
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.scanning.internal_transfers import InternalTransfers
from chalicelib.usecases.scanning.scanner import Scanner
from chalicelib.wiring import services
from infra.bootstrap import NodeInfo
from infra.local.aws import LocalAws
from infra.local.nodes import Anvil, deploy_token, mine
from infra.local.tokens import call_data, deploy
from tests.bench.accounting import accounted
from tests.nodes.sending import send, send_native, send_token
from tests.support.stack import Stack, first_stack

pytestmark = pytest.mark.nodes

ETHER = 10**18
DEPTH = 12
"""Enough confirmations on both networks."""


@dataclass(frozen=True)
class Side:
    """A network as the live merchant of `stack` has it."""

    stack: Stack
    slug: str
    node: Anvil
    relay: str
    usdt: str
    begun: list[int] = field(default_factory=lambda: [0])
    """The height at which the running test began: what other tests left below it is not looked at again."""

    def network(self, tracing: Any = "auto") -> Network:
        return replace(services().catalogue("live").networks[self.slug], tracing=tracing)

    def reader(self, tracing: Any = "auto", rpc: JsonRpc | None = None) -> EvmReader:
        return EvmReader(self.network(tracing), rpc or JsonRpc(self.node.url))

    def scanner(self, reader: EvmReader, store: Any = None) -> Scanner:
        wired = services()
        store = store or wired.store
        deposits = wired.deposits("live")
        if store is not wired.store:
            deposits = type(deposits)(store, wired.rules, wired.clock_of("live"))
        return Scanner(NetworkContext(self.network(), reader, store, wired.rules, wired.clock_of("live")), deposits)

    def poll(self, tracing: Any = "auto", times: int = 1, rpc: JsonRpc | None = None) -> EvmReader:
        reader = self.reader(tracing, rpc)
        for _ in range(times):
            self.scanner(reader).poll(lambda: True)
        return reader

    def balance_booker(
        self, tracing: Any = "off", *, reader: EvmReader | None = None, recorder: Any = None, page: int = 500
    ) -> InternalTransfers:
        wired, reader = services(), reader or self.reader(tracing)
        context = NetworkContext(self.network(tracing), reader, wired.store, wired.rules, wired.clock_of("live"))
        return InternalTransfers(context, recorder or self.scanner(reader).recorder, page)

    def rescan(self, blocks: int = 60, store: Any = None) -> None:
        """Look at the last blocks again, with a node that traces."""
        reader = self.reader()
        cursor = self.scanner(reader).start()
        contracts = self.scanner(reader).recorder.contracts()
        told = reader.blocks(max(self.begun[0] + 1, cursor.number - blocks), cursor.number, contracts)
        self.scanner(reader, store).recorder.record(told, cursor.epoch)

    def deep(self, tracing: Any = "auto") -> None:
        mine(self.node.rpc, DEPTH)
        self.poll(tracing)

    def call(self, method: str, path: str, status: int, body: Any = None, key: str = "client_live", **query: str) -> Any:
        answer = self.stack.call(method, path, self.stack.keys[key], body, query=query or None)
        assert answer.status == status, answer.body
        return answer.json

    def address(self, **how: Any) -> str:
        made = self.call("POST", "/v1/addresses", 201, {"network": self.slug, "coin": "eth", "type": "user", **how})
        return str(made.get("data", made)["address"])

    def contract_pays(self, address: str, ether: int = 1) -> str:
        return send(self.node.rpc, self.relay, call_data("forward(address)", address), value=ether * ETHER, gas=200_000)

    def credited(self, coin: str = "eth") -> float:
        for entry in self.call("GET", "/v1/balances", 200)["data"]:
            if (entry["network"], entry["coin"]) == (self.slug, coin):
                return float(entry["available"])
        return 0.0

    def reorganise(self, depth: int) -> None:
        """Empty blocks mined again are the same blocks: a payment makes the new branch a different one."""
        elsewhere = {"from": self.node.rpc.call("eth_accounts")[1], "to": self.relay, "value": "0x1"}
        self.node.rpc.call("anvil_reorg", [depth, [[elsewhere, 0]]])


@pytest.fixture(scope="module")
def both(running_aws: LocalAws) -> Iterator[tuple[Side, Side]]:
    with running_aws.active(), Anvil(1) as one, Anvil(42161) as two:
        nodes = {"ethereum": one, "arbitrum": two}
        usdt = {slug: deploy_token(node.rpc, "USDT", "Tether USD", 6, returns_nothing=True) for slug, node in nodes.items()}
        stack = first_stack(running_aws, {slug: NodeInfo(node.url, {"usdt": usdt[slug]}) for slug, node in nodes.items()})
        sides = [Side(stack, slug, node, deploy(node.rpc, "Relay"), usdt[slug]) for slug, node in nodes.items()]
        for side in sides:
            side.deep()
        yield sides[0], sides[1]


@pytest.fixture
def side(both: tuple[Side, Side]) -> Side:
    """Everything credited that was paid before."""
    both[0].deep()
    for side in both:
        side.begun[0] = int(side.node.rpc.call("eth_blockNumber"), 16)
    return both[0]


@pytest.mark.parametrize("tracing", ["auto", "off"])
def test_an_invoice_that_a_contract_pays_completes(side: Side, tracing: str) -> None:
    """Through HTTP and the schedules alone: found in the trace, or in the balance where nobody traces."""
    side.call("PUT", "/v1/networks", 200, {"network": side.slug, "tracing": tracing}, key="admin_live")
    wiring.forget()
    try:
        before = side.credited()
        made = side.call("POST", "/v1/invoices", 201, {"currency": "eth", "amount": "1", "network": side.slug})
        txid = side.contract_pays(made["address"])
        for _ in range(2):
            mine(side.node.rpc, DEPTH)
            side.stack.drain(only=(f"poll_{side.slug}", "relay"))
            side.stack.drain(only=(f"poll_{side.slug}", "relay"))
        assert side.call("GET", "/v1/invoices", 200, id=made["id"])["status"] == "completed"
        assert side.credited() - before == 1
        (found,) = [d for d in services().store.every(Deposit) if d.address == made["address"]]
        assert (found.txid == txid) == (tracing == "auto")
        assert found.position.startswith("balance:") == (tracing == "off")
        assert audit(services().store) == []
    finally:
        side.call("PUT", "/v1/networks", 200, {"network": side.slug, "tracing": "auto"}, key="admin_live")
        wiring.forget()


def test_the_round_passes_every_address_in_bounded_steps(side: Side) -> None:
    before, addresses = side.credited(), [side.address() for _ in range(5)]
    for address in addresses[::2]:
        side.contract_pays(address)
    side.deep("off")
    going = side.balance_booker(page=7)
    here = lambda: services().store.get(ReconcileRound, network=side.network().id)  # noqa: E731
    booked = steps = 0
    while steps < 100:
        steps += 1
        with accounted() as account:
            booked += going.go_round(lambda: True)
        assert account.calls["dynamodb:Scan"] == 1
        place = here()
        assert place is not None
        if not place.after:
            break
    watched = [w for w in services().store.every(Watched) if side.slug in w.networks and (w.realm, w.role) == ("live", "user")]
    assert steps > 2
    assert booked == 3
    assert len(watched) >= 5
    assert going.go_round(lambda: False) == 0
    assert here() == place, "no time, no step"
    side.poll("off")
    assert side.credited() - before == 3
    # Two at once, and one that dies before its step counts: the same addresses again, and nothing twice.
    first, second = here(), here()
    assert first == second
    assert going.go_round(lambda: True) == 0
    with pytest.raises(Conflict):
        assert second is not None
        services().store.commit([Save(replace(second, version=second.version + 1))])
    assert side.balance_booker(page=5000).go_round(lambda: True) == 0
    assert side.balance_booker(page=0).go_round(lambda: True) == 0
    assert side.credited() - before == 3
    assert audit(services().store) == []


def test_whoever_dies_while_booking_has_booked_nothing(side: Side) -> None:
    before, address = side.credited(), side.address()
    side.contract_pays(address)
    side.deep("off")

    class Dying:
        def record(self, *_: Any, **__: Any) -> Any:
            raise Unavailable("the function ends here")

    with pytest.raises(Unavailable):
        side.balance_booker(recorder=Dying()).check([address.lower()])
    assert services().store.get(BalanceBooking, network=side.network().id, address=address.lower()) is None
    assert [side.balance_booker().check([address.lower()]) for _ in range(2)] == [1, 0]
    side.poll("off")
    assert side.credited() - before == 1


def traced_first(side: Side, address: str) -> None:
    side.contract_pays(address)
    side.deep()


def waiting_in_the_trace(side: Side, address: str) -> None:
    """Seen, and not credited when its balance is compared: so it stays, where a large payment waits for more."""
    side.contract_pays(address)
    mine(side.node.rpc, DEPTH)
    reader = side.reader()
    reader.blocks(reader.tip(), reader.tip(), ())
    scanner = side.scanner(reader)
    scanner._confirming._large.may_credit = lambda _: False  # type: ignore[method-assign]
    scanner.poll(lambda: True)
    assert side.balance_booker().check([address.lower()]) == 0


def booked_first(side: Side, address: str) -> None:
    side.contract_pays(address)
    side.deep("off")
    assert side.balance_booker().check([address.lower()]) == 1
    side.rescan()


def booked_beside_what_waits(side: Side, address: str) -> None:
    """Something newer is pending there: what was missed is booked all the same, and to the unit."""
    side.contract_pays(address, 2)
    mine(side.node.rpc, DEPTH)
    send_native(side.node.rpc, address, ETHER)
    side.poll("off")
    assert side.balance_booker().check([address.lower()]) == 1
    (found,) = [d for d in services().store.every(Deposit) if d.address == address and d.position.startswith("balance:")]
    assert found.amount == 2 * ETHER
    side.rescan()


def fallen_out_and_booked_in_another_block(side: Side, address: str) -> None:
    """Seen by trace, orphaned, mined again where nobody traces and booked; then seen by trace again."""
    raw = side.node.rpc.call("eth_getRawTransactionByHash", [side.contract_pays(address)])
    side.poll()
    side.reorganise(2)
    side.poll("off")
    side.node.rpc.call("eth_sendRawTransaction", [raw])
    mine(side.node.rpc)
    side.deep("off")
    assert side.balance_booker().check([address.lower()]) == 1
    side.rescan()


def a_later_booking_fell_out(side: Side, address: str) -> None:
    """Two bookings; the later one falls out of the chain, and the first still covers what it covered."""
    side.contract_pays(address)
    side.deep("off")
    assert side.balance_booker().check([address.lower()]) == 1
    mine(side.node.rpc, DEPTH + 4)
    side.contract_pays(address, 5)
    side.deep("off")
    assert side.balance_booker().check([address.lower()]) == 1
    side.poll("off")
    side.reorganise(DEPTH + 3)
    mine(side.node.rpc, 3)
    side.poll("off")
    side.rescan(90)


def too_slow_to_trace(side: Side, address: str) -> None:
    """The tracer rests while the block is read, and works again when balances are compared."""

    class Slow(JsonRpc):
        slow = True

        def batch(self, requests: Sequence[Request]) -> list[Any]:
            if self.slow and requests[0][0].startswith(("debug_", "trace_")):
                raise Unavailable("the node does not answer in time")
            return super().batch(requests)

    rpc = Slow(side.node.url)
    side.contract_pays(address)
    mine(side.node.rpc, DEPTH)
    assert side.poll(rpc=rpc).traces is False
    rpc.slow = False
    side.contract_pays(side.relay)
    reader = side.poll(rpc=rpc)
    assert reader.traces is True
    assert side.balance_booker("auto", reader=reader).check([address.lower()]) == 1
    side.rescan()


def topped_up_by_ourselves(side: Side, address: str) -> None:
    hot = services().store.get(Wallet, network=side.network().id, role="hot")
    assert hot is not None
    side.node.rpc.call("anvil_setBalance", [hot.address, hex(9 * ETHER)])
    side.node.rpc.call("anvil_impersonateAccount", [hot.address])
    side.node.rpc.call("eth_sendTransaction", [{"from": hot.address, "to": address, "value": hex(ETHER)}])
    side.deep("off")


WAYS: dict[str, tuple[Callable[[Side, str], None], int]] = {
    way.__name__.replace("_", " "): (way, ether)
    for way, ether in (
        (traced_first, 1), (waiting_in_the_trace, 1), (booked_first, 1), (booked_beside_what_waits, 3),
        (fallen_out_and_booked_in_another_block, 1), (a_later_booking_fell_out, 1), (too_slow_to_trace, 1),
        (topped_up_by_ourselves, 1),
    )
}  # fmt: skip


@pytest.mark.parametrize(("way", "ether"), WAYS.values(), ids=WAYS.keys())
def test_it_is_credited_once(side: Side, way: Callable[[Side, str], None], ether: int) -> None:
    before, address = side.credited(), side.address()
    way(side, address)
    side.deep("off")
    # Whatever is looked at again, with traces or without: it stays as it is.
    for _ in range(2):
        assert side.balance_booker().check([address.lower()]) == 0
        side.rescan(90)
        side.deep()
    assert side.credited() - before == ether
    assert audit(services().store) == []


def test_traced_while_it_is_booked(side: Side) -> None:
    """A rescan records it after the balance was compared, and before the booking is stored: the booking gives way."""
    before, address = side.credited(), side.address()
    side.contract_pays(address)
    side.deep("off")

    reader = side.reader("off")
    recorder = side.scanner(reader).recorder

    class Late:
        def record(self, *what: Any, **how: Any) -> Any:
            side.rescan()
            return recorder.record(*what, **how)

    with pytest.raises(Conflict):
        side.balance_booker(reader=reader, recorder=Late()).check([address.lower()])
    side.deep("off")
    assert side.balance_booker().check([address.lower()]) == 0
    assert side.credited() - before == 1


@pytest.mark.parametrize("used", [False, True])
def test_booked_while_it_is_traced(side: Side, used: bool) -> None:
    """The other way round: the booking is stored after a rescan has seen that there is none. The rescan gives way. `used`: the
    address had a payment before."""
    address = side.address()
    if used:
        send_native(side.node.rpc, address, ETHER)
        side.deep("off")
    before = side.credited()
    side.contract_pays(address)
    side.deep("off")
    booked: list[int] = []

    class Between:
        def __getattr__(self, name: str) -> Any:
            return getattr(services().store, name)

        def get(self, kind: type[Any], **key: str) -> Any:
            found = services().store.get(kind, **key)
            self.asked(kind, key)
            return found

        def get_many(self, wanted: Sequence[tuple[type[Any], Any]]) -> list[Any]:
            found = services().store.get_many(wanted)
            for kind, key in wanted:
                self.asked(kind, key)
            return found

        def asked(self, kind: type[Any], key: Any) -> None:
            if kind is BalanceBooking and key["address"] == address.lower() and not booked:
                booked.append(side.balance_booker().check([address.lower()]))

    side.rescan(store=Between())
    assert booked == [1]
    side.deep("off")
    assert side.balance_booker().check([address.lower()]) == 0
    assert side.credited() - before == 1
    assert audit(services().store) == []


def test_too_little_is_the_operators_once(side: Side) -> None:
    store = services().store
    native = services().catalogue("live").native(side.slug)
    known = store.page(Coin, limit=500, network=native.network.split(":")[0] + ":").items
    coin = next(c for c in known if c.asset == native.asset)
    store.commit([Save(replace(coin, settings={**coin.settings, "minDepositAmount": "2"}, version=coin.version + 1))])
    store.forget_catalogue()
    try:
        before, addresses = side.credited(), [side.address(), side.address()]
        side.contract_pays(addresses[0])
        side.deep()
        side.contract_pays(addresses[1])
        side.deep("off")
        lowered = [address.lower() for address in addresses]
        assert [side.balance_booker().check(lowered) for _ in range(2)] == [1, 0]
        side.rescan()
        side.deep()
        assert side.balance_booker().check(lowered) == 0
        assert side.credited() == before
        found = [d for d in store.every(Deposit) if d.address in addresses]
        assert [(d.below_minimum, d.status) for d in found] == [(True, "confirmed")] * 2
        assert audit(store) == []
    finally:
        store.commit([Save(replace(coin, version=coin.version + 2))])
        store.forget_catalogue()


def test_tokens_are_no_balance_of_the_native_coin(side: Side) -> None:
    address = side.address()
    send_token(side.node.rpc, side.usdt, address, 5_000_000)
    side.poll("off")
    assert side.balance_booker().check([address.lower()]) == 0
    side.deep("off")
    assert side.balance_booker().check([address.lower()]) == 0


def test_an_address_of_several_networks_is_booked_on_each_for_itself(both: tuple[Side, Side], side: Side) -> None:
    other = both[1]
    before = [each.credited() for each in both]
    address = side.address(mode="cross")
    for each, ether in ((side, 1), (other, 4)):
        each.contract_pays(address, ether)
        each.deep("off")
    for each in both:
        assert [each.balance_booker().check([address.lower()]) for _ in range(2)] == [1, 0]
        each.rescan()
        each.deep()
        assert each.balance_booker().check([address.lower()]) == 0
    assert [each.credited() - was for each, was in zip(both, before, strict=True)] == [1, 4]
    assert audit(services().store) == []


def test_who_has_sent_something_itself_is_an_alarm_and_never_booked(side: Side, caplog: pytest.LogCaptureFixture) -> None:
    address = side.address()
    side.contract_pays(address, 2)
    side.node.rpc.call("anvil_impersonateAccount", [address])
    side.node.rpc.call("eth_sendTransaction", [{"from": address, "to": side.relay, "value": "0x1"}])
    side.deep("off")
    assert side.balance_booker().check([address.lower()]) == 0
    assert "and has sent something that we did not" in caplog.text


def test_many_balances_are_one_request_and_say_what_each_says_by_itself(side: Side) -> None:
    asked: list[str] = []

    class Counting(JsonRpc):
        refuses = False

        def batch(self, requests: Sequence[Request]) -> list[Any]:
            asked.extend(method for method, _ in requests)
            if self.refuses and requests[-1][0] == "eth_call":
                requests = [*requests[:-1], ("eth_call", [{"data": "0xfe"}, "latest"])]
            return super().batch(requests)

    rpc = Counting(side.node.url)
    reader = side.reader(rpc=rpc)
    rich = [f"0x{n:040x}" for n in range(0x1000, 0x1000 + 600)]
    for n in (0, 1, 499, 500, 599):
        side.node.rpc.call("anvil_setBalance", [rich[n], hex(n * ETHER + 7)])
    mine(side.node.rpc)
    tip = reader.tip()
    block_hash = reader.block_hash(tip)
    assert block_hash is not None
    together = reader.balances_at(rich, tip, block_hash)
    assert asked == ["eth_getBlockByNumber", "eth_call", "eth_call"]
    assert {n: units for n, units in enumerate(together) if units} == {n: n * ETHER + 7 for n in (0, 1, 499, 500, 599)}
    rpc.refuses = True
    assert reader.balances_at(rich[:9], tip, block_hash) == together[:9], "one by one where the program is refused"
    with pytest.raises(Unavailable):
        reader.balances_at(rich, tip, "0x" + "00" * 32)


def test_the_fees_of_a_block_to_an_address_of_ours_are_told(side: Side, caplog: pytest.LogCaptureFixture) -> None:
    """No transaction pays them. They are credited once the address' balance is compared."""
    address, before = side.address(), side.credited()
    usual = side.node.rpc.call("eth_getBlockByNumber", ["latest", False])["miner"]
    side.node.rpc.call("anvil_setCoinbase", [address])
    try:
        send_native(side.node.rpc, "0x" + "ab" * 20, ETHER)
    finally:
        side.node.rpc.call("anvil_setCoinbase", [usual])
    number = side.node.rpc.call("eth_blockNumber")
    side.poll()
    lines = [r.getMessage() for r in caplog.records if r.getMessage().startswith("ALARM") and address.lower() in r.getMessage()]
    assert [(f"live:{side.slug}" in line, f"the fees of block {int(number, 16)}" in line) for line in lines] == [(True, True)]
    side.deep()
    earned = int(side.node.rpc.call("eth_getBalance", [address, "latest"]), 16)
    assert earned > 0
    assert side.balance_booker().check([address.lower()]) == 1
    side.deep()
    assert side.credited() - before == pytest.approx(earned / ETHER)
    assert audit(services().store) == []
