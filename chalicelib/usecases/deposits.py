"""Deposits: seen in a block, credited after the network's confirmations, taken back when their block falls out.

What comes from an address of the grey list is credited to the merchant's purse `held`, and counts for its invoice when an
operator releases it. The list is asked when a deposit is seen and again when it is credited; being on it once is enough.

Seen again in another block, it is the same deposit where the chain still says the same of it. Where it says something else
(amount, coin, sender, recipient: a contract call that was run again), the old one is orphaned and what is there now is judged like
a new one, under the same id: an operator's release, a flag and an owner were the old one's.

What is less than the coin's minDepositAmount is recorded with a flag and told to the merchant, and is the operator's: it counts
for no invoice and no balance of the merchant. A minimum in USD counts only where rates are constant (the sandbox): a rate is what
one provider says, and no money is taken from a merchant on that.

Every step is one transaction, and doing a step twice changes nothing: the deposit's version, its open work and the
journal entry's id each forbid it (money rules 2, 3 and 12).
"""

from __future__ import annotations

import logging
from dataclasses import replace

from chalicelib.domain import ledger
from chalicelib.domain.addresses import Watched
from chalicelib.domain.catalogue import Coin, Network
from chalicelib.domain.chain import Block, Cursor, Transfer
from chalicelib.domain.coin_settings import NoFreshRate, in_usd, limit_units
from chalicelib.domain.deposits import BELOW_MINIMUM, GREY_LISTED, HELD, Deposit, deposit_id
from chalicelib.domain.errors import BusinessRule, NotFound
from chalicelib.domain.ids import Realm, TenantId, network_parts
from chalicelib.domain.invoices import Invoice
from chalicelib.domain.ledger import Balance, JournalEntry
from chalicelib.domain.money import Amount
from chalicelib.domain.rates import Rates, RatesOf, no_rates
from chalicelib.domain.work import Work
from chalicelib.usecases.booked import booked_already
from chalicelib.usecases.changes import AtEpoch, Beside, Change, Close, Open, Post, Save
from chalicelib.usecases.grey_list import grey_listed
from chalicelib.usecases.hot_coins import confirmed, taken_back
from chalicelib.usecases.invoice_changes import changed, paid
from chalicelib.usecases.outbox import News
from chalicelib.usecases.ports import AddressRules, Clock, Listed, Store
from chalicelib.usecases.trying import until_settled
from chalicelib.usecases.views import Views

log = logging.getLogger(__name__)

_MOST_NAMED = 20


def deposit_work(deposit: Deposit) -> Work:
    """The obligation to confirm a deposit, found by network and height."""
    return Work("deposit", deposit.network, f"{deposit.block_number:015d}", deposit.id)


class Deposits:
    def __init__(self, store: Store, rules: AddressRules, clock: Clock, rates: RatesOf = no_rates) -> None:
        self._store, self._rules, self._clock, self._rates = store, rules, clock, rates

    @property
    def rates(self) -> RatesOf:
        """What deposits are valued by."""
        return self._rates

    def detect(self, network: Network, coin: Coin, block: Block, transfer: Transfer, watched: Watched, epoch: int) -> str:
        """Record a movement to us, proven to have happened in `block`; the deposit's id.

        Commits only while `epoch` still holds: a scan that slept through a reorganisation changes nothing.
        Raises Conflict, Unavailable.
        """
        key = deposit_id(network.id, transfer.txid, transfer.position)

        def decide() -> str:
            known = self._store.get(Deposit, id=key)
            seen = self._seen(key, network, coin, block, transfer, watched)
            if known is None:
                if booked_already(self._store, network, block, transfer):
                    return key
                self._first_seen(network, self._judged(network, coin, seen), epoch)
            elif known.block_hash == block.hash and known.status != "orphaned":
                pass  # that very one
            elif known.status == "confirmed":
                if not _same_payment(known, seen):
                    # Deeper than reorganisations are followed: what is credited is not taken back on one node's word.
                    log.error("ALARM %s: %s was credited, and block %d says something else of it", network.id, key, block.number)
            elif known.status == "pending" and self._passed(network, known):
                log.info("%s: %s is in a block that was scanned after block %s", network.id, key, block.hash)
            elif not _same_payment(known, seen):
                if known.status == "pending":
                    # Two transactions: whoever dies between them leaves an orphaned one, which the next scan finds as such.
                    known = self._orphan(network, known, epoch)
                self._first_seen(network, self._judged(network, coin, _anew(known, seen)), epoch)
            elif known.status == "orphaned":
                back = replace(
                    known,
                    status="pending",
                    flags=self._flags(network, known),
                    block_number=block.number,
                    block_hash=block.hash,
                    block_time=block.time,
                    version=known.version + 1,
                )
                self._first_seen(network, back, epoch)
            else:
                self._moved(network, known, block, epoch)
            return key

        return until_settled(decide)

    def _seen(self, key: str, network: Network, coin: Coin, block: Block, transfer: Transfer, watched: Watched) -> Deposit:
        """What the chain says of it, before anybody has judged it."""
        return Deposit(
            id=key,
            network=network.id,
            asset=coin.asset,
            tenant=watched.tenant,
            txid=transfer.txid,
            position=transfer.position,
            sender=self._spelled(network, transfer.sender),
            address=self._spelled(network, transfer.recipient),
            amount=transfer.amount,
            block_number=block.number,
            block_hash=block.hash,
            block_time=block.time,
            created_at=self._clock.now_ms(),
            address_id=watched.address_id,
            invoice_id=watched.invoice_id,
        )

    def _judged(self, network: Network, coin: Coin, deposit: Deposit) -> Deposit:
        if deposit.tenant is not None and deposit.amount < self._minimum(network, coin):
            deposit = replace(deposit, invoice_id=None, flags=(*deposit.flags, BELOW_MINIMUM))
        return replace(deposit, flags=self._flags(network, deposit))

    def _minimum(self, network: Network, coin: Coin) -> int:
        """Units below which a deposit is not the merchant's."""
        rates = self._rates(network.realm) if in_usd(coin) else Rates()
        if in_usd(coin) and not rates.constant:
            return 0
        try:
            return limit_units(coin, "minDepositAmount", rates, self._clock.now_ms()) or 0
        except NoFreshRate:
            return 0  # a payment can not be sent back: doubt is for the merchant

    def _flags(self, network: Network, deposit: Deposit) -> tuple[str, ...]:
        """Its flags, with GREY_LISTED where its sender is on the list now. A sender that the chain does not tell is on none."""
        if GREY_LISTED in deposit.flags or not deposit.sender:
            return deposit.flags
        listed = grey_listed(self._store, self._rules, network.id, deposit.sender)
        return (*deposit.flags, GREY_LISTED) if listed else deposit.flags

    def _passed(self, network: Network, deposit: Deposit) -> bool:
        """Whether the scan has passed its block and stands on it: another block that has it is out of date, or not followed yet."""
        cursor = self._store.get(Cursor, network=network.id)
        return cursor is not None and cursor.recent.get(str(deposit.block_number)) == deposit.block_hash

    def _moved(self, network: Network, known: Deposit, block: Block, epoch: int) -> None:
        """The old block of `known` is gone and nobody told us before the new one came: the place changes, and with the block's
        time perhaps whether it came in time."""
        invoice = self._invoice(known.tenant, known.invoice_id)
        moved = replace(
            known,
            block_number=block.number,
            block_hash=block.hash,
            block_time=block.time,
            late=_late(block.time, invoice),
            version=known.version + 1,
        )
        news = News(self._clock.now_ms())
        changes: list[Change] = [Save(moved), AtEpoch(network.id, epoch)]
        if deposit_work(moved) != deposit_work(known):
            changes += [Close(deposit_work(known)), Open(deposit_work(moved))]
        if invoice is not None:
            changes += changed(invoice, paid(news, invoice, known, moved, Views(self._store.catalogue(network.realm))))
        self._store.commit([*changes, *news.emit()])

    def _first_seen(self, network: Network, deposit: Deposit, epoch: int) -> None:
        news = News(self._clock.now_ms())
        changes: list[Change] = [Open(deposit_work(deposit)), AtEpoch(network.id, epoch)]
        tenant = deposit.tenant
        if tenant is not None:
            views = Views(self._store.catalogue(network.realm))
            before = self._invoice(tenant, deposit.invoice_id)
            deposit = replace(deposit, late=_late(deposit.block_time, before))
            deposit = self._told(news, deposit, "transaction.detected", views, deposit.block_number)
            if before is not None:
                changes += changed(before, paid(news, before, None, deposit, views))
            if not deposit.below_minimum:
                balance = self._balance(tenant, deposit)
                changes.append(Save(replace(balance, pending=balance.pending + deposit.amount, version=balance.version + 1)))
        changes.append(self._beside(network, deposit, pending=deposit.amount))
        self._store.commit([Save(deposit), *changes, *news.emit()])

    def confirm(self, network: Network, key: str, block_hash: str, tip: int, epoch: int) -> None:
        """Credit a pending deposit whose block is final. The caller has checked that block, and no other, against the node.

        Commits only while `epoch` still holds, so a reorganisation followed meanwhile wins. Raises Conflict, Unavailable.
        """

        def decide() -> None:
            before = self._store.get(Deposit, id=key)
            if before is None or before.status != "pending" or before.block_hash != block_hash:
                return
            now = self._clock.now_ms()
            news = News(now)
            flags = self._flags(network, before)
            if GREY_LISTED in flags and before.tenant is not None and not before.below_minimum and before.released_at is None:
                flags = (*flags, HELD)
            after = replace(before, status="confirmed", confirmed_at=now, flags=flags, version=before.version + 1)
            entry = ledger.deposit_credited(
                after.id, after.round, now, self._place(network, after), self._owner(after), Amount(after.asset, after.amount)
            )
            beside = self._beside(network, after, pending=-after.amount, held=after.amount if after.held else 0)
            changes: list[Change] = [Close(deposit_work(before)), Post(entry), beside, AtEpoch(network.id, epoch)]
            changes += confirmed(self._store, network, after)
            tenant = after.tenant
            if tenant is not None:
                views = Views(self._store.catalogue(network.realm))
                invoice = self._invoice(tenant, after.invoice_id)
                after = self._told(news, after, "transaction.confirmed", views, tip)
                if invoice is not None:
                    changes += changed(invoice, paid(news, invoice, before, after, views))
                changes += self._credited(news, tenant, after, entry, views, -before.amount)
            self._store.commit([Save(after), *changes, *news.emit()])

        until_settled(decide)

    def orphan(self, network: Network, key: str, block_hash: str) -> None:
        """`block_hash` fell out of the chain: its deposit goes, and what was credited with it. Raises Conflict, Unavailable."""

        def decide() -> None:
            before = self._store.get(Deposit, id=key)
            if before is None or before.status == "orphaned" or before.block_hash != block_hash:
                return
            self._orphan(network, before)

        until_settled(decide)

    def _orphan(self, network: Network, before: Deposit, epoch: int | None = None) -> Deposit:
        """One transaction; where `epoch` is told, only while it still holds."""
        now = self._clock.now_ms()
        news = News(now)
        flags = tuple(flag for flag in before.flags if flag != HELD)
        after = replace(
            before, status="orphaned", confirmed_at=None, flags=flags, round=before.round + 1, version=before.version + 1
        )
        changes: list[Change] = [] if epoch is None else [AtEpoch(network.id, epoch)]
        entry: JournalEntry | None = None
        if before.status == "pending":
            changes += [Close(deposit_work(before)), self._beside(network, before, pending=-before.amount)]
        else:
            amount = Amount(before.asset, before.amount)
            place, owner = self._place(network, before), self._owner(before)
            entry = ledger.deposit_reversed(before.id, before.round, now, place, owner, amount)
            changes += [Post(entry), *([self._beside(network, before, held=-before.amount)] if before.held else [])]
            changes += taken_back(self._store, network, before)
        tenant = after.tenant
        if tenant is not None:
            views = Views(self._store.catalogue(network.realm))
            invoice = self._invoice(tenant, after.invoice_id)
            after = self._told(news, after, "transaction.orphaned", views, None)
            if invoice is not None:
                changes += changed(invoice, paid(news, invoice, before, after, views))
            changes += self._credited(news, tenant, after, entry, views, -before.amount if entry is None else 0)
        self._store.commit([Save(after), *changes, *news.emit()])
        return after

    def named(self, realm: Realm, name: str) -> str:
        """The id of a merchant's deposit in `realm` by the chain's hash; an id stays what it is.

        Raises NotFound, BusinessRule where several movements share the hash: which of them is meant has to be said.
        """
        if name.startswith("tx_"):
            return name
        places = self._store.places(Listed("dep", "hash", realm, name), limit=_MOST_NAMED).places
        found = [d for d in self._store.at(places) if isinstance(d, Deposit) and d.txid.lower() == name.lower()]
        if not found:
            raise NotFound(f"No transaction {name[:80]}", {"txId": name[:80]})
        if len(found) > 1:
            each = ", ".join(f"{d.id} ({'held' if d.held else 'not held'})" for d in sorted(found, key=lambda d: d.id))
            raise BusinessRule("txId", f"several movements have this hash: send the id of one: {each}")
        return found[0].id

    def release(self, realm: Realm, name: str, by: str) -> Deposit:
        """Let go of a held deposit of any merchant of `realm`, by its id or its hash: its money is available, and counts for its
        invoice from now on.

        `by` is the id of the operator's key. Raises NotFound, BusinessRule where nothing is held (any more), Unavailable.
        """
        key = self.named(realm, name)

        def decide() -> Deposit:
            before = self._store.get(Deposit, id=key)
            if before is None or network_parts(before.network)[0] != realm:
                raise NotFound(f"No transaction {key[:80]}", {"txId": key[:80]})
            if not before.held or before.tenant is None:
                raise BusinessRule("txId", _why_not_held(before))
            now = self._clock.now_ms()
            news = News(now)
            catalogue = self._store.catalogue(realm)
            network, views = catalogue.networks[network_parts(before.network)[1]], Views(catalogue)
            flags = tuple(flag for flag in before.flags if flag != HELD)
            after = replace(before, flags=flags, released_at=now, released_by=by, version=before.version + 1)
            entry = ledger.deposit_released(before.id, before.round, now, before.tenant, Amount(before.asset, before.amount))
            changes: list[Change] = [Save(after), Post(entry), self._beside(network, before, held=-before.amount)]
            invoice = self._invoice(before.tenant, before.invoice_id)
            if invoice is not None:
                changes += changed(invoice, paid(news, invoice, before, after, views))
            changes += self._credited(news, before.tenant, after, entry, views, 0)
            self._store.commit([*changes, *news.emit()])
            return after

        return until_settled(decide)

    def _credited(
        self, news: News, tenant: TenantId, deposit: Deposit, entry: JournalEntry | None, views: Views, pending: int
    ) -> list[Change]:
        if deposit.below_minimum:
            return []
        before = self._balance(tenant, deposit)
        if entry is None:
            return [Save(replace(before, pending=before.pending + pending, version=before.version + 1))]
        after = replace(before.after(entry), pending=before.pending + pending)
        if after.available == before.available:  # into the purse `held`, or out of it
            return [Save(after)]
        after = replace(after, emitted=after.emitted + 1)
        news.tell(tenant, "balance.updated", f"{tenant}:{after.asset}", after.emitted, views.balance(after))
        return [Save(after)]

    def _told(self, news: News, deposit: Deposit, name: str, views: Views, tip: int | None) -> Deposit:
        told = replace(deposit, emitted=deposit.emitted + 1)
        if told.tenant is not None:
            record = views.deposit(told, tip)
            news.tell(told.tenant, name, told.id, told.emitted, {**record, "txId": told.txid})
        return told

    def _balance(self, tenant: TenantId, deposit: Deposit) -> Balance:
        return self._store.get(Balance, tenant=tenant, asset=deposit.asset) or Balance(tenant, deposit.asset)

    def _invoice(self, tenant: TenantId | None, invoice_id: str | None) -> Invoice | None:
        if tenant is None or invoice_id is None:
            return None
        return self._store.get(Invoice, tenant=tenant, id=invoice_id)

    def _place(self, network: Network, deposit: Deposit) -> str:
        return ledger.wallet(network.id, self._rules.storage_form(network.slug, deposit.address))

    def _owner(self, deposit: Deposit) -> str:
        if deposit.tenant is None or deposit.below_minimum:
            return ledger.operator(network_parts(deposit.network)[0])
        return ledger.merchant(deposit.tenant, "held" if deposit.held else "available")

    def _beside(self, network: Network, deposit: Deposit, pending: int = 0, held: int = 0) -> Beside:
        address = self._rules.storage_form(network.slug, deposit.address)
        return Beside(network.id, address, deposit.asset, pending, held)

    def _spelled(self, network: Network, address: str) -> str:
        try:
            return self._rules.normalize(network.id, address)
        except ValueError:
            # A sender may be what nobody can pay to: a token's mint comes from the zero address. Shown as the chain has it.
            return address


def _why_not_held(deposit: Deposit) -> str:
    if deposit.released_at is not None:
        return "it was released before"
    if deposit.status == "pending" and GREY_LISTED in deposit.flags:
        return "it is not confirmed yet: it is held from its confirmation on, and can be released then"
    return "it is not held"


def _same_payment(known: Deposit, seen: Deposit) -> bool:
    """Whether another block tells of the same payment. A contract call that is run again after a reorganisation may log
    something else under the same transaction and position: that is another payment, and judged as such."""

    def facts(deposit: Deposit) -> tuple[object, ...]:
        to = (deposit.address, deposit.tenant, deposit.address_id)
        return (deposit.asset, deposit.amount, deposit.sender, *to)

    # What was below the minimum is for no invoice, whatever its address is for.
    return facts(known) == facts(seen) and (known.below_minimum or known.invoice_id == seen.invoice_id)


def _anew(known: Deposit, seen: Deposit) -> Deposit:
    """`seen` in the place of `known`, which the chain tells otherwise now. Of what was decided about that one nothing is left
    but that its sender was on the grey list, where it is the same sender."""
    flags = (GREY_LISTED,) if GREY_LISTED in known.flags and known.sender == seen.sender else ()
    return replace(seen, flags=flags, round=known.round, emitted=known.emitted, version=known.version + 1)


def _late(block_time: int, invoice: Invoice | None) -> bool:
    """Judged by the block's own time (milliseconds since 1970), and anew for each block that a payment is in."""
    return invoice is not None and block_time > invoice.expires_at
