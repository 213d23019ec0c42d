"""Keys of service wallets, kept in KMS or under envelope encryption: how they are made, that both sign what other implementations
take, that nobody sees one, and that a registration which dies leaves nothing that is not found.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import logging
import re
from typing import Any

import boto3
import pytest
from moto.kms.policy_validator import ALTERNATIVE_ACTIONS
from moto.kms.responses import KmsResponse

from chalicelib import wiring
from chalicelib.custody.native import key_policy, make_wallet
from chalicelib.custody.records import EncryptedKey
from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.ids import NetworkId
from chalicelib.settings import TABLES
from chalicelib.usecases.base.current_wallets import hot_wallets
from chalicelib.usecases.base.idempotency import StoredAnswer
from chalicelib.usecases.ports.changes import Save
from infra import cli
from infra.policies import COMPARES
from tests.deploy.rights import recording, refused
from tests.support.cuts import Cutter, Died, install
from tests.support.edge import PREPARED, Edge
from tests.support.stack import Response

KEY = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
THIEF = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"  # of Tron's documentation
DIGEST = hashlib.sha256(b"what is to be signed").digest()
NETWORKS = ("ethereum", "tron", "litecoin", "bitcoin")


@pytest.fixture
def edge(aws: Any) -> Edge:
    return PREPARED.edge(aws)


@pytest.fixture
def native(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> Edge:
    monkeypatch.setenv("WALLET_CUSTODY", "native")
    wiring.forget()
    return edge


def register(edge: Edge, network: str = "ethereum", headers: Any = None, **body: Any) -> Response:
    sent = {"network": network, "type": "hot", **body}
    return edge.call("POST", "/v1/addresses/service-wallets", key="admin", json=sent, headers=headers)


def replaced(edge: Edge, network: str = "ethereum") -> str:
    """Another hot wallet in the place of one, as the command `rotate` does; its address."""
    of = edge.services.store.catalogue("test").networks[network]
    return edge.services.wallets.registering(None, of, "hot", by="a test", replace="must").run().wallet.address


def wallet_of(edge: Edge, network: str, role: str = "hot") -> Wallet:
    found = edge.services.store.get(Wallet, network=f"test:{network}", role=role)
    assert found is not None
    return found


def made_keys(stage: str = "local") -> dict[str, str]:
    """Keys in KMS that were made for wallets, and for which."""
    kms = boto3.client("kms")
    found = {}
    for page in kms.get_paginator("list_keys").paginate():
        for key in page["Keys"]:
            tags = {t["TagKey"]: t["TagValue"] for t in kms.list_resource_tags(KeyId=key["KeyId"])["Tags"]}
            if tags.get("gateway-stage") == stage:
                found[key["KeyId"]] = tags["gateway-wallet"]
    return found


def recovered(network: str, r: int, s: int, parity: int, point: str) -> str:
    """The address that has signed, by another implementation of each family."""
    if network == "ethereum":
        from eth_keys.datatypes import Signature

        return str(Signature(vrs=(parity, r, s)).recover_public_key_from_msg_hash(DIGEST).to_checksum_address())
    if network == "tron":
        from tronpy.keys import Signature as TronSignature

        raw = r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes([parity])
        return str(TronSignature(raw).recover_public_key_from_msg_hash(DIGEST).to_base58check_address())
    from bitcoinlib.keys import Key
    from bitcoinlib.keys import Signature as CoinSignature

    key = Key(("02" if int(point[64:], 16) % 2 == 0 else "03") + point[:64], network=network)
    assert CoinSignature(r, s).verify(DIGEST, key)
    return str(key.address(encoding="bech32"))


@pytest.mark.parametrize("custody", ["native", "envelope"])
def test_both_ways_sign_for_every_family(edge: Edge, monkeypatch: pytest.MonkeyPatch, custody: str) -> None:
    monkeypatch.setenv("WALLET_CUSTODY", custody)
    wiring.forget()
    for network in NETWORKS:
        made = register(edge, network)
        assert (made.status, made.json["custody"]) == (201, custody)
        assert ("privateKey" in made.json) is (custody == "envelope")
        wallet = wallet_of(edge, network)
        signature = edge.services.signer.sign(wallet, DIGEST)
        assert recovered(network, signature.r, signature.s, signature.parity, wallet.public_key) == made.json["address"]
        read = edge.call("GET", f"/v1/addresses/hot-wallet/{network}").json
        assert (read["custody"], read["observedAt"]) == (custody, None)
        assert {balance["onChainBalance"] for balance in read["balances"]} == {None}


def test_a_native_key_is_made_in_kms_for_signing_alone_and_named_after_its_wallet(native: Edge) -> None:
    assert register(native, "ethereum").status == 201
    assert register(native, "ethereum", type="collector").status == 201
    hot, collector = wallet_of(native, "ethereum"), wallet_of(native, "ethereum", "collector")
    assert hot.address != collector.address
    assert list(native.services.store.every(EncryptedKey)) == []
    kms = boto3.client("kms")
    about = kms.describe_key(KeyId="alias/gateway-local-wallet-test-ethereum-hot-1")["KeyMetadata"]
    assert (about["KeySpec"], about["KeyUsage"], about["Origin"]) == ("ECC_SECG_P256K1", "SIGN_VERIFY", "AWS_KMS")
    assert hot.key.endswith(about["KeyId"])
    assert made_keys()[about["KeyId"]] == "test:ethereum:hot"
    policy = json.loads(kms.get_key_policy(KeyId=about["KeyId"], PolicyName="default")["Policy"])
    allowed = {action: s.get("Condition") for s in policy["Statement"] for action in _list(s["Action"])}
    assert not {"kms:*", "kms:ScheduleKeyDeletion", "kms:Disable*", "kms:Delete*"} & set(allowed)
    assert allowed["kms:Sign"]["ArnEquals"]["aws:PrincipalArn"].endswith(":role/gateway-local-payout")
    assert allowed["kms:Sign"]["StringEquals"]["kms:MessageType"] == "DIGEST"


def _list(actions: Any) -> list[str]:
    return [actions] if isinstance(actions, str) else actions


def test_each_slot_has_a_native_key_of_its_own(native: Edge) -> None:
    assert register(native, "ethereum").status == 201
    network = native.services.store.catalogue("test").networks["ethereum"]
    for slot in (1, 2):
        native.services.wallets.registering(None, network, "hot", by="a test", slot=slot).run()
    moved = replaced(native)
    found = list(native.services.store.every(Wallet))
    assert sorted((wallet.slot, wallet.role) for wallet in found) == [(0, "hot"), (1, "hot"), (2, "hot")]
    assert len({wallet.address for wallet in found}) == len({wallet.key for wallet in found}) == 3
    assert [wallet.address for wallet in found if not wallet.slot] == [moved] and len(made_keys()) == 4


def test_a_key_that_is_sent_is_not_taken_where_keys_are_made_in_kms(native: Edge) -> None:
    answer = register(native, privateKey=KEY)
    assert (answer.status, answer.json["error"]["code"]) == (400, "VALIDATION_ERROR")
    assert answer.json["error"]["details"]["field"] == "privateKey" and "KMS" in answer.json["error"]["details"]["reason"]
    assert KEY not in answer.body.decode()
    assert (made_keys(), list(native.services.store.every(Wallet))) == ({}, [])
    cold = register(native, type="cold", address="0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed")
    assert (cold.status, cold.json["custody"]) == (201, "none")


def test_a_native_registration_that_dies_anywhere_goes_on_where_it_died(native: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was cut, the same request makes one wallet. Only between the key and its alias a key is left, and it is listed."""
    cutter, store = Cutter(), native.services.store
    install(cutter, monkeypatch)
    networks = ("ethereum", "bsc", "polygon", "arbitrum", "fantom", "tron", "bitcoin", "litecoin")
    places = [(network, role) for network in networks for role in ("hot", "collector")]
    made_by = ("GetPublicKey", "GetCallerIdentity", "CreateKey", "CreateAlias", "TransactWriteItems")
    cutter.set(0, "error", "before")
    with cutter.arm():
        assert register(native, "ethereum", {"Idempotency-Key": "uncut"}).status == 201
    wiring.forget()
    steps = [at for at, name in enumerate(cutter.trace, 1) if name in made_by]
    assert len(steps) == 6
    # The first answer is that there is no such key: it has no effect to die behind.
    cases = [(at, when) for at in steps for when in ("before", "after")]
    cases.remove((steps[0], "after"))
    tried = []
    for (network, role), (at, when) in zip(places[1:], cases, strict=False):
        token = {"Idempotency-Key": f"{network}-{role}"}
        wiring.forget()
        cutter.set(at, "death", when)  # type: ignore[arg-type]
        with pytest.raises(Died), cutter.arm():
            register(native, network, token, type=role)
        wiring.forget()
        answer = register(native, network, token, type=role)
        assert answer.status == 201, answer.body
        assert wallet_of(native, network, role).address == answer.json["address"]
        tried.append((f"test:{network}:{role}", cutter.trace[-1], when))
    made = list(made_keys().values())
    left_behind = [(name, when) for what, name, when in tried for _ in range(made.count(what) - 1)]
    assert left_behind == [("CreateKey", "after"), ("CreateAlias", "before")]
    assert len(list(store.every(Wallet))) == 1 + len(cases)


def test_the_api_has_the_rights_that_making_a_wallet_needs(native: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    make_wallet(boto3.client("kms"), boto3.client("sts"), native.services.settings, NetworkId("test:bsc"), "hot", 1, 0)
    recorder = recording(monkeypatch)
    assert register(native).status == 201
    assert register(native, "bsc").status == 201, "its key was made by one who died"
    assert refused(recorder.calls) == []
    used = {action for _, action, _ in recorder.calls if action.startswith("kms:")}
    assert used == {"kms:CreateKey", "kms:TagResource", "kms:CreateAlias", "kms:GetPublicKey", *COMPARES}


def planted(alias: str, made_for: str, policy: Any, **more: Any) -> str:
    """A key that somebody who may make keys has given the name of a wallet's next key."""
    kms = boto3.client("kms")
    tags = {"gateway-stage": "local", "gateway-wallet": made_for}
    asked: dict[str, Any] = {
        "KeySpec": "ECC_SECG_P256K1", "KeyUsage": "SIGN_VERIFY", "Policy": json.dumps(policy),
        "Tags": [{"TagKey": name, "TagValue": value} for name, value in tags.items()],
    }  # fmt: skip
    key = str(kms.create_key(**asked | more)["KeyMetadata"]["KeyId"])
    kms.create_alias(AliasName=f"alias/gateway-local-wallet-{alias}", TargetKeyId=key)
    return key


def test_a_key_that_only_has_the_name_of_a_wallets_is_not_taken(
    native: Edge, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who may make keys may let anybody use them. Such a key with the right name is in no wallet, and is found by `wallet-keys`."""
    account = boto3.client("sts").get_caller_identity()["Account"]
    ours = key_policy(native.services.settings, "aws", account)
    theirs = {
        "Sid": "A",
        "Effect": "Allow",
        "Principal": {"AWS": "arn:aws:iam::666666666666:root"},
        "Action": "kms:*",
        "Resource": "*",
    }
    another = {**ours, "Statement": [*ours["Statement"], theirs]}
    assert register(native, "ethereum").status == 201
    keys = {
        planted("test-ethereum-hot-2", "test:ethereum:hot", another): ["policy"],
        planted("test-bsc-hot-1", "test:bsc:hot", another): ["policy"],
        planted("test-polygon-hot-1", "test:polygon:hot", ours, Origin="EXTERNAL"): ["origin"],
        planted("test-tron-hot-1", "test:tron:hot", ours, Tags=[]): ["tags"],
        (granted := planted("test-fantom-hot-1", "test:fantom:hot", ours)): ["grants"],
    }
    grantee = "arn:aws:iam::666666666666:user/them"
    boto3.client("kms").create_grant(KeyId=granted, GranteePrincipal=grantee, Operations=["Sign"])
    before = wallet_of(native, "ethereum")
    assert cli.main(["--stage", "local", "rotate", "ethereum", "--realm", "test", "--type", "hot"]) == 1
    for network in ("bsc", "polygon", "tron", "fantom"):
        answer = register(native, network)
        assert (answer.status, answer.json["error"]["code"]) == (400, "VALIDATION_ERROR")
    assert [wallet.address for wallet in native.services.store.every(Wallet)] == [before.address]
    alarms = [line for line in caplog.messages if "was not made here" in line]
    assert [line.rsplit("differs in ", 1)[1] for line in alarms] == [", ".join(found) for found in keys.values()]
    capsys.readouterr()
    assert cli.main(["--stage", "local", "wallet-keys"]) == 1
    listed = {entry["key"]: entry["differs"] for entry in json.loads(capsys.readouterr().out)}
    assert listed.pop(before.key.rsplit("/", 1)[-1]) == []
    assert all(set(found) <= set(listed[key]) for key, found in keys.items()) and set(listed) == set(keys)


def test_keys_that_nobody_uses_are_listed(native: Edge, capsys: pytest.CaptureFixture[str]) -> None:
    register(native, "tron")
    kms = boto3.client("kms")
    make_wallet(kms, boto3.client("sts"), native.services.settings, NetworkId("test:bsc"), "hot", 1, 0)
    (stray,) = [key for key, what in made_keys().items() if what == "test:bsc:hot"]
    kms.delete_alias(AliasName="alias/gateway-local-wallet-test-bsc-hot-1")
    assert cli.main(["--stage", "local", "wallet-keys"]) == 0
    listed = {entry["key"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert listed[stray] == {"key": stray, "made_for": "test:bsc:hot", "wallets": None, "differs": []}
    wallet = wallet_of(native, "tron")
    assert listed[wallet.key.rsplit("/", 1)[-1]]["wallets"] == [f"test:tron hot {wallet.address}"]


def test_a_key_that_shuts_us_out_hides_no_other(
    native: Edge, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another's key of the account is counted; one that has the name of a wallet's key is told. moto asks keys' policies for
    DescribeKey alone: here for tags, too."""
    asked, action = KmsResponse.list_resource_tags, "kms:ListResourceTags"

    def list_resource_tags(self: KmsResponse) -> Any:
        self._validate_key_policy(self._get_param("KeyId"), action)
        return asked(self)

    monkeypatch.setitem(ALTERNATIVE_ACTIONS, action, ["kms:*", action])
    monkeypatch.setattr(KmsResponse, "list_resource_tags", list_resource_tags)
    deny = {"Sid": "A", "Effect": "Deny", "Principal": {"AWS": "*"}, "Action": ["kms:*"], "Resource": "*"}
    shut = {"Version": "2012-10-17", "Statement": [deny]}
    register(native, "tron")
    boto3.client("kms").create_key(Policy=json.dumps(shut))
    ours = wallet_of(native, "tron").key.rsplit("/", 1)[-1]
    assert cli.main(["--stage", "local", "wallet-keys"]) == 0
    told = capsys.readouterr()
    assert [entry["key"] for entry in json.loads(told.out)] == [ours]
    assert told.err == "1 keys of the account, none with a name or a wallet of this stage, refuse to be looked at\n"
    named = planted("test-bsc-hot-1", "test:bsc:hot", shut)
    assert cli.main(["--stage", "local", "wallet-keys"]) == 1
    listed = {entry["key"]: entry["differs"] for entry in json.loads(capsys.readouterr().out)}
    assert listed == {ours: [], named: ["who may read about it"]}


def test_keys_of_an_earlier_version_get_the_policy_that_denies_grants(native: Edge, capsys: pytest.CaptureFixture[str]) -> None:
    """A wallet's key with exactly the policy of before, and no other: what somebody else wrote is told, never tidied away."""
    register(native, "tron")
    register(native, "bsc")
    kms, account = boto3.client("kms"), boto3.client("sts").get_caller_identity()["Account"]
    ours = key_policy(native.services.settings, "aws", account)
    administration, _, signs = ours["Statement"]
    open_ended = [action.replace("CreateAlias", "Create*") for action in administration["Action"]]
    before = {**ours, "Statement": [{**administration, "Action": open_ended}, signs]}
    more = {**ours, "Statement": [{**administration, "Action": [*open_ended, "kms:Sign"]}, signs]}
    old, theirs = (wallet_of(native, name).key.rsplit("/", 1)[-1] for name in ("tron", "bsc"))
    for key, policy in ((old, before), (theirs, more)):
        kms.put_key_policy(KeyId=key, PolicyName="default", Policy=json.dumps(policy))
    command = ["--stage", "local", "wallet-keys"]

    def differs(*more: str) -> dict[str, list[str]]:
        assert cli.main([*command, *more]) == 1
        return {entry["key"]: entry["differs"] for entry in json.loads(capsys.readouterr().out)}

    assert differs() == {old: ["policy"], theirs: ["policy"]}
    assert differs("--renew") == {old: [], theirs: ["policy"]}
    kept = kms.get_key_policy(KeyId=theirs, PolicyName="default")["Policy"]
    assert json.loads(kept) == more


def test_a_grant_on_one_of_the_stages_own_keys_is_told(native: Edge, capsys: pytest.CaptureFixture[str]) -> None:
    kms = boto3.client("kms")
    key = kms.describe_key(KeyId="alias/gateway-local-hot-test")["KeyMetadata"]["KeyId"]
    made = kms.create_grant(KeyId=key, GranteePrincipal="arn:aws:iam::666666666666:user/them", Operations=["Sign"])
    assert cli.main(["--stage", "local", "wallet-keys"]) == 1
    kms.revoke_grant(KeyId=key, GrantId=made["GrantId"])  # the stage's keys are the next test's, too
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["key"], told["differs"]) == ("alias/gateway-local-hot-test", ["grants"])


def test_a_deployment_can_keep_generated_keys_to_itself(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REVEAL_PRIVATE_KEYS", "false")
    wiring.forget()
    made = register(edge, headers={"Idempotency-Key": "quiet"})
    assert (made.status, sorted(made.json)) == (201, ["address", "custody", "network", "type"])
    assert edge.services.signer.sign(wallet_of(edge, "ethereum"), DIGEST)


def test_no_key_is_in_a_log_an_error_a_stored_record_or_a_repr(edge: Edge, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    made = register(edge, headers={"Idempotency-Key": "secret"})
    sent = register(edge, "bsc", privateKey=KEY, headers={"Idempotency-Key": "sent"})
    refused = register(edge, "bsc", privateKey=KEY)
    wallets = [wallet_of(edge, "ethereum"), wallet_of(edge, "bsc")]
    shown = [repr(edge.services.signer.sign(wallet, DIGEST)) for wallet in wallets] + [repr(wallets), caplog.text]
    shown += [sent.body.decode(), refused.body.decode()]
    client = edge.services.store.models.connection.client
    found = {name: client.scan(TableName=edge.services.settings.table(name))["Items"] for name in TABLES}
    assert found["custody"] and found["chain"] and found["tenants"]
    shown.append(str(found))
    (stored, _) = sorted(edge.services.store.every(StoredAnswer), key=lambda row: row.key)
    assert stored.sealed
    for secret in (made.json["privateKey"], KEY):
        raw = bytes.fromhex(secret)
        forms = (secret, secret.upper(), str(int(secret, 16)), repr(raw), base64.b64encode(raw).decode())
        assert not [form for form in forms if form in " ".join(shown)]
    for kind in (Wallet, EncryptedKey):
        for record in edge.services.store.every(kind):  # type: ignore[type-abstract]
            assert made.json["privateKey"] not in str(dataclasses.asdict(record))


@pytest.mark.parametrize(
    ("name", "value", "words"), [("WALLET_CUSTODY", "hsm", "allowed: native, envelope"), ("REVEAL_PRIVATE_KEYS", "no", "allowed")]
)
def test_a_setting_that_is_no_choice_stops_the_start(monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str) -> None:
    from chalicelib.settings import Settings

    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=re.escape(words)):
        Settings.from_environment()


def test_the_demo_makes_no_keys_in_kms(monkeypatch: pytest.MonkeyPatch) -> None:
    from chalicelib.settings import Settings

    monkeypatch.setenv("STAGE", "demo")
    monkeypatch.setenv("WALLET_CUSTODY", "native")
    with pytest.raises(ValueError, match="everybody has the demo's keys"):
        Settings.from_environment()


@pytest.mark.parametrize("custody", ["native", "envelope"])
def test_a_restored_wallet_signs(
    aws: Any, edge: Edge, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Any, custody: str
) -> None:
    monkeypatch.setenv("WALLET_CUSTODY", custody)
    wiring.forget()
    first = register(edge, "ethereum").json
    replaced(edge)
    register(edge, "tron")
    store = edge.services.store
    ethereum = store.catalogue("test").networks["ethereum"]
    second = edge.services.wallets.registering(None, ethereum, "hot", by="a test", slot=1).run().wallet
    before = {network: wallet_of(edge, network) for network in ("ethereum", "tron")}
    out = tmp_path / "wallets.json"
    assert cli.main(["--stage", "local", "wallet-backup", "--out", str(out)]) == 0
    assert cli.main(["--stage", "local", "wallet-backup", "--out", str(out)]) == 1, "a backup is never overwritten"
    assert out.stat().st_mode & 0o077 == 0
    assert first.get("privateKey", "nothing") not in out.read_text() + capsys.readouterr().out
    for name in ("custody", "chain", "records"):
        table = edge.services.settings.table(name)
        client = store.models.connection.client
        for item in client.scan(TableName=table)["Items"]:
            client.delete_item(TableName=table, Key={"pk": item["pk"], "sk": item["sk"]})
    wiring.forget()
    assert list(edge.services.store.every(Wallet)) == []
    altered = tmp_path / "altered.json"
    for old, new in ((before["tron"].address, THIEF), ('"seal"', '"no seal"')):
        altered.write_text(out.read_text().replace(old, new))
        assert cli.main(["--stage", "local", "wallet-restore", "--from", str(altered)]) == 1
        assert "is not believed" in capsys.readouterr().err
    assert list(edge.services.store.every(Wallet)) == []
    assert cli.main(["--stage", "local", "wallet-restore", "--from", str(out)]) == 0
    told = capsys.readouterr().out
    assert all(f"hot {address} (" in told for address in (first["address"], *(wallet.address for wallet in before.values())))
    assert cli.main(["--stage", "local", "wallet-restore", "--from", str(out)]) == 0, "again, nothing is left to do"
    assert " 0 restored" in " " + capsys.readouterr().out.splitlines()[-1]
    for network, wallet in before.items():
        again = wallet_of(edge, network)
        assert dataclasses.replace(again, version=wallet.version) == wallet
        signature = edge.services.signer.sign(again, DIGEST)
        assert recovered(network, signature.r, signature.s, signature.parity, again.public_key) == wallet.address
    slots = hot_wallets(edge.services.store, ethereum.id)
    assert [(wallet.slot, wallet.address) for wallet in slots] == [(0, before["ethereum"].address), (1, second.address)]
    from chalicelib.usecases.wallets.lookup import wallet_at

    old = wallet_at(edge.services.store, NetworkId("test:ethereum"), first["address"])
    assert old is not None and edge.services.signer.sign(old, DIGEST)
    there = wallet_of(edge, "tron")
    edge.services.store.commit([Save(dataclasses.replace(there, address=THIEF, version=there.version + 1))])
    assert cli.main(["--stage", "local", "wallet-restore", "--from", str(out)]) == 1
    assert "there is another Wallet already" in capsys.readouterr().err
    out.write_text("{}")
    assert cli.main(["--stage", "local", "wallet-restore", "--from", str(out)]) == 1
