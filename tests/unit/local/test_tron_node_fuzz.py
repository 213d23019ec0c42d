"""Whatever is sent to the Tron test node, it answers, and a refusal leaves the chain as it was."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from infra.local.tron.api import Api
from infra.local.tron.chain import Chain, address_of
from infra.local.tron.dev import USDT, Dev
from infra.local.tron.messages import Signed, from_json, transaction_json
from infra.local.tron.server import Server
from infra.local.tron.state import TRX

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 65), 1 << 65),
    st.sampled_from(["", "41", "00" * 20, "41" + "00" * 20, USDT.hex(), "a9059cbb", "ff" * 65, "BANDWIDTH", "ENERGY", "é", "-5"]),
    st.lists(st.integers(0, 3), max_size=2),
    st.dictionaries(st.sampled_from(["amount", "resource", "type_url"]), st.integers(0, 3), max_size=2),
)
CHAIN = Chain()
API = Api(CHAIN)
DEV = Dev(CHAIN, API, mines=False)
OWNER = address_of(CHAIN.dev)
CALLS = [*API._wallet_routes, *API._routes]
FIELDS = ["address", "owner_address", "to_address", "contract_address", "amount", "value", "num", "startNum", "endNum", "id_or_num",
          "data", "parameter", "function_selector", "call_value", "fee_limit", "frozen_balance", "unfreeze_balance", "resource",
          "transaction", "raw_data", "signature", "visible", "detail", "extra_data"]  # fmt: skip


def transactions() -> list[dict[str, Any]]:
    """One of each kind, signed, each of which would be taken."""
    to = {"to_address": b"\x41" + bytes(range(20)), "amount": TRX}
    token = {"contract_address": USDT, "data": bytes.fromhex("a9059cbb") + bytes(63) + b"\1"}
    built = [
        CHAIN.build("TransferContract", {"owner_address": OWNER, **to}),
        CHAIN.build("TriggerSmartContract", {"owner_address": OWNER, **token}, fee_limit=100 * TRX),
        CHAIN.build("FreezeBalanceV2Contract", {"owner_address": OWNER, "frozen_balance": TRX, "resource": "ENERGY"}),
    ]
    return [transaction_json(_signed(one), visible=False) for one in built]


def _signed(one: Signed) -> Signed:
    return replace(one, signatures=(CHAIN.dev.sign_recoverable(one.txid, hasher=None),))


def whole() -> tuple[int, int, dict[Any, Any]]:
    """What no refusal may change: height, how many journals are open, every value."""
    return CHAIN.head.number, len(CHAIN.state._journals), dict(CHAIN.state._values)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(CALLS), st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=4), st.booleans())
def test_any_request_is_answered(name: str, params: dict[str, Any], solid: bool) -> None:
    before = whole()
    family = "walletsolidity" if solid and API.knows("walletsolidity", name) else "wallet"
    assert isinstance(API.answer(family, name, params), dict | list)
    assert whole() == before


@settings(max_examples=250, deadline=None)
@given(st.integers(0, 2), st.data())
def test_a_spoilt_transaction_leaves_nothing(which: int, data: st.DataObject) -> None:
    good = transactions()[which]
    spoilt = copy.deepcopy(good)
    contract = spoilt["raw_data"]["contract"][0]
    places = [spoilt["raw_data"], contract, contract["parameter"], contract["parameter"]["value"]]
    place = data.draw(st.sampled_from(places))
    name = data.draw(st.sampled_from(sorted(place)))
    place[name] = data.draw(VALUES)
    del spoilt["raw_data_hex"], spoilt["txID"]
    try:
        # Signed again, so that it is not the signature that is refused.
        again = _signed(Signed(from_json("raw", spoilt["raw_data"], visible=False)))
        spoilt["signature"] = [again.signatures[0].hex()]
    except (ValueError, KeyError, TypeError):
        pass
    before = whole()
    answer = API.answer("wallet", "broadcasttransaction", spoilt)
    if answer.get("result"):
        CHAIN.mine()
        assert len(CHAIN.state._journals) == 1
    else:
        assert set(answer) in ({"Error"}, {"code", "message", "txid"}) and whole() == before


def test_a_fault_of_its_own_is_an_answer_too() -> None:
    server = Server(0, 0)
    try:
        server.api._wallet_routes["createtransaction"] = lambda _: {}["missing"]
        assert server.answer("/wallet/createtransaction", {})[0] == 500
        assert server.answer("/wallet/getnowblock", {})[0] == 200
    finally:
        server.server_close()


@settings(max_examples=20, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), max_size=3), min_size=2, max_size=8), st.data())
def test_a_fork_brings_back_what_was(blocks: list[list[int]], data: st.DataObject) -> None:
    chain = Chain()
    dev = Dev(chain, Api(chain), mines=False)
    stakes = {"frozen_balance": 5 * TRX, "resource": "ENERGY"}
    states = []
    for block in blocks:
        states.append(_values(chain))
        for kind in block:
            to = b"\x41" + bytes([kind]) * 20
            if kind == 0:
                chain.send("FreezeBalanceV2Contract", stakes)
            elif kind == 1:
                call = {"contract_address": USDT, "data": bytes.fromhex("a9059cbb") + to[1:].rjust(32, b"\0") + bytes(31) + b"\7"}
                chain.send("TriggerSmartContract", call, fee_limit=100 * TRX)
            elif kind == 2:
                chain.send("TransferContract", {"to_address": to, "amount": TRX})
            else:
                dev.answer("parameter", {"key": "getEnergyFee", "value": 100 + len(states)})
        chain.mine()
    depth = data.draw(st.integers(1, len(blocks) - 1))
    chain.reorganise(chain.head.number - _heights(blocks)[-depth], remine=False)
    assert _values(chain) == states[-depth]


def _values(chain: Chain) -> dict[Any, Any]:
    return {key: value for key, value in chain.state._values.items() if value is not None}


def _heights(blocks: list[list[int]]) -> list[int]:
    """The height before each of `blocks`: genesis, USDT's block, and one more for every parameter that was set."""
    heights, height = [], 1
    for block in blocks:
        heights.append(height)
        height += 1 + block.count(3)
    return heights
