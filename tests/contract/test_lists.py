"""Lists over the HTTP interface: filters, sorting, pages and cursors, and what they refuse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.deposits import Deposit, deposit_id
from chalicelib.domain.ids import NetworkId, TenantId, new_id
from chalicelib.domain.withdrawals import Withdrawal
from chalicelib.usecases.changes import Save
from tests.support.edge import PREPARED, Edge

PAYEE = "0x52908400098527886E0F7030069857D2E4169EE7"  # EIP-55's own example
START = 1_767_225_600_000  # 2026-01-01T00:00:00Z
HOUR = 3_600_000


@pytest.fixture
def edge(aws) -> Edge:
    return PREPARED.edge(aws)


def deposit(edge: Edge, n: int, **changes: Any) -> Deposit:
    """The n-th: an hour after the one before, of n + 1 thousandths of an ether."""
    network, txid = NetworkId("test:ethereum"), f"0x{n:064x}"
    values = {
        "id": deposit_id(network, txid, "native"), "network": network, "asset": "test:ethereum:eth", "tenant": f"{edge.shop}:test",
        "txid": txid, "position": "native", "sender": PAYEE, "address": PAYEE, "amount": (n + 1) * 10**15, "block_number": 5 + n,
        "block_hash": "0x1", "block_time": 0, "created_at": START + n * HOUR,
    }  # fmt: skip
    made = Deposit(**(values | changes))
    edge.services.store.commit([Save(made)])
    return made


def paid(edge: Edge, n: int, **changes: Any) -> Withdrawal:
    at = START + n * HOUR
    made = Withdrawal(
        id=new_id("wd", at), tenant=TenantId(f"{edge.shop}:test"), network=NetworkId("test:tron"), asset="test:tron:usdt",
        amount=7_500_000, to_address="TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", fee_asset="test:tron:trx", created_at=at, updated_at=at,
        status="confirming", txid=f"{n:064x}", fee=1_000_000, from_address="TLa2f6VPqDgRE67v1736s7bJ8Ray5wYjU7",
    )  # fmt: skip
    made = replace(made, **changes)
    edge.services.store.commit([Save(made)])
    return made


class Found:
    """Transactions that were made, by their place; what a query finds of them."""

    def __init__(self, edge: Edge, ids: list[str]) -> None:
        self.edge, self.ids = edge, ids

    def page(self, **query: Any) -> tuple[list[int], dict[str, Any]]:
        answer = self.edge.call(
            "GET", "/v1/transactions", query={name.replace("__", "[") + "]" * ("__" in name): v for name, v in query.items()}
        )
        assert answer.status == 200, answer.body
        return [self.ids.index(record["id"]) for record in answer.json["data"]], answer.json["meta"]["pagination"]

    def __call__(self, **query: Any) -> list[int]:
        return self.page(**query)[0]


@pytest.fixture
def transactions(edge) -> Found:
    """0 to 5 deposits, 6 and 7 payments; 1 is orphaned, 4 confirmed, 7 failed; 5 in another coin."""
    changed: dict[int, dict[str, Any]] = {
        1: {"status": "orphaned"},
        4: {"status": "confirmed", "confirmed_at": START + 9 * HOUR, "invoice_id": "inv_A"},
        5: {"asset": "test:ethereum:usdt", "amount": 2_500_000, "sender": "0x" + "0" * 40},
    }
    ids = [deposit(edge, n, **changed.get(n, {})).id for n in range(6)]
    payments = [paid(edge, 6), paid(edge, 7, status="failed")]
    return Found(edge, ids + ["txw_" + w.id.removeprefix("wd_") for w in payments])


def test_every_operator(transactions):
    assert transactions() == [7, 6, 5, 4, 3, 2, 1, 0]
    assert transactions(order="asc", limit=3) == [0, 1, 2]
    assert transactions(status="pending") == transactions(status__eq="pending") == [6, 5, 3, 2, 0]
    assert transactions(status__ne="pending") == [7, 4, 1]
    assert transactions(status__in="failed,orphaned") == [7, 1]
    assert transactions(status__like="fail") == [7]
    assert transactions(type="withdrawal") == [7, 6]
    assert transactions(network="tron") == transactions(network__ne="ethereum") == [7, 6]
    assert transactions(coin="usdt") == [7, 6, 5]
    assert transactions(coin="usdt", network="ethereum") == [5]
    assert transactions(coin="usdt", status="pending") == [6, 5]
    assert transactions(coin="btc") == transactions(coin="btc", network="tron") == []
    assert transactions(amount__gt="0.004") == [7, 6, 5, 4]
    assert transactions(amount__gte="0.004", amount__lt="1") == [4, 3]
    assert transactions(amount="2.50") == [5]
    assert transactions(amount__in="7.5,2.5") == [7, 6, 5]
    assert transactions(createdAt__gte="2026-01-01T06:00:00Z") == [7, 6]
    assert transactions(createdAt__gt="2026-01-01T06:00:00Z") == [7]
    assert transactions(createdAt__lt="2026-01-01T01:00:00.001Z") == [1, 0]
    assert transactions(created_at__lte="2026-01-01T02:00:00+01:00") == [1, 0]
    assert transactions(createdAt="2026-01-01") == list(range(7, -1, -1))
    assert transactions(createdAt__gt="2026-01-01") == []
    assert transactions(createdAt__gte="2026-01-02", createdAt__lt="2026-01-01") == []
    assert transactions(createdAt__in="2026-01-01T03:00:00Z,2026-01-01T05:00:00.000Z") == [5, 3]
    assert transactions(address=PAYEE.lower()) == [5, 4, 3, 2, 1, 0]
    assert transactions(hash=f"0X{3:064X}") == [3]
    assert transactions(invoiceId="inv_A") == [4]
    assert transactions(invoiceId__ne="inv_A") == [7, 6, 5, 3, 2, 1, 0]
    assert transactions(confirmedAt__gt="2020-01-01") == [4]
    assert transactions(blockNumber__in="5,7") == [2, 0]
    assert transactions(**{"from": "0x" + "0" * 40}) == [5]


def test_sorting_by_another_field(transactions):
    assert transactions(sort="amount") == [7, 6, 5, 4, 3, 2, 1, 0][:3] + [5, 4, 3, 2, 1, 0][1:]
    assert transactions(sort="amount", order="asc", limit=2) == [0, 1]
    assert transactions(sort="amount", order="asc", limit=2, page=2) == [2, 3]
    assert transactions(sort="createdAt", order="asc", limit=2, page=2) == [2, 3]
    first, pagination = transactions.page(sort="amount", order="asc", limit=5, status__ne="orphaned")
    assert (first, pagination["total"], pagination["pages"]) == ([0, 2, 3, 4, 5], 7, 2)
    more, pagination = transactions.page(
        sort="amount", order="asc", limit=5, status__ne="orphaned", cursor=pagination["next_cursor"]
    )
    assert (more, pagination["has_next"], pagination["next_cursor"]) == ([6, 7], False, None)


@pytest.mark.parametrize("filters", [{}, {"status": "pending"}, {"status__in": "pending,failed"}, {"amount__lt": "3"}])
def test_pages_tell_what_is_before_and_behind(transactions, filters):
    everything = transactions(limit=100, **filters)
    for limit in (1, 2, len(everything)):
        pages = -(-len(everything) // limit)
        for page in range(1, pages + 2):
            found, pagination = transactions.page(limit=limit, page=page, **filters)
            assert found == everything[(page - 1) * limit : page * limit]
            assert (pagination["page"], pagination["limit"], pagination["total"]) == (page, limit, len(everything))
            assert (pagination["pages"], pagination["has_next"], pagination["has_prev"]) == (pages, page < pages, page > 1)
            assert (pagination["next_cursor"] is not None) == (page < pages)
        walked, pagination = transactions.page(limit=limit, **filters)
        while pagination["next_cursor"] is not None:
            assert pagination["has_next"]
            more, pagination = transactions.page(limit=limit, cursor=pagination["next_cursor"], **filters)
            assert (pagination["page"], pagination["total"], pagination["has_prev"]) == (None, None, True)
            walked += more
        assert walked == everything
        assert pagination["has_next"] is False


def problems(edge: Edge, path: str) -> dict[str, str]:
    answer = edge.call("GET", path)
    assert answer.status == 400, answer.body
    assert answer.json["error"]["code"] == "INVALID_PARAMETER"
    return {problem["field"]: problem["constraints"][0] for problem in answer.json["error"]["details"]}


def test_everything_that_is_wrong_is_told_at_once(edge):
    wrong = problems(
        edge, "/transactions?limit=101&page=0&sort=colour&order=up&status=lost&status[in]=pending,gone&coin[in]=eth,doge"
        "&amount[gt]=-1&createdAt[gte]=yesterday&colour=red&status[gt]=a&amount[like]=1&blockNumber=x",
    )  # fmt: skip
    assert set(wrong) == {
        "limit", "page", "sort", "order", "status", "status[in]", "coin[in]", "amount[gt]", "createdAt[gte]", "colour",
        "status[gt]", "amount[like]", "blockNumber",
    }  # fmt: skip
    assert wrong["limit"] == "must be at most 100"
    assert wrong["sort"].startswith("must be one of: createdAt, created_at, type, status, network, coin, amount")
    assert wrong["status"] == wrong["status[in]"] == "must be one of: pending, confirmed, failed, orphaned"
    assert wrong["status[gt]"] == "is not known; operators of status are: eq, ne, in, like"
    assert wrong["colour"].startswith("is not known; known are: address, amount, blockNumber, coin, confirmedAt, createdAt")


def test_pages_that_are_too_deep_are_told_of_the_cursor(edge):
    assert edge.call("GET", "/transactions?page=100&limit=100").status == 200
    assert "cursor" in problems(edge, "/transactions?page=101&limit=100")["page"]
    assert "cursor" in problems(edge, "/transactions?page=5001&perPage=2")["page"]
    assert "send one of them" in problems(edge, "/transactions?perPage=2&limit=2")["request"]


def test_cursors_of_another_list_and_garbage(edge, transactions):
    _, pagination = transactions.page(limit=1)
    cursor = pagination["next_cursor"]
    for sent in ("x", "!", "é", cursor[:-3], "W10", "bnVsbA", "WyJldmVudHMiLCIiLCJkZXNjIiwiYSIsbnVsbF0"):
        assert set(problems(edge, f"/transactions?cursor={sent}")) == {"cursor"}
    assert set(problems(edge, f"/events?cursor={cursor}")) == {"cursor"}
    assert set(problems(edge, f"/transactions?cursor={cursor}&order=asc")) == {"order"}
    assert set(problems(edge, f"/transactions?cursor={cursor}&sort=amount")) == {"sort"}
    assert edge.call("GET", f"/transactions?cursor={cursor}&order=desc&sort=createdAt").status == 200


def test_a_payment_is_a_transaction(edge, transactions):
    one = edge.call("GET", f"/transactions/{transactions.ids[7]}").json["data"]
    assert (one["type"], one["status"], one["amount"], one["fee"]) == ("withdrawal", "failed", "7.5", "1")
    assert one["withdrawalId"] == transactions.ids[7].replace("txw_", "wd_")
    assert edge.call("GET", f"/transactions/{one['hash']}").json["data"] == one
    assert edge.call("GET", f"/transactions/{one['id']}", key="other").status == 404
    assert edge.call("GET", f"/transactions/{one['hash']}", key="other").status == 404
    unsigned = paid(edge, 9, status="pending", txid=None)
    assert edge.call("GET", f"/transactions/{unsigned.id.replace('wd_', 'txw_')}").status == 404
    assert len(edge.call("GET", "/transactions").json["data"]) == 8


def test_transactions_of_an_address(edge):
    made = edge.call("POST", "/addresses", json={"network": "ethereum"}).json
    mine = [deposit(edge, n, address=made["address"]).id for n in range(3)]
    deposit(edge, 3)
    for place in (made["id"], made["address"], made["address"].lower()):
        for path in (f"/transactions/address/{place}", f"/addresses/{place}/transactions"):
            answer = edge.call("GET", path)
            assert [record["id"] for record in answer.json["data"]] == mine[::-1]
            assert answer.json["meta"]["pagination"]["total"] == 3
            assert len(edge.call("GET", f"{path}?amount[gt]=0.001&limit=1").json["data"]) == 1
            assert edge.call("GET", path, key="other").status == 404
    assert edge.call("GET", f"/transactions/address/{PAYEE}").status == 404
