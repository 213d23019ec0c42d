"""Schemathesis over the generated document: every endpoint, with data that fits the document and with data that does not.

All of its checks that look at one request at a time, on the whole service in this process. Two are replaced by checks of ours,
which say why: `positive_data_is_taken`, `other_methods_are_not_found`. What is left to tests of our own: use after deletion and
being there after creation, which need a chain of requests.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case
from schemathesis.checks import load_all_checks
from schemathesis.core.failures import Failure
from schemathesis.core.transport import Response
from schemathesis.generation.meta import CoverageScenario
from schemathesis.specs.openapi.checks import positive_data_acceptance, unsupported_method

from chalicelib import wiring
from chalicelib.api.openapi import document
from chalicelib.domain.ids import MerchantId
from infra.bootstrap import make_key
from infra.local.gateway import Gateway, Request
from tests.support.stack import Stack

pytestmark = pytest.mark.slow

ANY_KEY = "sk_test_0000anyofthepool"
"""Stands for one of many keys: a test key has 100 requests a minute."""
_REQUESTS_PER_KEY = 40

_A_SCHEMA_SAYS_IT = re.compile(
    r"must be (a string|true or false|an object|a list)"
    r"|must be (at least|at most|one of:? ?)[0-9.]+"
    r"|must have at (least|most) [0-9]+ (characters|entries)"
    r"|is not known.*"
)
"""Constraints that schemas can express, in the words of `chalicelib.api.models`. Data that fits the document never meets them."""


class Pool:
    """The service as a WSGI application, with a fresh key for every few requests that are sent with `ANY_KEY`."""

    def __init__(self) -> None:
        from app import app

        self._gateway = Gateway(app)
        self._merchant, self._key, self._left = "", "", 0

    def start(self, merchant: str) -> None:
        """Keys are those of `merchant` from now on, and admin keys: they may do everything that test keys can."""
        self._merchant, self._left = merchant, 0

    def _current(self) -> str:
        if self._left == 0:
            self._key = make_key(wiring.services(), MerchantId(self._merchant), "test", "admin", ("full",), "one of the pool")
            self._left = _REQUESTS_PER_KEY
        self._left -= 1
        return self._key

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        headers = [
            (name[5:].replace("_", "-").title(), value)
            for name, value in environ.items()
            if name.startswith("HTTP_") and name != "HTTP_HOST"
        ]
        headers = [(name, self._current() if value == ANY_KEY else value) for name, value in headers]
        if environ.get("CONTENT_TYPE"):
            headers.append(("Content-Type", environ["CONTENT_TYPE"]))
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        target = environ["REQUEST_URI"].partition("?")[0] + (f"?{environ['QUERY_STRING']}" if environ["QUERY_STRING"] else "")
        reply = self._gateway.handle(Request(environ["REQUEST_METHOD"], target, headers, body, "127.0.0.1"))
        start_response(f"{reply.status} {HTTPStatus(reply.status).phrase}", reply.headers)
        return [reply.body]


def with_one_way_to_say_who() -> dict[str, Any]:
    """The document, with the header X-Api-Key alone. A key that is right counts whatever else is in Authorization, unless that is
    another key; schemathesis would have every nonsense there refused. `test_edge_auth` has the cases of both headers."""
    made = document.document()
    for several in made["paths"].values():
        for operation in several.values():
            operation["security"] = [way for way in operation["security"] if "bearer" not in way]
    return made


POOL = Pool()
schema = schemathesis.openapi.from_dict(with_one_way_to_say_who())
schema.app = POOL
load_all_checks()


def positive_data_is_taken(ctx: Any, response: Response, case: Case) -> None:
    """In place of positive_data_acceptance, which takes every 400 for a refusal of the data.

    Here business rules are 400 too (decisions §6: VALIDATION_ERROR and the codes of payouts), and so is what no schema says:
    coins that are not on a network, fields that depend on each other, addresses and numbers in their spelling. A refusal for
    what schemas do say means that document and code differ.
    """
    if case.meta is None or not case.meta.generation.mode.is_positive or response.status_code != 400:
        return
    body = json.loads(response.content)
    error = body["error"] if isinstance(body["error"], dict) else body
    if error["code"] != "INVALID_PARAMETER":
        return
    details = error["details"]
    if isinstance(details, list):
        said = [text for problem in details for text in problem["constraints"]]
    else:
        said = [text.partition(": ")[2] for text in (details or "").split("; ")]
    unexpected = [text for text in said if _A_SCHEMA_SAYS_IT.fullmatch(text)]
    if unexpected:
        raise Failure(operation=case.operation.label, title="Refused what the document allows", message="; ".join(unexpected))


def other_methods_are_not_found(ctx: Any, response: Response, case: Case) -> None:
    """In place of unsupported_method, which wants 405: that is none of the published statuses, so it is 404 here."""
    data = None if case.meta is None else case.meta.phase.data
    if getattr(data, "scenario", None) != CoverageScenario.UNSPECIFIED_HTTP_METHOD or response.request.method == "OPTIONS":
        return
    if response.status_code != 404 or b"NOT_FOUND" not in response.content:
        raise Failure(
            operation=case.operation.label, title="A method that is not there", message=f"{response.status_code}, not 404"
        )


@pytest.fixture
def service(stack: Stack) -> Stack:
    POOL.start(stack.call("GET", "/v1/merchant", stack.keys["admin_test"]).json["data"]["id"])
    return stack


@schema.parametrize()
@settings(
    max_examples=3,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
def test_every_endpoint(case: Case, service: Stack) -> None:
    case.call_and_validate(
        headers={"X-Api-Key": ANY_KEY},
        excluded_checks=[positive_data_acceptance, unsupported_method],
        additional_checks=[positive_data_is_taken, other_methods_are_not_found],
    )
