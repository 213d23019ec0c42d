"""Archived payments whose object can not be read, paid again or met again by a scan: only they wait for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import boto3
import botocore.client
import pytest
from botocore.exceptions import EndpointConnectionError

from chalicelib.domain.chain import Cursor, Transfer
from chalicelib.domain.deposits.deposits import NATIVE_TWIN, Deposit
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from tests.support.archive import Attic, open_attic
from tests.support.shop import bent_node, with_also


@pytest.fixture
def attic(stack: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Attic]:
    with open_attic(stack, monkeypatch) as found:
        yield found


def lose_objects(attic: Attic) -> Callable[[], None]:
    """Delete the archive's objects, in a process that has read none; what puts them back."""
    s3, bucket = boto3.client("s3"), services().settings.archive_bucket("123456789012", services().region)
    kept = {key: s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in attic.objects()}
    for key in kept:
        s3.delete_object(Bucket=bucket, Key=key)
    attic.in_a_new_process()

    def put_back() -> None:
        for key, content in kept.items():
            s3.put_object(Bucket=bucket, Key=key, Body=content)
        attic.in_a_new_process()

    return put_back


def poll(attic: Attic, times: int = 3) -> None:
    """Rescan, record and credit; what fails is tried again."""
    for _ in range(times):
        attic.stack.drain(only=("poll_ethereum", "relay"), failures="count", hurry=True)
        attic.mine(20)


def order_rescan(attic: Attic, first: int, last: int) -> None:
    body = {"fromBlock": first, "toBlock": last}
    assert attic.stack.call("POST", "/v1/networks/ethereum/rescan", attic.stack.keys["admin_test"], json=body).status == 201


def open_rescans(attic: Attic) -> int:
    return len(services().store.open_work("rescan", attic.realm_network().id))


def archived_beside_another(attic: Attic) -> tuple[Deposit, dict[str, Any]]:
    """An archived payment of 5 usdt to an address without an invoice, and another such address."""
    paid, to = (attic.post("/v1/addresses", {"network": attic.network, "coin": "usdt"}).json for _ in range(2))
    attic.pay(paid["address"], "5", "usdt")
    attic.mine()
    attic.turn()
    (shown,) = attic.get(f"/v1/transactions/address/{paid['address']}")["data"]
    deposit = services().store.get(Deposit, id=shown["id"])
    assert deposit is not None
    attic.out_of_reach()
    attic.a_year_later()
    assert attic.archive() == 1
    return deposit, to


def payment(attic: Attic, to: str, number: int, units: int) -> Transfer:
    contract = str(attic.coin("usdt").contract).lower()
    return Transfer("0x" + "ab" * 32, f"log:{number}", contract, "0x" + "11" * 20, to.lower(), units)


def test_the_network_goes_on_and_a_rescan_records_them_once_it_can_be_read(attic: Attic, caplog: pytest.LogCaptureFixture) -> None:
    archived = [attic.completed("5", "usdt") for _ in range(2)]
    attic.a_year_later()
    assert attic.archive() == 1, "they go together"
    put_back = lose_objects(attic)
    other = attic.invoice("2", "eth")
    for invoice in archived:
        attic.pay(invoice["address"], "1", "usdt")
    attic.pay(other["address"], "2", "eth")
    attic.mine(1)
    attic.stack.drain(only=("poll_ethereum", "relay"), failures="count", hurry=True)
    attic.mine(20)
    attic.stack.drain(only=("poll_ethereum", "relay"), failures="count", hurry=True)
    cursor = services().store.get(Cursor, network=attic.realm_network().id)
    assert cursor is not None and cursor.number == services().reader(attic.realm_network()).tip()
    assert attic.status(other) == "completed" and "can not be stored and is left to a rescan" in caplog.text

    put_back()
    attic.turn()
    attic.mine(20)
    attic.turn()
    paid = [d for d in services().store.every(Deposit) if d.status == "confirmed" and d.invoice_id in {i["id"] for i in archived}]
    assert len(paid) == 2 * len(archived), "each once"


@pytest.mark.parametrize("beyond", [0, 12], ids=["of its block", "of a range"])
def test_a_rescan_credits_the_others_of_the_block(attic: Attic, monkeypatch: pytest.MonkeyPatch, beyond: int) -> None:
    """And the archived one never again."""
    deposit, to = archived_beside_another(attic)
    number, hash_ = deposit.block
    put_back = lose_objects(attic)
    node = bent_node(attic, monkeypatch)
    with_also(node, [payment(attic, to["address"], 77, 7_000_000)], hash_)
    order_rescan(attic, number, number + beyond)
    poll(attic)
    assert attic.available("usdt") == "12"
    assert services().store.whole([(Deposit, {"id": deposit.id})]) == [False]
    assert open_rescans(attic) == 1, "it waits for the object, and says so"

    put_back()
    with_also(bent_node(attic, monkeypatch), [payment(attic, to["address"], 77, 7_000_000)], hash_)
    attic.turn()
    assert open_rescans(attic) == 0
    assert attic.available("usdt") == "12"
    assert attic.kept() == {deposit.id}


def test_so_does_one_of_a_block_with_many(attic: Attic, monkeypatch: pytest.MonkeyPatch) -> None:
    deposit, to = archived_beside_another(attic)
    put_back = lose_objects(attic)
    node = bent_node(attic, monkeypatch)
    with_also(node, [payment(attic, to["address"], 50 + n, 1_000_000) for n in range(24)], deposit.block[1])
    order_rescan(attic, deposit.block[0], deposit.block[0])
    poll(attic)
    assert attic.available("usdt") == "29"
    put_back()


def test_the_twin_of_one_is_held(attic: Attic, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that traces tells the payment as native coins, too: it may be credited."""
    deposit, _ = archived_beside_another(attic)
    put_back = lose_objects(attic)
    node = bent_node(attic, monkeypatch)
    to = deposit.address.lower()
    native = Transfer(deposit.txid, f"trace:{to}:0", None, "0x" + "11" * 20, to, 5 * 10**18)
    with_also(node, [native], deposit.block[1])
    order_rescan(attic, deposit.block[0], deposit.block[0])
    poll(attic)
    put_back()
    (twin,) = [d for d in services().store.every(Deposit) if d.txid == deposit.txid and d.id != deposit.id]
    assert NATIVE_TWIN in twin.flags
    assert attic.available() == "0"


def test_while_s3_is_away_the_block_waits(attic: Attic, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says nothing about one payment."""
    deposit, to = archived_beside_another(attic)
    attic.in_a_new_process()
    node = bent_node(attic, monkeypatch)
    with_also(node, [payment(attic, to["address"], 77, 7_000_000)], deposit.block[1])
    order_rescan(attic, deposit.block[0], deposit.block[0])
    real = botocore.client.BaseClient._make_api_call  # type: ignore[attr-defined]

    def away(client: Any, operation: str, parameters: Any) -> Any:
        if operation == "GetObject":
            raise EndpointConnectionError(endpoint_url="s3")
        return real(client, operation, parameters)

    with monkeypatch.context() as patch:
        patch.setattr(botocore.client.BaseClient, "_make_api_call", away)
        poll(attic)
    assert attic.available("usdt") == "5"
    attic.turn()
    poll(attic)
    assert (attic.available("usdt"), open_rescans(attic)) == ("12", 0)
    assert audit(services().store) == []
