"""What the portal's first page makes of the API's answers, in Node.js."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from chalicelib.api.records.transactions import Flag
from chalicelib.domain.webhooks.events import EVENT_NAMES
from tests.support.javascript import value

pytestmark = pytest.mark.nodes


NOW = 1_780_000_000_000  # 2026-05-28T20:26:40Z


def balance(coin: str, *days: tuple[str, str, float | None], held: str = "0") -> dict[str, Any]:
    shown = [{"day": day, "amount": amount, "amountUSD": usd} for day, amount, usd in days]
    return {"coin": coin, "symbol": coin.upper(), "network": "tron", "held": held, "received": {"since": None, "days": shown}}


def per_day(*balances: dict[str, Any], count: int = 3) -> Any:
    return value('import { perDay } from "portal/received.js";', f"perDay({json.dumps(balances)}, {NOW}, {count})")


def attention(call: str) -> Any:
    return value('import * as attention from "portal/attention.js";', f"attention.{call}")


def test_days_add_up_all_coins_exactly_and_leave_no_gap() -> None:
    found = per_day(
        balance("usdt", ("2026-05-26", "0.1", 0.1), ("2026-05-28", "0.2", 0.2)), balance("trx", ("2026-05-28", "1000", 0.1))
    )
    assert [(each["day"], each["usd"]) for each in found] == [("2026-05-26", "0.1"), ("2026-05-27", "0"), ("2026-05-28", "0.3")]
    assert found[2]["coins"] == [
        {"symbol": "USDT", "network": "tron", "amount": "0.2"}, {"symbol": "TRX", "network": "tron", "amount": "1000"},
    ]  # fmt: skip


def test_a_worth_that_is_not_known_is_said_and_a_moved_clock_moves_the_days() -> None:
    (last,) = per_day(balance("trx", ("2031-01-02", "5", None)), count=1)
    assert (last["day"], last["usd"], last["unknown"]) == ("2031-01-02", "0", True)
    assert [each["day"] for each in per_day(count=1)] == ["2026-05-28"]


def test_waiting_withdrawals_are_told_by_what_they_wait_for() -> None:
    waiting = [{"pending_reason": reason} for reason in ("approval", "approval", "risk", None, "else")]
    found = attention(f"waiting({json.dumps(waiting)})")
    assert [(each["text"], each["to"]) for each in found] == [
        ("2 withdrawals wait for an approval", "/approvals"),
        ("1 withdrawal waits for the operator to look at the risk", "/withdrawals"),
        ("1 withdrawal waits (else)", "/withdrawals"),
    ]


def test_webhooks_and_keys_are_told_that_need_somebody() -> None:
    hooks = [
        {"id": "wh_1", "url": "https://a.example/h", "status": "disabled", "disabledReason": "it answered 410 Gone"},
        {"id": "wh_2", "url": "https://b.example/h", "status": "active", "failingSince": "2026-05-20T00:00:00.000Z"},
        {"id": "wh_3", "url": "https://c.example/h", "status": "paused"},
        {"id": "wh_4", "url": "https://d.example/h", "status": "active"},
    ]
    assert [each["to"] for each in attention(f"unwell({json.dumps(hooks)}, {NOW})")] == ["/webhooks/wh_1", "/webhooks/wh_2"]
    keys = [
        {"key_id": "key_1", "name": "till", "status": "active", "expires_at": "2026-06-01T00:00:00.000Z"},
        {"key_id": "key_2", "name": "old", "status": "active", "expires_at": "2026-06-01T00:00:00.000Z", "replaced_by": "key_1"},
        {"key_id": "key_3", "name": "far", "status": "active", "expires_at": "2027-06-01T00:00:00.000Z"},
        {"key_id": "key_4", "name": "gone", "status": "revoked", "expires_at": "2026-06-01T00:00:00.000Z"},
        {"key_id": "key_5", "name": "ever", "status": "active", "expires_at": None},
    ]
    (only,) = attention(f"ending({json.dumps(keys)}, {NOW})")
    assert (only["text"], only["to"]) == ("The API key “till” expires in 3 days", "/settings/keys/key_1")


def test_networks_are_told_that_are_behind_and_matter() -> None:
    networks = [
        {"network": name, "name": name.title(), "status": status, "blockTime": seconds}
        for name, status, seconds in (
            ("bitcoin", "active", 600), ("tron", "active", 3), ("bsc", "inactive", 3), ("polygon", "active", 2),
        )
    ]  # fmt: skip
    blocks = [{"network": name, "timestamp": "2026-05-28T18:00:00.000Z"} for name in ("bitcoin", "tron", "bsc", "polygon")]
    found = attention(f'behind({json.dumps(networks)}, {json.dumps(blocks)}, new Set(["bitcoin", "tron", "bsc"]), {NOW})')
    assert [each["text"].split(" is ")[0:2][0] for each in found] == ["Tron", "Bsc"]


def test_every_event_has_words() -> None:
    assert value('import { NAMES } from "webhooks/words.js";', "NAMES.toSorted()") == sorted(EVENT_NAMES)


def test_a_webhook_is_told_what_was_chosen() -> None:
    imported = 'import { webhookBody, webhookFields } from "webhooks/fields.js";'
    values = {"url": "https://a.example", "which": "some", "events Invoices": ["invoice.completed"], "events Refunds": []}
    assert value(imported, f"webhookBody({json.dumps(values)})") == {"url": "https://a.example", "events": ["invoice.completed"]}
    assert value(imported, f"webhookBody({json.dumps({**values, 'which': 'all'})})")["events"] == ["*"]
    none = json.dumps({"url": "https://a.example", "which": "some"})
    assert "at least one" in value(
        imported, f"(() => {{ try {{ webhookBody({none}) }} catch (error) {{ return error.message }} }})()"
    )
    known = json.dumps({"url": "https://a.example", "events": ["refund.failed"]})
    fields = {each["name"]: each["value"] for each in value(imported, f"webhookFields({known})")}
    assert (fields["which"], fields["events Refunds"], fields["events Invoices"]) == ("some", ["refund.failed"], [])


def test_every_flag_of_a_transaction_has_its_words() -> None:
    assert value('import { FLAGS } from "transactions/words.js";', "Object.keys(FLAGS).toSorted()") == sorted(get_args(Flag))
