"""A client that is a copy is as good as a new one, and keeps nothing of the one before it."""

from __future__ import annotations

from typing import Any

import botocore.session
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from moto import mock_aws

from infra.local.repairs.clients import repair_clients

STANDARD = Config(retries={"mode": "standard", "total_max_attempts": 3})


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    repair_clients()


def client(service: str = "sqs", config: Config | None = STANDARD, **more: Any) -> Any:
    return botocore.session.get_session().create_client(service, region_name="eu-central-1", config=config, **more)


def test_a_handler_of_one_is_not_called_by_the_next() -> None:
    with mock_aws():
        first, heard = client(), list[str]()
        for event in ("before-call", "before-send"):
            first.meta.events.register(event, lambda **about: heard.append(str(about.get("event_name"))))
        first.list_queues()
        assert heard == ["before-call.sqs.ListQueues", "before-send.sqs.ListQueues"]
        client().list_queues()
        assert len(heard) == 2


def test_each_is_made_with_its_own_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    assert client().meta.service_model.service_name == "sqs"
    assert client("kms").meta.service_model.service_name == "kms"
    assert client(endpoint_url="http://127.0.0.1:1").meta.endpoint_url == "http://127.0.0.1:1"
    assert client().meta.endpoint_url == "https://sqs.eu-central-1.amazonaws.com"
    assert client(config=Config(read_timeout=7)).meta.config.read_timeout == 7
    assert client().meta.config.read_timeout == 60
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "other")
    assert client()._request_signer._credentials.access_key == "other"


def test_the_session_s_own_configuration_counts() -> None:
    session = botocore.session.get_session()
    session.set_default_client_config(Config(user_agent="ours"))
    assert session.create_client("sqs", region_name="eu-central-1").meta.config.user_agent == "ours"
    assert client(config=None).meta.config.user_agent != "ours"


def test_each_begins_with_all_its_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """botocore counts the retries of a client together, and stops when many were in vain."""
    monkeypatch.setattr("time.sleep", lambda _: None)

    def tries() -> int:
        ours, sent = client(), list[int]()

        def broken(**_: Any) -> Any:
            from botocore.awsrequest import AWSResponse

            sent.append(1)
            raw = type("Raw", (), {"stream": lambda *_, **__: iter([b"{}"])})()
            return AWSResponse("https://x", 503, {}, raw)

        ours.meta.events.register("before-send", broken)
        for _ in range(60):
            with pytest.raises(ClientError):
                ours.list_queues()
        return len(sent)

    first = tries()
    assert first < 180, "nothing was counted"
    assert tries() == first
