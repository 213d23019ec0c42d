"""A live merchant on Tron with the operator, whose node is the Tron test node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from chalicelib.chains.tron.sending import AFTERWARDS_MS, LIFE_MS
from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.ids import NetworkId
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Withdrawal
from chalicelib.usecases.ports.changes import Save
from chalicelib.wiring import forget, services
from infra.bootstrap import NodeInfo
from infra.local.aws import LocalAws
from infra.local.tron.process import TronNode
from tests.support.shop import Kms
from tests.support.stack import Stack, first_stack
from tests.support.tron_chain import SOLID, USDT

TRON = NetworkId("live:tron")
HANDLERS = ("poll_tron", "relay", "payout")
CONFIRMATIONS = 19
EXPIRED_SECONDS = (LIFE_MS + AFTERWARDS_MS) // 1000 + 30


class Shop:
    """A live merchant on Tron, and the operator."""

    def __init__(self, stack: Stack, node: TronNode) -> None:
        self.stack, self.node = stack, node
        self.client, self.admin = stack.keys["client_live"], stack.keys["admin_live"]

    def run(self, *more: str) -> None:
        done = self.stack.drain(only=(*HANDLERS, *more))
        assert done.settled, done

    def confirm(self) -> None:
        self.node.mine(CONFIRMATIONS)
        self.run()

    def call(self, method: str, path: str, key: str | None = None, **options: Any) -> Any:
        answer = self.stack.call(method, path, key or self.client, **options)
        assert answer.status in (200, 201), answer.body
        return answer.json

    def paid(self, amount: int, coin: str = "trx") -> str:
        """The address of an invoice that is paid and credited."""
        made = self.call("POST", "/v1/invoices", json={"currency": coin, "amount": str(amount), "network": "tron"})
        self.node.faucet(made["address"], amount, coin.upper())
        self.confirm()
        return str(made["address"])

    def withdraw(self, to: str, amount: int, coin: str = "trx") -> str:
        """Order a payment; its id."""
        body = {"network": "tron", "coin": coin, "address": to, "amount": str(amount)}
        return str(self.call("POST", "/v1/withdraws", json=body)["id"])

    def order(self, withdrawal: str) -> PaymentOrder:
        return next(order for order in services().store.every(PaymentOrder) if order.withdrawal_id == withdrawal)

    def unsigned(self, kms: Kms, to: str, amount: int, coin: str) -> PaymentOrder:
        """The order of a new payment that is built and not signed: KMS was away meanwhile."""
        kms.away = True
        withdrawal = self.withdraw(to, amount, coin)
        self.run()
        kms.away = False
        kms.calls.clear()
        return self.order(withdrawal)

    def hot(self) -> str:
        wallet = services().store.get(Wallet, network=TRON, role="hot")
        assert wallet is not None and wallet.custody == "kms"
        return wallet.address

    def booked(self, coin: str = "trx") -> int:
        """Units that the ledger has in the hot wallet."""
        asset = services().catalogue("live").coins["tron", coin].asset
        found = services().store.get(WalletBalance, network=TRON, address=self.hot(), asset=asset)
        return 0 if found is None else found.units

    def on_chain(self, address: str, contract: str | None = None) -> int:
        return services().reader(services().catalogue("live").networks["tron"]).balance(address, contract)

    def stake(self, amount: str, resource: str = "ENERGY") -> Any:
        return self.call("POST", "/v1/networks/tron/stake", self.admin, json={"amount": amount, "resource": resource})

    def staked(self, made: Any) -> Stake:
        """The record of an answer to `stake`, whose newest transaction is still the one that it names."""
        return next(stake for stake in services().store.every(Stake) if stake.txid == made["transactionId"])

    def stakes(self) -> Any:
        return self.call("GET", "/v1/networks/tron/stake", self.admin)

    def frozen(self, resource: str) -> int:
        """Sun that the chain has frozen of the hot wallet."""
        account = self.node.call("wallet/getaccount", address=self.hot(), visible=True)
        kind = {"BANDWIDTH": None}.get(resource, resource)
        return sum(entry.get("amount", 0) for entry in account.get("frozenV2", ()) if entry.get("type") == kind)

    def expire(self) -> None:
        """All that is signed until now and in no block can never be mined any more, as deep as proves it, and the clocks agree."""
        self.node.call("dev/time", shift_seconds=EXPIRED_SECONDS)
        services().clock.shift_ms += EXPIRED_SECONDS * 1000
        self.node.mine(SOLID + services().catalogue("live").networks["tron"].reorg_depth)


def put(record: Any) -> None:
    """Store `record` over what is there, as somebody with rights on the table can."""
    store = services().store
    keys = {"network": record.network} if isinstance(record, Move | Stake) else {}
    keys |= {"tenant": record.tenant} if isinstance(record, Withdrawal) else {}
    now = store.get(type(record), id=record.id, **keys)
    assert now is not None
    store.commit([Save(replace(record, version=now.version + 1))])


@contextmanager
def staking_shop(running_aws: LocalAws) -> Iterator[Shop]:
    """The merchant with a first start of its own; the hot wallet has 100,000 TRX and 1,000 USDT."""
    with running_aws.active(), TronNode() as node:
        made = Shop(first_stack(running_aws, {"tron": NodeInfo(node.url, {"usdt": USDT})}), node)
        made.run()
        node.faucet(made.hot(), 100_000)
        node.faucet(made.hot(), 1_000, "USDT")
        made.confirm()
        yield made
        forget()
