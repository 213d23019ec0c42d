"""What the owner of a cold wallet pays out of it: booked by the operator's command alone, as the chain says, once."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from chalicelib.chains.sandbox.ledger import Tx
from infra.cli import main
from tests.support.reconciling import THIEF, USDT, compared, sums
from tests.support.shop import ETHER, Shop, open_shop
from tests.support.stack import Stack
from tests.support.treasury import cold


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as made:
        yield made


def spend(shop: Shop, address: str, units: int, coin: str = "eth", fee: int = 0) -> str:
    """The owner of the wallet pays; the transaction."""
    chain, contract = shop.chain(), shop.coin(coin).contract
    source, nonce = chain.form(address), chain.nonce(address)
    txid = f"0x{random.Random(f'{source}{nonce}').randbytes(32).hex()}"
    chain.submit(Tx(txid, source, THIEF, None if contract is None else chain.form(contract), units, fee, nonce))
    return txid


def adjust(txid: str, amount: str, coin: str = "eth", *more: str) -> int:
    words = ("--realm", "test", "--network", "ethereum", "--coin", coin, "--amount", amount, "--reference", txid, *more)
    return main(["--stage", "local", "cold-adjust", *words, "--reason", "paid the auditors"])


def test_what_left_the_cold_wallet_is_booked_once_as_the_chain_says(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    address = cold(shop)
    shop.pay(address, "5")
    shop.pay(address, "50", "usdt")
    shop.mine()
    shop.turn()
    native, token = spend(shop, address, 2 * ETHER, fee=7), spend(shop, address, 20 * USDT, "usdt", fee=9)
    shop.mine(30)
    shop.turn()
    assert adjust(native, "2.000000000000000007") == 1 and "blocks deep, and has to be 64" in capsys.readouterr().err
    shop.mine(40)
    shop.turn()
    report = compared(shop)
    differences = {(d.asset, d.expected - d.held) for d in report.differences}
    assert differences == {("test:ethereum:eth", 2 * ETHER + 16), ("test:ethereum:usdt", 20 * USDT)}
    refused = {
        "took 2.000000000000000007 eth from there": (native, "2", "eth"),
        "took 20 usdt from there": (token, "19", "usdt"),
        "took 0 usdt from there": (native, "2", "usdt"),
        "the ledger has 5 eth there": (native, "6", "eth"),
        "is in no block": ("0x" + "12" * 32, "2", "eth"),
        "has no such cold wallet": (native, "2", "eth", "--address", shop.hot().address),
        "above zero": (native, "0", "eth"),
        "the id of a transaction": ("my safe", "1", "eth"),
    }
    for why, words in refused.items():
        assert adjust(*words) == 1, why
        assert why in capsys.readouterr().err
    for _ in range(2):
        assert adjust(native.upper().replace("0X", "0x"), "2.000000000000000007") == 0
        assert adjust(token, "20", "usdt") == 0
        assert capsys.readouterr().err == ""
    assert adjust(token, "21", "usdt") == 1 and "with another amount" in capsys.readouterr().err
    # Who paid the fee of a call no block says: the operator does, and no more than what is missing there.
    assert adjust(token, "0.00000000000000001") == 1 and "has only 0.000000000000000009 eth less" in capsys.readouterr().err
    assert adjust(token, "0.000000000000000009") == 0 and "on your word alone" in capsys.readouterr().err
    assert len(shop.journal("cold_spent")) == 3
    after = compared(shop)
    assert after.clean and sums(after, "usdt").operator == sums(report, "usdt").operator - 20 * USDT, "it was the operator's"
