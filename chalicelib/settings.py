"""Deployment settings, from the Lambda's environment. Names of tables, queues and keys follow from the stage alone."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

from chalicelib.domain.screening.rules import RiskRules

APP = "gateway"
USER_AGENT = APP
"""The user agent of AWS clients. Left to itself botocore puts its own from a dozen parts twice for every call, which is a
quarter of the call's CPU."""
STAGES = ("local", "demo", "prod")
TABLES = ("tenants", "records", "ledger", "chain", "payouts", "work", "events", "webhooks", "custody", "sandbox")
"""One table per group of rights: which function may touch which is in `.chalice/policy-*.json`."""
QUEUES = ("relay", "deliveries", "deliveries-slow", "payouts.fifo", "collections.fifo", "scans", "ticks", "record", "comparisons")
"""Each has a dead-letter queue of the same name with `-dead` before the suffix."""
DEAD_DELIVERIES = "webhooks-dead"
"""Where webhook deliveries end whose retries all failed (decisions §11). Nobody here reads it: a merchant's receiver was away."""
AWS_CONNECTIONS = 50
"""Connections that a client keeps open: ten messages at once, each with a batch of webhooks, ask at the same time."""
LEAST_ARCHIVE_DAYS = 90
"""Events are kept for 30 days, and a claim link may be open for as long."""
CHAINS = ("main", "testnet", "regtest")
RATE_PROVIDERS = ("coingecko", "kraken", "fixed")
VARIABLES = (
    "ADDRESSES_MODE", "ADDRESSES_PER_DAY", "ARCHIVE_AFTER_DAYS", "BUSY_HOURS", "COINGECKO_API_KEY", "COINGECKO_IDS",
    "COINGECKO_URL", "COLLECT_FEE_PERCENT", "CONSOLE", "CONSOLIDATION_BUDGET_USD", "FEE_BUDGET_USD", "INVOICE_EXPIRY_SECONDS",
    "KRAKEN_URL", "LIVE_CHAINS", "LOOKOUTS", "NODE_SILENCE_MINUTES", "ONE_ITEM_OUTBOX", "PACKED_RECORDS", "PUBLIC_URL",
    "RATES_PROVIDERS", "RECONCILE_PAGE",
    "RENEWALS_MOST",
    "RENEWAL_FEE_TIMES",
    "RENEWAL_SECONDS", "REVEAL_PRIVATE_KEYS", "RISK_FAILURES", "RISK_NEW_PER_DAY", "RISK_NEW_PER_HOUR", "RISK_THRESHOLD",
    "RISK_USD", "SANDBOX_BLOCK_SECONDS", "SHORT_RECORDS", "STAGE", "TICKS", "WALLET_CUSTODY", "WEBHOOKS_ALLOW_PRIVATE",
    "WITHDRAWAL_FEE_PAYER",
)  # fmt: skip
"""Every setting by its name in the environment of a function."""
KEYS = ("data", "webhooks", "hot-live", "hot-test")
"""KMS aliases: `data` encrypts keys and `webhooks` the secrets of webhooks (symmetric), `hot-*` sign (ECC_SECG_P256K1)."""


@dataclass(frozen=True, slots=True)
class Settings:
    """`chains` has by NetworkId which live networks are not on their main chain: a deployment keeps to its chain for life,
    since addresses and wallets are spelled for it. `addresses_mode` is the mode of addresses whose request names none;
    `webhooks_private` lets webhooks go to http and private addresses (local stack only); `default_expiry` in seconds.
    `rates_providers` are asked in this order what coins of the live realm are worth; none of them: nobody knows. `coingecko_ids`
    has CoinGecko's names of further coins, by slug. `public_url` is what the API's paths begin with outside, such as
    https://pay.example/api; None: no link to a page of ours is given out. What a request says in its Host header would be the
    caller's choice. `merchant_pays_fees`: withdrawals debit the network fee, too.
    `renewal_seconds`, `renewals_most` and `renewal_fee_times` say when and how often a stuck payment is replaced, see
    `domain.transactions.replacements.RenewalRules`. `reconcile_page` is how many rows a step of a live EVM network reads on its
    way round all watched addresses; 0: it does not go round. `wallet_custody`: keys of new service wallets are made in KMS and
    never leave it (native), or here, and encrypted at once; `reveal_private_keys`: the answer that registers a wallet shows the
    key made here. `collect_fee_percent` is how large a part of what is collected its fees may be; 0: any.
    `consolidation_budget_usd` is what a network's consolidations may cost in a UTC day without an operator's approval, or the
    moves between its hot wallets, in US dollars. `node_silence_minutes`: a node that has not answered for so long has no vote
    about what became of a transaction of ours. `fee_budget_usd` is how much of the fees of one merchant's withdrawals the operator
    bears on one network in a UTC day, in US dollars. `addresses_per_day` is how many addresses, those of invoices too, one
    merchant may have made in a UTC day; 0: any number. `archive_after_days` is how old a settled payment is when it leaves the
    tables for the archive; 0: none leaves any more, and what left before stays there; None: none ever left. `console`: the
    operator's page is served. `ticks`: networks on which somebody waits are looked at every few seconds; `busy_hours` is how long
    that may go on in a UTC day for those alone who only ask for a payment, for each network.
    """

    stage: str = "local"
    addresses_mode: Literal["single", "common", "cross"] = "common"
    webhooks_private: bool = False
    sandbox_block_seconds: float = 0.0
    default_expiry: int = 3600
    rates_providers: tuple[str, ...] = ()
    coingecko_url: str | None = None
    coingecko_key: str | None = None
    coingecko_ids: Mapping[str, str] = field(default_factory=dict)
    kraken_url: str | None = None
    public_url: str | None = None
    merchant_pays_fees: bool = False
    chains: Mapping[str, Literal["main", "testnet", "regtest"]] = field(default_factory=dict)
    renewal_seconds: int = 180
    renewals_most: int = 5
    renewal_fee_times: int = 10
    reconcile_page: int = 5000
    collect_fee_percent: int = 5
    consolidation_budget_usd: int = 500
    node_silence_minutes: int = 30
    fee_budget_usd: int = 500
    addresses_per_day: int = 500_000
    archive_after_days: int | None = None
    wallet_custody: Literal["native", "envelope"] = "envelope"
    reveal_private_keys: bool = True
    console: bool = True
    packed_records: bool = True
    short_records: bool = True
    one_item_outbox: bool = True
    lookouts: bool = True
    ticks: bool = False
    busy_hours: int = 6
    risk: RiskRules = field(default_factory=RiskRules)

    @classmethod
    def from_environment(cls) -> Settings:
        """Raises ValueError for a setting that is not one of its allowed values: a deployment must not run on a typo."""
        stage = os.environ.get("STAGE", "local")
        if stage not in STAGES:
            raise ValueError(f"STAGE is {stage!r}; allowed: {', '.join(STAGES)}")
        mode = os.environ.get("ADDRESSES_MODE", "common")
        mode = "common" if mode == "universal" else mode
        if mode not in ("single", "common", "cross"):
            raise ValueError(f"ADDRESSES_MODE is {mode!r}; allowed: single, common, cross")
        providers = tuple(name.strip() for name in os.environ.get("RATES_PROVIDERS", "").split(",") if name.strip())
        if (
            set(providers) - set(RATE_PROVIDERS)
            or len(set(providers)) < len(providers)
            or ("fixed" in providers and len(providers) > 1)
        ):
            raise ValueError(f"RATES_PROVIDERS is {','.join(providers)!r}; allowed: fixed alone, or a list of coingecko, kraken")
        payer = os.environ.get("WITHDRAWAL_FEE_PAYER", "hot")
        if payer not in ("hot", "merchant"):
            raise ValueError(f"WITHDRAWAL_FEE_PAYER is {payer!r}; allowed: hot, merchant")
        # Real money: keys that never leave KMS, and none in an answer, unless the operator says otherwise.
        prod = stage == "prod"
        custody = os.environ.get("WALLET_CUSTODY") or ("native" if prod else "envelope")
        if custody not in ("native", "envelope") or (custody == "native" and stage == "demo"):
            allowed = "envelope (everybody has the demo's keys, and keys in KMS cost)" if stage == "demo" else "native, envelope"
            raise ValueError(f"WALLET_CUSTODY is {custody!r}; allowed: {allowed}")
        private = _flag("WEBHOOKS_ALLOW_PRIVATE")
        if private and stage != "local":
            raise ValueError(f"WEBHOOKS_ALLOW_PRIVATE is 'true'; allowed on {stage}: false (merchants would reach the inside)")
        return cls(
            stage=stage,
            wallet_custody=cast(Literal["native", "envelope"], custody),
            # What versions before 0.1.0 do not read: prod writes it by config.json, which says so to `infra.deployment.forms`.
            packed_records=_switch("PACKED_RECORDS", "off" if prod else "on"),
            short_records=_switch("SHORT_RECORDS", "off" if prod else "on"),
            one_item_outbox=_switch("ONE_ITEM_OUTBOX", "off" if prod else "on"),
            lookouts=_switch("LOOKOUTS", "off" if prod else "on"),
            console=_switch("CONSOLE", "off" if prod else "on"),
            # The local stack polls every second by itself.
            ticks=_switch("TICKS", "off" if stage == "local" else "on"),
            busy_hours=min(_whole("BUSY_HOURS", 6, least=0), 24),
            reveal_private_keys=_flag("REVEAL_PRIVATE_KEYS", "false" if prod else "true"),
            merchant_pays_fees=payer == "merchant",
            addresses_mode=cast(Literal["single", "common", "cross"], mode),
            webhooks_private=private,
            sandbox_block_seconds=float(os.environ.get("SANDBOX_BLOCK_SECONDS", "0")),
            default_expiry=int(os.environ.get("INVOICE_EXPIRY_SECONDS", "3600")),
            rates_providers=providers,
            coingecko_url=os.environ.get("COINGECKO_URL") or None,
            coingecko_key=os.environ.get("COINGECKO_API_KEY") or None,
            coingecko_ids=_pairs("COINGECKO_IDS"),
            kraken_url=os.environ.get("KRAKEN_URL") or None,
            public_url=_url("PUBLIC_URL"),
            chains=_chains("LIVE_CHAINS"),
            renewal_seconds=_whole("RENEWAL_SECONDS", 180, least=60),
            risk=RiskRules(
                usd=_whole("RISK_USD", 1000, least=0),
                threshold=_whole("RISK_THRESHOLD", 60, least=1),
                per_hour=_whole("RISK_NEW_PER_HOUR", 100, least=1),
                per_day=_whole("RISK_NEW_PER_DAY", 300, least=1),
                failures=_whole("RISK_FAILURES", 3, least=1),
            ),
            renewals_most=_whole("RENEWALS_MOST", 5, least=0),
            renewal_fee_times=_whole("RENEWAL_FEE_TIMES", 10, least=1),
            collect_fee_percent=_whole("COLLECT_FEE_PERCENT", 5, least=0),
            consolidation_budget_usd=_whole("CONSOLIDATION_BUDGET_USD", 500, least=0),
            node_silence_minutes=_whole("NODE_SILENCE_MINUTES", 30, least=5),
            fee_budget_usd=_whole("FEE_BUDGET_USD", 500, least=0),
            addresses_per_day=_whole("ADDRESSES_PER_DAY", 500_000, least=0),
            archive_after_days=_archive_after(),
            reconcile_page=min(_whole("RECONCILE_PAGE", 5000, least=0), 5000),
        )

    @property
    def realms(self) -> tuple[Literal["live", "test"], ...]:
        """The realms of this deployment: the demo has only the sandbox (decisions §5)."""
        return ("test",) if self.stage == "demo" else ("live", "test")

    @property
    def wallet_aliases(self) -> str:
        """The pattern of the aliases of wallets' own keys in KMS: the payout function signs with these, and with the hot keys."""
        return self.key_alias("wallet-*")

    @property
    def keys(self) -> tuple[str, ...]:
        """The `KEYS` that this deployment has: where there is no live realm, nothing could sign for it."""
        return tuple(key for key in KEYS if key != "hot-live" or "live" in self.realms)

    def chain(self, network: str) -> Literal["main", "testnet", "regtest"]:
        """Which of its chains a network (NetworkId) is on; of interest on UTXO networks and Tron only."""
        return self.chains.get(network, "main")

    def table(self, name: str) -> str:
        return f"{APP}-{self.stage}-{name}"

    def archive_bucket(self, account: str, region: str) -> str:
        """The bucket of archived payments. `account` is the AWS account's number."""
        return f"{APP}-{self.stage}-archive-{account}-{region}"

    def queue(self, name: str) -> str:
        return f"{APP}-{self.stage}-{name}"

    def ceiling_parameter(self, pool: str) -> str:
        """The parameter of AWS Systems Manager that has the ceiling of an index pool, such as ``live:evm``."""
        return f"/{APP}-{self.stage}/pools/{pool.replace(':', '/')}"

    def node_secret(self, name: str) -> str:
        """The name of a node's secret in Secrets Manager."""
        return f"{APP}-{self.stage}-node-{name}"

    def key_alias(self, name: str) -> str:
        return f"alias/{APP}-{self.stage}-{name}"


def _pairs(name: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in os.environ.get(name, "").split(","):
        left, sign, right = (part.strip() for part in entry.partition("="))
        if entry.strip() and not (left and sign and right):
            raise ValueError(f"{name} has {entry!r}; wanted: slug=id,slug=id")
        if entry.strip():
            found[left] = right
    return found


def _chains(name: str) -> dict[str, Literal["main", "testnet", "regtest"]]:
    found: dict[str, Literal["main", "testnet", "regtest"]] = {}
    for slug, chain in _pairs(name).items():
        if slug not in ("bitcoin", "litecoin", "tron") or chain not in CHAINS:
            raise ValueError(f"{name} has {slug}={chain}; allowed: bitcoin, litecoin or tron, and {', '.join(CHAINS)}")
        found[f"live:{slug}"] = cast(Literal["main", "testnet", "regtest"], chain)
    return found


def _url(name: str) -> str | None:
    value = os.environ.get(name, "").rstrip("/")
    if not value:
        return None
    if not re.fullmatch(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~-]+)*", value):
        raise ValueError(f"{name} is {value!r}; it has to be an http or https URL without query, such as https://pay.example/api")
    return value


def _whole(name: str, default: int, least: int) -> int:
    text = os.environ.get(name) or str(default)
    if not re.fullmatch(r"[0-9]{1,6}", text) or int(text) < least:
        raise ValueError(f"{name} is {text!r}; it has to be a whole number of at least {least}")
    return int(text)


def _archive_after() -> int | None:
    """Raises ValueError for a time in which events, retries and refunds of a payment may still be under way."""
    if not os.environ.get("ARCHIVE_AFTER_DAYS"):
        return None
    days = _whole("ARCHIVE_AFTER_DAYS", 0, least=0)
    if 0 < days < LEAST_ARCHIVE_DAYS:
        raise ValueError(f"ARCHIVE_AFTER_DAYS is {days}; allowed: 0 (off), or at least {LEAST_ARCHIVE_DAYS}")
    return days


def _switch(name: str, default: str) -> bool:
    value = (os.environ.get(name) or default).lower()
    if value not in ("on", "off"):
        raise ValueError(f"{name} is {value!r}; allowed: on, off")
    return value == "on"


def _flag(name: str, default: str = "false") -> bool:
    value = os.environ.get(name, default).lower()
    if value not in ("true", "false"):
        raise ValueError(f"{name} is {value!r}; allowed: true, false")
    return value == "true"
