"""AWS behind one address of this machine: an HTTP request to any service, answered by moto with our repairs.

The real commands and the deployed functions come here by AWS_ENDPOINT_URL. Which service a request is for, its signature's scope
says; of whom it is, the access key, which is the function's name for a function.
https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import json
import re
import threading

from botocore.awsrequest import AWSPreparedRequest
from botocore.compat import HTTPHeaders
from moto.core.botocore_stubber import BotocoreStubber

from infra.local import recursion
from infra.local.gateway import Reply, Request
from infra.rehearse.deployed import function_of
from infra.rehearse.identity import Identity, Refused

LOCK = threading.RLock()
"""Held while moto works."""
_SCOPE = re.compile(r"Credential=(?P<key>[^/]+)/[0-9]+/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request")
_LINEAGE = re.compile(r"Lineage=[^;]*:(?P<count>[0-9]+)")


class Endpoint:
    """Answers requests to AWS."""

    def __init__(self) -> None:
        self.identity = Identity()
        self._moto = BotocoreStubber()

    def answer(self, request: Request) -> Reply:
        """What AWS says. A request that is not signed, or that its function's role does not allow, is refused."""
        sent = {name.lower(): value for name, value in request.headers}
        scope = _SCOPE.search(sent.get("authorization", ""))
        if scope is None:
            return _refusal("MissingAuthenticationTokenException", "Missing Authentication Token")
        if (function := function_of(scope["key"])) is not None:
            try:
                with LOCK:
                    self.identity.demand(function.name, function.role, scope["service"], request)
            except Refused as refused:
                return _refusal("AccessDeniedException", str(refused))
        headers = HTTPHeaders()
        for name, value in request.headers:
            headers[name] = value
        url = f"https://{scope['service']}.{scope['region']}.amazonaws.com{request.target}"
        prepared = AWSPreparedRequest(request.method, url, headers, request.body, stream_output=False)
        # The SDK hands a function's trace on with each message: by that Lambda counts rounds (`infra/local/recursion.py`).
        lineage = _LINEAGE.search(sent.get("x-amzn-trace-id", ""))
        with recursion.continuing(int(lineage["count"]) if lineage else 0):
            status, answered, body = self._moto.process_request(prepared) or (404, {}, b"")
        whole = body if isinstance(body, bytes) else str(body).encode()
        return Reply(int(status), [(str(n), str(v)) for n, v in answered.items() if n.lower() not in _OWN], whole)


def _refusal(code: str, message: str) -> Reply:
    """https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html"""
    content = json.dumps({"__type": code, "message": message}).encode()
    return Reply(400, [("Content-Type", "application/x-amz-json-1.0"), ("x-amzn-errortype", code)], content)


_OWN = ("content-length", "date", "server", "connection", "transfer-encoding")
"""What the HTTP server says itself."""
