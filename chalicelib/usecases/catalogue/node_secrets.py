"""Secrets in node URLs: `{secret:NAME}` stands in place of a password, of a key, or of a part of path or query.

What is stored and shown is the reference. The value is in Secrets Manager, as JSON with the origins (scheme, host, port; RFC 6454)
that it may be sent to: who can set a URL could send it anywhere else. Names begin with the stage's prefix, and the rights of
functions end there.

A URL with a reference has a stricter form than others, so that every parser finds the same host in it; and the value is
percent-encoded where it is put in, so that it can not change the host.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

MOST_VALUE = 1_000
MOST_ORIGINS = 20

_REFERENCE = re.compile(r"\{secret:([A-Za-z0-9._-]+)\}", re.ASCII)
_MARK = "{secret:"
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,98}[a-z0-9])?", re.ASCII)
_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_HOST = r"(?P<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?"
_ORIGIN = re.compile(rf"(?P<scheme>https?|wss?)://{_HOST}", re.ASCII)
# RFC 3986: unreserved characters, sub-delimiters and percent-encoded ones, and here references.
_PIECE = rf"[A-Za-z0-9._~!$&'()*+,;=%-]|{_REFERENCE.pattern.replace('(', '(?:')}"
_URL = re.compile(
    rf"(?P<scheme>https?|wss?)://(?:(?:{_PIECE}|:)*@)?{_HOST}(?:/(?:{_PIECE}|[:/])*)?(?:\?(?:{_PIECE}|[:/?])*)?", re.ASCII
)


@dataclass(frozen=True, slots=True)
class NodeSecret:
    """A secret of a node, and the origins that it may be sent to."""

    value: str
    origins: tuple[str, ...]

    def __repr__(self) -> str:
        return f"NodeSecret(origins={self.origins!r})"


def has_reference(url: str) -> bool:
    """Whether a URL asks for a secret, well-formed or not."""
    return _MARK in url


def names_in(url: str) -> tuple[str, ...]:
    """The names of the secrets that a URL refers to, each once."""
    return tuple(dict.fromkeys(_REFERENCE.findall(url)))


def reference(name: str) -> str:
    """What stands in a URL for the secret `name`."""
    return f"{_MARK}{name}}}"


def braces_problem(url: str) -> str | None:
    """The problem with the braces of a URL, None where there are none, or its references are where they may be."""
    if not {"{", "}"} & set(url):
        return None
    if _URL.fullmatch(url) is None:
        return "may have braces only as {secret:NAME}, in place of user, password, or a part of path or query"
    return None


def name_problem(name: str, prefix: str) -> str | None:
    """The problem with a secret's name; `prefix` begins all names of the stage."""
    if name.startswith(prefix) and _NAME.fullmatch(name.removeprefix(prefix)):
        return None
    return f"must name secrets as {prefix}NAME, NAME of a-z, 0-9 and - (at most 100)"


def value_problem(value: str) -> str | None:
    """The problem with a secret's value."""
    if 0 < len(value) <= MOST_VALUE and value.isascii() and value.isprintable() and " " not in value:
        return None
    return f"must have 1 to {MOST_VALUE} characters, ASCII without blanks"


def origin(text: str) -> str:
    """`https://host` of a host, a host with a port, or an origin, in one spelling. Raises ValueError."""
    found = _ORIGIN.fullmatch(text if "://" in text else f"https://{text}")
    if found is None:
        raise ValueError(f"{text[:100]!r} is no host, host:port or origin such as http://10.0.0.7:8332")
    return _origin(found)


def origin_of(url: str) -> str:
    """The origin of a URL that may have references. Raises ValueError."""
    found = _URL.fullmatch(url)
    if found is None:
        raise ValueError("the node's URL has a secret where none may be")
    return _origin(found)


def _origin(found: re.Match[str]) -> str:
    scheme, host, port = found["scheme"], found["host"].lower(), int(found["port"] or _PORTS[found["scheme"]])
    if not 0 < port < 65_536:
        raise ValueError(f"there is no port {port}")
    return f"{scheme}://{host}" if port == _PORTS[scheme] else f"{scheme}://{host}:{port}"


def encoded(secret: NodeSecret) -> str:
    """How a secret is stored in Secrets Manager."""
    return json.dumps({"value": secret.value, "origins": list(secret.origins)})


def decoded(text: str) -> NodeSecret:
    """What `encoded` gave. Raises ValueError, which quotes nothing of the text."""
    try:
        stored = json.loads(text)
        value, origins = stored["value"], stored["origins"]
        right = isinstance(value, str) and isinstance(origins, list) and all(isinstance(each, str) for each in origins)
    except (ValueError, KeyError, TypeError):
        right = False
    if not right or value_problem(value) is not None:
        # From None: the parser's error has the text.
        raise ValueError("is not in the form that the command node-secret writes") from None
    return NodeSecret(value, tuple(origins))


def filled(url: str, secrets: Mapping[str, NodeSecret]) -> str:
    """The URL with each secret in its place. Raises ValueError where one must not be sent to the URL's origin."""
    place = origin_of(url)
    for name in names_in(url):
        if place not in secrets[name].origins:
            raise ValueError(f"the secret {name} must not be sent to {place}")
    return _REFERENCE.sub(lambda found: quote(secrets[found[1]].value, safe=""), url)


def hidden_parts(secrets: Iterable[NodeSecret]) -> list[str]:
    """The values as they are, and as they stand in a URL."""
    return [text for secret in secrets for text in (secret.value, quote(secret.value, safe=""))]
