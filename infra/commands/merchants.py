"""Commands for merchants: they themselves, their API keys, their signers."""

from __future__ import annotations

import argparse

from chalicelib.domain.ids import REALMS, MerchantId, tenant_id
from chalicelib.domain.merchants.merchants import PERMISSIONS, PRESETS
from infra.commands.common import CanNot, Command, say, services


def add(command: Command) -> None:
    """Add the commands of this group."""
    command(merchant).add_argument("name")
    made = command(key)
    made.add_argument("merchant")
    made.add_argument("--realm", choices=REALMS, required=True)
    made.add_argument("--level", choices=("client", "admin"), default="client")
    made.add_argument(
        "--permissions", default="full", help=f"comma list of presets ({', '.join(PRESETS)}) or {', '.join(PERMISSIONS)}"
    )
    made.add_argument("--name", default="made by the operator")
    made.add_argument("--ip", action="append", help="allowed address or CIDR range; repeat for more")
    made.add_argument("--enterprise", action="store_true", help="enterprise rate limits")
    command(keys).add_argument("merchant")
    gone = command(revoke)
    gone.add_argument("merchant")
    gone.add_argument("key", help="the key's id, key_...")
    bears = command(fee_budget)
    bears.add_argument("merchant")
    bears.add_argument("--realm", choices=REALMS, required=True)
    most = bears.add_mutually_exclusive_group(required=True)
    most.add_argument("--usd", type=int, help="US dollars of network fees that the operator bears on each network in a UTC day")
    most.add_argument("--default", action="store_true", help="what FEE_BUDGET_USD says, again")
    lost = command(multisig_reset)
    lost.add_argument("merchant")
    lost.add_argument("--realm", choices=REALMS, required=True)


def merchant(args: argparse.Namespace) -> int:
    """Make a merchant; prints its id."""
    from infra import bootstrap

    say({"merchant": bootstrap.make_merchant(services(), args.name), "name": args.name})
    return 0


def key(args: argparse.Namespace) -> int:
    """Make an API key; prints it, this once."""
    from chalicelib.domain.errors import BusinessRule
    from chalicelib.domain.merchants.merchants import Merchant
    from infra import bootstrap

    wired, owner = services(), MerchantId(args.merchant)
    if wired.store.get(Merchant, id=owner) is None:
        raise CanNot(f"there is no merchant {owner}")
    try:
        plain = bootstrap.make_key(
            wired,
            owner,
            args.realm,
            args.level,
            args.permissions.split(","),
            args.name,
            ip_whitelist=tuple(args.ip or ()),
            enterprise=args.enterprise,
        )
    except (ValueError, BusinessRule) as error:  # a permission or an address range that there is not; a suspended merchant
        raise CanNot(str(error)) from error
    say({"key": plain, "realm": args.realm, "level": args.level})
    return 0


def keys(args: argparse.Namespace) -> int:
    """List a merchant's keys, without the keys themselves."""
    from chalicelib.domain.merchants.merchants import Merchant
    from chalicelib.domain.times import iso

    wired, owner = services(), MerchantId(args.merchant)
    if wired.store.get(Merchant, id=owner) is None:
        raise CanNot(f"there is no merchant {owner}")
    for realm in REALMS:
        for found in wired.api_keys.every(tenant_id(owner, realm)):
            state = "revoked" if found.revoked_at is not None else "valid"
            print(f"{found.id}  {found.prefix}…  {found.realm}  {found.level}  {state}  {iso(found.created_at)}  {found.name}")
    return 0


def revoke(args: argparse.Namespace) -> int:
    """Refuse a key from now on."""
    from chalicelib.domain.errors import NotFound

    wired = services()
    for realm in REALMS:
        try:
            found = wired.api_keys.revoke(tenant_id(MerchantId(args.merchant), realm), args.key)
        except NotFound:
            continue
        print(f"{found.id} is revoked")
        return 0
    raise CanNot(f"merchant {args.merchant} has no key {args.key}")


def multisig_reset(args: argparse.Namespace) -> int:
    """Take a merchant's signers away, who lost their keys. Noted in its settings with the time and the caller's ARN."""
    import boto3

    from chalicelib.domain.errors import BusinessRule
    from chalicelib.domain.merchants.merchants import Merchant

    wired, owner = services(), MerchantId(args.merchant)
    if wired.store.get(Merchant, id=owner) is None:
        raise CanNot(f"there is no merchant {owner}")
    by = str(boto3.client("sts").get_caller_identity()["Arn"])
    try:
        changed = wired.merchant_settings.reset(tenant_id(owner, args.realm), by)
    except BusinessRule as error:
        raise CanNot(f"{owner} in {args.realm}: {error}") from error
    say({"merchant": owner, "realm": args.realm, "revision": changed.version, "by": by, "signers": changed.resets[-1].signers})
    return 0


def fee_budget(args: argparse.Namespace) -> int:
    """Set how much of the network fees of one merchant's withdrawals the operator bears. Noted with the caller's ARN."""
    import boto3

    from chalicelib.domain.merchants.merchants import Merchant
    from chalicelib.usecases.withdrawals.fee_budget import set_budget

    wired, owner = services(), MerchantId(args.merchant)
    if wired.store.get(Merchant, id=owner) is None:
        raise CanNot(f"there is no merchant {owner}")
    if args.usd is not None and not 0 <= args.usd < 1_000_000:
        raise CanNot(f"--usd is {args.usd}; it has to be a whole number from 0 to 999999")
    by = str(boto3.client("sts").get_caller_identity()["Arn"])
    made = set_budget(wired.store, tenant_id(owner, args.realm), args.usd, wired.clock.now_ms(), by)
    usd = wired.settings.fee_budget_usd if made.usd is None else made.usd
    say({"merchant": owner, "realm": args.realm, "usd": usd, "default": made.usd is None, "by": by})
    return 0
