"""Secondary indexes: where each list lies, and the attributes by which a record is in it. `schema` has the tables' own keys.

Lists in another order than a partition's, and their filters, are global secondary indexes that hold keys only. An item is in one
when it has both of its attributes (`INDEXES`), and writing the item again costs the index nothing while these stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from chalicelib.domain.ids import AssetId, asset_parts, network_parts, place_in_time


@dataclass(frozen=True, slots=True)
class Index:
    """A global secondary index with keys only: its attributes `pk` and `sk` make its own key."""

    table: str
    name: str
    pk: str
    sk: str


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
    # Withdrawals by where they go. Deposits of all merchants by their hash in a realm, those which an operator may be asked to
    # release: few, and in no order. A version before this one listed all deposits so.
    ("wd", "address"): Index("records", "lookup", "lookup_pk", "sk"),
    ("dep", "hash"): Index("records", "lookup", "lookup_pk", "sk"),
    # Deposits of all merchants that an operator can release: few, and in no order.
    ("dep", "releasable"): Index("records", "pending", "pending_pk", "sk"),
    # Who did what: by the key, by the object, and by what was made beside it.
    ("act", "key"): Index("records", "by_status", "status_pk", "sk"),
    ("act", "object"): Index("records", "lookup", "lookup_pk", "sk"),
    ("act", "made"): Index("records", "by_asset", "asset_pk", "sk"),
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


def invoice_lists(r: Any) -> dict[str, str | None]:
    """An invoice is in the list of a coin once that is named, or chosen by its payer."""
    return {
        "list_pk": listed_under("inv", r.tenant),
        "status_pk": listed_under("inv", r.tenant, r.status),
        "asset_pk": None if r.address is None else listed_under("inv", r.tenant, r.asset),
        "tx_hash_pk": listed_under("inv", r.id),
        "time_sk": r.id,
    }


def address_lists(r: Any) -> dict[str, str | None]:
    """An archived address is in no list."""
    if r.archived:
        return {}
    return {"list_pk": listed_under("addr", r.tenant), "asset_pk": listed_under("addr", r.tenant, r.network)}


def deposit_lists(r: Any) -> Mapping[str, str | None]:
    """A deposit to the operator's own wallets is in no merchant's list; reconciliation finds it by its address."""
    if r.tenant is None:
        owner = f"own:{network_parts(r.network)[0]}"
        own = {"tx_address_pk": listed_under("tx", owner, r.address), "time_sk": place_in_time(r.created_at, r.id)}
        return own | _releasable(r)
    found = {"lookup_pk": listed_under("dep", network_parts(r.network)[0], r.txid)} if r.questioned else {}
    return found | _releasable(r) | _transaction_lists(r, r.status, r.address, r.txid)


def _told(attribute: str) -> Callable[[Mapping[str, Any]], str | None]:
    """What stands last in an attribute of an index: what the list is looked up by."""
    return lambda item: item[attribute].rpartition("#")[2] if item.get(attribute) else None


def _network(item: Mapping[str, Any]) -> str | None:
    asset = _told("tx_asset_pk")(item)
    return None if asset is None else asset_parts(AssetId(asset))[0]


DEPOSIT_REPEATED: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "id": _told("time_sk"),
    "created_at": lambda item: int(item["time_sk"].partition("#")[0]) if item.get("time_sk") else None,
    "tenant": _told("time_pk"),
    "status": _told("tx_status_pk"),
    "asset": _told("tx_asset_pk"),
    "network": _network,
    "txid": _told("tx_hash_pk"),
}
"""What the attributes of `_transaction_lists` tell of a deposit again; the operator's own have but the first two."""


def _releasable(r: Any) -> dict[str, str | None]:
    return {"pending_pk": listed_under("dep", network_parts(r.network)[0], "releasable")} if r.releasable else {}


def withdrawal_lists(r: Any) -> dict[str, str | None]:
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


def stake_lists(r: Any) -> dict[str, str | None]:
    return _transaction_lists(r, r.status, r.wallet, r.txid)


def move_lists(r: Any) -> dict[str, str | None]:
    """In the operator's lists once it has a transaction on the chain."""
    if r.hash is None:
        return {}
    from chalicelib.domain.treasury.moves import transaction_state  # loaded already, since there is a move

    return _transaction_lists(r, transaction_state(r), r.recipient, r.hash)


def coin_move_lists(r: Any) -> dict[str, str | None]:
    """The same, by whichever of its transactions it is shown by."""
    return {} if r.txid is None else _transaction_lists(r, r.transaction_status, r.recipient, r.txid)


def collection_lists(r: Any) -> dict[str, str | None]:
    """In the operator's lists, by realm."""
    return {
        "time_pk": listed_under("col", r.realm),
        "tx_status_pk": listed_under("col", r.realm, r.state),
        "tx_asset_pk": listed_under("col", r.realm, r.asset),
        "tx_address_pk": listed_under("col", r.realm, r.address),
        "time_sk": place_in_time(r.created_at, r.id),
    }


def stray_lists(r: Any) -> dict[str, str | None]:
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


def request_lists(r: Any) -> dict[str, str | None]:
    """A decided request is in no list."""
    return {"time_pk": listed_under("apr", r.realm), "time_sk": r.id} if r.open else {}


def whitelist_lists(r: Any) -> dict[str, str | None]:
    """A removed entry is in no list."""
    if r.removed_at is not None:
        return {}
    return {"time_pk": listed_under("wl", r.tenant), "time_sk": place_in_time(r.created_at, r.id)}


def payment_link_lists(r: Any) -> dict[str, str | None]:
    """A deleted link is in no list."""
    return {"time_pk": listed_under("plink", r.tenant), "time_sk": r.id} if r.deleted_at is None else {}


def activity_lists(r: Any) -> dict[str, str | None]:
    return {
        "status_pk": listed_under("act", r.tenant, r.key_id),
        "lookup_pk": None if r.object_id is None else listed_under("act", r.tenant, r.object_id),
        "asset_pk": None if r.made_id is None else listed_under("act", r.tenant, r.made_id),
    }


def delivery_lists(r: Any) -> dict[str, str | None]:
    from chalicelib.domain.webhooks.deliveries import LISTED_STATUSES  # loaded already, since there is a delivery

    listed = r.status in LISTED_STATUSES
    return {
        "list_pk": listed_under("dlv", r.tenant, r.endpoint_id),
        "status_pk": listed_under("dlv", f"{r.tenant}#{r.endpoint_id}", r.status) if listed else None,
        "list_sk": place_in_time(r.created_at, r.id),
    }


def event_lists(r: Any) -> dict[str, str | None]:
    return {"object_pk": listed_under("evt", r.tenant, r.object_id)}


def redelivery_lists(r: Any) -> dict[str, str | None]:
    return {"list_pk": listed_under("rdl", r.tenant, r.endpoint_id), "list_sk": r.id}
