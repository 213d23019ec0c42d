"""Transactions that a payer's Tron wallet signs: the JSON is what the wallet's library takes, and its signature is read."""

from __future__ import annotations

import hashlib

import pytest

from chalicelib.chains.tron.payer import TronPayer
from chalicelib.chains.tron.payer_transactions import TronPayerTransactions
from chalicelib.usecases.ports.payer_transactions import PayerTransfer

PAYER = "TCNkawTmcQgYSU8nP8cHswT1QPjharxJr7"  # of the key 0x0101...01
SHOP = "TQn9Y2khEsLJW1ChVWFMSMeRDow5KcbLSE"
USDT = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"
BLOCK = "000000000324ab" + "cd" * 25
NOW, END = 1_790_000_000_123, 1_790_000_600_000
SIGNED = {
    None: "767ea60a27d355048c060e442d5c9e0ea7b8ac3c580a3a9bc1177d5ef9b10a1a66"
    "5b5b2913afd53b077f9beaa453005bfb6b20ab7fc8970162344325cdf955ef1C",
    USDT: "9a6ac7b2e3abd7b1b9dda6736942788cd39db7ba853fe4a8f68a9725aa1af5d83e"
    "cf8dcfd75c77360898d43be7eaf5de82eb0ce10c2513e20d49134208db89011B",
}  # fmt: skip
"""What tronweb 6 (npm) makes of these transactions with that key, after it has made the id of the JSON itself (`txCheck`)."""


def no_node() -> TronPayer:
    raise AssertionError("no node is asked")


TRANSACTIONS = TronPayerTransactions(no_node)


@pytest.mark.parametrize("contract", [None, USDT], ids=["trx", "usdt"])
def test_what_tronweb_signs_is_read(contract: str | None) -> None:
    transfer = PayerTransfer(PAYER, SHOP, contract, 12_345_678)
    made = TRANSACTIONS.build(transfer, BLOCK, NOW, END)
    assert made["txID"] == hashlib.sha256(bytes.fromhex(made["raw_data_hex"])).hexdigest()
    assert made["visible"] is False
    read = TRANSACTIONS.read(made["raw_data_hex"], SIGNED[contract])
    assert (read.transfer, read.txid, read.expires_at) == (transfer, made["txID"], END)
    assert TRANSACTIONS.read("0x" + made["raw_data_hex"].upper(), "0x" + SIGNED[contract].lower()) == read


def test_anything_else_is_refused() -> None:
    made = TRANSACTIONS.build(PayerTransfer(PAYER, SHOP, None, 12_345_678), BLOCK, NOW, END)["raw_data_hex"]
    good = SIGNED[None]
    for raw, signature in (
        (made, SIGNED[USDT]), (made, good[:-2] + "02"), (made, good[:-2]), (made, ""), (made, "zz" * 65), (made + "00", good),
        (made[:-2], good), ("", good), ("0a", good), ("00" * 2000, good),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"\w"):
            TRANSACTIONS.read(raw, signature)


def test_no_byte_can_be_another_one() -> None:
    made = TRANSACTIONS.build(PayerTransfer(PAYER, SHOP, None, 12_345_678), BLOCK, NOW, END)["raw_data_hex"]
    for place in range(0, len(made), 2):
        changed = made[:place] + f"{int(made[place : place + 2], 16) ^ 1:02x}" + made[place + 2 :]
        with pytest.raises(ValueError, match=r"\w"):
            TRANSACTIONS.read(changed, SIGNED[None])


def test_a_transfer_that_no_wallet_can_make_is_not_built() -> None:
    for wrong, block in (
        (PayerTransfer(PAYER, PAYER, None, 1), BLOCK), (PayerTransfer(PAYER, SHOP, None, 0), BLOCK),
        (PayerTransfer(PAYER, SHOP, None, 2**63), BLOCK), (PayerTransfer(PAYER, SHOP, None, 1), "0x" + "ab" * 32),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="the "):
            TRANSACTIONS.build(wrong, block, NOW, END)
