"""The part of the checkout page that pays from a wallet in the browser: its data and words, for the script that fills it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from typing import Any

from chalicelib.web.files import named
from chalicelib.web.parts import Frame

_MODULE = "checkout/wallets.js"


def slot(frame: Frame) -> str:
    """The place that the script fills, once the page stands and a wallet is there."""
    words = json.dumps(frame.words.below("wallet"), ensure_ascii=False)
    return f'<div id="wallets" class="wallets" data-module="openapi/{named(_MODULE)}" data-words="{escape(words)}" hidden></div>'


def payable(frame: Frame, own: str, place: str, shown: Mapping[str, Any]) -> str:
    """What a wallet has to pay: of the same part of the page as address and amount, so that it changes with them. `own` is the
    page's path, `place` the network's name."""
    facts = shown.get("wallet")
    if facts is None or "paymentUri" not in shown:
        return ""
    told = {
        **facts,
        "uri": shown["paymentUri"],
        "own": own,
        "shown": frame.words.number(shown["missing"]),
        "symbol": shown["symbol"],
        "network": place,
    }
    return f'<div id="payable" hidden data-payable="{escape(json.dumps(told, ensure_ascii=False))}"></div>'
