"""Networks as the operator changes them. The pollers notice within the 30 seconds that a catalogue is remembered.

Nothing here speaks to a node: a URL is only stored. Who calls it: the poller and the payouts, and the API where the operator
registers a token (`usecases/coins.py` reads its contract). So on a deployed stage a URL can not name by its address what is
the function's own machine or its cloud's metadata; private addresses it can: nodes run in the operator's network.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any
from urllib.parse import urlsplit

from chalicelib.domain.catalogue import Network
from chalicelib.domain.errors import BusinessRule, NotFound
from chalicelib.domain.ids import NetworkId, network_parts
from chalicelib.usecases.changes import Save
from chalicelib.usecases.ports import Store
from chalicelib.usecases.trying import until_settled

MOST_CONFIRMATIONS = 10_000
MAX_URL = 2_048
FIELDS = ("name", "status", "confirmations", "rpc_url", "ws_url", "explorer_url", "gas_limit")


def url_problem(text: str, schemes: tuple[str, ...], *, credentials: bool) -> str | None:
    """What is wrong with a URL, None when nothing is. `credentials`: a user and a password may be in it."""
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
    return None


_METADATA = IPv6Network("fd00:ec2::/32")
"""AWS's own services beside a machine: 169.254.0.0/16 in IPv6."""
_NAT64 = IPv6Network("64:ff9b::/96")
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII | re.IGNORECASE)


def never_a_node(url: str) -> bool:
    """Whether a well-formed URL names, by its address, what no node of another machine is at: loopback, link-local (where
    metadata services are), unspecified, multicast. However the address is written. Names are resolved by nobody here."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _literal(host)
    if isinstance(address, IPv6Address):
        if address in _METADATA:
            return True
        inside = address.ipv4_mapped or (IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None)
        # ::a.b.c.d, which is deprecated and which some systems still take for a.b.c.d.
        address = inside or (IPv4Address(int(address)) if 1 < int(address) < 2**32 else address)
    if address is None:
        return False
    first = isinstance(address, IPv4Address) and address.packed[0] == 0
    return first or address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        pass
    if _NUMERIC.fullmatch(host.rpartition(".")[2]):
        # "2852039166", "0xa9.254.169.254" and "169.254.43518" are addresses to whoever connects (inet_aton).
        try:
            return IPv4Address(socket.inet_aton(host))
        except OSError:
            pass
    return None


class Networks:
    """`deployed`: this is no local stack, whose nodes are at the same machine."""

    def __init__(self, store: Store, deployed: bool = True) -> None:
        self._store, self._deployed = store, deployed

    def change(self, network: NetworkId, wanted: Mapping[str, Any]) -> Network:
        """Set the fields in `wanted` (names of `FIELDS`, well-formed values) all at once; the network as it is then.

        Raises BusinessRule, NotFound, Conflict, Unavailable.
        """
        if not wanted.keys() <= set(FIELDS):
            raise ValueError(f"no such fields: {sorted(wanted.keys() - set(FIELDS))}")

        def decide() -> Network:
            before = self._store.get(Network, id=network)
            if before is None:
                raise NotFound(f"No network {network}")
            after = replace(before, **wanted)
            _check(after)
            self._check_places(wanted)
            if after == before:
                return before
            after = replace(after, version=before.version + 1)
            self._store.commit([Save(after)])
            return after

        changed = until_settled(decide)
        self._store.catalogue(network_parts(network)[0], fresh=True)
        return changed

    def _check_places(self, wanted: Mapping[str, Any]) -> None:
        for name, field in (("rpc_url", "rpcUrl"), ("ws_url", "wsUrl")):
            if self._deployed and wanted.get(name) is not None and never_a_node(wanted[name]):
                raise BusinessRule(field, "must not be a loopback, link-local, unspecified or multicast address")


def _check(network: Network) -> None:
    """Raise BusinessRule where these settings do not go together."""
    if network.simulated:
        if network.rpc_url is not None or network.ws_url is not None:
            field = "rpcUrl" if network.rpc_url is not None else "wsUrl"
            raise BusinessRule(field, f"{network.slug} is simulated here: it has no node")
        return
    if network.status != "active":
        return
    if network.rpc_url is None:
        raise BusinessRule("rpcUrl", f"{network.slug} can not be active without a node: give its rpcUrl")
    if network.family != "evm":
        raise BusinessRule("status", f"{network.slug} can not be active yet: this version speaks to nodes of EVM networks only")
