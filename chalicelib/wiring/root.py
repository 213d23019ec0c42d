"""The composition root: the wiring of each capability, made at first use from the shared parts and from what it rests on."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from chalicelib.wiring.parts import Parts

if TYPE_CHECKING:
    from chalicelib.settings import Settings
    from chalicelib.wiring.archive import ArchiveWiring
    from chalicelib.wiring.base import BaseWiring
    from chalicelib.wiring.catalogue import CatalogueWiring
    from chalicelib.wiring.chains import ChainWiring
    from chalicelib.wiring.coin_moves import CoinMoveWiring
    from chalicelib.wiring.custody import CustodyWiring
    from chalicelib.wiring.deposits import DepositWiring
    from chalicelib.wiring.invoices import InvoiceWiring
    from chalicelib.wiring.merchants import MerchantWiring
    from chalicelib.wiring.moves import MoveWiring
    from chalicelib.wiring.nodes import NodeWiring
    from chalicelib.wiring.payment_links import PaymentLinkWiring
    from chalicelib.wiring.payouts import PayoutWiring
    from chalicelib.wiring.reconciliation import ReconciliationWiring
    from chalicelib.wiring.recovery import RecoveryWiring
    from chalicelib.wiring.refunds import RefundWiring
    from chalicelib.wiring.sandbox import SandboxWiring
    from chalicelib.wiring.scanning import ScanningWiring
    from chalicelib.wiring.screening import ScreeningWiring
    from chalicelib.wiring.simulated import SimulatedWiring
    from chalicelib.wiring.stakes import StakeWiring
    from chalicelib.wiring.stray_payments import StrayPaymentWiring
    from chalicelib.wiring.transactions import TransactionWiring
    from chalicelib.wiring.wallets import WalletWiring
    from chalicelib.wiring.webhooks import WebhookWiring
    from chalicelib.wiring.withdrawals import WithdrawalWiring


class Wiring:
    """One attribute per capability. A capability's module is imported when something asks for it."""

    def __init__(self, settings: Settings) -> None:
        self.parts = Parts(settings)

    @cached_property
    def base(self) -> BaseWiring:
        from chalicelib.wiring.base import BaseWiring

        return BaseWiring(self.parts)

    @cached_property
    def archive(self) -> ArchiveWiring:
        from chalicelib.wiring.archive import ArchiveWiring

        return ArchiveWiring(self.parts)

    @cached_property
    def merchants(self) -> MerchantWiring:
        from chalicelib.wiring.merchants import MerchantWiring

        return MerchantWiring(self.parts)

    @cached_property
    def custody(self) -> CustodyWiring:
        from chalicelib.wiring.custody import CustodyWiring

        return CustodyWiring(self.parts)

    @cached_property
    def nodes(self) -> NodeWiring:
        from chalicelib.wiring.nodes import NodeWiring

        return NodeWiring(self.parts)

    @cached_property
    def simulated(self) -> SimulatedWiring:
        from chalicelib.wiring.simulated import SimulatedWiring

        return SimulatedWiring(self.parts)

    @cached_property
    def chains(self) -> ChainWiring:
        from chalicelib.wiring.chains import ChainWiring

        return ChainWiring(self.parts, self.nodes, self.simulated)

    @cached_property
    def sandbox(self) -> SandboxWiring:
        from chalicelib.wiring.sandbox import SandboxWiring

        return SandboxWiring(self.parts, self.simulated)

    @cached_property
    def catalogue(self) -> CatalogueWiring:
        from chalicelib.wiring.catalogue import CatalogueWiring

        return CatalogueWiring(self.parts, self.chains, self.sandbox)

    @cached_property
    def wallets(self) -> WalletWiring:
        from chalicelib.wiring.wallets import WalletWiring

        return WalletWiring(self.parts, self.chains, self.custody)

    @cached_property
    def screening(self) -> ScreeningWiring:
        from chalicelib.wiring.screening import ScreeningWiring

        return ScreeningWiring(self.parts, self.chains)

    @cached_property
    def invoices(self) -> InvoiceWiring:
        from chalicelib.wiring.invoices import InvoiceWiring

        return InvoiceWiring(self.parts, self.wallets, self.chains)

    @cached_property
    def payment_links(self) -> PaymentLinkWiring:
        from chalicelib.wiring.payment_links import PaymentLinkWiring

        return PaymentLinkWiring(self.parts, self.invoices)

    @cached_property
    def webhooks(self) -> WebhookWiring:
        from chalicelib.wiring.webhooks import WebhookWiring

        return WebhookWiring(self.parts)

    @cached_property
    def deposits(self) -> DepositWiring:
        from chalicelib.wiring.deposits import DepositWiring

        return DepositWiring(self.parts)

    @cached_property
    def withdrawals(self) -> WithdrawalWiring:
        from chalicelib.wiring.withdrawals import WithdrawalWiring

        return WithdrawalWiring(self.parts)

    @cached_property
    def refunds(self) -> RefundWiring:
        from chalicelib.wiring.refunds import RefundWiring

        return RefundWiring(self.parts, self.withdrawals)

    @cached_property
    def scanning(self) -> ScanningWiring:
        from chalicelib.wiring.scanning import ScanningWiring

        return ScanningWiring(self.parts, self.chains, self.deposits, self.nodes)

    @cached_property
    def stray_payments(self) -> StrayPaymentWiring:
        from chalicelib.wiring.stray_payments import StrayPaymentWiring

        return StrayPaymentWiring(self.parts, self.chains, self.withdrawals)

    @cached_property
    def transactions(self) -> TransactionWiring:
        from chalicelib.wiring.transactions import TransactionWiring

        return TransactionWiring(self.parts, self.chains)

    @cached_property
    def payouts(self) -> PayoutWiring:
        from chalicelib.wiring.payouts import PayoutWiring

        return PayoutWiring(self.parts, self.chains, self.custody, self.transactions, self.withdrawals, self.screening)

    @cached_property
    def coin_moves(self) -> CoinMoveWiring:
        from chalicelib.wiring.coin_moves import CoinMoveWiring

        return CoinMoveWiring(self.parts, self.chains, self.custody, self.transactions)

    @cached_property
    def stakes(self) -> StakeWiring:
        from chalicelib.wiring.stakes import StakeWiring

        return StakeWiring(self.parts, self.chains, self.simulated, self.custody, self.transactions)

    @cached_property
    def moves(self) -> MoveWiring:
        from chalicelib.wiring.moves import MoveWiring

        return MoveWiring(self.parts, self.chains, self.custody, self.transactions, self.stakes, self.coin_moves)

    @cached_property
    def reconciliation(self) -> ReconciliationWiring:
        from chalicelib.wiring.reconciliation import ReconciliationWiring

        return ReconciliationWiring(self.parts, self.chains)

    @cached_property
    def recovery(self) -> RecoveryWiring:
        from chalicelib.wiring.recovery import RecoveryWiring

        return RecoveryWiring(self.parts, self.chains, self.custody, self.wallets, self.deposits)
