"""Steps on live networks of accounts: a token's payment on an ethereum whose blocks are made here, and what a payer's wallet on
Tron asks for. Blocks, logs, receipts and traces are read from a node, as they are from anybody's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from coincurve import PrivateKey

from chalicelib.encoding.public_keys import tron_address
from chalicelib.wiring import services
from tests.bench.walk import SETTLED, Walk
from tests.support.heavy_node import TOKEN
from tests.support.traced_blocks import TracedBlocks

USDT_UNITS = 10**6
LONGEST = 2_000
"""Blocks of the chain: what all walks mine."""
FEES = {
    "eth_getBalance": b'"0x0"',
    "eth_call": b'"0x%064x"' % 0,
    "eth_getCode": b'"0x"',
    "eth_getTransactionCount": b'"0x0"',
    "eth_maxPriorityFeePerGas": b'"0x3b9aca00"',
    "eth_gasPrice": b'"0x77359400"',
    "eth_estimateGas": b'"0x5208"',
}
"""Of wallets that have nothing: what a poll asks beside blocks."""
PAYER = PrivateKey(bytes([7]) * 32)


class TokenChain(TracedBlocks):
    """Ethereum with a transaction in each block, which a node can trace, and with the token's payments that are asked for."""

    def __init__(self) -> None:
        super().__init__(LONGEST, transactions=1, chain_id=1)
        self.logs, self.blocks = 1, 0
        self.payments: dict[int, tuple[str, int]] = {}
        self.times: dict[int, int] = {0: services().clock.now_ms() // 1_000}
        self._bloom_of = {False: self._bloom, True: "0x" + "f" * 512}

    def told(self, method: str, params: Any) -> bytes:
        if method in FEES:
            return FEES[method]
        if method == "eth_getBlockByNumber" and params[0] in ("latest", "pending"):
            params = [hex(self.blocks), *params[1:]]
        return super().told(method, params)

    def mine(self) -> None:
        """A block of now, by the service's clock."""
        self.blocks += 1
        self.times[self.blocks] = services().clock.now_ms() // 1_000

    def pay(self, address: str, units: int) -> None:
        """In the next block."""
        self.payments[self.blocks + 1] = (address, units)

    def _block(self, number: int, full: bool) -> bytes:
        self._bloom = self._bloom_of[number in self.payments]
        text = super()._block(number, full)
        before, _, rest = text.partition(b'"timestamp":"')
        return before + b'"baseFeePerGas":"0x3b9aca00","timestamp":"0x%x' % self.times[number] + rest[rest.index(b'"') :]

    def _logs_of(self, number: int) -> list[bytes]:
        if number not in self.payments:
            return []
        return [self._row(number, self._txid(number, 0), 0, *self.payments[number])]


@dataclass
class Ethereum(Walk):
    merchant: str = "client_live"
    coin: str = "usdt"
    whole: str = "30"
    node: TokenChain | None = None

    @property
    def chain(self) -> TokenChain:
        assert self.node is not None
        return self.node

    def mine(self, blocks: int) -> None:
        for _ in range(blocks):
            self.chain.mine()

    def pay(self, address: str, coin: str, amount: str) -> None:
        self.chain.pay(address, round(float(amount) * USDT_UNITS))


def begun(walk: Ethereum) -> None:
    """What both walks find: blocks as old as a cursor remembers, and no simulated ethereum beside this one."""
    walk.ask("PUT", "/networks", {"network": walk.network, "status": "inactive"}, "admin_test")
    walk.mine(SETTLED)
    walk.idle()


def token_paid(walk: Ethereum) -> None:
    """A token's payment from the invoice to its credit."""
    usdt = services().catalogue("live").coin("ethereum", "usdt")
    assert usdt.contract is not None and usdt.contract.lower() == TOKEN
    walk.poll("nothing is new, live")
    walk.mine(1)
    walk.poll("an empty block, live")
    made = walk.invoice(" in a token, live", "usdt", walk.amount())
    walk.pay(made["address"], "usdt", walk.amount())
    walk.mine(1)
    walk.poll("a token's payment is detected, live")
    walk.told("a token's payment is detected, live")
    walk.mine(walk.confirmations)
    walk.poll("a token's payment is confirmed, live")
    walk.told("a token's payment is confirmed, live")
    assert walk.ask("GET", f"/invoices?id={made['id']}")["status"] == "completed"
    walk.mine(SETTLED)
    walk.idle()


def wallet_paid(walk: Walk) -> None:
    """A payer's wallet on Tron signs what we build, and we send it."""
    payer = tron_address(PAYER.public_key.format(compressed=False)[1:])
    walk.pay(payer, walk.coin, walk.amount("3"))
    walk.mine(walk.confirmations)
    made = walk.ask("POST", "/invoices", {"currency": walk.coin, "network": walk.network, "amount": walk.amount()})
    path = f"/v1/pay/{made['id']}/transaction"

    def asked(method: str, body: Any) -> Any:
        answer = walk.stack.call(method, path, json=body)
        if answer.status != 200:
            raise AssertionError(answer.body)
        return answer.json

    built = walk.step("a payer's wallet asks what to sign", lambda: asked("POST", {"from": payer}))["transaction"]
    signature = PAYER.sign_recoverable(bytes.fromhex(built["txID"]), hasher=None).hex()
    sent = {"raw_data_hex": built["raw_data_hex"], "signature": signature}
    walk.step("a payer's wallet sends what it signed", lambda: asked("PUT", sent))
    walk.mine(walk.confirmations)
    walk.idle()
    assert walk.ask("GET", f"/invoices?id={made['id']}")["status"] == "completed"
