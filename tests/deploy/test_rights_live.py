"""What functions do on real networks alone is allowed by their policies: payments from coins, first sight, backlogs that are
shared out, balances that are compared, stakes that are signed. The nodes are in memory; keys are KMS's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from chalicelib import wiring
from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.chain import Block, Receipt, Transfer, Unmined
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import network_id
from chalicelib.domain.scanning.ranges import ScanRange
from chalicelib.domain.transactions.sightings import Lifetime
from chalicelib.domain.treasury.stakes import Resource
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.usecases.ports.accounts import FeeEstimate, Opened, Payment
from chalicelib.usecases.ports.second_reader import Built, Order
from chalicelib.usecases.ports.signing import Signature, Signed
from chalicelib.usecases.ports.staking import ExplainedStake
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from chalicelib.wiring.chains import ChainWiring
from chalicelib.wiring.second_readers import SecondReaders
from infra.bootstrap import NodeInfo
from infra.local.aws import LocalAws
from tests.deploy.declared import API
from tests.deploy.rights import Recorder, recording, refused
from tests.support.delegating import Delegating
from tests.support.fake_coins import FakeCoins, FakeLibrary, Reader, Tx
from tests.support.stack import Stack, first_stack

COIN = 10**8
ETHER = 10**18
PAYEE = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"  # BIP-173's own example
NOBODY = "the test itself"
FUNCTIONS = ("poll_bitcoin", "poll_ethereum", "poll_tron", "relay", "payout", "scan_range", "housekeeping")


class Coins(FakeCoins):
    """Bitcoin, whose payments KMS signs: how, is tested on real nodes."""

    def assemble(self, unsigned: str, signatures: Sequence[Signature]) -> Signed:
        assert len(signatures) == len(self.digests(unsigned)) and all(s.r and s.s for s in signatures)
        return Signed(json.dumps({"signed": unsigned}).encode().hex(), hashlib.sha256(unsigned.encode()).hexdigest())

    # Mempool

    def waiting(self) -> frozenset[str]:
        return frozenset(self.pool)

    def transactions(self, txids: Sequence[str]) -> list[Unmined]:
        return [
            Unmined(tx.txid, [Transfer(tx.txid, f"out:{n}", None, "", o.address, o.amount) for n, o in enumerate(tx.outputs)])
            for tx in map(self.pool.get, txids)
            if tx is not None
        ]

    def ousted(self, spends: Mapping[str, Sequence[str]]) -> set[str]:
        return set()


class Untraced(Reader):
    """Ethereum, on which contracts alone pay: blocks do not tell, balances do."""

    traces = False

    def blocks(self, first: int, last: int, contracts: Collection[str]) -> list[Block]:
        return [replace(block, transfers=[]) for block in super().blocks(first, last, contracts)]

    def balances_at(self, addresses: Sequence[str], number: int, block_hash: str) -> list[int]:
        return [self._chain.balance_of(address) for address in addresses]

    def nonces(self, addresses: Sequence[str]) -> list[int]:
        return [0 for _ in addresses]


class Frozen(Reader):
    """Tron, whose accounts' payments are plain ones."""

    def blocks(self, first: int, last: int, contracts: Collection[str]) -> list[Block]:
        return [
            replace(block, transfers=[t._replace(position="native") for t in block.transfers])
            for block in super().blocks(first, last, contracts)
        ]

    def receipt(self, txid: str) -> Receipt | None:
        found = self._chain.receipt(txid)
        return None if found is None else replace(found, fee=1000)


class Stakes:
    """What builds and sends stakes."""

    def __init__(self, chain: FakeCoins) -> None:
        self._chain = chain
        self.expired = False

    def prepare(self, wallet: str, amount: int, resource: Resource, sequence: int) -> str:
        return json.dumps([wallet, amount, resource, sequence, len(self._chain.blocks)]).encode().hex()

    def explain(self, unsigned: str) -> ExplainedStake:
        wallet, amount, resource, _, _ = json.loads(bytes.fromhex(unsigned))
        return ExplainedStake(wallet, amount, resource, self.digest(unsigned).hex())

    def digest(self, unsigned: str) -> bytes:
        return hashlib.sha256(unsigned.encode()).digest()

    def assemble(self, unsigned: str, signature: Signature) -> Signed:
        return Signed(unsigned, self.digest(unsigned).hex())

    def opened(self, raw: str) -> Opened:
        does = self.explain(raw)
        return Opened(raw, does.txid, does.owner)

    def broadcast(self, raw: str) -> None:
        if not self.expired:
            txid = self.digest(raw).hex()
            self._chain.pool[txid] = Tx(txid, (), ())

    def renewable(self, unsigned: str, txid: str, every_node: bool = True) -> bool:
        return self.expired

    def lifetime(self, raw: str, txid: str) -> Lifetime:
        """From block 0 on, over before the time of any block."""
        return Lifetime(0, self._chain.blocks[0].hash[16:32], 1)


class Echo:
    """The second reader of `Stakes`: what real ones see is tested with their libraries."""

    def built(self, order: Order) -> Built:
        return Built((hashlib.sha256(order.unsigned.encode()).digest(),), {})

    def read(self, order: Order, raw: str) -> dict[str, object]:
        return {"txid": hashlib.sha256(raw.encode()).hexdigest()}


class Quoting:
    """Nothing is paid from accounts here; fees are quoted all the same."""

    def estimate(self, payment: Payment) -> FeeEstimate:
        return FeeEstimate(1000)


class Asked(Delegating):
    """What stands for nodes: whoever asks them needs the secrets that their URLs may refer to."""

    def __init__(self, node: object, recorder: Recorder) -> None:
        self._node, self._recorder = node, recorder

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._node, name)
        if callable(found):
            self._recorder.note("secretsmanager", "GetSecretValue", {"SecretId": services().settings.node_secret("any")})
        return found


class Live:
    """A merchant on three real networks, and who is at work."""

    def __init__(self, stack: Stack, recorder: Recorder, chains: dict[str, Any], stakes: Stakes) -> None:
        self.stack, self.recorder, self.stakes = stack, recorder, stakes
        self.coins: Coins = chains["bitcoin"]
        self.contracts: FakeCoins = chains["ethereum"]
        self.tron: FakeCoins = chains["tron"]
        self.minutes = 0

    def api(self, method: str, path: str, body: Any = None, status: int = 200, key: str = "client_live") -> Any:
        self.recorder.function = API
        answer = self.stack.call(method, path, self.stack.keys[key], body)
        self.recorder.function = NOBODY
        assert answer.status == status, answer.body
        return answer.json

    def turn(self, *minutes: int) -> None:
        """So many minutes later, each function does what there is for it."""
        for passed in minutes or (1, 1):
            self.minutes += passed
            services().clock.shift_ms = self.minutes * 60_000
            for function in FUNCTIONS:
                self.recorder.function = function
                self.stack.drain(only=[function], hurry=True, rounds=1)
        self.recorder.function = NOBODY

    def mine(self, blocks: int = 20) -> None:
        for chain in (self.coins, self.contracts, self.tron):
            chain.mine(blocks)
        self.turn()

    def hot(self, slug: str) -> str:
        wallet = services().store.get(Wallet, network=network_id("live", slug), role="hot")
        assert wallet is not None
        return services().rules.storage_form(slug, wallet.address)

    def invoice(self, coin: str, slug: str) -> Any:
        asked = {"currency": coin, "amount": "30", "network": slug, "expiresIn": 7 * 86_400}
        return self.api("POST", "/v1/invoices", asked, 201)

    def status(self, invoice: Any) -> str:
        return str(self.api("GET", f"/v1/invoices?id={invoice['id']}")["status"])

    def withdraw(self, amount: str) -> Any:
        asked = {"network": "bitcoin", "coin": "btc", "address": PAYEE, "amount": amount}
        return self.api("POST", "/v1/withdraws", asked, 201)["id"]

    def paid(self, withdrawal: str) -> str:
        return str(self.api("GET", f"/v1/withdrawals/{withdrawal}")["data"]["status"])

    def bundle(self) -> Bundle:
        """The one that was begun last."""
        return max(services().store.every(Bundle), key=lambda bundle: bundle.id)


@pytest.fixture
def live(aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    coins, contracts, tron = Coins(), FakeCoins(), FakeCoins()
    stakes = Stakes(tron)
    readers = {"bitcoin": Reader(coins), "ethereum": Untraced(contracts), "tron": Frozen(tron)}
    recorder = Recorder()
    recorder.function = NOBODY
    asked: dict[str, Any] = {slug: Asked(reader, recorder) for slug, reader in readers.items()}
    monkeypatch.setattr(ChainWiring, "live_reader", lambda self, network: asked[network.slug])
    monkeypatch.setattr(ChainWiring, "live_coin_payer", lambda self, network: Asked(coins, recorder))
    monkeypatch.setattr(SecondReaders, "coins", lambda self, network: FakeLibrary())
    monkeypatch.setattr(SecondReaders, "accounts", lambda self, network: Echo())
    monkeypatch.setattr(ChainWiring, "mempool", lambda self, network: Asked(coins, recorder))
    monkeypatch.setattr(ChainWiring, "live_payer", lambda self, network: Asked(Quoting(), recorder))
    monkeypatch.setattr(ChainWiring, "staking_node", lambda self, network, impatient=False: Asked(stakes, recorder))
    stack = first_stack(aws, {slug: NodeInfo("http://127.0.0.1:9") for slug in readers})
    recording(monkeypatch, recorder)
    yield Live(stack, recorder, {"bitcoin": coins, "ethereum": contracts, "tron": tron}, stakes)
    assert audit(services().store) == []
    wiring.forget()


@pytest.mark.slow
def test_every_call_is_allowed_on_real_networks(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    coins = live.coins
    live.mine(70)
    # First sight, and a payment that only a balance shows.
    seen, unseen, gone = live.invoice("btc", "bitcoin"), live.invoice("eth", "ethereum"), live.invoice("btc", "bitcoin")
    coins.pay(seen["address"], 30 * COIN)
    replaced = coins.pay(gone["address"], 30 * COIN)
    live.turn()
    assert live.status(seen) == live.status(gone) == "confirming"
    del coins.pool[replaced]
    live.contracts.pay(unseen["address"].lower(), 30 * ETHER)
    for units in (10, 5, 2, 2):
        coins.pay(live.hot("bitcoin"), units * COIN)
    live.tron.pay(live.hot("tron"), 1_000_000_000)
    live.mine()
    live.turn(11, 1)
    assert (live.status(seen), live.status(unseen), live.status(gone)) == ("completed", "completed", "pending")

    # Several in one transaction; one that sticks and is replaced; one whose coin somebody else spends.
    first = [live.withdraw(amount) for amount in ("1", "2.5")]
    live.turn()
    live.mine()
    assert [live.paid(each) for each in first] == ["confirmed", "confirmed"]
    coins.rate = 50_000
    second = live.withdraw("1")
    live.turn()
    coins.rate = 200_000
    live.turn(60, 1, 1)
    assert live.bundle().earlier
    live.mine()
    assert live.paid(second) == "confirmed"
    third = live.withdraw("1")
    live.turn()
    stolen = coins.explain(live.bundle().newest.unsigned).inputs[0]
    coins.forget()
    coins.steal(stolen)
    live.turn(1)
    coins.mine(66)
    live.turn()
    assert live.paid(third) == "failed"

    # A stake that expires once.
    admin = "admin_live"
    live.stakes.expired = True
    live.api("POST", "/v1/networks/tron/stake", {"amount": "5", "resource": "ENERGY"}, 201, admin)
    live.turn()
    live.stakes.expired = False
    live.turn(1, 1, 1)
    live.mine(30)
    (stake,) = live.api("GET", "/v1/networks/tron/stake", key=admin)
    assert stake["status"] == "confirmed"

    # A backlog that is shared out, with payments in it, and a reorganisation.
    monkeypatch.setattr("chalicelib.usecases.scanning.reorganisations.BATCH_BLOCKS", 5)
    monkeypatch.setattr("chalicelib.usecases.scanning.backlog.FAR", 1)
    late = live.invoice("btc", "bitcoin")
    coins.pay(late["address"], 30 * COIN)
    coins.mine(300)
    made = 0
    for _ in range(6):
        live.turn(1)
        made += len(list(services().store.every(ScanRange)))
    assert made and live.status(late) == "completed"
    last = live.invoice("btc", "bitcoin")
    coins.pay(last["address"], 30 * COIN)
    coins.mine(7)
    live.turn()
    assert live.status(last) == "completed"
    coins.drop(7)
    live.turn()
    # Out of the chain, back in the mempool: taken back, and shown again.
    assert {d.status for d in services().store.every(Deposit) if d.address == last["address"]} == {"pending"}
    assert live.status(last) == "confirming"
    live.mine(10)
    assert live.status(last) == "completed"

    calls = {call for call in live.recorder.calls if call[0] != NOBODY}
    assert {function for function, _, _ in calls} == {API, *FUNCTIONS}
    assert {(function, action) for function, action, _ in calls if action.startswith("kms:")} == {("payout", "kms:Sign")}
    asking = {function for function, action, _ in calls if action == "secretsmanager:GetSecretValue"}
    assert asking == {API, *(function for function in FUNCTIONS if function not in ("relay", "housekeeping"))}
    assert refused(calls) == []
