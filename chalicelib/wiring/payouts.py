"""Payouts: building and signing the payments of withdrawals, and following them until they are settled."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.usecases.payouts.account_payouts import Payouts
    from chalicelib.usecases.payouts.bundle_apart import BundleApart
    from chalicelib.usecases.payouts.bundle_parts import BundleParts
    from chalicelib.usecases.payouts.bundle_payouts import BundlePayouts
    from chalicelib.usecases.payouts.bundle_settlement import BundleSettlement
    from chalicelib.usecases.payouts.fee_quotes import FeeQuotes
    from chalicelib.usecases.payouts.sent import Sent
    from chalicelib.usecases.payouts.settlement import Settlement
    from chalicelib.usecases.transactions.chain_cache import Answers
    from chalicelib.wiring.chains import ChainWiring
    from chalicelib.wiring.custody import CustodyWiring
    from chalicelib.wiring.parts import Parts
    from chalicelib.wiring.screening import ScreeningWiring
    from chalicelib.wiring.transactions import TransactionWiring
    from chalicelib.wiring.withdrawals import WithdrawalWiring


class PayoutWiring:
    def __init__(
        self,
        parts: Parts,
        chains: ChainWiring,
        custody: CustodyWiring,
        transactions: TransactionWiring,
        withdrawals: WithdrawalWiring,
        screening: ScreeningWiring,
    ) -> None:
        self._parts, self._chains, self._custody, self._transactions = parts, chains, custody, transactions
        self._withdrawals, self._screening = withdrawals, screening

    @cached_property
    def payouts(self) -> Payouts:
        from chalicelib.usecases.payouts.account_payouts import Payouts
        from chalicelib.usecases.payouts.attempts import PayoutParts
        from chalicelib.usecases.payouts.checks import PayoutChecks
        from chalicelib.usecases.payouts.fees import PayoutFees
        from chalicelib.usecases.payouts.replacement_fees import ReplacementFees

        parts, chains, outgoing = self._parts, self._chains, self._transactions
        store, rules, clock = parts.store, parts.rules, parts.realm_clock
        shared = PayoutParts(
            store,
            rules,
            clock,
            self._custody.signer,
            PayoutChecks(store, rules, clock, self._screening.risk, parts.rates),
            ReplacementFees(store, rules, PayoutFees(store, parts.rates), outgoing.renewals),
            self._withdrawals.fee_budgets,
            parts.rates,
        )
        signing = outgoing.account_signing(chains.second_readers.accounts)
        return Payouts(shared, chains.payer, chains.reader, self.bundle_payouts, signing)

    @cached_property
    def bundle_payouts(self) -> BundlePayouts:
        from chalicelib.usecases.payouts.bundle_payouts import BundlePayouts

        return BundlePayouts(self._bundle_parts(), self._transactions.utxo_engine(self._chains.second_readers.coins))

    def _bundle_parts(self) -> BundleParts:
        from chalicelib.usecases.payouts.bundle_parts import BundleParts
        from chalicelib.usecases.payouts.checks import PayoutChecks
        from chalicelib.usecases.payouts.fees import PayoutFees

        parts, budgets = self._parts, self._withdrawals.fee_budgets
        store, rules, clock, rates = parts.store, parts.rules, parts.realm_clock, parts.rates
        checks, fees = PayoutChecks(store, rules, clock, self._screening.risk, rates), PayoutFees(store, rates)
        return BundleParts(store, rules, clock, self._custody.signer, self._chains.coin_payer, checks, fees, budgets)

    def sent(self, network: Network) -> Sent:
        """The network's payments in flight: one by one, or several in one transaction."""
        from chalicelib.usecases.payouts.sent import SentAlone
        from chalicelib.usecases.wallets.utxos import pays_from_coins

        if pays_from_coins(network):
            from chalicelib.usecases.payouts.bundle_sent import SentTogether

            return SentTogether(self._chains.context(network), self._chains.coin_payer(network))
        return SentAlone(network, self._chains.payer(network), self._transactions.stuck(network), self._parts.rules)

    def fee_quotes(self, network: Network) -> FeeQuotes:
        from chalicelib.usecases.payouts.fee_quotes import FeeQuotes

        return FeeQuotes(self._chains.context(network), self.sent(network))

    def settlement(self, network: Network, answers: Answers | None = None) -> Settlement:
        from chalicelib.usecases.payouts.settlement import Settlement

        finality = self._transactions.finality(network)
        return Settlement(self._chains.context(network), self.sent(network), finality, self._parts.rates, answers)

    def bundle_settlement(self, network: Network, answers: Answers | None = None) -> BundleSettlement:
        """For UTXO networks."""
        from chalicelib.usecases.payouts.bundle_sent import SentTogether
        from chalicelib.usecases.payouts.bundle_settlement import BundleSettlement

        parts, context, payer = self._parts, self._chains.context(network), self._chains.coin_payer(network)
        renewals, finality = self._transactions.renewals, self._transactions.finality(network)
        sent = SentTogether(context, payer)
        return BundleSettlement(context, payer, sent, renewals, finality, parts.rates, answers)

    def bundle_apart(self, network: Network) -> BundleApart:
        """For an operator's decision about a bundle that was never signed."""
        from chalicelib.usecases.payouts.bundle_apart import BundleApart

        return BundleApart(self._chains.context(network), self._chains.coin_payer(network))
