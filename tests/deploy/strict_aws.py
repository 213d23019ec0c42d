"""moto, made to refuse what AWS refuses of a deploy, and time that passes at once. For the tests of deploying alone.

* Lambda takes one mapping of a queue and a function (409), and packages of 50 MB.
  https://github.com/aws/chalice/issues/2146
  https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
* Lambda is busy for a while with what was made or changed, and knows no role that was made a moment ago (busy_lambda.py).
* API Gateway imports a regional API each three seconds, replaces one each second, publishes one each five, and changes what it
  knows of the account each twenty (429).
  https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html
* API Gateway takes no access log before the account has a role for logs, and no role that was made a moment ago.
  https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-logging.html
* CloudFormation takes a template of 51,200 bytes in a request, and 1 MB by S3.
  https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
"""

from __future__ import annotations

import base64
import sys
import time
from collections.abc import Callable
from types import FunctionType
from typing import Any

from moto.apigateway.exceptions import ApiGatewayException, BadRequestException
from moto.apigateway.models import APIGatewayBackend
from moto.awslambda.exceptions import LambdaClientError
from moto.awslambda.models import LambdaBackend
from moto.cloudformation.exceptions import ValidationError
from moto.cloudformation.responses import CloudFormationResponse

from tests.deploy import made_alarms
from tests.deploy.busy_lambda import make_busy

PACKAGE = 50 * 1024 * 1024
_SECONDS = {"import_rest_api": 3.0, "put_rest_api": 1.0, "create_deployment": 5.0, "update_account": 20.0}


class _TooMany(ApiGatewayException):
    code = 429

    def __init__(self) -> None:
        super().__init__("TooManyRequestsException", "Too Many Requests")


class _TooLarge(LambdaClientError):
    code = 413

    def __init__(self) -> None:
        super().__init__("RequestEntityTooLargeException", "Request must be smaller than 70167211 bytes for this operation")


class _Conflict(LambdaClientError):
    code = 409


class Clock:
    """Seconds that pass while somebody sleeps, and a hundredth at each look."""

    def __init__(self) -> None:
        self.now = 0.0
        self.throttled = 0

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def look(self) -> float:
        self.now += 0.01
        return self.now


def be_strict() -> Clock:
    """Apply all of it to this process, for good; the clock."""
    clock, sleep = Clock(), time.sleep
    time.sleep = clock.sleep
    _wait_by(clock, sleep)
    for name, seconds in _SECONDS.items():
        setattr(APIGatewayBackend, name, _throttled(getattr(APIGatewayBackend, name), seconds, clock))
    make_busy(lambda: clock.now)
    _logs_by_a_role()
    _one_mapping()
    _small_packages()
    _small_templates()
    made_alarms.make_them()
    return clock


def _wait_by(clock: Clock, sleep: Callable[[float], None]) -> None:
    """Also where ours wait by an argument whose default was bound when their module was loaded: each cut would take ten seconds."""
    for module in [found for name, found in sys.modules.items() if name.startswith("infra.")]:
        for each in vars(module).values():
            function: Any = each.__init__ if isinstance(each, type) else each
            if isinstance(function, FunctionType) and sleep in (function.__defaults__ or ()):
                function.__defaults__ = tuple(clock.sleep if value is sleep else value for value in function.__defaults__ or ())


def _throttled(method: Callable[..., Any], seconds: float, clock: Clock) -> Callable[..., Any]:
    last = [-seconds]

    def throttled(*arguments: Any, **named: Any) -> Any:
        now = clock.look()
        if now - last[0] < seconds:
            clock.throttled += 1
            raise _TooMany()
        last[0] = now
        return method(*arguments, **named)

    return throttled


def _logs_by_a_role() -> None:
    stage, account, seen = APIGatewayBackend.update_stage, APIGatewayBackend.update_account, set[str]()

    def updated_stage(self: APIGatewayBackend, function_id: str, stage_name: str, patch_operations: Any) -> Any:
        logs = [each for each in patch_operations if each["op"] == "replace" and each["path"].startswith("/accessLogSettings")]
        if logs and not self.account.cloudwatch_role_arn:
            raise BadRequestException("CloudWatch Logs role ARN must be set in account settings to enable logging")
        return stage(self, function_id, stage_name, patch_operations)

    def updated_account(self: APIGatewayBackend, patch_operations: Any) -> Any:
        (arn,) = (str(each["value"]) for each in patch_operations)
        if arn not in seen:
            seen.add(arn)
            raise BadRequestException(
                "The role ARN does not have required permissions configured. Please grant trust permission for API Gateway and add"
                " the required role policy."
            )
        return account(self, patch_operations)

    APIGatewayBackend.update_stage = updated_stage  # type: ignore[method-assign]
    APIGatewayBackend.update_account = updated_account  # type: ignore[method-assign]


def _one_mapping() -> None:
    create = LambdaBackend.create_event_source_mapping

    def created(self: LambdaBackend, spec: dict[str, Any]) -> Any:
        for each in self.list_event_source_mappings(spec["EventSourceArn"], ""):
            if each.function_arn.split(":")[6] == spec["FunctionName"].split(":")[-1]:
                said = f'An event source mapping with SQS arn (" {spec["EventSourceArn"]} ") and function already exists.'
                raise _Conflict(
                    "ResourceConflictException", f"{said} Please update or delete the existing mapping with UUID {each.uuid}"
                )
        return create(self, spec)

    LambdaBackend.create_event_source_mapping = created  # type: ignore[method-assign]


def _small_packages() -> None:
    create, update = LambdaBackend.create_function, LambdaBackend.update_function_code

    def created(self: LambdaBackend, spec: dict[str, Any]) -> Any:
        _weigh(spec["Code"]["ZipFile"])
        return create(self, spec)

    def updated(self: LambdaBackend, function_name: str, qualifier: str, body: dict[str, Any]) -> Any:
        if "ZipFile" in body:  # else it comes by S3, as a rollback's does
            _weigh(body["ZipFile"])
        return update(self, function_name, qualifier, body)

    LambdaBackend.create_function = created  # type: ignore[method-assign]
    LambdaBackend.update_function_code = updated  # type: ignore[method-assign]


def _weigh(encoded: str | bytes) -> None:
    if len(base64.b64decode(encoded)) > PACKAGE:
        raise _TooLarge()


def _small_templates() -> None:
    for name in ("create_stack", "update_stack"):
        method = getattr(CloudFormationResponse, name)

        def small(self: CloudFormationResponse, method: Callable[..., Any] = method) -> Any:
            if len(self._get_param("TemplateBody") or "") > 51_200:
                raise ValidationError(message="1 validation error detected: Value at 'templateBody' failed to satisfy constraint")
            return method(self)

        setattr(CloudFormationResponse, name, small)
