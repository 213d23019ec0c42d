"""Table and key of each record type. `docs/storage.md` says which access pattern each key serves.

Every table has the keys `pk` and `sk`. Lists in another order than a partition's, and their filters, are global secondary indexes
that hold keys only. An item is in one when it has both of its attributes (`INDEXES`), and writing the item again costs the index
nothing while these stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import SimpleNamespace
from typing import Any, cast

from chalicelib.domain.ids import network_parts, place_in_time
from chalicelib.domain.webhooks.hooks import is_hook
from chalicelib.domain.work import Work, WorkKind, time_lane

Key = Callable[[Any], str]


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


@dataclass(frozen=True, slots=True)
class Index:
    """A global secondary index with keys only: its attributes `pk` and `sk` make its own key."""

    table: str
    name: str
    pk: str
    sk: str


def _part(record: Any) -> str:
    """The first part of a list lies where the whole list lay before there were parts."""
    part = int(getattr(record, "part", None) or 0)
    return f"{part:06d}" if part else "-"


def _height(record: Any) -> str:
    """Blocks in the order of their heights."""
    return f"{int(record.number):015d}#{record.hash}"


INDEXES: dict[tuple[str, str], Index] = {
    **{(family, "time"): Index("records", "listing", "list_pk", "sk") for family in ("inv", "wd", "addr")},
    **{(family, "status"): Index("records", "by_status", "status_pk", "sk") for family in ("inv", "wd")},
    **{(family, "asset"): Index("records", "by_asset", "asset_pk", "sk") for family in ("inv", "wd", "addr")},
    ("wd", "pending"): Index("records", "pending", "pending_pk", "sk"),
    **{
        (family, "time"): Index("records", "timeline", "time_pk", "time_sk")
        for family in ("tx", "apr", "wl", "col", "stray", "plink")
    },
    **{(family, "status"): Index("records", "tx_by_status", "tx_status_pk", "time_sk") for family in ("tx", "col", "stray")},
    **{(family, "asset"): Index("records", "tx_by_asset", "tx_asset_pk", "time_sk") for family in ("tx", "col")},
    **{(family, "address"): Index("records", "tx_by_address", "tx_address_pk", "time_sk") for family in ("tx", "col", "stray")},
    **{(family, "hash"): Index("records", "tx_by_hash", "tx_hash_pk", "time_sk") for family in ("tx", "stray")},
    # Whose invoice it is, by its id alone: for who pays it, who has no key.
    ("inv", "id"): Index("records", "tx_by_hash", "tx_hash_pk", "time_sk"),
    # Withdrawals by where they go. Deposits of all merchants by their hash in a realm: for the operator; they are few and
    # have no order.
    ("wd", "address"): Index("records", "lookup", "lookup_pk", "sk"),
    ("dep", "hash"): Index("records", "lookup", "lookup_pk", "sk"),
    # The events of one invoice: a support desk asks it all day, and the partition of a merchant's events is long.
    ("evt", "object"): Index("events", "by_object", "object_pk", "sk"),
    **{(family, "endpoint"): Index("webhooks", "listing", "list_pk", "list_sk") for family in ("dlv", "rdl")},
    # Failed deliveries of an endpoint: few of many.
    ("dlv", "status"): Index("webhooks", "by_status", "status_pk", "list_sk"),
    # Due deliveries of all merchants, in the order of time: for the schedule.
    ("delivery", "due"): Index("work", "by_time", "time_pk", "sk"),
}
"""Where a list lies: by its family (what its partitions begin with) and by what it is looked up."""


def indexed_attributes(table: str) -> list[str]:
    """The attributes that items of `table` may have for its indexes, beside the table's own keys."""
    found = {name for index in INDEXES.values() if index.table == table for name in (index.pk, index.sk)}
    return sorted(found - {"pk", "sk"})


def listed_under(family: str, owner: str, value: str | None = None) -> str:
    """The partition of an index: one owner's list, or its part with one value, in lower case (addresses and hashes vary)."""
    return f"{family}#{owner}" if value is None else f"{family}#{owner}#{value.lower()}"


def _invoice_lists(r: Any) -> dict[str, str | None]:
    """An invoice is in the list of a coin once that is named, or chosen by its payer."""
    return {
        "list_pk": listed_under("inv", r.tenant),
        "status_pk": listed_under("inv", r.tenant, r.status),
        "asset_pk": None if r.address is None else listed_under("inv", r.tenant, r.asset),
        "tx_hash_pk": listed_under("inv", r.id),
        "time_sk": r.id,
    }


def _address_lists(r: Any) -> dict[str, str | None]:
    """An archived address is in no list."""
    if r.archived:
        return {}
    return {"list_pk": listed_under("addr", r.tenant), "asset_pk": listed_under("addr", r.tenant, r.network)}


def _deposit_lists(r: Any) -> Mapping[str, str | None]:
    """A deposit to the operator's own wallets is in no merchant's list; reconciliation finds it by its address."""
    if r.tenant is None:
        owner = f"own:{network_parts(r.network)[0]}"
        return {"tx_address_pk": listed_under("tx", owner, r.address), "time_sk": place_in_time(r.created_at, r.id)}
    found = {"lookup_pk": listed_under("dep", network_parts(r.network)[0], r.txid)}
    return found | _transaction_lists(r, r.status, r.address, r.txid)


def _withdrawal_lists(r: Any) -> dict[str, str | None]:
    """A withdrawal is a transaction as well once it has one on the chain."""
    lists = {
        "list_pk": listed_under("wd", r.tenant),
        "status_pk": listed_under("wd", r.tenant, r.status),
        "asset_pk": listed_under("wd", r.tenant, r.asset),
        "lookup_pk": listed_under("wd", r.tenant, r.to_address),
        "pending_pk": listed_under("wd", r.tenant.rsplit(":", 1)[1]) if r.status == "pending" else None,
    }
    if r.txid is None:
        return lists
    from chalicelib.domain.withdrawals.withdrawals import transaction_status  # loaded already, since there is a withdrawal

    return lists | _transaction_lists(r, transaction_status(r.status), r.to_address, r.txid)


def _stake_lists(r: Any) -> dict[str, str | None]:
    return _transaction_lists(r, r.status, r.wallet, r.txid)


def _move_lists(r: Any) -> dict[str, str | None]:
    """In the operator's lists once it has a transaction on the chain."""
    if r.hash is None:
        return {}
    from chalicelib.domain.treasury.moves import transaction_state  # loaded already, since there is a move

    return _transaction_lists(r, transaction_state(r), r.recipient, r.hash)


def _coin_move_lists(r: Any) -> dict[str, str | None]:
    """The same, by whichever of its transactions it is shown by."""
    return {} if r.txid is None else _transaction_lists(r, r.transaction_status, r.recipient, r.txid)


def _collection_lists(r: Any) -> dict[str, str | None]:
    """In the operator's lists, by realm."""
    return {
        "time_pk": listed_under("col", r.realm),
        "tx_status_pk": listed_under("col", r.realm, r.state),
        "tx_asset_pk": listed_under("col", r.realm, r.asset),
        "tx_address_pk": listed_under("col", r.realm, r.address),
        "time_sk": place_in_time(r.created_at, r.id),
    }


def _stray_lists(r: Any) -> dict[str, str | None]:
    """In the operator's lists, by realm."""
    return {
        "time_pk": listed_under("stray", r.realm),
        "tx_status_pk": listed_under("stray", r.realm, r.status),
        "tx_address_pk": listed_under("stray", r.realm, r.address),
        "tx_hash_pk": listed_under("stray", r.realm, r.txid),
        "time_sk": place_in_time(r.created_at, r.id),
    }


def _transaction_lists(r: Any, status: str, address: str, txid: str) -> dict[str, str | None]:
    return {
        "time_pk": listed_under("tx", r.tenant),
        "tx_status_pk": listed_under("tx", r.tenant, status),
        "tx_asset_pk": listed_under("tx", r.tenant, r.asset),
        "tx_address_pk": listed_under("tx", r.tenant, address),
        "tx_hash_pk": listed_under("tx", r.tenant, txid),
        "time_sk": place_in_time(r.created_at, r.id),
    }


def _request_lists(r: Any) -> dict[str, str | None]:
    """A decided request is in no list."""
    return {"time_pk": listed_under("apr", r.realm), "time_sk": r.id} if r.open else {}


def _whitelist_lists(r: Any) -> dict[str, str | None]:
    """A removed entry is in no list."""
    if r.removed_at is not None:
        return {}
    return {"time_pk": listed_under("wl", r.tenant), "time_sk": place_in_time(r.created_at, r.id)}


def _payment_link_lists(r: Any) -> dict[str, str | None]:
    """A deleted link is in no list."""
    return {"time_pk": listed_under("plink", r.tenant), "time_sk": r.id} if r.deleted_at is None else {}


def _delivery_lists(r: Any) -> dict[str, str | None]:
    from chalicelib.domain.webhooks.deliveries import LISTED_STATUSES  # loaded already, since there is a delivery

    listed = r.status in LISTED_STATUSES
    return {
        "list_pk": listed_under("dlv", r.tenant, r.endpoint_id),
        "status_pk": listed_under("dlv", f"{r.tenant}#{r.endpoint_id}", r.status) if listed else None,
        "list_sk": place_in_time(r.created_at, r.id),
    }


def _event_lists(r: Any) -> dict[str, str | None]:
    return {"object_pk": listed_under("evt", r.tenant, r.object_id)}


def _redelivery_lists(r: Any) -> dict[str, str | None]:
    return {"list_pk": listed_under("rdl", r.tenant, r.endpoint_id), "list_sk": r.id}


def _endpoint_partition(r: Any) -> str:
    """A merchant's endpoints are read together, by whoever tells it of anything; its invoices' own lie apart."""
    return f"invhook#{r.tenant}" if is_hook(getattr(r, "id", "")) else f"hook#{r.tenant}"


RECORDS: dict[str, Kind] = {
    "Merchant": Kind("tenants", lambda r: f"merchant#{r.id}"),
    "ApiKey": Kind("tenants", lambda r: f"keys#{r.tenant}", lambda r: r.id),
    "Tally": Kind("tenants", lambda r: f"tally#{r.tenant}", lambda r: r.of),
    "Invoice": Kind("records", lambda r: f"inv#{r.tenant}", lambda r: r.id, _invoice_lists, module="invoices.invoices"),
    "ExternalId": Kind("records", lambda r: f"ext#{r.tenant}", lambda r: r.value),
    "InvoiceTotals": Kind("records", lambda r: f"sum#{r.tenant}", lambda r: f"{r.asset}#{r.shard}"),
    "InvoiceSettings": Kind("records", lambda r: f"inset#{r.tenant}"),
    "Address": Kind("records", lambda r: f"addr#{r.tenant}", lambda r: r.id, _address_lists, module="addresses.addresses"),
    "Withdrawal": Kind("records", lambda r: f"wd#{r.tenant}", lambda r: r.id, _withdrawal_lists, module="withdrawals.withdrawals"),
    "WithdrawalBatch": Kind("records", lambda r: f"wdb#{r.tenant}", lambda r: r.id),
    "ApprovalRequest": Kind(
        "records", lambda r: f"apr#{r.id}", indexed=_request_lists, pages=("apr", "realm"), module="withdrawals.approvals"
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
        _whitelist_lists,
        pages=("wl", "tenant"),
        module="withdrawals.whitelist",
    ),
    # By its id alone: who opens a link has no key.
    "PaymentLink": Kind(
        "records", lambda r: f"plink#{r.id}", indexed=_payment_link_lists, pages=("plink", "tenant"), module="payment_links.links"
    ),
    "LinkStock": Kind("records", lambda r: f"linkstock#{r.link}", lambda r: r.shard),
    "LinkOpenings": Kind("records", lambda r: f"linkopen#{r.link}#{r.caller}", lambda r: r.hour),
    "Spent": Kind("records", lambda r: f"spent#{r.tenant}", lambda r: r.asset),
    "PayeeSpent": Kind("records", lambda r: f"payee#{r.tenant}", lambda r: f"{r.asset}#{r.address}"),
    "MerchantSettings": Kind("records", lambda r: f"mset#{r.tenant}"),
    "FeesBorne": Kind("records", lambda r: f"borne#{r.tenant}", lambda r: r.network),
    "FeeBudget": Kind("records", lambda r: f"feebudget#{r.tenant}"),
    "StoredAnswer": Kind("records", lambda r: f"idem#{r.tenant}", lambda r: r.key),
    "Deposit": Kind("records", lambda r: f"tx#{r.id}", indexed=_deposit_lists, module="deposits.deposits"),
    "Stake": Kind("records", lambda r: f"stake#{r.network}", lambda r: r.id, _stake_lists, module="treasury.stakes"),
    "Move": Kind("records", lambda r: f"move#{r.network}", lambda r: r.id, _move_lists, module="treasury.moves"),
    "CoinMove": Kind(
        "records", lambda r: f"coinmove#{r.network}", lambda r: r.id, _coin_move_lists, module="treasury.consolidations"
    ),
    "Collection": Kind(
        "records", lambda r: f"col#{r.id}", indexed=_collection_lists, pages=("col", "realm"), module="treasury.collections"
    ),
    "Collecting": Kind("records", lambda r: f"colopen#{r.network}#{r.address}"),
    "StrayPayment": Kind(
        "records", lambda r: f"stray#{r.id}", indexed=_stray_lists, pages=("stray", "realm"), module="stray_payments"
    ),
    "Distribution": Kind("records", lambda r: f"dist#{r.network}#{r.address}", lambda r: r.asset),
    "Balance": Kind("ledger", lambda r: f"bal#{r.tenant}", lambda r: r.asset),
    "WalletBalance": Kind("ledger", lambda r: f"wal#{r.network}#{r.address}", lambda r: r.asset),
    "JournalEntry": Kind("ledger", lambda r: f"jrn#{r.id}"),
    "Network": Kind("chain", lambda r: f"net#{r.id.split(':')[0]}", lambda r: r.id.split(":")[1]),
    "Coin": Kind("chain", lambda r: f"coin#{r.network.split(':')[0]}", lambda r: f"{r.network.split(':')[1]}#{r.slug}"),
    "TokenContract": Kind("chain", lambda r: f"contract#{r.network}", lambda r: r.contract),
    # The live realm's alone: the sandbox's are constant and stored nowhere.
    "Rate": Kind("chain", lambda r: "rate#live", lambda r: f"{r.coin}#{r.fiat}"),
    "Watched": Kind("chain", lambda r: f"watch#{r.realm}#{r.family}#{r.address}"),
    "Wallet": Kind("chain", lambda r: f"wallet#{r.network}", lambda r: r.role),
    "RetiredWallet": Kind("chain", lambda r: f"retired#{r.network}", lambda r: r.address),
    "Observed": Kind("chain", lambda r: f"observed#{r.network}"),
    "Cursor": Kind("chain", lambda r: f"cursor#{r.network}"),
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
    "Migrated": Kind("chain", lambda r: f"migrated#{r.network}", lambda r: r.name),
    "LogClaim": Kind("chain", lambda r: f"logs#{r.network}#{r.txid}"),
    "ScanRange": Kind("chain", lambda r: f"range#{r.network}", lambda r: r.name),
    "Restore": Kind("chain", lambda r: f"restore#{r.network}"),
    "Rescan": Kind("chain", lambda r: f"rescan#{r.network}", lambda r: r.id),
    "DemoState": Kind("chain", lambda r: f"demo#{r.id}"),
    "FeeQuote": Kind("chain", lambda r: f"fees#{r.network}"),
    "PaymentHistory": Kind("records", lambda r: f"paid#{r.tenant}", lambda r: r.asset),
    "Payees": Kind("records", lambda r: f"payees#{r.tenant}", lambda r: f"{r.network}#{r.mark}"),
    "PaymentSwitch": Kind("chain", lambda r: f"switch#{r.realm}"),
    "Trace": Kind("chain", lambda r: f"trace#{r.network}"),
    "NodeSilence": Kind("chain", lambda r: f"silence#{r.network}"),
    "GreyListEntry": Kind("chain", lambda r: f"grey#{r.realm}", lambda r: f"{r.network}#{r.address}"),
    "MinedBlocks": Kind("chain", lambda r: f"mined#{r.tenant}"),
    "SandboxRates": Kind("chain", lambda r: f"ownrates#{r.tenant}"),
    "SandboxClock": Kind("chain", lambda r: f"clock#{r.id}"),
    "Xpub": Kind("chain", lambda r: f"xpub#{r.realm}", lambda r: r.pool),
    "NonceCounter": Kind("payouts", lambda r: f"nonce#{r.network}#{r.wallet}"),
    "PayoutLine": Kind("payouts", lambda r: f"payline#{r.network}"),
    "NonceUse": Kind("payouts", lambda r: f"nonceuse#{r.owner}"),
    "FirstSignature": Kind("payouts", lambda r: f"signed#{r.owner}"),
    "PaymentOrder": Kind("payouts", lambda r: f"order#{r.id}"),
    "Bundle": Kind("payouts", lambda r: f"bundle#{r.id}"),
    "HeldCoins": Kind("payouts", lambda r: f"coins#{r.network}#{r.wallet}"),
    "ConsolidationQueue": Kind("payouts", lambda r: f"coincol#{r.network}"),
    "GivenUp": Kind("payouts", lambda r: f"givenup#{r.id}"),
    "OwnTransaction": Kind("payouts", lambda r: f"own#{r.network}#{r.txid}"),
    "OutboxRow": Kind("work", lambda r: f"row#{r.id}"),
    "EventRecord": Kind("events", lambda r: f"evt#{r.tenant}", lambda r: r.id, _event_lists, module="webhooks.endpoints"),
    "WebhookEndpoint": Kind("webhooks", _endpoint_partition, lambda r: r.id),
    "Delivery": Kind("webhooks", lambda r: f"dlv#{r.tenant}", lambda r: r.id, _delivery_lists, module="webhooks.deliveries"),
    "RedeliveryJob": Kind("webhooks", lambda r: f"rdl#{r.tenant}", lambda r: r.id, _redelivery_lists, module="webhooks.redelivery"),
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


def work_key(work: Work) -> tuple[str, str]:
    return f"{work.kind}#{work.lane}", f"{work.order}#{work.id}"


def work_by_time(work: Work) -> str | None:
    """The partition of the index `by_time` for an obligation, None for work that is not in it."""
    lane = time_lane(work)
    return None if lane is None else listed_under(work.kind, lane)


def work_at(pk: str, sk: str) -> Work:
    """The obligation whose item has this key."""
    kind, _, lane = pk.partition("#")
    order, _, id = sk.partition("#")
    return Work(cast(WorkKind, kind), lane, order, id)
