"""Commands for service wallets: another one in the place of one, their keys in KMS, backup and restore. None shows a key."""

from __future__ import annotations

import argparse
import getpass
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infra.commands.common import CanNot, Command, network_of, say, services

if TYPE_CHECKING:
    from chalicelib.wiring import Services

ROLES = ("hot", "tokens_collector", "cold", "topup")
KINDS = ("Wallet", "RetiredWallet", "Watched", "EncryptedKey")
"""What a backup holds, in the order in which it is read: what is registered meanwhile has its key in it. Put back the other way
round: no wallet is there before its key. Of `Watched` the service wallets alone. The seed has a backup of its own."""
FORMAT = 2


def add(command: Command) -> None:
    """Add the commands of this group."""
    asked = command(rotate)
    asked.add_argument("network", metavar="SLUG")
    asked.add_argument("--realm", choices=("live", "test"), default="live")
    asked.add_argument("--type", choices=ROLES, required=True)
    asked.add_argument("--slot", type=int, default=0, metavar="N", help="of which hot wallet; slot 0 is the one that reads show")
    asked.add_argument("--add", action="store_true", help="there is none in this place yet: add one")
    asked.add_argument("--address", help="of the new cold wallet")
    asked.add_argument("--import", action="store_true", dest="imported", help="ask for the private key of the new wallet")
    asked.add_argument("--merchant", metavar="MERCHANT", help="mch_...: whose lists of addresses the new wallet is in")
    command(wallet_keys).add_argument(
        "--renew", action="store_true", help="first give keys with the policy of an earlier version today's, which denies grants"
    )
    command(wallet_backup).add_argument("--out", metavar="FILE", required=True, help="is made, and never overwritten")
    command(wallet_restore).add_argument("--from", metavar="FILE", required=True, dest="source")


def rotate(args: argparse.Namespace) -> int:
    """Put a new wallet in the place of one. Its key is made as WALLET_CUSTODY says, and shown to nobody; the old one is drained.

    With --add the place is empty: a further slot of the hot wallet, or a role that nobody has yet.

    With --import the key is one that somebody has, and is read from the terminal or standard input. Over HTTP this is done in the
    sandbox alone. What the old wallet has is moved to the new one.
    """
    from chalicelib.domain.addresses.addresses import CUSTODY_SHOWN, ROLE_OF
    from chalicelib.domain.errors import ServiceError
    from chalicelib.domain.ids import MerchantId, tenant_id
    from chalicelib.domain.merchants.merchants import Merchant
    from chalicelib.usecases.base.clock import in_realm
    from chalicelib.usecases.wallets.service_wallets import Listed

    wired = services()
    network = network_of(wired, args.realm, args.network)
    listed = None
    if args.merchant is not None:
        if wired.store.get(Merchant, id=args.merchant) is None:
            raise CanNot(f"there is no merchant {args.merchant}")
        listed = Listed(tenant_id(MerchantId(args.merchant), network.realm))
    key = _asked_for_key() if args.imported else None
    try:
        with in_realm(network.realm):
            registering = wired.wallets.registering(
                listed,
                network,
                ROLE_OF[args.type],
                by="the command rotate",
                address=args.address,
                private_key=key,
                replace="never" if args.add else "must",
                slot=args.slot,
            )
            made = registering.run().wallet
    except ServiceError as error:
        raise CanNot(_told(error)) from error
    shown = {"network": network.slug, "type": args.type, "address": made.address, "custody": CUSTODY_SHOWN[made.custody]}
    say(shown | ({"slot": made.slot} if made.slot else {}))
    return 0


def _asked_for_key() -> str:
    """A private key: from the terminal without showing it, or from standard input. Others see what stands on a command line."""
    return getpass.getpass("private key: ").strip() if sys.stdin.isatty() else sys.stdin.readline().strip()


def _told(error: Any) -> str:
    details = error.details
    first = details[0] if isinstance(details, list) and details else details
    return f"{error}: {json.dumps(first)}" if first else str(error)


def wallet_keys(args: argparse.Namespace) -> int:
    """List the keys in KMS that were made for this stage's wallets. `wallets` null: a registration died; nobody uses it.

    Those that only have the name of one are listed too, and the stage's own keys where somebody was granted their use. `differs`
    says in what a key is not as it is made here: exit code 1. Of keys whose policies refuse us the number is told.
    """
    import boto3

    from chalicelib.custody.aws import Denied
    from chalicelib.custody.native import STAGE_TAG, WALLET_TAG, differences, renew_policy, tags_of

    wired = services()
    used = _wallets_by_key(wired)
    kms = boto3.client("kms")
    first = wired.settings.wallet_aliases.removesuffix("*")
    named = _names_by_key(kms, first)
    found, closed = [], 0
    for key_id in _all_keys(kms):
        names = named.get(key_id, [])
        try:
            tags = tags_of(kms, key_id)
        except Denied:
            if names or key_id in used:
                # Of a key that is made here everything may be read.
                found.append({"key": key_id, "made_for": None, "wallets": used.get(key_id), "differs": ["who may read about it"]})
            else:
                closed += 1
            continue
        if tags.get(STAGE_TAG) != args.stage and not names:
            continue
        made_for = tags.get(WALLET_TAG, "")
        if args.renew and key_id in used and renew_policy(kms, wired.settings, key_id):
            print(f"the key {key_id} has today's policy now", file=sys.stderr)
        differs = differences(kms, wired.settings, key_id, made_for)
        # A key is named after what it was made for.
        meant = f"{first}{made_for.replace(':', '-')}-"
        differs += [f"name {name}" for name in names if not name.removeprefix(meant).isdigit()]
        found.append({"key": key_id, "made_for": made_for or None, "wallets": used.get(key_id), "differs": differs})
    for name in wired.settings.keys:
        own = wired.settings.key_alias(name)
        if kms.list_grants(KeyId=kms.describe_key(KeyId=own)["KeyMetadata"]["Arn"])["Grants"]:
            found.append({"key": own, "made_for": None, "wallets": None, "differs": ["grants"]})
    say(found)
    if closed:
        print(f"{closed} keys of the account, none with a name or a wallet of this stage, refuse to be looked at", file=sys.stderr)
    return 1 if any(entry["differs"] for entry in found) else 0


def _wallets_by_key(wired: Services) -> dict[str, list[str]]:
    """The wallets, retired ones too, that each key in KMS signs for, by its id."""
    from chalicelib.domain.addresses.addresses import RetiredWallet, Wallet

    used: dict[str, list[str]] = {}
    everyone: list[Wallet | RetiredWallet] = [*wired.store.every(Wallet), *wired.store.every(RetiredWallet)]
    for wallet in everyone:
        if wallet.custody == "kms":
            used.setdefault(wallet.key.rsplit("/", 1)[-1], []).append(f"{wallet.network} {wallet.role} {wallet.address}")
    return used


def _names_by_key(kms: Any, first: str) -> dict[str, list[str]]:
    """The aliases that begin with `first`, by the id of the key that they name."""
    named: dict[str, list[str]] = {}
    for page in kms.get_paginator("list_aliases").paginate():
        for alias in page["Aliases"]:
            if alias["AliasName"].startswith(first) and "TargetKeyId" in alias:
                named.setdefault(alias["TargetKeyId"], []).append(alias["AliasName"])
    return named


def _all_keys(kms: Any) -> Iterator[str]:
    for page in kms.get_paginator("list_keys").paginate():
        for key in page["Keys"]:
            yield key["KeyId"]


def wallet_backup(args: argparse.Namespace) -> int:
    """Write the encrypted keys and the wallets to a file, and seal it. Reads tables; decrypts nothing."""
    import boto3

    from chalicelib.custody.wallet_backup import sealed
    from chalicelib.domain.times import iso
    from chalicelib.store.codec import plain

    wired = services()
    rows = {name: [plain(record) for record in _backed_up(wired.store, name)] for name in KINDS}
    # One that was replaced between the two reads is in its place still, as far as this backup knows.
    current = {(row["network"], row["address"]) for row in rows["Wallet"]}
    rows["RetiredWallet"] = [row for row in rows["RetiredWallet"] if (row["network"], row["address"]) not in current]
    if not any(rows.values()):
        raise CanNot("this stage has no wallets")
    document = {"stage": args.stage, "format": FORMAT, "made_at": iso(wired.clock.now_ms()), "rows": rows}
    # Through JSON first: what is sealed is what will be read.
    document = sealed(boto3.client("kms"), wired.settings, json.loads(json.dumps(document)))
    try:
        with os.fdopen(os.open(args.out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(document, file, indent=1)
    except OSError as error:
        raise CanNot(f"{args.out} can not be made: {error.strerror}") from error
    print(", ".join(f"{len(found)} {name}" for name, found in rows.items()))
    return 0


def wallet_restore(args: argparse.Namespace) -> int:
    """Put back what `wallet-backup` wrote, into an empty store. What is there and the same is left; anything else stops it.

    A file that was altered is refused. Every wallet is named: compare the addresses with what you know of them.
    """
    from chalicelib.domain.addresses.addresses import CUSTODY_SHOWN, SERVICE_TYPE
    from chalicelib.domain.times import iso
    from chalicelib.store.codec import shaped
    from chalicelib.usecases.ports.changes import Conflict, Save

    wired = services()
    made_at, rows = _read(wired, Path(args.source), args.stage)
    records = [shaped(_kind(name), {**row, "version": 1}) for name in reversed(KINDS) for row in rows[name]]
    print(f"the backup of {made_at}")
    made = 0
    for record in records:
        if type(record).__name__ in ("Wallet", "RetiredWallet"):
            state = f"retired {iso(record.retired_at)}" if type(record).__name__ == "RetiredWallet" else "in place"
            what = f"{record.network} {SERVICE_TYPE[record.role]} {record.address} ({CUSTODY_SHOWN[record.custody]})"
            print(f"{what}, registered {iso(record.created_at)}, {state}")
        there = wired.store.get(type(record), **_key(record))
        if there is not None and not _same(there, record):
            raise CanNot(f"there is another {type(record).__name__} already: {_key(record)}; nothing further was restored")
        if there is None:
            try:
                wired.store.commit([Save(record)])
            except Conflict as conflict:
                raise CanNot("something else makes wallets here: try again when it is over") from conflict
            made += 1
    print(f"{made} restored, {len(records) - made} were there")
    return 0


def _backed_up(store: Any, name: str) -> Iterator[Any]:
    for record in store.every(_kind(name)):
        if name != "Watched" or record.role != "user":
            yield record


def _kind(name: str) -> Any:
    from chalicelib.custody import records
    from chalicelib.domain.addresses import addresses

    return getattr(records, name, None) or getattr(addresses, name)


def _key(record: Any) -> dict[str, str]:
    names = {"Wallet": ("network", "role"), "RetiredWallet": ("network", "address"), "Watched": ("realm", "family", "address")}
    key = {name: getattr(record, name) for name in names.get(type(record).__name__, ("id",))}
    return key | ({"role": record.place} if type(record).__name__ == "Wallet" else {})


def _same(there: Any, record: Any) -> bool:
    from dataclasses import replace

    return bool(replace(there, version=record.version) == record)


def _read(wired: Any, source: Path, stage: str) -> tuple[str, dict[str, list[dict[str, Any]]]]:
    """When the backup was made, and its rows. Raises CanNot for a file that is none, or was not written here as it is."""
    import boto3

    from chalicelib.custody.aws import SecretUnusable
    from chalicelib.custody.wallet_backup import demand_seal

    try:
        found = json.loads(source.read_text())
        rows: dict[str, list[dict[str, Any]]] = {name: list(found["rows"][name]) for name in KINDS}
        of_stage, form, made_at = found["stage"], found["format"], str(found["made_at"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CanNot(f"{source} is no backup of wallets: {error}") from error
    if (of_stage, form) != (stage, FORMAT):
        # Keys are encrypted for their stage: nothing else opens them.
        raise CanNot(f"{source} is of the stage {of_stage}, format {form}")
    try:
        demand_seal(boto3.client("kms"), wired.settings, found)
    except SecretUnusable as error:
        raise CanNot(f"{source} is not believed, nothing was restored: {error}") from error
    return made_at, rows
