"""Payments on a UTXO network: choose UTXOs, build, replace, explain, assemble, broadcast. Holds no key and signs nothing.

Coins of P2WPKH and P2PKH addresses are spent. What hides behind a P2SH address its spelling does not tell, so such a coin can be
explained and signed (P2SH-P2WPKH), but not planned with.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from chalicelib.chains.answers import Garbled, hash32, member
from chalicelib.chains.providers import electorate
from chalicelib.chains.rpc import JsonRpc, RpcError, Transport
from chalicelib.chains.utxo import psbt, refusals
from chalicelib.chains.utxo.answers import number, units
from chalicelib.chains.utxo.facts import GENESIS, policy_of
from chalicelib.chains.utxo.fees import TARGETS, rate_for
from chalicelib.chains.utxo.proving import proved
from chalicelib.chains.utxo.scripts import INPUT_WEIGHT, address_of, dust_of, key_hash_of, script_of
from chalicelib.chains.utxo.selection import MOST_WEIGHT, Candidate, Change, fee_for, select, worth
from chalicelib.chains.utxo.transactions import (
    Input,
    PaidTo,
    Unsigned,
    double_sha256,
    outpoint_of,
    transaction_id,
    unlock,
    weight_of,
    without_witnesses,
)
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.treasury.hot_utxos import MOST_RATE
from chalicelib.domain.withdrawals.withdrawals import Priority
from chalicelib.encoding.public_keys import Chain
from chalicelib.usecases.ports.coins import CoinPlan, Output, ProvedCoins, Unspent
from chalicelib.usecases.ports.failures import InsufficientFunds, Refused, Unavailable
from chalicelib.usecases.ports.signing import Signature, Signed

log = logging.getLogger(__name__)

T = TypeVar("T")

_ASKED_AT_ONCE = 200
_SHORTER = {"p2wpkh": 4, "p2sh-p2wpkh": 4, "p2pkh": 16}
"""Weight units by which a signed input may stay below its bound (a signature of 68 bytes: one in 2^24 is shorter)."""


class UtxoPayer:
    """Implements `usecases.ports.coins.CoinPayer` over one node, or several that stand in for each other: `each` is every one of
    them."""

    def __init__(self, network: Network, rpc: JsonRpc, chain: Chain = "main", each: Sequence[Transport] = ()) -> None:
        self._network, self._rpc, self._chain, self._each = network, rpc, chain, each
        self._policy = policy_of(network.slug)

    def fee_rate(self, priority: Priority) -> int:
        """Units per 1,000 virtual bytes. Raises Unavailable."""

        def ask() -> int:
            genesis, normal, own, pool = self._rpc.batch(
                [
                    ("getblockhash", [0]),
                    ("estimatesmartfee", [TARGETS["normal"]]),
                    ("estimatesmartfee", [TARGETS[priority]]),
                    ("getmempoolinfo", []),
                ]
            )
            if genesis not in GENESIS[self._network.slug, self._chain]:
                raise Garbled("the node is on another chain")
            return rate_for(self._policy, priority, normal, own, pool)

        return self._sure(ask)

    def plan(self, wallet: str, coins: Sequence[Unspent], outputs: Sequence[Output], rate: int) -> CoinPlan:
        """A transaction that pays `outputs`, in their order; the change, if any, comes last.

        Raises InsufficientFunds, Refused (an output is dust), Unavailable (a legacy coin's transaction is asked for), and
        ValueError for a coin or an address that is none.
        """
        self._check_rate(rate)
        paid = [self._payment(output) for output in outputs]
        if not paid:
            raise ValueError("a payment has an output")
        inputs, home = [self._input(coin) for coin in coins], self._script(wallet)
        kinds = [key_hash_of(spent.script)[0] for spent in inputs]
        scripts = [len(output.script) for output in paid]

        def weigh(chosen: Sequence[int], changed: bool) -> int:
            return weight_of([kinds[place] for place in chosen], [*scripts, *([len(home)] if changed else [])])

        candidates = [Candidate(spent.amount, INPUT_WEIGHT[kind]) for spent, kind in zip(inputs, kinds, strict=True)]
        choice = select(candidates, sum(output.amount for output in paid), self._change(home), rate, weigh)
        if choice is None:
            held = sum(max(worth(candidate, rate), 0) for candidate in candidates)
            raise InsufficientFunds(f"insufficient funds: the coins are worth {held} units after their fees, or are too many")
        change = [PaidTo(choice.change, home)] if choice.change else []
        return self._planned([inputs[place] for place in choice.chosen], [*paid, *change], bool(change))

    def consolidate(self, wallet: str, coins: Sequence[Unspent], rate: int) -> CoinPlan:
        """A transaction that pays those of `coins` that are worth their fee to `wallet`; the largest ones, where not all fit.

        Raises Refused where none is, or all together would be dust; Unavailable and ValueError as `plan`.
        """
        self._check_rate(rate)
        home = self._script(wallet)
        useful: list[Input] = []
        weight, size = weight_of([], [len(home)]) + 8, 0
        for spent in sorted(map(self._input, coins), key=lambda spent: -spent.amount):
            kind = key_hash_of(spent.script)[0]
            if worth(Candidate(spent.amount, INPUT_WEIGHT[kind]), rate) <= 0:
                continue
            weight += INPUT_WEIGHT[kind]
            if weight > MOST_WEIGHT:
                break
            useful.append(spent)
        inputs: list[Input] = []
        for spent in self._with_previous(useful):
            # A legacy coin brings the transaction that made it, of whatever size that is.
            size += 100 + len(spent.previous)
            if size > psbt.MOST_BYTES - 1_000:
                break
            inputs.append(spent)
        kinds = [key_hash_of(spent.script)[0] for spent in inputs]
        amount = sum(spent.amount for spent in inputs) - fee_for(weight_of(kinds, [len(home)]), rate)
        if not inputs or amount < self._dust(home):
            raise Refused("the coins are not worth the fee of moving them")
        return self._planned(inputs, [PaidTo(amount, home)], True)

    def replace(self, unsigned: str, wallet: str, coins: Sequence[Unspent], rate: int) -> CoinPlan:
        """A replacement (BIP-125, rules 1 to 4): the inputs of `unsigned`, confirmed ones of `coins` where it needs more, the same
        outputs, and less change. The last output is its change where it pays to `wallet`.

        Raises InsufficientFunds; Refused where it would cost more than is ever signed; Unavailable, ValueError as `explain`.
        """
        old, home = self._decoded(unsigned), self._script(wallet)
        kept = list(old.outputs[:-1] if old.outputs[-1].script == home else old.outputs)
        kinds = [kind for kind, _ in old.keys]
        lightest = old.weight - sum(_SHORTER[kind] for kind in kinds)
        rate = max(rate, -(-4_000 * old.fee // lightest) + 1)
        if rate > MOST_RATE:
            raise Refused("a replacement would cost more than any payment should")
        taken = {spent.outpoint for spent in old.inputs}
        more = [spent for coin in coins if coin.height > 0 and (spent := self._input(coin)).outpoint not in taken]
        more = [s for s in more if worth(Candidate(s.amount, INPUT_WEIGHT[key_hash_of(s.script)[0]]), rate) > 0]
        inputs = list(old.inputs)
        more.sort(key=lambda spent: -spent.amount)
        for added in range(len(more) + 1):
            if added:
                inputs.append(more[added - 1])
                kinds.append(key_hash_of(inputs[-1].script)[0])
            left = sum(i.amount for i in inputs) - sum(output.amount for output in kept)
            scripts = [len(output.script) for output in kept]
            if weight_of(kinds, [*scripts, len(home)]) > MOST_WEIGHT:
                break
            change = left - self._raised(old, weight_of(kinds, [*scripts, len(home)]), rate)
            if change >= self._dust(home):
                return self._planned(inputs, [*kept, PaidTo(change, home)], True)
            if kept and left >= self._raised(old, weight_of(kinds, scripts), rate):
                return self._planned(inputs, kept, False)
        raise InsufficientFunds("insufficient funds: the change and the other coins do not pay for a replacement")

    def explain(self, unsigned: str) -> CoinPlan:
        """Decode `unsigned`; `change` is None. Raises ValueError for anything but a transaction as this module plans them: a strict
        encoding, inputs of one key that signal BIP-125, outputs with addresses of this chain, and a fee that payments cost."""
        decoded = self._decoded(unsigned)
        outputs = tuple(Output(self._address(output.script), output.amount) for output in decoded.outputs)
        names = tuple(spent.name for spent in decoded.inputs)
        return CoinPlan(unsigned, names, outputs, None, decoded.fee, -(-decoded.weight // 4))

    def digests(self, unsigned: str) -> list[bytes]:
        """The 32 bytes to sign for each input, in order (BIP-143; the legacy rules for P2PKH). Raises ValueError as `explain`."""
        return list(self._decoded(unsigned).digests)

    def evidence(self, unsigned: str) -> list[tuple[str, str]]:
        """As `CoinPayer.evidence`. Raises ValueError as `explain`."""
        return [(spent.previous.hex(), spent.redeem.hex()) for spent in self._decoded(unsigned).inputs]

    def assemble(self, unsigned: str, signatures: Sequence[Signature]) -> Signed:
        """The signed transaction and its id. Raises ValueError as `explain`, and unless each signature, with s in the lower half
        (BIP-62), is by the key of its input's address."""
        decoded = self._decoded(unsigned)
        if len(signatures) != len(decoded.inputs):
            raise ValueError("each input has one signature")
        hashes = [key_hash for _, key_hash in decoded.keys]
        return decoded.signed([unlock(*parts) for parts in zip(hashes, decoded.digests, signatures, strict=True)])

    def proved(self, raw: str, coins: Sequence[Unspent]) -> ProvedCoins:
        """The content of the signed transaction `raw`. Raises ValueError unless it spends exactly `coins`, and the keys of
        their addresses signed for them."""
        txid, signed = proved(bytes.fromhex(raw), [self._any_input(coin) for coin in coins])
        outputs = tuple(Output(self._address(output.script), output.amount) for output in signed.outputs)
        return ProvedCoins(txid, tuple(spent.name for spent in signed.inputs), outputs)

    def broadcast(self, raw: str) -> None:
        """Hand it to the node. Safe to repeat: what is in the mempool or in a block already is done.

        Raises Refused with the node's words, Unavailable. Refused says that this node does not take it now. It is no proof that it
        never will be mined: only another transaction in a block that spends one of its inputs is.
        """
        txid = transaction_id(bytes.fromhex(raw))
        try:
            answer = self._rpc.call("sendrawtransaction", [raw])
        except RpcError as error:
            if refusals.known_already(error) or self._sure(lambda: self._knows(txid)):
                return
            if refusals.not_taken(error):
                raise Refused(error.message) from error
            raise Unavailable(f"{self._network.slug}: {error}") from error
        if answer != txid:
            raise Unavailable(f"{self._network.slug}: the node answers with the id of another transaction")

    def unspent(self, outpoints: Sequence[str], mempool: bool = True) -> list[Unspent | None]:
        """What the node says of outputs: None where it is spent or unknown, in blocks alone or in its `mempool` too. `height` is 0
        for an output of a transaction that is in no block. Raises Unavailable."""

        return self._unspent_at(self._rpc, outpoints, mempool)

    def vouched_unspent(self, outpoints: Sequence[str]) -> list[Unspent | None]:
        """As `unspent`, in blocks alone, and of two nodes that say the same where there are several: where the first two differ,
        others are asked. Raises Unavailable where no two say the same."""
        found: list[list[Unspent | None]] = []
        for start in range(0, len(outpoints), _ASKED_AT_ONCE):
            part = outpoints[start : start + _ASKED_AT_ONCE]
            told: list[list[Unspent | None]] = []
            for node in self._each if len(self._each) > 1 else (self._rpc,):
                try:
                    told.append(self._unspent_at(node, part, mempool=False))
                except Unavailable as error:
                    log.warning("%s: a node does not say what is spent: %s", self._network.id, error)
                    continue
                if len(self._each) < 2 or told[-1] in told[:-1]:
                    found.append(told[-1])
                    break
            else:
                if len(told) < 2:
                    raise Unavailable(f"{self._network.id}: too few nodes say what is spent")
                raise Unavailable(f"{self._network.id}: no two nodes say the same of what is spent")
        return [each for part in found for each in part]

    def denied(self, outpoints: Sequence[str]) -> bool:
        """Whether one of these outputs is spent or unknown to every node that has a vote, with its mempool and without. False where
        one does not answer."""
        left = list(outpoints)
        for node in electorate(self._each or (self._rpc,)):
            for mempool in (True, False):
                try:
                    found = self._unspent_at(node, left, mempool)
                except Unavailable as error:
                    log.warning("%s: a node does not say what is spent: %s", self._network.id, error)
                    return False
                left = [name for name, seen in zip(left, found, strict=True) if seen is None]
        return bool(left)

    def _unspent_at(self, node: Transport, outpoints: Sequence[str], mempool: bool) -> list[Unspent | None]:
        def ask() -> list[Unspent | None]:
            split = [outpoint.split(":") for outpoint in outpoints]
            info, *found = node.batch(
                [("getblockchaininfo", []), *[("gettxout", [txid, int(index), mempool]) for txid, index in split]]
            )
            tip, best = (
                number(member(info, "blocks", "the chain"), "the number of blocks"),
                hash32(info.get("bestblockhash"), "a block"),
            )
            return [
                None if answer is None else self._unspent(outpoint, answer, tip, best)
                for outpoint, answer in zip(outpoints, found, strict=True)
            ]

        return self._sure(ask) if outpoints else []

    def _unspent(self, outpoint: str, answer: object, tip: int, best: str) -> Unspent:
        if member(answer, "bestblock", "an output") != best:
            raise Garbled("the chain moved while outputs were asked for")
        confirmations = number(member(answer, "confirmations", "an output"), "confirmations")
        script = member(member(answer, "scriptPubKey", "an output"), "hex", "a script")
        try:
            address = self._address(bytes.fromhex(script))
        except (TypeError, ValueError):
            raise Garbled("an output has no script, or one without an address") from None
        return Unspent(
            outpoint, address, units(member(answer, "value", "an output")), tip - confirmations + 1 if confirmations else 0
        )

    def _planned(self, inputs: Sequence[Input], outputs: Sequence[PaidTo], changed: bool) -> CoinPlan:
        unsigned = Unsigned(tuple(self._with_previous(inputs)), tuple(outputs))
        try:
            plan = self.explain(psbt.encode(unsigned))
        except ValueError as error:
            raise Refused(f"what was planned is nothing that would be signed: {error}") from error
        if not changed:
            return plan
        return replace(plan, outputs=plan.outputs[:-1], change=plan.outputs[-1])

    def _with_previous(self, inputs: Sequence[Input]) -> list[Input]:
        """`inputs`, the legacy ones with the transactions that made them, which are checked by their ids."""
        wanted = [s for s in inputs if key_hash_of(s.script, s.redeem)[0] == "p2pkh" and not s.previous]
        if not wanted:
            return list(inputs)

        def ask() -> dict[bytes, bytes]:
            ids = list(dict.fromkeys(spent.outpoint[:32] for spent in wanted))
            found = {}
            for id_, raw in zip(
                ids, self._rpc.batch([("getrawtransaction", [id_[::-1].hex(), False]) for id_ in ids]), strict=True
            ):
                try:
                    found[id_] = without_witnesses(bytes.fromhex(raw))
                except (TypeError, ValueError):
                    raise Garbled("a transaction is none") from None
                if double_sha256(found[id_]) != id_:
                    raise Garbled("the transaction is not the one asked for")
            return found

        previous = self._sure(ask)
        names = {spent.outpoint for spent in wanted}
        return [replace(s, previous=previous[s.outpoint[:32]]) if s.outpoint in names else s for s in inputs]

    def _raised(self, old: Unsigned, weight: int, rate: int) -> int:
        """The least fee of a replacement of this weight: its own rate, and BIP-125's rules 3 and 4 (Core's PaysForRBF)."""
        return max(fee_for(weight, rate), old.fee + fee_for(weight, self._policy.relay_step))

    def _decoded(self, unsigned: str) -> Unsigned:
        decoded = psbt.decode(unsigned)
        if decoded.fee <= 0 or decoded.fee > fee_for(decoded.weight, MOST_RATE):
            raise ValueError(f"the transaction pays {decoded.fee} units to the miners, which no payment costs")
        for output in decoded.outputs:
            self._address(output.script)
        return decoded

    def _payment(self, output: Output) -> PaidTo:
        paid = PaidTo(output.amount, self._script(output.address))
        if paid.amount < self._dust(paid.script):
            raise Refused(f"{paid.amount} units are dust: nodes relay no output of that kind below {self._dust(paid.script)}")
        return paid

    def _input(self, coin: Unspent) -> Input:
        script = self._script(coin.address)
        key_hash_of(script)
        return Input(outpoint_of(coin.outpoint), coin.amount, script)

    def _any_input(self, coin: Unspent) -> Input:
        """Also of a P2SH address, whose script its spender shows."""
        return Input(outpoint_of(coin.outpoint), coin.amount, self._script(coin.address))

    def _change(self, home: bytes) -> Change:
        kind = key_hash_of(home)[0]
        return Change(weight=4 * (9 + len(home)), spend_weight=INPUT_WEIGHT[kind], dust=self._dust(home))

    def _dust(self, script: bytes) -> int:
        return dust_of(script, self._policy.dust_rate)

    def _script(self, address: str) -> bytes:
        return script_of(self._network.slug, address, self._chain)

    def _address(self, script: bytes) -> str:
        return address_of(self._network.slug, script, self._chain)

    def _check_rate(self, rate: int) -> None:
        if not 0 < rate <= MOST_RATE:
            raise ValueError("a fee rate is above zero, and not above what is ever signed")

    def _knows(self, txid: str) -> bool:
        """Whether the node has this transaction in its mempool, or in a block of its chain."""
        try:
            found = self._rpc.call("getrawtransaction", [txid, True])
            if member(found, "txid", "a transaction") != txid:
                raise Garbled("the transaction is not the one asked for")
            if found.get("blockhash") is None:
                return True
            header = self._rpc.call("getblockheader", [found["blockhash"], True])
            height = number(member(header, "height", "a header"), "a block's height")
            return bool(self._rpc.call("getblockhash", [height]) == found["blockhash"])
        except RpcError as error:
            if refusals.no_such_transaction(error, indexed=False):
                return False
            raise

    def _sure(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except (RpcError, Garbled) as error:
            raise Unavailable(f"{self._network.slug}: {error}") from error
