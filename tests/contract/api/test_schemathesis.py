"""Schemathesis over the generated document: every endpoint, with data that fits the document and with data that does not.

All of its checks that look at one request at a time, on the whole service in this process. Two are replaced by checks of ours,
which say why: `positive_data_is_taken`, `other_methods_are_not_found`.

Its systematic cases (every boundary of every field, every form of a field that is none) are hundreds for an endpoint, as each list
has a hundred filters. Most of them are twins: so these cases get a document in which of fields that look alike one is left, and
random data gets the whole document. `use_after_free` and `ensure_resource_availability` need a chain of requests; its own chains
take it for a mistake that what was cancelled, revoked or archived can still be read, which is decided (decisions §4, §5, §8), so
`test_what_was_made_is_there_and_what_was_deleted_is_gone` asks the same of every resource that can be made.
"""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Callable, Iterable
from functools import cache, lru_cache, wraps
from http import HTTPStatus
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case
from schemathesis.checks import load_all_checks
from schemathesis.config import SchemathesisConfig
from schemathesis.core.failures import Failure
from schemathesis.core.transport import Response
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.generation.meta import CoverageScenario
from schemathesis.pytest._test_builder import build_operation_test
from schemathesis.python._constants.orchestrator import make_constants_value_source
from schemathesis.specs.openapi.checks import positive_data_acceptance, unsupported_method

from chalicelib import wiring
from chalicelib.api.openapi import document
from chalicelib.api.routes import ROUTES
from chalicelib.domain.ids import MerchantId
from infra.bootstrap import make_key
from infra.local.gateway import Gateway, Request
from tests.support.shop import Shop
from tests.support.stack import Response as Answer
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
"""Constraints that schemas can express, in the words of `chalicelib.api`. Data that fits the document never meets them."""


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
        # Its client unpacks nothing.
        headers = [(name, value) for name, value in headers if name.lower() != "accept-encoding"]
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


def looks(field: dict[str, Any]) -> str:
    """What two fields have in common that ask the same of the code behind them: all but words, and which values a choice has."""
    choice = "enum" in field or "pattern" in field
    words = ("description", "default", *(("examples",) if choice else ()))  # examples tell a time from an amount
    kept = {name: value for name, value in field.items() if name not in words}
    return json.dumps(kept | {name: name for name in ("enum", "pattern") if name in kept}, sort_keys=True)


def once_of_each(made: dict[str, Any]) -> dict[str, Any]:
    """The document without twins: query parameters of the same operator, and fields that may be left out of a body, where one
    before looks the same. They come from the same functions (`api.lists.query`, `api.problems`)."""
    seen: set[tuple[str, str]] = set()
    for several in made["paths"].values():
        for operation in several.values():
            left = []
            for parameter in operation.get("parameters", ()):
                operator = re.sub(r"^[^\[]*", "", parameter.get("name", ""))
                form = (operator, looks(parameter.get("schema", {})))
                if parameter.get("in") != "query" or parameter["required"] or form not in seen:
                    left.append(parameter)
                    seen.add(form)
            operation["parameters"] = left
    bodies = {name.rsplit("/", 1)[1] for name in re.findall(r'"requestBody".*?"\$ref": "([^"]+)"', json.dumps(made["paths"]))}
    forms: set[str] = set()
    for body in (made["components"]["schemas"][name] for name in sorted(bodies)):
        needed = {*body.get("required", ()), *(body["properties"] if {"anyOf", "oneOf"} & body.keys() else ())}
        for name, field in list(body["properties"].items()):
            if name not in needed and looks(field) in forms and len(body["properties"]) > body.get("minProperties", 0):
                del body["properties"][name]
            forms.add(looks(field))
    return made


def every_twentieth(document: dict[str, Any]) -> dict[str, Any]:
    """A check has time for the fields of every 20th path; `make sweep` asks all of them."""
    if os.environ.get("SWEEP") != "full":
        document["paths"] = {path: document["paths"][path] for path in sorted(document["paths"])[::20]}
    return document


POOL = Pool()
EXAMPLES = 3 if os.environ.get("SWEEP") == "full" else 1
"""A check tries each endpoint once at random: what is wrong with single fields is asked systematically."""
WHOLE = with_one_way_to_say_who()
SYSTEMATIC = once_of_each(every_twentieth(copy.deepcopy(WHOLE)))


@cache
def at_random() -> Any:
    made = schemathesis.openapi.from_dict(WHOLE, config=SchemathesisConfig())
    made.config.phases.coverage.enabled = False
    made.app = POOL
    return made


@cache
def systematic() -> Any:
    made = schemathesis.openapi.from_dict(SYSTEMATIC, config=SchemathesisConfig())
    # PATCH stands for every method that no endpoint has.
    made.config.phases.coverage.unexpected_methods = {"get", "put", "post", "delete", "patch"}
    made.config.phases.fuzzing.enabled = made.config.phases.examples.enabled = False
    made.app = POOL
    return made


def names(document: dict[str, Any]) -> list[str]:
    """The endpoints of a document, as schemathesis names them."""
    return [f"{method.upper()} {path}" for path, several in document["paths"].items() for method in several]


def try_out(schema: Any, name: str, check: Callable[[Case], None]) -> None:
    """Call `check` with the cases of one endpoint. Schemathesis itself makes all cases when tests are collected, ten seconds in
    each process; here the test that wants them makes them."""
    load_all_checks()
    (operation,) = (found.ok() for found in schema.get_all_operations() if found.ok().label == name)
    constants = FeedbackSources(constants_value_source=make_constants_value_source(schema))
    tried = list[Case]()

    @wraps(check)
    def counted(case: Case) -> None:
        tried.append(case)
        check(case)

    build_operation_test(config=schema.config, operation=operation, test_func=counted, given_kwargs={}, feedback=constants)()
    assert tried, "nothing was asked"


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
    page = (response.request.method, case.operation.path) in pages()
    if response.status_code != 404 or (b"NOT_FOUND" not in response.content and not page):
        raise Failure(
            operation=case.operation.label, title="A method that is not there", message=f"{response.status_code}, not 404"
        )


@cache
def pages() -> frozenset[tuple[str, str]]:
    """What browsers ask for, which the document leaves out: an unknown one is a page as well."""
    return frozenset((route.method, route.address) for route in ROUTES if route.media == "text/html")


@lru_cache(maxsize=1)
def merchant_of(key: str, stack: Stack) -> str:
    """Asked once: each test begins with the same data."""
    return str(stack.call("GET", "/v1/merchant", key).json["data"]["id"])


@pytest.fixture
def service(stack: Stack) -> Stack:
    POOL.start(merchant_of(stack.keys["admin_test"], stack))
    return stack


def some_at_random() -> list[Any]:
    """A check asks every third endpoint, `make sweep` all: what makes the requests, and what reads them, is the same for all, and
    every endpoint has its own tests."""
    return [name if n % 3 == 0 else pytest.param(name, marks=pytest.mark.sweep) for n, name in enumerate(names(WHOLE))]


@pytest.mark.parametrize("name", some_at_random())
def test_every_endpoint_at_random(name: str, service: Stack) -> None:
    @settings(max_examples=EXAMPLES, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck),
              phases=[Phase.explicit, Phase.generate])  # fmt: skip
    def check(case: Case) -> None:
        asked(case)

    try_out(at_random(), name, check)


@pytest.mark.parametrize("name", names(SYSTEMATIC))
def test_every_endpoint_field_by_field(name: str, service: Stack) -> None:
    @settings(derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.explicit])
    def check(case: Case) -> None:
        asked(case)

    try_out(systematic(), name, check)


def asked(case: Case) -> None:
    case.call_and_validate(
        headers={"X-Api-Key": ANY_KEY},
        excluded_checks=[positive_data_acceptance, unsupported_method],
        additional_checks=[positive_data_is_taken, other_methods_are_not_found],
    )


STAYS: dict[str, tuple[str, Any]] = {
    "/v1/addresses": ("archived", True),
    "/v1/api-keys": ("status", "revoked"),
    "/v1/invoices": ("status", "cancelled"),
    "/v1/payout-links": ("status", "cancelled"),
    "/v1/withdrawals": ("status", "cancelled"),
}
"""What DELETE ends and does not take away (decisions §4, §5, §8, §16), by the field that says so."""


def resources() -> list[str]:
    """The paths of collections whose POST makes what can then be read under its own path."""
    paths = WHOLE["paths"]
    items = {path.rpartition("/{")[0] for path, several in paths.items() if path.endswith("}") and "get" in several}
    return sorted(path for path in items if "post" in paths.get(path, ()))


def test_the_resources_are_found() -> None:
    assert set(resources()) >= {*STAYS, "/v1/webhooks", "/v1/whitelist/addresses"}


@pytest.mark.parametrize("path", resources())
def test_what_was_made_is_there_and_what_was_deleted_is_gone(stack: Stack, path: str) -> None:
    shop, paths = Shop(stack, "admin_test"), WHOLE["paths"]

    def example(method: str, where: str) -> Any:
        return paths[where][method.lower()].get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")

    body = example("POST", path)
    if path == "/v1/coins":
        token = shop.post("/v1/sandbox/tokens", example("POST", "/v1/sandbox/tokens")).json["data"]
        body = {name: token[name] for name in ("network", "contractAddress")}
    if path.endswith("/rescan"):
        body = {"fromBlock": 0, "toBlock": 0}
    if path in ("/v1/withdrawals", "/v1/payout-links"):
        shop.turn()
        shop.credit("1")
    made = shop.post(path.replace("{network}", "ethereum"), body)
    assert made.status == 201, made.body
    record = made.json.get("data", made.json)
    (item,) = (found for found in paths if re.fullmatch(re.escape(path) + r"/\{\w+\}", found) and "get" in paths[found])
    name = next(record[key] for key in ("id", "key_id", "coin") if key in record)

    def call(method: str, where: str) -> Answer:
        there = where.replace("{network}", "ethereum").replace(item[item.rindex("{") :], name)
        return stack.call(method, there, shop.key, json=example(method, where))

    reads = [found for found in paths if found.startswith(item) and "{" not in found[len(item) :] and "get" in paths[found]]
    for where in reads:
        assert call("GET", where).status == 200, where
    if "delete" not in paths[item]:
        return
    assert call("DELETE", item).status == 200
    if path in STAYS:
        field, value = STAYS[path]
        kept = call("GET", item).json
        assert kept.get("data", kept)[field] == value
        return
    for where in reads:
        assert call("GET", where).status == 404, where
    for method in {"put", "delete"} & paths[item].keys():
        assert call(method.upper(), item).status == 404, method
