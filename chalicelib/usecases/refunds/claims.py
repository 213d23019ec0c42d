"""Claims: who has the token of a link names the address, sees it once more, and is paid once.

The token alone is enough, and nothing but its hash is stored. What it shows of the merchant is the text that it wrote for its
payee; why a rule refuses a payment now is the merchant's affair, and not told.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from chalicelib.domain.catalogue.catalogue import Coin, Network
from chalicelib.domain.errors import BusinessRule, InvalidAddress, NotFound, ServiceError
from chalicelib.domain.ids import Realm, asset_parts, network_parts, new_id
from chalicelib.domain.refunds.refunds import ClaimLink, Refund, kind_of
from chalicelib.domain.refunds.tokens import confirmation, confirms, token_hash
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.refunds.ordering import Ordered, Ordering
from chalicelib.usecases.refunds.refund_reads import Shown, is_covered, with_withdrawals
from chalicelib.usecases.withdrawals.whitelist_limits import NotWhitelisted

log = logging.getLogger(__name__)

UNKNOWN = "There is no such link. Look at it again, or ask who sent it to you for a new one"
NOT_NOW = "it can not be paid out now: try again later, or ask who sent you the link"
NOT_COVERED = "the payment that it gives back is not confirmed any more: try again later, or ask who sent you the link"
OVER = {
    "expired": "this link has expired: ask who sent it to you for a new one",
    "cancelled": "this link was cancelled: ask who sent it to you",
}
USED = "this link was used already: it pays once"
OTHER_ADDRESS = "is not the word that was shown for this address: send the address alone first, and read it again"


@dataclass(frozen=True, slots=True)
class Claim:
    """A link as its payee sees it. `seconds_left` until it expires, by the clock of its realm."""

    shown: Shown
    coin: Coin
    network: Network
    seconds_left: int

    @property
    def realm(self) -> Realm:
        return self.network.realm

    @property
    def refund(self) -> Refund:
        return self.shown.refund

    @property
    def status(self) -> str:
        """Expired from that moment on, whether its money was given back yet or not."""
        status = self.shown.status
        return "expired" if status == "awaiting_claim" and not self.seconds_left else status


@dataclass(frozen=True, slots=True)
class Checked:
    """An address in its public spelling, and the word that confirms it."""

    claim: Claim
    address: str
    confirm: str


class Claims:
    def __init__(self, store: Store, clock_of: Callable[[Realm], Clock], ordering: Ordering) -> None:
        self._store, self._clock_of, self._ordering = store, clock_of, ordering

    def find(self, token: str) -> Claim:
        """The link of `token`, whosever it is: three reads, one where there is none. Raises NotFound, Unavailable."""
        hashed = token_hash(token)
        link = None if hashed is None else self._store.get(ClaimLink, hash=hashed)
        refund = None if link is None else self._store.get(kind_of(link.refund_id), tenant=link.tenant, id=link.refund_id)
        if refund is None or refund.terms.expires_at is None:
            raise NotFound(UNKNOWN)
        (shown,) = with_withdrawals(self._store, [refund])
        realm, slug = network_parts(refund.terms.network)
        catalogue = self._store.catalogue(realm)
        coin = catalogue.coin(slug, asset_parts(refund.terms.asset)[1])
        if coin is None:
            raise LookupError(f"{refund.terms.asset} is not in the catalogue")
        left = refund.terms.expires_at - self._clock_of(realm).now_ms()
        return Claim(shown, coin, catalogue.networks[slug], max(0, -(-left // 1000)))

    def check(self, token: str, address: str) -> Checked:
        """Look whether `address` can be paid, and change nothing. Raises NotFound, BusinessRule with what to do, Unavailable."""
        claim = self.find(token)
        with in_realm(claim.realm):
            spelled = self._prepared(claim, address, new_id("wd", 0)).withdrawal.to_address
        return Checked(claim, spelled, confirmation(token, spelled))

    def pay(self, token: str, address: str, confirm: str) -> Claim:
        """Order the payment to `address`, which was shown with the word `confirm`. Raises as `check`."""
        found = [self.find(token)]
        realm = found[0].realm
        with in_realm(realm):
            withdrawal_id = new_id("wd", self._clock_of(realm).now_ms())

            def decide() -> Claim:
                now = found.pop() if found else self.find(token)
                if now.refund.withdrawal_id == withdrawal_id:
                    return now  # an earlier try of ours was committed after all
                ordered = self._prepared(now, address, withdrawal_id)
                if not confirms(confirm, token, ordered.withdrawal.to_address):
                    raise BusinessRule("confirm", OTHER_ADDRESS)
                self._store.commit(ordered.changes)
                return Claim(Shown(ordered.refund, ordered.withdrawal), now.coin, now.network, now.seconds_left)

            return until_settled(decide)

    def _prepared(self, claim: Claim, address: str, withdrawal_id: str) -> Ordered:
        if claim.status != "awaiting_claim":
            raise BusinessRule("status", OVER.get(claim.status, USED))
        refund = claim.refund
        try:
            ordered = self._ordering.prepared(refund, address, withdrawal_id)
        except InvalidAddress as error:
            raise BusinessRule("address", error.message) from error
        except NotWhitelisted as error:
            raise self._refused(refund, error) from error
        except ServiceError as error:
            if isinstance(error, BusinessRule) and isinstance(error.details, dict) and error.details.get("field") == "address":
                raise
            raise self._refused(refund, error) from error
        if not is_covered(self._store, refund):
            raise BusinessRule("status", NOT_COVERED)
        return ordered

    @staticmethod
    def _refused(refund: Refund, error: ServiceError) -> BusinessRule:
        log.warning("%s: the claim of %s is refused: %s", refund.terms.network, refund.id, error.message)
        return BusinessRule("status", NOT_NOW)
