"""Table and key of each record type. `docs/storage.md` says which access pattern each key serves.

Every table has the keys `pk` and `sk`. `indexes` has the lists in another order than a partition's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import SimpleNamespace
from typing import Any, cast

from chalicelib.domain.webhooks.hooks import is_hook
from chalicelib.domain.work import Work, WorkKind, is_one_item, one_item_work, time_lane
from chalicelib.store.indexes import (
    DEPOSIT_REPEATED,
    activity_lists,
    address_lists,
    coin_move_lists,
    collection_lists,
    delivery_lists,
    deposit_lists,
    event_lists,
    invoice_lists,
    listed_under,
    move_lists,
    payment_link_lists,
    redelivery_lists,
    request_lists,
    stake_lists,
    stray_lists,
    whitelist_lists,
    withdrawal_lists,
)

Key = Callable[[Any], str]
ONE_ITEM_ROWS = "outrow"
"""The beginning of the partitions of outbox rows that are one item."""


def _place(wallet: Any) -> str:
    """A record's role and slot; where only the fields of a key are known, the role names the slot with it."""
    return str(wallet.place if type(wallet).__name__ == "Wallet" else wallet.role)


@dataclass(frozen=True, slots=True)
class Kind:
    """`pk` and `sk` make the key from a record, or from a namespace that has its key fields."""

    table: str
    pk: Key
    sk: Key = lambda r: "-"
    indexed: Callable[[Any], Mapping[str, str | None]] | None = None
    pages: tuple[str, str] | None = None
    """Family and owner's field of the list that `Store.page` reads, where it is no partition of the table."""
    module: str = ""
    """The module of the domain that has the type, where it is found by its key in an index."""
    stub: tuple[str, ...] | None = None
    """Where a stub may lie in a record's place: the fields that the stub repeats, beside version and archive."""
    without_stubs: tuple[str, str] | None = None
    """As `pages`, where stubs lie in the partition: the same list without them."""
    packed: str = ""
    """A field of much text that no condition names, compressed where the setting PACKED_RECORDS says so."""
    brief: bool = False
    """Whether an item is without the fields that have their default (`brevity`)."""
    understands: int = 0
    """The newest form of its items that this version reads (`models.NEEDS`)."""
    writes: int = 0
    """The form of the items that this version writes: one that the release before understands, too."""
    counts_in_any_state: bool = False
    """Whether facts about it are saved while it is in a state that only a newer version knows, which it stays in. Others are not
    saved then."""
    repeated: Mapping[str, Callable[[Mapping[str, Any]], Any]] = field(default_factory=dict)
    """Fields that other attributes of the item tell, left out where the setting SHORT_RECORDS says so."""


def _part(record: Any) -> str:
    """The first part of a list lies where the whole list lay before there were parts."""
    part = int(getattr(record, "part", None) or 0)
    return f"{part:06d}" if part else "-"


def _height(record: Any) -> str:
    """Blocks in the order of their heights."""
    return f"{int(record.number):015d}#{record.hash}"


def _endpoint_partition(r: Any) -> str:
    """A merchant's endpoints are read together, by whoever tells it of anything; its invoices' own lie apart."""
    return f"invhook#{r.tenant}" if is_hook(getattr(r, "id", "")) else f"hook#{r.tenant}"


def _outbox_key(id: str) -> tuple[str, str]:
    """An outbox row of one item lies where its obligation would, in a partition that functions without rights to it, and versions
    that would take an obligation without its row for done, do not touch."""
    return work_key(one_item_work(id)) if is_one_item(id) else (f"row#{id}", "-")


RECORDS: dict[str, Kind] = {
    "Merchant": Kind("tenants", lambda r: f"merchant#{r.id}"),
    # All of them together: they are few, and the operator alone lists them.
    "ListedMerchant": Kind("tenants", lambda r: "merchants#all", lambda r: r.id),
    "ApiKey": Kind("tenants", lambda r: f"keys#{r.tenant}", lambda r: r.id),
    "Tally": Kind("tenants", lambda r: f"tally#{r.tenant}", lambda r: r.of),
    "Invoice": Kind(
        "records",
        lambda r: f"inv#{r.tenant}",
        lambda r: r.id,
        invoice_lists,
        module="invoices.invoices",
        stub=(),
        without_stubs=("inv", "tenant"),
        brief=True,
        counts_in_any_state=True,  # a network's blocks do not wait for one invoice
    ),
    "ExternalId": Kind("records", lambda r: f"ext#{r.tenant}", lambda r: r.value),
    "InvoiceTotals": Kind("records", lambda r: f"sum#{r.tenant}", lambda r: f"{r.asset}#{r.shard}"),
    "InvoiceSettings": Kind("records", lambda r: f"inset#{r.tenant}"),
    "Address": Kind(
        "records",
        lambda r: f"addr#{r.tenant}",
        lambda r: r.id,
        address_lists,
        module="addresses.addresses",
        stub=(),
        without_stubs=("addr", "tenant"),
    ),
    "Withdrawal": Kind("records", lambda r: f"wd#{r.tenant}", lambda r: r.id, withdrawal_lists, module="withdrawals.withdrawals"),
    "WithdrawalBatch": Kind("records", lambda r: f"wdb#{r.tenant}", lambda r: r.id),
    "ApprovalRequest": Kind(
        "records", lambda r: f"apr#{r.id}", indexed=request_lists, pages=("apr", "realm"), module="withdrawals.approvals"
    ),
    "Refund": Kind("records", lambda r: f"refund#{r.tenant}", lambda r: r.id),
    "PayoutLink": Kind("records", lambda r: f"paylink#{r.tenant}", lambda r: r.id),
    "InvoiceRefunds": Kind("records", lambda r: f"refunded#{r.tenant}", lambda r: r.invoice_id),
    "ClaimLink": Kind("records", lambda r: f"claim#{r.hash}"),
    "RefundsSpent": Kind("records", lambda r: f"refundday#{r.tenant}"),
    "WhitelistEntry": Kind(
        "records",
        lambda r: f"wl#{r.tenant}",
        lambda r: r.id,
        whitelist_lists,
        pages=("wl", "tenant"),
        module="withdrawals.whitelist",
    ),
    # By its id alone: who opens a link has no key.
    "PaymentLink": Kind(
        "records", lambda r: f"plink#{r.id}", indexed=payment_link_lists, pages=("plink", "tenant"), module="payment_links.links"
    ),
    "LinkStock": Kind("records", lambda r: f"linkstock#{r.link}", lambda r: r.shard),
    "LinkOpenings": Kind("records", lambda r: f"linkopen#{r.link}#{r.caller}", lambda r: r.hour),
    "PayerSent": Kind("records", lambda r: f"paysent#{r.invoice}", lambda r: r.txid),
    "PayerSendings": Kind("records", lambda r: f"paysend#{r.invoice}#{r.caller}", lambda r: r.hour),
    "Spent": Kind("records", lambda r: f"spent#{r.tenant}", lambda r: r.asset),
    "PayeeSpent": Kind("records", lambda r: f"payee#{r.tenant}", lambda r: f"{r.asset}#{r.address}"),
    "MerchantSettings": Kind("records", lambda r: f"mset#{r.tenant}"),
    "ShopLooks": Kind("records", lambda r: f"shop#{r.tenant}"),
    "ShopLogo": Kind("records", lambda r: f"shoplogo#{r.tenant}"),
    "FeesBorne": Kind("records", lambda r: f"borne#{r.tenant}", lambda r: r.network),
    "FeeBudget": Kind("records", lambda r: f"feebudget#{r.tenant}"),
    "Activity": Kind("records", lambda r: f"act#{r.tenant}", lambda r: r.id, activity_lists, module="merchants.activity"),
    "StoredAnswer": Kind("records", lambda r: f"idem#{r.tenant}", lambda r: r.key),
    "Deposit": Kind(
        "records",
        lambda r: f"tx#{r.id}",
        indexed=deposit_lists,
        module="deposits.deposits",
        # A rescan that can not read the archive still finds that it was recorded, where, and what became of it.
        stub=("status", "block_hash"),
        brief=True,
        repeated=DEPOSIT_REPEATED,
    ),
    "Stake": Kind("records", lambda r: f"stake#{r.network}", lambda r: r.id, stake_lists, module="treasury.stakes"),
    "Move": Kind("records", lambda r: f"move#{r.network}", lambda r: r.id, move_lists, module="treasury.moves"),
    "CoinMove": Kind(
        "records", lambda r: f"coinmove#{r.network}", lambda r: r.id, coin_move_lists, module="treasury.consolidations"
    ),
    "Collection": Kind(
        "records", lambda r: f"col#{r.id}", indexed=collection_lists, pages=("col", "realm"), module="treasury.collections"
    ),
    "Collecting": Kind("records", lambda r: f"colopen#{r.network}#{r.address}"),
    "StrayPayment": Kind(
        "records", lambda r: f"stray#{r.id}", indexed=stray_lists, pages=("stray", "realm"), module="stray_payments"
    ),
    "Distribution": Kind("records", lambda r: f"dist#{r.network}#{r.address}", lambda r: r.asset),
    "Balance": Kind("ledger", lambda r: f"bal#{r.tenant}", lambda r: r.asset),
    "WalletBalance": Kind("ledger", lambda r: f"wal#{r.network}#{r.address}", lambda r: r.asset),
    "JournalEntry": Kind("ledger", lambda r: f"jrn#{r.id}"),
    "ClosingPosting": Kind("ledger", lambda r: f"closed#{r.source}>{r.destination}", lambda r: f"{r.month}#{r.asset}"),
    "ArchiveRound": Kind("chain", lambda r: f"archive#{r.realm}"),
    "Network": Kind("chain", lambda r: f"net#{r.id.split(':')[0]}", lambda r: r.id.split(":")[1]),
    "Coin": Kind("chain", lambda r: f"coin#{r.network.split(':')[0]}", lambda r: f"{r.network.split(':')[1]}#{r.slug}"),
    "TokenContract": Kind("chain", lambda r: f"contract#{r.network}", lambda r: r.contract),
    # The live realm's alone: the sandbox's are constant and stored nowhere.
    "Rate": Kind("chain", lambda r: "rate#live", lambda r: f"{r.coin}#{r.fiat}"),
    "Watched": Kind("chain", lambda r: f"watch#{r.realm}#{r.family}#{r.address}"),
    "Wallet": Kind("chain", lambda r: f"wallet#{r.network}", _place),
    "RetiredWallet": Kind("chain", lambda r: f"retired#{r.network}", lambda r: r.address),
    "Observed": Kind("chain", lambda r: f"observed#{r.network}"),
    "Busy": Kind("chain", lambda r: f"busy#{r.network}"),
    "TickLease": Kind("chain", lambda r: f"tick#{r.network}"),
    "AskedCredits": Kind("chain", lambda r: f"askcredit#{r.network}"),
    "Cursor": Kind("chain", lambda r: f"cursor#{r.network}"),
    "ScanEpoch": Kind("chain", lambda r: f"epoch#{r.network}"),
    "BalanceBooking": Kind("chain", lambda r: f"booked#{r.network}#{r.address}"),
    "Reconciled": Kind("chain", lambda r: f"reconciled#{r.network}"),
    "ReconcileRound": Kind("chain", lambda r: f"round#{r.network}"),
    "AskingRound": Kind("chain", lambda r: f"asking#{r.network}", lambda r: r.kind),
    "ReconciliationOrder": Kind("chain", lambda r: f"reconcile#{r.realm}"),
    "Comparison": Kind("chain", lambda r: f"comparing#{r.network}"),
    "ComparisonReport": Kind("chain", lambda r: f"compared#{r.network}"),
    "DifferencesPart": Kind("chain", lambda r: f"differing#{r.network}#{r.generation}", lambda r: f"{int(r.part):05d}"),
    "Sighting": Kind("chain", lambda r: f"sighting#{r.network}#{r.subject}"),
    "BlockDeposits": Kind("chain", lambda r: f"block#{r.network}#{r.hash}", _part),
    "DepositBlock": Kind("chain", lambda r: f"blocks#{r.network}", _height),
    "ArchivedBlock": Kind("chain", lambda r: f"archived#{r.network}"),
    "Migrated": Kind("chain", lambda r: f"migrated#{r.network}", lambda r: r.name),
    "LogClaim": Kind("chain", lambda r: f"logs#{r.network}#{r.txid}"),
    "ScanRange": Kind("chain", lambda r: f"range#{r.network}", lambda r: r.name),
    "Restore": Kind("chain", lambda r: f"restore#{r.network}"),
    "Rescan": Kind("chain", lambda r: f"rescan#{r.network}", lambda r: r.id),
    "DemoState": Kind("chain", lambda r: f"demo#{r.id}"),
    "FeeQuote": Kind("chain", lambda r: f"fees#{r.network}"),
    "PaymentHistory": Kind("records", lambda r: f"paid#{r.tenant}", lambda r: r.asset),
    "Payees": Kind("records", lambda r: f"payees#{r.tenant}", lambda r: f"{r.network}#{r.mark}"),
    # Beside what payouts read: no function that pays reads the tenants' keys.
    "Suspension": Kind("chain", lambda r: f"suspended#{r.tenant}"),
    "PaymentSwitch": Kind("chain", lambda r: f"switch#{r.realm}"),
    "Trace": Kind("chain", lambda r: f"trace#{r.network}"),
    "NetworkReport": Kind("chain", lambda r: f"nodes#{r.network}"),
    "NodeSilence": Kind("chain", lambda r: f"silence#{r.network}"),
    "GreyListEntry": Kind("chain", lambda r: f"grey#{r.realm}", lambda r: f"{r.network}#{r.address}"),
    "MinedBlocks": Kind("chain", lambda r: f"mined#{r.tenant}"),
    "SandboxRates": Kind("chain", lambda r: f"ownrates#{r.tenant}"),
    "SandboxClock": Kind("chain", lambda r: f"clock#{r.id}"),
    "Xpub": Kind("chain", lambda r: f"xpub#{r.realm}", lambda r: r.pool),
    "NonceCounter": Kind("payouts", lambda r: f"nonce#{r.network}#{r.wallet}"),
    "PayoutLine": Kind("payouts", lambda r: f"payline#{r.network}"),
    "SlotShortage": Kind("payouts", lambda r: f"short#{r.network}", lambda r: r.asset),
    "NonceUse": Kind("payouts", lambda r: f"nonceuse#{r.owner}"),
    "FirstSignature": Kind("payouts", lambda r: f"signed#{r.owner}"),
    "PaymentOrder": Kind("payouts", lambda r: f"order#{r.id}"),
    "Bundle": Kind("payouts", lambda r: f"bundle#{r.id}"),
    "HeldCoins": Kind("payouts", lambda r: f"coins#{r.network}#{r.wallet}"),
    "ConsolidationQueue": Kind("payouts", lambda r: f"coincol#{r.network}"),
    "ConsolidationFees": Kind("payouts", lambda r: f"coinfees#{r.network}"),
    "GivenUp": Kind("payouts", lambda r: f"givenup#{r.id}"),
    "OwnTransaction": Kind("payouts", lambda r: f"own#{r.network}#{r.txid}"),
    "OutboxRow": Kind("work", lambda r: _outbox_key(r.id)[0], lambda r: _outbox_key(r.id)[1], packed="events"),
    "EventRecord": Kind(
        "events", lambda r: f"evt#{r.tenant}", lambda r: r.id, event_lists, module="webhooks.endpoints", packed="body"
    ),
    "WebhookEndpoint": Kind("webhooks", _endpoint_partition, lambda r: r.id),
    "Delivery": Kind("webhooks", lambda r: f"dlv#{r.tenant}", lambda r: r.id, delivery_lists, module="webhooks.deliveries"),
    "RedeliveryJob": Kind("webhooks", lambda r: f"rdl#{r.tenant}", lambda r: r.id, redelivery_lists, module="webhooks.redelivery"),
    "LatestRedelivery": Kind("webhooks", lambda r: f"rdlatest#{r.tenant}", lambda r: r.endpoint_id),
    "Turn": Kind("webhooks", lambda r: f"turn#{r.tenant}", lambda r: r.endpoint_id),
    "SweepCursor": Kind("webhooks", lambda r: f"sweep#{r.id}"),
    "EncryptedSeed": Kind("custody", lambda r: f"seed#{r.id}"),
    "EncryptedKey": Kind("custody", lambda r: f"key#{r.id}"),
}
"""By the record type's name, so that a cold function does not import every type to write down where it lies."""


def where_is(kind: type) -> Kind:
    """The table and key of records of `kind`."""
    return RECORDS[kind.__name__]


def key_of(kind: type, fields: dict[str, str]) -> tuple[str, str]:
    """The key of the record of `kind` that has these key fields."""
    where, named = where_is(kind), SimpleNamespace(**fields)
    return where.pk(named), where.sk(named)


def partition_of(kind: type, fields: dict[str, str]) -> str:
    """The partition of the table that records of `kind` with these fields lie in."""
    return where_is(kind).pk(SimpleNamespace(**fields))


def kind_at(pk: str) -> type:
    """The record type of an item in an index, by its partition key in the table."""
    name, where = _LISTED[pk.split("#", 1)[0]]
    found: type = getattr(import_module(f"chalicelib.domain.{where.module}"), name)
    return found


class _Nothing(SimpleNamespace):
    """Has every field, all empty but those that it was made with: what is left of a key is its beginning."""

    def __getattr__(self, name: str) -> str:
        return ""


def beginning_of(kind: type, fields: dict[str, str]) -> str:
    """The common beginning of the partition keys of a kind's records with these `fields`, the first ones of the key."""
    return where_is(kind).pk(_Nothing(**fields))


def prefix_of(kind: type) -> str:
    """The common beginning of a kind's partition keys."""
    return where_is(kind).pk(_Nothing()).split("#")[0] + "#"


_LISTED = {where.pk(_Nothing()).split("#")[0]: (name, where) for name, where in RECORDS.items() if where.indexed is not None}


def name_key(name: str, id: str = "") -> tuple[str, str]:
    """The key of the row by which an archived record is found. The row has nothing but its key."""
    return f"arch#{name}", id


def work_key(work: Work) -> tuple[str, str]:
    kind = ONE_ITEM_ROWS if work.kind == "outbox" and is_one_item(work.id) else work.kind
    return f"{kind}#{work.lane}", f"{work.order}#{work.id}"


def work_partitions(kind: WorkKind, lane: str) -> tuple[str, ...]:
    """The partitions with the open work of a lane: outbox rows of one item have one of their own."""
    return (f"{kind}#{lane}", f"{ONE_ITEM_ROWS}#{lane}") if kind == "outbox" else (f"{kind}#{lane}",)


def work_by_time(work: Work) -> str | None:
    """The partition of the index `by_time` for an obligation, None for work that is not in it."""
    lane = time_lane(work)
    return None if lane is None else listed_under(work.kind, lane)


def work_at(pk: str, sk: str) -> Work:
    """The obligation whose item has this key."""
    kind, _, lane = pk.partition("#")
    order, _, id = sk.partition("#")
    return Work(cast(WorkKind, "outbox" if kind == ONE_ITEM_ROWS else kind), lane, order, id)
