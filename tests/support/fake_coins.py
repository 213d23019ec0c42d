"""A UTXO chain in memory, as strict as a node: it knows every output, refuses double spends and cheap replacements (BIP-125), and
loses in a reorganisation what only the lost branch had. Reader, payer and miner at once; signatures are the digests.

For use cases alone: what real transactions look like is tested on real nodes.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.chain import Block, Header, Receipt, Transfer
from chalicelib.domain.withdrawals.withdrawals import Priority
from chalicelib.usecases.ports.coins import CoinPlan, Output, ProvedCoins, Unspent
from chalicelib.usecases.ports.failures import InsufficientFunds, Refused, Unavailable
from chalicelib.usecases.ports.second_reader import Built, CoinOrder
from chalicelib.usecases.ports.signing import Signature, Signed
from tests.support.delegating import Delegating

DUST = 294
PER_INPUT, PER_OUTPUT, FIXED = 68, 31, 11


@dataclass(frozen=True)
class Tx:
    """`inputs` as outpoints; none for coins out of nowhere, as a miner's."""

    txid: str
    inputs: tuple[str, ...]
    outputs: tuple[Output, ...]
    vsize: int = 100


@dataclass
class Mined:
    hash: str
    parent: str
    time: int
    transactions: list[Tx] = field(default_factory=list)


class FakeCoins:
    """Height of `blocks[n]` is n."""

    def __init__(self) -> None:
        self.blocks = [Mined("00" * 32, "ff" * 32, time.time_ns() // 1_000_000)]
        self.pool: dict[str, Tx] = {}
        self.rate = 2_000
        self.sent: list[str] = []
        self.down = False
        self._serial = 0

    # What tests do with it

    def _hash(self, *parts: object) -> str:
        self._serial += 1
        return hashlib.sha256(repr((self._serial, *parts)).encode()).hexdigest()

    def pay(self, address: str, amount: int) -> str:
        """Somebody pays: in the mempool when this returns; the transaction's id."""
        tx = Tx(self._hash("coin", address, amount), (), (Output(address, amount),))
        self.pool[tx.txid] = tx
        return tx.txid

    def mine(self, count: int = 1, take: bool = True) -> None:
        """`count` blocks, the first with all of the mempool, or with nothing."""
        for _ in range(count):
            taken = list(self.pool.values()) if take else []
            self.blocks.append(
                Mined(self._hash("block"), self.blocks[-1].hash, self.blocks[-1].time + 150_000, self._ordered(taken))
            )
            for tx in taken:
                del self.pool[tx.txid]

    def _ordered(self, transactions: list[Tx]) -> list[Tx]:
        done: list[Tx] = []
        left = list(transactions)
        while left:
            names = {tx.txid for tx in left}
            ready = [tx for tx in left if not {i.split(":")[0] for i in tx.inputs} & names]
            done += ready
            left = [tx for tx in left if tx not in ready]
        return done

    def drop(self, depth: int, lose: Collection[str] = ()) -> None:
        """The last `depth` blocks fall out: theirs is waiting again, but what is in `lose` and all that spends it. A branch of one
        empty block more takes their place."""
        fallen = [tx for block in self.blocks[-depth:] for tx in block.transactions]
        del self.blocks[-depth:]
        lost = set(lose)
        for tx in [*fallen, *self.pool.values()]:
            if tx.txid in lost or {i.split(":")[0] for i in tx.inputs} & lost:
                lost.add(tx.txid)
        self.pool = {tx.txid: tx for tx in [*fallen, *self.pool.values()] if tx.txid not in lost}
        self.mine(depth + 1, take=False)

    def forget(self) -> None:
        """The node restarts without its mempool."""
        self.pool.clear()

    def steal(self, outpoint: str) -> None:
        """Somebody else spends one of our coins, in a block at once."""
        tx = Tx(self._hash("theft"), (outpoint,), (Output("thief", 1),))
        self.pool = {name: other for name, other in self.pool.items() if outpoint not in other.inputs}
        before, self.pool = self.pool, {tx.txid: tx}
        self.mine()
        self.pool = before

    def balance_of(self, address: str) -> int:
        """Of what is in blocks."""
        coins = self._coins(pool=False)
        return sum(output.amount for output, _ in coins.values() if output.address == address)

    def _coins(self, pool: bool) -> dict[str, tuple[Output, int]]:
        coins: dict[str, tuple[Output, int]] = {}
        every = [(tx, height) for height, block in enumerate(self.blocks) for tx in block.transactions]
        for tx, height in [*every, *((tx, 0) for tx in self._ordered(list(self.pool.values())) if pool)]:
            for outpoint in tx.inputs:
                del coins[outpoint]  # a chain with a double spend in it would fail here
            for number, output in enumerate(tx.outputs):
                coins[f"{tx.txid}:{number}"] = (output, height)
        return coins

    # ChainReader

    def _up(self) -> None:
        if self.down:
            raise Unavailable("the node is down")

    def tip(self) -> int:
        self._up()
        return len(self.blocks) - 1

    def blocks_(self, first: int, last: int) -> list[Block]:
        found = []
        for height in range(first, min(last, len(self.blocks) - 1) + 1):
            block = self.blocks[height]
            transfers = [
                Transfer(tx.txid, f"out:{number}", None, "", output.address, output.amount)
                for tx in block.transactions
                for number, output in enumerate(tx.outputs)
            ]
            spent = {outpoint: tx.txid for tx in block.transactions for outpoint in tx.inputs}
            found.append(Block(height, block.hash, block.parent, block.time, transfers, spent=spent))
        return found

    def headers(self, first: int, last: int) -> list[Header]:
        self._up()
        return [Header(b.number, b.hash, b.parent_hash, b.time) for b in self.blocks_(first, last)]

    def block_hash(self, number: int) -> str | None:
        self._up()
        return self.blocks[number].hash if 0 <= number < len(self.blocks) else None

    def proven(self, block: Block, transfers: Sequence[Transfer]) -> list[Transfer]:
        return list(transfers)

    def receipt(self, txid: str) -> Receipt | None:
        self._up()
        for height, block in enumerate(self.blocks):
            if any(tx.txid == txid for tx in block.transactions):
                return Receipt(txid, True, height, block.hash, None)
        return None

    def balance(self, address: str, contract: str | None = None) -> int:
        return self.balance_of(address)

    # CoinPayer

    def fee_rate(self, priority: Priority) -> int:
        self._up()
        return self.rate

    def plan(self, wallet: str, coins: Sequence[Unspent], outputs: Sequence[Output], rate: int) -> CoinPlan:
        if any(output.amount < DUST for output in outputs):
            raise Refused("dust")
        chosen: list[Unspent] = []
        due = sum(output.amount for output in outputs)
        for coin in sorted(coins, key=lambda coin: -coin.amount):
            if chosen and sum(c.amount for c in chosen) >= due + self._fee(len(chosen), len(outputs) + 1, rate):
                break
            chosen.append(coin)
        return self._planned(wallet, chosen, outputs, self._fee(len(chosen), len(outputs) + 1, rate))

    def _fee(self, inputs: int, outputs: int, rate: int) -> int:
        return -(-(FIXED + PER_INPUT * inputs + PER_OUTPUT * outputs) * rate // 1000)

    def _planned(self, wallet: str, chosen: Sequence[Unspent], outputs: Sequence[Output], fee: int) -> CoinPlan:
        left = sum(coin.amount for coin in chosen) - sum(output.amount for output in outputs) - fee
        if left < 0:
            raise InsufficientFunds("too little")
        change = Output(wallet, left) if left >= DUST else None
        every = (*outputs, *((change,) if change else ()))
        written = {"in": [(c.outpoint, c.amount) for c in chosen], "out": [(o.address, o.amount) for o in every]}
        plan = self.explain(json.dumps(written).encode().hex())
        return CoinPlan(plan.unsigned, plan.inputs, tuple(outputs), change, plan.fee, plan.vsize)

    def consolidate(self, wallet: str, coins: Sequence[Unspent], rate: int) -> CoinPlan:
        return self._planned(wallet, coins, [], self._fee(len(coins), 1, rate))

    def replace(self, unsigned: str, wallet: str, coins: Sequence[Unspent], rate: int) -> CoinPlan:
        old = self.explain(unsigned)
        mine = old.outputs[-1].address == wallet
        outputs = old.outputs[:-1] if mine else old.outputs
        found = dict(self._written(unsigned)["in"])
        chosen = [Unspent(outpoint, wallet, found[outpoint], 1) for outpoint in old.inputs]
        more = [coin for coin in coins if coin.outpoint not in found]
        while True:
            fee = max(self._fee(len(chosen), len(outputs) + 1, rate), old.fee + self._fee(len(chosen), len(outputs) + 1, 1000))
            try:
                return self._planned(wallet, chosen, outputs, fee)
            except InsufficientFunds:
                if not more:
                    raise
                chosen.append(more.pop(0))

    def _written(self, unsigned: str) -> dict[str, list[tuple[str, int]]]:
        found: dict[str, list[tuple[str, int]]] = json.loads(bytes.fromhex(unsigned))
        return found

    def explain(self, unsigned: str) -> CoinPlan:
        written = self._written(unsigned)
        outputs = tuple(Output(address, amount) for address, amount in written["out"])
        fee = sum(amount for _, amount in written["in"]) - sum(output.amount for output in outputs)
        vsize = FIXED + PER_INPUT * len(written["in"]) + PER_OUTPUT * len(outputs)
        return CoinPlan(unsigned, tuple(outpoint for outpoint, _ in written["in"]), outputs, None, fee, vsize)

    def digests(self, unsigned: str) -> list[bytes]:
        return [hashlib.sha256(f"{unsigned}{number}".encode()).digest() for number in range(len(self._written(unsigned)["in"]))]

    def evidence(self, unsigned: str) -> list[tuple[str, str]]:
        return [("", "") for _ in self._written(unsigned)["in"]]

    def assemble(self, unsigned: str, signatures: Sequence[Signature]) -> Signed:
        if [s.r for s in signatures] != [int.from_bytes(d) for d in self.digests(unsigned)]:
            raise ValueError("a signature is not of its input")
        return Signed(json.dumps({"signed": unsigned}).encode().hex(), hashlib.sha256(unsigned.encode()).hexdigest())

    def proved(self, raw: str, coins: Sequence[Unspent]) -> ProvedCoins:
        written = json.loads(bytes.fromhex(raw))
        if "by" in written:
            raise ValueError("no key of the coins signed it")
        unsigned = written["signed"]
        does = self.explain(unsigned)
        if sorted(map(tuple, self._written(unsigned)["in"])) != sorted((coin.outpoint, coin.amount) for coin in coins):
            raise ValueError("the signed transaction spends other coins")
        return ProvedCoins(hashlib.sha256(unsigned.encode()).hexdigest(), does.inputs, does.outputs)

    def broadcast(self, raw: str) -> None:
        self._up()
        written = json.loads(bytes.fromhex(raw))
        if "by" in written:
            raise Refused("mandatory-script-verify-flag-failed")
        unsigned = written["signed"]
        does = self.explain(unsigned)
        txid = hashlib.sha256(unsigned.encode()).hexdigest()
        self.sent.append(txid)
        if txid in self.pool or self.receipt(txid) is not None:
            return
        rivals = [tx for tx in self.pool.values() if set(tx.inputs) & set(does.inputs)]
        kept, coins = self.pool, {}
        try:
            self.pool = {name: tx for name, tx in kept.items() if tx not in rivals}
            coins = self._coins(pool=True)
        finally:
            self.pool = kept
        if not set(does.inputs) <= set(coins):
            raise Refused("bad-txns-inputs-missingorspent")
        for rival in rivals:
            before = self._coins_of(rival)
            if does.fee < before + does.vsize:
                raise Refused("insufficient fee, rejecting replacement")
        self.pool = {name: tx for name, tx in kept.items() if tx not in rivals}
        self.pool[txid] = Tx(txid, does.inputs, does.outputs, does.vsize)

    def _coins_of(self, tx: Tx) -> int:
        """The fee of a transaction in the mempool."""
        known = {
            f"{t.txid}:{n}": output.amount
            for t in [*(t for b in self.blocks for t in b.transactions), *self.pool.values()]
            for n, output in enumerate(t.outputs)
        }
        return sum(known[i] for i in tx.inputs) - sum(output.amount for output in tx.outputs)

    def unspent(self, outpoints: Sequence[str], mempool: bool = True) -> list[Unspent | None]:
        self._up()
        coins = self._coins(pool=mempool)
        found = [coins.get(outpoint) for outpoint in outpoints]
        return [
            None if coin is None else Unspent(outpoint, coin[0].address, coin[0].amount, coin[1])
            for outpoint, coin in zip(outpoints, found, strict=True)
        ]

    def vouched_unspent(self, outpoints: Sequence[str]) -> list[Unspent | None]:
        return self.unspent(outpoints, mempool=False)

    def denied(self, outpoints: Sequence[str]) -> bool:
        gone = [name for name, seen in zip(outpoints, self.unspent(outpoints), strict=True) if seen is None]
        return None in self.unspent(gone, mempool=False)


class Reader(Delegating):
    """`FakeCoins` as a ChainReader: its `blocks` are the chain itself, a reader's are a method."""

    def __init__(self, chain: FakeCoins) -> None:
        self._chain = chain

    def blocks(self, first: int, last: int, contracts: Collection[str]) -> list[Block]:
        self._chain._up()
        return self._chain.blocks_(first, last)

    def __getattr__(self, name: str) -> object:
        return getattr(self._chain, name)


class FakeLibrary:
    """The second reader of `FakeCoins`: it makes the bytes of an order by itself."""

    def built(self, order: CoinOrder) -> Built:
        if order.inputs != tuple(dict.fromkeys(order.inputs)) or not order.outputs:
            raise ValueError("an order spends a coin twice, or pays nobody")
        unsigned = json.dumps(self._fields(order)).encode().hex()
        digests = tuple(hashlib.sha256(f"{unsigned}{number}".encode()).digest() for number in range(len(order.inputs)))
        return Built(digests, self._fields(order))

    def read(self, order: CoinOrder, raw: str) -> dict[str, object]:
        unsigned = json.loads(bytes.fromhex(raw))["signed"]
        told: dict[str, object] = json.loads(bytes.fromhex(unsigned), object_hook=self._tuples)
        return {**told, "txid": hashlib.sha256(unsigned.encode()).hexdigest()}

    def _fields(self, order: CoinOrder) -> dict[str, object]:
        spent, paid = ([(c.outpoint, c.amount) for c in order.inputs], [(o.address, o.amount) for o in order.outputs])
        return {"in": spent, "out": paid}

    @staticmethod
    def _tuples(found: dict[str, list[list[object]]]) -> dict[str, object]:
        return {name: [tuple(each) for each in rows] for name, rows in found.items()}


class Differs(FakeLibrary):
    """Makes another transaction of an order ("order"), or finds no output in signed bytes ("bytes")."""

    def __init__(self, what: str) -> None:
        self._what = what

    def built(self, order: CoinOrder) -> Built:
        if self._what != "order":
            return super().built(order)
        first, *rest = order.outputs
        return super().built(replace(order, outputs=(replace(first, amount=first.amount + 1), *rest)))

    def read(self, order: CoinOrder, raw: str) -> dict[str, object]:
        read = super().read(order, raw)
        return {**read, "out": []} if self._what == "bytes" else read


class DigestSigner:
    """Signs by repeating what is to be signed."""

    def __init__(self) -> None:
        self.signed: list[bytes] = []

    def sign(self, wallet: Wallet, digest: bytes) -> Signature:
        self.signed.append(digest)
        return Signature(int.from_bytes(digest), 1, 0)
