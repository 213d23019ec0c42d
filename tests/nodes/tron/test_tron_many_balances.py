"""Balances of many addresses in one request: the node runs a program. Where one does not, each address is asked for by itself."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from chalicelib.chains.node_comparison import NodeReader
from chalicelib.chains.providers import Health
from chalicelib.chains.quorum import QuorumReader
from chalicelib.chains.tron.reader import TronReader
from chalicelib.domain.ids import AssetId
from chalicelib.domain.reconciliation import Place
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.reconciliation import together
from chalicelib.usecases.reconciliation.together import Together
from tests.support.tron_chain import SOLID, USDT, TronChain, stranger

pytestmark = pytest.mark.nodes

CALL = "walletsolidity/triggerconstantcontract"
TRX, TETHER = AssetId("live:tron:trx"), AssetId("live:tron:usdt")


class Counted:
    """A transport that notes what it is asked."""

    def __init__(self, tron: TronChain) -> None:
        self._http, self.asked = tron.http, list[str]()

    def call(self, method: str, params: Any = ()) -> Any:
        self.asked.append(method)
        return self._http.call(method, params)

    def batch(self, requests: Sequence[tuple[str, Any]]) -> list[Any]:
        return [self.call(*request) for request in requests]


@pytest.fixture
def holders(tron: TronChain) -> list[str]:
    """Two have TRX, two have USDT, two have neither; and no transaction is younger than the solid block."""
    made = [stranger() for _ in range(6)]
    for place, address in enumerate(made[:2], 1):
        tron.node.faucet(address, f"{place}.5")
    for place, address in enumerate(made[2:4], 1):
        tron.node.faucet(address, place, "USDT")
    tron.node.mine(SOLID + 1)
    return made


def test_one_request_tells_all_of_them(tron: TronChain, holders: list[str]) -> None:
    http = Counted(tron)
    reader = TronReader(tron.network, http, None)
    assert reader.solid_balances(holders) == [1_500_000, 2_500_000, 0, 0, 0, 0]
    assert reader.solid_balances(holders, USDT) == [0, 0, 1_000_000, 2_000_000, 0, 0]
    assert http.asked == [CALL, CALL]
    for contract in (None, USDT):
        assert reader.solid_balances(holders, contract) == [reader.solid_balance(each, contract) for each in holders]
    tron.node.faucet(holders[4], "3")
    assert reader.solid_balances(holders) == [1_500_000, 2_500_000, 0, 0, 0, 0], "what is not solid does not count"


def test_a_node_that_does_not_run_it_tells_nothing(tron: TronChain, holders: list[str]) -> None:
    reverted = {"result": {"result": True, "message": b"REVERT opcode executed".hex()}, "constant_result": [""]}
    late = {"result": {"code": "OTHER_ERROR", "message": b"CPU timeout for 'MLOAD' operation executing".hex()}}
    short = {"result": {"result": True}, "constant_result": ["00" * 32 * 5]}
    old = {"result": {"code": "CONTRACT_VALIDATE_ERROR", "message": b"Smart contract is not exist.".hex()}}
    for answer in (reverted, late, short, old, {"result": {"result": True}}, {}):
        reader = TronReader(tron.network, tron.lying(CALL, lambda _, answer=answer: answer), None)
        assert reader.solid_balances(holders) is None
    assert tron.reader.solid_balances(holders, stranger()) is None, "there is no contract"


def test_two_nodes_have_to_say_the_same_of_an_address(tron: TronChain, holders: list[str]) -> None:
    def more(answer: Any) -> Any:
        told = answer["constant_result"][0]
        return {**answer, "constant_result": [told[:-64] + f"{7:064x}"]}

    liar = TronReader(tron.network, tron.lying(CALL, more), None)
    mute = TronReader(tron.network, tron.lying(CALL, lambda _: {}), None)
    honest = tron.reader

    def several(*readers: Any) -> QuorumReader:
        return QuorumReader(tron.network, [NodeReader(each, Health(n)) for n, each in enumerate(readers, 1)])

    told = [1_500_000, 2_500_000, 0, 0, 0, 0]
    assert several(honest, honest).solid_balances(holders) == told
    assert several(liar, honest).solid_balances(holders) == told, "the one that they differ about is asked for by itself"
    assert several(mute, honest).solid_balances(holders) is None
    assert several(mute, honest, honest).solid_balances(holders) == told


def places(holders: Sequence[str]) -> list[Place]:
    return [Place(each, "user", asset, contract) for asset, contract in ((TRX, None), (TETHER, USDT)) for each in holders]


def test_a_look_asks_a_hundred_at_a_time(tron: TronChain, holders: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "MOST", 4)
    http = Counted(tron)
    wanted = places(holders)
    staked = replace(wanted[0], staked=True)
    found = Together(TronReader(tron.network, http, None)).told([*wanted, staked])
    assert [found[place] for place in wanted] == [1_500_000, 2_500_000, 0, 0, 0, 0, 0, 0, 1_000_000, 2_000_000, 0, 0]
    assert staked not in found
    assert http.asked.count(CALL) == 2 + 2 and http.asked.count("walletsolidity/getaccount") == 2, "two that are left are few"


def test_a_look_asks_one_by_one_where_it_must(tron: TronChain, holders: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "MOST", 4)
    monkeypatch.setattr(together, "AT_ONCE", 1)
    calls: list[object] = []

    def refuses(answer: Any) -> Any:
        calls.append(answer)
        return {}

    look = Together(TronReader(tron.network, tron.lying(CALL, refuses), None))
    assert look.told(places(holders)[:6]) == look.told(places(holders)[:6]) == {} and len(calls) == 1, "it is asked for so once"

    def gone(*_: Any) -> None:
        raise Unavailable("no node answers")

    with pytest.raises(Unavailable):
        Together(SimpleNamespace(solid_balances=gone)).told(places(holders))  # type: ignore[arg-type]


def test_a_key_of_a_provider_is_not_suspended(tron: TronChain, holders: list[str]) -> None:
    look, began = Together(tron.reader), time.monotonic()
    for _ in range(2):
        look.told(places(holders)[:6])
    assert time.monotonic() - began >= 2 * together.APART_S
