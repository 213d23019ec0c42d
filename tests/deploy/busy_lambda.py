"""moto's Lambda, made as slow as AWS's: what was just made or changed takes no change for seconds, and no new role is known yet.

* A function is Pending once it is made, and its last update InProgress: another change is refused (409).
  https://docs.aws.amazon.com/lambda/latest/dg/functions-states.html
  https://docs.aws.amazon.com/lambda/latest/api/API_UpdateFunctionConfiguration.html (ResourceConflictException)
* A mapping is Creating, Updating, Enabling or Disabling, and neither changed nor deleted meanwhile (400).
  https://docs.aws.amazon.com/lambda/latest/api/API_UpdateEventSourceMapping.html (ResourceInUseException)
* IAM's changes are not known everywhere at once: the first function with a role is refused.
  https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html#troubleshoot_general_eventual-consistency
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.awslambda.exceptions import InvalidParameterValueException, LambdaClientError
from moto.awslambda.models import EventSourceMapping, LambdaBackend, LambdaFunction

SECONDS = 3.0
"""How long a function or a mapping is busy."""
_UNTIL = "_gateway_busy_until"
_SWITCHED: dict[bool | None, str] = {True: "Enabling", False: "Disabling"}

Put = Callable[[Any, str, Any], None]


class _Conflict(LambdaClientError):
    code = 409


def make_busy(now: Callable[[], float], put: Put = setattr) -> None:
    """Apply it: `now` tells the seconds, `put` sets an attribute, for good or for a test."""
    _busy_functions(now, put)
    _busy_mappings(now, put)
    _roles_come_late(put)


def _busy_functions(now: Callable[[], float], put: Put) -> None:
    told, create = LambdaFunction.get_configuration, LambdaBackend.create_function

    def configuration(self: LambdaFunction, on_create: bool = False) -> dict[str, Any]:
        found: dict[str, Any] = told(self, on_create)
        until, state = vars(self).get(_UNTIL, (0.0, ""))
        if now() < until:
            found |= {"State": "Pending"} if state == "Pending" else {"LastUpdateStatus": "InProgress"}
        return found

    def created(self: LambdaBackend, spec: dict[str, Any]) -> LambdaFunction:
        function = create(self, spec)
        vars(function)[_UNTIL] = now() + SECONDS, "Pending"
        return function

    def changing(method: Callable[..., Any]) -> Callable[..., Any]:
        def changed(self: LambdaBackend, function_name: str, qualifier: str, body: dict[str, Any]) -> Any:
            function = self.get_function(function_name, qualifier)
            if now() < vars(function).get(_UNTIL, (0.0, ""))[0]:
                said = "The operation cannot be performed at this time. An update is in progress for resource"
                raise _Conflict("ResourceConflictException", f"{said}: {function.function_arn}")
            answer = method(self, function_name, qualifier, body)
            vars(function)[_UNTIL] = now() + SECONDS, "InProgress"
            return {**answer, "LastUpdateStatus": "InProgress"}

        return changed

    put(LambdaFunction, "get_configuration", configuration)
    put(LambdaBackend, "create_function", created)
    for name in ("update_function_code", "update_function_configuration"):
        put(LambdaBackend, name, changing(getattr(LambdaBackend, name)))


def _busy_mappings(now: Callable[[], float], put: Put) -> None:
    told, create = EventSourceMapping.get_configuration, LambdaBackend.create_event_source_mapping
    update, delete = LambdaBackend.update_event_source_mapping, LambdaBackend.delete_event_source_mapping

    def configuration(self: EventSourceMapping) -> dict[str, Any]:
        found, (until, state) = told(self), vars(self).get(_UNTIL, (0.0, ""))
        return {**found, "State": state} if now() < until else found

    def created(self: LambdaBackend, spec: dict[str, Any]) -> EventSourceMapping:
        mapping = create(self, spec)
        vars(mapping)[_UNTIL] = now() + SECONDS, "Creating"
        return mapping

    def demand_ready(self: LambdaBackend, uuid: str, what: str) -> None:
        mapping = self.get_event_source_mapping(uuid)
        if mapping is not None and now() < vars(mapping).get(_UNTIL, (0.0, ""))[0]:
            raise LambdaClientError(
                "ResourceInUseException", f"Cannot {what} the event source mapping because it is in use. Please retry again."
            )

    def updated(self: LambdaBackend, uuid: str, spec: dict[str, Any]) -> EventSourceMapping | None:
        demand_ready(self, uuid, "update")
        if (mapping := update(self, uuid, spec)) is not None:
            vars(mapping)[_UNTIL] = now() + SECONDS, _SWITCHED.get(spec.get("Enabled"), "Updating")
        return mapping

    def deleted(self: LambdaBackend, uuid: str) -> EventSourceMapping | None:
        demand_ready(self, uuid, "delete")
        return delete(self, uuid)

    put(EventSourceMapping, "get_configuration", configuration)
    put(LambdaBackend, "create_event_source_mapping", created)
    put(LambdaBackend, "update_event_source_mapping", updated)
    put(LambdaBackend, "delete_event_source_mapping", deleted)


def _roles_come_late(put: Put) -> None:
    create, seen = LambdaBackend.create_function, set[str]()

    def created(self: LambdaBackend, spec: dict[str, Any]) -> LambdaFunction:
        if spec["Role"] not in seen:
            seen.add(spec["Role"])
            raise InvalidParameterValueException("The role defined for the function cannot be assumed by Lambda.")
        return create(self, spec)

    put(LambdaBackend, "create_function", created)
