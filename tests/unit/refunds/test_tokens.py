"""Tokens of claim links: enough random bits, and nothing stored that leads back to one."""

from __future__ import annotations

import pytest

from chalicelib.domain.refunds.tokens import confirmation, confirms, new_token, token_hash
from chalicelib.usecases.refunds.making import new_link


def test_tokens_are_long_and_new() -> None:
    tokens = {new_token() for _ in range(1000)}
    assert len(tokens) == 1000
    assert {len(token) for token in tokens} == {43}
    assert all(token_hash(token) for token in tokens)


@pytest.mark.parametrize("text", ["", "A" * 42, "A" * 44, "A" * 42 + "=", "A" * 42 + "é", "A" * 42 + "\n", "../" * 15])
def test_other_texts_are_none(text: str) -> None:
    assert token_hash(text) is None


def test_a_word_confirms_one_address_of_one_link() -> None:
    token = new_token()
    word = confirmation(token, "0xa")
    assert confirms(word, token, "0xa")
    assert not confirms(word, token, "0xb")
    assert not confirms(word, new_token(), "0xa")
    assert not confirms("ö", token, "0xa")


def test_a_link_does_not_print_its_token() -> None:
    link = new_link("https://pay.example/api")
    assert link.url == f"https://pay.example/api/claim/{link.token}"
    assert link.token not in repr(link)
