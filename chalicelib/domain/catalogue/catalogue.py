"""Networks and coins: their fixed facts, and the default catalogue of a new deployment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from chalicelib.domain.ids import AssetId, NetworkId, Realm, asset_id, asset_parts, network_id, network_parts
from chalicelib.domain.versions import next_version

Family = Literal["evm", "utxo", "tron"]
NetworkStatus = Literal["active", "inactive"]

AUDIT_USD = 1000
"""`audit_usd` where none is set."""
AGREEMENT_USD = 1000
"""`agreement_usd` of a network that gets a second node, unless another one is set. Where the operator has set none, this is what a
node's silence is worth (`usecases.transactions.finality`)."""


MOST_CONFIRMATIONS = 2_000
"""A cursor remembers the hashes of twice as many blocks, at most some 330 KB: an item of DynamoDB has 400 KB
(docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html)."""


@dataclass(frozen=True, slots=True)
class Network:
    """One network in one realm. `block_time` in seconds; `reorg_depth` is how deep a fork is followed, in blocks.

    `rpc_url` is the provider that is asked first, `more_rpc_urls` those that stand in for it. A payment worth more than
    `agreement_usd` is credited only when two of them agree; one worth more than `finality_usd` only below the block that an
    EVM node calls `finality_tag`; one worth more than `audit_usd` (None: AUDIT_USD) only when the logs of its block on an EVM
    network are those of its receipts. All in whole USD; None asks for neither of the first two. `tracing` says whether EVM nodes
    are asked for what contracts sent: where they can, always (a node that can not is not read then), or never.
    `payout_slots`: messages about payouts are spread over so many hot wallets (`Wallet.slot`); no money rests on it.
    """

    id: NetworkId
    name: str
    symbol: str
    family: Family
    chain_id: int | None
    confirmations: int
    block_time: float
    decimals: int
    status: NetworkStatus = "inactive"
    rpc_url: str | None = None
    ws_url: str | None = None
    explorer_url: str | None = None
    gas_limit: int | None = None
    simulated: bool = False
    more_rpc_urls: tuple[str, ...] = ()
    agreement_usd: int | None = None
    finality_tag: Literal["safe", "finalized"] | None = None
    finality_usd: int | None = None
    tracing: Literal["auto", "on", "off"] = "auto"
    audit_usd: int | None = None
    payout_slots: int = 1
    version: int = 1

    @property
    def realm(self) -> Realm:
        return network_parts(self.id)[0]

    @property
    def slug(self) -> str:
        return network_parts(self.id)[1]

    @property
    def reorg_depth(self) -> int:
        """Depth of a reorganisation that is followed, at most as many blocks as a cursor has room for. That holds for networks
        with more confirmations from before that bound, too: those stay as they are, and credit as late as before."""
        return max(2 * min(self.confirmations, MOST_CONFIRMATIONS), _DEEP.get(self.slug, 64))


@dataclass(frozen=True, slots=True)
class Coin:
    """One coin on one network. `contract` is in the network's own spelling (EIP-55, base58), None for the native coin.

    `settings` are read with `domain.catalogue.coin_settings`: amounts are texts of plain decimals.
    """

    network: NetworkId
    slug: str
    symbol: str
    name: str
    decimals: int
    contract: str | None = None
    status: Literal["ACTIVE", "INACTIVE"] = "ACTIVE"
    settings: dict[str, str | bool] = field(default_factory=dict)
    version: int = 1

    @property
    def asset(self) -> AssetId:
        return asset_id(self.network, self.slug)

    @property
    def type(self) -> Literal["NATIVE", "TOKEN"]:
        return "NATIVE" if self.contract is None else "TOKEN"


@dataclass(frozen=True, slots=True)
class TokenContract:
    """A registered contract, in storage form: only one coin of a network may have it."""

    network: NetworkId
    contract: str
    slug: str
    version: int = 1


_DEEP = {"polygon": 256, "bsc": 256}
"""Networks that may be reorganised deeper than 64 blocks. Polygon was by 157 blocks in February 2023. On bsc a block is final by
votes after two more; where votes fail, only once more than half of 21 validators have built on it, each of whom makes up to 16
blocks in turn (BEP-126, BEP-524): 176 blocks, 80 seconds.
docs.bnbchain.org/bnb-smart-chain/developers/json_rpc/bsc-api-list (Finality API)"""

# slug, name, native symbol, family, chain id, confirmations, block time (s), native decimals, explorer.
# Confirmations and decimals: the published interface. Chain ids: EIP-155 registry (chainid.network). Block times: what the networks
# promise in 2026. bsc: BEP-619, 0.45 s since 14 January 2026 (docs.bnbchain.org/announce/fermi-bsc; 0.75 s before, 3 s until April
# 2025). polygon: PIP-86, 1.75 s since May 2026, which producers may change without a fork (PIP-75). A time that is too long is the
# dangerous one: what is counted in blocks then ends too soon.
_NETWORKS: tuple[tuple[str, str, str, Family, int | None, int, float, int, str], ...] = (
    ("bitcoin", "Bitcoin", "BTC", "utxo", None, 6, 600, 8, "https://mempool.space"),
    ("ethereum", "Ethereum", "ETH", "evm", 1, 12, 12, 18, "https://etherscan.io"),
    ("tron", "Tron", "TRX", "tron", None, 19, 3, 6, "https://tronscan.org"),
    ("bsc", "BNB Smart Chain", "BNB", "evm", 56, 15, 0.45, 18, "https://bscscan.com"),
    ("polygon", "Polygon", "MATIC", "evm", 137, 20, 1.75, 18, "https://polygonscan.com"),
    ("arbitrum", "Arbitrum One", "ETH", "evm", 42161, 10, 0.25, 18, "https://arbiscan.io"),
    ("fantom", "Fantom", "FTM", "evm", 250, 12, 1, 18, "https://ftmscan.com"),
    ("litecoin", "Litecoin", "LTC", "utxo", None, 6, 150, 8, "https://litecoinspace.org"),
)
_FORMER_BLOCK_TIMES: dict[str, float] = {"bsc": 3, "polygon": 2}
"""Block times of earlier catalogues. Nobody can set a block time: a network that is stored with one of these was never
corrected."""
NETWORK_ORDER: tuple[str, ...] = tuple(row[0] for row in _NETWORKS)
"""Where a request names a coin and no network, the first active one in this order counts."""
SIMULATED_CHAIN_IDS = 7_357_000_000

_NATIVE_NAMES = {
    "BTC": "Bitcoin", "ETH": "Ether", "TRX": "TRON", "BNB": "BNB", "MATIC": "Polygon", "FTM": "Fantom", "LTC": "Litecoin",
}  # fmt: skip

# coin, name, network, contract on the main network, decimals: the issuers' published contracts.
_TOKENS: tuple[tuple[str, str, str, str, int], ...] = (
    ("USDT", "Tether USD", "ethereum", "0xdAC17F958D2ee523a2206206994597C13D831ec7", 6),
    ("USDT", "Tether USD", "tron", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", 6),
    ("USDT", "Tether USD", "bsc", "0x55d398326f99059fF775485246999027B3197955", 18),
    ("USDT", "Tether USD", "polygon", "0xc2132D05D31c914a87C6611C10748AEb04B58e8F", 6),
    ("USDT", "Tether USD", "arbitrum", "0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9", 6),
    ("USDC", "USD Coin", "ethereum", "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48", 6),
    ("USDC", "USD Coin", "bsc", "0x8AC76a51cc950d9822D68b83fE1Ad97B32Cd580d", 18),
    ("USDC", "USD Coin", "polygon", "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359", 6),
    ("USDC", "USD Coin", "arbitrum", "0xaf88d065e77c8cC2239327C5EDb3A432268e5831", 6),
    ("BUSD", "Binance USD", "bsc", "0xe9e7CEA3DedcA5984780Bafc599bD69ADd087D56", 18),
    ("BUSD", "Binance USD", "ethereum", "0x4Fabb145d64652a948d72533023f6E7A623C7C53", 18),
    ("DAI", "Dai Stablecoin", "ethereum", "0x6B175474E89094C44Da98b954EedeAC495271d0F", 18),
    ("DAI", "Dai Stablecoin", "bsc", "0x1AF3F329e8BE154074D8769D1FFa4eE058B1DBc3", 18),
    ("DAI", "Dai Stablecoin", "polygon", "0x8f3Cf7ad23Cd3CaDbD9735AFf958023239c6A063", 18),
)


def native_name(network: Network) -> str:
    """The name of a network's native coin."""
    return _NATIVE_NAMES.get(network.symbol, network.symbol)


def default_networks(realm: Realm) -> list[Network]:
    """The eight published networks: simulated and active in the test realm, inactive in the live one until they have a node."""
    simulated = realm == "test"
    # A simulated network has a chain id that no real chain has: a wallet that scans its payment URI finds nowhere to pay.
    offset = SIMULATED_CHAIN_IDS if simulated else 0
    return [
        Network(
            id=network_id(realm, slug), name=name, symbol=symbol, family=family,
            chain_id=None if chain_id is None else chain_id + offset, confirmations=confirmations,
            block_time=block_time, decimals=decimals, explorer_url=explorer, simulated=simulated,
            status="active" if simulated else "inactive", gas_limit=21_000 if family == "evm" else None,
        )
        for slug, name, symbol, family, chain_id, confirmations, block_time, decimals, explorer in _NETWORKS
    ]  # fmt: skip


def published_chain_id(slug: str) -> int | None:
    """The EIP-155 id of a network's main chain, by this list alone: its stored record may have been altered."""
    return next((row[4] for row in _NETWORKS if row[0] == slug), None)


def corrected(network: Network) -> Network | None:
    """A stored network with today's block time, as its next version; None where it has that already."""
    if _FORMER_BLOCK_TIMES.get(network.slug) != network.block_time:
        return None
    (today,) = (row[6] for row in _NETWORKS if row[0] == network.slug)
    return replace(next_version(network), block_time=today)


def default_coins(realm: Realm) -> list[Coin]:
    """Native coins and stablecoins of the published catalogue, natives first, in the networks' order."""
    natives = [
        Coin(network_id(realm, slug), symbol.lower(), symbol, _NATIVE_NAMES[symbol], decimals)
        for slug, _, symbol, _, _, _, _, decimals, _ in _NETWORKS
    ]
    tokens = [
        Coin(network_id(realm, network), symbol.lower(), symbol, name, decimals, contract)
        for symbol, name, network, contract, decimals in _TOKENS
    ]
    return natives + tokens


class Catalogue:
    """Networks and coins of one realm, looked up by name. Unknown names give None: the caller words the error. In order of the
    networks, each with its native coin first.

    `newer` reads the catalogue afresh: another process may have registered a coin since.
    """

    def __init__(
        self,
        realm: Realm,
        networks: Iterable[Network],
        coins: Iterable[Coin],
        newer: Callable[[], Catalogue] | None = None,
    ) -> None:
        order = {slug: place for place, slug in enumerate(NETWORK_ORDER)}
        self.realm = realm
        self._newer = newer
        self.networks = {n.slug: n for n in sorted(networks, key=lambda n: (order.get(n.slug, len(order)), n.slug))}
        self.coins = {
            (network_parts(c.network)[1], c.slug): c
            for c in sorted(coins, key=lambda c: (order.get(network_parts(c.network)[1], len(order)), c.contract is not None))
        }

    def network(self, slug: str) -> Network | None:
        return self.networks.get(slug)

    def coin(self, network: str, slug: str) -> Coin | None:
        found = self.coins.get((network, slug))
        if found is None and self._newer is not None and network in self.networks:
            found = self._newer().coins.get((network, slug))
        return found

    def coin_of(self, asset: AssetId) -> Coin:
        """Raises LookupError for a coin that the catalogue does not know."""
        network, slug = asset_parts(asset)
        found = self.coin(network_parts(network)[1], slug)
        if found is None:
            raise LookupError(f"{asset} is not in the catalogue")
        return found

    def payout_slots(self, network: NetworkId) -> int:
        """Over how many hot wallets messages about payouts are spread."""
        found = self.networks.get(network_parts(network)[1])
        return 1 if found is None else found.payout_slots

    def native(self, network: str) -> Coin:
        return self.coins[network, self.networks[network].symbol.lower()]

    def coin_networks(self, slug: str) -> list[str]:
        """The networks that have this coin, in the catalogue's order."""
        return [network for (network, coin) in self.coins if coin == slug]

    def first_active(self, slug: str) -> Coin | None:
        """The coin on its first network where both the coin and the network are active."""
        for network in self.coin_networks(slug):
            coin = self.coins[network, slug]
            if coin.status == "ACTIVE" and self.networks[network].status == "active":
                return coin
        return None

    def coins_of(self, network: str) -> list[Coin]:
        return [coin for (slug, _), coin in self.coins.items() if slug == network]

    def slugs(self) -> list[str]:
        return sorted({coin for _, coin in self.coins})
