"""The receivers of docs/webhooks.md, each run as it stands there: what the service sends they take, and nothing else."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from chalicelib.delivery.safe_http import SafeHttpSender
from chalicelib.domain.times import iso
from chalicelib.domain.webhooks.endpoints import signature_headers
from chalicelib.wiring import services
from infra.local.keeper import free_port
from infra.local.server import Server
from tests.support.documented_receivers import DOCUMENT, LANGUAGES, Documented
from tests.support.receiver import Received, Receiver
from tests.support.stack import Stack

pytestmark = pytest.mark.nodes

HANDLERS = ("housekeeping", "relay", "deliver")
OLD = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NEW = "one of the shop's own, ünïcode"
"""Without `whsec_`: its text is the key."""
BODY = '{"id":"evt_1","event":"invoice.created","data":{"name":"Zürich € 😀 / {}"},"timestamp":"2026-01-02T03:04:05.006Z"}'.encode()
SENDER = SafeHttpSender(allow_private=True)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Documented]]:
    """The three with the secret OLD."""
    folder = tmp_path_factory.mktemp("receivers")
    with ExitStack() as stack:
        yield {name: stack.enter_context(Documented(name, OLD, folder / name)) for name in LANGUAGES}


def post(to: Documented, headers: dict[str, str], body: bytes) -> int | None:
    """What it answers to the service's own sender; None for nothing."""
    return SENDER.send(to.url, {"content-type": "application/json", **headers}, body).status


def signed(id: str, *, secrets: tuple[str, ...] = (OLD,), body: bytes = BODY, ago: int = 0) -> dict[str, str]:
    return signature_headers(secrets, id, body, (int(time.time()) - ago) * 1000)


def as_sent(request: Received) -> dict[str, str]:
    """The headers of a delivery that do not belong to its connection."""
    return {name: value for name, value in request.headers.items() if name.startswith(("webhook-", "x-gateway-"))}


def by_the_library(request: Received, secret: str | bytes) -> Any:
    return Webhook(secret).verify(request.body, request.headers)


def published(secret: str, body: bytes) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


class Hooks:
    """A merchant's endpoints, all with the secret OLD: the three receivers, and one that keeps what it gets."""

    def __init__(self, stack: Stack, recorder: Receiver, receivers: dict[str, Documented]) -> None:
        self.stack, self.recorder = stack, recorder
        urls = {name: receiver.url for name, receiver in receivers.items()} | {"recorder": recorder.url()}
        self.ids = {
            name: self.call("POST", "/v1/webhooks", {"url": url, "events": ["invoice.created"], "secret": OLD})["id"]
            for name, url in urls.items()
        }

    def call(self, method: str, path: str, body: Any = None) -> Any:
        reply = self.stack.call(method, path, self.stack.keys["client_test"], json=body)
        assert reply.status in (200, 201), reply.body
        return reply.json["data"]

    def told(self) -> Received:
        """Something happens, and every endpoint is told of it once. As the recorder got it."""
        made = self.stack.call("POST", "/v1/invoices", self.stack.keys["client_test"], json={"currency": "eth", "amount": "0.5"})
        assert made.status == 201, made.body
        self.stack.drain(only=HANDLERS)
        return self.recorder.received[-1]

    def rotate(self, secret: str, overlap: int) -> None:
        for id in self.ids.values():
            self.call("POST", f"/v1/webhooks/{id}/rotate-secret", {"secret": secret, "overlap": overlap})

    def last(self, name: str) -> dict[str, Any]:
        """The newest delivery to one of them."""
        listed: list[dict[str, Any]] = self.call("GET", f"/v1/webhooks/{self.ids[name]}/deliveries")
        return listed[0]


def test_what_the_service_sends_is_taken_and_handled_once(stack: Stack, running: dict[str, Documented]) -> None:
    with Receiver() as recorder:
        hooks = Hooks(stack, recorder, running)
        request = hooks.told()
        event = json.loads(request.body)
        assert by_the_library(request, OLD) == event
        assert request.headers["x-gateway-signature"] == published(OLD, request.body)
        line = f"invoice.created {event['id']}"
        for name, receiver in running.items():
            assert (hooks.last(name)["status"], hooks.last(name)["lastResponseStatus"]) == ("delivered", 204), name
            assert receiver.handled().count(line) == 1, name
            hooks.call("POST", f"/v1/webhooks/deliveries/{hooks.last(name)['id']}/redeliver")
            # And the very bytes that the library and we have verified.
            assert post(receiver, as_sent(request), request.body) == 204, name
        stack.drain(only=HANDLERS)
        assert all(receiver.handled().count(line) == 1 for receiver in running.values())


def test_while_secrets_overlap_both_are_taken(stack: Stack, running: dict[str, Documented], tmp_path: Path) -> None:
    with Receiver() as recorder, ExitStack() as started:
        changed = {name: started.enter_context(Documented(name, NEW, tmp_path / name)) for name in LANGUAGES}
        hooks = Hooks(stack, recorder, running)
        hooks.rotate(NEW, overlap=3600)
        both = hooks.told()
        line = f"invoice.created {both.headers['webhook-id']}"
        assert by_the_library(both, OLD) == by_the_library(both, NEW.encode()) == json.loads(both.body)
        assert both.headers["x-gateway-signature"] == published(NEW, both.body)
        assert both.headers["x-gateway-signature-previous"] == published(OLD, both.body)
        for name in LANGUAGES:
            assert post(changed[name], as_sent(both), both.body) == 204, name
            assert running[name].handled().count(line) == changed[name].handled().count(line) == 1, name

        hooks.rotate(NEW + " again", overlap=0)
        after = hooks.told()
        line = f"invoice.created {after.headers['webhook-id']}"
        for name in LANGUAGES:
            assert (hooks.last(name)["status"], hooks.last(name)["lastResponseStatus"]) == ("pending", 401), name
            assert post(changed[name], as_sent(after), after.body) == 401, name
            assert line not in running[name].handled() + changed[name].handled(), name


def without(headers: dict[str, str], *names: str) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in names}


def forgeries() -> dict[str, tuple[dict[str, str], bytes]]:
    """What a receiver must refuse, all of it near to what it takes."""
    good, other = signed("evt_forged"), signed("evt_forged", secrets=("whsec_" + "A" * 32,))
    standard = good["webhook-signature"]
    now = int(good["webhook-timestamp"])
    return {
        "a flipped bit": (good, BODY[:-1] + bytes([BODY[-1] ^ 1])),
        "a blank more": (good, BODY + b" "),
        "no body": (good, b""),
        "parsed and written again": (good, json.dumps(json.loads(BODY)).encode()),
        "a wrong secret": (other, BODY),
        "one signature of another secret": (good | {"webhook-signature": other["webhook-signature"]}, BODY),
        "the other one": (good | {"x-gateway-signature": other["x-gateway-signature"]}, BODY),
        "another's before": (without(other | {"x-gateway-signature-previous": published(OLD, BODY)}, "webhook-signature"), BODY),
        "old": (signed("evt_forged", ago=330), BODY),
        "of the future": (signed("evt_forged", ago=-330), BODY),
        "old, with a time of now": (signed("evt_forged", ago=330) | {"webhook-timestamp": str(now)}, BODY),
        "another id": (good | {"webhook-id": "evt_another"}, BODY),
        "a time that is none": (good | {"webhook-timestamp": "soon"}, BODY),
        "another version": (good | {"webhook-signature": standard.replace("v1,", "v1a,")}, BODY),
        "half a signature": (good | {"x-gateway-signature": good["x-gateway-signature"][:-1]}, BODY),
        "bytes that are no text": (good | {"x-gateway-signature": "sha256=" + "ü" * 64, "webhook-signature": "v1,ÿé²"}, BODY),
        "nothing": ({}, BODY),
        "empty signatures": (good | {"x-gateway-signature": "", "webhook-signature": ""}, BODY),
        **{f"no {name}": (without(good, name), BODY) for name in good},
    }


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_forged_is_401(language: str, running: dict[str, Documented]) -> None:
    receiver = running[language]
    before = receiver.handled()
    answers = {what: post(receiver, headers, body) for what, (headers, body) in forgeries().items()}
    assert answers == dict.fromkeys(answers, 401)
    assert receiver.handled() == before


@pytest.mark.parametrize("language", LANGUAGES)
def test_clocks_may_differ_a_little_and_who_hangs_up_breaks_nothing(language: str, running: dict[str, Documented]) -> None:
    receiver = running[language]
    with socket.create_connection(("127.0.0.1", receiver.port)) as connection:
        connection.sendall(b"POST /hook HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    for id, ago in ((f"evt_{language}_late", 270), (f"evt_{language}_early", -270)):
        assert post(receiver, signed(id, ago=ago), BODY) == 204
        assert post(receiver, signed(id), BODY) == 204
        assert receiver.handled().count(f"invoice.created {id}") == 1
    assert receiver.process.poll() is None


def test_the_documents_commands_register_and_try_an_endpoint(stack: Stack, tmp_path: Path) -> None:
    register, check, again = re.findall(r"^```sh\n(.*?)^```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    server = Server(stack.app, 0)
    server.start()
    port = free_port()

    def run(script: str, **variables: str) -> list[Any]:
        shell = shutil.which("bash")
        assert shell is not None
        here = script.replace("127.0.0.1:8000", f"127.0.0.1:{server.port}").replace("127.0.0.1:9000", f"127.0.0.1:{port}")
        environment = {"KEY": stack.keys["client_test"], "API": f"http://127.0.0.1:{server.port}/api/v1", **variables}
        lines = here.replace("\ncurl", "; echo\ncurl")
        done = subprocess.run(
            [shell, "-c", lines], capture_output=True, text=True, timeout=30, check=True, env={**os.environ, **environment}
        )
        return [json.loads(line)["data"] for line in done.stdout.splitlines() if line]

    try:
        (hook,) = run(register)
        with Documented("python", hook["secret"], tmp_path / "python", port) as receiver:
            delivery, listed = run(check, ID=hook["id"])
            stack.drain(only=HANDLERS)
            assert receiver.handled() == [f"webhook.test {delivery['eventId']}"]
        assert all(one["id"] == delivery["id"] for one in listed)
        order, look = again.split("\ncurl")
        now = services().clock.now_ms()
        (job,) = run(order, ID=hook["id"], FROM=iso(now - 3_600_000), TO=iso(now))
        stack.drain(only=HANDLERS)
        (job,) = run(f"curl{look}", JOB=job["id"])
        assert (job["status"], job["made"]) == ("done", 0), "test events are not sent again"
    finally:
        server.stop()
