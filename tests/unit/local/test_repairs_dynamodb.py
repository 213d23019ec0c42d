"""The repairs of moto's DynamoDB and SQS: that moto still needs each, and that each does what DynamoDB does."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends

from infra.local.aws import ENVIRONMENT, LocalAws
from infra.local.repairs import dynamodb as repairs
from tests.support import moto_faults
from tests.support.moto_faults import DIGITS_38, SCENES, TABLE, add, item, key, missing, number, put, query

# What DynamoDB (or, for the costs, anything sensible) gives in each scene.
RIGHT: dict[str, Callable[[Any], bool]] = {
    "write_beside_a_failing_transaction_stays": lambda fact: fact is True,
    "tables_copied_by_a_transaction": lambda fact: fact == 0,
    "whole_table_sorted_by_a_query": lambda fact: fact == 0,
    "key_after_a_full_page": lambda fact: fact is True,
    "names_asked_for_by_an_answer": lambda fact: fact < 50,
    "weighings_of_an_item": lambda fact: fact < 100,
    "items_kept_for_ever": lambda fact: fact == 0,
    "half_of_a_failed_update_stays": lambda fact: fact is False,
    "counted_twice_with_one_token": lambda fact: fact == "1",
    "sum_of_38_digits": lambda fact: fact == "1234567890123456789012345678.9012345679",
    "number_of_39_digits_is_stored": lambda fact: fact is False,
    "sum_with_an_exponent": lambda fact: fact == "101",
    "message_sent_beside_a_deletion_stays": lambda fact: fact is True,
}
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def as_installed() -> dict[str, Any]:
    """The facts of moto without our repairs, from a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.moto_faults"],
        cwd=ROOT,
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


@pytest.fixture
def client(aws: LocalAws) -> Any:
    return moto_faults.database()


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_moto_still_needs_the_repair(as_installed: dict[str, Any], scene: Callable[[], Any]) -> None:
    fact = as_installed[scene.__name__]
    assert not RIGHT[scene.__name__](fact), f"moto gives {fact!r} by itself now: take this repair out"


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_the_repair_works(aws: LocalAws, scene: Callable[[], Any]) -> None:
    fact = scene()
    assert RIGHT[scene.__name__](fact), fact


# ---- Order and pages: against a plain list that is filtered and sorted anew for every question ------------------------------


def conditions(rng: random.Random) -> tuple[str, dict[str, Any], Callable[[str], bool]]:
    low, high = sorted(f"{rng.randrange(40):02d}" for _ in range(2))
    prefix = low[0]
    return rng.choice(
        [
            ("", {}, lambda sk: True),
            (" AND {sk} = :a", {":a": {"S": low}}, lambda sk: sk == low),
            (" AND {sk} < :a", {":a": {"S": low}}, lambda sk: sk < low),
            (" AND {sk} <= :a", {":a": {"S": low}}, lambda sk: sk <= low),
            (" AND {sk} > :a", {":a": {"S": low}}, lambda sk: sk > low),
            (" AND {sk} >= :a", {":a": {"S": low}}, lambda sk: sk >= low),
            (" AND {sk} BETWEEN :a AND :b", {":a": {"S": low}, ":b": {"S": high}}, lambda sk: low <= sk <= high),
            (" AND begins_with({sk}, :a)", {":a": {"S": prefix}}, lambda sk: sk.startswith(prefix)),
        ]
    )


def pages(client: Any, condition: str, values: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    """All items, page by page, each page at most as long as its limit."""
    items: list[dict[str, Any]] = []
    start: dict[str, Any] = {}
    for _ in range(200):
        page = query(client, condition, values, **options, **start)
        assert len(page["Items"]) <= options["Limit"]
        items += page["Items"]
        if "LastEvaluatedKey" not in page:
            return items
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
    raise AssertionError("the pages do not end")


@pytest.mark.parametrize("seed", range(3))
def test_queries_find_what_a_plain_search_finds(client: Any, seed: int) -> None:
    rng = random.Random(seed)
    plain: dict[tuple[str, str], dict[str, Any]] = {}
    for _ in range(250):
        pk, sk = rng.choice("pq"), f"{rng.randrange(40):02d}"
        act = rng.random()
        if act < 0.5:
            row = item(sk, pk, n={"N": "1"})
            if rng.random() < 0.7:
                row |= {"list_pk": {"S": rng.choice("lm")}, "list_sk": {"S": f"{rng.randrange(40):02d}"}}
            client.put_item(TableName=TABLE, Item=row)
            plain[pk, sk] = row
        elif act < 0.7:
            client.delete_item(TableName=TABLE, Key=key(sk, pk))
            plain.pop((pk, sk), None)
        elif (pk, sk) in plain:
            place = f"{rng.randrange(40):02d}"
            client.update_item(
                TableName=TABLE,
                Key=key(sk, pk),
                UpdateExpression="SET list_pk = :l, list_sk = :s",
                ExpressionAttributeValues={":l": {"S": "l"}, ":s": {"S": place}},
            )
            plain[pk, sk] = plain[pk, sk] | {"list_pk": {"S": "l"}, "list_sk": {"S": place}}
        elif (pk, sk) not in plain:
            with pytest.raises(ClientError):
                client.transact_write_items(TransactItems=[put(sk, pk, list_pk={"S": "l"}, list_sk={"S": "00"}), missing("none")])

    for _ in range(60):
        text, values, fits = conditions(rng)
        forward, limit = rng.random() < 0.5, rng.randrange(1, 12)
        options = {"ScanIndexForward": forward, "Limit": limit}
        found = pages(client, "pk = :p" + text.format(sk="sk"), {":p": {"S": "p"}, **values}, **options)
        wanted = [row for (pk, sk), row in sorted(plain.items(), reverse=not forward) if pk == "p" and fits(sk)]
        assert found == wanted

        found = pages(
            client, "list_pk = :p" + text.format(sk="list_sk"), {":p": {"S": "l"}, **values}, IndexName="listing", **options
        )
        wanted = [r for r in plain.values() if r.get("list_pk") == {"S": "l"} and fits(r["list_sk"]["S"])]
        places = [row["list_sk"]["S"] for row in found]
        assert places == sorted(places, reverse=not forward)
        assert sorted(found, key=str) == sorted(wanted, key=str)

    scanned = client.scan(TableName=TABLE)["Items"]
    assert scanned == [row for _, row in sorted(plain.items())]
    paged, start = [], {}
    while True:
        page = client.scan(TableName=TABLE, Limit=7, **start)
        assert page["ScannedCount"] <= 7
        paged += page["Items"]
        if "LastEvaluatedKey" not in page:
            break
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
    assert paged == scanned


def test_a_condition_of_the_wrong_type_is_refused(client: Any) -> None:
    client.put_item(TableName=TABLE, Item=item("a"))
    with pytest.raises(ClientError, match="type"):
        query(client, "pk = :p AND sk > :n", {":p": {"S": "p"}, ":n": {"N": "1"}})


def test_an_index_key_of_the_wrong_type_is_refused_and_nothing_stored(client: Any) -> None:
    with pytest.raises(ClientError, match="Type mismatch"):
        client.put_item(TableName=TABLE, Item=item("a", list_pk={"S": "l"}, list_sk={"N": "1"}))
    assert client.scan(TableName=TABLE)["Items"] == []


def test_a_filter_counts_what_it_looked_at(client: Any) -> None:
    for n in range(10):
        client.put_item(TableName=TABLE, Item=item(str(n), n={"N": str(n)}))
    page = query(client, "pk = :p", {":p": {"S": "p"}, ":n": {"N": "7"}}, FilterExpression="n > :n", Limit=9)
    assert [row["sk"]["S"] for row in page["Items"]] == ["8"]
    assert (page["Count"], page["ScannedCount"]) == (1, 9)


# ---- Transactions -----------------------------------------------------------------------------------------------------------


def test_a_failed_transaction_leaves_nothing_and_says_why(client: Any) -> None:
    client.put_item(TableName=TABLE, Item=item("old", n={"N": "5"}, list_pk={"S": "l"}, list_sk={"S": "1"}))
    before = client.scan(TableName=TABLE)["Items"]
    fails = {"ConditionExpression": "n = :six", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    fails["ExpressionAttributeValues"] = {":a": {"N": "1"}, ":six": {"N": "6"}}
    with pytest.raises(client.exceptions.TransactionCanceledException) as caught:
        client.transact_write_items(
            TransactItems=[
                put("new", list_pk={"S": "l"}, list_sk={"S": "0"}),
                {"Delete": {"TableName": TABLE, "Key": key("gone")}},
                add("old", "1", **fails),
                add("counter", "1"),
            ]
        )
    reasons = caught.value.response["CancellationReasons"]
    assert [reason["Code"] for reason in reasons] == ["None", "None", "ConditionalCheckFailed", "None"]
    assert reasons[2]["Item"] == before[0]
    assert client.scan(TableName=TABLE)["Items"] == before
    assert query(client, "list_pk = :l", {":l": {"S": "l"}}, IndexName="listing")["Items"] == before


def test_a_refused_transaction_leaves_nothing(client: Any) -> None:
    too_many = [put(str(n)) for n in range(101)]
    for transaction in ([put("a"), put("a")], too_many):
        with pytest.raises(ClientError) as caught:
            client.transact_write_items(TransactItems=transaction)
        assert caught.value.response["Error"]["Code"] == "ValidationException"
    assert client.scan(TableName=TABLE)["Items"] == []


def test_a_hundred_items_fit_in_a_transaction(client: Any) -> None:
    client.transact_write_items(TransactItems=[put(f"{n:03d}") for n in range(100)])
    assert client.scan(TableName=TABLE)["Count"] == 100


def test_a_failed_update_gives_the_old_item(client: Any) -> None:
    client.put_item(TableName=TABLE, Item=item("a", n={"N": "5"}))
    with pytest.raises(client.exceptions.ConditionalCheckFailedException) as caught:
        client.update_item(
            TableName=TABLE,
            Key=key("a"),
            UpdateExpression="SET n = :six",
            ConditionExpression="n = :six",
            ExpressionAttributeValues={":six": {"N": "6"}},
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    assert caught.value.response["Item"] == item("a", n={"N": "5"})


def test_nothing_is_lost_or_torn_between_threads(client: Any) -> None:
    """Transfers between two counters, plain counting beside them, and readers who must always see the same sum."""
    for name in ("a", "b", "plain"):
        client.put_item(TableName=TABLE, Item=item(name, n={"N": "1000"}))
    sums: set[int] = set()

    def transfer(turn: int) -> None:
        for n in range(25):
            doomed = [missing("nobody")] if n % 3 == turn % 3 else []
            try:
                client.transact_write_items(TransactItems=[add("a", "-1"), add("b", "1"), put(f"{turn}-{n}"), *doomed])
            except client.exceptions.TransactionCanceledException:
                continue
            client.update_item(
                TableName=TABLE, Key=key("plain"), UpdateExpression="ADD n :a", ExpressionAttributeValues={":a": {"N": "1"}}
            )

    def read() -> None:
        for _ in range(40):
            got = client.transact_get_items(TransactItems=[{"Get": {"TableName": TABLE, "Key": key(name)}} for name in "ab"])
            sums.add(sum(int(answer["Item"]["n"]["N"]) for answer in got["Responses"]))

    threads = [threading.Thread(target=transfer, args=(turn,)) for turn in range(4)] + [threading.Thread(target=read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = sum(1 for turn in range(4) for n in range(25) if n % 3 != turn % 3)
    assert sums == {2000}
    assert (number(client, "a"), number(client, "b"), number(client, "plain")) == (
        str(1000 - made),
        str(1000 + made),
        str(1000 + made),
    )


def test_a_token_counts_for_ten_minutes_and_for_the_same_contents_only(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(repairs, "now", lambda: clock[0])
    client.put_item(TableName=TABLE, Item=item("a", n={"N": "0"}))

    def count(amount: str = "1") -> str:
        client.transact_write_items(ClientRequestToken="token", TransactItems=[add("a", amount)])
        return number(client, "a")

    assert count() == "1"
    clock[0] += 599
    assert count() == "1"
    with pytest.raises(ClientError) as caught:
        count("2")
    assert caught.value.response["Error"]["Code"] == "IdempotentParameterMismatchException"
    clock[0] += 1
    assert count() == "2"


def test_a_token_of_a_failed_transaction_is_free(client: Any) -> None:
    transaction = [add("a", "1"), missing("b")]
    with pytest.raises(client.exceptions.TransactionCanceledException):
        client.transact_write_items(ClientRequestToken="token", TransactItems=transaction)
    client.put_item(TableName=TABLE, Item=item("b"))
    client.transact_write_items(ClientRequestToken="token", TransactItems=transaction)
    assert number(client, "a") == "1"


# ---- Numbers ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "amount", "after"),
    [
        ("9" * 37, "1", "1" + "0" * 37),
        ("1" + "0" * 37, "-1", "9" * 37),
        (DIGITS_38, "-" + DIGITS_38, "0"),
        ("0.1", "0.2", "0.3"),
        ("1.50", "0.50", "2"),
        ("-1", "0.9999999999999999999999999999999999999", "-0.0000000000000000000000000000000000001"),
        ("1E+37", "1", "1" + "0" * 36 + "1"),
    ],
)
def test_sums_are_exact(client: Any, before: str, amount: str, after: str) -> None:
    client.put_item(TableName=TABLE, Item=item("a", n={"N": before}))
    client.transact_write_items(TransactItems=[add("a", amount)])
    assert number(client, "a") == after


@pytest.mark.parametrize(("before", "amount"), [("9" * 38, "0.1"), ("1E+37", "1E-1"), ("9.9E+125", "9.9E+125")])
def test_a_sum_that_does_not_fit_is_refused(client: Any, before: str, amount: str) -> None:
    client.put_item(TableName=TABLE, Item=item("a", n={"N": before}))
    with pytest.raises(ClientError) as caught:
        client.transact_write_items(TransactItems=[add("a", amount)])
    assert caught.value.response["Error"]["Code"] in ("ValidationException", "TransactionCanceledException")
    assert number(client, "a") == before


def test_subtraction_in_an_expression_is_exact(client: Any) -> None:
    client.put_item(TableName=TABLE, Item=item("a", n={"N": "1" + "0" * 37}))
    client.update_item(
        TableName=TABLE, Key=key("a"), UpdateExpression="SET n = n - :a", ExpressionAttributeValues={":a": {"N": "1"}}
    )
    assert number(client, "a") == "9" * 37


# ---- Cost -------------------------------------------------------------------------------------------------------------------


def test_cost_does_not_grow_with_the_table(client: Any) -> None:
    """Reads, writes and transactions at 5,000 rows take at most twice what they take at 50: the best of many, so that a busy
    machine does not decide. Unrepaired it is a hundred times."""
    backend = dynamodb_backends[DEFAULT_ACCOUNT_ID]["eu-central-1"]
    fresh = iter(range(10_000_000, 20_000_000))

    def fill(rows: int) -> None:
        for n in range(rows):
            backend.put_item(TABLE, item(f"{n:08d}", list_pk={"S": "l"}, list_sk={"S": f"{n % 97:02d}"}))

    work: dict[str, Callable[[], Any]] = {
        "get": lambda: client.get_item(TableName=TABLE, Key=key("00000007")),
        "put": lambda: client.put_item(TableName=TABLE, Item=item(str(next(fresh)))),
        "query": lambda: query(client, "pk = :p", {":p": {"S": "p"}}, Limit=10),
        "index": lambda: query(client, "list_pk = :p", {":p": {"S": "l"}}, Limit=10, IndexName="listing"),
        "transaction": lambda: client.transact_write_items(TransactItems=[put(str(next(fresh))) for _ in range(5)]),
    }

    def lines(job: Callable[[], Any]) -> int:
        """How many lines of Python run, loops of comprehensions included: the same on every machine, however busy."""
        count = 0

        def trace(frame: Any, event: str, argument: Any) -> Any:
            nonlocal count
            count += event == "line"
            return trace

        job()  # what is made at the first call does not count
        before = sys.gettrace()  # coverage's, which all later tests of this process need
        sys.settrace(trace)
        try:
            job()
        finally:
            sys.settrace(before)
        return count

    fill(50)
    small = {name: lines(job) for name, job in work.items()}
    fill(5_000)
    large = {name: lines(job) for name, job in work.items()}
    assert {name: round(large[name] / small[name], 1) for name in work if large[name] > 2 * small[name]} == {}


# ---- Snapshots --------------------------------------------------------------------------------------------------------------


def test_a_snapshot_brings_everything_back_any_number_of_times(aws: LocalAws, client: Any) -> None:
    import boto3

    sqs = boto3.client("sqs")
    url = sqs.get_queue_url(QueueName=aws.settings.queue("relay"))["QueueUrl"]
    client.put_item(TableName=TABLE, Item=item("a", n={"N": "1"}, list_pk={"S": "l"}, list_sk={"S": "1"}))
    sqs.send_message(QueueUrl=url, MessageBody="before")
    token = aws.snapshot()
    for _ in range(2):
        client.transact_write_items(ClientRequestToken="token", TransactItems=[add("a", "1"), put("b")])
        client.update_item(
            TableName=TABLE, Key=key("a"), UpdateExpression="SET list_sk = :s", ExpressionAttributeValues={":s": {"S": "2"}}
        )
        client.delete_item(TableName=TABLE, Key=key("a"))
        got = sqs.receive_message(QueueUrl=url)["Messages"][0]
        sqs.delete_message(QueueUrl=url, ReceiptHandle=got["ReceiptHandle"])
        sqs.send_message(QueueUrl=url, MessageBody="after")
        aws.restore(token)
        assert client.scan(TableName=TABLE)["Items"] == [item("a", n={"N": "1"}, list_pk={"S": "l"}, list_sk={"S": "1"})]
        assert (
            len(query(client, "list_pk = :l AND list_sk = :s", {":l": {"S": "l"}, ":s": {"S": "1"}}, IndexName="listing")["Items"])
            == 1
        )
        assert [m["Body"] for m in sqs.receive_message(QueueUrl=url, VisibilityTimeout=0)["Messages"]] == ["before"]
    aws.reset_data()
    assert client.scan(TableName=aws.settings.table("records"))["Items"] == []
    assert "Messages" not in sqs.receive_message(QueueUrl=url)
