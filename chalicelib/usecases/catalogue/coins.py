"""Coins that the operator registers and changes. A token's decimals and symbol come from its chain, never from the request.

A contract is registered once per network: a record under the contract forbids the second one, however it is called. A coin is
never removed and never changes its decimals, since every amount of it that is stored is a number of its units.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

from chalicelib.domain.catalogue.catalogue import Catalogue, Coin, Network, TokenContract, native_name
from chalicelib.domain.catalogue.coin_settings import merged
from chalicelib.domain.catalogue.native_faces import known_face
from chalicelib.domain.errors import BusinessRule, InvalidParameter
from chalicelib.domain.ids import NetworkId, Realm, network_parts
from chalicelib.domain.versions import version_after
from chalicelib.usecases.base.address_forms import form_of, tokens_by_form
from chalicelib.usecases.base.creation import Creation, Prepared
from chalicelib.usecases.base.current_wallets import current_wallets, wallet_of
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Change, Conflict, Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.ports.tokens import NoToken, TokenFacts, TokenReader

log = logging.getLogger(__name__)

SLUG = r"[a-z0-9][a-z0-9._-]{0,31}"
RESERVED = frozenset({"precreate-token"})
"""Words that are paths of their own."""
MOST_DECIMALS = 36
MOST_SYMBOL, MOST_NAME = 32, 100

_SLUG = re.compile(SLUG, re.ASCII)


class Coins:
    """`reader_of` gives what reads tokens of a network; it raises LookupError where this deployment can not read any.

    `stocked` is told of every new coin of a simulated network, so that its hot wallet has some to pay out.
    """

    def __init__(
        self,
        store: Store,
        rules: AddressRules,
        reader_of: Callable[[Network], TokenReader],
        stocked: Callable[[Coin, str], None] = lambda coin, wallet: None,
    ) -> None:
        self._store, self._rules, self._reader_of, self._stocked = store, rules, reader_of, stocked

    def precreate(self, network: Network, contract: str) -> Coin:
        """The coin that registering the contract would make; nothing is stored.

        Raises InvalidParameter (no address of the network), BusinessRule (no token, or the node can not say now).
        """
        spelled = self._contract(network, contract)
        facts = self._facts(network, spelled)
        return Coin(network.id, _slug_of(facts.symbol, spelled), facts.symbol, facts.name, facts.decimals, spelled)

    def creating(
        self, network: Network, slug: str | None, name: str | None, contract: str | None, settings: Mapping[str, str | bool]
    ) -> Creation[Coin]:
        """Prepare to register the token of `contract`, or the network's native coin.

        A try raises InvalidParameter, BusinessRule, Unavailable.
        """

        def prepare() -> Prepared[Coin]:
            made = self._made(network, slug, name, contract, settings)
            changes: list[Change] = [Save(made)]
            if made.contract is not None:
                form = form_of(self._rules, network, made.contract)
                changes.append(Save(TokenContract(network.id, form, made.slug)))

            def taken(conflict: Conflict) -> NoReturn:
                if conflict.change in changes:
                    raise _taken(made) from conflict
                raise conflict

            return Prepared(made, changes, taken)

        return Creation(self._store, prepare, partial(self._announce, network), tries=1)

    def _made(
        self, network: Network, slug: str | None, name: str | None, contract: str | None, settings: Mapping[str, str | bool]
    ) -> Coin:
        catalogue = self._store.catalogue(network.realm, fresh=True)
        made = self._native(catalogue, network, slug) if contract is None else self._token(catalogue, network, slug, contract)
        if catalogue.coin(network.slug, made.slug) is not None:
            raise _taken(made)
        return replace(made, name=name or made.name, settings=merged(made.decimals, {}, settings))

    def _announce(self, network: Network, made: Coin) -> None:
        """This process knows the coin from now on, and a simulated network's hot wallet has some of it."""
        self._store.catalogue(network.realm, fresh=True)
        if network.simulated:
            self._stock(made)

    def _stock(self, coin: Coin) -> None:
        """Some of a simulated coin for its hot wallet. The coin is there already: without it payouts wait, and nothing is lost."""
        try:
            hot = wallet_of(self._store, coin.network, "hot")
            if hot is not None:
                self._stocked(coin, hot.address)
        except Unavailable as error:
            log.warning("%s: the hot wallet was given no %s: %s", coin.network, coin.slug, error)

    def change(
        self, realm: Realm, slug: str, network: str | None, wanted: Mapping[str, Any], settings: Mapping[str, str | bool]
    ) -> Coin:
        """Set name and status in `wanted`, and `settings`, all at once; the coin as it is then.

        Raises InvalidParameter (unknown, or ambiguous without `network`), BusinessRule, Conflict, Unavailable.
        """
        found = self.chosen(realm, slug, network)

        def decide() -> Coin:
            before = self._store.get(Coin, network=found, slug=slug)
            if before is None:
                raise LookupError(f"{found}:{slug} was there a moment ago")
            after = replace(before, **wanted)
            if settings:
                after = replace(after, settings=merged(before.decimals, before.settings, settings))
            if after == before:
                return before
            after = replace(after, version=version_after(before))
            self._store.commit([Save(after)])
            return after

        changed = until_settled(decide)
        self._store.catalogue(realm, fresh=True)
        return changed

    def chosen(self, realm: Realm, slug: str, network: str | None) -> NetworkId:
        """The network of the coin that is meant: without a name only one network may have it (decisions §3)."""
        catalogue = self._store.catalogue(realm, fresh=True)
        having = catalogue.coin_networks(slug)
        if not having:
            raise InvalidParameter.one("coin", slug[:100], f"must be one of: {', '.join(catalogue.slugs())}")
        if network is None and len(having) > 1:
            raise InvalidParameter.one("network", None, f"is required: {slug} is on several networks: {', '.join(having)}")
        if network is not None and network not in having:
            raise InvalidParameter.one("network", network[:100], f"must be one of: {', '.join(having)} (which have {slug})")
        return catalogue.coins[network or having[0], slug].network

    def _native(self, catalogue: Catalogue, network: Network, slug: str | None) -> Coin:
        native = network.symbol.lower()
        if slug not in (None, native):
            raise BusinessRule("coin", f"the native coin of {network.slug} is {native}; a token needs its contractAddress")
        return Coin(network.id, native, network.symbol, native_name(network), network.decimals)

    def _token(self, catalogue: Catalogue, network: Network, slug: str | None, contract: str) -> Coin:
        spelled = self._contract(network, contract)
        tokens = tokens_by_form(self._rules, network, catalogue.coins_of(network.slug))
        coin = tokens.get(form_of(self._rules, network, spelled))
        if coin is not None:
            raise BusinessRule("contractAddress", f"this contract is registered on {network.slug}: it is {coin.slug}")
        facts = self._facts(network, spelled)
        chosen = slug or _slug_of(facts.symbol, spelled)
        if chosen == network.symbol.lower():
            raise BusinessRule("coin", f"{chosen} is the native coin of {network.slug}: send another slug as coin")
        return Coin(network.id, chosen, facts.symbol, facts.name, facts.decimals, spelled)

    def _contract(self, network: Network, contract: str) -> str:
        if network.family == "utxo":
            raise BusinessRule("contractAddress", f"{network.slug} has no tokens")
        try:
            spelled = self._rules.normalize(network.id, contract)
        except ValueError as reason:
            raise InvalidParameter.one("contractAddress", contract[:100], f"is no address of {network.slug}: {reason}") from reason
        known = known_face(network.slug, form_of(self._rules, network, spelled))
        if known is not None:
            raise _native_face(network, f"{known} says")
        return spelled

    def _facts(self, network: Network, contract: str) -> TokenFacts:
        if network.status != "active":
            raise BusinessRule("network", f"{network.slug} is not active here: its contracts can not be read")
        try:
            reader = self._reader_of(network)
            facts = reader.facts(contract)
            problem = facts_problem(facts)
            face = None if problem is not None else reader.is_native_face(contract, facts.decimals, self._holders(network))
        except LookupError as error:
            raise BusinessRule("network", f"contracts of {network.slug} can not be read by this deployment") from error
        except NoToken as reason:
            raise BusinessRule("contractAddress", f"is no token: {reason}") from reason
        except Unavailable as error:
            # 503 is no status of the interface, and a 500 would say nothing: the request is right, and can be sent again.
            raise BusinessRule("network", f"the node of {network.slug} does not answer now; send the request again") from error
        if problem is not None:
            raise BusinessRule("contractAddress", f"is no token: {problem}")
        if face:
            raise _native_face(network, "its balances say")
        if face is None:
            untold = f"no two addresses of {network.slug} tell now whether its balances are those of {network.symbol} itself"
            raise BusinessRule("network", f"{untold}; send the request again later")
        return facts

    def _holders(self, network: Network) -> list[str]:
        """Our own wallets: they have native coins to pay fees with."""
        return [wallet.address for wallet in current_wallets(self._store, network.id)]


def facts_problem(facts: TokenFacts) -> str | None:
    """The problem with a contract's own facts; None when they can be shown and counted with."""
    texts: Sequence[tuple[str, str, int]] = (("symbol", facts.symbol, MOST_SYMBOL), ("name", facts.name, MOST_NAME))
    for what, text, most in texts:
        if not text.strip():
            return f"its {what} is empty"
        if len(text) > most:
            return f"its {what} has more than {most} characters"
        if not text.isprintable() or text != text.strip():
            return f"its {what} has characters that can not be shown"
    if not 0 <= facts.decimals <= MOST_DECIMALS:
        return f"its decimals are more than {MOST_DECIMALS}"
    return None


def _slug_of(symbol: str, contract: str) -> str:
    """The symbol in lower case; where that makes no slug (`USD₮0`), one from the end of the contract's address."""
    slug = symbol.lower()
    return slug if _SLUG.fullmatch(slug) and slug not in RESERVED else f"token-{contract[-8:].lower()}"


def _native_face(network: Network, who: str) -> BusinessRule:
    own = f"{network.symbol.lower()}, the own coin of {network.slug}"
    return BusinessRule("contractAddress", f"is no token of its own but {own}, {who}: each payment would be credited twice")


def _taken(coin: Coin) -> BusinessRule:
    network = network_parts(coin.network)[1]
    if coin.contract is None:
        return BusinessRule("coin", f"{coin.slug} is there on {network} already")
    return BusinessRule(
        "coin", f"{coin.slug} or its contract is taken on {network}: send another slug as coin, or edit the one there"
    )
