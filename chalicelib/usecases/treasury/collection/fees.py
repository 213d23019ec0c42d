"""Fees of moves between our addresses: their amount, the top-up that pays them, and whether the move is worth them.

`provided` is the one function that decides how the fee of a token's transfer is provided. On EVM networks native coins are sent
there (a top-up). On Tron what the address has of energy and bandwidth counts first, since the estimate does, and TRX is burnt for
the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from chalicelib.domain.addresses.addresses import Wallet, floor_part
from chalicelib.domain.catalogue.catalogue import Coin, Network
from chalicelib.domain.catalogue.coin_settings import NoFreshRate, amount_text, in_usd, limit_units
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.treasury.collections import fee_share_exceeds, topup_units, worth
from chalicelib.domain.treasury.moves import Move
from chalicelib.usecases.base.current_wallets import hot_wallets
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.ports.accounts import ChainPayer, Payment
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import InsufficientFunds
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.wallets.ledger_balances import ledger_balance

LAST_KNOWN_MS = 24 * 3_600_000
UNPRICED_FEE = {"evm": Decimal("0.01"), "tron": Decimal(60)}
"""The most that collecting a coin may cost, top-up included, whose share nobody can tell, in native coins: several times what it
takes on a usual day."""


@dataclass(frozen=True, slots=True)
class Provision:
    """In units of the native coin: the `topup` that has to come before (0: none), what sending it costs, and the transfers."""

    topup: int
    topup_fee: int
    transfers: int

    @property
    def fee(self) -> int:
        return self.topup_fee + self.transfers


class MoveFees:
    """Fees on one account network."""

    def __init__(
        self,
        network: Network,
        store: Store,
        rules: AddressRules,
        clock: Clock,
        payer: Callable[[], ChainPayer],
        reader: Callable[[], ChainReader],
        rates_of: RatesOf,
        percent: int,
    ) -> None:
        self._network, self._store, self._rules, self._clock = network, store, rules, clock
        self._payer, self._reader, self._rates_of, self._percent = payer, reader, rates_of, percent

    @property
    def native(self) -> Coin:
        return self._store.catalogue(self._network.realm).native(self._network.slug)

    def cost(self, coin: Coin, source: str, recipient: str, amount: int) -> int:
        """The fee of one transfer. Raises Refused where it would fail, Unavailable."""
        return self._payer().cost(Payment(source, recipient, coin.contract, amount, 0)).fee

    def provided(self, coin: Coin, source: str, transfers: Sequence[tuple[str, int]], payer: Wallet) -> Provision:
        """How the fee of a token's `transfers` (recipient, units) out of `source` is provided, by the fees of now. `payer`: the
        wallet that pays a top-up.

        Raises Refused where one of them would fail, Unavailable.
        """
        needed = sum(self.cost(coin, source, recipient, amount) for recipient, amount in transfers)
        topup = topup_units(needed, max(0, self.on_hand(source, self.native)))
        return Provision(topup, self._sending(payer, source, topup) if topup else 0, needed)

    def _sending(self, payer: Wallet, source: str, topup: int) -> int:
        """The fee of the top-up itself; 0 where its payer has less than the top-up: its planner waits then."""
        try:
            return self.cost(self.native, payer.address, source, topup)
        except InsufficientFunds:
            return 0

    def booked(self, address: str, coin: Coin) -> WalletBalance:
        """The ledger's balance at an address (public spelling)."""
        return ledger_balance(self._store, self._rules, self._network, address, coin.asset)

    def on_hand(self, address: str, coin: Coin) -> int:
        """Units at an address (public spelling) that both the ledger and the chain know of: coins that are only seen may go again.
        Raises Unavailable."""
        return min(self.booked(address, coin).units, self._reader().balance(address, coin.contract))

    def limit(self, coin: Coin, name: str) -> int | None:
        """A setting of the coin in its units, None where there is none. Raises NoFreshRate."""
        return limit_units(coin, name, self._rates_of(self._network.realm), self._clock.now_ms())

    def floor(self, coin: Coin) -> int:
        """Units of `coin` that each hot wallet keeps: its part of the `hotFloor`. Raises NoFreshRate."""
        wallets = self._store.catalogue(self._network.realm).payout_slots(self._network.id)
        return floor_part(self.limit(coin, "hotFloor") or 0, wallets)

    def emptiest(self, hot: Wallet, coin: Coin) -> Wallet:
        """The hot wallet that has the least of `coin`, for what is gathered: `hot` where it is the only one. Raises Unavailable."""
        if self._store.catalogue(self._network.realm).payout_slots(self._network.id) < 2:
            return hot
        hots = hot_wallets(self._store, self._network.id) or [hot]
        return min(hots, key=lambda wallet: (self.booked(wallet.address, coin).units, wallet.slot))

    def value(self, coin: Coin, units: int) -> Decimal | None:
        """In US dollars; None where nobody knows now."""
        rate = self._rates_of(self._network.realm).fresh(coin.slug, self._clock.now_ms())
        return None if rate is None else worth(units, coin.decimals, rate.decimal)

    def too_dear(self, coin: Coin, amount: int, fee: int) -> bool:
        """Whether `fee` is too large a part of what `amount` is worth.

        A rate that is stale counts for a day, to the disadvantage of the move by half; after that NoFreshRate is raised. Where
        one of the two never had a rate, a threshold that the operator set in coins says what is worth moving, for a fee of at most
        `UNPRICED_FEE`; without such a threshold NoFreshRate is raised.
        """
        if coin.contract is None:
            return fee_share_exceeds(self._percent, Decimal(fee), Decimal(amount))
        if not self._percent:
            return False
        native = self.native
        known, price = self._last_known(coin), self._last_known(native)
        if known is None or price is None:
            if not in_usd(coin) and Decimal(amount_text(coin, "collectThreshold")):
                most = UNPRICED_FEE["tron" if self._network.family == "tron" else "evm"]
                return worth(fee, native.decimals, Decimal(1)) > most
            raise NoFreshRate(coin if known is None else native, "collectThreshold")
        (rate, stale), (native_rate, native_stale) = known, price
        times = Decimal((2 if stale else 1) * (2 if native_stale else 1))
        fee_usd = worth(fee, native.decimals, native_rate) * times
        return fee_share_exceeds(self._percent, fee_usd, worth(amount, coin.decimals, rate))

    def _last_known(self, coin: Coin) -> tuple[Decimal, bool] | None:
        """The rate, and whether it is stale; None where there was never one. Raises NoFreshRate for one of more than a day ago:
        dust must not become worth moving by the silence of those who say what it is worth."""
        now, rates = self._clock.now_ms(), self._rates_of(self._network.realm)
        rate = rates.get(coin.slug)
        if rate is None:
            return None
        if now - rate.at > LAST_KNOWN_MS:
            raise NoFreshRate(coin, "collectThreshold")
        return rate.decimal, rates.fresh(coin.slug, now) is None

    def spoken_for(self, wallet: Wallet, coin: Coin) -> int:
        """Units of `coin` that moves which are not signed yet will take from a service wallet. How many moves there are is bounded
        where they are planned (`collect_run.MOST_UNDER_WAY`)."""
        units = 0
        for works in pages_of(self._store, "move", self._network.id):
            moves: list[Move | None] = self._store.get_many(
                [(Move, {"network": self._network.id, "id": work.id}) for work in works]
            )
            mine = [m for m in moves if m is not None and m.state in ("planned", "built") and m.source == wallet.address]
            units += sum(move.units for move in mine if move.asset == coin.asset)
        return units
