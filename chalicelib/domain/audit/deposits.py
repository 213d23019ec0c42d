"""Audit rules of deposits: each is credited as often as it says, and the record that awaits or holds it counts it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from chalicelib.domain.audit.books import Books
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.deposits.received import DAY_MS, decoded, received_at
from chalicelib.domain.ledger import OUTSIDE, Book


def pending_and_held_agree(books: Books) -> Iterable[str]:
    """The sums of merchants and addresses that are awaited (`pending`), on hold, or too small to collect (`small`) follow from
    their deposits; `aside` is how many of them are set aside."""
    for deposit in books.deposits:
        yield from _fit_to_be_held(deposit)
    said, shown = _said(books), _shown(books.deposits)
    for name, what in sorted({*said, *shown}):
        if said.get((name, what), 0) != shown.get((name, what), 0):
            yield f"{name}: {what} is {said.get((name, what), 0)}, its {what} deposits say {shown.get((name, what), 0)}"


def _fit_to_be_held(deposit: Deposit) -> Iterable[str]:
    """Only a confirmed deposit of a merchant is held, and one that is set aside is neither held nor orphaned."""
    if deposit.set_aside:
        if deposit.held or deposit.status == "orphaned":
            yield f"deposit {deposit.id} is {deposit.status}, of {deposit.tenant}, and set aside"
    elif deposit.held and (deposit.status != "confirmed" or deposit.tenant is None):
        yield f"deposit {deposit.id} is {deposit.status}, of {deposit.tenant}, and held"


def _said(books: Books) -> dict[tuple[str, str], int]:
    """The sums of balances and wallets, by the record's name and the field's."""
    said: dict[tuple[str, str], int] = {}
    for shard in books.totals:
        awaited = f"{shard.tenant} {shard.asset}", "pending"
        said[awaited] = said.get(awaited, 0) + shard.awaited
    for balance in books.balances:
        awaited = f"{balance.tenant} {balance.asset}", "pending"
        said[awaited] = said.get(awaited, 0) + balance.pending
        said[f"{balance.tenant} {balance.asset}", "held"] = balance.held
    for wallet in books.wallets:
        # Deposits have the public spelling of their address and balances the storage form: they differ in case at most.
        name = f"wallet {wallet.address.lower()} {wallet.asset}"
        said[name, "pending"], said[name, "held"], said[name, "small"] = wallet.pending, wallet.held, wallet.small
        said[name, "aside"] = wallet.aside
    return said


def _shown(deposits: Iterable[Deposit]) -> dict[tuple[str, str], int]:
    """The same sums, made from the deposits."""
    shown: dict[tuple[str, str], int] = defaultdict(int)
    for deposit in deposits:
        for key, units in _counted_as(deposit):
            shown[key] += units
    return shown


def _counted_as(deposit: Deposit) -> Iterable[tuple[tuple[str, str], int]]:
    """The sums that count a deposit, and with how much."""
    wallet = f"wallet {deposit.address.lower()} {deposit.asset}"
    if deposit.set_aside:
        yield (wallet, "aside"), 1
        return
    if deposit.status == "pending" or deposit.held:
        what = "held" if deposit.held else "pending"
        yield (wallet, what), deposit.amount
        if deposit.tenant is not None and not deposit.below_minimum:
            yield (f"{deposit.tenant} {deposit.asset}", what), deposit.amount
    if deposit.status == "confirmed" and deposit.small:
        yield (wallet, "small"), deposit.amount


def days_agree(books: Books) -> Iterable[str]:
    """The day figures of each balance are the deposits received on that day, from when the figures are kept."""
    came: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for deposit in books.deposits:
        at = received_at(deposit)
        if at is not None and deposit.tenant is not None:
            came[deposit.tenant, deposit.asset].append((at, deposit.amount))
    for balance in books.balances:
        if balance.received is None:
            continue
        kept, shown = decoded(balance.received), Counter[int]()
        for at, units in came[balance.tenant, balance.asset]:
            shown[at // DAY_MS] += units if at >= kept.since else 0
        said = Counter({number: day.units for number, day in kept.by_day()})
        for number in sorted({*said, *shown}):
            if said[number] != shown[number]:
                name = f"{balance.tenant} {balance.asset}"
                yield f"{name}: day {number} has {said[number]} received, its deposits say {shown[number]}"


def credited_once(books: Books) -> Iterable[str]:
    credited: Counter[str] = Counter()
    # What stands of it after its reversals: in another block it may have been another amount, or of another coin.
    standing: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    for entry in books.journal:
        if entry.kind in ("deposit_credited", "deposit_reversed"):
            ref = entry.ref["deposit"]
            credited[ref] += 1 if entry.kind == "deposit_credited" else -1
            standing[ref].update({key: units for key, units in entry.deltas(Book.WHERE).items() if key[0] != OUTSIDE})
    places = Counter(f"{d.network} {d.txid} {d.position}" for d in books.deposits if d.status != "orphaned")
    for place, count in places.items():
        if count > 1:
            yield f"{place} is {count} deposits"
    for deposit in books.deposits:
        expected = 1 if deposit.posted else 0
        found = credited.pop(deposit.id, 0)
        if found != expected:
            yield f"deposit {deposit.id} is {deposit.status} and stands credited {found} times"
        booked = {(asset, units) for (_, asset), units in standing[deposit.id].items() if units}
        if booked != ({(deposit.asset, deposit.amount)} if expected else set()):
            yield f"deposit {deposit.id} over {deposit.amount} was booked with another amount"
    for deposit_id in credited:
        yield f"the journal credits {deposit_id}, and there is no such deposit"
