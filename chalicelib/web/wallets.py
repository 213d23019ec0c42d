"""The part of the checkout page that pays from a wallet in the browser: its data and words, for the script that fills it."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING

from chalicelib.web.files import named
from chalicelib.web.parts import Frame

if TYPE_CHECKING:
    from chalicelib.web.checkout import Visit

_MODULE = "checkout/wallets.js"


def slot(frame: Frame) -> str:
    """The place that the script fills, once the page stands and a wallet is there."""
    words = json.dumps(frame.words.below("wallet"), ensure_ascii=False)
    return f'<div id="wallets" class="wallets" data-module="openapi/{named(_MODULE)}" data-words="{escape(words)}" hidden></div>'


def payable(frame: Frame, visit: Visit) -> str:
    """What a wallet has to pay: of the same part of the page as address and amount, so that it changes with them."""
    shown = visit.shown
    facts = shown.get("wallet")
    if facts is None or not visit.asks:
        return ""
    told = {
        **facts,
        "uri": shown["paymentUri"],
        "own": f"pay/{visit.invoice_id}",
        "shown": frame.words.number(shown["missing"]),
        "symbol": shown["symbol"],
        "network": visit.place,
    }
    return f'<div id="payable" hidden data-payable="{escape(json.dumps(told, ensure_ascii=False))}"></div>'
