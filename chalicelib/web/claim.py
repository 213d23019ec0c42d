"""The page of a claim link: a form that asks for an address, shows it back, and says how far its payment is.

It needs no script: the only one that it loads shows times in the reader's zone. What anybody wrote, the merchant or the payee, is
text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from chalicelib.web import parts
from chalicelib.web.parts import Frame

SCRIPTS = ("checkout/claim.js",)


def headers(shown: Mapping[str, Any]) -> dict[str, str]:
    """The page's headers: its form goes to this page alone."""
    policy = parts.policy(parts.shop_of(shown), scripts=True, forms="'self'")
    return {**parts.HEADERS, "Content-Security-Policy": policy}


@dataclass(frozen=True, slots=True)
class Typed:
    """What was typed: an address, with `confirm` where it was found right, or with the reason why it was `refused`."""

    address: str | None = None
    confirm: str | None = None
    refused: str | None = None


def page(frame: Frame, token: str, shown: Mapping[str, Any], network: str, typed: Typed) -> str:
    """The page of a link. `shown` is its public record, with its shop as `shop`; `network` is the network's name."""
    asks = shown["status"] == "awaiting_claim" and typed.confirm is not None
    name, tone = ("checked", "warn") if asks else (shown["status"], parts.PAYOUT_TONES[shown["status"]])
    title, words = frame.say(f"claim.{name}.title"), frame.say(f"claim.{name}.text", network=network)
    waiting = '<meta http-equiv="refresh" content="15">' if shown["status"] in ("pending", "processing") else ""
    amount = frame.words.number(shown["amount"])
    body = f"""<main class="card one" id="claim">
{parts.header(frame)}<section class="info">
<p class="label">{frame.say("claim.label")}{parts.badge(frame)}</p>
<p class="amount"><bdi>{escape(amount)} <span>{escape(shown["symbol"])}</span></bdi></p>
{parts.described(shown)}{parts.state(tone, title, words)}
{parts.refusal(typed.refused)}<dl>{parts.facts(_facts(frame, shown, network))}</dl>
</section>
{_form(frame, token, shown, network, typed)}
</main>"""
    said = frame.words.say(f"claim.{name}.title")
    return parts.whole(frame, f"{amount} {shown['symbol']}: {said}", body, waiting, SCRIPTS)


def unknown(frame: Frame) -> str:
    """The page of a link that there is not."""
    return parts.unknown(frame, frame.words.say("common.noLink"), frame.words.say("claim.unknown"))


def _facts(frame: Frame, shown: Mapping[str, Any], network: str) -> list[tuple[str, str]]:
    facts = [(frame.say("common.network"), f"<bdi>{escape(network)}</bdi>")]
    if "address" in shown:
        facts.append((frame.say("common.address"), f'<code dir="ltr">{escape(shown["address"])}</code>'))
    if "transactionHash" in shown:
        link = parts.transaction(frame, shown["transactionHash"], shown.get("explorerUrl"))
        facts.append((frame.say("common.transaction"), link))
    if shown["status"] == "awaiting_claim":
        facts.append((frame.say("claim.until"), parts.moment(frame, shown["expiresAt"])))
    return facts


def _form(frame: Frame, token: str, shown: Mapping[str, Any], network: str, typed: Typed) -> str:
    """The question for the address, or the address once more with the button that pays."""
    if shown["status"] != "awaiting_claim":
        return ""
    here, say = escape(f"claim/{token}"), frame.say
    label = say("claim.address", network=network)
    if typed.confirm is not None and typed.address is not None:
        pays = say("claim.pay", amount=frame.words.number(shown["amount"]), symbol=shown["symbol"])
        return f"""<section class="pay"><form method="post" action="{here}">
<input type="hidden" name="address" value="{escape(typed.address)}">
<input type="hidden" name="confirm" value="{escape(typed.confirm)}">
<div class="field"><span class="label">{label}</span><code id="address" dir="ltr">{escape(typed.address)}</code></div>
<p class="only">{say("claim.compare")}</p>
<button class="button" type="submit">{pays}</button>
</form>
<a class="only" href="{here}">{say("claim.another")}</a></section>"""
    value = "" if typed.address is None else escape(typed.address)
    wrong = "" if typed.refused is None else ' aria-invalid="true"'
    return f"""<section class="pay"><form method="post" action="{here}">
<label class="label" for="address">{label}</label>
<input class="typed" id="address" name="address" value="{value}" maxlength="128" required autocomplete="off" spellcheck="false"
 autocapitalize="off" dir="ltr" aria-describedby="care"{wrong}>
<p class="only" id="care">{say("claim.only", network=network)}</p>
<button class="button" type="submit">{say("claim.check")}</button>
</form></section>"""
