"""The operator's merchants: listed, made, suspended and resumed; the first API key of each. At no point of a suspension does
anything get through that should not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chalicelib.domain.ids import MerchantId
from chalicelib.domain.merchants.merchants import ApiKey, Merchant
from chalicelib.domain.merchants.suspensions import ListedMerchant, Suspension
from chalicelib.store.dynamo import DynamoStore
from chalicelib.usecases.merchants.access import hash_key
from chalicelib.usecases.ports.changes import Delete, Enforce, Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.wiring import services
from infra import bootstrap
from infra.cli import main
from tests.support.shop import THIRST, Shop, open_shop
from tests.support.stack import Response, Stack


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack, ("3", "eth")) as opened:
        yield opened


def admin(stack: Stack, method: str, path: str, body: Any = None, key: str = "admin_test", **headers: str) -> Response:
    return stack.call(method, f"/v1{path}", stack.keys[key], json=body, headers=headers)


def done(answer: Response) -> Any:
    assert answer.status in (200, 201), answer.body
    return answer.json["data"]


def merchant_of(stack: Stack, key: str) -> str:
    return merchant_of_key(stack.keys[key])


def merchant_of_key(key: str) -> str:
    (found,) = (each for each in services().store.every(ApiKey) if each.hash == hash_key(key))
    return found.merchant


def put(stack: Stack, merchant: str, suspended: bool, key: str = "admin_test", **more: Any) -> Any:
    return done(admin(stack, "PUT", f"/merchants/{merchant}", {"suspended": suspended, **more}, key))


def statuses(shown: Any) -> dict[str, str]:
    return {each["type"]: each["status"] for each in shown["environments"]}


def works(stack: Stack, key: str) -> bool:
    return stack.call("GET", "/v1/balances", key).status == 200


def test_a_merchant_is_made_gets_its_first_key_once_and_goes_on_by_itself(stack: Stack) -> None:
    made = done(admin(stack, "POST", "/merchants", {"name": "  Acme Shoes "}, "admin_live", **{"Idempotency-Key": "one"}))
    assert made == done(admin(stack, "POST", "/merchants", {"name": "  Acme Shoes "}, "admin_live", **{"Idempotency-Key": "one"}))
    assert (made["name"], statuses(made)) == ("Acme Shoes", {"production": "active", "test": "active"})
    assert [each["has_keys"] for each in made["environments"]] == [False, False]
    path = f"/merchants/{made['id']}/keys"
    first = done(admin(stack, "POST", path, {"name": "Acme's first"}, "admin_live"))
    assert first["key"].startswith("sk_live_")
    assert (first["type"], first["level"], "keys:write" in first["permissions"]) == ("production", "client", True)
    assert merchant_of_key(first["key"]) == made["id"]
    again = admin(stack, "POST", path, {}, "admin_live")
    assert (again.status, again.json["error"]["code"]) == (400, "VALIDATION_ERROR")
    assert "command line" not in again.json["error"]["message"]
    # Revoked, too: an operator's stolen key is no way to a merchant's money.
    assert stack.call("DELETE", f"/v1/api-keys/{first['key_id']}", first["key"]).status == 200
    assert admin(stack, "POST", path, {}, "admin_live").status == 400
    listed = done(stack.call("GET", "/v1/merchants", stack.keys["admin_test"], query={"name": "Acme Shoes"}))
    assert [(one["id"], one["status"]) for one in listed] == [(made["id"], "active")]


def test_only_the_operator_s_keys_that_may(stack: Stack) -> None:
    shop = merchant_of(stack, "client_test")
    asked: list[tuple[str, str, Any]] = [
        ("GET", "/merchants", None),
        ("POST", "/merchants", {"name": "Mine"}),
        ("GET", f"/merchants/{shop}", None),
        ("PUT", f"/merchants/{shop}", {"suspended": True}),
        ("POST", f"/merchants/{shop}/keys", {}),
    ]
    for method, path, body in asked:
        assert admin(stack, method, path, body, "client_live").status == 403, (method, path)
    weak = done(
        admin(stack, "POST", "/api-keys", {"name": "weak", "level": "admin", "permissions": ["merchant:write", "keys:write"]})
    )
    made = done(stack.call("POST", "/v1/merchants", weak["key"], json={"name": "New"}))
    refused = stack.call("POST", f"/v1/merchants/{made['id']}/keys", weak["key"], json={})
    assert (refused.status, refused.json["error"]["code"]) == (403, "INSUFFICIENT_PERMISSIONS")
    assert admin(stack, "GET", "/merchants/mch_0").status == 404
    assert admin(stack, "PUT", "/merchants/mch_0", {"suspended": True}).status == 404
    assert admin(stack, "POST", "/merchants/mch_0/keys", {}).status == 404
    own = merchant_of(stack, "admin_test")
    refused = admin(stack, "PUT", f"/merchants/{own}", {"suspended": True}, "admin_live")
    assert (refused.status, refused.json["error"]["code"]) == (400, "VALIDATION_ERROR")


def test_two_first_keys_at_once_are_one(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    made = done(admin(stack, "POST", "/merchants", {"name": "Raced"}))
    answers: list[Response] = []

    def other() -> None:
        answers.append(admin(stack, "POST", f"/merchants/{made['id']}/keys", {}))

    once(monkeypatch, lambda change: isinstance(change, Save) and isinstance(change.record, ApiKey), other)
    late = admin(stack, "POST", f"/merchants/{made['id']}/keys", {})
    assert [answers[0].status, late.status] == [201, 400]


def test_a_suspended_merchant_s_keys_say_why_and_come_back(shop: Shop) -> None:
    stack, merchant = shop.stack, merchant_of(shop.stack, "client_test")
    shown = put(stack, merchant, True, reason="documents are missing")
    (test,) = shown["environments"]
    assert (test["status"], test["reason"], test["type"]) == ("suspended", "documents are missing", "test")
    refused = stack.call("GET", "/v1/balances", shop.key)
    assert (refused.status, refused.json["error"]["code"]) == (403, "INSUFFICIENT_PERMISSIONS")
    assert "suspended" in refused.json["error"]["message"]
    # A test key's word counts in the sandbox alone.
    assert works(stack, stack.keys["client_live"])
    assert put(stack, merchant, True, reason="again")["environments"][0]["reason"] == "again"
    listed = done(stack.call("GET", "/v1/merchants", stack.keys["admin_test"], query={"status": "suspended"}))
    assert [one["id"] for one in listed] == [merchant]
    assert statuses(put(stack, merchant, False)) == {"test": "active"}
    assert works(stack, shop.key)
    # A production key's counts in both.
    assert statuses(put(stack, merchant, True, "admin_live")) == {"production": "suspended", "test": "suspended"}
    assert not any(works(stack, stack.keys[key]) for key in ("client_live", "client_test", "read_only_test"))
    assert works(stack, stack.keys["other_merchant_test"])
    put(stack, merchant, False, "admin_live")
    assert all(works(stack, stack.keys[key]) for key in ("client_live", "client_test", "read_only_test"))


def test_a_refused_key_costs_one_call_and_its_source_is_counted(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    put(shop.stack, merchant_of(shop.stack, "client_test"), True)
    calls: list[str] = []
    client = services().store.models.connection.client
    real = type(client)._make_api_call

    def counted(self: Any, name: str, *more: Any) -> Any:
        calls.append(name)
        return real(self, name, *more)

    monkeypatch.setattr(type(client), "_make_api_call", counted)
    assert shop.stack.call("GET", "/v1/balances", shop.key).status == 403
    assert calls == ["UpdateItem"]


def test_money_is_credited_and_withdrawals_wait_until_it_is_resumed(shop: Shop) -> None:
    stack, merchant = shop.stack, merchant_of(shop.stack, "client_test")
    going, invoice = shop.withdraw("0.5"), shop.invoice("1")
    shop.turn()
    assert shop.record(going).status == "confirming"
    waiting = shop.withdraw("0.25")
    put(stack, merchant, True)
    shop.pay(invoice["address"], "1")
    shop.mine()
    shop.turn()
    assert (shop.record(going).status, shop.record(waiting).status) == ("confirmed", "pending")  # what was begun goes on
    assert shop.record(waiting).pending_reason == "suspended"
    shop.nudge(THIRST)
    assert shop.record(waiting).pending_reason == "suspended"
    shown = done(stack.call("GET", "/v1/withdrawals/requests", stack.keys["admin_test"], query={"pending_reason": "suspended"}))
    assert [one["id"] for one in shown] == [waiting]
    put(stack, merchant, False)
    assert shop.status(invoice) == "completed"
    shop.nudge(THIRST)
    shop.mine()
    shop.turn()
    assert shop.withdrawal(waiting)["status"] == "confirmed"
    assert shop.available() == "3.25"


def once(patch: pytest.MonkeyPatch, when: Callable[[Any], bool], act: Callable[[], Any]) -> None:
    """Let something happen once, right before a commit with such a change."""
    real, met = DynamoStore.commit, []

    def commit(store: DynamoStore, changes: Any) -> None:
        if not met and any(when(change) for change in changes):
            met.append(True)
            act()
        real(store, changes)

    patch.setattr(DynamoStore, "commit", commit)


@pytest.mark.parametrize("rotates", [False, True], ids=["made", "rotated"])
def test_a_key_that_is_being_made_meanwhile_is_never_left_out(stack: Stack, monkeypatch: pytest.MonkeyPatch, rotates: bool) -> None:
    merchant, key = merchant_of(stack, "client_test"), stack.keys["client_test"]
    id = done(stack.call("GET", "/v1/auth/test", key))["key_id"]
    enforces: Callable[[Any], bool] = lambda change: isinstance(change, Enforce) and change.key.suspended_at is None  # noqa: E731
    once(monkeypatch, enforces, lambda: put(stack, merchant, True))
    if rotates:
        answer = stack.call("POST", f"/v1/api-keys/{id}/rotate", key, json={"overlap": 60})
    else:
        answer = stack.call("POST", "/v1/api-keys", key, json={"name": "late", "permissions": ["balances:read"]})
    assert answer.status in (400, 401), answer.body
    known = [each for each in services().store.every(ApiKey) if each.merchant == merchant and each.realm == "test"]
    assert known
    assert all(each.suspended_at is not None for each in known)


def test_a_key_is_made_while_its_keys_are_walked(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator's command line has no key that could be suspended first: the record alone stops it."""
    merchant, refused = MerchantId(merchant_of(stack, "client_test")), []

    def make() -> None:
        try:
            bootstrap.make_key(services(), merchant, "test", "client", ("full",), "late")
        except Exception as error:  # noqa: BLE001 - whatever it is, is looked at
            refused.append(str(error))

    once(monkeypatch, lambda change: isinstance(change, Enforce), make)
    put(stack, merchant, True)
    assert refused == ["is suspended: no key is made for it"]


def test_where_it_dies_in_between_the_same_again_goes_on(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    merchant = merchant_of(stack, "client_test")
    for number in range(9):
        bootstrap.make_key(services(), MerchantId(merchant), "test", "client", ("full",), f"key {number}")
    real, enforced = DynamoStore.commit, []

    def commit(store: DynamoStore, changes: Any) -> None:
        enforced.extend(change for change in changes if isinstance(change, Enforce))
        if len(enforced) > 6:
            raise Unavailable("the store is away")
        real(store, changes)

    with monkeypatch.context() as patch:
        patch.setattr(DynamoStore, "commit", commit)
        assert admin(stack, "PUT", f"/merchants/{merchant}", {"suspended": True}).status == 500
    assert statuses(done(admin(stack, "GET", f"/merchants/{merchant}"))) == {"test": "suspending"}
    assert statuses(put(stack, merchant, True)) == {"test": "suspended"}
    keys = [key for key in services().store.every(ApiKey) if key.merchant == merchant and key.realm == "test"]
    assert len([key for key in keys if key.suspended_at is not None]) == len(keys) > 9
    assert statuses(put(stack, merchant, False)) == {"test": "active"}
    assert works(stack, stack.keys["client_test"])


@pytest.mark.parametrize("last", [True, False])
def test_of_two_operators_at_once_the_last_word_reaches_every_key(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, last: bool
) -> None:
    merchant = merchant_of(stack, "client_test")
    if last:
        put(stack, merchant, True)
    once(monkeypatch, lambda change: isinstance(change, Enforce), lambda: put(stack, merchant, last))
    put(stack, merchant, not last)
    found = services().store.get(Suspension, tenant=f"{merchant}:test")
    assert found is not None
    assert (found.suspended, found.carried) == (last, True)
    keys = [key for key in services().store.every(ApiKey) if key.merchant == merchant and key.realm == "test"]
    assert {key.suspended_at is not None for key in keys} == {last}
    assert works(stack, stack.keys["client_test"]) is not last


def test_merchants_from_before_the_list_come_into_it(stack: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    shop = merchant_of(stack, "client_test")
    services().store.commit([Delete(ListedMerchant, {"id": shop})])
    assert done(stack.call("GET", "/v1/merchants", stack.keys["admin_test"], query={"id": shop})) == []
    assert services().directory.list_all() == 1
    assert services().directory.list_all() == 0
    (found,) = done(stack.call("GET", "/v1/merchants", stack.keys["admin_test"], query={"id": shop}))
    assert found["name"] == "Demo Shop"
    # One that is suspended first is listed by that.
    services().store.commit([Delete(ListedMerchant, {"id": shop})])
    put(stack, shop, True)
    (found,) = done(stack.call("GET", "/v1/merchants", stack.keys["admin_test"], query={"id": shop}))
    assert found["status"] == "suspended"
    put(stack, shop, False)


def test_the_command_line_makes_no_key_for_a_suspended_merchant(stack: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    shop = merchant_of(stack, "client_test")
    put(stack, shop, True)
    assert main(["--stage", "local", "key", shop, "--realm", "test"]) == 1
    assert "suspended" in capsys.readouterr().err
    put(stack, shop, False)
    assert main(["--stage", "local", "merchant", "By hand"]) == 0
    made = [one for one in services().store.every(Merchant) if one.name == "By hand"]
    assert done(stack.call("GET", "/v1/merchants", stack.keys["admin_test"], query={"id": made[0].id}))[0]["name"] == "By hand"
