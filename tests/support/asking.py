"""Requests of the stack's merchant, beside what a browser does."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping
from typing import Any


def ask(service: Mapping[str, Any], method: str, path: str, body: Any = None, key: str = "client_test") -> Any:
    """The answer's JSON, by a key of the stack. Raises urllib.error.HTTPError for a refusal."""
    headers = {"X-Api-Key": service["keys"][key], "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(f"{service['base_url']}{path}", data, headers, method=method)  # noqa: S310
    with urllib.request.urlopen(asked) as answer:  # noqa: S310
        return json.loads(answer.read())
