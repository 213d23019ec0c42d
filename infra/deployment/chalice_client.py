"""Chalice's client of AWS, patient where AWS says "too many requests" or "not yet"; and where Chalice tells what it does.

API Gateway imports one API each three seconds, and publishes one each five: repeating after a second does not help. Importing is
never repeated where the answer was lost, since each import makes an API with a URL of its own: the next deploy finds what was made.
A function that a deploy made or changed a moment ago takes no change until it is ready.
https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html
https://docs.aws.amazon.com/lambda/latest/dg/functions-states.html
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from botocore.config import Config
from chalice.awsclient import LambdaClientError, TypedAWSClient
from chalice.utils import UI

from infra.deployment.lock import Lock
from infra.deployment.patience import coded, patiently

PATIENT = Config(retries={"mode": "standard", "total_max_attempts": 11})
"""Repeats after waits of up to 20 seconds each. https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html"""
TRIES = 24
"""Two minutes, with Chalice's pause of five seconds."""
_IS_BUSY = coded("ResourceConflictException")


class Told(UI):
    """What Chalice says goes here, before each thing that it makes, changes or deletes: it has to have the lock still."""

    def __init__(self, lock: Lock, tell: Callable[[str], None]) -> None:
        super().__init__()
        self._lock, self._tell = lock, tell

    def write(self, message: str) -> None:
        """Raises CanNot where the lock is lost."""
        self._lock.demand()
        self._tell(message.rstrip())


class Client(TypedAWSClient):
    """Chalice's client, which its deployer makes of a session of botocore."""

    def __init__(self, session: Any, *arguments: Any, **named: Any) -> None:
        before = session.get_default_client_config()
        session.set_default_client_config(PATIENT if before is None else before.merge(PATIENT))
        super().__init__(session, *arguments, **named)

    def import_rest_api(self, swagger_document: dict[str, Any], endpoint_type: str) -> str:
        """Make the API; its id. Raises botocore's ClientError, or a failure of the connection at once."""
        client: Any = self._session.create_client("apigateway", config=Config(retries={"total_max_attempts": 1}))
        body, kind = json.dumps(swagger_document, indent=2), {"endpointConfigurationTypes": endpoint_type}
        made = patiently(
            lambda: client.import_rest_api(body=body, parameters=kind), coded("TooManyRequestsException"), self._pause, TRIES
        )
        return str(made["id"])

    def delete_function_concurrency(self, function_name: str) -> None:
        """Leave it: Chalice would start functions that an operator has stopped, and take the reserve of those that pay.

        `function_settings` sets it behind Chalice.
        """

    def _update_function_code(self, *arguments: Any, **named: Any) -> Any:
        return patiently(lambda: super(Client, self)._update_function_code(*arguments, **named), _is_busy, self._pause, TRIES)

    def _do_update_function_config(self, *arguments: Any, **named: Any) -> None:
        """Chalice waits behind code and configuration. It is refused where the answer was lost, and botocore sent it twice."""
        patiently(lambda: super(Client, self)._do_update_function_config(*arguments, **named), _is_busy, self._pause, TRIES)

    def _pause(self) -> None:
        self._sleep(self.DELAY_TIME)


def _is_busy(error: Exception) -> bool:
    return _IS_BUSY(error.original_error if isinstance(error, LambdaClientError) else error)
