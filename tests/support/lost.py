"""A store that is lost: every table emptied, with what AWS itself keeps (keys) and what chains keep left alone."""

from __future__ import annotations

import boto3

from chalicelib import wiring

TABLES = ("tenants", "records", "ledger", "chain", "payouts", "work", "events", "webhooks", "custody")


def lose_the_store() -> None:
    """Delete every item of every table but the simulated chains'."""
    client = boto3.client("dynamodb")
    for name in TABLES:
        table = f"gateway-local-{name}"
        for page in client.get_paginator("scan").paginate(TableName=table, ProjectionExpression="pk, sk"):
            keys = page["Items"]
            for start in range(0, len(keys), 25):
                deletes = [{"DeleteRequest": {"Key": key}} for key in keys[start : start + 25]]
                client.batch_write_item(RequestItems={table: deletes})
    wiring.forget()
