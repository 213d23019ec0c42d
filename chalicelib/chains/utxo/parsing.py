"""Parsing of a UTXO node's blocks and transactions, with checks of each (money rules 8 and 11).

Pure: raises Garbled where an answer contradicts the request or itself. This is the scanner's hot path: a block of the main chain
has some 8,000 outputs.
"""

from __future__ import annotations

import logging
from typing import Any

from chalicelib.chains.answers import Garbled, hash32, member
from chalicelib.chains.utxo.answers import COIN, number, units
from chalicelib.chains.utxo.headers import check_block
from chalicelib.chains.utxo.transactions import PaidTo, double_sha256, outputs_in, without_witnesses
from chalicelib.domain.chain import Block, Reward, Transfer

_log = logging.getLogger(__name__)

_PAYABLE = frozenset(
    {
        "pubkeyhash",
        "scripthash",
        "witness_v0_keyhash",
        "witness_v0_scripthash",
        "witness_v1_taproot",
        # bcoin's words for the same
        "witnesspubkeyhash",
        "witnessscripthash",
    }
)
"""Kinds of scripts that an address stands for. Older nodes name addresses for bare keys and bare multisig as well: what is paid
to those is not what is paid to the address. MWEB's outputs have none that we could watch."""

_make = tuple.__new__


def parse_block(answer: Any, number_: int, hash_: str) -> Block:
    """A block of getblock at verbosity 2, asked for by its hash."""
    _check(member(answer, "hash", "a block") == hash_, "the block is not the one asked for")
    _check(answer.get("height") == number_, "a block is at another height")
    _check(answer.get("confirmations", 1) != -1, "a block fell out of the chain while it was read")
    transactions = answer.get("tx")
    if not isinstance(transactions, list) or answer.get("nTx", len(transactions)) != len(transactions) or not transactions:
        raise Garbled("a block has no list of transactions, or not all of them")
    try:
        check_block(answer, [transaction["txid"] for transaction in transactions])
    except (KeyError, TypeError):
        raise Garbled("a block's transaction is only an id, or has none") from None
    parent = answer.get("previousblockhash")
    return Block(
        number=number_,
        hash=hash_,
        parent_hash="0" * 64 if parent is None and number_ == 0 else hash32(parent, "a block's parent"),
        time=number(answer.get("time"), "a block's time") * 1000,
        transfers=outputs_of(transactions),
        spent=spent_by(transactions),
        rewards=rewards_of(transactions),
    )


def spent_by(transactions: list[Any]) -> dict[str, str]:
    """The spending transaction of each outpoint ("txid:n") among these transactions."""
    found: dict[str, str] = {}
    try:
        for transaction in transactions:
            # In lower case, as ids of ours are kept: one that is spelled otherwise would look like a stranger's.
            txid = transaction["txid"].lower()
            for spent in transaction["vin"]:
                # A coinbase spends nothing, nor does a transaction of MWEB's own an output of the chain.
                if (source := spent.get("txid")) is not None:
                    found[f"{source.lower()}:{spent['vout']}"] = txid
    except (KeyError, TypeError, AttributeError):
        raise Garbled("a transaction's inputs are none") from None
    return found


def rewards_of(transactions: list[Any]) -> list[Reward]:
    """The outputs of a block's coinbase, which `outputs_of` leaves out. Raises Garbled as that does."""
    coinbases = [{**transaction, "vin": [{}]} for transaction in transactions if "coinbase" in transaction["vin"][0]]
    return [Reward(f"coinbase {output.txid}", output.recipient, output.amount) for output in outputs_of(coinbases)]


def outputs_of(transactions: list[Any]) -> list[Transfer]:
    """Every output above zero with an address. `sender` is empty: a transaction names outputs that it spends, no addresses.

    A coinbase's outputs are left out. They can not be spent for 100 blocks, and would be credited long before. What of them is ours
    is an alarm (`usecases/scanning/rewards.py`).
    """
    try:
        return _outputs(transactions)
    except (KeyError, TypeError, IndexError, AttributeError):
        raise Garbled("a transaction or an output lacks a field") from None


def _outputs(transactions: list[Any]) -> list[Transfer]:
    transfers: list[Transfer] = []
    add = transfers.append
    for transaction in transactions:
        txid = transaction["txid"]
        if "coinbase" in transaction["vin"][0]:
            continue
        for output in transaction["vout"]:
            value = output.get("value")
            if not value:
                if value is None and not output.get("ismweb"):
                    raise Garbled("an output has no amount")
                continue
            script = output["scriptPubKey"]
            if script["type"] not in _PAYABLE:
                continue
            address = script.get("address") or script["addresses"][0]
            # `units`, written out for the plain case: calls are what this loop would cost most.
            if type(value) is float and 0.0 < value < 2.0**25:
                amount = round(value * COIN)
                if amount / COIN != value:
                    amount = units(value)
            elif value > 2**25 - 1:
                _log.error("ALARM %s moves more coins than an amount can be read of; it is left out", txid)
                continue
            else:
                amount = units(value)
            add(_make(Transfer, (txid, f"out:{output['n']}", None, "", address, amount)))
    return transfers


def outputs_by_id(raw: Any, txid: str) -> list[PaidTo]:
    """The outputs of a transaction's bytes (hex), whose hash is its id."""
    try:
        bare = without_witnesses(bytes.fromhex(raw))
    except (TypeError, ValueError):
        raise Garbled("a transaction's bytes are none") from None
    _check(double_sha256(bare)[::-1].hex() == txid, "the transaction is not the one asked for")
    return outputs_in(bare)


def _check(right: bool, problem: str) -> None:
    if not right:
        raise Garbled(problem)
