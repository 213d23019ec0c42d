"""Validation: every wrong field at once, in words, with what was sent."""

from __future__ import annotations

import json

import pytest

from chalicelib.api.body import parse
from chalicelib.api.fields import MAX_METADATA
from chalicelib.api.lists.fields import day
from chalicelib.api.lists.invoices import INVOICES
from chalicelib.api.numbers import JsonNumber
from chalicelib.api.problems import shown, validated
from chalicelib.api.resources.addresses import AddressCreate
from chalicelib.api.resources.invoices.invoices import InvoiceCreate, InvoiceOverride
from chalicelib.api.resources.withdrawals.withdrawals import WithdrawalCreate
from chalicelib.domain.catalogue.catalogue import Catalogue, default_coins, default_networks

CATALOGUE = Catalogue("test", default_networks("test"), default_coins("test"))


def check(model, text: str):
    """The model's instance and {field: constraints} of what is wrong."""
    made, problems = validated(model, parse(text.encode(), "application/json"), CATALOGUE)
    return made, {p.field: list(p.constraints) for p in problems}


def test_names_are_camel_case_outside():
    made, wrong = check(InvoiceCreate, '{"currency": "btc", "amount": 1, "externalId": "o-1", "expiresIn": 60}')
    assert not wrong
    assert (made.external_id, made.expires_in) == ("o-1", 60)
    assert "external_id" in check(InvoiceCreate, '{"currency": "btc", "amount": 1, "external_id": "o-1"}')[1]


def test_everything_that_is_wrong_is_told_at_once():
    made, wrong = check(
        InvoiceCreate,
        '{"currency": "usdt", "amount": 1.1234567, "network": "ethereum", "expiresIn": true, "redirectUrl": "ftp://x", "extra": 1}',
    )
    assert made is None
    assert wrong == {
        "amount": ["must have at most 6 decimals (USDT on ethereum)"],
        "expiresIn": ["must be a whole number"],
        "redirectUrl": ["must be an http or https URL without user name, blanks and control characters"],
        "extra": [f"is not known; known are: {', '.join(InvoiceCreate.known_names())}"],
    }


def test_the_known_names_are_those_of_bodies():
    known = InvoiceCreate.known_names()
    assert known == sorted(known) and {"amount", "currency", "expiresIn", "externalId", "fiatAmount", "redirectUrl"} <= set(known)


def test_what_is_missing_is_named():
    assert check(WithdrawalCreate, "{}")[1] == {name: ["is required"] for name in ("network", "coin", "amount", "to_address")}


def test_unknown_names_are_answered_with_the_known_ones():
    _, wrong = check(AddressCreate, '{"network": "dogecoin", "coin": "doge"}')
    assert wrong["network"] == ["must be one of: bitcoin, ethereum, tron, bsc, polygon, arbitrum, fantom, litecoin"]
    assert wrong["coin"] == ["must be one of: bnb, btc, busd, dai, eth, ftm, ltc, matic, trx, usdc, usdt"]


def test_a_coin_that_is_on_other_networks_only():
    _, wrong = check(WithdrawalCreate, '{"network": "bitcoin", "coin": "usdt", "amount": "1", "to_address": "x"}')
    assert wrong == {"coin": ["must be one of: btc (on bitcoin)"]}


@pytest.mark.parametrize("sent", ["0.000000000000000001", '"0.000000000000000001"', "1", '"1"', "1.50", "12345678901234567890"])
def test_amounts_as_numbers_and_as_texts(sent):
    made, wrong = check(InvoiceCreate, f'{{"currency": "eth", "amount": {sent}}}')
    assert not wrong
    assert made.amount == sent.strip('"')


@pytest.mark.parametrize(
    "sent",
    ["0", "0.0", '"0.00"', "-1", '"-1"', '"+1"', "1e18", '"1e18"', "1E-3", '""', '" 1"', '"1 "', '"1,5"', '"0x10"', '"NaN"', "true",
     "null", "[]", "{}", '"01"', '".5"', '"5."', "0.0000000000000000001", "1" * 39, "1" * 5000, '"１"', '"1\\n"'],
)  # fmt: skip
def test_amounts_that_are_none(sent):
    made, wrong = check(InvoiceCreate, f'{{"currency": "eth", "amount": {sent}}}')
    assert made is None or wrong
    assert list(wrong) == ["amount"]


def test_texts_are_not_made_of_numbers_nor_numbers_of_texts():
    _, wrong = check(InvoiceCreate, '{"currency": "eth", "amount": 1, "externalId": 1.5, "expiresIn": "60"}')
    assert wrong == {"externalId": ["must be a string"], "expiresIn": ["must be a whole number"]}


def test_status_of_an_override():
    assert not check(InvoiceOverride, '{"invoiceId": "x", "status": "paid_by-hand2"}')[1]
    for status in ("", "Paid", "a b", "x" * 65, "paid\\n"):
        assert list(check(InvoiceOverride, json.dumps({"invoiceId": "x", "status": status}))[1]) == ["status"]


def test_metadata_keeps_numbers_as_numbers_and_has_a_limit():
    made, wrong = check(AddressCreate, '{"network": "ethereum", "metadata": {"a": 1.5, "b": [2, {"c": 1e2}], "d": "x"}}')
    assert not wrong
    assert made.metadata == {"a": 1.5, "b": [2, {"c": 100.0}], "d": "x"}
    for metadata in ({"a": "x" * MAX_METADATA}, {"a": ["é"] * (MAX_METADATA // 4)}):
        assert list(check(AddressCreate, json.dumps({"network": "ethereum", "metadata": metadata}))[1]) == ["metadata"]
    assert list(check(AddressCreate, '{"network": "ethereum", "metadata": {"a": 1e999}}')[1]) == ["metadata"]


def test_single_needs_a_coin():
    assert check(AddressCreate, '{"network": "ethereum", "mode": "single"}')[1] == {"coin": ["is required when mode is single"]}


def test_queries_are_texts():
    made, problems = validated(
        INVOICES.model, {"page": "2", "perPage": "5", "status": ["a", "b,c"], "from": "2024-01-31"}, CATALOGUE
    )
    assert not problems
    assert (made.page, made.size) == (2, 5)
    conditions = [(c.field.name, c.operator, c.value) for c in made.conditions]
    assert conditions == [("status", "in", ("a", "b", "c")), ("createdAt", "gte", day("2024-01-31"))]


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"limit": "101"}, "limit"),
        ({"limit": "0"}, "limit"),
        ({"page": "0"}, "page"),
        ({"page": "x"}, "page"),
        ({"page": ["1", "2"]}, "page"),
        ({"page": "9" * 400}, "page"),
        ({"limit": "5", "perPage": "5"}, "request"),
        ({"sort": "colour"}, "sort"),
        ({"order": "up"}, "order"),
        ({"amount[gt]": "much"}, "amount[gt]"),
        ({"amount[like]": "1"}, "amount[like]"),
        ({"status[ne]": "Paid!"}, "status[ne]"),
        ({"from": "2024-02-30"}, "from"),
        ({"from": "yesterday"}, "from"),
        ({"currency": "doge"}, "currency"),
    ],
)
def test_queries_that_are_wrong(sent, field):
    made, problems = validated(INVOICES.model, sent, CATALOGUE)
    assert made is None
    assert [problem.field for problem in problems] == [field]
    assert all(not constraint.startswith("Input should") for problem in problems for constraint in problem.constraints)


def test_a_sent_value_is_shown_as_sent_but_short_and_never_a_secret():
    assert shown("amount", JsonNumber("1.50")) == JsonNumber("1.50")
    assert len(shown("label", "x" * 5000)) == 101
    assert len(shown("metadata", {"a": ["x"] * 5000})) == 201
    assert shown("secret", "hunter2hunter2hunter2") == "(not shown)"
    assert shown("privateKey", "0x1234") == "(not shown)"
