"""Bodies: exact numbers, and everything that is not one JSON object."""

from __future__ import annotations

import json
import sys
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.api import body
from chalicelib.api.body import MAX_BYTES, MAX_DEPTH, parse
from chalicelib.api.numbers import JsonNumber
from chalicelib.api.rendering import to_json
from chalicelib.domain.errors import InvalidParameter
from chalicelib.encoding import json_depth
from chalicelib.encoding.json_depth import deeper_than

JSON = "application/json"


def refusal(raw: bytes, content_type: str | None = JSON) -> str:
    with pytest.raises(InvalidParameter) as caught:
        parse(raw, content_type)
    assert len(caught.value.problems) == 1
    return caught.value.problems[0].constraints[0]


def test_a_number_keeps_every_digit_of_its_text():
    text = "0.123456789012345678"
    assert parse(b'{"amount": %s}' % text.encode(), JSON) == {"amount": JsonNumber(text)}
    assert str(float(text)) != text, "a float would have lost digits: this is what is guarded against"


def test_an_exponent_can_be_told_from_the_number_it_stands_for():
    assert parse(b'{"a": 1e3, "b": 1000}', JSON) == {"a": JsonNumber("1e3"), "b": 1000}


def test_integers_that_python_refuses_to_convert_are_no_crash():
    digits = "9" * 5000
    with pytest.raises(ValueError, match="4300"):
        int(digits)
    assert parse(f'{{"a": {digits}}}'.encode(), JSON) == {"a": JsonNumber(digits)}


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_any_number_goes_in_and_out_digit_for_digit(number: Decimal):
    text = format(number, "f")
    if "." not in text:
        text += ".0"
    parsed = parse(f'{{"n":{text}}}'.encode(), JSON)
    assert to_json(parsed) == f'{{"n":{text}}}'


def test_no_body_is_an_empty_object_whatever_the_content_type():
    assert parse(b"", None) == {}
    assert parse(b"", "text/plain") == {}


@pytest.mark.parametrize(
    "content_type", ["application/json", "APPLICATION/JSON", "application/json; charset=utf-8", 'application/json;charset="UTF-8"']
)
def test_content_types_that_are_json(content_type):
    assert parse(b"{}", content_type) == {}


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "",
        "text/plain",
        "text/json",
        "application/x-www-form-urlencoded",
        "application/json, text/plain",
        "multipart/form-data",
        "application/json; a*=x; a*0=y",
        f"application/json; a*{'9' * 4301}=x",
    ],
)
def test_content_types_that_are_not(content_type):
    assert refusal(b"{}", content_type) == "the content type must be application/json"


def test_another_character_set():
    assert refusal(b"{}", "application/json; charset=latin-1") == "the character set must be utf-8"


@pytest.mark.parametrize("raw", [b"[]", b'"text"', b"1", b"null", b"true"])
def test_json_that_is_no_object(raw):
    assert refusal(raw) == "must be a JSON object"


@pytest.mark.parametrize(
    "raw", [b"{", b"{'a': 1}", b'{"a": 01}', b'{"a": 1,}', b'{"a": +1}', b"nonsense", b'{"a": "\n"}', b"\xef\xbb\xbf{}"]
)
def test_what_is_no_json(raw):
    assert refusal(raw).startswith("must be valid JSON")


@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_does_not_have(name):
    assert name in refusal(f'{{"a": {name}}}'.encode())


def test_a_name_twice_is_refused_at_any_depth():
    with pytest.raises(InvalidParameter) as caught:
        parse(b'{"a": {"b": 1, "b": 2}}', JSON)
    assert caught.value.problems[0].field == "b"
    assert caught.value.problems[0].constraints == ("must be there only once",)


class Name(str):
    """Counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return super().__eq__(other)


def test_one_name_twice_among_very_many_is_found_in_one_pass():
    """Counted for each name it took 15 seconds of a function for 256 KiB, of anybody."""
    names = [*(Name(n) for n in range(1000)), Name("zzz"), Name("zzz")]
    with pytest.raises(InvalidParameter) as caught:
        body._object([(name, 1) for name in names])
    assert caught.value.problems[0].field == "zzz"
    assert Name.compared < 2 * len(names)


@pytest.mark.parametrize("end", [b"", b"\\"])
def test_a_string_without_an_end_is_passed_over_once(end):
    """At each escaped quote a search of its own began: 256 KiB took minutes of a function, of anybody."""
    start = b'{"a":[' + b"[]," * 40 + b'"'
    sent = start + b'\\"' * ((MAX_BYTES - len(start)) // 2 - 1) + end
    assert refusal(sent).startswith("must be valid JSON")
    assert deeper_than(sent.decode(), MAX_DEPTH) is False
    assert json_depth._BRACKETS_AND_STRINGS.findall('["a","\\"\\"[{\\') == ["[", '"a"', '"\\"\\"[{']


def test_bytes_that_are_not_utf8():
    assert refusal(b'{"a": "\xff"}') == "must be UTF-8"
    assert refusal('{"a": "é"}'.encode("latin-1")) == "must be UTF-8"
    assert refusal(b'{"a": "\xed\xa0\x80"}') == "must be UTF-8", "a surrogate in UTF-8 bytes"


@pytest.mark.parametrize("escape", ["\\u0000", "\\ud800", "\\udfff", "a\\ud800b"])
def test_characters_that_can_not_be_stored(escape):
    assert "NUL" in refusal(f'{{"a": ["{escape}"]}}'.encode())
    assert "NUL" in refusal(f'{{"{escape}": 1}}'.encode())


def test_a_pair_of_surrogates_is_one_character():
    assert parse(b'{"a": "\\ud83d\\ude00"}', JSON) == {"a": "\U0001f600"}


def test_depth_up_to_the_limit_and_not_beyond():
    def nested(levels: int) -> bytes:
        return b'{"a":' * (levels - 1) + b"{}" + b"}" * (levels - 1)

    assert parse(nested(MAX_DEPTH), JSON)
    assert "levels deep" in refusal(nested(MAX_DEPTH + 1))
    assert "levels deep" in refusal(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}")


def test_many_objects_beside_each_other_are_not_deep():
    assert parse(json.dumps({"a": [{} for _ in range(1000)]}).encode(), JSON)


def test_size_up_to_the_limit_and_not_beyond():
    fitting = b'{"a":"' + b"x" * (MAX_BYTES - 8) + b'"}'
    assert len(fitting) == MAX_BYTES
    assert parse(fitting, JSON)
    assert refusal(fitting[:-2] + b'x"}') == "must be at most 256 KiB"


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_a_refusal(raw):
    try:
        result = parse(raw, JSON)
    except InvalidParameter:
        return
    assert isinstance(result, dict)


def test_deep_input_never_reaches_the_parser_however_high_the_recursion_limit_is():
    """Libraries raise the limit for their own sake; then depth would end the process instead of raising."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000_000)
    try:
        for deep in (b"[" * 200_000, b'{"a":' * 50_000, b'{"a": "]", "b":' + b"[" * 100_000):
            assert "levels deep" in refusal(deep)
    finally:
        sys.setrecursionlimit(before)


def test_brackets_in_strings_are_no_depth():
    body = json.dumps({"a": "[" * 1000 + '"{' * 500, "b": ["\\", "[", '\\"'] * 20}).encode()
    assert parse(body, JSON)["a"].startswith("[[[")
