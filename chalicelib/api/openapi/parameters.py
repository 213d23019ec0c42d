"""Parameters of a request: parts of the path, the query, headers."""

from __future__ import annotations

import re
from typing import Any

from chalicelib.api.context import MAX_PARAM
from chalicelib.api.fields import NETWORK_SCHEMA
from chalicelib.api.idempotency import HEADER, MAX_LENGTH
from chalicelib.api.openapi.schemas import Schema, properties
from chalicelib.api.routes import Route

_PARTS: dict[str, str] = {
    "address": "The address itself, or its id.",
    "coin": "The coin's slug: its symbol in lower case.",
    "token": "The secret part of a claim link: what stands behind `/claim/` in its `claimUrl`.",
    "txId": "The transaction's id, or its hash on the chain.",
}
_IDS: dict[str, str] = {
    "/api-keys/": "The key's id (`key_…`).",
    "/collections/": "The collection's id.",
    "/events/": "The event's id (`evt_…`).",
    "/invoices/": "The invoice's id (`inv_…`).",
    "/link/": "The payment link's id (`plk_…`).",
    "/merchants/": "The merchant's id (`mch_…`).",
    "/networks/": "The id that the rescan's order was answered with (`rsc_…`).",
    "/payment-links/": "The payment link's id (`plk_…`).",
    "/pay/": "The invoice's id (`inv_…`).",
    "/payout-links/": "The payout link's id (`pol_…`).",
    "/refunds/": "The refund's id (`ref_…`).",
    "/sandbox/withdrawals/": "The withdrawal's id (`wd_…`).",
    "/stray-payments/": "The payment's id.",
    "/webhooks/deliveries/": "The delivery's id (`dlv_…`).",
    "/webhooks/redeliveries/": "The job's id (`rdl_…`).",
    "/webhooks/": "The endpoint's id (`wh_…`), or an invoice's `webhookId` (`whi_…`).",
    "/whitelist/": "The entry's id (`wla_…`).",
    "/withdrawals/": "The withdrawal's id (`wd_…`).",
}
"""What an id is the id of, by the beginning of the path; the longer beginning stands first."""
IDEMPOTENCY_KEY: Schema = {
    "name": HEADER,
    "in": "header",
    "description": "The same key with the same request within 24 hours answers the stored answer and does nothing more.",
    "schema": {"type": "string", "minLength": 1, "maxLength": MAX_LENGTH, "pattern": "^[!-~]([ -~]*[!-~])?$"},
}


def of_route(route: Route) -> list[Schema]:
    """All parameters of a route, in the order path, query, headers."""
    found = [_part(name, route.path) for name in re.findall(r"\{(\w+)\}", route.path)]
    if route.query is not None:
        found += _query(route.query)
    if route.creates:
        found.append({"$ref": "#/components/parameters/IdempotencyKey"})
    return found


def _part(name: str, path: str) -> Schema:
    words = _PARTS.get(name) or next((words for prefix, words in _IDS.items() if path.startswith(prefix)), "")
    schema: Schema = {"type": "string", "minLength": 1, "maxLength": MAX_PARAM}
    if name == "network":
        schema = {**NETWORK_SCHEMA, "examples": ["ethereum"]}
        words = schema.pop("description")
    elif name == "coin":
        schema["examples"] = ["eth"]
    return {"name": name, "in": "path", "required": True, "description": words, "schema": schema}


def _query(model: Any) -> list[Schema]:
    fields, required = properties(model)
    return [_parameter(name, dict(schema), name in required) for name, schema in fields.items()]


def _parameter(name: str, schema: Schema, required: bool) -> Schema:
    """A query can not say null: what may be left out has no such kind here."""
    if schema.get("default", ...) is None:
        del schema["default"]
    kinds = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    if len(kinds) == 1:
        del schema["anyOf"]
        schema = {**kinds[0], **schema}
    elif kinds:
        schema["anyOf"] = kinds
    parameter: Schema = {"name": name, "in": "query", "required": required}
    if "description" in schema:
        parameter["description"] = schema.pop("description")
    return {**parameter, "schema": schema}
