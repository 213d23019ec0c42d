"""Secrets of nodes in Secrets Manager: how they are stored, read, rotated, and where they never go."""

from __future__ import annotations

import base64
import io
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError, ConnectTimeoutError
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.secretsmanager.models import secretsmanager_backends

from chalicelib import wiring
from chalicelib.chains.node_secrets import AGAIN_MS, MOST_AGE_MS, Withheld
from chalicelib.chains.rpc import Denied, RpcError
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.usecases.catalogue.node_secrets import NodeSecret, encoded
from chalicelib.usecases.ports.changes import Save
from chalicelib.wiring import services
from infra.cli import main
from infra.local.aws import REGION, LocalAws
from tests.support.edge import PREPARED, Edge
from tests.unit.chains.rpc_server import Answer, Server, result, says, server

NAME = "gateway-local-node-alchemy"
IN_URL = f"{{secret:{NAME}}}"
OLD, NEW = "old-pass/word@1", "new-pass/word@2"


@pytest.fixture
def edge(aws: LocalAws) -> Iterator[Edge]:
    made = PREPARED.edge(aws)
    made.keys["admin_live"] = made.new_key(realm="live", level="admin")
    made.keys["client_live"] = made.new_key(realm="live")
    yield made
    secretsmanager_backends[DEFAULT_ACCOUNT_ID][REGION].reset()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The stage of each GetSecretValue, from now on."""
    found: list[str] = []
    send = BaseClient._make_api_call

    def noted(self: BaseClient, operation: str, sent: dict[str, Any]) -> Any:
        if operation == "GetSecretValue":
            found.append(sent.get("VersionStage", ""))
        return send(self, operation, sent)

    monkeypatch.setattr(BaseClient, "_make_api_call", noted)
    return found


def away(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """From now on Secrets Manager does not answer."""
    send = BaseClient._make_api_call

    def fails(self: BaseClient, operation: str, sent: dict[str, Any]) -> Any:
        if self.meta.service_model.service_name == "secretsmanager":
            raise error
        return send(self, operation, sent)

    monkeypatch.setattr(BaseClient, "_make_api_call", fails)


def store(value: str, *origins: str, name: str = NAME) -> None:
    """A new version, as the command node-secret stores it."""
    manager, text = boto3.client("secretsmanager"), encoded(NodeSecret(value, origins))
    try:
        manager.create_secret(Name=name, SecretString=text)
    except manager.exceptions.ResourceExistsException:
        manager.put_secret_value(SecretId=name, SecretString=text)


class Node:
    """A node that takes one password or several, and says by which it was asked."""

    def __init__(self, *taken: str) -> None:
        self.taken = {self._basic(password) for password in taken}
        self.serving: Server | None = None

    @staticmethod
    def _basic(password: str) -> bytes:
        return b"basic " + base64.b64encode(f"user:{password}".encode())

    def takes(self, *passwords: str) -> None:
        self.taken = {self._basic(password) for password in passwords}

    def reply(self, request: Any) -> Answer:
        assert self.serving is not None
        head = {line.partition(b": ")[0].lower(): line.partition(b": ")[2] for line in self.serving.heads[-1].splitlines()}
        sent = head.get(b"authorization", b"").replace(b"Basic", b"basic")
        return says(result(request)) if sent in self.taken else Answer(b"", 401)

    @property
    def origin(self) -> str:
        assert self.serving is not None
        return f"http://127.0.0.1:{self.serving.port}"

    @property
    def url(self) -> str:
        return self.origin.replace("://", f"://user:{IN_URL}@")

    @property
    def asked(self) -> int:
        assert self.serving is not None
        return len(self.serving.asked)


@pytest.fixture
def node() -> Iterator[Node]:
    made = Node(OLD)
    with server(made.reply) as made.serving:
        yield made


def transport(*urls: str, slug: str = "ethereum") -> Any:
    """What functions ask the nodes of a network by."""
    network = replace(services().catalogue("live").networks[slug], rpc_url=urls[0], more_rpc_urls=urls[1:])
    return services().wiring.nodes.rpc(network)


def health_of(url: str) -> Any:
    """What reports tell of a node."""
    network = replace(services().catalogue("live").networks["ethereum"], rpc_url=url)
    return services().wiring.nodes.nodes(network)[0].health


def later(milliseconds: int) -> None:
    services().clock.shift_ms += milliseconds


# The command


@pytest.fixture
def cli(edge: Edge, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    def run(*words: str, typed: str = "") -> tuple[int, str]:
        wiring.forget()
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        capsys.readouterr()
        code = main(["--stage", "local", *words])
        out, err = capsys.readouterr()
        assert typed.strip() == "" or typed.strip() not in out + err
        return code, out if code == 0 else err

    return run


def stages() -> dict[str, str]:
    """The value under each label."""
    manager, found = boto3.client("secretsmanager"), {}
    for version, labels in manager.describe_secret(SecretId=NAME)["VersionIdsToStages"].items():
        value = json.loads(manager.get_secret_value(SecretId=NAME, VersionId=version)["SecretString"])["value"]
        found |= dict.fromkeys(labels, value)
    return found


def test_a_secret_is_made_and_rotated(cli: Callable[..., tuple[int, str]]) -> None:
    code, out = cli("node-secret", "alchemy", "--host", "eth.example", "--host", "http://10.0.0.7:8332", typed=f"{OLD}\n")
    assert (code, json.loads(out)) == (
        0,
        {"secret": NAME, "hosts": ["https://eth.example", "http://10.0.0.7:8332"], "stored": "new", "write": IN_URL},
    )
    kept = boto3.client("secretsmanager").describe_secret(SecretId=NAME)
    assert kept["Tags"] == [{"Key": "gateway-stage", "Value": "local"}]
    assert stages() == {"AWSCURRENT": OLD}
    assert json.loads(cli("node-secret", NAME, typed=NEW)[1])["hosts"] == ["https://eth.example", "http://10.0.0.7:8332"]
    assert stages() == {"AWSCURRENT": NEW, "AWSPREVIOUS": OLD}
    assert json.loads(cli("node-secret", "alchemy", typed=f"{NEW}\r\n")[1])["stored"] == "as it was"
    assert stages() == {"AWSCURRENT": NEW, "AWSPREVIOUS": OLD}, "the version before keeps its label when a command runs twice"
    assert json.loads(cli("node-secret", "alchemy", "--host", "eth.example", typed=NEW)[1])["stored"] == "new version"


def test_two_who_make_it_at_once_both_store_it(cli: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    send, late = BaseClient._make_api_call, []

    def before_us(self: BaseClient, operation: str, sent: dict[str, Any]) -> Any:
        if operation == "CreateSecret" and not late:
            late.append(1)
            store(OLD, "https://eth.example")
        return send(self, operation, sent)

    monkeypatch.setattr(BaseClient, "_make_api_call", before_us)
    assert cli("node-secret", "alchemy", "--host", "eth.example", typed=NEW)[0] == 0
    assert stages() == {"AWSCURRENT": NEW, "AWSPREVIOUS": OLD}


@pytest.mark.parametrize(
    ("words", "typed", "said"),
    [
        (("alchemy",), OLD, "--host"),
        (("alchemy", "--host", "https://eth.example/path"), OLD, "no host"),
        (("Alchemy", "--host", "eth.example"), OLD, "gateway-local-node-"),
        (("gateway-prod-node-alchemy/", "--host", "eth.example"), OLD, "gateway-local-node-"),
        (("alchemy", "--host", "eth.example"), "", "1 to 1000"),
        (("alchemy", "--host", "eth.example"), "two\nlines", "1 to 1000"),
        (("alchemy", "--host", "eth.example"), "a" * 1_001, "1 to 1000"),
    ],
)
def test_what_can_not_be_stored_is_said(cli: Callable[..., tuple[int, str]], words: tuple[str, ...], typed: str, said: str) -> None:
    code, err = cli("node-secret", *words, typed=typed)
    assert code == 1 and said in err and err.count("\n") == 1
    assert boto3.client("secretsmanager").list_secrets()["SecretList"] == []


def test_a_secret_that_is_being_deleted_is_not_taken_for_none(cli: Callable[..., tuple[int, str]]) -> None:
    store(OLD, "https://eth.example")
    boto3.client("secretsmanager").delete_secret(SecretId=NAME)
    code, err = cli("node-secret", "alchemy", typed=NEW)
    assert code == 1 and f"restore-secret --secret-id {NAME}" in err


def test_a_secret_made_by_hand_is_written_over_with_its_hosts(cli: Callable[..., tuple[int, str]]) -> None:
    boto3.client("secretsmanager").create_secret(Name=NAME, SecretString="plain")
    assert cli("node-secret", "alchemy", typed=NEW)[0] == 1
    assert cli("node-secret", "alchemy", "--host", "eth.example", typed=NEW)[0] == 0
    with pytest.raises(ValueError, match="node-secret writes"):
        stages_of_previous()


def stages_of_previous() -> NodeSecret:
    from chalicelib.usecases.catalogue.node_secrets import decoded

    text = boto3.client("secretsmanager").get_secret_value(SecretId=NAME, VersionStage="AWSPREVIOUS")["SecretString"]
    return decoded(text)


# What stands in the clear moves


def test_passwords_move_into_secrets(cli: Callable[..., tuple[int, str]], edge: Edge) -> None:
    key = "k3yOfTheProvider77abc"
    urls = (
        f"https://user:{OLD.replace('/', '%2F').replace('@', '%40')}@one.example:8545/rpc",
        f"https://two.example/v2/{key}",
        f"https://two.example/other/{key}?apikey=anotherKeyOf16chars",
        "https://free.example/v1",
        f"https://done.example/{IN_URL}",
    )
    before = edge.services.store.get(Network, id="live:ethereum")
    edge.services.store.commit(
        [
            Save(
                replace(
                    before,
                    rpc_url=urls[0],
                    more_rpc_urls=urls[1:],
                    ws_url=f"wss://two.example/v2/{key}",
                    version=before.version + 1,
                )
            )
        ]
    )
    code, out = cli("move-node-secrets", "ethereum")
    assert code == 0, out
    prefix = "gateway-local-node-ethereum-"
    assert json.loads(out) == {
        "network": "ethereum",
        "moved": [f"{prefix}one-example", f"{prefix}two-example", f"{prefix}two-example-2"],
        "urls_without_a_secret": 1,
    }
    after = services().store.get(Network, id="live:ethereum")
    assert (after.rpc_url, *after.more_rpc_urls) == (
        f"https://user:{{secret:{prefix}one-example}}@one.example:8545/rpc",
        f"https://two.example/v2/{{secret:{prefix}two-example}}",
        f"https://two.example/other/{{secret:{prefix}two-example}}?apikey={{secret:{prefix}two-example-2}}",
        "https://free.example/v1",
        f"https://done.example/{IN_URL}",
    )
    assert after.ws_url == f"wss://two.example/v2/{{secret:{prefix}two-example}}"
    manager = boto3.client("secretsmanager")
    kept = {
        secret["Name"].removeprefix(prefix): json.loads(manager.get_secret_value(SecretId=secret["Name"])["SecretString"])
        for secret in manager.list_secrets()["SecretList"]
    }
    assert kept == {
        "one-example": {"value": OLD, "origins": ["https://one.example:8545"]},
        "two-example": {"value": key, "origins": ["https://two.example", "wss://two.example"]},
        "two-example-2": {"value": "anotherKeyOf16chars", "origins": ["https://two.example"]},
    }
    assert json.loads(cli("move-node-secrets", "ethereum")[1])["moved"] == []
    assert services().store.get(Network, id="live:ethereum") == after


def test_a_move_that_was_cut_goes_on_and_overwrites_nothing(cli: Callable[..., tuple[int, str]], edge: Edge) -> None:
    before = edge.services.store.get(Network, id="live:tron")
    edge.services.store.commit([Save(replace(before, rpc_url="https://the-key@api.example", version=before.version + 1))])
    store("of something else", "https://else.example", name="gateway-local-node-tron-api-example")
    boto3.client("secretsmanager").put_secret_value(
        SecretId="gateway-local-node-tron-api-example", SecretString=encoded(NodeSecret("another", ("https://else.example",)))
    )
    store("the-key", "https://api.example", name="gateway-local-node-tron-api-example-2")
    assert json.loads(cli("move-node-secrets", "tron")[1])["moved"] == ["gateway-local-node-tron-api-example-2"]
    url = services().store.get(Network, id="live:tron").rpc_url
    assert url == "https://{secret:gateway-local-node-tron-api-example-2}@api.example"
    manager = boto3.client("secretsmanager")
    assert "another" in manager.get_secret_value(SecretId="gateway-local-node-tron-api-example")["SecretString"]
    versions = manager.describe_secret(SecretId="gateway-local-node-tron-api-example-2")["VersionIdsToStages"]
    assert len(versions) == 1


# Over HTTP


def put(edge: Edge, **body: Any) -> Any:
    return edge.call("PUT", "/v1/networks", key="admin_live", json={"network": "ethereum", **body})


def test_the_name_is_shown_and_never_the_value(edge: Edge, node: Node) -> None:
    store(OLD, node.origin)
    assert put(edge, rpcUrl=node.url, status="active").status == 200
    assert transport(node.url).call("eth_chainId") == "0x1"
    shown = edge.call("GET", "/v1/networks/ethereum", key="admin_live")
    assert (shown.json["rpcUrl"], shown.json["rpcUrls"]) == (node.url, [node.url])
    assert edge.services.store.get(Network, id="live:ethereum").rpc_url == node.url
    for text in (shown.body.decode(), edge.call("GET", "/v1/networks", key="admin_live").body.decode()):
        assert OLD not in text
    assert "secret:" not in edge.call("GET", "/v1/networks/ethereum", key="client_live").body.decode()
    plain = "https://user:hunter2@node.example/v3"
    assert put(edge, rpcUrl=plain).json["rpcUrl"] == plain


@pytest.mark.parametrize(
    ("field", "url"),
    [
        ("rpcUrl", "https://evil.example/{secret:gateway-prod-node-alchemy}"),
        ("rpcUrl", "https://evil.example/{secret:prod/database}"),
        ("rpcUrl", "https://evil.example/{secret:gateway-local-webhooks}"),
        ("rpcUrl", "https://evil.example/{secret:arn:aws:secretsmanager:eu-central-1:1:secret:gateway-local-node-a}"),
        ("rpcUrl", f"https://{IN_URL}.evil.example/"),
        ("rpcUrl", f"https://node.example\\@evil.example/{IN_URL}"),
        ("rpcUrl", f"https://evil.example/#{IN_URL}"),
        ("wsUrl", "wss://evil.example/{secret:other}"),
        ("explorerUrl", f"https://evil.example/{IN_URL}"),
        ("rpcUrls", ["https://fine.example", "https://evil.example/{secret:other}"]),
    ],
)
def test_other_secrets_and_other_places_are_refused(edge: Edge, field: str, url: Any) -> None:
    before = edge.services.store.get(Network, id="live:ethereum")
    refused = put(edge, **{field: url})
    assert refused.status == 400
    assert edge.services.store.get(Network, id="live:ethereum") == before


def test_who_sets_urls_can_not_send_a_secret_to_a_place_of_his_own(edge: Edge, node: Node, reads: list[str]) -> None:
    """The admin key is taken over: the URL is stored, and nothing goes there."""
    store(OLD, "https://node.example")
    evil = f"{node.origin}/collect/{IN_URL}"
    assert put(edge, rpcUrl=evil).status == 200
    for url in (evil, node.url, node.origin.replace("://", f"://{IN_URL}@"), f"{node.origin}/?q={IN_URL}"):
        with pytest.raises(Withheld, match=f"{NAME} must not be sent to {node.origin}") as raised:
            transport(url).call("eth_chainId")
        assert OLD not in str(raised.value)
    assert node.asked == 0
    assert reads == ["AWSCURRENT"]


@pytest.mark.parametrize("name", ["gateway-prod-node-alchemy", "database", "prod/database"])
def test_a_record_that_was_written_past_the_rules_reads_no_other_secret(
    edge: Edge, node: Node, reads: list[str], name: str
) -> None:
    boto3.client("secretsmanager").create_secret(Name=name, SecretString=encoded(NodeSecret(OLD, (node.origin,))))
    with pytest.raises(Withheld):
        transport(f"{node.origin}/{{secret:{name}}}").call("eth_chainId")
    assert (reads, node.asked) == ([], 0)


def test_a_stage_without_nodes_takes_no_reference(edge: Edge) -> None:
    from chalicelib.usecases.catalogue.networks import Networks

    edge.services.networks = Networks(edge.services.store, deployed=True)
    assert put(edge, rpcUrl=f"https://node.example/{IN_URL}").status == 400


# Reading it


def test_it_is_read_once_in_five_minutes(edge: Edge, node: Node, reads: list[str]) -> None:
    store(OLD, node.origin)
    asking = transport(node.url)
    assert reads == [], "a cold start reads nothing before a node is asked"
    for _ in range(5):
        assert asking.call("eth_chainId") == "0x1"
    later(MOST_AGE_MS - 30_000)
    assert asking.call("eth_chainId") == "0x1"
    assert reads == ["AWSCURRENT"]
    store(NEW, node.origin)
    node.takes(OLD, NEW)
    later(30_000)
    assert asking.call("eth_chainId") == "0x1"
    assert reads == ["AWSCURRENT"] * 2
    assert base64.b64encode(f"user:{NEW}".encode()) in node.serving.heads[-1], "a new version counts within five minutes"
    assert MOST_AGE_MS < 300_000


def test_a_node_that_refuses_the_old_password_is_asked_with_the_new_one_at_once(edge: Edge, node: Node, reads: list[str]) -> None:
    store(OLD, node.origin)
    asking = transport(node.url)
    assert asking.call("eth_chainId") == "0x1"
    store(NEW, node.origin)
    node.takes(NEW)
    later(AGAIN_MS)
    assert asking.call("eth_chainId") == "0x1"
    assert (reads, node.asked) == (["AWSCURRENT"] * 2, 3)
    assert asking.call("eth_chainId") == "0x1"
    assert (len(reads), node.asked) == (2, 4)


def test_a_node_that_takes_the_old_password_still_gets_it(edge: Edge, node: Node, reads: list[str]) -> None:
    """The operator was quicker than the node."""
    store(OLD, node.origin)
    store(NEW, node.origin)
    asking = transport(node.url)
    assert asking.call("eth_chainId") == "0x1"
    assert (reads, node.asked) == (["AWSCURRENT", "AWSPREVIOUS"], 2)
    for _ in range(3):
        assert asking.call("eth_chainId") == "0x1"
    assert (len(reads), node.asked) == (2, 5), "the refused one is not tried for each request"
    node.takes(NEW)
    assert asking.call("eth_chainId") == "0x1", "now the node has the new one"
    assert node.asked == 7
    later(MOST_AGE_MS)
    assert asking.call("eth_chainId") == "0x1"
    assert node.asked == 8


def test_a_payment_is_sent_once_a_password_is_taken(edge: Edge, node: Node) -> None:
    """Each try before was refused by the server, not by the network."""
    store(OLD, node.origin)
    store(NEW, node.origin)
    assert transport(node.url).call("eth_sendRawTransaction", ["0x01"]) == "0x1"
    assert [asked["method"] for asked in node.serving.asked] == ["eth_sendRawTransaction"] * 2


def test_a_node_that_takes_none_is_asked_no_more_often(edge: Edge, node: Node, reads: list[str]) -> None:
    store(OLD, node.origin)
    store(NEW, node.origin)
    node.takes("a-third-one")
    asking = transport(node.url)
    for _ in range(4):
        with pytest.raises(Denied, match="HTTP 401"):
            asking.call("eth_chainId")
    assert (reads, node.asked) == (["AWSCURRENT", "AWSPREVIOUS"], 2 + 3)
    later(AGAIN_MS)
    store("a-third-one", node.origin)
    assert asking.call("eth_chainId") == "0x1"


def test_the_last_value_goes_on_while_secrets_manager_is_away(
    edge: Edge, node: Node, reads: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store(OLD, node.origin)
    asking = transport(node.url)
    assert asking.call("eth_chainId") == "0x1"
    with monkeypatch.context() as gone:
        away(gone, ClientError({"Error": {"Code": "InternalServiceError"}}, "GetSecretValue"))
        for _ in range(3):
            later(MOST_AGE_MS)
            assert asking.call("eth_chainId") == "0x1"
            assert asking.call("eth_chainId") == "0x1"
    said = [record.getMessage() for record in caplog.records if "can not be read" in record.getMessage()]
    assert said == [f"the secret {NAME} can not be read (InternalServiceError): its last value goes on"] * 3
    store(NEW, node.origin)
    node.takes(NEW)
    later(AGAIN_MS)
    assert asking.call("eth_chainId") == "0x1"


@pytest.mark.parametrize(
    "error",
    [
        ConnectTimeoutError(endpoint_url="https://secretsmanager"),
        ClientError({"Error": {"Code": "AccessDeniedException"}}, "GetSecretValue"),
    ],
)
def test_without_a_value_the_other_node_goes_on(
    edge: Edge, node: Node, monkeypatch: pytest.MonkeyPatch, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    store(OLD, node.origin)
    with server(lambda request: says(result(request, "0x2"))) as other:
        asking = transport(node.url, f"http://127.0.0.1:{other.port}")
        with monkeypatch.context() as gone:
            away(gone, error)
            assert asking.call("eth_chainId") == "0x2"
        assert "node 1 is left alone" in caplog.text and "node 2" not in caplog.text
        assert asking.call("eth_chainId") == "0x2"
        later(AGAIN_MS)
        alone = transport(node.url)
        assert alone.call("eth_chainId") == "0x1", "it is tried again"


def test_a_missing_or_broken_secret_is_a_node_that_fails(edge: Edge, node: Node, reads: list[str]) -> None:
    asking = transport(node.url)
    for _ in range(3):
        with pytest.raises(Withheld, match=f"{NAME} can not be read: ResourceNotFoundException"):
            asking.call("eth_chainId")
    assert reads == ["AWSCURRENT"], "it is not looked for with each request"
    told = health_of(node.url).asked()
    assert (told.failed, told.trouble) == (3, f"the secret {NAME} can not be read")
    boto3.client("secretsmanager").create_secret(Name=NAME, SecretString="plain hunter2")
    later(AGAIN_MS)
    with pytest.raises(Withheld, match="not in the form") as raised:
        asking.call("eth_chainId")
    assert "hunter2" not in str(raised.value)
    assert node.asked == 0


def test_what_a_node_says_does_not_tell_the_secret(edge: Edge, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    secret = "s3cr3t/x"
    quoted = "s3cr3t%2Fx"

    def echo(request: Any) -> Answer:
        error = {"code": -32000, "message": f"no such block for key v1{secret} at /v1{quoted} for {secret}"}
        return says({"jsonrpc": "2.0", "id": request["id"], "error": error})

    with server(echo) as serving:
        origin = f"http://127.0.0.1:{serving.port}"
        store(secret, origin)
        asking = transport(f"{origin}/v1{IN_URL}")
        with pytest.raises(RpcError) as raised:
            asking.call("eth_getBlockByNumber", ["0x1", False])
        assert serving.heads[0].startswith(f"POST /v1{quoted} ".encode())
    told = repr((health_of(f"{origin}/v1{IN_URL}").name, health_of(f"{origin}/v1{IN_URL}").asked()))
    for text in (str(raised.value), repr(raised.value), repr(asking), caplog.text, told):
        assert secret not in text and quoted not in text
    assert "***" in str(raised.value)


def test_a_scan_goes_on_with_the_other_node(edge: Edge, node: Node) -> None:
    """The reader of a poll, two nodes: of the first the secret is not there."""
    answers = {
        "eth_chainId": "0x1",
        "eth_blockNumber": "0x10",
        "eth_getBlockByNumber": {
            "number": "0x10",
            "hash": "0x" + "ab" * 32,
            "parentHash": "0x" + "aa" * 32,
            "timestamp": "0x65000000",
        },
    }

    def reply(request: Any) -> Answer:
        many = request if isinstance(request, list) else [request]
        told = [result(each, answers[each["method"]]) for each in many]
        return says(told if isinstance(request, list) else told[0])

    with server(reply) as other:
        network = replace(
            services().catalogue("live").networks["ethereum"],
            rpc_url=node.url,
            more_rpc_urls=(f"http://127.0.0.1:{other.port}",),
            agreement_usd=1000,
        )
        reader = services().wiring.chains.live_reader(network)
        assert reader.tip() == 16
        assert node.asked == 0
        assert services().wiring.nodes.nodes(network)[0].health.asked().trouble == f"the secret {NAME} can not be read"


def test_trons_key_is_a_header(edge: Edge) -> None:
    with server(lambda request: Answer(b"{}")) as serving:
        origin = f"http://127.0.0.1:{serving.port}"
        store("the-key-of-tron", origin)
        network = replace(services().catalogue("live").networks["tron"], rpc_url=origin.replace("://", f"://{IN_URL}@"))
        services().wiring.nodes.rpc(network).call("wallet/getnowblock")
    assert b"tron-pro-api-key: the-key-of-tron" in serving.heads[0].lower()


def test_a_refused_key_of_tron_is_tried_with_the_one_before(edge: Edge) -> None:
    def reply(request: Any) -> Answer:
        return Answer(b"{}") if b"key: before" in serving.heads[-1].lower() else Answer(b"", 403)

    with server(reply) as serving:
        origin = f"http://127.0.0.1:{serving.port}"
        store("before", origin)
        store("after", origin)
        network = replace(services().catalogue("live").networks["tron"], rpc_url=origin.replace("://", f"://{IN_URL}@"))
        asking = services().wiring.nodes.rpc(network)
        assert asking.call("wallet/getnowblock") == {}
        assert asking.batch([("wallet/getnowblock", {}), ("wallet/getblock", {})]) == [{}, {}]
    assert len(serving.asked) == 4
