"""The parts of the checkout page about what has happened: payments with their transactions, refunds, and the receipt."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from chalicelib.web import parts
from chalicelib.web.choice import symbol_of
from chalicelib.web.parts import Frame


def amount_on(frame: Frame, one: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """``0.01 ETH on Ethereum``, as HTML. `names` are what networks are called, by slug."""
    place = names.get(one["network"], one["network"])
    return frame.say("common.amountOn", amount=frame.words.number(one["amount"]), coin=symbol_of(one), network=place)


def payments(frame: Frame, shown: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """The payments that were seen, newest first, each with its transaction and how far it is; empty where there are none."""
    rows = "".join(_payment(frame, one, names) for one in shown.get("payments", ()))
    return f'<h2 class="label">{frame.say("payments.title")}</h2><ul class="rows">{rows}</ul>' if rows else ""


def _payment(frame: Frame, one: Mapping[str, Any], names: Mapping[str, str]) -> str:
    have, needed = one["confirmations"], one["requiredConfirmations"]
    far = confirmations(frame, have, needed) if have < needed else frame.say("payments.confirmed")
    at = f" · {parts.moment(frame, one['seenAt'])}" if "seenAt" in one else ""
    return (
        f"<li><b>{amount_on(frame, one, names)}</b><small>{far}{at}</small>"
        f"<small>{frame.say('common.transaction')}: {parts.transaction(frame, one['txId'], one.get('explorerUrl'))}</small></li>"
    )


def confirmations(frame: Frame, have: int, needed: int) -> str:
    """``3 of 12 confirmations``, or that no block has it yet."""
    if have == 0:
        return frame.say("payments.unconfirmed")
    return frame.say("payments.confirmations", have=str(min(have, needed)), needed=str(needed))


def refunds(frame: Frame, shown: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """What is given back, newest first, and by which way; never the link itself. Empty where nothing is."""
    rows = "".join(_refund(frame, one, names) for one in shown.get("refunds", ()))
    return f'<h2 class="label">{frame.say("refunds.title")}</h2>{rows}' if rows else ""


def _refund(frame: Frame, one: Mapping[str, Any], names: Mapping[str, str]) -> str:
    status, tone = one["status"], parts.PAYOUT_TONES.get(one["status"], "calm")
    told = [frame.say(f"refunds.{status}")]
    if status == "awaiting_claim":
        way = escape(one["sentBy"]) if one.get("sentBy") else frame.say("refunds.own")
        told.append(f"{frame.say('refunds.sentBy')} <bdi>{way}</bdi>")
    if status == "awaiting_claim" and "expiresAt" in one:
        told.append(f"{frame.say('refunds.until')} {parts.moment(frame, one['expiresAt'])}.")
    if status in ("pending", "processing", "completed"):
        told.append(frame.say(f"refunds.by.{one['by']}"))
    if "txId" in one:
        told.append(f"{frame.say('common.transaction')}: {parts.transaction(frame, one['txId'], one.get('explorerUrl'))}")
    return parts.notice(tone, amount_on(frame, one, names), "<br>".join(told))


def receipt(frame: Frame, invoice_id: str, shown: Mapping[str, Any], price: str) -> str:
    """The receipt of a paid invoice: its rows, and the button that prints the page. `price` is HTML."""
    rows = []
    if frame.shop.name:
        rows.append((frame.say("receipt.shop"), f'<span dir="auto">{escape(frame.shop.name)}</span>'))
    rows.append((frame.say("receipt.amount"), price))
    # The payment that completed it came last.
    paid_at = max((one["seenAt"] for one in shown.get("payments", ()) if "seenAt" in one), default=shown.get("createdAt"))
    if paid_at:
        rows.append((frame.say("receipt.date"), parts.moment(frame, paid_at)))
    rows.append((frame.say("receipt.invoice"), f'<code dir="ltr">{escape(invoice_id)}</code>'))
    return (
        f'<section class="receipt"><h2 class="label">{frame.say("receipt.title")}</h2><dl>{parts.facts(rows)}</dl>'
        f'<button type="button" class="button quiet print" data-print>{frame.say("receipt.print")}</button></section>'
    )
