"""The second reader: the library of a network's family reads an order and signed bytes beside our own code (money rule 15)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeVar

from chalicelib.domain.treasury.stakes import Resource
from chalicelib.usecases.ports.coins import Output

OrderKind = Literal["payment", "stake", "delegation", "undelegation"]
Reading = Mapping[str, object]
"""Every field of a transaction by its name in the family's format, beside them `fee` and `signer`."""
O_contra = TypeVar("O_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Order:
    """One transaction of an account network, by the records that were approved. `amount` in units; `contract` None for the native
    coin; `nonce` None where the caller allotted none. A stake's recipient is its sender; a loan's `amount` is the stake lent.

    `unsigned` are our bytes: a second reader takes those fields from them that no order states (fee rates, gas, expiry), as plain
    data. `fee` is the most that they can cost by our own reading, in units of the native coin: the caller has bounded it.
    """

    kind: OrderKind
    sender: str
    recipient: str
    contract: str | None
    amount: int
    nonce: int | None
    fee: int
    unsigned: str
    resource: Resource | None = None


@dataclass(frozen=True, slots=True)
class Built:
    """The transaction that a library makes of an order: the 32 bytes to sign for each input (one on account networks), and
    every field that the signed bytes must have."""

    digests: tuple[bytes, ...]
    reading: Reading


class SecondReader(Protocol[O_contra]):
    """One network, read by its family's library. Shares no code with the payer that builds the bytes; has no key."""

    def built(self, order: O_contra) -> Built:
        """The order's transaction. Raises ValueError for an order that the library makes none of."""
        ...

    def read(self, order: O_contra, raw: str) -> Reading:
        """The fields of the signed bytes `raw`, and `txid`, their id, all of them decoded by the library; `order` tells what no
        bytes do, such as the amounts of spent outputs. Raises ValueError for what the library can not decode."""
        ...


@dataclass(frozen=True, slots=True)
class OrderedCoin:
    """A coin that an order spends, by its stored record: `outpoint` is "<txid>:<n>", `amount` in units, `address` its owner's.

    No record has the last two, and both are proved by a hash that it has. `previous` is the transaction that made a P2PKH coin,
    without its witnesses: a legacy signature does not commit to the amount. `redeem` is the script behind a P2SH address. As hex.
    """

    outpoint: str
    amount: int
    address: str
    previous: str = field(default="", repr=False)
    redeem: str = ""


@dataclass(frozen=True, slots=True)
class CoinOrder:
    """One transaction of a UTXO network, by the records that were approved: the coins in the order in which our bytes spend them,
    the payments in their order, the change last."""

    inputs: tuple[OrderedCoin, ...]
    outputs: tuple[Output, ...]
