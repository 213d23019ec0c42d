"""Chalice's record of a deployment with an API, a schedule and a consumer."""

from __future__ import annotations

URL = "https://{}.execute-api.eu-central-1.amazonaws.com/api/"


def arn(name: str) -> str:
    return f"arn:aws:lambda:eu-central-1:1:function:{name}"


WHOLE = [
    {
        "name": "api_handler_role",
        "resource_type": "iam_role",
        "role_arn": "arn:aws:iam::1:role/gateway-prod-api_handler",
        "role_name": "gateway-prod-api_handler",
    },
    {"name": "api_handler", "resource_type": "lambda_function", "lambda_arn": arn("gateway-prod")},
    {
        "name": "relay_role",
        "resource_type": "iam_role",
        "role_arn": "arn:aws:iam::1:role/gateway-prod-relay",
        "role_name": "gateway-prod-relay",
    },
    {"name": "relay", "resource_type": "lambda_function", "lambda_arn": arn("gateway-prod-relay")},
    {"name": "poll_tron-event", "resource_type": "cloudwatch_event", "rule_name": "gateway-prod-poll_tron-event"},
    {
        "name": "relay-sqs-event-source",
        "resource_type": "sqs_event",
        "queue_arn": "arn:aws:sqs:eu-central-1:1:gateway-prod-relay",
        "event_uuid": "m1",
        "queue": "gateway-prod-relay",
        "lambda_arn": arn("gateway-prod-relay"),
    },
    {"name": "rest_api", "resource_type": "rest_api", "rest_api_id": "abc", "rest_api_url": URL.format("abc")},
]
