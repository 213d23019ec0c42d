"""Whether an order of ours was ever signed, by what is stored with its first signature and never changed.

An order's record can be altered until it looks unsigned. Where no nonce and no input binds a second "first" attempt to the first
one, both would be mined. So the first signature of each kind commits with one more item, on the condition that it is not there:

* payments and moves of accounts: the journal entry of their signature, whose id follows from the order's;
* stakes, bundles and coin moves, which post nothing then: a `FirstSignature`.

Whoever can delete that item as well can have an order signed anew: nothing in the store would tell. The journal then is broken.
"""

from __future__ import annotations

from collections.abc import Sequence

from chalicelib.domain import ledger
from chalicelib.domain.ledger import JournalEntry
from chalicelib.domain.transactions.first_signatures import FirstSignature
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


def never_signed(owner: str) -> list[Change]:
    """The conditions under which `owner` was not signed when they are committed."""
    return [Absent(FirstSignature, {"owner": owner}), Absent(JournalEntry, {"id": ledger.signature_id(owner)})]
