"""The kill switch: it stops all payments to others at once; everything else goes on.

A signature for others is stored in a transaction that rests on the switch as it was read (`rests_on`): once the operator who throws
it has an answer, no signature is stored any more, and what is not stored is never sent. What was signed before is not sent, not
sent again and not replaced while it is thrown (`stopped`); a send that is under way at that moment can not be called back. What the
chain has is followed all the same: receipts decide, whatever the switch says. Moves between places of ours go on, but for those to
a wallet that was registered after it was thrown (`closed_to`): whose wallet that is, the operator says by letting payments go on.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.ids import Realm, network_parts
from chalicelib.domain.kill_switch import PaymentSwitch
from chalicelib.domain.versions import next_version
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.changes import Absent, Change, Save, Still
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.store import Store

if TYPE_CHECKING:
    from chalicelib.domain.addresses.addresses import Wallet

log = logging.getLogger(__name__)

PUT_BACK = "the tables were put back to an earlier second"
"""The reason that is shown meanwhile."""


class PaymentsStopped(Unavailable):
    """The operator has stopped all payments of the realm. Nothing was signed."""


def stopped(store: Store, realm: Realm) -> bool:
    """Whether outgoing payments of a realm are stopped now. One read. Raises Unavailable."""
    found = store.get(PaymentSwitch, realm=realm)
    return found is not None and found.stopped


def put_back(store: Store, realm: Realm) -> int | None:
    """When a point-in-time restore of the tables became known, in milliseconds since 1970; None where none is under way.

    During a restore nothing is signed, sent, credited, or taken for lost in the realm: the chain has more than the store knows
    (`after_restore`). One read. Raises Unavailable.
    """
    found = store.get(PaymentSwitch, realm=realm)
    return None if found is None else found.put_back


def rests_on(store: Store, realm: Realm) -> list[Change]:
    """The condition for a transaction that stores a signature: nobody has touched the switch since. Read before signing.

    Raises PaymentsStopped, Unavailable.
    """
    found = store.get(PaymentSwitch, realm=realm)
    if found is not None and found.stopped:
        raise PaymentsStopped(f"outgoing payments of the realm {realm} are stopped")
    return [_unchanged(realm, found)]


def rests_on_tables(store: Store, realm: Realm) -> list[Change]:
    """The condition for a transaction that stores the signature of a move, or allots it a nonce: no point-in-time restore has
    started since, and nobody has touched the switch. Moves go on while payments are stopped. Read before signing.

    Raises PaymentsStopped, Unavailable.
    """
    found = store.get(PaymentSwitch, realm=realm)
    if found is not None and found.put_back is not None:
        raise PaymentsStopped(f"{PUT_BACK}: what the wallets of the realm {realm} have sent is not known")
    return [_unchanged(realm, found)]


def untouched(store: Store, realm: Realm) -> Change:
    """The condition that nobody touches the switch from now on, whether it is thrown or not. Raises Unavailable."""
    return _unchanged(realm, store.get(PaymentSwitch, realm=realm))


def closed_to(store: Store, wallet: Wallet) -> bool:
    """Whether no move to `wallet` (as read before) is allowed: it was registered after payments were stopped, and they still are.

    Both times are the realm's. One read. Raises Unavailable.
    """
    found = store.get(PaymentSwitch, realm=network_parts(wallet.network)[0])
    return found is not None and found.stopped and found.stopped_at is not None and wallet.created_at >= found.stopped_at


def _unchanged(realm: Realm, found: PaymentSwitch | None) -> Change:
    return Absent(PaymentSwitch, {"realm": realm}) if found is None else Still(found)


class Switches:
    """Throws the switch, and reads its state."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def state(self, realm: Realm) -> PaymentSwitch:
        """Raises Unavailable."""
        return self._store.get(PaymentSwitch, realm=realm) or PaymentSwitch(realm)

    def throw(self, realm: Realm, stop: bool, reason: str | None, by: str) -> PaymentSwitch:
        """Stop all outgoing payments of a realm, or let them go on. The same again changes nothing, but for another reason.

        When this returns after stopping, no signature is stored any more. Raises BusinessRule during a point-in-time restore,
        Conflict, Unavailable.
        """

        def decide() -> PaymentSwitch:
            before = self.state(realm)
            if before.put_back is not None and not stop:
                raise BusinessRule(
                    "stopped", "the tables were put back to an earlier second: the operator's after-restore comes first"
                )
            if before.stopped == stop and (not stop or before.reason == reason):
                return before
            with in_realm(realm):
                now = self._clock.now_ms()
            since = before.stopped_at if before.stopped else now
            after = replace(
                next_version(before),
                stopped=stop,
                reason=reason,
                changed_at=now,
                changed_by=by,
                stopped_at=since if stop else None,
            )
            self._store.commit([Save(after)])
            if stop:
                log.error("ALARM %s: outgoing payments are stopped by %s: %s", realm, by, reason or "no reason given")
            else:
                log.error("ALARM %s: outgoing payments go on, by %s: %s", realm, by, reason or "no reason given")
            return after

        return until_settled(decide)

    def begin_restore(self, realm: Realm) -> int:
        """Begin a point-in-time restore: everything stands still from the answer on. Returns its beginning, in milliseconds
        since 1970; a second call changes nothing. Raises Conflict, Unavailable."""

        def decide() -> int:
            before = self.state(realm)
            if before.put_back is not None:
                return before.put_back
            with in_realm(realm):
                now = self._clock.now_ms()
            after = replace(
                next_version(before), stopped=True, reason=PUT_BACK, changed_at=now, changed_by="operator", put_back=now,
                stopped_at=before.stopped_at if before.stopped else now,
            )  # fmt: skip
            self._store.commit([Save(after)])
            log.error("ALARM %s: the tables were put back to an earlier second: nothing is signed, sent or credited", realm)
            return now

        return until_settled(decide)

    def end_restore(self, realm: Realm) -> None:
        """End a point-in-time restore, once everything since is recorded. Payments stay stopped until they are let go on. Raises
        Conflict, Unavailable."""

        def decide() -> None:
            before = self.state(realm)
            if before.put_back is not None:
                self._store.commit([Save(replace(next_version(before), put_back=None))])

        until_settled(decide)
