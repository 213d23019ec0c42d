"""Requests to a running stack beside what a browser does: as a merchant's or the operator's program sends them."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

Post = Callable[[str, Any], Any]


def ask(service: Mapping[str, Any], method: str, path: str, body: Any = None, key: str = "client_test") -> Any:
    """The answer's JSON. `path` lies below /v1; `key` is the name of a key of the stack, or a key itself.

    Raises urllib.error.HTTPError for a refusal.
    """
    headers = {"X-Api-Key": service["keys"].get(key, key), "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(f"{service['base_url']}/v1{path}", data, headers, method=method)  # noqa: S310
    with urllib.request.urlopen(asked, timeout=30) as answer:  # noqa: S310
        return json.loads(answer.read())


def ask_for_any(service: Mapping[str, Any], method: str, path: str, body: Any = None, key: str = "client_test") -> Any:
    """The same, with the JSON of a refusal as well."""
    try:
        return ask(service, method, path, body, key)
    except urllib.error.HTTPError as refusal:
        return json.loads(refusal.read())


def poster(service: Mapping[str, Any], key: str = "client_test") -> Post:
    """A POST by that key; the answer's body."""
    return lambda path, body: ask(service, "POST", path, body, key)
