"""Stores as a release left them: all items, parameters and keys, with work of every kind half done. Each later version reads them,
finds the books whole, and goes on with what is open.

`.venv/bin/python -m tests.support.kept_stores 0.1.0` makes those of a release, from its checkout: `tests/stores/0.1.0.json.gz` with
the defaults of prod, `0.1.0-small.json.gz` with the smaller forms of records. They are made once, when the release is tagged.
"""

from __future__ import annotations

import base64
import gzip
import json
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
from cryptography.hazmat.primitives.asymmetric import ec
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.kms.models import kms_backends

FOLDER = Path(__file__).parent.parent / "stores"
REGION = "eu-central-1"
FORMS = ("PACKED_RECORDS", "SHORT_RECORDS", "ONE_ITEM_OUTBOX", "LOOKOUTS")
BITCOIN_PAYEE = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"  # of BIP 173
_AT_ONCE = 25


def kept() -> list[Path]:
    """The stores of all releases."""
    return sorted(FOLDER.glob("*.json.gz"))


# ---- What a release leaves --------------------------------------------------------------------------------------------------


def _leave_work(stack: Any, url: str) -> dict[str, str]:
    """Do business, and stop half way; the ids of what is open, by what it is."""
    from tests.support.refunds import page_of, payout_link, refund
    from tests.support.shop import Shop

    shop, coins = Shop(stack), Shop(stack, network="bitcoin")
    shop.turn()
    coins.turn()
    shop.post("/v1/webhooks", {"url": url, "events": ["*"]})
    shop.credit("5")
    shop.credit("50", "usdt")
    coins.credit("0.5", "btc")
    done = shop.withdraw("0.1")
    shop.turn()
    shop.mine()
    shop.nudge()
    assert shop.withdrawal(done)["status"] == "confirmed"
    refunded = shop.invoice("1", externalId="refunded")
    shop.pay(refunded["address"], "1")
    shop.mine()
    shop.turn()
    given_back = refund(shop, refunded, amount="0.3")
    link = payout_link(shop)
    paid, partial, late, untouched = (shop.invoice("2", externalId=name) for name in ("paid", "partial", "late", "untouched"))
    shop.pay(partial["address"], "0.5")
    shop.mine()
    shop.turn()
    shop.pay(paid["address"], "2")  # seen, not confirmed
    choice = shop.post(
        "/v1/invoices",
        {
            "fiatAmount": "60",
            "fiatCurrency": "USD",
            "externalId": "choice",
            "accept": [{"coin": coin, "network": "ethereum"} for coin in ("eth", "usdt")],
        },
    ).json
    assert stack.call("POST", f"/v1/pay/{choice['id']}/choice", json={"coin": "usdt", "network": "ethereum"}).status == 200
    out, bitcoin = shop.withdraw("0.25"), coins.withdraw("0.1", "btc", BITCOIN_PAYEE)
    token = shop.withdraw("12.5", "usdt")
    shop.turn("deliver", "deliver_slow")
    coins.turn("deliver", "deliver_slow")
    asked = shop.withdraw("0.05")
    queues = boto3.client("sqs", region_name=REGION)
    for name in queues.list_queues().get("QueueUrls", ()):  # a deploy finds none older than some minutes
        queues.purge_queue(QueueUrl=name)
    return {
        "asked": asked,
        "bitcoin": bitcoin,
        "choice": choice["id"],
        "claim": page_of(link),
        "done": done,
        "late": late["id"],
        "link": link["id"],
        "out": out,
        "paid": paid["id"],
        "partial": partial["id"],
        "refund": given_back["id"],
        "token": token,
        "untouched": untouched["id"],
    }


def _dumped(stack: Any, ids: dict[str, str], made_at: int) -> bytes:
    client, ssm = boto3.client("dynamodb", region_name=REGION), boto3.client("ssm", region_name=REGION)
    tables = {}
    for name in client.list_tables()["TableNames"]:
        pages = client.get_paginator("scan").paginate(TableName=name)
        tables[name] = sorted((_plain(item) for page in pages for item in page["Items"]), key=json.dumps)
    parameters = {
        each["Name"]: ssm.get_parameter(Name=each["Name"])["Parameter"]["Value"]
        for page in ssm.get_paginator("describe_parameters").paginate()
        for each in page["Parameters"]
    }
    content = {
        "made_at": made_at,
        "ids": ids,
        "keys": stack.keys,
        "tables": tables,
        "parameters": parameters,
        "kms": list(_kms_keys()),
    }
    return gzip.compress(json.dumps(content, separators=(",", ":"), sort_keys=True).encode(), mtime=0)


def _kms_keys() -> Iterator[dict[str, Any]]:
    """The keys of a local stack, with what moto has in the place of KMS's hardware: they hold nothing but sandbox money."""
    for key in kms_backends[DEFAULT_ACCOUNT_ID][REGION].keys.values():
        signs = key.key_spec.startswith("ECC")
        secret = key.private_key.private_key.private_numbers().private_value.to_bytes(32, "big") if signs else key.key_material
        names = {"id": key.id, "spec": key.key_spec, "usage": key.key_usage, "aliases": sorted(key.aliases)}
        yield {**names, "secret": base64.b64encode(secret).decode()}


def _plain(item: dict[str, Any]) -> dict[str, Any]:
    return {
        name: {"B": base64.b64encode(value["B"]).decode()} if "B" in value else dict(value) for name, value in sorted(item.items())
    }


# ---- What a later version begins with ---------------------------------------------------------------------------------------


def load(aws: Any, path: Path) -> tuple[Any, dict[str, str]]:
    """Put a kept store into an empty AWS, at the time that it was left at; the stack over it, and the ids of what is open."""
    from app import app
    from chalicelib import wiring
    from chalicelib.wiring import services
    from tests.support.stack import Stack

    content = json.loads(gzip.decompress(path.read_bytes()))
    _restore_keys(content["kms"])
    ssm = boto3.client("ssm", region_name=REGION)
    for name, value in content["parameters"].items():
        ssm.put_parameter(Name=name, Value=value, Type="String", Overwrite=True)
    client = boto3.client("dynamodb", region_name=REGION)
    for table, items in content["tables"].items():
        for start in range(0, len(items), _AT_ONCE):
            puts = [{"PutRequest": {"Item": _item(each)}} for each in items[start : start + _AT_ONCE]]
            client.batch_write_item(RequestItems={table: puts})
    wiring.forget()
    clock = services().clock
    clock.shift_ms += content["made_at"] - clock.now_ms()
    return Stack(aws, app, content["keys"]), content["ids"]


def _restore_keys(kept: list[dict[str, Any]]) -> None:
    keys = kms_backends[DEFAULT_ACCOUNT_ID][REGION].keys
    client = boto3.client("kms", region_name=REGION)
    for one in kept:
        made = client.create_key(KeySpec=one["spec"], KeyUsage=one["usage"])["KeyMetadata"]["KeyId"]
        key, secret = keys.pop(made), base64.b64decode(one["secret"])
        key.id, key.arn = one["id"], key.arn.replace(made, one["id"])
        if one["spec"].startswith("ECC"):
            key.private_key.private_key = ec.derive_private_key(int.from_bytes(secret, "big"), key.private_key.private_key.curve)
        else:
            key.key_material = secret
        keys[key.id] = key
        for name in one["aliases"]:
            for other in keys.values():
                other.aliases.pop(name, None)
            client.create_alias(AliasName=name, TargetKeyId=key.id)


def _item(kept: dict[str, Any]) -> dict[str, Any]:
    return {name: {"B": base64.b64decode(value["B"])} if "B" in value else value for name, value in kept.items()}


def main(release: str) -> None:
    """Make the stores of a release. Raises AssertionError where its own books are not whole."""
    for forms, name in (("off", release), ("on", f"{release}-small")):
        os.environ.update(dict.fromkeys(FORMS, forms))
        _make(FOLDER / f"{name}.json.gz")


def _make(path: Path) -> None:
    from chalicelib import wiring
    from chalicelib.settings import Settings
    from chalicelib.usecases.reconciliation.audit import audit
    from chalicelib.wiring import services
    from infra.local.aws import start_aws
    from tests.support.receiver import Receiver, answer
    from tests.support.stack import first_stack

    aws = start_aws(Settings.from_environment())
    try:
        with Receiver([answer(500)]) as receiver:
            stack = first_stack(aws)
            ids = _leave_work(stack, receiver.url())
            assert audit(services().store) == []
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(_dumped(stack, ids, services().clock.now_ms()))
            print(f"{path.name}: {path.stat().st_size} bytes")
    finally:
        wiring.forget()
        aws.stop()


if __name__ == "__main__":
    os.environ.update({"STAGE": "local", "WEBHOOKS_ALLOW_PRIVATE": "true", "SANDBOX_BLOCK_SECONDS": "0"})
    logging.disable(logging.ERROR)
    main(sys.argv[1])
