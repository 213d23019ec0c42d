"""Deposit addresses that the service watches, and the service wallets that it pays from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.ids import AssetId, NetworkId, Realm, TenantId, network_id
from chalicelib.domain.work import Work, time_order

Mode = Literal["single", "common", "cross"]
Role = Literal["user", "hot", "cold", "collector", "topup"]
Custody = Literal["kms", "envelope", "none"]

SERVICE_ROLES: tuple[Role, ...] = ("hot", "collector", "cold", "topup")
"""The roles of the operator's own wallets: every role but the user's."""

ROLE_OF: dict[str, Role] = {
    "user": "user", "default": "user", "hot": "hot", "hot-wallet": "hot", "cold": "cold", "cold-wallet": "cold",
    "collector": "collector", "tokens_collector": "collector", "token-collector": "collector", "topup": "topup",
}  # fmt: skip
"""Every name that an address's type has in requests; answers about addresses use the roles' own."""
MOST_SLOTS = 10
"""Hot wallets that a network may have at once."""
SERVICE_TYPE: dict[Role, str] = {"hot": "hot", "cold": "cold", "collector": "tokens_collector", "topup": "topup"}
"""The names of the roles in answers about service wallets."""


@dataclass(frozen=True, slots=True)
class Address:
    """A merchant's deposit address. `networks` are the slugs it receives on; `path` is its derivation path (BIP-32).

    A service wallet that was registered through the API is one too, of the operator's merchant: `type` says so, `path` is empty.
    Its `Wallet` makes it pay; this is how it is listed, labelled and read. An archived one is in no list.
    """

    id: str
    tenant: TenantId
    network: NetworkId
    address: str
    mode: Mode
    networks: tuple[str, ...]
    path: str
    created_at: int
    coin: str | None = None
    label: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    invoice_id: str | None = None
    archived: bool = False
    type: Role = "user"
    version: int = 1


@dataclass(frozen=True, slots=True)
class Watched:
    """The scanner's view of an address, found by realm, family and address. Never deleted: watched for ever.

    `tenant` is None for the operator's wallets. `returned` are networks on which a payment to it is the operator's to send back
    (`domain.stray_payments`): what came there has to be looked up, whether the address is watched there or not.
    """

    realm: Realm
    family: str
    address: str
    role: Role
    networks: tuple[str, ...]
    tenant: TenantId | None = None
    address_id: str | None = None
    invoice_id: str | None = None
    returned: tuple[str, ...] = ()
    version: int = 1

    def holds_on(self, slug: str) -> bool:
        """Whether the ledger may have a balance at it on the network `slug`."""
        return slug in self.networks or slug in self.returned


@dataclass(frozen=True, slots=True)
class Wallet:
    """A service wallet of the operator. `key` names the key (a KMS key id, or a custody row), it never is one.

    `public_key` is the uncompressed point without its 0x04 prefix, as hex (64 bytes); empty for a cold wallet.

    Of hot wallets a network may have several, each in a `slot` of its own, so that several payouts are started side by side. Slot 0
    is where all wallets were before there were slots, and the one that every other role has.
    """

    network: NetworkId
    role: Role
    address: str
    custody: Custody
    key: str
    public_key: str
    created_at: int
    slot: int = 0
    version: int = 1

    @property
    def place(self) -> str:
        """Its key in the network's wallets (`place_of`)."""
        return place_of(self.role, self.slot)

    @property
    def seat(self) -> str | None:
        """The name of its own group of commands (`group_of`); None for the group that the network's other wallets share."""
        return "topup" if self.role == "topup" else seat_of(self.slot)


@dataclass(frozen=True, slots=True)
class RetiredWallet:
    """A service wallet that was replaced. Its address stays watched and its key usable for ever: payments in flight are finished
    with it, and a later payment to it is the operator's.

    Found by network and address, both as in its `Wallet`. `drained_at` (milliseconds since 1970, as the other times) says when
    nothing was left that could be moved from it; None while its obligation `drain` is open. `moves` are the moves that drain it
    now, `planned` how many there have been; after `tries` of them in a row that failed, none is planned before `next_at`.
    `remains` is what was left because it was not worth its fee: only what is more than that is drained again. `slot` as in its
    `Wallet`.
    """

    network: NetworkId
    role: Role
    address: str
    custody: Custody
    key: str
    public_key: str
    created_at: int
    retired_at: int
    drained_at: int | None = None
    moves: tuple[str, ...] = ()
    planned: int = 0
    tries: int = 0
    next_at: int = 0
    remains: tuple[OnChain, ...] = ()
    slot: int = 0
    version: int = 1

    @classmethod
    def of(cls, wallet: Wallet, now_ms: int) -> RetiredWallet:
        return cls(
            wallet.network, wallet.role, wallet.address, wallet.custody, wallet.key, wallet.public_key, wallet.created_at, now_ms,
            slot=wallet.slot,
        )  # fmt: skip

    @property
    def drain(self) -> Work:
        """Open work: move the rest to the wallet that replaced it. In the lane of its network."""
        return Work("drain", self.network, time_order(self.retired_at), self.address)

    @property
    def wallet(self) -> Wallet:
        """The same wallet in the form that signers take."""
        return Wallet(self.network, self.role, self.address, self.custody, self.key, self.public_key, self.created_at, self.slot)


CUSTODY_SHOWN: dict[Custody, str] = {"kms": "native", "envelope": "envelope", "none": "none"}
"""The names of the ways to keep a key in answers. `native`: in KMS, which it never leaves."""


@dataclass(frozen=True, slots=True)
class OnChain:
    """An on-chain balance: units of `asset` at `address` (in its public spelling)."""

    address: str
    asset: AssetId
    units: int


@dataclass(frozen=True, slots=True)
class Observed:
    """On-chain balances of the service wallets, `at` milliseconds since 1970. Balances that the node could not read are left
    out."""

    network: NetworkId
    at: int
    found: tuple[OnChain, ...]
    version: int = 1

    def units(self, address: str, asset: AssetId) -> int | None:
        return next((there.units for there in self.found if (there.address, there.asset) == (address, asset)), None)


@dataclass(frozen=True, slots=True)
class Xpub:
    """The public account key (BIP-32) from which a pool's deposit addresses come. Public: nothing can be spent with it.

    `pool` is what `custody.derive.pool_of` says; `path` is the account's path, such as ``m/44'/60'/0'``. Written once.
    """

    realm: Realm
    pool: str
    xpub: str
    path: str
    created_at: int
    version: int = 1


def family_key(network: Network) -> str:
    """The key space of a network's addresses: EVM networks share one, each other network has its own."""
    return "evm" if network.family == "evm" else network.slug


def payees_place(network: Network) -> NetworkId:
    """The network in the key of `domain.screening.risk.Payees`: "evm" for all EVM networks of a realm."""
    return network_id(network.realm, family_key(network))


def watched_key(network: Network, storage_form: str) -> tuple[type[Any], dict[str, str]]:
    """Type and key of an address's `Watched`, for a read of the store."""
    return Watched, {"realm": network.realm, "family": family_key(network), "address": storage_form}


def group_of(network: NetworkId, seat: str | None) -> str:
    """The FIFO group of the commands for a service wallet: those of one group are handled one after the other, so that workers
    do not compete for a nonce. It saves work alone; that no nonce is used twice, conditional writes see to."""
    return network if seat is None else f"{network}#{seat}"


def seat_of(slot: int) -> str | None:
    """The seat of the hot wallet in a slot."""
    return str(slot) if slot else None


def slots_of(network: Network, role: Role) -> range:
    """The slots that wallets of a role may have: several for hot wallets of EVM networks alone.

    Bitcoin and litecoin pay many withdrawals in one transaction, and on Tron none waits for the nonce of another. There an older
    version beside us would also be a false witness: it notes no transaction of a wallet that it does not know, and what no block
    has is lost at its end.
    """
    return range(MOST_SLOTS if role == "hot" and network.family == "evm" else 1)


def floor_part(floor: int, wallets: int) -> int:
    """What each of so many hot wallets keeps of a floor, so that together they keep the whole."""
    return -(-floor // max(1, wallets))


def place_of(role: Role, slot: int = 0) -> str:
    """The key of the wallet in a slot among its network's: slot 0 has the role alone, as before there were slots."""
    return f"{role}#{slot}" if slot else role


def wallet_key(network: NetworkId, role: Role, slot: int = 0) -> tuple[type[Any], dict[str, str]]:
    """Type and key of the `Wallet` that has a role and slot, for a batch read of the store."""
    return Wallet, {"network": network, "role": place_of(role, slot)}
