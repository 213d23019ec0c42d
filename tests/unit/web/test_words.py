"""The pages' words: every language says everything, and nothing that is put into a message becomes more than text."""

from __future__ import annotations

import json
import re

import pytest

from chalicelib.web.words import LANGUAGES, MESSAGES, PLURALS, Words, preferred, words

ENGLISH = words("en")
_PLACE = re.compile(r"\{(\w+)\}")


def texts(message: object) -> list[str]:
    return [message] if isinstance(message, str) else list(message.values())  # type: ignore[attr-defined]


def test_there_is_a_file_for_each_language_and_no_other() -> None:
    assert {path.name for path in MESSAGES.iterdir()} == {f"{lang}.json" for lang in LANGUAGES}
    assert len(LANGUAGES) == 10


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_language_says_all_that_english_does(lang: str) -> None:
    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        assert len({key for key, _ in pairs}) == len(pairs), "a key is there twice"
        return dict(pairs)

    messages = json.loads((MESSAGES / f"{lang}.json").read_text("utf-8"), object_pairs_hook=once)
    assert list(messages) == list(ENGLISH.messages), "the same keys in the same order: a translator compares line by line"
    forms = PLURALS.get(lang, (None, frozenset({"one", "other"})))[1]
    for key, message in messages.items():
        places = {place for text in texts(ENGLISH.messages[key]) for place in _PLACE.findall(text)}
        assert isinstance(message, str) == isinstance(ENGLISH.messages[key], str), key
        if not isinstance(message, str):
            assert message.keys() == forms, key
        told = {place for text in texts(message) for place in _PLACE.findall(text)}
        assert told == places, key
        for text in texts(message):
            assert not re.search(r"[<>&\"]|\{(?!\w+\})|https?:|[\u202a-\u202e\u2066-\u2069]", text), (key, text)
            assert text.strip() == text or not text.strip(), key
            assert text, key


@pytest.mark.parametrize(
    ("asked", "lang"),
    [
        ("", "en"), ("de", "de"), ("de-AT,de;q=0.9,en;q=0.8", "de"), ("zh-Hant-TW", "zh"), ("PT-br", "pt"), ("nl,sv;q=0.9", "en"),
        ("nl, fr;q=0.5, ja;q=0.6", "ja"), ("en;q=0.1,tr;q=0", "en"), ("de;q=0", "en"), ("*", "en"), ("ar-EG;q=1.0,en", "ar"),
        ("de;q=2", "en"), ("../../etc/passwd", "en"), ("\x00<script>", "en"), ("," * 100_000 + "de", "en"), ("de;level=1", "en"),
        (("x" * 50 + ",") * 19 + " es ", "es"),
    ],
)  # fmt: skip
def test_the_browser_chooses(asked: str, lang: str) -> None:
    assert preferred(asked).lang == lang


@pytest.mark.parametrize(
    ("lang", "counts"),
    [
        ("en", {0: "0 minutes", 1: "1 minute", 59: "59 minutes"}),
        ("fr", {0: "0 minute", 1: "1 minute", 2: "2 minutes"}),
        ("ru", {1: "1 минута", 3: "3 минуты", 5: "5 минут", 11: "11 минут", 21: "21 минута", 112: "112 минут"}),
        ("ar", {1: "دقيقة واحدة", 2: "دقيقتان", 3: "\u20683\u2069 دقائق", 59: "\u206859\u2069 دقيقة"}),
        ("ja", {1: "1 分", 5: "5 分"}),
    ],
)  # fmt: skip
def test_numbers_choose_their_form(lang: str, counts: dict[int, str]) -> None:
    assert {count: words(lang).count("time.minutes", count) for count in counts} == counts


@pytest.mark.parametrize(
    ("lang", "text", "shown"),
    [
        ("en", "1234567.5", "1,234,567.5"), ("de", "1234567.50", "1.234.567,50"), ("es", "1234.5", "1234,5"), ("en", "-1", "-1"),
        ("fr", "12345", "12\u202f345"), ("ru", "12345.6", "12\u00a0345,6"), ("en", "0.000000000000000001", "0.000000000000000001"),
        ("de", "5 to 7", "5 to 7"), ("de", "1e5", "1e5"), ("de", "", ""),
    ],
)  # fmt: skip
def test_numbers_are_in_the_readers_form(lang: str, text: str, shown: str) -> None:
    assert words(lang).number(text) == shown


def test_times_are_in_utc() -> None:
    assert words("en").moment("2026-05-01T12:34:56.789Z") == "2026-05-01 12:34 UTC"
    assert words("de").moment("2026-05-01T12:34:56.789Z") == "01.05.2026, 12:34 UTC"
    assert words("ja").moment("2026-05-01T12:34:56.789Z", "clock") == "12:34 UTC"
    assert words("en").moment("<b>") == "<b>"


def test_a_value_is_text_and_turns_nothing_around() -> None:
    one = Words("en", {"k": "a {x} b {y}"})
    assert one.say("k", x="{y}", y="{x}") == "a {y} b {x}"
    assert one.say("k", x="\u202eevil\u2066", y="") == "a evil b "
    assert one.html("k", x="<script>", y='"&') == "a &lt;script&gt; b &quot;&amp;"
    assert Words("ar", one.messages).say("k", x="1", y="ETH") == "a \u20681\u2069 b \u2068ETH\u2069"
    with pytest.raises(LookupError):
        one.say("k", x="1")
    with pytest.raises(LookupError):
        one.say("nothing")
    with pytest.raises(LookupError):
        ENGLISH.say("time.minutes")
    with pytest.raises(LookupError):
        ENGLISH.count("common.pay", 1)
    assert ENGLISH.below("receipt")["print"] == "Print the receipt"
