"""The page to pay an invoice on, made of the record that its payer may see and of nothing else.

All that is to be known is in the HTML: the script only asks whether it has changed, and then takes the new HTML's parts over.
Everything that it loads comes from its own origin; what the merchant wrote is text, and at most a link.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from chalicelib.web import history, parts, wallets
from chalicelib.web.choice import Offers, about, is_choosable
from chalicelib.web.parts import Frame
from chalicelib.web.paying import to_pay

SCRIPTS = ("checkout/checkout.js",)
_PAYABLE = ("pending", "partial")
_OPEN = ("pending", "partial", "confirming")
_TONES = {
    "completed": "good", "confirming": "busy", "pending": "calm", "partial": "warn", "expired": "bad", "cancelled": "bad",
    "choose": "calm", "noRate": "warn", "over": "bad", "manual": "calm",
}  # fmt: skip
_ENDS = ("completed", "expired", "cancelled")
_GIVEN_UP = ("failed", "expired", "cancelled")
"""States of a refund whose money is with the shop."""


@dataclass(frozen=True, slots=True)
class Visit:
    """One look at the page. `shown` is the invoice's public record, with the path of its payment link as `again` and its shop as
    `shop`; `state` is what of it the page has to follow, as text. `names` are what networks are called, by slug; `search` is what
    was searched for among the coins; `refused` says why a choice was."""

    invoice_id: str
    shown: Mapping[str, Any]
    state: str
    names: Mapping[str, str] = field(default_factory=dict)
    search: str = ""
    refused: str | None = None

    @property
    def own(self) -> str:
        """The page's path, safe in HTML."""
        return escape(f"pay/{self.invoice_id}")

    @property
    def place(self) -> str:
        """What the network is called that the page shows."""
        slug = self.shown.get("network") or ""
        return self.names.get(slug, slug)

    @property
    def asks(self) -> bool:
        """Whether something can be paid now."""
        return "paymentUri" in self.shown


def headers(shown: Mapping[str, Any]) -> dict[str, str]:
    """The page's headers."""
    policy = parts.policy(parts.shop_of(shown), scripts=True, asks=True, forms="'self'" if "accept" in shown else "'none'")
    return {**parts.HEADERS, "Content-Security-Policy": policy}


def page(frame: Frame, visit: Visit) -> str:
    """The page of an invoice."""
    shown = visit.shown
    title, said = _in_words(frame, visit)
    price, unit = _price(shown)
    headline, tone = frame.words.number(price), _TONES[_status_of(visit)]
    wide = visit.asks or is_choosable(shown)
    body = f"""<main class="card {"two" if wide else "one"}" id="checkout"
 data-ask="{visit.own}/status" data-page="{visit.own}" data-shown="{escape(visit.state)}" data-left="{shown["expiresIn"]}"
 data-lock="{shown.get("lockedIn", "")}">
{parts.header(frame)}<section class="info">
<p class="label" data-part="label">{frame.say(_label(shown))}{parts.badge(frame)}</p>
<div data-part="amount"><p class="amount"><bdi>{escape(headline)} <span>{escape(unit)}</span></bdi></p>{_fiat(frame, shown)}</div>
{parts.described(shown)}{parts.refusal(visit.refused)}<div class="state {tone}" role="status" data-part="state">
{parts.icon(tone)}
<div><h1>{title}</h1>{"".join(f"<p>{each}</p>" for each in said)}{_progress(frame, shown)}</div>
</div>
<p class="state warn" id="requoted" role="status" hidden>{frame.say("rate.renewed")}</p>
<div class="notices" data-part="delays">{_delays(frame, visit)}</div>
<dl data-part="facts">{parts.facts(_facts(frame, visit))}</dl>
<div data-part="payments">{history.payments(frame, shown, visit.names)}</div>
<div class="notices" data-part="refunds">{history.refunds(frame, shown, visit.names)}</div>
<div data-part="receipt">{_receipt(frame, visit)}</div>
<div data-part="back">{_back(frame, shown)}</div>
</section>
<section class="pay"><div data-part="pay">{to_pay(frame, visit.invoice_id, visit.place, shown)}</div>{wallets.slot(frame)}
<div data-part="choice">{Offers(frame, visit.own, visit.names, visit.search).html(shown)}</div></section>
</main>
<p class="away" id="away" role="status" hidden>{frame.say("common.away")}</p>
<p class="unseen" id="said" role="status"></p>"""
    return parts.whole(frame, f"{headline} {unit}: {_title_of(frame, visit)}", body, _again(visit), SCRIPTS)


def unknown(frame: Frame) -> str:
    """The page of an id that no invoice has."""
    return parts.unknown(frame, frame.words.say("checkout.unknown"), frame.words.say("common.nothing"))


def _again(visit: Visit) -> str:
    """Without the script, the browser itself asks again; not while somebody reads what a search has found."""
    if visit.shown["status"] in _ENDS or visit.search:
        return ""
    # The answer to a form lies at another path, where nothing can be asked for again.
    seconds = f"15; url={visit.own}" if "accept" in visit.shown else "15"
    return f'<noscript><meta http-equiv="refresh" content="{seconds}"></noscript>'


def _status_of(visit: Visit) -> str:
    """The name of the messages that say how things stand."""
    shown, status = visit.shown, visit.shown["status"]
    if status in _PAYABLE and not visit.asks:
        if is_choosable(shown):
            return "choose" if shown["currency"] is None else "noRate"
        return "over"
    return status if status in (*_OPEN, *_ENDS) else "manual"


def _values(visit: Visit, frame: Frame) -> dict[str, str]:
    shown = visit.shown
    return {
        "missing": frame.words.number(shown.get("missing") or "0"),
        "symbol": shown["symbol"] or "",
        "network": visit.place,
        "status": shown["status"],
    }


def _title_of(frame: Frame, visit: Visit) -> str:
    return frame.words.say(f"checkout.{_status_of(visit)}.title", **_values(visit, frame))


def _in_words(frame: Frame, visit: Visit) -> tuple[str, list[str]]:
    """What is the case, and what it means for who pays: HTML."""
    name, values = _status_of(visit), _values(visit, frame)
    return escape(_title_of(frame, visit)), [frame.say(f"checkout.{name}.text", **values), *_besides(frame, visit)]


def _besides(frame: Frame, visit: Visit) -> list[str]:
    """What else came of it: too much, too late, in another coin."""
    shown, said, number = visit.shown, [], frame.words.number
    symbol = shown["symbol"] or ""
    given_back = any(one["status"] not in _GIVEN_UP for one in shown.get("refunds", ()))
    if "overpaid" in shown and not given_back:
        said.append(frame.say("checkout.overpaid", amount=number(shown["overpaid"]), symbol=symbol))
    over = _status_of(visit) in ("expired", "cancelled", "over")
    if over and not given_back and "late" not in shown and shown.get("payments"):
        said.append(frame.say("checkout.partOver"))
    if "late" in shown and not given_back:
        when = "cancelled" if shown["status"] == "cancelled" else "expired"
        said.append(frame.say(f"checkout.late.{when}", amount=number(shown["late"]), symbol=symbol))
    for one in shown.get("misdirected", ()):
        place = visit.names.get(one["network"], one["network"])
        said.append(frame.say("checkout.misdirected", amount=number(one["amount"]), coin=one["coin"].upper(), network=place))
    return said


def _label(shown: Mapping[str, Any]) -> str:
    """The message over the price. Once something came in, "Pay" would ask for all of it again."""
    return "common.pay" if shown["status"] == "pending" else "common.price"


def _price(shown: Mapping[str, Any]) -> tuple[str, str]:
    """What is asked for: in the coin, or in fiat before one is chosen."""
    if shown["amount"] is None:
        return shown["fiatAmount"], shown["fiatCurrency"]
    return shown["amount"], shown["symbol"]


def _in_fiat(frame: Frame, shown: Mapping[str, Any]) -> str:
    """The price in fiat; empty where it has none."""
    if "fiatAmount" not in shown:
        return ""
    return f"<bdi>{escape(frame.words.number(shown['fiatAmount']))} {escape(shown['fiatCurrency'])}</bdi>"


def _fiat(frame: Frame, shown: Mapping[str, Any]) -> str:
    price = _in_fiat(frame, shown)
    return f'<p class="fiat">{price}</p>' if price and shown["amount"] is not None else ""


def _progress(frame: Frame, shown: Mapping[str, Any]) -> str:
    if shown["status"] != "confirming":
        return ""
    needed = shown["requiredConfirmations"]
    have = min(shown["confirmations"], needed)
    told = history.confirmations(frame, have, needed)
    return f'<progress value="{have}" max="{needed}" aria-label="{told}"></progress><p>{told}</p>'


def _delays(frame: Frame, visit: Visit) -> str:
    found = []
    for one in visit.shown.get("delays", ()):
        name = visit.names.get(one["network"], one["network"])
        words = frame.say(f"delay.{one['delay']}.text", network=name)
        if is_choosable(visit.shown):
            words = f"{words} {frame.say('delay.another')}"
        found.append(parts.notice("warn", frame.say(f"delay.{one['delay']}.title", network=name), words))
    return "".join(found)


def _facts(frame: Frame, visit: Visit) -> list[tuple[str, str]]:
    shown, say = visit.shown, frame.say
    facts = [(say("common.network"), f"<bdi>{escape(visit.place)}</bdi>")] if shown["amount"] is not None else []
    facts += _rate(frame, visit)
    facts += _paid_in(frame, visit)
    if shown["status"] in _OPEN and shown["amount"] is not None and "usualSeconds" in shown:
        facts.append((say("fact.usual"), about(frame, shown["usualSeconds"])))
    if visit.asks or is_choosable(shown):
        facts.append((say("time.left"), _left(frame, shown)))
    return facts


def _left(frame: Frame, shown: Mapping[str, Any]) -> str:
    """The time that is left, which the script counts down."""
    minutes, words = shown["expiresIn"] // 60, frame.words
    left = words.count("time.minutes", minutes) if minutes < 120 else words.count("time.hours", minutes // 60)
    until = escape(words.say("time.until", moment=words.moment(shown["expiresAt"])))
    return f'<time id="left" datetime="{escape(shown["expiresAt"])}" title="{until}">{escape(left)}</time>'


def _rate(frame: Frame, visit: Visit) -> list[tuple[str, str]]:
    """The rate that is kept, and the part that is paid, where the payer chooses."""
    shown, say, number = visit.shown, frame.say, frame.words.number
    if "accept" not in shown:
        return []
    facts = []
    rate, until, payable = shown["rate"], shown["lockedUntil"], shown["status"] in _PAYABLE
    # A rate that is no longer kept is none that anybody can pay at.
    if rate is not None and (visit.asks or not payable):
        value = say("fact.rateOf", symbol=shown["symbol"], value=number(rate["value"]), fiat=rate["fiat"])
        facts.append((say("fact.rate"), value))
        if payable and until is not None:
            kept = f'{parts.moment(frame, until, "clock")} <span id="lock" role="timer"></span>'
            facts.append((say("fact.rateUntil"), kept))
    if shown["paidPercent"] != "0":
        facts.append((say("fact.paid"), say("fact.percent", value=number(shown["paidPercent"]))))
    return facts


def _paid_in(frame: Frame, visit: Visit) -> list[tuple[str, str]]:
    """What was paid, by name: where the payer chooses, as it was sent, coin by coin."""
    shown, told = visit.shown, {"unconfirmed": "fact.seen", "received": "fact.received"}
    if "choices" not in shown:
        sums = {key: shown[key] for key in told if shown[key] != "0"}
        number = frame.words.number
        return [
            (frame.say(told[key]), f"<bdi>{escape(number(value))} {escape(shown['symbol'])}</bdi>") for key, value in sums.items()
        ]
    return [
        (frame.say(key), history.amount_on(frame, {**one, "amount": one[name]}, visit.names))
        for name, key in told.items()
        for one in shown["choices"]
        if one[name] != "0"
    ]


def _receipt(frame: Frame, visit: Visit) -> str:
    shown = visit.shown
    if shown["status"] != "completed":
        return ""
    price, unit = _price(shown)
    coin, fiat = f"<bdi>{escape(frame.words.number(price))} {escape(unit)}</bdi>", _fiat_beside(frame, shown)
    return history.receipt(frame, visit.invoice_id, shown, coin + fiat)


def _fiat_beside(frame: Frame, shown: Mapping[str, Any]) -> str:
    price = _in_fiat(frame, shown)
    return f" ({price})" if price and shown["amount"] is not None else ""


def _back(frame: Frame, shown: Mapping[str, Any]) -> str:
    """The way back to the shop: one for who has paid, another for who does not; to the payment link, where there is one and its
    invoice is over. Looked at once more: only a page of the web is linked to."""
    target = {"completed": shown.get("redirectUrl", ""), "confirming": ""}.get(shown["status"], shown.get("cancelUrl", ""))
    if not target and "again" in shown and shown["status"] in ("expired", "cancelled"):
        return f'<a class="button" href="{escape(shown["again"])}">{frame.say("back.again")}</a>'
    host = parts.web_host(target)
    if host is None:
        return ""
    # Giving up is offered, and not asked for.
    look = "button quiet" if shown["status"] in _PAYABLE else "button"
    # Out of the frame that a shop may show this page in.
    return (
        f'<a class="{look}" href="{escape(target)}" target="_top" rel="noreferrer noopener">{frame.say("back.to", host=host)}</a>'
    )
