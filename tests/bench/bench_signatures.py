"""CPU of one whole signature of each family: from the stored order to the bytes that would be stored.

Run as a script: ``python tests/bench/bench_signatures.py``. The engines do what they do in the payout function: they read the
records, prove the bytes against them, sign, check the signature and make the transaction's changes. Records are in memory, no node
and no AWS is asked. The key, which is a local one, and the second reader are told apart; garbage is collected as it comes, as in
production. The median of many orders, each signed once, in the quietest of some rounds.
"""

from __future__ import annotations

import random
import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from coincurve import PrivateKey

from chalicelib.chains.abi import transfer_call
from chalicelib.chains.addresses import Rules
from chalicelib.chains.evm import transactions as evm
from chalicelib.chains.evm.payer import EvmPayer
from chalicelib.chains.evm.second_reader import EvmSecondReader
from chalicelib.chains.tron import transactions as tron
from chalicelib.chains.tron.payer import TronPayer
from chalicelib.chains.tron.second_reader import TronSecondReader
from chalicelib.chains.utxo import psbt
from chalicelib.chains.utxo import transactions as utxo
from chalicelib.chains.utxo.payer import UtxoPayer
from chalicelib.chains.utxo.scripts import address_of
from chalicelib.chains.utxo.second_reader import UtxoSecondReader
from chalicelib.custody.signatures import sign_with
from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.catalogue.rates import no_rates
from chalicelib.domain.ids import TenantId
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.treasury.hot_utxos import HeldCoin, HeldCoins
from chalicelib.domain.withdrawals.bundles import Built, Bundle, BundledPayout
from chalicelib.domain.withdrawals.withdrawals import NonceUse, PaymentOrder, Withdrawal
from chalicelib.encoding import base58check
from chalicelib.encoding.public_keys import evm_address, tron_address
from chalicelib.usecases.payouts.attempts import PayoutAttempts, PayoutParts
from chalicelib.usecases.payouts.bundle_parts import BundleParts
from chalicelib.usecases.payouts.bundle_signing import SignedBundle
from chalicelib.usecases.payouts.checks import PayoutChecks
from chalicelib.usecases.payouts.fees import PayoutFees
from chalicelib.usecases.payouts.replacement_fees import ReplacementFees
from chalicelib.usecases.ports.accounts import FeeEstimate
from chalicelib.usecases.ports.signing import Signature
from chalicelib.usecases.transactions.accounts.signing import AccountSigning
from chalicelib.usecases.transactions.utxo.signing import UtxoSigning
from chalicelib.usecases.withdrawals.steps import order_of
from tests.support.shelf import Shelf
from tests.support.utxo_orders import coin, segwit

TENANT, AMOUNT, AT = TenantId("mch_x:live"), 1_000_000, 1_790_000_000_000
KEY, RULES = PrivateKey(), Rules()
_POINT = KEY.public_key.format(compressed=False)[1:]
NONE: Any = None
ROUNDS = 7


class Clock:
    def now_ms(self) -> int:
        return AT


@dataclass
class Meter:
    """CPU seconds of what is told apart."""

    spent: float = 0.0

    def timed(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            began = time.process_time()
            try:
                return work(*given)
            finally:
                self.spent += time.process_time() - began

        return run


class LocalSigner:
    def __init__(self, meter: Meter) -> None:
        self._sign = meter.timed(lambda digest: sign_with(KEY, digest))

    def sign(self, wallet: Wallet, digest: bytes) -> Signature:
        signature: Signature = self._sign(digest)
        return signature


class Metered:
    """A second reader whose time is told apart."""

    def __init__(self, meter: Meter, second: Any) -> None:
        self.built, self.read = meter.timed(second.built), meter.timed(second.read)


@dataclass
class Case:
    """Signs its orders, one each time."""

    keys: Meter
    second: Meter
    sign: Callable[[], object]


def account(slug: str, token: bool) -> Case:
    shelf = Shelf()
    store: Any = shelf
    network, coin = shelf.catalogue("live").networks[slug], shelf.catalogue("live").coins[slug, "usdt" if token else native(slug)]
    payer: Any = TronPayer(network, NONE, NONE) if slug == "tron" else EvmPayer(network, NONE)
    payer.cost = lambda payment: FeeEstimate(10**18)  # no node is asked here
    wallet = Wallet(network.id, "hot", (tron_address if slug == "tron" else evm_address)(_POINT), "kms", "key", _POINT.hex(), 1)
    keys, seconds = Meter(), Meter()
    reader: Any = TronSecondReader() if slug == "tron" else EvmSecondReader(network.chain_id or 0, evm.terms)
    second: Any = Metered(seconds, reader)
    signer, checks, fees = LocalSigner(keys), PayoutChecks(store, RULES, Clock(), NONE, no_rates), PayoutFees(store, no_rates)
    parts = PayoutParts(store, RULES, Clock(), signer, checks, ReplacementFees(store, RULES, fees, RenewalRules()), NONE, no_rates)
    engine = AccountSigning(store, RULES, Clock(), NONE, RenewalRules(), NONE, lambda _: second)
    number = 0

    def sign() -> Callable[[], object]:
        nonlocal number
        number += 1
        recipient = some_tron() if slug == "tron" else evm_address(secrets.token_bytes(64))
        made = (tron_bytes if slug == "tron" else evm_bytes)(network, wallet.address, recipient, coin.contract, number)
        order, withdrawal = payment(network, coin.asset, wallet, recipient, coin.contract, made, number)
        shelf.put(order, withdrawal, NonceUse(order.id, network.id, wallet.address, number))
        return lambda: engine.first(PayoutAttempts(parts, network, payer, wallet, withdrawal), order)

    return Case(keys, seconds, sign)


def native(slug: str) -> str:
    return {"ethereum": "eth", "tron": "trx", "bitcoin": "btc"}[slug]


def payment(
    network: Network, asset: Any, wallet: Wallet, recipient: str, contract: str | None, unsigned: str, number: int
) -> tuple[PaymentOrder, Withdrawal]:
    name = f"wd_{number}"
    withdrawal = Withdrawal(
        name, TENANT, network.id, asset, AMOUNT, recipient, asset, AT, AT, status="processing", from_address=wallet.address
    )
    order = PaymentOrder(
        order_of(TENANT, name), network.id, wallet.address, number, name, TENANT, asset, contract, recipient, AMOUNT, unsigned, AT
    )
    return order, withdrawal


def evm_bytes(network: Network, sender: str, recipient: str, contract: str | None, number: int) -> str:
    to, call = bytes.fromhex((contract or recipient)[2:]), transfer_call(recipient, AMOUNT) if contract else b""
    value, gas = 0 if contract else AMOUNT, 60_000 if contract else 21_000
    return "0x" + evm.Unsigned(network.chain_id or 0, number, gas, 30 * 10**9, 10**9, to, value, call).payload().hex()


def tron_bytes(network: Network, sender: str, recipient: str, contract: str | None, number: int) -> str:
    reference = tron.Reference(b"\1\2", b"12345678", AT + 600_000, AT + number)
    kind: tron.Kind = "TriggerSmartContract" if contract else "TransferContract"
    limit = 10**8 if contract else 0
    return tron.Unsigned(kind, sender, AMOUNT, reference, recipient, contract, fee_limit=limit).encode().hex()


def some_tron() -> str:
    return base58check.encode(b"\x41" + secrets.token_bytes(20))


def bundle(kind: str, count: int) -> Case:
    """One payment out of `count` coins of the wallet."""
    shelf = Shelf()
    store: Any = shelf
    network = shelf.catalogue("live").networks["bitcoin"]
    payer, source = UtxoPayer(network, NONE), random.Random("signatures")
    keys, seconds = Meter(), Meter()
    second: Any = Metered(seconds, UtxoSecondReader("bitcoin"))
    checks = PayoutChecks(store, RULES, Clock(), NONE, no_rates)
    parts = BundleParts(store, RULES, Clock(), LocalSigner(keys), lambda _: payer, checks, NONE, NONE)
    engine = UtxoSigning(store, RULES, Clock(), lambda _: payer, RenewalRules(), lambda _: second)
    number = 0

    def sign() -> Callable[[], object]:
        nonlocal number
        number += 1
        inputs = tuple(coin(source, KEY, kind, AMOUNT + n) for n in range(count))
        home, payee = inputs[0].script, segwit(PrivateKey())
        wallet = Wallet(network.id, "hot", address_of("bitcoin", home, "main"), "kms", "key", _POINT.hex(), 1)
        change = sum(each.amount for each in inputs) - AMOUNT // 2 - 20_000
        unsigned = psbt.encode(utxo.Unsigned(inputs, (utxo.PaidTo(AMOUNT // 2, payee), utxo.PaidTo(change, home))))
        plan = payer.explain(unsigned)
        psbt.decode.cache_clear()  # another process planned it
        spent = tuple(HeldCoin(each.name, each.amount, 7) for each in inputs)
        newest = Built(unsigned, spent, "out:1", change, plan.fee, plan.vsize)
        recipient, name = address_of("bitcoin", payee, "main"), f"bun_{number}"
        asset = shelf.catalogue("live").native("bitcoin").asset
        paid = BundledPayout(f"wd_{number}", TENANT, recipient, AMOUNT // 2)
        record = Bundle(name, network.id, wallet.address, asset, AT, AT, payouts=(paid,), state="built", newest=newest)
        withdrawal = Withdrawal(
            paid.withdrawal, TENANT, network.id, asset, AMOUNT // 2, recipient, asset, AT, AT, status="processing"
        )
        order = PaymentOrder(
            order_of(TENANT, withdrawal.id), network.id, wallet.address, -1, withdrawal.id, TENANT, asset, None, recipient,
            AMOUNT // 2, "", AT, bundle=name,
        )  # fmt: skip
        held = tuple(HeldCoin(each.outpoint, each.amount, 7, reserved_by=name) for each in spent)
        shelf.put(record, withdrawal, order, HeldCoins(network.id, wallet.address, held))
        return lambda: engine.sign(SignedBundle(parts, network, wallet), record)

    return Case(keys, seconds, sign)


CASES: dict[str, tuple[Callable[[], Case], int]] = {
    "EVM, native coin": (lambda: account("ethereum", token=False), 150),
    "EVM, token": (lambda: account("ethereum", token=True), 150),
    "Tron, TRX": (lambda: account("tron", token=False), 150),
    "Tron, token": (lambda: account("tron", token=True), 150),
    "bitcoin, one P2WPKH input": (lambda: bundle("p2wpkh", 1), 100),
    "bitcoin, ten P2WPKH inputs": (lambda: bundle("p2wpkh", 10), 30),
    "bitcoin, one P2PKH input": (lambda: bundle("p2pkh", 1), 100),
}


def medians(case: Case, times: int) -> tuple[float, float, float]:
    """Milliseconds of one signature: ours, the key's, and the second reader's."""
    told: list[tuple[float, float, float]] = []
    for _ in range(times):
        sign = case.sign()
        case.keys.spent = case.second.spent = 0.0
        began = time.process_time()
        sign()
        whole = time.process_time() - began
        told.append((whole - case.keys.spent - case.second.spent, case.keys.spent, case.second.spent))
    ours, keys, second = (median(each) * 1000 for each in zip(*told, strict=True))
    return ours, keys, second


def main() -> None:
    cases = {name: (made(), times) for name, (made, times) in CASES.items()}
    rounds = [{name: medians(*case) for name, case in cases.items()} for _ in range(ROUNDS)]
    print(f"{'milliseconds of CPU':>28} {'ours':>8} {'key':>8} {'second reader':>14}")
    for name in cases:
        ours, keys, second = min(each[name] for each in rounds)
        print(f"{name:>28} {ours:>8.3f} {keys:>8.3f} {second:>14.3f}")


if __name__ == "__main__":
    main()
