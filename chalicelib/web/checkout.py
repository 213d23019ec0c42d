"""The page to pay an invoice on, made of the record that its payer may see and of nothing else.

All that is to be known is in the HTML: the script only asks whether it has changed, and then takes the new HTML's parts over.
Everything that it loads comes from its own origin; what the merchant wrote is text, and at most a link.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any
from urllib.parse import urlsplit

from chalicelib.web import parts
from chalicelib.web.choice import is_choosable, misdirected, offers, paid_in, rate_facts, to_choose

HEADERS = {
    **parts.HEADERS,
    "Content-Security-Policy": (
        # data: for the shop's logo and the icons of wallets, which are shown as images alone.
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        # In nobody's frame but those of the sites that the merchant lists (`web.framing`).
        "base-uri 'self'; form-action 'none'; frame-ancestors 'none'"
    ),
}
FORM_HEADERS = {
    **HEADERS,
    "Content-Security-Policy": HEADERS["Content-Security-Policy"].replace("form-action 'none'", "form-action 'self'"),
}
"""Of a page on which a coin can be chosen."""
SCRIPT = "checkout.js"
_PAYABLE = ("pending", "partial")
_TONES = {"completed": "good", "confirming": "busy", "pending": "calm", "partial": "warn", "expired": "bad", "cancelled": "bad"}
_WORDS = {
    "pending": ("Waiting for your payment", "Send {missing} {symbol} on {network}. This page follows by itself."),
    "partial": ("{missing} {symbol} are missing", "A part has arrived. Send the rest to the address shown here."),
    "confirming": ("Your payment has been seen", "The network is confirming it. You may close this page."),
    "completed": ("Paid", "Thank you. The payment is complete."),
    "expired": ("The time to pay is over", "Do not send anything any more. Ask the shop for a new invoice."),
    "cancelled": ("Cancelled", "The shop has cancelled this invoice. Do not send anything any more."),
}
"""What the page says of an invoice by its status: the title, and what it means for the payer."""


def page(
    root: str,
    invoice_id: str,
    shown: Mapping[str, Any],
    state: str,
    network: str,
    testnet: bool,
    names: Mapping[str, str] | None = None,
    refused: str | None = None,
) -> str:
    """The page of an invoice below `root`. `shown` is its public record, with the path of its payment link as `again`; `state` that
    record as text but for what every second changes, `network` the network's name, `names` those of all networks by slug,
    `refused` why a choice was refused."""
    named = names or {}
    title, words = _in_words(shown, network, named)
    amount, unit = _price(shown)
    tone = _TONES.get(shown["status"], "calm")
    # Without the script, the browser itself asks again.
    own = escape(f"pay/{invoice_id}")
    # The answer to a form lies at another path, where nothing can be asked for again.
    seconds = f"15; url={own}" if "accept" in shown else "15"
    again = f'<noscript><meta http-equiv="refresh" content="{seconds}"></noscript>' if tone in ("calm", "warn", "busy") else ""
    body = f"""<main class="card {"two" if "paymentUri" in shown or is_choosable(shown) else "one"}" id="checkout"
 data-ask="{own}/status" data-page="{own}" data-shown="{escape(state)}" data-left="{shown["expiresIn"]}">
<section class="info">
<p class="label">Pay{parts.badge(testnet)}</p>
<p class="amount" data-part="amount">{escape(amount)} <span>{escape(unit)}</span></p>
{parts.described(shown)}{parts.refusal(refused)}<div class="state {tone}" role="status" data-part="state">
{parts.icon(tone)}
<div><h1>{escape(title)}</h1>{"".join(f"<p>{escape(each)}</p>" for each in words)}{_progress(shown)}</div>
</div>
<dl data-part="facts">{_facts(shown, network, named)}</dl>
<div data-part="back">{_back(shown)}</div>
</section>
<section class="pay" data-part="pay">{_to_pay(shown, network, testnet)}{offers(own, shown, named)}</section>
</main>
<p class="away" id="away" hidden>The connection is interrupted. This page goes on as soon as it is back.</p>"""
    return parts.whole(root, f"{amount} {unit}: {title}", body, again, SCRIPT)


def unknown(root: str) -> str:
    """The page of an id that no invoice has."""
    return parts.unknown(root, "No such invoice", parts.NOTHING_TO_PAY)


def _in_words(shown: Mapping[str, Any], network: str, names: Mapping[str, str]) -> tuple[str, list[str]]:
    """What is the case, and what it means for who pays."""
    symbol, status = shown["symbol"], shown["status"]
    more = []
    if "overpaid" in shown:
        more.append(f"You paid {shown['overpaid']} {symbol} more than was asked. Ask the shop to send it back.")
    if "late" in shown:
        ended = "the shop had cancelled" if status == "cancelled" else "the time was over"
        more.append(f"{shown['late']} {symbol} came after {ended}. Ask the shop what becomes of it.")
    more += misdirected(shown, names)
    if status in _PAYABLE and is_choosable(shown) and "paymentUri" not in shown:
        title, words = to_choose(shown)
        return title, [words, *more]
    if status in _PAYABLE and "paymentUri" not in shown:
        return "The time to pay is over", [
            "Do not send anything any more. What was sent in time still counts once it is seen.",
            *more,
        ]
    if status not in _WORDS:
        return f"Status: {status}", ["The shop looks after this invoice by hand. Do not send anything any more.", *more]
    title, words = _WORDS[status]
    said = {**shown, "network": network}
    return title.format_map(said), [words.format_map(said), *more]


def _price(shown: Mapping[str, Any]) -> tuple[str, str]:
    """What is asked for: in the coin, or in fiat before one is chosen."""
    if shown["amount"] is None:
        return shown["fiatAmount"], shown["fiatCurrency"]
    return shown["amount"], shown["symbol"]


def _progress(shown: Mapping[str, Any]) -> str:
    if shown["status"] != "confirming":
        return ""
    needed = shown["requiredConfirmations"]
    have = min(shown["confirmations"], needed)
    return f'<progress value="{have}" max="{needed}"></progress><p>{have} of {needed} confirmations</p>'


def _facts(shown: Mapping[str, Any], network: str, names: Mapping[str, str]) -> str:
    facts = [("Network", escape(network))] if shown["amount"] is not None else []
    facts += [(name, escape(value)) for name, value in rate_facts(shown)]
    facts += [(name, escape(value)) for name, value in paid_in(shown, names)]
    if "paymentUri" in shown or is_choosable(shown):
        minutes = shown["expiresIn"] // 60
        left = f"{minutes} minutes" if minutes < 120 else f"{minutes // 60} hours"
        until = escape(shown["expiresAt"])
        facts.append(("Time left", f'<time id="left" datetime="{until}" title="until {until}">{left}</time>'))
    return "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts)


def _back(shown: Mapping[str, Any]) -> str:
    """The way back to the shop: one for who has paid, another for who does not; to the payment link, where there is one and its
    invoice is over. Looked at once more: only a page of the web is linked to."""
    target = {"completed": shown.get("redirectUrl", ""), "confirming": ""}.get(shown["status"], shown.get("cancelUrl", ""))
    if not target and "again" in shown and shown["status"] in ("expired", "cancelled"):
        return f'<a class="button" href="{escape(shown["again"])}">Begin anew</a>'
    try:
        parts = urlsplit(target)
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return ""
    # Giving up is offered, and not asked for.
    look = "button quiet" if shown["status"] in _PAYABLE else "button"
    return f'<a class="{look}" href="{escape(target)}" rel="noreferrer noopener">Back to {escape(parts.hostname)}</a>'


def _to_pay(shown: Mapping[str, Any], network: str, testnet: bool) -> str:
    """Where to pay to, while something is to be paid."""
    if "paymentUri" not in shown:
        return ""
    uri, address, symbol = shown["paymentUri"], shown["address"], escape(shown["symbol"])
    care = "This network is simulated: send no real money." if testnet else "Payments can not be called back: check the address."
    return f"""<div class="qr">{_qr(uri)}</div>
<a class="button" href="{escape(uri)}">Open in wallet</a>
{_copied("send", f"Amount in {symbol}", shown["missing"])}
{_copied("address", f"{escape(network)} address", address)}
<p class="only">Send only {symbol} on {escape(network)}. {care}</p>"""


def _copied(name: str, label: str, value: str) -> str:
    return (
        f'<div class="field"><span class="label">{label}</span><code id="{name}">{escape(value)}</code>'
        f'<button type="button" class="copy" data-copy="{name}" aria-label="Copy: {label}">Copy</button></div>'
    )


def _qr(text: str) -> str:
    import segno

    drawn: str = segno.make(text, error="m", micro=False).svg_inline(
        border=2, omitsize=True, svgclass=None, lineclass=None, title="The payment as a QR code, for a wallet's camera"
    )
    return drawn
