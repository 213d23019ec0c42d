"""Networks as the operator changes them. The pollers notice within the 30 seconds that a catalogue is remembered.

Nothing here speaks to a node: a URL is only stored, and the poller, which has no secrets of merchants, is the one that calls it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
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


class Networks:
    def __init__(self, store: Store) -> None:
        self._store = store

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
            if after == before:
                return before
            after = replace(after, version=before.version + 1)
            self._store.commit([Save(after)])
            return after

        changed = until_settled(decide)
        self._store.catalogue(network_parts(network)[0], fresh=True)
        return changed


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
