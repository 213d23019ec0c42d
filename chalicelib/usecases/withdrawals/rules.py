"""The rules of withdrawals: one call reads all facts, and every rule may refuse.

The same for one withdrawal and for a batch, whose outputs are decided together: all of them, or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chalicelib.domain.addresses.addresses import Wallet, Watched, wallet_key, watched_key
from chalicelib.domain.catalogue.catalogue import Catalogue, Coin, Network
from chalicelib.domain.catalogue.coin_settings import in_usd, limit_units
from chalicelib.domain.catalogue.rates import STALE_MS, Rates, RatesOf
from chalicelib.domain.chain import FeeQuote
from chalicelib.domain.errors import BusinessRule, InsufficientBalance, InvalidAddress, InvalidParameter
from chalicelib.domain.ids import AssetId, TenantId, network_parts
from chalicelib.domain.ledger import Balance
from chalicelib.domain.merchants.settings import MerchantSettings
from chalicelib.domain.money import format_units
from chalicelib.domain.screening.grey_list import GreyListEntry
from chalicelib.domain.withdrawals.approvals import ApprovalReason
from chalicelib.domain.withdrawals.fees import SAME_COIN, Charge, in_coin, rate_text
from chalicelib.domain.withdrawals.limits import DAY_MS, MOST_OWN, Paid, PayeeSpent, Spent, used, with_payments
from chalicelib.domain.withdrawals.whitelist import WhitelistEntry, entry_id
from chalicelib.domain.withdrawals.withdrawals import Priority, fee_at
from chalicelib.usecases.base.address_forms import form_of
from chalicelib.usecases.base.awaited_deposits import balance_keys, owned_of
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.screening.withdrawals import is_service, token_contracts, unwatched, unwatched_words
from chalicelib.usecases.withdrawals.facts import NOTHING_RESERVED, Facts, Output, Reserved, Ruling
from chalicelib.usecases.withdrawals.whitelist_limits import check_limit, check_whitelist


class Rules:
    """Decides about payments of one coin. `outputs` have the public spelling of their addresses; see `recipients`."""

    def __init__(
        self, store: Store, addresses: AddressRules, rates_of: RatesOf, catalogue: Catalogue, coin: Coin, merchant_pays: bool
    ) -> None:
        self._store, self._addresses, self._rates_of = store, addresses, rates_of
        self._coin, self._catalogue, self._merchant_pays = coin, catalogue, merchant_pays
        self.network: Network = catalogue.networks[network_parts(coin.network)[1]]

    @property
    def coin(self) -> Coin:
        return self._coin

    @property
    def fee_asset(self) -> AssetId:
        """The native coin of the network, which fees are paid in."""
        return self._catalogue.native(self.network.slug).asset

    def recipients(self, outputs: Sequence[Output]) -> list[Output]:
        """`outputs` with their addresses in the public spelling. Raises InvalidAddress."""
        slug = self.network.slug
        read: list[Output] = []
        problems: list[tuple[Output, str]] = []
        for output in outputs:
            try:
                address = self._addresses.normalize(self.network.id, output.to_address)
            except ValueError as error:
                problems.append((output, str(error)))
            else:
                read.append(Output(address, output.amount, output.address_field, output.amount_field))
        if problems:
            first, reason = problems[0]
            details: dict[str, Any] = {"address": first.to_address[:120], "network": slug}
            if "." in first.address_field:
                details["fields"] = [output.address_field for output, _ in problems]
            raise InvalidAddress(f"Not an address of {slug}: {reason}", details)
        return read

    def allow(
        self,
        tenant: TenantId,
        outputs: Sequence[Output],
        priority: Priority,
        from_address: str | None,
        now: int,
        reserved: Reserved = NOTHING_RESERVED,
    ) -> Ruling:
        """Raises BusinessRule, DailyLimitExceeded, InsufficientBalance, InvalidParameter (`from_address`), Unavailable."""
        self._check_amounts(outputs, now)
        facts = self._facts(tenant, outputs)
        if from_address is not None:
            self._check_source(facts.hot, from_address)
        self._check_destinations(facts, outputs)
        check_whitelist(self._coin, facts, outputs, now, reserved)
        total = sum(output.amount for output in outputs)
        self._check_day(facts.spent, total, now)
        quoted = None if facts.quote is None else facts.quote.fees.get(self._coin.slug)
        fee = fee_at(quoted or 0, priority)
        if quoted is not None and not self._merchant_pays:
            self._check_worth(outputs, fee, now)
        charges = self._charges(facts, outputs, None if quoted is None else fee, now)
        charged = sum(charge.units for charge in charges)
        self._check_balance(facts.owned.balance, total - reserved.units, charged)
        limited = tuple((entry := facts.entries.get(o.to_address)) is not None and entry.limited for o in outputs)
        reasons = self._all_reasons(facts, outputs, now)
        payments = [
            Paid(o.to_address, o.amount, counts, "multisig" in why)
            for o, counts, why in zip(outputs, limited, reasons, strict=True)
        ]
        spent, own = with_payments(facts.spent, facts.own, now, payments)
        if len(own) > MOST_OWN:
            last = list(own)[MOST_OWN]
            where = next(output.address_field for output in outputs if output.to_address == last)
            raise BusinessRule(
                where,
                f"so many addresses with limits were paid in {self._coin.symbol} within 30 days that a batch can have only"
                f" {MOST_OWN} more: pay to this one by itself",
            )
        return Ruling(facts.owned, spent, tuple(own.values()), fee, charges, reasons, limited, facts.settings)

    def allow_link(self, tenant: TenantId, output: Output, now: int) -> Facts:
        """What can be told of a payment before its address is known: its amount and the balance. `output` has no address yet.
        Raises BusinessRule, InsufficientBalance, Unavailable."""
        self._check_amounts([output], now)
        facts = self._facts(tenant, ())
        quoted = None if facts.quote is None else facts.quote.fees.get(self._coin.slug)
        if quoted is not None and not self._merchant_pays:
            self._check_worth([output], quoted, now)
        self._check_balance(facts.owned.balance, output.amount, 0)
        return facts

    def _check_balance(self, balance: Balance, units: int, charged: int) -> None:
        needed = units + charged
        if needed and balance.available < needed:
            details = {
                "requested": self._shown(needed),
                **({"fee_charged": self._shown(charged)} if charged else {}),
                "available": self._shown(max(0, balance.available)),
                "coin": self._coin.slug,
            }
            raise InsufficientBalance(f"The balance of {self._coin.slug} on {self.network.slug} is not enough", details)

    def _charges(self, facts: Facts, outputs: Sequence[Output], fee: int | None, now: int) -> tuple[Charge, ...]:
        """The charge of each payment beside its amount. Raises BusinessRule where it can not be told now.

        A merchant who pays the fee is charged the estimate. A payment to an address of this service, of any merchant, is charged
        the whole way, also where the operator pays fees: what comes back could be paid again, all day (money rule 14).
        """
        return tuple(
            self._charge(facts.quote, fee, now, whole=output.to_address in facts.ours)
            if self._merchant_pays or output.to_address in facts.ours
            else Charge()
            for output in outputs
        )

    def _charge(self, quote: FeeQuote | None, fee: int | None, now: int, *, whole: bool) -> Charge:
        coin, slug = self._coin, self.network.slug
        collecting = 0
        if whole:  # a price of yesterday is none
            fresh = quote is not None and now - quote.at <= STALE_MS
            collecting = quote.collecting.get(coin.slug, 0) if quote is not None and fresh else 0
        if fee is None or (whole and not collecting):
            raise BusinessRule("network", f"there is no fee estimate for {coin.slug} on {slug} yet: try again soon")
        rate = self._rate(now)
        if rate is None:
            raise BusinessRule("coin", f"the network fee has no value in {coin.slug} now: a fresh rate is missing")
        fixed = in_coin(collecting, rate)
        return Charge(in_coin(fee, rate) + fixed, fixed, rate)

    def _rate(self, now: int) -> str | None:
        """Units of the coin for one of the network's native coin; None where a fresh rate is missing."""
        coin, native = self._coin, self._catalogue.native(self.network.slug)
        if coin.contract is None:
            return SAME_COIN
        rates = self._rates_of(self.network.realm)
        worth, price = rates.fresh(native.slug, now), rates.fresh(coin.slug, now)
        if worth is None or price is None or not price.decimal:
            return None
        return rate_text(worth.decimal, native.decimals, price.decimal, coin.decimals)

    def _check_worth(self, outputs: Sequence[Output], fee: int, now: int) -> None:
        """Where the operator pays the fee, nobody burns more of it than is paid out. Nothing is asked where no rate is known."""
        rate = self._rate(now)
        least = None if rate is None else in_coin(fee, rate)
        for output in outputs:
            if least is not None and output.amount < least:
                raise BusinessRule(
                    output.amount_field,
                    f"must be at least {self._shown(least)} {self._coin.symbol}: the network fee is worth as much",
                )

    def _facts(self, tenant: TenantId, outputs: Sequence[Output]) -> Facts:
        coin, network = self._coin, self.network
        addresses = list(dict.fromkeys(output.to_address for output in outputs))
        mine = balance_keys(tenant, coin.asset)
        wanted: list[tuple[type[Any], dict[str, str]]] = [
            *mine,
            (Spent, {"tenant": tenant, "asset": coin.asset}),
            (FeeQuote, {"network": coin.network}),
            (MerchantSettings, {"tenant": tenant}),
            wallet_key(coin.network, "hot"),
        ]
        fixed = len(wanted)
        wanted += [(WhitelistEntry, {"tenant": tenant, "id": entry_id(tenant, coin.network, a)}) for a in addresses]
        wanted += [
            (
                GreyListEntry,
                {"realm": network.realm, "network": network.slug, "address": form_of(self._addresses, network, a)},
            )
            for a in addresses
        ]
        # One call, as long as all of it fits into one: of many addresses, few have limits, and these are read afterwards.
        together = fixed + 4 * len(addresses) <= 100
        wanted += [watched_key(network, form_of(self._addresses, network, a)) for a in addresses]
        own = [(PayeeSpent, {"tenant": tenant, "asset": coin.asset, "address": a}) for a in addresses]
        found = self._store.get_many([*wanted, *own] if together else wanted)
        spent, quote, settings, hot = found[len(mine) : fixed]
        entries: list[WhitelistEntry | None] = found[fixed : fixed + len(addresses)]
        grey = found[fixed + len(addresses) : fixed + 2 * len(addresses)]
        watched: list[Watched | None] = found[fixed + 2 * len(addresses) : fixed + 3 * len(addresses)]
        if together:
            apart = found[fixed + 3 * len(addresses) :]
        else:
            wanted = [key for key, entry in zip(own, entries, strict=True) if entry is not None and entry.limited]
            apart = self._store.get_many(wanted) if wanted else []
        return Facts(
            owned=owned_of(tenant, coin.asset, found[: len(mine)]),
            spent=spent or Spent(tenant, coin.asset),
            own={record.address: record for record in apart if record is not None},
            quote=quote,
            settings=settings or MerchantSettings(tenant),
            hot=hot,
            entries={e.address: e for e in entries if e is not None and e.removed_at is None},
            grey=frozenset(a for a, e in zip(addresses, grey, strict=True) if e is not None),
            ours={a: w for a, w in zip(addresses, watched, strict=True) if w is not None},
        )

    def _shown(self, units: int) -> str:
        return format_units(units, self._coin.decimals)

    def _limit(self, name: str, now: int) -> int | None:
        """A limit of the coin in units; None: there is none."""
        rates = self._rates_of(self.network.realm) if in_usd(self._coin) else Rates()
        return limit_units(self._coin, name, rates, now)

    def _check_amounts(self, outputs: Sequence[Output], now: int) -> None:
        coin, slug = self._coin, self.network.slug
        if self.network.status != "active":
            raise BusinessRule("network", f"{slug} is not active here")
        if coin.status != "ACTIVE":
            raise BusinessRule("coin", f"{coin.slug} on {slug} is not active")
        least, most = self._limit("minValue", now), self._limit("maxValue", now)
        for output in outputs:
            if least is not None and output.amount < least:
                raise BusinessRule(output.amount_field, f"must be at least {self._shown(least)} {coin.symbol}")
            if most is not None and output.amount > most:
                raise BusinessRule(output.amount_field, f"must be at most {self._shown(most)} {coin.symbol}")

    def _check_source(self, hot: Wallet | None, from_address: str) -> None:
        slug = self.network.slug
        try:
            asked = self._addresses.normalize(self.network.id, from_address)
        except ValueError:
            asked = from_address
        if hot is None or asked != hot.address:
            raise InvalidParameter.one("from_address_id", from_address, f"must be the address of a hot wallet of {slug}")

    def _check_destinations(self, facts: Facts, outputs: Sequence[Output]) -> None:
        """Nobody is paid at a wallet of the service itself, nor where it would be lost: at a token's contract, and at an address of
        ours that nobody watches on this network."""
        contracts = token_contracts(self._catalogue, self.network, self._addresses)
        for output in outputs:
            ours = facts.ours.get(output.to_address)
            if is_service(ours):
                raise BusinessRule(output.address_field, "is a wallet of the service itself")
            if ours is not None and unwatched(ours, self.network):
                raise BusinessRule(output.address_field, unwatched_words(self.network))
            if form_of(self._addresses, self.network, output.to_address) in contracts:
                raise BusinessRule(output.address_field, "is the contract of a token: what is sent there is lost")

    def _check_day(self, spent: Spent, total: int, now: int) -> None:
        most = self._limit("maxValueDaily", now)
        if most is not None:
            check_limit(
                self._coin, f"daily limit of {self._coin.slug} on {self.network.slug}", most, used(spent.day, now, DAY_MS), total
            )

    def _all_reasons(self, facts: Facts, outputs: Sequence[Output], now: int) -> tuple[tuple[ApprovalReason, ...], ...]:
        """For each output, who has to agree. What no signer signs stays under multisig's threshold in any 24 hours, so that no
        large payment is made of small ones: outputs count one after the other, as withdrawals by themselves would."""
        free = used(facts.spent.unsigned, now, DAY_MS)
        found: list[tuple[ApprovalReason, ...]] = []
        for output in outputs:
            reasons: list[ApprovalReason] = []
            if facts.settings.multisig.covers(free + output.amount, self._coin.decimals):
                reasons.append("multisig")
            else:
                free += output.amount
            if output.to_address in facts.grey:
                reasons.append("grey_list")
            found.append(tuple(reasons))
        return tuple(found)
