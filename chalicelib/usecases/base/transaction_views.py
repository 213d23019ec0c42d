"""On-chain transactions in their public form: deposits, payments of withdrawals, stakes and moves have the same fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chalicelib.domain.catalogue.catalogue import Catalogue, Network
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import network_parts
from chalicelib.domain.invoices.quotes import FiatValue
from chalicelib.domain.money import format_units
from chalicelib.domain.times import iso
from chalicelib.domain.treasury.consolidations import CoinMove
from chalicelib.domain.treasury.moves import Move, transaction_state, transaction_type
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.domain.withdrawals.withdrawals import Withdrawal, transaction_status


def transaction_id(record: Deposit | Withdrawal | Stake | Move | CoinMove) -> str:
    """The id of a transaction: a deposit's own, another's with another prefix (`wd_x` is paid by `txw_x`, `stk_x` by `txs_x`,
    `mov_x` by `txm_x`, `cmv_x` by `txc_x`)."""
    if isinstance(record, CoinMove):
        return f"txc_{record.id.removeprefix('cmv_')}"
    if isinstance(record, Move):
        return f"txm_{record.id.removeprefix('mov_')}"
    if isinstance(record, Stake):
        return f"txs_{record.id.removeprefix('stk_')}"
    return record.id if isinstance(record, Deposit) else f"txw_{record.id.removeprefix('wd_')}"


def withdrawal_of(transaction: str) -> str | None:
    """The withdrawal that a transaction with this id pays; None where it pays none."""
    return f"wd_{transaction.removeprefix('txw_')}" if transaction.startswith("txw_") else None


def stake_of(transaction: str) -> str | None:
    """The stake that a transaction with this id makes; None where it makes none."""
    return f"stk_{transaction.removeprefix('txs_')}" if transaction.startswith("txs_") else None


def move_of(transaction: str) -> str | None:
    """The move that a transaction with this id makes; None where it makes none."""
    return f"mov_{transaction.removeprefix('txm_')}" if transaction.startswith("txm_") else None


def coin_move_of(transaction: str) -> str | None:
    """The coin move that a transaction with this id makes; None where it makes none."""
    return f"cmv_{transaction.removeprefix('txc_')}" if transaction.startswith("txc_") else None


@dataclass(frozen=True, slots=True)
class _Told:
    """What each kind has in its own way. `fee` as it is shown; `counted` blocks are on it."""

    type: str
    hash: str | None
    sender: str | None
    recipient: str
    fee: str | None
    status: str
    final: bool
    counted: int
    invoice_id: str | None = None
    withdrawal_id: str | None = None
    flags: tuple[str, ...] = ()


def fiat_record(worth: FiatValue | None) -> dict[str, str] | None:
    """What a payment was worth, as it is shown."""
    return None if worth is None else dict(zip(("amount", "currency", "source"), worth, strict=True))


def deposit_record(catalogue: Catalogue, deposit: Deposit, tip: int | None = None) -> dict[str, Any]:
    """`tip` is the chain's height, from which confirmations are counted; without it only the settled state is known."""
    told = _Told(
        type="deposit",
        hash=deposit.txid,
        sender=deposit.sender,
        recipient=deposit.address,
        fee=None,
        status=deposit.status,
        final=deposit.status == "confirmed",
        counted=0 if tip is None or deposit.status == "orphaned" else depth(deposit.block_number, tip),
        invoice_id=deposit.invoice_id,
        flags=deposit.flags,
    )
    return _record(catalogue, deposit, told)


def payment_record(catalogue: Catalogue, withdrawal: Withdrawal) -> dict[str, Any]:
    """The on-chain transaction of a withdrawal: paid by the hot wallet."""
    told = _Told(
        type="withdrawal",
        hash=withdrawal.txid,
        sender=withdrawal.from_address,
        recipient=withdrawal.to_address,
        fee=format_units(withdrawal.fee, catalogue.coin_of(withdrawal.fee_asset).decimals),
        status=transaction_status(withdrawal.status),
        final=withdrawal.status == "confirmed",
        counted=withdrawal.confirmations,
        withdrawal_id=withdrawal.id,
    )
    return _record(catalogue, withdrawal, told)


def stake_record(catalogue: Catalogue, stake: Stake, tip: int | None = None) -> dict[str, Any]:
    """A stake: coins that the chain locks are still their wallet's. `tip` as for a deposit."""
    told = _Told(
        type="stake",
        hash=stake.txid,
        sender=stake.wallet,
        recipient=stake.wallet,
        fee=format_units(stake.fee, catalogue.coin_of(stake.asset).decimals),
        status=stake.status,
        final=stake.status == "confirmed",
        counted=0 if tip is None else depth(stake.block_number, tip),
    )
    return _record(catalogue, stake, told)


def move_record(catalogue: Catalogue, move: Move | CoinMove) -> dict[str, Any]:
    """A move between the operator's places, once it is signed. It is shown in its block once it is final there."""
    native = catalogue.native(network_parts(move.network)[1])
    told = _Told(
        type="collection" if isinstance(move, CoinMove) else transaction_type(move),
        hash=move.hash,
        sender=move.source,
        recipient=move.recipient,
        fee=format_units(move.fee, native.decimals),
        status=move.transaction_status if isinstance(move, CoinMove) else transaction_state(move),
        final=move.state == "settled",
        counted=0,
    )
    return _record(catalogue, move, told)


def _record(catalogue: Catalogue, record: Deposit | Withdrawal | Stake | Move | CoinMove, told: _Told) -> dict[str, Any]:
    coin, network = catalogue.coin_of(record.asset), catalogue.networks[network_parts(record.network)[1]]
    return {
        "id": transaction_id(record),
        "hash": told.hash,
        "network": network.slug,
        "coin": coin.slug,
        "symbol": coin.symbol,
        "contractAddress": coin.contract,
        "type": told.type,
        "address": told.recipient,
        "from": told.sender,
        "to": told.recipient,
        "amount": format_units(record.amount, coin.decimals),
        "fee": told.fee,
        "status": told.status,
        "confirmations": confirmations(network, told.final, told.counted),
        "requiredConfirmations": network.confirmations,
        "blockNumber": record.block_number,
        "blockHash": record.block_hash,
        "invoiceId": told.invoice_id,
        "withdrawalId": told.withdrawal_id,
        "flags": list(told.flags),
        "createdAt": iso(record.created_at),
        "confirmedAt": None if record.confirmed_at is None else iso(record.confirmed_at),
    }


def depth(block: int | None, tip: int | None) -> int:
    """Blocks on top of `block`, itself included, where the chain is `tip` high; 1 where the tip is unknown, 0 in no block."""
    if block is None:
        return 0
    return 1 if tip is None else max(1, tip - block + 1)


def confirmations(network: Network, confirmed: bool, counted: int) -> int:
    """Blocks on a transaction as they are shown: counted until they are enough, and no further, whatever it moves."""
    return network.confirmations if confirmed else min(max(0, counted), network.confirmations)
