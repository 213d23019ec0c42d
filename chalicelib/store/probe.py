"""`usecases.base.health.Probe` on DynamoDB: one BatchGetItem over the tables that requests read, of an item that is in none of
them.

It costs half a read unit a table, and fails where a table is gone, is not to be read, or its key is not.
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.settings import USER_AGENT
from chalicelib.usecases.ports.failures import Unavailable

TABLES = ("tenants", "records", "ledger", "chain", "events", "webhooks")
"""The tables that the API reads. The table `work` it may only query, and the others it does not read (`infra.policies`)."""
QUICK = Config(
    # Twice: a connection may have been closed at the other end while the function was frozen.
    retries={"mode": "standard", "total_max_attempts": 2},
    connect_timeout=1,
    read_timeout=1,
    user_agent=USER_AGENT,
)
"""Of the client: three seconds at most (two attempts, up to one second between them), where each waits for one thing."""
_KEY = {"pk": {"S": "health"}, "sk": {"S": "-"}}


class DynamoProbe:
    """`client` is a botocore DynamoDB client made with `QUICK`, `tables` are names of tables in full."""

    def __init__(self, client: Any, tables: Sequence[str]) -> None:
        self._client = client
        self._wanted = {table: {"Keys": [_KEY]} for table in tables}

    def ask(self) -> None:
        """Raises Unavailable. A table that is only throttled answers, and is well."""
        try:
            self._client.batch_get_item(RequestItems=self._wanted)
        except (ClientError, BotoCoreError) as error:
            raise Unavailable("the store did not answer") from error
