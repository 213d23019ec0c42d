"""The one place that builds adapters and hands them to use cases. Everything is made at first use, and imported only then: a
Lambda pays for the modules it imports, and the API's never loads adapters of chains or keys.

One module per capability builds its use cases from the shared `parts`; `root` joins them; `Services` lists what the API, the
workers and the commands ask for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from chalicelib.settings import Settings
from chalicelib.wiring.root import Wiring

T = TypeVar("T")


class Of(Generic[T]):
    """An attribute of `Services` that a capability's wiring has. It is looked up there at each access."""

    def __init__(self, find: Callable[[Wiring], T]) -> None:
        self._find = find

    def __get__(self, services: Services, owner: type | None = None) -> T:
        return self._find(services.wiring)


class Services:
    """Adapters and use cases of one deployment, by name. Shared by all requests of a process."""

    def __init__(self, settings: Settings) -> None:
        self.wiring = Wiring(settings)

    settings = Of(lambda wiring: wiring.parts.settings)
    clock = Of(lambda wiring: wiring.parts.clock)
    region = Of(lambda wiring: wiring.parts.region)
    client = Of(lambda wiring: wiring.parts.client)
    queues = Of(lambda wiring: wiring.parts.queues)
    store = Of(lambda wiring: wiring.parts.store)
    rules = Of(lambda wiring: wiring.parts.rules)
    catalogue = Of(lambda wiring: wiring.parts.catalogue)
    rates = Of(lambda wiring: wiring.parts.rates)
    sandbox_time = Of(lambda wiring: wiring.parts.sandbox_time)
    realm_clock = Of(lambda wiring: wiring.parts.realm_clock)
    clock_of = Of(lambda wiring: wiring.parts.clock_of)

    health = Of(lambda wiring: wiring.base.health)
    switches = Of(lambda wiring: wiring.base.switches)

    archiving = Of(lambda wiring: wiring.archive.archiving)
    archive_rounds = Of(lambda wiring: wiring.archive.rounds)
    archive_coverage = Of(lambda wiring: wiring.archive.coverage)

    gate = Of(lambda wiring: wiring.merchants.gate)
    source_limits = Of(lambda wiring: wiring.merchants.source_limits)
    api_keys = Of(lambda wiring: wiring.merchants.api_keys)
    directory = Of(lambda wiring: wiring.merchants.directory)
    first_keys = Of(lambda wiring: wiring.merchants.first_keys)
    suspensions = Of(lambda wiring: wiring.merchants.suspensions)
    merchant_settings = Of(lambda wiring: wiring.merchants.merchant_settings)
    shops = Of(lambda wiring: wiring.merchants.shops)
    balances = Of(lambda wiring: wiring.merchants.balances)

    deriver = Of(lambda wiring: wiring.custody.deriver)
    signer = Of(lambda wiring: wiring.custody.signer)
    deposit_keys = Of(lambda wiring: wiring.custody.deposit_keys)

    simulated = Of(lambda wiring: wiring.simulated.simulated)
    simulated_tokens = Of(lambda wiring: wiring.simulated.simulated_tokens)

    context = Of(lambda wiring: wiring.chains.context)
    reader = Of(lambda wiring: wiring.chains.reader)
    payer = Of(lambda wiring: wiring.chains.payer)
    coin_payer = Of(lambda wiring: wiring.chains.coin_payer)
    coin_witness = Of(lambda wiring: wiring.chains.coin_witness)
    mempool = Of(lambda wiring: wiring.chains.mempool)
    impatient_reader = Of(lambda wiring: wiring.chains.impatient_reader)
    token_reader = Of(lambda wiring: wiring.chains.token_reader)
    staking_node = Of(lambda wiring: wiring.chains.staking_node)
    delegations = Of(lambda wiring: wiring.chains.delegations)
    loan_payer = Of(lambda wiring: wiring.chains.loan_payer)

    sandbox = Of(lambda wiring: wiring.sandbox.sandbox)
    demo_resets = Of(lambda wiring: wiring.sandbox.demo_resets)
    rate_setter = Of(lambda wiring: wiring.sandbox.rate_setter)
    wipe_demo = Of(lambda wiring: wiring.sandbox.wipe_demo)

    networks = Of(lambda wiring: wiring.catalogue.networks)
    coins = Of(lambda wiring: wiring.catalogue.coins)
    rate_providers = Of(lambda wiring: wiring.catalogue.rate_providers)
    rate_keeper = Of(lambda wiring: wiring.catalogue.rate_keeper)

    wallets = Of(lambda wiring: wiring.wallets.wallets)
    addresses = Of(lambda wiring: wiring.wallets.addresses)
    ceilings = Of(lambda wiring: wiring.wallets.ceilings)
    observer = Of(lambda wiring: wiring.wallets.observer)

    grey_list = Of(lambda wiring: wiring.screening.grey_list)
    risk = Of(lambda wiring: wiring.screening.risk)

    invoices = Of(lambda wiring: wiring.invoices.invoices)
    choices = Of(lambda wiring: wiring.invoices.choices)
    choosable = Of(lambda wiring: wiring.invoices.choosable)
    payer_transactions = Of(lambda wiring: wiring.invoices.payer_transactions)
    checkouts = Of(lambda wiring: wiring.invoices.checkouts)
    invoice_settings = Of(lambda wiring: wiring.invoices.invoice_settings)
    invoice_expiries = Of(lambda wiring: wiring.invoices.invoice_expiries)
    payment_links = Of(lambda wiring: wiring.payment_links.payment_links)
    link_opening = Of(lambda wiring: wiring.payment_links.link_opening)
    invoice_deadlines = Of(lambda wiring: wiring.invoices.invoice_deadlines)

    webhooks = Of(lambda wiring: wiring.webhooks.webhooks)
    invoice_hooks = Of(lambda wiring: wiring.webhooks.invoice_hooks)
    delivery_reads = Of(lambda wiring: wiring.webhooks.delivery_reads)
    test_events = Of(lambda wiring: wiring.webhooks.test_events)
    redelivery = Of(lambda wiring: wiring.webhooks.redelivery)
    relay = Of(lambda wiring: wiring.webhooks.relay)
    leases = Of(lambda wiring: wiring.webhooks.leases)
    redelivery_run = Of(lambda wiring: wiring.webhooks.redelivery_run)
    delivery_sweep = Of(lambda wiring: wiring.webhooks.delivery_sweep)

    deposits = Of(lambda wiring: wiring.deposits.deposits)
    unpriced = Of(lambda wiring: wiring.deposits.unpriced)
    releases = Of(lambda wiring: wiring.deposits.releases)

    withdrawals = Of(lambda wiring: wiring.withdrawals.withdrawals)
    batch_maker = Of(lambda wiring: wiring.withdrawals.batch_maker)
    approvals = Of(lambda wiring: wiring.withdrawals.approvals)
    whitelist = Of(lambda wiring: wiring.withdrawals.whitelist)
    fee_budgets = Of(lambda wiring: wiring.withdrawals.fee_budgets)
    payout_line = Of(lambda wiring: wiring.withdrawals.payout_line)
    payout_sweep = Of(lambda wiring: wiring.withdrawals.payout_sweep)

    refunds = Of(lambda wiring: wiring.refunds.refunds)
    payout_links = Of(lambda wiring: wiring.refunds.payout_links)
    claims = Of(lambda wiring: wiring.refunds.claims)
    open_refunds = Of(lambda wiring: wiring.refunds.open_refunds)

    scanner = Of(lambda wiring: wiring.scanning.scanner)
    range_queue = Of(lambda wiring: wiring.scanning.range_queue)
    mempool_scan = Of(lambda wiring: wiring.scanning.mempool_scan)
    rescanner = Of(lambda wiring: wiring.scanning.rescanner)
    node_reports = Of(lambda wiring: wiring.scanning.node_reports)
    rescans = Of(lambda wiring: wiring.scanning.rescans)
    ticks = Of(lambda wiring: wiring.scanning.ticks)
    balance_booker = Of(lambda wiring: wiring.scanning.balance_booker)

    stray_payments = Of(lambda wiring: wiring.stray_payments.stray_payments)
    stray_returns = Of(lambda wiring: wiring.stray_payments.stray_returns)

    renewals = Of(lambda wiring: wiring.transactions.renewals)
    stuck = Of(lambda wiring: wiring.transactions.stuck)
    finality = Of(lambda wiring: wiring.transactions.finality)
    node_votes = Of(lambda wiring: wiring.transactions.node_votes)
    hearings = Of(lambda wiring: wiring.transactions.hearings)
    losses = Of(lambda wiring: wiring.transactions.losses)
    giving_up = Of(lambda wiring: wiring.transactions.giving_up)
    given_up_watching = Of(lambda wiring: wiring.transactions.given_up_watching)
    answers = Of(lambda wiring: wiring.transactions.answers)

    payouts = Of(lambda wiring: wiring.payouts.payouts)
    bundle_payouts = Of(lambda wiring: wiring.payouts.bundle_payouts)
    sent = Of(lambda wiring: wiring.payouts.sent)
    fee_quotes = Of(lambda wiring: wiring.payouts.fee_quotes)
    settlement = Of(lambda wiring: wiring.payouts.settlement)
    bundle_settlement = Of(lambda wiring: wiring.payouts.bundle_settlement)
    bundle_apart = Of(lambda wiring: wiring.payouts.bundle_apart)

    coin_moves = Of(lambda wiring: wiring.coin_moves.coin_moves)
    coin_move_planning = Of(lambda wiring: wiring.coin_moves.coin_move_planning)
    cold_coins = Of(lambda wiring: wiring.coin_moves.cold_coins)
    wallet_coin_moves = Of(lambda wiring: wiring.coin_moves.wallet_coin_moves)
    deposit_coin_moves = Of(lambda wiring: wiring.coin_moves.deposit_coin_moves)

    moves = Of(lambda wiring: wiring.moves.moves)
    move_fees = Of(lambda wiring: wiring.moves.move_fees)
    collecting = Of(lambda wiring: wiring.moves.collecting)
    collect_decisions = Of(lambda wiring: wiring.moves.collect_decisions)
    hot_floor = Of(lambda wiring: wiring.moves.hot_floor)
    distributor = Of(lambda wiring: wiring.moves.distributor)
    slot_moves = Of(lambda wiring: wiring.moves.slot_moves)
    drains = Of(lambda wiring: wiring.moves.drains)
    filling_over = Of(lambda wiring: wiring.moves.filling_over)
    unsigned_moves = Of(lambda wiring: wiring.moves.unsigned_moves)
    wallet_moves = Of(lambda wiring: wiring.moves.wallet_moves)
    deposit_moves = Of(lambda wiring: wiring.moves.deposit_moves)

    staking = Of(lambda wiring: wiring.stakes.staking)
    staker = Of(lambda wiring: wiring.stakes.staker)
    stake_following = Of(lambda wiring: wiring.stakes.stake_following)
    stake_signing = Of(lambda wiring: wiring.stakes.stake_signing)
    loans = Of(lambda wiring: wiring.stakes.loans)

    reconciliations = Of(lambda wiring: wiring.reconciliation.reconciliations)
    comparison = Of(lambda wiring: wiring.reconciliation.comparison)
    reconciliation_run = Of(lambda wiring: wiring.reconciliation.reconciliation_run)
    cold_adjusting = Of(lambda wiring: wiring.reconciliation.cold_adjusting)

    restorer = Of(lambda wiring: wiring.recovery.restorer)
    pools = Of(lambda wiring: wiring.recovery.pools)
    after_restore = Of(lambda wiring: wiring.recovery.after_restore)


_services: Services | None = None
_services_lock = threading.Lock()


def services() -> Services:
    """The services of this process, built at first use from the environment."""
    global _services  # noqa: PLW0603 - one per process, that is the point
    if _services is None:
        with _services_lock:
            if _services is None:
                _services = Services(Settings.from_environment())
    return _services


def forget() -> None:
    """Drop everything that this process has built and cached: the next call starts like a fresh function. For tests and first
    starts."""
    global _services  # noqa: PLW0603
    _services = None
