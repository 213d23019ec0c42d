"""An empty store, the seed, the chain: every address is found again, none is given out twice, and what lies there is credited.

Through the operator's commands alone, on the simulated networks; tests/nodes/test_restoring_nodes.py has real ones.
"""

from __future__ import annotations

import base64
import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from chalicelib import wiring
from chalicelib.custody.records import EncryptedSeed
from chalicelib.custody.seed import SEED_ID, account_xpubs
from chalicelib.domain.addresses.addresses import Address, Watched, Xpub
from chalicelib.domain.addresses.index_pools import INDEXES, STEP
from chalicelib.domain.ids import MerchantId, tenant_id
from chalicelib.domain.recovery.addresses import Restore
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.recovery import addresses as module
from chalicelib.wiring import services
from infra.cli import main
from infra.deployment.bucket import make_bucket
from infra.deployment.lock import locked
from tests.support.index_pools import forget, parameter, recorded, row, shrink
from tests.support.lost import lose_the_store
from tests.support.stack import Stack

GAP = ("--gap", "160", "--margin", "20")
CEILING = 250


class Operator:
    """Runs commands. Each is a process of its own."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.said = self.sorry = ""

    def __call__(self, *words: str) -> int:
        wiring.forget()
        self._capsys.readouterr()
        code = main(["--stage", "local", *words])
        self.said, self.sorry = self._capsys.readouterr()
        wiring.forget()
        return code

    def json(self, *words: str) -> Any:
        assert self(*words) == 0, self.sorry
        return json.loads(self.said)


@pytest.fixture
def operator(stack: Stack, capsys: pytest.CaptureFixture[str]) -> Iterator[Operator]:
    yield Operator(capsys)
    wiring.forget()


def make(stack: Stack, network: str = "ethereum", key: str = "client_test", status: int = 201) -> Any:
    answer = stack.call("POST", "/v1/addresses", key if key.startswith("sk_") else stack.keys[key], json={"network": network})
    assert answer.status == status, answer.body
    return answer.json


def skip(pool: str, count: int) -> None:
    """Functions that took indexes and died."""
    services().store.reserve_indexes(f"test:{pool}", count)
    wiring.forget()


def pay(network: str, coin: str, address: str, units: int = 10**9) -> int:
    catalogue = services().catalogue("test")
    found = catalogue.coins[network, coin]
    return int(services().sandbox.deposit(found.network, address, found, units)["blockNumber"])


def watched_of(pool: str) -> dict[str, Watched]:
    return {w.address: w for w in services().store.every(Watched) if w.realm == "test" and w.family == pool and w.role == "user"}


def test_every_address_is_found_and_none_is_given_out_twice(stack: Stack, operator: Operator, tmp_path: Path) -> None:
    backup = tmp_path / "seed.json"
    shrink(CEILING)
    assert operator("seed-backup", str(backup)) == 0, operator.sorry
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    first, unpaid = make(stack)["address"], make(stack)["address"]
    skip("evm", 110)  # more than one range is gone
    far = make(stack, "polygon")["address"]
    coins = {slug: make(stack, slug)["address"] for slug in ("bitcoin", "litecoin", "tron")}
    pay("ethereum", "usdt", first)
    pay("polygon", "matic", far, 7 * 10**18)
    for slug, coin in (("bitcoin", "btc"), ("litecoin", "ltc"), ("tron", "usdt")):
        pay(slug, coin, coins[slug])
    before = {pool: services().store.indexes_taken(f"test:{pool}") for pool in ("evm", "bitcoin", "litecoin", "tron")}
    assert before["evm"] == 210

    lose_the_store()
    assert operator("seed-restore", str(backup)) == 0, operator.sorry
    owner = operator.json("merchant", "The operator")["merchant"]
    key = operator.json("key", owner, "--realm", "test", "--level", "admin")["key"]
    make(stack, key=key, status=500)  # nothing is given out before the old ones are known
    told = operator.json("restore", "--realm", "test", "--merchant", owner, *GAP)
    assert told["pools"]["evm"] == {"given_out": True, "next_index": CEILING}
    assert recorded("evm") == CEILING + STEP
    assert "test:polygon: index 250 of 321" in operator.sorry  # it goes on behind what was found, and says how far it is
    found = {row["network"]: (row["found"], row["highest_index"], row["holding"]) for row in told["networks"]}
    assert found["test:polygon"] == (1, 160, 1)
    assert found["test:ethereum"] == (1, 0, 1)
    assert found["test:bitcoin"] == found["test:litecoin"] == found["test:tron"] == (1, 0, 1)
    assert found["test:bsc"] == (0, -1, 0)

    listed = stack.call("GET", "/v1/addresses", key, query={"limit": "100"}).json["data"]
    assert {each["address"] for each in listed} == {first, far, *coins.values()}
    assert {(each["label"], each["metadata"]["restored"]) for each in listed} == {("restored", "holding")}
    # Given out and not paid yet: hidden, and watched all the same.
    hidden = stack.call("GET", f"/v1/addresses/{unpaid}", key).json
    assert hidden["archived"] is True
    evm = watched_of("evm")
    assert len(evm) == CEILING
    assert {row.networks for row in evm.values()} == {("ethereum", "bsc", "polygon", "arbitrum", "fantom")}

    fresh = make(stack, key=key)["address"]
    assert fresh.lower() not in evm
    bitcoins = set(watched_of("bitcoin"))
    assert make(stack, "bitcoin", key)["address"] not in bitcoins

    for slug in ("ethereum", "polygon", "bitcoin", "tron"):
        operator.json("rescan", slug, "--realm", "test", "--from-block", "0")
    pay("ethereum", "eth", unpaid, 10**18)
    for slug in ("ethereum", "polygon", "bitcoin", "tron"):
        services().sandbox.blocks(services().catalogue("test").networks[slug].id, 130)
    stack.drain(only=tuple(f"poll_{slug}" for slug in ("ethereum", "polygon", "bitcoin", "tron")), rounds=8)
    balances = stack.call("GET", "/v1/balances", key).json["data"]
    have = {(b["network"], b["coin"]): b["available"] for b in balances}
    assert have == {
        ("ethereum", "usdt"): "1000", ("ethereum", "eth"): "1", ("polygon", "matic"): "7", ("bitcoin", "btc"): "10",
        ("tron", "usdt"): "1000",
    }  # fmt: skip
    assert audit(services().store) == []

    # Once more finds nothing new: an address is stored once, and a pool never goes back.
    shrink(CEILING + 50, "evm")
    again = operator.json("restore", "--realm", "test", "--merchant", owner, "--network", "ethereum", *GAP)
    assert "ethereum" not in again["pools"]["evm"]["not_searched"]  # the others were not searched so far up
    assert services().store.indexes_taken("test:evm") == CEILING + 50
    assert len(watched_of("evm")) == CEILING + 50


# The sweep: the restore above finds an address behind unpaid ones, too, and stays.
@pytest.mark.sweep
def test_a_paid_address_behind_many_unpaid_ones_stays_its_own(stack: Stack, operator: Operator, tmp_path: Path) -> None:
    """2,100 unpaid addresses are two minutes of one key, and gap and margin are 1,000: here a tenth of each."""
    backup = tmp_path / "seed.json"
    shrink(300)
    assert operator("seed-backup", str(backup)) == 0, operator.sorry
    skip("evm", 210)
    paid = make(stack)["address"]
    pay("ethereum", "usdt", paid)

    lose_the_store()
    assert operator("seed-restore", str(backup)) == 0, operator.sorry
    owner = operator.json("merchant", "The operator")["merchant"]
    told = operator.json("restore", "--realm", "test", "--merchant", owner, "--gap", "100", "--margin", "100")
    key = operator.json("key", owner, "--realm", "test", "--level", "client", "--permissions", "full")["key"]
    skip("evm", max(0, 210 - told["pools"]["evm"]["next_index"]))
    assert make(stack, key=key)["address"] != paid
    assert paid.lower() in watched_of("evm")
    assert {n["network"]: n["found"] for n in told["networks"]}["test:ethereum"] == 1


def test_without_the_parameter_nobody_guesses(stack: Stack, operator: Operator, tmp_path: Path) -> None:
    backup = tmp_path / "seed.json"
    assert operator("seed-backup", str(backup)) == 0, operator.sorry
    lose_the_store()
    for pool in ("evm", "bitcoin", "litecoin", "tron"):
        forget(pool)
    assert operator("seed-restore", str(backup)) == 0, operator.sorry
    owner = operator.json("merchant", "The operator")["merchant"]
    words = ("restore", "--realm", "test", "--merchant", owner, "--network", "tron")
    assert operator(*words) == 1
    assert parameter("tron") in operator.sorry
    assert "--below N" in operator.sorry
    assert row("tron").closed
    told = operator.json(*words, "--below", "120", "--gap", "5")
    assert told["pools"]["tron"] == {"given_out": True, "next_index": 120}
    assert recorded("tron") == 120 + STEP
    assert len(watched_of("tron")) == 120
    # What the parameter says is not talked down.
    assert operator(*words, "--below", "60") == 1
    assert str(120 + STEP) in operator.sorry


def test_a_pool_that_was_never_used_reopens_at_the_parameter_all_the_same(stack: Stack, operator: Operator, tmp_path: Path) -> None:
    """Nothing is asked there, by the operator's word; a wrong word gives no index out twice."""
    backup = tmp_path / "seed.json"
    shrink(40)
    assert operator("seed-backup", str(backup)) == 0, operator.sorry
    address = make(stack, "tron")["address"]
    lose_the_store()
    assert operator("seed-restore", str(backup)) == 0, operator.sorry
    owner = operator.json("merchant", "The operator")["merchant"]
    words = ("restore", "--realm", "test", "--merchant", owner, "--network", "litecoin", "--gap", "5", "--never-used", "tron")
    told = operator.json(*words)
    assert told["pools"]["tron"] == told["pools"]["litecoin"] == {"given_out": True, "next_index": 40}
    key = operator.json("key", owner, "--realm", "test", "--level", "client", "--permissions", "full")["key"]
    assert make(stack, "tron", key)["address"] != address


def test_a_restore_that_dies_goes_on_where_it_was(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        pay("ethereum", "eth", make(stack)["address"])
        skip("evm", 10)
    monkeypatch.setattr(module, "WINDOW", 30)
    store = services().store
    everything = {row.address for row in store.every(Watched) if row.role == "user"}
    owner = tenant_id(MerchantId("mch_0restored"), "test")
    network = services().catalogue("test").networks["ethereum"]
    lost = [row for row in store.every(Watched) if row.role == "user"]
    assert len(everything) == len(lost) == 3
    _forget(lost)

    deaths = 0
    for _ in range(90):
        wiring.forget()
        commit, left = services().store.commit, [deaths % 3 + 1]

        def dies(changes: Any, commit: Any = commit, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise Unavailable("cut")
            commit(changes)

        restorer = services().restorer(network, owner)
        with monkeypatch.context() as patch:
            patch.setattr(services().store, "commit", dies)
            try:
                done = list(restorer.steps(restorer.begin(70, 20)))
            except Unavailable:
                deaths += 1
                continue
        break
    assert deaths > 5
    last = services().store.get(Restore, network=network.id)
    assert last is not None
    assert (last.found, last.holding, last.highest, last.watched, last.done) == (3, 3, 120, 141, True), done
    assert everything <= {row.address for row in services().store.every(Watched) if row.role == "user"}
    assert len(watched_of("evm")) == 141


def _forget(rows: list[Watched]) -> None:
    import boto3

    for each in rows:
        key = {"pk": {"S": f"watch#{each.realm}#{each.family}#{each.address}"}, "sk": {"S": "-"}}
        boto3.client("dynamodb").delete_item(TableName="gateway-local-chain", Key=key)


def test_what_another_network_finds_later_is_listed(stack: Stack, operator: Operator) -> None:
    """The first network hides it as never paid; the second one knows better."""
    shrink(60)
    address = make(stack)["address"]
    pay("polygon", "matic", address)
    _forget([row for row in services().store.every(Watched) if row.role == "user"])
    owner = operator.json("merchant", "The operator")["merchant"]
    tenant = tenant_id(owner, "test")

    def state() -> tuple[bool, Any]:
        (row,) = [w for w in services().store.every(Watched) if w.address == address.lower()]
        found = services().store.get(Address, tenant=tenant, id=str(row.address_id))
        assert found is not None
        return found.archived, found.metadata["restored"]

    for slug, expected in (("ethereum", (True, "unused")), ("polygon", (False, "holding"))):
        told = operator.json("restore", "--realm", "test", "--merchant", owner, "--network", slug, "--gap", "5", "--margin", "3")
        assert state() == expected
        assert told["pools"]["evm"]["given_out"] is False
    # Both were searched as far as addresses were given out.
    assert told["pools"]["evm"]["not_searched"] == ["bsc", "arbitrum", "fantom"]
    told = operator.json(
        *("restore", "--realm", "test", "--merchant", owner, "--network", "bsc", "--network", "ethereum", "--gap", "5"),
        *("--margin", "3", "--never-used", "fantom", "--never-used", "arbitrum"),
    )
    assert told["pools"]["evm"] == {"given_out": True, "next_index": 60}


def test_the_seed_leaves_the_stage_only_encrypted(stack: Stack, operator: Operator, tmp_path: Path) -> None:
    public, private = tmp_path / "public.pem", tmp_path / "private.pem"
    key = rsa.generate_private_key(65537, 3072)
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    file = tmp_path / "escrow.json"
    words = ("seed-escrow", str(file), "--public-key")
    assert operator(*words, str(public)) == 1  # it has to be meant
    assert "--confirm 'hand out the seed of local'" in operator.sorry
    meant = ("--confirm", "hand out the seed of local")
    assert operator(*words, str(private), *meant) == 1
    assert "private key" in operator.sorry
    assert not file.exists()
    assert operator(*words, str(public), *meant) == 0, operator.sorry
    assert operator(*words, str(public), *meant) == 1  # never over another file
    assert "File exists" in operator.sorry

    xpubs = {(x.realm, x.pool): x.xpub for x in services().store.every(Xpub)}
    # Another implementation opens it: nobody needs this code for it.
    oaep = padding.OAEP(padding.MGF1(SHA256()), SHA256(), None)
    seed = key.decrypt(base64.b64decode(json.loads(file.read_text())["ciphertext"]), oaep)
    assert {(x.realm, x.pool): x.xpub for x in account_xpubs(seed, 0)} == xpubs
    lose_the_store()
    assert operator("prepare") == 0  # by habit: it makes another seed
    assert {(x.realm, x.pool): x.xpub for x in services().store.every(Xpub)} != xpubs
    assert operator("seed-restore", str(file)) == 1
    assert "private key" in operator.sorry
    other = tmp_path / "other.pem"
    short = rsa.generate_private_key(65537, 2048)
    other.write_bytes(short.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    assert operator("seed-restore", str(file), "--private-key", str(other)) == 1
    assert "another key" in operator.sorry
    assert operator("seed-restore", str(file), "--private-key", str(private)) == 0, operator.sorry
    assert {(x.realm, x.pool): x.xpub for x in services().store.every(Xpub)} == xpubs
    assert services().store.indexes_taken("test:evm") == INDEXES
    version = services().store.get(EncryptedSeed, id=SEED_ID)
    assert operator("seed-restore", str(file), "--private-key", str(private)) == 0  # again: nothing new
    assert services().store.get(EncryptedSeed, id=SEED_ID) == version
    assert operator("prepare") == 0


def test_a_seed_is_not_restored_beside_a_deploy(stack: Stack, operator: Operator, tmp_path: Path) -> None:
    """Both change the stacks."""
    backup = tmp_path / "seed.json"
    assert operator("seed-backup", str(backup)) == 0
    lose_the_store()
    with locked(make_bucket(boto3), "local", print):
        assert operator("seed-restore", str(backup)) == 1
    assert "deploys stage local" in operator.sorry
    assert services().store.get(EncryptedSeed, id=SEED_ID) is None
    assert operator("seed-restore", str(backup)) == 0, operator.sorry


def test_a_seed_is_restored_into_an_empty_store_only(stack: Stack, operator: Operator, tmp_path: Path) -> None:
    backup = tmp_path / "seed.json"
    assert operator("seed-backup", str(backup)) == 0
    make(stack)
    assert operator("seed-restore", str(backup)) == 1
    assert "no empty store" in operator.sorry
    make(stack)

    altered = {"xpubs": {"test:evm": "xpub"}}, {"ciphertext": "AAAA"}, {"format": "other"}, {"context": {"purpose": "wallet-key"}}
    for spoil in altered:
        backup.write_text(json.dumps(json.loads(backup.read_text()) | spoil))
        assert operator("seed-restore", str(backup)) == 1
        assert operator.sorry.count("\n") == 1
    backup.write_text("[]")
    assert operator("seed-restore", str(backup)) == 1


def test_what_can_not_be_restored_is_said(stack: Stack, operator: Operator, tmp_path: Path) -> None:
    shrink(50)
    owner = operator.json("merchant", "The operator")["merchant"]
    assert operator("restore", "--realm", "test", "--merchant", "mch_nobody") == 1
    assert operator("restore", "--realm", "live", "--merchant", owner, "--network", "bitcoin") == 1
    assert "no node" in operator.sorry
    assert operator("rescan", "ethereum", "--from-block", "1") == 1
    assert operator("rescan", "ethereum", "--realm", "test", "--from-block", "999999999") == 1
    store = services().store
    store.commit([Save(Restore(services().catalogue("test").networks["tron"].id, 10, 5, 1))])
    told = operator.json("restore", "--realm", "test", "--merchant", owner, "--network", "tron", "--gap", "7")
    assert told["networks"][0]["watched"] == 50  # an unfinished search of before there were ceilings goes on, as far as the others
