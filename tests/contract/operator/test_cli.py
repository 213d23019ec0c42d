"""The operator's command line, from an empty AWS on: what each command leaves behind, says, and refuses."""

from __future__ import annotations

import importlib
import io
import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.secretsmanager.models import secretsmanager_backends

from chalicelib import wiring
from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.catalogue import NETWORK_ORDER, Network
from chalicelib.domain.chain import Cursor
from chalicelib.domain.ids import NetworkId, tenant_id
from chalicelib.domain.withdrawals.fee_budget import FeeBudget
from chalicelib.settings import STAGES, TABLES
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.recovery.deposit_migration import DepositMigration, Migration
from infra.cli import main
from infra.local.aws import REGION, LocalAws
from infra.local.nodes import Anvil, mine
from infra.local.pump import drain
from tests.support.signing import enabled
from tests.support.stack import Client

ETHEREUM = NetworkId("live:ethereum")


class Cli:
    """Runs commands; `out` and `err` are what the last one said."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.out = self.err = ""

    def __call__(self, *words: str) -> int:
        wiring.forget()  # every command is a process of its own
        self._capsys.readouterr()
        code = main(["--stage", "local", *words])
        self.out, self.err = self._capsys.readouterr()
        return code

    def json(self, *words: str) -> Any:
        assert self(*words) == 0, self.err
        return json.loads(self.out)

    def refused(self, *words: str) -> str:
        """The one line that the operator reads."""
        assert self(*words) == 1
        assert self.out == ""
        assert self.err.count("\n") == 1
        return self.err.strip()


@pytest.fixture
def bare(aws: LocalAws, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Tables, queues and keys, and nothing in them."""
    return Cli(capsys)


@pytest.fixture
def cli(bare: Cli) -> Cli:
    assert bare("prepare") == 0, bare.err
    return bare


def rows(table: str) -> list[str]:
    """Everything in a table, in one order."""
    found = boto3.client("dynamodb").scan(TableName=f"gateway-local-{table}")["Items"]
    return sorted(json.dumps(item, sort_keys=True, default=str) for item in found)


def ask(path: str, key: str) -> int:
    from app import app

    wiring.forget()
    return Client(app).call("GET", path, key).status


def test_prepare_again_changes_nothing(cli: Cli) -> None:
    tables = ("chain", "custody", "tenants", "records", "ledger", "work")

    def paid() -> list[str]:
        """What was paid on the simulated chains; their blocks may go on."""
        return [row for row in rows("sandbox") if '\\"tx\\"' in row]

    first, funding = {table: rows(table) for table in tables}, paid()
    assert len(funding) > 8  # every simulated hot wallet, in every coin
    assert len(first["chain"]) > 50
    assert len(first["custody"]) == 1  # the seed
    assert first["tenants"] == first["records"] == []
    assert cli("prepare") == 0
    assert cli.out == "stage local is prepared\n"
    assert {table: rows(table) for table in tables} == first
    assert paid() == funding


def test_after_prepare_every_simulated_network_is_scanned(cli: Cli) -> None:
    store = wiring.services().store
    cursors = {slug: store.get(Cursor, network=NetworkId(f"test:{slug}")) for slug in NETWORK_ORDER}
    assert all(cursors.values())
    assert store.get(Cursor, network=ETHEREUM) is None


def test_a_key_works_until_it_is_revoked(cli: Cli) -> None:
    shop = cli.json("merchant", "Shop")
    assert shop["name"] == "Shop"
    made = cli.json("key", shop["merchant"], "--realm", "test", "--permissions", "read-only,invoices:create", "--name", "till")
    assert made == {"key": made["key"], "realm": "test", "level": "client"}
    assert ask("/v1/balances", made["key"]) == 200

    assert cli("keys", shop["merchant"]) == 0
    (line,) = cli.out.splitlines()
    key_id = line.split()[0]
    assert made["key"][:12] in line
    assert made["key"] not in line
    assert "valid" in line
    assert "till" in line

    assert cli("revoke", shop["merchant"], key_id) == 0
    assert cli.out == f"{key_id} is revoked\n"
    assert ask("/v1/balances", made["key"]) == 401
    assert cli("keys", shop["merchant"]) == 0
    assert "revoked" in cli.out


def test_a_key_may_only_what_it_was_made_for(cli: Cli) -> None:
    shop = cli.json("merchant", "Shop")["merchant"]
    reads = cli.json("key", shop, "--realm", "test", "--permissions", "balances:read")["key"]
    elsewhere = cli.json("key", shop, "--realm", "test", "--ip", "203.0.113.0/24")["key"]
    admin = cli.json("key", shop, "--realm", "test", "--level", "admin")["key"]
    assert (ask("/v1/balances", reads), ask("/v1/invoices/getAll", reads)) == (200, 403)
    assert ask("/v1/balances", elsewhere) == 403
    assert (ask("/v1/withdraws", reads), ask("/v1/withdraws", admin)) == (403, 200)


def test_what_is_wrong_is_said_in_one_line(cli: Cli) -> None:
    shop = cli.json("merchant", "Shop")["merchant"]
    before = rows("tenants")
    assert cli.refused("key", "mch_unknown", "--realm", "test") == "there is no merchant mch_unknown"
    assert "balances:steal" in cli.refused("key", shop, "--realm", "test", "--permissions", "balances:steal")
    assert "300.1.2.3" in cli.refused("key", shop, "--realm", "test", "--ip", "300.1.2.3")
    assert cli.refused("keys", "mch_unknown") == "there is no merchant mch_unknown"
    assert cli.refused("revoke", shop, "key_unknown") == f"merchant {shop} has no key key_unknown"
    assert "--rpc-url" in cli.refused("network", "ethereum")
    assert "EVM" in cli.refused("book-balances", "bitcoin")
    assert "reached" in cli.refused("network", "bitcoin", "--rpc-url", "http://127.0.0.1:1")
    assert "URL" in cli.refused("network", "ethereum", "--rpc-url", "somewhere")
    assert "not halted" in cli.refused("resume", "ethereum", "--realm", "test")
    assert "no node" in cli.refused("resume", "bitcoin")
    assert rows("tenants") == before


def test_a_dead_node_is_not_activated(cli: Cli) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers, and nobody else can
        said = cli.refused("network", "ethereum", "--rpc-url", f"http://127.0.0.1:{taken.getsockname()[1]}")
    assert "can not be reached" in said
    network = wiring.services().store.get(Network, id=ETHEREUM)
    assert network is not None
    assert network.status == "inactive"


def test_a_stage_that_is_not_prepared_says_so(bare: Cli) -> None:
    assert "prepare" in bare.refused("network", "ethereum", "--rpc-url", "http://127.0.0.1:1")
    assert "prepare" in bare.refused("resume", "ethereum")


@pytest.mark.parametrize("words", [("merchant", "Shop"), ("prepare",)])
def test_what_aws_refuses_is_said_in_one_line(cli: Cli, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = {"Error": {"Code": "AccessDeniedException", "Message": "User is not authorized\nto do this"}}

    def refuse(self: BaseClient, operation: str, sent: Any) -> Any:
        raise ClientError(refusal, operation)

    monkeypatch.setattr(BaseClient, "_make_api_call", refuse)
    assert "User is not authorized to do this" in cli.refused(*words)


@pytest.mark.parametrize("words", [[], ["prepare"], ["--stage", "production", "prepare"], ["--stage", "prod"]])
def test_a_stage_and_a_command_have_to_be_named(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_stages_are_those_of_chalice() -> None:
    from tests.deploy.declared import config

    assert set(config()["stages"]) == set(STAGES)


def test_audit(cli: Cli) -> None:
    assert cli("audit") == 0
    assert cli.out == "the books are whole\n"
    # The simulated hot wallets were funded: let the funding be counted, then let somebody change a balance by hand.
    from app import app

    drain(app, hurry=True)
    assert cli("audit") == 0, cli.out
    dynamodb = boto3.client("dynamodb")
    balance = next(i for i in dynamodb.scan(TableName="gateway-local-ledger")["Items"] if i["pk"]["S"].startswith("wal#"))
    key = {"pk": balance["pk"], "sk": balance["sk"]}
    changed = {**balance, "units": {"N": str(int(balance["units"]["N"]) + 1)}}
    dynamodb.put_item(TableName="gateway-local-ledger", Item=changed)
    assert cli("audit") == 1
    *sentences, last = cli.out.splitlines()
    assert last == f"{len(sentences)} violations"
    assert len(sentences) >= 1
    assert dynamodb.get_item(TableName="gateway-local-ledger", Key=key)["Item"] == changed  # it repairs nothing


@pytest.fixture
def halted(cli: Cli) -> Callable[[], Cursor]:
    """The simulated ethereum after a reorganisation that was too deep to follow."""
    store, network = wiring.services().store, NetworkId("test:ethereum")
    cursor = store.get(Cursor, network=network)
    assert cursor is not None
    store.commit([Save(replace(cursor, halted="too deep", version=cursor.version + 1))])

    def now() -> Cursor:
        found = wiring.services().store.get(Cursor, network=network)
        assert found is not None
        return found

    return now


def test_a_halted_network_is_taken_up_again(cli: Cli, halted: Callable[[], Cursor]) -> None:
    before = halted()
    oldest = min(map(int, before.recent))
    refused = cli.refused("resume", "ethereum", "--realm", "test", "--from-block", str(oldest + 1))
    most = max(0, oldest - 1)
    assert refused == f"--from-block {oldest + 1} is too high: at most {most}, the block before the oldest that is remembered"
    assert halted() == before
    assert cli("resume", "ethereum", "--realm", "test", "--from-block", str(most)) == 0
    assert cli.out == f"test:ethereum goes on behind block {most}\n"
    after = halted()
    assert (after.halted, after.number, after.epoch) == (None, most, before.epoch + 1)
    assert "not halted" in cli.refused("resume", "ethereum", "--realm", "test")


def test_scanned_blocks_are_looked_at_again(cli: Cli) -> None:
    cursor = wiring.services().store.get(Cursor, network=NetworkId("test:ethereum"))
    assert cursor is not None
    (ordered,) = cli.json("rescan", "ethereum", "--realm", "test", "--from-block", "0", "--to-block", str(cursor.number))
    assert (ordered["from_block"], ordered["to_block"]) == (0, cursor.number)
    (work,) = [work for work in wiring.services().store.every_work() if work.kind == "rescan"]
    assert work.id == ordered["id"]
    refused = cli.refused("rescan", "ethereum", "--realm", "test", "--from-block", str(cursor.number + 1))
    assert refused == f"test:ethereum: nothing from block {cursor.number + 1} on was scanned yet"


def test_records_of_an_older_version_are_brought_up_to_date(cli: Cli) -> None:
    """What it does to them is in tests/nodes/test_deep_reorganisations.py. A new stage has none."""
    for words in ((), ("--again",)):
        assert cli("migrate", *words) == 0
        assert cli.out == "deposits: 0 blocks listed by height, the logs of 0 transactions claimed\n"
    assert cli("migrate") == 0
    assert cli.out == "deposits: migrated before; migrate --again looks at all of them once more\n"


def test_what_a_migration_could_not_do_is_no_success(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    done = Migration(blocks=3, claimed=2, left={NetworkId("live:bsc"): 1})
    monkeypatch.setattr(DepositMigration, "run", lambda self, tell, **_: done)
    assert cli("migrate") == 1
    assert cli.out == "deposits: 3 blocks listed by height, the logs of 2 transactions claimed\n"
    assert cli.err.startswith("live:bsc: 1 token transactions are left: its node is away")


@pytest.fixture(scope="module")
def anvil() -> Iterator[Anvil]:
    with Anvil(1) as node:
        mine(node.rpc, 5)
        yield node


@pytest.mark.nodes
def test_a_network_is_connected_to_a_node_and_put_to_rest(cli: Cli, anvil: Anvil) -> None:
    assert cli("network", "ethereum", "--rpc-url", anvil.url) == 0, cli.err
    assert cli.out == "ethereum is active\n"
    store = wiring.services().store
    network, cursor = store.get(Network, id=ETHEREUM), store.get(Cursor, network=ETHEREUM)
    wallet = store.get(Wallet, network=ETHEREUM, role="hot")
    assert network is not None
    assert cursor is not None
    assert wallet is not None
    assert (network.status, network.rpc_url) == ("active", anvil.url)
    assert cursor.number == int(anvil.rpc.call("eth_blockNumber"), 16)
    assert cursor.hash == anvil.rpc.call("eth_getBlockByNumber", [hex(cursor.number), False])["hash"]
    assert any(wallet.address.lower() in row for row in rows("chain") if "watch#live#evm" in row)

    shop = cli.json("merchant", "Shop")["merchant"]
    key = cli.json("key", shop, "--realm", "live")["key"]
    assert ask("/v1/networks/ethereum", key) == 200

    mine(anvil.rpc, 3)
    assert cli("network", "ethereum", "--status", "inactive") == 0
    assert cli("network", "ethereum") == 0  # the URL is known by now
    again = wiring.services().store.get(Cursor, network=ETHEREUM)
    assert again is not None
    assert again.number == cursor.number  # what came meanwhile is scanned, not skipped
    assert wiring.services().store.get(Wallet, network=ETHEREUM, role="hot") == wallet


@pytest.fixture
def no_secrets_left() -> Iterator[None]:
    yield
    secretsmanager_backends[DEFAULT_ACCOUNT_ID][REGION].reset()


@pytest.mark.nodes
def test_a_network_is_connected_to_a_node_by_a_secret(
    cli: Cli, anvil: Anvil, monkeypatch: pytest.MonkeyPatch, no_secrets_left: None
) -> None:
    url = f"{anvil.url}/?key={{secret:gateway-local-node-anvil}}"
    assert "gateway-local-node-anvil can not be read" in cli.refused("network", "ethereum", "--rpc-url", url)
    monkeypatch.setattr("sys.stdin", io.StringIO("k3yOfTheProvider77\n"))
    assert cli("node-secret", "anvil", "--host", "eth.example") == 0, cli.err
    assert f"must not be sent to {anvil.url}" in cli.refused("network", "ethereum", "--rpc-url", url)
    monkeypatch.setattr("sys.stdin", io.StringIO("k3yOfTheProvider77\n"))
    assert cli("node-secret", "anvil", "--host", anvil.url) == 0, cli.err
    assert cli("network", "ethereum", "--rpc-url", url) == 0, cli.err
    network = wiring.services().store.get(Network, id=ETHEREUM)
    assert network is not None
    assert (network.status, network.rpc_url) == ("active", url)
    assert not [row for table in TABLES for row in rows(table) if "k3yOfTheProvider77" in row]
    assert "gateway-local-node-NAME" in cli.refused("network", "ethereum", "--rpc-url", url.replace("local-node", "prod-node"))


@pytest.mark.nodes
def test_a_node_of_another_chain_is_not_taken(cli: Cli, anvil: Anvil) -> None:
    assert "chain" in cli.refused("network", "bsc", "--rpc-url", anvil.url)
    network = wiring.services().store.get(Network, id=NetworkId("live:bsc"))
    assert network is not None
    assert network.status == "inactive"


def test_the_operator_sets_what_it_bears_of_a_merchants_fees(cli: Cli) -> None:
    owner = cli.json("merchant", "Busy Inc.")["merchant"]
    who = boto3.client("sts").get_caller_identity()["Arn"]
    said = cli.json("fee-budget", owner, "--realm", "live", "--usd", "2000")
    assert said == {"merchant": owner, "realm": "live", "usd": 2000, "default": False, "by": who}
    store = wiring.services().store
    found = store.get(FeeBudget, tenant=tenant_id(owner, "live"))
    assert found is not None and (found.usd, found.by, found.version) == (2000, who, 1)
    assert store.get(FeeBudget, tenant=tenant_id(owner, "test")) is None
    assert cli.json("fee-budget", owner, "--realm", "live", "--default")["usd"] == 500
    found = store.get(FeeBudget, tenant=tenant_id(owner, "live"))
    assert found is not None and (found.usd, found.version) == (None, 2)
    assert cli.refused("fee-budget", "mch_nobody", "--realm", "live", "--usd", "1") == "there is no merchant mch_nobody"
    assert "from 0 to 999999" in cli.refused("fee-budget", owner, "--realm", "live", "--usd", "-1")


def test_the_operator_takes_lost_signers_away(cli: Cli) -> None:
    owner = cli.json("merchant", "Lost Inc.")["merchant"]
    key = cli.json("key", owner, "--realm", "test")["key"]
    client = Client(importlib.import_module("app").app)

    def send(body: dict[str, Any]) -> Any:
        return client.call("PUT", "/v1/merchant/settings", key, json=body)

    enabled(send, "0")
    assert cli.refused("multisig-reset", "mch_nobody", "--realm", "test") == "there is no merchant mch_nobody"
    assert "there are no signers" in cli.refused("multisig-reset", owner, "--realm", "live")
    said = cli.json("multisig-reset", owner, "--realm", "test")
    who = boto3.client("sts").get_caller_identity()["Arn"]
    assert said == {"merchant": owner, "realm": "test", "revision": 2, "by": who, "signers": ["alice", "bob", "carol"]}
    settings = wiring.services().merchant_settings.get(tenant_id(owner, "test"))
    assert not settings.multisig.enabled
    assert settings.updated_by == who
    assert [(r.by, r.signers, r.at) for r in settings.resets] == [(who, ("alice", "bob", "carol"), settings.updated_at)]
    # The merchant goes on, and what is noted stays.
    enabled(send, "1")
    again = wiring.services().merchant_settings.get(tenant_id(owner, "test"))
    assert (again.version, again.resets) == (3, settings.resets)
