"""What the workers run: scanning, settling, signing, delivering, asking for rates. The API's functions never make any of it."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from chalicelib.wiring.coin_moves import CoinMoveServices

if TYPE_CHECKING:
    from collections.abc import Callable

    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.domain.ids import TenantId
    from chalicelib.domain.treasury.moves import MoveKind
    from chalicelib.usecases.addresses.index_ceilings import Ceilings
    from chalicelib.usecases.catalogue.rates import RateKeeper, RateProvider
    from chalicelib.usecases.invoices.expiries import InvoiceExpiries
    from chalicelib.usecases.payouts.account_payouts import Payouts
    from chalicelib.usecases.payouts.bundle_payouts import BundlePayouts
    from chalicelib.usecases.payouts.bundle_settlement import BundleSettlement
    from chalicelib.usecases.payouts.settlement import Settlement
    from chalicelib.usecases.ports.queues import RangeQueue
    from chalicelib.usecases.ports.signing import Signer
    from chalicelib.usecases.reconciliation.accounts import Looks as Comparing
    from chalicelib.usecases.reconciliation.cold_adjusting import ColdAdjusting
    from chalicelib.usecases.reconciliation.run import ReconciliationRun
    from chalicelib.usecases.recovery.addresses import Pools, Restorer
    from chalicelib.usecases.recovery.point_in_time import AfterRestore
    from chalicelib.usecases.scanning.internal_transfers import BalanceBooker
    from chalicelib.usecases.scanning.mempool import Glimpses
    from chalicelib.usecases.scanning.rescans import Rescanner
    from chalicelib.usecases.scanning.scanner import Scanner
    from chalicelib.usecases.screening.withdrawals import Risk
    from chalicelib.usecases.stray_payments.returns import StrayReturns
    from chalicelib.usecases.transactions.chain_cache import Answers
    from chalicelib.usecases.transactions.expiry_votes import Hearings
    from chalicelib.usecases.transactions.finality import Verdicts
    from chalicelib.usecases.transactions.give_up import GivingUp
    from chalicelib.usecases.transactions.given_up_watching import GivenUpWatching
    from chalicelib.usecases.transactions.losses import Losses
    from chalicelib.usecases.transactions.node_votes import NodeVotes
    from chalicelib.usecases.transactions.replacements import Stuck
    from chalicelib.usecases.treasury.cold_storage_accounts import Distributor
    from chalicelib.usecases.treasury.collection.fees import MoveFees
    from chalicelib.usecases.treasury.collection.run import CollectRun
    from chalicelib.usecases.treasury.filling_over import FillingOver
    from chalicelib.usecases.treasury.hot_floor import HotFloor
    from chalicelib.usecases.treasury.moves.following import MoveFollowing
    from chalicelib.usecases.treasury.moves.signing import MoveSigning
    from chalicelib.usecases.treasury.rotation import Drains
    from chalicelib.usecases.treasury.tron.energy_loans import Loans
    from chalicelib.usecases.treasury.tron.stake_following import StakeFollowing
    from chalicelib.usecases.treasury.tron.stake_signing import StakeSigning
    from chalicelib.usecases.treasury.tron.staking import Staker
    from chalicelib.usecases.wallets.observed_balances import Observer
    from chalicelib.usecases.webhooks.due_sweep import DeliverySweep
    from chalicelib.usecases.webhooks.leases import Turns
    from chalicelib.usecases.webhooks.redelivery_run import RedeliveryRun
    from chalicelib.usecases.webhooks.relay import Relay
    from chalicelib.usecases.withdrawals.fee_budget import FeeBudgets
    from chalicelib.usecases.withdrawals.payout_line import Line
    from chalicelib.usecases.withdrawals.retry_idle import PayoutSweep


class WorkerServices(CoinMoveServices):
    """The part of `Services` that no request needs."""

    def scanner(self, network: Network) -> Scanner:
        from chalicelib.usecases.scanning.scanner import Scanner

        clock = self.clock_of(network.realm)
        queue = self.range_queue(network)
        return Scanner(network, self.reader(network), self.store, self.deposits(network.realm), self.rules, clock, queue)

    def restorer(self, network: Network, owner: TenantId) -> Restorer:
        """What finds the addresses of a network again, for `owner`."""
        from chalicelib.usecases.recovery.addresses import Restorer

        clock = self.clock_of(network.realm)
        return Restorer(network, self.reader(network), self.store, self.deriver, self.rules, clock, owner)

    @cached_property
    def pools(self) -> Pools:
        from chalicelib.custody.derive import pool_of
        from chalicelib.usecases.recovery.addresses import Pools

        return Pools(self.store, self.ceilings, pool_of)

    @cached_property
    def ceilings(self) -> Ceilings:
        from chalicelib.custody.derive import POOLS
        from chalicelib.store.ceilings import SsmCeilings
        from chalicelib.usecases.addresses.index_ceilings import Ceilings

        return Ceilings(self.store, SsmCeilings(self.settings, lambda: self._client("ssm")), POOLS)

    def range_queue(self, network: Network) -> RangeQueue | None:
        """Who helps with a backlog. A simulated chain is read as fast as our own tables: nobody has to."""
        return None if network.simulated else self.queues

    def glimpses(self, network: Network) -> Glimpses | None:
        """What looks into a network's mempool; None for one whose payments are first seen in blocks."""
        from chalicelib.usecases.scanning.mempool import Glimpses, Looks
        from chalicelib.usecases.wallets.utxos import pays_from_coins

        if not pays_from_coins(network):
            return None
        mempool = self.mempool(network)
        looks = self._looks.setdefault(network.id, Looks())
        deposits, clock = self.deposits(network.realm), self.clock_of(network.realm)
        return Glimpses(network, mempool, self.store, deposits, self.rules, clock, looks)

    def rescanner(self, network: Network) -> Rescanner:
        from chalicelib.usecases.scanning.rescans import Rescanner

        return Rescanner(network, self.reader(network), self.store, self.scanner(network), self.clock_of(network.realm))

    def stray_returns(self, network: Network) -> StrayReturns:
        from chalicelib.usecases.stray_payments.returns import StrayReturns

        return StrayReturns(network, self.store, self.clock_of(network.realm), self.withdrawals)

    def balance_booker(self, network: Network) -> BalanceBooker:
        from chalicelib.usecases.scanning.internal_transfers import BalanceBooker

        page = self.settings.reconcile_page
        clock = self.clock_of(network.realm)
        return BalanceBooker(network, self.reader(network), self.store, self.scanner(network), self.rules, clock, page)

    def comparison(self, network: Network) -> Comparing:
        """What compares places of a network with the chain. Raises LookupError where this deployment has no node of it."""
        from chalicelib.usecases.reconciliation.accounts import LooksAtABlock, LooksAtNow
        from chalicelib.usecases.reconciliation.utxo import LooksAtCoins

        reader = self.reader(network)
        if network.family == "utxo" and not network.simulated:
            return LooksAtCoins(network, reader, self.coin_witness(network), self.store, self.rules)
        looks = LooksAtNow if network.simulated or network.family == "tron" else LooksAtABlock
        return looks(network, reader, self.store, self.rules)

    def reconciliation_run(self, network: Network) -> ReconciliationRun:
        """Raises LookupError for a network that this deployment has no node of."""
        from chalicelib.usecases.reconciliation.run import ReconciliationRun

        return ReconciliationRun(network, self.comparison(network), self.store, self.clock)

    def cold_adjusting(self, network: Network) -> ColdAdjusting:
        """Raises LookupError as above."""
        from chalicelib.usecases.reconciliation.cold_adjusting import ColdAdjusting

        looks, clock = partial(self.comparison, network), self.clock_of(network.realm)
        return ColdAdjusting(network, self.reader(network), looks, self.store, self.rules, clock)

    def after_restore(self, network: Network) -> AfterRestore:
        """For networks of accounts."""
        from chalicelib.usecases.recovery.point_in_time import AfterRestore

        clock, deposits = self.clock_of(network.realm), self.deposits(network.realm)
        return AfterRestore(network, self.reader(network), self.payer(network), self.store, self.rules, deposits, clock)

    def observer(self, network: Network) -> Observer:
        from chalicelib.usecases.wallets.observed_balances import Observer

        return Observer(network, self.reader(network), self.store, self.clock_of(network.realm), self.coin_payer)

    def drains(self, network: Network) -> Drains:
        from chalicelib.usecases.treasury.rotation import Drains

        reader, clock, rates = self.reader(network), self.clock_of(network.realm), self.deposits(network.realm).rates
        fees, coins_pay = partial(self.move_fees, network), lambda wallet: self.cold_coins(network).worth(wallet)
        return Drains(network, reader, self.store, self.rules, clock, rates, fees, coins_pay)

    def verdicts(self, network: Network) -> Verdicts:
        from chalicelib.usecases.transactions.finality import Verdicts

        rates = self.deposits(network.realm).rates
        return Verdicts(network, self.reader(network), self.store, rates, self.clock_of(network.realm))

    def node_votes(self, network: Network) -> NodeVotes:
        """Which nodes of a network have a vote. On the machines' clock, as the nodes are."""
        from chalicelib.usecases.transactions.node_votes import NodeVotes

        return NodeVotes(network, self.reader(network), self.store, self.clock, self.settings.node_silence_minutes)

    def losses(self, network: Network) -> Losses:
        """What was met of our transactions in blocks, for one poll or one signature."""
        from chalicelib.usecases.transactions.losses import Losses

        return Losses(network, self.reader(network), self.store)

    def giving_up(self, network: Network) -> GivingUp:
        """For an operator's decision about a transaction of ours."""
        from chalicelib.usecases.transactions.give_up import GivingUp
        from chalicelib.usecases.wallets.utxos import pays_from_coins

        clock, coins = self.clock_of(network.realm), self.coin_payer(network) if pays_from_coins(network) else None
        return GivingUp(network, self.store, self.rules, clock, self.losses(network), self.verdicts(network), coins)

    def filling_over(self, network: Network) -> FillingOver:
        """For an operator's transaction on the nonce of an open payment."""
        from chalicelib.usecases.treasury.filling_over import FillingOver

        clock, payer = self.clock_of(network.realm), self.payer(network)
        return FillingOver(network, self.store, self.rules, clock, payer, self.losses(network), self.verdicts(network))

    def given_up_watching(self, network: Network) -> GivenUpWatching:
        from chalicelib.usecases.transactions.given_up_watching import GivenUpWatching
        from chalicelib.usecases.wallets.utxos import pays_from_coins

        counts = not pays_from_coins(network) and (network.simulated or network.family != "tron")
        clock, payer = self.clock_of(network.realm), self.payer(network) if counts else None
        losses, verdicts = self.losses(network), self.verdicts(network)
        return GivenUpWatching(network, self.store, self.rules, clock, losses, verdicts, self.rates, payer)

    def answers(self, network: Network) -> Answers:
        """What nodes tell, for those who follow the same transactions in one run."""
        from chalicelib.usecases.transactions.chain_cache import Answers

        return Answers(self.reader(network))

    def settlement(self, network: Network, answers: Answers | None = None) -> Settlement:
        from chalicelib.usecases.payouts.settlement import Settlement

        clock = self.clock_of(network.realm)
        reader, verdicts, sent = self.reader(network), self.verdicts(network), self.sent(network)
        return Settlement(network, reader, sent, self.store, self.rules, clock, verdicts, self.rates, answers)

    def bundle_settlement(self, network: Network, answers: Answers | None = None) -> BundleSettlement:
        """For networks of coins."""
        from chalicelib.usecases.payouts.bundle_sent import SentTogether
        from chalicelib.usecases.payouts.bundle_settlement import BundleSettlement

        payer, clock = self.coin_payer(network), self.clock_of(network.realm)
        sent = SentTogether(self.store, payer)
        reader, verdicts = self.reader(network), self.verdicts(network)
        return BundleSettlement(
            network, reader, payer, sent, self.store, self.rules, clock, self.renewals, verdicts, self.rates, answers
        )  # fmt: skip

    def moves(self, network: Network) -> MoveFollowing:
        """For a network of accounts."""
        from chalicelib.usecases.treasury.moves.booking import MoveBooking
        from chalicelib.usecases.treasury.moves.following import MoveFollowing

        clock, reader, verdicts = self.clock_of(network.realm), self.reader(network), self.verdicts(network)
        booking = MoveBooking(network, reader, self.store, self.rules, clock, verdicts)
        return MoveFollowing(
            network, reader, self.payer(network), self.store, clock, verdicts, self.stuck(network), booking,
            self.rules, self._stuck_loans(network),
        )  # fmt: skip

    def move_fees(self, network: Network) -> MoveFees:
        """For networks of accounts."""
        from chalicelib.usecases.treasury.collection.fees import MoveFees

        clock, rates = self.clock_of(network.realm), self.deposits(network.realm).rates
        percent = self.settings.collect_fee_percent
        payer, reader = partial(self.payer, network), partial(self.reader, network)
        return MoveFees(network, self.store, self.rules, clock, payer, reader, rates, percent)

    def collecting(self, network: Network) -> CollectRun:
        """For networks of accounts."""
        from chalicelib.usecases.treasury.collection.planning import CollectPlanning
        from chalicelib.usecases.treasury.collection.run import CollectRun
        from chalicelib.usecases.treasury.collection.steps import CollectSteps

        clock, fees = self.clock_of(network.realm), self.move_fees(network)
        steps = CollectSteps(network, self.store, self.rules, clock, fees, self.loans(network))
        return CollectRun(network, self.store, clock, CollectPlanning(network, self.store, clock, fees), steps, fees)

    def hot_floor(self, network: Network) -> HotFloor:
        from chalicelib.usecases.treasury.hot_floor import HotFloor

        return HotFloor(network, self.store, self.rules, self.clock_of(network.realm), self.rates)

    def distributor(self, network: Network) -> Distributor:
        """For networks of accounts."""
        from chalicelib.usecases.treasury.cold_storage_accounts import Distributor

        clock = self.clock_of(network.realm)
        return Distributor(network, self.store, self.rules, clock, self.move_fees(network))

    def loans(self, network: Network) -> Loans | None:
        """What lends the energy of the hot wallet's stake; None for a network that has none."""
        if network.family != "tron" or network.simulated:
            return None
        from chalicelib.usecases.treasury.tron.energy_loans import Loans

        return Loans(network, self.store, self.clock_of(network.realm), self.delegations(network))

    def _stuck_loans(self, network: Network) -> dict[MoveKind, Stuck]:
        from chalicelib.domain.treasury.moves import LOANS
        from chalicelib.usecases.transactions.replacements import Stuck

        if network.family != "tron" or network.simulated:
            return {}
        reader, renewals, verdicts = self.reader(network), self.renewals, self.verdicts(network)
        return {
            kind: Stuck(network, reader, self.loan_payer(network, kind), renewals, self.store, self.rules, verdicts)
            for kind in LOANS
        }

    def staker(self, network: Network) -> Staker:
        """Raises LookupError for a network that is not simulated."""
        from chalicelib.usecases.treasury.tron.staking import Staker

        clock = self.clock_of(network.realm)
        reader, chain, verdicts = self.reader(network), self.simulated(network.id), self.verdicts(network)
        return Staker(network, reader, chain, self.store, self.rules, clock, verdicts)

    def stake_following(self, network: Network) -> StakeFollowing:
        """For a network that is not simulated."""
        from chalicelib.usecases.treasury.tron.stake_following import StakeFollowing

        clock = self.clock_of(network.realm)
        reader, node, verdicts = self.reader(network), self.staking_node(network), self.verdicts(network)
        return StakeFollowing(network, reader, node, self.store, self.rules, clock, verdicts)

    @cached_property
    def signer(self) -> Signer:
        from chalicelib.custody.envelope import EnvelopeSigner
        from chalicelib.custody.kms import KmsSigner
        from chalicelib.custody.records import EncryptedKey
        from chalicelib.custody.signer import WalletSigner

        kms = self._client("kms")
        envelope = EnvelopeSigner(kms, self.settings, lambda key_id: self.store.get(EncryptedKey, id=key_id))
        return WalletSigner(KmsSigner(kms), envelope)

    @cached_property
    def invoice_expiries(self) -> InvoiceExpiries:
        from chalicelib.usecases.invoices.expiries import InvoiceExpiries

        return InvoiceExpiries(self.store, self.realm_clock)

    @cached_property
    def payouts(self) -> Payouts:
        from chalicelib.usecases.payouts.account_payouts import Payouts

        renewals, together = self.renewals, self.bundle_payouts
        return Payouts(
            self.store,
            self.rules,
            self.realm_clock,
            self.signer,
            self.payer,
            self.reader,
            renewals,
            together,
            self.risk,
            self.rates,
            self.fee_budgets,
            self.hearings.every_node,
        )

    @cached_property
    def fee_budgets(self) -> FeeBudgets:
        from chalicelib.usecases.withdrawals.fee_budget import FeeBudgets

        return FeeBudgets(self.store, self.realm_clock, self.rates, self.settings.fee_budget_usd)

    @cached_property
    def risk(self) -> Risk:
        from chalicelib.usecases.screening.withdrawals import Risk

        return Risk(self.store, self.rules, self.rates, self.reader, self.settings.risk)

    @cached_property
    def bundle_payouts(self) -> BundlePayouts:
        from chalicelib.usecases.payouts.bundle_payouts import BundlePayouts

        rules, clock, payer, reader = self.rules, self.realm_clock, self.coin_payer, self.reader
        budgets = self.fee_budgets
        return BundlePayouts(self.store, rules, clock, self.signer, payer, reader, self.renewals, self.risk, self.rates, budgets)

    @cached_property
    def stake_signing(self) -> StakeSigning:
        from chalicelib.usecases.treasury.tron.stake_signing import StakeSigning

        node_of, every_node = self.staking_node, self.hearings.every_node
        return StakeSigning(self.store, self.rules, self.realm_clock, self.signer, node_of, self.reader, every_node)

    @cached_property
    def wallet_moves(self) -> MoveSigning:
        """Moves out of service wallets: for the function that has their keys."""
        return self._move_signing(wallets=self.signer, loans_of=self.loan_payer)

    @cached_property
    def deposit_moves(self) -> MoveSigning:
        """Moves out of deposit addresses: for the function that may open the seed."""
        return self._move_signing(deposits=self.deposit_keys)

    def _move_signing(self, **keys: Any) -> MoveSigning:
        from chalicelib.usecases.treasury.moves.signing import MoveSigning

        rules, clock, every_node = self.rules, self.realm_clock, self.hearings.every_node
        return MoveSigning(self.store, rules, clock, self.payer, self.reader, self.renewals, every_node, **keys)

    @cached_property
    def hearings(self) -> Hearings:
        from chalicelib.usecases.transactions.expiry_votes import Hearings

        return Hearings(self.node_votes, self.verdicts)

    @cached_property
    def payout_line(self) -> Line:
        from chalicelib.usecases.withdrawals.payout_line import Line

        return Line(self.store, self.realm_clock)

    @cached_property
    def payout_sweep(self) -> PayoutSweep:
        from chalicelib.usecases.withdrawals.retry_idle import PayoutSweep

        return PayoutSweep(self.store, self.queues, self.realm_clock)

    @cached_property
    def relay(self) -> Relay:
        from chalicelib.usecases.webhooks.relay import Relay

        return Relay(self.store, self.queues, self.clock)

    @cached_property
    def turns(self) -> Turns:
        from chalicelib.delivery.safe_http import SafeHttpSender
        from chalicelib.delivery.secrets import KmsOpener
        from chalicelib.usecases.webhooks.deliveries import Deliveries
        from chalicelib.usecases.webhooks.leases import Turns
        from chalicelib.usecases.webhooks.notices import Notices

        sender = SafeHttpSender(allow_private=self.settings.webhooks_private)
        opener = KmsOpener(lambda: self._client("kms"), self.settings)
        deliveries = Deliveries(self.store, self.clock, sender, self.queues, notices=Notices(self.clock_of))
        return Turns(self.store, self.queues, self.clock, deliveries, opener)

    @cached_property
    def redelivery_run(self) -> RedeliveryRun:
        from chalicelib.usecases.webhooks.redelivery_run import RedeliveryRun

        return RedeliveryRun(self.store, self.queues, self.clock)

    @cached_property
    def delivery_sweep(self) -> DeliverySweep:
        from chalicelib.usecases.webhooks.due_sweep import DeliverySweep

        return DeliverySweep(self.store, self.queues, self.clock)

    @cached_property
    def rate_providers(self) -> list[RateProvider]:
        """Who is asked over the network; nobody where no provider or the fixed one is set."""
        from chalicelib.rates import coingecko, kraken

        known = self.settings
        makers: dict[str, Callable[[], RateProvider]] = {
            "coingecko": lambda: coingecko.CoinGecko(
                known.coingecko_url or coingecko.URL, known.coingecko_key, known.coingecko_ids
            ),
            "kraken": lambda: kraken.Kraken(known.kraken_url or kraken.URL),
        }
        return [makers[name]() for name in known.rates_providers if name in makers]

    @cached_property
    def rate_keeper(self) -> RateKeeper:
        from chalicelib.usecases.catalogue.rates import RateKeeper

        return RateKeeper(self.store, self.rate_providers, self.clock)
