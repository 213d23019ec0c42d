"""`usecases.ports.counters.Counters` on DynamoDB: an UpdateItem each, which many can send at once.

Two transactions on one item clash (TransactionConflict); plain updates of it are done one after the other.
docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError
from pynamodb.exceptions import PynamoDBException, UpdateError

from chalicelib.store.models import Models
from chalicelib.store.schema import key_of
from chalicelib.usecases.ports.failures import Unavailable


class DynamoCounters:
    def __init__(self, models: Models) -> None:
        self._models = models

    def up(self, kind: type[Any], key: Mapping[str, str], name: str, most: int, **sets: int) -> bool:
        """Add one, unless the number is `most` already. Raises Unavailable."""
        model: Any = self._models.of(kind)
        number = getattr(model, f"f_{name}")
        named = [getattr(model, f"f_{field}").set(value) for field, value in (*key.items(), *sets.items())]
        try:
            model(*key_of(kind, dict(key))).update(
                actions=[number.add(1), *named], condition=number.does_not_exist() | (number < most)
            )
        except UpdateError as error:
            if error.cause_response_code == "ConditionalCheckFailedException":
                return False
            raise Unavailable("the store did not answer") from error
        except (PynamoDBException, BotoCoreError) as error:
            raise Unavailable("the store did not answer") from error
        return True

    def down(self, kind: type[Any], key: Mapping[str, str], name: str) -> None:
        """Take one back. Raises Unavailable."""
        model: Any = self._models.of(kind)
        number = getattr(model, f"f_{name}")
        try:
            model(*key_of(kind, dict(key))).update(actions=[number.add(-1)])
        except (PynamoDBException, BotoCoreError) as error:
            raise Unavailable("the store did not answer") from error
