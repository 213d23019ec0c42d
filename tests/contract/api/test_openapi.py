"""The OpenAPI document: valid, complete, the same every time, and made only when somebody asks for it."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from chalicelib.api.body import parse
from chalicelib.api.errors import STATUS
from chalicelib.api.openapi import document, words
from chalicelib.api.problems import validated
from chalicelib.api.routes import ROUTES, endpoint
from chalicelib.domain.catalogue.catalogue import NETWORK_ORDER
from chalicelib.domain.webhooks.endpoints import TEST_EVENT
from chalicelib.domain.webhooks.events import EVENT_NAMES
from tests.deploy.conftest import ROOT, run_python
from tests.support.edge import PREPARED, Edge
from tests.support.openapi import Undocumented, assert_documented, validator_of
from tests.support.stack import Stack

PAGES = {"/openapi", "/openapi/{file}", "/pay/{invoiceId}", "/claim/{token}", "/link/{id}", "/portal", "/console", "/"}


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return document.document()


@pytest.fixture
def edge(aws):
    return PREPARED.edge(aws)


def operations(made: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(method, path, found) for path, several in made["paths"].items() for method, found in several.items()]


def resolved(made: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    """The component that a reference means, or the thing itself."""
    if "$ref" not in item:
        return item
    kind, name = item["$ref"].split("/")[-2:]
    return made["components"][kind][name]


def fields(schema: dict[str, Any], where: str) -> list[tuple[str, dict[str, Any]]]:
    """Every property of a schema and of the objects that are written within it."""
    found = []
    for name, declared in schema.get("properties", {}).items():
        found += [(f"{where}.{name}", declared), *fields(declared, f"{where}.{name}")]
    return found


def test_it_is_valid(made: dict[str, Any]) -> None:
    assert list(OpenAPIV31SpecValidator(made).iter_errors()) == []


def test_no_reference_leads_back_to_itself_or_out_of_the_document(made: dict[str, Any]) -> None:
    """The explorer puts what a reference means in its place (`web/static/explorer.js`): a circle would never end."""

    def references(node: Any) -> list[str]:
        if isinstance(node, list):
            return [found for each in node for found in references(each)]
        if not isinstance(node, dict):
            return []
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [found for each in node.values() for found in references(each)]

    def follow(reference: str, behind: tuple[str, ...]) -> None:
        assert reference not in behind, f"{reference} leads back to itself: {behind}"
        root, *parts = reference.split("/")
        assert root == "#", reference
        node: Any = made
        for part in parts:
            node = node[part.replace("~1", "/").replace("~0", "~")]
        if reference not in followed:
            for each in references(node):
                follow(each, (*behind, reference))
            followed.add(reference)

    followed: set[str] = set()
    for reference in references(made["paths"]):
        follow(reference, ())
    assert len(followed) > 50


def test_it_has_every_route_of_the_table_and_nothing_else(made: dict[str, Any]) -> None:
    wanted = {(route.method.lower(), "/v1" + route.path) for route in ROUTES if route.method != "GET" or route.path not in PAGES}
    assert {(method, path) for method, path, _ in operations(made)} == wanted
    ids = [found["operationId"] for _, _, found in operations(made)]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z][A-Za-z]+", name) for name in ids)


def test_enforcement_and_document_read_the_same_table(made: dict[str, Any]) -> None:
    for route in document.documented():
        found = made["paths"]["/v1" + route.path][route.method.lower()]
        assert found["x-level"] == route.level
        assert found["security"] == ([] if route.level == "public" else [{"apiKey": []}, {"bearer": []}])
        assert found.get("x-permission") == route.permission
        assert set(found["responses"]) >= {str(route.status), "500"}
        assert {"401", "403"} & set(found["responses"]) == (set() if route.level == "public" else {"401", "403"})
        assert "429" in found["responses"]
        if route.permission is not None:
            assert f"`{route.permission}`" in found["description"]
        sent = {parameter.get("name", "Idempotency-Key") for parameter in found.get("parameters", ())}
        assert sent >= set(re.findall(r"\{(\w+)\}", route.path))
        assert ("Idempotency-Key" in sent) == route.creates


def test_every_endpoint_says_what_it_answers() -> None:
    assert [(route.method, route.path) for route in document.documented() if route.answer is None] == []


def test_every_error_example_has_the_shape_that_it_is_an_example_of(made: dict[str, Any]) -> None:
    seen: set[str] = set()
    for name, response in made["components"]["responses"].items():
        content = response["content"]["application/json"]
        validator = validator_of(content["schema"], made["components"]["schemas"])
        for code, example in content["examples"].items():
            validator.validate(example["value"])
            assert str(STATUS[code]) in name
            seen.add(code)
    assert seen == set(STATUS)


def test_a_code_that_no_error_has_is_refused_before_any_request() -> None:
    with pytest.raises(ValueError, match="NOT_FUOND"):
        endpoint("GET", "/nowhere", family="object", summary="Nothing", errors=("NOT_FUOND",))


def test_schemas_are_named_once_and_every_request_refuses_unknown_fields(made: dict[str, Any]) -> None:
    schemas = made["components"]["schemas"]
    assert [name for name in schemas if "__" in name] == [], "two models of one name: pydantic tells them apart by their modules"
    used = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(made)))
    assert set(schemas) == used
    for _, _, found in operations(made):
        if "requestBody" in found:
            content = found["requestBody"]["content"]["application/json"]
            schema = schemas[content["schema"]["$ref"].rsplit("/", 1)[1]]
            assert schema["additionalProperties"] is False
            validator_of(schema, schemas).validate(content["example"])


def test_request_schemas_say_what_is_accepted(made: dict[str, Any]) -> None:
    """Amounts as strings and numbers, networks by name, coins by the form of their slug: some are made at run time."""
    schemas = made["components"]["schemas"]
    invoice = validator_of(schemas["InvoiceCreate"], schemas)
    for amount in ("0.05", 0.05, 1, "1500", "0.000000000000000001"):
        assert invoice.is_valid({"currency": "eth", "amount": amount}), amount
    for amount in ("0", "0.000", 0, "-1", "1e3", "", "01", True, [1]):
        assert not invoice.is_valid({"currency": "eth", "amount": amount}), amount
    assert not invoice.is_valid({"currency": "eth", "amount": 1, "network": "etherium"})
    assert invoice.is_valid({"currency": "newcoin", "amount": 1, "network": "fantom"})
    assert not invoice.is_valid({"currency": "eth", "amount": 1, "unknown": 1})
    assert made["components"]["schemas"]["InvoiceCreate"]["properties"]["network"]["anyOf"][0]["enum"] == list(NETWORK_ORDER)


def test_every_operation_and_parameter_is_described(made: dict[str, Any]) -> None:
    for method, path, found in operations(made):
        where = f"{method} {path}"
        words, needs = found["description"].rsplit("\n\n", 1) if "\n\n" in found["description"] else ("", found["description"])
        assert found["summary"] and words and needs.startswith("Needs"), where
        for parameter in found.get("parameters", ()):
            assert resolved(made, parameter)["description"], f"{where}: {parameter}"
    assert [tag["name"] for tag in made["tags"] if "description" not in tag] == []


def test_every_field_is_described_and_says_what_it_may_look_like(made: dict[str, Any]) -> None:
    for name, schema in made["components"]["schemas"].items():
        assert schema["description"], name
        for field, declared in fields(schema, name):
            kinds = [kind for kind in declared.get("anyOf", [declared]) if kind != {"type": "null"}]
            target = resolved(made, kinds[0])
            assert declared.get("description") or target.get("description"), f"{field} says nothing"
            shows = {"examples", "const", "enum"} & (declared.keys() | target.keys())
            # Objects, and lists of them, are made of fields that have examples; true and false need none.
            plain = target.get("type") in ("string", "integer", "number") or (
                target.get("type") == "array" and target["items"].get("type") in ("string", "integer", "number")
            )
            assert shows or not plain, f"{field} has no example"


def test_every_answer_has_an_example_that_fits(made: dict[str, Any]) -> None:
    for method, path, found in operations(made):
        [success] = [answer for status, answer in found["responses"].items() if status.startswith("2")]
        content = success["content"]["application/json"]
        validator = validator_of(content["schema"], made["components"]["schemas"])
        problem = next(validator.iter_errors(content["example"]), None)
        assert problem is None, f"{method} {path}: {problem}"


def test_every_example_of_a_request_is_accepted(made: dict[str, Any], edge: Edge) -> None:
    """By what looks at fields together too, which no schema says."""
    catalogue = edge.services.catalogue("test")
    for route in document.documented():
        if route.body is not None:
            body = made["paths"]["/v1" + route.path][route.method.lower()]["requestBody"]["content"]["application/json"]
            sent = parse(json.dumps(body["example"]).encode(), "application/json")
            _, problems = validated(route.body, sent, catalogue)
            assert problems == [], f"{route.method} {route.path}"


def test_examples_of_links_have_their_secret_where_it_is_shown(made: dict[str, Any]) -> None:
    for method, path, found in operations(made):
        if any(part in path for part in ("/refunds", "/payout-links")):
            [success] = [answer for status, answer in found["responses"].items() if status.startswith("2")]
            example = success["content"]["application/json"]["example"]
            example = example.get("data", example) if isinstance(example, dict) else example
            one = example[0] if isinstance(example, list) else example
            assert (one["claimUrl"] is not None, one["address"], one["withdrawalId"]) == (method == "post", None, None), path


def test_every_answer_500_of_an_endpoints_own_has_an_example_that_fits(made: dict[str, Any]) -> None:
    own = [route for route in document.documented() if route.failure is not None]
    assert [route.path for route in own] == ["/health"]
    for route in own:
        content = made["paths"]["/v1" + route.path][route.method.lower()]["responses"]["500"]["content"]["application/json"]
        validator = validator_of(content["schema"], made["components"]["schemas"])
        assert set(content["examples"]) == {"known", "INTERNAL_ERROR"}
        for example in content["examples"].values():
            validator.validate(example["value"])
        assert not validator.is_valid({"status": "ok"})


def test_every_event_has_its_payload(made: dict[str, Any]) -> None:
    assert tuple(made["webhooks"]) == (*EVENT_NAMES, TEST_EVENT)


def test_it_is_answered_without_a_key_under_both_prefixes(edge: Edge) -> None:
    for path in ("/openapi/openapi.json", "/v1/openapi/openapi.json"):
        answer = edge.call("GET", path, key=None)
        assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
        assert answer.json == document.document("/api")
        assert answer.json["servers"] == [{"url": "/api"}]


def test_deployed_it_names_the_gateways_host() -> None:
    from app import app

    request = {"resourcePath": "/v1/openapi/openapi.json", "httpMethod": "GET", "path": "/api/v1/openapi/openapi.json"}
    context = {**request, "domainName": "abc.execute-api.eu-central-1.amazonaws.com", "identity": {"sourceIp": "203.0.113.9"}}
    event = {
        "resource": request["resourcePath"], "path": request["resourcePath"], "httpMethod": "GET", "requestContext": context,
        "headers": {}, "multiValueHeaders": {}, "queryStringParameters": None, "multiValueQueryStringParameters": None,
        "pathParameters": None, "stageVariables": None, "body": None, "isBase64Encoded": False,
    }  # fmt: skip
    answer = app(event, None)
    assert json.loads(answer["body"])["servers"] == [{"url": "https://abc.execute-api.eu-central-1.amazonaws.com/api"}]


def test_its_version_is_the_projects() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == words.VERSION


@pytest.fixture(scope="module")
def elsewhere() -> list[str]:
    """Of another process: what the app alone has loaded of the document, and the checksum of the document that it makes."""
    script = (
        "import hashlib, sys, app; "
        "print([n for n in sys.modules if n.startswith(('chalicelib.api.openapi', 'chalicelib.api.records'))]); "
        "from chalicelib.api.openapi import document; "
        "print(hashlib.sha256(document.text('/api').encode()).hexdigest())"
    )
    return run_python(ROOT, "-c", script).splitlines()


def test_it_is_the_same_in_every_process(elsewhere: list[str]) -> None:
    assert elsewhere[1] == hashlib.sha256(document.text("/api").encode()).hexdigest()


def test_serving_requests_loads_nothing_of_it(elsewhere: list[str]) -> None:
    assert elsewhere[0] == "[]"


def test_what_is_not_documented_is_found(stack: Stack) -> None:
    """The check that every other test relies on can fail."""
    good = stack.call("GET", "/v1/health")
    assert_documented(200, good.headers, good.json, "GET", "/v1/health")
    with pytest.raises(Undocumented, match="which is not documented"):
        assert_documented(418, good.headers, good.json, "GET", "/v1/health")
    with pytest.raises(Undocumented, match="without the header X-Request-Id"):
        assert_documented(200, {"content-type": "application/json"}, good.json, "GET", "/v1/health")
    keyed = stack.call("GET", "/v1/auth/test", key=stack.keys["client_test"])
    assert_documented(200, keyed.headers, keyed.json, "GET", "/v1/auth/test")
    for name in ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Window"):
        less = {header: value for header, value in keyed.headers.items() if header != name.lower()}
        with pytest.raises(Undocumented, match=f"without the header {name}"):
            assert_documented(200, less, keyed.json, "GET", "/v1/auth/test")
    with pytest.raises(Undocumented, match="as 'text/html'"):
        assert_documented(200, {**good.headers, "content-type": "text/html"}, good.json, "GET", "/v1/health")
    flat, headers = {"error": "No", "code": "INVALID_API_KEY"}, keyed.headers
    with pytest.raises(Undocumented, match="answered 401"):
        assert_documented(401, good.headers, flat, "GET", "/balances")
    with pytest.raises(Undocumented, match="INVALID_API_KEY"):
        assert_documented(400, headers, flat, "POST", "/invoices")
