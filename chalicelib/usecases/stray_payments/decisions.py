"""An operator's decisions about payments to our addresses on the wrong EVM network: read a transaction, credit its payment to
the merchant of the address, or return it. One transaction each; of two decisions at once one passes, for ever.

Credit watches the address on that network and orders a rescan of the block: the payment goes the way of every deposit, under the
id that it would have had, and so once. Return makes it the operator's merchant's (`returned_payments`), recorded by the same
rescan, and opens the obligation to order the withdrawal that sends it back (`stray_returns`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from chalicelib.domain.addresses.addresses import Address, Watched, watched_key
from chalicelib.domain.catalogue.catalogue import Coin, Network
from chalicelib.domain.chain import Cursor
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.errors import BusinessRule, NotFound
from chalicelib.domain.ids import Realm, TenantId, derived_id, network_parts
from chalicelib.domain.scanning.rescans import Rescan, rescan_work
from chalicelib.domain.stray_payments import StrayPayment, StrayStatus, stray_work
from chalicelib.domain.versions import next_version, version_after
from chalicelib.usecases.base.activity import aside
from chalicelib.usecases.base.address_forms import form_of, tokens_by_form
from chalicelib.usecases.base.creation import Creation, Prepared
from chalicelib.usecases.base.newer_states import each_of
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import AtEpoch, Change, Open, Save, Still
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import TooNew, Unavailable
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.stray_payments.reading import Arrived, Reading, StrayReader
from chalicelib.usecases.withdrawals.withdrawals import Withdrawals

_TOGETHER = 9
"""Payments stored in one transaction, beside the caller's answer."""


@dataclass(frozen=True, slots=True)
class Looked:
    """The stray payments of one transaction. `internal`: contracts' payments inside of it were read, too."""

    network: str
    txid: str
    block_number: int
    internal: bool
    payments: tuple[StrayPayment, ...]


class StrayPayments:
    def __init__(
        self,
        store: Store,
        rules: AddressRules,
        clock: Clock,
        reader_of: Callable[[Network], ChainReader],
        withdrawals: Withdrawals,
    ) -> None:
        self._store, self._rules, self._clock = store, rules, clock
        self._reader_of, self._withdrawals = reader_of, withdrawals

    def looking(self, network: Network, txid: str) -> Creation[Looked]:
        """Read the transaction and prepare its payments to deposit addresses; earlier decisions stay as they are.

        Of payments too many for one transaction the last part is prepared, and the others are stored here: read again, they stay
        as they are. Raises BusinessRule: no EVM network, not active, a node that does not answer, nothing there for us.
        """
        if network.family != "evm":
            raise BusinessRule("network", f"only EVM networks share their addresses; {network.slug} is none")
        self._cursor(network)
        form = txid.lower()
        try:
            reading = StrayReader(network, self._reader_of(network), self._store).read(form)
        except (Unavailable, LookupError) as error:
            raise BusinessRule("network", f"the transaction can not be read now: {error}") from error
        *others, last = [reading.arrived[start : start + _TOGETHER] for start in range(0, len(reading.arrived), _TOGETHER)]
        stored: list[StrayPayment] = []
        for part in others:
            stored += Creation(self._store, partial(self._kept, network, reading, part)).run()

        def prepare() -> Prepared[Looked]:
            kept = self._kept(network, reading, last)
            looked = Looked(network.slug, form, reading.block.number, reading.internal, (*stored, *kept.made))
            return Prepared(looked, kept.changes)

        return Creation(self._store, prepare)

    def _kept(self, network: Network, reading: Reading, part: Sequence[Arrived]) -> Prepared[list[StrayPayment]]:
        keys = [each.deposit for each in part]
        wanted: list[tuple[type[Any], dict[str, str]]] = [(kind, {"id": key}) for kind in (StrayPayment, Deposit) for key in keys]
        found = self._store.get_many(wanted)
        kept: list[StrayPayment] = []
        changes: list[Change] = []
        for each, before, deposit in zip(part, found, found[len(part) :], strict=False):
            after = self._now(network, reading, each, before, deposit)
            kept.append(after)
            changes += [] if after == before else [Save(after)]
        return Prepared(kept, changes)

    def _now(
        self, network: Network, reading: Reading, arrived: Arrived, before: StrayPayment | None, deposit: Deposit | None
    ) -> StrayPayment:
        """The record of a payment as it is known now; what is decided is left alone."""
        if before is not None and before.decided:
            return before
        now, block, transfer = self._clock.now_ms(), reading.block, arrived.transfer
        status: StrayStatus = "open" if deposit is None or deposit.status == "orphaned" else "recorded"
        if before is None:
            spelled = [self._spelled(network, text) for text in (transfer.sender, transfer.recipient)]
            contract = None if transfer.contract is None else self._spelled(network, transfer.contract)
            return StrayPayment(
                arrived.deposit, network.id, transfer.txid, transfer.position, contract, spelled[0], spelled[1], transfer.amount,
                block.number, block.hash, block.time, TenantId(arrived.watched.tenant or ""), arrived.watched.address_id or "",
                now, now, status,
            )  # fmt: skip
        after = replace(
            before, position=transfer.position, units=transfer.amount, block_number=block.number, block_hash=block.hash,
            block_time=block.time, status=status,
        )  # fmt: skip
        return before if after == before else replace(after, updated_at=now, version=version_after(before))

    def get(self, realm: Realm, id: str) -> StrayPayment:
        """Raises NotFound, also for one of the other realm."""
        found = self._store.get(StrayPayment, id=id)
        if found is None or found.realm != realm:
            raise NotFound(f"No stray payment {id[:80]}", {"id": id[:80]})
        return found

    def recorded(self, strays: Sequence[StrayPayment]) -> list[tuple[StrayPayment, Deposit | None]]:
        """Each with its recorded deposit: one read for a hundred. Raises TooNew where one has a form that only a newer version
        knows, Unavailable."""
        found = self._store.get_many([(Deposit, {"id": stray.id}) for stray in strays]) if strays else []
        return list(zip(strays, found, strict=True))

    def known(self, strays: Sequence[StrayPayment]) -> list[tuple[StrayPayment, Deposit | None]]:
        """The same without those that `recorded` would raise TooNew for."""
        found = each_of(self._store, [(Deposit, {"id": stray.id}) for stray in strays]) if strays else []
        return [(stray, deposit) for stray, deposit in zip(strays, found, strict=True) if not isinstance(deposit, TooNew)]

    def coin(self, stray: StrayPayment) -> Coin | None:
        """The coin of a stray payment; None for an unregistered token."""
        realm, slug = network_parts(stray.network)
        catalogue = self._store.catalogue(realm)
        if stray.contract is None:
            return catalogue.native(slug)
        network = catalogue.networks[slug]
        return tokens_by_form(self._rules, network, catalogue.coins_of(slug)).get(form_of(self._rules, network, stray.contract))

    def crediting(self, realm: Realm, id: str, by: str) -> Creation[StrayPayment]:
        """Prepare to credit a stray payment by the ordinary scan: watch its address on its network, and look at its block again.
        `by` is the key's id.

        A try raises NotFound, BusinessRule (decided or recorded already, its token not registered, too few confirmations).
        """

        def prepare() -> Prepared[StrayPayment]:
            before, network, watched, decided = self._decidable(realm, id)
            after = self._decided(before, "credit", by)
            changes = [Save(after), *decided]
            if network.slug not in watched.networks:
                networks = (*watched.networks, network.slug)
                changes.append(Save(replace(next_version(watched), networks=networks)))
                owned = self._store.get(Address, tenant=before.tenant, id=before.address_id)
                if owned is not None and network.slug not in owned.networks:
                    changes.append(Save(replace(next_version(owned), networks=(*owned.networks, network.slug))))
            return Prepared(after, changes)

        return Creation(self._store, prepare)

    def sending_back(self, realm: Realm, id: str, address: str, owner: TenantId, by: str) -> Creation[StrayPayment]:
        """Prepare to return a stray payment: it is the operator's merchant's (`owner`), who withdraws it to `address` once it is
        credited. `by` is the key's id.

        A try raises NotFound, BusinessRule (also where its address is watched on its network: there it is its merchant's), and
        whatever a withdrawal to `address` would be refused with now, but for the balance.
        """

        def prepare() -> Prepared[StrayPayment]:
            before, network, watched, decided = self._decidable(realm, id)
            if network.slug in watched.networks:
                raise BusinessRule(
                    "id", f"its address is watched on {network.slug}, so it is its merchant's: credit it, and let them pay it back"
                )
            coin = self.coin(before)
            if coin is None:
                raise LookupError(f"{before.id} has no coin")  # `_decidable` has seen to it
            to = self._withdrawals.demand(owner, coin, before.units, address, "address")
            after = replace(self._decided(before, "return", by), owner=owner, return_to=to)
            # By the row's version, and only where it is not watched: a later change that watches it finds this
            # (`returned_payments`).
            noted: Change = Still(watched)
            if network.slug not in watched.returned:
                noted = Save(replace(next_version(watched), returned=(*watched.returned, network.slug)))
            return Prepared(after, [Save(after), noted, *decided, Open(stray_work(after))])

        return Creation(self._store, prepare)

    def _decided(self, before: StrayPayment, status: StrayStatus, by: str) -> StrayPayment:
        now = self._clock.now_ms()
        return replace(next_version(before), status=status, decided_by=by, decided_at=now, updated_at=now)

    def _decidable(self, realm: Realm, id: str) -> tuple[StrayPayment, Network, Watched, list[Change]]:
        """A payment that can be decided about, its network, its address' row, and the changes of every decision: they order a scan
        of its block, on condition that no reorganisation was followed since the block was found to stand."""
        before = self.get(realm, id)
        network = self._store.catalogue(realm).networks[network_parts(before.network)[1]]
        if before.decided:
            raise BusinessRule("id", f"was decided before: {before.status}")
        cursor = self._deep(network, before)
        if self.coin(before) is None:
            raise BusinessRule(
                "id", f"the token {before.contract} is not registered on {network.slug}: POST /v1/coins registers it, then again"
            )
        form = form_of(self._rules, network, before.address)
        deposit, watched = self._store.get_many([(Deposit, {"id": before.id}), watched_key(network, form)])
        if deposit is not None and deposit.status != "orphaned":
            if before.status != "recorded":
                known = replace(next_version(before), status="recorded", updated_at=self._clock.now_ms())
                with aside():  # it is refused all the same
                    self._store.commit([Save(known)])
            raise BusinessRule("id", f"is recorded already: it is the transaction {deposit.id}, which is {deposit.status}")
        if watched is None:
            raise LookupError(f"{before.address} is no address of ours any more")
        number = before.block_number
        rescan = Rescan(derived_id("rsc", "stray", before.id), network.id, number, number, number, self._clock.now_ms(), noted=True)
        return before, network, watched, [Save(rescan), Open(rescan_work(rescan)), AtEpoch(network.id, cursor.epoch)]

    def _deep(self, network: Network, stray: StrayPayment) -> Cursor:
        """The network's cursor, below which the payment's block has its confirmations. Raises BusinessRule where it has not."""
        cursor = self._cursor(network)
        if cursor.recent.get(str(stray.block_number), stray.block_hash) != stray.block_hash:
            raise BusinessRule("id", "its block fell out of the chain: POST /v1/stray-payments reads the transaction again")
        has = max(0, min(cursor.number, cursor.tip) - stray.block_number + 1)
        if has < network.confirmations:
            raise BusinessRule("id", f"has {has} of {network.confirmations} confirmations by what is scanned: try again later")
        return cursor

    def _cursor(self, network: Network) -> Cursor:
        if network.status != "active":
            raise BusinessRule("network", f"{network.slug} is not active here: it is not scanned, and nothing is credited or paid")
        cursor = self._store.get(Cursor, network=network.id)
        if cursor is None or cursor.halted is not None or cursor.rewind_to is not None:
            raise BusinessRule(
                "network", f"{network.slug} is not scanned yet, is halted, or follows a reorganisation: try again later"
            )
        return cursor

    def _spelled(self, network: Network, address: str) -> str:
        try:
            return self._rules.normalize(network.id, address)
        except ValueError:
            return address  # a sender may be what nobody can pay to
