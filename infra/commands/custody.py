"""Commands for service wallets: another one in the place of one, their keys in KMS, backup and restore. None shows a key."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from infra.commands.common import CanNot, Command, network_of, say, services

ROLES = ("hot", "tokens_collector", "cold")
KINDS = ("Wallet", "RetiredWallet", "Watched", "EncryptedKey", "EncryptedSeed")
"""What a backup holds, in the order in which it is read: what is registered meanwhile has its key in it. Put back the other way
round: no wallet is there before its key. Of `Watched` the service wallets alone."""


def add(command: Command) -> None:
    """Add the commands of this group."""
    asked = command(rotate)
    asked.add_argument("network", metavar="SLUG")
    asked.add_argument("--realm", choices=("live", "test"), default="live")
    asked.add_argument("--type", choices=ROLES, required=True)
    asked.add_argument("--address", help="of the new cold wallet")
    command(wallet_keys)
    command(wallet_backup).add_argument("--out", metavar="FILE", required=True, help="is made, and never overwritten")
    command(wallet_restore).add_argument("--from", metavar="FILE", required=True, dest="source")


def rotate(args: argparse.Namespace) -> int:
    """Put a new wallet in the place of one. Its key is made as WALLET_CUSTODY says, and shown to nobody; the old one is drained."""
    from chalicelib.domain.addresses import CUSTODY_SHOWN, ROLE_OF
    from chalicelib.domain.errors import ServiceError
    from chalicelib.usecases.realm_time import in_realm

    wired = services()
    network = network_of(wired, args.realm, args.network)
    try:
        with in_realm(network.realm):
            made = wired.wallets.register(None, network, ROLE_OF[args.type], address=args.address, replace=True).wallet
    except ServiceError as error:
        raise CanNot(_told(error)) from error
    say({"network": network.slug, "type": args.type, "address": made.address, "custody": CUSTODY_SHOWN[made.custody]})
    return 0


def _told(error: Any) -> str:
    details = error.details
    first = details[0] if isinstance(details, list) and details else details
    return f"{error}: {json.dumps(first)}" if first else str(error)


def wallet_keys(args: argparse.Namespace) -> int:
    """List the keys in KMS that were made for this stage's wallets. `wallets` null: a registration died; nobody uses it."""
    import boto3

    from chalicelib.custody.native import STAGE_TAG, WALLET_TAG
    from chalicelib.domain.addresses import RetiredWallet, Wallet

    wired = services()
    used: dict[str, Any] = {}
    everyone: list[Wallet | RetiredWallet] = [*wired.store.every(Wallet), *wired.store.every(RetiredWallet)]
    for wallet in everyone:
        if wallet.custody == "kms":
            used.setdefault(wallet.key.rsplit("/", 1)[-1], []).append(f"{wallet.network} {wallet.role} {wallet.address}")
    kms = boto3.client("kms")
    found = []
    for page in kms.get_paginator("list_keys").paginate():
        for key in page["Keys"]:
            tags = {tag["TagKey"]: tag["TagValue"] for tag in kms.list_resource_tags(KeyId=key["KeyId"])["Tags"]}
            if tags.get(STAGE_TAG) == args.stage:
                wallets = used.get(key["KeyId"])
                found.append({"key": key["KeyId"], "made_for": tags.get(WALLET_TAG), "wallets": wallets})
    say(found)
    return 0


def wallet_backup(args: argparse.Namespace) -> int:
    """Write the encrypted keys, the encrypted seed and the wallets to a file. Reads tables and nothing else; decrypts nothing."""
    from chalicelib.store.codec import plain

    wired = services()
    rows = {name: [plain(record) for record in _backed_up(wired.store, name)] for name in KINDS}
    # One that was replaced between the two reads is in its place still, as far as this backup knows.
    current = {(row["network"], row["address"]) for row in rows["Wallet"]}
    rows["RetiredWallet"] = [row for row in rows["RetiredWallet"] if (row["network"], row["address"]) not in current]
    if not any(rows.values()):
        raise CanNot("this stage has no wallets")
    try:
        with os.fdopen(os.open(args.out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump({"stage": args.stage, "format": 1, "rows": rows}, file, indent=1)
    except OSError as error:
        raise CanNot(f"{args.out} can not be made: {error.strerror}") from error
    print(", ".join(f"{len(found)} {name}" for name, found in rows.items()))
    return 0


def wallet_restore(args: argparse.Namespace) -> int:
    """Put back what `wallet-backup` wrote, into an empty store. What is there and the same is left; anything else stops it."""
    from chalicelib.store.codec import shaped
    from chalicelib.usecases.changes import Conflict, Save

    wired = services()
    rows = _read(Path(args.source), args.stage)
    records = [shaped(_kind(name), {**row, "version": 1}) for name in reversed(KINDS) for row in rows[name]]
    made = 0
    for record in records:
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
    from chalicelib.domain import addresses

    return getattr(records, name, None) or getattr(addresses, name)


def _key(record: Any) -> dict[str, str]:
    names = {"Wallet": ("network", "role"), "RetiredWallet": ("network", "address"), "Watched": ("realm", "family", "address")}
    return {name: getattr(record, name) for name in names.get(type(record).__name__, ("id",))}


def _same(there: Any, record: Any) -> bool:
    from dataclasses import replace

    return bool(replace(there, version=record.version) == record)


def _read(source: Path, stage: str) -> dict[str, list[dict[str, Any]]]:
    try:
        found = json.loads(source.read_text())
        rows: dict[str, list[dict[str, Any]]] = {name: list(found["rows"][name]) for name in KINDS}
        of_stage, form = found["stage"], found["format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CanNot(f"{source} is no backup of wallets: {error}") from error
    if (of_stage, form) != (stage, 1):
        # Keys are encrypted for their stage: nothing else opens them.
        raise CanNot(f"{source} is of the stage {of_stage}, format {form}")
    return rows
