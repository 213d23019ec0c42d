"""Payments on UTXO networks (bitcoin, litecoin): many payments per transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from chalicelib.domain.withdrawals.withdrawals import Priority
from chalicelib.usecases.ports.signing import Signature, Signed


@dataclass(frozen=True, slots=True)
class Output:
    """An output of a UTXO transaction that pays `amount` units to `address` (public spelling)."""

    address: str
    amount: int


@dataclass(frozen=True, slots=True)
class Unspent:
    """An output of ours that may be spent. `outpoint` is "<txid>:<n>", `address` its owner, `height` its block's number."""

    outpoint: str
    address: str
    amount: int
    height: int


@dataclass(frozen=True, slots=True)
class CoinPlan:
    """A UTXO transaction before its signatures: `inputs` are outpoints, `change` the output that comes back to the wallet (None
    where there is none), `fee` in units, exact. `vsize` in virtual bytes (BIP-141)."""

    unsigned: str
    inputs: tuple[str, ...]
    outputs: tuple[Output, ...]
    change: Output | None
    fee: int
    vsize: int


@dataclass(frozen=True, slots=True)
class ProvedCoins:
    """The effect of a signed transaction, by its bytes alone."""

    txid: str
    inputs: tuple[str, ...]
    outputs: tuple[Output, ...]


class CoinPayer(Protocol):
    """One UTXO network, as payments need it. `unsigned` carries the amounts and scripts of what it spends, so that digests and
    fee can be computed from it alone."""

    def fee_rate(self, priority: Priority) -> int:
        """Units per 1,000 virtual bytes to be mined in the time that the priority promises, within bounds. Raises Unavailable."""
        ...

    def plan(self, wallet: str, coins: Sequence[Unspent], outputs: Sequence[Output], rate: int) -> CoinPlan:
        """A transaction that pays `outputs` out of some of `coins`, the rest back to `wallet`, at `rate` units per 1,000 vbytes.
        Raises InsufficientFunds, Refused (an output is dust)."""
        ...

    def consolidate(self, wallet: str, coins: Sequence[Unspent], rate: int) -> CoinPlan:
        """A transaction that pays all of `coins` that are worth their fee to `wallet`. Raises Refused where none is."""
        ...

    def replace(self, unsigned: str, wallet: str, coins: Sequence[Unspent], rate: int) -> CoinPlan:
        """A replacement (BIP-125) of `unsigned` that pays the same outputs, spends at least its inputs, and `coins` where it needs
        more, at `rate` or what nodes ask of a replacement, whichever is more. Raises InsufficientFunds."""
        ...

    def explain(self, unsigned: str) -> CoinPlan:
        """Decode `unsigned`; `change` is None (every output is in `outputs`, in order). Raises ValueError for anything else than
        a transaction of ours that spends plain key-hash outputs and can be replaced."""
        ...

    def digests(self, unsigned: str) -> list[bytes]:
        """The 32 bytes to sign for each input, in order (BIP-143; the legacy rules for legacy inputs)."""
        ...

    def evidence(self, unsigned: str) -> list[tuple[str, str]]:
        """For each input, in order, what no record of a coin has: the transaction that made a P2PKH coin, without its witnesses,
        and the script behind a P2SH address. As hex, "" where there is none."""
        ...

    def assemble(self, unsigned: str, signatures: Sequence[Signature]) -> Signed:
        """The signed transaction and its id. Raises ValueError unless each signature is by the key of its input's address."""
        ...

    def proved(self, raw: str, coins: Sequence[Unspent]) -> ProvedCoins:
        """The effect of the signed transaction `raw`. Raises ValueError unless it spends exactly `coins`, in whatever order, and
        each is signed for by the key of its address."""
        ...

    def broadcast(self, raw: str) -> None:
        """As `ChainPayer.broadcast`."""
        ...

    def unspent(self, outpoints: Sequence[str], mempool: bool = True) -> list[Unspent | None]:
        """The node's answer about outputs: None where one is spent or unknown, in blocks alone or in its mempool too. Raises
        Unavailable."""
        ...

    def denied(self, outpoints: Sequence[str]) -> bool:
        """Whether one of these outputs is spent or unknown to every node that is configured, with its mempool and without. False
        where one does not answer."""
        ...
