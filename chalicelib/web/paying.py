"""The part of the checkout page that says where to pay to: QR code, payment URI, amount and address to copy."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from chalicelib.web import wallets
from chalicelib.web.parts import Frame


def to_pay(frame: Frame, invoice_id: str, network: str, shown: Mapping[str, Any]) -> str:
    """Where to pay to, while something is to be paid; else empty. `network` is what the network is called."""
    say = frame.say
    if "paymentUri" not in shown:
        return ""
    uri, symbol = shown["paymentUri"], shown["symbol"]
    care = say("pay.simulated" if frame.testnet else "pay.final")
    only = say("pay.only", symbol=symbol, network=network)
    pay = wallets.payable(frame, f"pay/{invoice_id}", network, shown)
    return f"""<div class="qr">{_qr(uri, frame.words.say("pay.qr"))}</div>
<a class="button" href="{escape(uri)}">{say("pay.open")}</a>
{_copied(frame, "send", say("pay.amount", symbol=symbol), shown["missing"])}
{_copied(frame, "address", say("pay.address", network=network), shown["address"])}
<p class="only"><b>{only}</b> {care}</p>{pay}"""


def _copied(frame: Frame, name: str, label: str, value: str) -> str:
    """A text to copy, as it is: without marks between its digits, from left to right."""
    copy, done = frame.say("common.copy"), frame.say("common.copied")
    return (
        f'<div class="field"><span class="label">{label}</span><code id="{name}" dir="ltr">{escape(value)}</code>'
        f'<button type="button" class="copy" data-copy="{name}" data-done="{done}" aria-label="{copy}: {label}">{copy}</button>'
        "</div>"
    )


def _qr(text: str, title: str) -> str:
    import segno

    drawn: str = segno.make(text, error="m", micro=False).svg_inline(
        border=2, omitsize=True, svgclass=None, lineclass=None, title=title
    )
    return drawn
