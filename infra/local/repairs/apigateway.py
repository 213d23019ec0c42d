"""moto's API Gateway, made to take what `chalice deploy` sends it. Only the tests of deploying need this."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from types import SimpleNamespace
from typing import Any

from moto.apigateway.models import APIGatewayBackend, Resource, RestAPI
from moto.apigateway.responses import APIGatewayResponse

_state = SimpleNamespace(installed=False)
_PATH = "_gateway_path"
_SUMMARY = "_gateway_summary"
_ONLY_SWAGGER = ("consumes", "produces", "schemes", "parameters", "responses")


def repair_apigateway() -> None:
    """Make ImportRestApi and PutRestApi take Swagger 2.0, and PutIntegration integrations without a URI. May be called again.

    moto 5.2 takes OpenAPI 3 only, and only with a description; API Gateway takes Swagger 2.0 as well, which is what Chalice
    writes. A mock integration, which answers CORS preflight, has neither URI nor method, but moto wants both.
    https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-import-api.html

    CreateDeployment makes a stage of moto's anew. A stage of AWS's stands, and shows another deployment from then on.
    https://docs.aws.amazon.com/apigateway/latest/developerguide/how-to-deploy-api-with-console.html

    GetDeployment of moto's says nothing of the API as it was when the deployment was made.
    https://docs.aws.amazon.com/apigateway/latest/api/API_GetDeployment.html
    """
    if _state.installed:
        return
    APIGatewayBackend.import_rest_api = _translating(APIGatewayBackend.import_rest_api, 0)  # type: ignore[method-assign]
    APIGatewayBackend.put_rest_api = _translating(APIGatewayBackend.put_rest_api, 1)  # type: ignore[method-assign]
    APIGatewayBackend.put_integration = _with_defaults(APIGatewayBackend.put_integration)  # type: ignore[method-assign]
    _remember_paths()
    _keep_stages()
    _summarise()
    _state.installed = True


def openapi_of(document: dict[str, Any]) -> dict[str, Any]:
    """The OpenAPI 3.0 document that says of paths, methods and integrations what this Swagger 2.0 document says.

    An OpenAPI 3 document is given back as it is, but for a description that moto can not do without.
    """
    info = {"description": "", **document["info"]}
    if "swagger" not in document:
        return {**document, "info": info}
    paths = {
        path: {method: _operation(operation) for method, operation in methods.items()}
        for path, methods in document["paths"].items()
    }
    extensions = {key: value for key, value in document.items() if key.startswith("x-")}
    return {"openapi": "3.0.1", "info": info, "paths": paths, **extensions}


def _operation(swagger: dict[str, Any]) -> dict[str, Any]:
    operation = {key: value for key, value in swagger.items() if key not in _ONLY_SWAGGER}
    parameters = [
        {"name": p["name"], "in": p["in"], "required": p["required"], "schema": {"type": p["type"]}}
        for p in swagger.get("parameters", [])
    ]
    if parameters:
        operation["parameters"] = parameters
    # The models behind `schema` describe nothing (Chalice's `Empty`), and API Gateway checks no response against them.
    operation["responses"] = {code: {"description": r["description"]} for code, r in swagger["responses"].items()}
    return operation


def _translating(method: Callable[..., Any], place: int) -> Callable[..., Any]:
    """`method` with its argument `api_doc`, which is the one at `place`, as OpenAPI 3."""

    @wraps(method)
    def translated(self: APIGatewayBackend, *args: Any, **kwargs: Any) -> Any:
        if "api_doc" in kwargs:
            kwargs["api_doc"] = openapi_of(kwargs["api_doc"])
        else:
            args = (*args[:place], openapi_of(args[place]), *args[place + 1 :])
        return method(self, *args, **kwargs)

    return translated


def _with_defaults(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def integration(self: APIGatewayBackend, *args: Any, **kwargs: Any) -> Any:
        given = ("function_id", "resource_id", "method_type", "integration_type", "uri", "integration_method")[: len(args)]
        defaults = {name: "" for name in ("uri", "integration_method") if name not in given}
        return method(self, *args, **{**defaults, **kwargs})

    return integration


def _remember_paths() -> None:
    """moto asks each resource's parents for their paths whenever it looks for one of them. A resource's own never changes."""
    find = Resource.get_path

    def path(self: Resource) -> str:
        known = vars(self).get(_PATH)
        if known is None:
            known = vars(self)[_PATH] = find(self)
        return str(known)

    Resource.get_path = path  # type: ignore[method-assign]


def _keep_stages() -> None:
    create = RestAPI.create_deployment

    def created(self: RestAPI, name: str, *arguments: Any, **named: Any) -> Any:
        stood = self.stages.get(name)
        deployment = create(self, name, *arguments, **named)
        if stood is not None:
            stood.deployment_id = deployment.id
            self.stages[name] = stood
        return deployment

    RestAPI.create_deployment = created  # type: ignore[method-assign]


def _summarise() -> None:
    create, answer = RestAPI.create_deployment, APIGatewayResponse.get_deployment

    def created(self: RestAPI, *arguments: Any, **named: Any) -> Any:
        deployment = create(self, *arguments, **named)
        vars(deployment)[_SUMMARY] = {
            each.get_path(): {name: _snapshot(method) for name, method in each.resource_methods.items()}
            for each in self.resources.values()
            if each.resource_methods
        }
        return deployment

    def answered(self: APIGatewayResponse) -> str:
        text = answer(self)
        if "apisummary" not in self.querystring.get("embed", []):
            return text
        _, _, api, _, deployment = self.path.split("?")[0].split("/")[:5]
        return json.dumps({**json.loads(text), "apiSummary": vars(self.backend.get_deployment(api, deployment))[_SUMMARY]})

    RestAPI.create_deployment = created  # type: ignore[method-assign]
    APIGatewayResponse.get_deployment = answered  # type: ignore[method-assign]


def _snapshot(method: Any) -> dict[str, Any]:
    return {"authorizationType": method.authorization_type or "NONE", "apiKeyRequired": bool(method.api_key_required)}
