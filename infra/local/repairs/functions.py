"""What moto (5.2) lacks of Lambda's settings of a function and of an account. Only what deploys needs this.

* PutFunctionRecursionConfig and GetFunctionRecursionConfig are not there.
  https://docs.aws.amazon.com/lambda/latest/api/API_PutFunctionRecursionConfig.html
* GetAccountSettings is not there, and any number of functions may be in reserve: Lambda leaves 100 to all others.
  https://docs.aws.amazon.com/lambda/latest/api/API_GetAccountSettings.html
* A function without settings of events that are not waited for has empty ones, where Lambda answers 404.
  https://docs.aws.amazon.com/lambda/latest/api/API_GetFunctionEventInvokeConfig.html
* UpdateFunctionCode leaves the architecture as it is.
  https://docs.aws.amazon.com/lambda/latest/api/API_UpdateFunctionCode.html
"""

from __future__ import annotations

import json
import os
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

from moto.awslambda import urls
from moto.awslambda.exceptions import LambdaClientError
from moto.awslambda.models import LambdaBackend, LambdaFunction
from moto.awslambda.responses import LambdaResponse
from moto.core import responses

CONCURRENCY = "1000"
"""Of an account that has asked for nothing. A new one may have 10."""
_QUOTA = "MOTO_LAMBDA_CONCURRENCY_QUOTA"
_RECURSION = "_gateway_recursion"
_CODE = 75 * 1024**3
_state = SimpleNamespace(installed=False)


class _NotFound(LambdaClientError):
    code = 404


def repair_functions() -> None:
    """Add what is missing. May be called again."""
    os.environ.setdefault(_QUOTA, CONCURRENCY)
    if _state.installed:
        return
    _state.installed = True
    found: Any = LambdaResponse
    found.put_function_recursion_config = found.get_function_recursion_config = _recursion
    found.get_account_settings = _account
    # `speed` has the names of a service's actions looked up once, maybe before these were there.
    getattr(responses.method_names_from_class, "cache_clear", lambda: None)()  # type: ignore[attr-defined]
    function = r"{0}/(?P<api_version>[^/]+)/functions/(?P<function_name>[\w_:%-]+)/recursion-config$"
    urls.url_paths[function] = urls.url_paths[r"{0}/(?P<api_version>[^/]+)/account-settings/?$"] = LambdaResponse.dispatch
    backend: Any = LambdaBackend
    asked, deleted = backend.get_function_event_invoke_config, backend.delete_function_event_invoke_config

    def config(self: Any, function_name: str) -> Any:
        if not (answer := asked(self, function_name)):
            raise _NotFound("ResourceNotFoundException", f"The function {function_name} doesn't have an EventInvokeConfig")
        return answer

    def without(self: Any, function_name: str) -> None:
        config(self, function_name)
        deleted(self, function_name)

    backend.get_function_event_invoke_config, backend.delete_function_event_invoke_config = config, without
    _repair_architecture(LambdaFunction)


def _repair_architecture(model: Any) -> None:
    update = model.update_function_code

    def with_architecture(self: Any, updated_spec: dict[str, Any]) -> dict[str, Any]:
        if wanted := updated_spec.get("Architectures"):
            self.architectures = wanted
        updated: dict[str, Any] = update(self, updated_spec)
        return updated

    model.update_function_code = with_architecture


def may_circle(function: Any) -> bool:
    """Whether one of moto's functions may send to what calls it, without end."""
    return bool(getattr(function, _RECURSION, "Terminate") == "Allow")


def _recursion(self: Any) -> Any:
    function = self.backend.get_function(unquote(self.path.rsplit("/", 2)[-2]))
    if self.method == "PUT":
        setattr(function, _RECURSION, self._get_param("RecursiveLoop"))
    return 200, {}, json.dumps({"RecursiveLoop": getattr(function, _RECURSION, "Terminate")})


def _account(self: Any) -> Any:
    limit = int(os.environ[_QUOTA])
    every = self.backend._lambdas.all()
    kept = sum(int(each.reserved_concurrency or 0) for each in every)
    limits = {"ConcurrentExecutions": limit, "UnreservedConcurrentExecutions": limit - kept, "TotalCodeSize": _CODE}
    usage = {"TotalCodeSize": sum(int(each.code_size) for each in every), "FunctionCount": len(every)}
    return 200, {}, json.dumps({"AccountLimit": limits, "AccountUsage": usage})
