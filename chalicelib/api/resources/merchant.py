"""The caller's own merchant, and its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.errors import InsufficientPermissions
from chalicelib.api.fields import amount_schema
from chalicelib.api.models import ChangeSignature, Request
from chalicelib.api.resources.whitelist import PlainAmount, plain_amount, signed
from chalicelib.api.routes import endpoint
from chalicelib.api.shop_fields import ShopChange, problems_of
from chalicelib.domain.catalogue.catalogue import Catalogue
from chalicelib.domain.errors import FieldProblem, NotFound
from chalicelib.domain.merchants.merchants import Merchant
from chalicelib.domain.times import iso
from chalicelib.domain.withdrawals.approvals import MultisigConfig, Signer
from chalicelib.encoding.ed25519 import read_bytes
from chalicelib.usecases.merchants.settings import MOST_SIGNERS, settings_view


def _public_key(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return read_bytes(value, 32).hex()
    except ValueError as error:
        raise PydanticCustomError("constraint", "{text}", {"text": str(error)}) from None


def _usd(value: Any) -> str:
    text = plain_amount(value)
    if len(text.partition(".")[2]) > USD_DECIMALS or len(text) > MOST_USD_DIGITS:
        words = f"must have at most {USD_DECIMALS} decimals and {MOST_USD_DIGITS} characters"
        raise PydanticCustomError("constraint", "{text}", {"text": words})
    return text


USD_DECIMALS, MOST_USD_DIGITS = 2, 20
UsdLimit = Annotated[str, BeforeValidator(_usd), amount_schema(positive=False)]


class SignerRequest(Request):
    """Somebody whose signature counts."""

    id: Annotated[
        str,
        Field(
            min_length=1,
            max_length=64,
            pattern=r"^[A-Za-z0-9._-]{1,64}$",
            description="What signatures name the signer by: ASCII letters, digits, `.`, `_`, `-`.",
            examples=["alice"],
        ),
    ]
    public_key: Annotated[
        str,
        BeforeValidator(_public_key),
        Field(
            description="Ed25519 (RFC 8032): 32 bytes, in hex or base64.",
            examples=["d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"],
        ),
    ]
    role: Annotated[str, Field(max_length=64, description="For people; it decides nothing.", examples=["finance"])] = ""


class MultisigRequest(Request):
    """Who has to sign large withdrawals."""

    enabled: Annotated[bool, Field(description="Whether it counts.")]
    required_signatures: Annotated[
        int, Field(ge=0, le=MOST_SIGNERS, description="Signatures of different signers that are needed.", examples=[2])
    ] = 0
    total_signers: Annotated[int, Field(ge=0, le=MOST_SIGNERS, description="The number of signers.", examples=[3])] | None = None
    threshold_amount: Annotated[
        PlainAmount,
        Field(
            description="Withdrawals of this much or more, in coin units of whichever coin, need the signatures.", examples=["10"]
        ),
    ] = "0"
    signers: Annotated[
        list[SignerRequest], Field(max_length=MOST_SIGNERS, description="Whose signatures count.", default_factory=list)
    ]

    def config(self) -> MultisigConfig:
        return MultisigConfig(
            enabled=self.enabled,
            required_signatures=self.required_signatures,
            total_signers=len(self.signers) if self.total_signers is None else self.total_signers,
            threshold_amount=self.threshold_amount,
            signers=tuple(Signer(signer.id, signer.public_key, signer.role) for signer in self.signers),
        )


CHANGEABLE = ("whitelist_enforced", "multisig_config", "refundDailyLimitUSD", "shop")


class SettingsChange(Request):
    """What is not sent stays as it is."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [{"required": [name]} for name in CHANGEABLE],
            "examples": [{"whitelist_enforced": True}],
        }
    )

    whitelist_enforced: Annotated[bool, Field(description="Refuse withdrawals to other addresses.", examples=[True])] | None = None
    multisig_config: Annotated[MultisigRequest | None, Field(description="Who has to sign large withdrawals.")] = None
    refundDailyLimitUSD: Annotated[
        UsdLimit | None,
        Field(
            description="The most in US dollars that refunds and payout links may come to in 24 hours while `whitelist_enforced` "
            "is on; 0: none is allowed then. Without enforcement it does not count.",
            examples=["500"],
        ),
    ] = None
    shop: Annotated[ShopChange | None, Field(description="What payers see of the shop. No signature is needed for it.")] = None
    signatures: Annotated[
        list[ChangeSignature],
        Field(
            max_length=MOST_SIGNERS,
            description="Of each new signer; while multisig is enabled, of present ones too. The refusal shows the text to sign.",
            default_factory=list,
        ),
    ]

    @classmethod
    def cross(cls, sent: Mapping[str, Any], wrong: frozenset[str], catalogue: Catalogue) -> list[FieldProblem]:
        if all(sent.get(name) is None for name in CHANGEABLE):
            return [FieldProblem("body", None, (f"must have {', '.join(CHANGEABLE[:-1])} or {CHANGEABLE[-1]}",))]
        shop = sent.get("shop")
        empty = ShopChange.changes_nothing(shop) if isinstance(shop, dict) else []
        return [replace(problem, field="shop") for problem in empty]

    @classmethod
    def problems_of(cls, ctx: Ctx, sent: Mapping[str, Any], wrong: frozenset[str]) -> list[FieldProblem]:
        return problems_of(sent.get("shop"), allow_private=ctx.services.settings.webhooks_private)


@endpoint(
    "GET", "/merchant", family="envelope", permission="merchant:read", answer="merchant.Merchant",
    errors=("NOT_FOUND",), summary="The merchant that the key belongs to",
)  # fmt: skip
def get_merchant(ctx: Ctx) -> Answer:
    """Which limits count for it, and whether this key is of the live realm or of the sandbox."""
    merchant = ctx.services.store.get(Merchant, id=ctx.key.merchant)
    if merchant is None:
        raise NotFound("This key's merchant is not registered", {"id": ctx.key.merchant})
    return Answer(
        {
            "id": merchant.id,
            "name": merchant.name,
            "plan": merchant.plan,
            "environment": ctx.realm,
            "createdAt": iso(merchant.created_at),
        }
    )


@endpoint(
    "GET", "/merchant/settings", family="envelope", permission="merchant:read", answer="merchant.MerchantSettings",
    summary="What the merchant has decided about its withdrawals, and how payers see its shop",
)  # fmt: skip
def get_settings(ctx: Ctx) -> Answer:
    """Test and live keys have settings of their own. `revision` counts the changes that signers guard; signed changes name it."""
    settings, shop = ctx.services.merchant_settings.with_shop(ctx.tenant)
    return Answer(settings_view(settings) | {"shop": shop.view()})


@endpoint(
    "PUT", "/merchant/settings", family="envelope", permission="merchant:write", body=SettingsChange,
    answer="merchant.MerchantSettings", summary="Enforce the whitelist, ask for signatures on large withdrawals, name the shop",
)  # fmt: skip
def change_settings(ctx: Ctx, body: SettingsChange) -> Answer:
    """`multisig_config` is replaced as a whole, and needs the permission `withdrawals:write` beside `merchant:write`. Each signer
    who is new has to sign the change (when multisig is enabled: each signer), and while it is enabled, every change but
    turning `whitelist_enforced` on needs `required_signatures` of the present signers: a key alone must not be able to switch
    off what protects from stolen keys, nor to lock the merchant out. The text to sign is what the refusal shows: send the
    change without signatures first. `threshold_amount` is in coin units, whichever the coin, and compared with all that was
    withdrawn of the coin in 24 hours without signatures. Withdrawals that wait already are checked by the configuration of their
    creation. While `whitelist_enforced` is on, refunds and payout links go to any address, up to `refundDailyLimitUSD`; the text
    to sign has it where it is not 0.

    `shop` changes field by field and is guarded by no signer: no money follows from it. Pages show it within 30 seconds."""
    if body.multisig_config is not None and "withdrawals:write" not in ctx.key.permissions:
        raise InsufficientPermissions("multisig_config needs withdrawals:write", "withdrawals:write", ctx.key.permissions)
    multisig = None if body.multisig_config is None else body.multisig_config.config()
    shop = None if body.shop is None else body.shop.wanted(allow_private=ctx.services.settings.webhooks_private)
    changed, shown = ctx.services.merchant_settings.change(
        ctx.tenant, ctx.key.id, body.whitelist_enforced, multisig, signed(body.signatures), body.refundDailyLimitUSD, shop
    )
    ctx.services.shops.forget(ctx.tenant)
    return Answer(settings_view(changed) | {"shop": shown.view()})
