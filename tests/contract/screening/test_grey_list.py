"""The grey list over HTTP, and the life of a deposit that comes from it: held, released, taken back by the chain, and again."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from chalicelib.domain.deposits.deposits import GREY_LISTED, HELD, SET_ASIDE, Deposit, deposit_id
from chalicelib.domain.ids import AssetId, NetworkId, TenantId
from chalicelib.domain.money import parse_units
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from tests.support.edge import PREPARED, Edge
from tests.support.shop import CONFIRMATIONS, PAYEE, Shop, open_shop
from tests.support.signing import ALICE, Signer, enabled
from tests.support.stack import Response, Stack

THIEF = "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb"  # EIP-55's own example
TRON = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"
LIST = "/v1/addresses/grey-list"


@pytest.fixture
def edge(aws) -> Edge:
    return PREPARED.edge(aws)


def add(edge: Edge, address: str = THIEF, network: str = "ethereum", key: str = "admin", **more: Any) -> Response:
    return edge.call("POST", LIST, key=key, json={"network": network, "address": address, **more})


def listed(edge: Edge, key: str = "client", **query: Any) -> list[tuple[str, str]]:
    answer = edge.call("GET", LIST, key=key, query=query)
    assert answer.status == 200
    return [(entry["network"], entry["address"]) for entry in answer.json]


def test_adding_reading_and_removing(edge):
    assert edge.call("GET", LIST).json == []
    made = add(edge, THIEF.lower(), reason="reported as stolen")
    assert (made.status, made.json["address"], made.json["network"], made.json["reason"]) == (
        201, THIEF, "ethereum", "reported as stolen",
    )  # fmt: skip
    assert add(edge, TRON, "tron").json.keys() == {"address", "network", "createdAt"}
    assert add(edge, network="bsc").status == 201
    assert edge.call("GET", LIST, key="reader").json[1] == made.json
    assert listed(edge) == [("bsc", THIEF), ("ethereum", THIEF), ("tron", TRON)]
    assert listed(edge, network="ethereum") == [("ethereum", THIEF)]
    assert listed(edge, limit=2) == [("bsc", THIEF), ("ethereum", THIEF)]
    assert listed(edge, "live") == []
    again = add(edge, THIEF.upper().replace("X", "x"))
    assert (again.status, again.json["error"]["code"]) == (400, "VALIDATION_ERROR")
    gone = edge.call("DELETE", LIST, key="admin", query={"network": "bsc", "address": THIEF})
    assert (gone.status, gone.json["address"], gone.json["network"]) == (200, THIEF, "bsc")
    assert edge.call("DELETE", LIST, key="admin", json={"network": "tron", "address": TRON}).status == 200
    assert listed(edge) == [("ethereum", THIEF)]
    assert edge.call("DELETE", LIST, key="admin", json={"network": "tron", "address": TRON}).status == 404


@pytest.mark.parametrize(
    ("query", "body", "status"),
    [
        ({"network": "ethereum"}, {"address": THIEF}, 200),
        ({"network": "ethereum", "address": THIEF}, {"network": "ethereum", "address": THIEF}, 200),
        ({"network": "ethereum", "address": THIEF.lower()}, {}, 200),
        ({"network": "ethereum", "address": THIEF}, {"address": PAYEE}, 400),
        ({"network": "bsc", "address": THIEF}, {"network": "ethereum"}, 400),
        ({"network": "bsc", "address": THIEF}, None, 404),
        ({"network": "ethereum"}, None, 400),
        ({}, {"address": THIEF}, 400),
        (None, None, 400),
        ({"network": "nowhere", "address": THIEF}, None, 400),
        ({"network": "ethereum", "address": "nonsense"}, None, 400),
        ({"network": "ethereum", "address": THIEF, "why": "x"}, None, 400),
    ],
)
def test_what_removing_takes(edge, query, body, status):
    add(edge)
    answer = edge.call("DELETE", LIST, key="admin", query=query, json=body)
    assert answer.status == status, answer.body
    assert listed(edge) == ([] if status == 200 else [("ethereum", THIEF)])


def test_what_can_not_be_listed_and_who_may_not(edge):
    wrong = add(edge, "nonsense", "ethereum", reason="x" * 501).json["error"]
    assert [problem["field"] for problem in wrong["details"]] == ["reason", "address"]
    for address, network in (("nonsense", "ethereum"), (TRON, "ethereum"), (THIEF, "tron"), (THIEF.replace("D", "d", 1), "bsc")):
        refused = add(edge, address, network)
        assert (refused.status, refused.json["error"]["details"][0]["field"]) == (400, "address")
    assert add(edge, key="client").status == 403
    assert edge.call("DELETE", LIST, query={"network": "ethereum", "address": THIEF}).status == 403
    assert edge.call("POST", "/transactions/tx_none/release").status == 403
    assert edge.call("POST", "/transactions/tx_none/release", key="admin").status == 404


def with_hash(edge, number, *movements):
    """Stored deposits of one transaction: merchant and flags of each."""
    network, txid = NetworkId("test:ethereum"), f"0x{number:064x}"
    made = []
    for n, (merchant, flags) in enumerate(movements):
        tenant = None if merchant is None else TenantId(f"{merchant}:test")
        made.append(
            Deposit(
                deposit_id(network, txid, str(n)), network, AssetId("test:ethereum:eth"), tenant, txid, str(n), PAYEE, THIEF, 5, 1,
                "0x1", 0, 0, "confirmed", flags=flags,
            )
        )  # fmt: skip
        edge.services.store.commit([Save(made[-1])])
    return txid, made


def test_a_hash_of_several_movements_names_them(edge):
    """Those that are held back, and others to the same merchants."""
    movements = (edge.shop, (HELD,)), (edge.shop, ()), (edge.other, (GREY_LISTED,)), (None, ()), (None, (SET_ASIDE,))
    txid, made = with_hash(edge, 1, *movements)
    refused = edge.call("POST", f"/transactions/{txid}/release", key="admin").json["error"]
    assert (refused["code"], refused["details"]["field"]) == ("VALIDATION_ERROR", "txId")
    assert f"{made[0].id} (held)" in refused["details"]["reason"]
    assert f"{made[1].id} (not held)" in refused["details"]["reason"]
    assert f"{made[2].id} (not held)" in refused["details"]["reason"]
    assert not {made[3].id, made[4].id} & set(refused["details"]["reason"].replace(",", "").split())
    assert edge.call("POST", f"/transactions/{txid[:-1]}/release", key="admin").status == 404
    live = edge.new_key(realm="live", level="admin")
    assert edge.call("POST", f"/transactions/{txid}/release", key=live).status == 404
    assert edge.call("POST", f"/transactions/{made[0].id}/release", key=live).status == 404


def test_a_hash_names_what_is_held_back_whatever_else_it_moves(edge):
    releases = edge.services.releases("test")
    txid, made = with_hash(edge, 2, (edge.shop, (HELD,)), (edge.other, ()), (None, ()))
    assert releases.named("test", txid.upper().replace("X", "x")) == made[0].id
    plain, _ = with_hash(edge, 3, (edge.shop, ()))
    assert edge.call("POST", f"/transactions/{plain}/release", key="admin").status == 404


def test_a_version_before_this_one_listed_every_deposit_by_its_hash(edge, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Deposit, "questioned", True)
        txid, _ = with_hash(edge, 4, (edge.shop, ()))
    refused = edge.call("POST", f"/transactions/{txid}/release", key="admin").json["error"]
    assert refused["details"]["reason"] == "it is neither held, nor below the minimum, nor set aside"


def test_simultaneous_adding_is_done_once(edge):
    with ThreadPoolExecutor(4) as pool:
        assert sorted(answer.status for answer in pool.map(lambda _: add(edge), range(4))) == [201, 400, 400, 400]


class Watch(Shop):
    """A shop, and the operator who keeps the list."""

    def operate(self, method: str, path: str, **body: Any) -> Response:
        return self.stack.call(method, path, self.stack.keys["admin_test"], json=body or None)

    def list(self) -> None:
        assert self.operate("POST", LIST, network="ethereum", address=THIEF).status == 201

    def unlist(self) -> None:
        assert self.operate("DELETE", LIST, network="ethereum", address=THIEF).status == 200

    def stolen(self, address: str, amount: str, coin: str = "eth") -> None:
        found = self.coin(coin)
        services().sandbox.deposit(found.network, address, found, parse_units(amount, found.decimals), THIEF)

    def settle(self, blocks: int = CONFIRMATIONS) -> None:
        self.mine(blocks)
        self.turn()

    def deposit(self) -> Any:
        (only,) = self.get("/v1/transactions")["data"]
        return only

    def release(self) -> Response:
        return self.operate("POST", f"/v1/transactions/{self.deposit()['id']}/release")

    def purses(self) -> tuple[str, str, str]:
        """Available, held, pending; the books are whole whenever somebody looks."""
        assert audit(services().store) == []
        (entry,) = self.get("/v1/balances")["data"]
        return entry["available"], entry["held"], entry["pending"]


@pytest.fixture
def shop(stack: Stack) -> Iterator[Watch]:
    with open_shop(stack) as opened:
        yield Watch(opened.stack)


def test_from_detection_to_release(shop: Watch) -> None:
    shop.list()
    invoice = shop.invoice("1")
    shop.stolen(invoice["address"], "1")
    shop.turn()
    assert (shop.deposit()["flags"], shop.purses()) == (["grey_listed"], ("0", "0", "1"))
    early = shop.release()
    assert (early.status, early.json["error"]["code"]) == (400, "VALIDATION_ERROR")
    shop.settle()
    held = shop.deposit()
    assert (held["status"], held["flags"], shop.purses()) == ("confirmed", ["grey_listed", "held"], ("0", "1", "0"))
    assert shop.status(invoice) == "confirming"
    assert shop.told(held["id"])["transaction.confirmed"] == 1
    parts = shop.get(f"/v1/addresses/{invoice['address']}/balances/eth")
    assert (parts["balance"], parts["frozen"], parts["available"], parts["unconfirmed"]) == ("1", "1", "0", "0")
    assert shop.ask("0.5").json["error"]["code"] == "INSUFFICIENT_BALANCE"

    # Off the list or not: what is held stays held until it is released, and an invoice's end does not release it.
    shop.unlist()
    shop.wait(4000)
    shop.turn("housekeeping")
    assert (shop.status(invoice), shop.purses()) == ("confirming", ("0", "1", "0"))
    released = shop.operate("POST", f"/v1/transactions/{held['hash'].upper().replace('0X', '0x')}/release")
    assert (released.status, released.json["data"]["flags"]) == (200, ["grey_listed"])
    assert (shop.deposit(), shop.purses()) == (released.json["data"], ("1", "0", "0"))
    assert shop.status(invoice) == "completed"
    again = shop.release()
    assert (again.status, again.json["error"]["details"]["reason"]) == (400, "it was released before")
    shop.turn()
    tenant_asset = [key for key in (f"{e.object_id}" for e in _events()) if key.endswith("eth")]
    assert len(tenant_asset) == 1


def _events() -> list[Any]:
    from chalicelib.domain.webhooks.endpoints import EventRecord

    return [event for event in services().store.every(EventRecord) if event.name == "balance.updated"]


def test_listed_after_it_was_seen(shop: Watch) -> None:
    address = shop.post("/v1/addresses", {"network": "ethereum"}).json["address"]
    shop.stolen(address, "2", "usdt")
    shop.turn()
    assert shop.deposit()["flags"] == []
    shop.list()
    shop.settle()
    assert (shop.deposit()["flags"], shop.purses()) == (["grey_listed", "held"], ("0", "2", "0"))
    assert shop.release().status == 200
    assert shop.purses() == ("2", "0", "0")


def test_what_others_pay_is_not_held(shop: Watch) -> None:
    shop.list()
    invoice = shop.invoice("1")
    shop.pay(invoice["address"], "1")
    shop.settle()
    assert (shop.deposit()["flags"], shop.purses(), shop.status(invoice)) == ([], ("1", "0", "0"), "completed")
    assert shop.release().json["error"]["code"] == "VALIDATION_ERROR"


def test_of_simultaneous_releases_one_counts(shop: Watch) -> None:
    shop.list()
    shop.stolen(shop.invoice("1")["address"], "1")
    shop.settle()
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: shop.release().status, range(4)))
    assert sorted(answers) == [200, 400, 400, 400]
    assert shop.purses() == ("1", "0", "0")


@pytest.mark.parametrize("released", [False, True], ids=["held", "released"])
def test_a_reorganisation_takes_it_back_and_brings_it_again(shop: Watch, released: bool) -> None:
    shop.list()
    invoice = shop.invoice("1")
    shop.stolen(invoice["address"], "1")
    shop.settle()
    if released:
        assert shop.release().status == 200
    shop.unlist()
    depth = CONFIRMATIONS + 2
    shop.reorg(depth, remine=True)
    shop.turn()
    shop.settle()
    # A sender that was on the list is remembered with the payment; so is an operator's release.
    assert shop.purses() == (("1", "0", "0") if released else ("0", "1", "0"))
    assert shop.status(invoice) == ("completed" if released else "confirming")
    shop.reorg(2 * depth)
    shop.turn()
    assert (shop.deposit()["status"], shop.deposit()["flags"]) == ("orphaned", ["grey_listed"])
    assert (shop.purses(), shop.status(invoice)) == (("0", "0", "0"), "pending")
    assert shop.release().json["error"]["code"] == "VALIDATION_ERROR"


def payout_waits(shop: Watch, withdrawal: str, *reasons: str) -> None:
    """It waits for the operator, who sees it, and nothing was paid."""
    shop.settle()
    shop.nudge()
    found = shop.withdrawal(withdrawal)
    assert (found["status"], found["pending_reason"], found["approval"]["reasons"]) == ("pending", "approval", list(reasons))
    assert [w["id"] for w in shop.operate("GET", "/v1/withdrawals/requests").json["data"]] == [withdrawal]
    assert audit(services().store) == []
    assert shop.paid(THIEF) == 0


def ends(*ends: str, signed: bool, sweep: bool) -> list[Any]:
    name = "signed" if signed else "asked-of-nobody"
    return [pytest.param(end, signed, id=f"{end}-{name}", marks=[pytest.mark.sweep] * sweep) for end in ends]


# The sweep: each end stays once, with the list of a merchant that signs or of one that does not.
@pytest.mark.parametrize(
    ("end", "signed"),
    [
        *ends("accepted", "cancelled", signed=True, sweep=False),
        *ends("rejected", signed=False, sweep=False),
        *ends("rejected", signed=True, sweep=True),
        *ends("accepted", "cancelled", signed=False, sweep=True),
    ],
)
def test_what_is_paid_to_an_address_that_is_listed_meanwhile(shop: Watch, signed: bool, end: str) -> None:
    """The list is asked again before anything is signed, whoever agreed to the withdrawal before."""
    shop.credit("2")
    if signed:
        change = enabled(lambda sent: shop.stack.call("PUT", "/v1/merchant/settings", shop.key, json=sent), "1", 1)
        assert change.status == 200
    withdrawal = shop.withdraw("1", address=THIEF)
    if signed:
        accept(shop, withdrawal, ALICE)
        assert shop.withdrawal(withdrawal)["approval"]["given"]
    shop.list()
    payout_waits(shop, withdrawal, *(["multisig"] if signed else []), "grey_list")
    assert shop.balance() == {"available": "1", "frozen": "1", "pending": "0"}
    if end == "accepted":
        assert shop.operate("PUT", "/v1/withdrawals/request/accept", id=withdrawal).status == 200
    elif end == "rejected":
        assert shop.operate("PUT", "/v1/withdrawals/request/reject", id=withdrawal).status == 200
    else:
        assert shop.stack.call("DELETE", f"/v1/withdrawals/{withdrawal}", shop.key).status == 200
    shop.turn()
    shop.settle()
    paid = end == "accepted"
    status = {"accepted": "confirmed", "rejected": "failed", "cancelled": "cancelled"}[end]
    assert (shop.withdrawal(withdrawal)["status"], shop.paid(THIEF)) == (status, 10**18 if paid else 0)
    assert shop.balance() == {"available": "1" if paid else "2", "frozen": "0", "pending": "0"}
    assert shop.operate("GET", "/v1/withdrawals/requests").json["data"] == []


def test_what_the_operator_has_agreed_to_is_not_asked_again(shop: Watch) -> None:
    shop.credit("2")
    shop.list()
    withdrawal = shop.withdraw("1", address=THIEF)
    assert shop.operate("PUT", "/v1/withdrawals/request/accept", id=withdrawal).status == 200
    shop.turn()
    shop.settle()
    assert (shop.withdrawal(withdrawal)["status"], shop.paid(THIEF)) == ("confirmed", 10**18)


def accept(shop: Watch, withdrawal: str, signer: Signer) -> None:
    text = shop.withdrawal(withdrawal)["approval"]["signing_text"]
    sent = {"id": withdrawal, "signer_id": signer.name, "signature": signer.sign(text)}
    assert shop.stack.call("PUT", "/v1/withdrawals/request/accept", shop.key, json=sent).status == 200
