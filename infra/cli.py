"""The operator's command line: ``python -m infra.cli --stage prod COMMAND``. Needs AWS credentials of an operator.

Prepares a deployment, makes merchants and keys, connects networks to nodes, takes up halted ones, and audits the books.
What an operator can do something about is one line on standard error, and exit code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from chalicelib.domain.catalogue import NETWORK_ORDER
from chalicelib.domain.ids import REALMS, MerchantId, tenant_id
from chalicelib.domain.merchants import PERMISSIONS, PRESETS
from chalicelib.settings import STAGES

if TYPE_CHECKING:
    from chalicelib.domain.catalogue import Network
    from chalicelib.usecases.scan import Scanner
    from chalicelib.wiring import Services


class _CanNot(Exception):
    """The command can not be done as it was given. The message tells the operator why."""


def _say(record: Any) -> None:
    print(json.dumps(record, indent=2))


def _services() -> Services:
    """What the commands work with. Raises _CanNot where the environment is not complete."""
    from chalicelib.wiring import services

    try:
        return services()
    except (LookupError, ValueError) as error:  # no region; a setting that is not allowed
        raise _CanNot(str(error)) from error


def _network(wired: Services, realm: str, slug: str) -> Network:
    from chalicelib.domain.catalogue import Network

    found = wired.store.get(Network, id=f"{realm}:{slug}")
    if found is None:
        raise _CanNot("this stage is not prepared yet: run the command prepare first")
    return found


def _scanner(wired: Services, network: Network) -> Scanner:
    try:
        return wired.scanner(network)
    except (LookupError, ValueError) as error:  # it has no node; what was given as URL is none
        raise _CanNot(str(error)) from error


def prepare(args: argparse.Namespace) -> int:
    """Make or update tables, queues, keys, logs, alarms, the catalogue, the seed. Running it again leaves what is there."""
    import boto3

    from chalicelib.domain import demo
    from chalicelib.domain.merchants import Merchant
    from infra import bootstrap
    from infra.deploy import create_stack

    wired = _services()
    create_stack(args.stage, alarm_topic=args.alarm_topic)
    bootstrap.prepare(wired, boto3.client("kms"))
    if args.stage == "demo" and wired.store.get(Merchant, id=demo.SHOP) is None:
        _say(bootstrap.demo_keys(wired))  # to be published: they are shown this once
    print(f"stage {args.stage} is prepared")
    return 0


def gateway(args: argparse.Namespace) -> int:
    """Give API Gateway's own answers the service's shape. Run it after each `chalice deploy`, which resets them."""
    from infra import gateway_answers

    try:
        api_id = gateway_answers.api_of(args.stage)
    except LookupError as error:
        raise _CanNot(str(error)) from error
    gateway_answers.put_answers(api_id)
    print(f"the API {api_id} answers in the service's words")
    return 0


def merchant(args: argparse.Namespace) -> int:
    """Make a merchant; prints its id."""
    from infra import bootstrap

    _say({"merchant": bootstrap.make_merchant(_services(), args.name), "name": args.name})
    return 0


def key(args: argparse.Namespace) -> int:
    """Make an API key; prints it, this once."""
    from chalicelib.domain.merchants import Merchant
    from infra import bootstrap

    wired, owner = _services(), MerchantId(args.merchant)
    if wired.store.get(Merchant, id=owner) is None:
        raise _CanNot(f"there is no merchant {owner}")
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
    except ValueError as error:  # a permission or an address range that there is not
        raise _CanNot(str(error)) from error
    _say({"key": plain, "realm": args.realm, "level": args.level})
    return 0


def keys(args: argparse.Namespace) -> int:
    """List a merchant's keys, without the keys themselves."""
    from chalicelib.domain.merchants import Merchant
    from chalicelib.domain.times import iso

    wired, owner = _services(), MerchantId(args.merchant)
    if wired.store.get(Merchant, id=owner) is None:
        raise _CanNot(f"there is no merchant {owner}")
    for realm in REALMS:
        for found in wired.api_keys.every(tenant_id(owner, realm)):
            state = "revoked" if found.revoked_at is not None else "valid"
            print(f"{found.id}  {found.prefix}…  {found.realm}  {found.level}  {state}  {iso(found.created_at)}  {found.name}")
    return 0


def revoke(args: argparse.Namespace) -> int:
    """Refuse a key from now on."""
    from chalicelib.domain.errors import NotFound

    wired = _services()
    for realm in REALMS:
        try:
            found = wired.api_keys.revoke(tenant_id(MerchantId(args.merchant), realm), args.key)
        except NotFound:
            continue
        print(f"{found.id} is revoked")
        return 0
    raise _CanNot(f"merchant {args.merchant} has no key {args.key}")


def multisig_reset(args: argparse.Namespace) -> int:
    """Take a merchant's signers away, who lost their keys. Noted in its settings with the time and the caller's ARN."""
    import boto3

    from chalicelib.domain.errors import BusinessRule
    from chalicelib.domain.merchants import Merchant

    wired, owner = _services(), MerchantId(args.merchant)
    if wired.store.get(Merchant, id=owner) is None:
        raise _CanNot(f"there is no merchant {owner}")
    by = str(boto3.client("sts").get_caller_identity()["Arn"])
    try:
        changed = wired.merchant_settings.reset(tenant_id(owner, args.realm), by)
    except BusinessRule as error:
        raise _CanNot(f"{owner} in {args.realm}: {error}") from error
    _say({"merchant": owner, "realm": args.realm, "revision": changed.version, "by": by, "signers": changed.resets[-1].signers})
    return 0


def network(args: argparse.Namespace) -> int:
    """Connect a live network to its nodes, or put it to rest. Activating makes its hot wallet and starts scanning at the tip."""
    import boto3

    from chalicelib.domain.errors import BusinessRule
    from chalicelib.usecases.changes import Save
    from chalicelib.usecases.node_urls import url_problem
    from infra import bootstrap

    wired = _services()
    before = _network(wired, "live", args.slug)
    wanted = {"status": args.status} | {name: value for name, value in _settings_of(args).items() if value is not None}
    for url in args.rpc_url or ():
        if problem := url_problem(url, ("http", "https"), credentials=True):
            raise _CanNot(f"--rpc-url: the URL {problem}")
    if args.status == "active" and not (args.rpc_url or before.rpc_url):
        raise _CanNot("an active network needs --rpc-url")
    try:
        after = replace(wired.networks.changed(before, wanted), version=before.version + 1)
    except BusinessRule as error:
        raise _CanNot(str(error)) from error
    if after.status == "active":
        # The scanner starts before the first address can be given out: nothing paid to one is ever below the cursor.
        _scanner(wired, after).start()
    wired.store.commit([Save(after)])
    wired.store.forget_catalogue()
    if after.status == "active":
        bootstrap.make_hot_wallets(wired, boto3.client("kms"), "live", [args.slug])
    print(f"{args.slug} is {after.status}")
    return 0


def _settings_of(args: argparse.Namespace) -> dict[str, Any]:
    return {
        "rpc_urls": args.rpc_url,
        "agreement_usd": args.agreement_usd,
        "audit_usd": args.audit_usd,
        "finality_tag": args.finality_tag,
        "finality_usd": args.finality_usd,
        "tracing": args.tracing,
    }


def reconcile(args: argparse.Namespace) -> int:
    """Compare the balance of every deposit address of a live EVM network with the ledger, and book what contracts sent unseen."""
    from chalicelib.usecases.ports.failures import Unavailable

    wired = _services()
    network = _network(wired, "live", args.slug)
    if network.family != "evm" or network.status != "active":
        raise _CanNot(f"{args.slug} is no active EVM network")
    try:
        booked = wired.reconciler(network).everything()
    except (LookupError, Unavailable) as error:
        raise _CanNot(str(error)) from error
    print(f"{args.slug}: {booked} booked")
    return 0


def resume(args: argparse.Namespace) -> int:
    """Take up a network again that halted on a deep reorganisation. Scans again from behind the block given."""
    wired = _services()
    scanner = _scanner(wired, _network(wired, args.realm, args.slug))
    try:
        cursor = scanner.resume(args.from_block)
    except ValueError as error:  # it is not halted
        raise _CanNot(str(error)) from error
    print(f"{args.realm}:{args.slug} goes on behind block {cursor.number}")
    return 0


def audit(_: argparse.Namespace) -> int:
    """Prove that the books are whole. Exit code 1, and a sentence for each violation, when they are not."""
    from chalicelib.usecases.audit import audit as run

    found = run(_services().store)
    for sentence in found:
        print(sentence)
    print(f"{len(found)} violations" if found else "the books are whole")
    return 1 if found else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.cli", description=__doc__)
    parser.add_argument("--stage", required=True, choices=STAGES, help="which deployment")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        added = commands.add_parser(run.__name__.replace("_", "-"), help=(run.__doc__ or "").split(".")[0])
        added.set_defaults(run=run)
        return added

    command(prepare).add_argument(
        "--alarm-topic",
        metavar="ARN",
        help="SNS topic that alarms are sent to; by default the one of last time, '' for none",
    )
    command(gateway)
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
    lost = command(multisig_reset)
    lost.add_argument("merchant")
    lost.add_argument("--realm", choices=REALMS, required=True)
    net = command(network)
    net.add_argument("slug", choices=NETWORK_ORDER)
    net.add_argument("--rpc-url", action="append", help="a node; give it again for each further one. Replaces all there were")
    net.add_argument("--audit-usd", type=int, metavar="USD", help="logs of blocks with a payment worth more are always compared")
    net.add_argument("--agreement-usd", type=int, metavar="USD", help="a payment worth more needs two nodes that vouch for it")
    net.add_argument("--finality-tag", choices=("safe", "finalized"), help="what a node has to call the block of a large payment")
    net.add_argument("--finality-usd", type=int, metavar="USD", help="what a large payment is worth at least")
    net.add_argument("--tracing", choices=("auto", "on", "off"), help="whether nodes are asked what contracts sent (EVM networks)")
    net.add_argument("--status", choices=("active", "inactive"), default="active")
    against = command(reconcile)
    against.add_argument("slug", choices=NETWORK_ORDER)
    again = command(resume)
    again.add_argument("slug", choices=NETWORK_ORDER)
    again.add_argument("--realm", choices=REALMS, default="live")
    again.add_argument(
        "--from-block", type=_height, metavar="N", help="scan again what follows this block; by default all that is remembered"
    )
    command(audit)
    return parser


def _height(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    args = _parser().parse_args(words)
    os.environ["STAGE"] = args.stage
    from botocore.exceptions import BotoCoreError, ClientError

    from chalicelib.usecases.changes import Conflict
    from chalicelib.usecases.ports.failures import Unavailable

    try:
        result: int = args.run(args)
    except (_CanNot, ClientError, BotoCoreError) as error:
        return _sorry(str(error))
    except Unavailable as error:
        # The store hides what AWS said behind its own words; an operator wants to see it.
        first = _first_cause(error)
        return _sorry(str(error) if first is error else f"{error}: {first}")
    except Conflict:
        return _sorry("something else changed the same records meanwhile: try again")
    return result


def _first_cause(error: BaseException) -> BaseException:
    while (before := error.__cause__ or (None if error.__suppress_context__ else error.__context__)) is not None:
        error = before
    return error


def _sorry(message: str) -> int:
    print(" ".join(message.split()), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
