"""URLs that a webhook may have, and public IP addresses. Pure: resolves nothing."""

from __future__ import annotations

import ipaddress
import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from urllib.parse import SplitResult, urlsplit

from chalicelib.domain.ip_addresses import is_link_local_or_metadata

MAX_URL = 2048

# Everything that the IANA registry of special-purpose IPv4 addresses says is not globally reachable, with the deprecated
# 6to4 relays, multicast (224/4) and what is reserved (240/4). iana.org/assignments/iana-ipv4-special-registry
_CLOSED_4 = tuple(
    IPv4Network(block)
    for block in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
        "224.0.0.0/4", "240.0.0.0/4",
    )
)  # fmt: skip
_GLOBAL_6 = IPv6Network("2000::/3")
# Of 2000::/3, what carries an IPv4 address inside (Teredo in 2001::/23, 6to4), protocol assignments, documentation. Mapped,
# compatible and NAT64 addresses, unique local, link-local and multicast ones lie outside 2000::/3.
# iana.org/assignments/iana-ipv6-special-registry
_CLOSED_6 = tuple(IPv6Network(block) for block in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))

_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)", re.ASCII | re.IGNORECASE)
_LOOKS_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII | re.IGNORECASE)
_LOCAL_NAMES = ("localhost", "local", "internal", "home.arpa")


def is_public(address: str) -> bool:
    """Whether the IP address (as text, without port) is publicly reachable, so that it can not be an internal one.

    Raises ValueError for text that is no address.
    """
    ip = ipaddress.ip_address(address)
    if is_link_local_or_metadata(address):
        return False
    if isinstance(ip, IPv6Address):
        return ip.scope_id is None and ip in _GLOBAL_6 and not any(ip in block for block in _CLOSED_6)
    return not any(ip in block for block in _CLOSED_4)


def url_problems(url: object, *, allow_private: bool = False) -> list[str]:
    """The reasons why `url` is refused for a webhook, as constraints for the caller; empty when it is allowed.

    `allow_private` (the local stack) also lets http and private hosts pass, but no link-local address and no metadata service:
    those of a developer's machine in a cloud give its credentials away.
    """
    if not isinstance(url, str) or not 0 < len(url) <= MAX_URL:
        return [f"a URL of 1 to {MAX_URL} characters"]
    if not all("!" <= char <= "~" for char in url) or any(char in '\\"<>^`{|}' for char in url):
        return ["only characters that a URL may contain; others percent-encoded, the host in its xn-- form"]
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return ["a well-formed URL"]
    schemes = ("https", "http") if allow_private else ("https",)
    problems = []
    if parts.scheme not in schemes:
        problems.append("must begin with " + " or ".join(f"{scheme}://" for scheme in schemes))
    if parts.username is not None or parts.password is not None:
        problems.append("must not contain a user name or password")
    if parts.fragment or url.endswith("#"):
        problems.append("must not contain a fragment (#)")
    if port is not None and port < 1024 and port != default_port(parts):
        problems.append(f"the port must be {default_port(parts)} or from 1024 to 65535")
    host_problem = _host_problem(parts.hostname or "", allow_private)
    if host_problem is not None:
        problems.append(host_problem)
    return problems


def is_allowed(address: str, *, allow_private: bool) -> bool:
    """Whether a webhook may be sent to the IP address (as text). Raises ValueError for text that is no address."""
    return not is_link_local_or_metadata(address) if allow_private else is_public(address)


def default_port(parts: SplitResult) -> int:
    return 80 if parts.scheme == "http" else 443


def has_credentials(url: str) -> bool:
    """Whether `url` may carry a user name or password, so that answers must not repeat it. Says yes when in doubt."""
    return "@" in url


def _host_problem(host: str, allow_private: bool) -> str | None:
    literal = _literal(host)
    if literal is not None:
        if is_allowed(str(literal), allow_private=allow_private):
            return None
        return "the host must not be a link-local or metadata address" if allow_private else "the host must be a public address"
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        return "must name a host"
    # "127.1", "0x7f000001" and "2130706433" are addresses to a resolver, whatever they look like (inet_aton).
    if _LOOKS_NUMERIC.fullmatch(labels[-1]):
        return "an IPv4 address must be written as four decimal numbers"
    lower = host.lower()
    local = len(labels) == 1 or any(lower == name or lower.endswith("." + name) for name in _LOCAL_NAMES)
    return "the host must be a public name" if local and not allow_private else None


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
