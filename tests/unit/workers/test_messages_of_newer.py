"""Messages of a newer version: a member more is passed over, and a kind that only that version knows ends without a failure."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from chalice.app import SQSEvent

from app import app
from chalicelib.domain.ids import NetworkId
from chalicelib.domain.work import Command
from chalicelib.settings import Settings
from chalicelib.store.queues import SqsQueues
from chalicelib.usecases.base.retries import Failures
from chalicelib.usecases.ports.failures import TooNew, Unavailable
from chalicelib.usecases.scanning.sharing import Share
from chalicelib.workers import batches
from tests.support.memory_store import HandClock
from tests.support.webhooks import NOW

NETWORK = NetworkId("test:ethereum")
MOVE = {"network": NETWORK, "move": "mov_1"}
COIN_MOVE = {"network": NETWORK, "coin_move": "cmv_1"}


def _command(queue: str, **body: str) -> Callable[[SqsQueues], None]:
    return lambda queues: queues.send(Command(queue, "group", body))  # type: ignore[arg-type]  # each is a queue's name


ASKED: dict[str, tuple[str, Callable[[SqsQueues], None]]] = {
    "relay": ("relay", lambda queues: queues.kick("out_1", "mch_1:test")),
    "redelivery": ("relay", lambda queues: queues.redeliver("mch_1:test", "rdl_1")),
    "deliver": ("deliver", lambda queues: queues.wake("mch_1:test", "wh_1")),
    "deliver of a held one": ("deliver", lambda queues: queues.wake("mch_1:test", "wh_1", failing=True, held=True)),
    "scan_range": ("scan_range", lambda queues: queues.scan(NETWORK, "range-1")),
    "tick": ("tick", lambda queues: queues.tick(NETWORK, [NOW], NOW)),
    "record": ("record", lambda queues: queues.record(Share(NETWORK, 7, "0x1", 2, ("0xa",), positions=("0",)).body())),
    "credit": ("record", lambda queues: queues.record(Share(NETWORK, deposits=("tx_1", "tx_2"), at=NOW).body())),
    "compare": ("compare", lambda queues: queues.compare(NETWORK)),
    "payout": ("payout", _command("payouts", tenant="mch_1:test", id="wd_1")),
    "payout of a line": ("payout", _command("payouts", line=NETWORK, tenant="mch_1:test", id="wd_1", slot="1", slots="2")),
    "stake": ("payout", _command("payouts", network=NETWORK, stake="stk_1")),
    "move": ("payout", _command("payouts", **MOVE)),
    "coin move": ("payout", _command("payouts", **COIN_MOVE)),
    "collect": ("collect", _command("collections", **MOVE)),
    "collect coins": ("collect", _command("collections", **COIN_MOVE)),
}
"""What each consumer is asked, as this version asks it."""


def body_of(asked: str) -> dict[str, Any]:
    client = MagicMock()
    client.send_message_batch.return_value = {}
    ASKED[asked][1](SqsQueues(Settings(stage="test"), client, HandClock(NOW)))
    sent = [call.kwargs for call in (*client.send_message.call_args_list, *client.send_message_batch.call_args_list)]
    (one,) = [each for call in sent for each in call.get("Entries", [call])]
    found: dict[str, Any] = json.loads(one["MessageBody"])
    return found


class Asked:
    """In the place of all services: it notes what a worker asks them for."""

    def __init__(self, worker: str, patch: pytest.MonkeyPatch) -> None:
        self.module = import_module(f"chalicelib.workers.{worker}")
        self.services = MagicMock()
        self.services.settings.stage, self.services.settings.realms = "test", ("test",)
        self.services.clock.now_ms.return_value = NOW
        self.services.balance_booker.return_value = None
        network = SimpleNamespace(id=NETWORK, realm="test", status="active", family="evm", simulated=True)
        self.services.store.catalogue.return_value.network.return_value = network
        self.services.payout_line.take.return_value = None
        patch.setattr(self.module, "services", lambda: self.services)
        if hasattr(self.module, "put_back"):
            patch.setattr(self.module, "put_back", lambda *_: None)

    def by(self, body: dict[str, Any]) -> list[str]:
        """What is asked for a message, without functions that only this call has."""
        self.services.reset_mock()
        self.module.handle(json.dumps(body))
        return [
            f"{name}{[each for each in arguments if not callable(each)]}{more}"
            for name, arguments, more in self.services.mock_calls
        ]


def test_each_consumer_of_a_queue_is_asked() -> None:
    consumers = {each.name.removesuffix("_slow") for each in app.event_sources if type(each).__name__ == "SQSEventConfig"}
    assert {worker for worker, _ in ASKED.values()} == consumers


@pytest.mark.parametrize("asked", sorted(ASKED))
def test_a_member_more_is_passed_over(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    worker, body = Asked(ASKED[asked][0], monkeypatch), body_of(asked)
    done = worker.by(body)
    assert done, "it asks for something"
    assert worker.by({**body, "next": {"a": [1]}, "later": "x"}) == done


@pytest.mark.parametrize("more", [{}, {"network": NETWORK}, {"tenant": "mch_1:test", "id": "x"}, {"realm": "moon"}], ids=str)
@pytest.mark.parametrize("version", ["2", 2, "next"])
@pytest.mark.parametrize("worker", sorted({worker for worker, _ in ASKED.values()}))
def test_a_kind_of_another_version_ends_and_does_nothing(
    worker: str, version: object, more: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked = Asked(worker, monkeypatch)
    with caplog.at_level(logging.WARNING):
        done = asked.by({"version": version, "what": "else", **more})
    assert [one for one in done if not one.startswith("clock")] == []
    assert "is dropped" in caplog.text


@pytest.mark.parametrize("worker", ["payout", "collect"])
@pytest.mark.parametrize("body", [{"network": NETWORK, "transfer": "t_1"}, {"tenant": "mch_1:test", "link": "l_1"}], ids=str)
def test_one_without_a_version_locks_no_group_either(
    worker: str, body: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    Asked(worker, monkeypatch).by(body)
    assert "ALARM" in caplog.text


def test_a_line_that_can_not_be_read_ends_too(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    asked = Asked("payout", monkeypatch)
    asked.services.payout_line.take.side_effect = Unavailable("the store did not answer")
    asked.by({"line": NETWORK})
    assert f"{NETWORK} is not paid yet" in caplog.text


TOO_NEW = TooNew("it has the form 9")


@pytest.mark.parametrize(
    ("error", "comes_back"),
    [
        (TOO_NEW, False),
        (Failures("a run", [TOO_NEW, Failures("a step", [TOO_NEW])]), False),
        (Failures("a run", [TOO_NEW, Unavailable("no answer")]), True),
        (LookupError("it is gone"), True),
    ],
    ids=["newer", "nothing but newer", "another failure too", "gone"],
)
def test_a_message_about_a_record_of_a_newer_version_ends(error: Exception, comes_back: bool) -> None:
    def handle(body: str) -> None:
        if body == "bad":
            raise error

    records = [{"messageId": body, "receiptHandle": "r", "body": body} for body in ("good", "bad")]
    named = [{"itemIdentifier": "bad"}] if comes_back else []
    assert batches.run(SQSEvent({"Records": records}, None), handle) == {"batchItemFailures": named}
