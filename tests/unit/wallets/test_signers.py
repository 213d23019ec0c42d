"""Which service wallets sign, current and retired."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from chalicelib.domain.addresses.addresses import RetiredWallet, Role, Wallet
from chalicelib.domain.ids import network_id
from chalicelib.usecases.wallets.signers import SIGN, draining, quoted_for, signing_wallet, signing_wallets

TRON = network_id("live", "tron")


def wallet(role: Role, address: str, created_at: int = 1) -> Wallet:
    return Wallet(TRON, role, address, "none" if role == "cold" else "kms", "key", "", created_at)


class Wallets:
    """A store that has wallets and nothing else."""

    def __init__(self, current: list[Wallet], retired: list[RetiredWallet]) -> None:
        self._current = {each.role: each for each in current}
        self._retired = {each.address: each for each in retired}

    def get_many(self, wanted: list[tuple[type, dict[str, str]]]) -> list[Wallet | None]:
        return [self._current.get(key["role"]) for _, key in wanted]  # type: ignore[call-overload]

    def get(self, kind: type, **key: str) -> RetiredWallet | None:
        return self._retired.get(key["address"])

    def page(self, kind: type, **_: object) -> Any:
        found: list[Any] = list(self._current.values() if kind is Wallet else self._retired.values())
        return SimpleNamespace(items=found, next=None)


OLD = [RetiredWallet.of(wallet(role, f"old-{role}", number), 5) for number, role in enumerate(("hot", "collector", "cold"))]
DRAINED = replace(RetiredWallet.of(wallet("hot", "older-hot", 9), 4), drained_at=6)
STORE: Any = Wallets([wallet("hot", "hot"), wallet("collector", "collector"), wallet("cold", "cold")], [*OLD, DRAINED])


def test_what_a_wallet_has_begun_it_signs_whoever_has_its_role_now() -> None:
    def signs(roles: tuple[Role, ...]) -> set[str]:
        every = ["hot", "collector", "cold", "old-hot", "old-collector", "old-cold", "older-hot", "nobody"]
        return {address for address in every if signing_wallet(STORE, TRON, address, roles) is not None}

    assert signs(("hot",)) == {"hot", "old-hot", "older-hot"}
    assert signs(SIGN) == {"hot", "old-hot", "older-hot", "collector", "old-collector"}
    assert signing_wallet(STORE, TRON, None) is None
    found = signing_wallet(STORE, TRON, "old-hot")
    assert found == OLD[0].wallet


def test_payments_are_signed_by_no_collector() -> None:
    """A record that names one was altered."""
    assert signing_wallet(STORE, TRON, "collector") is None and signing_wallet(STORE, TRON, "old-collector") is None


def test_all_that_sign_and_those_that_are_not_empty_yet() -> None:
    assert [each.address for each in signing_wallets(STORE, TRON)] == ["hot", "collector", "old-hot", "old-collector", "older-hot"]
    assert [each.address for each in draining(STORE, TRON, "hot")] == ["old-hot"]
    assert quoted_for(STORE, wallet("hot", "hot")) == ["old-hot", "hot"]
