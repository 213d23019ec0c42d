"""Commands for the secrets that node URLs refer to: they are kept in Secrets Manager, each with the origins it may be sent to.

https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_PutSecretValue.html: a new version becomes AWSCURRENT, and the
one that was becomes AWSPREVIOUS. What is stored already is not put again: the version before it would lose that label.
"""

from __future__ import annotations

import argparse
import getpass
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from chalicelib.domain.catalogue.catalogue import NETWORK_ORDER
from chalicelib.domain.versions import version_after
from chalicelib.usecases.catalogue.node_secrets import (
    MOST_ORIGINS,
    MOST_VALUE,
    NodeSecret,
    decoded,
    encoded,
    has_reference,
    name_problem,
    origin,
    origin_of,
    reference,
    value_problem,
)
from infra.commands.common import CanNot, Command, network_of, say, services

if TYPE_CHECKING:
    from chalicelib.settings import Settings

_LEAST = 16
"""Characters from which a part of a path or query is taken for a secret. Providers' keys have 32 and more."""
_MOST_NAMES = 50


def add(command: Command) -> None:
    """Add the commands of this group."""
    secret = command(node_secret)
    secret.add_argument("name", help="what follows gateway-STAGE-node- in the secret's name")
    secret.add_argument(
        "--host",
        action="append",
        metavar="HOST",
        help="where it may be sent by https: a host or host:port; by http only as http://HOST:PORT. "
        "Give it again for each further one. Replaces all there were; by default they stay",
    )
    command(move_node_secrets).add_argument("slug", choices=NETWORK_ORDER)


def node_secret(args: argparse.Namespace) -> int:
    """Store a secret of nodes, or a new version of it. The value is read from standard input; functions use it within 5 minutes."""
    settings = _settings()
    prefix = settings.node_secret("")
    name = args.name if args.name.startswith(prefix) else settings.node_secret(args.name)
    if problem := name_problem(name, prefix):
        raise CanNot(problem)
    manager = _client()
    before = _stored(manager, name)
    wanted = NodeSecret("", _origins(args.host) if args.host else before.origins if before else ())
    if not wanted.origins:
        raise CanNot(f"there is no secret {name} yet: say by --host where it may be sent")
    wanted = replace(wanted, value=_typed())
    if problem := value_problem(wanted.value):
        raise CanNot(f"the value on standard input {problem}")
    done = _store(manager, settings, name, wanted)
    say({"secret": name, "hosts": list(wanted.origins), "stored": done, "write": reference(name)})
    return 0


def move_node_secrets(args: argparse.Namespace) -> int:
    """Move passwords and keys in the node URLs of a live network into secrets. Run it when every function has this version.

    The password, or a user name without one, and each part of path or query of 16 characters and more. Cut anywhere, it goes on
    with the same secrets; twice changes nothing. Secrets are stored before the URLs that refer to them.
    """
    from chalicelib.domain.errors import BusinessRule
    from chalicelib.usecases.ports.changes import Save

    settings = _settings()
    wired = services()
    before = network_of(wired, "live", args.slug)
    urls = [url for url in (before.rpc_url, *before.more_rpc_urls) if url is not None]
    if not urls:
        raise CanNot(f"{args.slug} has no node")
    found = [part for url in [*urls, before.ws_url or ""] for part in _secret_parts(url)]
    named = _named(_client(), settings, args.slug, found)
    wanted: dict[str, Any] = {"rpc_urls": [_referring(url, named) for url in urls]}
    if before.ws_url is not None:
        wanted["ws_url"] = _referring(before.ws_url, named)
    try:
        after = wired.networks.changed(before, wanted)
    except BusinessRule as error:
        raise CanNot(str(error)) from error
    if after != before:
        wired.store.commit([Save(replace(after, version=version_after(before)))])
        wired.store.forget_catalogue()
    plain = sum(not has_reference(url) for url in wanted["rpc_urls"])
    say({"network": args.slug, "moved": sorted(named.values()), "urls_without_a_secret": plain})
    return 0


def _settings() -> Settings:
    settings = services().settings
    if "live" not in settings.realms:
        raise CanNot(f"the stage {settings.stage} has no nodes")
    return settings


def _client() -> Any:
    import boto3

    return boto3.client("secretsmanager")


def _typed() -> str:
    """One line of standard input. A terminal does not show it."""
    if sys.stdin.isatty():
        return getpass.getpass("value of the secret (not shown): ")
    return sys.stdin.read(MOST_VALUE + 3).removesuffix("\n").removesuffix("\r")


def _origins(hosts: Iterable[str]) -> tuple[str, ...]:
    try:
        found = tuple(dict.fromkeys(origin(host) for host in hosts))
    except ValueError as error:
        raise CanNot(f"--host: {error}") from None
    if len(found) > MOST_ORIGINS:
        raise CanNot(f"--host: at most {MOST_ORIGINS}")
    return found


def _stored(manager: Any, name: str) -> NodeSecret | None:
    """The current version, None where there is no secret. One in another form has no value and may be sent nowhere."""
    from botocore.exceptions import ClientError

    try:
        text = manager.get_secret_value(SecretId=name).get("SecretString", "")
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code == "ResourceNotFoundException":
            return None
        if code == "InvalidRequestException":
            again = f"aws secretsmanager restore-secret --secret-id {name}"
            raise CanNot(f"{name} is marked for deletion: bring it back by {again}, or choose another name") from None
        raise
    try:
        return decoded(text)
    except ValueError:
        return NodeSecret("", ())


def _store(manager: Any, settings: Settings, name: str, wanted: NodeSecret) -> str:
    """Store it, and say how. What another command stores meanwhile becomes the version before."""
    from botocore.exceptions import ClientError

    from chalicelib.custody.native import STAGE_TAG

    tags = [{"Key": STAGE_TAG, "Value": settings.stage}]
    before = _stored(manager, name)
    if before is None:
        try:
            manager.create_secret(Name=name, SecretString=encoded(wanted), Tags=tags)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ResourceExistsException":
                raise
            before = _stored(manager, name)
        else:
            return "new"
    if before != wanted:
        manager.put_secret_value(SecretId=name, SecretString=encoded(wanted))
    manager.tag_resource(SecretId=name, Tags=tags)
    return "as it was" if before == wanted else "new version"


def _secret_parts(url: str) -> Iterator[tuple[str, str, str]]:
    """What looks like a secret in a URL: host, value, origin. Of a URL with a reference, or of another form than one may have,
    nothing."""
    if has_reference(url):
        return
    try:
        place = origin_of(url)
    except ValueError:
        return
    host = urlsplit(url).hostname or ""
    for part in dict.fromkeys(part for _, part in _pieces(url) if part is not None):
        yield host, part, place


def _pieces(url: str) -> Iterator[tuple[str, str | None]]:
    """A URL cut into pieces: each as it stands there, and the value of those that look like a secret."""
    parts = urlsplit(url)
    info, at, place = parts.netloc.rpartition("@")
    user, colon, password = info.partition(":")
    yield f"{parts.scheme}://", None
    yield user, None if colon else _value(user)
    yield colon, None
    yield password, _value(password)
    yield f"{at}{place}", None
    rest = urlunsplit(parts._replace(scheme="", netloc=""))
    for piece in re.split(r"([/?&=:])", rest):
        # In path and query what is put back has to be spelled as it was.
        same = len(piece) >= _LEAST and quote(unquote(piece), safe="") == piece
        yield piece, _value(piece) if same else None


def _value(raw: str) -> str | None:
    value = unquote(raw)
    return value if value_problem(value) is None else None


def _referring(url: str, named: dict[tuple[str, str], str]) -> str:
    """The URL with references in place of the values that have a name."""
    if has_reference(url):
        return url
    host = urlsplit(url).hostname or ""
    return "".join(
        piece if value is None or (host, value) not in named else reference(named[host, value]) for piece, value in _pieces(url)
    )


def _named(manager: Any, settings: Settings, slug: str, found: Iterable[tuple[str, str, str]]) -> dict[tuple[str, str], str]:
    """Store each value of each host as a secret; its name by host and value."""
    places: dict[tuple[str, str], set[str]] = {}
    for host, value, place in found:
        places.setdefault((host, value), set()).add(place)
    named = {}
    for (host, value), origins in places.items():
        secret = NodeSecret(value, tuple(sorted(origins)))
        base = f"{slug}-{re.sub('[^a-z0-9]+', '-', host)}"[:90].strip("-")
        named[host, value] = _first_free(manager, settings, base, secret)
    return named


def _first_free(manager: Any, settings: Settings, base: str, secret: NodeSecret) -> str:
    """Store a secret under the first name that is free, or has just this value already. None is overwritten."""
    for number in range(1, _MOST_NAMES + 1):
        name = settings.node_secret(base if number == 1 else f"{base}-{number}")
        before = _stored(manager, name)
        if before is None or before.value == secret.value:
            kept = () if before is None else before.origins
            _store(manager, settings, name, replace(secret, origins=tuple(sorted({*kept, *secret.origins}))))
            return name
    raise CanNot(f"there are {_MOST_NAMES} secrets {base} already")
