"""Ids are numbers in Crockford's base 32: Python's own base 32 writes the same with another alphabet."""

from __future__ import annotations

import base64
import hashlib

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.ids import derived_id, first_id, group_id, made_at, member_id, new_id, next_id

STANDARD, CROCKFORD = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789abcdefghjkmnpqrstvwxyz"


def digits(value: int, length: int) -> str:
    return base64.b32encode(value.to_bytes(20, "big")).decode()[-length:].translate(str.maketrans(STANDARD, CROCKFORD))


@given(st.text(st.characters(codec="utf-8"), max_size=20))
def test_a_derived_id_is_the_first_130_bits_of_a_hash(part: str) -> None:
    value = int.from_bytes(hashlib.sha256(f"a\x1f{part}".encode()).digest(), "big") >> 126
    assert derived_id("whd", "a", part) == f"whd_{digits(value, 26)}"


@given(st.integers(0, 2**48))
def test_an_id_begins_with_its_time(now_ms: int) -> None:
    id = new_id("inv", now_ms)
    assert (len(id), id[4:14], made_at(id)) == (30, digits(now_ms, 10), now_ms)
    assert first_id("inv", now_ms) <= id < next_id(id) and made_at(next_id(id)) == now_ms


@given(st.integers(1, 1023))
def test_members_are_numbered_behind_their_group(number: int) -> None:
    group = group_id("bat", 1_700_000_000_000)
    assert member_id("wd", group, number) == f"wd_{group[4:-2]}{digits(number, 2)}"
