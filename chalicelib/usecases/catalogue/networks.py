"""Networks that the operator changes. The pollers notice within the 30 seconds that a catalogue is remembered.

Nothing here speaks to a node: a URL is only stored. Nodes are called by the poller and the payouts, and the API where the operator
registers a token (`usecases/catalogue/coins.py` reads its contract). So on a deployed stage a URL can not name what is the
function's own machine or its cloud's metadata (`node_urls.py`), neither by its address nor by a name that leads there now; where a
connection leads is looked at again whenever one is made (`chains/node_ips.py`). A URL may refer to secrets of nodes alone, and each
of them goes to its own origins alone, whatever is stored here (`node_secrets.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from chalicelib.domain.catalogue.catalogue import AGREEMENT_USD, MOST_CONFIRMATIONS, Network
from chalicelib.domain.errors import BusinessRule, NotFound
from chalicelib.domain.ids import NetworkId, network_parts
from chalicelib.domain.versions import version_after
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.catalogue.node_secrets import has_reference, name_problem, names_in
from chalicelib.usecases.catalogue.node_urls import may_be_a_node, never_a_node
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.store import Store

MOST_NODES = 8
MOST_USD = 1_000_000_000
FIELDS = (
    "name", "status", "confirmations", "rpc_url", "ws_url", "explorer_url", "gas_limit",
    "rpc_urls", "agreement_usd", "finality_tag", "finality_usd", "tracing", "audit_usd",
)  # fmt: skip
"""`rpc_urls` are all nodes, the first before the others; the rest are fields of `Network`."""
Resolve = Callable[[str], list[str]]
"""From a host's name to its addresses as of now; none where it is not known here."""


class Networks:
    """`deployed`: this is no local stack, whose nodes are at the same machine. `resolve` is asked there where a URL has a name.
    `secrets` begins the names of the secrets that a URL may refer to; None: no URL may."""

    def __init__(self, store: Store, deployed: bool = True, resolve: Resolve | None = None, secrets: str | None = None) -> None:
        self._store, self._deployed, self._resolve, self._secrets = store, deployed, resolve, secrets

    def change(self, network: NetworkId, wanted: Mapping[str, Any]) -> Network:
        """Set the fields in `wanted` (names of `FIELDS`, well-formed values) all at once; the network as it is then.

        `rpc_url` alone replaces the first node and leaves the others; `rpc_urls` replaces all. Raises BusinessRule, NotFound,
        Conflict, Unavailable.
        """
        self._check_places(wanted)

        def decide() -> Network:
            before = self._store.get(Network, id=network)
            if before is None:
                raise NotFound(f"No network {network}")
            after = self._changed(before, wanted)
            if after == before:
                return before
            after = replace(after, version=version_after(before))
            self._store.commit([Save(after)])
            return after

        changed = until_settled(decide)
        self._store.catalogue(network_parts(network)[0], fresh=True)
        return changed

    def changed(self, before: Network, wanted: Mapping[str, Any]) -> Network:
        """A copy of `before` with the fields in `wanted`, not stored. Raises BusinessRule."""
        self._check_places(wanted)
        return self._changed(before, wanted)

    def _changed(self, before: Network, wanted: Mapping[str, Any]) -> Network:
        if not wanted.keys() <= set(FIELDS):
            raise ValueError(f"no such fields: {sorted(wanted.keys() - set(FIELDS))}")
        # Only what is asked for now: more may be stored from before there was a bound, and nobody has to lower it to change a URL.
        if not 1 <= wanted.get("confirmations", 1) <= MOST_CONFIRMATIONS:
            raise BusinessRule("confirmationBlocks", f"must be from 1 to {MOST_CONFIRMATIONS}")
        after = replace(before, **_nodes(wanted))
        if "agreement_usd" not in wanted:
            after = _agreeing(before, after)
        _check(after)
        return after

    def _check_places(self, wanted: Mapping[str, Any]) -> None:
        for name, field in (("rpc_url", "rpcUrl"), ("ws_url", "wsUrl"), ("rpc_urls", "rpcUrls")):
            urls = wanted.get(name) or ()
            for url in [urls] if isinstance(urls, str) else urls:
                if problem := self._secrets_problem(url):
                    raise BusinessRule(field, problem)
                if self._deployed and (never_a_node(url) or self._leads_inside(url)):
                    raise BusinessRule(field, "must not be a loopback, link-local, unspecified or multicast address")

    def _secrets_problem(self, url: str) -> str | None:
        if not has_reference(url):
            return None
        if self._secrets is None:
            return "must refer to no secret: this deployment reads none"
        return next((problem for name in names_in(url) if (problem := name_problem(name, self._secrets))), None)

    def _leads_inside(self, url: str) -> bool:
        """Whether any address of the URL's host is none for a node. A name that is not known here may be known to the pollers."""
        if self._resolve is None:
            return False
        return not all(map(may_be_a_node, self._resolve(urlsplit(url).hostname or "")))


def _nodes(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """`wanted` in terms of the record: `rpc_urls` are the first and the others there."""
    changes = {name: value for name, value in wanted.items() if name != "rpc_urls"}
    if "rpc_urls" in wanted:
        first, *more = wanted["rpc_urls"] or (None,)
        if wanted.get("rpc_url", first) != first:
            raise BusinessRule("rpcUrl", "must be the first of rpcUrls")
        changes |= {"rpc_url": first, "more_rpc_urls": tuple(more)}
    return changes


def _agreeing(before: Network, after: Network) -> Network:
    """With a second node the two have to agree about what is large, unless the operator says otherwise: several nodes of which one
    is believed are worth no more than the worst of them. When the second one goes, so does what was set by itself."""
    if after.simulated or bool(after.more_rpc_urls) == bool(before.more_rpc_urls):
        return after
    if after.more_rpc_urls:
        return replace(after, agreement_usd=AGREEMENT_USD) if after.agreement_usd is None else after
    return replace(after, agreement_usd=None) if after.agreement_usd == AGREEMENT_USD else after


def _check(network: Network) -> None:
    """Raise BusinessRule where these settings do not go together."""
    if network.simulated:
        asked = {"rpcUrl": network.rpc_url, "wsUrl": network.ws_url, "agreementUsd": network.agreement_usd}
        for field, value in asked.items():
            if value is not None:
                raise BusinessRule(field, f"{network.slug} is simulated here: it has no node")
    _check_nodes(network)
    if network.simulated or network.status != "active":
        return
    if network.rpc_url is None:
        raise BusinessRule("rpcUrl", f"{network.slug} can not be active without a node: give its rpcUrl")


def _check_nodes(network: Network) -> None:
    """Check that quorum, agreement, finality and tracing fit each other."""
    urls = [url for url in (network.rpc_url, *network.more_rpc_urls) if url is not None]
    if network.more_rpc_urls and network.rpc_url is None:
        raise BusinessRule("rpcUrl", "there are others in rpcUrls: send those that remain as rpcUrls")
    if len(set(urls)) < len(urls):
        raise BusinessRule("rpcUrls", "must be different ones: a node can not stand in for itself")
    if network.agreement_usd is not None and len(urls) < 2:
        # One node always agrees with itself; and to wait for a second one that nobody configured would be for ever.
        raise BusinessRule("agreementUsd", "needs two nodes that can agree: give both in rpcUrls")
    if (network.finality_tag is None) != (network.finality_usd is None):
        raise BusinessRule("finalityUsd", "finalityTag and finalityUsd belong together: send both, or null for both")
    if network.finality_tag is not None and (network.family != "evm" or network.simulated):
        raise BusinessRule("finalityTag", "only nodes of EVM networks name blocks that are safe or finalized")
    if network.tracing != "auto" and (network.family != "evm" or network.simulated):
        raise BusinessRule("tracing", "only nodes of EVM networks trace")
    if network.audit_usd is not None and (network.family != "evm" or network.simulated):
        raise BusinessRule("auditUsd", "only nodes of EVM networks have logs to compare with receipts")
