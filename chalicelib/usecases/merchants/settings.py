"""A merchant's settings: enforcement of its whitelist, and the signers of large withdrawals.

While multisig is enabled its signers guard the settings, too: a stolen key with `merchant:write` must not be able to switch off
what protects from stolen keys. Only turning the whitelist's enforcement on needs no signature. A new signer signs the change too:
so the keys are known to exist, and no key of the API makes signers of strangers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.ids import TenantId
from chalicelib.domain.merchants.settings import MOST_RESETS, MerchantSettings, SettingsReset
from chalicelib.domain.times import iso
from chalicelib.domain.versions import next_version, version_after
from chalicelib.domain.withdrawals.approvals import MultisigConfig, Signer, settings_text
from chalicelib.encoding.ed25519 import check_public_key
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.merchants.shop import Shop, Wanted, changed, keys_of
from chalicelib.usecases.merchants.signer_guard import Signatures, check_signed
from chalicelib.usecases.ports.changes import Change, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store

MOST_SIGNERS = 20


class MerchantSettingsService:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def get(self, tenant: TenantId) -> MerchantSettings:
        """The stored settings, or the defaults: nothing enforced, nobody signs."""
        return self._store.get(MerchantSettings, tenant=tenant) or MerchantSettings(tenant)

    def with_shop(self, tenant: TenantId) -> tuple[MerchantSettings, Shop]:
        """The same, and the shop as its payers see it: one read."""
        settings, looks, logo = self._store.get_many([(MerchantSettings, {"tenant": tenant}), *keys_of(tenant)])
        return settings or MerchantSettings(tenant), Shop.of(tenant, looks, logo)

    def change(
        self,
        tenant: TenantId,
        by: str,
        whitelist_enforced: bool | None,
        multisig: MultisigConfig | None,
        signatures: Signatures = (),
        refund_daily_limit_usd: str | None = None,
        shop: Wanted | None = None,
    ) -> tuple[MerchantSettings, Shop]:
        """Replace what is not None, and what `shop` names of the shop. `by` is the key's id; `signatures` are pairs of signer id
        and signature over the text of the change, which the shop is no part of. All in one transaction. Raises BusinessRule.
        """
        if multisig is not None:
            check_config(multisig)

        def decide() -> tuple[MerchantSettings, Shop]:
            before, shop_before = self.with_shop(tenant)
            now = self._clock.now_ms()
            shop_after, changes = changed(shop_before, shop or {}, by, now)
            after = replace(
                before,
                whitelist_enforced=before.whitelist_enforced if whitelist_enforced is None else whitelist_enforced,
                multisig=before.multisig if multisig is None else multisig,
                refund_daily_limit_usd=before.refund_daily_limit_usd if refund_daily_limit_usd is None else refund_daily_limit_usd,
            )
            own: list[Change] = []
            if after != before:
                new = _new_signers(before.multisig, after.multisig)
                if new or (before.multisig.enabled and after != replace(before, whitelist_enforced=True)):
                    check_signed(settings_text(tenant, before.version, guarded(after)), before.multisig, new, signatures)
                after = replace(after, updated_at=now, updated_by=by, version=version_after(before))
                own = [Save(after)]
            if own or changes:
                self._store.commit([*own, *changes])
            return after, shop_after

        return until_settled(decide)

    def reset(self, tenant: TenantId, by: str) -> MerchantSettings:
        """The operator ends the need of signatures, for merchants whose signers are lost; noted in the record.

        Raises BusinessRule where no signature is needed.
        """

        def decide() -> MerchantSettings:
            before = self.get(tenant)
            if before.multisig == MultisigConfig():
                raise BusinessRule("multisig_config", "there are no signers")
            now = self._clock.now_ms()
            done = SettingsReset(now, by, tuple(signer.id for signer in before.multisig.signers))
            after = replace(
                next_version(before),
                multisig=MultisigConfig(),
                resets=(*before.resets, done)[-MOST_RESETS:],
                updated_at=now,
                updated_by=by,
            )
            self._store.commit([Save(after)])
            return after

        return until_settled(decide)


def _new_signers(before: MultisigConfig, after: MultisigConfig) -> list[Signer]:
    """Those whose signature counts from now on and did not before. A role is only a word: it makes nobody new."""
    if not after.enabled:
        return []
    known = {(signer.id, signer.public_key) for signer in before.signers} if before.enabled else set()
    return [signer for signer in after.signers if (signer.id, signer.public_key) not in known]


def check_config(config: MultisigConfig) -> None:
    """Raises BusinessRule for a configuration that nobody could fulfil, or with an invalid key."""
    seen: dict[str, str] = {}
    for place, signer in enumerate(config.signers):
        where = f"multisig_config.signers.{place}"
        try:
            check_public_key(bytes.fromhex(signer.public_key))
        except ValueError as error:
            raise BusinessRule(f"{where}.public_key", str(error)) from error
        if signer.id in seen:
            raise BusinessRule(f"{where}.id", "must be there only once")
        if signer.public_key in seen.values():
            raise BusinessRule(f"{where}.public_key", "must be there only once: a key is one signer's")
        seen[signer.id] = signer.public_key
    if config.total_signers != len(config.signers):
        raise BusinessRule("multisig_config.total_signers", f"must be the number of signers: {len(config.signers)}")
    if config.required_signatures > config.total_signers:
        raise BusinessRule("multisig_config.required_signatures", "must not be more than total_signers")
    if config.enabled and config.required_signatures < 1:
        raise BusinessRule("multisig_config.required_signatures", "must be at least 1 where multisig is enabled")


def guarded(settings: MerchantSettings) -> dict[str, Any]:
    """The settings as they stand in the text that signers sign: those that everybody has, and the daily limit where there is
    one."""
    limit = settings.refund_daily_limit_usd
    limited = {} if limit == "0" else {"refundDailyLimitUSD": limit}
    return {"whitelist_enforced": settings.whitelist_enforced, "multisig_config": _config(settings.multisig), **limited}


def _config(config: MultisigConfig) -> Mapping[str, Any]:
    return {
        "enabled": config.enabled,
        "required_signatures": config.required_signatures,
        "total_signers": config.total_signers,
        "threshold_amount": config.threshold_amount,
        "signers": [{"id": s.id, "public_key": s.public_key, "role": s.role} for s in config.signers],
    }


def settings_view(settings: MerchantSettings) -> dict[str, Any]:
    """The public record."""
    updated = None if settings.updated_at is None else iso(settings.updated_at)
    shown = {**guarded(settings), "refundDailyLimitUSD": settings.refund_daily_limit_usd}
    return {**shown, "revision": settings.version, "updated_at": updated}
