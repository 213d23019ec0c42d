"""What API Gateway answers by itself, before any function of ours runs: in the service's own words and with its own statuses.

An unknown path is "Missing Authentication Token" with 403 there, a large body 413, a timeout 504. Callers shall find the
published statuses and one error shape (the object form: no route, no family). A new deployment of the API resets these, so
this runs after each: `deploy` does it.
https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-gatewayResponse-definition.html
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import boto3

API_STAGE = "api"

_ANSWERS: dict[str, tuple[str, str, str]] = {
    "MISSING_AUTHENTICATION_TOKEN": ("404", "NOT_FOUND", "There is nothing at this path"),
    "RESOURCE_NOT_FOUND": ("404", "NOT_FOUND", "There is nothing at this path"),
    "REQUEST_TOO_LARGE": ("400", "INVALID_PARAMETER", "The request is too large"),
    "UNSUPPORTED_MEDIA_TYPE": ("400", "INVALID_PARAMETER", "The content type must be application/json"),
    "BAD_REQUEST_BODY": ("400", "INVALID_PARAMETER", "The body can not be read"),
    "BAD_REQUEST_PARAMETERS": ("400", "INVALID_PARAMETER", "The parameters can not be read"),
    "THROTTLED": ("429", "RATE_LIMIT_EXCEEDED", "Too many requests at once"),
    "QUOTA_EXCEEDED": ("429", "RATE_LIMIT_EXCEEDED", "Too many requests"),
    "DEFAULT_4XX": ("400", "INVALID_PARAMETER", "The request can not be served"),
    "DEFAULT_5XX": ("500", "INTERNAL_ERROR", "Something went wrong on our side. The request id helps us to find it."),
}
"""Type of the gateway's own answer: status, code and message of ours."""


def answers() -> list[dict[str, Any]]:
    """The arguments of PutGatewayResponse, one per type, without the API's id."""
    return [
        {
            "responseType": kind,
            "statusCode": status,
            "responseParameters": {"gatewayresponse.header.X-Request-Id": "context.requestId"},
            "responseTemplates": {
                "application/json": json.dumps({"error": {"code": code, "message": message, "details": {}}}, separators=(",", ":"))
            },
        }
        for kind, (status, code, message) in _ANSWERS.items()
    ]


def put_answers(api_id: str, session: boto3.Session | None = None) -> None:
    """Set them and publish the API's stage again, which makes them count. Safe to repeat. Raises botocore's ClientError."""
    import boto3

    from infra.deployment.chalice_client import PATIENT

    gateway = (session or boto3).client("apigateway", config=PATIENT)
    for answer in answers():
        gateway.put_gateway_response(restApiId=api_id, **answer)
    gateway.create_deployment(restApiId=api_id, stageName=API_STAGE)
