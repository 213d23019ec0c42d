"""Blocks, pending transactions and forks. Not safe for threads: the server holds one lock round every request.

As java-tron does, a transaction is carried out when it arrives, so that accounts show it at once, and once more in its block.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

from coincurve import PrivateKey

from chalicelib.encoding import base58check
from chalicelib.encoding.public_keys import tron_address
from infra.local.tron import execution
from infra.local.tron.delegation import Invalid
from infra.local.tron.execution import Outcome
from infra.local.tron.messages import CODEC, TYPE_URL, Signed, new_contract, sha256
from infra.local.tron.protobuf import Malformed, Message
from infra.local.tron.signatures import BadSignature, check_signatures
from infra.local.tron.state import TRX, Account, Journal, State
from infra.local.tron.tokens import Passer, Token, credit

SLOT = 3_000
"""Milliseconds between two blocks of the real network."""
SOLID_LAG = 18
"""A block is solid once 19 of the 27 witnesses stand behind it: itself and 18 successors."""
RECENT_BLOCKS = 65_536
MAX_AGE = 24 * 3_600_000
MAX_SIZE = 500 * 1024
WITNESSES = 27
VERSION = 34
RICH_BALANCE = 10_000_000_000 * TRX


class Refused(Exception):
    """A broadcast transaction was not taken. `code` as in api.proto's Return.response_code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message = code, message


@dataclass(frozen=True, slots=True)
class Included:
    """A transaction in a block, and what it did there."""

    signed: Signed
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Block:
    """A block. `undo` takes the state back to its parent's."""

    number: int
    id: bytes
    header: Message
    signature: bytes
    included: tuple[Included, ...]
    undo: Journal

    @property
    def time(self) -> int:
        """Milliseconds since 1970."""
        return int(self.header.get("timestamp", 0))


class Chain:
    """The whole chain. `dev` is the key of an account with TRX and tokens enough for every test."""

    def __init__(self) -> None:
        self.state = State()
        self.blocks: list[Block] = []
        self.pending: dict[bytes, Signed] = {}
        self.shift = 0
        self.drop, self.busy = 0, 0
        self.dev = PrivateKey(sha256(b"a rich account of the Tron test node"))
        self._witnesses = [PrivateKey(sha256(b"witness %d" % index)) for index in range(WITNESSES)]
        self._branch = 0
        self.state.put_account(Account(address_of(self.dev), balance=RICH_BALANCE, created=self.now()))
        self._append([])
        self.state.begin()

    @property
    def head(self) -> Block:
        return self.blocks[-1]

    @property
    def solid(self) -> Block:
        return self.blocks[max(self.head.number - SOLID_LAG, 0)]

    @property
    def solid_state(self) -> State:
        """A view of what was known after the solid block."""
        newer = [block.undo for block in reversed(self.blocks[self.solid.number + 1 :])]
        return self.state.before([self.state.pending, *newer])

    def now(self) -> int:
        """The node's clock, in milliseconds."""
        return time.time_ns() // 1_000_000 + self.shift

    def by_id(self, block_id: bytes) -> Block | None:
        """The block of the chain with this id; blocks of abandoned branches are forgotten."""
        number = int.from_bytes(block_id[:8])
        found = self.blocks[number] if number < len(self.blocks) else None
        return found if found and found.id == block_id else None

    def find(self, txid: bytes) -> tuple[Block, Included] | None:
        """The transaction in the chain. Pending ones are not there yet."""
        number = self.state.get(("tx", txid), -1)
        if number < 0:
            return None
        block = self.blocks[number]
        return block, next(one for one in block.included if one.signed.txid == txid)

    def reference(self) -> Message:
        """What every new raw_data has: reference block (the solid one, which no fork takes away), expiry, timestamp."""
        solid = self.solid
        return {
            "ref_block_bytes": solid.number.to_bytes(8)[6:],
            "ref_block_hash": solid.id[8:16],
            "expiration": self.head.time + 60_000,
            "timestamp": self.now(),
        }

    def build(self, kind: str, value: Message, **more: object) -> Signed:
        """An unsigned transaction. Source: the documents of createtransaction."""
        return Signed({**self.reference(), "contract": [new_contract(kind, value)], **more})

    def broadcast(self, signed: Signed) -> None:
        """Take a transaction into the next block. Raises Refused."""
        if self.busy:
            self.busy -= 1
            raise Refused("SERVER_BUSY", "Server busy.")
        self._check_form(signed)
        self.state.begin()
        try:
            self._check_place(signed)
            self._carry_out(signed, self.head.time)
        except BaseException:
            self.state.rollback()
            raise
        if self.drop:
            self.drop -= 1
            self.state.rollback()
            return
        self.state.commit()
        self.pending[signed.txid] = signed

    def send(self, kind: str, value: Message, **more: object) -> Signed:
        """Sign a transaction of the rich account and broadcast it. Raises Refused."""
        unsigned = self.build(kind, {"owner_address": address_of(self.dev), **value}, **more)
        # Two equal transactions within a millisecond would be one and the same.
        while unsigned.txid in self.pending or self.state.get(("tx", unsigned.txid)) is not None:
            unsigned = Signed({**unsigned.raw, "timestamp": unsigned.raw["timestamp"] + 1})
        signed = replace(unsigned, signatures=(self.dev.sign_recoverable(unsigned.txid, hasher=None),))
        self.broadcast(signed)
        return signed

    def mine(self, count: int = 1) -> None:
        """Append blocks; the first has the pending transactions. What has become invalid meanwhile is dropped without a word."""
        for _ in range(count):
            self._append_with(None)

    def reorganise(self, depth: int, *, remine: bool) -> None:
        """Replace the last `depth` blocks by one more of another branch. Their transactions are lost, or with `remine` mined again.

        Raises ValueError when there are not so many blocks. The real network never does it to solid blocks; this node does.
        """
        if not 0 < depth <= self.head.number:
            raise ValueError(f"depth must be 1 to {self.head.number}")
        self.state.rollback()
        lost: list[Signed] = []
        for _ in range(depth):
            block = self.blocks.pop()
            self.state.undo(block.undo)
            lost[:0] = [one.signed for one in block.included]
        self._branch += 1
        waiting = [*(lost if remine else []), *self.pending.values()]
        self.pending = {}
        self._append(waiting)
        self.state.begin()
        self.mine(depth)

    def deploy(self, contract: Token | Passer) -> None:
        """Put a contract onto the chain, in a block of its own; a token's whole supply goes to its owner."""
        self._append_with(lambda when: self._install(contract, when))

    def settle(self, key: Hashable, value: Any) -> None:
        """Set a value by fiat, in a block of its own, so that pending transactions and forks respect it."""
        self._append_with(lambda _: self.state.put(key, value))

    def _append_with(self, change: Callable[[int], None] | None) -> None:
        waiting, self.pending = list(self.pending.values()), {}
        self.state.rollback()
        self._append(waiting, change)
        self.state.begin()

    def _append(self, waiting: list[Signed], change: Callable[[int], None] | None = None) -> None:
        self.state.begin()
        number = len(self.blocks)
        parent = self.blocks[-1] if self.blocks else None
        when = max(self.now(), parent.time + 1 if parent else 0)
        included = []
        for signed in waiting:
            self.state.begin()
            try:
                if parent is not None:
                    self._check_place(signed)
                included.append(Included(signed, self._carry_out(signed, when)))
            except Refused:
                self.state.rollback()
                continue
            self.state.put(("tx", signed.txid), number)
            self.state.commit()
        if change is not None:
            change(when)
        witness = self._witnesses[(number + self._branch) % WITNESSES]
        header: Message = {
            "timestamp": when,
            "txTrieRoot": merkle_root([sha256(one.signed.encoded(one.outcome.contract_ret)) for one in included]),
            "parentHash": parent.id if parent else bytes(32),
            "number": number,
            "witness_address": address_of(witness),
            "version": VERSION,
        }
        digest = sha256(CODEC.encode("BlockHeader", header))
        signature = witness.sign_recoverable(digest, hasher=None)
        undo = self.state.commit()
        self.blocks.append(Block(number, number.to_bytes(8) + digest[8:], header, signature, tuple(included), undo))

    def _install(self, contract: Token | Passer, when: int) -> None:
        self.state.put(("contract", contract.address), contract)
        self.state.put_account(Account(contract.address, created=when, contract=True))
        if isinstance(contract, Token):
            credit(self.state, contract.address, contract.owner, contract.supply)

    def _check_form(self, signed: Signed) -> None:
        for signature in signed.signatures:
            if len(signature) < 65:
                raise Refused("SIGERROR", f"Validate signature error: Signature size is {len(signature)}")
        if not signed.raw.get("contract"):
            raise Refused("CONTRACT_VALIDATE_ERROR", "Contract validate error : No contract!")
        kind, real = signed.contract.get("type", "AccountCreateContract"), signed.contract["parameter"]["type_url"]
        if real != TYPE_URL + kind:
            words = f"contract type error, expected type [{kind}], real type [{real.removeprefix(TYPE_URL)}]"
            raise Refused("CONTRACT_VALIDATE_ERROR", f"Contract validate error : {words}")
        if signed.raw.get("expiration", 0) < self.head.time + SLOT:
            raise Refused("TRANSACTION_EXPIRATION_ERROR", "Transaction expired")
        try:
            check_signatures(signed)
        except BadSignature as error:
            raise Refused("SIGERROR", f"Validate signature error: {error}") from None

    def _check_place(self, signed: Signed) -> None:
        """Reference block, size, expiry, and that it is not in the chain or pending already."""
        head, raw = self.head, signed.raw
        back = head.number - int.from_bytes(raw.get("ref_block_bytes", b"")) & RECENT_BLOCKS - 1
        reference = self.blocks[head.number - back] if back <= head.number and len(raw.get("ref_block_bytes", b"")) == 2 else None
        if reference is None or reference.id[8:16] != raw.get("ref_block_hash", b""):
            raise Refused("TAPOS_ERROR", "Tapos check error.")
        size = len(signed.encoded())
        if size > MAX_SIZE:
            raise Refused("TOO_BIG_TRANSACTION_ERROR", f"Too big transaction, the size is {size} bytes")
        if not head.time < raw.get("expiration", 0) <= head.time + MAX_AGE:
            raise Refused("TRANSACTION_EXPIRATION_ERROR", "Transaction expired")
        if len(raw["contract"]) != 1:
            raise Refused(
                "CONTRACT_VALIDATE_ERROR", f"Contract validate error : act size should be exactly 1, not {len(raw['contract'])}"
            )
        if signed.txid in self.pending or self.state.get(("tx", signed.txid)) is not None:
            raise Refused("DUP_TRANSACTION_ERROR", "Dup transaction.")

    def _carry_out(self, signed: Signed, when: int) -> Outcome:
        try:
            return execution.apply(self.state, signed, when)
        except Invalid as error:
            raise Refused("CONTRACT_VALIDATE_ERROR", f"Contract validate error : {error}") from None
        except execution.Insufficient:
            raise Refused("BANDWITH_ERROR", "Account resource insufficient error.") from None
        except Malformed as error:
            raise Refused("OTHER_ERROR", f"Error: {error}") from None


def merkle_root(leaves: list[bytes]) -> bytes:
    """The root over the transactions' hashes; an odd one is carried up. 32 zeros over none. Source: java-tron's MerkleTree."""
    while len(leaves) > 1:
        pairs = [leaves[index : index + 2] for index in range(0, len(leaves), 2)]
        leaves = [sha256(b"".join(pair)) if len(pair) == 2 else pair[0] for pair in pairs]
    return leaves[0] if leaves else bytes(32)


def address_of(key: PrivateKey) -> bytes:
    """21 bytes."""
    return base58check.decode(tron_address(key.public_key.format(compressed=False)[1:]))
