"""Lists over the HTTP interface: filters, sorting, pages and cursors, and what they refuse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.api.lists import walking
from chalicelib.domain.deposits.deposits import Deposit, deposit_id
from chalicelib.domain.ids import AssetId, NetworkId, TenantId, new_id
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.ports.changes import Save
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
    """0 to 5 deposits, 6 and 7 payments; 1 is orphaned, 4 confirmed and of an invoice, 7 failed; 5 in another coin."""
    invoice = Invoice(
        id="inv_A", tenant=TenantId(f"{edge.shop}:test"), network=NetworkId("test:ethereum"), asset="test:ethereum:eth",
        address=PAYEE, address_id="addr_A", amount=10**18, created_at=START, expires_at=START,
    )  # type: ignore[arg-type]  # fmt: skip
    edge.services.store.commit([Save(invoice)])
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


def test_a_filter_that_no_index_tells_goes_on_by_cursor(edge, transactions, monkeypatch):
    """With four records in the place of ten thousand: what the newest four have is told, and the cursor finds the rest once."""
    monkeypatch.setattr(walking, "DEEPEST", 4)
    asked: list[tuple[dict[str, str], list[int]]] = [
        ({"amount__lt": "0.004"}, [2, 1, 0]), ({"type": "withdrawal"}, [7, 6]), ({"coin__ne": "eth"}, [7, 6, 5]),
    ]  # fmt: skip
    for filters, expected in asked:
        found, pagination = transactions.page(limit=1, **filters)
        assert found == [n for n in expected if n > 3][:1]
        assert (pagination["total"], pagination["total_capped"]) == (len([n for n in expected if n > 3]), True)
        assert (pagination["pages"], pagination["has_next"]) == (None, True)
        while pagination["has_next"]:
            more, pagination = transactions.page(limit=1, cursor=pagination["next_cursor"], **filters)
            found += more
        assert found == expected
        assert pagination["next_cursor"] is None


def test_what_has_a_key_is_got_by_it(edge, transactions, monkeypatch):
    """Whatever lies before it: with two records in the place of ten thousand, all is found and counted."""
    address = edge.call("POST", "/addresses", json={"network": "tron"}).json
    label = edge.call("POST", "/addresses", json={"network": "tron", "label": "till"}).json
    invoice = edge.call("POST", "/invoices", json={"currency": "eth", "amount": "1", "externalId": "Order-1"}).json
    paying = deposit(edge, 20, address=invoice["address"], invoice_id=invoice["id"]).id
    deposit(edge, 21, address=invoice["address"])
    sent = edge.services.store.get(Withdrawal, tenant=f"{edge.shop}:test", id=transactions.ids[6].replace("txw_", "wd_"))
    monkeypatch.setattr(walking, "DEEPEST", 2)
    for path, expected in {
        f"/addresses?address={address['address']}": [address["id"]],
        f"/addresses?address={address['address'][:-1]}": [],
        f"/addresses?address={address['id']}": [],
        f"/addresses?address[in]={address['address']},{label['address']}&label=till": [label["id"]],
        f"/addresses?id={label['id']}": [label["id"]],
        "/invoices/getAll?externalId=Order-1": [invoice["id"]],
        "/invoices/getAll?externalId=order-1": [],
        f"/invoices/getAll?address={invoice['address'].lower()}": [invoice["id"]],
        f"/invoices/getAll?address={address['address']}": [],
        f"/invoices/getAll?id={invoice['id']}&status=completed": [],
        f"/transactions?id={transactions.ids[7]}": [transactions.ids[7]],
        f"/transactions?id={paying}": [paying],
        f"/transactions?withdrawalId={sent.id}": [transactions.ids[6]],
        f"/transactions?invoiceId={invoice['id']}": [paying],
        "/transactions?invoiceId=inv_none": [],
        f"/withdrawals?transaction_hash={sent.txid}": [sent.id],
        f"/withdrawals?transaction_hash={6 * '0'}": [],
        f"/withdrawals?id={sent.id}&status[ne]=failed": [sent.id],
    }.items():  # fmt: skip
        answer = edge.call("GET", path).json
        assert [record["id"] for record in answer["data"]] == expected, path
        assert answer["meta"]["pagination"]["total"] == len(expected)
        assert edge.call("GET", path, key="other").json["data"] == []
    archived = edge.call("DELETE", f"/addresses/{label['id']}")
    assert archived.status == 200
    assert edge.call("GET", f"/addresses?address={label['address']}").json["data"] == []


def test_withdrawals_to_an_address(edge, transactions):
    waiting = paid(edge, 9, status="pending", txid=None)
    ids = [waiting.id, *(name.replace("txw_", "wd_") for name in transactions.ids[:5:-1])]
    answer = edge.call("GET", f"/withdrawals?to_address={waiting.to_address}&limit=2").json
    assert [record["id"] for record in answer["data"]] == ids[:2]
    assert answer["meta"]["pagination"]["total"] == 3
    assert edge.call("GET", f"/withdrawals?to_address={waiting.to_address[:-1]}").json["data"] == []


def test_lists_without_pages_take_the_operators_too(edge):
    edge.credit("ethereum", "eth", 10**18)
    edge.credit("ethereum", "usdt", 2_000_000)
    edge.credit("tron", "trx", 3_000_000)

    def coins(query: str) -> list[str]:
        answer = edge.call("GET", f"/balances{query}")
        assert answer.status == 200, answer.body
        return [record["coin"] for record in answer.json["data"]]

    assert coins("") == coins("?order=asc") == ["eth", "usdt", "trx"]
    assert coins("?limit=2") == ["eth", "usdt"]
    assert coins("?limit=2&page=2") == ["trx"]
    assert coins("?network=ethereum") == ["eth", "usdt"]
    assert coins("?available[gt]=1&sort=available&order=desc") == ["trx", "usdt"]
    assert coins("?held[gt]=0") == []
    assert set(problems(edge, "/balances?limit=101&colour=red&available=x")) == {"limit", "colour", "available"}

    def networks(query: str) -> list[str]:
        return [record["network"] for record in edge.call("GET", f"/networks/last-number-blocks{query}").json]

    assert len(networks("")) == 8
    assert networks("?limit=3") == ["bitcoin", "ethereum", "tron"]
    assert networks("?network[in]=tron,bsc&order=desc") == ["bsc", "tron"]
    assert networks("?lastBlockNumber[gte]=0") == networks("?timestamp[lt]=2020-01-01") == []
    for n in range(3):
        tenant, network, asset = TenantId(f"{edge.shop}:test"), NetworkId("test:tron"), AssetId("test:tron:trx")
        made = Stake(new_id("stk", START + n), tenant, network, asset, "T", (n + 1) * 10**6, "ENERGY", START + n)
        edge.services.store.commit([Save(made)])

    def stakes(query: str) -> list[str]:
        return [record["amount"] for record in edge.call("GET", f"/networks/tron/stake{query}", key="admin").json]

    assert stakes("") == ["3", "2", "1"]
    assert stakes("?limit=1&page=2") == ["2"]
    assert stakes("?amount[lt]=3&order=asc") == ["1", "2"]
    assert stakes("?sort=amount&resource=ENERGY&status=pending") == ["3", "2", "1"]
    assert stakes("?status=failed") == []


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
