"""Nodes that lag, lie, garble, refuse, hang and drop, before a real chain and the whole service (money rule 11).

With an honest node beside, nothing is lost and everything is credited exactly once. With the bad one alone nothing wrong is
credited, and when it is well again nothing was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from chalicelib import wiring
from chalicelib.chains.evm.logs import LogReader
from chalicelib.chains.evm.payer import EvmPayer
from chalicelib.chains.evm.reader import EvmReader
from chalicelib.chains.node_comparison import NodeReader
from chalicelib.chains.providers import Health, Node, Providers
from chalicelib.chains.quorum import QuorumReader
from chalicelib.chains.rpc import JsonRpc
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.catalogue.rates import Rate, Rates
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.ports.accounts import Payment
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.scanning.internal_transfers import InternalTransfers
from chalicelib.usecases.scanning.quorum import LargePayments
from chalicelib.usecases.scanning.rescans import Rescanner
from chalicelib.usecases.scanning.scanner import Scanner
from chalicelib.wiring import services
from infra.bootstrap import NodeInfo
from infra.local.aws import LocalAws
from infra.local.nodes import Anvil, deploy_token, dev_account, mine, mined
from infra.local.tokens import call_data, deploy
from infra.local.tokens import send as unmined
from tests.nodes.conftest import Key
from tests.nodes.sending import send, send_native, send_token
from tests.support.node_proxy import Fault, NodeProxy, lagging, refusing, without_logs_to
from tests.support.stack import Stack, first_stack

pytestmark = pytest.mark.nodes

ETHER = 10**18
CONFIRMATIONS = 10
PATIENCE = 0.3
"""Seconds that a reader waits for a node that hangs: it never answers, so that no load changes the outcome."""


@dataclass(frozen=True)
class Shop:
    """A live merchant on arbitrum, and a proxy before its node."""

    stack: Stack
    node: Anvil
    proxy: NodeProxy
    usdt: str
    relay: str

    @property
    def network(self) -> Network:
        return services().catalogue("live").networks["arbitrum"]

    def rpc(self, url: str) -> JsonRpc:
        """What speaks to a node as it is now: who made this while it hung gives up as soon when it is well."""
        return JsonRpc(url, timeout=PATIENCE if url == self.proxy.url and self.proxy.fault.hang else 30)

    def reader(self, *urls: str, network: Network | None = None, audited: float = 0.0, compared: float = 0.0) -> ChainReader:
        network = network or self.network
        readers = [
            EvmReader(network, rpc, LogReader("arbitrum", rpc, audited, lambda: 0.0 if audited else 1.0))
            for rpc in (self.rpc(url) for url in urls)
        ]
        if len(readers) == 1:
            return readers[0]
        seen = [NodeReader(reader, Health(number)) for number, reader in enumerate(readers, start=1)]
        return QuorumReader(network, seen, lambda: 1.0 - compared)

    def scanner(self, reader: ChainReader, network: Network | None = None) -> Scanner:
        network = network or self.network
        wired = services()
        return Scanner(NetworkContext(network, reader, wired.store, wired.rules, wired.clock_of("live")), wired.deposits("live"))

    def invoice(self, coin: str, amount: str) -> Any:
        made = self.stack.call(
            "POST", "/v1/invoices", self.stack.keys["client_live"], {"currency": coin, "amount": amount, "network": "arbitrum"}
        )
        assert made.status == 201, made.body
        return made.json

    def status(self, made: Any) -> str:
        found = self.stack.call("GET", "/v1/invoices", self.stack.keys["client_live"], query={"id": made["id"]})
        return str(found.json["status"])

    def available(self) -> dict[str, str]:
        found = self.stack.call("GET", "/v1/balances", self.stack.keys["client_live"])
        # A coin that the merchant never had is not listed: the same as nothing of it.
        return {"eth": "0", "usdt": "0"} | {entry["coin"]: entry["available"] for entry in found.json["data"]}

    def paid(self) -> tuple[Any, Any]:
        """Two invoices that a stranger has paid in a block each: 2 ETH and 30 USDT."""
        ether, token = self.invoice("eth", "2"), self.invoice("usdt", "30")
        send_native(self.node.rpc, ether["address"], 2 * ETHER)
        send_token(self.node.rpc, self.usdt, token["address"], 30_000_000)
        return ether, token

    def tip(self) -> int:
        return int(self.node.rpc.call("eth_blockNumber"), 16)


@pytest.fixture(scope="module")
def started(running_aws: LocalAws) -> Iterator[Shop]:
    with running_aws.active(), Anvil(42161) as node, NodeProxy(node.url) as proxy:
        usdt = deploy_token(node.rpc, "USDT", "Tether USD", 6, returns_nothing=True)
        stack = first_stack(running_aws, {"arbitrum": NodeInfo(node.url, {"usdt": usdt})})
        shop = Shop(stack, node, proxy, usdt, deploy(node.rpc, "Relay"))
        shop.scanner(shop.reader(node.url)).poll(lambda: True)
        yield shop


@pytest.fixture
def shop(started: Shop) -> Iterator[Shop]:
    """Everything credited that was paid before; the proxy honest."""
    started.proxy.heal()
    started.proxy.asked.clear()
    mine(started.node.rpc, CONFIRMATIONS)
    started.scanner(started.reader(started.node.url)).poll(lambda: True)
    yield started
    started.proxy.heal()


def polls(scanner: Scanner, times: int = 3) -> int:
    """Poll so many times, as the clock would; how many of them failed."""
    failed = 0
    for _ in range(times):
        try:
            scanner.poll(lambda: True)
        except Unavailable:
            failed += 1
    return failed


def grown(before: dict[str, str], after: dict[str, str]) -> tuple[int, int]:
    """By how many ETH and USDT."""
    return int(after.get("eth", "0")) - int(before.get("eth", "0")), int(after.get("usdt", "0")) - int(before.get("usdt", "0"))


FAULTS: dict[str, Callable[[Shop, str], Fault]] = {
    "lags": lambda shop, _: lagging(8, shop.tip),
    "lags beyond the payment": lambda shop, _: lagging(15, shop.tip),
    "names a tip that is not there": lambda shop, _: Fault(
        lambda method, params, result: hex(shop.tip() + 1000) if method == "eth_blockNumber" else result
    ),
    "leaves one log out": lambda shop, address: without_logs_to(address),
    "leaves all logs out": lambda shop, _: Fault(lambda method, params, result: [] if method == "eth_getLogs" else result),
    "answers garbage": lambda shop, _: Fault(raw=b"<html>502 Bad gateway</html>", status=502),
    "answers half an answer": lambda shop, _: Fault(raw=b'[{"jsonrpc": "2.0", "id": 0, "resu'),
    "hangs": lambda shop, _: Fault(hang=True),
    "drops the connection": lambda shop, _: Fault(drop=True),
    "limits the rate": lambda shop, _: Fault(
        raw=b'{"jsonrpc":"2.0","id":null,"error":{"code":429,"message":"slow down"}}', status=429
    ),
    "refuses logs": lambda shop, _: refusing("eth_getLogs", "eth_getBlockReceipts"),
    "has no receipts": lambda shop, _: Fault(
        lambda method, params, result: None if method == "eth_getTransactionReceipt" else result
    ),
    "says that all failed": lambda shop, _: Fault(
        lambda method, params, result: result | {"status": "0x0"} if method == "eth_getTransactionReceipt" and result else result
    ),
    "is another chain": lambda shop, _: Fault(lambda method, params, result: "0x38" if method == "eth_chainId" else result),
}


UNPROVEN = "says that all failed"
"""The one fault that neither the node itself nor one other node can settle: two words about the same receipt."""


ALONE = [name for name in FAULTS if name != UNPROVEN]
ALONE_IN_A_CHECK = ALONE[::3]


# The sweep: a fault that a check tries of a node alone stays there, and every other one stays here.
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.sweep] * (n in ALONE_IN_A_CHECK)) for n in FAULTS])
def test_beside_an_honest_node_nothing_is_lost_and_all_is_credited_once(
    shop: Shop, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = shop.available()
    ether, token = shop.paid()
    mine(shop.node.rpc, CONFIRMATIONS)
    shop.proxy.fault = FAULTS[name](shop, token["address"])
    reader = shop.reader(shop.proxy.url, shop.node.url, compared=1.0)
    polls(shop.scanner(reader))
    if name == UNPROVEN:
        # It holds the payment up, and is told by an alarm; the operator takes it out.
        assert (shop.status(ether), shop.status(token)) == ("pending", "pending")
        assert shop.available() == before
        assert "ALARM live:arbitrum: nodes contradict each other" in caplog.text
        polls(shop.scanner(shop.reader(shop.node.url)))
    assert (shop.status(ether), shop.status(token)) == ("completed", "completed")
    assert grown(before, shop.available()) == (2, 30)
    shop.proxy.heal()
    polls(shop.scanner(reader), 1)
    assert grown(before, shop.available()) == (2, 30)


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.sweep] * (n not in ALONE_IN_A_CHECK)) for n in ALONE])
def test_alone_it_credits_nothing_wrong_and_loses_nothing_once_it_is_well(shop: Shop, name: str) -> None:
    """With every block compared with its receipts: alone, a node is caught at its own contradictions only."""
    before = shop.available()
    ether, token = shop.paid()
    mine(shop.node.rpc, CONFIRMATIONS - 5)
    shop.proxy.fault = FAULTS[name](shop, token["address"])
    polls(shop.scanner(shop.reader(shop.proxy.url, audited=1.0)), 2)
    assert shop.available() == before, "not deep enough yet"
    shop.proxy.heal()
    mine(shop.node.rpc, 5)
    assert polls(shop.scanner(shop.reader(shop.proxy.url, audited=1.0))) == 0
    assert (shop.status(ether), shop.status(token)) == ("completed", "completed")
    assert grown(before, shop.available()) == (2, 30)


def test_what_a_single_node_says_has_failed_is_found_by_a_rescan(shop: Shop) -> None:
    """Nothing contradicts one node that says so of every receipt: nothing is credited, and an operator has it looked at again."""
    before = shop.available()
    first = shop.tip() + 1
    ether, token = shop.paid()
    mine(shop.node.rpc, CONFIRMATIONS)
    shop.proxy.fault = FAULTS[UNPROVEN](shop, "")
    assert polls(shop.scanner(shop.reader(shop.proxy.url, audited=1.0))) == 0
    shop.proxy.heal()
    scanner = shop.scanner(shop.reader(shop.proxy.url, audited=1.0))
    assert polls(scanner) == 0
    assert (shop.status(ether), shop.status(token)) == ("pending", "pending")
    assert shop.available() == before
    asked = {"fromBlock": first, "toBlock": shop.tip()}
    made = shop.stack.call("POST", "/v1/networks/arbitrum/rescan", shop.stack.keys["admin_live"], asked)
    assert made.status == 201, made.body
    context = replace(services().context(shop.network), reader=shop.reader(shop.proxy.url))
    Rescanner(context, scanner.recorder).work(lambda: True)
    assert polls(scanner) == 0
    assert (shop.status(ether), shop.status(token)) == ("completed", "completed")
    assert grown(before, shop.available()) == (2, 30)


def test_one_that_hangs_costs_one_timeout_and_is_left_alone(shop: Shop) -> None:
    shop.proxy.fault = Fault(hang=True)
    reader = shop.reader(shop.proxy.url, shop.node.url)
    polls(shop.scanner(reader))
    assert len(shop.proxy.asked) == 1


def test_a_forged_amount_is_credited_by_nobody_where_agreement_is_asked(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    """The node tells ten times the amount, in the block and by the transaction's hash. No receipt tells an amount of ether."""
    before = shop.available()
    made = shop.invoice("eth", "2")
    send_native(shop.node.rpc, made["address"], 2 * ETHER)
    mine(shop.node.rpc, CONFIRMATIONS)

    def forge(method: str, params: Sequence[Any], result: Any) -> Any:
        rows = [result] if method == "eth_getTransactionByHash" else (result or {}).get("transactions", []) if params else []
        for row in rows if method in ("eth_getTransactionByHash", "eth_getBlockByNumber") else []:
            if isinstance(row, dict) and row.get("value") == hex(2 * ETHER):
                row["value"] = hex(20 * ETHER)
        return result

    shop.proxy.fault = Fault(forge)
    agreeing = replace(shop.network, agreement_usd=0, more_rpc_urls=(shop.node.url,))
    reader = shop.reader(shop.proxy.url, shop.node.url, network=agreeing)
    assert polls(shop.scanner(reader, agreeing)) == 3, "one of two lies, and nobody can tell which: that is an operator's matter"
    assert (shop.status(made), shop.available()) == ("pending", before)
    assert "ALARM live:arbitrum: nodes contradict each other" in caplog.text
    shop.proxy.heal()
    polls(shop.scanner(shop.reader(shop.proxy.url, shop.node.url, network=agreeing), agreeing))
    assert shop.status(made) == "completed"
    assert grown(before, shop.available()) == (2, 0)


def in_one_block(shop: Shop, *addresses: str) -> None:
    """30 USDT to each."""
    send_token(shop.node.rpc, shop.usdt, dev_account(shop.node.rpc), 30_000_000 * len(addresses))
    shop.node.rpc.call("evm_setAutomine", [False])
    try:
        for address in addresses:
            unmined(shop.node.rpc, shop.usdt, data=call_data("transfer(address,uint256)", address, 30_000_000), gas=200_000)
        mine(shop.node.rpc)
    finally:
        shop.node.rpc.call("evm_setAutomine", [True])


@pytest.mark.parametrize("at_once", [True, False], ids=["all receipts at once", "one by one"])
def test_the_block_of_a_large_payment_is_always_compared_with_its_receipts(
    shop: Shop, caplog: pytest.LogCaptureFixture, at_once: bool
) -> None:
    """Of one node, which is read by chance alone otherwise. Nobody knows a rate, so every payment is large."""
    before = shop.available()
    made = shop.invoice("usdt", "30")
    send_token(shop.node.rpc, shop.usdt, made["address"], 30_000_000)
    reader = shop.reader(shop.proxy.url)
    polls(shop.scanner(reader), 1)
    mine(shop.node.rpc, CONFIRMATIONS)
    lie, no_receipts = without_logs_to(made["address"]), refusing("eth_getBlockReceipts", code=-32601, message="no such method")

    def change(method: str, params: list[Any], result: Any) -> Any:
        return lie.change(method, params, result if at_once else no_receipts.change(method, params, result))

    shop.proxy.fault = Fault(change)
    assert polls(shop.scanner(reader)) == 0
    assert (shop.status(made), grown(before, shop.available())) == ("confirming", (0, 0))
    assert "ALARM arbitrum: the node tells 0 transfers of block" in caplog.text
    shop.proxy.heal()
    assert polls(shop.scanner(reader)) == 0
    assert (shop.status(made), grown(before, shop.available())) == ("completed", (0, 30))


def test_what_was_left_out_beside_a_large_payment_is_told(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    before = shop.available()
    made, lost = shop.invoice("usdt", "30"), shop.invoice("usdt", "30")
    in_one_block(shop, made["address"], lost["address"])
    shop.proxy.fault = without_logs_to(lost["address"])
    reader = shop.reader(shop.proxy.url)
    assert polls(shop.scanner(reader), 1) == 0
    shop.proxy.heal()
    mine(shop.node.rpc, CONFIRMATIONS)
    assert polls(shop.scanner(reader), 1) == 0
    assert (shop.status(made), shop.status(lost)) == ("completed", "pending")
    assert "ALARM live:arbitrum: 1 payments to us in block" in caplog.text
    tip = shop.tip()
    scanner = shop.scanner(reader)
    scanner.recorder.record(reader.blocks(tip - CONFIRMATIONS, tip, {shop.usdt.lower()}), scanner.start().epoch)
    assert polls(scanner, 1) == 0
    assert (shop.status(lost), grown(before, shop.available())) == ("completed", (0, 60))


def test_below_the_value_no_receipts_of_the_block_are_read(shop: Shop) -> None:
    wired = services()
    rates = Rates([Rate("usdt", "USD", "1", wired.clock_of("live").now_ms(), "somebody")])
    made = shop.invoice("usdt", "30")
    send_token(shop.node.rpc, shop.usdt, made["address"], 30_000_000)
    polls(shop.scanner(shop.reader(shop.node.url)), 1)
    (deposit,) = (d for d in wired.store.every(Deposit) if d.address == made["address"])
    reader = shop.reader(shop.proxy.url)
    for network, asked in ((shop.network, 0), (replace(shop.network, audit_usd=30), 0), (replace(shop.network, audit_usd=29), 1)):
        large = LargePayments(replace(wired.context(network), reader=reader), lambda _: rates)
        assert large.may_credit(deposit)
        assert shop.proxy.asked.count("eth_getBlockReceipts") == asked


def test_agreement_waits_for_the_second_node(shop: Shop) -> None:
    before = shop.available()
    ether, token = shop.paid()
    mine(shop.node.rpc, CONFIRMATIONS)
    agreeing = replace(shop.network, agreement_usd=100, more_rpc_urls=(shop.proxy.url,))
    shop.proxy.fault = Fault(drop=True)
    assert polls(shop.scanner(shop.reader(shop.node.url, shop.proxy.url, network=agreeing), agreeing), 2) == 0
    # There is no rate, so even 30 USDT count as much. Seen they are.
    assert (shop.status(ether), shop.status(token)) == ("confirming", "confirming")
    assert shop.available() == before
    alone = replace(shop.network, agreement_usd=100)
    polls(shop.scanner(shop.reader(shop.node.url), alone))
    assert shop.available() == before, "one node can not agree with itself"
    shop.proxy.heal()
    polls(shop.scanner(shop.reader(shop.node.url, shop.proxy.url, network=agreeing), agreeing), 1)
    assert (shop.status(ether), shop.status(token)) == ("completed", "completed")
    assert grown(before, shop.available()) == (2, 30)


def test_a_second_node_that_contradicts_holds_the_payment_up(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    before = shop.available()
    ether, token = shop.paid()
    agreeing = replace(shop.network, agreement_usd=0, more_rpc_urls=(shop.proxy.url,))
    scanner = shop.scanner(shop.reader(shop.node.url, shop.proxy.url, network=agreeing), agreeing)
    polls(scanner, 1)
    mine(shop.node.rpc, CONFIRMATIONS)
    shop.proxy.fault = FAULTS["says that all failed"](shop, "")
    assert polls(scanner, 2) == 0
    assert shop.available() == before
    assert "ALARM live:arbitrum: node 2 says otherwise of block" in caplog.text
    shop.proxy.heal()
    polls(scanner, 1)
    assert (shop.status(ether), shop.status(token)) == ("completed", "completed")


def test_finality_of_large_payments_is_waited_for(shop: Shop) -> None:
    """anvil calls the block 64 below the newest finalized, and the one 32 below it safe."""
    made = shop.invoice("eth", "2")
    send_native(shop.node.rpc, made["address"], 2 * ETHER)
    mine(shop.node.rpc, 31)
    careful = replace(shop.network, finality_tag="safe", finality_usd=1000)
    reader = shop.reader(shop.node.url)
    polls(shop.scanner(reader, careful), 1)
    assert shop.status(made) == "confirming"
    mine(shop.node.rpc, 1)
    polls(shop.scanner(reader, replace(careful, finality_tag="finalized")), 1)
    assert shop.status(made) == "confirming"
    polls(shop.scanner(reader, careful), 1)
    assert shop.status(made) == "completed"


def test_large_answers_are_asked_for_in_parts(shop: Shop) -> None:
    """A node that takes two requests at once, and refuses logs of blocks: they come out of the receipts."""
    before = shop.available()
    _, token = shop.paid()
    mine(shop.node.rpc, CONFIRMATIONS)
    shop.proxy.fault = replace(refusing("eth_getLogs"), most=2)
    assert polls(shop.scanner(shop.reader(shop.proxy.url)), 1) == 0
    assert (shop.status(token), grown(before, shop.available())) == ("completed", (2, 30))
    assert "eth_getBlockReceipts" in shop.proxy.asked


def test_what_a_contract_sends_is_credited(shop: Shop) -> None:
    made = shop.invoice("eth", "3")
    before = shop.available()
    send(shop.node.rpc, shop.relay, call_data("forward(address)", made["address"]), value=3 * ETHER, gas=200_000)
    mine(shop.node.rpc, CONFIRMATIONS)
    scanner = shop.scanner(shop.reader(shop.proxy.url, shop.node.url, compared=1.0))
    assert polls(scanner) == 0
    assert (shop.status(made), grown(before, shop.available())) == ("completed", (3, 0))


def forwarded(shop: Shop, made: Any, ether: int) -> str:
    """A contract pays, which no block and no log tells."""
    return send(shop.node.rpc, shop.relay, call_data("forward(address)", made["address"]), value=ether * ETHER, gas=200_000)


def balance_booker(shop: Shop, reader: ChainReader, network: Network) -> InternalTransfers:
    wired = services()
    return InternalTransfers(replace(wired.context(network), reader=reader), shop.scanner(reader, network).recorder)


def reconciled(shop: Shop, reader: ChainReader, network: Network) -> int:
    """All open invoices looked at, a page in each of some polls; how much was booked."""
    return sum(balance_booker(shop, reader, network).work(lambda: True) for _ in range(4))


def untraced(shop: Shop, *urls: str) -> tuple[Network, ChainReader]:
    network = replace(shop.network, tracing="off")
    return network, shop.reader(*urls, network=network)


def test_what_no_node_can_trace_is_found_in_the_balance_and_booked_once(shop: Shop) -> None:
    before = shop.available()
    made = shop.invoice("eth", "3")
    forwarded(shop, made, 1)
    send_native(shop.node.rpc, made["address"], ETHER)
    network, reader = untraced(shop, shop.node.url)
    scanner = shop.scanner(reader, network)
    polls(scanner, 1)
    assert reconciled(shop, reader, network) == 0, "not deep enough"
    mine(shop.node.rpc, CONFIRMATIONS)
    scanner.start()
    assert polls(scanner, 1) == 0
    assert grown(before, shop.available()) == (1, 0)
    assert reconciled(shop, reader, network) == 1
    assert shop.status(made) == "partial"
    assert reconciled(shop, reader, network) == 0, "pending"
    polls(scanner, 1)
    assert grown(before, shop.available()) == (2, 0)
    forwarded(shop, made, 1)
    mine(shop.node.rpc, CONFIRMATIONS)
    polls(scanner, 1)
    assert reconciled(shop, reader, network) == 1
    polls(scanner, 1)
    assert (shop.status(made), grown(before, shop.available())) == ("completed", (3, 0))
    # Read again with a node that traces: what was booked is not credited a second time.
    tip = shop.tip()
    tracing = shop.scanner(shop.reader(shop.node.url))
    cursor = tracing.start()
    assert tracing.recorder.record(shop.reader(shop.node.url).blocks(tip - 30, tip, ()), cursor.epoch).blocks == 31
    polls(tracing, 2)
    assert grown(before, shop.available()) == (3, 0)
    assert audit(services().store) == []


def test_a_booking_falls_out_with_its_block(shop: Shop) -> None:
    before = shop.available()
    made = shop.invoice("eth", "1")
    forwarded(shop, made, 1)
    mine(shop.node.rpc, CONFIRMATIONS + 2)
    network, reader = untraced(shop, shop.node.url)
    scanner = shop.scanner(reader, network)
    polls(scanner, 1)
    assert reconciled(shop, reader, network) == 1
    polls(scanner, 1)
    assert shop.status(made) == "completed"
    elsewhere = {"from": shop.node.rpc.call("eth_accounts")[1], "to": shop.relay, "value": "0x1"}
    shop.node.rpc.call("anvil_reorg", [CONFIRMATIONS + 4, [[elsewhere, 0]]])
    mine(shop.node.rpc, CONFIRMATIONS)
    polls(scanner, 2)
    assert shop.available() == before
    assert reconciled(shop, reader, network) == 0
    forwarded(shop, made, 1)
    mine(shop.node.rpc, CONFIRMATIONS)
    polls(scanner, 1)
    assert reconciled(shop, reader, network) == 1
    polls(scanner, 1)
    assert (shop.status(made), grown(before, shop.available())) == ("completed", (1, 0))
    assert audit(services().store) == []


def test_an_operator_has_every_address_looked_at(shop: Shop) -> None:
    before = shop.available()
    answer = shop.stack.call(
        "POST", "/v1/addresses", shop.stack.keys["client_live"], {"network": "arbitrum", "coin": "eth", "type": "user"}
    )
    assert answer.status == 201, answer.body
    forwarded(shop, answer.json.get("data", answer.json), 4)
    mine(shop.node.rpc, CONFIRMATIONS)
    network, reader = untraced(shop, shop.node.url)
    scanner = shop.scanner(reader, network)
    polls(scanner, 1)
    assert reconciled(shop, reader, network) == 0, "it is no invoice's"
    assert balance_booker(shop, reader, network).everything() == 1
    polls(scanner, 1)
    assert grown(before, shop.available()) == (4, 0)


def test_an_operators_command_books_all_that_a_node_which_traces_has_left_out(shop: Shop) -> None:
    """After blocks that could not be traced in time: it is asked because something is missing, whatever the node can do now."""
    before = shop.available()
    made = [shop.invoice("eth", "1") for _ in range(3)]
    for invoice in made:
        forwarded(shop, invoice, 1)
    mine(shop.node.rpc, CONFIRMATIONS)
    network, blind = untraced(shop, shop.node.url)
    polls(shop.scanner(blind, network), 1)
    # A process' first look, and that of one that has traced already: both book what is missing.
    fresh, tracing = shop.reader(shop.node.url), shop.reader(shop.node.url)
    tracing.blocks(shop.tip() - CONFIRMATIONS - 2, shop.tip(), ())
    assert isinstance(tracing, EvmReader)
    assert tracing.traces is True
    assert balance_booker(shop, tracing, shop.network).check([made[0]["address"].lower()]) == 1
    assert balance_booker(shop, fresh, shop.network).everything() == 2
    polls(shop.scanner(tracing), 1)
    assert [shop.status(invoice) for invoice in made] == ["completed"] * 3
    assert grown(before, shop.available()) == (3, 0)


def test_a_balance_needs_two_nodes_where_there_are_two(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    made = shop.invoice("eth", "1")
    mine(shop.node.rpc, CONFIRMATIONS)
    network, reader = untraced(shop, shop.proxy.url, shop.node.url)
    polls(shop.scanner(reader, network), 1)
    shop.proxy.fault = Fault(
        lambda method, params, result: hex(9 * ETHER) if method == "eth_getBalance" else None if method == "eth_call" else result
    )
    with pytest.raises(Unavailable):
        reconciled(shop, reader, network)
    assert "ALARM live:arbitrum: two nodes tell different balances" in caplog.text
    assert shop.status(made) == "pending"


@pytest.mark.parametrize("tracing", ["auto", "on"])
def test_polls_compare_balances_where_nodes_trace_too(shop: Shop, tracing: Any) -> None:
    """A transaction that could not be traced is left out of its block, whatever the setting."""
    before = shop.available()
    made = shop.invoice("eth", "1")
    forwarded(shop, made, 1)
    mine(shop.node.rpc, CONFIRMATIONS)
    network, blind = untraced(shop, shop.node.url)
    polls(shop.scanner(blind, network), 1)
    assert reconciled(shop, shop.reader(shop.node.url), replace(network, tracing=tracing)) == 1
    polls(shop.scanner(blind, network), 1)
    assert (shop.status(made), grown(before, shop.available())) == ("completed", (1, 0))


def test_a_payment_is_handed_to_every_node_that_is_well(shop: Shop) -> None:
    payer = Key()
    send_native(shop.node.rpc, payer.address, ETHER)
    both = Providers([Node(shop.rpc(url), Health(n)) for n, url in enumerate((shop.proxy.url, shop.node.url), start=1)])
    made = EvmPayer(shop.network, both)
    unsigned = made.prepare(Payment(payer.address, Key().address, None, 5, 0))
    signed = made.assemble(unsigned, payer.sign(made.digest(unsigned)))
    # The second one knows it already, since both are the same chain: that is no error. Nor is sending it again.
    made.broadcast(signed.raw)
    made.broadcast(signed.raw)
    assert shop.proxy.asked.count("eth_sendRawTransaction") == 2
    mined(shop.node.rpc, signed.txid)
    shop.proxy.fault = Fault(drop=True)
    assert made.next_nonce(payer.address) == 1
    made.broadcast(signed.raw)


def test_configured_over_the_api_and_polled_by_the_clock(shop: Shop) -> None:
    admin = shop.stack.keys["admin_live"]
    changed = shop.stack.call(
        "PUT", "/v1/networks", admin,
        {"network": "arbitrum", "rpcUrls": [shop.proxy.url, shop.node.url], "agreementUsd": 10, "confirmationBlocks": 3},
    )  # fmt: skip
    assert changed.status == 200, changed.body
    wiring.forget()
    try:
        ether, token = shop.paid()
        mine(shop.node.rpc, 2)
        shop.proxy.fault = Fault(raw=b"nonsense")
        shop.stack.drain(only=("poll_arbitrum", "relay"))
        assert (shop.status(ether), shop.status(token)) == ("confirming", "confirming")
        shop.proxy.heal()
        wiring.forget()
        shop.stack.drain(only=("poll_arbitrum", "relay"))
        assert (shop.status(ether), shop.status(token)) == ("completed", "completed"), "three confirmations, two nodes"
        assert audit(services().store) == []
    finally:
        restored = {"network": "arbitrum", "rpcUrls": [shop.node.url], "agreementUsd": None, "confirmationBlocks": CONFIRMATIONS}
        assert shop.stack.call("PUT", "/v1/networks", admin, restored).status == 200
        wiring.forget()
