"""Which record lies in which table under which key. `docs/storage.md` says which access pattern each key serves.

Every table has the keys `pk` and `sk`; `records` and `webhooks` have the index `listing` (`list_pk`, `list_sk`) for lists in
order of time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from chalicelib.custody.records import EncryptedKey, EncryptedSeed
from chalicelib.domain.addresses import Address, Wallet, Watched, Xpub
from chalicelib.domain.approvals import ApprovalRequest
from chalicelib.domain.batches import WithdrawalBatch
from chalicelib.domain.catalogue import Coin, Network, TokenContract
from chalicelib.domain.chain import BlockDeposits, Cursor, FeeQuote, SandboxClock
from chalicelib.domain.deposits import Deposit
from chalicelib.domain.greylist import GreyListEntry
from chalicelib.domain.invoice_settings import InvoiceSettings
from chalicelib.domain.invoice_totals import InvoiceTotals
from chalicelib.domain.invoices import ExternalId, Invoice
from chalicelib.domain.ledger import Balance, JournalEntry, WalletBalance
from chalicelib.domain.limits import Spent
from chalicelib.domain.merchant_settings import MerchantSettings
from chalicelib.domain.merchants import ApiKey, Merchant, Tally
from chalicelib.domain.rates import Rate
from chalicelib.domain.rescans import Rescan
from chalicelib.domain.stakes import Stake
from chalicelib.domain.webhooks import Delivery, EventRecord, WebhookEndpoint
from chalicelib.domain.whitelist import WhitelistEntry
from chalicelib.domain.withdrawals import NonceCounter, PaymentOrder, Withdrawal
from chalicelib.domain.work import OutboxRow, Work
from chalicelib.usecases.idempotency import StoredAnswer

Key = Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class Kind:
    """`pk` and `sk` make the key from a record, or from a namespace that has its key fields."""

    table: str
    pk: Key
    sk: Key = lambda r: "-"
    list_pk: Key | None = None
    list_sk: Key | None = None


RECORDS: dict[type, Kind] = {
    Merchant: Kind("tenants", lambda r: f"merchant#{r.id}"),
    ApiKey: Kind("tenants", lambda r: f"keys#{r.tenant}", lambda r: r.id),
    Tally: Kind("tenants", lambda r: f"tally#{r.tenant}", lambda r: r.of),
    Invoice: Kind("records", lambda r: f"inv#{r.tenant}", lambda r: r.id),
    ExternalId: Kind("records", lambda r: f"ext#{r.tenant}", lambda r: r.value),
    InvoiceTotals: Kind("records", lambda r: f"sum#{r.tenant}", lambda r: f"{r.asset}#{r.shard}"),
    InvoiceSettings: Kind("records", lambda r: f"inset#{r.tenant}"),
    Address: Kind("records", lambda r: f"addr#{r.tenant}", lambda r: r.id),
    Withdrawal: Kind("records", lambda r: f"wd#{r.tenant}", lambda r: r.id),
    WithdrawalBatch: Kind("records", lambda r: f"wdb#{r.tenant}", lambda r: r.id),
    ApprovalRequest: Kind(
        "records",
        lambda r: f"apr#{r.id}",
        list_pk=lambda r: f"apr#{r.realm}" if getattr(r, "open", True) else f"apr-decided#{r.realm}",
        list_sk=lambda r: r.id,
    ),
    WhitelistEntry: Kind(
        "records",
        lambda r: f"wl#{r.tenant}",
        lambda r: r.id,
        list_pk=lambda r: f"wl#{r.tenant}" if getattr(r, "removed_at", None) is None else f"wl-removed#{r.tenant}",
        list_sk=lambda r: f"{r.created_at:015d}#{r.id}",
    ),
    Spent: Kind("records", lambda r: f"spent#{r.tenant}", lambda r: r.asset),
    MerchantSettings: Kind("records", lambda r: f"mset#{r.tenant}"),
    StoredAnswer: Kind("records", lambda r: f"idem#{r.tenant}", lambda r: r.key),
    Deposit: Kind(
        "records", lambda r: f"tx#{r.id}", list_pk=lambda r: f"tx#{r.tenant}", list_sk=lambda r: f"{r.created_at:015d}#{r.id}"
    ),
    Balance: Kind("ledger", lambda r: f"bal#{r.tenant}", lambda r: r.asset),
    WalletBalance: Kind("ledger", lambda r: f"wal#{r.network}#{r.address}", lambda r: r.asset),
    JournalEntry: Kind("ledger", lambda r: f"jrn#{r.id}"),
    Network: Kind("chain", lambda r: f"net#{r.id.split(':')[0]}", lambda r: r.id.split(":")[1]),
    Coin: Kind("chain", lambda r: f"coin#{r.network.split(':')[0]}", lambda r: f"{r.network.split(':')[1]}#{r.slug}"),
    TokenContract: Kind("chain", lambda r: f"contract#{r.network}", lambda r: r.contract),
    # The live realm's alone: the sandbox's are constant and stored nowhere.
    Rate: Kind("chain", lambda r: "rate#live", lambda r: f"{r.coin}#{r.fiat}"),
    Watched: Kind("chain", lambda r: f"watch#{r.realm}#{r.family}#{r.address}"),
    Wallet: Kind("chain", lambda r: f"wallet#{r.network}", lambda r: r.role),
    Cursor: Kind("chain", lambda r: f"cursor#{r.network}"),
    BlockDeposits: Kind("chain", lambda r: f"block#{r.network}#{r.hash}"),
    Rescan: Kind("chain", lambda r: f"rescan#{r.network}", lambda r: r.id),
    Stake: Kind("chain", lambda r: f"stake#{r.network}", lambda r: r.id),
    FeeQuote: Kind("chain", lambda r: f"fees#{r.network}"),
    GreyListEntry: Kind("chain", lambda r: f"grey#{r.realm}", lambda r: f"{r.network}#{r.address}"),
    SandboxClock: Kind("chain", lambda r: f"clock#{r.id}"),
    Xpub: Kind("chain", lambda r: f"xpub#{r.realm}", lambda r: r.pool),
    NonceCounter: Kind("payouts", lambda r: f"nonce#{r.network}#{r.wallet}"),
    PaymentOrder: Kind("payouts", lambda r: f"order#{r.id}"),
    OutboxRow: Kind("work", lambda r: f"row#{r.id}"),
    EventRecord: Kind("events", lambda r: f"evt#{r.tenant}", lambda r: r.id),
    WebhookEndpoint: Kind("webhooks", lambda r: f"hook#{r.tenant}", lambda r: r.id),
    Delivery: Kind(
        "webhooks",
        lambda r: f"dlv#{r.tenant}",
        lambda r: r.id,
        list_pk=lambda r: f"dlv#{r.tenant}#{r.endpoint_id}",
        list_sk=lambda r: f"{r.created_at:015d}#{r.id}",
    ),
    EncryptedSeed: Kind("custody", lambda r: f"seed#{r.id}"),
    EncryptedKey: Kind("custody", lambda r: f"key#{r.id}"),
}


def key_of(kind: type, fields: dict[str, str]) -> tuple[str, str]:
    """The key of the record of `kind` that has these key fields."""
    where, named = RECORDS[kind], SimpleNamespace(**fields)
    return where.pk(named), where.sk(named)


def partition_of(kind: type, fields: dict[str, str]) -> str:
    """The partition that lists of this kind are read from: the index's where it has one, else the table's."""
    where = RECORDS[kind]
    return (where.list_pk or where.pk)(SimpleNamespace(**fields))


class _Nothing:
    """Has every field, all empty: what is left of a key is its fixed part."""

    def __getattr__(self, name: str) -> str:
        return ""


def prefix_of(kind: type) -> str:
    """What the partition keys of a kind begin with."""
    return RECORDS[kind].pk(_Nothing()).split("#")[0] + "#"


def work_key(work: Work) -> tuple[str, str]:
    return f"{work.kind}#{work.lane}", f"{work.order}#{work.id}"
