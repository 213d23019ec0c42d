"""Whether an order of ours was ever signed, and how often, by what is stored with its signatures and never changed.

An order's record can be altered until it looks unsigned. Where no nonce and no input binds a second "first" attempt to the first
one, both would be mined. So the first signature of each kind commits with one more item, on the condition that it is not there:

* payments and moves of accounts: the journal entry of their signature, whose id follows from the order's;
* stakes, bundles and coin moves, which post nothing then: a `FirstSignature`.

An order can be put back to an attempt that it had, too. Where a nonce or an input binds all attempts to each other, that pays
nothing twice. On Tron it would: the first attempt has expired, the second is mined, and the record says nothing of the second. So
there each attempt commits with a `FirstSignature` of its own, of the order's id and the attempt's number (`unlike_attempts`).

Whoever can delete these items as well, or write over them, can have an order signed anew: nothing in the store would tell. The
journal then is broken.
"""

from __future__ import annotations

from collections.abc import Sequence

from chalicelib.domain import ledger
from chalicelib.domain.ledger import JournalEntry
from chalicelib.domain.transactions.first_signatures import FirstSignature
from chalicelib.domain.transactions.outgoing import Attempt
from chalicelib.usecases.ports.changes import Absent, Change, Save
from chalicelib.usecases.ports.store import Store


def signed_before(store: Store, owner: str) -> bool:
    """Whether the order, move, stake, bundle or coin move `owner` was ever signed. Raises Unavailable."""
    return bool(all_signed_before(store, [owner]))


def all_signed_before(store: Store, owners: Sequence[str]) -> set[str]:
    """Those of `owners` that were ever signed. Raises Unavailable."""
    keys = [
        each
        for owner in owners
        for each in ((FirstSignature, {"owner": owner}), (JournalEntry, {"id": ledger.signature_id(owner)}))
    ]
    found = store.get_many(keys)
    return {owner for place, owner in enumerate(owners) if any(each is not None for each in found[2 * place : 2 * place + 2])}


def first_signature(owner: str, txid: str, at: int) -> Change:
    """Commits with the first signed bytes of what posts nothing with them: a Conflict where it was signed before. `at` in
    milliseconds since 1970."""
    return Save(FirstSignature(owner, txid, at))


def attempt_signature(owner: str, number: int, txid: str, at: int) -> Change:
    """Commits with the signed bytes of attempt `number` of `owner`, from 1 on, where attempts have no nonce: a Conflict where that
    attempt was signed before. `at` in milliseconds since 1970."""
    return Save(FirstSignature(_attempt(owner, number), txid, at))


def unlike_attempts(store: Store, owner: str, attempts: Sequence[Attempt]) -> bool:
    """Whether `attempts`, oldest first, are not all that were ever signed for `owner`, which has no nonce. Raises Unavailable.

    An order that was signed before there were such items has none of its first attempt: then its first signature has to be there.
    One that had been replaced by then has none of its later ones, and is not replaced any more.
    """
    keys = [(FirstSignature, {"owner": _attempt(owner, number)}) for number in range(1, len(attempts) + 2)]
    found: list[FirstSignature | None] = store.get_many(keys)
    *known, later = [None if each is None else each.txid for each in found]
    if later is not None:
        return True
    if known and known[0] is None and signed_before(store, owner):
        known[0] = attempts[0].txid
    return known != [attempt.txid for attempt in attempts]


def _attempt(owner: str, number: int) -> str:
    return f"{owner}#{number}"


def never_signed(owner: str) -> list[Change]:
    """The conditions under which `owner` was not signed when they are committed."""
    return [Absent(FirstSignature, {"owner": owner}), Absent(JournalEntry, {"id": ledger.signature_id(owner)})]
