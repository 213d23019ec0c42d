"""Rules for node URLs. A deployed stage must not call itself or its cloud's metadata service; it may call private addresses,
since nodes run in the operator's network."""

from __future__ import annotations

import re
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

from chalicelib.domain.ip_addresses import embedded, is_link_local_or_metadata
from chalicelib.usecases.catalogue.node_secrets import braces_problem

MAX_URL = 2_048


def url_problem(text: str, schemes: tuple[str, ...], *, credentials: bool) -> str | None:
    """The problem with a URL, None when it has none. `credentials`: user, password and references to secrets may be in it."""
    allowed = " or ".join(schemes)
    if not text.isascii() or not text.isprintable() or " " in text:
        return "must be a URL without spaces, in ASCII"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return f"must be a URL that begins with {allowed}"
    if parts.scheme not in schemes or not parts.hostname or port == 0:
        return f"must be a URL that begins with {allowed}"
    if parts.fragment or (not credentials and "@" in parts.netloc):
        return "must have neither a fragment nor credentials" if not credentials else "must have no fragment"
    if not credentials and {"{", "}"} & set(text):
        return "must have no braces"
    return braces_problem(text)


_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII | re.IGNORECASE)


def never_a_node(url: str) -> bool:
    """Whether a well-formed URL has an address that no node of another machine can have: loopback, link-local (where metadata
    services are), unspecified, multicast. However the address is written. Names are resolved by nobody here."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _literal(host)
    return address is not None and not _may_be(address)


def may_be_a_node(address: str) -> bool:
    """Whether a node may be at an IP address, as text. Text that is no IP address: no."""
    try:
        return _may_be(ip_address(address.partition("%")[0]))
    except ValueError:
        return False


def _may_be(address: IPv4Address | IPv6Address) -> bool:
    if is_link_local_or_metadata(str(address)):
        return False
    carried = list(embedded(address)) if isinstance(address, IPv6Address) else []
    return not any(
        (isinstance(ip, IPv4Address) and ip.packed[0] == 0) or ip.is_loopback or ip.is_unspecified or ip.is_multicast
        for ip in (address, *carried)
    )


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        pass
    if _NUMERIC.fullmatch(host.rpartition(".")[2]):
        # "2852039166", "0xa9.254.169.254" and "169.254.43518" are addresses to a program that connects (inet_aton).
        try:
            return IPv4Address(socket.inet_aton(host))
        except OSError:
            pass
    return None
