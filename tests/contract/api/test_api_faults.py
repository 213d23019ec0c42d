"""Answers with status 500 are counted, each by one line that CloudWatch reads, and `/health` tells of a store that is away."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from chalice.app import Chalice, Response

from chalicelib import wiring
from chalicelib.api import edge as api_edge
from chalicelib.api import register, resources
from chalicelib.domain.errors import ServiceError
from chalicelib.store.probe import TABLES
from chalicelib.usecases.base.health import FRESH_SECONDS, StoreHealth
from chalicelib.usecases.ports.failures import Unavailable
from infra.local.gateway import Gateway, Request
from infra.local.server import Server
from tests.support.edge import PREPARED, Edge
from tests.support.stack import Client


@pytest.fixture
def edge(aws) -> Edge:
    return PREPARED.edge(aws)


def counted(captured: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The lines of standard output, each of which has to be the JSON of a metric and nothing else."""
    lines = [json.loads(line) for line in captured.readouterr().out.splitlines()]
    for line in lines:
        assert_embedded_metric(line)
    return lines


def assert_embedded_metric(line: dict[str, Any]) -> None:
    """What the embedded metric format asks of a document: the members of `_aws`, and what its references name.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
    """
    about = line["_aws"]
    assert set(about) == {"Timestamp", "CloudWatchMetrics"}
    assert abs(about["Timestamp"] - time.time() * 1000) < 60_000
    (directive,) = about["CloudWatchMetrics"]
    assert set(directive) == {"Namespace", "Dimensions", "Metrics"}
    for names in directive["Dimensions"]:
        assert all(isinstance(line[name], str) and 1 <= len(line[name]) <= 1024 for name in names)
    for metric in directive["Metrics"]:
        assert set(metric) <= {"Name", "Unit", "StorageResolution"}
        assert isinstance(line[metric["Name"]], int)


def store_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing answers any call to AWS."""

    def refuse(self: Any, operation: str, arguments: Any) -> None:
        raise EndpointConnectionError(endpoint_url="https://dynamodb")

    monkeypatch.setattr("botocore.client.BaseClient._make_api_call", refuse)


def fail(error: Exception) -> Any:
    def handler(*_: Any, **__: Any) -> None:
        raise error

    return handler


def test_no_other_answer_is_counted(edge: Edge, capsys: pytest.CaptureFixture[str]) -> None:
    asked = [("/health", None), ("/auth/test", "client"), ("/auth/test", None), ("/coins/nope", "client"), ("/pay/x", None)]
    assert [edge.call("GET", path, key=key).status for path, key in asked] == [200, 200, 401, 400, 404]
    assert counted(capsys) == []


def test_a_500_is_counted_by_stage_without_a_call(
    edge: Edge, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge.services.gate, "admit", fail(RuntimeError("broken")))
    made: list[str] = []
    monkeypatch.setattr("botocore.client.BaseClient._make_api_call", lambda _, operation, __: made.append(operation))
    answer = edge.call("GET", "/v1/balances")
    assert answer.status == 500
    assert made == []
    (line,) = counted(capsys)
    assert (line["stage"], line["api_errors"]) == ("local", 1)
    assert line["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["stage"]]
    assert (line["path"], line["request_id"]) == ("/v1/balances", answer.headers["x-request-id"])


def test_the_line_tells_nothing_of_the_request(
    edge: Edge, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store_away(monkeypatch)
    assert edge.call("GET", "/invoices/inv_secret/payments?token=secret", key="client").status in (404, 500)
    assert edge.call("GET", "/v1/coins/secret", key="client").status == 500
    written = capsys.readouterr().out
    assert "secret" not in written
    assert edge.keys["client"] not in written
    assert json.loads(written.splitlines()[-1])["path"] == "/v1/coins/{coin}"


@pytest.mark.parametrize("path", ["/auth/test", "/pay/{id}", "/v1/pay/{id}/status", "/health", "/v1/coins"])
def test_every_answer_that_the_store_was_away_for_counts(
    edge: Edge, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Handled failures, pages and `/health` itself among them."""
    invoice = edge.call("POST", "/invoices", json={"currency": "eth", "amount": "1", "network": "ethereum"}).json["id"]
    wiring.forget()
    store_away(monkeypatch)
    assert edge.call("GET", path.format(id=invoice)).status == 500
    assert len(counted(capsys)) == 1


@pytest.mark.parametrize("error", [ServiceError("no code of ours"), Unavailable("the store did not answer"), KeyError("x")])
def test_errors_that_are_none_of_the_table_count(
    edge: Edge, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(edge.services, "balances", fail(error))
    assert edge.call("GET", "/balances").status == 500
    assert len(counted(capsys)) == 1


def test_a_failure_of_the_edge_itself_counts(
    edge: Edge, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`handle` raises, and Chalice answers in words of its own: counted, and in the published form."""
    monkeypatch.setattr(api_edge, "handle", fail(RuntimeError("the edge is broken")))
    for path, shape in (("/coins", "flat"), ("/health", "object"), ("/balances", "envelope")):
        answer = edge.call("GET", path)
        assert answer.status == 500
        error = answer.json if shape == "flat" else answer.json["error"]
        assert error["code"] == "INTERNAL_ERROR"
        assert ("meta" in answer.json) is (shape == "envelope")
    assert len(counted(capsys)) == 3


def test_an_answer_that_chalice_refuses_to_send_counts(
    edge: Edge, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_edge, "handle", lambda *_: Response("{}", headers={"X-Broken": "a\nb"}))
    assert edge.call("GET", "/health").json["error"]["code"] == "INTERNAL_ERROR"
    assert len(counted(capsys)) == 1


def test_a_resource_that_can_not_be_imported_counts(
    edge: Edge, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resources are imported at their first request: the function answers, so Lambda counts no error."""
    app = Chalice(app_name="cold")
    register(app)
    request = Request("GET", "/api/v1/health", [], b"", "192.0.2.1")
    event = Gateway(app)._event(request, "GET", "/api/v1/health", "", "/v1/health", {}, "id")
    monkeypatch.setattr(app, "routes", type(app.routes)(app))
    monkeypatch.setattr(resources, "import_module", fail(ImportError("half a deployment")))
    monkeypatch.setattr(api_edge, "_FAMILY_OF", {})
    answer = app(event, None)
    assert answer["statusCode"] == 500
    assert json.loads(answer["body"])["error"]["code"] == "INTERNAL_ERROR"
    (line,) = counted(capsys)
    assert line["path"] == "/v1/health"


def test_deployed_the_line_names_the_stage(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from chalicelib.api import fault_metric

    monkeypatch.setenv("STAGE", "prod")
    fault_metric.count("/v1/coins", "id")
    (line,) = counted(capsys)
    assert (line["_aws"]["CloudWatchMetrics"][0]["Namespace"], line["stage"]) == ("gateway-prod", "prod")


# ---- /health ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that the process has been up, as the health check sees them."""
    now = [1000.0]
    made = StoreHealth.__init__
    monkeypatch.setattr(StoreHealth, "__init__", lambda self, probe: made(self, probe, lambda: now[0]))
    return now


def test_health_fails_with_the_store_and_is_well_with_it(edge: Edge, clock: list[float]) -> None:
    well = edge.call("GET", "/health", key=None)
    assert (well.status, set(well.json), well.json["status"]) == (200, {"status", "timestamp"}, "ok")
    with pytest.MonkeyPatch.context() as patched:
        store_away(patched)
        assert edge.call("GET", "/health", key=None).status == 200, "known from a moment ago"
        clock[0] += FRESH_SECONDS
        ill = edge.call("GET", "/v1/health", key=None)
        assert (ill.status, ill.json) == (500, {"status": "error"})
    assert edge.call("GET", "/health", key=None).status == 500, "known from a moment ago"
    clock[0] += FRESH_SECONDS
    assert edge.call("GET", "/health", key=None).status == 200


@pytest.mark.parametrize("away", [False, True])
def test_one_read_in_five_seconds_however_often_it_is_asked(edge: Edge, clock: list[float], away: bool) -> None:
    reads: list[dict[str, Any]] = []
    with pytest.MonkeyPatch.context() as patched:
        made = wiring.services().health._probe._client

        def ask(**wanted: Any) -> dict[str, Any]:
            reads.append(wanted)
            if away:
                raise EndpointConnectionError(endpoint_url="https://dynamodb")
            return {}

        patched.setattr(made, "batch_get_item", ask)
        calls = edge.calls()
        for step in range(4):
            with ThreadPoolExecutor(8) as pool:
                answers = list(pool.map(lambda _: edge.call("GET", "/health", key=None).status, range(100)))
            assert set(answers) == {500 if away else 200}
            assert len(reads) == step + 1
            clock[0] += FRESH_SECONDS
        assert calls.made == []
    assert set(reads[0]["RequestItems"]) == {f"gateway-local-{name}" for name in TABLES}


def test_health_fails_where_one_table_is_gone(edge: Edge, clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chalicelib.store.probe.TABLES", ("tenants", "nowhere"))
    assert edge.call("GET", "/health", key=None).status == 500


class Silent:
    """A port that takes connections and never answers."""

    def __enter__(self) -> str:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._taken: list[socket.socket] = []
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def _take(self) -> None:
        while True:
            try:
                self._taken.append(self._socket.accept()[0])
            except OSError:
                return

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for taken in self._taken:
            taken.close()


def over_sockets(path: str, key: str | None = None) -> tuple[int, Any, float]:
    """One request to the local stack's server: status, body, seconds."""
    from app import app

    server = Server(app, 0)
    server.start()
    try:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        began = time.monotonic()
        connection.request("GET", path, headers={} if key is None else {"X-Api-Key": key})
        answer = connection.getresponse()
        body = json.loads(answer.read())
        return answer.status, body, time.monotonic() - began
    finally:
        server.stop()


def test_health_answers_quickly_where_the_store_never_does(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    with Silent() as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", url)
        wiring.forget()
        status, body, seconds = over_sockets("/api/health")
    assert (status, body) == (500, {"status": "error"})
    assert 1 < seconds < 5, "two attempts of a second, and up to one between them"


def test_health_fails_where_nothing_listens(
    edge: Edge, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """DynamoDB's port is closed, for every part of the service: what `/health` says is what requests meet."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", f"http://127.0.0.1:{port}")
    wiring.forget()
    status, body, seconds = over_sockets("/api/v1/health")
    assert (status, body) == (500, {"status": "error"})
    assert seconds < 5
    assert over_sockets("/api/v1/auth/test", edge.keys["client"])[0] == 500
    assert [line["path"] for line in counted(capsys)] == ["/v1/health", "/v1/auth/test"]


def test_health_says_only_what_it_documents(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    """`Client` holds every answer against the document: the record of its own, and a failure of the check itself."""
    client = Client(__import__("app").app)
    store_away(monkeypatch)
    wiring.forget()
    assert client.call("GET", "/v1/health").json == {"status": "error"}
    monkeypatch.setattr(StoreHealth, "answers", fail(RuntimeError("broken")))
    told = client.call("GET", "/v1/health")
    assert told.status == 500
    assert re.fullmatch(r"[A-Z_]+", told.json["error"]["code"])
