"""Which addresses are a network's own coin under another face, and what balances say of one that is not known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.chains.addresses import Rules
from chalicelib.chains.answers import Garbled
from chalicelib.chains.evm.faces import is_face
from chalicelib.chains.rpc import RpcError
from chalicelib.domain.catalogue.catalogue import default_coins, default_networks
from chalicelib.domain.catalogue.native_faces import follows_native, known_face

ETHER = 10**18
POLYGONS = "0x0000000000000000000000000000000000001010"


def test_the_list_has_nothing_of_the_catalogue_and_is_of_networks_with_tokens() -> None:
    rules = Rules()
    networks = {network.id: network for network in default_networks("live")}
    for coin in default_coins("live"):
        slug = networks[coin.network].slug
        if coin.contract is not None:
            assert known_face(slug, rules.storage_form(slug, coin.contract)) is None
    assert known_face("polygon", POLYGONS) == "Polygon's MRC20"
    assert known_face("ethereum", POLYGONS) is None
    for network in networks.values():
        listed = known_face(network.slug, "0xfffffffffffffffffffffffffffffffffffffffe")
        assert (listed is not None) == (network.family == "evm")


@pytest.mark.parametrize(
    ("told", "decimals", "says"),
    [
        ([(5 * ETHER, 5 * ETHER), (7 * ETHER, 7 * ETHER)], 18, True),
        ([(5 * ETHER + 1, 5_000_000), (7 * ETHER, 7_000_000)], 6, True),
        # Once is chance, and so is the same gift for everybody.
        ([(5 * ETHER, 5 * ETHER)], 18, None),
        ([(5 * ETHER, 5 * ETHER)] * 9, 18, None),
        ([(5 * ETHER, 5 * ETHER), (7 * ETHER, 0)], 18, None),
        ([(5 * ETHER, 5 * ETHER), (7 * ETHER, 0), (8 * ETHER, 1)], 18, False),
        ([(5 * ETHER, 5 * ETHER), (6 * ETHER, 6 * ETHER), (7 * ETHER, 0), (8 * ETHER, 1)], 18, None),
        # Nothing is nothing; what the token's decimals can not show is nothing, too.
        ([(0, 0)] * 9, 18, None),
        ([(0, 7)] * 9, 18, None),
        ([(5, 0), (6, 0)], 6, None),
        ([], 18, None),
        ([(5 * ETHER, 0), (5 * ETHER, 0)], 18, False),
    ],
)
def test_what_balances_say(told: list[tuple[int, int]], decimals: int, says: bool | None) -> None:
    assert follows_native(told, 18, decimals) is says


@given(natives=st.sets(st.integers(10**18, 10**24), min_size=2, max_size=20), decimals=st.integers(0, 36))
def test_a_face_is_never_taken_for_a_token(natives: set[int], decimals: int) -> None:
    told = [(native, native * 10**decimals // ETHER) for native in natives]
    assert follows_native(told, 18, decimals) is True
    assert follows_native([*told, (3 * ETHER + 1, 0)], 18, decimals) is not False


@given(st.lists(st.tuples(st.integers(10**18, 10**24), st.integers(0, 10**15)), min_size=2, max_size=20))
def test_a_token_of_its_own_is_never_taken_for_a_face(told: list[tuple[int, int]]) -> None:
    assert follows_native(told, 18, 18) is False


class Node:
    """A chain of one block, in which two addresses sent; `refuses` has no balance of the token, by the contract's own word."""

    def __init__(self, refuses: str = "", moves: bool = False) -> None:
        self.refuses, self.moves, self.headers = refuses, moves, 0

    def call(self, method: str, params: Sequence[Any] = ()) -> Any:
        if method == "eth_getBalance":
            return hex(int(params[0], 16) * ETHER)
        if method == "eth_call":
            who = "0x" + params[0]["data"][-40:]
            if who == self.refuses:
                raise RpcError(3, "execution reverted")
            return "0x" + (int(who, 16) * ETHER).to_bytes(32).hex()
        self.headers += 1
        hash_ = "0x" + ("bb" if self.moves and self.headers > 1 else "aa") * 32
        sent = [{"from": _address(n), "to": None} for n in (5, 7)]
        return {"number": "0x0", "hash": hash_, "miner": _address(0), "transactions": sent}

    def batch(self, requests: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        return [self.call(method, params) for method, params in requests]


def _address(number: int) -> str:
    return "0x" + number.to_bytes(20).hex()


def test_a_contract_that_refuses_one_address_tells_by_the_others() -> None:
    contract = _address(2**159)
    assert is_face(Node(), contract, 18, 18, []) is True
    assert is_face(Node(refuses=_address(0)), contract, 18, 18, []) is True
    assert is_face(Node(refuses=_address(5)), contract, 18, 18, []) is None
    assert is_face(Node(refuses=_address(5)), contract, 18, 18, [_address(9)]) is True


def test_what_is_read_of_two_branches_says_nothing() -> None:
    with pytest.raises(Garbled):
        is_face(Node(moves=True), _address(2**159), 18, 18, [])
