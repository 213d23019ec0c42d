"""Commands for the day that the store is lost: the seed's backup, and finding its addresses again (runbook: Everything is lost)."""

from __future__ import annotations

import argparse
import getpass
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chalicelib.domain.catalogue.catalogue import NETWORK_ORDER
from chalicelib.domain.ids import REALMS, MerchantId, Realm, network_id, tenant_id
from infra.commands.common import CanNot, Command, height, network_of, say, services

if TYPE_CHECKING:
    from chalicelib.domain.addresses.addresses import Xpub
    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.domain.recovery.addresses import Restore
    from chalicelib.usecases.recovery.addresses import AddressRecovery
    from chalicelib.wiring import Services

GAP = 1_000
"""Behind the ceiling of the pool, or behind the highest used index where that is further up."""
GAP_IN_BLOCKS = 20_000
"""Where blocks are compared, a wider gap costs nothing but deriving the addresses: a second for each 20,000."""
MARGIN = 1_000


def add(command: Command) -> None:
    """Add the commands of this group."""
    command(seed_backup).add_argument("file", type=Path, help="written anew; an existing file is left alone")
    escrow = command(seed_escrow)
    escrow.add_argument("file", type=Path, help="written anew; an existing file is left alone")
    escrow.add_argument("--public-key", type=Path, required=True, metavar="PEM", help="RSA, 3,072 bits at least")
    escrow.add_argument("--confirm", metavar="WORDS", help="what the command asks for when it is left out")
    back = command(seed_restore)
    back.add_argument("file", type=Path, help="made by seed-backup, or by seed-escrow")
    back.add_argument("--private-key", type=Path, metavar="PEM", help="of the key that seed-escrow encrypted to")
    back.add_argument("--alarm-topic", metavar="ARN", help="as for prepare")
    found = command(restore)
    found.add_argument("--realm", choices=REALMS, required=True)
    found.add_argument("--merchant", required=True, help="whose the addresses are from now on")
    found.add_argument("--network", action="append", choices=NETWORK_ORDER, help="again for more; by default every active one")
    found.add_argument("--from-block", type=height, metavar="N", help="live bitcoin and litecoin: the first block to look through")
    found.add_argument("--gap", type=_many, metavar="N", help=f"unused indexes that end a search; {GAP} (blocks: {GAP_IN_BLOCKS})")
    found.add_argument(
        "--margin", type=_many, default=MARGIN, metavar="N", help="indexes kept free behind one used above the ceiling"
    )
    found.add_argument(
        "--below", type=_many, metavar="N", help="all indexes given out were below; needed where no parameter says so"
    )
    found.add_argument(
        "--never-used", action="append", choices=NETWORK_ORDER, default=[], help="it never had an address; repeat it"
    )
    again = command(rescan)
    again.add_argument("slug", choices=NETWORK_ORDER)
    again.add_argument("--realm", choices=REALMS, default="live")
    again.add_argument("--from-block", type=height, required=True, metavar="N")
    again.add_argument("--to-block", type=height, metavar="N", help="by default the last one that was scanned")


def _many(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 10_000_000:
        raise ValueError(text)
    return number


def seed_backup(args: argparse.Namespace) -> int:
    """Write the seed's backup: ciphertext, which only this stage's KMS key opens. It is opened once to be sure."""
    import boto3

    from chalicelib.custody import seed_backup as files
    from chalicelib.custody.aws import SecretUnusable
    from chalicelib.custody.records import EncryptedSeed
    from chalicelib.custody.seed import SEED_ID

    wired = services()
    record, xpubs = wired.store.get(EncryptedSeed, id=SEED_ID), _xpubs(wired)
    if record is None:
        raise CanNot("this stage has no seed yet: run the command prepare first")
    try:
        document = files.backup(boto3.client("kms"), wired.settings, record, xpubs)
    except SecretUnusable as error:
        raise CanNot(str(error)) from error
    _write(args.file, document)
    print(f"{args.file}: the seed of stage {args.stage}, to be opened with {document['key']}")
    return 0


def seed_escrow(args: argparse.Namespace) -> int:
    """Write the seed encrypted to an RSA key of yours, for the day without the KMS key. Whoever has that key has all deposits."""
    import boto3

    from chalicelib.custody import seed_backup as files
    from chalicelib.custody.aws import SecretUnusable
    from chalicelib.custody.records import EncryptedSeed
    from chalicelib.custody.seed import SEED_ID, unlock_seed

    asked = f"hand out the seed of {args.stage}"
    if args.confirm != asked:
        raise CanNot(f"whoever opens this file has every deposit address: confirm it by --confirm '{asked}'")
    wired = services()
    record = wired.store.get(EncryptedSeed, id=SEED_ID)
    if record is None:
        raise CanNot("this stage has no seed yet: run the command prepare first")
    kms = boto3.client("kms")
    try:
        with unlock_seed(kms, wired.settings, record) as seed:
            document = files.escrow(seed, wired.settings, _xpubs(wired), _read(args.public_key), record.created_at)
        _write(args.file, document)
    except (ValueError, SecretUnusable) as error:
        raise CanNot(str(error)) from error
    by = str(boto3.client("sts").get_caller_identity()["Arn"])
    say({"file": str(args.file), "public_key_sha256": document["public_key_sha256"], "by": by})
    return 0


def seed_restore(args: argparse.Namespace) -> int:
    """Prepare an empty stage with the seed of a backup. No address is given out before `restore` has found the old ones.

    It takes the stage's lock, and takes nothing away that functions may need, as `prepare`.
    """
    import boto3

    from chalicelib.custody import seed_backup as files
    from chalicelib.custody.aws import SecretUnusable
    from chalicelib.domain.errors import BusinessRule
    from infra import bootstrap
    from infra.deploy import create_stack, topic_problem
    from infra.deployment.bucket import make_bucket
    from infra.deployment.lock import locked
    from infra.deployment.taken_away import demand_nothing_taken

    try:
        document = json.loads(_read(args.file))
    except ValueError as error:
        raise CanNot(f"{args.file} is no backup of a seed") from error
    if not isinstance(document, Mapping):
        raise CanNot(f"{args.file} is no backup of a seed")
    private = None if args.private_key is None else _read(args.private_key)
    passphrase = getpass.getpass("passphrase of the private key: ") if private is not None and b"ENCRYPTED" in private else None
    wired = services()
    if problem := topic_problem(args.stage, args.alarm_topic):
        raise CanNot(problem)
    bucket, kms = make_bucket(boto3), boto3.client("kms")
    if args.stage != "local":
        print(bucket.where)
    with locked(bucket, args.stage, print) as lock:
        demand_nothing_taken(boto3, bucket, args.stage)
        create_stack(args.stage, alarm_topic=args.alarm_topic, demand=lock.demand)
        try:
            with files.opened(kms, document, private, passphrase) as seed:
                bootstrap.restore_seed(wired, kms, seed)
        except (KeyError, ValueError, BusinessRule, SecretUnusable) as error:
            raise CanNot(f"{args.file}: {error}") from error
        bootstrap.prepare(wired, kms)
    print(f"stage {args.stage} has its seed again; no address is given out before the command restore is done")
    return 0


def restore(args: argparse.Namespace) -> int:
    """Find all used deposit addresses of a realm's networks on their chains, and let new ones be given out above them."""
    from chalicelib.custody.derive import POOLS, pool_of
    from chalicelib.domain.errors import BusinessRule
    from chalicelib.domain.merchants.merchants import Merchant

    wired, owner = services(), MerchantId(args.merchant)
    if wired.store.get(Merchant, id=owner) is None:
        raise CanNot(f"there is no merchant {owner}")
    known, since = wired.store.catalogue(args.realm).networks, wired.switches.state(args.realm).put_back
    slugs = args.network or [slug for slug in known if known[slug].status == "active" and slug not in args.never_used]
    networks = [network_of(wired, args.realm, slug) for slug in slugs]
    try:
        below = {pool: _below(wired, args.realm, pool, args.below, since) for pool in sorted({pool_of(slug) for slug in slugs})}
        restorers = [wired.restorer(network, tenant_id(owner, args.realm)) for network in networks]
        for slug in args.never_used:
            wired.pools.never_used(network_id(args.realm, slug), wired.clock_of(args.realm).now_ms())
        begun = []
        for network, restorer in zip(networks, restorers, strict=True):
            pool = pool_of(network.slug)
            last, gap = wired.pools.last_used(args.realm, pool), args.gap or _gap(network)
            begun.append(restorer.begin(gap, args.margin, args.from_block, last, below[pool], since))
        found = _searched(wired, args.realm, restorers, begun)
    except (BusinessRule, LookupError) as error:
        raise CanNot(str(error)) from error
    pools = {pool: _opened(wired, args.realm, pool) for pool in POOLS if pool in {pool_of(s) for s in [*slugs, *args.never_used]}}
    say({"networks": [_told(each) for each in found], "pools": pools})
    return 0


def _below(wired: Services, realm: Realm, pool: str, typed: int | None, since: int | None) -> int:
    """Below which index addresses of a pool may have been given out. Raises CanNot where nobody knows."""
    said = wired.pools.below(realm, pool, since)
    parameter = wired.settings.ceiling_parameter(f"{realm}:{pool}")
    if said is None and typed is None:
        raise CanNot(f"the parameter {parameter} is not there: say by --below N that all addresses given out were below index N")
    if typed is not None and said is not None and typed < said:
        raise CanNot(f"--below is {typed}; the parameter {parameter} says that it has to be {said} or more, or left out")
    return max(said or 0, typed or 0)


def _gap(network: Network) -> int:
    return GAP_IN_BLOCKS if network.family == "utxo" and not network.simulated else GAP


def _searched(wired: Services, realm: Any, restorers: Sequence[AddressRecovery], begun: Sequence[Restore]) -> list[Restore]:
    """Search every network to its end, which a higher index on another network of the same pool may put further off."""
    from chalicelib.custody.derive import pool_of

    found = list(begun)
    while True:
        for at, (restorer, restore) in enumerate(zip(restorers, found, strict=True)):
            for after in restorer.steps(restore):
                found[at] = after
                _progress(after)
        known = [restore.knowing(wired.pools.last_used(realm, pool_of(restore.network))) for restore in found]
        if all(restore.done for restore in known):
            return found
        found = known


def _progress(restore: Restore) -> None:
    """One line for each step, beside the answer: a search of a hundred thousand addresses takes up to half an hour."""
    if restore.to_block is not None and not restore.searched:
        at = f"block {(restore.next_block or 1) - 1} of {restore.to_block}"
    else:
        at = f"index {restore.next_index} of {restore.end}" if not restore.searched else "searched"
    print(f"{restore.network}: {at}, {restore.found} found, watched up to {restore.watched}", file=sys.stderr)


def _told(restore: Restore) -> dict[str, Any]:
    answer = {"network": restore.network, "found": restore.found, "highest_index": restore.highest, "watched": restore.watched}
    answer["below"] = restore.below
    if restore.to_block is None:
        return {**answer, "holding": restore.holding}
    return {**answer, "first_block": restore.first_block, "from_block": restore.from_block, "to_block": restore.to_block}


def _opened(wired: Services, realm: Any, pool: str) -> dict[str, Any]:
    missing = wired.pools.missing(realm, pool)
    if missing:
        return {"given_out": False, "not_searched": missing}
    return {"given_out": True, "next_index": wired.pools.reopen(realm, pool)}


def rescan(args: argparse.Namespace) -> int:
    """Have scanned blocks looked at again, for what was paid to addresses that were not known then. The polls do it."""
    from chalicelib.domain.chain import Cursor
    from chalicelib.domain.errors import BusinessRule
    from chalicelib.domain.scanning.rescans import MOST_BLOCKS

    wired = services()
    network = network_of(wired, args.realm, args.slug)
    cursor = wired.store.get(Cursor, network=network.id)
    if cursor is None:
        raise CanNot(f"{network.id} was never scanned")
    last = cursor.number if args.to_block is None else args.to_block
    ordered = []
    try:
        for first in range(args.from_block, last + 1, MOST_BLOCKS):
            ordered.append(wired.rescans.order(network, first, min(last, first + MOST_BLOCKS - 1)))
    except BusinessRule as error:
        done = f"; ordered up to block {ordered[-1].to_block}" if ordered else ""
        raise CanNot(f"{network.id}: {error}{done}") from error
    if not ordered:
        raise CanNot(f"{network.id}: nothing from block {args.from_block} on was scanned yet")
    say([{"id": each.id, "from_block": each.from_block, "to_block": each.to_block} for each in ordered])
    return 0


def _xpubs(wired: Services) -> list[Xpub]:
    from chalicelib.custody.derive import POOLS
    from chalicelib.domain.addresses.addresses import Xpub

    found = [wired.store.get(Xpub, realm=realm, pool=pool) for realm in wired.settings.realms for pool in POOLS]
    return [xpub for xpub in found if xpub is not None]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CanNot(f"{path}: {error.strerror}") from error


def _write(path: Path, document: dict[str, Any]) -> None:
    """For the owner's eyes, and never over another file: it may be the only backup."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(json.dumps(document, indent=2) + "\n")
    except OSError as error:
        raise CanNot(f"{path}: {error.strerror}") from error
