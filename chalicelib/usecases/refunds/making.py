"""The transaction that makes a refund or a payout link: its amount is frozen, and its token's hash is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from chalicelib.domain import ledger
from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.ids import TenantId, network_parts
from chalicelib.domain.money import Amount
from chalicelib.domain.refunds.refunds import ClaimLink, Refund, RefundsSpent, Terms, event_family, kind_of, refund_work
from chalicelib.domain.refunds.tokens import new_token, token_hash
from chalicelib.usecases.base.creation import Prepared
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.views import views_now
from chalicelib.usecases.ports.changes import Change, Conflict, Open, Save
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.refunds.daily_limit import counted
from chalicelib.usecases.withdrawals.facts import Output, Reserved
from chalicelib.usecases.withdrawals.steps import moved
from chalicelib.usecases.withdrawals.withdrawals import Withdrawals


@dataclass(frozen=True, slots=True)
class NewLink:
    """A claim link before it is stored. `url` is shown once; the service keeps the token's hash alone."""

    token: str = field(repr=False)
    url: str = field(repr=False)

    @property
    def hash(self) -> str:
        found = token_hash(self.token)
        if found is None:
            raise ValueError("a token that no link can have")
        return found


def new_link(base: str | None) -> NewLink:
    """A fresh link below `base`, the public prefix of this deployment's paths; a path alone where none is known."""
    token = new_token()
    return NewLink(token, f"{base or ''}/claim/{token}")


@dataclass(frozen=True, slots=True)
class Payee:
    """Where a refund goes whose address came with it, and the id of the withdrawal to come."""

    text: str
    withdrawal_id: str


@dataclass(frozen=True, slots=True)
class Made:
    """A new refund or payout link, and its link's address, which is shown once."""

    refund: Refund
    claim_url: str | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for: `coin` is that of the terms."""

    id: str
    tenant: TenantId
    coin: Coin
    terms: Terms
    destination: Payee | NewLink


class Making:
    def __init__(self, store: Store, withdrawals: Withdrawals, rates_of: RatesOf) -> None:
        self._store, self._withdrawals, self._rates_of = store, withdrawals, rates_of

    def prepared(self, wanted: Wanted, beside: Sequence[Change] = ()) -> Prepared[Made]:
        """One try: the changes that make it, and `beside` in the same transaction.

        The rules of withdrawals are asked as far as its address is known, so that no link is made which nobody could claim. Raises
        what they raise (`Rules.allow`), DailyLimitExceeded, Unavailable.
        """
        terms, tenant, now = wanted.terms, wanted.tenant, wanted.terms.created_at
        catalogue = self._store.catalogue(network_parts(terms.network)[0])
        rules = self._withdrawals.rules(catalogue, wanted.coin)
        refund = kind_of(wanted.id)(tenant, wanted.id, terms, "awaiting_claim")
        if isinstance(wanted.destination, NewLink):
            facts = rules.allow_link(tenant, Output("", terms.amount, "address"), now)
            owned, settings = facts.owned, facts.settings
            refund = replace(refund, token=wanted.destination.hash)
        else:
            (output,) = rules.recipients([Output(wanted.destination.text, terms.amount, "address")])
            ruling = rules.allow(tenant, [output], "normal", None, now, Reserved(any_address=True))
            owned, settings = ruling.owned, ruling.settings
            named = wanted.destination.withdrawal_id
            refund = replace(refund, status="ordered", address=output.to_address, withdrawal_id=named)
        spent = self._store.get(RefundsSpent, tenant=tenant) if settings.whitelist_enforced else None
        limited = counted(settings, spent, wanted.coin, terms.amount, self._rates_of(catalogue.realm), now)
        refund = replace(refund, counted=limited.cents)
        news, views = News(now), views_now(catalogue, self._rates_of, now)
        news.tell(tenant, f"{event_family(refund.id)}.created", refund.id, 1, views.refund(refund), hook=terms.hook)
        entry = ledger.refund_reserved(refund.id, now, tenant, Amount(terms.asset, terms.amount))
        links = [] if refund.token is None else [Save(ClaimLink(refund.token, tenant, refund.id))]
        changes: list[Change] = [Save(refund), *beside, *links, Open(refund_work(refund)), *limited.changes]
        changes += [*moved(self._store, news, views, owned.balance, entry, owned.awaited), *news.emit()]
        made = Made(refund, wanted.destination.url if isinstance(wanted.destination, NewLink) else None)

        def stored(conflict: Conflict) -> Made:
            found = self._store.get(type(refund), tenant=tenant, id=refund.id) if conflict.change == changes[0] else None
            if found is None:
                raise conflict
            return replace(made, refund=found)  # an earlier try of ours was committed after all

        return Prepared(made, changes, stored)
