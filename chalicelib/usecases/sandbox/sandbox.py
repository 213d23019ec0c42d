"""Developers' actions on the simulated networks with test keys: pay in, mine, reorganise, decide a withdrawal's outcome.

Touches nothing of the service's own records: it only makes the chain say something, and the scanner and the payouts find
it there as they would on a real one. The chain is shared by all merchants of the test realm, as a public one is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.errors import BusinessRule, InvalidAddress, InvalidParameter, NotFound
from chalicelib.domain.ids import NetworkId, TenantId, network_parts, tenant_parts
from chalicelib.domain.money import MAX_DIGITS, format_units
from chalicelib.domain.withdrawals.withdrawals import FINAL, Withdrawal
from chalicelib.usecases.base.current_wallets import wallet_of
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.failures import Refused, Unavailable
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.ports.tokens import TokenFacts
from chalicelib.usecases.sandbox.mining_budget import MiningBudget

log = logging.getLogger(__name__)

Outcome = Literal["confirm", "fail", "stick"]
OUTCOMES: tuple[str, ...] = get_args(Outcome)
MOST_BLOCKS = 10_000
FAUCET_COINS = 1_000_000
MOST_UNITS = 10**MAX_DIGITS - 1
"""The largest payment that can be simulated: more than sums take, so that developers can see one that is set aside."""
MOST_STOCK = 10**34
STOCK_COINS = 1_000_000
"""The amount of each coin that a simulated hot wallet is given."""

State = Literal["planned", "waiting", "stuck", "succeeded", "failed"]
"""Of a payment: not known yet, in the mempool behind an earlier one, kept out of blocks, final either way."""


@dataclass(frozen=True, slots=True)
class MinedTx:
    """Where a transaction was mined. `time` in milliseconds since 1970."""

    txid: str
    number: int
    hash: str
    time: int
    sender: str


@dataclass(frozen=True, slots=True)
class Reorganised:
    """`first` is the lowest block that is another one now; `dropped` are the transactions that are in no block any more."""

    first: int
    tip: int
    dropped: tuple[str, ...]
    remined: tuple[str, ...]


class TooDeep(Exception):
    """A reorganisation can drop `most` blocks at most here (0: the chain has none to drop)."""

    def __init__(self, most: int) -> None:
        super().__init__(f"at most {most} blocks can be dropped")
        self.most = most


class Decided(Exception):
    """The payment has all its confirmations with another outcome: it can not change any more."""


class SimulatedChain(Protocol):
    """One simulated network. Addresses and contracts in their public spelling or their storage form. All raise Unavailable."""

    def deposit(
        self, recipient: str, contract: str | None, amount: int, sender: str | None = None, token: str | None = None
    ) -> MinedTx:
        """Pay `amount` units from outside, in a block of its own. The same `token` pays once, however often it is called."""
        ...

    def catch_up(self) -> int:
        """Mine one block when the sandbox's clock was moved since the last one; the tip."""
        ...

    def mine(self, count: int, token: str | None = None) -> int:
        """Mine `count` blocks, what waits in the mempool first; the new tip. The same `token` mines them once."""
        ...

    def reorganise(self, depth: int, remine: bool, token: str | None = None) -> Reorganised:
        """Replace the last `depth` blocks. The same `token` does it once. Raises TooDeep."""
        ...

    def settle(self, txid: str, outcome: Outcome) -> State:
        """Decide the outcome of a payment, now or at its broadcast. Raises Decided, Refused (the chain's words)."""
        ...

    def plan(self, reference: str, outcome: Outcome) -> None:
        """The payment with this reference (a withdrawal's id) has `outcome` when it is broadcast. Kept for a day."""
        ...

    def forget(self, reference: str) -> None:
        """Take back `plan`."""
        ...


class TokenMaker(Protocol):
    """The token contracts of one simulated network."""

    def make(self, facts: TokenFacts, token: str | None = None) -> str:
        """A new contract's address. The same `token` always means the same contract. Raises Unavailable."""
        ...


class Sandbox:
    """`chain_of` gives the simulated chain of a network of the test realm, `tokens_of` what makes its tokens. They have none
    for any other network."""

    def __init__(
        self,
        store: Store,
        chain_of: Callable[[NetworkId], SimulatedChain],
        rules: AddressRules,
        tokens_of: Callable[[NetworkId], TokenMaker] | None = None,
        budget: MiningBudget | None = None,
    ) -> None:
        self._store, self._chain_of, self._rules, self._tokens_of = store, chain_of, rules, tokens_of
        self._budget = budget

    def deposit(
        self, network: NetworkId, address: str, coin: Coin, units: int, sender: str | None = None, token: str | None = None
    ) -> dict[str, Any]:
        """Pay `units` of `coin` to any address of `network`, mined at once. Raises InvalidParameter, InvalidAddress, Unavailable.

        `sender` is who it seems to come from; `token` makes repeating safe (see `SimulatedChain.deposit`).
        """
        chain = self._chain(network)
        slug = network_parts(network)[1]
        if coin.network != network:
            raise InvalidParameter.one("coin", coin.slug, f"must be a coin of {slug}")
        if not 0 < units <= MOST_UNITS:
            raise InvalidParameter.one(
                "amount",
                format_units(units, coin.decimals),
                "must be greater than zero",
                f"at most {format_units(MOST_UNITS, coin.decimals)}",
            )
        recipient, origin = self._both(slug, address, sender)
        mined = chain.deposit(recipient, coin.contract, units, origin, token)
        return {
            "txid": mined.txid,
            "network": slug,
            "coin": coin.slug,
            "amount": format_units(units, coin.decimals),
            "address": recipient,
            "from": self._rules.normalize(slug, mined.sender),
            "blockNumber": mined.number,
            "blockHash": mined.hash,
        }

    def token(self, network: NetworkId, facts: TokenFacts, token: str | None = None) -> dict[str, Any]:
        """Make a token contract, which no coin is registered for yet. Raises InvalidParameter, BusinessRule, Unavailable.

        `token` makes repeating safe: the same one is the same contract.
        """
        realm, slug = network_parts(network)
        if realm != "test" or self._tokens_of is None:
            raise BusinessRule("network", "only the simulated networks of test keys can be told what to do")
        if self._store.catalogue(realm).networks[slug].family == "utxo":
            raise BusinessRule("network", f"{slug} has no tokens")
        contract = self._tokens_of(network).make(facts, token)
        return {
            "network": slug,
            "contractAddress": contract,
            "symbol": facts.symbol,
            "name": facts.name,
            "decimals": facts.decimals,
        }

    def stock(self, coin: Coin, wallet: str) -> None:
        """Give a hot wallet some units of a new coin, once, deep enough to be counted at the next poll. Raises Unavailable."""
        units = min(STOCK_COINS * 10**coin.decimals, MOST_STOCK)
        chain = self._chain(coin.network)
        chain.deposit(wallet, coin.contract, units, token=f"faucet {wallet} {coin.slug}")
        realm, slug = network_parts(coin.network)
        chain.mine(self._store.catalogue(realm).networks[slug].confirmations)

    def blocks(self, network: NetworkId, count: int, token: str | None = None, by: TenantId | None = None) -> dict[str, Any]:
        """Mine `count` blocks, 1 to 10,000, of the hour's that the merchant `by` has; the service's own are not counted.
        Under the same `token` it is done once.

        Raises InvalidParameter, BusinessRule (no more this hour), Unavailable.
        """
        chain = self._chain(network)
        if not 1 <= count <= MOST_BLOCKS:
            raise InvalidParameter.one("count", count, "must be an integer from 1 to 10000")
        self._spend(by, "count", count)
        return {"network": network_parts(network)[1], "mined": count, "blockNumber": chain.mine(count, token)}

    def fund_hot_wallets(self) -> None:
        """Give every hot wallet coins from outside, once, deep enough in the chain to be counted at the next poll."""
        catalogue = self._store.catalogue("test")
        for network in catalogue.networks.values():
            wallet = wallet_of(self._store, network.id, "hot")
            if wallet is None or not network.simulated:
                continue
            for coin in catalogue.coins_of(network.slug):
                units = FAUCET_COINS * 10**coin.decimals
                self.deposit(network.id, wallet.address, coin, units, token=f"faucet {wallet.address} {coin.slug}")
            self.blocks(network.id, network.confirmations)

    def catch_up(self) -> None:
        """Let every active network have a block of the time to which the clock was moved. Where one does not answer, its poll
        does the same."""
        for network in self._store.catalogue("test").networks.values():
            if network.status == "active":
                try:
                    self._chain(network.id).catch_up()
                except Unavailable as error:
                    log.warning("%s did not follow the clock at once: %s", network.id, error)

    def reorg(
        self, network: NetworkId, depth: int, remine: bool = False, token: str | None = None, by: TenantId | None = None
    ) -> dict[str, Any]:
        """Replace the last `depth` blocks by others, one more than they were: new blocks of the merchant `by`, see `blocks`.

        Their transactions stay out, or with `remine` are in the new blocks of the same numbers. Under the same
        `token` it is done once. Raises InvalidParameter, BusinessRule, Unavailable.
        """
        chain = self._chain(network)
        realm, slug = network_parts(network)
        # Deeper than is followed would halt the network for every merchant of the sandbox.
        most = self._store.catalogue(realm).networks[slug].reorg_depth
        if not 1 <= depth <= most:
            raise InvalidParameter.one("depth", depth, f"must be an integer from 1 to {most}")
        self._spend(by, "depth", depth + 1)
        try:
            done = chain.reorganise(depth, remine, token)
        except TooDeep as error:
            allowed = f"must be an integer from 1 to {error.most}" if error.most else "the chain has no block to drop yet"
            raise InvalidParameter.one("depth", depth, allowed) from error
        return {
            "network": network_parts(network)[1],
            "depth": depth,
            "fromBlock": done.first,
            "blockNumber": done.tip,
            "dropped": list(done.dropped),
            "remined": list(done.remined),
        }

    def outcome(self, tenant: TenantId, withdrawal_id: str, outcome: str) -> dict[str, Any]:
        """Decide the outcome of a withdrawal on the chain. Raises InvalidParameter, NotFound, BusinessRule, Unavailable.

        "confirm": mined, with all its confirmations. "fail": mined and failed, with all its confirmations. "stick": in no
        block until told otherwise. Before the broadcast it is remembered, after the last confirmation it is too late.
        """
        if outcome not in OUTCOMES:
            raise InvalidParameter.one("outcome", outcome, f"must be one of: {', '.join(OUTCOMES)}")
        chosen: Outcome = "confirm" if outcome == "confirm" else "fail" if outcome == "fail" else "stick"
        withdrawal = self._withdrawal(tenant, withdrawal_id)
        chain = self._chain(withdrawal.network)
        planned = withdrawal.txid is None
        if planned:
            chain.plan(withdrawal.id, chosen)
            # Signed and sent since we looked? The id is stored before the first broadcast, so a worker that was too early to
            # find the plan is seen here.
            withdrawal = self._withdrawal(tenant, withdrawal_id, gone=True)
        if withdrawal.txid is None:
            state: State = "planned"
        else:
            try:
                state = chain.settle(withdrawal.txid, chosen)
            except Decided as error:
                raise BusinessRule("outcome", str(error)) from error
            except Refused as error:
                raise BusinessRule("outcome", f"the chain does not take the payment: {error}") from error
            finally:
                if planned:
                    chain.forget(withdrawal.id)
        return {"id": withdrawal.id, "outcome": chosen, "state": state, "txid": withdrawal.txid}

    def _chain(self, network: NetworkId) -> SimulatedChain:
        if network_parts(network)[0] != "test":
            raise BusinessRule("network", "only the simulated networks of test keys can be told what to do")
        return self._chain_of(network)

    def _spend(self, by: TenantId | None, field: str, blocks: int) -> None:
        if by is not None and self._budget is not None:
            self._budget.spend(by, field, blocks)

    def _both(self, network: str, address: str, sender: str | None) -> tuple[str, str | None]:
        """The recipient and the apparent sender. Raises InvalidAddress, with all that is wrong with either."""
        read: dict[str, str | None] = {"from": None}
        wrong: dict[str, tuple[str, str]] = {}
        for field, text in (("address", address), ("from", sender)):
            if text is None:
                continue
            try:
                read[field] = self._rules.normalize(network, text)
            except ValueError as error:
                wrong[field] = (text, str(error))
        if wrong:
            said = "; ".join(f"{field} is no address of {network}: {reason}" for field, (_, reason) in wrong.items())
            first = next(iter(wrong.values()))[0]
            details: dict[str, Any] = {"address": first[:120], "network": network}
            raise InvalidAddress(said, details if list(wrong) == ["address"] else {**details, "fields": list(wrong)})
        return str(read["address"]), read["from"]

    def _withdrawal(self, tenant: TenantId, withdrawal_id: str, gone: bool = False) -> Withdrawal:
        """The caller's withdrawal. One that is over can not be decided any more, unless it has become so in the meantime."""
        found = self._store.get(Withdrawal, tenant=tenant, id=withdrawal_id)
        if found is None or tenant_parts(tenant)[1] != "test":
            raise NotFound(f"no withdrawal {withdrawal_id}")
        if found.status in FINAL and not gone:
            raise BusinessRule("outcome", f"the withdrawal is {found.status} already")
        return found
