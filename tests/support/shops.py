"""What a merchant does on a running stack, by HTTP."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

Post = Callable[[str, Any], Any]


def poster(service: Mapping[str, Any], key_name: str = "client_test") -> Post:
    """A POST of the merchant, by a key of the stack; the answer's body."""

    def send(path: str, body: Any) -> Any:
        headers = {"X-Api-Key": service["keys"][key_name], "Content-Type": "application/json"}
        asked = urllib.request.Request(f"{service['base_url']}/v1{path}", json.dumps(body).encode(), headers)  # noqa: S310
        with urllib.request.urlopen(asked) as answer:  # noqa: S310
            return json.loads(answer.read())

    return send
